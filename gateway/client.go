package gateway

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"fmt"
	"net/http"
	"time"

	"holdfast"
)

// client is someone who may use the gateway, and what he may still send.
type client struct {
	Client
	sum  [sha256.Size]byte
	pace *holdfast.Pace // nil: no limit
}

func compileClients(all []Client, health *health) (clients []*client, mistakes []error) {
	for i, c := range all {
		sum, err := hex.DecodeString(c.KeySHA256)
		if err != nil || len(sum) != sha256.Size {
			mistakes = append(mistakes, fmt.Errorf("gateway: client %d (%s): the SHA-256 of its key must be %d hexadecimal digits", i+1, c.Name, 2*sha256.Size))
			continue
		}
		made := &client{Client: c, sum: [sha256.Size]byte(sum)}
		if c.RequestsPerMinute > 0 {
			made.pace = health.clientPace(c)
		}
		clients = append(clients, made)
	}
	return clients, mistakes
}

// clientHeader carries a client's key where the usual headers carry the caller's own key for the upstream.
const clientHeader = "Holdfast-Key"

// admit finds out who the caller is, and whether he may.
func (c *call) admit() bool {
	if len(c.s.clients) == 0 {
		return true
	}
	h := c.r.Header
	key, own := h.Get(clientHeader), true
	if key == "" {
		key, own = callerKey(h), false
	}
	if key == "" {
		c.reject(refusal{http.StatusUnauthorized, "client-key", "it carries no client key; send one as x-api-key, as a bearer token or as holdfast-key", 0, false, 0})
		return false
	}
	c.client = find(c.s.clients, key)
	if c.client == nil {
		c.reject(refusal{http.StatusUnauthorized, "client-key", "its client key is not known to the gateway", 0, false, 0})
		return false
	}
	c.record.Client = c.client.Name
	if !own {
		dropKeys(h) // it was meant for the gateway, and is nobody else's business
	}
	if p := c.client.pace; p != nil && !p.Allow(time.Time{}, holdfast.Tokens{}) {
		wait := time.Minute / time.Duration(c.client.RequestsPerMinute)
		c.reject(refusal{http.StatusTooManyRequests, "client-limit", fmt.Sprintf("client %s may send %d requests a minute", c.client.Name, c.client.RequestsPerMinute), wait, true, 0})
		return false
	}
	return true
}

// find compares with every client in constant time: how long it takes tells nothing about the keys.
func find(clients []*client, key string) (found *client) {
	sum := sha256.Sum256([]byte(key))
	for _, c := range clients {
		if subtle.ConstantTimeCompare(sum[:], c.sum[:]) == 1 {
			found = c
		}
	}
	return found
}
