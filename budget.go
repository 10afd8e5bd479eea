package holdfast

import (
	"math"
	"math/bits"
	"sync"
	"sync/atomic"
	"time"
)

// BudgetSettings configure a [Budget]. The zero value is the defaults.
type BudgetSettings struct {
	// Capacity is how much the budget holds when full, which it is at first. A retry's cost is out until the retry
	// ends, so it must cover the retries that are under way at once: with one attempt in ten failing, 100 are enough
	// for 50 calls in flight, 500 for 250. A larger one lets more retries through at the beginning of an outage.
	// Default: 100.
	Capacity int
	// Cost of a retry after a broken or overloaded attempt. Default: 14.
	Cost int
	// ThrottleCost of a retry after a throttled attempt, which the upstream asked for. Default: 5.
	ThrottleCost int
	// Earn is what a call that succeeds at its first attempt pays in. Default: 1. Negative: nothing.
	Earn int
	// Refill is the time in which the budget regains one Cost without any traffic, so that a quiet process is
	// never without retries for good. Default: 10s. Negative: no refill.
	Refill time.Duration
}

const (
	defaultCapacity     = 100
	defaultCost         = 14
	defaultThrottleCost = 5
	defaultEarn         = 1
	defaultRefill       = 10 * time.Second

	unit = 1_000_000 // the budget is kept in millionths, so that refill by time needs no fractions
)

// Budget bounds the retries of all calls that share it. A retry takes its cost before the wait, and gets it back if it
// works: retries that help are free, and retries that do not help run dry, so that in an outage the load tends to 1.0
// times that of the first attempts. Use one per upstream and credential, never one per process. The rule is that of
// the AWS SDKs (standard mode) with a refill by time, which they lack. The zero value works with the default settings.
// A Budget is safe for concurrent use.
type Budget struct {
	settings BudgetSettings

	// brimming is whether the budget is full, as it mostly is: then earning, on every call's way, takes no lock.
	brimming atomic.Bool

	mu    sync.Mutex
	ready bool
	level int64 // millionths
	last  instant
	carry uint64 // what time has brought since and is less than a millionth, in parts of Refill's nanoseconds
}

// NewBudget returns a full budget.
func NewBudget(s BudgetSettings) *Budget { return &Budget{settings: s} }

// Level returns what is left at the given time. Zero: now.
func (b *Budget) Level(now time.Time) float64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.refill(when(now))
	return float64(b.level) / unit
}

// configured returns the settings; the first use fills in their defaults under the same lock.
func (b *Budget) configured() BudgetSettings {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.settings
}

// refill brings the level up to date. The lock is held.
func (b *Budget) refill(now instant) {
	s := &b.settings
	if !b.ready {
		b.ready = true
		s.Capacity = orDefault(s.Capacity, defaultCapacity)
		s.Cost = orDefault(s.Cost, defaultCost)
		s.ThrottleCost = orDefault(s.ThrottleCost, defaultThrottleCost)
		s.Earn = orDefault(s.Earn, defaultEarn)
		s.Refill = orDefault(s.Refill, defaultRefill)
		b.level, b.last = b.full(), now
		b.brimming.Store(true)
		return
	}
	if s.Refill < 0 || now <= b.last {
		return
	}
	elapsed := uint64(now.sub(b.last))
	b.last = now
	if b.level == b.full() {
		return
	}
	// elapsed * Cost / Refill in 128 bits, with the remainder kept: a short Refill loses nothing to rounding.
	high, low := bits.Mul64(elapsed, uint64(millionths(s.Cost)))
	low, over := bits.Add64(low, b.carry, 0)
	if high += over; high >= uint64(s.Refill) { // the quotient is beyond every capacity
		b.add(math.MaxInt64)
		return
	}
	grown, carry := bits.Div64(high, low, uint64(s.Refill))
	b.carry = carry
	b.add(int64(min(grown, math.MaxInt64)))
}

// add pays in as much as there is room for.
func (b *Budget) add(n int64) {
	if missing := b.full() - b.level; n >= missing {
		b.level, b.carry = b.full(), 0
		b.brimming.Store(true)
	} else {
		b.level += n
	}
}

func (b *Budget) full() int64 { return millionths(b.settings.Capacity) }

// millionths saturates: a cost that wrapped would make retries free.
func millionths(n int) int64 {
	return min(max(int64(n), 0), math.MaxInt64/unit) * unit
}

// take pays for one retry after a failure of the given kind. The price is what to give back if the retry works or is
// never sent.
func (b *Budget) take(now instant, k Kind) (price int64, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.refill(now)
	cost := b.settings.Cost
	if k == Throttled {
		cost = b.settings.ThrottleCost
	}
	price = millionths(cost)
	if price > b.level {
		return 0, false
	}
	b.level -= price
	b.brimming.Store(b.level == b.full())
	return price, true
}

func (b *Budget) give(now instant, price int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.refill(now)
	b.add(price)
}

// earn pays in for a call that succeeded at its first attempt.
func (b *Budget) earn(now instant) {
	if b.brimming.Load() {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.refill(now)
	b.add(millionths(b.settings.Earn))
}
