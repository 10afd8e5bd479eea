package holdfast_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"holdfast"
)

// A thousand callers at once are done in exactly the time that the limit gives, first come, first served, and nothing is
// left of them: a goroutine that stays behind ends the bubble with a panic.
func TestPaceThousandCallers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := holdfast.NewPace(holdfast.Limits{RequestsPerMinute: 6000, Burst: -1})
		start := time.Now()
		var mu sync.Mutex
		var order []int
		var wg sync.WaitGroup
		for i := range 1000 {
			wg.Go(func() {
				if err := p.Wait(t.Context(), holdfast.Tokens{}); err != nil {
					t.Errorf("%d: %v", i, err)
				}
				if got, want := time.Since(start), time.Duration(i)*10*time.Millisecond; got != want {
					t.Errorf("%d went after %v, want %v", i, got, want)
				}
				mu.Lock()
				defer mu.Unlock()
				order = append(order, i)
			})
			synctest.Wait() // all queue at one instant, in this order
		}
		wg.Wait()
		if got := time.Since(start); got != 9990*time.Millisecond {
			t.Errorf("all were through after %v, want 9.99s", got)
		}
		if !slices.IsSorted(order) {
			t.Error("somebody overtook")
		}
	})
}

// Waiters who leave, use less than estimated or were never sent make room at once. After any such traffic, what is
// given and what is taken add up: a full bucket is full again after exactly one Burst.
func TestPaceBusyTraffic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := holdfast.NewPace(holdfast.Limits{RequestsPerMinute: 600, InputTokensPerMinute: 60_000, Burst: 5 * time.Second, Queue: 50})
		var wg sync.WaitGroup
		var mu sync.Mutex
		went, refused, left := 0, 0, 0
		for i := range 400 {
			wg.Go(func() {
				chance := rand.New(rand.NewPCG(uint64(i), 7))
				time.Sleep(time.Duration(chance.IntN(int(20 * time.Second))))
				patience := time.Duration(chance.IntN(int(6 * time.Second)))
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if chance.IntN(3) == 0 {
					time.AfterFunc(patience, cancel)
				} else {
					ctx, cancel = context.WithTimeout(ctx, patience)
					defer cancel()
				}
				need := holdfast.Tokens{Input: chance.IntN(200)}
				began := time.Now()
				err := p.Wait(ctx, need)
				mu.Lock()
				defer mu.Unlock()
				switch {
				case err == nil:
					went++
					p.Settle(time.Now(), need, holdfast.Tokens{Input: chance.IntN(need.Input + 100)})
				case errors.Is(err, holdfast.ErrPace):
					refused++
					if waited := time.Since(began); waited != 0 {
						t.Errorf("refused only after %v", waited)
					}
				case errors.Is(err, holdfast.ErrCancelled):
					left++
				default:
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if went < 100 || refused < 20 || left < 5 {
			t.Errorf("%d went, %d were refused, %d left: too one-sided to prove anything", went, refused, left)
		}
		time.Sleep(time.Minute)
		all := holdfast.Tokens{Input: 5000}
		if !p.Allow(time.Now(), all) {
			t.Error("the bucket of tokens is not full again")
		}
		if p.Allow(time.Now(), holdfast.Tokens{Input: 1}) {
			t.Error("the bucket of tokens holds more than it can")
		}
	})
}

// A refund makes the head's turn come earlier, but not at once: its timer must be set anew, and so must that of the one
// behind it.
func TestPaceWakesEarlyAfterARefund(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := holdfast.NewPace(holdfast.Limits{InputTokensPerMinute: 60})
		start := time.Now()
		full := holdfast.Tokens{Input: 60}
		if !p.Allow(start, full) {
			t.Fatal("a full pace refused")
		}
		var wg sync.WaitGroup
		for i, want := range []time.Duration{10 * time.Second, 15 * time.Second} {
			wg.Go(func() {
				if err := p.Wait(t.Context(), holdfast.Tokens{Input: 30 - 25*i}); err != nil {
					t.Error(err)
				}
				if got := time.Since(start); got != want {
					t.Errorf("waiter %d went after %v, want %v", i, got, want)
				}
			})
			synctest.Wait()
		}
		time.Sleep(time.Second)
		p.Settle(time.Now(), full, holdfast.Tokens{Input: 40})
		wg.Wait()
	})
}

// Leaving owes nothing: those behind go as if the one who left had never been there.
func TestPaceLeavingLetsOthersGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := holdfast.NewPace(holdfast.Limits{InputTokensPerMinute: 60})
		start := time.Now()
		p.Allow(start, holdfast.Tokens{Input: 60})
		ctx, leave := context.WithCancelCause(t.Context())
		gone := errors.New("gone home")
		var wg sync.WaitGroup
		wg.Go(func() {
			err := p.Wait(ctx, holdfast.Tokens{Input: 50})
			if !errors.Is(err, holdfast.ErrCancelled) || !errors.Is(err, gone) || time.Since(start) != 2*time.Second {
				t.Errorf("left with %v after %v, want ErrCancelled with its cause after 2s", err, time.Since(start))
			}
		})
		synctest.Wait()
		for i, want := range []time.Duration{3 * time.Second, 4 * time.Second} {
			wg.Go(func() {
				if err := p.Wait(t.Context(), holdfast.Tokens{Input: 3 - 2*i}); err != nil {
					t.Error(err)
				}
				if got := time.Since(start); got != want {
					t.Errorf("waiter %d went after %v, want %v", i, got, want)
				}
			})
			synctest.Wait()
		}
		time.Sleep(2 * time.Second)
		leave(gone)
		wg.Wait()
	})
}

func TestPaceWaitRefusesAtOnce(t *testing.T) {
	second := holdfast.Limits{RequestsPerMinute: 60, Burst: time.Second}
	dead, cancel := context.WithCancel(context.Background())
	cancel()
	for _, row := range []struct {
		name     string
		limits   holdfast.Limits
		deadline time.Duration // 0: none
		ctx      context.Context
		taken    int // before
		reason   error
		wait     time.Duration // on the error
	}{
		{name: "permission comes before the deadline", limits: second, taken: 1, deadline: time.Second + 1},
		{name: "permission comes with the deadline", limits: second, taken: 1, deadline: time.Second, reason: holdfast.ErrPace, wait: time.Second},
		{name: "permission comes after the deadline", limits: second, taken: 1, deadline: time.Millisecond, reason: holdfast.ErrPace, wait: time.Second},
		{name: "no queue, permission at hand", limits: holdfast.Limits{RequestsPerMinute: 60, Burst: time.Second, Queue: -1}},
		{name: "no queue", limits: holdfast.Limits{RequestsPerMinute: 60, Burst: time.Second, Queue: -1}, taken: 1, reason: holdfast.ErrPace, wait: time.Second},
		{name: "caller left before", limits: second, ctx: dead, reason: holdfast.ErrCancelled},
		{name: "no limits"},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := holdfast.NewPace(row.limits)
				for range row.taken {
					p.Allow(time.Now(), holdfast.Tokens{})
				}
				ctx := t.Context()
				if row.ctx != nil {
					ctx = row.ctx
				}
				if row.deadline > 0 {
					// Without a monotonic reading, as a deadline that came over the wire has none.
					limited, cancel := context.WithDeadline(ctx, time.Now().Add(row.deadline).Round(0))
					defer cancel()
					ctx = limited
				}
				start := time.Now()
				err := p.Wait(ctx, holdfast.Tokens{})
				if row.reason == nil {
					if err != nil {
						t.Fatal(err)
					}
					return
				}
				var typed *holdfast.Error
				if !errors.Is(err, row.reason) || !errors.As(err, &typed) || typed.Wait != row.wait || time.Since(start) != 0 {
					t.Fatalf("Wait = %v after %v, want %v at once with a wait of %v", err, time.Since(start), row.reason, row.wait)
				}
				time.Sleep(time.Duration(row.taken) * time.Second)
				if !p.Allow(time.Now(), holdfast.Tokens{}) {
					t.Error("the refusal took a permission")
				}
			})
		})
	}
}

func TestPaceQueueIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := holdfast.NewPace(holdfast.Limits{RequestsPerMinute: 60, Burst: -1, Queue: 2})
		p.Allow(time.Now(), holdfast.Tokens{})
		var wg sync.WaitGroup
		for range 2 {
			wg.Go(func() {
				if err := p.Wait(t.Context(), holdfast.Tokens{}); err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		var refusal *holdfast.Error
		if err := p.Wait(t.Context(), holdfast.Tokens{}); !errors.As(err, &refusal) || refusal.Reason != holdfast.ErrPace || refusal.Wait != 3*time.Second {
			t.Errorf("the third in a queue of two got %v, want ErrPace and a wait of 3s", err)
		}
		wg.Wait()
		if err := p.Wait(t.Context(), holdfast.Tokens{}); err != nil {
			t.Errorf("the queue does not open again: %v", err)
		}
	})
}

func TestPaceTakesAllOrNothing(t *testing.T) {
	now := time.Now()
	p := holdfast.NewPace(holdfast.Limits{RequestsPerMinute: 10, InputTokensPerMinute: 1000, OutputTokensPerMinute: 100})
	if !p.Allow(now, holdfast.Tokens{Input: 100, Output: 100}) {
		t.Fatal("a full pace refused")
	}
	for range 50 {
		if p.Allow(now, holdfast.Tokens{Input: 100, Output: 1}) {
			t.Fatal("went out without output tokens")
		}
	}
	for i := range 9 {
		if !p.Allow(now, holdfast.Tokens{Input: 100}) {
			t.Fatalf("request %d: the refused ones took something", i)
		}
	}
	if p.Allow(now, holdfast.Tokens{}) {
		t.Error("an eleventh request")
	}
}

// A request that is larger than all that can be saved up goes out when the bucket is full, and its debt is paid before
// anybody else goes.
func TestPaceOversizeRequest(t *testing.T) {
	now := time.Now()
	p := holdfast.NewPace(holdfast.Limits{InputTokensPerMinute: 60, Burst: 10 * time.Second})
	big, small := holdfast.Tokens{Input: 100}, holdfast.Tokens{Input: 1}
	p.Allow(now, small)
	for _, row := range []struct {
		at   time.Duration
		need holdfast.Tokens
		want bool
	}{
		{time.Second - 1, big, false}, // 9.99 of 10
		{time.Second, big, true},
		{92*time.Second - 1, small, false}, // 90 in debt
		{92 * time.Second, small, true},
		{101 * time.Second, big, false},
		{102 * time.Second, big, true},
	} {
		if got := p.Allow(now.Add(row.at), row.need); got != row.want {
			t.Errorf("after %v: %+v allowed = %v, want %v", row.at, row.need, got, row.want)
		}
	}
}

// Two in flight: the first is told to wait 60 s, the second, a moment later, 1 s. Nobody goes before the later end.
func TestB108_HoldKeepsTheLater(t *testing.T) {
	for _, row := range []struct {
		name  string
		holds []time.Duration
	}{
		{"B108 shorter first", []time.Duration{time.Second, time.Minute}},
		{"B108 longer first", []time.Duration{time.Minute, time.Second}},
	} {
		t.Run(row.name, func(t *testing.T) {
			now := time.Now()
			p := holdfast.NewPace(holdfast.Limits{RequestsPerMinute: 6000})
			for i, hold := range row.holds {
				at := now.Add(time.Duration(i) * 250 * time.Millisecond)
				p.Hold(at, now.Add(hold))
			}
			for _, at := range []time.Duration{0, time.Second, 59 * time.Second, time.Minute - 1} {
				if p.Allow(now.Add(at), holdfast.Tokens{}) {
					t.Errorf("somebody went after %v", at)
				}
			}
			if !p.Allow(now.Add(time.Minute), holdfast.Tokens{}) {
				t.Error("the hold did not end")
			}
		})
	}
}

func TestPaceHoldEmptiesAndQueues(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := holdfast.NewPace(holdfast.Limits{RequestsPerMinute: 60})
		start := time.Now()
		p.Hold(start, start.Add(2*time.Second).Round(0)) // as a time from a header, without a monotonic reading
		var wg sync.WaitGroup
		for i := range 4 {
			wg.Go(func() {
				if err := p.Wait(t.Context(), holdfast.Tokens{}); err != nil {
					t.Error(err)
				}
				// Two have been saved up when the hold ends; it was empty when it began.
				if got, want := time.Since(start), max(2, time.Duration(i)+1)*time.Second; got != want {
					t.Errorf("%d went after %v, want %v", i, got, want)
				}
			})
			synctest.Wait()
		}
		wg.Wait()
	})
}

func TestPaceZeroValueKeepsHolds(t *testing.T) {
	var p holdfast.Pace
	now := time.Now()
	for range 10_000 {
		if !p.Allow(now, holdfast.Tokens{Input: 1 << 40, Output: 1 << 40}) {
			t.Fatal("the zero value limits")
		}
	}
	p.Hold(now, now.Add(time.Minute))
	if p.Allow(now.Add(time.Minute-1), holdfast.Tokens{}) || !p.Allow(now.Add(time.Minute), holdfast.Tokens{}) {
		t.Error("the hold is not kept")
	}
}

func TestPaceRefundAndNegativeTokens(t *testing.T) {
	now := time.Now()
	p := holdfast.NewPace(holdfast.Limits{RequestsPerMinute: 1, OutputTokensPerMinute: 100})
	need := holdfast.Tokens{Output: 100, Input: -5}
	for range 3 {
		if !p.Allow(now, need) || p.Allow(now, need) {
			t.Fatal("a full pace gives permission once")
		}
		p.Refund(now, need)
	}
	p.Refund(now, holdfast.Tokens{Output: 1000}) // more than was taken: a full bucket stays full
	if !p.Allow(now, need) || p.Allow(now, holdfast.Tokens{Output: -100}) {
		t.Error("refunds made permissions")
	}
}

// Many goroutines, in real time and under the race detector: no permission is given twice.
func TestPaceConcurrentAllow(t *testing.T) {
	p := holdfast.NewPace(holdfast.Limits{RequestsPerMinute: 500})
	now := time.Now()
	var wg sync.WaitGroup
	var mu sync.Mutex
	allowed := 0
	for range 50 {
		wg.Go(func() {
			for range 40 {
				if p.Allow(now, holdfast.Tokens{}) {
					mu.Lock()
					allowed++
					mu.Unlock()
				}
			}
		})
	}
	wg.Wait()
	if allowed != 500 {
		t.Errorf("%d of 500 permissions given", allowed)
	}
}

func TestPaceZeroTimeIsNow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var now time.Time
		p := holdfast.NewPace(holdfast.Limits{RequestsPerMinute: 60, OutputTokensPerMinute: 60, Burst: time.Second})
		one := holdfast.Tokens{Output: 1}
		if !p.Allow(now, one) || p.Allow(now, one) {
			t.Fatal("a full pace gives permission once")
		}
		p.Refund(now, one)
		if !p.Allow(now, one) {
			t.Error("the refund is lost")
		}
		p.Settle(now, one, holdfast.Tokens{Output: 3})
		time.Sleep(3*time.Second - 1)
		if p.Allow(now, one) {
			t.Error("went out while in debt")
		}
		time.Sleep(time.Nanosecond)
		if !p.Allow(now, one) {
			t.Error("does not go out after the debt is paid")
		}
		p.Hold(now, time.Now().Add(time.Minute))
		time.Sleep(time.Minute - 1)
		if p.Allow(now, one) {
			t.Error("went out during the hold")
		}
		time.Sleep(time.Nanosecond)
		if !p.Allow(now, one) {
			t.Error("does not go out after the hold")
		}
	})
}
