package provider

import (
	"net/http"
	"strings"
)

// kept are headers that never leave the caller's side: his credentials, which are another provider's, and what concerns one
// connection alone (RFC 9110, 7.6.1). Answers are not packed, for an event stream of AWS could not be read.
var kept = map[string]bool{
	"Authorization": true, "X-Api-Key": true, "Api-Key": true, "Cookie": true, "Proxy-Authorization": true, "Anthropic-Workspace-Id": true,
	"X-Amz-Security-Token": true, "X-Amz-Date": true, "X-Amz-Content-Sha256": true, "X-Goog-Api-Key": true,

	"Connection": true, "Keep-Alive": true, "Proxy-Connection": true, "Proxy-Authenticate": true, "Te": true, "Trailer": true, "Transfer-Encoding": true,
	"Upgrade": true, "Expect": true,

	"Accept-Encoding": true, "Content-Encoding": true, "Content-Length": true, "Host": true,
}

// carry puts the caller's headers on a request that the SDK made, in place of the SDK's own. What the SDK put there for the
// provider stays.
func carry(to, from http.Header) {
	for name := range to {
		if strings.HasPrefix(name, "X-Stainless-") {
			delete(to, name) // of a client that is not the caller's
		}
	}
	for name, values := range from {
		if !kept[http.CanonicalHeaderKey(name)] && !strings.HasPrefix(name, "Holdfast-") && len(values) > 0 {
			to[name] = append([]string(nil), values...)
		}
	}
}
