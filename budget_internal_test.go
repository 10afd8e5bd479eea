package holdfast

import (
	"math"
	"math/big"
	"math/rand/v2"
	"sync"
	"testing"
	"time"
)

// budgetModel counts in the smallest part there is, a millionth divided by Refill's nanoseconds, so that nothing is ever
// rounded.
type budgetModel struct {
	s           BudgetSettings
	now         instant
	level, full *big.Int
}

func (m *budgetModel) parts(n int) *big.Int {
	every := int64(m.s.Refill)
	return new(big.Int).Mul(big.NewInt(millionths(n)), big.NewInt(max(every, 1)))
}

func (m *budgetModel) add(by *big.Int) {
	if m.level.Add(m.level, by); m.level.Cmp(m.full) > 0 {
		m.level.Set(m.full)
	}
}

func (m *budgetModel) pass(to instant) {
	if to > m.now && m.s.Refill > 0 {
		m.add(new(big.Int).Mul(big.NewInt(int64(to-m.now)), big.NewInt(millionths(m.s.Cost))))
	}
	m.now = max(m.now, to)
}

// Whatever is taken, given back, earned and refilled, in any order and at any times: nothing is lost and nothing made.
func TestBudgetConserves(t *testing.T) {
	for seed := range uint64(500) {
		chance := rand.New(rand.NewPCG(seed, 3))
		s := BudgetSettings{
			Capacity: pick(chance, 1, 30, 100, 5000), Cost: pick(chance, 1, 14, 99), ThrottleCost: pick(chance, 1, 5),
			Earn: pick(chance, -1, 1, 3), Refill: pick(chance, -1, 7, time.Millisecond, 10*time.Second, 3*time.Hour),
		}
		b, m := NewBudget(s), &budgetModel{s: s}
		m.full = m.parts(s.Capacity)
		m.level = new(big.Int).Set(m.full)
		b.Level(instant(0).time())
		var out []int64
		now := instant(0)
		for step := range 200 {
			now = max(0, now.add(time.Duration(chance.Int64N(int64(pick(chance, 2, time.Millisecond, 20*time.Second))))-1)) // a step back changes nothing
			m.pass(now)
			b.Level(now.time()) // both have seen this time, whatever comes next
			switch chance.IntN(4) {
			case 0, 1:
				kind, cost := Broken, s.Cost
				if chance.IntN(2) == 0 {
					kind, cost = Throttled, s.ThrottleCost
				}
				price := m.parts(cost)
				// What is not yet a whole millionth buys nothing.
				whole := new(big.Int).Div(m.level, big.NewInt(int64(max(s.Refill, 1))))
				affordable := whole.Int64() >= millionths(cost)
				got, ok := b.take(now, kind)
				if ok != affordable || ok && got != millionths(cost) {
					t.Fatalf("seed %d step %d: take = %d %v, want %v", seed, step, got, ok, affordable)
				}
				if ok {
					m.add(price.Neg(price))
					out = append(out, got)
				}
			case 2:
				if len(out) > 0 {
					b.give(now, out[0])
					m.add(new(big.Int).Mul(big.NewInt(out[0]), big.NewInt(max(int64(s.Refill), 1))))
					out = out[1:]
				}
			case 3:
				b.earn(now)
				m.add(m.parts(s.Earn))
			}
			level := new(big.Int).Mul(big.NewInt(b.level), big.NewInt(max(int64(s.Refill), 1)))
			if level.Add(level, new(big.Int).SetUint64(b.carry)); level.Cmp(m.level) != 0 {
				t.Fatalf("seed %d step %d: %+v: level %v, want %v of %v", seed, step, s, level, m.level, m.full)
			}
		}
	}
}

func TestBudgetRetryThatWorksIsFree(t *testing.T) {
	b := NewBudget(BudgetSettings{Refill: -1})
	for i := range 1000 {
		price, ok := b.take(0, Broken)
		if !ok {
			t.Fatalf("retry %d is refused, though all before it worked", i)
		}
		b.give(0, price)
	}
	if got := b.Level(instant(0).time()); got != 100 {
		t.Errorf("level = %v, want 100", got)
	}
}

func TestBudgetRunsDryAndRecovers(t *testing.T) {
	second := instant(time.Second)
	for _, row := range []struct {
		name    string
		s       BudgetSettings
		kind    Kind
		retries int     // until it is dry
		later   instant // then
		earned  int     // first-attempt successes
		again   int     // retries that can be paid for then
	}{
		{name: "defaults", kind: Broken, retries: 7, later: 12 * second, again: 1}, // 2 left, and 14 in 10 s
		{name: "just before the refill", kind: Broken, retries: 7, later: 8 * second, again: 0},
		{name: "throttles cost less", kind: Throttled, retries: 20, later: 10 * second, again: 2},
		{name: "overload costs as a broken upstream", kind: Overloaded, retries: 7, later: 0, again: 0},
		{name: "first successes pay in", kind: Broken, retries: 7, earned: 26, again: 2},
		{name: "nothing earned", s: BudgetSettings{Earn: -1, Refill: -1}, kind: Broken, retries: 7, later: 1000 * second, earned: 1000},
		{name: "never above capacity", kind: Broken, retries: 7, later: 100_000 * second, earned: 1000, again: 7},
		{name: "short refill", s: BudgetSettings{Refill: time.Millisecond}, kind: Broken, retries: 7, later: instant(3 * time.Millisecond), again: 3},
		{name: "refill for ages", s: BudgetSettings{Refill: 1}, kind: Broken, retries: 7, later: never, again: 7},
		{name: "no capacity", s: BudgetSettings{Capacity: -1}, kind: Broken, later: 100 * second},
		{name: "more than the arithmetic holds", s: BudgetSettings{Capacity: 20, Cost: 1 << 58}, kind: Broken, later: second, again: 0},
	} {
		t.Run(row.name, func(t *testing.T) {
			b := NewBudget(row.s)
			spend := func(now instant) (paid int) {
				for paid <= 1000 {
					if _, ok := b.take(now, row.kind); !ok {
						break
					}
					paid++
				}
				return paid
			}
			if got := spend(0); got != row.retries {
				t.Fatalf("%d retries until dry, want %d", got, row.retries)
			}
			for range row.earned {
				b.earn(row.later)
			}
			if got := spend(row.later); got != row.again {
				t.Errorf("%d retries later, want %d", got, row.again)
			}
		})
	}
}

func TestBudgetSurvivesAbsurdNumbers(t *testing.T) {
	for _, s := range []BudgetSettings{
		{Capacity: math.MaxInt, Cost: math.MaxInt, ThrottleCost: math.MaxInt, Earn: math.MaxInt, Refill: math.MaxInt64},
		{Capacity: math.MaxInt, Cost: -5, ThrottleCost: -5, Earn: math.MaxInt, Refill: 1},
		{Capacity: 1, Cost: 1, Earn: math.MaxInt, Refill: 1},
	} {
		b := NewBudget(s)
		for _, now := range []instant{always, 0, 1, never, always, never} {
			for _, k := range []Kind{Broken, Throttled} {
				price, _ := b.take(now, k)
				if price < 0 || b.level < 0 || b.level > b.full() {
					t.Fatalf("%+v: price %d, level %d of %d", s, price, b.level, b.full())
				}
				b.earn(now)
				b.give(now, price)
				if b.level < 0 || b.level > b.full() {
					t.Fatalf("%+v: level %d of %d", s, b.level, b.full())
				}
			}
		}
	}
}

func TestBudgetConcurrent(t *testing.T) {
	b := NewBudget(BudgetSettings{Capacity: 1000, Cost: 10, Refill: -1})
	var wg sync.WaitGroup
	var mu sync.Mutex
	paid := 0
	for range 20 {
		wg.Go(func() {
			for range 50 {
				price, ok := b.take(0, Broken)
				if !ok {
					continue
				}
				mu.Lock()
				paid++
				even := paid%2 == 0
				mu.Unlock()
				if even {
					b.give(0, price)
				}
			}
		})
	}
	wg.Wait()
	// Every second one is given back: 100 fit, and each paid pair makes room for one more.
	if kept := int64(paid-paid/2) * 10; kept+b.level/unit != 1000 {
		t.Errorf("%d paid, %d left: tokens were lost or made", paid, b.level/unit)
	}
}
