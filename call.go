package holdfast

import "time"

// Call is one call in progress: the state machine that [Do] drives. It decides and does not do: it is told the time,
// the outcomes and the caller's leaving, and answers with the next [Step]. Whoever drives it himself, as a simulation
// does, keeps to the order
//
//	Begin, then per Step:  Send -> send, then Settle    Wait -> wait, then Resume    Stop -> over
//
// with Leave instead when the caller goes away or the driver fails. A Call is not safe for concurrent use.
type Call struct {
	// Wake, set before Begin, is called when a Step's Wait may end early because the pace gave permission or will
	// give it sooner. It may be called by any goroutine. Nil: watch Step.Wake.
	Wake func()

	policy   *Policy
	step     Step // the latest, kept here since copying it through every return costs more than deciding it
	trace    Trace
	start    instant
	deadline instant
	need     amounts
	usual    bool // need's output is what the pace expects

	target  int     // index into the policy's targets
	tried   int     // attempts on this target, or on the upstream behind its pool
	blamed  []blame // targets that have shown that they are no help
	ruled   Kind    // what the last failure means, where it is more than the last attempt's verdict; else OK
	refused bool    // the one fallback after a refusal is used up
	over    bool
	waiting bool // a backoff is under way
	asleep  instant

	ticket   Ticket
	ticketed bool // the ticket is out
	failed   bool // CountCalls: attempts on this target have failed
	queued   *waiter
	paced    bool          // need was taken from the pace
	owed     int64         // what the budget is to get back if the retry works or is never sent
	hint     time.Duration // the wait to put on the error
}

// Action is what a driver is to do.
type Action uint8

const (
	// Send one attempt to Step.Target.
	Send Action = iota
	// Wait for Step.Wait, or until woken.
	Wait
	// Stop: the call is over.
	Stop
)

// Step is what a [Call] wants next.
type Step struct {
	Action Action
	// Target is the one to send to, nil when the policy has none.
	Target *Target
	// Timeout, with Send, is how long the attempt may take; 0: no bound.
	Timeout time.Duration
	// Whole, with Send, tells that Timeout is all that is left of the deadline rather than the attempt's own.
	Whole bool
	// Wait and Wake: how long to wait, and what ends the wait early when it is not nil.
	Wait time.Duration
	Wake <-chan struct{}
	// Reason, with Stop, is a sentinel of this package. Nil: the call ended with its last outcome, an answer or a
	// terminal error to be returned as it is.
	Reason error
	// Saved, with Stop, tells that a saved answer may stand in.
	Saved bool
}

// NewCall returns a call under the policy that has not begun.
func NewCall(p *Policy) *Call { return &Call{policy: p} }

// Begin starts the call. The deadline is the caller's own, zero for none; need is what it will take from the pace.
func (c *Call) Begin(now, deadline time.Time, need Tokens) Step {
	d := never
	if !deadline.IsZero() {
		d = instantOf(deadline)
	}
	c.begin(instantOf(now), d, need)
	return c.step
}

// Settle reports the outcome of the attempt that was to be sent, and what it used if that is known: the zero value
// leaves the estimate as it is.
func (c *Call) Settle(now time.Time, v Verdict, used Tokens) Step {
	c.settle(instantOf(now), v, used)
	return c.step
}

// Resume reports that the wait is over.
func (c *Call) Resume(now time.Time) Step {
	c.resume(instantOf(now))
	return c.step
}

// Leave ends the call at whatever point it is: its ticket, tokens and place in the queue are given back, and an attempt
// that was under way counts for nothing. On a call that is over it does nothing.
func (c *Call) Leave(now time.Time) Step {
	c.leave(instantOf(now), Ignore)
	return c.step
}

// Trace returns what happened so far.
func (c *Call) Trace() Trace { return c.trace }

func (c *Call) begin(now, deadline instant, need Tokens) Action {
	c.start = now
	c.trace.started = now
	c.need, c.usual = need.amounts(), need.Output < 0
	c.deadline = deadline
	if own := orDefault(c.policy.Deadline, defaultDeadline); own > 0 {
		c.deadline = min(deadline, now.add(own))
	}
	c.target = c.policy.firstTarget()
	return c.next(now)
}

func (c *Call) current() *Target {
	if len(c.policy.Targets) == 0 {
		return nil
	}
	return &c.policy.Targets[c.target]
}

func (c *Call) name() string {
	if t := c.current(); t != nil {
		return t.Name
	}
	return ""
}

func (c *Call) breaker() *Breaker {
	if t := c.current(); t != nil {
		return t.Breaker
	}
	return c.policy.Breaker
}

func (c *Call) pace() *Pace {
	if t := c.current(); t != nil {
		return t.Pace
	}
	return c.policy.Pace
}

// following is the next target that can help after a verdict of this kind, -1 for none. It is another upstream or model:
// the rest of a pool is tried before. Targets for refusals are for nothing else, and come before all others then.
func (c *Call) following(k Kind) int {
	all := c.policy.Targets
	if len(all) == 0 {
		return -1
	}
	_, next := c.pool()
	if k == Refused {
		from := 0
		if all[c.target].OnRefusal {
			from = next
		}
		for i := from; i < len(all); i++ {
			if all[i].OnRefusal && !c.inVain(i) {
				return i
			}
		}
	}
	for i := next; i < len(all); i++ {
		if !all[i].OnRefusal && !c.inVain(i) {
			return i
		}
	}
	return -1
}

// watched guards every observe: an Event is large, and building it is not free.
func (c *Call) watched() bool { return c.policy.Observe != nil }

func (c *Call) observe(e Event, now instant) {
	e.At = now.time()
	if e.Target == "" {
		e.Target = c.name()
	}
	e.Attempt = c.trace.sent
	c.policy.Observe(e)
}

func (c *Call) resume(now instant) Action {
	slept := now.sub(c.asleep)
	if w := c.queued; w != nil {
		wait, granted := c.pace().poll(now, w)
		if !granted && now < c.deadline && c.worthQueueing(now, wait) {
			c.step = Step{Action: Wait, Target: c.current(), Wait: wait, Wake: w.ready}
			return Wait
		}
		if !granted {
			c.pace().leave(now, w)
		}
		c.queued, c.paced = nil, granted
		c.trace.Paced += slept
		return c.next(now)
	}
	c.waiting = false
	c.trace.Waited += slept
	return c.next(now)
}

// worthQueueing reports whether the call is to stay in its place after the upstream has stopped the queue: not if
// permission now comes too late, and not if another target can be asked sooner.
func (c *Call) worthQueueing(now instant, wait time.Duration) bool {
	p := c.pace()
	if p.spentFor(now) > 0 {
		return false
	}
	if p.heldFor(now) <= 0 {
		return true
	}
	if now.add(wait) >= c.deadline || c.policy.FallbackFirst && c.following(Throttled) >= 0 {
		return false
	}
	if !c.pooled() {
		return true
	}
	target, _ := c.best(now)
	return target == c.target
}

// lastKind is what the last outcome means for the call.
func (c *Call) lastKind() Kind {
	if c.ruled != OK {
		return c.ruled
	}
	return c.trace.last().kind()
}

// leave ends the call from outside.
func (c *Call) leave(now instant, r Result) Action {
	if c.over {
		return Stop
	}
	switch {
	case c.queued != nil:
		c.pace().leave(now, c.queued)
		c.queued = nil
		c.trace.Paced += now.sub(c.asleep)
	case c.waiting:
		c.waiting = false
		c.trace.Waited += now.sub(c.asleep)
	case c.trace.sent > 0 && c.trace.last().next == Running:
		a := c.trace.last()
		a.took = now.sub(c.start) - a.after
		a.verdict = &Verdict{Kind: Cancelled, Rule: "left"}
	}
	if b := c.breaker(); c.ticketed {
		c.circuit(now, b, c.handBack(now, b, r))
	}
	return c.stop(now, ErrCancelled)
}

// stop ends the call and gives back all that it still holds.
func (c *Call) stop(now instant, why error) Action {
	c.over = true
	c.repay(now)
	c.unpace(now)
	result := Failure
	if why == ErrCancelled {
		result = Ignore
	}
	c.settleCalls(now, result)
	c.trace.Elapsed = now.sub(c.start)
	c.trace.Reason = why
	if why != nil && c.trace.sent > 0 {
		a := c.trace.last()
		if a.next = GaveUp; why == ErrCancelled {
			a.next = Left
		}
	}
	saved := why != nil && why != ErrCancelled && (c.trace.sent == 0 || c.lastKind().meaning().saved)
	if c.watched() {
		c.observe(Event{Kind: EventEnd, Verdict: c.trace.verdict(), Reason: why, Source: c.trace.Source}, now)
	}
	c.step = Step{Action: Stop, Reason: why, Saved: saved}
	return Stop
}
