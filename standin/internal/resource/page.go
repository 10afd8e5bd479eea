package resource

import (
	"slices"

	"holdfast/standin/internal/request"
)

// The size of a page, by the comment at the field Limit of the list parameters in the SDK.
const (
	defaultPage = 20
	maxPage     = 1000
)

// list is the answer to a list that is paged by ids.
type list[T any] struct {
	Data    []T     `json:"data"`
	HasMore bool    `json:"has_more"`
	FirstID *string `json:"first_id"` // null when the page is empty
	LastID  *string `json:"last_id"`
}

func newList[T any](data []T, more bool, id func(T) string) list[T] {
	page := list[T]{Data: data, HasMore: more}
	if len(data) > 0 {
		first, last := id(data[0]), id(data[len(data)-1])
		page.FirstID, page.LastID = &first, &last
	}
	return page
}

// cut returns the part of all that the page asks for, and whether there is more in the direction of the page. The ids
// stand in the order of the list. What the API says to a bad cursor is not known.
func cut[T any](all []T, page request.Page, id func(T) string) ([]T, bool, *request.Refusal) {
	limit := min(page.Limit, maxPage)
	if limit <= 0 {
		limit = defaultPage
	}
	at := func(cursor string) int { return slices.IndexFunc(all, func(one T) bool { return id(one) == cursor }) }
	switch {
	case page.AfterID != "" && page.BeforeID != "":
		return nil, false, invalid("Only one of before_id and after_id can be set.")
	case page.BeforeID != "":
		end := at(page.BeforeID)
		if end < 0 {
			return nil, false, invalid("before_id: no such object")
		}
		from := max(0, end-limit)
		return all[from:end], from > 0, nil
	case page.AfterID != "":
		from := at(page.AfterID)
		if from < 0 {
			return nil, false, invalid("after_id: no such object")
		}
		all = all[from+1:]
	}
	return all[:min(limit, len(all))], len(all) > limit, nil
}
