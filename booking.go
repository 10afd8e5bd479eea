package holdfast

import "time"

// What a call tells breaker, pace and budget of an attempt, and gives back to them.

// book notes the outcome of an attempt in the trace, and tells it to pace, breaker and observer.
func (c *Call) book(now instant, v *Verdict, used Tokens) *entry {
	a := c.trace.last()
	a.took = now.sub(c.start) - a.after
	a.verdict = v
	c.settlePace(now, v, used)
	ch := c.settleBreaker(now, v)
	if c.watched() {
		c.observe(Event{Kind: EventAttempt, Verdict: *v}, now)
	}
	if b := c.breaker(); b != nil {
		c.circuit(now, b, ch)
	}
	return a
}

// pay takes a retry's cost from the budget, before the wait.
func (c *Call) pay(now instant, k Kind) bool {
	if c.policy.Budget == nil {
		return true
	}
	price, ok := c.policy.Budget.take(now, k)
	c.owed = price
	return ok
}

func (c *Call) repay(now instant) {
	if c.owed > 0 {
		c.policy.Budget.give(now, c.owed)
		c.owed = 0
	}
}

func (c *Call) settleBudget(now instant) {
	if b := c.policy.Budget; b != nil && c.trace.sent == 1 {
		b.earn(now)
	}
	c.repay(now)
}

// unpace gives back what was taken from the pace for an attempt that was not sent.
func (c *Call) unpace(now instant) {
	if c.paced {
		c.paced = false
		c.pace().settle(now, c.need, amounts{})
	}
}

func (c *Call) settlePace(now instant, v *Verdict, used Tokens) {
	p := c.pace()
	if p == nil {
		return
	}
	c.paced = false
	if c.usual && v.Kind == OK {
		p.produced(int64(used.Output)) // a cut answer tells nothing of whole ones
	}
	switch {
	case v.NotSent || v.Kind == Cancelled:
		p.settle(now, c.need, amounts{})
	case v.Kind.meaning().refund && (v.Status != 0 || v.Kind == Terminal):
		p.settle(now, c.need, amounts{requests: 1}) // the request was counted, its tokens were not
	case used != (Tokens{}):
		p.settle(now, c.need, used.amounts())
	}
	switch {
	case v.Kind == Throttled:
		a := c.trace.last()
		p.throttle(now, c.start.add(a.after), now.add(c.throttleHold(v)))
	case v.Kind == Spent:
		p.spend(now, c.spentUntil(now, v), v.resumes())
	case v.Kind == Terminal && v.Rejected && c.pooled():
		p.rest(now.add(rejectedRest))
	}
}

// throttleHold is how long a throttle keeps everyone of the same credential from sending: as long as the upstream
// asked, within the policy's maximum, and for an upstream that names no time the base of our own backoff.
func (c *Call) throttleHold(v *Verdict) time.Duration {
	hold := v.Wait
	if hold <= 0 {
		hold = c.policy.Backoff.ThrottleBase
		if hold <= 0 {
			hold = max(orDefault(c.policy.Backoff.Base, defaultBase), 0)
		}
	}
	if most := orDefault(c.policy.MaxServerWait, defaultMaxServerWait); most > 0 {
		hold = min(hold, most)
	}
	return hold
}

// A spent credential rests until the upstream says it works again, but is asked once in mostSpentRest all the same: a
// limit may be raised, and a process should not need a restart to notice. spentRest is for an upstream that names no
// time.
const (
	spentRest     = 10 * time.Minute
	mostSpentRest = time.Hour
)

func (c *Call) spentUntil(now instant, v *Verdict) instant {
	if until := v.resumes(); until > now {
		return min(until, now.add(mostSpentRest))
	}
	return now.add(spentRest)
}

// resumes is when a spent credential works again; always when the upstream does not say.
func (v *Verdict) resumes() instant {
	if v.Resumes.IsZero() {
		return always
	}
	return instantOf(v.Resumes)
}

// settleBreaker reports one attempt. A breaker that counts calls hears of successes only, until the call leaves the
// target.
func (c *Call) settleBreaker(now instant, v *Verdict) (ch change) {
	b := c.breaker()
	if b == nil || !c.ticketed {
		return ch
	}
	r := v.breaker()
	if b.settings.Count == CountCalls && r == Failure {
		c.failed = true
		return ch
	}
	if r == Ignore && b.settings.Count == CountCalls && v.retryable() {
		return ch // the ticket stays out for the next attempt
	}
	return c.handBack(now, b, r)
}

// handBack gives the breaker its ticket back.
func (c *Call) handBack(now instant, b *Breaker, r Result) change {
	c.ticketed, c.failed = false, false
	return b.settle(now, c.ticket, r)
}

// settleCalls reports, to a breaker that counts calls, that the call is done with the target.
func (c *Call) settleCalls(now instant, r Result) {
	if !c.ticketed {
		return
	}
	if !c.failed {
		r = Ignore
	}
	b := c.breaker()
	c.circuit(now, b, c.handBack(now, b, r))
}
