package bench_test

import (
	"testing"
	"time"

	"github.com/failsafe-go/failsafe-go/circuitbreaker"
	"github.com/sony/gobreaker/v2"

	"holdfast"
)

// breakerRead is a breaker that is asked and told of a success. All but failsafe-go's rule of failures in a row need the
// time, and read it themselves.
var breakerRead = work{"breaker, clock read", []contender{
	{"holdfast", func(b *testing.B) { breaker(b, unread) }},
	{"gobreaker, 1m window", func(b *testing.B) {
		execute(b, gobreaker.Settings{Interval: time.Minute, BucketPeriod: 5 * time.Second})
	}},
	{"gobreaker, in a row", func(b *testing.B) { execute(b, gobreaker.Settings{}) }},
	{"failsafe-go, 1m window", func(b *testing.B) {
		permit(b, circuitbreaker.NewBuilder[int]().WithFailureRateThreshold(0.5, 10, time.Minute).Build())
	}},
	{"failsafe-go, in a row", func(b *testing.B) {
		permit(b, circuitbreaker.NewBuilder[int]().WithFailureThreshold(5).Build())
	}},
}}

// breakerGiven is for callers who have the time already, as a call with several protections does.
var breakerGiven = work{"breaker, time given", []contender{
	{"holdfast", func(b *testing.B) {
		now := time.Now()
		breaker(b, func() time.Time { return now })
	}},
}}

func breaker(b *testing.B, clock func() time.Time) {
	breaker := holdfast.NewBreaker(holdfast.BreakerSettings{})
	repeat(b, func() error {
		now := clock()
		ticket, _, ok := breaker.Allow(now)
		if !ok {
			return errRefused
		}
		breaker.Settle(now, ticket, holdfast.Success)
		return nil
	})
}

func execute(b *testing.B, s gobreaker.Settings) {
	breaker := gobreaker.NewCircuitBreaker[int](s)
	operation := func() (int, error) { return wanted, nil }
	repeat(b, func() error { return right(breaker.Execute(operation)) })
}

func permit(b *testing.B, breaker circuitbreaker.CircuitBreaker[int]) {
	repeat(b, func() error {
		if !breaker.TryAcquirePermit() {
			return errRefused
		}
		breaker.RecordSuccess()
		return nil
	})
}
