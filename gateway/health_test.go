package gateway_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"holdfast"
	"holdfast/gateway"
)

// What the calls of one caller do to those of another: rests of credentials, circuits of targets.

// leaving makes a call whose caller goes away.
func (h *house) leaving(after time.Duration, body string, headers ...string) {
	h.t.Helper()
	ctx, cancel := context.WithCancelCause(h.t.Context())
	time.AfterFunc(after, func() { cancel(errors.New("a cause of his own")) })
	if r := h.do(ctx, http.MethodPost, "/v1/messages", body, headers...); r.err == nil {
		h.t.Errorf("the caller did not leave: %d", r.StatusCode)
	}
	cancel(nil)
}

// B109 B117: callers who left, or had little patience, benched a healthy upstream for everybody.
func TestB109_B117_ImpatientCallersHarmNobody(t *testing.T) {
	for name, leave := range map[string]func(h *house, body string){
		"B117 callers who leave":        func(h *house, body string) { h.leaving(50*time.Millisecond, body) },
		"B109 callers with little time": func(h *house, body string) { h.ask("/v1/messages", body, "Holdfast-Deadline: 50ms") },
		"B109 SDKs with little time":    func(h *house, body string) { h.ask("/v1/messages", body, "X-Stainless-Timeout: 0.05") },
	} {
		for _, body := range []string{message, streamed(message)} {
			bubble(t, name+" "+body[:9], func(t *testing.T) {
				h := newHouse(t)
				api := h.scripted("api", delayed(300*time.Millisecond, good))
				s := one("api", "")
				s.Breaker = holdfast.BreakerSettings{Failures: 1}
				h.open(s)
				var all sync.WaitGroup
				for range 20 {
					all.Go(func() { leave(h, body) })
				}
				all.Wait()
				synctest.Wait()
				if n := len(api.seen()); n != 20 {
					t.Errorf("%d requests", n)
				}
				r := h.ask("/v1/messages", message)
				if r.StatusCode != 200 {
					t.Errorf("a call of another: %d %s", r.StatusCode, r.body)
				}
				synctest.Wait() // the last record comes after its reply
				for _, e := range h.seen.events {
					if e.Kind == holdfast.EventCircuit {
						t.Errorf("a circuit went from %v to %v", e.From, e.To)
					}
				}
				if strings.HasPrefix(name, "B117") {
					for _, rec := range h.seen.calls[:20] {
						if rec.Outcome != gateway.Left || rec.Status != 499 {
							t.Errorf("B139 the record is %+v", rec)
						}
					}
				}
			})
		}
	}
}

// B118: an upstream that hangs could never open the circuit.
func TestB118_UpstreamThatHangsIsLeftAlone(t *testing.T) {
	bubble(t, "hangs", func(t *testing.T) {
		h := newHouse(t)
		api := h.scripted("api", hang)
		s := one("api", "")
		s.Policy = holdfast.Policy{Attempts: -1, AttemptTimeout: 500 * time.Millisecond}
		h.open(s)
		for range 5 {
			if r := h.ask("/v1/messages", message); r.StatusCode != 504 {
				t.Errorf("got %d %s", r.StatusCode, r.body)
			}
		}
		began := time.Now()
		r := h.ask("/v1/messages", message)
		if r.StatusCode != 503 || r.Header.Get("Holdfast-Reason") != "open" || r.Header.Get("Retry-After") == "" || len(api.seen()) != 5 || time.Since(began) != 0 {
			t.Errorf("the sixth: %d %v after %v and %d requests", r.StatusCode, r.Header, time.Since(began), len(api.seen()))
		}
	})
}

// B120: a probe that told nothing left the circuit half-open for ever. B121: nor does one that comes late decide anything.
func TestB120_ProbesThatTellNothing(t *testing.T) {
	for name, probe := range map[string]http.HandlerFunc{
		"401": respond(401, ""), "404": respond(404, ""), "400": respond(400, ""), "429": respond(429, ""), "409": respond(409, ""),
		"a refusal by policy": respond(400, `{"error":{"code":"content_policy_violation","message":"x"}}`), "a caller who leaves": hang,
	} {
		bubble(t, name, func(t *testing.T) {
			h := newHouse(t)
			api := h.scripted("api", respond(500, ""), probe, good)
			s := one("api", "")
			s.Policy.Attempts = -1
			s.Breaker = holdfast.BreakerSettings{Failures: 1, Cooldown: 10 * time.Second}
			h.open(s)
			h.ask("/v1/messages", message)
			if r := h.ask("/v1/messages", message); r.StatusCode != 503 || len(api.seen()) != 1 {
				t.Fatalf("the circuit is not open: %d", r.StatusCode)
			}
			time.Sleep(10 * time.Second)
			if strings.HasPrefix(name, "a caller") {
				h.leaving(time.Second, message)
			} else if r := h.ask("/v1/messages", message); r.Header.Get("Holdfast-Attempts") != "1" {
				t.Fatalf("no probe: %d %s", r.StatusCode, r.body)
			}
			time.Sleep(time.Second)
			if r := h.ask("/v1/messages", message); r.StatusCode != 200 || len(api.seen()) != 3 {
				t.Errorf("the next probe: %d %s", r.StatusCode, r.body)
			}
			var to []holdfast.State
			for _, e := range h.seen.events {
				if e.Kind == holdfast.EventCircuit {
					to = append(to, e.To)
				}
			}
			if fmt.Sprint(to) != "[open half_open closed]" {
				t.Errorf("B121 the circuit became %v", to)
			}
		})
	}
}

// B108: the later of two delays holds. B115: but none above the maximum.
func TestB108_B115_HoldsOfACredential(t *testing.T) {
	bubble(t, "B108 the later", func(t *testing.T) {
		h := newHouse(t)
		api := h.scripted("api", delayed(time.Second, respond(429, "", "Retry-After: 1")), delayed(1250*time.Millisecond, respond(429, "", "Retry-After: 50")), good)
		s := one("api", "")
		s.Policy = holdfast.Policy{Attempts: -1}
		h.open(s)
		var both sync.WaitGroup
		both.Go(func() { h.ask("/v1/messages", message) })
		synctest.Wait()
		both.Go(func() { h.ask("/v1/messages", message) })
		both.Wait()
		began := time.Now()
		if r := h.ask("/v1/messages", message); r.StatusCode != 200 || time.Since(began) != 50*time.Second || len(api.seen()) != 3 {
			t.Errorf("%d after %v", r.StatusCode, time.Since(began))
		}
	})
	for _, status := range []int{429, 504} {
		bubble(t, fmt.Sprint("B115 ", status), func(t *testing.T) {
			h := newHouse(t)
			h.scripted("api", respond(status, "", "Retry-After: 86400"), good)
			h.open(one("api", ""))
			if r := h.ask("/v1/messages", message); r.StatusCode != status || r.Header.Get("Retry-After") != "86400" {
				t.Errorf("%d %v", r.StatusCode, r.Header)
			}
			time.Sleep(time.Minute)
			began := time.Now()
			if r := h.ask("/v1/messages", message); r.StatusCode != 200 || time.Since(began) != 0 {
				t.Errorf("a minute later: %d after %v", r.StatusCode, time.Since(began))
			}
		})
	}
}

// B112: an overload of the whole server was charged to the limit of each credential.
func TestB112_OverloadHoldsNobody(t *testing.T) {
	bubble(t, "overload", func(t *testing.T) {
		h := newHouse(t)
		h.scripted("api", respond(529, ""), respond(529, ""), respond(529, ""), respond(529, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`), good)
		h.open(one("api", ""))
		if r := h.ask("/v1/messages", message); r.StatusCode != 529 || !strings.Contains(r.body, "overloaded_error") {
			t.Errorf("got %d %s", r.StatusCode, r.body)
		}
		began := time.Now()
		if r := h.ask("/v1/messages", message); r.StatusCode != 200 || time.Since(began) != 0 {
			t.Errorf("then %d after %v", r.StatusCode, time.Since(began))
		}
	})
}

// What is known of one credential says nothing of another's: callers bring their own keys.
func TestRestsAreOfOneCredentialAndModelGroup(t *testing.T) {
	bubble(t, "rests", func(t *testing.T) {
		h := newHouse(t)
		h.scripted("api", respond(429, "", "Retry-After: 30"), good)
		s := one("api", "")
		s.Policy.Attempts = -1
		h.open(s)
		h.ask("/v1/messages", message, "X-Api-Key: one")
		for _, c := range []struct {
			key, model string
			rests      bool
		}{
			{"two", "claude-sonnet-5-5", false}, {"one", "claude-haiku-4-5", false}, {"one", "claude-sonnet-5-5", true},
		} {
			began := time.Now()
			r := h.ask("/v1/messages", strings.Replace(message, "claude-sonnet-5-5", c.model, 1), "X-Api-Key: "+c.key)
			if rested := time.Since(began) == 30*time.Second; r.StatusCode != 200 || rested != c.rests || !rested && time.Since(began) != 0 {
				t.Errorf("%+v: %d after %v", c, r.StatusCode, time.Since(began))
			}
		}
	})
}
