package holdfast_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"holdfast"
)

// replay is a clock that stands still until a timer is all that anybody waits for, and then jumps to it.
type replay struct {
	mu     sync.Mutex
	now    time.Time
	timers []time.Duration // as they were set
}

func (r *replay) Now() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.now
}

func (r *replay) AfterFunc(d time.Duration, f func()) (stop func() bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.timers = append(r.timers, d)
	if d == time.Minute { // the attempt's own limit, which nobody reaches here
		return func() bool { return true }
	}
	r.now = r.now.Add(d)
	go f()
	return func() bool { return false }
}

// A given clock and given dice make a call repeat to the nanosecond, in no time.
func TestClockAndDiceAreTheCallers(t *testing.T) {
	clock := &replay{now: time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)}
	p := holdfast.Policy{Clock: clock, Dice: func() float64 { return 0.25 }, AttemptTimeout: time.Minute, Deadline: time.Hour, MaxServerWait: time.Hour}
	script := []error{anthropicError(429, "rate_limit_error", "retry-after", "1800"), anthropicError(529, "overloaded_error")}
	var sent []time.Time
	start := clock.now
	_, trace, err := holdfast.Do(t.Context(), &p, func(context.Context) (string, error) {
		sent = append(sent, clock.Now())
		if n := len(sent); n <= len(script) {
			return "", script[n-1]
		}
		return "answer", nil
	})
	if err != nil {
		t.Fatal(err)
	}
	first, second := 30*time.Minute+125*time.Millisecond, 250*time.Millisecond
	if want := []time.Time{start, start.Add(first), start.Add(first + second)}; !slices.EqualFunc(sent, want, time.Time.Equal) {
		t.Errorf("sent at %v, want %v", sent, want)
	}
	if want := []time.Duration{time.Minute, first, time.Minute, second, time.Minute}; !slices.Equal(clock.timers, want) {
		t.Errorf("timers %v, want %v", clock.timers, want)
	}
	if trace.Elapsed != first+second || !trace.Started().Equal(start) {
		t.Errorf("trace: started %v, took %v", trace.Started(), trace.Elapsed)
	}
}

// An attempt's limit is kept by the given clock too.
func TestClockEndsAttempts(t *testing.T) {
	clock := &replay{now: time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)}
	p := holdfast.Policy{Clock: clock, Attempts: -1, AttemptTimeout: time.Second}
	_, _, err := holdfast.Do(t.Context(), &p, hang)
	own := wantReason(t, err, holdfast.ErrAttempts)
	if own.Elapsed != time.Second || own.Verdict.Rule != "attempt-timeout" || !errors.Is(err, context.Canceled) {
		t.Errorf("%v: took %v by rule %s", err, own.Elapsed, own.Verdict.Rule)
	}
}
