package holdfast

import (
	"math"
	"testing"
	"time"
)

func TestPlanCombinesTheServersWait(t *testing.T) {
	const s = time.Second
	b := Backoff{Base: 2 * s, Cap: 8 * s}
	slow := Backoff{Base: 2 * s, Cap: 60 * s, ThrottleBase: 10 * s}
	plain := Backoff{Base: 2 * s, Cap: 8 * s, Jitter: NoJitter}
	for _, row := range []struct {
		name    string
		backoff Backoff
		kind    Kind
		server  time.Duration
		rule    ServerWait
		attempt int
		dice    float64
		want    time.Duration
	}{
		{"plus-jitter adds the attempt's own draw", b, Throttled, 20 * s, PlusJitter, 2, 0.5, 22 * s},
		{"plus-jitter is bounded by the cap", b, Throttled, 20 * s, PlusJitter, 9, 1, 28 * s},
		{"plus-jitter with the lowest dice", b, Throttled, 20 * s, PlusJitter, 9, 0, 20 * s},
		{"plus-base adds a draw from the base alone", b, Throttled, 20 * s, PlusBase, 9, 0.5, 21 * s},
		{"at-least: the server's is longer", b, Throttled, 20 * s, AtLeast, 9, 1, 20 * s},
		{"at-least: our own is longer", b, Throttled, 3 * s, AtLeast, 9, 1, 8 * s},
		{"exact, whatever the dice", b, Throttled, 20 * s, Exact, 9, 1, 20 * s},
		{"an unknown rule is the default", b, Throttled, 20 * s, ServerWait(9), 2, 0.5, 22 * s},
		{"on a broken upstream too", b, Broken, 20 * s, PlusJitter, 1, 0.5, 21 * s},
		{"no server's wait", b, Broken, 0, Exact, 1, 0.5, 1 * s},
		{"a negative one is none", b, Broken, -5 * s, Exact, 1, 0.5, 1 * s},
		{"a negative one is none for plus-base", b, Broken, -5 * s, PlusBase, 3, 0.5, 4 * s},
		{"without jitter the bound itself is added", plain, Throttled, 20 * s, PlusJitter, 2, 0, 24 * s},
		{"without jitter the bound itself", plain, Broken, 0, PlusJitter, 2, 0, 4 * s},
		{"a throttle has a base of its own", slow, Throttled, 0, PlusJitter, 2, 0.5, 10 * s},
		{"an overload has the same", slow, Overloaded, 0, PlusJitter, 1, 0.5, 5 * s},
		{"a broken upstream has not", slow, Broken, 0, PlusJitter, 2, 0.5, 2 * s},
		{"nor a throttle with a server's wait", slow, Throttled, 20 * s, PlusJitter, 2, 0.5, 22 * s},
		{"a negative throttle base is no wait", Backoff{ThrottleBase: -1}, Throttled, 0, PlusJitter, 5, 1, 0},
		{"no wait of our own", Backoff{Base: -1}, Throttled, 20 * s, PlusJitter, 5, 1, 20 * s},
		{"no wait of our own, plus-base", Backoff{Base: -1}, Throttled, 20 * s, PlusBase, 5, 1, 20 * s},
	} {
		t.Run(row.name, func(t *testing.T) {
			v := &Verdict{Kind: row.kind, Wait: row.server}
			if got := row.backoff.plan(v, row.attempt, row.rule, func() float64 { return row.dice }); got != row.want {
				t.Errorf("plan = %v, want %v", got, row.want)
			}
		})
	}
}

// Whatever rule and numbers: never earlier than the upstream asked, and no sum wraps into the past.
func TestPlanIsNeverEarlierThanTheServerAsked(t *testing.T) {
	const longest = time.Duration(math.MaxInt64)
	odd := []time.Duration{0, 1, time.Second, longest / 2, longest - 1, longest, -1, -longest, math.MinInt64}
	for _, server := range odd {
		for _, base := range odd {
			for _, limit := range odd {
				for _, throttle := range []time.Duration{0, -1, time.Second, longest} {
					for rule := PlusJitter; rule <= Exact+1; rule++ {
						for _, jitter := range []Jitter{FullJitter, NoJitter} {
							for _, dice := range []float64{0, 0.5, 1, -3, 7, math.NaN(), math.Inf(1), math.Inf(-1)} {
								b := Backoff{Base: base, Cap: limit, ThrottleBase: throttle, Jitter: jitter}
								got := b.plan(&Verdict{Kind: Throttled, Wait: server}, 70, rule, func() float64 { return dice })
								if got < 0 || got < server {
									t.Fatalf("%+v, server %v, rule %v, dice %v: plan = %v", b, server, rule, dice, got)
								}
								if rule == Exact && server > 0 && got != server {
									t.Fatalf("%+v: exactly %v became %v", b, server, got)
								}
							}
						}
					}
				}
			}
		}
	}
}

// A seeded run must not take another course because of what the upstream says.
func TestPlanThrowsTheDiceOnce(t *testing.T) {
	for rule := PlusJitter; rule <= Exact; rule++ {
		for _, server := range []time.Duration{0, time.Second, time.Hour} {
			thrown := 0
			Backoff{}.plan(&Verdict{Kind: Throttled, Wait: server}, 3, rule, func() float64 { thrown++; return 0.5 })
			if thrown != 1 {
				t.Errorf("%v, server's wait %v: the dice were thrown %d times, want once", rule, server, thrown)
			}
		}
	}
}

func TestInstantsSaturate(t *testing.T) {
	const longest = time.Duration(math.MaxInt64)
	for _, row := range []struct {
		i    instant
		d    time.Duration
		want instant
	}{
		{5, 7, 12}, {5, -7, -2}, {never, 1, never}, {never - 1, 2, never}, {1, longest, never}, {always, -2, always}, {-5, -longest, always},
		{always, longest, 0}, {never, -longest, 0},
	} {
		if got := row.i.add(row.d); got != row.want {
			t.Errorf("%d + %d = %d, want %d", row.i, row.d, got, row.want)
		}
	}
	for _, row := range []struct {
		i, j instant
		want time.Duration
	}{
		{5, 7, -2}, {never, -1, longest}, {never, always, longest}, {always, 1, -longest - 1}, {always, never, -longest}, {0, always, longest}, {0, math.MinInt64, longest},
	} {
		if got := row.i.sub(row.j); got != row.want {
			t.Errorf("%d - %d = %d, want %d", row.i, row.j, got, row.want)
		}
	}
	for _, i := range []instant{0, 1, -1, instant(time.Hour), -instant(26 * 365 * 24 * time.Hour)} {
		if got := instantOf(i.time()); got != i {
			t.Errorf("instant %d becomes %d as a time and back", i, got)
		}
	}
}
