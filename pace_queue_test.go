package holdfast_test

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"holdfast"
)

// Interactive calls go before bulk ones that came earlier, but a bulk call has its turn after eight of them.
func TestInteractiveBeforeBulkWithoutStarvation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pace := holdfast.NewPace(holdfast.Limits{RequestsPerMinute: 6000, Burst: -1})
		pace.Allow(time.Now(), holdfast.Tokens{})
		var mu sync.Mutex
		var order []byte
		var all sync.WaitGroup
		send := func(lane holdfast.Lane, letter byte) {
			p := holdfast.Policy{Pace: pace, Lane: lane}
			all.Go(func() {
				_, _, err := holdfast.Do(t.Context(), &p, play().ask)
				if err != nil {
					t.Error(err)
				}
				mu.Lock()
				defer mu.Unlock()
				order = append(order, letter)
			})
			synctest.Wait()
		}
		for range 3 {
			send(holdfast.Bulk, 'b')
		}
		for range 20 {
			send(holdfast.Interactive, 'i')
		}
		all.Wait()
		if got, want := string(order), "iiiiiiiibiiiiiiiibiiiib"; got != want {
			t.Errorf("order %s, want %s", got, want)
		}
	})
}

// A call that cannot make its deadline is refused at once, by what its lane has before it.
func TestLaneRefusesAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pace := holdfast.NewPace(holdfast.Limits{RequestsPerMinute: 60, Burst: -1, Queue: 7})
		pace.Allow(time.Now(), holdfast.Tokens{})
		var all sync.WaitGroup
		queue := func(lane holdfast.Lane, deadline time.Duration) (time.Duration, error) {
			p := holdfast.Policy{Pace: pace, Lane: lane, Deadline: deadline}
			_, trace, err := holdfast.Do(t.Context(), &p, play().ask)
			return trace.Paced, err
		}
		for _, lane := range []holdfast.Lane{holdfast.Bulk, holdfast.Bulk, holdfast.Bulk, holdfast.Interactive} {
			all.Go(func() {
				if _, err := queue(lane, 0); err != nil {
					t.Error(err)
				}
			})
			synctest.Wait()
		}
		for _, row := range []struct {
			name     string
			lane     holdfast.Lane
			deadline time.Duration
			wait     time.Duration
		}{
			{"interactive: after the other interactive one", holdfast.Interactive, 2 * time.Second, 2 * time.Second},
			{"bulk: after all", holdfast.Bulk, 5 * time.Second, 5 * time.Second},
		} {
			paced, err := queue(row.lane, row.deadline)
			if own := wantReason(t, err, holdfast.ErrPace); own.Wait != row.wait || paced != 0 {
				t.Errorf("%s: refused after %v with a wait of %v, want %v", row.name, paced, own.Wait, row.wait)
			}
		}
		if paced, err := queue(holdfast.Interactive, 2*time.Second+1); err != nil || paced != 2*time.Second {
			t.Errorf("%v after %v", err, paced)
		}
		all.Wait()
	})
}

// The queue's bound counts both lanes.
func TestQueueBoundCountsBothLanes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pace := holdfast.NewPace(holdfast.Limits{RequestsPerMinute: 60, Burst: -1, Queue: 2})
		pace.Allow(time.Now(), holdfast.Tokens{})
		var all sync.WaitGroup
		for _, lane := range []holdfast.Lane{holdfast.Bulk, holdfast.Interactive} {
			all.Go(func() {
				if _, _, err := holdfast.Do(t.Context(), &holdfast.Policy{Pace: pace, Lane: lane}, play().ask); err != nil {
					t.Error(err)
				}
			})
			synctest.Wait()
		}
		for _, lane := range []holdfast.Lane{holdfast.Bulk, holdfast.Interactive} {
			_, trace, err := holdfast.Do(t.Context(), &holdfast.Policy{Pace: pace, Lane: lane}, play().ask)
			if wantReason(t, err, holdfast.ErrPace); trace.Elapsed != 0 {
				t.Errorf("%v: %s", lane, trace.Summary())
			}
		}
		all.Wait()
	})
}

// Where nothing is limited, the end of a hold let the whole queue go in one instant.
func TestHoldEndsSpread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var pace holdfast.Pace
		start := time.Now()
		pace.Hold(start, start.Add(2*time.Second))
		went := make([]time.Duration, 1000)
		var all sync.WaitGroup
		for i := range went {
			all.Go(func() {
				if err := pace.Wait(t.Context(), holdfast.Tokens{}); err != nil {
					t.Error(err)
				}
				went[i] = time.Since(start) - 2*time.Second
			})
			synctest.Wait()
		}
		all.Wait()
		for i, want := range map[int]time.Duration{0: 0, 1: 10 * time.Millisecond, 2: 19960937} {
			if went[i] != want {
				t.Errorf("%d went after %v, want %v", i, went[i], want)
			}
		}
		perSecond := [3]int{}
		for _, at := range went {
			perSecond[min(int(at/time.Second), 2)]++
		}
		if perSecond[0] > 150 || perSecond[0] < 100 || perSecond[1] < 150 || went[999] > 2600*time.Millisecond {
			t.Errorf("%v by second, the last after %v", perSecond, went[999])
		}
		for range 2 {
			if !pace.Allow(time.Now(), holdfast.Tokens{}) {
				t.Error("it goes on after the queue is gone")
			}
		}
	})
}
