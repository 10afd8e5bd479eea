package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"holdfast/once"
)

// Place is where records are kept, empty at first: a file, a table.
type Place struct {
	// Open returns a handle on the place, as another process would have one. If handles cannot share a place, it returns the same
	// store every time. The suite closes it.
	Open func(t testing.TB) once.Store
	// Spoil overwrites what is stored of a key, apart from its revision. Nil: nobody else can write there.
	Spoil func(t testing.TB, key string, data []byte)
}

// Run holds the stores of a place against what once relies on. It calls place once for each of its tests, which run in parallel.
// It never uses more than eight handles at once, and never returns before all are closed.
func Run(t *testing.T, place func(t testing.TB) Place) {
	for name, test := range map[string]func(*testing.T, Place){
		"SwapReplacesWhatItSaw":      swaps,
		"RecordsComeBackAsTheyWere":  fields,
		"RecordsAreNotShared":        aliases,
		"BadRecordsAreRefused":       refusals,
		"UnfinishedIsListedInPages":  pages,
		"ExpireTakesOnlyWhatIsOver":  expiry,
		"OneOfManyWritersWins":       races,
		"NoWriteIsLost":              counts,
		"CancelledContextsEndThings": cancelled,
		"ClosedStoresSayClosed":      closed,
		"CorruptIsNotMissing":        corrupt,
		"EffectsHappenOnce":          shared,
		"LeasesFollowTheGivenClock":  leases,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, place(t))
		})
	}
}

var day = time.Date(2026, 11, 30, 14, 5, 6, 789e6, time.UTC)

var revisions atomic.Int64

func revision() string { return fmt.Sprintf("revision-%d", revisions.Add(1)) }

// record is a good one of a state.
func record(key string, state once.State) once.Record {
	r := once.Record{Key: key, State: state, Revision: revision(), Owner: "owner", First: day, Starts: 1, Changed: day.Add(time.Second)}
	switch state {
	case once.Started:
		r.Lease = day.Add(time.Minute)
	case once.Done:
		r.Outcome = []byte(`{"id":"TCK-1"}`)
	case once.Unknown:
		r.Why, r.Doubt = "its answer was lost", true
	}
	return r
}

func open(t testing.TB, p Place) once.Store {
	t.Helper()
	s := p.Open(t)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return s
}

func swap(t testing.TB, s once.Store, key, revision string, next *once.Record) bool {
	t.Helper()
	ok, err := s.Swap(t.Context(), key, revision, next)
	if err != nil {
		t.Fatalf("swap: %v", err)
	}
	return ok
}

func put(t testing.TB, s once.Store, r once.Record) once.Record {
	t.Helper()
	if !swap(t, s, r.Key, "", &r) {
		t.Fatalf("there is a record of %s", r.Key)
	}
	return r
}

func load(t testing.TB, s once.Store, key string) (once.Record, bool) {
	t.Helper()
	r, found, err := s.Load(t.Context(), key)
	if err != nil {
		t.Fatalf("load: %v", err)
	}
	return r, found
}

func same(a, b once.Record) bool {
	times := func(r *once.Record) []time.Time { return []time.Time{r.First, r.Lease, r.Changed, r.Expires} }
	if !slices.EqualFunc(times(&a), times(&b), time.Time.Equal) || !bytes.Equal(a.Outcome, b.Outcome) {
		return false
	}
	return a.Key == b.Key && a.State == b.State && a.Revision == b.Revision && a.Owner == b.Owner && a.Request == b.Request &&
		a.Starts == b.Starts && a.Doubt == b.Doubt && a.Unkept == b.Unkept && a.Why == b.Why
}

func swaps(t *testing.T, p Place) {
	s := open(t, p)
	if r, found := load(t, s, "k"); found {
		t.Fatalf("an empty place has %+v", r)
	}
	started := record("k", once.Started)
	if swap(t, s, "k", "none", &started) || swap(t, s, "k", "none", nil) {
		t.Fatal("a record that is not there was replaced")
	}
	put(t, s, started)
	other := record("k", once.Started)
	if swap(t, s, "k", "", &other) || swap(t, s, "k", "none", &other) || swap(t, s, "k", "none", nil) || swap(t, s, "k", "", nil) {
		t.Fatal("a record was replaced by one who had not seen it")
	}
	if r, found := load(t, s, "k"); !found || !same(r, started) {
		t.Fatalf("got %+v", r)
	}
	done := record("k", once.Done)
	if !swap(t, s, "k", started.Revision, &done) || swap(t, s, "k", started.Revision, &other) {
		t.Fatal("a record is not replaced by the one who saw it, or also by another")
	}
	if r, _ := load(t, s, "k"); !same(r, done) {
		t.Fatalf("got %+v", r)
	}
	if !swap(t, s, "k", done.Revision, nil) || swap(t, s, "k", done.Revision, nil) {
		t.Fatal("a record is not removed, or twice")
	}
	again := put(t, s, record("k", once.Started))
	if swap(t, s, "k", started.Revision, &done) {
		t.Fatal("a revision from before the removal still holds")
	}
	if r, _ := load(t, s, "k"); !same(r, again) {
		t.Fatalf("got %+v", r)
	}
	if _, found := load(t, s, "K"); found {
		t.Fatal("keys of other case are mixed up")
	}
}

func fields(t *testing.T, p Place) {
	s := open(t, p)
	full := record("straße/日本/🦄'\";--%_\\", once.Started)
	full.Request, full.Starts, full.Doubt, full.Owner = strings.Repeat("af", 32), 1<<30, true, "owner 'ünï'"
	done := record("done", once.Done)
	done.Expires, done.Outcome = day.Add(time.Hour), []byte(`{"text":"日本 \u0000 🦄 \\ \" end","n":[1e-7,null,true]}`)
	unkept := record("unkept", once.Done)
	unkept.Outcome, unkept.Unkept = nil, "it is larger than it may be"
	early := record("early", once.Unknown)
	early.First, early.Changed = time.UnixMilli(-1), time.UnixMilli(1)
	late := record("late", once.Done)
	late.Expires = time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)
	large := record("large", once.Done)
	large.Outcome = []byte(`"` + strings.Repeat("é", 3<<18) + `"`)
	for _, r := range []once.Record{full, done, unkept, early, late, large, record(strings.Repeat("k", 255), once.Done)} {
		put(t, s, r)
		if got, found := load(t, s, r.Key); !found || !same(got, r) {
			t.Errorf("%.40s: got %.400s", r.Key, fmt.Sprintf("%+v", got))
		}
		next := r
		next.Revision = revision()
		if !swap(t, s, r.Key, r.Revision, &next) {
			t.Errorf("%.40s is not replaced", r.Key)
		}
		if got, _ := load(t, s, r.Key); !same(got, next) {
			t.Errorf("%.40s: got %.400s", r.Key, fmt.Sprintf("%+v", got))
		}
	}
}

func aliases(t *testing.T, p Place) {
	s := open(t, p)
	r := record("k", once.Done)
	put(t, s, r)
	r.Outcome[0] = 'x'
	got, _ := load(t, s, "k")
	if string(got.Outcome) != `{"id":"TCK-1"}` {
		t.Fatalf("a later change of what was written shows: %s", got.Outcome)
	}
	got.Outcome[0] = 'x'
	if got, _ = load(t, s, "k"); string(got.Outcome) != `{"id":"TCK-1"}` {
		t.Fatalf("a change of what was read shows: %s", got.Outcome)
	}
}

func refusals(t *testing.T, p Place) {
	s := open(t, p)
	for name, spoil := range map[string]func(*once.Record){
		"no state":       func(r *once.Record) { r.State = 0 },
		"unknown state":  func(r *once.Record) { r.State = 9 },
		"no revision":    func(r *once.Record) { r.Revision = "" },
		"no owner":       func(r *once.Record) { r.Owner = "" },
		"no lease":       func(r *once.Record) { r.Lease = time.Time{} },
		"no start":       func(r *once.Record) { r.First = time.Time{} },
		"early expiry":   func(r *once.Record) { r.Expires = day },
		"early outcome":  func(r *once.Record) { r.Outcome = []byte("1") },
		"broken outcome": func(r *once.Record) { r.State, r.Outcome = once.Done, []byte("{") },
	} {
		r := record("k", once.Started)
		spoil(&r)
		if ok, err := s.Swap(t.Context(), "k", "", &r); ok || !errors.Is(err, once.ErrCorrupt) {
			t.Errorf("%s: got %v, %v", name, ok, err)
		}
	}
	if _, found := load(t, s, "k"); found {
		t.Error("a bad record was written")
	}
}

func pages(t *testing.T, p Place) {
	s := open(t, p)
	want := []string{"B", "Z", "a", "a-b", "ab", "z", "ä", "日"} // by bytes: no collation of a database has this order
	for i, key := range want {
		put(t, s, record(key, []once.State{once.Started, once.Unknown}[i%2]))
		put(t, s, record(key+"-done", once.Done))
	}
	var got []string
	for after := ""; ; {
		records, err := s.Unfinished(t.Context(), after, 3)
		if err != nil || len(records) > 3 {
			t.Fatalf("got %d records, %v", len(records), err)
		}
		if len(records) == 0 {
			break
		}
		for _, r := range records {
			if one, found := load(t, s, r.Key); !found || !same(r, one) {
				t.Errorf("listed %+v, loaded %+v", r, one)
			}
			got = append(got, r.Key)
		}
		after = got[len(got)-1]
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if records, err := s.Unfinished(t.Context(), "", 0); len(records) != 0 || err != nil {
		t.Errorf("limit 0: %d records, %v", len(records), err)
	}
}

func expiry(t *testing.T, p Place) {
	s := open(t, p)
	for key, expires := range map[string]time.Time{"before": day.Add(-time.Millisecond), "then": day, "after": day.Add(time.Millisecond), "never": {}} {
		r := record(key, once.Done)
		r.Expires = expires
		put(t, s, r)
	}
	for _, state := range []once.State{once.Started, once.Unknown} {
		r := record(state.String(), state)
		r.First, r.Changed = time.UnixMilli(1), time.UnixMilli(1)
		put(t, s, r)
	}
	for _, want := range []int{1, 0} {
		if n, err := s.Expire(t.Context(), day); n != want || err != nil {
			t.Errorf("expired %d, %v; want %d", n, err, want)
		}
	}
	if n, err := s.Expire(t.Context(), day.AddDate(100, 0, 0)); n != 2 || err != nil {
		t.Errorf("in a hundred years: %d, %v", n, err)
	}
	for key, want := range map[string]bool{"before": false, "then": false, "after": false, "never": true, "started": true, "unknown": true} {
		if _, found := load(t, s, key); found != want {
			t.Errorf("%s is there: %v", key, found)
		}
	}
}

// together runs f on several handles at once, and waits.
func together(t *testing.T, p Place, handles, each int, f func(s once.Store, n int)) {
	t.Helper()
	var all sync.WaitGroup
	for h := range handles {
		s := open(t, p)
		for e := range each {
			all.Go(func() { f(s, h*each+e) })
		}
	}
	all.Wait()
}

func races(t *testing.T, p Place) {
	seen := open(t, p)
	for _, found := range []bool{false, true} {
		from := ""
		if found {
			r, _ := load(t, seen, "k")
			from = r.Revision
		}
		var won atomic.Int32
		var winner atomic.Value
		together(t, p, 4, 4, func(s once.Store, n int) {
			next := record("k", once.Started)
			next.Starts = n
			ok, err := s.Swap(context.Background(), "k", from, &next)
			if err != nil {
				t.Errorf("swap: %v", err)
			}
			if ok {
				won.Add(1)
				winner.Store(next)
			}
		})
		if won.Load() != 1 {
			t.Fatalf("%d of 16 won", won.Load())
		}
		if r, _ := load(t, seen, "k"); !same(r, winner.Load().(once.Record)) {
			t.Fatalf("the winner wrote %+v, the store has %+v", winner.Load(), r)
		}
	}
}

func counts(t *testing.T, p Place) {
	const handles, each = 4, 5
	put(t, open(t, p), record("k", once.Started))
	together(t, p, handles, each, func(s once.Store, _ int) {
		for {
			r, _, err := s.Load(context.Background(), "k")
			if err != nil {
				t.Errorf("load: %v", err)
				return
			}
			next := r
			next.Revision = revision()
			next.Starts++
			if ok, err := s.Swap(context.Background(), "k", r.Revision, &next); ok || err != nil {
				if err != nil {
					t.Errorf("swap: %v", err)
				}
				return
			}
		}
	})
	if r, _ := load(t, open(t, p), "k"); r.Starts != 1+handles*each {
		t.Errorf("counted to %d, want %d", r.Starts, 1+handles*each)
	}
}

// each calls all methods but Close.
func each(ctx context.Context, s once.Store) map[string]error {
	r := record("other", once.Started)
	_, _, loaded := s.Load(ctx, "k")
	_, swapped := s.Swap(ctx, "other", "", &r)
	_, listed := s.Unfinished(ctx, "", 10)
	_, expired := s.Expire(ctx, day.AddDate(1, 0, 0))
	return map[string]error{"Load": loaded, "Swap": swapped, "Unfinished": listed, "Expire": expired}
}

func cancelled(t *testing.T, p Place) {
	s := open(t, p)
	done := record("k", once.Done)
	done.Expires = day
	put(t, s, done)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for name, err := range each(ctx, s) {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if _, found := load(t, s, "other"); found {
		t.Error("a cancelled write was done")
	}
	if _, found := load(t, s, "k"); !found {
		t.Error("a cancelled Expire was done")
	}
}

func closed(t *testing.T, p Place) {
	s := p.Open(t)
	put(t, s, record("k", once.Done))
	for range 2 {
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	}
	for name, err := range each(t.Context(), s) {
		if !errors.Is(err, once.ErrClosed) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}
