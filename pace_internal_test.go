package holdfast

import (
	"fmt"
	"maps"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// paceModel is the pace as one would write it without a thought for speed: levels are counted up and down, in
// nanoseconds of refill so that they stay whole, and everybody goes at the very instant when he may.
type paceModel struct {
	now, held int64
	size      int
	interval  amounts // 0: not limited
	capacity  [3]*big.Int
	level     [3]*big.Int
	queue     []modelWaiter
	passed    int           // interactive ones that went while a bulk one waited
	gate, gap int64         // after a hold where nothing is limited
	went      map[int]int64 // when each went
}

type modelWaiter struct {
	id   int
	want amounts
	lane Lane
}

func newPaceModel(l Limits, now instant) *paceModel {
	burst := max(orDefault(l.Burst, time.Minute), 0)
	m := &paceModel{now: int64(now), held: int64(always), size: max(orDefault(l.Queue, 1000), 0), went: map[int]int64{}}
	for i, n := range [...]int{l.RequestsPerMinute, l.InputTokensPerMinute, l.OutputTokensPerMinute} {
		m.level[i], m.capacity[i] = new(big.Int), new(big.Int)
		if n > 0 {
			m.interval[i] = (int64(time.Minute) + int64(n) - 1) / int64(n)
			m.capacity[i].SetInt64(max(int64(burst), m.interval[i]))
			m.level[i].Set(m.capacity[i])
		}
	}
	return m
}

func (m *paceModel) clone() *paceModel {
	c := *m
	c.queue, c.went = slices.Clone(m.queue), map[int]int64{}
	for i := range m.level {
		c.level[i] = new(big.Int).Set(m.level[i])
	}
	return &c
}

func (m *paceModel) cost(i int, n int64) *big.Int {
	return new(big.Int).Mul(big.NewInt(n), big.NewInt(m.interval[i]))
}

// move changes a level, which a full bucket bounds.
func (m *paceModel) move(i int, by *big.Int) {
	if m.level[i].Add(m.level[i], by); m.level[i].Cmp(m.capacity[i]) > 0 {
		m.level[i].Set(m.capacity[i])
	}
}

func (m *paceModel) pass(to int64) {
	for i := range m.level {
		if m.interval[i] > 0 {
			m.move(i, big.NewInt(to-m.now))
		}
	}
	m.now = to
}

func (m *paceModel) take(want amounts, sign int64) {
	for i, n := range want {
		if m.interval[i] > 0 {
			m.move(i, m.cost(i, -sign*n))
		}
	}
}

// soonest is when these amounts can be had, if nobody else takes any.
func (m *paceModel) soonest(want amounts) int64 {
	at := max(m.now, m.held)
	if m.gap > 0 && len(m.queue) > 0 {
		at = max(at, m.gate)
	}
	for i, n := range want {
		if m.interval[i] == 0 || n == 0 {
			continue
		}
		need := m.cost(i, n)
		if need.Cmp(m.capacity[i]) > 0 {
			need.Set(m.capacity[i])
		}
		at = max(at, m.now+need.Sub(need, m.level[i]).Int64())
	}
	return at
}

// next is the place in the queue of the one whose turn it is.
func (m *paceModel) next() int {
	first := func(lane Lane) int {
		return slices.IndexFunc(m.queue, func(w modelWaiter) bool { return w.lane == lane })
	}
	interactive, bulk := first(Interactive), first(Bulk)
	if bulk >= 0 && (interactive < 0 || m.passed >= 8) {
		return bulk
	}
	return interactive
}

// goes lets the one at the given place go.
func (m *paceModel) goes(i int) {
	w := m.queue[i]
	m.take(w.want, 1)
	m.went[w.id] = m.now
	m.queue = slices.Delete(m.queue, i, i+1)
	if m.passed++; w.lane == Bulk || !slices.ContainsFunc(m.queue, func(w modelWaiter) bool { return w.lane == Bulk }) {
		m.passed = 0
	}
	if m.gap > 0 {
		m.gate = m.now + m.gap
		m.gap -= (m.gap + 255) / 256
	}
	if len(m.queue) == 0 {
		m.gap = 0
	}
}

// runTo lets time pass and everybody go whose turn comes.
func (m *paceModel) runTo(to int64) {
	for len(m.queue) > 0 {
		i := m.next()
		at := m.soonest(m.queue[i].want)
		if at > to {
			break
		}
		m.pass(at)
		m.goes(i)
	}
	m.pass(to)
}

// expect is when a newcomer would go.
func (m *paceModel) expect(want amounts, lane Lane) int64 {
	c := m.clone()
	c.queue = append(c.queue, modelWaiter{-1, want, lane})
	for {
		i := c.next()
		at := c.soonest(c.queue[i].want)
		if c.queue[i].id == -1 {
			return at
		}
		c.pass(at)
		c.goes(i)
	}
}

// paceRun drives a Pace as [Pace.Wait] does, one event at a time: it polls when it was told to, and when woken.
type paceRun struct {
	t       *testing.T
	chance  *rand.Rand
	p       *Pace
	m       *paceModel
	now     instant
	ids     int
	changes int              // what may have moved anybody's turn
	waiting map[int]*running // in the queue, as far as the driver knows
	out     map[int]amounts  // granted and not settled
	went    map[int]int64
}

type running struct {
	w      *waiter
	alarm  instant
	woken  bool
	polls  int
	joined int // changes when it joined
}

func (r *paceRun) poll(id int) {
	x := r.waiting[id]
	x.woken = false
	x.polls++
	if most := 1 + 2*(r.changes-x.joined); x.polls > most {
		r.t.Fatalf("%d asked %d times, with %d changes since it joined", id, x.polls, r.changes-x.joined)
	}
	wait, granted := r.p.poll(r.now, x.w)
	if !granted {
		if wait <= 0 {
			r.t.Fatalf("%d is to ask again after %v: a busy loop", id, wait)
		}
		x.alarm = r.now.add(wait)
		return
	}
	delete(r.waiting, id)
	r.out[id] = x.w.want
	r.went[id] = int64(r.now)
}

// settleDown polls until nobody is due, in an order that chance draws.
func (r *paceRun) settleDown() {
	for {
		var due []int
		for id, x := range r.waiting {
			if x.woken || x.alarm <= r.now {
				due = append(due, id)
			}
		}
		if len(due) == 0 {
			return
		}
		slices.Sort(due)
		r.poll(due[r.chance.IntN(len(due))])
	}
}

func (r *paceRun) runTo(to instant) {
	for r.settleDown(); ; r.settleDown() {
		next := never
		for _, x := range r.waiting {
			next = min(next, x.alarm)
		}
		if next > to {
			break
		}
		r.now = next
	}
	r.now = to
	r.m.runTo(int64(to))
}

// check compares everything after each action.
func (r *paceRun) check() {
	r.settleDown()
	r.m.runTo(int64(r.now))
	for i := range r.p.buckets {
		b := &r.p.buckets[i]
		if b.interval == 0 {
			continue
		}
		level := big.NewInt(b.capacity - max(int64(b.full.sub(r.now)), 0))
		if level.Cmp(r.m.level[i]) != 0 {
			r.t.Fatalf("level of limit %d is %v ns, want %v", i, level, r.m.level[i])
		}
	}
	if len(r.waiting) != len(r.m.queue) || r.p.queued != len(r.m.queue) {
		r.t.Fatalf("%d wait, and %d are queued, want %d", len(r.waiting), r.p.queued, len(r.m.queue))
	}
	for id, at := range r.m.went {
		if got, ok := r.went[id]; !ok || got != at {
			r.t.Fatalf("%d went at %d (%v), want %d", id, got, ok, at)
		}
	}
	if len(r.went) != len(r.m.went) {
		r.t.Fatalf("%d went, want %d", len(r.went), len(r.m.went))
	}
}

func pick[V any](chance *rand.Rand, from ...V) V { return from[chance.IntN(len(from))] }

// pickID takes from a map in an order that the seed alone decides.
func pickID[V any](chance *rand.Rand, from map[int]V) int {
	return pick(chance, slices.Sorted(maps.Keys(from))...)
}

func someAmounts(chance *rand.Rand) amounts {
	return amounts{1, pick(chance, 0, chance.Int64N(250)), pick(chance, 0, chance.Int64N(90))}
}

func someLimits(chance *rand.Rand) Limits {
	perMinute := []int{0, 1, 7, 60, 61, 600, 1_000_003}
	if chance.IntN(10) == 0 {
		return Limits{Queue: pick(chance, 0, 3)} // nothing but holds
	}
	return Limits{
		RequestsPerMinute: pick(chance, perMinute...), InputTokensPerMinute: pick(chance, perMinute...), OutputTokensPerMinute: pick(chance, perMinute...),
		Burst: pick(chance, 0, -1, time.Second, 10*time.Second, 2*time.Minute),
		Queue: pick(chance, 0, -1, 1, 3),
	}
}

// Any interleaving of joining, asking, leaving, settling and holding does what the naive model does: the same levels to
// the nanosecond, the same order, everybody at the first instant possible, and no asking without end.
func TestPaceAgreesWithTheNaiveModel(t *testing.T) {
	for seed := range uint64(1500) {
		replayPace(t, seed)
	}
}

func replayPace(t *testing.T, seed uint64) {
	chance := rand.New(rand.NewPCG(seed, 2))
	limits := someLimits(chance)
	start := pick(chance, 0, 1, -instant(26*365*24*time.Hour), instant(time.Hour))
	r := &paceRun{
		t: t, chance: chance, p: NewPace(limits), m: newPaceModel(limits, start), now: start,
		waiting: map[int]*running{}, out: map[int]amounts{}, went: map[int]int64{},
	}
	defer func() {
		if t.Failed() {
			t.Fatalf("seed %d: %+v", seed, limits)
		}
	}()
	for range 40 {
		pick(chance, r.join, r.join, r.allow, r.leave, r.leaveGranted, r.settle, r.hold, r.pass, r.pass)()
		r.check()
	}
}

func (r *paceRun) pass() {
	far := pick(r.chance, 1, time.Millisecond, time.Second, time.Minute, 10*time.Minute)
	r.runTo(r.now.add(time.Duration(r.chance.Int64N(int64(far) + 1))))
}

func (r *paceRun) join() {
	want, lane := someAmounts(r.chance), pick(r.chance, Interactive, Interactive, Bulk)
	at := r.m.expect(want, lane)
	deadline := pick(r.chance, never, instant(at).add(time.Duration(r.chance.IntN(5)-2)))
	queues := at > int64(r.now)
	refused := queues && (instant(at) >= deadline || len(r.m.queue) >= r.m.size)
	id := r.ids
	r.ids++
	x := &running{joined: r.changes}
	w, wait, ok := r.p.join(r.now, waiter{want: want, lane: lane, deadline: deadline, wake: func() { x.woken = true }})
	if ok == refused || ok && (w != nil) != queues {
		r.t.Fatalf("join = %v %v, refused should be %v, queues %v", ok, w, refused, queues)
	}
	if queues && int64(wait) != at-int64(r.now) {
		r.t.Errorf("the wait is to be %v, want %v", wait, time.Duration(at-int64(r.now)))
	}
	switch {
	case refused:
	case queues:
		if lane == Interactive {
			r.changes++ // it puts bulk calls off
		}
		x.w, x.alarm = w, r.now.add(wait)
		r.waiting[id] = x
		r.m.queue = append(r.m.queue, modelWaiter{id, want, lane})
	default:
		r.m.take(want, 1)
		r.out[id] = want
	}
}

func (r *paceRun) allow() {
	want := someAmounts(r.chance)
	may := len(r.m.queue) == 0 && r.m.soonest(want) == int64(r.now)
	if got := r.p.allow(r.now, want); got != may {
		r.t.Errorf("allow = %v, want %v", got, may)
	}
	if may {
		r.m.take(want, 1)
		r.out[r.ids] = want
		r.ids++
	}
}

func (r *paceRun) leave() {
	if len(r.waiting) == 0 {
		return
	}
	id := pickID(r.chance, r.waiting)
	r.changes++
	r.p.leave(r.now, r.waiting[id].w)
	delete(r.waiting, id)
	r.m.queue = slices.DeleteFunc(r.m.queue, func(w modelWaiter) bool { return w.id == id })
}

func (r *paceRun) leaveGranted() {
	if len(r.out) == 0 {
		return
	}
	id := pickID(r.chance, r.out)
	r.changes++
	r.m.take(r.out[id], -1)
	r.p.leave(r.now, &waiter{want: r.out[id], granted: true})
	delete(r.out, id)
}

func (r *paceRun) settle() {
	if len(r.out) == 0 {
		return
	}
	id := pickID(r.chance, r.out)
	used := pick(r.chance, someAmounts(r.chance), amounts{}) // the latter was never sent
	r.changes++
	var more amounts
	for i := range more {
		more[i] = used[i] - r.out[id][i]
	}
	r.m.take(more, 1)
	r.p.settle(r.now, r.out[id], used)
	delete(r.out, id)
}

func (r *paceRun) hold() {
	until := r.now.add(time.Duration(r.chance.Int64N(int64(2 * time.Minute)))).add(-time.Second)
	r.changes++
	r.p.hold(r.now, until)
	r.m.held = max(r.m.held, int64(until))
	if r.m.interval == (amounts{}) {
		r.m.gate, r.m.gap = int64(always), int64(10*time.Millisecond)
	}
	for i := range r.m.level {
		if r.m.interval[i] > 0 && r.m.level[i].Sign() > 0 {
			r.m.level[i].SetInt64(0)
		}
	}
}

// One that is granted while it leaves gives everything back, and the next goes in its place at the same instant.
func TestPaceGrantedAndLeaving(t *testing.T) {
	p := NewPace(Limits{RequestsPerMinute: 60, Burst: time.Second})
	one := amounts{1}
	if !p.allow(0, one) {
		t.Fatal("a full pace refused")
	}
	first, _, _ := p.join(0, waiter{want: one, deadline: never})
	second, _, _ := p.join(0, waiter{want: one, deadline: never})
	p.settle(0, one, amounts{}) // the one in flight is never sent: the first is granted
	if !first.granted || second.granted {
		t.Fatalf("granted: %v %v, want the first alone", first.granted, second.granted)
	}
	p.leave(0, first)
	if wait, granted := p.poll(0, second); !granted {
		t.Fatalf("the second waits for another %v", wait)
	}
	p.settle(0, one, amounts{})
	if !p.allow(0, one) || p.allow(0, one) {
		t.Error("exactly one permission should be left")
	}
}

// The head waits for tokens while those behind it want requests alone: nobody overtakes, all go at the instant that
// the first join told them, and each asks exactly once.
func TestPaceHeadOfLineAsksOnce(t *testing.T) {
	p := NewPace(Limits{RequestsPerMinute: 60, InputTokensPerMinute: 60, Burst: 10 * time.Second})
	if !p.allow(0, amounts{1, 10}) {
		t.Fatal("a full pace refused")
	}
	type row struct {
		w     *waiter
		alarm instant
		polls int
		went  bool
	}
	var rows []*row
	for i := range 30 {
		want := amounts{1}
		if i%10 == 0 {
			want[1] = 10
		}
		w, wait, ok := p.join(0, waiter{want: want, deadline: never})
		if !ok || w == nil {
			t.Fatalf("%d does not queue", i)
		}
		rows = append(rows, &row{w: w, alarm: instant(wait)})
	}
	told := make([]instant, len(rows))
	for i, r := range rows {
		told[i] = r.alarm
	}
	slices.Reverse(rows) // the worst order: of those who are told the same instant, the last asks first
	slices.SortStableFunc(rows, func(a, b *row) int { return int(a.alarm - b.alarm) })
	for _, r := range rows {
		for r.polls < 5 && !r.went {
			r.polls++
			var wait time.Duration
			wait, r.went = p.poll(r.alarm, r.w)
			r.alarm = r.alarm.add(wait)
		}
		if r.polls != 1 || !r.went {
			t.Errorf("one that was told to ask at %v asked %d times, went %v", time.Duration(r.alarm), r.polls, r.went)
		}
	}
	if !slices.IsSorted(told) {
		t.Errorf("somebody is to overtake: %v", told)
	}
	if told[0] != instant(10*time.Second) || told[9] != told[0] || told[10] != instant(20*time.Second) {
		t.Errorf("told %v", told)
	}
}

// Whoever wants nothing of a limit is not held up by the debt of others in it.
func TestPaceDebtBindsOnlyThoseWhoWant(t *testing.T) {
	p := NewPace(Limits{OutputTokensPerMinute: 60, Queue: -1})
	p.settle(0, amounts{1}, amounts{1, 0, 600})
	if p.allow(0, amounts{1, 5, 1}) {
		t.Error("a request with output went out into debt")
	}
	if !p.allow(0, amounts{1, 5, 0}) {
		t.Error("a request without output waits for the debt in output tokens")
	}
	if _, wait, ok := p.join(0, waiter{want: amounts{1, 0, 1}, deadline: never}); ok || wait != 9*time.Minute+time.Second {
		t.Errorf("join = %v after %v, want a refusal and 9m1s until the debt is paid", ok, wait)
	}
}

// In no window of time is more let through than what may be saved up plus what the window refills.
func TestPaceNeverAboveTheLimit(t *testing.T) {
	for seed := range uint64(20) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			chance := rand.New(rand.NewPCG(seed, 1))
			limits := Limits{RequestsPerMinute: 1 + chance.IntN(900), InputTokensPerMinute: 1000 + chance.IntN(100_000), Burst: time.Duration(1+chance.IntN(60)) * time.Second}
			p := NewPace(limits)
			most := int(p.buckets[1].capacity / p.buckets[1].interval)
			type grant struct {
				at     instant
				so     [2]int64 // taken before this grant
				amount [2]int64
			}
			var grants []grant
			var so [2]int64
			now := instant(0)
			for range 600 {
				now = now.add(time.Duration(chance.IntN(int(time.Second))))
				want := amounts{1, int64(chance.IntN(most + 1)), 0}
				w, wait, ok := p.join(now, waiter{want: want, deadline: never})
				if !ok {
					t.Fatal("refused")
				}
				if w != nil {
					if now = now.add(wait); w != nil {
						if _, granted := p.poll(now, w); !granted {
							t.Fatal("not granted when told")
						}
					}
				}
				grants = append(grants, grant{now, so, [2]int64{want[0], want[1]}})
				so[0], so[1] = so[0]+want[0], so[1]+want[1]
			}
			for i, from := range grants {
				for _, to := range grants[i:] {
					for limit := range 2 {
						b := &p.buckets[limit]
						if taken := to.so[limit] + to.amount[limit] - from.so[limit]; taken*b.interval > b.capacity+int64(to.at-from.at) {
							t.Fatalf("limit %d: %d in %v", limit, taken, time.Duration(to.at-from.at))
						}
					}
				}
			}
		})
	}
}

func TestPaceSurvivesAbsurdNumbers(t *testing.T) {
	const huge = int64(1<<63 - 1)
	for _, limits := range []Limits{
		{RequestsPerMinute: 1, InputTokensPerMinute: 1, OutputTokensPerMinute: 1},
		{RequestsPerMinute: int(huge), InputTokensPerMinute: int(huge), Burst: time.Duration(huge)},
		{RequestsPerMinute: -5, InputTokensPerMinute: 3, Burst: -time.Duration(huge)},
	} {
		p := NewPace(limits)
		if !p.allow(0, amounts{1, huge, huge}) {
			t.Errorf("%+v: a request larger than a full bucket does not go out", limits)
		}
		_, wait, ok := p.join(1, waiter{want: amounts{1, huge, huge}, deadline: instant(time.Hour)})
		if ok || wait < time.Hour {
			t.Errorf("%+v: join = %v after %v, want a refusal", limits, ok, wait)
		}
		p.settle(2, amounts{1, huge, huge}, amounts{})
		p.hold(3, never)
		if p.allow(never-1, amounts{1}) {
			t.Errorf("%+v: a hold without end has ended", limits)
		}
	}
}
