package drill

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"holdfast"
)

// Interview plays a retry wrapper and answers the questions that are asked about it.
func Interview(ctx context.Context, o Options) (*Report, error) {
	r := &Report{Title: "Interview: a retry wrapper for API calls"}
	if err := interviewRuns(ctx, r, o); err != nil {
		return nil, err
	}
	roll := dice(orSeed(o.Seed, 1))
	if err := interviewHerd(ctx, r, roll); err != nil {
		return nil, err
	}
	if err := interviewBudget(ctx, r, roll); err != nil {
		return nil, err
	}
	return r, interviewBulk(ctx, r, roll)
}

func interviewRuns(ctx context.Context, r *Report, o Options) error {
	policy := herdPolicy(dice(orSeed(o.Seed, 1)), holdfast.FullJitter, holdfast.Exact)()
	when := newWorld().time().UTC().Add(3 * time.Second).Format(http.TimeFormat)
	runs := []struct {
		name, input string
		scene       scene
	}{
		{"run 1", "429, 429 with retry-after 2, ok", scene{policy: policy, script: []answer{throttled, throttled.after("2"), yes}}},
		{"run 2", "400", scene{policy: policy, script: []answer{status(400)}}},
		{"max wait", "429 with retry-after 61", scene{policy: policy, script: []answer{throttled.after("61")}}},
		{"date", "429 with a date 3 s ahead in retry-after, ok", scene{policy: policy, script: []answer{throttled.after(when), yes}}},
		{"past date", "429 with a date of 1994, ok", scene{policy: policy, script: []answer{throttled.after("Sun, 06 Nov 1994 08:49:37 GMT"), yes}}},
		{"no date", "429 with words in retry-after, ok", scene{policy: policy, script: []answer{throttled.after("after lunch"), yes}}},
		{"stacked", "529 always, 5 attempts over an SDK's 3", scene{policy: policy, script: []answer{overloaded}, client: sdk(policy.Dice)}},
	}
	table := Section{Columns: []string{"run", "input", "answered", "raised", "calls", "waits s"}}
	results := map[string]*played{}
	for _, run := range runs {
		run.scene.bare = true
		p, err := run.scene.play(ctx)
		if err != nil {
			return err
		}
		results[run.name] = &p
		table.Rows = append(table.Rows, []string{run.name, run.input, fmt.Sprint(p.ok()), p.raised(), fmt.Sprint(p.calls), secs(p.sleeps)})
	}
	r.add(table)
	if o.Seed == 0 || o.Seed == 1 {
		r.equal("run 1 waits, seed 1", secs(results["run 1"].sleeps), "0.067, 2.0")
	}
	r.equal("run 2 is raised at once", fmt.Sprint(results["run 2"].raised(), ", waits ", secs(results["run 2"].sleeps)), "invalid_request_error 400, waits none")
	r.equal("above max wait the original error is raised", fmt.Sprint(results["max wait"].raised(), ", calls ", results["max wait"].calls), "rate_limit_error 429, calls 1")
	r.equal("a date in retry-after is a wait", secs(results["date"].sleeps), "3.0")
	for _, name := range []string{"past date", "no date"} {
		p := results[name]
		r.that(name+" in retry-after: no wait of the server's", p.ok() && between(p.sleeps, 1, 0, time.Second/2), secs(p.sleeps), "our own, below 0.5")
	}
	r.equal("3 SDK attempts under 5 of ours", results["stacked"].calls, 15)
	caps, most := "", time.Duration(0)
	for n := 1; n <= 4; n++ {
		most += policy.Backoff.Bound(n)
		caps += sec(policy.Backoff.Bound(n)) + " + "
	}
	r.equal("caps of 5 attempts", fmt.Sprintf("%s= %s at most, %s on average", caps[:len(caps)-2], sec(most), sec(most/2)), "0.5 + 1.0 + 2.0 + 4.0 = 7.5 at most, 3.75 on average")
	return nil
}

func interviewHerd(ctx context.Context, r *Report, roll func() float64) error {
	table := Section{Title: fmt.Sprintf("%d clients fail in the same second", herdSize), Columns: []string{"jitter", "busiest 1 s", "busiest 0.1 s", "last done s"}}
	for _, j := range []holdfast.Jitter{holdfast.NoJitter, holdfast.FullJitter} {
		got, err := playHerd(ctx, herdPolicy(roll, j, holdfast.Exact), overloaded)
		if err != nil {
			return err
		}
		after := got.afterRecovery()
		table.Rows = append(table.Rows, []string{j.String(), fmt.Sprint(after.busiest(time.Second)), fmt.Sprint(after.busiest(herdSlot)), sec(got.done)})
		if j == holdfast.NoJitter {
			r.equal("herd without jitter: all in the same second", after.busiest(time.Second), herdSize)
		} else {
			r.that("herd with full jitter: spread", after.busiest(herdSlot) < herdSize/5, after.busiest(herdSlot), fmt.Sprintf("below %d per 100 ms", herdSize/5))
		}
	}
	r.add(table)
	return nil
}

func interviewBudget(ctx context.Context, r *Report, roll func() float64) error {
	table := Section{Title: fmt.Sprintf("%d calls in an outage", outageCalls), Columns: []string{"policy", "load"}}
	for _, c := range []contender{{"3 attempts, no budget", with(sdk(roll))}, {"with a retry budget", with(budgetAlone(roll))}} {
		t, err := playTraffic(ctx, outageCalls, c.begin, func(time.Duration) bool { return true })
		if err != nil {
			return err
		}
		got := fmt.Sprintf("%.3fx", t.factor())
		table.Rows = append(table.Rows, []string{c.name, got})
		if c.name == "with a retry budget" {
			r.that("load in an outage with a budget", t.factor() < 1.1, got, "below 1.1x")
		} else {
			r.equal("load in an outage without one", got, "3.000x")
		}
	}
	r.add(table)
	return nil
}
