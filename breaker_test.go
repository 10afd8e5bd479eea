package holdfast_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"holdfast"
)

// bench plays a breaker by hand, with times counted from its start.
type bench struct {
	t     *testing.T
	b     *holdfast.Breaker
	start time.Time
}

func newBench(t *testing.T, s holdfast.BreakerSettings) *bench {
	return &bench{t, holdfast.NewBreaker(s), time.Now()}
}

func (x *bench) allow(at time.Duration) holdfast.Ticket {
	x.t.Helper()
	ticket, wait, ok := x.b.Allow(x.start.Add(at))
	if !ok {
		x.t.Fatalf("after %v: refused for %v", at, wait)
	}
	return ticket
}

func (x *bench) refuse(at, want time.Duration) {
	x.t.Helper()
	if _, wait, ok := x.b.Allow(x.start.Add(at)); ok || wait != want {
		x.t.Fatalf("after %v: admitted = %v, wait %v; want a refusal and a wait of %v", at, ok, wait, want)
	}
}

func (x *bench) settle(at time.Duration, ticket holdfast.Ticket, r holdfast.Result) {
	x.b.Settle(x.start.Add(at), ticket, r)
}

// once makes one attempt that ends at once.
func (x *bench) once(at time.Duration, r holdfast.Result) {
	x.t.Helper()
	x.settle(at, x.allow(at), r)
}

func (x *bench) is(want holdfast.State) {
	x.t.Helper()
	if got := x.b.State(); got != want {
		x.t.Fatalf("%v, want %v", got, want)
	}
}

// quick opens at the first failure, makes one probe and has no ramp.
var quickBreaker = holdfast.BreakerSettings{Failures: 1, Cooldown: 20 * time.Second, MaxCooldown: 100 * time.Second, Probes: 1, Lease: time.Minute, Ramp: -1}

func TestBreakerTripRules(t *testing.T) {
	const second = time.Second
	for _, row := range []struct {
		name     string
		settings holdfast.BreakerSettings
		takes    time.Duration // each attempt
		every    time.Duration // from start to start
		outcomes string        // f: failure, s: success, i: ignored
		opensAt  int           // number of the outcome that opens it, 0: none
	}{
		{name: "five failures in a row", outcomes: "fffff", opensAt: 5},
		{name: "a success breaks the row", outcomes: "ffffsffff"},
		{name: "what is ignored breaks no row", outcomes: "ffiffif", opensAt: 7},
		{name: "half of ten calls", outcomes: "sfsfsfsfsf", opensAt: 10},
		{name: "nine calls say nothing", outcomes: "sfsfsfsff"},
		{name: "less than half", outcomes: "ssfsfsfssfsfssfsf"},
		{name: "row off, ratio trips", settings: holdfast.BreakerSettings{Failures: -1}, outcomes: "ffffffffff", opensAt: 10},
		{name: "both off", settings: holdfast.BreakerSettings{Failures: -1, Ratio: -1}, outcomes: "ffffffffffffffffffffffffffffffffffffffff"},
		{name: "calls longer than the window, one at a time", settings: holdfast.BreakerSettings{Window: 10 * second}, takes: 15 * second, every: 15 * second, outcomes: "fffff", opensAt: 5},
		{name: "calls longer than the window, many at once", settings: holdfast.BreakerSettings{Failures: -1, Window: 10 * second}, takes: 15 * second, every: second / 2, outcomes: "sfsfsfsfsfsf", opensAt: 10},
		{name: "failures too far apart for the ratio", settings: holdfast.BreakerSettings{Failures: -1, Window: 12 * second, MinCalls: 4}, every: 5 * second, outcomes: "ffffffff"},
		{name: "failures just near enough for the ratio", settings: holdfast.BreakerSettings{Failures: -1, Window: 12 * second, MinCalls: 4}, every: 3 * second, outcomes: "ffff", opensAt: 4},
		{name: "slow successes", settings: holdfast.BreakerSettings{SlowCall: 5 * second}, takes: 5*second + 1, every: second, outcomes: "sssss", opensAt: 5},
		{name: "not slow enough", settings: holdfast.BreakerSettings{SlowCall: 5 * second}, takes: 5 * second, every: second, outcomes: "ssssssssss"},
		{name: "slow rule off", settings: holdfast.BreakerSettings{SlowCall: -1}, takes: time.Hour, every: second, outcomes: "ssssssssss"},
	} {
		t.Run(row.name, func(t *testing.T) {
			x := newBench(t, row.settings)
			results := map[rune]holdfast.Result{'f': holdfast.Failure, 's': holdfast.Success, 'i': holdfast.Ignore}
			var tickets []holdfast.Ticket
			if row.takes > row.every { // they overlap: all are out before the first ends
				for i := range row.outcomes {
					tickets = append(tickets, x.allow(time.Duration(i)*row.every))
				}
			}
			for i, r := range row.outcomes {
				at := time.Duration(i) * row.every
				if i >= len(tickets) {
					tickets = append(tickets, x.allow(at))
				}
				x.settle(at+row.takes, tickets[i], results[r])
				if open := x.b.State() == holdfast.Open; open != (i+1 == row.opensAt) {
					t.Fatalf("open = %v after outcome %d of %s", open, i+1, row.outcomes)
				} else if open {
					return
				}
			}
		})
	}
}

// An outage is left alone for a tenth of its time, and never for less than the cooldown.
func TestBreakerCooldownFollowsTheOutage(t *testing.T) {
	x := newBench(t, quickBreaker)
	x.once(0, holdfast.Failure)
	at := time.Duration(0)
	for n := range 60 {
		cooldown := min(max(20*time.Second, at/10), 100*time.Second)
		x.refuse(at, cooldown)
		x.refuse(at+cooldown-1, 1)
		at += cooldown
		x.once(at, holdfast.Failure)
		x.is(holdfast.Open)
		switch {
		case n < 9 && at != time.Duration(n+1)*20*time.Second:
			t.Fatalf("probe %d came after %v", n+1, at)
		case n == 59 && (at < 40*time.Minute || x.b.Status(x.start.Add(at)).Cooldown != 100*time.Second):
			t.Fatalf("the cooldown does not end at its maximum: %+v", x.b.Status(x.start.Add(at)))
		}
	}
	at += 100 * time.Second
	x.once(at, holdfast.Success)
	x.is(holdfast.Closed)
	at += 121 * time.Second // two windows: it is another outage
	x.once(at, holdfast.Failure)
	x.refuse(at, 20*time.Second)
}

// All probes must fail, in whatever order they come back, and one that succeeds is enough.
func TestBreakerProbes(t *testing.T) {
	s := quickBreaker
	s.Probes = 3
	half := func(t *testing.T) (x *bench, probes []holdfast.Ticket) {
		x = newBench(t, s)
		x.once(0, holdfast.Failure)
		for range 3 {
			probes = append(probes, x.allow(20*time.Second))
		}
		x.refuse(20*time.Second, 0)
		return x, probes
	}
	t.Run("all fail", func(t *testing.T) {
		x, probes := half(t)
		for i := range probes {
			x.is(holdfast.HalfOpen)
			x.settle(21*time.Second, probes[2-i], holdfast.Failure)
		}
		x.is(holdfast.Open)
		x.refuse(21*time.Second, 20*time.Second)
	})
	t.Run("one after the other", func(t *testing.T) {
		x := newBench(t, s)
		x.once(0, holdfast.Failure)
		for range 3 {
			x.once(20*time.Second, holdfast.Failure)
		}
		x.is(holdfast.Open)
	})
	t.Run("the last succeeds", func(t *testing.T) {
		x, probes := half(t)
		x.settle(20*time.Second, probes[0], holdfast.Failure)
		x.settle(20*time.Second, probes[1], holdfast.Failure)
		x.refuse(20*time.Second, 0)
		x.settle(29*time.Second, probes[2], holdfast.Success)
		x.is(holdfast.Closed)
	})
	t.Run("the first succeeds, and late failures say nothing", func(t *testing.T) {
		x, probes := half(t)
		x.settle(20*time.Second, probes[0], holdfast.Success)
		x.settle(21*time.Second, probes[1], holdfast.Failure)
		x.settle(21*time.Second, probes[2], holdfast.Failure)
		x.is(holdfast.Closed)
	})
	t.Run("what proves nothing gives its place back", func(t *testing.T) {
		x, probes := half(t)
		x.settle(20*time.Second, probes[0], holdfast.Ignore)
		x.settle(20*time.Second, probes[1], holdfast.Failure)
		x.settle(20*time.Second, probes[2], holdfast.Failure)
		x.is(holdfast.HalfOpen)
		x.once(20*time.Second, holdfast.Failure)
		x.is(holdfast.Open)
	})
	t.Run("a lease that ends makes room for as many again", func(t *testing.T) {
		x, probes := half(t)
		x.settle(21*time.Second, probes[0], holdfast.Failure)
		for range 3 {
			probes = append(probes, x.allow(80*time.Second))
		}
		x.refuse(80*time.Second, 0)
		x.settle(81*time.Second, probes[1], holdfast.Success) // its place is taken
		x.is(holdfast.HalfOpen)
		for _, p := range probes[3:] {
			x.settle(82*time.Second, p, holdfast.Failure)
		}
		x.is(holdfast.Open)
	})
}

// recovering is a breaker that has just closed after an outage of a minute.
func recovering(t *testing.T) *bench {
	x := newBench(t, holdfast.BreakerSettings{})
	for range 5 {
		x.once(0, holdfast.Failure)
	}
	for at := 20 * time.Second; at < time.Minute; at += 20 * time.Second {
		for range 5 {
			x.once(at, holdfast.Failure)
		}
		x.is(holdfast.Open)
	}
	x.once(time.Minute, holdfast.Success)
	x.is(holdfast.Closed)
	return x
}

// play makes an attempt every half second. 'f' fails, all else succeeds.
func (x *bench) play(at time.Duration, outcomes string) time.Duration {
	x.t.Helper()
	for _, o := range outcomes {
		x.once(at, map[bool]holdfast.Result{true: holdfast.Failure, false: holdfast.Success}[o == 'f'])
		at += time.Second / 2
	}
	return at
}

// An upstream that came back by and by was shut off again by the first of its failures, for longer and longer.
func TestBreakerBearsWithASlowRecovery(t *testing.T) {
	for _, row := range []struct {
		name     string
		outcomes string // from the moment of closing, one every half second
		opens    bool
	}{
		{"four in five fail at first, then fewer", strings.Repeat("ffffs", 8) + strings.Repeat("ffs", 14) + strings.Repeat("fs", 20) + strings.Repeat("fss", 30), false},
		{"nine in a row", "fffffffff" + "s", false},
		{"ten in a row, when nothing else is known of it", "ffffffffff", true},
		{"ten in a row of one that fails most of the time", strings.Repeat("ffffs", 8) + "ffffffffff", false},
		{"it is gone again", strings.Repeat("ffffs", 8) + strings.Repeat("f", 50), true},
		{"half fail, and it gets no better", strings.Repeat("fs", 80), true},
	} {
		t.Run(row.name, func(t *testing.T) {
			x := recovering(t)
			at := time.Minute
			for _, o := range row.outcomes {
				if x.b.State() == holdfast.Open {
					break
				}
				at = x.play(at, string(o))
			}
			if opened := x.b.State() == holdfast.Open; opened != row.opens {
				t.Errorf("open is %v after %v, want %v", opened, at, row.opens)
			}
		})
	}
}

// Whoever had answered is asked soon again: after a quarter of the cooldown, then twice as long each time.
func TestBreakerAsksSoonAfterARelapse(t *testing.T) {
	x := recovering(t)
	at := x.play(time.Minute, "ffffffffff") - time.Second/2
	for _, cooldown := range []time.Duration{5 * time.Second, 10 * time.Second, 20 * time.Second, 20 * time.Second} {
		x.is(holdfast.Open)
		x.refuse(at, cooldown)
		at += cooldown
		for range 5 {
			x.once(at, holdfast.Failure)
		}
	}
}

// Once three quarters succeed, the ordinary rules hold again.
func TestBreakerRecoveryEnds(t *testing.T) {
	x := recovering(t)
	at := x.play(time.Minute, "ssssssssssssssssssssssffff")
	x.is(holdfast.Closed)
	x.play(at, "f")
	x.is(holdfast.Open)
}

func TestBreakerCooldownAtTheEdgesOfArithmetic(t *testing.T) {
	const longest = time.Duration(math.MaxInt64)
	for _, row := range []struct {
		name     string
		cooldown time.Duration
		most     time.Duration
		waits    []time.Duration // after each failed probe
	}{
		{"the maximum is below the cooldown", 20, 5, []time.Duration{20, 20, 20}},
		{"the maximum is off the scale", 1 << 61, longest, []time.Duration{1 << 61, 1 << 61, 1 << 61}},
		{"a negative cooldown is none", -5, 100, []time.Duration{0, 0, 0}},
		{"a negative maximum is no growth", 20, -100, []time.Duration{20, 20, 20}},
	} {
		t.Run(row.name, func(t *testing.T) {
			b := holdfast.NewBreaker(holdfast.BreakerSettings{Failures: 1, Probes: -1, Cooldown: row.cooldown, MaxCooldown: row.most})
			now := time.Now().Round(0) // a time this far ahead has no monotonic reading, so the first must have none
			for i, want := range row.waits {
				if i > 0 {
					now = now.Add(row.waits[i-1])
				}
				ticket, _, ok := b.Allow(now)
				if !ok {
					t.Fatalf("no probe after %v", row.waits[:i])
				}
				b.Settle(now, ticket, holdfast.Failure)
				_, wait, ok := b.Allow(now)
				// A cooldown past what a time can hold lasts until the end of time.
				if want > 0 && (ok || wait != want && want != longest) {
					t.Fatalf("cooldown %d is %v (over: %v), want %v", i, wait, ok, want)
				}
				if want == 0 { // the probe was admitted at once; give it back
					b = holdfast.NewBreaker(holdfast.BreakerSettings{Failures: 1, Probes: -1, Cooldown: row.cooldown, MaxCooldown: row.most})
				}
			}
		})
	}
}

func TestBreakerLostProbe(t *testing.T) {
	x := newBench(t, quickBreaker)
	x.once(0, holdfast.Failure)
	lost := x.allow(20 * time.Second)
	x.refuse(20*time.Second, 0)
	x.refuse(80*time.Second-1, 0)
	second := x.allow(80 * time.Second) // the lease is over
	x.settle(81*time.Second, lost, holdfast.Failure)
	x.is(holdfast.HalfOpen)
	x.settle(82*time.Second, lost, holdfast.Success)
	x.is(holdfast.HalfOpen)
	x.settle(83*time.Second, second, holdfast.Success)
	x.is(holdfast.Closed)
}

// A probe that comes back after its lease, when nobody has taken its place, still decides.
func TestBreakerLateProbe(t *testing.T) {
	x := newBench(t, quickBreaker)
	x.once(0, holdfast.Failure)
	x.settle(time.Hour, x.allow(20*time.Second), holdfast.Success)
	x.is(holdfast.Closed)
}

// A probe that proved nothing released nothing: stuck half-open, all calls failed fast.
func TestB120_ProbeThatProvesNothingLetsTheNextProbe(t *testing.T) {
	x := newBench(t, quickBreaker)
	x.once(0, holdfast.Failure)
	for range 10 {
		x.once(20*time.Second, holdfast.Ignore)
		x.is(holdfast.HalfOpen)
	}
	x.once(20*time.Second, holdfast.Success)
	x.is(holdfast.Closed)
}

// A result of an earlier half-open period closed a newer one, or freed a place in it.
func TestB121_ResultsOfEarlierPeriodsChangeNothing(t *testing.T) {
	for _, r := range []holdfast.Result{holdfast.Success, holdfast.Failure, holdfast.Ignore} {
		x := newBench(t, quickBreaker)
		old := x.allow(0)
		x.once(0, holdfast.Failure)
		first := x.allow(20 * time.Second)
		again := x.allow(80 * time.Second) // the first's lease is over
		x.settle(80*time.Second, again, holdfast.Failure)
		third := x.allow(120 * time.Second)
		for _, late := range []holdfast.Ticket{old, first, again} {
			x.settle(121*time.Second, late, r)
			x.is(holdfast.HalfOpen)
			x.refuse(121*time.Second, 0)
		}
		x.settle(122*time.Second, third, holdfast.Success)
		x.is(holdfast.Closed)
		for _, late := range []holdfast.Ticket{old, first, again, third} {
			x.settle(123*time.Second, late, holdfast.Failure)
			x.is(holdfast.Closed)
		}
	}
}

// After closing two may be in flight at first, and one more with each success; callers one at a time notice nothing.
func TestBreakerRampsUp(t *testing.T) {
	s := quickBreaker
	s.Ramp, s.Failures = 10*time.Second, 3
	closed := func(t *testing.T) *bench {
		x := newBench(t, s)
		for range 3 {
			x.once(0, holdfast.Failure)
		}
		x.once(20*time.Second, holdfast.Success)
		return x
	}
	t.Run("grows with successes", func(t *testing.T) {
		x := closed(t)
		var out []holdfast.Ticket
		for room := 2; room < 12; room++ {
			for len(out) < room {
				out = append(out, x.allow(20*time.Second))
			}
			x.refuse(20*time.Second, 10*time.Second)
			x.settle(20*time.Second, out[0], holdfast.Success)
			out = out[1:]
		}
	})
	t.Run("one at a time", func(t *testing.T) {
		x := closed(t)
		for i := range 100 {
			x.once(20*time.Second+time.Duration(i)*time.Millisecond, holdfast.Success)
		}
	})
	t.Run("failures and what proves nothing give back and do not grow", func(t *testing.T) {
		x := closed(t)
		for _, r := range []holdfast.Result{holdfast.Ignore, holdfast.Failure, holdfast.Ignore, holdfast.Ignore} {
			one, two := x.allow(25*time.Second), x.allow(25*time.Second)
			x.refuse(25*time.Second, 5*time.Second)
			x.settle(25*time.Second, one, r)
			x.settle(25*time.Second, two, holdfast.Ignore)
		}
	})
	t.Run("ends", func(t *testing.T) {
		x := closed(t)
		x.allow(20 * time.Second)
		x.allow(20 * time.Second)
		x.refuse(30*time.Second-1, 1)
		for range 50 {
			x.allow(30 * time.Second)
		}
	})
}

func TestBreakerZeroValueWorks(t *testing.T) {
	var b holdfast.Breaker
	b.Settle(time.Now(), holdfast.Ticket{}, holdfast.Failure) // of nobody
	x := &bench{t, &b, time.Now()}
	for range 5 {
		x.is(holdfast.Closed)
		x.once(0, holdfast.Failure)
	}
	x.is(holdfast.Open)
	x.refuse(time.Second, 19*time.Second)
	x.once(20*time.Second, holdfast.Success)
	x.is(holdfast.Closed)
}

func TestBreakerZeroTimeIsNow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var now time.Time
		s := quickBreaker
		s.SlowCall = time.Second
		b := holdfast.NewBreaker(s)
		for _, takes := range []time.Duration{time.Second, time.Second + 1} { // the second is slow, and opens it
			ticket, _, ok := b.Allow(now)
			if !ok {
				t.Fatal("refused")
			}
			time.Sleep(takes)
			b.Settle(now, ticket, holdfast.Success)
		}
		time.Sleep(5 * time.Second)
		if _, wait, ok := b.Allow(now); ok || wait != 15*time.Second {
			t.Errorf("admitted = %v, wait %v; want a refusal for another 15s", ok, wait)
		}
	})
}

// A bubble's clock starts in the year 2000, and any clock may be given: instants before the process began.
func TestBreakerOnOldClocks(t *testing.T) {
	for _, start := range []time.Time{time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC), time.Now().Add(-time.Minute), time.Now().Add(100 * 365 * 24 * time.Hour)} {
		x := &bench{t, holdfast.NewBreaker(holdfast.BreakerSettings{Failures: -1, MinCalls: 8, Ramp: -1}), start}
		for i := range 8 { // half of them before the process began, where start is a minute ago
			x.is(holdfast.Closed)
			x.once(57*time.Second+time.Duration(i)*800*time.Millisecond, holdfast.Failure)
		}
		x.is(holdfast.Open)
		x.once(100*time.Second, holdfast.Success)
		x.is(holdfast.Closed)
	}
}

// However many ask at the instant when the cooldown or a lease ends, one probe goes.
func TestBreakerOneProbeHoweverManyAsk(t *testing.T) {
	for round := range 200 {
		x := newBench(t, quickBreaker)
		x.once(0, holdfast.Failure)
		for _, at := range []time.Duration{20 * time.Second, 80 * time.Second, 140 * time.Second} { // cooldown, lease, lease
			var probes atomic.Int32
			var gate, all sync.WaitGroup
			gate.Add(1)
			for range 50 {
				all.Go(func() {
					gate.Wait()
					if _, _, ok := x.b.Allow(x.start.Add(at)); ok {
						probes.Add(1)
					}
				})
			}
			gate.Done()
			all.Wait()
			if got := probes.Load(); got != 1 {
				t.Fatalf("round %d, after %v: %d probes at once, want 1", round, at, got)
			}
		}
	}
}

func TestBreakerTellsChangesInOrder(t *testing.T) {
	var mu sync.Mutex
	var told [][2]holdfast.State
	s := quickBreaker
	s.Cooldown, s.MaxCooldown = 1, 1
	s.OnChange = func(from, to holdfast.State) {
		mu.Lock()
		defer mu.Unlock()
		told = append(told, [2]holdfast.State{from, to})
	}
	b := holdfast.NewBreaker(s)
	var all sync.WaitGroup
	for i := range 16 {
		all.Go(func() {
			for j := range 300 {
				if ticket, _, ok := b.Allow(time.Now()); ok {
					b.Settle(time.Now(), ticket, holdfast.Result((i+j)%3))
				}
			}
		})
	}
	all.Wait()
	last := holdfast.Closed
	for i, c := range told {
		if c[0] != last || c[0] == c[1] {
			t.Fatalf("change %d is from %v to %v, but the one before ended %v", i, c[0], c[1], last)
		}
		last = c[1]
	}
	if last != b.State() || len(told) < 100 {
		t.Errorf("%d changes told, the last to %v; the breaker is %v", len(told), last, b.State())
	}
}

func TestBreakerHookMayUseTheBreaker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // a deadlock ends the bubble
		var b *holdfast.Breaker
		var told []string
		s := quickBreaker
		s.Cooldown = time.Nanosecond
		s.OnChange = func(from, to holdfast.State) {
			told = append(told, fmt.Sprint(from, "-", to, "-", b.State()))
			if to == holdfast.Open && len(told) < 4 {
				time.Sleep(time.Second)
				ticket, _, ok := b.Allow(time.Now())
				if !ok {
					t.Error("the hook gets no probe")
				}
				b.Settle(time.Now(), ticket, holdfast.Success)
			}
		}
		b = holdfast.NewBreaker(s)
		ticket, _, _ := b.Allow(time.Now())
		b.Settle(time.Now(), ticket, holdfast.Failure)
		// The hook itself caused the later ones; they are told after the one that is at it.
		want := []string{"closed-open-open", "open-half_open-closed", "half_open-closed-closed"}
		if !slices.Equal(told, want) {
			t.Errorf("told %q, want %q", told, want)
		}
	})
}

func TestBreakerHookThatPanics(t *testing.T) {
	var told []holdfast.State
	s := quickBreaker
	s.OnChange = func(_, to holdfast.State) {
		if told = append(told, to); to == holdfast.Open {
			panic("in the hook")
		}
	}
	x := newBench(t, s)
	ticket := x.allow(0)
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic did not come through")
			}
		}()
		x.settle(0, ticket, holdfast.Failure)
	}()
	x.is(holdfast.Open)
	x.once(20*time.Second, holdfast.Success)
	if want := []holdfast.State{holdfast.Open, holdfast.HalfOpen, holdfast.Closed}; !slices.Equal(told, want) {
		t.Errorf("told %v, want %v", told, want)
	}
}

func TestStateNames(t *testing.T) {
	got := fmt.Sprint(holdfast.Closed, holdfast.Open, holdfast.HalfOpen, holdfast.State(9))
	if want := "closed open half_open State(9)"; got != want {
		t.Errorf("states are %q, want %q", got, want)
	}
}
