package holdfast

import (
	"sync"
	"time"
)

// BudgetSettings configure a [Budget]. The zero value is the defaults.
type BudgetSettings struct {
	// Capacity is how much the budget holds when full, which it is at first. Default: 100.
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

	mu       sync.Mutex
	ready    bool
	level    int64 // millionths
	last     instant
	interval int64 // nanoseconds for one millionth; 0: no refill
}

// NewBudget returns a full budget.
func NewBudget(s BudgetSettings) *Budget { return &Budget{settings: s} }

// Level returns what is left at the given time.
func (b *Budget) Level(now time.Time) float64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.refill(instantOf(now))
	return float64(b.level) / unit
}

// refill brings the level up to date. The lock is held.
func (b *Budget) refill(now instant) {
	if !b.ready {
		b.ready = true
		s := &b.settings
		s.Capacity = orDefault(s.Capacity, defaultCapacity)
		s.Cost = orDefault(s.Cost, defaultCost)
		s.ThrottleCost = orDefault(s.ThrottleCost, defaultThrottleCost)
		s.Earn = max(orDefault(s.Earn, defaultEarn), 0)
		if every := orDefault(s.Refill, defaultRefill); every > 0 && s.Cost > 0 {
			b.interval = max(int64(every)/(int64(s.Cost)*unit), 1)
		}
		b.level, b.last = b.full(), now
		return
	}
	if b.interval == 0 || now <= b.last {
		return
	}
	if b.level >= b.full() {
		b.last = now
		return
	}
	grown := int64(now.sub(b.last)) / b.interval
	b.level = min(b.level+grown, b.full())
	b.last = b.last.add(time.Duration(grown * b.interval))
}

func (b *Budget) full() int64 { return int64(b.settings.Capacity) * unit }

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
	price = int64(cost) * unit
	if price > b.level {
		return 0, false
	}
	b.level -= price
	return price, true
}

func (b *Budget) give(now instant, price int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.refill(now)
	b.level = min(b.level+price, b.full())
}

// earn pays in for a call that succeeded at its first attempt.
func (b *Budget) earn(now instant) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.refill(now)
	if full := b.full(); b.level < full {
		b.level = min(b.level+int64(b.settings.Earn)*unit, full)
	}
}
