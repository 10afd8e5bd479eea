package drill

import (
	"context"
	"fmt"
	"time"

	"holdfast"
)

const (
	bulkItems   = 200_000
	bulkWorkers = 64
	bulkRate    = 12_000 // requests per minute
	bulkDelay   = 250 * time.Millisecond
)

// limiter is a provider's request limit: a bucket that holds one second's worth and refills continuously.
type limiter struct {
	perSecond float64
	level     float64
	at        time.Duration
}

// take takes one request, or tells how long until there is one.
func (l *limiter) take(now time.Duration) (wait time.Duration, ok bool) {
	l.level = min(l.level+(now-l.at).Seconds()*l.perSecond, l.perSecond)
	l.at = now
	const speck = 1e-6 // of a request: what sums of fractions lose
	if l.level < 1-speck {
		return time.Duration((1 - l.level) / l.perSecond * float64(time.Second)), false
	}
	l.level--
	return 0, true
}

// bulkRun is what came of many items through a limit.
type bulkRun struct {
	done, failed, refused, attempts int
	took                            time.Duration
}

// playBulk lets workers carry items through the limit, each with the shared policy.
func playBulk(ctx context.Context, items int, p *holdfast.Policy) (out bulkRun, err error) {
	w := newWorld()
	limit := limiter{perSecond: bulkRate / 60.0} // empty at first: somebody else was here before
	good := yes.verdict(w.time())
	send := func(reply func(holdfast.Verdict)) func() {
		out.attempts++
		v, delay := good, bulkDelay
		if wait, ok := limit.take(w.now); !ok {
			out.refused++
			// The API names whole seconds, so that even a short wait is told as one.
			v, delay = throttled.after(fmt.Sprint(1+int(wait/time.Second))).verdict(w.time()), 0
		}
		w.after(delay, func() { reply(v) })
		return nil
	}
	left := items
	var work func()
	work = func() {
		if left == 0 {
			return
		}
		left--
		w.begin(p, send, func(e ended) {
			if e.ok() {
				out.done++
			} else {
				out.failed++
			}
			out.took = e.at
			w.after(0, work)
		})
	}
	for range bulkWorkers {
		work()
	}
	return out, w.run(ctx)
}

func bulkPolicy(roll func() float64, paced bool) *holdfast.Policy {
	p := &holdfast.Policy{Attempts: 5, MaxServerWait: time.Minute, Dice: roll}
	if paced {
		p.Pace = holdfast.NewPace(holdfast.Limits{RequestsPerMinute: bulkRate, Burst: time.Second})
	}
	return p
}

// interviewBulk shows that all items finish and none hammers.
func interviewBulk(ctx context.Context, r *Report, roll func() float64) error {
	table := Section{
		Title:   fmt.Sprintf("Items through a limit of %d a minute, %d workers", bulkRate, bulkWorkers),
		Columns: []string{"policy", "items", "finished", "attempts", "429s", "took s", "share of the limit"},
	}
	for _, c := range []struct {
		name  string
		items int
		paced bool
	}{{"retries alone", bulkItems / 20, false}, {"with a pace", bulkItems, true}} {
		got, err := playBulk(ctx, c.items, bulkPolicy(roll, c.paced))
		if err != nil {
			return err
		}
		share := float64(got.done) / (got.took.Seconds() * bulkRate / 60)
		table.Rows = append(table.Rows, []string{c.name, fmt.Sprint(c.items), fmt.Sprint(got.done), fmt.Sprint(got.attempts), fmt.Sprint(got.refused),
			decimals(got.took, 1), fmt.Sprintf("%.1f %%", 100*share)})
		if c.paced {
			r.equal("bulk: items finished", got.done, bulkItems)
			r.that("bulk: none hammers", got.refused*200 < got.attempts, fmt.Sprintf("%d of %d attempts were 429", got.refused, got.attempts), "below 0.5 %")
			r.that("bulk: the limit is used", share >= 0.97, fmt.Sprintf("%.1f %%", 100*share), "at least 97 %")
		}
	}
	r.add(table)
	return nil
}
