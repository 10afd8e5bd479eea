package holdfast_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"holdfast"
)

func TestDoAnswersAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := play()
		got, trace, err := holdfast.Do(t.Context(), nil, u.ask)
		if got != "answer" || err != nil {
			t.Fatalf("got %q, %v", got, err)
		}
		if trace.Source != holdfast.Live || trace.Sent() != 1 || trace.Reason != nil || trace.Elapsed != 0 {
			t.Errorf("trace: %+v", trace)
		}
	})
}

// The figures of the published write-ups that speak of a single wrapper.
func TestPublishedWaits(t *testing.T) {
	overloaded := anthropicError(529, "overloaded_error")
	throttled := func(after string) error { return anthropicError(429, "rate_limit_error", "retry-after", after) }
	tutorial := holdfast.Policy{ServerWait: holdfast.PlusBase, MaxServerWait: 10 * time.Second, Dice: top}
	ms := time.Millisecond
	for name, c := range map[string]struct {
		policy func(p *holdfast.Policy)
		script *upstream
		gaps   []time.Duration
		reason error
	}{
		"tutorial a: the server's wait plus the base":   {nil, play(throttled("3"), throttled("3")), []time.Duration{3500 * ms, 3500 * ms}, nil},
		"tutorial b: doubling up to the cap":            {func(p *holdfast.Policy) { p.Attempts = 5; p.Backoff.Cap = 1500 * ms }, play(overloaded, overloaded, overloaded), []time.Duration{500 * ms, 1000 * ms, 1500 * ms}, nil},
		"tutorial c: rand 1 after the third attempt":    {nil, play(overloaded, overloaded, overloaded), []time.Duration{500 * ms, 1000 * ms, 2000 * ms}, nil},
		"tutorial c: rand 0":                            {func(p *holdfast.Policy) { p.Dice = bottom }, play(overloaded, overloaded, overloaded), []time.Duration{0, 0, 0}, nil},
		"tutorial d: two sleeps in three attempts":      {func(p *holdfast.Policy) { p.Attempts = 3 }, always(overloaded), []time.Duration{500 * ms, 1000 * ms}, holdfast.ErrAttempts},
		"tutorial e: no sleep for too long a wait":      {nil, always(throttled("60")), nil, holdfast.ErrServerWait},
		"interview caps: 0.5 + 1 + 2 + 4":               {func(p *holdfast.Policy) { p.Attempts = 5; p.Backoff.Cap = 30 * time.Second }, always(overloaded), []time.Duration{500 * ms, 1000 * ms, 2000 * ms, 4000 * ms}, holdfast.ErrAttempts},
		"five-calls: no jitter":                         {func(p *holdfast.Policy) { p.Backoff.Jitter = holdfast.NoJitter; p.Dice = bottom }, always(overloaded), []time.Duration{500 * ms, 1000 * ms, 2000 * ms}, holdfast.ErrAttempts},
		"lab18: the longer of the server's and our own": {func(p *holdfast.Policy) { p.ServerWait = holdfast.AtLeast }, play(throttled("2"), overloaded, throttled("0.25")), []time.Duration{2000 * ms, 1000 * ms, 2000 * ms}, nil},
		"interview 1: exactly the server's":             {func(p *holdfast.Policy) { p.ServerWait = holdfast.Exact }, play(throttled("2")), []time.Duration{2000 * ms}, nil},
		"default: the server's plus the draw":           {func(p *holdfast.Policy) { p.ServerWait = holdfast.PlusJitter }, play(throttled("2"), throttled("2")), []time.Duration{2500 * ms, 3000 * ms}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := tutorial
				if c.policy != nil {
					c.policy(&p)
				}
				c.script.start = time.Now()
				_, trace, err := holdfast.Do(t.Context(), &p, c.script.ask)
				if !errors.Is(err, c.reason) {
					t.Fatalf("error: %v", err)
				}
				if d := diff(c.gaps, c.script.gaps()); d != "" {
					t.Error("gaps (want -, got +):", d)
				}
				if trace.Sent() != c.script.requests() {
					t.Errorf("trace has %d attempts, upstream saw %d", trace.Sent(), c.script.requests())
				}
			})
		})
	}
}

func TestTerminalErrorComesBackUnchanged(t *testing.T) {
	want := anthropicError(401, "authentication_error")
	saved := holdfast.SavedAnswers[string]{Load: func(context.Context, error) (string, bool) { return "old", true }}
	got, trace, err := holdfast.Do(t.Context(), nil, always(want).ask, saved)
	if err != want || got != "" { //nolint:errorlint // unchanged means the same value
		t.Fatalf("got %q, %v", got, err)
	}
	if trace.Sent() != 1 || trace.Source != holdfast.NoSource {
		t.Errorf("trace: %s", trace.Summary())
	}
}

func TestSavedAnswerStandsIn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var kept []string
		saved := holdfast.SavedAnswers[string]{
			Load: func(_ context.Context, cause error) (string, bool) {
				return "old", errors.Is(cause, holdfast.ErrAttempts)
			},
			Store: func(_ context.Context, answer string) { kept = append(kept, answer) },
		}
		got, trace, err := holdfast.Do(t.Context(), nil, always(anthropicError(529, "overloaded_error")).ask, saved)
		if got != "old" || err != nil || trace.Source != holdfast.Saved || trace.Sent() != 4 {
			t.Fatalf("got %q, %v, %s", got, err, trace.Summary())
		}
		if _, _, err := holdfast.Do(t.Context(), nil, play().ask, saved); err != nil {
			t.Fatal(err)
		}
		if d := diff([]string{"answer"}, kept); d != "" {
			t.Error("only live answers are kept:", d)
		}
	})
}

func TestDoFailsWithoutSending(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		why := errors.New("went home")
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(why)
		u := play()
		_, trace, err := holdfast.Do(ctx, nil, u.ask)
		wantReason(t, err, holdfast.ErrCancelled)
		if !errors.Is(err, why) || !errors.Is(err, context.Canceled) || u.requests() != 0 || trace.Sent() != 0 {
			t.Errorf("%v after %d requests", err, u.requests())
		}
		if trace.Reason != holdfast.ErrCancelled || trace.Outcome() != "cancelled" || !trace.Started().Equal(time.Now()) {
			t.Errorf("trace: %s, started %v", trace.Summary(), trace.Started())
		}
		expired, stop := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
		defer stop()
		_, _, err = holdfast.Do(expired, nil, u.ask)
		wantReason(t, err, holdfast.ErrDeadline)
		if !errors.Is(err, context.DeadlineExceeded) || u.requests() != 0 {
			t.Errorf("%v after %d requests", err, u.requests())
		}
	})
}

func TestAttemptTimeoutIsRetriedAndTheDeadlineIsNot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		p := holdfast.Policy{Attempts: 3, AttemptTimeout: time.Second, Deadline: time.Minute, Dice: bottom}
		_, trace, err := holdfast.Do(t.Context(), &p, hang)
		wantReason(t, err, holdfast.ErrAttempts)
		if got := time.Since(start); got != 3*time.Second || trace.Sent() != 3 {
			t.Errorf("%d attempts in %v, want 3 in 3s", trace.Sent(), got)
		}
		start = time.Now()
		p.Deadline = 2500 * time.Millisecond
		_, trace, err = holdfast.Do(t.Context(), &p, hang)
		wantReason(t, err, holdfast.ErrDeadline)
		if got := time.Since(start); got != p.Deadline || trace.Sent() != 3 {
			t.Errorf("%d attempts in %v, want 3 in %v", trace.Sent(), got, p.Deadline)
		}
	})
}

// The whole sequence over several targets, one line per way to leave a target.
func TestTargets(t *testing.T) {
	spent := reply(429, `{"type":"error","error":{"type":"rate_limit_error","message":"x","details":{"error_code":"enforced_spend_limit_reached"}}}`)
	overflow := reply(400, `{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 300000 tokens > 200000 maximum"}}`)
	overloaded := anthropicError(529, "overloaded_error")
	targets := []holdfast.Target{
		{Name: "a", Credential: "k1", Model: "m1"},
		{Name: "b", Credential: "k1", Model: "m2"},
		{Name: "c", Credential: "k2", Model: "m2"},
	}
	for name, c := range map[string]struct {
		script  []error
		asked   []string
		reason  error
		refusal bool
	}{
		"overloaded asks the next after its attempts":  {[]error{overloaded, overloaded, nil}, []string{"a", "a", "b"}, nil, false},
		"spent skips targets with the same credential": {[]error{spent, nil}, []string{"a", "c"}, nil, false},
		"overflow goes to another model, once":         {[]error{overflow, overflow}, []string{"a", "b"}, overflow, false},
		"refused stays without the policy's leave":     {[]error{holdfast.ErrRefused}, []string{"a"}, holdfast.ErrRefused, false},
		"refused goes to one other model":              {[]error{holdfast.ErrRefused, holdfast.ErrRefused}, []string{"a", "b"}, holdfast.ErrRefused, true},
		"terminal stays":                               {[]error{anthropicError(404, "not_found_error")}, []string{"a"}, nil, false},
		"all fail":                                     {[]error{overloaded, overloaded, overloaded, overloaded, overloaded, overloaded}, []string{"a", "a", "b", "b", "c", "c"}, holdfast.ErrAttempts, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				u := play(c.script...)
				p := holdfast.Policy{Attempts: 2, Targets: targets, RefusalFallback: c.refusal}
				_, trace, err := holdfast.Do(t.Context(), &p, u.ask)
				if d := diff(c.asked, u.names); d != "" {
					t.Error("asked (want -, got +):", d)
				}
				if c.reason != nil && !errors.Is(err, c.reason) {
					t.Errorf("error: %v", err)
				}
				if err == nil && trace.Source != holdfast.Fallback {
					t.Errorf("source: %v", trace.Source)
				}
				if got := trace.Target(); got != c.asked[len(c.asked)-1] {
					t.Errorf("last target: %q", got)
				}
			})
		})
	}
}

// A silent attempt is not repeated on its target while another target is left.
func TestSilentAttemptMovesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked []string
		p := holdfast.Policy{Attempts: 3, AttemptTimeout: time.Second, Targets: []holdfast.Target{{Name: "a"}, {Name: "b"}}, Dice: bottom}
		_, _, err := holdfast.Do(t.Context(), &p, func(ctx context.Context) (string, error) {
			target, _ := holdfast.TargetOf(ctx)
			asked = append(asked, target.String())
			return hang(ctx)
		})
		wantReason(t, err, holdfast.ErrAttempts)
		if d := diff([]string{"a", "b", "b", "b"}, asked); d != "" {
			t.Error("asked (want -, got +):", d)
		}
	})
}

func TestFallbackDrawsOnTheBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := holdfast.Policy{
			Attempts: -1,
			Targets:  []holdfast.Target{{Name: "a"}, {Name: "b"}},
			Budget:   holdfast.NewBudget(holdfast.BudgetSettings{Capacity: 20, Refill: -1, Earn: -1}),
		}
		u := play(anthropicError(500, "api_error"), nil, anthropicError(500, "api_error"), anthropicError(500, "api_error"), anthropicError(500, "api_error"))
		if _, trace, err := holdfast.Do(t.Context(), &p, u.ask); err != nil || trace.Source != holdfast.Fallback {
			t.Fatalf("first call: %v", err)
		}
		if got := p.Budget.Level(time.Now()); got != 20 {
			t.Errorf("a fallback that worked is free: %v left", got)
		}
		_, _, err := holdfast.Do(t.Context(), &p, u.ask)
		wantReason(t, err, holdfast.ErrAttempts)
		_, trace, err := holdfast.Do(t.Context(), &p, u.ask)
		if own := wantReason(t, err, holdfast.ErrBudget); own.Verdict.Status != 500 || trace.Sent() != 1 {
			t.Errorf("an empty budget must keep the upstream's error: %v", err)
		}
	})
}

func TestPanicsPassThroughAndLeaveNothing(t *testing.T) {
	broken := anthropicError(500, "api_error")
	for name, spoil := range map[string]func(p *holdfast.Policy) (op func(context.Context) (string, error)){
		"op": func(*holdfast.Policy) func(context.Context) (string, error) {
			return func(context.Context) (string, error) { panic("x") }
		},
		"judge": func(p *holdfast.Policy) func(context.Context) (string, error) {
			p.Judge = func(error) holdfast.Verdict { panic("x") }
			return always(broken).ask
		},
		"usage": func(p *holdfast.Policy) func(context.Context) (string, error) {
			p.Usage = func(any) holdfast.Tokens { panic("x") }
			return play().ask
		},
		"dice": func(p *holdfast.Policy) func(context.Context) (string, error) {
			p.Dice = func() float64 { panic("x") }
			return play(reply(409, "")).ask // retried, and no reason for the breaker to open
		},
		"observe": func(p *holdfast.Policy) func(context.Context) (string, error) {
			p.Observe = func(e holdfast.Event) { panic("x") }
			return play().ask
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := holdfast.Policy{
					AttemptTimeout: time.Minute,
					Breaker:        holdfast.NewBreaker(holdfast.BreakerSettings{Failures: 1, Cooldown: time.Second}),
					Pace:           holdfast.NewPace(holdfast.Limits{RequestsPerMinute: 60}),
					Budget:         holdfast.NewBudget(holdfast.BudgetSettings{Refill: -1}),
				}
				// Half-open, so that a lost ticket would show.
				_, _, _ = holdfast.Do(t.Context(), &p, always(broken).ask)
				time.Sleep(2 * time.Second)
				level := p.Budget.Level(time.Now())
				op := spoil(&p)
				func() {
					defer func() {
						if recover() == nil {
							t.Error("the panic was swallowed")
						}
					}()
					_, _, _ = holdfast.Do(t.Context(), &p, op)
				}()
				p.Judge, p.Usage, p.Dice, p.Observe = nil, nil, nil, nil
				time.Sleep(time.Minute)
				if _, _, err := holdfast.Do(t.Context(), &p, play().ask); err != nil {
					t.Errorf("the next call: %v", err)
				}
				if got := p.Budget.Level(time.Now()); got < level {
					t.Errorf("budget fell from %v to %v", level, got)
				}
			})
		})
	}
}

// stream is a pending answer.
type stream struct {
	end   func(holdfast.Tokens, error)
	ctx   context.Context
	over  bool // has ended when it is handed over
	later bool // is ended by another goroutine, as a stream's reader may be
}

func (s *stream) AtEnd(end func(holdfast.Tokens, error)) {
	s.end = end
	switch {
	case s.over:
		end(holdfast.Tokens{Output: 3}, nil)
	case s.later:
		time.AfterFunc(time.Second, func() { end(holdfast.Tokens{Output: 3}, nil) })
	}
}

// traced is a pending answer that learns what became of the call.
type traced struct {
	stream
	got []holdfast.Trace
}

func (s *traced) Settled(trace holdfast.Trace) { s.got = append(s.got, trace) }

func TestPendingAnswerLearnsTheWholeTrace(t *testing.T) {
	for _, c := range []struct {
		err  error
		kind holdfast.Kind
		next holdfast.Next
	}{
		{nil, holdfast.OK, holdfast.Answered}, {holdfast.ErrCut, holdfast.Broken, holdfast.Stopped}, {holdfast.ErrCancelled, holdfast.Cancelled, holdfast.Left},
	} {
		synctest.Test(t, func(t *testing.T) {
			s, handed, err := holdfast.Do(t.Context(), nil, func(context.Context) (*traced, error) { return &traced{}, nil })
			if err != nil || len(s.got) != 0 {
				t.Fatalf("%v, told %d times before the end", err, len(s.got))
			}
			time.Sleep(time.Second)
			s.end(holdfast.Tokens{}, c.err)
			s.end(holdfast.Tokens{}, nil)
			if len(s.got) != 1 {
				t.Fatalf("told %d times", len(s.got))
			}
			if a := s.got[0].Attempts(); len(a) != 1 || a[0].Verdict.Kind != c.kind || a[0].Next != c.next || a[0].Took != time.Second || s.got[0].Elapsed != time.Second {
				t.Errorf("after %v the trace is %s", c.err, s.got[0].Summary())
			}
			if handed.Elapsed != 0 || handed.Outcome() != "answered" {
				t.Errorf("the trace that was handed over became %s", handed.Summary())
			}
		})
	}
}

// hasty fails as an operation does whose caller named the deadline himself.
type hasty struct{ error }

func (h *hasty) Verdict() holdfast.Verdict {
	return holdfast.Verdict{Kind: holdfast.Broken, Neutral: true}
}

func TestB109_OperationKnowsWhoseDeadlineItWas(t *testing.T) {
	for _, neutral := range []bool{false, true} {
		for _, p := range []holdfast.Policy{{Deadline: time.Second}, {AttemptTimeout: time.Second, Attempts: -1}} {
			synctest.Test(t, func(t *testing.T) {
				p.Breaker = holdfast.NewBreaker(holdfast.BreakerSettings{Failures: 1})
				var cause error
				_, _, err := holdfast.Do(t.Context(), &p, func(ctx context.Context) (int, error) {
					<-ctx.Done()
					cause = context.Cause(ctx)
					if neutral {
						return 0, &hasty{ctx.Err()}
					}
					return 0, ctx.Err()
				})
				if got := errors.Is(cause, holdfast.ErrDeadline); got != (p.Deadline > 0) {
					t.Errorf("that it was the deadline is said to be %v", got)
				}
				want := holdfast.Open
				if neutral && p.Deadline > 0 {
					want = holdfast.Closed
				}
				if got := p.Breaker.State(); got != want {
					t.Errorf("after %v the breaker is %v, want %v", err, got, want)
				}
			})
		}
	}
}

func TestPendingAnswerSettlesAtItsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var events []holdfast.EventKind
		p := holdfast.Policy{
			AttemptTimeout: time.Hour, Deadline: -1,
			Breaker: holdfast.NewBreaker(holdfast.BreakerSettings{Failures: 1}),
			Pace:    holdfast.NewPace(holdfast.Limits{OutputTokensPerMinute: 1000}),
			Observe: func(e holdfast.Event) { events = append(events, e.Kind) },
		}
		open := func(ctx context.Context) (*stream, error) { return &stream{ctx: ctx}, nil }

		s, trace, err := holdfast.Do(t.Context(), &p, open)
		if err != nil || trace.Source != holdfast.Live || trace.Sent() != 1 {
			t.Fatalf("%v, %s", err, trace.Summary())
		}
		if s.ctx.Err() != nil {
			t.Fatal("the attempt's context must outlive Do")
		}
		if d := diff([]holdfast.EventKind{holdfast.EventSend}, events); d != "" {
			t.Error("before the end:", d)
		}
		s.end(holdfast.Tokens{Output: 1000}, nil)
		if s.ctx.Err() == nil {
			t.Error("the attempt's context must end with the stream")
		}
		if d := diff([]holdfast.EventKind{holdfast.EventSend, holdfast.EventAttempt, holdfast.EventEnd}, events); d != "" {
			t.Error("after the end:", d)
		}
		if p.Pace.Allow(time.Now(), holdfast.Tokens{Output: 1}) {
			t.Error("the pace was not settled by the tokens used")
		}

		s, _, _ = holdfast.Do(t.Context(), &p, open)
		s.end(holdfast.Tokens{}, holdfast.ErrCancelled)
		s.end(holdfast.Tokens{}, holdfast.ErrCut)
		if got := p.Breaker.State(); got != holdfast.Closed {
			t.Errorf("a caller who leaves is no failure, and only the first end counts: %v", got)
		}
		s, _, _ = holdfast.Do(t.Context(), &p, open)
		s.end(holdfast.Tokens{}, holdfast.ErrCut)
		if got := p.Breaker.State(); got != holdfast.Open {
			t.Errorf("a cut stream is a failure: %v", got)
		}
	})
}

// A nil answer of a type that could be pending is an answer that is over.
func TestNilPendingAnswer(t *testing.T) {
	got, trace, err := holdfast.Do(t.Context(), nil, func(context.Context) (*stream, error) { return nil, nil })
	if got != nil || err != nil || trace.Outcome() != "answered" {
		t.Errorf("%v, %v, %s", got, err, trace.Summary())
	}
}

// 10,000 calls with random faults, cancellations and panics leave no goroutine (the bubble would not end), no ticket,
// no token and no place in a queue behind.
func TestNothingIsLeftBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const calls = 10_000
		p := holdfast.Policy{
			Deadline: 20 * time.Second, AttemptTimeout: 2 * time.Second,
			// A quarter of the attempts fail, many at a time, which would keep the default breaker open.
			Breaker:  holdfast.NewBreaker(holdfast.BreakerSettings{Failures: -1, Ratio: 0.8, MinCalls: 100}),
			Pace:     holdfast.NewPace(holdfast.Limits{RequestsPerMinute: 60_000, OutputTokensPerMinute: 600_000, Queue: calls}),
			Budget:   holdfast.NewBudget(holdfast.BudgetSettings{Capacity: 10_000}),
			Estimate: func(context.Context) holdfast.Tokens { return holdfast.Tokens{Output: 10} },
			Usage:    func(any) holdfast.Tokens { return holdfast.Tokens{Output: 7} },
		}
		var inOp, answered, failed, panicked atomic.Int64
		var all sync.WaitGroup
		for i := range calls {
			all.Go(func() {
				dice := rand.New(rand.NewPCG(18, uint64(i)))
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if dice.IntN(4) == 0 {
					time.AfterFunc(time.Duration(dice.IntN(5000))*time.Millisecond, cancel)
				}
				defer func() {
					if recover() != nil {
						panicked.Add(1)
					}
				}()
				time.Sleep(time.Duration(dice.IntN(30_000)) * time.Millisecond)
				_, _, err := holdfast.Do(ctx, &p, func(ctx context.Context) (*stream, error) {
					inOp.Add(1)
					defer inOp.Add(-1)
					return randomOutcome(ctx, dice)
				})
				if err != nil {
					failed.Add(1)
				} else {
					answered.Add(1)
				}
			})
		}
		all.Wait()
		t.Logf("answered %d, failed %d, panicked %d", answered.Load(), failed.Load(), panicked.Load())
		if got := answered.Load() + failed.Load() + panicked.Load(); got != calls || answered.Load() < calls/4 || panicked.Load() < calls/20 {
			t.Errorf("%d calls ended", got)
		}
		time.Sleep(time.Minute) // streams end
		if n := inOp.Load(); n != 0 {
			t.Errorf("%d operations still run", n)
		}
		time.Sleep(10 * time.Minute) // buckets refill, cooldowns and holds end
		ok := 0
		for range 10 { // the ramp lets single callers through
			if _, _, err := holdfast.Do(t.Context(), &p, func(context.Context) (int, error) { return 1, nil }); err == nil {
				ok++
			}
		}
		if ok != 10 || p.Breaker.State() != holdfast.Closed {
			t.Errorf("%d of 10 healthy calls succeed afterwards, circuit %v", ok, p.Breaker.State())
		}
		if got := p.Budget.Level(time.Now()); got < 800 {
			t.Errorf("budget refilled to %v only", got)
		}
		time.Sleep(time.Minute)
		now := time.Now()
		if !p.Pace.Allow(now, holdfast.Tokens{Output: 600_000}) {
			t.Error("the output bucket is not full: tokens were lost")
		}
	})
}

func randomOutcome(ctx context.Context, dice *rand.Rand) (*stream, error) {
	select {
	case <-time.After(time.Duration(dice.IntN(900)) * time.Millisecond):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if dice.IntN(1000) == 0 { // rare: each one holds everybody back for a second
		return nil, anthropicError(429, "rate_limit_error", "retry-after", "1")
	}
	switch dice.IntN(12) {
	case 1:
		return nil, anthropicError(529, "overloaded_error")
	case 2:
		return nil, anthropicError(400, "invalid_request_error")
	case 3:
		<-ctx.Done()
		return nil, ctx.Err()
	case 4:
		panic("random")
	case 5:
		return nil, errors.New("something else")
	}
	s := &stream{over: dice.IntN(2) == 0}
	s.later = !s.over
	return s, nil
}
