package holdfast

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Policy says how calls to one API are kept working. The zero value retries with the documented defaults; Breaker,
// Pace and Budget are added where wanted. One Policy serves all calls to one API, concurrently; it must not be changed
// while it is in use. Copies share the Breaker, Pace and Budget.
type Policy struct {
	// Attempts is how often one target is asked, the first time included. Default: 4. Negative: once.
	Attempts int
	// Deadline bounds the whole call: all attempts, waits and targets. The context's own deadline counts too; the
	// earlier one holds. Default: 10m. Negative: only the context's.
	Deadline time.Duration
	// AttemptTimeout bounds one attempt, and is cut to what is left of the deadline. An attempt that ran into it is
	// a failure of the upstream and is retried. It bounds a stream until its end. Default: the deadline alone
	// bounds it. Negative: the same.
	AttemptTimeout time.Duration
	// Backoff is how long to wait between attempts.
	Backoff Backoff
	// ServerWait says how a wait that the upstream names combines with our own. Default: PlusJitter.
	ServerWait ServerWait
	// MaxServerWait is the longest wait an upstream may ask for, itself included; above it the target is given up
	// at once, and the wait stays on the error. Default: 60s. Negative: no maximum.
	MaxServerWait time.Duration

	// Breaker, Pace and Budget are off when nil. With Targets, Breaker and Pace are the targets' own instead.
	Breaker *Breaker
	Pace    *Pace
	Budget  *Budget

	// Targets are asked in order. None: the operation's one and only target. The operation learns which one it is
	// to ask from [TargetOf].
	Targets []Target
	// FallbackFirst leaves a target that throttles for the next one, instead of waiting for it as long as the
	// deadline allows.
	FallbackFirst bool
	// RefusalFallback lets a refused call go to one further target with another model, once: to the first one for
	// refusals, and without any to the next one.
	RefusalFallback bool
	// Lane is whose calls come first in the queue of a Pace. Default: Interactive.
	Lane Lane

	// Judge gives verdicts. Default: [Judge]. The caller's leaving is judged before it is asked.
	Judge func(error) Verdict
	// Estimate says what a call will take from the Pace. With [UsualOutput] as its output the Pace
	// takes what its calls usually produce, and Usage tells it. Default: one request and no tokens.
	Estimate func(context.Context) Tokens
	// Usage says what an answer really took. Default: what was estimated.
	Usage func(answer any) Tokens
	// Observe is told what happens, as it happens, by the calling goroutine and outside every lock.
	Observe func(Event)

	// Clock is the real one when nil.
	Clock Clock
	// Dice returns numbers uniformly from [0, 1). Default: math/rand/v2. It must be safe for concurrent use.
	Dice func() float64
}

const (
	defaultAttempts      = 4
	defaultDeadline      = 10 * time.Minute
	defaultMaxServerWait = 60 * time.Second
)

// Target is one upstream, credential and model that can answer a call.
type Target struct {
	// Name appears in traces and events.
	Name string
	// Credential and Model tell targets apart where only one part of them is to blame: after a spent credential the
	// next target must have another one, after a refusal or an overflow another model. Empty values differ from all
	// others.
	Credential string
	Model      string
	// Pool names a pool of credentials: targets side by side with the same Pool are one upstream and one model,
	// and differ in nothing but their credentials. One that is throttled, spent or rejected is left for the next at
	// once, without a wait, without cost to the budget and without counting as an attempt; one whose Pace lets
	// nobody go, or whose Breaker is open, is not asked while another is free. A pool fails as a single target
	// does, and the call leaves it as a whole. Empty: no pool.
	Pool string
	// OnRefusal keeps the target for calls that another one's model has refused. It needs RefusalFallback.
	OnRefusal bool
	// Breaker and Pace are off when nil. Share one between targets only if they share upstream, credential and
	// model group. Without a Pace, no call knows what another has found out about a credential of a pool.
	Breaker *Breaker
	Pace    *Pace
}

// firstTarget is the one that is asked first.
func (p *Policy) firstTarget() int {
	for i := range p.Targets {
		if !p.Targets[i].OnRefusal {
			return i
		}
	}
	return 0
}

type targetKey struct{}

// TargetOf returns the target that the operation is to ask. It reports false when the policy has no targets.
func TargetOf(ctx context.Context) (Target, bool) {
	t, ok := ctx.Value(targetKey{}).(*Target)
	if !ok {
		return Target{}, false
	}
	return *t, true
}

var errNegative = errors.New("must not be negative")

// Validate reports every mistake in the policy at once, joined, each naming its field. It changes nothing. A policy
// with mistakes still works: fields out of range count as their nearest meaning.
func (p *Policy) Validate() error {
	var mistakes []error
	wrong := func(field, format string, args ...any) {
		mistakes = append(mistakes, fmt.Errorf("holdfast: policy %s %s", field, fmt.Sprintf(format, args...)))
	}
	if p.Backoff.ThrottleBase < 0 {
		mistakes = append(mistakes, fmt.Errorf("holdfast: policy Backoff.ThrottleBase %w", errNegative))
	}
	if base, limit := orDefault(p.Backoff.Base, defaultBase), orDefault(p.Backoff.Cap, defaultCap); limit > 0 && base > limit {
		wrong("Backoff.Base", "is %v, more than its Cap of %v: every wait would be the cap", base, limit)
	}
	if p.Backoff.Jitter > NoJitter {
		wrong("Backoff.Jitter", "is %v, which is no kind of jitter", p.Backoff.Jitter)
	}
	if p.ServerWait > Exact {
		wrong("ServerWait", "is %v, which is no rule", p.ServerWait)
	}
	if d, t := orDefault(p.Deadline, defaultDeadline), p.AttemptTimeout; d > 0 && t > d {
		wrong("AttemptTimeout", "is %v, more than the Deadline of %v", t, d)
	}
	if len(p.Targets) > 0 && (p.Breaker != nil || p.Pace != nil) {
		wrong("Targets", "have their own Breaker and Pace; those of the policy would never be asked")
	}
	if p.Lane > Bulk {
		wrong("Lane", "is %v, which is no lane", p.Lane)
	}
	mistakes = append(mistakes, p.targetMistakes()...)
	if p.Breaker != nil {
		mistakes = append(mistakes, p.Breaker.configured().mistakes("Breaker")...)
	}
	for i, t := range p.Targets {
		if t.Breaker != nil {
			mistakes = append(mistakes, t.Breaker.configured().mistakes(fmt.Sprintf("Targets[%d].Breaker", i))...)
		}
	}
	if p.Budget != nil {
		mistakes = append(mistakes, p.Budget.configured().mistakes()...)
	}
	return errors.Join(mistakes...)
}

func (p *Policy) targetMistakes() (mistakes []error) {
	wrong := func(i int, field, format string, args ...any) {
		mistakes = append(mistakes, fmt.Errorf("holdfast: policy Targets[%d].%s %s", i, field, fmt.Sprintf(format, args...)))
	}
	names, pools := map[string]int{}, map[string]int{}
	for i, t := range p.Targets {
		if j, taken := names[t.Name]; taken {
			wrong(i, "Name", "is %q, as is that of Targets[%d]", t.Name, j)
		}
		names[t.Name] = i
		if t.OnRefusal && !p.RefusalFallback {
			wrong(i, "OnRefusal", "is of no use without RefusalFallback")
		}
		if t.Pool == "" {
			continue
		}
		j, known := pools[t.Pool]
		pools[t.Pool] = i
		switch {
		case !known:
		case j != i-1:
			wrong(i, "Pool", "is %q, as is that of Targets[%d], which is not beside it", t.Pool, j)
		case p.Targets[j].Model != t.Model, p.Targets[j].OnRefusal != t.OnRefusal:
			wrong(i, "Pool", "is %q, but it differs from Targets[%d] in more than the credential", t.Pool, j)
		}
	}
	if len(p.Targets) > 0 && p.Targets[p.firstTarget()].OnRefusal {
		wrong(0, "OnRefusal", "is set, as in all others: none is asked first")
	}
	return mistakes
}

func (s BreakerSettings) mistakes(name string) (mistakes []error) {
	wrong := func(field, format string, args ...any) {
		mistakes = append(mistakes, fmt.Errorf("holdfast: policy %s.%s %s", name, field, fmt.Sprintf(format, args...)))
	}
	for _, f := range []struct {
		name string
		d    time.Duration
	}{{"Window", s.Window}, {"Cooldown", s.Cooldown}, {"MaxCooldown", s.MaxCooldown}, {"Lease", s.Lease}} {
		if f.d < 0 {
			wrong(f.name, "is %v, but cannot be turned off", f.d)
		}
	}
	if !(s.Ratio <= 1) { // also no number at all
		wrong("Ratio", "is %v, more than all calls", s.Ratio)
	}
	if s.MinCalls < 0 {
		wrong("MinCalls", "is %d", s.MinCalls)
	}
	if s.Failures < 0 && s.Ratio < 0 {
		wrong("Failures", "is off, and so is Ratio: the breaker never opens")
	}
	return mistakes
}

func (s BudgetSettings) mistakes() (mistakes []error) {
	for _, f := range []struct {
		name string
		n    int
	}{{"Capacity", s.Capacity}, {"Cost", s.Cost}, {"ThrottleCost", s.ThrottleCost}} {
		if f.n < 0 {
			mistakes = append(mistakes, fmt.Errorf("holdfast: policy Budget.%s is %d: it %w", f.name, f.n, errNegative))
		}
	}
	if full, cost := orDefault(s.Capacity, defaultCapacity), orDefault(s.Cost, defaultCost); full > 0 && cost > full {
		mistakes = append(mistakes, fmt.Errorf("holdfast: policy Budget.Cost is %d, more than its Capacity of %d: no retry is ever paid for", cost, full))
	}
	return mistakes
}
