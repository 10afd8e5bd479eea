package batch_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anthropics/anthropic-sdk-go/v2"
	"github.com/anthropics/anthropic-sdk-go/v2/option"

	"holdfast"
	"holdfast/batch"
	"holdfast/standin"
	"holdfast/transport"
)

// What Create does is one table in the package's documentation. The batch is there in some of the cases, and in others not;
// the client cannot tell which.
func TestCreate(t *testing.T) {
	t.Parallel()
	ok := standin.Step{}
	for _, tt := range []struct {
		name        string
		steps       []standin.Step
		posts, made int
		how         batch.How
		lost        bool
		doubt       bool
		status      int // of the error; 0: none
	}{
		{name: "an answer at once", posts: 1, made: 1},
		{name: "429 twice", steps: []standin.Step{{Kind: standin.HTTP, Status: 429, RetryAfter: "3", Times: 2}}, posts: 3, made: 1},
		{name: "429 for ever", steps: []standin.Step{{Kind: standin.HTTP, Status: 429, Times: 9}}, posts: 4, status: 429},
		{name: "reply lost by a reset", steps: []standin.Step{{Kind: standin.Lost}}, posts: 1, made: 1, how: batch.ByCount, lost: true},
		{name: "reply lost in silence", steps: []standin.Step{{Kind: standin.Lost, How: standin.Silence}}, posts: 1, made: 1, how: batch.ByCount, lost: true},
		{name: "429, then the reply is lost", steps: []standin.Step{{Kind: standin.HTTP, Status: 429}, {Kind: standin.Lost}}, posts: 2, made: 1, how: batch.ByCount, lost: true},
		{name: "reply cut", steps: []standin.Step{{Kind: standin.Cut, How: standin.Chunk}}, posts: 1, made: 1, how: batch.ByCount, lost: true},
		{name: "reply cut with a clean end", steps: []standin.Step{{Kind: standin.Cut}}, posts: 1, made: 1, how: batch.ByCount, lost: true},
		{name: "reply is no JSON", steps: []standin.Step{{Kind: standin.Malformed}}, posts: 1, made: 1, how: batch.ByCount, lost: true},
		{name: "reply lost and the list fails twice", steps: []standin.Step{{Kind: standin.Lost}, {Kind: standin.HTTP, Status: 529, Times: 2}}, posts: 1, made: 1, how: batch.ByCount, lost: true},
		{name: "reply lost and the list cut", steps: []standin.Step{{Kind: standin.Lost}, {Kind: standin.Cut, Times: 3}}, posts: 1, made: 1, how: batch.ByCount, lost: true},
		{name: "reply lost and an empty list", steps: []standin.Step{{Kind: standin.Lost}, {Kind: standin.Empty, Times: 2}}, posts: 1, made: 1, how: batch.ByCount, lost: true},
		{name: "reset before the work", steps: []standin.Step{{Kind: standin.Reset}}, posts: 1, doubt: true, lost: true},
		{name: "500", steps: []standin.Step{{Kind: standin.HTTP, Status: 500}}, posts: 1, doubt: true, lost: true},
		{name: "500 that says to retry", steps: []standin.Step{{Kind: standin.HTTP, Status: 500, Header: standin.Header{"x-should-retry": {"true"}}}}, posts: 1, doubt: true, lost: true},
		{name: "529", steps: []standin.Step{{Kind: standin.HTTP, Status: 529}}, posts: 1, doubt: true, lost: true},
		{name: "a web page", steps: []standin.Step{{Kind: standin.HTML}}, posts: 1, doubt: true, lost: true},
		{name: "an empty 200", steps: []standin.Step{{Kind: standin.Empty}}, posts: 1, doubt: true, lost: true},
		{name: "an error inside a 200", steps: []standin.Step{{Kind: standin.Error}}, posts: 1, made: 1, how: batch.ByCount, lost: true},
		{name: "408", steps: []standin.Step{{Kind: standin.HTTP, Status: 408}}, posts: 1, doubt: true, lost: true},
		{name: "409", steps: []standin.Step{{Kind: standin.HTTP, Status: 409}}, posts: 1, doubt: true, lost: true},
		{name: "499", steps: []standin.Step{{Kind: standin.HTTP, Status: 499}}, posts: 1, doubt: true, lost: true},
		{name: "400", steps: []standin.Step{{Kind: standin.HTTP, Status: 400}}, posts: 1, status: 400},
		{name: "401", steps: []standin.Step{{Kind: standin.HTTP, Status: 401}}, posts: 1, status: 401},
		{name: "413", steps: []standin.Step{{Kind: standin.HTTP, Status: 413}}, posts: 1, status: 413},
		{name: "spend cap", steps: []standin.Step{{Kind: standin.SpendCap}}, posts: 1, status: 429},
		{name: "reply lost and the list refuses", steps: []standin.Step{{Kind: standin.Lost}, {Kind: standin.HTTP, Status: 403}, ok}, posts: 1, made: 1, doubt: true, lost: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			in(t, slow(onCreate(tt.steps...)), func(w *world) {
				got, created, err := w.client.Create(w.Context(), requests("a", 3))
				w.counts(tt.posts, tt.made)
				if (created.Lost != nil) != tt.lost || created.How != tt.how || created.Key == "" {
					w.Errorf("created %+v", created)
				}
				var doubt *batch.DoubtfulError
				switch {
				case tt.doubt:
					if !errors.As(err, &doubt) || got != nil || doubt.Hint() == "" || doubt.Key != created.Key {
						w.Errorf("%v, error %v, want doubt", got, err)
					}
				case tt.status != 0:
					if errors.As(err, &doubt) || got != nil || statusOf(err) != tt.status {
						w.Errorf("%v, error %v, want status %d", got, err, tt.status)
					}
				case err != nil || got == nil || got.ID != w.made()[0]:
					w.Errorf("%v, error %v, want %v", got, err, w.made())
				}
				w.tellsNothing(err)
			})
		})
	}
}

func statusOf(err error) int {
	var ours *holdfast.Error
	if errors.As(err, &ours) {
		return ours.Verdict.Status
	}
	return holdfast.Judge(err).Status
}

// tellsNothing holds an error's text against what must not be in it.
func (w *world) tellsNothing(err error) {
	w.Helper()
	if err != nil && (strings.Contains(err.Error(), secret) || strings.Contains(err.Error(), "KEY-CANARY")) {
		w.Errorf("%q tells a prompt or a key", err)
	}
}

// The waits that the API asks for are kept between the attempts of a create.
func TestCreateKeepsTheWaitOfA429(t *testing.T) {
	t.Parallel()
	in(t, onCreate(standin.Step{Kind: standin.HTTP, Status: 429, RetryAfter: "7", Times: 2}), func(w *world) {
		w.create(requests("a", 2))
		for _, gap := range w.server.Journal().Gaps() {
			if gap < 7*time.Second {
				w.Errorf("attempts %v apart, asked for 7s", gap)
			}
		}
		standin.Expect(w, w.server.Journal(), standin.Requests(3), standin.PaidOnce())
	})
}

// Without a connection nothing was sent, and the batch is made when there is one.
func TestCreateRepeatsWhereNoConnectionWasMade(t *testing.T) {
	t.Parallel()
	in(t, standin.Plan{}, func(w *world) {
		w.net.Refuse("api.test:80")
		time.AfterFunc(300*time.Millisecond, func() { w.net.Restore("api.test:80") })
		w.client.Policy = &holdfast.Policy{Attempts: 20}
		w.create(requests("a", 2))
		w.counts(1, 1)
	})
	in(t, standin.Plan{}, func(w *world) {
		w.net.Refuse("api.test:80")
		_, _, err := w.client.Create(w.Context(), requests("a", 2))
		var doubt *batch.DoubtfulError
		if err == nil || errors.As(err, &doubt) || !errors.Is(err, holdfast.ErrAttempts) {
			w.Errorf("error %v, want all attempts used and no doubt", err)
		}
		w.counts(0, 0)
	})
}

// A client whose own middleware keeps calls working adds no second batch, and neither does a policy with a judge of its own.
func TestCreateUnderOtherLayers(t *testing.T) {
	t.Parallel()
	in(t, slow(onCreate(standin.Step{Kind: standin.Lost})), func(w *world) {
		w.client.Options = []option.RequestOption{option.WithMiddleware(transport.Middleware(&holdfast.Policy{})), option.WithMaxRetries(5)}
		w.client.Policy = &holdfast.Policy{Judge: func(error) holdfast.Verdict { return holdfast.Verdict{Kind: holdfast.Broken} }}
		w.create(requests("a", 2))
		w.counts(1, 1)
	})
}

// Others make batches too, of the same size and at the same time.
func TestCreateAmongOthers(t *testing.T) {
	t.Parallel()
	lost := slow(standin.Plan{Rules: []standin.Rule{{Match: standin.Match{Path: batchPath, Header: map[string]string{"x-test": "lost"}}, Steps: []standin.Step{{Kind: standin.Lost}}}}})
	marked := []option.RequestOption{option.WithHeader("x-test", "lost")}

	t.Run("of another size, and of another time", func(t *testing.T) {
		in(t, lost, func(w *world) {
			w.another().Create(w.Context(), requests("old", 3))
			w.sleep(time.Hour)
			w.another().Create(w.Context(), requests("other", 2))
			w.client.Options = marked
			if got := w.create(requests("a", 3)); got.ID != w.made()[2] {
				w.Errorf("adopted %s of %v", got.ID, w.made())
			}
		})
	})
	t.Run("our own of the same size just before", func(t *testing.T) {
		in(t, lost, func(w *world) {
			first := w.create(requests("first", 3))
			w.client.Options = marked
			if got := w.create(requests("a", 3)); got.ID == first.ID || got.ID != w.made()[1] {
				w.Errorf("adopted %s of %v", got.ID, w.made())
			}
		})
	})
	t.Run("two that it could be", func(t *testing.T) {
		in(t, lost, func(w *world) {
			w.another().Create(w.Context(), requests("other", 3))
			w.client.Options = marked
			_, _, err := w.client.Create(w.Context(), requests("a", 3))
			var doubt *batch.DoubtfulError
			if !errors.As(err, &doubt) || len(doubt.Candidates) != 2 || !strings.Contains(err.Error(), doubt.Candidates[1].ID) {
				w.Fatalf("error %v, want doubt between two", err)
			}
			w.counts(2, 2)
			got, err := w.client.Identify(w.Context(), doubt.Candidates, requests("a", 3))
			if err != nil || got.ID != w.made()[1] {
				w.Errorf("identified %v, error %v, want %s", got, err, w.made()[1])
			}
			if _, err := w.client.Identify(w.Context(), doubt.Candidates, requests("b", 3)); !errors.Is(err, batch.ErrNotMade) {
				w.Errorf("error %v, want that none was made", err)
			}
		})
	})
	t.Run("one that the list shows before our own", func(t *testing.T) {
		late := lost
		late.Batches.Hidden = 8 * time.Second
		in(t, late, func(w *world) {
			w.another().Create(w.Context(), requests("other", 3))
			w.sleep(8 * time.Second) // so it is seen at once, and could be ours by its time
			w.client.Options = marked
			var doubt *batch.DoubtfulError
			if got, _, err := w.client.Create(w.Context(), requests("a", 3)); !errors.As(err, &doubt) || len(doubt.Candidates) != 2 {
				w.Errorf("%v, error %v, want doubt between two", got, err)
			}
		})
	})
	t.Run("two of the same requests", func(t *testing.T) {
		in(t, lost, func(w *world) {
			var both []anthropic.MessageBatch
			for range 2 {
				made, _, err := w.another().Create(w.Context(), requests("a", 3))
				if err != nil {
					w.Fatal(err)
				}
				both = append(both, *made)
			}
			var doubt *batch.DoubtfulError
			if _, err := w.client.Identify(w.Context(), both, requests("a", 3)); !errors.As(err, &doubt) || len(doubt.Candidates) != 2 {
				w.Errorf("error %v, want that it is both", err)
			}
		})
	})
	t.Run("a lone one in a shared workspace", func(t *testing.T) {
		in(t, lost, func(w *world) {
			w.client.Options, w.client.Shared = marked, true
			_, _, err := w.client.Create(w.Context(), requests("a", 3))
			var doubt *batch.DoubtfulError
			if !errors.As(err, &doubt) || len(doubt.Candidates) != 1 {
				w.Fatalf("error %v, want doubt with one candidate", err)
			}
			if got, err := w.client.Identify(w.Context(), doubt.Candidates, requests("a", 3)); err != nil || got.ID != w.made()[0] {
				w.Errorf("identified %v, error %v", got, err)
			}
		})
	})
}

// What has ended can be told by its custom ids at once, also between several.
func TestCreateComparesCustomIDs(t *testing.T) {
	t.Parallel()
	quick := standin.Plan{Batches: standin.Batches{Takes: time.Second}, Rules: []standin.Rule{{
		Match: standin.Match{Path: batchPath, Header: map[string]string{"x-test": "lost"}}, Steps: []standin.Step{{Kind: standin.Lost, How: standin.Silence}},
	}}}
	in(t, quick, func(w *world) {
		for _, name := range []string{"x", "y"} {
			if _, _, err := w.another().Create(w.Context(), requests(name, 3)); err != nil {
				w.Fatal(err)
			}
		}
		w.client.Options, w.client.Shared = []option.RequestOption{option.WithHeader("x-test", "lost")}, true
		got, created, err := w.client.Create(w.Context(), requests("a", 3))
		if err != nil || created.How != batch.ByIDs || got.ID != w.made()[2] {
			w.Errorf("%v by %v, error %v, of %v", got, created.How, err, w.made())
		}
		w.counts(3, 3)
	})
}

// A batch that the list shows late is found as long as Settle lasts.
func TestCreateFindsABatchThatTheListShowsLate(t *testing.T) {
	t.Parallel()
	for hidden, found := range map[time.Duration]bool{20 * time.Second: true, 55 * time.Second: true, 5 * time.Minute: false} {
		plan := slow(onCreate(standin.Step{Kind: standin.Lost}))
		plan.Batches.Hidden = hidden
		in(t, plan, func(w *world) {
			began := time.Now()
			_, _, err := w.client.Create(w.Context(), requests("a", 3))
			if (err == nil) != found || time.Since(began) > 80*time.Second {
				w.Errorf("hidden for %v: error %v after %v", hidden, err, time.Since(began))
			}
			w.counts(1, 1)
			if looks := len(w.server.Journal()) - 1; looks < 3 || looks > 12 {
				w.Errorf("hidden for %v: %d looks", hidden, looks)
			}
		})
	}
}

// Resend is for those who take absence for a proof: one more request, and never a third.
func TestCreateResendsOnceIfNothingIsThere(t *testing.T) {
	t.Parallel()
	posts := func(steps ...standin.Step) standin.Plan { return slow(onPost(steps...)) }
	in(t, posts(standin.Step{Kind: standin.Reset}), func(w *world) {
		w.client.Resend = true
		began := time.Now()
		_, created, err := w.client.Create(w.Context(), requests("a", 3))
		if err != nil || created.How != batch.ByReply || created.Lost == nil || time.Since(began) < time.Minute {
			w.Errorf("%+v, error %v after %v", created, err, time.Since(began))
		}
		w.counts(2, 1)
	})
	late := posts(standin.Step{Kind: standin.Lost, Times: 2}) // the list is later than Settle: that is the price
	late.Batches.Hidden = 90 * time.Second
	in(t, late, func(w *world) {
		w.client.Resend = true
		if got, created, err := w.client.Create(w.Context(), requests("a", 3)); err != nil || created.How != batch.ByCount || got.ID != w.made()[0] {
			w.Errorf("%v by %v, error %v, want the first, which has appeared", got, created.How, err)
		}
		w.counts(2, 2)
	})
	in(t, posts(standin.Step{Kind: standin.Reset, Times: 9}), func(w *world) {
		w.client.Resend = true
		var doubt *batch.DoubtfulError
		if _, _, err := w.client.Create(w.Context(), requests("a", 3)); !errors.As(err, &doubt) {
			w.Errorf("error %v, want doubt", err)
		}
		w.counts(2, 0)
	})
	in(t, onCreate(standin.Step{Kind: standin.Lost}, standin.Step{Kind: standin.HTTP, Status: 500, Times: 99}), func(w *world) {
		w.client.Resend = true
		var doubt *batch.DoubtfulError
		if _, _, err := w.client.Create(w.Context(), requests("a", 3)); !errors.As(err, &doubt) || doubt.List == nil || doubt.Looks != 0 {
			w.Errorf("error %v, want doubt without a list", err)
		}
		w.counts(1, 1)
	})
}

// Whoever leaves while the reply is on its way is told that there may be a batch.
func TestCreateOfACallerWhoLeaves(t *testing.T) {
	t.Parallel()
	in(t, onCreate(standin.Step{Kind: standin.Lost, How: standin.Silence}), func(w *world) {
		ctx, cancel := context.WithTimeout(w.Context(), 5*time.Second)
		defer cancel()
		_, _, err := w.client.Create(ctx, requests("a", 3))
		var doubt *batch.DoubtfulError
		if !errors.As(err, &doubt) || !errors.Is(err, context.DeadlineExceeded) {
			w.Errorf("error %v, want doubt", err)
		}
		w.counts(1, 1)
	})
	in(t, onCreate(standin.Step{Kind: standin.HTTP, Status: 429, RetryAfter: "30"}), func(w *world) {
		ctx, cancel := context.WithCancel(w.Context())
		time.AfterFunc(5*time.Second, cancel)
		_, _, err := w.client.Create(ctx, requests("a", 3))
		var doubt *batch.DoubtfulError
		if errors.As(err, &doubt) || !errors.Is(err, context.Canceled) {
			w.Errorf("error %v, want no doubt: the only attempt was a 429", err)
		}
		w.counts(1, 0)
	})
	in(t, standin.Plan{}, func(w *world) {
		ctx, cancel := context.WithCancel(w.Context())
		cancel()
		if _, _, err := w.client.Create(ctx, requests("a", 3)); !errors.Is(err, context.Canceled) {
			w.Errorf("error %v", err)
		}
		w.counts(0, 0)
	})
}

// Creates of one client wait for each other, so that none adopts the batch of another.
func TestCreatesOfOneClientDoNotMix(t *testing.T) {
	t.Parallel()
	plan := slow(onPost(standin.Step{Kind: standin.Lost}, standin.Step{}, standin.Step{Kind: standin.Reset}))
	in(t, plan, func(w *world) {
		type result struct {
			name string
			got  *anthropic.MessageBatch
			err  error
		}
		results := make(chan result)
		for _, name := range []string{"lost-1", "a", "lost-2", "b"} {
			go func() {
				got, _, err := w.client.Create(w.Context(), requests(name, 3))
				results <- result{name, got, err}
			}()
			synctest.Wait()
		}
		ids := map[string]bool{}
		for range 4 {
			r := <-results
			var doubt *batch.DoubtfulError
			switch {
			case r.name == "lost-2": // it was reset: nothing was made, and nobody's batch is taken for it
				if !errors.As(r.err, &doubt) || len(doubt.Candidates) != 0 {
					w.Errorf("%s: %v, error %v", r.name, r.got, r.err)
				}
			case r.err != nil || ids[r.got.ID]:
				w.Errorf("%s: %v, error %v", r.name, r.got, r.err)
			default:
				ids[r.got.ID] = true
			}
		}
		w.counts(4, 3)
	})
}

var _ batch.API = &anthropic.MessageBatchService{}
