package holdfast_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"holdfast"
)

// outputAPI enforces a limit of output as Anthropic does: whoever comes while anything is left is let in, and what he
// produces is counted second by second.
type outputAPI struct {
	mu     sync.Mutex
	limit  float64 // a minute
	chance *rand.Rand

	at                  time.Time
	level               float64
	accepted, throttled int
	tokens              int
}

// produce takes tokens, or asks whether there are any.
func (a *outputAPI) produce(n float64) (ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := time.Now()
	if a.at.IsZero() {
		a.level = a.limit
	} else {
		a.level = min(a.level+a.limit*now.Sub(a.at).Minutes(), a.limit)
	}
	a.at = now
	a.level -= n
	return a.level > 0
}

// ask takes twenty seconds and gives between 200 and 3800 tokens.
func (a *outputAPI) ask(context.Context) (any, error) {
	if ok := a.produce(0); !ok {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.throttled++
		return nil, reply(429, `{"error":{"type":"rate_limit_error","message":"x"}}`, "retry-after", "5")
	}
	a.mu.Lock()
	a.accepted++
	n := 200 + a.chance.IntN(3601)
	a.mu.Unlock()
	for range 20 {
		time.Sleep(time.Second)
		a.produce(float64(n) / 20)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.tokens += n
	return n, nil
}

// Answers of two thousand tokens on average, against a limit of eighty thousand a minute that the pace knows.
func TestUsualOutputKeepsALimitOfOutput(t *testing.T) {
	for _, row := range []struct {
		name      string
		estimate  int
		least     float64 // of the limit
		throttled [2]int  // at least and at most, in half an hour
	}{
		{"taken for nothing", 0, 0.95, [2]int{3000, 1_000_000}},
		{"the usual", holdfast.UsualOutput, 0.95, [2]int{0, 20}},
		{"the maximum", 64_000, 0, [2]int{0, 0}},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const limit = 80_000
				api := outputAPI{limit: limit, chance: rand.New(rand.NewPCG(1, 2))}
				p := holdfast.Policy{
					Pace: holdfast.NewPace(holdfast.Limits{OutputTokensPerMinute: limit}), Attempts: 1000, Deadline: -1,
					Estimate: func(context.Context) holdfast.Tokens { return holdfast.Tokens{Output: row.estimate} },
					Usage:    func(answer any) holdfast.Tokens { return holdfast.Tokens{Output: answer.(int)} },
				}
				start := time.Now()
				var all sync.WaitGroup
				for range 60 {
					all.Go(func() {
						for time.Since(start) < 30*time.Minute {
							if _, _, err := holdfast.Do(t.Context(), &p, api.ask); err != nil {
								t.Error(err)
							}
						}
					})
				}
				all.Wait()
				share := float64(api.tokens) / limit / time.Since(start).Minutes()
				t.Logf("%.1f %% of the limit, %d throttled, %d accepted", 100*share, api.throttled, api.accepted)
				if row.least == 0 && share > 0.6 {
					t.Error("the maximum is no worse")
				}
				if share < row.least || api.throttled < row.throttled[0] || api.throttled > row.throttled[1] {
					t.Errorf("want at least %.0f %%, and %d to %d throttled", 100*row.least, row.throttled[0], row.throttled[1])
				}
			})
		})
	}
}

func TestUsualOutput(t *testing.T) {
	now, p := time.Now(), holdfast.NewPace(holdfast.Limits{})
	usual := holdfast.Tokens{Input: 7, Output: holdfast.UsualOutput}
	if got := p.Expect(usual); got != (holdfast.Tokens{Input: 7, Output: 256}) {
		t.Errorf("before the first answer: %+v", got)
	}
	if got := p.Expect(holdfast.Tokens{Input: 7}); got != (holdfast.Tokens{Input: 7}) {
		t.Errorf("what is known changes to %+v", got)
	}
	settle := func(n, times int) {
		for range times {
			p.Settle(now, holdfast.Tokens{}, holdfast.Tokens{Output: n})
		}
	}
	for _, row := range []struct{ output, times, least, most int }{
		{1000, 1, 1000, 1000}, {3000, 1, 2000, 2000}, {0, 100, 2000, 2000}, {-5, 100, 2000, 2000}, // unknown is no answer
		{100, 200, 100, 110}, {5000, 32, 3000, 4000}, {5000, 200, 4980, 5000},
	} {
		settle(row.output, row.times)
		if got := p.Expect(usual).Output; got < row.least || got > row.most {
			t.Errorf("after %d times %d: %d, want %d to %d", row.times, row.output, got, row.least, row.most)
		}
	}
}

// Every pace of a call's targets expects its own, what is taken is given back when nothing came of it, and an answer that
// was cut teaches nothing.
func TestUsualOutputOfACall(t *testing.T) {
	now := time.Now()
	limits := holdfast.Limits{OutputTokensPerMinute: 10_000}
	one, two := holdfast.NewPace(limits), holdfast.NewPace(limits)
	two.Settle(now, holdfast.Tokens{Output: 700}, holdfast.Tokens{Output: 700 + 1})
	two.Refund(now, holdfast.Tokens{Output: 1})
	left := func(p *holdfast.Pace) int { return p.Status(now).Output.Left }
	p := holdfast.Policy{Targets: []holdfast.Target{{Name: "one", Pace: one}, {Name: "two", Pace: two}}, FallbackFirst: true}
	need := holdfast.Tokens{Output: holdfast.UsualOutput}
	c := holdfast.NewCall(&p)
	c.Begin(now, time.Time{}, need)
	if left(one) != 10_000-256 || left(two) != 10_000 {
		t.Fatalf("%d and %d left, want the first to hold 256", left(one), left(two))
	}
	c.Settle(now, holdfast.Verdict{Kind: holdfast.Throttled, Status: 429}, holdfast.Tokens{})
	if left(two) != 10_000-701 {
		t.Fatalf("%d left, want the second to hold 701", left(two))
	}
	c.Settle(now, holdfast.Verdict{}, holdfast.Tokens{Output: 301})
	if left(two) != 10_000-301 || two.Expect(need).Output != 501 {
		t.Errorf("%d left and %d expected, want 301 used and a mean of 501", left(two), two.Expect(need).Output)
	}
	cut := holdfast.NewCall(&holdfast.Policy{Pace: two, Attempts: -1})
	cut.Begin(now, time.Time{}, need)
	cut.Settle(now, holdfast.Verdict{Kind: holdfast.Broken}, holdfast.Tokens{Output: 3})
	if left(two) != 10_000-304 || two.Expect(need).Output != 501 {
		t.Errorf("%d left and %d expected after one that was cut", left(two), two.Expect(need).Output)
	}
	gone := holdfast.NewCall(&holdfast.Policy{Pace: two})
	gone.Begin(now, time.Time{}, need)
	if gone.Settle(now, holdfast.Verdict{Kind: holdfast.Cancelled}, holdfast.Tokens{}); left(two) != 10_000-304 {
		t.Errorf("%d left: what a call held whose caller left is lost", left(two))
	}
}
