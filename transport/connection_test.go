package transport_test

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"holdfast"
	"holdfast/internal/testnet"
	"holdfast/transport"
)

func TestB56_ClosedKeptConnectionIsReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := serve(t, good)
		client := u.through(transport.New(&holdfast.Policy{Dice: half}, nil))
		text(t, ask(t, client, u.URL))
		<-time.After(100 * time.Millisecond)
		u.DropIdle()
		<-time.After(50 * time.Millisecond)
		began := time.Now()
		large := strings.Replace(prompt, "hi", strings.Repeat("h", 1000), 1)
		resp, err := client.Post(u.URL+"/v1/messages", "application/json", strings.NewReader(large))
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		expectReply(t, resp, 200, message)
		if took := time.Since(began); took > time.Second {
			t.Errorf("it took %v", took)
		}
		u.expect(t, 2)
		if got := u.seen()[1].body; got != large {
			t.Errorf("%d bytes arrived, want %d", len(got), len(large))
		}
	})
}

func TestB143_ClosedKeptConnectionsNeverFailACall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := serve(t, good)
		policy := &holdfast.Policy{Breaker: holdfast.NewBreaker(holdfast.BreakerSettings{}), Budget: holdfast.NewBudget(holdfast.BudgetSettings{})}
		client := u.through(transport.New(policy, nil))
		for i := range 51 {
			resp := ask(t, client, u.URL)
			expectReply(t, resp, 200, message)
			if got := resp.Header.Get("Holdfast-Attempts"); i > 0 && got != "2" {
				t.Errorf("call %d took %s attempts, so the connection was not stale", i, got)
			}
			<-time.After(2 * time.Second)
			u.DropIdle()
			<-time.After(time.Second)
		}
		u.expect(t, 51)
		if policy.Breaker.State() != holdfast.Closed {
			t.Error("the breaker opened")
		}
	})
}

func TestB59_PhaseOfALossIsKnown(t *testing.T) {
	for _, c := range []struct {
		name   string
		script http.HandlerFunc
		down   bool
		phase  transport.Phase
		rule   string
		unsent bool
	}{
		{"refused", good, true, transport.BeforeConnection, "no-connection", true},
		{"read, then reset", reset, false, transport.BeforeAnswer, "connection-lost-before-answer", false},
		{"read, then closed", abort, false, transport.BeforeAnswer, "connection-lost-before-answer", false},
		{"in the answer", then(respond(200, message[:20]), flush, abort), false, transport.BeforeContent, "cut-before-content", false},
	} {
		bubble(t, c.name, func(t *testing.T) {
			u := serve(t, c.script)
			if c.down {
				u.net.Refuse("api.test:80")
			}
			policy, verdicts := watched(5)
			policy.Attempts = 2
			resp := ask(t, u.through(transport.New(policy, nil)), u.URL)
			var lost *transport.CutError
			err := transport.ErrorOf(resp)
			if !errors.As(err, &lost) || lost.Phase != c.phase {
				t.Errorf("the error is %v", err)
			}
			if lost != nil && errors.Is(lost, holdfast.ErrCut) != (c.phase >= transport.BeforeContent) {
				t.Errorf("%v answers wrongly to ErrCut", lost)
			}
			if v := verdicts(); len(v) != 2 || v[0].Rule != c.rule || v[0].NotSent != c.unsent || v[0].Kind != holdfast.Broken || v[0].Neutral {
				t.Errorf("the verdicts are %+v", v)
			}
		})
	}
}

func TestUnsafePathsAreRepeatedOnlyIfNothingCanHaveHappened(t *testing.T) {
	for _, c := range []struct {
		name     string
		first    http.HandlerFunc
		down     bool
		requests int
		was      holdfast.Kind
	}{
		{"a throttle", respond(429, limited), false, 2, 0},
		{"no connection", good, true, 1, 0},
		{"an overload", respond(529, overloaded), false, 1, holdfast.Overloaded},
		{"a server error", respond(500, ""), false, 1, holdfast.Broken},
		{"even if the upstream says it may", respond(500, "", "x-should-retry: true"), false, 1, holdfast.Broken},
		{"a reset", reset, false, 1, holdfast.Broken},
		{"a reply that never comes", hang, false, 1, holdfast.Broken},
		{"a bad request", respond(400, invalid), false, 1, 0},
	} {
		for _, path := range []string{"/v1/messages/batches", "/v1/files", "/v1/unknown"} {
			bubble(t, c.name+path, func(t *testing.T) {
				u := serve(t, c.first, good)
				if c.down {
					u.net.Refuse("api.test:80")
					time.AfterFunc(100*time.Millisecond, func() { u.net.Restore("api.test:80") })
				}
				failures := 1
				if c.down {
					failures = 2 // so that the second attempt is not refused
				}
				policy, verdicts := watched(failures)
				policy.AttemptTimeout = 10 * time.Second
				resp, err := u.through(transport.New(policy, nil)).Post(u.URL+path, "application/json", strings.NewReader(`{"requests":[]}`))
				if err != nil {
					t.Fatal(err)
				}
				resp.Body.Close()
				u.expect(t, c.requests)
				v := verdicts()
				if c.was != 0 {
					if len(v) != 1 || v[0].Kind != holdfast.Unsafe || v[0].Was != c.was {
						t.Errorf("the verdicts are %+v", v)
					}
					if policy.Breaker.State() != holdfast.Open {
						t.Error("the breaker did not hear of it")
					}
				} else if v[0].Kind == holdfast.Unsafe {
					t.Errorf("the verdicts are %+v", v)
				}
			})
		}
	}
}

func TestB129_DroppedRepliesLeaveTheirConnectionUsable(t *testing.T) {
	for name, first := range map[string]http.HandlerFunc{
		"error replies":       respond(503, strings.Repeat("x", 4<<10)),
		"failed streams":      stream(start, failing),
		"pages":               respond(200, "<html>"+strings.Repeat("x", 4<<10), "content-type: text/html"),
		"answers of no words": respond(200, `{"type":"message","content":[]}`),
	} {
		bubble(t, name, func(t *testing.T) {
			u := serve(t, nil)
			var mu sync.Mutex
			n := 0
			u.script = []http.HandlerFunc{func(w http.ResponseWriter, r *http.Request) {
				mu.Lock()
				n++
				odd := n%2 == 1
				mu.Unlock()
				if odd {
					first(w, r)
					return
				}
				good(w, r)
			}}
			client := u.through(transport.New(&holdfast.Policy{Budget: holdfast.NewBudget(holdfast.BudgetSettings{})}, nil))
			for range 200 {
				resp := ask(t, client, u.URL)
				expectReply(t, resp, 200, message)
				resp.Body.Close()
			}
			u.expect(t, 400)
			if got := u.Stats().Opened; got != 1 {
				t.Errorf("%d connections were made, want 1", got)
			}
		})
	}
}

func TestB130_RepliesThatNobodyReadsLeaveThePoolFree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := serve(t, nil)
		healthy := false
		u.script = []http.HandlerFunc{func(w http.ResponseWriter, r *http.Request) {
			if healthy {
				stream(complete)(w, r)
				return
			}
			respond(429, limited)(w, r)
		}}
		u.client.Transport.(*http.Transport).MaxConnsPerHost = 10
		client := u.through(transport.New(&holdfast.Policy{Attempts: 2}, nil))
		for range 30 {
			resp, err := client.Post(u.URL+"/v1/messages", "application/json", strings.NewReader(streamPrompt))
			if err != nil || resp.StatusCode != 429 {
				t.Fatal(resp, err)
			}
			// The body is neither read nor closed: it holds nothing.
		}
		healthy = true
		began := time.Now()
		expectReply(t, askStream(t, client, u.URL), 200, complete)
		if took := time.Since(began); took > time.Second {
			t.Errorf("it took %v", took)
		}
	})
}

func TestB118_UpstreamThatHangsOpensTheBreaker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := serve(t, hang)
		policy := &holdfast.Policy{Attempts: 1, AttemptTimeout: 500 * time.Millisecond, Breaker: holdfast.NewBreaker(holdfast.BreakerSettings{Failures: 5})}
		client := u.through(transport.New(policy, nil))
		for range 5 {
			ask(t, client, u.URL)
		}
		began := time.Now()
		resp := ask(t, client, u.URL)
		if took := time.Since(began); took != 0 || resp.StatusCode != 503 || resp.Header.Get("Holdfast-Reason") != "open" {
			t.Errorf("the sixth call took %v and got %d", took, resp.StatusCode)
		}
		u.expect(t, 5)
	})
}

func TestB109_ImpatientCallersHarmNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := serve(t, then(rest(300*time.Millisecond), good))
		policy := &holdfast.Policy{Breaker: holdfast.NewBreaker(holdfast.BreakerSettings{Failures: 1})}
		client := u.through(transport.New(policy, nil))
		for range 6 {
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			_, err := client.Do(request(t, ctx, "POST", u.URL+"/v1/messages", strings.NewReader(prompt)))
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("got %v", err)
			}
			cancel()
		}
		expectReply(t, ask(t, client, u.URL), 200, message)
	})
}

func TestB120_ProbeThatProvesNothingIsFollowedByAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := serve(t, respond(401, invalid), good)
		policy := &holdfast.Policy{Breaker: opened()}
		<-time.After(21 * time.Second)
		client := u.through(transport.New(policy, nil))
		if resp := ask(t, client, u.URL); resp.StatusCode != 401 {
			t.Errorf("got %d", resp.StatusCode)
		}
		expectReply(t, ask(t, client, u.URL), 200, message)
		if policy.Breaker.State() != holdfast.Closed {
			t.Errorf("the breaker is %v", policy.Breaker.State())
		}
	})
}

// A connection that the server has retired is left for another one, with the whole body and without a failed call.
func TestB144_RetiredConnectionIsReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := testnet.New()
		u := &upstream{net: n, script: []http.HandlerFunc{good}}
		listener := &retiring{Listener: n.Listen("api.test:80")}
		protocols := &http.Protocols{}
		protocols.SetUnencryptedHTTP2(true)
		server := &http.Server{Handler: u, Protocols: protocols}
		go func() { _ = server.Serve(listener) }()
		base := n.Client().Transport.(*http.Transport)
		base.Protocols = protocols
		policy, verdicts := watched(1)
		resp := ask(t, &http.Client{Transport: transport.New(policy, base)}, "http://api.test")
		expectReply(t, resp, 200, message)
		u.expect(t, 1)
		if got := u.seen()[0].body; got != prompt {
			t.Errorf("the body is %q", got)
		}
		if listener.retired != 1 {
			t.Errorf("%d connections were retired", listener.retired)
		}
		if policy.Breaker.State() != holdfast.Closed {
			t.Errorf("the verdicts are %+v", verdicts())
		}
		base.CloseIdleConnections()
		_ = server.Close()
		synctest.Wait()
	})
}

// retiring plays the server on its first connection itself: it answers the first request with GOAWAY.
type retiring struct {
	net.Listener
	retired int
}

func (r *retiring) Accept() (net.Conn, error) {
	c, err := r.Listener.Accept()
	if err != nil || r.retired > 0 {
		return c, err
	}
	r.retired++
	go retire(c)
	return r.Listener.Accept()
}

func retire(c net.Conn) {
	defer c.Close()
	const settings, headers, goAway = 4, 1, 7
	frame := func(kind byte, payload []byte) []byte {
		head := binary.BigEndian.AppendUint32(nil, uint32(len(payload))<<8|uint32(kind))
		return append(append(head, 0, 0, 0, 0, 0), payload...) // no flags, stream 0
	}
	preface := make([]byte, len("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"))
	if _, err := io.ReadFull(c, preface); err != nil {
		return
	}
	_, _ = c.Write(frame(settings, nil))
	for {
		head := make([]byte, 9)
		if _, err := io.ReadFull(c, head); err != nil {
			return
		}
		length := int64(binary.BigEndian.Uint32(head) >> 8)
		if _, err := io.CopyN(io.Discard, c, length); err != nil {
			return
		}
		if head[3] == headers {
			_, _ = c.Write(frame(goAway, make([]byte, 8))) // last stream 0, no error
			_, _ = io.Copy(io.Discard, c)
			return
		}
	}
}

// B49: one number for all timers replaced the connect timeout too, and a dead host was known after four minutes.
func TestB49_DeadHostIsKnownSoon(t *testing.T) {
	for _, c := range []struct {
		name   string
		fault  func(n *testnet.Network, addr string)
		policy holdfast.Policy
		within time.Duration
		reason string
	}{
		{"black hole", (*testnet.Network).BlackHole, holdfast.Policy{AttemptTimeout: 2 * time.Minute, Attempts: 2}, 11 * time.Second, "connect timer"},
		{"closed port", (*testnet.Network).Refuse, holdfast.Policy{AttemptTimeout: 2 * time.Minute, Attempts: 2}, time.Second, "refused"},
	} {
		bubble(t, c.name, func(t *testing.T) {
			u := serve(t, good)
			c.fault(u.net, "api.test:80")
			attempts := 0
			c.policy.Observe = func(e holdfast.Event) {
				if e.Kind == holdfast.EventAttempt && e.Verdict.Kind != holdfast.OK {
					attempts++
					if !e.Verdict.NotSent {
						t.Errorf("attempt %d may have been sent: %+v", e.Attempt, e.Verdict)
					}
				}
			}
			began := time.Now()
			resp := ask(t, u.through(transport.New(&c.policy, nil)), u.URL)
			if took := time.Since(began); took > c.within || attempts != 2 {
				t.Errorf("%d attempts in %v, want 2 within %v", attempts, took, c.within)
			}
			if err := transport.ErrorOf(resp); err == nil || !strings.Contains(err.Error(), c.reason) {
				t.Errorf("error %v", err)
			}
			// The host is back, and its answer may take longer than any connection.
			u.net.Restore("api.test:80")
			expectReply(t, ask(t, u.through(transport.New(&c.policy, nil)), u.URL), 200, message)
		})
	}
}

func TestSlowAnswerIsNoSlowConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := serve(t, func(w http.ResponseWriter, r *http.Request) {
			time.Sleep(time.Minute)
			good(w, r)
		})
		policy := holdfast.Policy{Attempts: -1}
		expectReply(t, ask(t, u.through(transport.New(&policy, nil)), u.URL), 200, message)
	})
}
