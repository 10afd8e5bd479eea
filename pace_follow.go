package holdfast

import (
	"net/http"
	"time"

	"holdfast/internal/wire"
)

// What a pace learns from the headers of replies.

// resetGrain is what a reset time may be off: it is told in whole seconds, as is the date it is held against.
const resetGrain = time.Second

// Follow learns from the rate-limit headers of a reply, of either dialect, if the pace was made to ([Limits]). Show it every
// reply to the calls that it paces, good or bad, as soon as its headers are there, and no others: other endpoints may
// have limits of their own. Zero time: now.
//
// A limit that is configured is never passed. A limit that is not is taken over, counted per minute. What remains makes
// the level lower at once and never higher, so that replies that come out of order change nothing for the worse, and what
// is on its way stays counted. The time of the reset is when the upstream's bucket is full, so ours is full by then, too. What is
// missing, negative or absurd is left out.
func (p *Pace) Follow(now time.Time, h http.Header) {
	if !p.limits.FollowHeaders {
		return
	}
	if now.IsZero() {
		now = time.Now()
	}
	told := wire.Limits(h, now)
	if told == (wire.RateLimits{}) {
		return
	}
	at := instantOf(now)
	p.mu.Lock()
	p.prepare()
	p.blind.told = true
	p.sighted(at)
	for i, r := range [...]wire.RateLimit{requests: told.Requests, inputTokens: told.Input, outputTokens: told.Output, allTokens: told.Tokens} {
		if r.Limit > 0 {
			p.learn(at, i, r)
		}
	}
	woken := p.advance(at, nil)
	p.mu.Unlock()
	notify(&woken)
}

// learn takes over what a reply tells of one limit. The lock is held.
func (p *Pace) learn(now instant, limit int, told wire.RateLimit) {
	b := &p.buckets[limit]
	switch interval := max(perToken(told.Limit), p.own[limit]); {
	case b.interval == 0:
		*b = newBucket(interval, p.burst)
		b.full = now.add(time.Duration(min(b.cost(p.before[limit]), b.capacity)))
		p.known = max(p.known, limit+1)
		p.release = release{}
	case b.interval != interval: // what is missing stays missing
		missing := int64(max(b.full.sub(now), 0)) / b.interval
		*b = newBucket(interval, p.burst)
		b.full = now.add(time.Duration(b.cost(missing)))
	}
	missing := b.capacity - b.cost(told.Remaining)
	if told.Full > 0 {
		missing = min(missing, min(int64(told.Full), maxCost)+int64(resetGrain))
	}
	if missing > 0 {
		b.full = max(b.full, now.add(time.Duration(missing)))
	}
}

// noted counts what goes while a limit is not known that may yet be learnt: it will have been counted by the upstream.
func (p *Pace) noted(n amounts, sign int64) {
	if !p.follows {
		return
	}
	p.blind.sent += sign * n[requests]
	unknown := false
	for i := range p.buckets {
		if p.buckets[i].interval == 0 {
			p.before[i] = min(max(p.before[i]+sign*min(n[i], maxCost), 0), maxCost)
			unknown = true
		}
	}
	p.follows = unknown
}
