package batch_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anthropics/anthropic-sdk-go/v2"
	"github.com/anthropics/anthropic-sdk-go/v2/option"

	"holdfast"
	"holdfast/batch"
	"holdfast/once"
	"holdfast/standin"
)

var errKilled = errors.New("killed")

// mortal is a store that takes no writes any more once its process is dead.
type mortal struct {
	once.Store

	dead atomic.Bool
}

func (m *mortal) Swap(ctx context.Context, key, revision string, next *once.Record) (bool, error) {
	if m.dead.Load() {
		return false, once.ErrClosed
	}
	return m.Store.Swap(ctx, key, revision, next)
}

// dying is an API whose client is killed when it creates, before the request or after the reply.
type dying struct {
	batch.API

	store *mortal
	after bool
}

func (d dying) New(ctx context.Context, params anthropic.MessageBatchNewParams, opts ...option.RequestOption) (*anthropic.MessageBatch, error) {
	if d.after {
		_, _ = d.API.New(ctx, params, opts...)
	}
	d.store.dead.Store(true)
	panic(errKilled)
}

// killed runs a Create that is killed.
func (w *world) killed(c *batch.Client, requests []batch.Request) {
	w.Helper()
	defer func() {
		if recover() == nil {
			w.Error("it was not killed")
		}
	}()
	_, _, _ = c.Create(w.Context(), requests)
}

// A program that is killed anywhere in Create makes the batch once, if it begins again.
func TestLedgerSurvivesACrash(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name        string
		plan        standin.Plan
		first       func(w *world, store *mortal)
		resend      bool
		how         batch.How
		doubt       bool
		posts, made int
		atLeast     time.Duration // the second run
	}{
		{
			name: "after the id was recorded", plan: slow(standin.Plan{}), how: batch.ByRecord, posts: 1, made: 1,
			first: func(w *world, _ *mortal) { w.create(requests("a", 3)) },
		},
		{
			name: "between the reply and the record", plan: slow(standin.Plan{}), how: batch.ByCount, posts: 1, made: 1, atLeast: 10 * time.Minute,
			first: func(w *world, store *mortal) {
				w.client.API = dying{w.client.API, store, true}
				w.killed(w.client, requests("a", 3))
			},
		},
		{
			name: "between the reply and the record, and the batch has ended", plan: standin.Plan{Batches: standin.Batches{Takes: time.Minute}},
			how: batch.ByIDs, posts: 1, made: 1, atLeast: 10 * time.Minute,
			first: func(w *world, store *mortal) {
				w.client.API = dying{w.client.API, store, true}
				w.killed(w.client, requests("a", 3))
			},
		},
		{
			name: "between the reply and the record, five hours ago, with Resend", plan: slow(standin.Plan{}), resend: true, how: batch.ByIDs, posts: 1, made: 1,
			first: func(w *world, store *mortal) {
				w.client.API = dying{w.client.API, store, true}
				w.killed(w.client, requests("a", 3))
				w.sleep(5 * time.Hour)
			},
		},
		{
			name: "before the request", plan: slow(standin.Plan{}), doubt: true, atLeast: 10 * time.Minute,
			first: func(w *world, store *mortal) {
				w.client.API = dying{w.client.API, store, false}
				w.killed(w.client, requests("a", 3))
			},
		},
		{
			name: "before the request, with Resend", plan: slow(standin.Plan{}), resend: true, how: batch.ByReply, posts: 1, made: 1, atLeast: 10 * time.Minute,
			first: func(w *world, store *mortal) {
				w.client.API = dying{w.client.API, store, false}
				w.killed(w.client, requests("a", 3))
			},
		},
		{
			name: "the caller leaves before the reply", plan: slow(onCreate(standin.Step{Kind: standin.Lost, How: standin.Silence})), how: batch.ByCount, posts: 1, made: 1,
			first: func(w *world, _ *mortal) {
				ctx, cancel := context.WithTimeout(w.Context(), time.Second)
				defer cancel()
				var doubt *batch.DoubtfulError
				if _, _, err := w.client.Create(ctx, requests("a", 3)); !errors.As(err, &doubt) {
					w.Errorf("error %v, want doubt", err)
				}
			},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			in(t, tt.plan, func(w *world) {
				shared := once.NewMemory()
				store := &mortal{Store: shared}
				w.client.Ledger = once.New(store, once.Options{})
				tt.first(w, store)

				began := time.Now()
				w.client = w.another()
				w.client.Ledger, w.client.Resend = once.New(shared, once.Options{}), tt.resend
				got, created, err := w.client.Create(w.Context(), requests("a", 3))
				var doubt *batch.DoubtfulError
				if tt.doubt != errors.As(err, &doubt) || !tt.doubt && (err != nil || got.ID != w.made()[0] || created.How != tt.how) {
					w.Errorf("%v by %v, error %v", got, created.How, err)
				}
				w.counts(tt.posts, tt.made)
				if took := time.Since(began); took < tt.atLeast || took > 15*time.Minute {
					w.Errorf("it took %v, want at least %v", took, tt.atLeast)
				}
				if tt.doubt {
					return
				}
				again, created, err := w.client.Create(w.Context(), requests("a", 3))
				if err != nil || again.ID != got.ID || created.How != batch.ByRecord {
					w.Errorf("afterwards %v by %v, error %v", again, created.How, err)
				}
				w.counts(tt.posts, tt.made)
			})
		})
	}
}

// The table of Create holds with a ledger too.
func TestLedgerRecordsWhatCreateFindsOut(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name        string
		step        standin.Step
		resend      bool
		posts, made int
		how         batch.How
		doubt       bool
		status      int
		state       once.State // of the record; 0: there is none
	}{
		{name: "an answer", posts: 1, made: 1, state: once.Done},
		{name: "429 twice", step: standin.Step{Kind: standin.HTTP, Status: 429, Times: 2}, posts: 3, made: 1, state: once.Done},
		{name: "429 for ever", step: standin.Step{Kind: standin.HTTP, Status: 429, Times: 99}, posts: 4, status: 429},
		{name: "400", step: standin.Step{Kind: standin.HTTP, Status: 400}, posts: 1, status: 400},
		{name: "a lost reply", step: standin.Step{Kind: standin.Lost}, posts: 1, made: 1, how: batch.ByCount, state: once.Done},
		{name: "a reset", step: standin.Step{Kind: standin.Reset}, posts: 1, doubt: true, state: once.Unknown},
		{name: "a reset, with Resend", step: standin.Step{Kind: standin.Reset}, resend: true, posts: 2, made: 1, state: once.Done},
		{name: "resets, with Resend", step: standin.Step{Kind: standin.Reset, Times: 9}, resend: true, posts: 2, doubt: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			in(t, slow(onPost(tt.step)), func(w *world) {
				w.client.Ledger, w.client.Resend = once.New(once.NewMemory(), once.Options{}), tt.resend
				got, created, err := w.client.Create(w.Context(), requests("a", 3))
				var doubt *batch.DoubtfulError
				switch {
				case tt.doubt:
					if !errors.As(err, &doubt) || doubt.Key != created.Key {
						w.Errorf("%v, error %v, want doubt", got, err)
					}
				case tt.status != 0:
					if errors.As(err, &doubt) || statusOf(err) != tt.status {
						w.Errorf("%v, error %v, want status %d", got, err, tt.status)
					}
				case err != nil || got.ID != w.made()[0] || created.How != tt.how:
					w.Errorf("%v by %v, error %v", got, created.How, err)
				}
				w.counts(tt.posts, tt.made)
				record, _, err := w.client.Ledger.Record(w.Context(), created.Key)
				if err != nil || record.State != tt.state {
					w.Errorf("recorded %v, error %v, want %v", record.State, err, tt.state)
				}
			})
		})
	}
}

// Two programs that share a ledger make one batch of the same requests, and both get it.
func TestLedgerIsSharedByPrograms(t *testing.T) {
	t.Parallel()
	plan := slow(standin.Plan{})
	plan.Rules = onPost(standin.Step{Delay: 3 * time.Second}).Rules
	in(t, plan, func(w *world) {
		store := once.NewMemory()
		got := make(chan string)
		for range 3 {
			c := w.another()
			c.Ledger = once.New(store, once.Options{})
			go func() {
				made, _, err := c.Create(w.Context(), requests("a", 3))
				if err != nil {
					w.Error(err)
					got <- ""
					return
				}
				got <- made.ID
			}()
		}
		for range 3 {
			if id := <-got; id != w.made()[0] {
				w.Errorf("got %s of %v", id, w.made())
			}
		}
		w.counts(1, 1)
	})
}

// Whoever leaves a create that others wait for too leaves it to them.
func TestLedgerLeavesACreateToOthers(t *testing.T) {
	t.Parallel()
	plan := slow(onPost(standin.Step{Delay: 3 * time.Second}))
	in(t, plan, func(w *world) {
		ledger := once.New(once.NewMemory(), once.Options{})
		other := w.another()
		w.client.Ledger, other.Ledger = ledger, ledger
		left := make(chan error)
		go func() {
			ctx, cancel := context.WithTimeout(w.Context(), 2*time.Second)
			defer cancel()
			_, _, err := w.client.Create(ctx, requests("a", 3))
			left <- err
		}()
		w.sleep(time.Second)
		go func() {
			var running *once.InProgressError
			if err := <-left; !errors.As(err, &running) || !errors.Is(err, context.DeadlineExceeded) {
				w.Errorf("error %v, want that it goes on", err)
			}
		}()
		made, _, err := other.Create(w.Context(), requests("a", 3))
		if err != nil || made.ID != w.made()[0] {
			w.Errorf("%v, error %v", made, err)
		}
		w.counts(1, 1)
	})
}

// What Identify finds out is recorded. Run tells batches apart that are wanted twice.
func TestLedgerIsToldWhatIdentifyFinds(t *testing.T) {
	t.Parallel()
	in(t, slow(onPost(standin.Step{Kind: standin.Lost})), func(w *world) {
		w.client.Ledger, w.client.Shared = once.New(once.NewMemory(), once.Options{}), true
		_, _, err := w.client.Create(w.Context(), requests("a", 3))
		var doubt *batch.DoubtfulError
		if !errors.As(err, &doubt) || len(doubt.Candidates) != 1 {
			w.Fatalf("error %v", err)
		}
		found, err := w.client.Identify(w.Context(), doubt.Candidates, requests("a", 3))
		if err != nil {
			w.Fatal(err)
		}
		if again, created, err := w.client.Create(w.Context(), requests("a", 3)); err != nil || again.ID != found.ID || created.How != batch.ByRecord {
			w.Errorf("%v by %v, error %v", again, created.How, err)
		}
		w.counts(1, 1)
		second := w.another()
		second.Ledger, second.Run = w.client.Ledger, "second"
		if made, _, err := second.Create(w.Context(), requests("a", 3)); err != nil || made.ID == found.ID {
			w.Errorf("made %v, error %v", made, err)
		}
		w.counts(2, 2)
	})
	in(t, slow(onPost(standin.Step{Kind: standin.Reset})), func(w *world) {
		w.client.Ledger = once.New(once.NewMemory(), once.Options{})
		_, created, err := w.client.Create(w.Context(), requests("a", 3)) // the reset
		var doubt *batch.DoubtfulError
		if !errors.As(err, &doubt) {
			w.Fatalf("error %v", err)
		}
		if _, found, err := w.client.Ledger.Record(w.Context(), created.Key); !found || err != nil {
			w.Errorf("the doubt is not recorded, error %v", err)
		}
		other, _, err := w.another().Create(w.Context(), requests("x", 3))
		if err != nil {
			w.Fatal(err)
		}
		if _, err := w.client.Identify(w.Context(), []anthropic.MessageBatch{*other}, requests("a", 3)); !errors.Is(err, batch.ErrNotMade) {
			w.Errorf("error %v", err)
		}
		if _, found, err := w.client.Ledger.Record(w.Context(), created.Key); found || err != nil {
			w.Errorf("the doubt is still recorded, error %v", err)
		}
		w.create(requests("a", 3))
		w.counts(3, 2)
	})
}

// Without a connection nothing was sent, however often that was tried: nothing is in doubt.
func TestLedgerForgetsWhatWasNeverSent(t *testing.T) {
	t.Parallel()
	in(t, standin.Plan{}, func(w *world) {
		w.client.Ledger = once.New(once.NewMemory(), once.Options{})
		w.net.Refuse("api.test:80")
		_, created, err := w.client.Create(w.Context(), requests("a", 3))
		var doubt *batch.DoubtfulError
		if !errors.Is(err, holdfast.ErrAttempts) || errors.As(err, &doubt) {
			w.Errorf("error %v", err)
		}
		if _, found, err := w.client.Ledger.Record(w.Context(), created.Key); found || err != nil {
			w.Errorf("there is a record, error %v", err)
		}
		w.net.Restore("api.test:80")
		w.create(requests("a", 3))
		w.counts(1, 1)
	})
}

func TestLedgerThatFailsKeepsTheBatchFromBeingMade(t *testing.T) {
	t.Parallel()
	in(t, standin.Plan{}, func(w *world) {
		store := &mortal{Store: once.NewMemory()}
		store.dead.Store(true)
		w.client.Ledger = once.New(store, once.Options{})
		_, _, err := w.client.Create(w.Context(), requests("a", 3))
		var failed *once.StoreError
		if !errors.As(err, &failed) || failed.Op != "start" {
			w.Errorf("error %v", err)
		}
		w.counts(0, 0)
	})
	in(t, slow(onPost(standin.Step{Delay: 2 * time.Second})), func(w *world) {
		store := &mortal{Store: once.NewMemory()}
		w.client.Ledger = once.New(store, once.Options{})
		time.AfterFunc(time.Second, func() { store.dead.Store(true) })
		made, created, err := w.client.Create(w.Context(), requests("a", 3))
		var failed *once.StoreError
		if !errors.As(err, &failed) || failed.Op != "record" || made == nil || made.ID != w.made()[0] || created.How != batch.ByReply {
			w.Errorf("%v by %v, error %v", made, created.How, err)
		}
	})
}
