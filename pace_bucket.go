package holdfast

import "time"

// amounts are what one call takes of each limit of a [Pace].
type amounts [4]int64

// The limits of a pace. The last one is input and output together: some providers count no other.
const (
	requests = iota
	inputTokens
	outputTokens
	allTokens
)

func (t Tokens) amounts() amounts {
	in, out := int64(max(t.Input, 0)), int64(max(t.Output, 0))
	return amounts{1, in, out, min(in, maxCost) + min(out, maxCost)}
}

// bucket is a token bucket with continuous refill, kept as the time at which it is full again: integers of nanoseconds
// do not drift, and giving back is the exact opposite of taking.
type bucket struct {
	interval int64   // nanoseconds per token; 0: not limited
	most     int64   // tokens whose cost can still be told
	capacity int64   // nanoseconds
	full     instant // when the bucket is full; in the past: it is
}

// perToken is the interval of a limit per minute, rounded up so that the sum of many takes never passes the limit.
func perToken(perMinute int64) int64 { return (int64(time.Minute)-1)/perMinute + 1 }

func newBucket(interval, burst int64) bucket {
	return bucket{interval: interval, most: maxCost / interval, capacity: max(burst, interval), full: always}
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

// buckets are the limits of one pace.
type buckets [len(amounts{})]bucket

// limited reports whether there is any limit.
func (b *buckets) limited() bool {
	for i := range b {
		if b[i].interval > 0 {
			return true
		}
	}
	return false
}

// earliest is when all of these amounts can be taken together.
func (b *buckets) earliest(want amounts) instant {
	at := always
	for i := range b {
		at = max(at, b[i].earliest(want[i]))
	}
	return at
}

func (b *buckets) take(now instant, want amounts) {
	for i := range b {
		b[i].take(now, want[i])
	}
}
