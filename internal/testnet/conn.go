package testnet

import (
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

// window is how many bytes may be under way or unread in one direction before
// the writer has to wait.
const window = 64 << 10

// link is what the two ends of a connection share: one lock, and one condition
// that is signalled whenever something about either end changes.
type link struct {
	counters []*counter

	mu      sync.Mutex
	changed sync.Cond
}

// wait blocks until something changes or the time has come; the zero time never
// comes. The timer lives only as long as the wait, so none is left behind.
func (l *link) wait(until time.Time) {
	if until.IsZero() {
		l.changed.Wait()
		return
	}
	t := time.AfterFunc(time.Until(until), func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.changed.Broadcast()
	})
	defer t.Stop()
	l.changed.Wait()
}

// Conn is one end of a connection. Reads after a reset fail with
// [syscall.ECONNRESET], deadlines with [os.ErrDeadlineExceeded], and use after
// closing with [net.ErrClosed], each inside a *[net.OpError] as from a socket.
type Conn struct {
	link          *link
	peer          *Conn
	local, remote net.Addr
	dialled       bool          // this is the dialling end
	delay         time.Duration // from this end to the peer
	serial        int           // order of arrival at the listener
	onEnd         func()        // set before the end is handed out; may be nil

	// Guarded by link.mu.
	inbox         []segment // bytes towards this end, in order
	queued        int       // how many bytes those are
	finAt         time.Time // when the peer's close arrives here; zero: not sent
	resetAt       time.Time // when a reset arrives here; zero: not sent
	resetSeen     bool      // the reset was reported once
	writing       bool      // a Write is under way, so that two do not mix
	finSent       bool      // closed for writing
	closed        bool
	readDeadline  time.Time
	writeDeadline time.Time
}

// segment is the bytes of one write and when they arrive.
type segment struct {
	data []byte
	at   time.Time
}

// newPair returns the dialling end of a new connection.
func newPair(local *net.TCPAddr, remote address, latency Latency, counters ...*counter) *Conn {
	l := &link{counters: counters}
	l.changed.L = &l.mu
	c := &Conn{link: l, local: local, remote: remote, dialled: true, delay: max(latency.ToServer, 0)}
	c.peer = &Conn{link: l, local: remote, remote: local, delay: max(latency.ToClient, 0), peer: c}
	return c
}

// Read implements [net.Conn].
func (c *Conn) Read(b []byte) (int, error) {
	c.link.mu.Lock()
	defer c.link.mu.Unlock()
	for {
		now := time.Now()
		switch {
		case c.closed:
			return 0, c.opError("read", net.ErrClosed)
		case reached(c.readDeadline, now):
			return 0, c.opError("read", os.ErrDeadlineExceeded)
		case reached(c.resetAt, now):
			c.resetSeen = true
			return 0, c.opError("read", os.NewSyscallError("read", syscall.ECONNRESET))
		case len(b) == 0:
			return 0, nil
		case len(c.inbox) > 0 && reached(c.inbox[0].at, now):
			return c.take(b, now), nil
		case len(c.inbox) == 0 && reached(c.finAt, now):
			return 0, io.EOF
		}
		next := c.finAt
		if len(c.inbox) > 0 {
			next = c.inbox[0].at
		}
		c.link.wait(earliest(next, earliest(c.resetAt, c.readDeadline)))
	}
}

// take moves what has arrived into b and makes room for the writer.
func (c *Conn) take(b []byte, now time.Time) (n int) {
	for n < len(b) && len(c.inbox) > 0 && reached(c.inbox[0].at, now) {
		front := &c.inbox[0]
		k := copy(b[n:], front.data)
		n += k
		if front.data = front.data[k:]; len(front.data) == 0 {
			*front = segment{} // whose bytes the array would keep
			c.inbox = c.inbox[1:]
		}
	}
	c.queued -= n
	c.link.changed.Broadcast()
	return n
}

// Write implements [net.Conn]. It returns once all of b is in the window, which
// says nothing about whether the peer reads it.
func (c *Conn) Write(b []byte) (n int, err error) {
	c.link.mu.Lock()
	defer c.link.mu.Unlock()
	for c.writing {
		if err := c.writable(time.Now()); err != nil {
			return 0, err
		}
		c.link.wait(earliest(c.resetAt, c.writeDeadline))
	}
	c.writing = true
	defer func() {
		c.writing = false
		c.link.changed.Broadcast()
	}()
	for {
		now := time.Now()
		if err := c.writable(now); err != nil {
			return n, err
		}
		if n += c.send(b[n:], now); n == len(b) {
			return n, nil
		}
		c.link.wait(earliest(c.resetAt, c.writeDeadline))
	}
}

// writable returns why nothing can be written now, if so.
func (c *Conn) writable(now time.Time) error {
	switch {
	case c.closed:
		return c.opError("write", net.ErrClosed)
	case reached(c.writeDeadline, now):
		return c.opError("write", os.ErrDeadlineExceeded)
	case reached(c.resetAt, now) && !c.resetSeen:
		c.resetSeen = true
		return c.opError("write", os.NewSyscallError("write", syscall.ECONNRESET))
	case c.finSent || c.resetSeen:
		return c.opError("write", os.NewSyscallError("write", syscall.EPIPE))
	}
	return nil
}

// send puts what fits of b on its way and returns how much that was.
func (c *Conn) send(b []byte, now time.Time) int {
	k := min(len(b), window-c.peer.queued)
	switch {
	case c.peer.closed && len(b) > 0:
		// Nobody is there: the bytes are lost, and the answer to them is a reset.
		k = len(b)
		c.resetBy(now.Add(c.delay + c.peer.delay))
	case k == 0:
		// Nothing changed, so wake nobody: two full directions would keep each other awake.
		return 0
	default:
		c.peer.inbox = append(c.peer.inbox, segment{data: append([]byte(nil), b[:k]...), at: now.Add(c.delay)})
		c.peer.queued += k
	}
	for _, counter := range c.link.counters {
		counter.sent(k, c.dialled)
	}
	c.link.changed.Broadcast()
	return k
}

// CloseWrite closes this end for writing only: the peer reads what was sent and
// then [io.EOF], and can still be read from.
func (c *Conn) CloseWrite() error {
	c.link.mu.Lock()
	defer c.link.mu.Unlock()
	if c.closed {
		return c.opError("close", net.ErrClosed)
	}
	c.sendFin(time.Now())
	c.link.changed.Broadcast()
	return nil
}

// Close implements [net.Conn]. The peer reads what was sent and then [io.EOF],
// unless this end has left bytes unread: then the peer is reset, as by Linux.
func (c *Conn) Close() error {
	return c.end(func(now time.Time) {
		c.sendFin(now)
		if c.queued > 0 {
			// Bytes still under way are refused when they get here, not before.
			arrival := c.inbox[0].at
			if now.After(arrival) {
				arrival = now
			}
			c.peer.resetBy(arrival.Add(c.delay))
		}
	})
}

// Reset cuts the connection. What the peer has not read is lost: its reads fail
// with [syscall.ECONNRESET] and its writes with that or [syscall.EPIPE], at once
// or after the latency of this direction. It does nothing on a closed end.
func (c *Conn) Reset() {
	_ = c.end(func(now time.Time) { c.peer.resetBy(now.Add(c.delay)) })
}

// Drop closes this end and tells the peer nothing, as a server or a middlebox
// does that forgets an idle connection. The peer's reads wait; what it writes is
// lost and answered by a reset. It does nothing on a closed end.
func (c *Conn) Drop() { _ = c.end(func(time.Time) {}) }

// end closes this end; tell lets the peer know.
func (c *Conn) end(tell func(now time.Time)) error {
	c.link.mu.Lock()
	if c.closed {
		c.link.mu.Unlock()
		return c.opError("close", net.ErrClosed)
	}
	tell(time.Now())
	c.closed = true
	c.inbox, c.queued = nil, 0
	c.link.changed.Broadcast()
	c.link.mu.Unlock()

	if c.dialled {
		for _, counter := range c.link.counters {
			counter.closed()
		}
	}
	if c.onEnd != nil {
		c.onEnd()
	}
	return nil
}

func (c *Conn) sendFin(now time.Time) {
	if !c.finSent {
		c.finSent = true
		c.peer.finAt = now.Add(c.delay)
	}
}

func (c *Conn) resetBy(at time.Time) { c.resetAt = earliest(c.resetAt, at) }

// LocalAddr implements [net.Conn].
func (c *Conn) LocalAddr() net.Addr { return c.local }

// RemoteAddr implements [net.Conn].
func (c *Conn) RemoteAddr() net.Addr { return c.remote }

// SetDeadline implements [net.Conn]; the zero time means no deadline.
func (c *Conn) SetDeadline(t time.Time) error {
	return c.setDeadlines(t, &c.readDeadline, &c.writeDeadline)
}

// SetReadDeadline implements [net.Conn]; the zero time means no deadline.
func (c *Conn) SetReadDeadline(t time.Time) error { return c.setDeadlines(t, &c.readDeadline) }

// SetWriteDeadline implements [net.Conn]; the zero time means no deadline.
func (c *Conn) SetWriteDeadline(t time.Time) error { return c.setDeadlines(t, &c.writeDeadline) }

func (c *Conn) setDeadlines(t time.Time, deadlines ...*time.Time) error {
	c.link.mu.Lock()
	defer c.link.mu.Unlock()
	if c.closed {
		return c.opError("set", net.ErrClosed)
	}
	for _, d := range deadlines {
		*d = t
	}
	c.link.changed.Broadcast()
	return nil
}

func (c *Conn) opError(op string, err error) error {
	return &net.OpError{Op: op, Net: "tcp", Source: c.local, Addr: c.remote, Err: err}
}

// reached reports whether a moment has come; the zero time never does.
func reached(at, now time.Time) bool { return !at.IsZero() && !now.Before(at) }

// earliest returns the earlier of two moments, where zero means never.
func earliest(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
