package batch_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"holdfast/batch"
	"holdfast/standin"
)

// A program that is killed anywhere in Create makes the batch once, if it begins again.
func TestLedgerSurvivesACrash(t *testing.T) {
	t.Parallel()
	crash := errors.New("killed")
	for _, tt := range []struct {
		name    string
		plan    standin.Plan
		crash   func(w *world, n *notes) // the first run
		how     batch.How
		doubt   bool
		resend  bool
		posts   int
		created int
	}{
		{
			name: "after the note of the id", plan: slow(standin.Plan{}), how: batch.ByNote, posts: 1, created: 1,
			crash: func(w *world, _ *notes) { w.create(requests("a", 3)) },
		},
		{
			name: "between the reply and its note", plan: slow(standin.Plan{}), how: batch.ByCount, posts: 1, created: 1,
			crash: func(w *world, n *notes) {
				n.fails = crash
				made, _, err := w.client.Create(w.Context(), requests("a", 3))
				var unnoted *batch.LedgerError
				if made == nil || !errors.As(err, &unnoted) || unnoted.ID != made.ID || !errors.Is(err, crash) || unnoted.Hint() == "" {
					w.Errorf("%v, error %v", made, err)
				}
				n.fails = nil
			},
		},
		{
			name: "before the reply", plan: slow(onCreate(standin.Step{Kind: standin.Lost, How: standin.Silence})), how: batch.ByCount, posts: 1, created: 1,
			crash: func(w *world, _ *notes) {
				ctx, cancel := context.WithTimeout(w.Context(), time.Second)
				defer cancel()
				if _, _, err := w.client.Create(ctx, requests("a", 3)); err == nil {
					w.Error("no error")
				}
			},
		},
		{
			name: "between the note and the request", plan: slow(standin.Plan{}), doubt: true, posts: 0, created: 0,
			crash: func(w *world, n *notes) {
				ctx, cancel := context.WithCancel(w.Context())
				w.client.Ledger = leaving{n, cancel}
				_, _, _ = w.client.Create(ctx, requests("a", 3))
				n.kept = map[string]batch.Note{n.last(): {Digest: n.last(), Requests: 3, At: time.Now()}}
			},
		},
		{
			name: "between the note and the request, with Resend", plan: slow(standin.Plan{}), resend: true, posts: 1, created: 1,
			crash: func(w *world, n *notes) {
				ctx, cancel := context.WithCancel(w.Context())
				w.client.Ledger = leaving{n, cancel}
				_, _, _ = w.client.Create(ctx, requests("a", 3))
				n.kept = map[string]batch.Note{n.last(): {Digest: n.last(), Requests: 3, At: time.Now()}}
			},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			in(t, tt.plan, func(w *world) {
				n := &notes{}
				w.client.Ledger = n
				tt.crash(w, n)
				w.sleep(5 * time.Minute)
				w.client = w.another()
				w.client.Ledger, w.client.Resend = n, tt.resend
				got, created, err := w.client.Create(w.Context(), requests("a", 3))
				var doubt *batch.DoubtfulError
				if tt.doubt != errors.As(err, &doubt) || !tt.doubt && (err != nil || got.ID != w.made()[0] || created.How != tt.how) {
					w.Errorf("%v by %v, error %v", got, created.How, err)
				}
				w.counts(tt.posts, tt.created)
				if !tt.doubt && n.kept[created.Digest].ID != got.ID {
					w.Errorf("noted %+v, want %s", n.kept, got.ID)
				}
			})
		})
	}
}

// leaving is a ledger whose caller leaves when the note is taken.
type leaving struct {
	*notes

	leave func()
}

func (l leaving) Begin(ctx context.Context, note batch.Note) (batch.Note, bool, error) {
	defer l.leave()
	l.mu.Lock()
	l.latest = note.Digest
	l.mu.Unlock()
	return l.notes.Begin(ctx, note)
}

func TestLedgerThatFailsKeepsTheBatchFromBeingMade(t *testing.T) {
	t.Parallel()
	in(t, standin.Plan{}, func(w *world) {
		full := errors.New("disk full")
		w.client.Ledger = &notes{stops: full}
		_, _, err := w.client.Create(w.Context(), requests("a", 3))
		var unnoted *batch.LedgerError
		if !errors.As(err, &unnoted) || unnoted.ID != "" || !errors.Is(err, full) {
			w.Errorf("error %v", err)
		}
		w.counts(0, 0)
	})
}

// A note of what surely was not made is forgotten; Run tells batches apart that are wanted twice.
func TestLedgerForgetsWhatWasNotMade(t *testing.T) {
	t.Parallel()
	in(t, onCreate(standin.Step{Kind: standin.HTTP, Status: 400}), func(w *world) {
		n := &notes{}
		w.client.Ledger = n
		if _, _, err := w.client.Create(w.Context(), requests("a", 3)); statusOf(err) != 400 || len(n.kept) != 0 {
			w.Errorf("error %v, notes %v", err, n.kept)
		}
		first := w.create(requests("a", 3))
		if again := w.create(requests("a", 3)); again.ID != first.ID {
			w.Errorf("made %s and %s", first.ID, again.ID)
		}
		another := w.another()
		another.Ledger, another.Run = n, "second"
		if second, _, err := another.Create(w.Context(), requests("a", 3)); err != nil || second.ID == first.ID {
			w.Errorf("made %v, error %v", second, err)
		}
		w.counts(3, 2)
	})
}
