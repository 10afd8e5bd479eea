package drill

import (
	"context"
	"fmt"
	"slices"
	"time"

	"holdfast"
)

const (
	herdSize = 5000
	herdSlot = 100 * time.Millisecond
	herdDown = time.Second     // how long the upstream fails everybody
	herdSpan = 6 * time.Second // of the chart
)

// returns are when a herd's retries came.
type returns struct {
	at       []time.Duration // in order
	attempts int
	gaveUp   int
	done     time.Duration // when the last call ended
}

// playHerd lets clients call at once an upstream that fails everything for a second, and answers everything afterwards.
// Each is a process of its own: they share no breaker, pace or budget.
func playHerd(ctx context.Context, policy func() holdfast.Policy, failure answer) (out returns, err error) {
	w := newWorld()
	bad, good := failure.verdict(w.time()), yes.verdict(w.time())
	send := func(reply func(holdfast.Verdict)) func() {
		out.attempts++
		v := good
		if w.now < herdDown {
			v = bad
		}
		if w.now > 0 {
			out.at = append(out.at, w.now)
		}
		w.after(0, func() { reply(v) })
		return nil
	}
	for range herdSize {
		p := policy()
		w.begin(&p, send, func(e ended) {
			if !e.ok() {
				out.gaveUp++
			}
			out.done = max(out.done, e.at)
		})
	}
	return out, w.run(ctx)
}

// busiest is the largest number of returns in a slot of this length, wherever it begins.
func (r *returns) busiest(slot time.Duration) (most int) {
	first := 0
	for i, at := range r.at {
		for at-r.at[first] >= slot {
			first++
		}
		most = max(most, i-first+1)
	}
	return most
}

// afterRecovery leaves out what came while the upstream failed everything anyway.
func (r *returns) afterRecovery() returns {
	i, _ := slices.BinarySearch(r.at, herdDown)
	return returns{at: r.at[i:]}
}

// curve is the number of returns in each slot.
func (r *returns) curve() []float64 {
	values := make([]float64, herdSpan/herdSlot)
	for _, at := range r.at {
		if i := int(at / herdSlot); i < len(values) {
			values[i]++
		}
	}
	return values
}

// herdPolicy is that of the interview: five attempts, up to 30 s, the server's wait as it is.
func herdPolicy(roll func() float64, j holdfast.Jitter, s holdfast.ServerWait) func() holdfast.Policy {
	p := holdfast.Policy{
		Attempts: 5, Backoff: holdfast.Backoff{Base: 500 * time.Millisecond, Cap: 30 * time.Second, Jitter: j},
		ServerWait: s, MaxServerWait: time.Minute, Dice: roll,
	}
	return func() holdfast.Policy { return p }
}

// Herd lets 5,000 clients fail in the same second and shows when they come back: with and without jitter, and when the
// upstream told all of them the same wait.
func Herd(ctx context.Context, o Options) (*Report, error) {
	roll := dice(orSeed(o.Seed, 1))
	told := throttled.after("2")
	rows := []struct {
		name    string
		policy  func() holdfast.Policy
		failure answer
	}{
		{"no jitter", herdPolicy(roll, holdfast.NoJitter, holdfast.Exact), overloaded},
		{"full jitter", herdPolicy(roll, holdfast.FullJitter, holdfast.Exact), overloaded},
		{"told to wait 2 s, exactly", herdPolicy(roll, holdfast.FullJitter, holdfast.Exact), told},
		{"told to wait 2 s, plus jitter", herdPolicy(roll, holdfast.FullJitter, holdfast.PlusJitter), told},
	}
	if o.Policy != nil {
		rows = append(rows, rows[0])
		rows[len(rows)-1].name, rows[len(rows)-1].policy = "your policy", func() holdfast.Policy { return judged(o, roll) }
	}
	r := &Report{Title: fmt.Sprintf("Herd: %d clients fail in the same second", herdSize)}
	table := Section{Columns: []string{"policy", "attempts", "busiest 1 s", "busiest 0.1 s", "0.1 s after recovery", "gave up", "last done s"}}
	charts := Section{}
	all := map[string]returns{}
	for _, row := range rows {
		got, err := playHerd(ctx, row.policy, row.failure)
		if err != nil {
			return nil, err
		}
		all[row.name] = got
		after := got.afterRecovery()
		table.Rows = append(table.Rows, []string{row.name, fmt.Sprint(got.attempts), fmt.Sprint(got.busiest(time.Second)), fmt.Sprint(got.busiest(herdSlot)),
			fmt.Sprint(after.busiest(herdSlot)), fmt.Sprint(got.gaveUp), sec(got.done)})
		charts.Charts = append(charts.Charts, Chart{Caption: row.name + ": returns per 100 ms over 6 s", Values: got.curve()})
	}
	r.add(table)
	r.add(charts)
	checkHerd(r, all)
	return r, nil
}

func checkHerd(r *Report, all map[string]returns) {
	wave := func(name string) int { got := all[name]; got = got.afterRecovery(); return got.busiest(herdSlot) }
	r.equal("without jitter all return in the same 100 ms", wave("no jitter"), herdSize)
	r.that("with full jitter they spread", wave("full jitter") < herdSize/5, wave("full jitter"), fmt.Sprintf("below %d per 100 ms", herdSize/5))
	r.equal("a wait that all were told, kept exactly, is a herd again", wave("told to wait 2 s, exactly"), herdSize)
	told := all["told to wait 2 s, plus jitter"]
	r.that("plus jitter it spreads", wave("told to wait 2 s, plus jitter") < herdSize/3, wave("told to wait 2 s, plus jitter"), fmt.Sprintf("below %d per 100 ms", herdSize/3))
	r.that("and nobody is early", len(told.at) > 0 && told.at[0] >= 2*time.Second, sec(told.at[0]), "at 2.0 s or later")
	if own, judged := all["your policy"]; judged {
		after := own.afterRecovery()
		r.that("your policy spreads", after.busiest(herdSlot) < herdSize/5, after.busiest(herdSlot), fmt.Sprintf("below %d per 100 ms", herdSize/5))
		r.that("your policy brings calls home", own.gaveUp < herdSize/100, own.gaveUp, "fewer than 1 % give up")
	}
}

// judged is the user's policy with the drill's dice.
func judged(o Options, roll func() float64) holdfast.Policy {
	p := o.Policy()
	p.Dice, p.Clock, p.Observe = roll, nil, nil
	return p
}
