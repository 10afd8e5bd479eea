package bench_test

import (
	"context"
	"testing"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/failsafe-go/failsafe-go"
	"github.com/failsafe-go/failsafe-go/budget"
	"github.com/failsafe-go/failsafe-go/circuitbreaker"
	"github.com/failsafe-go/failsafe-go/ratelimiter"
	"github.com/failsafe-go/failsafe-go/retrypolicy"
	"github.com/failsafe-go/failsafe-go/timeout"

	"holdfast"
)

const (
	wanted  = 42
	patient = 5 * time.Minute // the caller's deadline
	own     = time.Minute     // the policy's
)

// success is a call that works at its first attempt, with every protection on and a deadline that the caller set.
var success = work{"success path", []contender{
	{"holdfast", func(b *testing.B) { do(b, protected()) }},
	{"failsafe-go", failsafeSuccess},
	{"cenkalti/backoff, retry alone", backoffSuccess},
	{"no protection", func(b *testing.B) {
		ctx := callersContext(b)
		repeat(b, func() error { return right(answer(ctx)) })
	}},
}}

// ownDeadline is the same call under a policy that has a time limit of its own, which costs a context and a timer.
var ownDeadline = work{"success path, time limit of the policy", []contender{
	{"holdfast", func(b *testing.B) {
		p := protected()
		p.Deadline = own
		do(b, p)
	}},
	{"failsafe-go", failsafeOwnDeadline},
	{"context.WithTimeout alone", func(b *testing.B) {
		ctx := callersContext(b)
		repeat(b, func() error {
			within, cancel := context.WithTimeout(ctx, own)
			defer cancel()
			return right(answer(within))
		})
	}},
}}

func answer(context.Context) (int, error) { return wanted, nil }

func right(got int, err error) error {
	if err == nil && got != wanted {
		return errAnswer
	}
	return err
}

func callersContext(b *testing.B) context.Context {
	ctx, cancel := context.WithTimeout(b.Context(), patient)
	b.Cleanup(cancel)
	return ctx
}

func protected() *holdfast.Policy {
	return &holdfast.Policy{
		Breaker: holdfast.NewBreaker(holdfast.BreakerSettings{}),
		Pace:    holdfast.NewPace(holdfast.Limits{RequestsPerMinute: plenty}),
		Budget:  holdfast.NewBudget(holdfast.BudgetSettings{}),
	}
}

func do(b *testing.B, p *holdfast.Policy) {
	ctx := callersContext(b)
	repeat(b, func() error {
		got, _, err := holdfast.Do(ctx, p, answer)
		return right(got, err)
	})
}

// composed nests failsafe-go's policies in the order in which Holdfast works: retries outermost, the breaker around
// nothing but the sending.
func composed(outermost ...failsafe.Policy[int]) failsafe.Executor[int] {
	return failsafe.With(append(outermost,
		retrypolicy.NewBuilder[int]().WithMaxAttempts(4).WithBackoff(500*time.Millisecond, 8*time.Second).WithBudget(budget.New()).Build(),
		ratelimiter.NewBursty[int](plenty, time.Minute),
		circuitbreaker.NewBuilder[int]().WithFailureRateThreshold(0.5, 10, time.Minute).WithDelay(20*time.Second).Build(),
	)...)
}

// Get is given nothing, so that failsafe-go need not copy its execution: the operation has the caller's context anyway.
func failsafeSuccess(b *testing.B) {
	ctx, executor := callersContext(b), composed()
	operation := func() (int, error) { return answer(ctx) }
	repeat(b, func() error { return right(executor.WithContext(ctx).Get(operation)) })
}

// Here the operation must have the execution's context, or the time limit could not stop it.
func failsafeOwnDeadline(b *testing.B) {
	ctx, executor := callersContext(b), composed(timeout.New[int](own))
	operation := func(e failsafe.Execution[int]) (int, error) { return answer(e.Context()) }
	repeat(b, func() error { return right(executor.WithContext(ctx).GetWithExecution(operation)) })
}

func backoffSuccess(b *testing.B) {
	ctx := callersContext(b)
	operation := func() (int, error) { return answer(ctx) }
	repeat(b, func() error { return right(backoff.Retry(ctx, operation, backoff.WithMaxTries(4))) })
}
