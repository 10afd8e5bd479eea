package drill

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"holdfast"
)

const (
	outageRate  = 50 // calls per second
	outageTime  = 60 * time.Second
	outageCalls = int(outageTime/time.Second) * outageRate
	outageDelay = 50 * time.Millisecond // how long an attempt takes, failed or not
	flakyShare  = 0.10
	flakyCalls  = 4 * outageCalls
)

// traffic is calls at a steady rate and what became of them.
type traffic struct {
	calls     int
	started   []time.Duration
	answered  []time.Duration // when each call was answered, in order; 0: it was not
	attempts  []time.Duration // as the upstream saw them
	latencies []time.Duration // of the calls that failed
	good      int
	opened    int // how often a breaker did
}

// playTraffic begins calls at the rate; down says whether an attempt that arrives then fails.
func playTraffic(ctx context.Context, calls int, client func(w *world, up upstream) func(func(ended)), down func(time.Duration) bool) (t traffic, err error) {
	w := newWorld()
	t.calls = calls
	bad, good := overloaded.verdict(w.time()), yes.verdict(w.time())
	send := func(reply func(holdfast.Verdict)) func() {
		t.attempts = append(t.attempts, w.now)
		v := good
		if down(w.now) {
			v = bad
		}
		w.after(outageDelay, func() { reply(v) })
		return nil
	}
	begin := client(w, send)
	t.answered = make([]time.Duration, calls)
	for i := range calls {
		at := time.Duration(i) * time.Second / outageRate
		t.started = append(t.started, at)
		w.after(at, func() {
			begin(func(e ended) {
				if e.ok() {
					t.good++
					t.answered[i] = e.at
					return
				}
				t.latencies = append(t.latencies, e.at-at)
			})
		})
	}
	err = w.run(ctx)
	t.opened = w.opened
	return t, err
}

// factor is attempts per call.
func (t *traffic) factor() float64 { return float64(len(t.attempts)) / float64(t.calls) }

// share is the part of the calls that succeeded.
func (t *traffic) share() float64 { return float64(t.good) / float64(t.calls) }

// failed is the time to failure below which half, or 99 % of the failed calls came.
func (t *traffic) failed(share float64) string {
	if len(t.latencies) == 0 {
		return "-"
	}
	slices.Sort(t.latencies)
	return sec(t.latencies[min(int(share*float64(len(t.latencies))), len(t.latencies)-1)])
}

// perSecond is the load that the upstream saw.
func (t *traffic) perSecond(until time.Duration) []float64 {
	values := make([]float64, until/time.Second)
	for _, at := range t.attempts {
		if i := int(at / time.Second); i < len(values) {
			values[i]++
		}
	}
	return values
}

// contender is a way to make calls.
type contender struct {
	name  string
	begin func(*world, upstream) func(func(ended))
}

// with calls under one policy that all calls share.
func with(policy func() holdfast.Policy) func(*world, upstream) func(func(ended)) {
	return func(w *world, up upstream) func(func(ended)) {
		p := policy()
		p.Observe = func(e holdfast.Event) {
			if e.Kind == holdfast.EventCircuit && e.To == holdfast.Open {
				w.opened++
			}
		}
		return func(over func(ended)) { w.begin(&p, up, over) }
	}
}

// ours is the default policy with everything that a call to a failing upstream should have.
func ours(roll func() float64) func() holdfast.Policy {
	return func() holdfast.Policy {
		return holdfast.Policy{Breaker: holdfast.NewBreaker(holdfast.BreakerSettings{}), Budget: holdfast.NewBudget(holdfast.BudgetSettings{}), Dice: roll}
	}
}

// budgetAlone leaves the breaker out: what the retry budget does by itself.
func budgetAlone(roll func() float64) func() holdfast.Policy {
	return func() holdfast.Policy {
		return holdfast.Policy{Budget: holdfast.NewBudget(holdfast.BudgetSettings{}), Dice: roll}
	}
}

// stacked is an application that makes three attempts over an SDK that makes three.
func stacked(roll func() float64) func(*world, upstream) func(func(ended)) {
	return func(w *world, up upstream) func(func(ended)) {
		p := sdk(roll)()
		through := w.client(sdk(roll), up)
		return func(over func(ended)) { w.begin(&p, through, over) }
	}
}

// Outage sends 50 calls a second to an upstream that is down for a minute, and counts what retries add to its load.
// Then it lets one attempt in ten fail, and asks whether calls still succeed.
func Outage(ctx context.Context, o Options) (*Report, error) {
	roll := dice(orSeed(o.Seed, 1))
	own := ours(roll)
	name := "holdfast"
	if o.Policy != nil {
		name, own = "your policy", func() holdfast.Policy { return judged(o, roll) }
	}
	all := []contender{
		{"no retries", with(bareClient)},
		{"SDK default", with(sdk(roll))},
		{"SDK under 3 attempts", stacked(roll)},
		{"retry budget alone", with(budgetAlone(roll))},
		{name, with(own)},
	}
	r := &Report{Title: fmt.Sprintf("Outage: %d calls/s for %d s against an upstream that is down", outageRate, outageTime/time.Second)}
	if err := outageLoad(ctx, r, all); err != nil {
		return nil, err
	}
	if err := outageRecovery(ctx, r, all); err != nil {
		return nil, err
	}
	return r, outageFlaky(ctx, r, all, o)
}

func outageLoad(ctx context.Context, r *Report, all []contender) error {
	load := Section{Columns: []string{"policy", "calls", "attempts", "load", "failed after s, half", "99 %"}}
	charts := Section{}
	for _, c := range all {
		t, err := playTraffic(ctx, outageCalls, c.begin, func(time.Duration) bool { return true })
		if err != nil {
			return err
		}
		load.Rows = append(load.Rows, []string{c.name, fmt.Sprint(t.calls), fmt.Sprint(len(t.attempts)), fmt.Sprintf("%.3fx", t.factor()), t.failed(0.5), t.failed(0.99)})
		if c.name != "retry budget alone" {
			charts.Charts = append(charts.Charts, Chart{Caption: c.name + ": attempts per second over 62 s", Values: t.perSecond(outageTime + 2*time.Second)})
		}
		got := fmt.Sprintf("%.3fx", t.factor())
		switch c.name {
		case "no retries":
			r.equal("load of no retries", got, "1.000x")
		case "SDK default":
			r.equal("load of the SDK default", got, "3.000x")
		case "SDK under 3 attempts":
			r.equal("load of the SDK under 3 attempts", got, "9.000x")
		default:
			r.that("load of "+c.name, t.factor() <= 1.05, got, "at most 1.05x")
		}
	}
	r.add(load)
	r.add(charts)
	return nil
}

func outageRecovery(ctx context.Context, r *Report, all []contender) error {
	table := Section{Title: "The upstream is back after 60 s, and calls go on for another 60", Columns: []string{"policy", "first answer after s", "calls lost after recovery"}}
	for _, c := range all {
		t, err := playTraffic(ctx, 2*outageCalls, c.begin, func(at time.Duration) bool { return at < outageTime })
		if err != nil {
			return err
		}
		first, lost := time.Duration(math.MaxInt64), 0
		for i, at := range t.answered {
			if at > 0 {
				first = min(first, at-outageTime)
			} else if t.started[i] >= outageTime {
				lost++
			}
		}
		table.Rows = append(table.Rows, []string{c.name, sec(first), fmt.Sprint(lost)})
		if c.name == all[len(all)-1].name {
			r.that(c.name+" finds out that the upstream is back", t.good > 0 && first <= 5*time.Minute && lost < outageCalls, sec(first), "while calls still come")
		}
	}
	r.add(table)
	return nil
}

func outageFlaky(ctx context.Context, r *Report, all []contender, o Options) error {
	table := Section{Title: fmt.Sprintf("One attempt in ten fails, %d calls", flakyCalls), Columns: []string{"policy", "succeeded", "attempts per call", "breaker opened"}}
	for _, c := range all {
		roll := dice(orSeed(o.Seed, 2))
		t, err := playTraffic(ctx, flakyCalls, c.begin, func(time.Duration) bool { return roll() < flakyShare })
		if err != nil {
			return err
		}
		got := fmt.Sprintf("%.2f %%", 100*t.share())
		table.Rows = append(table.Rows, []string{c.name, got, fmt.Sprintf("%.3f", t.factor()), fmt.Sprint(t.opened)})
		if c.name == all[len(all)-1].name {
			r.that(c.name+" succeeds at 10 % failures", t.share() >= 0.999, got, "at least 99.9 %")
		}
	}
	r.add(table)
	return nil
}
