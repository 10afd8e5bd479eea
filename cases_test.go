package holdfast_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"holdfast"
)

// Each test here tells of a fault that has hurt people, by its number in the list that e2e/CASES.md maps.

// Everybody who was told the same wait woke at the same instant and tripped the limit again.
func TestB16_ServerWaitSpreads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var second []time.Duration
		start := time.Now()
		p := holdfast.Policy{}
		var all sync.WaitGroup
		for range 20 {
			all.Go(func() {
				first := true
				_, _, err := holdfast.Do(t.Context(), &p, func(context.Context) (int, error) {
					if first {
						first = false
						return 0, anthropicError(429, "rate_limit_error", "retry-after", "2")
					}
					mu.Lock()
					defer mu.Unlock()
					second = append(second, time.Since(start))
					return 1, nil
				})
				if err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		for _, at := range second {
			if at < 2*time.Second || at > 2500*time.Millisecond {
				t.Errorf("asked again after %v, want from 2s to 2.5s", at)
			}
			near := 0
			for _, other := range second {
				if d := other - at; d >= 0 && d < 50*time.Millisecond {
					near++
				}
			}
			if near > len(second)/2 {
				t.Errorf("%d of %d within 50 ms", near, len(second))
			}
		}
	})
}

// Waits doubled without limit.
func TestB32_EveryGapIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := holdfast.Policy{Attempts: 13, Backoff: holdfast.Backoff{Cap: 30 * time.Second}, Dice: top}
		u := always(reply(500, "{}", "content-type", "application/json"))
		_, _, err := holdfast.Do(t.Context(), &p, u.ask)
		wantReason(t, err, holdfast.ErrAttempts)
		for i, gap := range u.gaps() {
			if gap > 30*time.Second {
				t.Errorf("gap %d is %v", i+1, gap)
			}
		}
		if u.requests() != 13 {
			t.Errorf("%d requests", u.requests())
		}
	})
}

// Twelve requests where the log showed three retries: every attempt is told of.
func TestB34_WhatIsToldIsWhatWasSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		told, sent := 0, 0
		p := holdfast.Policy{AttemptTimeout: time.Second, Dice: top, Observe: func(e holdfast.Event) {
			if e.Kind == holdfast.EventAttempt {
				told++
			}
		}}
		start := time.Now()
		_, trace, err := holdfast.Do(t.Context(), &p, func(ctx context.Context) (string, error) { sent++; return hang(ctx) })
		wantReason(t, err, holdfast.ErrAttempts)
		if sent != 4 || told != 4 || trace.Sent() != 4 {
			t.Errorf("sent %d, told %d, trace %d; want 4", sent, told, trace.Sent())
		}
		if got, want := time.Since(start), 4*time.Second+3500*time.Millisecond; got != want {
			t.Errorf("took %v, want %v", got, want)
		}
	})
}

// No shared quota: in an outage every call used all its attempts.
func TestB38_OutageRunsTheBudgetDry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := holdfast.Policy{Attempts: 3, Budget: holdfast.NewBudget(holdfast.BudgetSettings{Capacity: 1400, Refill: -1})}
		u := always(anthropicError(503, "api_error"))
		var all sync.WaitGroup
		for range 200 {
			all.Go(func() { _, _, _ = holdfast.Do(t.Context(), &p, u.ask) })
		}
		all.Wait()
		if got := u.requests(); got != 300 {
			t.Errorf("%d requests, want 200 and the budget's 100", got)
		}
		_, trace, err := holdfast.Do(t.Context(), &p, u.ask)
		if wantReason(t, err, holdfast.ErrBudget); trace.Sent() != 1 {
			t.Errorf("a later call made %d attempts", trace.Sent())
		}
	})
}

// Aborting during a wait did nothing until the wait was over, or made one more request.
func TestB39_B40_CancelEndsTheWait(t *testing.T) {
	for name, failure := range map[string]error{
		"B39 a server's wait": anthropicError(429, "rate_limit_error", "retry-after-ms", "3000"),
		"B40 our own wait":    anthropicError(429, "rate_limit_error"),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				why := errors.New("changed my mind")
				ctx, cancel := context.WithCancelCause(t.Context())
				time.AfterFunc(100*time.Millisecond, func() { cancel(why) })
				p := holdfast.Policy{Backoff: holdfast.Backoff{Base: 5 * time.Second}, Dice: top}
				u := always(failure)
				start := time.Now()
				_, trace, err := holdfast.Do(ctx, &p, u.ask)
				wantReason(t, err, holdfast.ErrCancelled)
				if last := trace.Attempts()[0]; last.Next != holdfast.Left || trace.Outcome() != "cancelled" {
					t.Errorf("trace: %s", trace.Summary())
				}
				if !errors.Is(err, why) || time.Since(start) != 100*time.Millisecond || u.requests() != 1 {
					t.Errorf("%v after %v and %d requests", err, time.Since(start), u.requests())
				}
			})
		})
	}
}

// A wait longer than the deadline was begun all the same, and then only the deadline was told of.
func TestB42_HopelessWaitIsNotBegun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		u := always(reply(503, `{"error":{"type":"api_error","message":"no backend"}}`, "retry-after", "10"))
		start := time.Now()
		_, _, err := holdfast.Do(ctx, nil, u.ask)
		own := wantReason(t, err, holdfast.ErrDeadline)
		if time.Since(start) != 0 || own.Wait != 10*time.Second || own.Verdict.Status != 503 {
			t.Errorf("after %v: wait %v, status %d", time.Since(start), own.Wait, own.Verdict.Status)
		}
		for _, word := range []string{"deadline", "503", "no backend"} {
			if !strings.Contains(err.Error(), word) {
				t.Errorf("%q is missing in %q", word, err)
			}
		}
	})
}

// A budget of ten seconds could block for thirty-one.
func TestB43_OneDeadlineOverAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := holdfast.Policy{Deadline: 10 * time.Second, AttemptTimeout: 15 * time.Second, Backoff: holdfast.Backoff{Base: 6 * time.Second, Cap: 6 * time.Second}, Dice: func() float64 { return 0.01 }}
		n := 0
		start := time.Now()
		_, _, err := holdfast.Do(t.Context(), &p, func(ctx context.Context) (string, error) {
			if n++; n > 1 {
				return hang(ctx)
			}
			time.Sleep(9900 * time.Millisecond)
			return "", anthropicError(500, "api_error")
		})
		wantReason(t, err, holdfast.ErrDeadline)
		if time.Since(start) != 10*time.Second || n != 2 {
			t.Errorf("%d attempts in %v", n, time.Since(start))
		}
	})
}

// Falling back needed headers, or a particular way of choosing the target.
func TestB99_B102_ThrottledTargetFallsBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pace := holdfast.NewPace(holdfast.Limits{})
		p := holdfast.Policy{FallbackFirst: true, Targets: []holdfast.Target{{Name: "primary", Pace: pace}, {Name: "fallback"}}}
		u := play(reply(429, ""))
		_, trace, err := holdfast.Do(t.Context(), &p, u.ask)
		if err != nil || trace.Source != holdfast.Fallback || trace.Elapsed != 0 {
			t.Fatalf("%v, %s", err, trace.Summary())
		}
		if d := diff([]string{"primary", "fallback"}, u.names); d != "" {
			t.Error("asked:", d)
		}
		if pace.Allow(time.Now(), holdfast.Tokens{}) {
			t.Error("B102: a throttle without headers gives the primary no cooldown")
		}
	})
}

// What never was a failure of the target burnt the whole budget.
func TestB105_NothingSentNothingPaid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		budget := holdfast.NewBudget(holdfast.BudgetSettings{Refill: -1})
		open := holdfast.NewBreaker(holdfast.BreakerSettings{Failures: 1})
		p := holdfast.Policy{Attempts: 2, Budget: budget, Targets: []holdfast.Target{{Name: "a", Breaker: open}, {Name: "b"}}}
		ctx, cancel := context.WithCancel(t.Context())
		asked := 0
		_, _, err := holdfast.Do(ctx, &p, func(ctx context.Context) (string, error) {
			asked++
			cancel()
			return hang(ctx)
		})
		wantReason(t, err, holdfast.ErrCancelled)
		if asked != 1 || budget.Level(time.Now()) != 100 || open.State() != holdfast.Closed {
			t.Errorf("cancelled: %d requests, budget %v, circuit %v", asked, budget.Level(time.Now()), open.State())
		}
		ticket, _, _ := open.Allow(time.Now())
		open.Settle(time.Now(), ticket, holdfast.Failure)
		u := play()
		_, trace, err := holdfast.Do(t.Context(), &p, u.ask)
		if err != nil || trace.Elapsed != 0 || trace.Target() != "b" || budget.Level(time.Now()) != 100 {
			t.Errorf("open circuit: %v, budget %v, %s", err, budget.Level(time.Now()), trace.Summary())
		}
	})
}

// A wait of a minute was honoured before the fallback got its turn.
func TestB107_FallbackFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := holdfast.Policy{FallbackFirst: true, Targets: []holdfast.Target{{Name: "a"}, {Name: "b"}}}
		u := play(anthropicError(429, "rate_limit_error", "retry-after", "60"))
		_, trace, err := holdfast.Do(t.Context(), &p, u.ask)
		if err != nil || trace.Elapsed != 0 || trace.Target() != "b" {
			t.Errorf("%v, %s", err, trace.Summary())
		}
	})
}

// A longer delay did not extend a shorter cooldown that was there already.
func TestB108_TheLaterHoldCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := holdfast.Policy{Attempts: -1, Pace: holdfast.NewPace(holdfast.Limits{}), Backoff: holdfast.Backoff{ThrottleBase: 60 * time.Second}}
		var both sync.WaitGroup
		both.Go(func() {
			_, _, _ = holdfast.Do(t.Context(), &p, always(anthropicError(429, "x", "retry-after", "1")).ask)
		})
		both.Go(func() {
			_, _, _ = holdfast.Do(t.Context(), &p, func(context.Context) (string, error) {
				time.Sleep(250 * time.Millisecond)
				return "", anthropicError(429, "x")
			})
		})
		both.Wait()
		start := time.Now()
		if _, _, err := holdfast.Do(t.Context(), &p, play().ask); err != nil || time.Since(start) != 60*time.Second {
			t.Errorf("%v after %v, want 60s", err, time.Since(start))
		}
	})
}

// Callers with tiny timeouts, or who went away, could bench a healthy target for everybody.
func TestB109_B117_CallersWhoLeaveTellNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := holdfast.Policy{Breaker: holdfast.NewBreaker(holdfast.BreakerSettings{Failures: 1})}
		slow := func(ctx context.Context) (string, error) {
			select {
			case <-time.After(300 * time.Millisecond):
				return "answer", nil
			case <-ctx.Done():
				return "", errors.New("backend: connection closed") // an error text that says nothing of the caller
			}
		}
		for range 6 {
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			_, _, err := holdfast.Do(ctx, &p, slow)
			wantReason(t, err, holdfast.ErrDeadline)
			cancel()
		}
		for range 20 {
			ctx, cancel := context.WithCancelCause(t.Context())
			time.AfterFunc(50*time.Millisecond, func() { cancel(errors.New("custom cause")) })
			_, _, err := holdfast.Do(ctx, &p, slow)
			wantReason(t, err, holdfast.ErrCancelled)
		}
		if got, _, err := holdfast.Do(t.Context(), &p, slow); err != nil || got != "answer" || p.Breaker.State() != holdfast.Closed {
			t.Errorf("%q, %v, circuit %v", got, err, p.Breaker.State())
		}
	})
}

// A server-wide overload was charged to each account like a limit of its own.
func TestB112_OverloadIsNoThrottle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := holdfast.Policy{Pace: holdfast.NewPace(holdfast.Limits{RequestsPerMinute: 60}), Dice: top}
		u := play(anthropicError(529, "overloaded_error"), anthropicError(529, "overloaded_error"))
		start := time.Now()
		if _, _, err := holdfast.Do(t.Context(), &p, u.ask); err != nil || time.Since(start) > 10*time.Second {
			t.Errorf("%v after %v", err, time.Since(start))
		}
		if !p.Pace.Allow(time.Now(), holdfast.Tokens{}) {
			t.Error("the pace was stopped by an overload")
		}
	})
}

// An account was marked limited only after the wait, so that parallel requests piled onto it.
func TestB114_OthersLearnAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := holdfast.Policy{FallbackFirst: true, Targets: []holdfast.Target{
			{Name: "one", Pace: holdfast.NewPace(holdfast.Limits{})},
			{Name: "two", Pace: holdfast.NewPace(holdfast.Limits{})},
		}}
		u := play(anthropicError(429, "rate_limit_error", "retry-after", "2"))
		if _, _, err := holdfast.Do(t.Context(), &p, u.ask); err != nil {
			t.Fatal(err)
		}
		var all sync.WaitGroup
		for range 10 {
			all.Go(func() {
				if _, _, err := holdfast.Do(t.Context(), &p, u.ask); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		count := map[string]int{}
		for _, name := range u.names {
			count[name]++
		}
		if d := diff(map[string]int{"one": 1, "two": 11}, count); d != "" {
			t.Error("asked (want -, got +):", d)
		}
	})
}

// The maximum was applied, and then overwritten by a raw hint of a day.
func TestB115_NoHoldAboveTheMaximum(t *testing.T) {
	for _, status := range []int{429, 504} {
		synctest.Test(t, func(t *testing.T) {
			p := holdfast.Policy{Attempts: 2, Pace: holdfast.NewPace(holdfast.Limits{})}
			_, _, err := holdfast.Do(t.Context(), &p, always(reply(status, "", "retry-after", "86400")).ask)
			if own := wantReason(t, err, holdfast.ErrServerWait); own.Wait != 24*time.Hour {
				t.Errorf("%d: the error tells of %v", status, own.Wait)
			}
			time.Sleep(time.Minute)
			if !p.Pace.Allow(time.Now(), holdfast.Tokens{}) {
				t.Errorf("%d: still held after the maximum of a minute", status)
			}
		})
	}
}

// Since every context error was ignored, an upstream that hangs could never open the breaker.
func TestB118_HangingUpstreamOpensTheBreaker(t *testing.T) {
	for name, p := range map[string]holdfast.Policy{
		"attempt timeout": {Attempts: -1, AttemptTimeout: 500 * time.Millisecond},
		"deadline":        {Attempts: -1, Deadline: 500 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p.Breaker = holdfast.NewBreaker(holdfast.BreakerSettings{})
				for range 5 {
					_, _, _ = holdfast.Do(t.Context(), &p, hang)
				}
				start := time.Now()
				_, trace, err := holdfast.Do(t.Context(), &p, hang)
				wantReason(t, err, holdfast.ErrOpen)
				if time.Since(start) != 0 || trace.Sent() != 0 {
					t.Errorf("the sixth call took %v and %d requests", time.Since(start), trace.Sent())
				}
			})
		})
	}
}

// A probe that failed without telling anything released nothing, and the breaker stayed half-open.
func TestB120_ProbeThatTellsNothing(t *testing.T) {
	for name, outcome := range map[string]error{
		"401": reply(401, ""), "404": reply(404, ""), "400": reply(400, ""), "429": reply(429, ""), "409": reply(409, ""),
		"cancelled": nil, "spent": reply(402, ""),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := holdfast.Policy{Attempts: -1, Breaker: holdfast.NewBreaker(holdfast.BreakerSettings{Failures: 1, Cooldown: time.Second})}
				_, _, _ = holdfast.Do(t.Context(), &p, always(reply(500, "")).ask)
				time.Sleep(time.Second)
				ctx, cancel := context.WithCancel(t.Context())
				_, trace, _ := holdfast.Do(ctx, &p, func(ctx context.Context) (string, error) {
					if outcome == nil {
						cancel()
						return hang(ctx)
					}
					return "", outcome
				})
				cancel()
				if trace.Sent() != 1 || p.Breaker.State() != holdfast.HalfOpen {
					t.Fatalf("probe: %s, circuit %v", trace.Summary(), p.Breaker.State())
				}
				if _, _, err := holdfast.Do(t.Context(), &p, play().ask); err != nil || p.Breaker.State() != holdfast.Closed {
					t.Errorf("next: %v, circuit %v", err, p.Breaker.State())
				}
			})
		})
	}
}

// A retry controller shared by concurrent calls mixed up their attempts.
func TestB132_CallsDoNotMix(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := holdfast.Policy{Breaker: holdfast.NewBreaker(holdfast.BreakerSettings{}), Budget: holdfast.NewBudget(holdfast.BudgetSettings{Capacity: 1000})}
		var all sync.WaitGroup
		for range 50 {
			all.Go(func() {
				u := play(anthropicError(429, "rate_limit_error"))
				_, trace, err := holdfast.Do(t.Context(), &p, u.ask)
				var numbers []int
				for _, a := range trace.Attempts() {
					numbers = append(numbers, a.Number)
				}
				if d := diff([]int{1, 2}, numbers); err != nil || d != "" {
					t.Error(err, d)
				}
			})
		}
		all.Wait()
	})
}

// An except-these rule caught the cancellation too, and a cancelled call slept and ran again.
func TestB137_CancelledCallIsNotRetried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := holdfast.Policy{Judge: func(error) holdfast.Verdict { return holdfast.Verdict{Kind: holdfast.Broken} }}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start, asked := time.Now(), 0
		_, _, err := holdfast.Do(ctx, &p, func(ctx context.Context) (string, error) { asked++; return hang(ctx) })
		wantReason(t, err, holdfast.ErrDeadline)
		if asked != 1 || time.Since(start) != time.Second {
			t.Errorf("%d requests in %v", asked, time.Since(start))
		}
	})
}

// An unknown stop reason made the turn look empty, and it was retried to exhaustion. What arrived is an answer.
func TestB168_UnknownStopReasonIsAnAnswer(t *testing.T) {
	type message struct{ StopReason, Text string }
	for _, reason := range []string{"refusal", "foo_bar", "max_tokens", "model_context_window_exceeded", "pause_turn"} {
		asked := 0
		got, trace, err := holdfast.Do(t.Context(), nil, func(context.Context) (*message, error) {
			asked++
			return &message{reason, "part"}, nil
		})
		if err != nil || asked != 1 || trace.Source != holdfast.Live || got.StopReason != reason || got.Text != "part" {
			t.Errorf("%s: %v after %d requests: %+v", reason, err, asked, got)
		}
	}
}

// A call admitted in an earlier half-open period finished later, and closed a newer one.
func TestB121_LateProbeDecidesNothing(t *testing.T) {
	b := holdfast.NewBreaker(holdfast.BreakerSettings{Failures: 1, Cooldown: time.Second, MaxCooldown: time.Second, Probes: -1, Lease: time.Second})
	now := time.Now()
	allow := func() holdfast.Ticket {
		t.Helper()
		now = now.Add(time.Second)
		ticket, _, ok := b.Allow(now)
		if !ok {
			t.Fatalf("not admitted, circuit %v", b.State())
		}
		return ticket
	}
	b.Settle(now, allow(), holdfast.Failure)
	slow := allow() // half-open for the first time
	b.Settle(now, allow(), holdfast.Failure)
	probe := allow() // and for the second
	b.Settle(now, slow, holdfast.Success)
	if got := b.State(); got != holdfast.HalfOpen {
		t.Fatalf("circuit %v after the late success", got)
	}
	if _, _, ok := b.Allow(now); ok {
		t.Error("the late result freed the place of the probe")
	}
	b.Settle(now, probe, holdfast.Success)
	if got := b.State(); got != holdfast.Closed {
		t.Errorf("circuit %v after the probe's success", got)
	}
}
