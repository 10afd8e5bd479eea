package batch

import (
	"fmt"
	"slices"
)

// Report sorts the results of batches by what is left to do. The zero value is empty. It keeps no message, so that one of
// 100,000 results is small. It must not be used by several goroutines at once.
//
// It never counts an item twice, and never lists a request to be run again of which a message exists.
type Report struct {
	// Requests is how many requests there are, where the caller knows better than the items do: of several batches, one may
	// have failed before its first item. Default: as many as were given to the Results that the items came from.
	Requests int
	// Succeeded counts the requests with a message that says all it has to say, or whose tool calls are complete.
	Succeeded int
	// Again are the requests that may be run again as they are: they errored for a reason that passes, were canceled or
	// have expired. None of them was billed.
	Again []Entry
	// Failed are those whose error is in the request: they would fail again.
	Failed []Entry
	// Flagged have a message, billed, that is a refusal, was truncated, ends in half a tool call, is a turn that was paused,
	// or stopped for a reason that is not known.
	Flagged []Entry
	// Missing are in no result. To run them again may pay them twice.
	Missing []Entry
	// Strange are results that belong to no request, that came twice, or whose type is not known.
	Strange []Entry

	sorted int // items that belong to a request, and came for the first time
	runs   []*given
}

// Entry is one request in a [Report].
type Entry struct {
	CustomID string
	// Request is nil where none was given with this id.
	Request *Request
	Outcome Outcome
	// Reason is that of the [Item].
	Reason string
}

// Add sorts one item in, of Results that were given the requests. It never keeps the item's message.
func (r *Report) Add(item Item) {
	e := Entry{CustomID: item.CustomID, Request: item.Request, Outcome: item.Outcome, Reason: item.Reason}
	if item.given != nil && !slices.Contains(r.runs, item.given) {
		r.runs = append(r.runs, item.given)
	}
	if !item.Again && item.Request != nil {
		r.sorted++
	}
	switch {
	case item.Again, item.Request == nil, item.Outcome >= Other:
		r.Strange = append(r.Strange, e)
	case item.Outcome == Succeeded:
		r.Succeeded++
	case item.Outcome == Retryable, item.Outcome == Canceled, item.Outcome == Expired:
		r.Again = append(r.Again, e)
	case item.Outcome == Failed:
		r.Failed = append(r.Failed, e)
	case item.Outcome == Missing:
		r.Missing = append(r.Missing, e)
	default:
		r.Flagged = append(r.Flagged, e)
	}
}

// Rerun returns the requests of Again, for another batch. It never returns one that would fail again or that has a message.
func (r *Report) Rerun() []Request {
	requests := make([]Request, len(r.Again))
	for i, e := range r.Again {
		requests[i] = *e.Request
	}
	return requests
}

// Unread is how many requests no item has told of: Results ended with an error before them, or the caller left. It is
// never negative, and 0 for a report to which nothing was added, unless Requests is set.
func (r *Report) Unread() int {
	wanted := r.Requests
	if wanted <= 0 {
		wanted = 0
		for _, run := range r.runs {
			wanted += run.requests
		}
	}
	return max(0, wanted-r.sorted)
}

// Complete reports whether every request has a message or an error that no other run changes. It is never true while
// something is missing, strange or unread, and never for a report to which nothing was added.
func (r *Report) Complete() bool {
	return r.sorted > 0 && r.Unread() == 0 && len(r.Again) == 0 && len(r.Missing) == 0 && len(r.Strange) == 0
}

// String counts what there is, in one line. It never names a request.
func (r *Report) String() string {
	unread := ""
	if n := r.Unread(); n > 0 {
		unread = fmt.Sprintf(", %d unread", n)
	}
	return fmt.Sprintf("%d succeeded, %d to run again, %d failed, %d flagged, %d missing, %d strange%s",
		r.Succeeded, len(r.Again), len(r.Failed), len(r.Flagged), len(r.Missing), len(r.Strange), unread)
}
