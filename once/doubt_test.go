package once_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"holdfast"
	"holdfast/once"
)

// abandon leaves the record of a start whose process is gone.
func abandon(t *testing.T, s once.Store, key string, first time.Time) {
	t.Helper()
	r := once.Record{Key: key, State: once.Started, Revision: "dead", Owner: "dead", First: first, Changed: first, Lease: first.Add(time.Minute), Starts: 1}
	if ok, err := s.Swap(t.Context(), key, "", &r); !ok || err != nil {
		t.Fatal(ok, err)
	}
}

// What the next caller gets when the process died between the start and the record: the table of the package's documentation.
func TestAfterACrash(t *testing.T) {
	asked := errors.New("the desk does not answer")
	for _, row := range []struct {
		name     string
		keys     bool
		keyLife  time.Duration
		happened bool
		lookup   string // "", finds, says no, fails
		later    time.Duration
		err      bool
		source   once.Source
		tickets  int
		posts    int
		wait     time.Duration
	}{
		{name: "replays, happened", keys: true, happened: true, tickets: 1, posts: 1},
		{name: "replays, had not", keys: true, tickets: 1, posts: 1},
		{name: "replays, happened, lease not over", keys: true, happened: true, later: 20 * time.Second, tickets: 1, posts: 1, wait: 40 * time.Second},
		{name: "replays, key still known", keys: true, keyLife: 24 * time.Hour, happened: true, later: 24*time.Hour - time.Millisecond, tickets: 1, posts: 1},
		{name: "replays, key forgotten", keys: true, keyLife: 24 * time.Hour, happened: true, later: 24 * time.Hour, err: true, tickets: 1},
		{name: "replays, key forgotten, looked up", keys: true, keyLife: 24 * time.Hour, happened: true, later: 24 * time.Hour, lookup: "finds", source: once.LookedUp, tickets: 1},
		{name: "replays, so that nobody is asked", keys: true, happened: true, lookup: "fails", tickets: 1, posts: 1},
		{name: "no keys, happened", happened: true, err: true, tickets: 1},
		{name: "no keys, had not", err: true},
		{name: "no keys, happened, looked up", happened: true, lookup: "finds", source: once.LookedUp, tickets: 1},
		{name: "no keys, had not, looked up", lookup: "says no", tickets: 1, posts: 1},
		{name: "no keys, cannot be asked", happened: true, lookup: "fails", err: true, tickets: 1},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := once.NewMemory()
				abandon(t, store, key, time.Now())
				d := &desk{keys: row.keys, tickets: map[string][]string{}}
				if row.happened {
					d.tickets[key] = []string{"TCK-0"}
				}
				effect := d.effect()
				effect.KeyLife = row.keyLife
				if row.lookup != "" {
					effect.Lookup = func(_ context.Context, got string) (ticket, bool, error) {
						switch {
						case got != key:
							t.Errorf("asked for %s", got)
						case row.lookup == "fails":
							return ticket{}, false, asked
						case row.lookup == "finds":
							return ticket{d.tickets[key][0], key}, true, nil
						}
						return ticket{}, false, nil
					}
				}
				if row.later == 0 {
					row.later = time.Minute // the end of the lease
				}
				time.Sleep(row.later)
				ledger := once.New(store, once.Options{})
				start := time.Now()
				r, err := once.Do(t.Context(), ledger, key, effect)
				if waited := time.Since(start); waited < row.wait || waited > row.wait+time.Second {
					t.Errorf("waited %v", waited)
				}
				var doubt *once.UnknownError
				if row.err != errors.As(err, &doubt) || errors.Is(err, asked) != (row.err && row.lookup == "fails") {
					t.Fatalf("got %+v, %v", r, err)
				}
				if row.err && (doubt.Starts != 1 || doubt.Key != key || doubt.Hint() == "" || doubt.Since.IsZero() || !strings.Contains(err.Error(), "gone")) {
					t.Errorf("it says %q, %+v", err, doubt)
				}
				if !row.err && (r.Source != row.source || r.Value.ID == "" || r.Value.ID != d.tickets[key][0]) {
					t.Errorf("got %+v", r)
				}
				if len(d.tickets[key]) != row.tickets || len(d.posts) != row.posts {
					t.Errorf("%d tickets after %d posts", len(d.tickets[key]), len(d.posts))
				}
				listed := 0
				for range ledger.Doubtful(t.Context()) {
					listed++
				}
				if (listed == 1) != row.err {
					t.Errorf("%d doubtful records", listed)
				}
			})
		})
	}
}

// A far side that does not replay may still be asked, in the same call.
func TestALostAnswerIsLookedUp(t *testing.T) {
	for _, row := range []struct {
		keys   bool
		faults []string
		posts  int
		err    string
	}{
		{faults: []string{"lost"}, posts: 1}, {faults: []string{"void"}, posts: 1, err: "502"},
		{keys: true, faults: []string{"lost", "reject"}, posts: 2}, {keys: true, faults: []string{"void", "reject"}, posts: 2, err: "400"},
	} {
		synctest.Test(t, func(t *testing.T) {
			d := &desk{keys: row.keys, faults: row.faults}
			effect := d.effect()
			effect.Lookup = func(context.Context, string) (ticket, bool, error) {
				if open := d.tickets[key]; len(open) > 0 {
					return ticket{open[0], key}, true, nil
				}
				return ticket{}, false, nil
			}
			ledger := once.New(once.NewMemory(), once.Options{})
			r, err := once.Do(t.Context(), ledger, key, effect)
			_, found, _ := ledger.Record(t.Context(), key)
			if row.err == "" && (err != nil || r.Source != once.LookedUp || r.Value.ID != "TCK-1" || !found) ||
				row.err != "" && (err == nil || !strings.Contains(err.Error(), row.err) || found) {
				t.Errorf("%s: got %+v, %v, recorded: %v", row.faults, r, err, found)
			}
			if len(d.posts) != row.posts {
				t.Errorf("%d posts", len(d.posts))
			}
		})
	}
}

// While the far side is asked, somebody else starts the effect: what the far side says is not about that start, and does not
// remove its record.
func TestALookupDoesNotFreeAnotherStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := once.NewMemory()
		abandon(t, store, key, time.Now())
		time.Sleep(time.Hour)
		runs := 0
		effect := func(name string) once.Effect[string] {
			return once.Effect[string]{Run: func(context.Context, string) (string, error) { runs++; time.Sleep(time.Minute); return name, nil }}
		}
		other := make(chan error)
		go func() {
			time.Sleep(10 * time.Second)
			e := effect("other")
			e.Replays = true
			_, err := once.Do(t.Context(), once.New(store, once.Options{}), key, e)
			other <- err
		}()
		asks := effect("asks")
		asks.Lookup = func(context.Context, string) (string, bool, error) {
			time.Sleep(20 * time.Second)
			return "", false, nil
		}
		r, err := once.Do(t.Context(), once.New(store, once.Options{}), key, asks)
		if err != nil || r.Value != "other" || r.Source != once.Recorded {
			t.Errorf("who asked got %+v, %v", r, err)
		}
		if err := <-other; err != nil || runs != 1 {
			t.Errorf("the other one: %v, %d runs", err, runs)
		}
	})
}

// Starting again with a key does not make it younger: after its life at the far side, counted from the first start, nothing is
// started any more.
func TestAKeyDoesNotGetYounger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ledger := once.New(once.NewMemory(), once.Options{})
		d := &desk{keys: true, faults: []string{"void", "void", "void"}}
		effect := d.effect()
		effect.KeyLife, effect.Policy = 24*time.Hour, &holdfast.Policy{Attempts: -1}
		for n, posts := range []int{1, 2, 3, 3} {
			_, err := once.Do(t.Context(), ledger, key, effect)
			var doubt *once.UnknownError
			if !errors.As(err, &doubt) || doubt.Starts != posts || len(d.posts) != posts {
				t.Errorf("after %d hours: %v, %d posts", 10*n, err, len(d.posts))
			}
			time.Sleep(10 * time.Hour)
		}
	})
}

// However the policy is set, an effect in doubt is not sent again to a far side that does not replay.
func TestNoPolicyRepeatsWhatIsInDoubt(t *testing.T) {
	always := func(error) holdfast.Verdict { return holdfast.Verdict{Kind: holdfast.Broken, ShouldRetry: "true"} }
	for name, policy := range map[string]*holdfast.Policy{
		"zero": nil, "many attempts": {Attempts: 100}, "own judge": {Judge: always, Attempts: 100}, "attempt timeout": {AttemptTimeout: time.Second, Attempts: 100},
		"targets": {Targets: []holdfast.Target{{Name: "a"}, {Name: "b"}}, FallbackFirst: true}, "deadline": {Deadline: 10 * time.Second},
	} {
		for what, run := range map[string]func(ctx context.Context) error{
			"hangs":   func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() },
			"unknown": func(context.Context) error { return errors.New("what is this") },
			"500":     func(context.Context) error { return status(500) },
			"409":     func(context.Context) error { return status(409) },
		} {
			synctest.Test(t, func(t *testing.T) {
				sent := 0
				_, err := once.Do(t.Context(), once.New(once.NewMemory(), once.Options{}), key, once.Effect[int]{Policy: policy, Run: func(ctx context.Context, _ string) (int, error) {
					sent++
					return 0, run(ctx)
				}})
				var doubt *once.UnknownError
				if !errors.As(err, &doubt) || sent != 1 {
					t.Errorf("%s, %s: sent %d times, %v", name, what, sent, err)
				}
			})
		}
	}
}

// The time of a start is bounded, and never longer than the far side remembers the key.
func TestAStartEndsAtItsLimit(t *testing.T) {
	for _, row := range []struct{ limit, keyLife, want time.Duration }{
		{0, 0, 2 * time.Minute}, {-1, -1, 2 * time.Minute}, {time.Hour, 0, time.Hour}, {time.Hour, time.Minute, time.Minute}, {time.Minute, time.Hour, time.Minute},
	} {
		synctest.Test(t, func(t *testing.T) {
			start := time.Now()
			_, err := once.Do(t.Context(), once.New(once.NewMemory(), once.Options{}), key, once.Effect[int]{
				Limit: row.limit, KeyLife: row.keyLife, Replays: true,
				Run: func(ctx context.Context, _ string) (int, error) { <-ctx.Done(); return 0, ctx.Err() },
			})
			var doubt *once.UnknownError
			if !errors.As(err, &doubt) || doubt.Why != "its time ran out" || time.Since(start) != row.want {
				t.Errorf("%+v: %v after %v", row, err, time.Since(start))
			}
		})
	}
}

// An owner that outlives its lease still knows what it did: its outcome is recorded, and everybody's.
func TestAnOwnerThatIsLateRecordsWhatItKnows(t *testing.T) {
	for _, replays := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			store := once.NewMemory()
			d := &desk{keys: replays}
			slow := d.effect()
			slow.Run = func(ctx context.Context, key string) (ticket, error) {
				got, err := d.open(ctx, key)
				time.Sleep(time.Hour) // and does not look at its context
				return got, err
			}
			late := make(chan once.Result[ticket], 1)
			go func() {
				r, err := once.Do(t.Context(), once.New(store, once.Options{}), key, slow)
				if err != nil {
					t.Errorf("the late one got %v", err)
				}
				late <- r
			}()
			time.Sleep(30 * time.Minute)
			other := once.New(store, once.Options{})
			r, err := once.Do(t.Context(), other, key, d.effect())
			var doubt *once.UnknownError
			if replays && (err != nil || r.Value.ID != "TCK-1" || r.Starts != 2) || !replays && !errors.As(err, &doubt) {
				t.Errorf("after the lease: %+v, %v", r, err)
			}
			first := <-late
			starts := 1
			if replays {
				starts = 2
			}
			r, err = once.Do(t.Context(), other, key, d.effect())
			if first.Starts != starts || r.Starts != starts {
				t.Errorf("%d starts, then %d, of %d", first.Starts, r.Starts, starts)
			}
			if err != nil || r.Value != first.Value || r.Source != once.Recorded || len(d.tickets[key]) != 1 {
				t.Errorf("in the end: %+v, %v, %d tickets; the late one had %+v", r, err, len(d.tickets[key]), first)
			}
		})
	}
}

// Two owners of one key, of whom the first has outlived its lease: whoever records first gives both their outcome, and what happened
// holds against the doubt or the start of the other one.
func TestTwoOwnersHaveOneOutcome(t *testing.T) {
	for _, row := range []struct {
		name   string
		other  func() (string, error)
		until  time.Duration // the other one is done
		want   string
		source once.Source // of the other one
	}{
		{name: "the other one is first", other: func() (string, error) { return "other", nil }, until: time.Minute, want: "other"},
		{name: "the other one still runs", other: func() (string, error) { return "other", nil }, until: 50 * time.Minute, want: "late", source: once.Recorded},
		{name: "the other one is in doubt", other: func() (string, error) { return "", errors.New("lost") }, until: time.Minute, want: "late"},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := once.NewMemory()
				do := func(after, until time.Duration, request []byte, run func() (string, error)) func() (once.Result[string], error) {
					type result struct {
						r   once.Result[string]
						err error
					}
					over := make(chan result, 1)
					go func() {
						time.Sleep(after)
						r, err := once.Do(t.Context(), once.New(store, once.Options{}), key, once.Effect[string]{Replays: true, Request: request, Policy: &holdfast.Policy{Attempts: -1}, Run: func(context.Context, string) (string, error) {
							time.Sleep(until) // without a look at the context
							return run()
						}})
						over <- result{r, err}
					}()
					return func() (once.Result[string], error) { got := <-over; return got.r, got.err }
				}
				late := do(0, time.Hour, nil, func() (string, error) { return "late", nil })
				other := do(30*time.Minute, row.until, []byte("a"), row.other)
				time.Sleep(30*time.Minute + time.Second)
				last := recordOf(t, store, key).Owner
				if r, err := late(); err != nil || r.Value != row.want || r.Starts != 2 {
					t.Errorf("the late one: %+v, %v", r, err)
				}
				_, failed := row.other()
				if r, err := other(); (err != nil) != (failed != nil) || err == nil && (r.Value != row.want || r.Source != row.source || r.Starts != 2) {
					t.Errorf("the other one: %+v, %v", r, err)
				}
				if r, err := do(0, 0, nil, func() (string, error) { return "third", nil })(); err != nil || r.Value != row.want || r.Source != once.Recorded || r.Starts != 2 {
					t.Errorf("the next one: %+v, %v", r, err)
				}
				if r := recordOf(t, store, key); r.Owner != last || r.Request == "" {
					t.Errorf("the owner is %s, the last to start it was %s; the request is %q", r.Owner, last, r.Request)
				}
			})
		})
	}
}

// recordOf is what a store has of a key.
func recordOf(t *testing.T, s once.Store, key string) once.Record {
	t.Helper()
	r, found, err := s.Load(t.Context(), key)
	if err != nil || !found {
		t.Fatal(found, err)
	}
	return r
}

// An owner that outlives its lease and does not know what it did counts the starts of the others too, as its callers do, and
// whatever happens to it.
func TestALateDoubtCountsAllStarts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := once.NewMemory()
		lost := func(after time.Duration) once.Effect[int] {
			return once.Effect[int]{Replays: true, Policy: &holdfast.Policy{Attempts: -1}, Run: func(context.Context, string) (int, error) {
				time.Sleep(after) // without a look at the context
				return 0, errors.New("lost")
			}}
		}
		starts := func(ledger *once.Ledger, effect once.Effect[int]) int {
			_, err := once.Do(t.Context(), ledger, key, effect)
			var doubt *once.UnknownError
			if !errors.As(err, &doubt) {
				t.Fatalf("got %v", err)
			}
			return doubt.Starts
		}
		late := make(chan int)
		go func() { late <- starts(once.New(store, once.Options{}), lost(time.Hour)) }()
		time.Sleep(30 * time.Minute)
		if n := starts(once.New(store, once.Options{}), lost(0)); n != 2 {
			t.Errorf("the second start is number %d", n)
		}
		if n := <-late; n != 2 || recordOf(t, store, key).Starts != 2 {
			t.Errorf("the late one tells of %d starts, the record of %d", n, recordOf(t, store, key).Starts)
		}
		// The third one ends its goroutine.
		gone := once.Effect[int]{Replays: true, Run: func(context.Context, string) (int, error) { runtime.Goexit(); return 0, nil }}
		if n := starts(once.New(store, once.Options{}), gone); n != 3 {
			t.Errorf("the third start is number %d", n)
		}
		// A lookup that ends its goroutine starts nothing.
		asks := once.Effect[int]{Lookup: func(context.Context, string) (int, bool, error) { runtime.Goexit(); return 0, false, nil }}
		if n := starts(once.New(store, once.Options{}), asks); n != 3 {
			t.Errorf("after a lookup: %d starts", n)
		}
	})
}

func TestTheSameKeyForAnotherRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := once.NewMemory()
		ledger := once.New(store, once.Options{})
		d := &desk{}
		with := func(request []byte) once.Effect[ticket] { e := d.effect(); e.Request = request; return e }
		if _, err := once.Do(t.Context(), ledger, key, with([]byte("a"))); err != nil {
			t.Fatal(err)
		}
		var other *once.MismatchError
		if _, err := once.Do(t.Context(), ledger, key, with([]byte("b"))); !errors.As(err, &other) || other.Hint() == "" {
			t.Errorf("done, another request: %v", err)
		}
		if _, err := once.Do(t.Context(), ledger, key, with([]byte{})); !errors.As(err, &other) {
			t.Errorf("done, an empty request: %v", err)
		}
		for _, same := range [][]byte{[]byte("a"), nil} {
			if r, err := once.Do(t.Context(), ledger, key, with(same)); err != nil || r.Source != once.Recorded {
				t.Errorf("request %q: %+v, %v", same, r, err)
			}
		}
		// While it runs, in this process and in another one.
		busy := once.Key("busy")
		slow := with([]byte("a"))
		slow.Run = func(ctx context.Context, key string) (ticket, error) {
			time.Sleep(time.Minute)
			return d.open(ctx, key)
		}
		over := make(chan error)
		go func() { _, err := once.Do(t.Context(), ledger, busy, slow); over <- err }()
		time.Sleep(time.Second)
		for _, l := range []*once.Ledger{ledger, once.New(store, once.Options{})} {
			if _, err := once.Do(t.Context(), l, busy, with([]byte("b"))); !errors.As(err, &other) {
				t.Errorf("running, another request: %v", err)
			}
		}
		if err := <-over; err != nil || len(d.posts) != 2 {
			t.Errorf("%v, %d posts", err, len(d.posts))
		}
	})
}

func TestDoubtIsSettledByHand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := once.NewMemory()
		ledger := once.New(store, once.Options{})
		d := &desk{faults: []string{"lost", "void", "lost"}}
		keys := []string{once.Key("resolved"), once.Key("forgotten"), once.Key("left")}
		var doubt *once.UnknownError
		for _, key := range keys {
			if _, err := once.Do(t.Context(), ledger, key, d.effect()); !errors.As(err, &doubt) {
				t.Fatal(err)
			}
		}
		listed := map[string]string{}
		for r, err := range ledger.Doubtful(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			listed[r.Key] = r.Why
		}
		if len(listed) != 3 || listed[keys[1]] != "its last answer was 502" || listed[keys[0]] != "it failed: timeout" {
			t.Errorf("listed %v", listed)
		}
		if err := once.Resolve(t.Context(), ledger, keys[0], ticket{ID: "TCK-1"}); err != nil {
			t.Fatal(err)
		}
		if err := once.Resolve(t.Context(), ledger, keys[0], ticket{ID: "another"}); err != nil {
			t.Fatal(err)
		}
		for range 2 { // forgetting what is forgotten is no error
			if err := ledger.Forget(t.Context(), keys[1]); err != nil {
				t.Fatal(err)
			}
		}
		if r, err := once.Do(t.Context(), ledger, keys[0], d.effect()); err != nil || r.Value.ID != "TCK-1" || r.Source != once.Recorded {
			t.Errorf("resolved: %+v, %v", r, err)
		}
		if r, err := once.Do(t.Context(), ledger, keys[1], d.effect()); err != nil || r.Value.ID != "TCK-4" || r.Starts != 1 {
			t.Errorf("forgotten: %+v, %v", r, err)
		}
		if _, err := once.Do(t.Context(), ledger, keys[2], d.effect()); !errors.As(err, &doubt) {
			t.Errorf("left: %v", err)
		}
		// What was never started can be resolved too: it was done by hand.
		if err := once.Resolve(t.Context(), ledger, key, ticket{ID: "by hand"}); err != nil {
			t.Fatal(err)
		}
		if r, err := once.Do(t.Context(), ledger, key, d.effect()); err != nil || r.Value.ID != "by hand" || len(d.posts) != 4 {
			t.Errorf("by hand: %+v, %v, %d posts", r, err, len(d.posts))
		}
		for name, err := range map[string]error{"resolve": once.Resolve(t.Context(), ledger, "", 1), "forget": ledger.Forget(t.Context(), "a b"), "outcome": once.Resolve(t.Context(), ledger, once.Key("f"), func() {})} {
			if err == nil {
				t.Errorf("%s of nonsense is no error", name)
			}
		}
	})
}

// A hundred and more doubtful records are listed, page by page, and the list ends when its reader does.
func TestAllDoubtIsListed(t *testing.T) {
	store := once.NewMemory()
	ledger := once.New(store, once.Options{})
	for n := range 250 {
		abandon(t, store, once.Key(fmt.Sprint(n)), time.Now().Add(-time.Hour))
	}
	abandon(t, store, once.Key("runs"), time.Now())
	seen := map[string]bool{}
	for r, err := range ledger.Doubtful(t.Context()) {
		if err != nil || seen[r.Key] {
			t.Fatalf("%+v, %v", r, err)
		}
		seen[r.Key] = true
	}
	if len(seen) != 250 || seen[once.Key("runs")] {
		t.Errorf("%d of 250", len(seen))
	}
	for range ledger.Doubtful(t.Context()) {
		break
	}
	store.Close()
	for _, err := range ledger.Doubtful(t.Context()) {
		if !errors.Is(err, once.ErrClosed) {
			t.Errorf("closed: %v", err)
		}
	}
}
