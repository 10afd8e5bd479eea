package holdfast

import (
	"container/list"
	"context"
	"sync"
	"time"
)

// Tokens are a call's input and output tokens: estimated before it is sent, known from usage afterwards. Input
// leaves out tokens read from a cache, which cost nothing of an Anthropic limit.
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
// owes nothing and delays nobody. A request larger than a full bucket goes out when the bucket is full, and those behind
// it wait until its debt is paid. Use one per credential and model group. The zero value limits nothing but keeps the
// pauses that the upstream asks for. A Pace is safe for concurrent use.
type Pace struct {
	mu      sync.Mutex
	buckets buckets
	queue   list.List // of *waiter
	size    int       // how many may queue
	held    instant   // nobody goes before; always when not held
	ready   bool
	limits  Limits
}

// bucket is a token bucket with continuous refill, kept as the time at which it is full again: integers of nanoseconds
// do not drift, and giving back is the exact opposite of taking.
type bucket struct {
	interval int64   // nanoseconds per token; 0: not limited
	most     int64   // tokens whose cost can still be told
	capacity int64   // nanoseconds
	full     instant // when the bucket is full; in the past: it is
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
	p.held = always
	p.size = max(orDefault(p.limits.Queue, defaultQueue), 0)
	burst := min(orDefault(p.limits.Burst, defaultBurst), time.Duration(maxCost))
	perMinute := [3]int{p.limits.RequestsPerMinute, p.limits.InputTokensPerMinute, p.limits.OutputTokensPerMinute}
	for i, n := range perMinute {
		if n <= 0 {
			continue
		}
		// Rounded up, so that the sum of many takes never passes the limit.
		interval := (int64(time.Minute)-1)/int64(n) + 1
		p.buckets[i] = bucket{interval: interval, most: maxCost / interval, capacity: max(int64(burst), interval), full: always}
	}
}

func (t Tokens) amounts() [3]int64 {
	return [3]int64{1, int64(max(t.Input, 0)), int64(max(t.Output, 0))}
}

// maxCost is 73 years, far beyond any real limit, where adding to an instant cannot wrap.
const maxCost = int64(1) << 61

// cost of n tokens of a limited bucket in time. It saturates.
func (b *bucket) cost(n int64) int64 {
	switch {
	case n > b.most:
		return maxCost
	case n <= 0:
		return 0
	}
	return n * b.interval
}

// earliest is when n tokens can be taken.
func (b *bucket) earliest(n int64) instant {
	if b.interval == 0 || n == 0 {
		return always
	}
	if cost := b.cost(n); cost <= b.capacity {
		return b.full.add(time.Duration(cost - b.capacity))
	}
	return b.full
}

func (b *bucket) take(now instant, n int64) {
	if b.interval > 0 && n > 0 {
		b.full = max(b.full, now).add(time.Duration(b.cost(n)))
	}
}

// correct moves the level by n tokens, up or down; the level may become negative.
func (b *bucket) correct(now instant, n int64) {
	if n > 0 {
		b.take(now, n)
	} else if n < 0 && b.interval > 0 {
		b.full = b.full.add(-time.Duration(b.cost(-n)))
	}
}

// buckets are the requests, input tokens and output tokens of one pace.
type buckets [3]bucket

// earliest is when all of these amounts can be taken together.
func (b *buckets) earliest(want [3]int64) instant {
	at := always
	for i := range b {
		at = max(at, b[i].earliest(want[i]))
	}
	return at
}

func (b *buckets) take(now instant, want [3]int64) {
	for i := range b {
		b[i].take(now, want[i])
	}
}

// turn is when a call that wants these amounts can go once everybody before the given place has gone; nil is the end of
// the queue. It plays the queue on a copy of the buckets: no sum of what they want together tells the time, since each
// may wait for another of the limits.
func (p *Pace) turn(now instant, want [3]int64, place *list.Element) instant {
	levels := p.buckets
	at := max(now, p.held)
	for e := p.queue.Front(); e != place; e = e.Next() {
		w := e.Value.(*waiter)
		at = max(at, levels.earliest(w.want))
		levels.take(at, w.want)
	}
	return max(at, levels.earliest(want))
}

// waiter is a call in the queue.
type waiter struct {
	want    [3]int64
	alarm   instant // when it will ask again by itself
	place   *list.Element
	granted bool
	ready   chan struct{} // holds a signal when it is to ask again at once: it was granted, or its turn comes sooner
	wake    func()        // called then; may be nil
}

// Allow takes permission for one request of this size if it can be had at once, without queueing. Zero time: now, as in
// the other methods.
func (p *Pace) Allow(now time.Time, need Tokens) bool {
	return p.allow(when(now), need.amounts())
}

func (p *Pace) allow(now instant, want [3]int64) bool {
	p.mu.Lock()
	p.prepare()
	ok := p.takeNow(now, want)
	p.mu.Unlock()
	return ok
}

func (p *Pace) takeNow(now instant, want [3]int64) bool {
	if p.queue.Len() > 0 || now < p.held {
		return false
	}
	var after [3]instant
	for i := range p.buckets {
		b := &p.buckets[i]
		if b.interval == 0 || want[i] == 0 {
			continue // who takes nothing is not held up by others' debt
		}
		cost := b.cost(want[i])
		after[i] = max(b.full, now) + instant(cost)
		if after[i]-now > instant(b.capacity) && (cost <= b.capacity || b.full > now) {
			return false
		}
	}
	for i := range p.buckets {
		if p.buckets[i].interval != 0 && want[i] != 0 {
			p.buckets[i].full = after[i]
		}
	}
	return true
}

// Wait takes permission for one request of this size, queueing for it. It returns an *Error with the reason ErrPace at
// once, without taking anything, when the queue is full or when permission would come after ctx's deadline; and with
// the reason ErrCancelled when ctx ends.
func (p *Pace) Wait(ctx context.Context, need Tokens) error {
	if ctx.Err() != nil {
		return &Error{Reason: ErrCancelled, Cause: context.Cause(ctx)}
	}
	start := readClock(nil)
	deadline := never
	if d, ok := ctx.Deadline(); ok {
		deadline = start.add(time.Until(d)) // also for a deadline without a monotonic reading
	}
	w, wait, ok := p.join(start, need.amounts(), deadline, nil)
	if !ok {
		return &Error{Reason: ErrPace, Wait: wait}
	}
	for w != nil {
		if !pause(ctx, nil, wait, w.ready) {
			now := readClock(nil)
			p.leave(now, w)
			return &Error{Reason: ErrCancelled, Elapsed: now.sub(start), Cause: context.Cause(ctx)}
		}
		if wait, ok = p.poll(readClock(nil), w); ok {
			return nil
		}
	}
	return nil
}

// join takes permission or a place in the queue. With a place comes the time after which to poll. A refusal takes
// nothing and tells how long permission would have taken.
func (p *Pace) join(now instant, want [3]int64, deadline instant, wake func()) (w *waiter, wait time.Duration, ok bool) {
	p.mu.Lock()
	p.prepare()
	woken := p.advance(now, nil)
	defer notify(&woken)
	defer p.mu.Unlock()
	if p.takeNow(now, want) {
		return nil, 0, true
	}
	at := p.turn(now, want, nil)
	if at >= deadline || p.queue.Len() >= p.size {
		return nil, at.sub(now), false
	}
	w = &waiter{want: want, alarm: at, ready: make(chan struct{}, 1), wake: wake}
	w.place = p.queue.PushBack(w)
	return w, at.sub(now), true
}

// poll reports whether the waiter has its permission, else how long to wait before asking again.
func (p *Pace) poll(now instant, w *waiter) (wait time.Duration, granted bool) {
	p.mu.Lock()
	woken := p.advance(now, w)
	defer notify(&woken)
	defer p.mu.Unlock()
	if w.granted {
		return 0, true
	}
	w.alarm = p.turn(now, w.want, w.place)
	return w.alarm.sub(now), false
}

// leave gives up the waiter's place, or the permission it was given in the meantime.
func (p *Pace) leave(now instant, w *waiter) {
	p.mu.Lock()
	if w.granted {
		p.refund(now, w.want)
	} else {
		p.queue.Remove(w.place)
	}
	woken := p.advance(now, nil)
	p.mu.Unlock()
	notify(&woken)
}

// advance gives permission to all at the head of the queue who can have it now, and returns those who are to ask again,
// except the one who asks: the granted, and the new head if its turn comes before it would ask by itself. That happens
// when one ahead leaves or uses less than was taken for it. The lock is held.
func (p *Pace) advance(now instant, asking *waiter) (woken []*waiter) {
	for e := p.queue.Front(); e != nil; e = p.queue.Front() {
		w := e.Value.(*waiter)
		at := max(p.held, p.buckets.earliest(w.want))
		if now < at {
			if w != asking && at < w.alarm {
				w.alarm = at
				woken = append(woken, w)
			}
			return woken
		}
		p.queue.Remove(w.place)
		p.buckets.take(now, w.want)
		w.granted = true
		if w != asking {
			woken = append(woken, w)
		}
	}
	return woken
}

// notify tells waiters to ask again, outside the lock.
func notify(woken *[]*waiter) {
	for _, w := range *woken {
		select {
		case w.ready <- struct{}{}:
		default: // told already
		}
		if w.wake != nil {
			w.wake()
		}
	}
}

func (p *Pace) refund(now instant, want [3]int64) {
	for i := range p.buckets {
		p.buckets[i].correct(now, -want[i])
	}
}

// Settle replaces the estimate that was taken for a call by what it really used, in both directions.
func (p *Pace) Settle(now time.Time, estimate, used Tokens) {
	p.settle(when(now), estimate.amounts(), used.amounts())
}

func (p *Pace) settle(now instant, estimate, used [3]int64) {
	if estimate == used {
		return
	}
	p.mu.Lock()
	p.prepare()
	for i := range p.buckets {
		p.buckets[i].correct(now, used[i]-estimate[i])
	}
	woken := p.advance(now, nil)
	p.mu.Unlock()
	notify(&woken)
}

// Refund gives back all that was taken for a call that was never sent.
func (p *Pace) Refund(now time.Time, estimate Tokens) {
	p.settle(when(now), estimate.amounts(), [3]int64{})
}

// Hold lets nobody go before the given time, because the upstream said so; an earlier hold is never shortened. An
// upstream that throttles has a bucket emptier than ours, so ours is emptied too.
func (p *Pace) Hold(now, until time.Time) {
	if now.IsZero() {
		now = time.Now()
	}
	at := instantOf(now)
	p.hold(at, at.add(until.Sub(now))) // until may come from a header and have no monotonic reading
}

func (p *Pace) hold(now, until instant) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.prepare()
	p.held = max(p.held, until)
	for i := range p.buckets {
		if b := &p.buckets[i]; b.interval > 0 {
			b.full = max(b.full, now.add(time.Duration(b.capacity)))
		}
	}
}

// heldFor is how long the upstream's hold lasts.
func (p *Pace) heldFor(now instant) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.prepare()
	return max(p.held.sub(now), 0)
}
