package provider

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

const (
	// credentialTime is how long credentials may take to come.
	credentialTime = 10 * time.Second
	// credentialShare is which part of the time that a request has left is spent on waiting for them: the rest is for the next target.
	credentialShare = 3
	// lateTime is how long it is remembered that none came in time, so that not every request waits for them again.
	lateTime = 30 * time.Second
	// leastLesson is the shortest wait that is remembered: who has no time to wait learns nothing for the others.
	leastLesson = 500 * time.Millisecond
)

var (
	errNotCredentials = errors.New("the file holds no Google credentials")    // and is not quoted
	errPanicked       = errors.New("who was to give them panicked")           // with what is not shown: it may be a key
	errLate           = fmt.Errorf("none came: %w", context.DeadlineExceeded) // a while ago
)

// fetched is what how returns, within the share of the request's time. A panic of how is an error. Who is too late is left behind with
// a context of his own, so that the next request finds what he brought; until then nobody waits for him again.
func fetched[T any](ctx context.Context, s Settings, how func(context.Context) (T, error)) (T, error) {
	var none T
	if err := ctx.Err(); err != nil {
		return none, err
	}
	if s.late.recent(time.Now()) {
		return none, s.noCredentials(errLate)
	}
	given := shareOf(ctx, time.Now())
	own, cancel := context.WithTimeout(ctx, given)
	defer cancel()
	type outcome struct {
		value T
		err   error
	}
	done := make(chan outcome, 1)
	go func() {
		aside, end := context.WithTimeout(context.Background(), credentialTime)
		defer end()
		value, err := calmly(func() (T, error) { return how(aside) })
		if err == nil {
			s.late.over()
		}
		done <- outcome{value, err}
	}()
	var o outcome
	select {
	case o = <-done:
	case <-own.Done():
		o.err = own.Err()
	}
	var known *Error
	switch {
	case o.err == nil:
		return o.value, nil
	case ctx.Err() != nil:
		return none, ctx.Err()
	case own.Err() != nil:
		if given >= leastLesson {
			s.late.began(time.Now())
		}
		return none, s.noCredentials(fmt.Errorf("none came within %v: %w", given.Round(time.Millisecond), context.DeadlineExceeded))
	case errors.As(o.err, &known):
		return none, o.err
	}
	return none, s.noCredentials(o.err)
}

// calmly turns a panic, and an end of the goroutine, into an error.
func calmly[T any](do func() (T, error)) (value T, err error) {
	returned := false
	defer func() {
		if !returned {
			_ = recover()
			err = errPanicked
		}
	}()
	value, err = do()
	returned = true
	return value, err
}

// shareOf is how long a request may wait for credentials.
func shareOf(ctx context.Context, now time.Time) time.Duration {
	if end, ok := ctx.Deadline(); ok {
		return min(credentialTime, end.Sub(now)/credentialShare)
	}
	return credentialTime
}

// late remembers that credentials did not come in time.
type late struct {
	mu    sync.Mutex
	until time.Time
}

func (l *late) recent(now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return now.Before(l.until)
}

func (l *late) began(now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.until = now.Add(lateTime)
}

func (l *late) over() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.until = time.Time{}
}

// held keeps what was fetched once; a failure is not kept, for it may pass.
type held[T any] struct {
	fetch func(context.Context) (T, error)

	gate  gate
	made  bool
	value T
}

// get returns what is held, or fetches it. Who comes meanwhile waits, as long as his context allows.
func (h *held[T]) get(ctx context.Context) (T, error) {
	var none T
	if err := h.gate.enter(ctx); err != nil {
		return none, err
	}
	defer h.gate.leave()
	if h.made {
		return h.value, nil
	}
	value, err := h.fetch(ctx)
	if err != nil {
		return none, err
	}
	h.value, h.made = value, true
	return value, nil
}

// endOf is the end of a context alone: who watches the connections of a request must not take those of a token for them.
type endOf struct{ context.Context }

// Value returns nil.
func (endOf) Value(any) any { return nil }

// gate lets one through at a time.
type gate struct {
	once sync.Once
	free chan struct{}
}

func (g *gate) enter(ctx context.Context) error {
	g.once.Do(func() { g.free = make(chan struct{}, 1) })
	select {
	case g.free <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (g *gate) leave() { <-g.free }
