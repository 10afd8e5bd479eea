package once_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"holdfast/once"
)

// hour is an effect that takes one, and counts its runs.
func hour(runs *atomic.Int32) once.Effect[*ticket] {
	return once.Effect[*ticket]{Limit: 2 * time.Hour, Run: func(ctx context.Context, key string) (*ticket, error) {
		n := runs.Add(1)
		select {
		case <-time.After(time.Hour):
			return &ticket{ID: strings.Repeat("x", int(n)), Job: key}, nil
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}}
}

func TestCallersOfOneKeyShareOneExecution(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ledger := once.New(once.NewMemory(), once.Options{})
		var runs, shared atomic.Int32
		var values sync.Map
		var callers sync.WaitGroup
		for n := range 50 {
			callers.Go(func() {
				time.Sleep(time.Duration(n) * time.Minute)
				r, err := once.Do(t.Context(), ledger, key, hour(&runs))
				if err != nil || *r.Value != (ticket{"x", key}) || r.Source != once.Ran || r.Starts != 1 {
					t.Errorf("caller %d: %+v, %v", n, r, err)
				}
				if _, taken := values.LoadOrStore(r.Value, n); taken {
					t.Error("two callers have one pointer")
				}
				if r.Shared {
					shared.Add(1)
				}
			})
		}
		start := time.Now()
		callers.Wait()
		if runs.Load() != 1 || shared.Load() != 49 || time.Since(start) != time.Hour {
			t.Errorf("%d runs, %d shared, after %v", runs.Load(), shared.Load(), time.Since(start))
		}
	})
}

func TestCallersOfOtherKeysDoNotWaitForEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ledger := once.New(once.NewMemory(), once.Options{})
		var runs atomic.Int32
		var callers sync.WaitGroup
		start := time.Now()
		for _, part := range []string{"a", "b", "c"} {
			callers.Go(func() { once.Do(t.Context(), ledger, once.Key(part), hour(&runs)) })
		}
		callers.Wait()
		if runs.Load() != 3 || time.Since(start) != time.Hour {
			t.Errorf("%d runs after %v", runs.Load(), time.Since(start))
		}
	})
}

// Whoever leaves, also the one whose call began it, leaves the execution to the others.
func TestACallerWhoLeavesDoesNotEndTheEffect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ledger := once.New(once.NewMemory(), once.Options{})
		var runs atomic.Int32
		first, leave := context.WithCancel(t.Context())
		var callers sync.WaitGroup
		callers.Go(func() {
			start := time.Now()
			_, err := once.Do(first, ledger, key, hour(&runs))
			var busy *once.InProgressError
			if !errors.As(err, &busy) || !errors.Is(err, context.Canceled) || busy.Hint() == "" || time.Since(start) != 20*time.Minute {
				t.Errorf("the first caller got %v after %v", err, time.Since(start))
			}
		})
		callers.Go(func() {
			time.Sleep(10 * time.Minute)
			r, err := once.Do(t.Context(), ledger, key, hour(&runs))
			if err != nil || !r.Shared || r.Value.ID != "x" {
				t.Errorf("the second caller got %+v, %v", r, err)
			}
		})
		time.Sleep(20 * time.Minute)
		leave()
		callers.Wait()
		if runs.Load() != 1 {
			t.Errorf("%d runs", runs.Load())
		}
	})
}

// When nobody waits any more the effect's context ends, and the last caller returns only when the effect has. Who comes
// meanwhile does not join what is being cancelled.
func TestTheLastCallerToLeaveEndsTheEffect(t *testing.T) {
	for _, replays := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			ledger := once.New(once.NewMemory(), once.Options{})
			var runs atomic.Int32
			why := errors.New("shutting down")
			effect := once.Effect[int]{Replays: replays, Limit: 2 * time.Hour, Run: func(ctx context.Context, _ string) (int, error) {
				if runs.Add(1) > 1 {
					return 2, nil
				}
				<-ctx.Done()
				time.Sleep(time.Minute) // to clean up
				if !errors.Is(context.Cause(ctx), why) {
					t.Errorf("the effect's context ended with %v", context.Cause(ctx))
				}
				return 0, ctx.Err()
			}}
			var callers sync.WaitGroup
			var lasted [2]time.Duration // the calls of those who left
			for n := range lasted {
				ctx, leave := context.WithCancelCause(t.Context())
				callers.Go(func() {
					start := time.Now()
					_, err := once.Do(ctx, ledger, key, effect)
					if lasted[n] = time.Since(start); !errors.Is(err, context.Canceled) {
						t.Errorf("a caller who left got %v", err)
					}
				})
				callers.Go(func() { time.Sleep(time.Hour); leave(why) })
			}
			callers.Go(func() {
				time.Sleep(time.Hour + time.Second)
				start := time.Now()
				r, err := once.Do(t.Context(), ledger, key, effect)
				var doubt *once.UnknownError
				if replays && (err != nil || r.Value != 2 || r.Shared || r.Starts != 2) || !replays && (!errors.As(err, &doubt) || !strings.Contains(doubt.Why, "nobody waited")) {
					t.Errorf("who came later got %+v, %v", r, err)
				}
				if time.Since(start) != 59*time.Second {
					t.Errorf("after %v", time.Since(start))
				}
			})
			callers.Wait()
			if min(lasted[0], lasted[1]) != time.Hour || max(lasted[0], lasted[1]) != time.Hour+time.Minute {
				t.Errorf("those who left returned after %v", lasted)
			}
		})
	}
}

func TestACallerWhoIsGoneAlreadyStartsNothing(t *testing.T) {
	ledger := once.New(once.NewMemory(), once.Options{})
	ctx, leave := context.WithCancel(t.Context())
	leave()
	_, err := once.Do(ctx, ledger, key, once.Effect[int]{Run: func(context.Context, string) (int, error) { t.Error("it ran"); return 0, nil }})
	if _, found, _ := ledger.Record(t.Context(), key); !errors.Is(err, context.Canceled) || found {
		t.Errorf("got %v, a record: %v", err, found)
	}
}

// Whatever the effect makes of its context's end, the caller finds his own deadline in the error.
func TestACallerFindsHisDeadlineInTheError(t *testing.T) {
	for name, run := range map[string]func(context.Context) error{
		"its own error":     func(context.Context) error { return errors.New("the answer is cut") },
		"the context's":     func(ctx context.Context) error { return ctx.Err() },
		"nothing happened":  func(ctx context.Context) error { return once.Nothing(ctx.Err()) },
		"it panicked after": func(context.Context) error { runtime.Goexit(); return nil },
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			start := time.Now()
			_, err := once.Do(ctx, once.New(once.NewMemory(), once.Options{}), key, once.Effect[int]{Run: func(ctx context.Context, _ string) (int, error) {
				<-ctx.Done()
				return 0, run(ctx)
			}})
			if !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != time.Minute {
				t.Errorf("%s: got %v after %v", name, err, time.Since(start))
			}
		})
	}
}

func TestTheValuesOfTheContextReachTheEffect(t *testing.T) {
	type name struct{}
	ctx := context.WithValue(t.Context(), name{}, "trace 1")
	r, err := once.Do(ctx, once.New(once.NewMemory(), once.Options{}), key, once.Effect[any]{Run: func(ctx context.Context, got string) (any, error) {
		_, limited := ctx.Deadline()
		return []any{ctx.Value(name{}), got == key, limited}, nil
	}})
	if want := []any{"trace 1", true, true}; err != nil || r.Value.([]any)[0] != want[0] || r.Value.([]any)[1] != true || r.Value.([]any)[2] != true {
		t.Errorf("got %v, %v", r.Value, err)
	}
}

func TestAPanicLeavesDoubtAndGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ledger := once.New(once.NewMemory(), once.Options{})
		fault := errors.New("canary in a panic")
		panics := once.Effect[int]{Run: func(context.Context, string) (int, error) { time.Sleep(time.Minute); panic(fault) }}
		var callers sync.WaitGroup
		callers.Go(func() {
			defer func() {
				if got := recover(); got != fault {
					t.Errorf("the panic became %v", got)
				}
			}()
			once.Do(t.Context(), ledger, key, panics)
			t.Error("Do returned after a panic")
		})
		callers.Go(func() {
			time.Sleep(time.Second)
			_, err := once.Do(t.Context(), ledger, key, panics)
			var doubt *once.UnknownError
			if !errors.As(err, &doubt) || strings.Contains(err.Error(), "canary") {
				t.Errorf("who shared it got %v", err)
			}
		})
		callers.Wait()
		r, found, err := ledger.Record(t.Context(), key)
		if err != nil || !found || r.State != once.Unknown || !strings.Contains(r.Why, "panicked") || strings.Contains(r.Why, "canary") {
			t.Errorf("recorded %+v, %v, %v", r, found, err)
		}
		var doubt *once.UnknownError
		if _, err := once.Do(t.Context(), ledger, key, panics); !errors.As(err, &doubt) {
			t.Errorf("the next caller got %v", err)
		}
	})
}

// An effect that ends its goroutine, as t.FailNow does, leaves doubt too, and nobody waits for ever.
func TestAnEffectThatEndsItsGoroutineLeavesDoubt(t *testing.T) {
	ledger := once.New(once.NewMemory(), once.Options{})
	_, err := once.Do(t.Context(), ledger, key, once.Effect[int]{Run: func(context.Context, string) (int, error) { runtime.Goexit(); return 0, nil }})
	var doubt *once.UnknownError
	if !errors.As(err, &doubt) {
		t.Errorf("got %v", err)
	}
	if r, _, _ := ledger.Record(t.Context(), key); r.State != once.Unknown {
		t.Errorf("recorded %v", r.State)
	}
}

// Two ledgers on one store are as two processes: one runs, the other one waits for the record.
func TestAnotherProcessWaitsForTheOutcome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &counted{Store: once.NewMemory()}
		var runs atomic.Int32
		var callers sync.WaitGroup
		for n := range 2 {
			callers.Go(func() {
				time.Sleep(time.Duration(n) * time.Minute)
				r, err := once.Do(t.Context(), once.New(store, once.Options{}), key, hour(&runs))
				if err != nil || r.Value.ID != "x" || r.Shared || (r.Source == once.Recorded) != (n == 1) {
					t.Errorf("process %d: %+v, %v", n, r, err)
				}
			})
		}
		callers.Wait()
		if looks := store.loads.Load(); runs.Load() != 1 || looks < 3500 || looks > 3700 {
			t.Errorf("%d runs, %d looks in an hour", runs.Load(), looks)
		}
	})
}

func TestWhoDoesNotWaitForAnotherProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := once.NewMemory()
		var runs atomic.Int32
		var callers sync.WaitGroup
		callers.Go(func() { once.Do(t.Context(), once.New(store, once.Options{}), key, hour(&runs)) })
		time.Sleep(time.Minute)
		start := time.Now()
		effect := hour(&runs)
		effect.NoWait = true
		var busy *once.InProgressError
		if _, err := once.Do(t.Context(), once.New(store, once.Options{}), key, effect); !errors.As(err, &busy) || busy.Cause != nil || time.Since(start) != 0 || time.Until(busy.Until) < time.Hour {
			t.Errorf("NoWait: %v after %v", err, time.Since(start))
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		defer cancel()
		effect.NoWait = false
		if _, err := once.Do(ctx, once.New(store, once.Options{}), key, effect); !errors.As(err, &busy) || !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != 10*time.Minute {
			t.Errorf("a deadline: %v after %v", err, time.Since(start))
		}
		callers.Wait()
		if runs.Load() != 1 {
			t.Errorf("%d runs", runs.Load())
		}
	})
}
