package holdfast

import (
	"time"
)

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
	need     [3]int64

	target  int  // index into the policy's targets
	tried   int  // attempts on this target
	refused bool // the one fallback after a refusal is used up
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
	c.need = need.amounts()
	c.deadline = deadline
	if own := orDefault(c.policy.Deadline, defaultDeadline); own > 0 {
		c.deadline = min(deadline, now.add(own))
	}
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

// following is the next target that can help after a verdict of this kind, -1 for none.
func (c *Call) following(k Kind) int {
	for i := c.target + 1; i < len(c.policy.Targets); i++ {
		from, to := &c.policy.Targets[c.target], &c.policy.Targets[i]
		if k == Spent && from.Credential == to.Credential && to.Credential != "" {
			continue
		}
		if (k == Refused || k == Overflow) && from.Model == to.Model && to.Model != "" {
			continue
		}
		return i
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

// next walks the targets until one may be sent to: deadline, breaker, pace, ticket, in this order. The breaker is only
// looked at before the pace, and its ticket taken after, so that no probe is held while the call queues.
func (c *Call) next(now instant) Action {
	for {
		if now >= c.deadline {
			return c.stop(now, ErrDeadline)
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
		if b := c.breaker(); b != nil && !c.admitted(now, b) {
			c.unpace(now)
			wait, _ := b.peek(now)
			if c.skip(now, ErrOpen, wait) {
				return Stop
			}
			continue
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
	if p.allow(now, c.need) {
		c.paced = true
		return toSend
	}
	if c.policy.FallbackFirst && c.following(Throttled) >= 0 {
		if held := p.heldFor(now); held > 0 {
			return c.unpermitted(now, held)
		}
	}
	w, wait, ok := p.join(now, c.need, c.deadline, c.Wake)
	switch {
	case !ok:
		return c.unpermitted(now, wait)
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

func (c *Call) unpermitted(now instant, wait time.Duration) asked {
	if c.skip(now, ErrPace, wait) {
		return toStop
	}
	return toNext
}

// admitted takes the breaker's ticket. A breaker that counts calls lends one ticket for all attempts on the target.
func (c *Call) admitted(now instant, b *Breaker) bool {
	if c.ticketed {
		if b.current(c.ticket) {
			return true
		}
		c.ticketed = false // it opened meanwhile
	}
	t, _, changed, ok := b.allow(now)
	c.ticket, c.ticketed = t, ok // before anyone is told, who may panic
	c.circuit(now, b, changed)
	return ok
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

// settle books the outcome with breaker, pace and budget, and decides what comes next.
func (c *Call) settle(now instant, verdict Verdict, used Tokens) Action {
	a := c.trace.last()
	a.took = now.sub(c.start) - a.after
	v := &verdict // moves to the heap: it is a failure's
	a.verdict = v
	c.hint = v.Wait
	c.settlePace(now, v, used)
	ch := c.settleBreaker(now, v)
	if c.watched() {
		c.observe(Event{Kind: EventAttempt, Verdict: *v}, now)
	}
	if b := c.breaker(); b != nil {
		c.circuit(now, b, ch)
	}
	switch v.Kind {
	case OK:
		return c.answered(now, a)
	case Cancelled:
		return c.stop(now, ErrCancelled)
	}
	c.owed = 0 // the retry did not help, and stays paid for
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
	}
	c.paced = false
	if b := c.breaker(); b != nil && c.ticketed {
		c.ticketed, c.failed = false, false
		c.circuit(now, b, b.settle(now, c.ticket, Success))
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

func (c *Call) source() Source {
	if c.target > 0 {
		return Fallback
	}
	return Live
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
	a.next, a.wait = Retried, wait
	c.waiting, c.asleep = true, now
	if c.watched() {
		c.observe(Event{Kind: EventWait, Verdict: *v, Wait: wait}, now)
	}
	c.step = Step{Action: Wait, Target: c.current(), Wait: wait}
	return Wait
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

// skip notes that the current target will not be asked, and moves on; done with the call if it was the last one.
func (c *Call) skip(now instant, why error, wait time.Duration) (over bool) {
	c.trace.skips = append(c.trace.skips, Skip{Target: c.name(), After: now.sub(c.start), Reason: why, Wait: wait})
	if c.watched() {
		c.observe(Event{Kind: EventSkip, Reason: why, Wait: wait}, now)
	}
	c.hint = wait
	kind := Overloaded // any target may stand in for one that is not asked
	if c.trace.sent > 0 {
		kind = c.trace.last().kind()
	}
	i := c.following(kind)
	if i < 0 {
		c.stop(now, why)
		return true
	}
	if c.trace.sent > 0 {
		c.trace.last().next = MovedOn
	}
	c.moveTo(now, i)
	return false
}

func (c *Call) resume(now instant) Action {
	slept := now.sub(c.asleep)
	if w := c.queued; w != nil {
		wait, granted := c.pace().poll(now, w)
		if !granted {
			if now < c.deadline {
				c.step = Step{Action: Wait, Target: c.current(), Wait: wait, Wake: w.ready}
				return Wait
			}
			c.pace().leave(now, w)
			c.queued = nil
			c.trace.Paced += slept
			return c.stop(now, ErrDeadline)
		}
		c.queued, c.paced = nil, true
		c.trace.Paced += slept
		return c.next(now)
	}
	c.waiting = false
	c.trace.Waited += slept
	return c.next(now)
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
	if c.ticketed {
		c.ticketed = false
		c.circuit(now, c.breaker(), c.breaker().settle(now, c.ticket, r))
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
			a.next = Stopped
		}
	}
	saved := why != nil && why != ErrCancelled && (c.trace.sent == 0 || c.trace.last().kind().meaning().saved)
	if c.watched() {
		c.observe(Event{Kind: EventEnd, Verdict: c.trace.verdict(), Reason: why, Source: c.trace.Source}, now)
	}
	c.step = Step{Action: Stop, Reason: why, Saved: saved}
	return Stop
}

// unpace gives back what was taken from the pace for an attempt that was not sent.
func (c *Call) unpace(now instant) {
	if c.paced {
		c.paced = false
		c.pace().settle(now, c.need, [3]int64{})
	}
}

func (c *Call) settlePace(now instant, v *Verdict, used Tokens) {
	p := c.pace()
	if p == nil {
		return
	}
	c.paced = false
	switch {
	case v.NotSent || v.Kind == Cancelled:
		p.settle(now, c.need, [3]int64{})
	case v.Kind.meaning().refund && (v.Status != 0 || v.Kind == Terminal):
		p.settle(now, c.need, [3]int64{1}) // the request was counted, its tokens were not
	case used != (Tokens{}):
		p.settle(now, c.need, used.amounts())
	}
	switch v.Kind {
	case Throttled:
		p.hold(now, now.add(c.throttleHold(v)))
	case Spent:
		p.hold(now, c.spentUntil(now, v))
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
	if until := instantOf(v.Resumes); !v.Resumes.IsZero() && until > now {
		return min(until, now.add(mostSpentRest))
	}
	return now.add(spentRest)
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
	c.ticketed, c.failed = false, false
	c.circuit(now, c.breaker(), c.breaker().settle(now, c.ticket, r))
}
