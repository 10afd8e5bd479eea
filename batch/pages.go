package batch

import (
	"context"
	"fmt"
	"iter"
	"net/http"

	"github.com/anthropics/anthropic-sdk-go/v2"
	"github.com/anthropics/anthropic-sdk-go/v2/option"
	"github.com/anthropics/anthropic-sdk-go/v2/packages/pagination"

	"holdfast"
)

// Paging says how [Pages] goes through a list. The zero value works.
type Paging struct {
	// Policy says how the request for one page is kept working. Default: the zero Policy.
	Policy *holdfast.Policy
	// MaxPages bounds the requests that bring a page. Default: 10000. Negative: no bound.
	MaxPages int
}

const (
	defaultMaxPages = 10000

	stepsBack  = 5 // objects, when the one that a cursor names is gone
	stuckPages = 3 // in a row that lead nowhere: then it is a circle
)

// LoopError is a list that does not come to its end.
type LoopError struct {
	// Pages that came, and Items on them without repetitions.
	Pages, Items int
	// Cursor that came again; empty when it was the number of pages that grew too large.
	Cursor string
}

// Error says what keeps the list from ending. It never holds an item.
func (e *LoopError) Error() string {
	if e.Cursor == "" {
		return fmt.Sprintf("batch: the list has no end within %d pages and %d items", e.Pages, e.Items)
	}
	return fmt.Sprintf("batch: the list goes in a circle at %q, after %d pages and %d items", e.Cursor, e.Pages, e.Items)
}

// Hint says what can be done about it; it never promises that there is an end.
func (e *LoopError) Hint() string {
	if e.Cursor == "" {
		return "allow more pages, or take larger ones"
	}
	return "the server names the same cursor twice; what came until now is complete up to there"
}

// Pages yields the items of a list that is paged by ids, of batches, files or models. A page that fails is asked for again
// with the same cursor, as the policy says, and one that comes without a list in it counts as failed; an item that comes
// again, because pages have shifted, is left out. If the object that the cursor names has been deleted meanwhile, an
// earlier one takes its place. An error is yielded once, at the end, with the zero item: the last failure, or a
// [*LoopError] for a list that does not end.
//
// fetch asks for the page behind an id, for the first page when that is empty, with a client that does not retry; its
// error is judged, and a context that ends is obeyed. id tells items apart.
//
// It never yields an item twice, never leaves out one that stood in the list all the while, never asks for a page before
// the one before it is used up, and never takes a list that was cut for one that has ended. It holds the ids of all items.
func Pages[T any](ctx context.Context, how Paging, fetch func(ctx context.Context, after string) (*pagination.Page[T], error), id func(T) string) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		w := walk[T]{most: how.MaxPages, fetch: fetch, id: id, seen: map[string]bool{}, asked: map[string]bool{}}
		if w.most == 0 {
			w.most = defaultMaxPages
		}
		w.policy = reading(how.Policy)
		for !w.over {
			fresh, err := w.next(ctx)
			if err != nil {
				var none T
				yield(none, err)
				return
			}
			for _, item := range fresh {
				if !yield(item, nil) {
					return
				}
			}
		}
	}
}

// walk is one way through a list.
type walk[T any] struct {
	policy *holdfast.Policy
	most   int // pages; negative: no bound
	fetch  func(context.Context, string) (*pagination.Page[T], error)
	id     func(T) string

	after string
	asked map[string]bool // cursors
	seen  map[string]bool // ids of items
	trail []string        // ids of the latest items: what a cursor can be
	pages int
	stuck int // the latest pages in a row that brought nothing new, and a cursor that came before
	over  bool
}

// next returns the new items of the next page.
func (w *walk[T]) next(ctx context.Context) ([]T, error) {
	switch {
	case w.stuck >= stuckPages:
		return nil, &LoopError{Pages: w.pages, Items: len(w.seen), Cursor: w.after}
	case w.most >= 0 && w.pages >= w.most:
		return nil, &LoopError{Pages: w.pages, Items: len(w.seen)}
	}
	page, err := w.page(ctx)
	if err != nil {
		return nil, err
	}
	w.pages++
	fresh := w.fresh(page.Data)
	w.turn(page, len(fresh) > 0)
	return fresh, nil
}

// turn finds the cursor of the page after this one. A cursor that comes again is no circle yet: pages may have shifted.
func (w *walk[T]) turn(page *pagination.Page[T], progress bool) {
	cursor := page.LastID
	if cursor == "" && len(page.Data) > 0 {
		cursor = w.id(page.Data[len(page.Data)-1])
	}
	if page.JSON.HasMore.Valid() && !page.HasMore || !page.JSON.HasMore.Valid() && len(page.Data) == 0 {
		w.over = true
		return
	}
	if !progress && (cursor == "" || w.asked[cursor]) {
		w.stuck++
	} else {
		w.stuck = 0
	}
	if cursor != "" { // else there is more, and no way to it: the same page is asked for again
		w.asked[cursor], w.after = true, cursor
	}
}

// fresh are the items that have not come before.
func (w *walk[T]) fresh(items []T) []T {
	fresh := make([]T, 0, len(items))
	for _, item := range items {
		id := w.id(item)
		if w.seen[id] {
			continue
		}
		w.seen[id] = true
		fresh = append(fresh, item)
		if w.trail = append(w.trail, id); len(w.trail) > stepsBack+1 {
			w.trail = w.trail[1:]
		}
	}
	return fresh
}

// page asks for a page. If the object that the cursor names is gone, those before it are tried in its place: what comes
// again is known by its id.
func (w *walk[T]) page(ctx context.Context) (*pagination.Page[T], error) {
	page, err := w.ask(ctx, w.after)
	if err == nil || w.after == "" || !cursorGone(err) {
		return page, err
	}
	for i := len(w.trail) - 1; i >= 0; i-- {
		if w.trail[i] == w.after {
			continue
		}
		if page, failed := w.ask(ctx, w.trail[i]); failed == nil {
			return page, nil
		} else if !cursorGone(failed) {
			return nil, failed
		}
	}
	return nil, err
}

func cursorGone(err error) bool {
	v := verdictOf(err)
	return v.Kind == holdfast.Terminal && (v.Status == http.StatusBadRequest || v.Status == http.StatusNotFound)
}

func (w *walk[T]) ask(ctx context.Context, after string) (*pagination.Page[T], error) {
	page, _, err := holdfast.Do(ctx, w.policy, func(ctx context.Context) (*pagination.Page[T], error) {
		page, err := w.fetch(ctx, after)
		if err == nil && (page == nil || !page.JSON.Data.Valid()) {
			err = holdfast.ErrEmpty // not an end: an end says that it is one
		}
		return page, err
	})
	return page, err
}

// All yields the batches of the workspace, the latest first, as [Pages] does. It never changes one.
func (c *Client) All(ctx context.Context) iter.Seq2[anthropic.MessageBatch, error] {
	return c.batches(ctx, nil)
}

const pageLength = 100 // batches: the largest page that many lists of the API allow

// batches is All that tells of each response.
func (c *Client) batches(ctx context.Context, told func(*http.Response)) iter.Seq2[anthropic.MessageBatch, error] {
	p := c.policy()
	return Pages(ctx, Paging{Policy: &p}, func(ctx context.Context, after string) (*pagination.Page[anthropic.MessageBatch], error) {
		params := anthropic.MessageBatchListParams{Limit: anthropic.Int(pageLength)}
		if after != "" {
			params.AfterID = anthropic.String(after)
		}
		var raw *http.Response
		page, err := c.API.List(ctx, params, c.options(option.WithResponseInto(&raw))...)
		if err == nil && told != nil && raw != nil {
			told(raw)
		}
		return page, err
	}, func(b anthropic.MessageBatch) string { return b.ID })
}
