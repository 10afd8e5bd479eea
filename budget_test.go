package holdfast_test

import (
	"container/heap"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"holdfast"
)

// event is one moment of a simulated call.
type event struct {
	at   time.Time
	next func(now time.Time)
}

type timeline []event

func (l timeline) Len() int           { return len(l) }
func (l timeline) Less(i, j int) bool { return l[i].at.Before(l[j].at) }
func (l timeline) Swap(i, j int)      { l[i], l[j] = l[j], l[i] }
func (l *timeline) Push(x any)        { *l = append(*l, x.(event)) }
func (l *timeline) Pop() any {
	last := (*l)[len(*l)-1]
	*l = (*l)[:len(*l)-1]
	return last
}

// traffic is a load on one upstream, played through the very state machine that Do drives.
type traffic struct {
	perSecond int
	seconds   int
	latency   time.Duration
	fails     func(chance *rand.Rand, since time.Duration) bool
	settings  holdfast.BudgetSettings
}

// play returns how many attempts each call took on average, and the share of calls that succeeded.
func (tr traffic) play(seed uint64) (load, succeeded float64) {
	chance := rand.New(rand.NewPCG(seed, 4))
	policy := &holdfast.Policy{Budget: holdfast.NewBudget(tr.settings), Dice: chance.Float64}
	start := time.Now()
	var line timeline
	calls, attempts, answered := tr.perSecond*tr.seconds, 0, 0
	for i := range calls {
		c := holdfast.NewCall(policy)
		var follow func(now time.Time, s holdfast.Step)
		follow = func(now time.Time, s holdfast.Step) {
			switch s.Action {
			case holdfast.Send:
				attempts++
				heap.Push(&line, event{now.Add(tr.latency), func(now time.Time) {
					v := holdfast.Verdict{}
					if tr.fails(chance, now.Sub(start)) {
						v.Kind = holdfast.Broken
					} else {
						answered++
					}
					follow(now, c.Settle(now, v, holdfast.Tokens{}))
				}})
			case holdfast.Wait:
				heap.Push(&line, event{now.Add(s.Wait), func(now time.Time) { follow(now, c.Resume(now)) }})
			}
		}
		at := start.Add(time.Duration(i) * time.Second / time.Duration(tr.perSecond))
		heap.Push(&line, event{at, func(now time.Time) { follow(now, c.Begin(now, time.Time{}, holdfast.Tokens{})) }})
	}
	for line.Len() > 0 {
		e := heap.Pop(&line).(event)
		e.next(e.at)
	}
	return float64(attempts) / float64(calls), float64(answered) / float64(calls)
}

// At 10 % random failures retries help and are all but free; in an outage they do not help and run dry.
func TestBudgetLetsRetriesHelpAndStopsThemInAnOutage(t *testing.T) {
	tenth := func(chance *rand.Rand, _ time.Duration) bool { return chance.Float64() < 0.1 }
	outage := func(*rand.Rand, time.Duration) bool { return true }
	between := func(_ *rand.Rand, since time.Duration) bool { return since >= 30*time.Second && since < 90*time.Second }
	for _, row := range []struct {
		name      string
		traffic   traffic
		succeeded float64 // at least
		load      float64 // at most
		runs      int     // with chance in them, the average of several
	}{
		{"10 % random failures", traffic{50, 120, 100 * time.Millisecond, tenth, holdfast.BudgetSettings{}}, 0.999, 1.12, 10},
		{"10 % random failures, slow answers", traffic{50, 120, time.Second, tenth, holdfast.BudgetSettings{}}, 0.999, 1.12, 10},
		// A retry's cost is out until it has worked: the more calls are in flight, the more capacity they need.
		{"10 % random failures, 250 calls in flight", traffic{50, 120, 5 * time.Second, tenth, holdfast.BudgetSettings{}}, 0.997, 1.12, 10},
		{"10 % random failures, 250 calls in flight, capacity for them", traffic{50, 120, 5 * time.Second, tenth, holdfast.BudgetSettings{Capacity: 500}}, 0.9995, 1.12, 10},
		{"total outage", traffic{50, 120, 100 * time.Millisecond, outage, holdfast.BudgetSettings{}}, 0, 1.005, 1},
		{"total outage, more capacity", traffic{50, 120, 100 * time.Millisecond, outage, holdfast.BudgetSettings{Capacity: 500}}, 0, 1.01, 1},
		{"outage from 30 s to 90 s", traffic{50, 120, 100 * time.Millisecond, between, holdfast.BudgetSettings{}}, 0.499, 1.01, 1},
	} {
		t.Run(row.name, func(t *testing.T) {
			var load, succeeded float64
			for seed := range row.runs {
				l, s := row.traffic.play(uint64(seed))
				load, succeeded = load+l/float64(row.runs), succeeded+s/float64(row.runs)
			}
			if succeeded < row.succeeded || load > row.load {
				t.Errorf("%.5f succeed and the load is %.4f, want at least %v and at most %v", succeeded, load, row.succeeded, row.load)
			}
		})
	}
}

// Once drained, the budget was never filled by successes: no call was retried again until a restart.
func TestB37_SuccessesFillTheBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := holdfast.Policy{Budget: holdfast.NewBudget(holdfast.BudgetSettings{Refill: -1})}
		broken := always(anthropicError(503, "api_error"))
		for range 50 {
			_, _, _ = holdfast.Do(t.Context(), &p, broken.ask)
		}
		if got := broken.requests(); got != 57 {
			t.Fatalf("%d requests, want 50 and the 7 retries that the budget pays for", got)
		}
		healthy := play()
		for range 500 {
			if _, _, err := holdfast.Do(t.Context(), &p, healthy.ask); err != nil {
				t.Fatal(err)
			}
		}
		if got := p.Budget.Level(time.Now()); got != 100 {
			t.Errorf("level %v after 500 successes, want it full", got)
		}
		shaky := play(anthropicError(503, "api_error"))
		if _, trace, err := holdfast.Do(t.Context(), &p, shaky.ask); err != nil || trace.Sent() != 2 {
			t.Errorf("%d attempts, %v; want an answer at the second", trace.Sent(), err)
		}
		if got := p.Budget.Level(time.Now()); got != 100 {
			t.Errorf("level %v, though the retry worked", got)
		}
	})
}
