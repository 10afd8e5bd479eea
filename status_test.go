package holdfast_test

import (
	"errors"
	"testing"
	"time"

	"holdfast"
)

func TestBreakerStatusFollowsTheCircuit(t *testing.T) {
	t.Parallel()
	start := time.Now()
	b := holdfast.NewBreaker(holdfast.BreakerSettings{Failures: 2, Cooldown: 20 * time.Second, Probes: -1, Lease: time.Minute, Ramp: 10 * time.Second})
	attempt := func(after time.Duration, r holdfast.Result) {
		t.Helper()
		ticket, _, ok := b.Allow(start.Add(after))
		if !ok {
			t.Fatalf("at %v: no admission", after)
		}
		b.Settle(start.Add(after), ticket, r)
	}
	check := func(after time.Duration, state holdfast.State, streak int, cooldown, until time.Duration) {
		t.Helper()
		s := b.Status(start.Add(after))
		if s.State != state || s.Streak != streak || s.Cooldown != cooldown {
			t.Errorf("at %v: %+v, want %v, streak %d, cooldown %v", after, s, state, streak, cooldown)
		}
		if until == 0 && !s.Until.IsZero() || until != 0 && s.Until.Sub(start) != until {
			t.Errorf("at %v: until is %v after the start, want %v", after, s.Until.Sub(start), until)
		}
	}
	check(0, holdfast.Closed, 0, 0, 0)
	attempt(0, holdfast.Failure)
	check(0, holdfast.Closed, 1, 0, 0)
	attempt(0, holdfast.Failure)
	check(time.Second, holdfast.Open, 2, 20*time.Second, 20*time.Second)
	probe, _, _ := b.Allow(start.Add(20 * time.Second))
	check(21*time.Second, holdfast.HalfOpen, 2, 20*time.Second, 80*time.Second)
	b.Settle(start.Add(22*time.Second), probe, holdfast.Ignore)
	check(22*time.Second, holdfast.HalfOpen, 2, 20*time.Second, 0)
	attempt(23*time.Second, holdfast.Success)
	check(24*time.Second, holdfast.Closed, 0, 0, 33*time.Second)
	check(34*time.Second, holdfast.Closed, 0, 0, 0)
}

func TestZeroBreakerHasAStatus(t *testing.T) {
	t.Parallel()
	var b holdfast.Breaker
	if s := b.Status(time.Time{}); s != (holdfast.BreakerStatus{}) {
		t.Errorf("status is %+v", s)
	}
}

func TestPaceStatusShowsLevelsHoldAndQueue(t *testing.T) {
	t.Parallel()
	start := time.Now()
	p := holdfast.NewPace(holdfast.Limits{RequestsPerMinute: 60, InputTokensPerMinute: 6000})
	if !p.Allow(start, holdfast.Tokens{Input: 1500}) {
		t.Fatal("a full pace refuses")
	}
	want := holdfast.PaceStatus{Requests: holdfast.Level{PerMinute: 60, Left: 59}, Input: holdfast.Level{PerMinute: 6000, Left: 4500}}
	if got := p.Status(start); got != want {
		t.Errorf("status is %+v, want %+v", got, want)
	}
	p.Settle(start, holdfast.Tokens{Input: 1500}, holdfast.Tokens{Input: 9000})
	if got := p.Status(start).Input.Left; got != -3000 {
		t.Errorf("left is %d, want a debt of 3000", got)
	}
	p.Hold(start, start.Add(7*time.Second))
	if got := p.Status(start.Add(2 * time.Second)); got.Held != 5*time.Second || got.Requests.Left != 2 || got.Queued != 0 {
		t.Errorf("status of a held pace is %+v", got)
	}
	policy := holdfast.Policy{Pace: p}
	call := holdfast.NewCall(&policy)
	if step := call.Begin(start, time.Time{}, holdfast.Tokens{}); step.Action != holdfast.Wait {
		t.Fatalf("a call on a held pace is to %v", step.Action)
	}
	if got := p.Status(start).Queued; got != 1 {
		t.Errorf("%d queue, want 1", got)
	}
	call.Leave(start)
	if got := p.Status(start).Queued; got != 0 {
		t.Errorf("%d queue after the caller left, want 0", got)
	}
}

func TestBudgetStatusTellsTheCapacity(t *testing.T) {
	t.Parallel()
	now := time.Now()
	if got := holdfast.NewBudget(holdfast.BudgetSettings{}).Status(now); got != (holdfast.BudgetStatus{Level: 100, Capacity: 100}) {
		t.Errorf("status is %+v", got)
	}
	if got := holdfast.NewBudget(holdfast.BudgetSettings{Capacity: 7}).Status(now); got != (holdfast.BudgetStatus{Level: 7, Capacity: 7}) {
		t.Errorf("status is %+v", got)
	}
}

func TestEveryReasonHasAWord(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, reason := range []error{
		holdfast.ErrOpen, holdfast.ErrPace, holdfast.ErrDeadline, holdfast.ErrBudget, holdfast.ErrServerWait, holdfast.ErrSpent, holdfast.ErrRejected,
		holdfast.ErrNoRetry, holdfast.ErrAttempts, holdfast.ErrCancelled,
	} {
		word := holdfast.ReasonWord(reason)
		if word == "" || word == "other" || seen[word] {
			t.Errorf("%v has the word %q", reason, word)
		}
		seen[word] = true
	}
	if got := holdfast.ReasonWord(nil); got != "" {
		t.Errorf("no reason has the word %q", got)
	}
	if got := holdfast.ReasonWord(errors.New("foreign")); got != "other" {
		t.Errorf("a foreign error has the word %q", got)
	}
}
