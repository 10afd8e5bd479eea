package drill

import (
	"cmp"
	"context"
	_ "embed" // the plan of those who bring none
	"fmt"
	"slices"
	"strings"
	"time"

	"holdfast"
	"holdfast/standin"
)

//go:embed plan.yaml
var ownPlan []byte

// Plan plays a plan of the stand-in against a policy: its rules, steps, timeline, limits and latency, in simulated time.
// It counts what became of the calls, beside a client that never repeats and one that repeats as SDKs do, and lets the
// stand-in judge the client as it does after a real run.
func Plan(ctx context.Context, o Options) (*Report, error) {
	t := o.Traffic
	if t.Plan == nil {
		plan, err := standin.ParsePlan(ownPlan)
		if err != nil {
			return nil, fmt.Errorf("drill: %w", err)
		}
		t.Plan = &plan
	}
	if err := t.mistake(); err != nil {
		return nil, err
	}
	if o.Seed != 0 {
		own := *t.Plan
		own.Seed = o.Seed
		t.Plan = &own
	}
	t = t.withDefaults()
	name, policies := planPolicies(o)
	r := &Report{Title: fmt.Sprintf("Plan: %d calls%s against a stand-in", t.Calls, pacing(t))}
	table := Section{Columns: []string{
		"policy", "calls", "answered", "saved", "failed", "attempts per call", "load", "half s", "99 % s", "tokens billed", "paid twice", "limit used",
	}}
	var run *planRun
	alone := 0 // calls that are answered without a retry
	var report standin.Report
	for _, c := range policies {
		var err error
		if run, err = playPlan(ctx, t, c.policy()); err != nil {
			return nil, err
		}
		report = run.stage.Report()
		table.Rows = append(table.Rows, run.row(c.name, report))
		if c.name == noRetries {
			alone = run.answered()
		}
	}
	r.add(table)
	r.add(run.endings(name))
	r.add(run.met(name))
	r.add(run.chart(name))
	r.add(Section{Title: "The stand-in on " + name, Lines: strings.Split(strings.TrimSuffix(report.String(), "\n"), "\n")})
	run.check(r, name, attemptsOf(policies[len(policies)-1].policy()), report)
	// A policy that answers less than one that does nothing harms its calls, whatever load it spares the upstream.
	r.that("calls answered by "+name, float64(run.answered()) >= fairShare*float64(alone), run.answered(),
		fmt.Sprintf("about the %d that no retries get, or more", alone))
	return r, nil
}

const noRetries = "no retries"

// named is a policy with its name.
type named struct {
	name   string
	policy func() holdfast.Policy
}

// planPolicies are those that the plan is played against, the one that is judged last. Each has dice of its own, so that
// what one draws does not change the others.
func planPolicies(o Options) (judging string, all []named) {
	roll := func() func() float64 { return dice(orSeed(o.Seed, 1)) }
	judging, own := "holdfast", ours(roll())
	if o.Policy != nil {
		judging, own = "your policy", func() holdfast.Policy { return judged(o, roll()) }
	}
	return judging, []named{{noRetries, bareClient}, {"SDK default", sdk(roll())}, {judging, own}}
}

// attemptsOf is how often a policy asks one target.
func attemptsOf(p holdfast.Policy) int {
	if p.Attempts == 0 {
		return 4
	}
	return max(p.Attempts, 1)
}

func pacing(t Traffic) string {
	text := ""
	if t.Rate > 0 {
		text += fmt.Sprintf(", %g a second", t.Rate)
	}
	if t.Workers > 0 {
		text += fmt.Sprintf(", %d at a time", t.Workers)
	}
	return text + ","
}

// fairShare is how much of what one attempt for each call gets answered a policy is to reach; chance and the time of
// probes cost a little.
const fairShare = 0.98

// answered is how many calls somebody live answered.
func (p *planRun) answered() (n int) {
	for i := range p.calls {
		if p.calls[i].over && p.calls[i].ok() {
			n++
		}
	}
	return n
}

// row is the line of a policy in the table.
func (p *planRun) row(name string, report standin.Report) []string {
	saved, failed, attempts := 0, 0, 0
	var took []time.Duration
	for i := range p.calls {
		c := &p.calls[i]
		attempts += c.trace.Sent()
		switch {
		case c.over && c.ok():
			took = append(took, c.took)
		case c.over && c.step.Saved:
			saved++
		default:
			failed++
		}
	}
	slices.Sort(took)
	answered := len(took)
	return []string{
		name, fmt.Sprint(len(p.calls)), fmt.Sprintf("%d (%.2f %%)", answered, 100*float64(answered)/float64(len(p.calls))), fmt.Sprint(saved), fmt.Sprint(failed),
		fmt.Sprintf("%.3f", float64(attempts)/float64(len(p.calls))), p.load(), quantile(took, 0.5), quantile(took, 0.99),
		fmt.Sprint(report.TokensBilled), fmt.Sprint(report.PaidTwice.Input + report.PaidTwice.Output), limitUsed(report.Limits),
	}
}

// load is how many requests reached the upstream for each call.
func (p *planRun) load() string {
	return fmt.Sprintf("%.3fx", float64(len(p.attempts)-p.unreachable)/float64(len(p.calls)))
}

// quantile is the time that this share of them did not exceed, of times in order.
func quantile(sorted []time.Duration, share float64) string {
	if len(sorted) == 0 {
		return "-"
	}
	return sec(sorted[min(int(share*float64(len(sorted))), len(sorted)-1)])
}

// limitUsed is the share of the busiest bucket.
func limitUsed(limits []standin.LimitUse) string {
	text, most := "-", -1.0
	for _, l := range limits {
		for _, b := range []standin.BucketUse{l.Requests, l.InputTokens, l.OutputTokens, l.Tokens} {
			if b.Limit > 0 && b.Share > most {
				most, text = b.Share, fmt.Sprintf("%.1f %%", 100*b.Share)
			}
		}
	}
	return text
}

// tally counts by name, in order of first appearance.
type tally struct {
	names  []string
	counts map[string]int
}

func (t *tally) add(name string) int {
	if t.counts == nil {
		t.counts = map[string]int{}
	}
	if t.counts[name]++; t.counts[name] == 1 {
		t.names = append(t.names, name)
	}
	return t.counts[name]
}

// mostFirst are the names by how often they were counted.
func (t *tally) mostFirst() []string {
	names := slices.Clone(t.names)
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(t.counts[b], t.counts[a]) })
	return names
}

// endings says how calls ended: what the last attempt met, and why there was none after it.
func (p *planRun) endings(name string) Section {
	var ends tally
	took := map[string][]time.Duration{}
	saved := map[string]bool{}
	for i := range p.calls {
		c := &p.calls[i]
		how := c.ending()
		ends.add(how)
		took[how] = append(took[how], c.took)
		saved[how] = c.over && c.step.Saved
	}
	s := Section{Title: "How the calls of " + name + " ended", Columns: []string{"ended", "calls", "half s", "99 % s", "a saved answer may stand in"}}
	for _, how := range ends.mostFirst() {
		slices.Sort(took[how])
		s.Rows = append(s.Rows, []string{how, fmt.Sprint(ends.counts[how]), quantile(took[how], 0.5), quantile(took[how], 0.99), yesNo(saved[how])})
	}
	return s
}

func (c *planCall) ending() string {
	switch v := c.verdict(); {
	case !c.over:
		return "never"
	case c.ok() && c.trace.Sent() == 1:
		return "answered at once"
	case c.ok():
		return fmt.Sprintf("answered by attempt %d", c.trace.Sent())
	case c.step.Reason != nil && c.trace.Sent() == 0:
		return words(c.step.Reason)
	case c.step.Reason != nil:
		return words(c.step.Reason) + ": " + v.Kind.String()
	default:
		return v.Kind.String()
	}
}

func words(reason error) string { return strings.TrimPrefix(reason.Error(), "holdfast: ") }

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

// met says what attempts met: which part of the plan gave what.
func (p *planRun) met(name string) Section {
	type meeting struct {
		rule, fault string
		status      int
	}
	var all tally
	rows := map[string]meeting{}
	for _, e := range p.stage.Journal() {
		m := meeting{e.Rule, string(e.Fault), e.Status}
		if m.rule == "" {
			m.rule = "-"
		}
		key := fmt.Sprint(m)
		all.add(key)
		rows[key] = m
	}
	s := Section{Title: "What the attempts of " + name + " met", Columns: []string{"rule", "fault", "status", "attempts"}}
	for _, key := range all.mostFirst() {
		m := rows[key]
		s.Rows = append(s.Rows, []string{m.rule, m.fault, fmt.Sprint(m.status), fmt.Sprint(all.counts[key])})
	}
	if p.unreachable > 0 {
		s.Rows = append(s.Rows, []string{"-", string(standin.Refused), "-", fmt.Sprint(p.unreachable)})
	}
	return s
}

// planSlots is how many points the chart has at most.
const planSlots = 72

// chart is the attempts over time.
func (p *planRun) chart(name string) Section {
	if len(p.attempts) == 0 {
		return Section{}
	}
	slot := max(time.Second, (p.attempts[len(p.attempts)-1]/planSlots + time.Second).Truncate(time.Second))
	values := make([]float64, p.attempts[len(p.attempts)-1]/slot+1)
	for _, at := range p.attempts {
		values[at/slot] += 1 / slot.Seconds()
	}
	return Section{Charts: []Chart{{Caption: fmt.Sprintf("%s: attempts per second, a point for each %v", name, slot), Values: values}}}
}

// mustHold are the stand-in's judgements that no plan excuses.
var mustHold = []string{"waits", "terminal errors", "spend caps", "x-should-retry"}

// check asks what no plan may bring a policy to.
func (p *planRun) check(r *Report, name string, attempts int, report standin.Report) {
	hung, most := 0, 0
	for i := range p.calls {
		if !p.calls[i].over {
			hung++
		}
		most = max(most, p.calls[i].trace.Sent())
	}
	r.that("every call of "+name+" ends", hung == 0, fmt.Sprintf("%d of %d", len(p.calls)-hung, len(p.calls)), "all of them")
	r.that("attempts of a call", most <= attempts, fmt.Sprintf("at most %d", most), fmt.Sprintf("at most %d", attempts))
	load := float64(len(p.attempts)) / float64(len(p.calls))
	r.that("load of "+name, load <= float64(attempts), p.load(), fmt.Sprintf("at most %dx", attempts))
	for _, line := range report.Lines {
		if slices.Contains(mustHold, line.Name) && line.Verdict != standin.Untested {
			r.that(line.Name, line.Verdict == standin.Pass, line.Found, "no warning")
		}
	}
	twice, needless := 0, 0
	for _, account := range p.stage.Ledger().Jobs {
		twice += account.PaidTwice.Attempts
		needless += max(0, account.PaidTwice.Attempts-account.Lost)
	}
	r.that("nothing is paid twice but what was lost on its way", needless == 0, fmt.Sprintf("%d needlessly of %d", needless, twice), "0 needlessly")
}
