package testnet

import (
	"net"
	"slices"
	"sync"
)

// listener hands out the listening ends of connections, oldest first.
type listener struct {
	network *Network
	name    string
	count   counter

	mu      sync.Mutex
	changed sync.Cond
	backlog []*Conn
	arrived int
	conns   map[*Conn]struct{} // listening ends that are not closed
	closed  bool
}

// enqueue offers a connection; false means that nobody listens any more.
func (l *listener) enqueue(c *Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return false
	}
	l.arrived++
	c.serial = l.arrived
	c.onEnd = func() { l.forget(c) }
	l.network.count.opened()
	l.count.opened()
	l.conns[c] = struct{}{}
	l.backlog = append(l.backlog, c)
	l.changed.Signal()
	return true
}

func (l *listener) forget(c *Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.conns, c)
}

// Accept implements [net.Listener].
func (l *listener) Accept() (net.Conn, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.backlog) == 0 && !l.closed {
		l.changed.Wait()
	}
	if l.closed {
		return nil, l.closedError("accept")
	}
	c := l.backlog[0]
	l.backlog = l.backlog[1:]
	return c, nil
}

// Close frees the address and resets what was never accepted, as a kernel does.
func (l *listener) Close() error {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return l.closedError("close")
	}
	l.closed = true
	waiting := l.backlog
	l.backlog = nil
	l.changed.Broadcast()
	l.mu.Unlock()

	l.network.mu.Lock()
	delete(l.network.listeners, l.name)
	l.network.mu.Unlock()
	for _, c := range waiting {
		c.Reset()
	}
	return nil
}

// Addr implements [net.Listener].
func (l *listener) Addr() net.Addr { return address(l.name) }

func (l *listener) closedError(op string) error {
	return &net.OpError{Op: op, Net: "tcp", Addr: l.Addr(), Err: net.ErrClosed}
}

// open returns the listening ends that are not closed, oldest first.
func (l *listener) open() []*Conn {
	l.mu.Lock()
	defer l.mu.Unlock()
	conns := make([]*Conn, 0, len(l.conns))
	for c := range l.conns {
		conns = append(conns, c)
	}
	slices.SortFunc(conns, func(a, b *Conn) int { return a.serial - b.serial })
	return conns
}
