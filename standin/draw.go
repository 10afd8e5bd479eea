package standin

import (
	"math"
	"math/rand/v2"
	"time"
)

// subject is what a draw is about. The same seed, name, job and attempt draw the
// same, in whatever order requests arrive; what is drawn besides does not matter.
type subject struct {
	seed    uint64
	job     string
	attempt int
}

// The names that latency draws go by. No rule or incident can have one: theirs
// follow a mark of their own.
const (
	drawFirst   = "latency/first"
	drawToken   = "latency/token"
	drawShare   = "share/"
	oddMultiple = 0x9e3779b97f4a7c15 // splitmix64's increment, 2^64 over the golden ratio
)

// dice returns a generator of its own for one thing that is drawn.
func (s subject) dice(mark, name string) dice {
	h := fnv(fnv(fnv(fnvOffset, mark), name), s.job)
	h = mix(h ^ mix(s.seed+oddMultiple))
	h = mix(h + oddMultiple*uint64(s.attempt))
	var d dice
	d.pcg.Seed(h, mix(h+oddMultiple))
	return d
}

// hit draws whether the subject is in the share that name has of its requests.
func (s subject) hit(name string, share float64) bool {
	if share >= 1 {
		return true
	}
	d := s.dice(drawShare, name)
	return d.next() < share
}

// dice draws numbers. Its algorithm is PCG-DXSM, so that a seed means the same
// with every version of Go.
type dice struct{ pcg rand.PCG }

// next returns a number from 0 to just below 1.
func (d *dice) next() float64 { return float64(d.pcg.Uint64()>>11) / (1 << 53) }

const fnvOffset, fnvPrime = 0xcbf29ce484222325, 0x100000001b3

// fnv is FNV-1a, with the length behind the text: "ab", "c" is not "a", "bc".
func fnv(h uint64, text string) uint64 {
	for i := range len(text) {
		h = (h ^ uint64(text[i])) * fnvPrime
	}
	return mix(h ^ uint64(len(text)))
}

// mix is the finalizer of splitmix64: every bit of the result hangs on every bit of x.
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// z99 is the standard normal quantile of 0.99.
const z99 = 2.3263478740408408

// at returns the time that the part u of all draws stays below.
func (s Spread) at(u float64) time.Duration {
	if s.Median == 0 {
		return s.Min + time.Duration(u*float64(s.Max-s.Min))
	}
	z := math.Sqrt2 * math.Erfinv(2*u-1)
	sigma := math.Log(float64(s.P99)/float64(s.Median)) / z99
	x := float64(s.Median) * math.Exp(sigma*z)
	switch {
	case math.IsNaN(x): // u is 0, and the spread has no width
		return s.Median
	case x >= math.MaxInt64:
		return math.MaxInt64
	}
	return time.Duration(x)
}

// constant reports whether every draw is the same.
func (s Spread) constant() bool { return s.Min == s.Max && s.Median == s.P99 }

// at returns the share at a part of the way through an incident, from 0 to 1.
func (r Ramp) at(part float64) float64 {
	if r == (Ramp{}) {
		return 1
	}
	return r.From + (r.To-r.From)*part
}

// tokenTimes draws the time that each content event takes. The zero value takes none.
type tokenTimes struct {
	spread Spread
	dice   dice
}

// next returns the time before the next content event.
func (t *tokenTimes) next() time.Duration {
	if t.spread.constant() {
		return t.spread.at(0.5)
	}
	return t.spread.at(t.dice.next())
}
