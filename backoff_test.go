package holdfast_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"testing/quick"
	"time"

	"holdfast"
)

const longest = time.Duration(math.MaxInt64)

// oddDurations are those where arithmetic goes wrong.
var oddDurations = []time.Duration{0, 1, -1, 2, time.Second, time.Hour, longest, longest - 1, longest / 2, longest/2 + 1, -longest, math.MinInt64}

var oddDice = []float64{0, 1, 0.5, math.Nextafter(1, 0), math.SmallestNonzeroFloat64, -1, 2, math.MaxFloat64, -math.MaxFloat64, math.Inf(1), math.Inf(-1), math.NaN()}

var oddAttempts = []int{math.MinInt, -1, 0, 1, 2, 3, 31, 32, 33, 61, 62, 63, 64, 65, 66, 1000, math.MaxInt}

func wantWithin(t *testing.T, b holdfast.Backoff, n int, dice float64) bool {
	t.Helper()
	bound := b.Bound(n)
	limit := b.Cap
	switch {
	case limit == 0:
		limit = 8 * time.Second
	case limit < 0:
		limit = longest
	}
	if bound < 0 || bound > limit {
		t.Errorf("%+v: Bound(%d) = %v, want it from 0 to %v", b, n, bound, limit)
		return false
	}
	if (bound == 0) != (b.Base < 0) {
		t.Errorf("%+v: Bound(%d) = %v: only a negative base waits for nothing", b, n, bound)
		return false
	}
	wait := b.Wait(n, func() float64 { return dice })
	if wait < 0 || wait > bound || b.Jitter == holdfast.NoJitter && wait != bound {
		t.Errorf("%+v: Wait(%d) with dice %v = %v, want it from 0 to %v", b, n, dice, wait, bound)
		return false
	}
	return true
}

func TestBackoffStaysInItsBoundWhateverTheNumbers(t *testing.T) {
	for _, base := range oddDurations {
		for _, limit := range oddDurations {
			for _, jitter := range []holdfast.Jitter{holdfast.FullJitter, holdfast.NoJitter} {
				for _, n := range oddAttempts {
					for _, dice := range oddDice {
						if !wantWithin(t, holdfast.Backoff{Base: base, Cap: limit, Jitter: jitter}, n, dice) {
							return
						}
					}
				}
			}
		}
	}
	within := func(base, limit int64, n int, dice float64) bool {
		return wantWithin(t, holdfast.Backoff{Base: time.Duration(base), Cap: time.Duration(limit)}, n, dice) &&
			wantWithin(t, holdfast.Backoff{Base: time.Duration(base >> 30), Cap: time.Duration(limit)}, n%70, dice)
	}
	if err := quick.Check(within, &quick.Config{MaxCount: 5000}); err != nil {
		t.Error(err)
	}
}

// Doubling by shift wrapped round after some 64 attempts: the wait became 0 or negative and the loop span.
func TestB35_DoublingNeverWraps(t *testing.T) {
	for _, limit := range []time.Duration{time.Hour, -1} {
		b := holdfast.Backoff{Base: time.Second, Cap: limit}
		want, last := time.Second, time.Duration(0)
		for n := range 201 {
			got := b.Bound(n)
			if n > 1 && want < longest/2 {
				want *= 2
			} else if n > 1 {
				want = longest
			}
			if limit > 0 {
				want = min(want, limit)
			}
			if got != want || got < last || got <= 0 {
				t.Fatalf("cap %v: Bound(%d) = %v after %v, want %v", limit, n, got, last, want)
			}
			last = got
			for _, dice := range oddDice {
				if wait := b.Wait(n, func() float64 { return dice }); wait < 0 || wait > got {
					t.Fatalf("cap %v: Wait(%d) with dice %v = %v", limit, n, dice, wait)
				}
			}
		}
	}
}

// The ceiling was forgotten for answers with headers: waits doubled without limit.
func TestB32_TwelveWaitsStayBelowTheCap(t *testing.T) {
	b := holdfast.Backoff{Cap: 30 * time.Second}
	for n, want := range []time.Duration{500, 1000, 2000, 4000, 8000, 16000, 30000, 30000, 30000, 30000, 30000, 30000} {
		if got := b.Wait(n+1, func() float64 { return 1 }); got != want*time.Millisecond {
			t.Errorf("wait %d is up to %v, want %v", n+1, got, want*time.Millisecond)
		}
	}
}

func TestBackoffDefaults(t *testing.T) {
	for n, want := range []time.Duration{500, 500, 1000, 2000, 4000, 8000, 8000} {
		if got := (holdfast.Backoff{}).Bound(n); got != want*time.Millisecond {
			t.Errorf("Bound(%d) = %v, want %v", n, got, want*time.Millisecond)
		}
	}
}

// The cap comes before the dice: late waits keep their spread instead of piling up at the cap.
func TestBackoffLateWaitsAreSpreadEvenly(t *testing.T) {
	chance := rand.New(rand.NewPCG(1, 5))
	for name, dice := range map[string]func() float64{"given dice": chance.Float64, "own dice": nil} {
		const draws = 40_000
		var tenths [10]int
		for range draws {
			wait := (holdfast.Backoff{}).Wait(20, dice)
			tenths[min(9, int(10*wait/(8*time.Second)))]++
		}
		for i, n := range tenths {
			if n < draws/10-600 || n > draws/10+600 { // ten standard deviations
				t.Errorf("%s: %d of %d waits in tenth %d of the cap: %v", name, n, draws, i, tenths)
			}
		}
	}
}

func TestBackoffNames(t *testing.T) {
	for got, want := range map[string]string{
		holdfast.FullJitter.String(): "full", holdfast.NoJitter.String(): "none", holdfast.Jitter(9).String(): "Jitter(9)",
		holdfast.PlusJitter.String(): "plus-jitter", holdfast.PlusBase.String(): "plus-base", holdfast.AtLeast.String(): "at-least",
		holdfast.Exact.String(): "exact", holdfast.ServerWait(9).String(): "ServerWait(9)",
	} {
		if got != want {
			t.Errorf("String() = %q, want %q", got, want)
		}
	}
}
