package holdfast

import (
	"container/list"
	"context"
	"sync"
	"time"
)

// Tokens are a call's input and output tokens: estimated before it is sent, known from usage afterwards. Input
// leaves out tokens read from a cache, which cost nothing of an Anthropic limit. Output may be [UsualOutput] in an estimate
// that a [Policy] makes; other negative numbers, and those in usage, count as none.
type Tokens struct{ Input, Output int }

// Limits are what one credential and model group may send. The zero value limits nothing.
type Limits struct {
	// RequestsPerMinute, InputTokensPerMinute and OutputTokensPerMinute refill continuously. Zero or negative:
	// not limited.
	RequestsPerMinute     int
	InputTokensPerMinute  int
	OutputTokensPerMinute int
	// Burst is how much time's worth of each limit may be saved up. Providers may enforce 60 requests per minute
	// as one per second, so a shorter Burst avoids their 429s at the price of waiting. Default: 1m.
	Burst time.Duration
	// FollowHeaders learns from the rate-limit headers of the replies that [Pace.Follow] is shown: limits that are not
	// configured, tighter ones than configured, and how much is left when others use the same credential. Where no reply
	// tells limits it learns a rate of requests from the throttles: none before them, never above what is configured,
	// never below 6 per minute, and forgotten after ten minutes without a throttle. Throttles that have nothing to do
	// with the rate can bring it down, too. False: only what is configured holds.
	FollowHeaders bool
	// Queue is how many calls may wait for permission. Default: 1000. Negative: none, a call that would wait is
	// refused.
	Queue int
}

const (
	defaultBurst = time.Minute
	defaultQueue = 1000
)

// Pace gives permission to send at the speed of the limit. Waiting is first come, first served; a call takes from all of
// its limits together or from none, and takes when it reaches the head of the queue, so that one that leaves the queue
// owes nothing and delays nobody. Interactive calls go before bulk ones, but after every eighth of them one bulk call has
// its turn. A request larger than a full bucket goes out when the bucket is full, and those behind it wait until its debt
// is paid. Use one per credential and model group.
//
// The zero value limits nothing but keeps the pauses that the upstream asks for. Those who wait for the end of such a
// pause where nothing is limited are let go one every 10 ms at first, and faster and faster, all of them within 2.6 s.
//
// With FollowHeaders and an upstream that tells no limits, 30 workers that never pause have about 90 throttles in the first
// minute against 60 requests per minute, and then 0.7 to 1.2 % of their requests throttled at 93 to 100 % of the limit;
// without it 80 to 90 % are. A limit that halves is kept after 20 s, one that doubles is used after four minutes. It never
// guesses limits of tokens.
//
// A Pace is safe for concurrent use.
type Pace struct {
	mu      sync.Mutex
	buckets buckets
	known   int     // limits, the last one that is known included: those behind it are none
	queued  int     // in both lanes
	held    instant // nobody goes before; always when not held
	ready   bool

	size    int          // how many may queue
	lanes   [2]list.List // of *waiter
	passed  int          // interactive calls since the last bulk one, while one waits
	release release
	spent   instant // no money before; held as well
	resumes instant // when there is money again, as far as the upstream says
	rested  instant // other credentials are to be preferred until then
	limits  Limits
	own     [len(amounts{})]int64 // intervals that are configured
	burst   int64
	before  amounts // what went while a limit that is followed was not known
	follows bool
	blind   blind
	output  output
}

// NewPace returns a pace with full buckets.
func NewPace(l Limits) *Pace {
	p := &Pace{limits: l}
	p.mu.Lock()
	p.prepare()
	p.mu.Unlock()
	return p
}

func (p *Pace) prepare() {
	if p.ready {
		return
	}
	p.ready = true
	p.held, p.spent, p.resumes, p.rested = always, always, always, always
	p.blind.noticed, p.blind.raised = always, always
	p.size = max(orDefault(p.limits.Queue, defaultQueue), 0)
	burst := min(orDefault(p.limits.Burst, defaultBurst), time.Duration(maxCost))
	p.burst, p.follows = int64(burst), p.limits.FollowHeaders
	perMinute := [...]int{p.limits.RequestsPerMinute, p.limits.InputTokensPerMinute, p.limits.OutputTokensPerMinute}
	for i, n := range perMinute {
		if n > 0 {
			p.own[i] = perToken(int64(n))
			p.buckets[i] = newBucket(p.own[i], p.burst)
			p.known = i + 1
		}
	}
}

// Allow takes permission for one request of this size if it can be had at once, without queueing. Zero time: now, as in
// the other methods.
func (p *Pace) Allow(now time.Time, need Tokens) bool {
	return p.allow(when(now), need.amounts())
}

func (p *Pace) allow(now instant, want amounts) bool {
	p.mu.Lock()
	p.prepare()
	ok := p.takeNow(now, want)
	p.mu.Unlock()
	return ok
}

func (p *Pace) takeNow(now instant, want amounts) bool {
	if p.queued > 0 || now < p.held {
		return false
	}
	var after [len(want)]instant
	limited := p.buckets[:p.known]
	for i := range limited {
		b := &limited[i]
		if b.interval == 0 || want[i] == 0 {
			continue // who takes nothing is not held up by others' debt
		}
		cost := b.cost(want[i])
		after[i] = max(b.full, now) + instant(cost)
		if after[i]-now > instant(b.capacity) && (cost <= b.capacity || b.full > now) {
			return false
		}
	}
	for i := range limited {
		if limited[i].interval != 0 && want[i] != 0 {
			limited[i].full = after[i]
		}
	}
	if p.follows {
		p.noted(want, 1)
	}
	return true
}

// Wait takes permission for one interactive request of this size, queueing for it. It returns an *Error with the reason
// ErrPace at once, without taking anything, when the queue is full or when permission would come after ctx's deadline;
// with the reason ErrSpent while the credential is spent; and with the reason ErrCancelled when ctx ends.
func (p *Pace) Wait(ctx context.Context, need Tokens) error {
	if ctx.Err() != nil {
		return &Error{Reason: ErrCancelled, Cause: context.Cause(ctx)}
	}
	start := readClock(nil)
	deadline := never
	if d, ok := ctx.Deadline(); ok {
		deadline = start.add(time.Until(d)) // also for a deadline without a monotonic reading
	}
	if left := p.spentFor(start); left > 0 {
		return &Error{Reason: ErrSpent, Wait: left}
	}
	w, wait, ok := p.join(start, waiter{want: need.amounts(), deadline: deadline})
	if !ok {
		return &Error{Reason: ErrPace, Wait: wait}
	}
	for w != nil {
		woken := pause(ctx, nil, wait, w.ready)
		now := readClock(nil)
		if !woken {
			p.leave(now, w)
			return &Error{Reason: ErrCancelled, Elapsed: now.sub(start), Cause: context.Cause(ctx)}
		}
		if wait, ok = p.poll(now, w); ok {
			return nil
		}
		if left := p.spentFor(now); left > 0 {
			p.leave(now, w)
			return &Error{Reason: ErrSpent, Elapsed: now.sub(start), Wait: left}
		}
		if p.heldFor(now) > 0 && now.add(wait) >= deadline {
			p.leave(now, w)
			return &Error{Reason: ErrPace, Elapsed: now.sub(start), Wait: wait}
		}
	}
	return nil
}

func (p *Pace) refund(now instant, want amounts) {
	for i := range p.buckets {
		p.buckets[i].correct(now, -want[i])
	}
	p.noted(want, -1)
}

// Settle replaces the estimate that was taken for a call by what it really used, in both directions.
func (p *Pace) Settle(now time.Time, estimate, used Tokens) {
	p.produced(int64(used.Output))
	p.settle(when(now), estimate.amounts(), used.amounts())
}

func (p *Pace) settle(now instant, estimate, used amounts) {
	if estimate == used {
		return
	}
	p.mu.Lock()
	p.prepare()
	for i := range p.buckets {
		p.buckets[i].correct(now, used[i]-estimate[i])
	}
	p.noted(used, 1)
	p.noted(estimate, -1)
	woken := p.advance(now, nil)
	p.mu.Unlock()
	notify(&woken)
}

// Refund gives back all that was taken for a call that was never sent.
func (p *Pace) Refund(now time.Time, estimate Tokens) {
	p.settle(when(now), estimate.amounts(), amounts{})
}

// Hold lets nobody go before the given time, because the upstream said so; an earlier hold is never shortened. An
// upstream that throttles has a bucket emptier than ours, so ours is emptied too. With FollowHeaders it counts as a throttle
// of a request that has just been sent. It never makes a call that was permitted before wait.
func (p *Pace) Hold(now, until time.Time) {
	if now.IsZero() {
		now = time.Now()
	}
	at := instantOf(now)
	p.throttle(at, at, at.add(until.Sub(now))) // until may come from a header and have no monotonic reading
}

func (p *Pace) hold(now, until instant) {
	p.mu.Lock()
	p.prepare()
	woken := p.stop(now, until)
	p.mu.Unlock()
	notify(&woken)
}

// stop is what hold and spend have in common. The lock is held.
func (p *Pace) stop(now, until instant) (woken []*waiter) {
	p.held = max(p.held, until)
	if !p.buckets.limited() {
		p.release = release{gate: always, gap: firstGap}
	}
	for i := range p.buckets {
		if b := &p.buckets[i]; b.interval > 0 {
			b.full = max(b.full, now.add(time.Duration(b.capacity)))
		} else {
			p.before[i] = maxCost // whatever the limit is, it is used up
		}
	}
	return p.stopped(p.held)
}

// spend holds the pace of a spent credential. It works again when it resumes, but is asked once before that at the given
// time.
func (p *Pace) spend(now, until, resumes instant) {
	p.mu.Lock()
	p.prepare()
	p.spent, p.resumes = max(p.spent, until), resumes
	woken := p.stop(now, until)
	for lane := range p.lanes {
		for e := p.lanes[lane].Front(); e != nil; e = e.Next() {
			woken = append(woken, e.Value.(*waiter))
		}
	}
	p.mu.Unlock()
	notify(&woken)
}

// rest lets other credentials of the pool be preferred for a time.
func (p *Pace) rest(until instant) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.prepare()
	p.rested = max(p.rested, until)
}

// heldFor is how long the upstream's hold lasts.
func (p *Pace) heldFor(now instant) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.prepare()
	return max(p.held.sub(now), 0)
}

// spentFor is how long the credential has no money; 0: it has.
func (p *Pace) spentFor(now instant) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.prepare()
	return p.poor(now)
}

// poor is spentFor with the lock held.
func (p *Pace) poor(now instant) time.Duration {
	if now >= p.spent {
		return 0
	}
	return max(p.spent, p.resumes).sub(now)
}

// prospect is what a call of a pool can expect of this credential.
func (p *Pace) prospect(now instant, want amounts, lane Lane) prospect {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.prepare()
	switch {
	case now < p.spent:
		return prospect{useless, max(p.spent, p.resumes), ErrSpent}
	case now < p.rested:
		return prospect{resting, p.rested, ErrRejected}
	}
	w := &waiter{want: want, lane: lane}
	p.enter(w)
	at := p.turn(now, w)
	p.exit(w)
	if at <= now {
		return prospect{standing: free, at: now}
	}
	return prospect{busy, at, ErrPace}
}
