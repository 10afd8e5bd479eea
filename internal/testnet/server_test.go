package testnet_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"holdfast/internal/testnet"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// echo reads all before it answers: a server of HTTP/1 stops reading the request
// once it has flushed a part of the answer.
var echo = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	_, _ = w.Write(body)
})

// post sends text and returns the answer's body.
func post(t *testing.T, client *http.Client, url, text string) (string, error) {
	t.Helper()
	resp, err := client.Post(url, "text/plain", strings.NewReader(text))
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return string(body), err
}

func wantEcho(t *testing.T, client *http.Client, url, text string) {
	t.Helper()
	if got, err := post(t, client, url, text); got != text || err != nil {
		t.Errorf("answer = %.40q (%d bytes), %v, want %.40q (%d bytes)", got, len(got), err, text, len(text))
	}
}

func TestServer_keep_alive_reuses_one_connection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := testnet.New()
		s := n.Serve(t, "api.test", echo)
		client := n.Client()
		for i := range 10 {
			wantEcho(t, client, s.URL, fmt.Sprint("question ", i))
			time.Sleep(time.Minute)
		}
		if got := n.Stats(); got.Opened != 1 || got.Open != 1 || got.Peak != 1 {
			t.Errorf("stats = %+v, want one connection opened and open", got)
		}
		if got := len(s.Conns()); got != 1 {
			t.Errorf("the server has %d connections, want 1", got)
		}
		s.Close()
		if got := n.Stats().Open; got != 0 {
			t.Errorf("%d connections open after Close, want 0", got)
		}
		_, err := post(t, client, s.URL, "x")
		wantOp(t, err, "dial", syscall.ECONNREFUSED)
	})
}

func TestServer_streams_ten_minutes_of_events_on_the_fake_clock(t *testing.T) {
	const events, gap = 20, 30 * time.Second
	synctest.Test(t, func(t *testing.T) {
		n := testnet.New()
		n.Latency = testnet.Latency{ToServer: 10 * time.Millisecond, ToClient: 40 * time.Millisecond}
		s := n.Serve(t, "api.test", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			for i := range events {
				time.Sleep(gap)
				fmt.Fprintf(w, "data: %d\n\n", i)
				_ = http.NewResponseController(w).Flush()
			}
		}))
		start := time.Now()
		resp, err := n.Client().Get(s.URL)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		lines, seen := bufio.NewScanner(resp.Body), 0
		for lines.Scan() {
			if lines.Text() == "" {
				continue
			}
			if want := fmt.Sprint("data: ", seen); lines.Text() != want {
				t.Errorf("event = %q, want %q", lines.Text(), want)
			}
			seen++
			// The dial is one round trip, the request one way and the event the other.
			if got, want := time.Since(start), time.Duration(seen)*gap+100*time.Millisecond; got != want {
				t.Errorf("event %d came after %v, want %v", seen, got, want)
			}
		}
		if lines.Err() != nil || seen != events {
			t.Errorf("%d events, %v, want %d", seen, lines.Err(), events)
		}
	})
}

func TestServer_sees_the_client_cancel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := testnet.New()
		start := time.Now()
		gone := make(chan time.Duration, 1)
		s := n.Serve(t, "api.test", http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			<-r.Context().Done()
			gone <- time.Since(start)
		}))
		ctx, cancel := context.WithTimeout(t.Context(), 7*time.Second)
		defer cancel()
		req, _ := http.NewRequestWithContext(ctx, http.MethodGet, s.URL, nil)
		_, err := n.Client().Do(req)
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error = %v, want deadline exceeded", err)
		}
		if got := <-gone; got != 7*time.Second {
			t.Errorf("the handler was told after %v, want 7s", got)
		}
		synctest.Wait()
		if got := n.Stats().Open; got != 0 {
			t.Errorf("%d connections open, want 0", got)
		}
	})
}

func TestServer_reset_in_the_body_reaches_the_reader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := testnet.New()
		s := n.Serve(t, "api.test", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, "first half")
			_ = http.NewResponseController(w).Flush()
			time.Sleep(time.Second)
			testnet.ConnOf(r).Reset()
		}))
		resp, err := n.Client().Get(s.URL)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if string(body) != "first half" {
			t.Errorf("body = %q, want the first half", body)
		}
		wantOp(t, err, "read", syscall.ECONNRESET)
	})
}

func TestServer_faults_of_the_address(t *testing.T) {
	tests := []struct {
		name  string
		fault func(n *testnet.Network, addr string)
		want  error
		after time.Duration
	}{
		{"refuse", (*testnet.Network).Refuse, syscall.ECONNREFUSED, 0},
		{"black hole", (*testnet.Network).BlackHole, context.DeadlineExceeded, 5 * time.Second},
		{"hang", (*testnet.Network).Hang, context.DeadlineExceeded, 5 * time.Second},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := testnet.New()
				s := n.Serve(t, "api.test", echo)
				client := n.Client()
				client.Timeout = 5 * time.Second
				tt.fault(n, "api.test")
				start := time.Now()
				_, err := post(t, client, s.URL, "x")
				if !errors.Is(err, tt.want) || time.Since(start) != tt.after {
					t.Errorf("error = %v after %v, want %v after %v", err, time.Since(start), tt.want, tt.after)
				}
				n.Restore("api.test")
				wantEcho(t, client, s.URL, "well again")
				if got := s.Stats().Opened; got != 1 {
					t.Errorf("the server saw %d connections, want 1", got)
				}
			})
		})
	}
}

func TestServer_idle_timeout_then_a_new_connection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := testnet.New()
		s := n.Serve(t, "api.test", echo, func(s *http.Server) { s.IdleTimeout = 2 * time.Second })
		client := n.Client()
		for range 5 {
			wantEcho(t, client, s.URL, "x")
			time.Sleep(3 * time.Second)
		}
		if got := s.Stats(); got.Opened != 5 || got.Open != 0 || got.Peak != 1 {
			t.Errorf("stats = %+v, want 5 opened, 0 open, peak 1", got)
		}
	})
}

// The client of Go replays a request on a stale connection only where repeating
// is harmless; a POST fails. Both have to look here as on a real network.
func TestServer_drops_idle_connections_silently(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := testnet.New()
		var handled atomic.Int32
		s := n.Serve(t, "api.test", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			handled.Add(1)
			echo(w, r)
		}))
		client := n.Client()
		drop := func() {
			t.Helper()
			time.Sleep(2 * time.Second)
			if got := s.DropIdle(); got != 1 {
				t.Errorf("%d connections dropped, want 1", got)
			}
			synctest.Wait()
			if got := n.Stats().Open; got != 1 {
				t.Errorf("the client has %d connections, want 1: it was told nothing", got)
			}
		}
		wantEcho(t, client, s.URL, "x")
		drop()
		resp, err := client.Get(s.URL)
		if err != nil {
			t.Fatalf("GET on a dropped connection: %v", err)
		}
		_ = resp.Body.Close()
		drop()
		_, err = post(t, client, s.URL, "x")
		wantOp(t, err, "read", syscall.ECONNRESET)
		wantEcho(t, client, s.URL, "x")
		if got := handled.Load(); got != 3 {
			t.Errorf("%d requests handled, want 3", got)
		}
		if got := n.Stats(); got.Opened != 3 || got.Open != 1 {
			t.Errorf("stats = %+v, want 3 opened, 1 open", got)
		}
	})
}

func TestServer_two_hundred_connections_at_a_time(t *testing.T) {
	const clients = 200
	synctest.Test(t, func(t *testing.T) {
		n := testnet.New()
		s := n.Serve(t, "api.test", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			time.Sleep(time.Second)
			echo(w, r)
		}))
		client := n.Client()
		start := time.Now()
		var wg sync.WaitGroup
		for i := range clients {
			wg.Go(func() { wantEcho(t, client, s.URL, strings.Repeat(fmt.Sprint(i, " "), 1000)) })
		}
		wg.Wait()
		if got := time.Since(start); got != time.Second {
			t.Errorf("took %v, want 1s", got)
		}
		if got := s.Stats(); got.Opened != clients || got.Peak != clients {
			t.Errorf("stats = %+v, want %d opened and as many at the peak", got, clients)
		}
		synctest.Wait()
		if got := n.Stats().Open; got != http.DefaultMaxIdleConnsPerHost {
			t.Errorf("%d connections kept, want the pool's %d", got, http.DefaultMaxIdleConnsPerHost)
		}
	})
}

func TestServer_close_ends_what_is_under_way(t *testing.T) {
	tests := []struct {
		name    string
		handler http.HandlerFunc
	}{
		{"before headers", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }},
		{"in the body", func(w http.ResponseWriter, r *http.Request) {
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		}},
		{"hijacked", func(w http.ResponseWriter, _ *http.Request) {
			_, _, _ = http.NewResponseController(w).Hijack()
		}},
	}
	run := func(t *testing.T, h http.HandlerFunc) {
		n := testnet.New()
		entered := make(chan struct{})
		s := n.Start("api.test", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			close(entered)
			h(w, r)
		}))
		failed := make(chan error)
		go func() {
			_, err := post(t, n.Client(), s.URL, "x")
			failed <- err
		}()
		<-entered
		s.Close()
		s.Close()
		if err := <-failed; !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("error = %v, want an early end", err)
		}
		if got := len(s.Conns()); got != 0 {
			t.Errorf("%d connections left, want 0", got)
		}
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { run(t, tt.handler) })
		})
		t.Run(tt.name+", on the real clock", func(t *testing.T) {
			run(t, tt.handler)
			goleak.VerifyNone(t, goleak.IgnoreCurrent())
		})
	}
}

func TestConnOf_other_servers_request(t *testing.T) {
	r, _ := http.NewRequest(http.MethodGet, "http://api.test", nil)
	if got := testnet.ConnOf(r); got != nil {
		t.Errorf("connection = %v, want none", got)
	}
}

func TestServer_keeps_the_hooks_of_the_test(t *testing.T) {
	type key struct{}
	synctest.Test(t, func(t *testing.T) {
		n := testnet.New()
		var opened atomic.Int32
		s := n.Serve(t, "api.test", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprint(w, r.Context().Value(key{}), " ", testnet.ConnOf(r).LocalAddr())
		}), func(s *http.Server) {
			s.BaseContext = func(net.Listener) context.Context { return context.WithValue(t.Context(), key{}, "base") }
			s.ConnContext = func(ctx context.Context, _ net.Conn) context.Context {
				return context.WithValue(ctx, key{}, fmt.Sprint(ctx.Value(key{}), " and connection"))
			}
			s.ConnState = func(_ net.Conn, to http.ConnState) {
				if to == http.StateNew {
					opened.Add(1)
				}
			}
		})
		got, err := post(t, n.Client(), s.URL, "")
		if want := "base and connection api.test:80"; got != want || err != nil {
			t.Errorf("answer = %q, %v, want %q", got, err, want)
		}
		if got := opened.Load(); got != 1 {
			t.Errorf("the hook saw %d connections, want 1", got)
		}
	})
}
