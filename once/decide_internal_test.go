package once

import (
	"testing"
	"time"

	"holdfast"
)

func TestDecide(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	old := Record{State: Started, First: now.Add(-time.Hour), Lease: now, Request: "a"}
	runs := Record{State: Started, First: now.Add(-time.Hour), Lease: now.Add(1), Request: "a"}
	done := Record{State: Done, First: now.Add(-time.Hour), Request: "a"}
	unknown := Record{State: Unknown, First: now.Add(-time.Hour), Why: "its answer was lost", Request: "a"}
	for _, row := range []struct {
		name string
		f    facts
		want action
		why  string
	}{
		{name: "nothing", f: facts{}, want: start},
		{name: "done", f: facts{record: done}, want: give},
		{name: "done, another request", f: facts{record: done, request: "b"}, want: refuse},
		{name: "done, the same request", f: facts{record: done, request: "a"}, want: give},
		{name: "runs", f: facts{record: runs, replays: true, lookups: true}, want: wait},
		{name: "runs, another request", f: facts{record: runs, request: "b"}, want: refuse},
		{name: "left", f: facts{record: old}, want: report, why: "whoever ran it is gone"},
		{name: "left, replays", f: facts{record: old, replays: true}, want: start},
		{name: "left, replays, another request", f: facts{record: old, replays: true, request: "b"}, want: refuse},
		{name: "left, replays, key known", f: facts{record: old, replays: true, keyLife: time.Hour + 1}, want: start},
		{name: "left, replays, key forgotten", f: facts{record: old, replays: true, keyLife: time.Hour}, want: report, why: "whoever ran it is gone, and the far side has forgotten the key by now"},
		{name: "left, replays, key forgotten, lookup", f: facts{record: old, replays: true, keyLife: time.Hour, lookups: true}, want: lookUp, why: "whoever ran it is gone"},
		{name: "left, lookup", f: facts{record: old, lookups: true}, want: lookUp, why: "whoever ran it is gone"},
		{name: "left, both", f: facts{record: old, replays: true, lookups: true}, want: start},
		{name: "unknown", f: facts{record: unknown}, want: report, why: "its answer was lost"},
		{name: "unknown, replays", f: facts{record: unknown, replays: true}, want: start},
		{name: "unknown, lookup", f: facts{record: unknown, lookups: true}, want: lookUp, why: "its answer was lost"},
	} {
		row.f.now, row.f.found = now, row.f.record.State != 0
		if got, why := decide(&row.f); got != row.want || got != start && why != row.why {
			t.Errorf("%s: got %v, %q", row.name, got, why)
		}
	}
}

// A record whose outcome is known is never started; one in doubt never without replay. Whatever the facts are.
func FuzzDecide(f *testing.F) {
	for state := range uint8(3) {
		for flags := range uint8(4) {
			f.Add(state, -int64(20*time.Hour), -int64(time.Hour), int64(24*time.Hour), flags, false)
			f.Add(state, -int64(20*time.Hour), int64(time.Second), int64(0), flags, true)
		}
	}
	f.Fuzz(func(t *testing.T, state uint8, first, lease, life int64, flags uint8, other bool) {
		now := time.Unix(0, 0)
		facts := facts{
			record: Record{State: State(state%3 + 1), First: now.Add(time.Duration(first)), Lease: now.Add(time.Duration(lease)), Request: "a"},
			found:  true, now: now, keyLife: time.Duration(life), replays: flags&1 != 0, lookups: flags&2 != 0,
		}
		if other {
			facts.request = "b"
		}
		got, _ := decide(&facts)
		if got == start && (!facts.replays || facts.record.State == Done || other) {
			t.Fatalf("%+v is started", facts)
		}
		if (got == give) != (facts.record.State == Done && !other) {
			t.Fatalf("%+v: %v", facts, got)
		}
		next := begun(&facts, "k", "run", time.Minute)
		if next.Lease.Sub(now) != time.Minute+recordTime { // with time to record how it ended
			t.Fatalf("a start of a minute has a lease until %v", next.Lease)
		}
		if !next.Doubt || !next.First.Equal(facts.record.First) || next.Request != "a" && !other {
			t.Fatalf("a start after %+v is %+v", facts.record, next)
		}
	})
}

// Whatever leaves doubt is repeated where the far side replays, also an error that nobody knows, and nowhere else; the breaker hears
// what it would have heard.
func TestInDoubt(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name    string
		v       holdfast.Verdict
		replays bool
		kind    holdfast.Kind
		was     holdfast.Kind
	}{
		{name: "broken", v: holdfast.Verdict{Kind: holdfast.Broken}, kind: holdfast.Unsafe, was: holdfast.Broken},
		{name: "not known", v: holdfast.Verdict{Kind: holdfast.Terminal}, kind: holdfast.Unsafe, was: holdfast.Terminal},
		{name: "unsafe, as its judge says", v: holdfast.Verdict{Kind: holdfast.Unsafe, Was: holdfast.Throttled}, kind: holdfast.Unsafe, was: holdfast.Throttled},
		{name: "broken, replays", v: holdfast.Verdict{Kind: holdfast.Broken}, replays: true, kind: holdfast.Broken},
		{name: "not known, replays", v: holdfast.Verdict{Kind: holdfast.Terminal}, replays: true, kind: holdfast.Broken},
		{name: "unsafe, replays", v: holdfast.Verdict{Kind: holdfast.Unsafe}, replays: true, kind: holdfast.Broken},
		{name: "a reply that is terminal, replays", v: holdfast.Verdict{Kind: holdfast.Terminal, Status: 409}, replays: true, kind: holdfast.Terminal},
	} {
		if got := inDoubt(row.v, row.replays); got.Kind != row.kind || got.Was != row.was {
			t.Errorf("%s: %v, was %v", row.name, got.Kind, got.Was)
		}
	}
}
