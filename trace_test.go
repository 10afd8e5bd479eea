package holdfast_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"holdfast"
)

// The five calls of a published write-up: no jitter, a breaker that counts exhausted calls, and the summary to send to
// support.
func TestFiveCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		failure := func(status int, kind, id string) error { return anthropicError(status, kind, "request-id", id) }
		unavailable := func(id string) error { return failure(503, "api_error", id) }
		p := holdfast.Policy{
			Backoff: holdfast.Backoff{Jitter: holdfast.NoJitter},
			Breaker: holdfast.NewBreaker(holdfast.BreakerSettings{Failures: 2, Ratio: -1, Cooldown: 30 * time.Second, Count: holdfast.CountCalls}),
		}
		for _, call := range []struct {
			script  []error
			sends   int
			outcome string
			waits   []time.Duration
			state   holdfast.State
		}{
			{[]error{failure(529, "overloaded_error", "req_a1"), failure(429, "rate_limit_error", "req_a2")}, 3, "answered", []time.Duration{500 * time.Millisecond, time.Second}, holdfast.Closed},
			{[]error{failure(400, "invalid_request_error", "req_b1")}, 1, "stopped, bad request", nil, holdfast.Closed},
			{[]error{unavailable("req_c1"), unavailable("req_c2"), unavailable("req_c3"), unavailable("req_c4")}, 4, "gave up", []time.Duration{500 * time.Millisecond, time.Second, 2 * time.Second}, holdfast.Closed},
			{[]error{unavailable("req_d1"), unavailable("req_d2"), unavailable("req_d3"), unavailable("req_d4")}, 4, "gave up", []time.Duration{500 * time.Millisecond, time.Second, 2 * time.Second}, holdfast.Open},
			{nil, 0, "circuit open, not sent", nil, holdfast.Open},
		} {
			u := play(call.script...)
			_, trace, err := holdfast.Do(t.Context(), &p, u.ask)
			if trace.Sent() != call.sends || u.requests() != call.sends || trace.Outcome() != call.outcome {
				t.Errorf("%d sends, %q, %v; want %d, %q", trace.Sent(), trace.Outcome(), err, call.sends, call.outcome)
			}
			if d := diff(call.waits, u.gaps()); d != "" {
				t.Error("waits (want -, got +):", d)
			}
			if got := p.Breaker.State(); got != call.state {
				t.Errorf("circuit %v, want %v", got, call.state)
			}
			if call.sends == 4 && strings.Contains(trace.Summary(), "req_c1") {
				want := strings.Join([]string{
					"gave up: 4 attempts in 3.5s, 3.5s of them waiting (all attempts used)",
					"  1 at 0s 503 api_error req_c1 took 0s: retried after 500ms",
					"  2 at 500ms 503 api_error req_c2 took 0s: retried after 1s",
					"  3 at 1.5s 503 api_error req_c3 took 0s: retried after 2s",
					"  4 at 3.5s 503 api_error req_c4 took 0s: gave up",
				}, "\n")
				if d := diff(want, trace.Summary()); d != "" {
					t.Error("summary (want -, got +):", d)
				}
				if d := diff([]string{"req_c1", "req_c2", "req_c3", "req_c4"}, trace.RequestIDs()); d != "" {
					t.Error("request ids:", d)
				}
			}
		}
	})
}

func TestErrorTextNamesWhatHappened(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := holdfast.Policy{Attempts: 2, Dice: top}
		_, _, err := holdfast.Do(t.Context(), &p, always(reply(503, `{"type":"error","error":{"type":"api_error","message":"<b>no</b> luck"},"request_id":"req_9"}`)).ask)
		own := wantReason(t, err, holdfast.ErrAttempts)
		if want := "holdfast: all attempts used after 2 attempts in 500ms: 503 api_error: no luck (request req_9)"; err.Error() != want {
			t.Errorf("got  %s\nwant %s", err, want)
		}
		if own.Hint() == "" {
			t.Error("no hint")
		}
		p.Breaker = holdfast.NewBreaker(holdfast.BreakerSettings{Failures: 1, Cooldown: 30 * time.Second})
		_, _, _ = holdfast.Do(t.Context(), &p, always(anthropicError(500, "api_error")).ask)
		_, _, err = holdfast.Do(t.Context(), &p, play().ask)
		if want := "holdfast: the circuit is open, nothing was sent, next in 30s"; err.Error() != want {
			t.Errorf("got  %s\nwant %s", err, want)
		}
	})
}

// A key in a URL's query is in the text of net/http's errors; it must not be in ours (B160).
func TestB160_NoKeyInErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const canary = "sk-ant-CANARY0123456789"
		for _, cause := range []error{
			&apiErrorWithURL{url: "https://h/v1?key=" + canary},
			reply(500, `{"error":{"type":"api_error","message":"key `+canary+` is odd"}}`),
		} {
			p := holdfast.Policy{Attempts: 2, Dice: bottom, Judge: func(err error) holdfast.Verdict {
				v := holdfast.Judge(err)
				if v.Kind == holdfast.Terminal {
					v.Kind = holdfast.Broken
				}
				return v
			}}
			_, trace, err := holdfast.Do(t.Context(), &p, always(cause).ask)
			if text := err.Error() + trace.Summary(); strings.Contains(text, "CANARY") {
				t.Errorf("the key shows: %s", text)
			}
		}
	})
}

type apiErrorWithURL struct{ url string }

func (e *apiErrorWithURL) Error() string { return "Post \"" + e.url + "\": connection refused" }

func TestEventsTellTheStory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got []string
		p := holdfast.Policy{
			Attempts: 2, Dice: top,
			Targets: []holdfast.Target{
				{Name: "a", Breaker: holdfast.NewBreaker(holdfast.BreakerSettings{Failures: 2})},
				{Name: "b", Pace: holdfast.NewPace(holdfast.Limits{RequestsPerMinute: 1})},
			},
			Observe: func(e holdfast.Event) {
				text := e.Kind.String() + " " + e.Target
				switch e.Kind {
				case holdfast.EventAttempt:
					text += " " + e.Verdict.Kind.String()
				case holdfast.EventWait, holdfast.EventPace:
					text += " " + e.Wait.String()
				case holdfast.EventCircuit:
					text += " " + e.From.String() + "->" + e.To.String()
				case holdfast.EventEnd:
					text += " " + e.Source.String()
				}
				got = append(got, text)
			},
		}
		for range 2 {
			u := play(anthropicError(500, "api_error"), anthropicError(500, "api_error"))
			if p.Targets[0].Breaker.State() == holdfast.Open {
				u = play()
			}
			if _, _, err := holdfast.Do(context.Background(), &p, u.ask); err != nil {
				t.Fatal(err)
			}
		}
		want := []string{
			"send a", "attempt a broken", "wait a 500ms",
			"send a", "attempt a broken", "circuit a closed->open",
			"send b", "attempt b ok", "end b fallback",
			"skip a", "pace b 1m0s", "send b", "attempt b ok", "end b fallback",
		}
		if d := diff(want, got); d != "" {
			t.Error("(want -, got +):", d)
		}
	})
}
