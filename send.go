package holdfast

import "time"

// What a call does before an attempt.

// next walks the targets until one may be sent to: deadline, breaker, pace, ticket, in this order. The breaker is only
// looked at before the pace, and its ticket taken after, so that no probe is held while the call queues.
func (c *Call) next(now instant) Action {
	for {
		if now >= c.deadline {
			return c.stop(now, ErrDeadline)
		}
		if !c.paced && c.pooled() {
			c.pick(now)
		}
		if b := c.breaker(); b != nil && !c.ticketed {
			if wait, ok := b.peek(now); !ok {
				if c.skip(now, ErrOpen, wait) {
					return Stop
				}
				continue
			}
		}
		if p := c.pace(); p != nil && !c.paced {
			switch c.ask(now, p) {
			case toWait:
				return Wait
			case toStop:
				return Stop
			case toNext:
				continue
			}
		}
		if b := c.breaker(); b != nil {
			if wait, ok := c.admitted(now, b); !ok {
				c.unpace(now)
				if c.skip(now, ErrOpen, wait) {
					return Stop
				}
				continue
			}
		}
		return c.send(now)
	}
}

// asked is what came of asking the pace.
type asked uint8

const (
	toSend asked = iota // permission was taken
	toWait              // the call queues
	toNext              // another target is asked instead
	toStop              // none is left
)

func (c *Call) ask(now instant, p *Pace) asked {
	if c.usual {
		c.need = p.expect(c.need)
	}
	if p.allow(now, c.need) {
		c.paced = true
		return toSend
	}
	if left := p.spentFor(now); left > 0 {
		c.blames(now, &Verdict{Kind: Spent})
		return c.unpermitted(now, ErrSpent, left)
	}
	elsewhere := c.policy.FallbackFirst && c.following(Throttled) >= 0
	if held := p.heldFor(now); held > 0 && elsewhere {
		return c.unpermitted(now, ErrPace, held)
	}
	w, wait, ok := p.join(now, waiter{
		want: c.need, lane: c.policy.Lane, deadline: c.deadline, restless: elsewhere || c.pooled(), wake: c.Wake,
	})
	switch {
	case !ok:
		return c.unpermitted(now, ErrPace, wait)
	case w == nil:
		c.paced = true
		return toSend
	}
	c.queued, c.asleep = w, now
	if c.watched() {
		c.observe(Event{Kind: EventPace, Wait: wait}, now)
	}
	c.step = Step{Action: Wait, Target: c.current(), Wait: wait, Wake: w.ready}
	return toWait
}

func (c *Call) unpermitted(now instant, why error, wait time.Duration) asked {
	if c.skip(now, why, wait) {
		return toStop
	}
	return toNext
}

// admitted takes the breaker's ticket. A breaker that counts calls lends one ticket for all attempts on the target.
func (c *Call) admitted(now instant, b *Breaker) (wait time.Duration, ok bool) {
	if c.ticketed {
		if b.current(c.ticket) {
			return 0, true
		}
		c.ticketed = false // it opened meanwhile
	}
	t, wait, changed, ok := b.allow(now)
	c.ticket, c.ticketed = t, ok // before anyone is told, who may panic
	c.circuit(now, b, changed)
	return wait, ok
}

func (c *Call) circuit(now instant, b *Breaker, ch change) {
	if ch.from != ch.to {
		b.tell()
		if c.watched() {
			c.observe(Event{Kind: EventCircuit, From: ch.from, To: ch.to}, now)
		}
	}
}

func (c *Call) send(now instant) Action {
	c.step = Step{Action: Send, Target: c.current()}
	if c.deadline != never {
		c.step.Timeout, c.step.Whole = c.deadline.sub(now), true
	}
	if t := c.policy.AttemptTimeout; t > 0 && (!c.step.Whole || t < c.step.Timeout) {
		c.step.Timeout, c.step.Whole = t, false
	}
	c.tried++
	a := c.trace.begin()
	a.target, a.after, a.next = c.name(), now.sub(c.start), Running
	if c.watched() {
		c.observe(Event{Kind: EventSend}, now)
	}
	return Send
}
