package holdfast_test

import (
	"context"
	"math/rand/v2"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"holdfast"
)

// silentAPI enforces a limit and tells nothing of it: neither in headers nor by a time to wait.
type silentAPI struct {
	mu       sync.Mutex
	limit    func(since time.Duration) float64 // requests per minute
	burst    time.Duration                     // how much of it may be saved up
	inFlight int                               // calls at once; 0: any number
	takes    time.Duration                     // a call; a throttle comes after 50ms

	start    time.Time
	at       time.Time
	level    float64
	busy     int
	arrivals []arrival
}

type arrival struct {
	at time.Duration
	ok bool
}

func (a *silentAPI) arrive() (ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := time.Now()
	since := now.Sub(a.start)
	limit := a.limit(since)
	full := max(limit*a.burst.Minutes(), 1)
	if a.at.IsZero() {
		a.level = full
	} else {
		a.level = min(a.level+limit*now.Sub(a.at).Minutes(), full)
	}
	a.at = now
	if ok = a.level >= 1-1e-9 && (a.inFlight == 0 || a.busy < a.inFlight); ok {
		a.level--
		a.busy++
	}
	a.arrivals = append(a.arrivals, arrival{since, ok})
	return ok
}

var throttledReply = &apiError{StatusCode: 429, Response: &http.Response{StatusCode: 429, Header: http.Header{}}, body: `{"message":"Too many requests"}`}

func (a *silentAPI) ask(context.Context) (int, error) {
	if !a.arrive() {
		time.Sleep(50 * time.Millisecond)
		return 0, throttledReply
	}
	time.Sleep(a.takes)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.busy--
	return 1, nil
}

// load has that many workers call without a pause until the time is over.
func (a *silentAPI) load(t *testing.T, pace *holdfast.Pace, workers int, over time.Duration) {
	t.Helper()
	p := holdfast.Policy{Pace: pace, Attempts: 1000, Deadline: -1}
	a.start = time.Now()
	var all sync.WaitGroup
	for range workers {
		all.Go(func() {
			for time.Since(a.start) < over {
				if _, _, err := holdfast.Do(t.Context(), &p, a.ask); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
}

// between counts what came in a stretch of time.
func (a *silentAPI) between(from, to time.Duration) (accepted, throttled int) {
	for _, x := range a.arrivals {
		switch {
		case x.at < from || x.at >= to:
		case x.ok:
			accepted++
		default:
			throttled++
		}
	}
	return accepted, throttled
}

type perMinute float64

func (limit perMinute) always(time.Duration) float64 { return float64(limit) }

// but is a limit that is another one for a while.
func (limit perMinute) but(other perMinute, from, to time.Duration) func(time.Duration) float64 {
	return func(since time.Duration) float64 {
		if since >= from && since < to {
			return float64(other)
		}
		return float64(limit)
	}
}

// stretch is what is to be seen of an upstream between two times.
type stretch struct {
	from, to  time.Duration
	least     float64 // accepted a minute
	throttled float64 // at most, as a share of what came in
}

// Thirty workers without a pause, from the first moment on, against limits of which nothing is told.
func TestBlindPaceFindsTheLimit(t *testing.T) {
	const m, sec = time.Minute, time.Second
	for _, row := range []struct {
		name  string
		api   *silentAPI
		herd  int // throttles in the first minute, at most
		waits []stretch
	}{
		{"a minute may be saved up", &silentAPI{limit: perMinute(60).always, burst: m, takes: 2 * sec}, 120, []stretch{{1 * m, 5 * m, 57, 0.03}, {5 * m, 30 * m, 59, 0.015}}},
		{"ten seconds may be", &silentAPI{limit: perMinute(60).always, burst: 10 * sec, takes: 2 * sec}, 120, []stretch{{1 * m, 5 * m, 57, 0.03}, {5 * m, 30 * m, 59, 0.015}}},
		{"enforced by the second", &silentAPI{limit: perMinute(60).always, burst: sec, takes: 2 * sec}, 120, []stretch{{1 * m, 5 * m, 50, 0.02}, {5 * m, 30 * m, 55, 0.015}}},
		{"calls of no time", &silentAPI{limit: perMinute(60).always, burst: m, takes: sec / 5}, 120, []stretch{{1 * m, 5 * m, 57, 0.03}, {5 * m, 30 * m, 59, 0.015}}},
		{"long calls", &silentAPI{limit: perMinute(60).always, burst: m, takes: 20 * sec}, 1, []stretch{{1 * m, 2 * m, 60, 0.55}, {2 * m, 5 * m, 57, 0.04}, {5 * m, 30 * m, 59, 0.015}}},
		{"a tenth of it", &silentAPI{limit: perMinute(6).always, burst: m, takes: 2 * sec}, 120, []stretch{{5 * m, 30 * m, 5.4, 0.08}}},
		{"calls in flight are counted", &silentAPI{limit: perMinute(1e9).always, burst: m, inFlight: 8, takes: 2 * sec}, 110, []stretch{{1 * m, 5 * m, 180, 0.02}, {5 * m, 30 * m, 200, 0.015}}},
		{"it halves and doubles", &silentAPI{limit: perMinute(60).but(30, 10*m, 20*m), burst: m, takes: 2 * sec}, 120, []stretch{
			{1 * m, 10 * m, 58, 0.02}, {10 * m, 12 * m, 28, 0.15}, {12 * m, 20 * m, 28, 0.025}, {20 * m, 25 * m, 36, 0.12}, {25 * m, 30 * m, 57, 0.1}}},
		{"it halves and doubles by the second", &silentAPI{limit: perMinute(60).but(30, 10*m, 20*m), burst: sec, takes: 2 * sec}, 120, []stretch{
			{1 * m, 10 * m, 52, 0.02}, {10 * m, 12 * m, 23, 0.15}, {12 * m, 20 * m, 27, 0.025}, {20 * m, 25 * m, 30, 0.03}, {25 * m, 30 * m, 54, 0.03}}},
		{"nothing goes for a while", &silentAPI{limit: perMinute(60).but(0, 10*m, 12*m), burst: sec, takes: 2 * sec}, 120, []stretch{{1 * m, 10 * m, 52, 0.02}, {13 * m, 30 * m, 55, 0.02}}},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				api := row.api
				api.load(t, holdfast.NewPace(holdfast.Limits{FollowHeaders: true}), 30, 30*time.Minute)
				_, herd := api.between(0, time.Minute)
				t.Logf("%d throttles in the first minute", herd)
				if herd > row.herd {
					t.Errorf("want at most %d", row.herd)
				}
				for _, s := range row.waits {
					accepted, throttled := api.between(s.from, s.to)
					rate, share := float64(accepted)/(s.to-s.from).Minutes(), float64(throttled)/float64(accepted+throttled)
					t.Logf("%v to %v: %.1f accepted a minute, %.1f %% throttled", s.from, s.to, rate, 100*share)
					if rate < s.least || share > s.throttled {
						t.Errorf("want at least %.1f a minute, and at most %.1f %% throttled", s.least, 100*s.throttled)
					}
				}
			})
		})
	}
}

// The same load without learning shows that it is the learning that keeps throttles away.
func TestBlindPaceOnlyWhenItFollows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pace := holdfast.NewPace(holdfast.Limits{})
		api := silentAPI{limit: perMinute(60).always, burst: time.Minute, takes: 2 * time.Second}
		api.load(t, pace, 30, 5*time.Minute)
		if accepted, throttled := api.between(time.Minute, 5*time.Minute); throttled < 5*accepted {
			t.Errorf("%d throttled of %d accepted", throttled, accepted)
		}
		if got := pace.Status(time.Now()).Requests; got != (holdfast.Level{}) {
			t.Errorf("learnt %+v", got)
		}
	})
}

// Calls that come in bursts, far fewer than the limit lets through but faster than it is enforced, are let go one after
// the other, and are done sooner than without.
func TestBlindPaceSpreadsBursts(t *testing.T) {
	var took [2]time.Duration
	var throttled [2]int
	for i, follow := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			api := silentAPI{limit: perMinute(60).always, burst: time.Second, takes: time.Second, start: time.Now()}
			chance := rand.New(rand.NewPCG(1, 1))
			dice := func() float64 {
				api.mu.Lock()
				defer api.mu.Unlock()
				return chance.Float64()
			}
			p := holdfast.Policy{Pace: holdfast.NewPace(holdfast.Limits{FollowHeaders: follow}), Attempts: 1000, Deadline: -1, Dice: dice}
			for range 60 {
				began := time.Now()
				api.round(t, &p, 5)
				took[i] += time.Since(began) / 60
				time.Sleep(20 * time.Second)
			}
			_, throttled[i] = api.between(0, time.Hour)
		})
	}
	t.Logf("a burst takes %v without and %v with, %d and %d throttles", took[0], took[1], throttled[0], throttled[1])
	if took[1] > took[0] || throttled[1] > throttled[0]*3/4 {
		t.Error("want it to take no longer, with three in four of the throttles at most")
	}
}

// round makes that many calls at once, and waits for all.
func (a *silentAPI) round(t *testing.T, p *holdfast.Policy, calls int) {
	t.Helper()
	var all sync.WaitGroup
	for range calls {
		all.Go(func() {
			if _, _, err := holdfast.Do(t.Context(), p, a.ask); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
}

// What the upstream says comes first: no call goes before the time that it names, and limits that it tells later replace
// the guess.
func TestBlindPaceHeedsTheUpstream(t *testing.T) {
	const sec = time.Second
	limited := func() (*holdfast.Pace, time.Time) {
		p, now := holdfast.NewPace(holdfast.Limits{FollowHeaders: true}), time.Now()
		for range 10 {
			for range 5 {
				p.Allow(now, holdfast.Tokens{})
				p.Hold(now, now)
			}
			now = now.Add(6 * sec)
		}
		return p, now
	}
	p, now := limited()
	if got := p.Status(now).Requests.PerMinute; got == 0 || got > 60 {
		t.Fatalf("%d a minute before: nothing is learnt", got)
	}
	p.Hold(now, now.Add(40*sec))
	if p.Allow(now.Add(40*sec-1), holdfast.Tokens{}) || !p.Allow(now.Add(40*sec), holdfast.Tokens{}) {
		t.Error("the time that the upstream names is not kept")
	}
	now = now.Add(time.Minute)
	told := replyHeader("X-Ratelimit-Limit-Requests", "600", "X-Ratelimit-Remaining-Requests", "595", "X-Ratelimit-Reset-Requests", "500ms")
	p.Follow(now, told)
	if got := p.Status(now.Add(time.Minute)).Requests; got != (holdfast.Level{PerMinute: 600, Left: 600}) {
		t.Errorf("after headers: %+v, want what they tell", got)
	}
	for range 10 {
		now = now.Add(6 * sec)
		p.Hold(now, now)
	}
	if got := p.Status(now).Requests.PerMinute; got != 600 {
		t.Errorf("a throttle where limits are told makes %d a minute of 600", got)
	}
	p, now = limited()
	p.Follow(now, replyHeader("X-Ratelimit-Limit-Tokens", "60000", "X-Ratelimit-Remaining-Tokens", "5000"))
	if got := p.Status(now).Requests; got != (holdfast.Level{}) {
		t.Errorf("an upstream that limits tokens alone: %+v requests", got)
	}
}

// A configured limit is a ceiling, whatever the upstream would let through.
func TestBlindPaceKeepsBelowTheConfigured(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := silentAPI{limit: perMinute(60).but(20, 5*time.Minute, 10*time.Minute), burst: time.Second, takes: time.Second}
		pace := holdfast.NewPace(holdfast.Limits{RequestsPerMinute: 40, Burst: time.Second, FollowHeaders: true})
		api.load(t, pace, 30, 25*time.Minute)
		for _, s := range []struct{ from, to, least, most, throttled int }{{0, 5, 39, 41, 0}, {6, 10, 17, 20, 8}, {20, 25, 39, 41, 0}} {
			accepted, throttled := api.between(time.Duration(s.from)*time.Minute, time.Duration(s.to)*time.Minute)
			if rate := accepted / (s.to - s.from); rate < s.least || rate > s.most || throttled > s.throttled {
				t.Errorf("minutes %d to %d: %d accepted a minute, want %d to %d; %d throttled, want at most %d", s.from, s.to, rate, s.least, s.most, throttled, s.throttled)
			}
		}
		if got := pace.Status(time.Now()).Requests.PerMinute; got != 40 {
			t.Errorf("%d a minute in the end, want what is configured", got)
		}
	})
}

// A throttled upstream is asked once in a while, however long it lasts, so that its end is noticed.
func TestBlindPaceKeepsProbing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := silentAPI{limit: perMinute(0).always, burst: time.Second, takes: time.Second}
		api.level = -1e9
		api.at = time.Now()
		p := holdfast.Policy{Pace: holdfast.NewPace(holdfast.Limits{FollowHeaders: true}), Attempts: 1000, Deadline: 20 * time.Minute}
		api.start = time.Now()
		var all sync.WaitGroup
		for range 30 {
			all.Go(func() { _, _, _ = holdfast.Do(t.Context(), &p, api.ask) })
		}
		all.Wait()
		last := time.Duration(0)
		for _, x := range api.arrivals {
			if x.at-last > 11*time.Second {
				t.Errorf("nothing was sent from %v to %v", last, x.at)
			}
			last = x.at
		}
		if n := len(api.arrivals); last < 19*time.Minute || n > 20*7+110 {
			t.Errorf("%d requests until %v, want no more than seven a minute after the first", n, last)
		}
	})
}
