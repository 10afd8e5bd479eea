package once_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"holdfast"
	"holdfast/once"
)

// counted counts looks.
type counted struct {
	once.Store
	loads atomic.Int32
}

func (c *counted) Load(ctx context.Context, key string) (once.Record, bool, error) {
	c.loads.Add(1)
	return c.Store.Load(ctx, key)
}

// failing is a store whose operations fail as the test says.
type failing struct {
	once.Store
	load func() error
	// swap is asked with what would be written, nil for a removal. With written the record is, and its acknowledgement lost.
	swap func(next *once.Record) (written bool, err error)
}

func (f *failing) Load(ctx context.Context, key string) (once.Record, bool, error) {
	if f.load != nil {
		if err := f.load(); err != nil {
			return once.Record{}, false, err
		}
	}
	return f.Store.Load(ctx, key)
}

func (f *failing) Swap(ctx context.Context, key, revision string, next *once.Record) (bool, error) {
	written, err := false, error(nil)
	if f.swap != nil {
		written, err = f.swap(next)
	}
	if err != nil && !written {
		return false, err
	}
	ok, failed := f.Store.Swap(ctx, key, revision, next)
	return ok && err == nil, errors.Join(err, failed)
}

var errDisk = errors.New("the disk is full")

func isState(next *once.Record, state once.State) bool { return next != nil && next.State == state }

func TestWhatTheStoreCannotWrite(t *testing.T) {
	for _, row := range []struct {
		name    string
		fault   string // what the desk does
		swap    func(n int, next *once.Record) (bool, error)
		posts   int
		op      string // of the StoreError; "" none
		value   bool
		after   string // what the next caller gets, when the lease is over and the store works: recorded, unknown, ran
		elapsed time.Duration
	}{
		{name: "the start", swap: func(_ int, next *once.Record) (bool, error) {
			if isState(next, once.Started) {
				return false, errDisk
			}
			return false, nil
		}, op: "start", after: "ran"},
		{name: "the start is acknowledged to nobody", swap: func(_ int, next *once.Record) (bool, error) {
			if isState(next, once.Started) {
				return true, errDisk
			}
			return false, nil
		}, posts: 1, value: true, after: "recorded"},
		{name: "the outcome, at first", swap: func(n int, next *once.Record) (bool, error) {
			if isState(next, once.Done) && n < 4 {
				return false, errDisk
			}
			return false, nil
		}, posts: 1, value: true, after: "recorded", elapsed: time.Second},
		{name: "the outcome is acknowledged to nobody", swap: func(_ int, next *once.Record) (bool, error) {
			if isState(next, once.Done) {
				return true, errDisk
			}
			return false, nil
		}, posts: 1, value: true, after: "recorded"},
		{name: "the outcome, ever", swap: func(_ int, next *once.Record) (bool, error) {
			if isState(next, once.Done) {
				return false, errDisk
			}
			return false, nil
		}, posts: 1, op: "record", value: true, after: "unknown", elapsed: 10 * time.Second},
		{name: "that nothing happened", fault: "reject", swap: func(_ int, next *once.Record) (bool, error) {
			if next == nil {
				return false, errDisk
			}
			return false, nil
		}, posts: 1, op: "free", after: "unknown", elapsed: 10 * time.Second},
		{name: "the doubt", fault: "void", swap: func(_ int, next *once.Record) (bool, error) {
			if isState(next, once.Unknown) {
				return false, errDisk
			}
			return false, nil
		}, posts: 1, after: "unknown", elapsed: 10 * time.Second},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := 0
				store := &failing{Store: once.NewMemory(), swap: func(next *once.Record) (bool, error) { n++; return row.swap(n, next) }}
				d := &desk{faults: []string{row.fault}}
				start := time.Now()
				r, err := once.Do(t.Context(), once.New(store, once.Options{}), key, d.effect())
				var failed *once.StoreError
				if errors.As(err, &failed) != (row.op != "") || failed != nil && (failed.Op != row.op || !errors.Is(err, errDisk) || row.op != "start" && failed.Hint() == "") {
					t.Errorf("got %v", err)
				}
				if (r.Value.ID == "TCK-1") != row.value || len(d.posts) != row.posts {
					t.Errorf("got %+v after %d posts", r, len(d.posts))
				}
				if row.fault == "reject" && !strings.Contains(err.Error(), "400") {
					t.Errorf("the effect's own error is lost: %v", err)
				}
				if elapsed := time.Since(start); elapsed > row.elapsed {
					t.Errorf("it took %v", elapsed)
				}
				store.swap = nil
				d.faults = nil
				time.Sleep(time.Hour)
				r, err = once.Do(t.Context(), once.New(store, once.Options{}), key, d.effect())
				var doubt *once.UnknownError
				switch row.after {
				case "recorded":
					if err != nil || r.Source != once.Recorded || r.Value.ID != "TCK-1" {
						t.Errorf("the next one: %+v, %v", r, err)
					}
				case "ran":
					if err != nil || r.Source != once.Ran {
						t.Errorf("the next one: %+v, %v", r, err)
					}
				default:
					if !errors.As(err, &doubt) || len(d.posts) != row.posts {
						t.Errorf("the next one: %+v, %v, %d posts", r, err, len(d.posts))
					}
				}
			})
		})
	}
}

// Everybody leaves while the start is being written, and the store cannot say whether it was: nothing was started, so that nothing
// is in doubt.
func TestAStartThatNobodyWaitedForIsTakenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, leave := context.WithCancel(t.Context())
		store := &failing{Store: once.NewMemory()}
		store.swap = func(next *once.Record) (bool, error) {
			if isState(next, once.Started) {
				leave()
				synctest.Wait()               // until the execution is told
				return true, context.Canceled // it was written all the same
			}
			return false, nil
		}
		// As a database, the store under it does not look at the context any more.
		store.Store = detached{store.Store}
		d := &desk{}
		ledger := once.New(store, once.Options{})
		_, err := once.Do(ctx, ledger, key, d.effect())
		if _, found, _ := ledger.Record(t.Context(), key); !errors.Is(err, context.Canceled) || found || len(d.posts) != 0 {
			t.Errorf("got %v, recorded: %v, %d posts", err, found, len(d.posts))
		}
	})
}

// Where an earlier start is in doubt, nothing is taken back: the far side may have done it, and the next caller must know.
func TestDoubtIsNotTakenBackWithAStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := once.NewMemory()
		abandon(t, memory, key, time.Now())
		time.Sleep(time.Hour)
		ctx, leave := context.WithCancel(t.Context())
		store := &failing{Store: detached{memory}, swap: func(next *once.Record) (bool, error) {
			if isState(next, once.Started) {
				leave()
				synctest.Wait() // until the execution is told
				return true, context.Canceled
			}
			return false, nil
		}}
		d := &desk{keys: true}
		if _, err := once.Do(ctx, once.New(store, once.Options{}), key, d.effect()); !errors.Is(err, context.Canceled) || len(d.posts) != 0 {
			t.Errorf("got %v, %d posts", err, len(d.posts))
		}
		if r := recordOf(t, memory, key); r.State != once.Started || !r.Doubt || r.Starts != 2 {
			t.Errorf("recorded %+v", r)
		}
		time.Sleep(time.Hour)
		_, err := once.Do(t.Context(), once.New(memory, once.Options{}), key, once.Effect[ticket]{Run: d.open}) // who does not replay
		var doubt *once.UnknownError
		if !errors.As(err, &doubt) || len(d.posts) != 0 {
			t.Errorf("the next one: %v, %d posts", err, len(d.posts))
		}
	})
}

// detached is a store that does not look at contexts.
type detached struct{ once.Store }

func (d detached) Swap(ctx context.Context, key, revision string, next *once.Record) (bool, error) {
	return d.Store.Swap(context.WithoutCancel(ctx), key, revision, next)
}

func TestAStoreThatCannotBeReadStartsNothing(t *testing.T) {
	store := &failing{Store: once.NewMemory(), load: func() error { return errDisk }}
	d := &desk{}
	ledger := once.New(store, once.Options{})
	_, err := once.Do(t.Context(), ledger, key, d.effect())
	var failed *once.StoreError
	if !errors.As(err, &failed) || failed.Op != "read" || !errors.Is(err, errDisk) || len(d.posts) != 0 {
		t.Errorf("got %v after %d posts", err, len(d.posts))
	}
	if err := ledger.Forget(t.Context(), key); !errors.Is(err, errDisk) {
		t.Errorf("forget: %v", err)
	}
	if _, _, err := ledger.Record(t.Context(), key); !errors.Is(err, errDisk) {
		t.Errorf("record: %v", err)
	}
}

type panicsAsJSON struct{}

func (panicsAsJSON) MarshalJSON() ([]byte, error) { panic("no JSON of this") }

// An effect whose outcome cannot be recorded has happened all the same.
func TestOutcomesThatCannotBeKept(t *testing.T) {
	t.Parallel()
	for name, value := range map[string]any{"large": strings.Repeat("x", 1<<20), "not a number": math.NaN(), "a func": func() {}, "a panic": panicsAsJSON{}} {
		ledger := once.New(once.NewMemory(), once.Options{})
		runs := 0
		effect := once.Effect[any]{Run: func(context.Context, string) (any, error) { runs++; return value, nil }}
		var lost *once.OutcomeError
		r, err := once.Do(t.Context(), ledger, key, effect)
		if !errors.As(err, &lost) || lost.Hint() == "" || r.Value == nil {
			t.Errorf("%s: the first got %v", name, err)
		}
		if r, err = once.Do(t.Context(), ledger, key, effect); !errors.As(err, &lost) || r.Value != nil || runs != 1 {
			t.Errorf("%s: the second got %v, %d runs", name, err, runs)
		}
	}
	effect := func(size int) once.Effect[string] {
		return once.Effect[string]{Run: func(context.Context, string) (string, error) { return strings.Repeat("x", size-2), nil }}
	}
	for _, row := range []struct {
		most, size int
		kept       bool
	}{{0, 1 << 20, true}, {0, 1<<20 + 1, false}, {10, 10, true}, {10, 11, false}, {-1, 3 << 20, true}} {
		_, err := once.Do(t.Context(), once.New(once.NewMemory(), once.Options{MaxOutcome: row.most}), key, effect(row.size))
		if (err == nil) != row.kept {
			t.Errorf("%+v: %v", row, err)
		}
	}
	ledger := once.New(once.NewMemory(), once.Options{})
	if _, err := once.Do(t.Context(), ledger, key, effect(9)); err != nil {
		t.Fatal(err)
	}
	var lost *once.OutcomeError
	if _, err := once.Do(t.Context(), ledger, key, once.Effect[int]{Run: func(context.Context, string) (int, error) { t.Error("ran again"); return 0, nil }}); !errors.As(err, &lost) || strings.Contains(err.Error(), "xxx") {
		t.Errorf("another type: %v", err)
	}
}

func TestNothingHappenedIsCareful(t *testing.T) {
	t.Parallel()
	call := func(attempts, code int) error {
		return &holdfast.Error{Reason: holdfast.ErrAttempts, Attempts: attempts, Verdict: holdfast.Verdict{Status: code}, Err: status(code)}
	}
	for name, row := range map[string]struct {
		err  error
		want bool
	}{
		"nil": {nil, false}, "said so": {once.Nothing(errors.New("no such order")), true}, "said so, wrapped": {errors.Join(errors.New("x"), once.Nothing(context.Canceled)), true},
		"400": {status(400), true}, "401": {status(401), true}, "402": {status(402), true}, "404": {status(404), true}, "413": {status(413), true}, "422": {status(422), true}, "429": {status(429), true},
		"408": {status(408), false}, "409": {status(409), false}, "425": {status(425), false}, "499": {status(499), false}, "500": {status(500), false}, "502": {status(502), false}, "503": {status(503), false}, "529": {status(529), false}, "302": {status(302), false}, "418": {status(418), false},
		"cancelled": {context.Canceled, false}, "deadline": {context.DeadlineExceeded, false}, "unknown": {errors.New("x"), false},
		"one attempt, 429": {call(1, 429), true}, "two attempts, the last one 429": {call(2, 429), false}, "one attempt, 500": {call(1, 500), false},
		"nothing was sent": {&holdfast.Error{Reason: holdfast.ErrOpen}, true},
	} {
		if got := once.NothingHappened(row.err); got != row.want {
			t.Errorf("%s: %v", name, got)
		}
	}
	if once.Nothing(nil) != nil {
		t.Error("nothing of no error is an error")
	}
	if err := once.Nothing(errDisk); !errors.Is(err, errDisk) || err.Error() != errDisk.Error() {
		t.Errorf("got %v", err)
	}
}

// A breaker that is open sends nothing, so that the key is free afterwards.
func TestWhatWasNeverSentFreesTheKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		breaker := holdfast.NewBreaker(holdfast.BreakerSettings{Failures: 1})
		policy := &holdfast.Policy{Breaker: breaker, Attempts: -1}
		holdfast.Do(t.Context(), policy, func(context.Context) (int, error) { return 0, status(500) })
		d := &desk{}
		effect := d.effect()
		effect.Policy = policy
		ledger := once.New(once.NewMemory(), once.Options{})
		_, err := once.Do(t.Context(), ledger, key, effect)
		if _, found, _ := ledger.Record(t.Context(), key); !errors.Is(err, holdfast.ErrOpen) || found || len(d.posts) != 0 {
			t.Errorf("got %v, recorded: %v, %d posts", err, found, len(d.posts))
		}
	})
}

// What an effect's error says is nowhere in the record, nor in the errors made here.
func TestNoErrorTextIsRecorded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const canary = "sk-CANARY-anna@example.com"
		ledger := once.New(once.NewMemory(), once.Options{})
		own := "order-of-" + "CANARY@example.com" // a key that was not made by Key
		_, err := once.Do(t.Context(), ledger, own, once.Effect[int]{Run: func(context.Context, string) (int, error) { return 0, errors.New(canary) }})
		r, found, _ := ledger.Record(t.Context(), own)
		if !found || strings.Contains(r.Why, "CANARY") || strings.Contains(err.Error(), "CANARY") || !strings.Contains(err.Error(), "sha256:") {
			t.Errorf("%v; recorded %+v", err, r)
		}
		if cause := errors.Unwrap(err); cause == nil || cause.Error() != canary {
			t.Errorf("the effect's own error is lost: %v", cause)
		}
	})
}

func TestAnEffectWithoutRun(t *testing.T) {
	ledger := once.New(once.NewMemory(), once.Options{})
	_, err := once.Do(t.Context(), ledger, key, once.Effect[int]{})
	if _, found, _ := ledger.Record(t.Context(), key); err == nil || found {
		t.Errorf("got %v, recorded: %v", err, found)
	}
}
