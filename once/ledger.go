package once

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"iter"
	"sync"
	"time"
)

// Options of a ledger. The zero value is useful.
type Options struct {
	// MaxOutcome is the largest outcome in bytes of JSON that is recorded; see [OutcomeError]. Default: 1 MiB. Negative: no
	// limit.
	MaxOutcome int
	// Now is the clock that leases, key lives and expiry are told by. Processes that share a store must agree on the time
	// to within a few seconds. Default: time.Now.
	Now func() time.Time
}

const defaultMaxOutcome = 1 << 20

const (
	// recordTime is how long writing an outcome is tried when the store fails, and the part of a lease that is left for it.
	recordTime = 10 * time.Second
	firstPause = 5 * time.Millisecond // between looks at a record that another process holds, doubling
	lastPause  = time.Second
	page       = 100 // records that are listed at once
)

// Ledger is a store, and the effects that run in this process. One ledger serves all effects that use its store, from any
// number of goroutines; two ledgers on one store are safe, but do not share executions.
type Ledger struct {
	store      Store
	now        func() time.Time
	maxOutcome int

	mu      sync.Mutex
	flights map[string]*flight
}

// New returns a ledger on a store. It never reads or writes, and never closes the store: that is its opener's to do, after the last
// call of Do has returned.
func New(store Store, o Options) *Ledger {
	l := &Ledger{store: store, now: o.Now, maxOutcome: o.MaxOutcome, flights: map[string]*flight{}}
	if l.now == nil {
		l.now = time.Now
	}
	if l.maxOutcome == 0 {
		l.maxOutcome = defaultMaxOutcome
	}
	return l
}

// Record returns what is recorded of a key, and false when there is nothing. It never waits for an effect, and never changes
// the record.
func (l *Ledger) Record(ctx context.Context, key string) (Record, bool, error) {
	if err := checkKey(key); err != nil {
		return Record{}, false, err
	}
	r, found, err := l.store.Load(ctx, key)
	return r, found, storeError("read", err)
}

// Doubtful gives every record whose effect may or may not have happened: those that are [Unknown], and those that were started
// by somebody who is gone. It reads the store in pages, and ends with an error if that fails. It never gives a record whose effect
// still runs, and never changes one.
func (l *Ledger) Doubtful(ctx context.Context) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		for after := ""; ; {
			records, err := l.store.Unfinished(ctx, after, page)
			if err != nil {
				yield(Record{}, storeError("list", err))
				return
			}
			for _, r := range records {
				after = r.Key
				over := !l.now().Before(r.Lease) // what is unknown has no lease
				if over && !yield(r, nil) {
					return
				}
			}
			if len(records) < page {
				return
			}
		}
	}
}

// Forget removes the record of a key whose effect certainly did not happen, or may happen again. The next Do with the key starts
// it. It never asks the far side, and refuses with an [*InProgressError] what still runs.
func (l *Ledger) Forget(ctx context.Context, key string) error {
	return l.settle(ctx, "forget", key, func(r Record, found bool) (*Record, error) {
		if !found {
			return nil, errSettled
		}
		return nil, nil
	})
}

// Resolve records what the far side says about an effect that is in doubt, or that happened without Do: it happened, and this
// is its outcome. It never replaces an outcome that is recorded, which is no error, and refuses with an [*InProgressError] what still
// runs. The outcome is kept for ever.
func Resolve[T any](ctx context.Context, l *Ledger, key string, outcome T) error {
	data, unkept := l.encode(outcome)
	if unkept != "" {
		return &OutcomeError{Key: key, Why: unkept}
	}
	return l.settle(ctx, "resolve", key, func(r Record, found bool) (*Record, error) {
		if found && r.State == Done {
			return nil, errSettled
		}
		if !found {
			r = Record{Key: key, Owner: newRun(), First: l.now()}
		}
		next := r.done(l.now(), 0)
		next.Outcome = data
		return &next, nil
	})
}

// errSettled ends a settlement that has nothing to write.
var errSettled = errors.New("once: settled already")

// settle writes what change makes of a record that nobody works on.
func (l *Ledger) settle(ctx context.Context, op, key string, change func(Record, bool) (*Record, error)) error {
	if err := checkKey(key); err != nil {
		return err
	}
	for {
		r, found, err := l.store.Load(ctx, key)
		if errors.Is(err, ErrCorrupt) && r.Revision != "" {
			r, found, err = Record{Key: key, State: Unknown, Revision: r.Revision, Owner: newRun(), First: l.now()}, true, nil
		}
		if err != nil {
			return storeError(op, err)
		}
		if found && r.State == Started && l.now().Before(r.Lease) {
			return &InProgressError{Key: key, Until: r.Lease}
		}
		next, err := change(r, found)
		if err == errSettled {
			return nil
		}
		ok, err := l.store.Swap(ctx, key, r.Revision, next)
		if ok || err != nil {
			return storeError(op, err)
		}
	}
}

// Expire removes the outcomes whose time to be kept ended before the given time, and returns how many they were. It never
// removes a record that is started or unknown, however old, nor an outcome without [Effect.Keep]. Nothing expires without it.
func (l *Ledger) Expire(ctx context.Context, before time.Time) (int, error) {
	n, err := l.store.Expire(ctx, before)
	return n, storeError("expire", err)
}

// done is the record of an effect that happened.
func (r Record) done(now time.Time, keep time.Duration) Record {
	r.State, r.Revision, r.Lease, r.Changed, r.Doubt, r.Why = Done, newRun(), time.Time{}, now, false, ""
	if keep > 0 {
		r.Expires = now.Add(keep)
	}
	return r
}

// unknown is the record of an effect of which its owner does not know whether it happened.
func (r Record) unknown(now time.Time, why string) Record {
	r.State, r.Revision, r.Lease, r.Changed, r.Doubt, r.Why = Unknown, newRun(), time.Time{}, now, true, why
	return r
}

// follow takes over what another owner has written since the record's own owner looked: the starts count all of them.
func (r *Record) follow(now *Record) {
	r.Starts = max(r.Starts, now.Starts)
	if now.Owner != "" {
		r.Owner = now.Owner
	}
	if r.Request == "" {
		r.Request = now.Request
	}
}

// encode writes an outcome as it is recorded; the text says why that cannot be.
func (l *Ledger) encode(value any) (data []byte, unkept string) {
	defer func() {
		if recover() != nil { // in a MarshalJSON of the effect's own: what happened must be recorded all the same
			data, unkept = nil, unwritable
		}
	}()
	data, err := json.Marshal(value)
	switch {
	case err != nil:
		return nil, unwritable
	case l.maxOutcome > 0 && len(data) > l.maxOutcome:
		return nil, "it is larger than the ledger's MaxOutcome"
	}
	return data, ""
}

const unwritable = "it cannot be written as JSON"

func newRun() string { return rand.Text() }

func storeError(op string, err error) error {
	var own *StoreError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &own):
		named := *own
		named.Op = op
		return &named
	}
	return &StoreError{Op: op, Err: err}
}
