package batch_test

import (
	"errors"
	"testing"
	"time"

	"github.com/anthropics/anthropic-sdk-go/v2"

	"holdfast/batch"
	"holdfast/once"
	"holdfast/standin"
)

// No candidates prove nothing: the record stays, and the next Create searches before it sends.
func TestIdentifyWithoutCandidatesForgetsNothing(t *testing.T) {
	t.Parallel()
	blind := slow(onCreate(standin.Step{Kind: standin.Lost}, standin.Step{Kind: standin.HTTP, Status: 529, Times: 60}))
	in(t, blind, func(w *world) {
		w.client.Ledger = once.New(once.NewMemory(), once.Options{})
		_, _, err := w.client.Create(w.Context(), requests("a", 3))
		var doubt *batch.DoubtfulError
		if !errors.As(err, &doubt) || len(doubt.Candidates) != 0 || doubt.Looks != 0 || doubt.List == nil {
			w.Fatalf("error %v, want doubt without a look", err)
		}
		_, err = w.client.Identify(w.Context(), doubt.Candidates, requests("a", 3))
		if !errors.As(err, &doubt) || !errors.Is(err, batch.ErrNoCandidates) || errors.Is(err, batch.ErrNotMade) || doubt.Key == "" || doubt.Hint() == "" {
			w.Errorf("error %v, want that nothing is proven", err)
		}
		w.sleep(time.Hour)
		for { // until the faults of the list are used up
			made, _, err := w.client.Create(w.Context(), requests("a", 3))
			if err == nil {
				if made.ID != w.made()[0] {
					w.Errorf("made %v", made)
				}
				break
			}
			if w.posts() != 1 {
				break
			}
		}
		w.counts(1, 1)
	})
}

// The candidates need not be all that the list had, and a list that is not seen to the end tells nothing.
func TestIdentifyLooksAtTheListBeforeItForgets(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		list []standin.Step
		made bool // the batch was made
		want error
	}{
		{name: "the batch is in the list", made: true},
		{name: "the list cannot be seen", made: true, list: []standin.Step{{Kind: standin.HTTP, Status: 403, Times: 9}}, want: &batch.DoubtfulError{}},
		{name: "the batch was not made", want: batch.ErrNotMade},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			in(t, slow(onCreate(append([]standin.Step{{}, {}}, tt.list...)...)), func(w *world) {
				others := w.create(requests("other", 3))
				mine := others
				if tt.made {
					var err error
					if mine, _, err = w.another().Create(w.Context(), requests("a", 3)); err != nil {
						w.Fatal(err)
					}
				} else {
					w.create(requests("more", 3))
				}
				got, err := w.another().Identify(w.Context(), []anthropic.MessageBatch{*others}, requests("a", 3))
				var doubt *batch.DoubtfulError
				switch {
				case tt.want == nil:
					if err != nil || got.ID != mine.ID {
						w.Errorf("%v, error %v", got, err)
					}
				case errors.Is(tt.want, batch.ErrNotMade):
					if !errors.Is(err, batch.ErrNotMade) {
						w.Errorf("error %v", err)
					}
				case !errors.As(err, &doubt) || doubt.List == nil || statusOf(doubt.List) != 403 || errors.Is(err, batch.ErrNotMade):
					w.Errorf("error %v, want that the list cannot be seen", err)
				}
				w.counts(2, 2)
			})
		})
	}
}
