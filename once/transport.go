package once

import (
	"net/http"
)

const defaultHeader = "Idempotency-Key"

// Transport is an http.RoundTripper that gives requests their idempotency key, for services that honour one. The zero value works; it
// must not be changed once it is in use, and is safe for concurrent use then.
//
// A request of a method that is not safe (all but GET, HEAD, OPTIONS and TRACE) gets the key that its context carries by [WithKey],
// as that of an effect with [Effect.Replays] does, or else the one that Key makes. All attempts of a call have the same key: put
// a Transport on either side of one that retries, but with Key only outside it, unless Key gives a request the same key again. One
// key is for one request; an effect that sends two gives each a key of its own.
//
// Use it for services that honour keys alone: net/http takes the header as leave to send a request again by itself, when a
// connection that was kept alive turns out to be dead and the body can be had again, even a POST. Nobody counts that attempt.
//
// It never replaces a key that the caller has set, never changes the caller's request, never retries, and never reads a reply.
type Transport struct {
	// Base sends the requests. Default: http.DefaultTransport.
	Base http.RoundTripper
	// Header is the header's name, as services differ: PayPal-Request-Id, Cko-Idempotency-Key. Default: Idempotency-Key.
	Header string
	// Quote puts the key into quotes, as draft-ietf-httpapi-idempotency-key-header-07 has it: there the header is a structured
	// string. Most services, Stripe among them, take the key as it is. Default: no quotes.
	Quote bool
	// Key makes the key of a request whose context has none; "" sends none. Default: no key is made.
	Key func(*http.Request) string
}

// RoundTrip implements http.RoundTripper. A key that no header can hold is a [*KeyError], and nothing is sent. It never returns
// another error of its own.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	base := t.Base
	if base == nil {
		base = http.DefaultTransport
	}
	name := http.CanonicalHeaderKey(t.Header)
	if name == "" {
		name = defaultHeader
	}
	if _, set := req.Header[name]; set || safe(req.Method) {
		return base.RoundTrip(req)
	}
	key := KeyOf(req.Context())
	if key == "" && t.Key != nil {
		key = t.Key(req)
	}
	if key == "" {
		return base.RoundTrip(req)
	}
	if err := checkKey(key); err != nil {
		if req.Body != nil {
			_ = req.Body.Close() // as a RoundTripper must, also with an error; nothing was read
		}
		return nil, err
	}
	if t.Quote {
		key = `"` + key + `"`
	}
	own := req.Clone(req.Context())
	own.Header.Set(name, key)
	return base.RoundTrip(own)
}

// safe reports that a method asks for no effect (RFC 9110, section 9.2.1).
func safe(method string) bool {
	switch method {
	case "", http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace:
		return true
	}
	return false
}
