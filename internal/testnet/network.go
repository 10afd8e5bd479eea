// Package testnet is a network in memory for tests that run on a fake clock.
//
// A goroutine that waits on a socket of the operating system keeps the clock of
// a [testing/synctest] bubble from moving. One that waits here does not: every
// wait is a [sync.Cond] or a channel, so ten minutes of streaming pass in
// milliseconds. Connections behave like TCP where a client can tell: data
// arrives in order, a full window holds the writer back, deadlines are kept,
// an end can be closed, half closed, reset, or dropped without a word, and a
// write to an end that is gone is answered by a reset one round trip later.
//
//	n := testnet.New()
//	s := n.Serve(t, "api.test:80", handler)
//	resp, err := n.Client().Get(s.URL)
//
// Everything is safe for concurrent use. No goroutine is left behind: those of
// [Network.Start] and [Network.Serve] end with the server, the rest needs none.
package testnet

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptrace"
	"os"
	"sync"
	"syscall"
	"time"
)

// Latency is the time that bytes, closes and resets travel, one way.
// Negative values count as zero.
type Latency struct {
	ToServer time.Duration // from the dialling end to the listening end; default 0
	ToClient time.Duration // from the listening end to the dialling end; default 0
}

// roundTrip is the time until an answer can be back.
func (l Latency) roundTrip() time.Duration { return max(l.ToServer, 0) + max(l.ToClient, 0) }

// Network connects those who dial with those who listen, by address. An address
// that nobody listens on refuses. Make one with [New].
type Network struct {
	// Latency applies to every connection dialled later, and makes each dial
	// take one round trip. Default: none. Set it before the first dial.
	Latency Latency

	count counter

	mu        sync.Mutex
	listeners map[string]*listener
	faults    map[string]fault
	clients   []*http.Transport
	dialled   int
}

// fault is what a dial meets instead of the listener.
type fault int

const (
	none fault = iota
	refuse
	blackHole
	hang
)

// New returns an empty network: every dial is refused until someone listens.
func New() *Network {
	return &Network{listeners: map[string]*listener{}, faults: map[string]fault{}}
}

// Listen takes an address such as "api.test:80"; without a port, 80 is meant.
// Connections wait in an unbounded backlog until they are accepted, and are
// *[Conn]. Listen panics if the address is taken: that is a mistake in the test.
func (n *Network) Listen(name string) net.Listener { return n.listen(name) }

func (n *Network) listen(name string) *listener {
	key := withPort(name)
	l := &listener{network: n, name: key, conns: map[*Conn]struct{}{}}
	l.changed.L = &l.mu
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.listeners[key] != nil {
		panic(fmt.Sprintf("testnet: %s is already listened on", key))
	}
	n.listeners[key] = l
	return l
}

// Dial connects to an address, as [net.Dialer.DialContext] does; the connection
// is a *[Conn]. Failures are *[net.OpError] with Op "dial": around
// [syscall.ECONNREFUSED] when nobody listens, around the error of ctx when it
// ends first.
func (n *Network) Dial(ctx context.Context, network, addr string) (net.Conn, error) {
	remote := address(withPort(addr))
	trace := httptrace.ContextClientTrace(ctx) // told of dials as by net.Dialer
	if trace != nil && trace.ConnectStart != nil {
		trace.ConnectStart(network, addr)
	}
	c, err := n.dial(ctx, network, remote)
	if trace != nil && trace.ConnectDone != nil {
		trace.ConnectDone(network, addr, err)
	}
	if err != nil {
		return nil, &net.OpError{Op: "dial", Net: network, Addr: remote, Err: err}
	}
	return c, nil
}

func (n *Network) dial(ctx context.Context, network string, remote address) (*Conn, error) {
	switch network {
	case "tcp", "tcp4", "tcp6":
	default:
		return nil, net.UnknownNetworkError(network)
	}
	if err := sleep(ctx, n.Latency.roundTrip()); err != nil {
		return nil, err
	}
	n.mu.Lock()
	l, f := n.listeners[string(remote)], n.faults[string(remote)]
	n.dialled++
	local := &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 10000 + n.dialled%50000}
	n.mu.Unlock()

	switch {
	case f == blackHole:
		<-ctx.Done()
		return nil, ctx.Err()
	case f == hang:
		c := newPair(local, remote, n.Latency, &n.count)
		n.count.opened()
		return c, nil
	case f == none && l != nil:
		c := newPair(local, remote, n.Latency, &n.count, &l.count)
		if l.enqueue(c.peer) {
			return c, nil
		}
	}
	return nil, os.NewSyscallError("connect", syscall.ECONNREFUSED)
}

// Refuse makes later dials to the address fail, whether or not someone listens.
// Connections that exist live on, as with every fault of an address.
func (n *Network) Refuse(addr string) { n.setFault(addr, refuse) }

// BlackHole makes later dials to the address wait until their context ends.
func (n *Network) BlackHole(addr string) { n.setFault(addr, blackHole) }

// Hang makes later dials to the address succeed and reach nobody: up to a window
// of bytes can be written, and nothing is ever read or answered.
func (n *Network) Hang(addr string) { n.setFault(addr, hang) }

// Restore ends the fault of an address. Dials already caught in it stay caught.
func (n *Network) Restore(addr string) { n.setFault(addr, none) }

func (n *Network) setFault(addr string, f fault) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.faults[withPort(addr)] = f
}

// Client returns a client with a connection pool of its own on this network:
// keep-alives on, no proxy, no timeout. Its Transport is a fresh
// *[http.Transport] that may be set up further before use. Closing any [Server]
// of the network closes the idle connections of all its clients.
func (n *Network) Client() *http.Client {
	t := &http.Transport{DialContext: n.Dial}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.clients = append(n.clients, t)
	return &http.Client{Transport: t}
}

func (n *Network) closeIdleClients() {
	n.mu.Lock()
	clients := n.clients[:len(n.clients):len(n.clients)]
	n.mu.Unlock()
	for _, t := range clients {
		t.CloseIdleConnections()
	}
}

// Stats returns the counters of all connections of the network.
func (n *Network) Stats() Stats { return n.count.read() }

// address is the name of a listening end.
type address string

func (address) Network() string  { return "tcp" }
func (a address) String() string { return string(a) }

func withPort(name string) string {
	if _, _, err := net.SplitHostPort(name); err == nil {
		return name
	}
	return net.JoinHostPort(name, "80")
}

// sleep waits for d, or returns the error of ctx if that ends first.
func sleep(ctx context.Context, d time.Duration) error {
	if err := ctx.Err(); err != nil || d <= 0 {
		return err
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
