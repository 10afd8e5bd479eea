package standin

import (
	"net"
	"sync"
	"time"
)

// reopening is how long a gate waits when its port is not to be had again at once.
const reopening = 50 * time.Millisecond

// gate is a listener that plays the incidents about connections: it closes its
// port while they are to be refused, and keeps what it accepts unread while
// they are to hang.
type gate struct {
	server *Server
	addr   net.Addr
	stop   chan struct{}
	opened chan struct{} // holds a token when the port has been opened again

	mu     sync.Mutex
	inner  net.Listener // nil while the port is closed
	hangs  bool
	unread []net.Conn
	closed bool
}

func openGate(s *Server, addr string) (*gate, error) {
	inner, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, err
	}
	return &gate{server: s, addr: inner.Addr(), stop: make(chan struct{}), opened: make(chan struct{}, 1), inner: inner}, nil
}

// Addr returns the address, also while the port is closed.
func (g *gate) Addr() net.Addr { return g.addr }

// Accept returns the next connection that is to be served. It waits while the port is closed.
func (g *gate) Accept() (net.Conn, error) {
	for {
		inner := g.listener()
		if inner == nil {
			select {
			case <-g.opened:
				continue
			case <-g.stop:
				return nil, net.ErrClosed
			}
		}
		conn, err := inner.Accept()
		switch {
		case err == nil && g.keepUnread(conn):
		case err == nil:
			return conn, nil
		case g.listener() == inner: // it was not closed by an incident
			return nil, err
		}
	}
}

// Close closes the port for good.
func (g *gate) Close() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return nil
	}
	g.closed = true
	close(g.stop)
	g.dropUnread()
	if g.inner == nil {
		return nil
	}
	return g.inner.Close()
}

// keep opens and closes the port as the timeline has it, until the gate is closed.
func (g *gate) keep() {
	for {
		if left, replaced := g.follow(); !g.sleep(left, replaced) {
			return
		}
	}
}

// follow makes the port what the timeline has now, and returns how long that lasts and what ends it before.
func (g *gate) follow() (left time.Duration, replaced <-chan struct{}) {
	state := g.server.state.Load()
	now := g.server.now().Sub(state.origin)
	kind, until := state.script.connections(now)
	left = until // never
	if until != never {
		left = until - now
	}
	if !g.set(kind) {
		left = reopening
	}
	return left, state.replaced
}

// sleep waits for a time, never for ever, or until the plan is replaced, and reports false once the gate is closed.
func (g *gate) sleep(d time.Duration, replaced <-chan struct{}) bool {
	var over <-chan time.Time
	if d != never {
		timer := time.NewTimer(d)
		defer timer.Stop()
		over = timer.C
	}
	select {
	case <-over:
		return true
	case <-replaced:
		return true
	case <-g.stop:
		return false
	}
}

// set makes the port what the incident wants it to be, "" for none, and reports
// whether that worked.
func (g *gate) set(kind Kind) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return true
	}
	g.hangs = kind == Hang
	if !g.hangs {
		g.dropUnread()
	}
	switch {
	case kind == Refused && g.inner != nil:
		inner := g.inner
		g.inner = nil
		_ = inner.Close() // the port is closed either way
	case kind != Refused && g.inner == nil:
		inner, err := net.Listen("tcp", g.addr.String())
		if err != nil {
			return false // somebody else may hold the port for a moment
		}
		g.inner = inner
		select {
		case g.opened <- struct{}{}:
		default:
		}
	}
	return true
}

func (g *gate) listener() net.Listener {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.inner
}

// keepUnread puts the connection aside while connections are to hang.
func (g *gate) keepUnread(conn net.Conn) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.hangs && !g.closed {
		g.unread = append(g.unread, conn)
	}
	return g.hangs && !g.closed
}

// dropUnread closes what was put aside. The lock is held.
func (g *gate) dropUnread() {
	for _, conn := range g.unread {
		_ = conn.Close() // nobody has spoken on it
	}
	g.unread = nil
}
