package main

import (
	"net"
	"net/http"
	"strconv"
	"time"
)

// place is where a service listens and calls: this machine, or a network in memory.
type place struct {
	listen  func(address string) (net.Listener, error)
	callers *http.Client      // finds what listens
	base    http.RoundTripper // by which the gateway finds its upstreams; nil: its own
}

var onThisMachine = place{
	listen:  func(address string) (net.Listener, error) { return net.Listen("tcp", address) },
	callers: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 100}},
}

// serve serves on a free port until stop is called, which cuts what is open.
func (p place) serve(h http.Handler) (url string, stop func(), err error) {
	l, err := p.listen("127.0.0.1:0")
	if err != nil {
		return "", nil, failed("the demo needs free ports on the loopback interface", "%w", err)
	}
	server := &http.Server{Handler: h, ReadHeaderTimeout: headerTimeout}
	go func() { _ = server.Serve(l) }() // ends with stop, and only so
	return "http://" + l.Addr().String(), func() { _ = server.Close() }, nil
}

// headerTimeout is how long the head of a request may take.
const headerTimeout = 10 * time.Second

// reachable is an address at which a client on this machine finds a listener: one that listens everywhere has none of its own.
func reachable(a net.Addr) string {
	tcp, ok := a.(*net.TCPAddr)
	if !ok || !tcp.IP.IsUnspecified() {
		return a.String()
	}
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(tcp.Port))
}
