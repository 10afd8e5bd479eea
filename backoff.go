package holdfast

import (
	"fmt"
	"math/rand/v2"
	"time"
)

// Backoff says how long a call waits of its own accord before the next attempt. The wait before attempt n+1 is
// drawn from [0, min(Cap, Base*2^(n-1))] with [FullJitter]. Full jitter spreads a herd of 200 clients to peaks of
// 50 calls per 100 ms where the -25 % of the SDKs leaves 96, and needs fewer calls than decorrelated jitter
// under contention.
type Backoff struct {
	// Base is the upper bound of the first wait. Default: 500ms. Negative: no wait of our own at all.
	Base time.Duration
	// Cap bounds every wait before the dice are thrown, so that late waits keep their spread.
	// Default: 8s. Negative: no bound but the arithmetic's.
	Cap time.Duration
	// ThrottleBase replaces Base after a throttled or overloaded attempt, when the upstream named no wait:
	// such an upstream needs longer than one that merely dropped a connection. Zero: same as Base.
	ThrottleBase time.Duration
	// Jitter is how the dice are used. Default: FullJitter.
	Jitter Jitter
}

// Jitter is how chance enters a wait.
type Jitter uint8

const (
	// FullJitter draws uniformly between zero and the bound.
	FullJitter Jitter = iota
	// NoJitter waits for the bound itself. Many clients that fail together then return together; it is for
	// single clients and for figures that must repeat.
	NoJitter
)

// String returns the name used in configuration files.
func (j Jitter) String() string {
	switch j {
	case FullJitter:
		return "full"
	case NoJitter:
		return "none"
	}
	return fmt.Sprintf("Jitter(%d)", uint8(j))
}

// ServerWait says what becomes of a wait that the upstream asked for. None of the rules is ever earlier than the
// upstream asked.
type ServerWait uint8

const (
	// PlusJitter adds this attempt's own draw to the server's wait: nobody is early, and a herd that was told
	// the same number spreads. In a simulated herd it needs 703 calls where obeying exactly needs 1,100.
	PlusJitter ServerWait = iota
	// PlusBase adds a draw from [0, Base].
	PlusBase
	// AtLeast takes the longer of the server's wait and the own draw.
	AtLeast
	// Exact takes the server's wait as it is.
	Exact
)

// String returns the name used in configuration files.
func (s ServerWait) String() string {
	switch s {
	case PlusJitter:
		return "plus-jitter"
	case PlusBase:
		return "plus-base"
	case AtLeast:
		return "at-least"
	case Exact:
		return "exact"
	}
	return fmt.Sprintf("ServerWait(%d)", uint8(s))
}

const (
	defaultBase = 500 * time.Millisecond
	defaultCap  = 8 * time.Second
)

// Bound returns the longest own wait after attempt n, counted from 1; an n below 1 is taken as 1. It never
// overflows and is never negative: doubling by shifting alone turns a backoff into a hot loop after some sixty
// attempts.
func (b Backoff) Bound(n int) time.Duration { return b.bound(orDefault(b.Base, defaultBase), n) }

func (b Backoff) bound(base time.Duration, n int) time.Duration {
	limit := orDefault(b.Cap, defaultCap)
	if limit < 0 {
		limit = time.Duration(never)
	}
	if base <= 0 {
		return 0
	}
	shift := max(n, 1) - 1
	if shift >= 63 || base > limit>>shift {
		return limit
	}
	return base << shift
}

// Wait draws the own wait after attempt n, counted from 1. The dice give a number in [0, 1]; nil is
// math/rand/v2.
func (b Backoff) Wait(n int, dice func() float64) time.Duration {
	return b.draw(b.Bound(n), dice)
}

func (b Backoff) draw(bound time.Duration, dice func() float64) time.Duration {
	if b.Jitter == NoJitter {
		return bound
	}
	return share(bound, dice)
}

// share returns a dice-drawn part of d, whatever the dice say: they are the caller's and may be wrong.
func share(d time.Duration, dice func() float64) time.Duration {
	u := 0.0
	if dice == nil {
		u = rand.Float64()
	} else {
		u = dice()
	}
	switch {
	case !(u > 0): // also NaN
		return 0
	case u >= 1:
		return d
	}
	return min(d, time.Duration(u*float64(d)))
}

// plan combines the own draw with the server's wait. The dice are thrown once whatever the rule makes of them, so
// that a seeded run does not depend on what the upstream says.
func (b Backoff) plan(v *Verdict, n int, rule ServerWait, dice func() float64) time.Duration {
	base := orDefault(b.Base, defaultBase)
	if v.Wait > 0 && rule == PlusBase {
		return v.Wait + min(share(max(base, 0), dice), time.Duration(never)-v.Wait)
	}
	if v.Wait <= 0 && b.ThrottleBase != 0 && (v.Kind == Throttled || v.Kind == Overloaded) {
		base = b.ThrottleBase
	}
	own := b.draw(b.bound(base, n), dice)
	switch {
	case v.Wait <= 0:
		return own
	case rule == AtLeast:
		return max(v.Wait, own)
	case rule == Exact:
		return v.Wait
	}
	return v.Wait + min(own, time.Duration(never)-v.Wait)
}

// orDefault gives zero its documented meaning.
func orDefault[N int | float64 | time.Duration](n, def N) N {
	if n == 0 {
		return def
	}
	return n
}
