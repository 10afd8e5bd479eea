package once

import (
	"context"
	"errors"
	"fmt"
	"time"

	"holdfast"
)

// carry brings one execution to its end: it looks at the record, and does what decide says.
func (l *Ledger) carry(ctx context.Context, j *job) outcome {
	for pause := firstPause; ; {
		r, found, err := l.store.Load(ctx, j.key)
		if err != nil {
			return l.unread(ctx, err)
		}
		f := facts{
			record: r, found: found, now: l.now(), request: j.request,
			replays: j.effect.Replays, keyLife: j.effect.KeyLife, lookups: j.lookup != nil,
		}
		what, why := decide(&f)
		switch what {
		case refuse:
			return outcome{err: &MismatchError{Key: j.key}}
		case give:
			return recorded(&r)
		case report:
			return outcome{err: unknown(&r, why, nil)}
		case wait:
			if j.effect.NoWait {
				return outcome{err: &InProgressError{Key: j.key, Until: r.Lease}}
			}
			if !sleep(ctx, min(pause, r.Lease.Sub(f.now))) {
				return outcome{err: &InProgressError{Key: j.key, Until: r.Lease, Cause: left(ctx)}}
			}
			pause = min(2*pause, lastPause)
		case lookUp:
			if out, ended := l.ask(ctx, j, &r, why); ended {
				return out
			}
		case start:
			next := begun(&f, j.key, newRun(), j.effect.Limit)
			ok, err := l.swap(ctx, j.key, r.Revision, &next)
			if err != nil {
				return l.unstarted(ctx, &next, err)
			}
			if ok {
				return l.perform(ctx, j, next)
			}
		}
	}
}

// unread is the end of a call whose record could not be read.
func (l *Ledger) unread(ctx context.Context, err error) outcome {
	if ctx.Err() != nil {
		return outcome{err: left(ctx)}
	}
	return outcome{err: storeError("read", err)}
}

// unstarted is the end of a call whose start could not be recorded, and so was not made. Where everybody left in the middle of the
// write it may be recorded all the same; then it is taken back.
func (l *Ledger) unstarted(ctx context.Context, next *Record, err error) outcome {
	if ctx.Err() == nil {
		return outcome{err: storeError("start", err)}
	}
	if !next.Doubt {
		_ = l.free(ctx, next) // if that fails too, the key is in doubt, which is never wrong
	}
	return outcome{err: left(ctx)}
}

// recorded is the outcome that a record has.
func recorded(r *Record) outcome {
	out := outcome{data: r.Outcome, source: Recorded, starts: r.Starts}
	if r.Unkept != "" {
		out.data, out.err = nil, &OutcomeError{Key: r.Key, Why: r.Unkept}
	}
	return out
}

func unknown(r *Record, why string, err error) *UnknownError {
	return &UnknownError{Key: r.Key, Since: r.First, Starts: r.Starts, Why: why, Err: err}
}

// ask looks up what became of a key in doubt. If the far side says that it did nothing, the key is freed and the execution
// goes on.
func (l *Ledger) ask(ctx context.Context, j *job, r *Record, why string) (out outcome, ended bool) {
	j.left = outcome{err: unknown(r, why, nil)}
	value, happened, err := j.lookup(ctx)
	if err != nil {
		return outcome{err: unknown(r, why+", and the far side could not be asked", err)}, true
	}
	if happened {
		out := l.record(ctx, j, *r, value)
		if out.source == Ran {
			out.source = LookedUp
		}
		return out, true
	}
	if _, err := l.swap(ctx, j.key, r.Revision, nil); err != nil {
		return outcome{err: storeError("free", err)}, true
	}
	return outcome{}, false
}

// perform runs the effect of a start that is recorded, and records how it ended.
func (l *Ledger) perform(ctx context.Context, j *job, r Record) (out outcome) {
	limit := timeLeft(r.First, l.now(), j.effect.Limit, j.effect.KeyLife)
	own, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	returned := false
	defer func() {
		if !returned { // a panic, which goes on, or the end of the goroutine
			j.left = l.doubt(ctx, j, &r, whyNoReturn, nil)
		}
	}()
	value, doubt, err := j.attempts(own, r.Doubt)
	returned = true
	switch {
	case err == nil:
		return l.record(ctx, j, r, value)
	case !doubt:
		if failed := l.free(ctx, &r); failed != nil {
			err = errors.Join(err, failed)
		}
		return outcome{err: err}
	}
	return l.doubt(ctx, j, &r, whyOf(own, err), err)
}

const whyNoReturn = "the effect panicked or ended its goroutine"

// whyOf says in words of ours what left the doubt. ctx is that of the start.
func whyOf(ctx context.Context, err error) string {
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return "its time ran out"
	case ctx.Err() != nil:
		return "nobody waited for it any more"
	}
	v := holdfast.Judge(err)
	if call := (*holdfast.Error)(nil); errors.As(err, &call) {
		v = call.Verdict
	}
	if v.Status != 0 {
		return fmt.Sprintf("its last answer was %d", v.Status)
	}
	return "it failed: " + v.Rule
}

// record writes that the effect happened. Of two owners the first one to record wins, and its outcome is everybody's.
func (l *Ledger) record(ctx context.Context, j *job, r Record, value any) outcome {
	next := r.done(l.now(), j.effect.Keep)
	next.Outcome, next.Unkept = l.encode(value)
	settled, err := l.write(ctx, r, &next)
	out := outcome{value: value, data: next.Outcome, happened: true, starts: next.Starts}
	if next.Unkept != "" {
		out.err = &OutcomeError{Key: j.key, Why: next.Unkept}
	}
	switch {
	case err != nil:
		out.err = storeError("record", err)
	case settled.Revision != next.Revision:
		return recorded(&settled)
	}
	return out
}

// doubt writes that it is not known whether the effect happened, and asks the far side if that is possible.
func (l *Ledger) doubt(ctx context.Context, j *job, r *Record, why string, cause error) outcome {
	next := r.unknown(l.now(), why)
	settled, err := l.write(ctx, *r, &next)
	if err == nil && settled.State == Done {
		return recorded(&settled)
	}
	next.Starts = max(next.Starts, settled.Starts) // also those that another owner made meanwhile
	out := outcome{err: unknown(&next, why, cause)}
	if err == nil && j.lookup != nil && ctx.Err() == nil && cause != nil {
		found, ended := l.ask(ctx, j, &next, why)
		if !ended {
			return outcome{err: cause} // the far side says that nothing happened
		}
		return found
	}
	return out
}

// free removes the record of a start that certainly did nothing.
func (l *Ledger) free(ctx context.Context, r *Record) error {
	_, err := l.write(ctx, *r, nil)
	return storeError("free", err)
}

// write replaces the record of a run by how it ended, and keeps at it for a while when the store fails: the effect is over, and
// what is not recorded now is in doubt. It goes on after the callers have left. It returns the record that holds in the end.
func (l *Ledger) write(ctx context.Context, mine Record, next *Record) (Record, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTime)
	defer cancel()
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		ok, err := l.swap(ctx, mine.Key, mine.Revision, next)
		if ok {
			return orNone(next), nil
		}
		if err == nil {
			var now Record
			var found bool
			now, found, err = l.store.Load(ctx, mine.Key)
			happened := next != nil && next.State == Done
			switch {
			case err != nil:
			case found && now.State == Done, !happened:
				return now, nil // another owner knows more, or as much
			default:
				mine.Revision = now.Revision // what happened holds against anybody's doubt
				next.follow(&now)
				continue
			}
		}
		if errors.Is(err, ErrCorrupt) || errors.Is(err, ErrClosed) || !sleep(ctx, pause) {
			return Record{}, err
		}
	}
}

func orNone(r *Record) Record {
	if r == nil {
		return Record{}
	}
	return *r
}

// swap is the store's, but for a write whose acknowledgement was lost: the record tells.
func (l *Ledger) swap(ctx context.Context, key, revision string, next *Record) (bool, error) {
	ok, err := l.store.Swap(ctx, key, revision, next)
	if err == nil || ctx.Err() != nil {
		return ok, err
	}
	now, found, failed := l.store.Load(ctx, key)
	if failed == nil && (next == nil && !found || next != nil && found && now.Revision == next.Revision) {
		return true, nil
	}
	return false, err
}

// sleep waits, and reports whether the context let it.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(max(d, time.Millisecond))
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}
