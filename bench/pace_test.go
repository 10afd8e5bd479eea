package bench_test

import (
	"testing"
	"time"

	"github.com/failsafe-go/failsafe-go/ratelimiter"
	"golang.org/x/time/rate"

	"holdfast"
)

// plenty is a limit per minute that is never reached: one in each nanosecond.
const plenty = 60_000_000_000

// paceRead is permission that can be had at once.
var paceRead = work{"pace, clock read", []contender{
	{"holdfast", func(b *testing.B) { pace(b, unread) }},
	{"x/time/rate", func(b *testing.B) { limit(b, (*rate.Limiter).Allow) }},
	{"failsafe-go, bursty", func(b *testing.B) { acquire(b, ratelimiter.NewBursty[int](plenty, time.Minute)) }},
	{"failsafe-go, smooth", func(b *testing.B) { acquire(b, ratelimiter.NewSmooth[int](plenty, time.Minute)) }},
}}

var paceGiven = work{"pace, time given", []contender{
	{"holdfast", func(b *testing.B) { pace(b, passing()) }},
	{"x/time/rate", func(b *testing.B) {
		clock := passing()
		limit(b, func(l *rate.Limiter) bool { return l.AllowN(clock(), 1) })
	}},
}}

// unread leaves the reading of the clock to the one who is asked.
func unread() time.Time { return time.Time{} }

// passing is a clock that costs next to nothing and goes on.
func passing() func() time.Time {
	now := time.Now()
	return func() time.Time {
		now = now.Add(time.Nanosecond)
		return now
	}
}

func pace(b *testing.B, clock func() time.Time) {
	pace := holdfast.NewPace(holdfast.Limits{RequestsPerMinute: plenty})
	repeat(b, func() error { return permitted(pace.Allow(clock(), holdfast.Tokens{})) })
}

func limit(b *testing.B, ask func(*rate.Limiter) bool) {
	limiter := rate.NewLimiter(rate.Every(time.Nanosecond), plenty)
	repeat(b, func() error { return permitted(ask(limiter)) })
}

func acquire(b *testing.B, limiter ratelimiter.RateLimiter[int]) {
	repeat(b, func() error { return permitted(limiter.TryAcquirePermit()) })
}

func permitted(ok bool) error {
	if !ok {
		return errRefused
	}
	return nil
}
