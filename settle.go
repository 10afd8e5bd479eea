package holdfast

import "time"

// What a call does after an attempt.

// settle books the outcome with breaker, pace and budget, and decides what comes next.
func (c *Call) settle(now instant, verdict Verdict, used Tokens) Action {
	a := c.book(now, &verdict, used)
	v := a.verdict
	c.hint, c.ruled = v.Wait, OK
	switch v.Kind {
	case OK:
		return c.answered(now, a)
	case Cancelled:
		return c.stop(now, ErrCancelled)
	}
	c.owed = 0 // the retry did not help, and stays paid for
	c.blames(now, v)
	if v.atFault() && c.pooled() {
		if i := c.another(now); i >= 0 {
			c.trace.last().next = MovedOn
			c.turnTo(now, i)
			c.tried--
			return c.next(now)
		}
		v = c.ruling(now, v)
		c.ruled = v.Kind
	}
	if v.retryable() {
		return c.retry(now, v)
	}
	if v.Kind.meaning().fallback {
		return c.fallback(now, v, c.verdictReason(v))
	}
	a.next = Stopped
	return c.stop(now, nil)
}

// succeed is settle for the common outcome, without the copying of a verdict that has nothing to say.
func (c *Call) succeed(now instant, used Tokens) Action {
	a := c.trace.last()
	a.took = now.sub(c.start) - a.after
	c.hint = 0
	if c.paced && used != (Tokens{}) {
		c.pace().settle(now, c.need, used.amounts())
		if c.usual {
			c.pace().produced(int64(used.Output))
		}
	}
	c.paced = false
	if b := c.breaker(); b != nil && c.ticketed {
		c.circuit(now, b, c.handBack(now, b, Success))
	}
	if c.watched() {
		c.observe(Event{Kind: EventAttempt}, now)
	}
	return c.answered(now, a)
}

func (c *Call) answered(now instant, a *entry) Action {
	c.settleBudget(now)
	a.next = Answered
	c.trace.Source = c.source()
	return c.stop(now, nil)
}

// source tells whether the answer is of the first target, with whichever credential of its pool.
func (c *Call) source() Source {
	first := c.policy.firstTarget()
	if c.target == first {
		return Live
	}
	if from, _ := c.pool(); from > first || c.current().OnRefusal {
		return Fallback
	}
	return Live
}

// finish settles a pending answer. Whatever became of it, the call is over: what was handed out is never asked for
// again.
func (c *Call) finish(now instant, v Verdict, used Tokens) {
	a := c.book(now, &v, used)
	var why error
	switch v.Kind {
	case OK:
		c.settleBudget(now)
	case Cancelled:
		why = ErrCancelled
	default:
		c.owed = 0
		a.next = Stopped
	}
	c.stop(now, why)
}

// verdictReason is why a failure that is not retried ends the call; nil returns the upstream's error as it came.
func (c *Call) verdictReason(v *Verdict) error {
	switch {
	case v.Kind == Spent:
		return ErrSpent
	case v.Kind.meaning().retry:
		return ErrNoRetry
	}
	return nil
}

// retry plans another attempt on the same target, if all that speaks against it is silent: no wait is begun that would
// end in giving up.
func (c *Call) retry(now instant, v *Verdict) Action {
	p := c.policy
	if now >= c.deadline {
		return c.giveUp(now, ErrDeadline)
	}
	attempts := max(orDefault(p.Attempts, defaultAttempts), 1)
	if c.tried >= attempts {
		return c.fallback(now, v, ErrAttempts)
	}
	another := c.following(v.Kind) >= 0
	if v.Silent && another {
		return c.fallback(now, v, ErrAttempts)
	}
	if most := orDefault(p.MaxServerWait, defaultMaxServerWait); most > 0 && v.Wait > most {
		return c.fallback(now, v, ErrServerWait)
	}
	if p.FallbackFirst && v.Kind == Throttled && another {
		return c.fallback(now, v, ErrPace)
	}
	if b := c.breaker(); b != nil && !b.mayPass(now, v.Wait) {
		return c.fallback(now, v, ErrOpen)
	}
	wait := p.Backoff.plan(v, c.tried, p.ServerWait, p.Dice)
	if now.add(wait) >= c.deadline {
		return c.fallback(now, v, ErrDeadline)
	}
	if !c.pay(now, v.Kind) {
		return c.giveUp(now, ErrBudget)
	}
	a := c.trace.last()
	if a.next, a.wait = Retried, wait; a.target != c.name() {
		a.next = MovedOn // the credential that is free first
	}
	c.waiting, c.asleep = true, now
	if c.watched() {
		c.observe(Event{Kind: EventWait, Verdict: *v, Wait: wait}, now)
	}
	c.step = Step{Action: Wait, Target: c.current(), Wait: wait}
	return Wait
}

// fallback moves on to the next target that can help; with none left the call gives up for the given reason.
func (c *Call) fallback(now instant, v *Verdict, why error) Action {
	i := c.following(v.Kind)
	if v.Kind == Refused {
		if !c.policy.RefusalFallback || c.refused {
			i = -1
		}
		c.refused = true
	}
	if i < 0 || !v.Kind.meaning().fallback {
		return c.giveUp(now, why)
	}
	if now >= c.deadline {
		return c.giveUp(now, ErrDeadline)
	}
	if !c.pay(now, v.Kind) {
		return c.giveUp(now, ErrBudget)
	}
	c.trace.last().next = MovedOn
	c.moveTo(now, i)
	return c.next(now)
}

func (c *Call) giveUp(now instant, why error) Action {
	c.trace.last().next = Stopped
	if why == ErrOpen {
		if wait, ok := c.breaker().peek(now); !ok {
			c.hint = max(c.hint, wait)
		}
	}
	return c.stop(now, why)
}

func (c *Call) moveTo(now instant, target int) {
	c.settleCalls(now, Failure)
	c.target, c.tried = target, 0
}

// skipped notes that the current target is not asked.
func (c *Call) skipped(now instant, why error, wait time.Duration) {
	c.trace.skips = append(c.trace.skips, Skip{Target: c.name(), After: now.sub(c.start), Reason: why, Wait: wait})
	if c.watched() {
		c.observe(Event{Kind: EventSkip, Reason: why, Wait: wait}, now)
	}
}

// skip moves on from a target that will not be asked; done with the call if it was the last one.
func (c *Call) skip(now instant, why error, wait time.Duration) (over bool) {
	c.skipped(now, why, wait)
	c.hint = wait
	kind := Overloaded // any target may stand in for one that is not asked
	if c.trace.sent > 0 {
		kind = c.lastKind()
	}
	i := c.following(kind)
	if i < 0 {
		if kind == Refused {
			why = nil // the refusal is an answer, and a better one than none
		}
		c.stop(now, why)
		return true
	}
	if c.trace.sent > 0 {
		c.trace.last().next = MovedOn
	}
	c.moveTo(now, i)
	return false
}
