package holdfast

import (
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"
)

// State is a breaker's state.
//
//	closed    -> open       a trip rule is met by a failure
//	open      -> half_open  the first caller after the cooldown, who takes the first probe's lease in the same step
//	half_open -> closed     a probe succeeds; traffic then ramps up, and for a while a relapse is all that opens it
//	half_open -> open       all probes have failed
//	half_open -> half_open  a probe proves nothing (terminal, throttled, cancelled) or its lease expires:
//	                        the next caller probes
type State uint8

const (
	// Closed lets everything through and counts.
	Closed State = iota
	// Open refuses everything until the cooldown is over.
	Open
	// HalfOpen lets a few probes through.
	HalfOpen
)

// String returns closed, open or half_open.
func (s State) String() string {
	switch s {
	case Closed:
		return "closed"
	case Open:
		return "open"
	case HalfOpen:
		return "half_open"
	}
	return fmt.Sprintf("State(%d)", uint8(s))
}

// Result is what a breaker learns from one admitted attempt.
type Result uint8

const (
	// Ignore says nothing about the upstream's health; it only gives the ticket back.
	Ignore Result = iota
	// Success is an upstream that works.
	Success
	// Failure is an upstream that does not.
	Failure
)

// Count is what a breaker counts.
type Count uint8

const (
	// CountAttempts counts every attempt.
	CountAttempts Count = iota
	// CountCalls counts a call that gave up on the target as one failure and leaves its single attempts out.
	CountCalls
)

// BreakerSettings configure a [Breaker]. The zero value is the defaults.
type BreakerSettings struct {
	// Failures in a row that open the breaker. The row has no window, since a slow upstream may fail less often
	// than any window is long. While Ratio is on and MinCalls ended in its window before the row, a row that such
	// an upstream shows by chance does not count. Default: 5. Negative: this rule is off.
	Failures int
	// Ratio of failures among the calls of the window, from 0 to 1, that opens the breaker once MinCalls have
	// ended in it. Default: 0.5. Negative: this rule is off.
	Ratio float64
	// Window is how far back Ratio looks, in twelve steps. An attempt is counted when it ends: a window
	// shorter than the attempts would never trip otherwise. Default: 60s.
	Window time.Duration
	// MinCalls is the number of ended calls below which Ratio says nothing. Default: 10.
	MinCalls int
	// SlowCall makes a success that took longer count as a failure. Zero or negative: off.
	SlowCall time.Duration
	// Cooldown is how long the breaker stays open. When the probes fail, it is a tenth of the outage so far if that is
	// more: an outage is noticed to be over after at most a tenth of the time that it took. An upstream that had
	// answered a probe and is gone again is asked after a quarter of it, and then after twice as long each time, up to
	// Cooldown. Default: 20s.
	Cooldown time.Duration
	// MaxCooldown bounds the growth. Default: 5m. Below Cooldown: no growth.
	MaxCooldown time.Duration
	// Probes is how many attempts find out after a cooldown whether the upstream works again. They may be out at the
	// same time. One that succeeds closes the breaker, and when all have failed it opens again: an upstream that
	// comes back by and by fails a single one most of the time. Default: 5. Negative: 1. At most 64.
	Probes int
	// Lease is how long the last probe may be out before the next caller may probe in its place; probes that hang or
	// are lost must not keep the breaker half-open for ever. Default: 2m.
	Lease time.Duration
	// Ramp is how long after closing the number of concurrent attempts is held back: two at first, one more
	// with each success. An upstream that has just recovered is lost again to a herd, and a provider answers a
	// sudden return with 429. Callers who come one at a time notice nothing. From then on, until three quarters of
	// the calls succeed or a Window brings nothing better, Failures and Ratio do not count: only a row of failures
	// that is no accident even for an upstream that fails as often as this one opens the breaker again, since
	// one that comes back by and by is of more use than none. Default: 10s. Negative: no ramp, and no leniency.
	Ramp time.Duration
	// Count is what counts. Default: CountAttempts.
	Count Count
	// OnChange is told of every transition, in order, outside the breaker's lock, by the goroutine whose attempt
	// caused one of them. It may use the breaker.
	OnChange func(from, to State)
}

const (
	defaultFailures    = 5
	defaultRatio       = 0.5
	defaultWindow      = 60 * time.Second
	defaultMinCalls    = 10
	defaultCooldown    = 20 * time.Second
	defaultMaxCooldown = 5 * time.Minute
	defaultProbes      = 5
	defaultLease       = 2 * time.Minute
	defaultRamp        = 10 * time.Second

	mostProbes   = 64
	windowSteps  = 12
	rampStart    = 2
	outageShare  = 10
	relapseShare = 4
)

func (s BreakerSettings) withDefaults() BreakerSettings {
	s.Failures = orDefault(s.Failures, defaultFailures)
	s.Ratio = orDefault(s.Ratio, defaultRatio)
	s.Window = orDefault(s.Window, defaultWindow)
	s.MinCalls = orDefault(s.MinCalls, defaultMinCalls)
	s.Cooldown = orDefault(s.Cooldown, defaultCooldown)
	s.MaxCooldown = orDefault(s.MaxCooldown, defaultMaxCooldown)
	s.Probes = min(max(orDefault(s.Probes, defaultProbes), 1), mostProbes)
	s.Lease = orDefault(s.Lease, defaultLease)
	s.Ramp = orDefault(s.Ramp, defaultRamp)
	return s
}

// Breaker stops traffic to a target that fails, and finds out with a few probes when it works again. Use one for
// each upstream, credential and model group. The zero value works with the default settings. All methods are safe for
// concurrent use and run no user code under the lock.
type Breaker struct {
	settings BreakerSettings

	// admit is the generation while every caller is let in without conditions, else 0: the success path reads
	// it without taking the lock.
	admit atomic.Uint64

	mu         sync.Mutex
	ready      bool
	state      State
	generation uint64 // of the current state; results of an earlier one change nothing
	step       instant
	steps      window
	streak     int           // failures in a row
	until      instant       // Open: when a probe may go; HalfOpen: when the last probe's lease ends
	cooldown   time.Duration // of the current opening
	probes     int           // HalfOpen: those admitted that have not proved nothing
	out        uint64        // HalfOpen: those of them that have not come back, a bit for each
	lent       int           // probes in all
	recovering bool          // Closed: the upstream comes back by and by
	ramped     instant       // Closed: when the ramp is over
	inFlight   int           // Closed, on the ramp
	allowed    int           // Closed, on the ramp
	since      instant       // when the present outage began
	lenient    instant       // Closed, recovering: when it must have become better
	closed     instant       // when the breaker last closed; never if not since the outage began

	changes  []change // transitions not yet told
	draining bool
}

type windowStep struct {
	number          instant // which step of time this is
	calls, failures int
}

type change struct{ from, to State }

// NewBreaker returns a closed breaker.
func NewBreaker(s BreakerSettings) *Breaker {
	b := &Breaker{settings: s}
	b.mu.Lock()
	b.prepare()
	b.mu.Unlock()
	return b
}

// prepare gives the zero value its defaults. The lock is held.
func (b *Breaker) prepare() {
	if b.ready {
		return
	}
	b.ready = true
	b.settings = b.settings.withDefaults()
	b.step = max(instant(b.settings.Window/windowSteps), 1)
	b.generation = 1
	b.closed = always
	b.admit.Store(1)
}

// configured returns the settings; the first use fills in their defaults under the same lock.
func (b *Breaker) configured() BreakerSettings {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.settings
}

// Ticket is the permission to make one attempt. Every ticket must be settled.
type Ticket struct {
	generation uint64
	start      instant
	counted    bool   // against the ramp
	probe      uint64 // its bit among the probes; 0: it is none
}

// Allow asks to make one attempt at the given time. If the answer is no, wait is how long it will stay so; 0 means until a
// probe that is out comes back. A yes must be followed by [Breaker.Settle]. Zero time: now.
func (b *Breaker) Allow(now time.Time) (t Ticket, wait time.Duration, ok bool) {
	if g := b.admit.Load(); g != 0 && now.IsZero() && b.settings.SlowCall <= 0 {
		return Ticket{generation: g}, 0, true // nobody will ask when it began
	}
	t, wait, _, ok = b.allow(when(now))
	b.tell()
	return t, wait, ok
}

// Settle gives a ticket back with what came of the attempt. Settling a ticket of an earlier generation, which
// includes settling one twice after it caused a transition, changes nothing. Zero time: now.
func (b *Breaker) Settle(now time.Time, t Ticket, r Result) {
	b.settle(when(now), t, r)
	b.tell()
}

// State returns the present state. An open breaker whose cooldown is over is still Open until somebody asks
// it to send.
func (b *Breaker) State() State {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.state
}

// peek tells without taking anything whether an attempt would be refused at the given time, and for how long.
func (b *Breaker) peek(now instant) (wait time.Duration, ok bool) {
	if b.admit.Load() != 0 {
		return 0, true
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.prepare()
	return b.refusal(now)
}

// refusal is the rule that peek and allow share. The lock is held.
func (b *Breaker) refusal(now instant) (wait time.Duration, ok bool) {
	switch b.state {
	case Open:
		return max(b.until.sub(now), 0), now >= b.until
	case HalfOpen:
		return 0, b.probes < b.settings.Probes || now >= b.until
	}
	if now < b.ramped && b.inFlight >= b.allowed {
		return b.ramped.sub(now), false
	}
	return 0, true
}

func (b *Breaker) allow(now instant) (t Ticket, wait time.Duration, c change, ok bool) {
	if g := b.admit.Load(); g != 0 {
		return Ticket{generation: g, start: now}, 0, c, true
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.prepare()
	if wait, ok = b.refusal(now); !ok {
		return t, wait, c, false
	}
	switch {
	case b.state == Open:
		c = b.move(HalfOpen)
		t.probe = b.lend(now)
	case b.state == HalfOpen:
		if b.probes >= b.settings.Probes {
			b.generation++ // probes whose lease expired may no longer decide
			b.probes, b.out = 0, 0
		}
		t.probe = b.lend(now)
	case now < b.ramped:
		b.inFlight++
		t.counted = true
	default:
		b.admit.Store(b.generation) // the ramp is over
	}
	t.generation, t.start = b.generation, now
	return t, 0, c, true
}

// lend gives the next probe its lease and returns its bit.
func (b *Breaker) lend(now instant) uint64 {
	bit := uint64(1) << (b.lent % mostProbes) // of none that was lent lately: tickets may be settled twice
	b.lent++
	b.out |= bit
	b.probes++
	b.until = now.add(b.settings.Lease)
	return bit
}

func (b *Breaker) settle(now instant, t Ticket, r Result) (c change) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.prepare()
	if !b.valid(t) {
		return c
	}
	if r == Success && b.settings.SlowCall > 0 && now.sub(t.start) > b.settings.SlowCall {
		r = Failure
	}
	if b.state == HalfOpen {
		b.out &^= t.probe
		return b.settleProbe(now, r)
	}
	if t.counted && b.inFlight > 0 {
		b.inFlight--
	}
	if r == Ignore {
		return c
	}
	w := b.windowAt(now)
	w.calls++
	if r == Success {
		b.streak = 0
		if t.counted {
			b.allowed++
		}
		return c
	}
	w.failures++
	b.streak++
	trips := b.tripped
	if b.stillRecovering(now) {
		trips = b.relapsed
	}
	if !trips(now) {
		return c
	}
	return b.open(now)
}

func (b *Breaker) settleProbe(now instant, r Result) (c change) {
	switch r {
	case Ignore:
		b.probes--
	case Success:
		c = b.move(Closed)
		b.clear()
		b.closed = now
		if b.settings.Ramp > 0 {
			b.recovering = true
			b.ramped = now.add(b.settings.Ramp)
			b.lenient = b.ramped.add(b.settings.Window)
			b.allowed = rampStart
		} else {
			b.admit.Store(b.generation)
		}
	case Failure:
		if b.out == 0 && b.probes >= b.settings.Probes {
			c = b.open(now)
		}
	}
	return c
}

// stillRecovering reports whether the upstream is judged with leniency, as one that comes back by and by: since it has
// answered a probe, until most calls succeed again or it gets no better for a window.
func (b *Breaker) stillRecovering(now instant) bool {
	if !b.recovering || now < b.ramped {
		return b.recovering
	}
	newest := b.stepAt(now)
	older, newer := b.steps.between(newest-windowSteps, newest-windowSteps/2), b.steps.between(newest-windowSteps/2, newest)
	switch calls, failures := older.calls+newer.calls, older.failures+newer.failures; {
	case calls >= b.settings.MinCalls && float64(failures) <= healthyShare*float64(calls):
		b.recovering = false
	case now < b.lenient:
	case older.share()-newer.share() >= betterBy:
		b.lenient = now.add(b.settings.Window / 2)
	default:
		b.recovering = false
	}
	return b.recovering
}

// relapsed reports whether the upstream has gone again on the ramp: by more failures in a row than is to be expected of
// one that comes back by and by. As long as something succeeds now and then, it is of more use than none.
func (b *Breaker) relapsed(now instant) bool {
	if b.streak < 2*max(b.settings.Failures, 1) {
		return false
	}
	w := b.counted(now)
	usual := float64(max(w.failures-b.streak, 0)+1) / float64(max(w.calls-b.streak, 0)+2)
	return math.Pow(usual, float64(b.streak)) < rareRelapse
}

func (b *Breaker) open(now instant) change {
	if b.state == Closed && (b.closed == always || now.sub(b.closed) > 2*(b.settings.Window+b.settings.Ramp)) {
		b.since = now
	}
	least, most := max(b.settings.Cooldown, 0), max(b.settings.MaxCooldown, b.settings.Cooldown, 0)
	switch {
	case b.recovering:
		b.cooldown = least / relapseShare
	case b.state == HalfOpen && b.cooldown < least:
		b.cooldown = min(2*b.cooldown, least)
	default:
		b.cooldown = min(max(now.sub(b.since)/outageShare, least), most)
	}
	c := b.move(Open)
	b.until = now.add(b.cooldown)
	return c
}

// move begins a new generation in the given state. The lock is held.
func (b *Breaker) move(to State) change {
	c := change{from: b.state, to: to}
	b.state = to
	b.generation++
	b.admit.Store(0)
	b.probes, b.out = 0, 0
	b.recovering, b.inFlight, b.allowed, b.ramped = false, 0, 0, always
	if b.settings.OnChange != nil {
		b.changes = append(b.changes, c)
	}
	return c
}

func (b *Breaker) clear() {
	b.streak = 0
	b.steps = window{}
}

// window is what has ended lately, by steps of time.
type window [windowSteps]windowStep

func (b *Breaker) stepAt(now instant) instant {
	number := now / b.step
	if now%b.step < 0 {
		number-- // down, not towards zero: a clock may show times before the process began
	}
	return number
}

func (b *Breaker) windowAt(now instant) *windowStep {
	number := b.stepAt(now)
	w := &b.steps[(number%windowSteps+windowSteps)%windowSteps]
	if w.number != number || w.calls == 0 {
		*w = windowStep{number: number}
	}
	return w
}

// between counts the steps after one and up to another.
func (w *window) between(after, to instant) (sum windowStep) {
	for _, s := range w {
		if s.number > after && s.number <= to {
			sum.calls += s.calls
			sum.failures += s.failures
		}
	}
	return sum
}

// counted is what has ended in the window until now.
func (b *Breaker) counted(now instant) windowStep {
	newest := b.stepAt(now)
	return b.steps.between(newest-windowSteps, newest)
}

// share of failures; 0 without calls.
func (s windowStep) share() float64 { return float64(s.failures) / float64(max(s.calls, 1)) }

func (b *Breaker) tripped(now instant) bool {
	inARow := b.settings.Failures > 0 && b.streak >= b.settings.Failures
	if b.settings.Ratio < 0 {
		return inARow
	}
	w := b.counted(now)
	if w.calls >= b.settings.MinCalls && float64(w.failures) >= b.settings.Ratio*float64(w.calls) {
		return true
	}
	return inARow && !b.byChance(w.calls-b.streak, w.failures-b.streak)
}

// rareStreak is the chance below which failures in a row are no accident of the ratio that was usual before them.
const rareStreak = 1e-9

// healthyShare of failures is what ends the ramp.
const healthyShare = 0.25

// betterBy is how much the share of failures must fall in half a window for the leniency to go on.
const betterBy = 0.1

// rareRelapse is the same on the ramp, where a breaker is to open again sooner.
const rareRelapse = 1e-3

// byChance reports whether the streak may be an accident, judged by the calls of the window before it. An upstream of
// which one attempt in ten fails shows five failures in a row once in 100,000 attempts, and a breaker that opened then
// would be the only outage there is.
func (b *Breaker) byChance(calls, failures int) bool {
	if calls < b.settings.MinCalls || failures <= 0 {
		return false
	}
	return math.Pow(float64(failures)/float64(calls), float64(b.streak)) > rareStreak
}

// tell hands the transitions to OnChange, in order and outside the lock. One goroutine drains at a time; another's
// transitions are told by the one that is at it.
func (b *Breaker) tell() {
	if b.settings.OnChange == nil {
		return
	}
	b.mu.Lock()
	if b.draining {
		b.mu.Unlock()
		return
	}
	b.draining = true
	defer func() { // also when OnChange panics
		b.draining = false
		b.mu.Unlock()
	}()
	for len(b.changes) > 0 {
		c := b.changes[0]
		b.changes = b.changes[1:]
		b.call(c)
	}
}

// call leaves the lock for the user's function and takes it again whatever that does.
func (b *Breaker) call(c change) {
	b.mu.Unlock()
	defer b.mu.Lock()
	b.settings.OnChange(c.from, c.to)
}

// current reports whether the ticket is of the present generation.
func (b *Breaker) current(t Ticket) bool {
	if g := b.admit.Load(); g != 0 {
		return g == t.generation
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.valid(t)
}

// valid reports whether the outcome of the ticket still counts. The lock is held.
func (b *Breaker) valid(t Ticket) bool {
	return t.generation == b.generation && (b.state != HalfOpen || b.out&t.probe != 0)
}

// mayPass reports whether an attempt after the given wait may be admitted, as far as can be told now: a wait that ends
// before an open breaker's cooldown is not worth beginning.
func (b *Breaker) mayPass(now instant, wait time.Duration) bool {
	if b.admit.Load() != 0 {
		return true
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.state != Open || now.add(wait) >= b.until
}
