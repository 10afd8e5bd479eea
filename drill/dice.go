package drill

import "gonum.org/v1/gonum/mathext/prng"

// dice returns CPython's random.Random(seed).random: the published waits come from it. A seed is the key array of its
// 32-bit words, lowest first; a number in [0, 1) takes 53 bits, 27 from one output and 26 from the next.
func dice(seed uint64) func() float64 {
	mt := prng.NewMT19937()
	keys := []uint32{uint32(seed)}
	if high := uint32(seed >> 32); high != 0 {
		keys = append(keys, high)
	}
	mt.SeedFromKeys(keys)
	return func() float64 {
		a, b := mt.Uint32()>>5, mt.Uint32()>>6
		return (float64(a)*(1<<26) + float64(b)) / (1 << 53)
	}
}

// constant dice always fall the same way.
func constant(u float64) func() float64 { return func() float64 { return u } }
