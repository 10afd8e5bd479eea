package standin

import "time"

// growthMinute is a minute in slots of a second.
const growthMinute = 60

// growth counts the requests of a key in the last minute and in the one before,
// second by second.
type growth struct {
	counts       [2 * growthMinute]uint32 // by second, modulo
	second       int64                    // the newest
	last, before int64                    // the sums of the two minutes
}

// advance moves both minutes on, so that they end with the second of now.
func (g *growth) advance(now time.Duration) {
	second := int64(now / time.Second)
	if second-g.second >= 2*growthMinute {
		*g = growth{second: second}
	}
	for g.second < second {
		g.step()
	}
}

// step moves both minutes on by a second.
func (g *growth) step() {
	g.second++
	newest := &g.counts[g.second%(2*growthMinute)] // the slot that falls out of the minute before is used anew
	g.before -= int64(*newest)
	*newest = 0
	moved := int64(g.counts[(g.second+growthMinute)%(2*growthMinute)])
	g.last -= moved
	g.before += moved
}

// add counts a request.
func (g *growth) add() {
	g.counts[g.second%(2*growthMinute)]++
	g.last++
}

// fits reports whether one more request is within the factor, or below the
// number that is free.
func (g *growth) fits(factor float64, free int64) bool {
	return g.last < max(free, int64(factor*float64(g.before)))
}

// wait returns how long after now one more request fits that cannot come before
// the earliest wait given, if none comes in between. What fits now may not fit later,
// when the minute before has gone quiet.
func (g *growth) wait(now, earliest time.Duration, factor float64, free int64) time.Duration {
	if earliest == 0 && g.fits(factor, free) {
		return 0
	}
	ahead := *g
	ahead.advance(now + earliest)
	if ahead.fits(factor, free) {
		return earliest
	}
	for range 2 * growthMinute { // then both minutes are empty
		if ahead.step(); ahead.fits(factor, free) {
			break
		}
	}
	return time.Duration(ahead.second)*time.Second - now
}

// growthFree returns how many requests a minute may always have.
func growthFree(requestsPerMinute int64) int64 { return max(10, requestsPerMinute/10) }
