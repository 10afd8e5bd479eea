package transport_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"holdfast"
	"holdfast/transport"
)

// counting is a base that knows how many bodies are open, in both directions, and panics now and then.
type counting struct {
	base      http.RoundTripper
	dice      func(n int) int
	requests  atomic.Int64
	responses atomic.Int64
}

var errPanic = errors.New("a base that panics")

func (c *counting) RoundTrip(req *http.Request) (*http.Response, error) {
	if c.dice(50) == 0 {
		req.Body.Close()
		panic(errPanic) //nolint:forbidigo // it is what is tested
	}
	c.requests.Add(1)
	req.Body = &counted{ReadCloser: req.Body, open: &c.requests}
	resp, err := c.base.RoundTrip(req)
	if err == nil {
		c.responses.Add(1)
		resp.Body = &counted{ReadCloser: resp.Body, open: &c.responses}
	}
	return resp, err
}

type counted struct {
	io.ReadCloser
	open *atomic.Int64
	once sync.Once
}

func (c *counted) Close() error {
	c.once.Do(func() { c.open.Add(-1) })
	return c.ReadCloser.Close()
}

// Ten thousand calls meet every fault there is, callers who leave, readers who stop and a base that panics. Nothing may be
// left behind: no goroutine, no open body, no connection beyond the pool, no ticket of the breaker, no place in the pace.
func TestStormLeavesNothingBehind(t *testing.T) {
	const seed, workers = 7, 20
	calls := 10_000
	if testing.Short() {
		calls = 2_000
	}
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		random := rand.New(rand.NewPCG(seed, seed))
		dice := func(n int) int {
			mu.Lock()
			defer mu.Unlock()
			return random.IntN(n)
		}
		faults := []http.HandlerFunc{
			good, good, good, stream(complete), stream(complete), stream(complete),
			respond(429, limited, "retry-after: 1"), respond(529, overloaded), respond(500, ""), respond(400, invalid),
			respond(200, "<html>"), respond(200, message[:50]), respond(503, strings.Repeat("x", 100<<10)),
			stream(), stream(preamble, failing), stream(preamble, delta, failing), stream(preamble, delta),
			then(stream(preamble), abort), then(stream(preamble, delta), abort), then(stream(start), reset), reset, abort,
			then(stream(preamble, delta), hang), hang, then(respond(200, message[:50]), flush, abort), then(rest(3*time.Second), good),
		}
		u := serve(t, func(w http.ResponseWriter, r *http.Request) { faults[dice(len(faults))](w, r) })
		pool := u.client.Transport.(*http.Transport)
		pool.MaxIdleConnsPerHost = workers
		base := &counting{base: pool, dice: dice}
		policy := &holdfast.Policy{
			Deadline: 30 * time.Second, AttemptTimeout: 10 * time.Second,
			Breaker: holdfast.NewBreaker(holdfast.BreakerSettings{Failures: 30, Ratio: -1, Cooldown: time.Second, Ramp: -1}),
			Pace:    holdfast.NewPace(holdfast.Limits{RequestsPerMinute: 60_000}),
			Budget:  holdfast.NewBudget(holdfast.BudgetSettings{Capacity: 1 << 20}),
		}
		tr := &transport.Transport{Policy: policy, Base: base, FirstContent: 5 * time.Second, Idle: 4 * time.Second}
		var group sync.WaitGroup
		var outcomes sync.Map
		for range workers {
			group.Go(func() {
				for range calls / workers {
					n, _ := outcomes.LoadOrStore(stormCall(t.Context(), tr, u.URL, dice), new(atomic.Int64))
					n.(*atomic.Int64).Add(1)
				}
			})
		}
		group.Wait()
		u.client.CloseIdleConnections()
		synctest.Wait()
		if n := base.responses.Load(); n != 0 {
			t.Errorf("%d response bodies are open", n)
		}
		if n := base.requests.Load(); n != 0 {
			t.Errorf("%d request bodies are open", n)
		}
		if s := u.net.Stats(); s.Open != 0 || s.Peak > 2*workers {
			t.Errorf("%d connections are open, the most were %d", s.Open, s.Peak)
		}
		for _, want := range []string{"answer", "reply", "cut", "left", "panic"} {
			if n, ok := outcomes.Load(want); !ok {
				t.Errorf("no call ended with %q", want)
			} else {
				t.Logf("%s: %d", want, n.(*atomic.Int64).Load())
			}
		}
		// The breaker and the pace let the next call through.
		time.AfterFunc(10*time.Minute, func() {})
		<-time.After(10 * time.Minute)
		u.mu.Lock()
		u.script = []http.HandlerFunc{good}
		u.mu.Unlock()
		tr.Base = pool
		resp, err := tr.RoundTrip(request(t, t.Context(), "POST", u.URL+"/v1/messages", strings.NewReader(prompt)))
		if err != nil {
			t.Fatal(err)
		}
		expectReply(t, resp, 200, message)
		resp.Body.Close()
	})
}

func stormCall(ctx context.Context, tr http.RoundTripper, url string, dice func(int) int) (outcome string) {
	defer func() {
		if p := recover(); p != nil {
			if outcome = "panic"; p != error(errPanic) {
				outcome = fmt.Sprint("another panic: ", p)
			}
		}
	}()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if dice(5) == 0 {
		defer time.AfterFunc(time.Duration(dice(5000))*time.Millisecond, cancel).Stop()
	}
	text := prompt
	if dice(2) == 0 {
		text = streamPrompt
	}
	path := []string{"/v1/messages", "/v1/messages", "/v1/files"}[dice(3)]
	req, err := http.NewRequestWithContext(ctx, "POST", url+path, newBody(text))
	if err != nil {
		return err.Error()
	}
	resp, err := tr.RoundTrip(req)
	if err != nil {
		return "left"
	}
	defer resp.Body.Close()
	if dice(10) == 0 { // a reader who stops
		_, _ = resp.Body.Read(make([]byte, dice(1000)+1))
		return "left"
	}
	_, err = io.Copy(io.Discard, resp.Body)
	switch {
	case resp.StatusCode >= 400:
		return "reply"
	case err == nil:
		return "answer"
	}
	return "cut"
}
