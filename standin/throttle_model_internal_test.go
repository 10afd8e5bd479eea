package standin

import (
	"net/http"
	"strconv"
	"testing"
	"time"

	"pgregory.net/rapid"

	"holdfast/internal/wire"
)

// drawLimits draws small limits, so that they are met often.
func drawLimits(t *rapid.T) *Limits {
	l := &Limits{
		RequestsPerMinute:     rapid.IntRange(0, 30).Draw(t, "requests"),
		InputTokensPerMinute:  rapid.SampledFrom([]int{0, 100, 999, 5_000}).Draw(t, "input"),
		OutputTokensPerMinute: rapid.SampledFrom([]int{0, 50, 700}).Draw(t, "output"),
		TokensPerMinute:       rapid.SampledFrom([]int{0, -1, 500, 3_000}).Draw(t, "tokens"),
		Window:                rapid.SampledFrom([]time.Duration{0, 0, time.Second, 7 * time.Second}).Draw(t, "window"),
	}
	if rapid.Bool().Draw(t, "growing") {
		l.Growth = rapid.SampledFrom([]float64{1, 1.5, 2}).Draw(t, "growth")
	}
	return l
}

func drawClaim(t *rapid.T) claim {
	c := opus(rapid.IntRange(0, 1_200).Draw(t, "tokens asked"))
	if rapid.IntRange(0, 3).Draw(t, "dialect") == 0 {
		c = gpt(c.input, rapid.IntRange(0, 800).Draw(t, "max_tokens"))
	}
	return c
}

// TestDeniedRequestComesInExactlyAfterItsWait: not a nanosecond earlier, and then for sure, if nobody
// else comes in between; and a refused request changes nothing.
func TestDeniedRequestComesInExactlyAfterItsWait(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limits, th, at := drawLimits(t), newThrottle(morning), time.Duration(0)
		for range rapid.IntRange(1, 60).Draw(t, "requests") {
			at += time.Duration(rapid.Int64Range(0, int64(4*time.Second)).Draw(t, "elapsed"))
			c := drawClaim(t)
			k, d := th.admit(after(at), limits, c)
			if d == nil {
				k.settle(after(at), rapid.IntRange(0, c.input+50).Draw(t, "true input"), rapid.IntRange(0, 300).Draw(t, "output"))
				k.done()
				continue
			}
			if d.wait == neverFits {
				if want := int64(max(c.input, c.maxTokens)); d.requested <= d.limit || d.requested > want {
					t.Fatalf("never for %d of %d", d.requested, d.limit)
				}
				continue
			}
			if d.wait <= 0 || d.wait > time.Hour {
				t.Fatalf("a wait of %v", d.wait)
			}
			if _, early := th.admit(after(at+d.wait-1), limits, c); early == nil {
				t.Fatalf("came in before the wait of %v for %s was over", d.wait, d.name())
			}
			if seconds, err := strconv.Atoi(d.retryAfter()); err != nil || time.Duration(seconds)*time.Second < d.wait || time.Duration(seconds-1)*time.Second >= d.wait {
				t.Fatalf("retry-after %q for a wait of %v", d.retryAfter(), d.wait)
			}
			at += d.wait
			k, again := th.admit(after(at), limits, c)
			if again != nil {
				t.Fatalf("denied again after the wait of %v for %s: %+v", d.wait, d.name(), tell(again))
			}
			k.done()
		}
	})
}

// taking is a request that was let in.
type taking struct {
	at time.Duration
	n  [bucketKinds]int64
}

// TestNoWindowLetsInMoreThanTheLimitAndItsRefill: between any two moments the buckets give at most what they hold and
// what comes back meanwhile.
func TestNoWindowLetsInMoreThanTheLimitAndItsRefill(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limits, th, at := drawLimits(t), newThrottle(morning), time.Duration(0)
		r := limits.rates("")
		rate := [bucketKinds]int64{kindRequests: r.requests, kindInput: r.input, kindTokens: r.tokens}
		seen := map[wire.Dialect][]taking{}
		for range rapid.IntRange(1, 60).Draw(t, "requests") {
			at += time.Duration(rapid.Int64Range(0, int64(3*time.Second)).Draw(t, "elapsed"))
			c := drawClaim(t)
			if _, d := th.admit(after(at), limits, c); d != nil {
				continue
			}
			seen[c.dialect] = append(seen[c.dialect], taking{at, c.need()})
		}
		for dialect, all := range seen {
			for kind, limit := range rate {
				if limit == 0 || kind == kindOutput {
					continue
				}
				for i := range all {
					sum := int64(0)
					for _, k := range all[i:] {
						sum += k.n[kind]
						if bound := float64(limit) + float64(limit)*(k.at-all[i].at).Minutes(); float64(sum) > bound+1e-6 {
							t.Fatalf("%v: %d of kind %d from %v to %v, want at most %v", dialect, sum, kind, all[i].at, k.at, bound)
						}
					}
				}
			}
		}
	})
}

// TestHeadersAgreeWithTheNextDecision: without a window, what the headers of a reply call remaining is what the next request
// at the same moment can take, and not one more.
func TestHeadersAgreeWithTheNextDecision(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limits, th, at := drawLimits(t), newThrottle(morning), time.Duration(0)
		limits.Window, limits.Growth = 0, 0
		for range rapid.IntRange(1, 30).Draw(t, "requests") {
			at += time.Duration(rapid.Int64Range(0, int64(4*time.Second)).Draw(t, "elapsed"))
			c := gpt(rapid.IntRange(0, 400).Draw(t, "tokens asked"), 0)
			h := http.Header{}
			if k, d := th.admit(after(at), limits, c); d != nil {
				d.header(h)
			} else {
				k.header(h)
			}
			left := func(name string) int {
				if text := h.Get("x-ratelimit-remaining-" + name); text != "" {
					n, _ := strconv.Atoi(text)
					return n
				}
				return 1 << 30 // no limit
			}
			if n := left("tokens"); n < 1<<30 {
				if _, d := th.admit(after(at), limits, gpt(n+1, 0)); d == nil {
					t.Fatalf("%d tokens are let in where the headers say that %d remain", n+1, n)
				}
				if _, d := th.admit(after(at), limits, gpt(n, 0)); (d == nil) != (left("requests") > 0) {
					t.Fatalf("denial %+v where the headers say that %d tokens and %d requests remain", tell(d), n, left("requests"))
				}
			} else if _, d := th.admit(after(at), limits, gpt(1, 0)); (d == nil) != (left("requests") > 0) {
				t.Fatalf("denial %+v where the headers say that %d requests remain", tell(d), left("requests"))
			}
		}
	})
}

// TestResetIsWhenTheBucketIsFull: so long after the reply it is, and a nanosecond before it is not.
func TestResetIsWhenTheBucketIsFull(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limits := drawLimits(t)
		limits.Growth, limits.Window, limits.RequestsPerMinute = 0, 0, max(1, limits.RequestsPerMinute)
		c := opus(rapid.IntRange(0, 90).Draw(t, "tokens asked"))
		for kind := range bucketKinds {
			th := newThrottle(morning)
			k, d := th.admit(morning, limits, c)
			if d != nil {
				t.Fatalf("the first request is denied: %+v", tell(d))
			}
			row := k.rows[kind]
			if row.limit == 0 || row.full == 0 {
				if row.remaining != row.limit {
					t.Fatalf("kind %d is to be full, but has %d of %d", kind, row.remaining, row.limit)
				}
				continue
			}
			if before := th.peek(morning.Add(row.full-1), limits, c).rows[kind]; before.full != 1 || before.remaining == row.limit {
				t.Fatalf("kind %d is full %v before its time", kind, before.full)
			}
			if then := th.peek(morning.Add(row.full), limits, c).rows[kind]; then.full != 0 || then.remaining != row.limit {
				t.Fatalf("kind %d is to be full after %v, but has %d of %d", kind, row.full, then.remaining, row.limit)
			}
		}
	})
}

// naiveGrowth keeps the second of every request that came in.
type naiveGrowth []int64

func (g naiveGrowth) fits(second int64, factor float64, free int) bool {
	last, before := 0, 0
	for _, s := range g {
		switch age := second - s; {
		case age < 60:
			last++
		case age < 120:
			before++
		}
	}
	return last+1 <= max(free, int(factor*float64(before)))
}

func TestGrowthAgreesWithAListOfSeconds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		factor := rapid.SampledFrom([]float64{1, 1.25, 2}).Draw(t, "factor")
		var g growth
		var model naiveGrowth
		at := time.Duration(0)
		for range rapid.IntRange(1, 150).Draw(t, "requests") {
			at += time.Duration(rapid.SampledFrom([]int64{0, 0, 0, 1, 400, 1_000, 31_000, 130_000}).Draw(t, "elapsed")) * time.Millisecond
			g.advance(at)
			wait, second := g.wait(at, 0, factor, 10), int64(at/time.Second)
			if (wait == 0) != model.fits(second, factor, 10) {
				t.Fatalf("at %v: wait %v, the list says fits = %v", at, wait, !(wait == 0))
			}
			if wait > 0 {
				if due := at + wait; due%time.Second != 0 || !model.fits(int64(due/time.Second), factor, 10) || model.fits(int64(due/time.Second)-1, factor, 10) {
					t.Fatalf("at %v: a wait of %v is not the first moment that fits", at, wait)
				}
				continue
			}
			g.add()
			model = append(model, second)
		}
	})
}
