package gateway

import (
	"net/http"
	"net/netip"
	"net/url"
	"strings"
)

// fromAPage reports whether a web page of another machine asks, by its origin or under a name that it has pointed at this one.
// A gateway without clients has no other way to know who spends its keys. Pages that this machine serves itself may ask.
func fromAPage(r *http.Request) bool {
	if !addressed(r) {
		return true
	}
	origin := r.Header.Get("Origin")
	if origin == "" {
		return r.Header.Get("Sec-Fetch-Site") == "cross-site"
	}
	u, err := url.Parse(origin)
	return err != nil || !isLoopbackName(u.Hostname())
}

func isLoopbackName(host string) bool {
	if at, err := netip.ParseAddr(host); err == nil {
		return at.Unmap().IsLoopback()
	}
	return host == "localhost" || strings.HasSuffix(host, ".localhost")
}
