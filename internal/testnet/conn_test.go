package testnet_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"holdfast/internal/testnet"
)

const window = 64 << 10

// pair connects both ends by hand, without HTTP in between.
func pair(t *testing.T, n *testnet.Network) (client, server *testnet.Conn) {
	t.Helper()
	l := n.Listen("api.test")
	c, err := n.Dial(t.Context(), "tcp", "api.test:80")
	if err != nil {
		t.Fatalf("dial: %v", err)
	}
	s, err := l.Accept()
	if err != nil {
		t.Fatalf("accept: %v", err)
	}
	client, server = c.(*testnet.Conn), s.(*testnet.Conn)
	t.Cleanup(func() {
		_ = client.Close()
		_ = server.Close()
		_ = l.Close()
	})
	return client, server
}

func mustWrite(t *testing.T, c net.Conn, text string) {
	t.Helper()
	if n, err := io.WriteString(c, text); n != len(text) || err != nil {
		t.Fatalf("write %q = %d, %v", text, n, err)
	}
}

// wantOp fails unless err is a *net.OpError of that operation around target.
func wantOp(t *testing.T, err error, op string, target error) {
	t.Helper()
	var opErr *net.OpError
	if !errors.As(err, &opErr) || opErr.Op != op || !errors.Is(err, target) {
		t.Errorf("error = %v (%T), want a *net.OpError of %q around %v", err, err, op, target)
	}
}

func TestConn_bytes_arrive_complete_and_in_order(t *testing.T) {
	for _, latency := range []testnet.Latency{{}, {ToServer: 30 * time.Millisecond, ToClient: 70 * time.Millisecond}} {
		for seed := range uint64(5) {
			t.Run(fmt.Sprintf("latency %v seed %d", latency, seed), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					n := testnet.New()
					n.Latency = latency
					client, server := pair(t, n)
					dice := rand.New(rand.NewPCG(seed, 0))
					up, down := randomBytes(dice, 300_000), randomBytes(dice, 200_000)
					go writeInPieces(t, client, up, seed)
					go writeInPieces(t, server, down, seed+100)
					gotDown := make(chan []byte)
					go func() {
						b, err := io.ReadAll(client)
						if err != nil {
							t.Errorf("client read: %v", err)
						}
						gotDown <- b
					}()
					gotUp, err := io.ReadAll(server)
					if err != nil {
						t.Errorf("server read: %v", err)
					}
					if !bytes.Equal(gotUp, up) || !bytes.Equal(<-gotDown, down) {
						t.Error("bytes were lost, doubled or out of order")
					}
					want := testnet.Stats{Opened: 1, Open: 1, Peak: 1, ToServer: 300_000, ToClient: 200_000}
					if got := n.Stats(); got != want {
						t.Errorf("stats = %+v, want %+v", got, want)
					}
				})
			})
		}
	}
}

func randomBytes(dice *rand.Rand, size int) []byte {
	b := make([]byte, size)
	for i := range b {
		b[i] = byte(dice.Uint32())
	}
	return b
}

// writeInPieces writes all of b in pieces of up to two windows, then closes for
// writing. It scribbles over each piece afterwards: a writer owns its buffer.
func writeInPieces(t *testing.T, c *testnet.Conn, b []byte, seed uint64) {
	dice := rand.New(rand.NewPCG(seed, 1))
	for len(b) > 0 {
		piece := bytes.Clone(b[:min(len(b), 1+dice.IntN(2*window))])
		if k, err := c.Write(piece); k != len(piece) || err != nil {
			t.Errorf("write = %d, %v, want %d", k, err, len(piece))
			return
		}
		clear(piece)
		b = b[len(piece):]
		time.Sleep(time.Duration(dice.IntN(20)) * time.Millisecond)
	}
	if err := c.CloseWrite(); err != nil {
		t.Errorf("close for writing: %v", err)
	}
}

func TestConn_full_window_holds_the_writer_back(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server := pair(t, testnet.New())
		start := time.Now()
		done := make(chan time.Duration, 1)
		go func() {
			_, err := client.Write(make([]byte, window+1))
			if err != nil {
				t.Errorf("write: %v", err)
			}
			done <- time.Since(start)
		}()
		time.Sleep(time.Minute)
		select {
		case d := <-done:
			t.Fatalf("write of one byte more than the window returned after %v with nothing read", d)
		default:
		}
		if k, err := server.Read(make([]byte, 1)); k != 1 || err != nil {
			t.Fatalf("read = %d, %v", k, err)
		}
		if d := <-done; d != time.Minute {
			t.Errorf("write returned after %v, want 1m0s, when one byte was read", d)
		}
	})
}

func TestConn_two_writers_do_not_mix(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server := pair(t, testnet.New())
		const size = 3 * window
		for _, letter := range []byte("ab") {
			go func() { _, _ = client.Write(bytes.Repeat([]byte{letter}, size)) }()
		}
		got := make([]byte, 2*size)
		if _, err := io.ReadFull(server, got); err != nil {
			t.Fatalf("read: %v", err)
		}
		for _, half := range [][]byte{got[:size], got[size:]} {
			if !bytes.Equal(half, bytes.Repeat(half[:1], size)) {
				t.Error("bytes of two writes are mixed")
			}
		}
	})
}

func TestConn_deadlines(t *testing.T) {
	past := time.Unix(1, 0)
	fill := func(c *testnet.Conn) error {
		_, err := c.Write(make([]byte, window+1))
		return err
	}
	read := func(c *testnet.Conn) error {
		_, err := c.Read(make([]byte, 1))
		return err
	}
	in := func(d time.Duration) time.Time { return time.Now().Add(d) }
	tests := []struct {
		name string
		set  func(c *testnet.Conn) error
		do   func(c *testnet.Conn) error
		op   string
		want time.Duration
	}{
		{"read", func(c *testnet.Conn) error { return c.SetReadDeadline(in(5 * time.Second)) }, read, "read", 5 * time.Second},
		{"write", func(c *testnet.Conn) error { return c.SetWriteDeadline(in(6 * time.Second)) }, fill, "write", 6 * time.Second},
		{"both, read", func(c *testnet.Conn) error { return c.SetDeadline(in(7 * time.Second)) }, read, "read", 7 * time.Second},
		{"both, write", func(c *testnet.Conn) error { return c.SetDeadline(in(7 * time.Second)) }, fill, "write", 7 * time.Second},
		{"past, read", func(c *testnet.Conn) error { return c.SetReadDeadline(past) }, read, "read", 0},
		{"past, write", func(c *testnet.Conn) error { return c.SetWriteDeadline(past) }, fill, "write", 0},
		{"moved while waiting", func(c *testnet.Conn) error {
			time.AfterFunc(time.Second, func() { _ = c.SetReadDeadline(past) })
			return c.SetReadDeadline(in(time.Hour))
		}, read, "read", time.Second},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client, _ := pair(t, testnet.New())
				if err := tt.set(client); err != nil {
					t.Fatalf("set: %v", err)
				}
				start := time.Now()
				err := tt.do(client)
				if got := time.Since(start); got != tt.want {
					t.Errorf("returned after %v, want %v", got, tt.want)
				}
				wantOp(t, err, tt.op, os.ErrDeadlineExceeded)
				var netErr net.Error
				if !errors.As(err, &netErr) || !netErr.Timeout() {
					t.Errorf("error %v does not say it is a timeout", err)
				}
			})
		})
	}
}

func TestConn_works_again_after_a_deadline_is_lifted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server := pair(t, testnet.New())
		_ = client.SetReadDeadline(time.Now())
		_, err := client.Read(make([]byte, 1))
		wantOp(t, err, "read", os.ErrDeadlineExceeded)
		_ = client.SetReadDeadline(time.Time{})
		mustWrite(t, server, "x")
		b := make([]byte, 2)
		if k, err := client.Read(b); k != 1 || err != nil {
			t.Errorf("read = %d, %v, want 1 byte", k, err)
		}
	})
}

func TestConn_latency_is_counted_per_direction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := testnet.New()
		n.Latency = testnet.Latency{ToServer: 20 * time.Millisecond, ToClient: 50 * time.Millisecond}
		start := time.Now()
		client, server := pair(t, n)
		if got := time.Since(start); got != 70*time.Millisecond {
			t.Errorf("dial took %v, want one round trip of 70ms", got)
		}
		steps := []struct {
			name     string
			from, to *testnet.Conn
			want     time.Duration
		}{
			{"to server", client, server, 20 * time.Millisecond},
			{"to client", server, client, 50 * time.Millisecond},
		}
		for _, step := range steps {
			start := time.Now()
			mustWrite(t, step.from, "x")
			if got := time.Since(start); got != 0 {
				t.Errorf("%s: write took %v, want 0", step.name, got)
			}
			if _, err := step.to.Read(make([]byte, 1)); err != nil {
				t.Errorf("%s: read: %v", step.name, err)
			}
			if got := time.Since(start); got != step.want {
				t.Errorf("%s: arrived after %v, want %v", step.name, got, step.want)
			}
		}
		start = time.Now()
		_ = server.CloseWrite()
		if _, err := client.Read(make([]byte, 1)); err != io.EOF || time.Since(start) != 50*time.Millisecond {
			t.Errorf("close arrived as %v after %v, want EOF after 50ms", err, time.Since(start))
		}
		start = time.Now()
		client.Reset()
		_, err := server.Read(make([]byte, 1))
		wantOp(t, err, "read", syscall.ECONNRESET)
		if got := time.Since(start); got != 20*time.Millisecond {
			t.Errorf("reset arrived after %v, want 20ms", got)
		}
	})
}

func TestConn_reset_loses_what_was_not_read(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server := pair(t, testnet.New())
		mustWrite(t, server, "never read")
		server.Reset()
		for range 2 {
			k, err := client.Read(make([]byte, 10))
			if k != 0 {
				t.Errorf("read %d bytes after the reset, want 0", k)
			}
			wantOp(t, err, "read", syscall.ECONNRESET)
		}
		_, err := client.Write([]byte("x"))
		wantOp(t, err, "write", syscall.EPIPE)
		_, err = server.Read(make([]byte, 1))
		wantOp(t, err, "read", net.ErrClosed)
	})
}

func TestConn_reset_wakes_who_waits(t *testing.T) {
	tests := []struct {
		name string
		op   string
		do   func(c *testnet.Conn) error
	}{
		{"reader", "read", func(c *testnet.Conn) error { _, err := c.Read(make([]byte, 1)); return err }},
		{"writer", "write", func(c *testnet.Conn) error { _, err := c.Write(make([]byte, window+1)); return err }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client, server := pair(t, testnet.New())
				time.AfterFunc(time.Second, server.Reset)
				start := time.Now()
				wantOp(t, tt.do(client), tt.op, syscall.ECONNRESET)
				if got := time.Since(start); got != time.Second {
					t.Errorf("woke after %v, want 1s", got)
				}
			})
		})
	}
}

func TestConn_close(t *testing.T) {
	read := func(c *testnet.Conn) (string, error) {
		b, err := io.ReadAll(c)
		return string(b), err
	}
	t.Run("peer reads what was sent, then the end", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			client, server := pair(t, testnet.New())
			mustWrite(t, server, "last words")
			_ = server.Close()
			if got, err := read(client); got != "last words" || err != nil {
				t.Errorf("read %q, %v", got, err)
			}
		})
	})
	t.Run("with bytes unread resets the peer", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			client, server := pair(t, testnet.New())
			mustWrite(t, client, "unread")
			mustWrite(t, server, "lost")
			_ = server.Close()
			got, err := read(client)
			if got != "" {
				t.Errorf("read %q, want nothing", got)
			}
			wantOp(t, err, "read", syscall.ECONNRESET)
		})
	})
	t.Run("write to a closed end is answered by a reset", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			client, server := pair(t, testnet.New())
			_ = server.Close()
			mustWrite(t, client, "too late")
			_, err := client.Write([]byte("x"))
			wantOp(t, err, "write", syscall.ECONNRESET)
			_, err = client.Write([]byte("x"))
			wantOp(t, err, "write", syscall.EPIPE)
		})
	})
	t.Run("half: the other direction stays open", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			client, server := pair(t, testnet.New())
			mustWrite(t, client, "question")
			_ = client.CloseWrite()
			if got, err := read(server); got != "question" || err != nil {
				t.Errorf("server read %q, %v", got, err)
			}
			_, err := client.Write([]byte("x"))
			wantOp(t, err, "write", syscall.EPIPE)
			mustWrite(t, server, "answer")
			_ = server.Close()
			if got, err := read(client); got != "answer" || err != nil {
				t.Errorf("client read %q, %v", got, err)
			}
		})
	})
	t.Run("own end: everything fails, also what waits", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			client, _ := pair(t, testnet.New())
			time.AfterFunc(time.Second, func() { _ = client.Close() })
			_, err := client.Read(make([]byte, 1))
			wantOp(t, err, "read", net.ErrClosed)
			_, err = client.Write([]byte("x"))
			wantOp(t, err, "write", net.ErrClosed)
			wantOp(t, client.SetDeadline(time.Time{}), "set", net.ErrClosed)
			wantOp(t, client.CloseWrite(), "close", net.ErrClosed)
			wantOp(t, client.Close(), "close", net.ErrClosed)
		})
	})
}

func TestConn_drop_is_noticed_only_by_writing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := testnet.New()
		n.Latency = testnet.Latency{ToServer: 20 * time.Millisecond, ToClient: 50 * time.Millisecond}
		client, server := pair(t, n)
		server.Drop()
		_ = client.SetReadDeadline(time.Now().Add(time.Hour))
		_, err := client.Read(make([]byte, 1))
		wantOp(t, err, "read", os.ErrDeadlineExceeded)
		_ = client.SetReadDeadline(time.Time{})

		start := time.Now()
		mustWrite(t, client, "anyone?")
		_, err = client.Read(make([]byte, 1))
		wantOp(t, err, "read", syscall.ECONNRESET)
		if got := time.Since(start); got != 70*time.Millisecond {
			t.Errorf("reset came after %v, want one round trip of 70ms", got)
		}
	})
}

func TestDial(t *testing.T) {
	listen := func(n *testnet.Network) { n.Listen("api.test:80") }
	tests := []struct {
		name    string
		prepare func(n *testnet.Network)
		network string
		want    error // nil: connected
		after   time.Duration
	}{
		{"nobody listens", func(*testnet.Network) {}, "tcp", syscall.ECONNREFUSED, 0},
		{"someone listens", listen, "tcp", nil, 0},
		{"listener closed", func(n *testnet.Network) { _ = n.Listen("api.test").Close() }, "tcp", syscall.ECONNREFUSED, 0},
		{"refuse", func(n *testnet.Network) { listen(n); n.Refuse("api.test:80") }, "tcp", syscall.ECONNREFUSED, 0},
		{"hang", func(n *testnet.Network) { n.Hang("api.test") }, "tcp", nil, 0},
		{"black hole", func(n *testnet.Network) { listen(n); n.BlackHole("api.test") }, "tcp", context.DeadlineExceeded, 9 * time.Second},
		{"restored", func(n *testnet.Network) { listen(n); n.BlackHole("api.test"); n.Restore("api.test") }, "tcp", nil, 0},
		{"latency", func(n *testnet.Network) { listen(n); n.Latency.ToClient = time.Second }, "tcp", nil, time.Second},
		{"latency beyond the context", func(n *testnet.Network) { listen(n); n.Latency.ToServer = time.Minute }, "tcp", context.DeadlineExceeded, 9 * time.Second},
		{"not tcp", listen, "udp", net.UnknownNetworkError("udp"), 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := testnet.New()
				tt.prepare(n)
				ctx, cancel := context.WithTimeout(t.Context(), 9*time.Second)
				defer cancel()
				start := time.Now()
				c, err := n.Dial(ctx, tt.network, "api.test:80")
				if got := time.Since(start); got != tt.after {
					t.Errorf("dial took %v, want %v", got, tt.after)
				}
				opened := 1
				if tt.want != nil {
					opened = 0
					wantOp(t, err, "dial", tt.want)
					if c != nil {
						t.Errorf("connection %v beside the error", c)
					}
				} else if err != nil {
					t.Errorf("dial: %v", err)
				} else if got := c.RemoteAddr().String(); got != "api.test:80" {
					t.Errorf("remote address = %s", got)
				}
				if got := n.Stats().Opened; got != opened {
					t.Errorf("%d connections opened, want %d", got, opened)
				}
			})
		})
	}
}

func TestListen_address_is_free_again_after_close(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := testnet.New()
		l := n.Listen("api.test:80")
		c, err := n.Dial(t.Context(), "tcp", "api.test:80")
		if err != nil {
			t.Fatalf("dial: %v", err)
		}
		go func() {
			time.Sleep(time.Second)
			_ = l.Close()
		}()
		_, err = c.Read(make([]byte, 1)) // never accepted
		wantOp(t, err, "read", syscall.ECONNRESET)
		_, err = l.Accept()
		wantOp(t, err, "accept", net.ErrClosed)
		wantOp(t, l.Close(), "close", net.ErrClosed)
		again := n.Listen("api.test:80")
		defer func() {
			if recover() == nil {
				t.Error("a taken address could be listened on")
			}
			_ = again.Close()
		}()
		n.Listen("api.test:80")
	})
}
