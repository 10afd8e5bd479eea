package batch_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/anthropics/anthropic-sdk-go/v2"
	"github.com/anthropics/anthropic-sdk-go/v2/option"
	"github.com/google/go-cmp/cmp"

	"holdfast"
	"holdfast/batch"
	"holdfast/standin"
)

// looks are when the batch was asked for, from the first on.
func (w *world) looks(id string) (at []time.Duration) {
	var first time.Time
	for _, e := range w.server.Journal() {
		if e.Path != batchPath+"/"+id {
			continue
		}
		if first.IsZero() {
			first = e.Arrived
		}
		at = append(at, e.Arrived.Sub(first))
	}
	return at
}

func onLooks(takes time.Duration, steps ...standin.Step) standin.Plan {
	return standin.Plan{
		Batches: standin.Batches{Takes: takes},
		Rules:   []standin.Rule{{Match: standin.Match{Path: batchPath + "/msgbatch_*"}, Steps: steps}},
	}
}

func TestWaitLooksEverMoreRarely(t *testing.T) {
	t.Parallel()
	in(t, onLooks(12*time.Minute), func(w *world) {
		w.client.Policy = &holdfast.Policy{Dice: func() float64 { return 0 }}
		var seen []int64
		w.client.Observe = func(b *anthropic.MessageBatch) { seen = append(seen, b.RequestCounts.Processing) }
		ended := w.ended(requests("a", 10))
		want := []time.Duration{0, 10 * time.Second, 25 * time.Second, 47500 * time.Millisecond, 81250 * time.Millisecond, 131875 * time.Millisecond, 207812500 * time.Microsecond}
		got := w.looks(ended.ID)
		if diff := cmp.Diff(want, got[:7]); diff != "" {
			w.Errorf("looks (-want +got):\n%s", diff)
		}
		for i := 8; i < len(got); i++ {
			if got[i]-got[i-1] > 2*time.Minute {
				w.Errorf("looks %v apart", got[i]-got[i-1])
			}
		}
		if len(got) < 11 || len(got) > 13 || len(seen) != len(got) || seen[0] != 10 || seen[len(seen)-1] != 0 || !slices.IsSortedFunc(seen, func(a, b int64) int { return int(b - a) }) {
			w.Errorf("%d looks, observed %v", len(got), seen)
		}
		if ended.RequestCounts.Succeeded != 10 {
			w.Errorf("ended with %s", ended.RawJSON())
		}
	})
}

func TestWaitKeepsTheWaitThatIsNamed(t *testing.T) {
	t.Parallel()
	in(t, onLooks(time.Minute), func(w *world) { // the stand-in names 10s, as the API does
		w.client.Poll, w.client.MaxPoll = time.Second, 2*time.Second
		ended := w.ended(requests("a", 2))
		if got := w.looks(ended.ID); len(got) != 7 || got[1] != 10*time.Second || got[6] != time.Minute {
			w.Errorf("looks at %v", got)
		}
	})
}

// A look that fails is no failure of the batch, however long the outage is.
func TestWaitOutlastsOutages(t *testing.T) {
	t.Parallel()
	between := []standin.Step{{}}
	for range 40 {
		between = append(between, standin.Step{Kind: standin.HTTP, Status: 404}, standin.Step{Kind: standin.HTTP, Status: 500, Times: 4})
	}
	in(t, onLooks(3*time.Hour, between...), func(w *world) {
		if ended := w.ended(requests("a", 3)); ended.RequestCounts.Succeeded != 3 {
			w.Errorf("ended with %s", ended.RawJSON())
		}
	})
	for name, step := range map[string]standin.Step{
		"529":          {Kind: standin.HTTP, Status: 529, Times: 40},
		"429":          {Kind: standin.HTTP, Status: 429, RetryAfter: "20", Times: 40},
		"a long wait":  {Kind: standin.HTTP, Status: 503, RetryAfter: "900", Times: 4},
		"resets":       {Kind: standin.Reset, Times: 40},
		"silence":      {Kind: standin.Timeout, Times: 40},
		"web pages":    {Kind: standin.HTML, Times: 40},
		"empty":        {Kind: standin.Empty, Times: 40},
		"cut":          {Kind: standin.Cut, Times: 40},
		"a body error": {Kind: standin.Error, Times: 40},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in(t, onLooks(3*time.Hour, standin.Step{}, step), func(w *world) {
				ended := w.ended(requests("a", 3))
				if ended.ProcessingStatus != "ended" || ended.RequestCounts.Succeeded != 3 {
					w.Errorf("ended with %s", ended.RawJSON())
				}
				w.counts(1, 1)
			})
		})
	}
}

// A new batch may be unknown to the API for a while. A batch that stays unknown is not there.
func TestWaitToleratesEarly404s(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		hidden, appear time.Duration
		found          bool
		least, most    time.Duration
	}{
		{hidden: 30 * time.Second, found: true, most: 3 * time.Minute},
		{hidden: time.Hour, least: 2 * time.Minute, most: 4 * time.Minute},
		{hidden: 30 * time.Second, appear: -1, most: time.Second},
		{hidden: 20 * time.Minute, appear: 30 * time.Minute, found: true, most: 25 * time.Minute},
	} {
		plan := standin.Plan{Batches: standin.Batches{Hidden: tt.hidden, Takes: time.Minute}}
		in(t, plan, func(w *world) {
			w.client.Appear = tt.appear
			made, began := w.create(requests("a", 2)), time.Now()
			ended, err := w.client.Wait(w.Context(), made.ID)
			took := time.Since(began)
			if tt.found != (err == nil) || took < tt.least || took > tt.most {
				w.Errorf("hidden for %v: %v, error %v after %v", tt.hidden, ended, err, took)
			}
			var stopped *batch.WaitError
			if err != nil && (!errors.As(err, &stopped) || stopped.ID != made.ID || statusOf(err) != 404 || !strings.Contains(stopped.Hint(), "deleted")) {
				w.Errorf("error %v", err)
			}
		})
	}
}

// What no wait cures ends it at once, and what does not tell anything goes on.
func TestWaitEnds(t *testing.T) {
	t.Parallel()
	in(t, onLooks(time.Hour, standin.Step{}, standin.Step{Kind: standin.HTTP, Status: 401, Times: 9}), func(w *world) {
		made := w.create(requests("a", 2))
		_, err := w.client.Wait(w.Context(), made.ID)
		var stopped *batch.WaitError
		if !errors.As(err, &stopped) || statusOf(err) != 401 || stopped.Last == nil || len(w.looks(made.ID)) != 2 || !strings.Contains(err.Error(), "2 of 2 processing") {
			w.Errorf("error %v after looks at %v", err, w.looks(made.ID))
		}
		w.tellsNothing(err)
	})
	in(t, standin.Plan{Batches: standin.Batches{Takes: -1, Lifetime: 240 * time.Hour}}, func(w *world) {
		made := w.create(requests("a", 2))
		w.client.API = dayLong{w.client.API}
		began := time.Now()
		_, err := w.client.Wait(w.Context(), made.ID)
		var stopped *batch.WaitError
		if took := time.Since(began); !errors.Is(err, batch.ErrOverdue) || !errors.As(err, &stopped) || !strings.Contains(stopped.Hint(), "provider") || took < 25*time.Hour || took > 26*time.Hour {
			w.Errorf("error %v after %v", err, took)
		}
		began = time.Now()
		if _, err := w.client.Wait(w.Context(), made.ID); !errors.Is(err, batch.ErrOverdue) || time.Since(began) < time.Hour || time.Since(began) > 2*time.Hour {
			w.Errorf("error %v after %v, at the second wait", err, time.Since(began))
		}
	})
}

// dayLong makes the batches of an API expire after a day, whatever it does.
type dayLong struct{ batch.API }

func (d dayLong) Get(ctx context.Context, id string, query anthropic.MessageBatchGetParams, opts ...option.RequestOption) (*anthropic.MessageBatch, error) {
	got, err := d.API.Get(ctx, id, query, opts...)
	if err == nil {
		got.ExpiresAt = got.CreatedAt.Add(24 * time.Hour)
	}
	return got, err
}

// B154: whoever is interrupted while polling gets the id to go on with; the batch goes on, and is waited for again.
func TestB154_InterruptedWaitCanBeResumed(t *testing.T) {
	t.Parallel()
	for name, plan := range map[string]standin.Plan{
		"between looks":  onLooks(time.Hour),
		"while it looks": onLooks(time.Hour, standin.Step{}, standin.Step{Kind: standin.Timeout, Times: 99}),
	} {
		in(t, plan, func(w *world) {
			made := w.create(requests("a", 2))
			ctx, cancel := context.WithCancel(w.Context())
			time.AfterFunc(15*time.Second, cancel)
			began := time.Now()
			_, err := w.client.Wait(ctx, made.ID)
			var stopped *batch.WaitError
			if !errors.As(err, &stopped) || stopped.ID != made.ID || !strings.Contains(err.Error(), made.ID) || !errors.Is(err, context.Canceled) || time.Since(began) != 15*time.Second {
				w.Fatalf("%s: error %v after %v", name, err, time.Since(began))
			}
			if !strings.Contains(stopped.Hint(), "Wait") || stopped.Last == nil {
				w.Errorf("%s: hint %q, last %v", name, stopped.Hint(), stopped.Last)
			}
			ended, err := w.another().Wait(w.Context(), stopped.ID)
			if err != nil || ended.RequestCounts.Succeeded != 2 {
				w.Errorf("%s: %v, error %v", name, ended, err)
			}
			w.counts(1, 1)
			if n := len(w.server.Journal().Where(func(e standin.Exchange) bool { return strings.HasSuffix(e.Path, "/cancel") })); n != 0 {
				w.Errorf("%s: canceled %d times", name, n)
			}
		})
	}
}

// Batches that expire or are canceled end like any other.
func TestWaitSeesExpiredAndCanceledBatches(t *testing.T) {
	t.Parallel()
	in(t, standin.Plan{Batches: standin.Batches{Takes: -1}}, func(w *world) {
		if ended := w.ended(requests("a", 3)); ended.RequestCounts.Expired != 3 {
			w.Errorf("ended with %s", ended.RawJSON())
		}
	})
	in(t, standin.Plan{Batches: standin.Batches{Takes: time.Hour, CancelTakes: 5 * time.Minute}}, func(w *world) {
		var phases []string
		w.client.Observe = func(b *anthropic.MessageBatch) { phases = append(phases, string(b.ProcessingStatus)) }
		made := w.create(requests("a", 3))
		time.AfterFunc(time.Minute, func() {
			_, _ = w.sdk.Messages.Batches.Cancel(w.Context(), made.ID, anthropic.MessageBatchCancelParams{})
		})
		ended, err := w.client.Wait(w.Context(), made.ID)
		if err != nil || ended.RequestCounts.Canceled != 3 || !slices.Equal(slices.Compact(phases), []string{"in_progress", "canceling", "ended"}) {
			w.Errorf("%v, error %v, phases %v", ended, err, phases)
		}
	})
}
