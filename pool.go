package holdfast

import "time"

// What a call does among the credentials of a pool: targets side by side with the same Pool, which are one upstream and
// one model with different credentials. A credential that is to blame is left for the next one at once. Nothing is
// waited for, paid or counted, since the upstream is not asked the same thing again.

// rejectedRest is how long a rejected credential is asked after all others of its pool. It is asked then, if nothing
// else is left: one request that nobody may make must not take the keys from everybody.
const rejectedRest = time.Minute

// blame is what one target has shown itself good for in this call.
type blame struct {
	target int
	kind   Kind    // Throttled, Spent, Terminal for a rejected credential, or Overflow and Refused for the model
	until  instant // Throttled: when it may be asked again
}

// pool is the range of targets that share the current one's pool; just itself when it has none.
func (c *Call) pool() (from, to int) {
	all := c.policy.Targets
	from, to = c.target, c.target+1
	name := all[c.target].Pool
	for name != "" && from > 0 && all[from-1].Pool == name {
		from--
	}
	for name != "" && to < len(all) && all[to].Pool == name {
		to++
	}
	return from, to
}

func (c *Call) pooled() bool {
	t := c.current()
	return t != nil && t.Pool != ""
}

// blames notes what the target's outcome says about it, as far as the rest of the call is to know.
func (c *Call) blames(now instant, v *Verdict) {
	switch k := v.Kind; {
	case len(c.policy.Targets) == 0:
	case k == Spent, k == Overflow, k == Refused, k == Terminal && v.Rejected:
		c.blamed = append(c.blamed, blame{target: c.target, kind: k, until: never})
	case k == Throttled && c.pooled():
		c.blamed = append(c.blamed, blame{target: c.target, kind: k, until: now.add(c.throttleHold(v))})
	}
}

func (c *Call) blameOf(target int) *blame {
	for i := range c.blamed {
		if c.blamed[i].target == target {
			return &c.blamed[i]
		}
	}
	return nil
}

// forgive lets a target be asked again.
func (c *Call) forgive(target int) {
	for i := range c.blamed {
		if c.blamed[i].target == target {
			c.blamed = append(c.blamed[:i:i], c.blamed[i+1:]...)
			return
		}
	}
}

// inVain reports whether a target has been shown to be no help in this call by another with the same model or the same
// credential. Empty values differ from all others.
func (c *Call) inVain(target int) bool {
	t := &c.policy.Targets[target]
	for _, b := range c.blamed {
		from := &c.policy.Targets[b.target]
		switch b.kind {
		case Spent:
			if t.Credential != "" && t.Credential == from.Credential {
				return true
			}
		case Overflow, Refused:
			if t.Model != "" && t.Model == from.Model {
				return true
			}
		}
	}
	return false
}

// standing is what can be expected of a credential, best first.
type standing uint8

const (
	free    standing = iota // may be sent to now
	busy                    // its pace gives permission later
	resting                 // it was rejected a while ago
	useless                 // spent, behind an open circuit, or to blame in this call
)

// prospect is a standing and its reasons.
type prospect struct {
	standing
	at     instant // when: the permission, the end of the rest, the next probe
	reason error   // nil: this call knows best
}

func (p prospect) better(q prospect) bool {
	return p.standing < q.standing || p.standing == q.standing && p.at < q.at
}

func (c *Call) prospect(now instant, target int) prospect {
	t := &c.policy.Targets[target]
	if b := c.blameOf(target); b != nil {
		return prospect{standing: useless, at: b.until}
	}
	if t.Breaker != nil && !(c.ticketed && target == c.target) {
		if wait, ok := t.Breaker.peek(now); !ok {
			return prospect{useless, now.add(wait), ErrOpen}
		}
	}
	switch {
	case t.Pace == nil:
		return prospect{standing: free, at: now}
	case c.queued != nil && target == c.target:
		return prospect{busy, c.queued.alarm, ErrPace}
	}
	need := c.need
	if c.usual {
		need = t.Pace.expect(need)
	}
	return t.Pace.prospect(now, need, c.policy.Lane)
}

// best is the most promising credential of the pool: the current one if there is no better.
func (c *Call) best(now instant) (target int, is prospect) {
	from, to := c.pool()
	target, is = c.target, c.prospect(now, c.target)
	for n := 1; n < to-from && is.standing != free; n++ {
		i := from + (c.target-from+n)%(to-from)
		if p := c.prospect(now, i); p.better(is) {
			target, is = i, p
		}
	}
	return target, is
}

// pick settles on the credential to ask before a call queues or sends.
func (c *Call) pick(now instant) {
	is := c.prospect(now, c.target)
	if is.standing == free {
		return
	}
	target, _ := c.best(now)
	if target == c.target {
		return
	}
	if is.reason != nil {
		c.skipped(now, is.reason, max(is.at.sub(now), 0))
	}
	c.turnTo(now, target)
}

// turnTo makes another credential of the pool the current one. The attempts on the upstream stay counted.
func (c *Call) turnTo(now instant, target int) {
	c.settleCalls(now, Failure)
	c.target = target
}

// another finds a credential to ask at once after the current one has failed by its own fault; -1 when the others
// promise no more than waiting for one that is throttled.
func (c *Call) another(now instant) int {
	target, is := c.best(now)
	if is.standing == useless {
		return -1
	}
	if at := c.throttled(); at >= 0 && (is.standing == resting || is.standing == busy && is.at >= c.blameOf(at).until) {
		return -1
	}
	return target
}

// throttled is the credential of the pool that may be asked again first, of those that throttled this call; -1 for none.
func (c *Call) throttled() int {
	from, to := c.pool()
	first, until := -1, never
	for i := from; i < to; i++ {
		if b := c.blameOf(i); b != nil && b.kind == Throttled && (first < 0 || b.until < until) {
			first, until = i, b.until
		}
	}
	return first
}

// ruling is what the failure of the whole pool means for the call: as long as one credential is merely throttled it is
// worth waiting for, and one that is spent leaves hope for another upstream. Only a pool of nothing but rejected
// credentials ends the call.
func (c *Call) ruling(now instant, v *Verdict) *Verdict {
	if first := c.throttled(); first >= 0 {
		until := c.blameOf(first).until
		c.forgive(first)
		if first == c.target {
			return v
		}
		c.turnTo(now, first)
		return &Verdict{Kind: Throttled, Status: v.Status, Wait: max(until.sub(now), 0), Rule: v.Rule}
	}
	if from, to := c.pool(); v.Kind != Spent {
		for i := from; i < to; i++ {
			if c.isSpent(now, i) {
				return &Verdict{Kind: Spent, Status: v.Status, Rule: v.Rule}
			}
		}
	}
	return v
}

func (c *Call) isSpent(now instant, target int) bool {
	if b := c.blameOf(target); b != nil {
		return b.kind == Spent
	}
	p := c.policy.Targets[target].Pace
	return p != nil && p.spentFor(now) > 0
}

// atFault reports whether the credential is to blame for the outcome, and not the upstream or the request.
func (v *Verdict) atFault() bool {
	return v.Kind == Throttled || v.Kind == Spent || v.Kind == Terminal && v.Rejected
}
