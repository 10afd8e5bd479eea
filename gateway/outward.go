package gateway

import (
	"context"
	"io"
	"net"
	"net/http"
	"time"
)

// The limits of the connections to upstreams. Idle ones are closed before an edge closes them: those of the big providers keep
// them for minutes, small servers for a minute or less (case of a request that meets a connection just closed).
const (
	idleConnTime  = 55 * time.Second
	idlePerHost   = 256
	dialKeepAlive = 15 * time.Second
	tlsTime       = 10 * time.Second
	answerHeader  = 256 << 10        // bytes; the largest known are a tenth of it
	silentTime    = 15 * time.Second // after which a connection of HTTP/2 is asked whether it lives
)

// standardBase is the http.Transport that all calls share; it outlives reloads.
func (h *health) standardBase() http.RoundTripper {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.base == nil {
		h.base = NewTransport()
	}
	return h.base
}

// NewTransport returns a transport as a gateway makes it for itself: for the base of a [Target]. Whoever makes it shares it
// between targets and reloads, and it never ends by itself.
func NewTransport() *http.Transport {
	dialer := &net.Dialer{KeepAlive: dialKeepAlive}
	return &http.Transport{
		Proxy: http.ProxyFromEnvironment,
		DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			conn, err := dialer.DialContext(ctx, network, addr)
			if tcp, ok := conn.(*net.TCPConn); ok {
				return outwardConn{tcp}, nil
			}
			return conn, err
		},
		ForceAttemptHTTP2:      true,
		MaxIdleConnsPerHost:    idlePerHost,
		IdleConnTimeout:        idleConnTime,
		TLSHandshakeTimeout:    tlsTime,
		MaxResponseHeaderBytes: answerHeader,
		DisableCompression:     true, // an answer comes as it was asked for
		HTTP2:                  &http.HTTP2Config{SendPingTimeout: silentTime, PingTimeout: silentTime},
	}
}

// outwardConn is a connection to an upstream without TLS. It sends a body that is in memory with one write, where net/http would
// copy it through a buffer of 32 KB that is made for it.
type outwardConn struct{ *net.TCPConn }

// ReadFrom implements io.ReaderFrom.
func (c outwardConn) ReadFrom(r io.Reader) (int64, error) {
	if limited, ok := r.(*io.LimitedReader); ok {
		if body, ok := limited.R.(*bodyReader); ok && limited.N >= int64(body.Len()) {
			n, err := body.WriteTo(c.TCPConn)
			limited.N -= n
			return n, err
		}
	}
	return c.TCPConn.ReadFrom(r)
}
