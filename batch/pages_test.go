package batch_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anthropics/anthropic-sdk-go/v2"
	"github.com/anthropics/anthropic-sdk-go/v2/option"
	"github.com/anthropics/anthropic-sdk-go/v2/packages/pagination"
	"pgregory.net/rapid"

	"holdfast"
	"holdfast/batch"
	"holdfast/standin"
)

// thing is an item of a list.
type thing struct {
	ID string `json:"id"`
}

func idOf(t thing) string { return t.ID }

// page is a page as the SDK reads it.
func page(text string) (*pagination.Page[thing], error) {
	p := &pagination.Page[thing]{}
	return p, json.Unmarshal([]byte(text), p)
}

func pageOf(ids []string, more bool) (*pagination.Page[thing], error) {
	things, last := []thing{}, "null"
	for _, id := range ids {
		things = append(things, thing{id})
		last = fmt.Sprintf("%q", id)
	}
	data, _ := json.Marshal(things)
	return page(fmt.Sprintf(`{"data":%s,"has_more":%t,"last_id":%s}`, data, more, last))
}

func idsOf[T any](all func(yield func(T, error) bool), id func(T) string) (ids []string, err error) {
	for one, err := range all {
		if err != nil {
			return ids, err
		}
		ids = append(ids, id(one))
	}
	return ids, nil
}

// Every list of the API meets a fault at every border of its pages, twice, and is whole.
func TestPagesOfTheAPISurviveFaults(t *testing.T) {
	t.Parallel()
	for _, step := range []standin.Step{
		{Kind: standin.HTTP, Status: 529}, {Kind: standin.HTTP, Status: 429, RetryAfter: "5"}, {Kind: standin.Reset}, {Kind: standin.Cut},
		{Kind: standin.Cut, How: standin.Chunk}, {Kind: standin.Empty}, {Kind: standin.HTML}, {Kind: standin.Malformed}, {Kind: standin.Error}, {Kind: standin.Timeout},
	} {
		t.Run(string(step.Kind)+" "+string(step.How), func(t *testing.T) {
			t.Parallel()
			steps := []standin.Step{{}}
			for range 40 {
				steps = append(steps, step, step, standin.Step{})
			}
			plan := standin.Plan{Rules: []standin.Rule{{Match: standin.Match{Path: "/v1/models"}, Steps: steps}}}
			in(t, plan, func(w *world) {
				whole, err := w.sdk.Models.List(w.Context(), anthropic.ModelListParams{Limit: anthropic.Int(1000)})
				if err != nil {
					w.Fatal(err)
				}
				paging := batch.Paging{Policy: w.client.Policy}
				got, err := idsOf(batch.Pages(w.Context(), paging, func(ctx context.Context, after string) (*pagination.Page[anthropic.ModelInfo], error) {
					params := anthropic.ModelListParams{Limit: anthropic.Int(2)}
					if after != "" {
						params.AfterID = anthropic.String(after)
					}
					return w.sdk.Models.List(ctx, params, option.WithMaxRetries(0))
				}, func(m anthropic.ModelInfo) string { return m.ID }), func(m anthropic.ModelInfo) string { return m.ID })
				if err != nil {
					w.Fatal(err)
				}
				if want := ids(whole.Data); !slices.Equal(got, want) || len(want) < 5 {
					w.Errorf("got %v, want %v", got, want)
				}
			})
		})
	}
}

func ids(models []anthropic.ModelInfo) (all []string) {
	for _, m := range models {
		all = append(all, m.ID)
	}
	return all
}

// The batches of a workspace, more than a page of them, the latest first.
func TestAllListsEveryBatch(t *testing.T) {
	t.Parallel()
	in(t, standin.Plan{}, func(w *world) {
		for i := range 130 {
			w.create(requests(fmt.Sprint(i), 1))
		}
		got, err := idsOf(w.client.All(w.Context()), func(b anthropic.MessageBatch) string { return b.ID })
		want := w.made()
		slices.Reverse(want)
		if err != nil || !slices.Equal(got, want) {
			w.Errorf("%d batches, error %v", len(got), err)
		}
	})
}

// shelf is a list that changes while it is read, and whose pages fail.
type shelf struct {
	ids   []string
	dice  *rapid.T
	moves int // further changes
	fresh int
	limit int
	shift bool // the list shifts its pages, as one that counts positions does
	at    int
	calls int
}

func (s *shelf) change() {
	if s.moves == 0 {
		return
	}
	s.moves--
	switch rapid.IntRange(0, 3).Draw(s.dice, "change") {
	case 0, 1: // one that is new, in front
		s.fresh++
		s.ids = slices.Insert(s.ids, 0, fmt.Sprintf("new-%d", s.fresh))
	case 2: // one that is new, anywhere
		s.fresh++
		s.ids = slices.Insert(s.ids, rapid.IntRange(0, len(s.ids)).Draw(s.dice, "place"), fmt.Sprintf("new-%d", s.fresh))
	case 3: // one of those that may go
		i := slices.IndexFunc(s.ids, func(id string) bool { return id[0] == 'g' })
		if i >= 0 {
			s.ids = slices.Delete(s.ids, i, i+1)
		}
	}
}

func (s *shelf) fetch(_ context.Context, after string) (*pagination.Page[thing], error) {
	s.calls++
	if rapid.IntRange(0, 9).Draw(s.dice, "fault") < 3 {
		return nil, errors.Join(holdfast.ErrCut, errors.New("lost"))
	}
	defer s.change()
	from := 0
	switch {
	case s.shift && after != "":
		from = min(s.at, len(s.ids)) // by position: what was inserted in front comes again at the border
	case after != "":
		i := slices.Index(s.ids, after)
		if i < 0 {
			return nil, &gone{}
		}
		from = i + 1
	}
	to := min(from+s.limit, len(s.ids))
	s.at = to
	return pageOf(s.ids[from:to], to < len(s.ids))
}

// gone is how the API refuses a cursor whose object was deleted.
type gone struct{}

func (*gone) Error() string   { return "after_id: no such object" }
func (*gone) StatusCode() int { return 400 }

// What stands in the list all the while comes once, whatever is put in, taken out or fails meanwhile; nothing comes twice.
func TestPagesNeitherLoseNorRepeat(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		s := &shelf{dice: r, limit: rapid.IntRange(1, 7).Draw(r, "limit"), moves: rapid.IntRange(0, 12).Draw(r, "moves"), shift: rapid.Bool().Draw(r, "shift")}
		if s.shift {
			s.limit += 2 // one is put in at each border, and more than one must come
		}
		n := rapid.IntRange(0, 40).Draw(r, "items")
		for i := range n {
			kind := "kept"
			if !s.shift && i%5 == 4 {
				kind = "goes"
			}
			s.ids = append(s.ids, fmt.Sprintf("%s-%d", kind, i))
		}
		policy := holdfast.Policy{Attempts: 50, Backoff: holdfast.Backoff{Base: time.Nanosecond, Cap: time.Nanosecond}}
		got, err := idsOf(batch.Pages(context.Background(), batch.Paging{Policy: &policy}, s.fetch, idOf), idOf)
		if err != nil {
			r.Fatal(err)
		}
		counts := map[string]int{}
		for _, id := range got {
			if counts[id]++; counts[id] > 1 {
				r.Fatalf("%s came twice: %v", id, got)
			}
		}
		for i := range n {
			if id := fmt.Sprintf("kept-%d", i); (s.shift || i%5 != 4) && counts[id] != 1 {
				r.Fatalf("%s came %d times: %v", id, counts[id], got)
			}
		}
	})
}

// A list that has no end, or goes in a circle, ends with an error, and what it had is yielded.
func TestPagesEnd(t *testing.T) {
	t.Parallel()
	n := 0
	for _, tt := range []struct {
		name   string
		fetch  func(after string) (*pagination.Page[thing], error)
		items  []string
		pages  int
		cursor string
		failed error
	}{
		{name: "one page", fetch: func(string) (*pagination.Page[thing], error) { return pageOf([]string{"a", "b"}, false) }, items: []string{"a", "b"}},
		{name: "an empty list", fetch: func(string) (*pagination.Page[thing], error) { return pageOf(nil, false) }},
		{name: "the same page for ever", fetch: func(string) (*pagination.Page[thing], error) { return pageOf([]string{"a", "b"}, true) }, items: []string{"a", "b"}, pages: 4, cursor: "b"},
		{name: "empty pages with more", fetch: func(after string) (*pagination.Page[thing], error) {
			if after == "" {
				return pageOf([]string{"a"}, true)
			}
			return pageOf(nil, true)
		}, items: []string{"a"}, pages: 4, cursor: "a"},
		{name: "a circle of three", fetch: func(after string) (*pagination.Page[thing], error) {
			return pageOf(map[string][]string{"": {"a"}, "a": {"b"}, "b": {"c"}, "c": {"a"}}[after], true)
		}, items: []string{"a", "b", "c"}, pages: 6, cursor: "c"},
		{name: "ever new ones", fetch: func(string) (*pagination.Page[thing], error) { n++; return pageOf([]string{fmt.Sprint("n", n)}, true) }, pages: 30},
		{name: "no last_id", fetch: func(after string) (*pagination.Page[thing], error) {
			if after == "b" {
				return page(`{"data":[{"id":"c"}],"has_more":false}`)
			}
			return page(`{"data":[{"id":"a"},{"id":"b"}],"has_more":true}`)
		}, items: []string{"a", "b", "c"}},
		{name: "no has_more", fetch: func(after string) (*pagination.Page[thing], error) {
			return page(map[string]string{"": `{"data":[{"id":"a"},{"id":"b"}]}`, "b": `{"data":[{"id":"c"}]}`, "c": `{"data":[]}`}[after])
		}, items: []string{"a", "b", "c"}},
		{name: "a page without a list", fetch: func(after string) (*pagination.Page[thing], error) {
			if after == "a" {
				return page(`{"type":"error"}`)
			}
			return pageOf([]string{"a"}, true)
		}, items: []string{"a"}, failed: holdfast.ErrEmpty},
		{name: "a nil page", fetch: func(string) (*pagination.Page[thing], error) { return nil, nil }, failed: holdfast.ErrEmpty},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				got, err := idsOf(batch.Pages(t.Context(), batch.Paging{MaxPages: 30}, func(_ context.Context, after string) (*pagination.Page[thing], error) { return tt.fetch(after) }, idOf), idOf)
				if tt.items != nil && !slices.Equal(got, tt.items) {
					t.Errorf("items %v, want %v", got, tt.items)
				}
				var loop *batch.LoopError
				switch {
				case tt.pages > 0:
					if !errors.As(err, &loop) || loop.Pages != tt.pages || loop.Cursor != tt.cursor || loop.Items != len(got) || loop.Hint() == "" || loop.Error() == "" {
						t.Errorf("error %+v, want a loop at %q after %d pages", err, tt.cursor, tt.pages)
					}
				case !errors.Is(err, tt.failed):
					t.Errorf("error %v, want %v", err, tt.failed)
				}
			})
		})
	}
}

// Nobody asks for a page that is not needed.
func TestPagesAreAskedForOneByOne(t *testing.T) {
	t.Parallel()
	asked := 0
	for one, err := range batch.Pages(t.Context(), batch.Paging{}, func(_ context.Context, after string) (*pagination.Page[thing], error) {
		asked++
		return pageOf([]string{after + "a", after + "b"}, true)
	}, idOf) {
		if err != nil || one.ID == "bb" {
			break
		}
	}
	if asked != 2 {
		t.Errorf("asked %d times, want 2", asked)
	}
}
