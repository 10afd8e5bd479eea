package standin

import (
	"fmt"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// Start serves on a TCP address and returns the base URL and a function that
// stops at once: it cuts the open requests and returns when their handlers have
// ended. addr "" is any free loopback port; one that means every address of the
// machine, such as ":4010", has the URL of 127.0.0.1.
func (s *Server) Start(addr string) (url string, stop func() error, err error) {
	if addr == "" {
		addr = "127.0.0.1:0"
	}
	door, err := openGate(s, addr)
	if err != nil {
		return "", nil, fmt.Errorf("standin: cannot listen on %s: %w", addr, err)
	}
	running := &sync.WaitGroup{} // the accept loop, its connections and their handlers
	server := &http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			running.Add(1) // a connection that is reset counts no more, but its handler does
			defer running.Done()
			s.ServeHTTP(w, r)
		}),
		ReadHeaderTimeout: 10 * time.Second,
		ConnState: func(conn net.Conn, to http.ConnState) {
			switch to {
			case http.StateNew: // comes from the accept loop, so stop cannot miss it
				running.Add(1)
				select {
				case <-door.stop: // accepted while stop closed all the others
					_ = conn.Close() // nobody has spoken on it
				default:
				}
			case http.StateClosed, http.StateHijacked:
				running.Done()
			}
		},
	}
	door.follow()                                 // an outage that is on already meets the first connection too
	running.Go(func() { _ = server.Serve(door) }) // always ends with ErrServerClosed: stop is the only way out
	running.Go(door.keep)
	stop = func() error {
		s.Close()
		err := server.Close()
		running.Wait()
		return err
	}
	return "http://" + reachable(door.Addr()), stop, nil
}

// reachable is an address at which a client on this machine finds the listener: one that listens everywhere has none of its own.
func reachable(a net.Addr) string {
	tcp, ok := a.(*net.TCPAddr)
	if !ok || !tcp.IP.IsUnspecified() {
		return a.String()
	}
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(tcp.Port))
}
