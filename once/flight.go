package once

import (
	"context"
	"errors"
)

// flight is an execution that callers of this process share.
type flight struct {
	request string
	cancel  context.CancelCauseFunc
	over    chan struct{}

	callers int  // under the ledger's lock
	left    bool // nobody waits any more; who comes now must not be told of a cancelled execution

	// Written before over is closed.
	outcome outcome
	panics  any // what the effect panicked with; nil when it did not
}

// share runs a job, or joins the execution that is under way. It reports whether the execution was another caller's.
func (l *Ledger) share(ctx context.Context, j *job) (out outcome, shared bool) {
	gone := func() (outcome, bool) {
		return outcome{err: &InProgressError{Key: j.key, Cause: left(ctx)}}, true
	}
	for {
		f, seat := l.board(ctx, j)
		if seat == mismatched {
			return outcome{err: &MismatchError{Key: j.key}}, true
		}
		select {
		case <-f.over:
		case <-ctx.Done():
			if seat == standing || !l.leave(ctx, f) {
				return gone()
			}
			<-f.over
		}
		switch {
		case seat == standing:
			continue
		case f.panics != nil && seat == pilot:
			panic(f.panics) //nolint:forbidigo // the effect's own, which goes on where it would have without the ledger
		}
		out = f.outcome
		if doubt, ok := out.err.(*UnknownError); ok && ctx.Err() != nil && !errors.Is(doubt, ctx.Err()) {
			told := *doubt
			told.Err = errors.Join(doubt.Err, left(ctx))
			out.err = &told
		}
		return out, seat != pilot
	}
}

// seat is what a caller is to a flight.
type seat uint8

const (
	pilot      seat = iota // whose call began it
	passenger              // who gets its outcome
	standing               // who waits for its end, to begin another: everybody else has left it
	mismatched             // who comes with another request
)

// board finds the key's flight, or starts one.
func (l *Ledger) board(ctx context.Context, j *job) (*flight, seat) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f, found := l.flights[j.key]
	switch {
	case !found:
	case mismatch(f.request, j.request):
		return f, mismatched
	case f.left:
		return f, standing
	default:
		f.callers++
		return f, passenger
	}
	own, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	f = &flight{request: j.request, cancel: cancel, over: make(chan struct{}), callers: 1}
	l.flights[j.key] = f
	go l.fly(own, f, j)
	return f, pilot
}

// leave takes a caller off a flight, and reports whether it was the last one. Then the flight is told to end.
func (l *Ledger) leave(ctx context.Context, f *flight) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	f.callers--
	if f.callers > 0 {
		return false
	}
	f.left = true
	f.cancel(left(ctx))
	return true
}

// fly is the goroutine of a flight. It always ends it, also when the effect panics or ends its goroutine.
func (l *Ledger) fly(ctx context.Context, f *flight, j *job) {
	finished := false
	defer func() {
		if !finished {
			f.panics = recover()
			if f.outcome = j.left; j.left.err == nil && j.left.data == nil { // it was not the effect that panicked
				f.outcome = outcome{err: &UnknownError{Key: j.key, Since: l.now(), Why: whyNoReturn}}
			}
		}
		f.cancel(nil)
		l.mu.Lock()
		delete(l.flights, j.key)
		l.mu.Unlock()
		close(f.over)
	}()
	f.outcome = l.carry(ctx, j)
	finished = true
}
