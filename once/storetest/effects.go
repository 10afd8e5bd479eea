package storetest

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"holdfast/once"
)

// corrupt spoils records of every state and looks at what is told of them.
func corrupt(t *testing.T, p Place) {
	if p.Spoil == nil {
		t.Skip("nobody else can write there")
	}
	s := open(t, p)
	ledger := once.New(s, once.Options{Now: func() time.Time { return day }})
	for name, data := range map[string]string{
		"empty": "", "no JSON": "secret", "half": `{"v":1,"state":"done"`, "another version": `{"v":2}`, "an array": `[]`,
		"no state":         `{"v":1,"revision":"r","owner":"o","first":1,"changed":1}`,
		"another revision": `{"v":1,"state":"unknown","revision":"another","owner":"o","first":1,"changed":1}`,
	} {
		for _, state := range []once.State{once.Started, once.Done, once.Unknown} {
			key := once.Key(name, state.String())
			r := put(t, s, record(key, state))
			p.Spoil(t, key, []byte(data))
			if got, _, err := s.Load(t.Context(), key); !errors.Is(err, once.ErrCorrupt) || got.Revision != r.Revision || got.Key != key {
				t.Errorf("%s, %s: loaded %+v, %v", name, state, got, err)
			}
			ran := false
			_, err := once.Do(t.Context(), ledger, key, once.Effect[int]{Replays: true, Run: func(context.Context, string) (int, error) { ran = true; return 1, nil }})
			var failed *once.StoreError
			if !errors.As(err, &failed) || !errors.Is(err, once.ErrCorrupt) || failed.Hint() == "" || ran {
				t.Errorf("%s, %s: Do says %v and ran: %v", name, state, err, ran)
			}
		}
	}
	listed := 0
	for r, err := range ledger.Doubtful(t.Context()) {
		if err != nil || r.State != once.Unknown || r.Why == "" {
			t.Errorf("listed %+v, %v", r, err)
		}
		listed++
	}
	if listed != 14 {
		t.Errorf("%d of 14 doubtful records are listed", listed)
	}
	key := once.Key("half", "done")
	if err := once.Resolve(t.Context(), ledger, key, 7); err != nil {
		t.Fatalf("resolve: %v", err)
	}
	if r, err := once.Do(t.Context(), ledger, key, once.Effect[int]{}); r.Value != 7 || err != nil {
		t.Errorf("resolved, got %+v, %v", r, err)
	}
	key = once.Key("empty", "started")
	if err := ledger.Forget(t.Context(), key); err != nil {
		t.Fatalf("forget: %v", err)
	}
	if _, found := load(t, s, key); found {
		t.Error("a forgotten record is there")
	}
}

// shared has ledgers of several handles come with the same keys at the same time.
func shared(t *testing.T, p Place) {
	const handles, callers, keys = 3, 4, 5
	var ran [keys]atomic.Int32
	var wrong atomic.Int32
	together(t, p, handles, 1, func(s once.Store, _ int) {
		ledger := once.New(s, once.Options{})
		over := make(chan bool)
		for range callers {
			for k := range keys {
				go func() {
					r, err := once.Do(context.Background(), ledger, once.Key("job", string(rune('a'+k))), once.Effect[int32]{
						Run: func(context.Context, string) (int32, error) { return 100*int32(k) + ran[k].Add(1), nil },
					})
					over <- err == nil && r.Value == 100*int32(k)+1 && r.Starts == 1
				}()
			}
		}
		for range callers * keys {
			if !<-over {
				wrong.Add(1)
			}
		}
	})
	for k := range keys {
		if n := ran[k].Load(); n != 1 {
			t.Errorf("effect %d happened %d times", k, n)
		}
	}
	if n := wrong.Load(); n != 0 {
		t.Errorf("%d of %d callers got another outcome", n, handles*callers*keys)
	}
}

// leases are over when the clock that the ledger was given says so, and not before.
func leases(t *testing.T, p Place) {
	s := open(t, p)
	now := day
	ledger := once.New(s, once.Options{Now: func() time.Time { return now }})
	key := once.Key("left by the dead")
	left := record(key, once.Started) // until a minute later
	put(t, s, left)
	runs := 0
	effect := once.Effect[string]{NoWait: true, Keep: time.Hour, Run: func(context.Context, string) (string, error) { runs++; return "ünï 🦄", nil }}
	now = left.Lease.Add(-time.Millisecond)
	var busy *once.InProgressError
	if _, err := once.Do(t.Context(), ledger, key, effect); !errors.As(err, &busy) || !busy.Until.Equal(left.Lease) {
		t.Errorf("before the end of the lease: %v", err)
	}
	if err := ledger.Forget(t.Context(), key); !errors.As(err, &busy) {
		t.Errorf("what runs was forgotten: %v", err)
	}
	now = left.Lease
	var doubt *once.UnknownError
	if _, err := once.Do(t.Context(), ledger, key, effect); !errors.As(err, &doubt) || doubt.Starts != 1 || !doubt.Since.Equal(day) {
		t.Errorf("at the end of the lease: %v", err)
	}
	if runs != 0 {
		t.Errorf("an effect in doubt ran %d times", runs)
	}
	effect.Replays = true
	if r, err := once.Do(t.Context(), ledger, key, effect); err != nil || r.Value != "ünï 🦄" || r.Starts != 2 || runs != 1 {
		t.Errorf("with a far side that replays: %+v, %v, %d runs", r, err, runs)
	}
	if n, err := ledger.Expire(t.Context(), now.Add(time.Hour)); n != 0 || err != nil {
		t.Errorf("expired %d before the time, %v", n, err)
	}
	if n, err := ledger.Expire(t.Context(), now.Add(time.Hour+time.Millisecond)); n != 1 || err != nil {
		t.Errorf("expired %d, %v", n, err)
	}
}
