package holdfast_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"holdfast"
)

// overloaded stands for the error of an SDK: anything with a StatusCode is judged by it.
type overloaded struct{}

func (overloaded) Error() string   { return "529 overloaded" }
func (overloaded) StatusCode() int { return 529 }

func ExampleDo() {
	policy := holdfast.Policy{
		Deadline: 30 * time.Second,
		Backoff:  holdfast.Backoff{Base: time.Millisecond},
		Breaker:  holdfast.NewBreaker(holdfast.BreakerSettings{}),
		Budget:   holdfast.NewBudget(holdfast.BudgetSettings{}),
	}
	attempts := 0
	answer, trace, err := holdfast.Do(context.Background(), &policy, func(context.Context) (string, error) {
		if attempts++; attempts < 3 {
			return "", overloaded{}
		}
		return "blue light scatters more", nil
	})
	fmt.Println(answer, err)
	fmt.Println(trace.Source, trace.Sent(), "attempts")
	// Output:
	// blue light scatters more <nil>
	// live 3 attempts
}

func ExampleDo_saved() {
	policy := holdfast.Policy{Attempts: 2, Backoff: holdfast.Backoff{Base: time.Millisecond}}
	answer, trace, err := holdfast.Do(context.Background(), &policy,
		func(context.Context) (string, error) { return "", overloaded{} },
		holdfast.SavedAnswers[string]{Load: func(_ context.Context, cause error) (string, bool) {
			return "the answer of yesterday", errors.Is(cause, holdfast.ErrAttempts)
		}})
	fmt.Println(answer, err)
	fmt.Println(trace.Source)
	// Output:
	// the answer of yesterday <nil>
	// saved
}

func ExampleDo_targets() {
	policy := holdfast.Policy{Attempts: -1, Targets: []holdfast.Target{{Name: "large", Model: "claude-opus-5-5"}, {Name: "small", Model: "claude-sonnet-5-5"}}}
	answer, trace, err := holdfast.Do(context.Background(), &policy, func(ctx context.Context) (string, error) {
		target, _ := holdfast.TargetOf(ctx)
		if target.Name == "large" {
			return "", overloaded{}
		}
		return "answer of " + target.Model, nil
	})
	fmt.Println(answer, err)
	fmt.Println(trace.Source, trace.Target())
	// Output:
	// answer of claude-sonnet-5-5 <nil>
	// fallback small
}

func ExampleError() {
	breaker := holdfast.NewBreaker(holdfast.BreakerSettings{Failures: 1, Cooldown: time.Hour})
	policy := holdfast.Policy{Attempts: -1, Breaker: breaker}
	ask := func() error {
		_, _, err := holdfast.Do(context.Background(), &policy, func(context.Context) (string, error) { return "", overloaded{} })
		return err
	}
	_ = ask() // opens the circuit
	var e *holdfast.Error
	if err := ask(); errors.As(err, &e) && errors.Is(err, holdfast.ErrOpen) {
		fmt.Println("attempts:", e.Attempts)
		fmt.Println("hint:", e.Hint())
	}
	// Output:
	// attempts: 0
	// hint: the upstream failed repeatedly and is left alone; ask again after the wait
}

func ExampleJudge() {
	v := holdfast.Judge(fmt.Errorf("asking: %w", overloaded{}))
	fmt.Println(v.Kind, v.Status)
	fmt.Println(holdfast.Judge(errors.New("json: unsupported type")).Kind)
	// Output:
	// overloaded 529
	// terminal
}

func ExamplePace() {
	pace := holdfast.NewPace(holdfast.Limits{RequestsPerMinute: 60, Burst: time.Second})
	now := time.Now()
	fmt.Println(pace.Allow(now, holdfast.Tokens{}))
	fmt.Println(pace.Allow(now, holdfast.Tokens{}))
	fmt.Println(pace.Allow(now.Add(time.Second), holdfast.Tokens{}))
	// Output:
	// true
	// false
	// true
}

func ExampleBreaker() {
	breaker := holdfast.NewBreaker(holdfast.BreakerSettings{Failures: 2, Cooldown: 20 * time.Second})
	now := time.Now()
	for range 2 {
		ticket, _, _ := breaker.Allow(now)
		breaker.Settle(now, ticket, holdfast.Failure)
	}
	_, wait, ok := breaker.Allow(now)
	fmt.Println(breaker.State(), ok, wait)
	probe, _, _ := breaker.Allow(now.Add(wait))
	breaker.Settle(now.Add(wait), probe, holdfast.Success)
	fmt.Println(breaker.State())
	// Output:
	// open false 20s
	// closed
}
