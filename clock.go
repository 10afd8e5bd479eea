package holdfast

import (
	"context"
	"time"
)

// Clock tells the time and wakes a waiting call. It exists for replay and simulation: production leaves
// [Policy.Clock] nil, which is the real clock, and tests are better served by testing/synctest.
// A Clock must be safe for concurrent use.
type Clock interface {
	// Now returns the current time. It must never run backwards.
	Now() time.Time
	// AfterFunc runs f in its own goroutine once d has passed. Stop ends the timer and reports whether it
	// was still running.
	AfterFunc(d time.Duration, f func()) (stop func() bool)
}

// instant is a point in time in nanoseconds since the process began. A reading of the monotonic clock alone
// costs two thirds of time.Now (measured: 41 ns against 68 ns), and integers make the arithmetic saturate in
// one place.
type instant int64

const (
	never  = instant(1<<63 - 1)
	always = -never
)

var epoch = time.Now()

func instantOf(t time.Time) instant { return instant(t.Sub(epoch)) }

// when reads a time that is given to an exported method: zero is now, by the cheaper clock.
func when(t time.Time) instant {
	if t.IsZero() {
		return readClock(nil)
	}
	return instantOf(t)
}

func (i instant) time() time.Time { return epoch.Add(time.Duration(i)) }

// add saturates: a wait that a server or a configuration made absurdly long must not wrap into the past.
func (i instant) add(d time.Duration) instant {
	sum := i + instant(d)
	switch {
	case d > 0 && sum < i:
		return never
	case d < 0 && sum > i:
		return always
	}
	return sum
}

func (i instant) sub(j instant) time.Duration {
	diff := i - j
	switch {
	case i >= 0 && j < 0 && diff < 0:
		return time.Duration(never)
	case i < 0 && j > 0 && diff > 0:
		return time.Duration(always)
	}
	return time.Duration(diff)
}

func readClock(c Clock) instant {
	if c == nil {
		return instant(time.Since(epoch))
	}
	return instantOf(c.Now())
}

// timer fires once on C, by the given clock or the real one.
func timer(c Clock, d time.Duration) (fired <-chan time.Time, stop func() bool) {
	if c == nil {
		t := time.NewTimer(d)
		return t.C, t.Stop
	}
	ch := make(chan time.Time, 1)
	return ch, c.AfterFunc(d, func() { ch <- time.Time{} })
}

// pause waits for d, for wake, or for the caller to leave, whichever comes first. It reports false when the
// caller left, so that a wait never outlives the one who waits.
func pause(ctx context.Context, c Clock, d time.Duration, wake <-chan struct{}) bool {
	if ctx.Err() != nil {
		return false
	}
	if d <= 0 {
		return true
	}
	fired, stop := timer(c, d)
	defer stop()
	select {
	case <-fired:
	case <-wake:
	case <-ctx.Done():
		return false
	}
	// A timer and a cancellation may be ready together; the caller's wish wins.
	return ctx.Err() == nil
}

// within derives a context that ends after d with the given cause.
func within(ctx context.Context, c Clock, d time.Duration, cause error) (context.Context, context.CancelFunc) {
	if c == nil {
		return context.WithTimeoutCause(ctx, d, cause)
	}
	inner, cancel := context.WithCancelCause(ctx)
	stop := c.AfterFunc(d, func() { cancel(cause) })
	return inner, func() {
		stop()
		cancel(context.Canceled)
	}
}
