package gateway_test

import (
	"context"
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"holdfast"
	"holdfast/gateway"
	"holdfast/standin"
)

// Many calls: budgets, connections, and that nothing is left behind.

// B34: attempts that are told are attempts that were made.
func TestB34_WhatIsToldIsWhatTheUpstreamSaw(t *testing.T) {
	bubble(t, "silence", func(t *testing.T) {
		h := newHouse(t)
		judge := h.upstream("api", standin.Plan{Steps: []standin.Step{{Kind: standin.Timeout, Times: -1}}})
		s := one("api", "")
		s.Policy = holdfast.Policy{Attempts: 4, AttemptTimeout: time.Second}
		h.open(s)
		began := time.Now()
		r := h.ask("/v1/messages", message)
		rec := h.seen.last(t)
		if len(judge.Journal()) != 4 || rec.Trace.Sent() != 4 || r.Header.Get("Holdfast-Attempts") != "4" || r.StatusCode != 504 {
			t.Errorf("the upstream saw %d, told are %d and %s: %d", len(judge.Journal()), rec.Trace.Sent(), r.Header.Get("Holdfast-Attempts"), r.StatusCode)
		}
		if took := time.Since(began); took != 4*time.Second+3500*time.Millisecond {
			t.Errorf("it took %v", took)
		}
	})
}

// B32: every wait is bounded, and B31 so is their number.
func TestB32_WaitsStayBelowTheCap(t *testing.T) {
	bubble(t, "twelve", func(t *testing.T) {
		h := newHouse(t)
		judge := h.upstream("api", standin.Plan{Steps: []standin.Step{{Kind: standin.HTTP, Status: 500, Times: -1}}})
		s := one("api", "")
		s.Policy = holdfast.Policy{Attempts: 13}
		s.Breaker = holdfast.BreakerSettings{Failures: 100, MinCalls: 100}
		s.Budget = holdfast.BudgetSettings{Capacity: 10_000}
		h.open(s)
		if r := h.ask("/v1/messages", message); r.StatusCode != 500 {
			t.Errorf("got %d", r.StatusCode)
		}
		gaps := judge.Journal().Gaps()
		for _, gap := range gaps {
			if gap <= 0 || gap > 8*time.Second {
				t.Errorf("a gap of %v", gap)
			}
		}
		if len(gaps) != 12 || gaps[11] != 8*time.Second {
			t.Errorf("gaps %v", gaps)
		}
	})
}

// B37: a budget that ran dry was never filled again. B38: and without one every call used all its attempts in an outage.
func TestB37_B38_BudgetInAnOutage(t *testing.T) {
	bubble(t, "outage", func(t *testing.T) {
		h := newHouse(t)
		judge := h.upstream("api", standin.Plan{Steps: []standin.Step{{Kind: standin.HTTP, Status: 503, Times: -1}}})
		s := one("api", "")
		s.Policy = holdfast.Policy{Attempts: 3}
		s.Breaker = holdfast.BreakerSettings{Failures: 1000, MinCalls: 1000} // it is the budget that is looked at
		h.open(s)
		var all sync.WaitGroup
		for i := range 200 {
			all.Go(func() {
				if r := h.ask("/v1/messages", strings.Replace(message, "one", fmt.Sprint(i), 1)); r.StatusCode != 503 || r.Header.Get("X-Should-Retry") != "false" {
					t.Errorf("B31 got %d", r.StatusCode)
				}
			})
		}
		all.Wait()
		if n := len(judge.Journal()); n < 200 || n > 260 {
			t.Errorf("%d requests for 200 calls", n)
		}
		r := h.ask("/v1/messages", message)
		if r.StatusCode != 503 || r.Header.Get("Holdfast-Attempts") != "1" || !strings.Contains(r.body, "overloaded_error") {
			t.Errorf("with an empty budget the upstream's own error comes at once: %v %s", r.Header, r.body)
		}
		if err := judge.SetPlan(standin.Plan{}); err != nil {
			t.Fatal(err)
		}
		for range 500 {
			h.ask("/v1/messages", message)
		}
		if err := judge.SetPlan(standin.Plan{Steps: []standin.Step{{Kind: standin.HTTP, Status: 503}}}); err != nil {
			t.Fatal(err)
		}
		before := len(judge.Journal())
		if r := h.ask("/v1/messages", message); r.StatusCode != 200 || len(judge.Journal())-before != 2 && len(judge.Journal()) != 2 {
			t.Errorf("B37 afterwards %d, %v", r.StatusCode, r.Header)
		}
	})
}

// B43: one deadline holds over all attempts, whoever sets it.
func TestB43_OneDeadlineOverAll(t *testing.T) {
	for name, headers := range map[string][]string{"the policy's": nil, "the caller's": {"Holdfast-Deadline: 10s"}, "an SDK's": {"X-Stainless-Timeout: 10"}} {
		bubble(t, name, func(t *testing.T) {
			h := newHouse(t)
			api := h.scripted("api", delayed(9900*time.Millisecond, respond(500, "")), hang)
			s := one("api", "")
			if headers == nil {
				s.Policy.Deadline = 10 * time.Second
			}
			h.openWith(s, func() float64 { return 0.1 })
			began := time.Now()
			r := h.ask("/v1/messages", message, headers...)
			if took := time.Since(began); took != 10*time.Second || len(api.seen()) != 2 || r.StatusCode != 504 {
				t.Errorf("B42 %d after %v and %d requests: %s", r.StatusCode, took, len(api.seen()), r.body)
			}
		})
	}
}

// B42: a wait that ends behind the deadline is not begun.
func TestB42_HopelessWaitIsNotBegun(t *testing.T) {
	bubble(t, "wait", func(t *testing.T) {
		h := newHouse(t)
		const busy = `{"type":"error","error":{"type":"api_error","message":"no backend"}}`
		api := h.scripted("api", respond(503, busy, "Retry-After: 10"))
		h.open(one("api", ""))
		began := time.Now()
		r := h.ask("/v1/messages", message, "Holdfast-Deadline: 1s")
		if time.Since(began) != 0 || r.StatusCode != 503 || r.body != busy || r.Header.Get("Retry-After") != "10" || len(api.seen()) != 1 {
			t.Errorf("after %v: %d %v %s", time.Since(began), r.StatusCode, r.Header, r.body)
		}
		if rec := h.seen.last(t); !strings.Contains(rec.Error, "deadline") || !strings.Contains(rec.Error, "503") {
			t.Errorf("the record says %q", rec.Error)
		}
	})
}

// B49: a host that is not there is known within the time for connections, and asked no more often than the policy says.
func TestB49_HostsThatAreNotThere(t *testing.T) {
	for name, lose := range map[string]func(*house){
		"a black hole":  func(h *house) { h.BlackHole("api.test:80") },
		"a closed port": func(h *house) {},
	} {
		bubble(t, name, func(t *testing.T) {
			h := newHouse(t)
			lose(h)
			s := one("api", "")
			s.Policy.Attempts = 2
			h.open(s)
			began := time.Now()
			r := h.ask("/v1/messages", message)
			limit := 2*5*time.Second + 500*time.Millisecond
			if name == "a closed port" {
				limit = 500 * time.Millisecond
			}
			if took := time.Since(began); took != limit || r.StatusCode < 500 || r.Header.Get("X-Should-Retry") != "false" {
				t.Errorf("%d after %v: %s", r.StatusCode, took, r.body)
			}
		})
	}
}

// B123 B124 B126: nothing is held by a call that is over, however it ended. There are no slots: what could be held are
// connections, streams and goroutines.
func TestB123_B124_CallsLeaveNothingBehind(t *testing.T) {
	for name, play := range map[string]http.HandlerFunc{
		"B123 an answer": good, "B123 an answer elsewhere": respond(200, "{}"), "B124 a hang": hang, "B124 a 502": respond(502, ""), "B124 a page": respond(200, "<html>"),
		"B124 a reset": parts(start, abort{}), "B124 half of JSON": respond(200, `{"type":`), "B130 a 429": respond(429, `{"error":{"message":"`+strings.Repeat("x", 5000)+`"}}`),
	} {
		for _, path := range []string{"/v1/messages", "/v1/chat/completions", "/v1/messages/count_tokens", "/v1/models", "/v1/responses"} {
			bubble(t, name+" "+path, func(t *testing.T) {
				h := newHouse(t)
				api := h.scripted("api", play)
				s := one("api", "")
				s.Policy = holdfast.Policy{Attempts: -1, AttemptTimeout: time.Second, MaxServerWait: time.Second}
				s.Breaker = holdfast.BreakerSettings{Failures: 1000, MinCalls: 1000}
				base := h.Client().Transport.(*http.Transport)
				base.MaxConnsPerHost = 4
				s.Base = base
				h.open(s)
				before := runtime.NumGoroutine()
				for i := range 20 {
					body, headers := message, []string{"X-None: 1"}
					if i%2 == 1 {
						body, headers = streamed(message), []string{wantsStream}
					}
					if r := h.ask(path, body, headers...); r.StatusCode == 429 && !strings.Contains(name, "429") {
						t.Fatalf("call %d: %s", i, r.body)
					}
					synctest.Wait()
					if n := h.gateway.InFlight(); n != 0 {
						t.Fatalf("%d calls in flight", n)
					}
				}
				if n := len(api.seen()); n != 20 {
					t.Errorf("%d requests", n)
				}
				time.Sleep(2 * time.Second)
				if after := runtime.NumGoroutine(); after > before+30 {
					t.Errorf("%d goroutines, then %d", before, after)
				}
			})
		}
	}
}

// B126: an answer does not wait for whoever is told of it, and nothing is refused meanwhile.
type slowLog struct{ *records }

func (s slowLog) Call(r gateway.Record) { time.Sleep(2 * time.Second); s.records.Call(r) }

func TestB126_AnswerDoesNotWaitForTheLog(t *testing.T) {
	bubble(t, "log", func(t *testing.T) {
		h := newHouse(t)
		h.scripted("api", good)
		s := one("api", "")
		s.Observer = slowLog{h.seen}
		h.open(s)
		began := time.Now()
		if r := h.ask("/v1/messages", message); r.StatusCode != 200 || time.Since(began) != 0 {
			t.Errorf("%d after %v", r.StatusCode, time.Since(began))
		}
		if r := h.ask("/v1/messages", message); r.StatusCode != 200 {
			t.Errorf("the next call: %d", r.StatusCode)
		}
	})
}

// B127: a call that waits holds nothing that another one needs.
func TestB127_WaitsHoldNothing(t *testing.T) {
	bubble(t, "waits", func(t *testing.T) {
		h := newHouse(t)
		judge := h.upstream("api", standin.Plan{Rules: []standin.Rule{{Match: standin.Match{Text: "first"}, Steps: []standin.Step{{Kind: standin.HTTP, Status: 503, Times: 3}}}}})
		s := one("api", "")
		base := h.Client().Transport.(*http.Transport)
		base.MaxConnsPerHost = 1
		s.Base = base
		h.open(s)
		first := make(chan reply)
		go func() { first <- h.ask("/v1/messages", strings.Replace(message, "one", "first", 1)) }()
		time.Sleep(100 * time.Millisecond)
		began := time.Now()
		if r := h.ask("/v1/messages", message); r.StatusCode != 200 || time.Since(began) != 0 {
			t.Errorf("%d after %v", r.StatusCode, time.Since(began))
		}
		if r := <-first; r.StatusCode != 200 || judge.Open() != 0 {
			t.Errorf("the first got %d", r.StatusCode)
		}
	})
}

// B129 B130: bodies of replies that nobody wanted kept their connections.
func TestB129_B130_ConnectionsDoNotPileUp(t *testing.T) {
	for _, status := range []int{503, 429} {
		bubble(t, fmt.Sprint(status), func(t *testing.T) {
			h := newHouse(t)
			bad := respond(status, `{"error":{"message":"`+strings.Repeat("x", 4<<10)+`"}}`)
			var play []http.HandlerFunc
			for range 100 {
				play = append(play, bad, good)
			}
			api := h.scripted("api", play...)
			s := one("api", "")
			s.Breaker = holdfast.BreakerSettings{Failures: 1000, MinCalls: 1000}
			h.open(s)
			for range 100 {
				if r := h.ask("/v1/messages", streamed(message), wantsStream); r.StatusCode != 200 {
					t.Fatalf("got %d", r.StatusCode)
				}
				if open := h.Stats().Open; open > 4 {
					t.Fatalf("%d connections are open", open)
				}
			}
			if len(api.seen()) != 200 {
				t.Errorf("%d requests", len(api.seen()))
			}
		})
	}
}

// B132: calls at one time do not mix.
func TestB132_CallsDoNotMix(t *testing.T) {
	bubble(t, "fifty", func(t *testing.T) {
		h := newHouse(t)
		jobs := map[string][]standin.Step{}
		for i := range 50 {
			jobs[fmt.Sprintf("job-%02d", i)] = []standin.Step{{Kind: standin.HTTP, Status: 500}}
		}
		judge := h.upstream("api", standin.Plan{Jobs: jobs})
		s := one("api", "")
		s.Breaker = holdfast.BreakerSettings{Failures: 1000, MinCalls: 1000}
		s.Budget = holdfast.BudgetSettings{Capacity: 10_000}
		h.open(s)
		var all sync.WaitGroup
		for job := range jobs {
			all.Go(func() {
				r := h.ask("/v1/messages", strings.Replace(message, "one question", job, 1))
				if r.StatusCode != 200 || r.Header.Get("Holdfast-Attempts") != "2" {
					t.Errorf("%s: %d %v", job, r.StatusCode, r.Header)
				}
			})
		}
		all.Wait()
		for job := range jobs {
			if j := judge.Journal().Job(job); len(j) != 2 || j[0].Digest != j[1].Digest {
				t.Errorf("%s came %d times", job, len(j))
			}
		}
	})
}

// B136: callers who stop reading, and vanish, must not keep the upstream's connections.
func TestB136_AbandonedStreamsLetTheUpstreamGo(t *testing.T) {
	bubble(t, "abandoned", func(t *testing.T) {
		h := newHouse(t)
		endless := func(w http.ResponseWriter, r *http.Request) {
			parts(start, block)(w, r)
			for r.Context().Err() == nil {
				if _, err := w.Write([]byte(hello)); err != nil {
					return
				}
			}
		}
		var play []http.HandlerFunc
		for range 5 {
			play = append(play, endless)
		}
		h.scripted("api", append(play, good)...)
		s := one("api", "")
		base := h.Client().Transport.(*http.Transport)
		base.MaxConnsPerHost = 5
		s.Base = base
		s.WriteTimeout = 30 * time.Second
		h.open(s)
		for range 5 {
			req, _ := http.NewRequestWithContext(context.Background(), http.MethodPost, h.url+"/v1/messages", strings.NewReader(streamed(message)))
			resp, err := h.Client().Do(req)
			if err != nil || resp.StatusCode != 200 {
				t.Fatalf("%v", err)
			}
			t.Cleanup(func() { _ = resp.Body.Close() }) // nobody reads it
		}
		began := time.Now()
		if r := h.ask("/v1/messages", message); r.StatusCode != 200 || time.Since(began) > 31*time.Second {
			t.Errorf("%d after %v: %s", r.StatusCode, time.Since(began), r.body)
		}
		synctest.Wait()
		for _, rec := range h.seen.calls {
			if rec.Stream && rec.Outcome != gateway.Left {
				t.Errorf("the record is %+v", rec)
			}
		}
		if n := h.gateway.InFlight(); n != 0 {
			t.Errorf("%d calls are in flight", n)
		}
	})
}

// B56 B143: an upstream that closes idle connections without a word costs nobody a call.
func TestB56_B143_ConnectionsClosedInSilence(t *testing.T) {
	bubble(t, "idle", func(t *testing.T) {
		h := newHouse(t)
		s := &script{play: []http.HandlerFunc{good}}
		server := h.Serve(t, "api.test:80", s)
		h.open(one("api", ""))
		for i := range 50 {
			if r := h.ask("/v1/messages", message); r.StatusCode != 200 || r.Header.Get("Holdfast-Wait-Ms") != "0" && i > 0 && r.Header.Get("Holdfast-Attempts") != "2" {
				t.Fatalf("call %d: %d %v %s", i, r.StatusCode, r.Header, r.body)
			}
			time.Sleep(3 * time.Second)
			server.DropIdle()
		}
		if len(s.seen()) != 50 {
			t.Errorf("%d requests for 50 calls", len(s.seen()))
		}
	})
}
