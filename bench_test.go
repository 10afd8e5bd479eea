package holdfast_test

// What the protections cost when nothing fails, which is nearly always. How that compares with other libraries is
// measured in bench/, a module of its own because it needs them.

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"holdfast"
)

// unlimited never makes a call wait: one request per nanosecond.
var unlimited = holdfast.Limits{RequestsPerMinute: int(time.Minute), InputTokensPerMinute: int(time.Minute), OutputTokensPerMinute: int(time.Minute)}

// protected is a policy with all protections on.
func protected() *holdfast.Policy {
	return &holdfast.Policy{
		Breaker:  holdfast.NewBreaker(holdfast.BreakerSettings{}),
		Pace:     holdfast.NewPace(unlimited),
		Budget:   holdfast.NewBudget(holdfast.BudgetSettings{}),
		Estimate: func(context.Context) holdfast.Tokens { return holdfast.Tokens{Input: 2, Output: 1} },
	}
}

// withinMinutes is a context as a server's handler has it: with a deadline of its own.
func withinMinutes(tb testing.TB) context.Context {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), 5*time.Minute)
	tb.Cleanup(cancel)
	return ctx
}

func answer(context.Context) (int, error) { return 42, nil }

func BenchmarkDo(b *testing.B) {
	b.Run("bare", func(b *testing.B) { benchmarkDo(b, b.Context(), &holdfast.Policy{Deadline: -1}) })
	b.Run("all protections", func(b *testing.B) { benchmarkDo(b, withinMinutes(b), protected()) })
	b.Run("own deadline", func(b *testing.B) { benchmarkDo(b, b.Context(), &holdfast.Policy{Deadline: time.Minute}) })
}

func benchmarkDo(b *testing.B, ctx context.Context, p *holdfast.Policy) {
	b.ReportAllocs()
	for b.Loop() {
		if got, _, err := holdfast.Do(ctx, p, answer); got != 42 || err != nil {
			b.Fatal(got, err)
		}
	}
}

func BenchmarkDoParallel(b *testing.B) {
	ctx, p := withinMinutes(b), protected()
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if got, _, err := holdfast.Do(ctx, p, answer); got != 42 || err != nil {
				b.Error(got, err)
			}
		}
	})
}

// unread leaves the reading of the clock to the one who is asked; others have the time already.
func unread() time.Time { return time.Time{} }

func BenchmarkBreaker(b *testing.B) {
	b.Run("clock read", func(b *testing.B) { benchmarkBreaker(b, unread) })
	b.Run("time given", func(b *testing.B) {
		now := time.Now()
		benchmarkBreaker(b, func() time.Time { return now })
	})
}

func benchmarkBreaker(b *testing.B, clock func() time.Time) {
	breaker := holdfast.NewBreaker(holdfast.BreakerSettings{})
	b.ReportAllocs()
	for b.Loop() {
		now := clock()
		ticket, _, ok := breaker.Allow(now)
		if !ok {
			b.Fatal("refused")
		}
		breaker.Settle(now, ticket, holdfast.Success)
	}
}

func BenchmarkPace(b *testing.B) {
	b.Run("clock read", func(b *testing.B) { benchmarkPace(b, unread) })
	b.Run("time given", func(b *testing.B) {
		now := time.Now()
		benchmarkPace(b, func() time.Time { now = now.Add(time.Nanosecond); return now })
	})
}

func benchmarkPace(b *testing.B, clock func() time.Time) {
	pace := holdfast.NewPace(holdfast.Limits{RequestsPerMinute: int(time.Minute)})
	b.ReportAllocs()
	for b.Loop() {
		if !pace.Allow(clock(), holdfast.Tokens{}) {
			b.Fatal("refused")
		}
	}
}

// A budget is asked only where something failed: what is left is the price of asking.
func BenchmarkBudget(b *testing.B) {
	budget, now := holdfast.NewBudget(holdfast.BudgetSettings{}), time.Now()
	b.ReportAllocs()
	for b.Loop() {
		if budget.Level(now) != 100 {
			b.Fatal("not full")
		}
	}
}

// throttled is an error as the SDKs have it.
type throttled struct {
	StatusCode int
	Response   *http.Response
}

func (*throttled) Error() string { return "429" }

func (*throttled) RawJSON() string {
	return `{"type":"error","error":{"type":"rate_limit_error","message":"This request would exceed your rate limit"},"request_id":"req_1"}`
}

func BenchmarkJudge(b *testing.B) {
	api := &throttled{StatusCode: http.StatusTooManyRequests, Response: &http.Response{Header: http.Header{
		"Retry-After": {"3"}, "Request-Id": {"req_1"}, "Content-Type": {"application/json"},
	}}}
	for _, row := range []struct {
		name string
		err  error
		want holdfast.Kind
	}{
		{"an API error", api, holdfast.Throttled},
		{"a timeout", context.DeadlineExceeded, holdfast.Broken},
		{"an unknown error", errors.New("x"), holdfast.Terminal},
	} {
		b.Run(row.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if v := holdfast.Judge(row.err); v.Kind != row.want {
					b.Fatalf("judged %v", v.Kind)
				}
			}
		})
	}
}

func TestSuccessPathAllocatesNothing(t *testing.T) {
	ctx, p := withinMinutes(t), protected()
	used := *p
	used.Usage = func(any) holdfast.Tokens { return holdfast.Tokens{Input: 1, Output: 1} }
	watched := *p
	seen := 0
	watched.Observe = func(holdfast.Event) { seen++ }
	type message struct{}
	kept, breaker, pace := &message{}, holdfast.NewBreaker(holdfast.BreakerSettings{}), holdfast.NewPace(unlimited)
	for _, row := range []struct {
		name string
		call func() error
	}{
		{"no protection", func() error { return ended(holdfast.Do(ctx, nil, answer)) }},
		{"all protections", func() error { return ended(holdfast.Do(ctx, p, answer)) }},
		{"usage settled", func() error {
			return ended(holdfast.Do(ctx, &used, func(context.Context) (*message, error) { return kept, nil }))
		}},
		{"observed", func() error { return ended(holdfast.Do(ctx, &watched, answer)) }},
		{"an answer of some size", func() error {
			return ended(holdfast.Do(ctx, p, func(context.Context) ([64]string, error) { return [64]string{}, nil }))
		}},
		{"breaker alone", func() error {
			now := time.Now()
			ticket, _, ok := breaker.Allow(now)
			breaker.Settle(now, ticket, holdfast.Success)
			return refusal(ok)
		}},
		{"pace alone", func() error {
			return refusal(pace.Allow(time.Now(), holdfast.Tokens{Input: 1, Output: 1}))
		}},
	} {
		t.Run(row.name, func(t *testing.T) {
			allocations := testing.AllocsPerRun(1000, func() {
				if err := row.call(); err != nil {
					t.Fatal(err)
				}
			})
			if allocations != 0 {
				t.Errorf("%v allocations, want none", allocations)
			}
		})
	}
	if seen == 0 {
		t.Error("nothing was observed")
	}
}

func ended[T any](_ T, _ holdfast.Trace, err error) error { return err }

func refusal(ok bool) error {
	if !ok {
		return holdfast.ErrOpen
	}
	return nil
}
