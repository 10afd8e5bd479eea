package holdfast

import "time"

// What a pace learns where replies tell no limits, as those of Bedrock, Foundry and most local servers do not: a rate of
// requests, from nothing but the throttles, by additive increase and multiplicative decrease.
//
// It is a rate, and not a number of calls in flight, since those limits are per minute: one call of 200 ms after the other
// is five times what 60 requests per minute permit, so that no number of calls in flight keeps it. Measured, with 30
// workers against 60 requests per minute, an AIMD limit of calls in flight has 93 to 95 % of its requests throttled where
// calls take 200 ms or 2 s; the rate below has 0.7 to 1.2 %, at 93 to 100 % of the limit. Against an upstream that counts
// calls in flight the rate does as well: it settles at what is accepted, 87 % of it and 0.5 % throttled.

const (
	// blindStep is how much time passes at least between two changes, in either direction: long enough for the
	// throttles of one moment to come in, which are one piece of news. Limits in flight that are cut once in 5 s are known
	// to have 0.2 % refused, those that are cut with every refusal 15 %.
	blindStep = 5 * time.Second
	// blindSight is how far back what went counts as a measurement. Beyond, there may have been pauses in it.
	blindSight = 15 * time.Second
	// There are throttles for other reasons than the rate. While nothing is limited, it takes blindSample of them, and
	// one in blindFirst requests, to believe in a limit; then, one in blindLater.
	blindSample, blindFirst, blindLater = 4, 3, 200
	// A throttle leaves blindLeast of the rate at least, which is what the adaptive mode of the AWS SDKs leaves, and
	// blindMost at most, which is enough when the rate has only just grown past the limit.
	blindLeast, blindMost = 0.7, 0.9
	// blindFloor is the rate that is left for probing, whatever happens: one request in ten seconds.
	blindFloor = 6
	// blindGrowth is by what share of itself the rate grows in one step near the limit, 2.4 % a minute. It doubles
	// with each blindPatience of steps without a throttle, 40 s, to find a limit that was raised.
	blindGrowth, blindPatience = 0.002, 8
	// blindReturn is by what the rate grows in one step far below the last known limit, or where none is known.
	blindReturn = 2
	// blindBurst is how much may be saved up of a limit that is guessed: it may be enforced by the second, and a burst
	// that fails would be taken for too high a rate.
	blindBurst = time.Second
	// blindMemory is after how much time without a throttle the guess is dropped. By then calls that wait have raised
	// it beyond any use, so that it can only be in the way of those that came in seldom.
	blindMemory = 10 * time.Minute
)

// blind is the state of it. The zero value has seen no throttle.
type blind struct {
	told bool    // replies do tell limits, so there is nothing to guess
	rate float64 // requests per minute; 0: not limited
	knee float64 // the limit as last seen, by what was accepted while there were throttles; 0: not seen

	since   instant // when measuring began, with a throttle
	sent    int64   // since then
	refused int64   // of these
	mark    int64   // of those that were sent, at the last throttle
	noticed instant // the last throttle; always before the first
	raised  instant // the last raise; always before the first
	quiet   int     // raises since the last throttle
}

// throttle is a hold because of a throttle of an attempt that was sent at the given time.
func (p *Pace) throttle(now, sent, until instant) {
	p.mu.Lock()
	p.prepare()
	if p.limits.FollowHeaders && !p.blind.told && p.blind.throttled(now, sent, until, p.own[requests]) {
		p.setRate(now)
	}
	woken := p.stop(now, until)
	p.mu.Unlock()
	notify(&woken)
}

// throttled takes note of a throttle that keeps everybody from sending until the given time, and reports whether it
// changes the rate. Own is the interval that is configured, if one is: what goes at that rate is too much, then.
func (b *blind) throttled(now, sent, until instant, own int64) (changed bool) {
	last := b.noticed
	b.noticed, b.quiet, b.mark = max(b.noticed, now), 0, b.sent
	measured := now.sub(b.since)
	recent := last != always && measured <= blindSight
	if !recent && b.rate == 0 {
		b.measure(max(now, until))
		return false
	}
	if sent <= b.since {
		return false // what it tells was not known yet
	}
	if b.refused++; measured < blindStep || b.rate == 0 && (b.refused < blindSample || b.refused*blindFirst < b.sent) {
		return false
	}
	if b.rate > 0 && b.refused*blindLater < b.sent {
		b.measure(max(now, until))
		return false
	}
	accepted := max(b.sent-b.refused, 0)
	perMinute := float64(accepted+1) / measured.Minutes() // one more than was seen would just not have gone
	switch {
	case b.rate == 0 && own > 0:
		b.rate = min(perMinute, blindMost*float64(time.Minute)/float64(own))
	case b.rate == 0:
		b.rate = perMinute
	case !recent:
		b.rate *= blindMost
	case accepted == 0:
		b.rate *= blindLeast
	default:
		b.rate = min(max(perMinute, blindLeast*b.rate), blindMost*b.rate)
	}
	b.rate = max(b.rate, blindFloor)
	if accepted > 0 { // else it is no matter of the rate
		b.knee = b.rate
	}
	b.measure(max(now, until))
	return true
}

func (b *blind) measure(from instant) { b.since, b.sent, b.refused, b.mark = from, 0, 0, 0 }

// waited takes note of a request that had to wait for the rate, and reports whether it changes it.
func (b *blind) waited(now instant) (changed bool) {
	const proven = 2 // this one, and one before it that was not throttled
	if b.rate == 0 || b.sent-b.mark < proven || now.sub(max(b.since, b.noticed, b.raised)) < blindStep {
		return false
	}
	b.raised = now
	switch {
	case b.knee == 0:
		b.rate *= blindReturn
	case b.rate < b.knee:
		b.rate = min(b.rate*blindReturn, b.knee)
	default:
		b.rate += b.rate * blindGrowth * float64(int64(1)<<min(b.quiet/blindPatience, 8))
		b.quiet++
	}
	return true
}

// stale reports whether the guess has been of no use for long.
func (b *blind) stale(now instant) bool { return b.rate > 0 && now.sub(b.noticed) >= blindMemory }

// setRate makes the guessed rate the limit of requests, below the configured one. The lock is held.
func (p *Pace) setRate(now instant) {
	b := &p.buckets[requests]
	guessed := int64(float64(time.Minute) / p.blind.rate)
	switch own := p.own[requests]; {
	case guessed <= max(own, 1): // the configured one binds
		p.sighted(now)
	case b.interval == 0:
		*b = newBucket(guessed, min(p.burst, int64(blindBurst)))
		b.full = now
		p.known, p.release = max(p.known, requests+1), release{}
	default:
		missing := max(b.full.sub(now), 0)
		*b = newBucket(guessed, min(p.burst, int64(blindBurst)))
		b.full = now.add(min(missing, time.Duration(b.capacity)))
	}
}

// sighted ends the guessing for now: what is configured or told holds. The lock is held.
func (p *Pace) sighted(now instant) {
	if p.blind.rate == 0 {
		return
	}
	p.blind.rate, p.blind.knee, p.blind.noticed = 0, 0, always
	b := &p.buckets[requests]
	missing := int64(max(b.full.sub(now), 0)) / b.interval
	if p.own[requests] == 0 {
		*b, p.before[requests] = bucket{}, missing
		return
	}
	*b = newBucket(p.own[requests], p.burst)
	b.full = now.add(time.Duration(b.cost(missing)))
}
