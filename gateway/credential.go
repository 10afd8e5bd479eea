package gateway

import (
	"crypto/sha256"
	"net/http"
	"strings"
)

// The ways in which a key travels.
const (
	authKey    = "x-api-key"
	authBearer = "bearer"
	authAPIKey = "api-key"
)

// callerKey is the key that a request carries, and in which header; empty when it carries none.
func callerKey(h http.Header) (key string) {
	if k := h.Get("X-Api-Key"); k != "" {
		return k
	}
	if scheme, k, ok := strings.Cut(h.Get("Authorization"), " "); ok && strings.EqualFold(scheme, "bearer") {
		return strings.TrimSpace(k)
	}
	return h.Get("Api-Key")
}

// dropKeys takes every credential out of a request.
func dropKeys(h http.Header) {
	delete(h, "X-Api-Key")
	delete(h, "Authorization")
	delete(h, "Api-Key")
}

// setKey makes a key the only credential of a request.
func setKey(h http.Header, auth, key string) {
	dropKeys(h)
	switch auth {
	case authBearer:
		h["Authorization"] = []string{"Bearer " + key}
	case authAPIKey:
		h["Api-Key"] = []string{key}
	default:
		h["X-Api-Key"] = []string{key}
	}
}

// digest is a key as it may stand in memory and in maps: what cannot be turned back.
type digest [8]byte

// digestOf is the same for the same credential. Anything that a caller may be known by counts.
func digestOf(h http.Header) (p digest) {
	key := callerKey(h)
	if key == "" {
		key = h.Get("Authorization")
	}
	if key == "" {
		return p
	}
	sum := sha256.Sum256([]byte(key))
	copy(p[:], sum[:])
	return p
}
