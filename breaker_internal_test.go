package holdfast

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// breakerModel is the breaker as its documentation tells it, without rings, generations or atomics: every outcome is
// kept, and a transition forgets the tickets that were out.
type breakerModel struct {
	s        BreakerSettings
	state    State
	now      int64
	outcomes []modelOutcome
	live     map[int]bool // tickets whose outcome still counts; true: against the ramp
	streak   int
	until    int64
	cooldown int64
	probes   int   // admitted, and not proved to prove nothing
	probing  int   // out
	ramped   int64 // the ramp's end
	inFlight int
	most     int // on the ramp
	closed   int64
	since    int64 // when the outage began
	slowly   bool  // it recovers
	lenient  int64
	changes  []change
}

type modelOutcome struct {
	at     int64
	failed bool
}

func (m *breakerModel) move(to State) {
	m.changes = append(m.changes, change{m.state, to})
	m.state, m.live, m.ramped, m.inFlight = to, map[int]bool{}, int64(always), 0
	m.probes, m.probing, m.slowly = 0, 0, false
}

func (m *breakerModel) refusal() (wait int64, ok bool) {
	switch {
	case m.state == Open:
		return max(m.until-m.now, 0), m.now >= m.until
	case m.state == HalfOpen && m.probes >= m.s.Probes:
		return 0, m.now >= m.until // how long a probe takes is not known
	case m.state == Closed && m.now < m.ramped && m.inFlight >= m.most:
		return m.ramped - m.now, false
	}
	return 0, true
}

func (m *breakerModel) allow(id int) bool {
	if _, ok := m.refusal(); !ok {
		return false
	}
	if m.state == Open {
		m.move(HalfOpen)
	}
	if m.state == HalfOpen {
		if m.probes >= m.s.Probes { // whoever had the lease before has lost it
			m.live, m.probes, m.probing = map[int]bool{}, 0, 0
		}
		m.live[id] = false
		m.probes++
		m.probing++
		m.until = m.now + int64(m.s.Lease)
		return true
	}
	counted := m.now < m.ramped
	if m.live[id] = counted; counted {
		m.inFlight++
	}
	return true
}

func (m *breakerModel) settle(id int, took int64, r Result) {
	counted, live := m.live[id]
	if !live {
		return
	}
	if r == Success && m.s.SlowCall > 0 && took > int64(m.s.SlowCall) {
		r = Failure
	}
	if m.state == HalfOpen {
		m.probing--
		delete(m.live, id)
		switch r {
		case Ignore:
			m.probes--
		case Success:
			m.move(Closed)
			m.outcomes, m.streak, m.closed = nil, 0, m.now
			if m.s.Ramp > 0 {
				m.ramped, m.most = m.now+int64(m.s.Ramp), 2
				m.slowly, m.lenient = true, m.ramped+int64(m.s.Window)
			}
		case Failure:
			if m.probing == 0 && m.probes >= m.s.Probes {
				m.open()
			}
		}
		return
	}
	if counted && m.inFlight > 0 {
		m.inFlight--
	}
	if r == Ignore {
		return
	}
	m.outcomes = append(m.outcomes, modelOutcome{m.now, r == Failure})
	if r == Success {
		m.streak = 0
		if counted {
			m.most++
		}
		return
	}
	m.streak++
	if m.recovers() {
		if m.relapsed() {
			m.open()
		}
	} else if m.tripped() {
		m.open()
	}
}

func (m *breakerModel) open() {
	if m.state == Closed && (m.closed == int64(always) || m.now-m.closed > 2*int64(m.s.Window+m.s.Ramp)) {
		m.since = m.now
	}
	least := int64(m.s.Cooldown)
	switch {
	case m.slowly:
		m.cooldown = least / 4
	case m.state == HalfOpen && m.cooldown < least:
		m.cooldown = min(m.cooldown*2, least)
	default:
		m.cooldown = min(max(least, (m.now-m.since)/10), max(int64(m.s.MaxCooldown), least))
	}
	m.move(Open)
	m.until = m.now + m.cooldown
}

// ended counts outcomes by their age in steps of the window.
func (m *breakerModel) ended(from, to int64) (calls, failures float64) {
	step := max(int64(m.s.Window)/12, 1)
	for _, o := range m.outcomes {
		if age := floorDiv(m.now, step) - floorDiv(o.at, step); age >= from && age < to {
			if calls++; o.failed {
				failures++
			}
		}
	}
	return calls, failures
}

func (m *breakerModel) recovers() bool {
	calls, failures := m.ended(0, 12)
	newCalls, newFailures := m.ended(0, 6)
	switch {
	case !m.slowly || m.now < m.ramped:
		return m.slowly
	case calls >= float64(m.s.MinCalls) && failures/calls <= 0.25:
		m.slowly = false
	case m.now >= m.lenient:
		older := 0.0
		if calls > newCalls {
			older = (failures - newFailures) / (calls - newCalls)
		}
		m.slowly = older-newFailures/max(newCalls, 1) >= 0.1
		m.lenient = m.now + int64(m.s.Window/2)
	}
	return m.slowly
}

func (m *breakerModel) relapsed() bool {
	calls, failures := m.ended(0, 12)
	row := float64(m.streak)
	usual := (max(failures-row, 0) + 1) / (max(calls-row, 0) + 2)
	return m.streak >= 2*max(m.s.Failures, 1) && math.Pow(usual, row) < 1e-3
}

func floorDiv(n, by int64) int64 {
	q := n / by
	if q*by > n {
		q--
	}
	return q
}

func (m *breakerModel) tripped() bool {
	step := max(int64(m.s.Window)/12, 1)
	var calls, failures, before, failedBefore float64 // in the window, and in it before the row of failures
	for i, o := range m.outcomes {
		if floorDiv(m.now, step)-floorDiv(o.at, step) >= 12 {
			continue
		}
		failed := 0.0
		if o.failed {
			failed = 1
		}
		calls, failures = calls+1, failures+failed
		if i < len(m.outcomes)-m.streak {
			before, failedBefore = before+1, failedBefore+failed
		}
	}
	enough := float64(m.s.MinCalls)
	if m.s.Ratio >= 0 && calls >= enough && failures >= m.s.Ratio*calls {
		return true
	}
	chance := before >= enough && failedBefore > 0 && math.Pow(failedBefore/before, float64(m.streak)) > 1e-9
	return m.s.Failures > 0 && m.streak >= m.s.Failures && !(m.s.Ratio >= 0 && chance)
}

func someBreaker(chance *rand.Rand) BreakerSettings {
	return BreakerSettings{
		Failures: pick(chance, -1, 1, 2, 5), Ratio: pick(chance, -1, 0.3, 0.5, 1),
		Window: pick(chance, 1, 12*time.Second, time.Minute, 61*time.Second+7), MinCalls: pick(chance, 1, 4, 10),
		SlowCall: pick(chance, -1, 5*time.Second), Cooldown: pick(chance, time.Second, 20*time.Second),
		MaxCooldown: pick(chance, -1, time.Second, time.Minute), Probes: pick(chance, 1, 1, 2, 5), Lease: pick(chance, time.Second, time.Minute),
		Ramp: pick(chance, -1, time.Second, 30*time.Second),
	}
}

// In histories of any kind, with lost probes, late and repeated settling and time that jumps or stands still, the breaker
// admits, refuses, tells waits and changes exactly as the naive model does. That is the proof for the windows longer and
// shorter than the calls, both trip rules, leases, generations and the ramp together.
func TestBreakerAgreesWithTheNaiveModel(t *testing.T) {
	seen := map[change]int{}
	for seed := range uint64(3000) {
		replayBreaker(t, seed, seen)
	}
	for _, c := range []change{{Closed, Open}, {Open, HalfOpen}, {HalfOpen, Closed}, {HalfOpen, Open}} {
		if seen[c] < 500 {
			t.Errorf("%v to %v happened %d times: the histories prove too little", c.from, c.to, seen[c])
		}
	}
}

func replayBreaker(t *testing.T, seed uint64, seen map[change]int) {
	chance := rand.New(rand.NewPCG(seed, 6))
	s := someBreaker(chance)
	// Also before the process began, and across that instant, as in a bubble or a simulation.
	now := pick(chance, 0, instant(time.Hour), -instant(26*365*24*time.Hour), -instant(30*time.Second))
	m := &breakerModel{s: s, now: int64(now), live: map[int]bool{}, ramped: int64(always), closed: int64(always)}
	var told []change
	s.OnChange = func(from, to State) { told = append(told, change{from, to}) }
	b := NewBreaker(s)
	var tickets []Ticket
	failing := chance.Float64()
	for step := range 120 {
		switch chance.IntN(5) {
		case 0:
			far := pick(chance, 1, time.Second, 10*time.Second, time.Minute)
			now = now.add(time.Duration(chance.Int64N(int64(far) + 1)))
			m.now = int64(now)
		case 1, 2:
			wait, may := m.refusal()
			peeked, peekedOK := b.peek(now)
			ticket, got, ok := b.Allow(now.time())
			if ok != may || peekedOK != may || !ok && (got != time.Duration(wait) || peeked != got) {
				t.Fatalf("seed %d step %d %+v: Allow = %v %v, peek = %v %v, want %v %v", seed, step, s, ok, got, peekedOK, peeked, may, time.Duration(wait))
			}
			if m.allow(len(tickets)) {
				tickets = append(tickets, ticket)
			}
		default:
			if len(tickets) == 0 {
				continue
			}
			id := max(0, len(tickets)-1-int(chance.ExpFloat64()*2)) // mostly late ones, at times one that is long over
			r := Success
			if p := chance.Float64(); p < 0.1 {
				r = Ignore
			} else if chance.Float64() < failing {
				r = Failure
			}
			if _, live := m.live[id]; b.current(tickets[id]) != live {
				t.Fatalf("seed %d step %d %+v: ticket %d is current: %v", seed, step, s, id, !live)
			}
			m.settle(id, int64(now.sub(tickets[id].start)), r)
			b.Settle(now.time(), tickets[id], r)
		}
		if b.State() != m.state || !slices.Equal(told, m.changes) {
			t.Fatalf("seed %d step %d %+v: %v after %v, want %v after %v", seed, step, s, b.State(), told, m.state, m.changes)
		}
		wait := time.Duration(chance.Int64N(int64(30 * time.Second)))
		if may := m.state != Open || m.now+int64(wait) >= m.until; b.mayPass(now, wait) != may {
			t.Fatalf("seed %d step %d %+v: mayPass after %v should be %v", seed, step, s, wait, may)
		}
		if b.inFlight < 0 || b.state != Closed && b.inFlight != 0 {
			t.Fatalf("seed %d step %d: %d in flight", seed, step, b.inFlight)
		}
	}
	for _, c := range told {
		seen[c]++
	}
}
