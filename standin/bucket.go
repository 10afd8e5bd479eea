package standin

import (
	"math"
	"math/bits"
	"time"
)

// neverFits is the wait for what no bucket will ever hold.
const neverFits = time.Duration(math.MaxInt64)

// maxTaken bounds what a bucket can be in debt, so that no sum overflows.
const maxTaken = 1_000_000_000_000_000

// bucket is a token bucket with continuous refill. It counts what has been taken
// and has not been refilled yet: with whole units and the part of a unit that has
// come back since, so that nothing is lost to rounding, however often it is
// asked. It knows no clock: times are since a start that its owner chose.
// The zero value has no limit.
type bucket struct {
	limit int64         // units that come back in a minute; 0: no limit
	hold  int64         // units that may be out at once for a request to be let in; limit, or less on a short window
	taken int64         // units that are out; above limit it is debt
	back  uint64        // part of a unit that has come back, in 1/minute nanoseconds, below 1
	at    time.Duration // time of all this

	since    time.Duration // beginning of the present limit
	supplied int64         // units on offer until then, the first filling included
}

const minute = uint64(time.Minute)

// advance refills the bucket up to now. A time that lies behind changes nothing.
func (b *bucket) advance(now time.Duration) {
	if now <= b.at {
		return
	}
	elapsed := uint64(now - b.at)
	b.at = now
	if b.taken == 0 || b.limit == 0 {
		return
	}
	hi, lo := bits.Mul64(elapsed, uint64(b.limit))
	lo, carry := bits.Add64(lo, b.back, 0)
	hi += carry
	if hi >= minute { // more than any number of units
		b.taken, b.back = 0, 0
		return
	}
	whole, part := bits.Div64(hi, lo, minute)
	if whole >= uint64(b.taken) {
		b.taken, b.back = 0, 0
		return
	}
	b.taken -= int64(whole)
	b.back = part
}

// wait returns how long it takes until n units can be taken: 0 for now, neverFits
// for more than a minute's worth. Above what a short window holds, a request goes
// when the bucket is full.
func (b *bucket) wait(n int64) time.Duration {
	switch {
	case b.limit == 0:
		return 0
	case n > b.limit:
		return neverFits
	}
	return b.until(max(b.hold, n) - n)
}

// until returns how long it takes until no more than left units are out.
func (b *bucket) until(left int64) time.Duration {
	if b.taken <= left {
		return 0
	}
	hi, lo := bits.Mul64(uint64(b.taken-left), minute)
	lo, borrow := bits.Sub64(lo, b.back, 0)
	hi -= borrow
	lo, carry := bits.Add64(lo, uint64(b.limit-1), 0) // round up
	hi += carry
	if hi >= uint64(b.limit) {
		return neverFits
	}
	ns, _ := bits.Div64(hi, lo, uint64(b.limit))
	return time.Duration(min(ns, uint64(neverFits)))
}

// take takes n units without asking; negative n gives them back.
func (b *bucket) take(n int64) {
	if b.limit == 0 {
		return
	}
	b.taken = min(b.taken+min(max(n, -maxTaken), maxTaken), maxTaken)
	if b.taken <= 0 {
		b.taken, b.back = 0, 0
	}
}

// remaining returns the whole units of the minute's worth that are there.
func (b *bucket) remaining() int64 { return max(0, b.limit-b.taken) }

// full returns how long it takes until the bucket is completely full.
func (b *bucket) full() time.Duration { return b.until(0) }

// retune gives the bucket other numbers from now on. It keeps its share: what is
// out grows and shrinks with the limit, rounded up, so that a change gives
// nothing away and the time until it is full stays the same.
func (b *bucket) retune(now time.Duration, limit, hold int64) {
	b.advance(now)
	if b.limit == limit && b.hold == hold {
		return
	}
	b.supplied, b.since = b.supply(now), now
	there := b.hold - b.taken
	if b.limit == 0 {
		there = 0
	}
	switch {
	case b.limit == 0 || limit == 0:
		b.taken, b.back = 0, 0
	case b.limit != limit && b.taken > 0:
		b.taken, b.back = scaled(b.taken, limit, b.limit), 0
	}
	b.limit, b.hold = limit, hold
	if limit > 0 {
		b.supplied += b.hold - b.taken - there
	}
}

// scaled returns n * to / from, rounded up.
func scaled(n, to, from int64) int64 {
	hi, lo := bits.Mul64(uint64(n), uint64(to))
	lo, carry := bits.Add64(lo, uint64(from-1), 0)
	hi += carry
	if hi >= uint64(from) {
		return maxTaken
	}
	whole, _ := bits.Div64(hi, lo, uint64(from))
	return int64(min(whole, maxTaken))
}

// supply returns how many units have been on offer so far: the first filling and
// all that would have come back into a bucket that is never full.
func (b *bucket) supply(now time.Duration) int64 {
	if now <= b.since {
		return b.supplied
	}
	hi, lo := bits.Mul64(uint64(now-b.since), uint64(b.limit))
	if hi >= minute {
		return maxTaken
	}
	whole, _ := bits.Div64(hi, lo, minute)
	return b.supplied + int64(min(whole, maxTaken))
}
