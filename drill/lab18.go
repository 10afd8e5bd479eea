package drill

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"time"

	"holdfast"
	"holdfast/once"
)

// labRequeue is how long after a series the jobs are asked again that an open circuit deferred.
const labRequeue = 21 * time.Second

// lab is one run of a plan.
type lab struct {
	plan      *plan
	policy    holdfast.Policy
	ownPolicy bool // the user's
	live      func(context.Context, LiveRequest) (LiveReply, error)
	call      func(context.Context, *holdfast.Policy, func(context.Context) (spoken, error)) holdfast.Trace
	w         *world
	start     time.Time
	failure   error // why the run could not go on

	job        string // the one under way
	sentBefore int    // its attempts in earlier calls
	requests   int    // attempts of the run
	last       spoken
	opened     bool // the last attempt opened the circuit
	answers    int  // of a real endpoint

	outcomes     []outcome
	lines        []traceLine
	transitions  []string
	ledger       *once.Ledger
	keyed, plain desk
}

func newLab(o Options, p *plan) *lab {
	roll := dice(orSeed(o.Seed, given(p.Seed, labSeed)))
	l := &lab{plan: p, live: o.Live, policy: p.build(roll), keyed: desk{lost: p.LostAcks, keyed: true}, plain: desk{lost: p.LostAcks}}
	l.ledger = once.New(once.NewMemory(), once.Options{Now: l.now})
	if o.Policy != nil {
		l.policy, l.ownPolicy = judged(o, roll), true
		if l.policy.Deadline == 0 {
			l.policy.Deadline = orElse(p.Policy.Deadline, labDeadline)
		}
	}
	l.policy.Observe = l.observe
	if l.live != nil {
		l.call, l.start = l.callLive, time.Now()
		return l
	}
	l.w = newWorld()
	l.call, l.start = l.callSimulated, l.w.time()
	return l
}

func (l *lab) now() time.Time {
	if l.live != nil {
		return time.Now()
	}
	return l.w.time()
}

// series is the part of a job's name that jobs played together share: SHP-1 of SHP-1004.
func series(job string) string { return job[:max(len(job)-3, 0)] }

// play runs the jobs, series by series; those that were deferred are asked again before the next series begins, until
// none is.
func (l *lab) play(ctx context.Context) error {
	jobs := l.plan.Jobs
	for len(jobs) > 0 {
		n := 1
		for n < len(jobs) && series(jobs[n].Key) == series(jobs[0].Key) {
			n++
		}
		var queue []*labJob
		for _, j := range jobs[:n] {
			queue = append(queue, &labJob{name: j.Key, steps: j.Value, settings: l.plan.setting(j.Key)})
		}
		jobs = jobs[n:]
		for again := false; len(queue) > 0; again = true {
			if again {
				// One second more than the circuit rests, so that each round sends at least one attempt.
				if err := l.rest(ctx, max(labRequeue, orElse(l.plan.Policy.ResetTimeout, labReset)+time.Second)); err != nil {
					return err
				}
			}
			var err error
			if queue, err = l.round(ctx, queue, again); err != nil {
				return err
			}
		}
	}
	return nil
}

// round runs the jobs once and returns those that were deferred.
func (l *lab) round(ctx context.Context, queue []*labJob, again bool) (deferred []*labJob, err error) {
	for _, j := range queue {
		out := l.run(ctx, j)
		if l.failure != nil {
			return nil, l.failure
		}
		if again {
			out.remark("requeued")
		}
		switch out.Outcome {
		case jobDeferred:
			deferred = append(deferred, j)
		case jobCompleted:
			t, err := l.openOnce(ctx, j.name)
			if err != nil {
				return nil, err
			}
			l.plain.openNaively(j.name)
			if t.Posts > 1 {
				out.remark("%s after %d posts: acknowledgement lost, same key, replayed", t.ID, t.Posts)
			} else {
				out.remark("%s", t.ID)
			}
		}
		l.outcomes = append(l.outcomes, out)
	}
	return deferred, nil
}

// Lab18 runs a support desk's jobs under a plan of faults. With the published plan it must give the published figures;
// with another it must keep its own rules. A step of a job is an http error, a timeout, or an answer that is no end: refusal,
// pause_turn, context_window. It returns a [*PlanError] for a plan with mistakes. It never asks anybody but Options.Live, and
// its desk is never a real one.
func Lab18(ctx context.Context, o Options) (*Report, error) {
	text := o.Plan
	if text == nil {
		text = publishedPlan
	}
	p, err := parsePlan(text)
	if err != nil {
		return nil, err
	}
	l := newLab(o, p)
	if err := l.play(ctx); err != nil {
		return nil, err
	}
	trace, err := l.traceJSONL()
	if err != nil {
		return nil, err
	}
	if o.Out != "" {
		if err := l.write(o.Out, trace); err != nil {
			return nil, err
		}
	}
	original, err := parsePlan(publishedPlan)
	if err != nil {
		return nil, err
	}
	r := l.report()
	if o.Policy == nil && o.Live == nil && o.Seed == 0 && reflect.DeepEqual(p, original) {
		l.checkPublished(r, trace)
	} else {
		l.checkRules(r, trace)
	}
	return r, nil
}

func (l *lab) report() *Report {
	r := &Report{Title: "Lab 18: jobs under a plan of faults"}
	jobs := Section{Title: "Jobs"}
	for _, o := range l.outcomes {
		line := o.line()
		if len(o.Remarks) > 0 {
			line += "  " + strings.Join(o.Remarks, "; ")
		}
		jobs.Lines = append(jobs.Lines, line)
	}
	r.add(jobs)
	r.add(Section{Title: "Breaker", Lines: []string{strings.Join(l.transitions, ", ")}})
	tickets := Section{Title: fmt.Sprintf("Tickets: %d with idempotency keys, %d without", len(l.keyed.tickets), len(l.plain.tickets)),
		Columns: []string{"ticket", "job", "key", "posts"}}
	for _, t := range l.keyed.tickets {
		tickets.Rows = append(tickets.Rows, []string{t.ID, t.Job, t.Key, fmt.Sprint(t.Posts)})
	}
	r.add(tickets)
	events := Section{Title: fmt.Sprintf("Trace: %d events", len(l.lines)), Columns: []string{"event", "count"}}
	counts := l.counts()
	for _, kind := range traceKinds {
		events.Rows = append(events.Rows, []string{kind, fmt.Sprint(counts[kind])})
	}
	r.add(events)
	return r
}

var traceKinds = []string{traceError, traceBackoff, traceOpened, traceSkipped, traceDeadline, traceResponse}

func (l *lab) counts() map[string]int {
	counts := map[string]int{}
	for _, t := range l.lines {
		counts[t.Event]++
	}
	return counts
}
