package holdfast

import (
	"container/list"
	"time"
)

// bulkTurn is after how many interactive calls a waiting bulk call has its turn.
const bulkTurn = 8

// waiter is a call in the queue.
type waiter struct {
	want     amounts
	lane     Lane
	deadline instant // it leaves then
	restless bool    // it may have better places to be when the upstream holds the pace
	wake     func()  // called when it is to ask again; may be nil

	alarm   instant // when it will ask again by itself
	place   *list.Element
	granted bool
	ready   chan struct{} // holds a signal when it is to ask again at once: it was granted, or its turn comes sooner
}

// line is the queue of a pace: first come, first served in each lane. The heads of the lanes are all that it decides
// with, so a line can be played ahead by copying it.
type line struct {
	heads  [2]*list.Element // of *waiter
	passed int              // interactive calls that have gone since the bulk call at the head came there
}

// head is who goes next, nil when nobody waits. Nobody else may go before it.
func (l *line) head() *list.Element {
	if bulk := l.heads[Bulk]; bulk != nil && (l.heads[Interactive] == nil || l.passed >= bulkTurn) {
		return bulk
	}
	return l.heads[Interactive]
}

// pop lets the head go.
func (l *line) pop(head *list.Element) {
	lane := head.Value.(*waiter).lane
	if lane == Interactive && l.heads[Bulk] != nil {
		l.passed++
	} else {
		l.passed = 0
	}
	l.heads[lane] = head.Next()
}

// release spreads those who have waited for the end of a hold, where no limit does: one every firstGap at first, and
// faster and faster, so that the whole queue is out within lastGap. An upstream that has just asked to be left alone is
// not met by all at once.
type release struct {
	gate instant // nobody goes before
	gap  time.Duration
}

const (
	firstGap = 10 * time.Millisecond
	gapShare = 256 // of the gap is what it shrinks by: all gaps together are 2.56 s
)

// opens is when the next one may go.
func (r *release) opens() instant {
	if r.gap == 0 {
		return always
	}
	return r.gate
}

func (r *release) went(at instant) {
	if r.gap > 0 {
		r.gate = at.add(r.gap)
		r.gap -= (r.gap + gapShare - 1) / gapShare
	}
}

func (p *Pace) line() line {
	return line{heads: [2]*list.Element{p.lanes[Interactive].Front(), p.lanes[Bulk].Front()}, passed: p.passed}
}

func (p *Pace) enter(w *waiter) {
	if w.lane > Bulk {
		w.lane = Bulk
	}
	w.place = p.lanes[w.lane].PushBack(w)
	p.queued++
}

func (p *Pace) exit(w *waiter) {
	p.lanes[w.lane].Remove(w.place)
	p.queued--
}

// turn is when a waiter can go if nobody joins or leaves. It plays the queue on a copy of the buckets: no sum of what
// they want together tells the time, since each may wait for another of the limits. Interactive calls that come later can
// put a bulk call off, bulk calls that come later nobody.
func (p *Pace) turn(now instant, w *waiter) instant {
	levels, queue, spread := p.buckets, p.line(), p.release
	at := max(now, p.held)
	for e := queue.head(); e != w.place; e = queue.head() {
		ahead := e.Value.(*waiter)
		at = max(at, spread.opens(), levels.earliest(ahead.want))
		levels.take(at, ahead.want)
		spread.went(at)
		queue.pop(e)
	}
	return max(at, spread.opens(), levels.earliest(w.want))
}

// join takes permission or a place in the queue. With a place comes the time after which to poll. A refusal takes
// nothing and tells how long permission would have taken.
func (p *Pace) join(now instant, asks waiter) (w *waiter, wait time.Duration, ok bool) {
	p.mu.Lock()
	p.prepare()
	if p.blind.stale(now) {
		p.sighted(now)
	}
	w = &asks
	p.enter(w)
	woken := p.advance(now, w)
	defer notify(&woken)
	defer p.mu.Unlock()
	if w.granted {
		return nil, 0, true
	}
	at := p.turn(now, w)
	if at >= w.deadline || p.queued > p.size {
		p.exit(w)
		return nil, at.sub(now), false
	}
	w.alarm, w.ready = at, make(chan struct{}, 1)
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
	w.alarm = p.turn(now, w)
	return w.alarm.sub(now), false
}

// leave gives up the waiter's place, or the permission it was given in the meantime.
func (p *Pace) leave(now instant, w *waiter) {
	p.mu.Lock()
	if w.granted {
		p.refund(now, w.want)
	} else {
		p.exit(w)
	}
	woken := p.advance(now, nil)
	p.mu.Unlock()
	notify(&woken)
}

// advance gives permission to all at the head of the queue who can have it now, and returns those who are to ask again,
// except the one who asks: the granted, and the new head if its turn comes before it would ask by itself. That happens
// when one ahead leaves or uses less than was taken for it. The lock is held.
func (p *Pace) advance(now instant, asking *waiter) (woken []*waiter) {
	queue := p.line()
	for e := queue.head(); e != nil; e = queue.head() {
		w := e.Value.(*waiter)
		at := max(p.held, p.release.opens(), p.buckets.earliest(w.want))
		if now < at {
			if w != asking && at < w.alarm {
				w.alarm = at
				woken = append(woken, w)
			}
			break
		}
		queue.pop(e)
		p.exit(w)
		p.passed = queue.passed
		p.buckets.take(now, w.want)
		p.noted(w.want, 1)
		if p.blind.rate > 0 && p.buckets[requests].earliest(1) > now && p.blind.waited(now) {
			p.setRate(now)
		}
		p.release.went(now)
		w.granted = true
		if w != asking {
			woken = append(woken, w)
		}
		if p.queued == 0 {
			p.release = release{}
		}
	}
	return woken
}

// stopped returns those in the queue for whom a hold until the given time changes more than the hour. The lock is held.
func (p *Pace) stopped(until instant) (woken []*waiter) {
	for lane := range p.lanes {
		for e := p.lanes[lane].Front(); e != nil; e = e.Next() {
			if w := e.Value.(*waiter); w.restless || w.deadline <= until {
				woken = append(woken, w)
			}
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
