package drill

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"holdfast"
	"holdfast/standin"
)

// Traffic is what the drill [Plan] plays: calls, and the stand-in's plan that they meet.
type Traffic struct {
	// Plan is played by the stand-in. Nil: an outage of a minute and a slow recovery, under limits.
	Plan *standin.Plan
	// Calls is how many calls are made. 0: as many as begin until a minute after the last incident of the plan's
	// timeline; without a rate 1,000.
	Calls int
	// Rate is how many calls begin in a second, evenly spaced. Default: 10. Negative: all at once, so that Workers alone
	// holds them back.
	Rate float64
	// Workers is how many calls are made at the same time; the others wait for their turn, which counts as latency.
	// 0 or less: no bound.
	Workers int
	// Tokens are those of one call: of its prompt, and of its answer unless the plan has a reply of its own. The policy's
	// pace is told of them. 0: 500 and 100.
	Tokens holdfast.Tokens
	// Model is the one that is asked for. Default: claude-sonnet-5-5.
	Model string
	// Stream asks for event streams. They are read to their end before they are judged, so that a cut is repeated.
	Stream bool
}

const (
	defaultRate   = 10.0
	planAfter     = time.Minute // of calls behind the last incident
	planCalls     = 1000        // without a rate
	planMostCalls = 100_000
	planInput     = 500
	planOutput    = 100
	planModel     = "claude-sonnet-5-5"
	planHorizon   = 24 * time.Hour // behind the last arrival; what is under way then never ends
	charsPerToken = 4              // as the stand-in estimates
)

// planStart is the date in the stand-in's world. It is fixed, since reset times and dates are told in whole seconds.
var planStart = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// withDefaults returns the traffic with everything filled in.
func (t Traffic) withDefaults() Traffic {
	if t.Rate == 0 {
		t.Rate = defaultRate
	}
	if t.Calls == 0 {
		t.Calls = planCalls
		if t.Rate > 0 {
			end := planAfter
			for _, n := range t.Plan.Timeline {
				end = max(end, max(n.From, n.To)+planAfter)
			}
			t.Calls = int(min(end.Seconds()*t.Rate, planMostCalls))
		}
	}
	if t.Tokens.Input == 0 {
		t.Tokens.Input = planInput
	}
	if t.Tokens.Output == 0 {
		t.Tokens.Output = planOutput
	}
	if t.Model == "" {
		t.Model = planModel
	}
	if t.Plan.Reply == "" {
		own := *t.Plan
		own.Reply = strings.Repeat("yes ", t.Tokens.Output-1) + "yes." // four characters each
		t.Plan = &own
	}
	return t
}

// mistake says what cannot be played.
func (t Traffic) mistake() error {
	switch {
	case t.Calls < 0 || t.Calls > planMostCalls:
		return fmt.Errorf("drill: %d calls; it can be from 1 to %d", t.Calls, planMostCalls)
	case t.Tokens.Input < 0 || t.Tokens.Output < 0:
		return fmt.Errorf("drill: calls of %d and %d tokens; they cannot be negative", t.Tokens.Input, t.Tokens.Output)
	}
	return nil
}

// began is when a call begins if a worker is free.
func (t Traffic) began(i int) time.Duration {
	if t.Rate <= 0 {
		return 0
	}
	return time.Duration(float64(i) / t.Rate * float64(time.Second))
}

// body is the request of a call: its own words, and the key of one of the plan's jobs, which take turns.
func (t Traffic) body(i int, jobs []string) ([]byte, error) {
	text := callName(i)
	if len(jobs) > 0 {
		text += " " + jobs[i%len(jobs)]
	}
	text += strings.Repeat(".", max(0, t.Tokens.Input*charsPerToken-len(text)))
	return json.Marshal(map[string]any{
		"model": t.Model, "max_tokens": max(1, 2*t.Tokens.Output), "stream": t.Stream,
		"messages": []any{map[string]any{"role": "user", "content": text}},
	})
}

func callName(i int) string { return fmt.Sprintf("call-%05d", i+1) }

// planRun is traffic under one policy, and what became of it.
type planRun struct {
	traffic Traffic
	w       *world
	stage   *standin.Rehearsal
	jobs    []string // keys of the plan's jobs
	horizon time.Duration
	free    int   // workers; -1: no bound
	waiting []int // calls that wait for one

	calls       []planCall
	attempts    []time.Duration // when each was sent
	unreachable int             // attempts that met no connection
	opened      int             // how often a breaker did
	failure     error
}

// planCall is one call and its end.
type planCall struct {
	ended
	took time.Duration
	over bool
}

// playPlan plays the traffic under a policy that all calls share. The caller closes the stage.
func playPlan(ctx context.Context, t Traffic, policy holdfast.Policy) (*planRun, error) {
	stage, err := standin.Rehearse(*t.Plan, planStart)
	if err != nil {
		return nil, err
	}
	defer stage.Close()
	run := &planRun{
		traffic: t, w: newWorld(), stage: stage, jobs: slices.Sorted(maps.Keys(t.Plan.Jobs)), free: -1,
		horizon: t.began(t.Calls) + planHorizon, calls: make([]planCall, t.Calls),
	}
	if t.Workers > 0 {
		run.free = t.Workers
	}
	policy.Estimate = func(context.Context) holdfast.Tokens { return t.Tokens }
	policy.Observe = func(e holdfast.Event) {
		if e.Kind == holdfast.EventCircuit && e.To == holdfast.Open {
			run.opened++
		}
	}
	for i := range t.Calls {
		run.w.after(t.began(i), func() { run.take(&policy, i) })
	}
	if err := run.w.run(ctx); err != nil {
		return nil, err
	}
	return run, run.failure
}

// take begins a call, or lets it wait for a worker.
func (p *planRun) take(policy *holdfast.Policy, i int) {
	if p.free == 0 {
		p.waiting = append(p.waiting, i)
		return
	}
	p.free--
	body, err := p.traffic.body(i, p.jobs)
	if err != nil {
		p.failure = err // text and numbers alone cannot fail to encode
		return
	}
	send := func(reply func(holdfast.Verdict)) func() { return p.attempt(i, body, reply) }
	p.w.begin(policy, send, func(e ended) {
		p.calls[i] = planCall{ended: e, took: e.at - p.traffic.began(i), over: true}
		p.free++
		if len(p.waiting) > 0 {
			next := p.waiting[0]
			p.waiting = p.waiting[1:]
			p.w.after(0, func() { p.take(policy, next) })
		}
	})
}

// attempt sends a call once, and returns what tells the stand-in that the client has left.
func (p *planRun) attempt(i int, body []byte, reply func(holdfast.Verdict)) (leave func()) {
	p.attempts = append(p.attempts, p.w.now)
	v := p.stage.Arrive(p.date(), p.request(i, body))
	if v.Outcome() == standin.Unreachable {
		p.unreachable++
	}
	var timer *happening
	var follow func()
	follow = func() {
		at, goesOn := v.Next()
		switch {
		case v.Outcome() != "":
			verdict := verdictOf(v, p.date())
			if !verdict.Resumes.IsZero() {
				verdict.Resumes = p.w.origin.Add(verdict.Resumes.Sub(planStart))
			}
			timer = p.w.after(0, func() { reply(verdict) })
		case goesOn && p.w.now < p.horizon:
			timer = p.w.after(at.Sub(p.date()), func() {
				v.Continue()
				follow()
			})
		}
	}
	follow()
	return func() {
		p.w.callOff(timer)
		v.Leave(p.date())
	}
}

// date is the time in the stand-in's world.
func (p *planRun) date() time.Time { return planStart.Add(p.w.now) }

func (p *planRun) request(i int, body []byte) *http.Request {
	req, err := http.NewRequest(http.MethodPost, "http://standin/v1/messages", bytes.NewReader(body))
	if err != nil { // the URL is right
		p.failure = err
		return &http.Request{}
	}
	req.Header = http.Header{
		"Content-Type": {"application/json"}, "X-Api-Key": {"drill"}, "Anthropic-Version": {"2023-06-01"}, "X-Custom-Id": {callName(i)},
	}
	return req
}
