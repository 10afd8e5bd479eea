package holdfast_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"holdfast"
)

var (
	rejected  = anthropicError(401, "authentication_error")
	forbidden = anthropicError(403, "permission_error")
	limited   = anthropicError(429, "rate_limit_error", "retry-after", "2")
	overload  = anthropicError(529, "overloaded_error")
	outOfCash = reply(429, `{"type":"error","error":{"type":"rate_limit_error","message":"x","details":{"error_code":"enforced_spend_limit_reached"}}}`)
)

// keys is a pool of that many credentials, k1, k2 and so on, each with a pace of its own.
func keys(n int) (pool []holdfast.Target) {
	for i := range n {
		name := fmt.Sprint("k", i+1)
		pool = append(pool, holdfast.Target{Name: name, Credential: name, Pool: "a", Model: "m", Pace: holdfast.NewPace(holdfast.Limits{})})
	}
	return pool
}

// perTarget answers each target by its own script.
type perTarget struct {
	upstream
	scripts map[string][]error // nil is an answer, and so is whatever comes after the script
}

func (u *perTarget) ask(ctx context.Context) (string, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	target, _ := holdfast.TargetOf(ctx)
	u.seen = append(u.seen, time.Since(u.start))
	u.names = append(u.names, target.Name)
	script := u.scripts[target.Name]
	if len(script) == 0 {
		return "answer", nil
	}
	u.scripts[target.Name] = script[1:]
	return "answer", script[0]
}

func scripts(s map[string][]error) *perTarget {
	return &perTarget{upstream: upstream{start: time.Now()}, scripts: s}
}

// asked counts the requests that a target saw.
func (u *perTarget) asked(target string) (n int) {
	for _, name := range u.names {
		if name == target {
			n++
		}
	}
	return n
}

// One counter for all keys and retries: with more dead keys than retries a call failed while good keys stood unused.
func TestB98_DeadKeysCostNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		budget := holdfast.NewBudget(holdfast.BudgetSettings{Refill: -1})
		p := holdfast.Policy{Attempts: 3, Budget: budget, Targets: keys(5), Dice: top}
		dead := []error{rejected, rejected}
		u := scripts(map[string][]error{"k1": dead, "k2": dead, "k3": {forbidden}, "k4": dead})
		_, trace, err := holdfast.Do(t.Context(), &p, u.ask)
		if err != nil || trace.Elapsed != 0 || trace.Source != holdfast.Live || budget.Level(time.Now()) != 100 {
			t.Fatalf("%v, budget %v, %s", err, budget.Level(time.Now()), trace.Summary())
		}
		if d := diff([]string{"k1", "k2", "k3", "k4", "k5"}, u.names); d != "" {
			t.Error("asked:", d)
		}
		// The next call knows of the dead keys, for a minute.
		_, trace, err = holdfast.Do(t.Context(), &p, u.ask)
		if err != nil || trace.Sent() != 1 || trace.Target() != "k5" || trace.Skips()[0].Reason != holdfast.ErrRejected {
			t.Errorf("%v, %s", err, trace.Summary())
		}
		if s := p.Targets[0].Pace.Status(time.Now()); s.Rejected != time.Minute || s.Held != 0 {
			t.Errorf("status of a dead key: %+v", s)
		}
		time.Sleep(time.Minute)
		if _, trace, err = holdfast.Do(t.Context(), &p, u.ask); err != nil || trace.Attempts()[0].Target != "k1" {
			t.Errorf("after its rest: %v, %s", err, trace.Summary())
		}
	})
}

func TestPoolOutcomes(t *testing.T) {
	other := holdfast.Target{Name: "b", Credential: "kb", Model: "m2"}
	for _, row := range []struct {
		name    string
		policy  holdfast.Policy
		scripts map[string][]error
		asked   []string
		elapsed time.Duration
		reason  error // nil: an answer, or the upstream's own error
		own     error
	}{
		{
			name:   "a throttled key is left at once",
			policy: holdfast.Policy{Targets: keys(2)}, scripts: map[string][]error{"k1": {limited}},
			asked: []string{"k1", "k2"},
		},
		{
			name:   "when all throttle, the first to be free is waited for",
			policy: holdfast.Policy{Targets: keys(3)},
			scripts: map[string][]error{
				"k1": {limited}, "k2": {anthropicError(429, "rate_limit_error", "retry-after", "1")}, "k3": {limited},
			},
			asked: []string{"k1", "k2", "k3", "k2"}, elapsed: time.Second,
		},
		{
			name:   "attempts are counted by rounds, not by keys",
			policy: holdfast.Policy{Attempts: 2, Targets: keys(2)}, scripts: map[string][]error{"k1": {limited, limited}, "k2": {limited, limited}},
			asked: []string{"k1", "k2", "k1"}, elapsed: 2 * time.Second, reason: holdfast.ErrAttempts,
		},
		{
			name:   "a throttled key is worth waiting for when the last one is dead",
			policy: holdfast.Policy{Targets: keys(2)}, scripts: map[string][]error{"k1": {limited}, "k2": {rejected}},
			asked: []string{"k1", "k2", "k1"}, elapsed: 2 * time.Second,
		},
		{
			name:   "all dead is the upstream's own error",
			policy: holdfast.Policy{Targets: append(keys(2), other)}, scripts: map[string][]error{"k1": {rejected}, "k2": {forbidden}},
			asked: []string{"k1", "k2"}, own: forbidden,
		},
		{
			name:   "without a pool a dead key ends the call",
			policy: holdfast.Policy{Targets: []holdfast.Target{{Name: "k1", Credential: "1"}, {Name: "k2", Credential: "2"}}}, scripts: map[string][]error{"k1": {rejected}},
			asked: []string{"k1"}, own: rejected,
		},
		{
			name:   "a spent pool goes to another upstream",
			policy: holdfast.Policy{Targets: append(keys(2), other)}, scripts: map[string][]error{"k1": {outOfCash}, "k2": {outOfCash}},
			asked: []string{"k1", "k2", "b"},
		},
		{
			name:   "spent and dead goes to another upstream",
			policy: holdfast.Policy{Targets: append(keys(2), other)}, scripts: map[string][]error{"k1": {outOfCash}, "k2": {rejected}},
			asked: []string{"k1", "k2", "b"},
		},
		{
			name:   "a spent pool with nothing behind it",
			policy: holdfast.Policy{Targets: keys(2)}, scripts: map[string][]error{"k1": {outOfCash}, "k2": {outOfCash}},
			asked: []string{"k1", "k2"}, reason: holdfast.ErrSpent,
		},
		{
			name:   "a failing upstream is not asked again with another key",
			policy: holdfast.Policy{Attempts: 2, Targets: append(keys(2), other), Dice: bottom}, scripts: map[string][]error{"k1": {overload, overload}},
			asked: []string{"k1", "k1", "b"},
		},
		{
			name:   "attempts on the upstream stay counted from key to key",
			policy: holdfast.Policy{Attempts: 2, Targets: append(keys(2), other), Dice: bottom}, scripts: map[string][]error{"k1": {overload, limited}, "k2": {overload}},
			asked: []string{"k1", "k1", "k2", "b"},
		},
		{
			name:   "fallback first leaves the pool after its last key",
			policy: holdfast.Policy{FallbackFirst: true, Targets: append(keys(2), other)}, scripts: map[string][]error{"k1": {limited}, "k2": {limited}},
			asked: []string{"k1", "k2", "b"},
		},
		{
			name:   "an overflow is one of every key",
			policy: holdfast.Policy{Targets: append(keys(2), other)}, scripts: map[string][]error{"k1": {reply(400, `{"error":{"code":"context_length_exceeded","message":"x"}}`)}},
			asked: []string{"k1", "b"},
		},
		{
			name:   "the advice not to repeat is about the key",
			policy: holdfast.Policy{Targets: keys(2)}, scripts: map[string][]error{"k1": {anthropicError(429, "rate_limit_error", "x-should-retry", "false")}},
			asked: []string{"k1", "k2"},
		},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				if row.policy.Dice == nil {
					row.policy.Dice = bottom
				}
				u := scripts(row.scripts)
				_, trace, err := holdfast.Do(t.Context(), &row.policy, u.ask)
				switch {
				case row.reason != nil:
					wantReason(t, err, row.reason)
				case err != row.own:
					t.Errorf("%v, want %v", err, row.own)
				}
				if d := diff(row.asked, u.names); d != "" || trace.Elapsed != row.elapsed {
					t.Errorf("asked: %s\nin %v, want %v\n%s", d, trace.Elapsed, row.elapsed, trace.Summary())
				}
			})
		})
	}
}

// Ten calls wait for the first account while a request of it is under way, which is then throttled.
func TestB114_ThrottleMovesTheQueue(t *testing.T) {
	for _, row := range []struct {
		name   string
		limits holdfast.Limits // of both accounts
	}{
		{"B114 the second account is free", holdfast.Limits{}},
		{"B114 both have a queue", holdfast.Limits{RequestsPerMinute: 600, Burst: -1}},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				pool := keys(2)
				pool[0].Pace = holdfast.NewPace(holdfast.Limits{RequestsPerMinute: 60, Burst: -1})
				pool[1].Pace = holdfast.NewPace(row.limits)
				busy := time.Second
				if row.limits.RequestsPerMinute > 0 { // the first account is the sooner one for most, until it throttles
					pool[0].Pace = holdfast.NewPace(holdfast.Limits{RequestsPerMinute: 1200, Burst: -1})
					busy = 10 * time.Millisecond
				}
				p := holdfast.Policy{Targets: pool}
				u := scripts(nil)
				first := func(ctx context.Context) (string, error) {
					if target, _ := holdfast.TargetOf(ctx); target.Name == "k1" {
						_, _ = u.ask(ctx)
						time.Sleep(busy)
						return "", limited
					}
					return u.ask(ctx)
				}
				var all sync.WaitGroup
				all.Go(func() {
					if _, _, err := holdfast.Do(t.Context(), &p, first); err != nil {
						t.Error(err)
					}
				})
				synctest.Wait()
				for range 10 {
					all.Go(func() {
						if _, trace, err := holdfast.Do(t.Context(), &p, u.ask); err != nil || trace.Target() != "k2" {
							t.Errorf("%v, %s", err, trace.Summary())
						}
					})
					synctest.Wait()
				}
				start := time.Now()
				all.Wait()
				if u.asked("k1") != 1 || u.asked("k2") != 11 || time.Since(start) > 1200*time.Millisecond {
					t.Errorf("the accounts saw %d and %d requests in %v", u.asked("k1"), u.asked("k2"), time.Since(start))
				}
			})
		})
	}
}

// A key whose circuit is open, or whose pace would make the call wait, is not asked while another is free.
func TestPoolAsksTheFreeKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pool := keys(3)
		pool[0].Breaker = holdfast.NewBreaker(holdfast.BreakerSettings{Failures: 1})
		ticket, _, _ := pool[0].Breaker.Allow(time.Now())
		pool[0].Breaker.Settle(time.Now(), ticket, holdfast.Failure)
		pool[1].Pace = holdfast.NewPace(holdfast.Limits{RequestsPerMinute: 60, Burst: -1})
		pool[1].Pace.Allow(time.Now(), holdfast.Tokens{})
		p := holdfast.Policy{Targets: pool}
		_, trace, err := holdfast.Do(t.Context(), &p, play().ask)
		if err != nil || trace.Elapsed != 0 || trace.Target() != "k3" || trace.Source != holdfast.Live {
			t.Fatalf("%v, %s", err, trace.Summary())
		}
		if s := trace.Skips(); len(s) != 1 || s[0].Target != "k1" || s[0].Reason != holdfast.ErrOpen || s[0].Wait != 20*time.Second {
			t.Errorf("skips: %+v", s)
		}
		// With all of them busy, the one that is free first.
		pool[2].Pace.Hold(time.Now(), time.Now().Add(2*time.Second))
		if _, trace, err = holdfast.Do(t.Context(), &p, play().ask); err != nil || trace.Paced != time.Second || trace.Target() != "k2" {
			t.Errorf("%v, %s", err, trace.Summary())
		}
	})
}

// The credential had no money, and the next caller was told of a full queue.
func TestSpentCredentialIsCalledSpent(t *testing.T) {
	for _, row := range []struct {
		name string
		body string
		wait time.Duration
	}{
		{"the upstream names no time", `{"error":{"code":"credit_balance_exhausted","message":"x"}}`, 10 * time.Minute},
		{"the upstream names a time", `{"type":"error","error":{"type":"invalid_request_error","message":"You have reached your specified API usage limits. You will regain access on 2000-01-03 at 00:00 UTC."}}`, 48 * time.Hour},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				status := map[bool]int{true: 429, false: 400}[row.wait < time.Hour]
				p := holdfast.Policy{Pace: holdfast.NewPace(holdfast.Limits{}), Deadline: -1}
				u := always(reply(status, row.body))
				for sent := range 2 {
					_, trace, err := holdfast.Do(t.Context(), &p, u.ask)
					own := wantReason(t, err, holdfast.ErrSpent)
					if trace.Sent() != 1-sent || trace.Elapsed != 0 || sent == 1 && own.Wait != row.wait {
						t.Errorf("%d attempts in %v, wait %v, want %v", trace.Sent(), trace.Elapsed, own.Wait, row.wait)
					}
				}
				if err := wantReason(t, p.Pace.Wait(t.Context(), holdfast.Tokens{}), holdfast.ErrSpent); err.Wait != row.wait {
					t.Errorf("the pace says %v", err.Wait)
				}
				if s := p.Pace.Status(time.Now()); s.Spent != row.wait || s.Held != min(row.wait, time.Hour) {
					t.Errorf("its status is %+v", s)
				}
				time.Sleep(min(row.wait, time.Hour)) // a limit may be raised
				if _, trace, _ := holdfast.Do(t.Context(), &p, u.ask); trace.Sent() != 1 {
					t.Errorf("not asked again: %s", trace.Summary())
				}
			})
		})
	}
}

// Calls that queue when the money runs out are told so at once, or go elsewhere.
func TestSpentEmptiesTheQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pace := holdfast.NewPace(holdfast.Limits{RequestsPerMinute: 60, Burst: -1})
		alone := holdfast.Policy{Pace: pace}
		two := holdfast.Policy{Targets: []holdfast.Target{{Name: "a", Credential: "1", Pace: pace}, {Name: "b", Credential: "2"}}}
		var all sync.WaitGroup
		all.Go(func() {
			_, _, err := holdfast.Do(t.Context(), &alone, func(context.Context) (string, error) {
				time.Sleep(500 * time.Millisecond)
				return "", outOfCash
			})
			wantReason(t, err, holdfast.ErrSpent)
		})
		synctest.Wait()
		for range 3 {
			all.Go(func() {
				_, trace, err := holdfast.Do(t.Context(), &alone, play().ask)
				if wantReason(t, err, holdfast.ErrSpent); trace.Elapsed != 500*time.Millisecond || trace.Sent() != 0 {
					t.Error(trace.Summary())
				}
			})
			all.Go(func() {
				_, trace, err := holdfast.Do(t.Context(), &two, play().ask)
				if err != nil || trace.Elapsed != 500*time.Millisecond || trace.Target() != "b" || trace.Skips()[0].Reason != holdfast.ErrSpent {
					t.Error(err, trace.Summary())
				}
			})
		}
		all.Wait()
	})
}

func TestRefusalTargets(t *testing.T) {
	refusal := fmt.Errorf("x: %w", holdfast.ErrRefused)
	safe := holdfast.Target{Name: "safe", Model: "m3", OnRefusal: true}
	a, b := holdfast.Target{Name: "a", Model: "m1"}, holdfast.Target{Name: "b", Model: "m2"}
	open := safe
	open.Breaker = holdfast.NewBreaker(holdfast.BreakerSettings{Failures: 1, Cooldown: time.Hour})
	ticket, _, _ := open.Breaker.Allow(time.Now())
	open.Breaker.Settle(time.Now(), ticket, holdfast.Failure)
	for _, row := range []struct {
		name    string
		targets []holdfast.Target
		scripts map[string][]error
		asked   []string
		source  holdfast.Source
		own     error
	}{
		{"nothing refused", []holdfast.Target{safe, a, b}, nil, []string{"a"}, holdfast.Live, nil},
		{"a refusal goes there before any other", []holdfast.Target{a, b, safe}, map[string][]error{"a": {refusal}}, []string{"a", "safe"}, holdfast.Fallback, nil},
		{"also to one that comes before", []holdfast.Target{safe, a, b}, map[string][]error{"a": {refusal}}, []string{"a", "safe"}, holdfast.Fallback, nil},
		{"once", []holdfast.Target{a, b, safe}, map[string][]error{"a": {refusal}, "safe": {refusal}}, []string{"a", "safe"}, holdfast.NoSource, refusal},
		{"a failure never goes there", []holdfast.Target{a, safe, b}, map[string][]error{"a": {overload, overload}}, []string{"a", "a", "b"}, holdfast.Fallback, nil},
		{"nor does an overflow", []holdfast.Target{a, safe, b}, map[string][]error{"a": {reply(400, `{"error":{"code":"context_length_exceeded","message":"x"}}`)}}, []string{"a", "b"}, holdfast.Fallback, nil},
		{"one of the same model is no help", []holdfast.Target{a, {Name: "same", Model: "m1", OnRefusal: true}, b}, map[string][]error{"a": {refusal}}, []string{"a", "b"}, holdfast.Fallback, nil},
		{"without one, the next with another model", []holdfast.Target{a, {Name: "a2", Model: "m1"}, b}, map[string][]error{"a": {refusal}}, []string{"a", "b"}, holdfast.Fallback, nil},
		{"one that cannot be asked leaves the refusal", []holdfast.Target{a, open}, map[string][]error{"a": {refusal}}, []string{"a"}, holdfast.NoSource, refusal},
		{"it fails, and the model that refused is not asked again", []holdfast.Target{safe, a, {Name: "a2", Model: "m1"}, b}, map[string][]error{"a": {refusal}, "safe": {overload, overload}}, []string{"a", "safe", "safe", "b"}, holdfast.Fallback, nil},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := holdfast.Policy{Attempts: 2, RefusalFallback: true, Targets: row.targets, Dice: bottom}
				if err := p.Validate(); err != nil {
					t.Fatal(err)
				}
				u := scripts(row.scripts)
				_, trace, err := holdfast.Do(t.Context(), &p, u.ask)
				if err != row.own || trace.Source != row.source {
					t.Errorf("%v, source %v; want %v, %v", err, trace.Source, row.own, row.source)
				}
				if d := diff(row.asked, u.names); d != "" {
					t.Errorf("asked: %s", d)
				}
			})
		})
	}
}

// A queue that the upstream stops lets those go at once who have somewhere else to go, or who would come too late.
func TestThrottleStirsTheQueue(t *testing.T) {
	for _, row := range []struct {
		name   string
		policy holdfast.Policy
		target string
		reason error
	}{
		{"fallback first", holdfast.Policy{FallbackFirst: true, Targets: []holdfast.Target{{Name: "a"}, {Name: "b"}}}, "b", nil},
		{"no time to wait for its end", holdfast.Policy{Deadline: 2 * time.Second, Targets: []holdfast.Target{{Name: "a"}}}, "", holdfast.ErrPace},
		{"the next target has the time", holdfast.Policy{Deadline: 2 * time.Second, Targets: []holdfast.Target{{Name: "a"}, {Name: "b"}}}, "b", nil},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				pace := holdfast.NewPace(holdfast.Limits{RequestsPerMinute: 60, Burst: -1})
				row.policy.Targets[0].Pace = pace
				pace.Allow(time.Now(), holdfast.Tokens{})
				time.AfterFunc(100*time.Millisecond, func() { pace.Hold(time.Now(), time.Now().Add(5*time.Second)) })
				_, trace, err := holdfast.Do(t.Context(), &row.policy, play().ask)
				if row.reason != nil {
					wantReason(t, err, row.reason)
				} else if err != nil {
					t.Error(err)
				}
				if trace.Elapsed != 100*time.Millisecond || trace.Target() != row.target {
					t.Error(trace.Summary())
				}
			})
		})
	}
}
