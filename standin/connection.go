package standin

import "net"

// reset breaks the connection so that the client sees a reset. Where that is
// not to be had (HTTP/2, a handler without a server), it aborts instead.
func (a *reply) reset() {
	a.entry.closedBy(Peer)
	if conn, _, err := a.rc.Hijack(); err == nil {
		breakOff(conn)
	}
	a.abort(Peer)
}

// breakOff closes the connection with a reset where it has one.
func breakOff(conn net.Conn) {
	if layered, ok := conn.(interface{ NetConn() net.Conn }); ok { // TLS would close politely
		conn = layered.NetConn()
	}
	switch c := conn.(type) {
	case interface{ Reset() }: // an in-memory connection
		c.Reset()
	case interface{ SetLinger(seconds int) error }: // TCP: drop what is unsent and send RST
		_ = c.SetLinger(0)
	}
	_ = conn.Close() // it is broken either way
}
