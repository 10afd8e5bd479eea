package testnet

import (
	"context"
	"net"
	"net/http"
	"sync"
	"testing"
)

// Server is an [http.Server] on a [Network]. Make one with [Network.Serve] or,
// where there is no test at hand, [Network.Start].
type Server struct {
	URL string // "http://api.test:80", without a slash at the end

	network  *Network
	listener *listener
	http     *http.Server
	cancel   context.CancelFunc
	running  sync.WaitGroup // the accept loop and every connection

	mu   sync.Mutex
	idle map[*Conn]struct{}
}

type connKey struct{}

// ConnOf returns the listening end of the connection that carries a request to a
// [Server]: what a handler resets or drops. It is nil for any other request.
func ConnOf(r *http.Request) *Conn {
	c, _ := r.Context().Value(connKey{}).(*Conn)
	return c
}

// Serve starts a server and closes it when the test ends. In a bubble the test's
// cleanup runs inside the bubble, so nothing outlives it.
func (n *Network) Serve(t testing.TB, addr string, h http.Handler, configure ...func(*http.Server)) *Server {
	t.Helper()
	s := n.Start(addr, h, configure...)
	t.Cleanup(s.Close)
	return s
}

// Start starts a server that the caller has to close. Each configure is called
// before the first connection, to set timeouts and the like.
func (n *Network) Start(addr string, h http.Handler, configure ...func(*http.Server)) *Server {
	l := n.listen(addr)
	s := &Server{
		URL:      "http://" + l.name,
		network:  n,
		listener: l,
		http:     &http.Server{Handler: h},
		idle:     map[*Conn]struct{}{},
	}
	for _, f := range configure {
		f(s.http)
	}
	s.observe()
	s.running.Go(func() { _ = s.http.Serve(l) }) // always ErrServerClosed: the listener fails in no other way
	return s
}

// observe adds what the server has to know about its connections to the hooks
// that the test may have set.
func (s *Server) observe() {
	state, base, withConn := s.http.ConnState, s.http.BaseContext, s.http.ConnContext
	stop, cancel := context.WithCancel(context.Background())
	s.cancel = cancel
	s.http.BaseContext = func(l net.Listener) context.Context {
		if base == nil {
			return stop
		}
		ctx, cancel := context.WithCancel(base(l))
		context.AfterFunc(stop, cancel)
		return ctx
	}
	s.http.ConnState = func(c net.Conn, to http.ConnState) {
		if state != nil {
			state(c, to)
		}
		s.note(c, to)
	}
	s.http.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		if withConn != nil {
			ctx = withConn(ctx, c)
		}
		return context.WithValue(ctx, connKey{}, c)
	}
}

func (s *Server) note(nc net.Conn, to http.ConnState) {
	c := nc.(*Conn) // the listener makes nothing else
	s.mu.Lock()
	if to == http.StateIdle {
		s.idle[c] = struct{}{}
	} else {
		delete(s.idle, c)
	}
	s.mu.Unlock()
	switch to {
	case http.StateNew: // comes from the accept loop, so Close cannot miss it
		s.running.Add(1)
	case http.StateClosed, http.StateHijacked:
		s.running.Done()
	}
}

// Conns returns the listening ends that are not closed, oldest first.
func (s *Server) Conns() []*Conn { return s.listener.open() }

// Stats returns the counters of this server's connections.
func (s *Server) Stats() Stats { return s.listener.count.read() }

// DropIdle drops every connection between two requests without telling the
// client, and returns how many those were. See [Conn.Drop].
func (s *Server) DropIdle() int {
	s.mu.Lock()
	idle := make([]*Conn, 0, len(s.idle))
	for c := range s.idle {
		idle = append(idle, c)
	}
	clear(s.idle)
	s.mu.Unlock()
	for _, c := range idle {
		c.Drop()
	}
	return len(idle)
}

// Close closes the idle connections of the network's clients, then the listener
// and every connection of this server, which ends the context of every request,
// and waits for the handlers to return: do not call it from one. Dials are
// refused from then on. Closing again does nothing.
func (s *Server) Close() {
	s.network.closeIdleClients()
	_ = s.http.Close()
	for _, c := range s.Conns() { // hijacked ones
		_ = c.Close()
	}
	s.cancel() // the server itself cancels only requests whose body was read
	s.running.Wait()
}
