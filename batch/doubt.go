package batch

import (
	"context"
	"fmt"
	"strings"

	"github.com/anthropics/anthropic-sdk-go/v2"
)

// DoubtfulError is a creation of which nobody knows whether it made a batch: the reply was lost, and the list did not
// decide it. With a Ledger that is recorded, so that the next Create of the same requests searches before it sends.
type DoubtfulError struct {
	// Key of the requests, as in [Created].
	Key string
	// Candidates are the batches that the latest look has shown and that it could be.
	Candidates []anthropic.MessageBatch
	// Looks is how often the list was seen.
	Looks int
	// Err is what became of the request that creates.
	Err error
	// List is why the latest look failed; nil when it did not.
	List error

	absent bool // the list was seen, for as long as it is searched, and never showed it
}

// Error names the candidates and the causes. It never holds what a request says.
func (e *DoubtfulError) Error() string {
	var b strings.Builder
	b.WriteString("batch: it is not known whether the batch was created")
	switch n := len(e.Candidates); {
	case n > 0:
		ids := make([]string, n)
		for i := range e.Candidates {
			ids[i] = e.Candidates[i].ID
		}
		fmt.Fprintf(&b, ", it could be %s", strings.Join(ids, " or "))
	case e.Looks > 0:
		fmt.Fprintf(&b, ", the list did not show it in %d looks", e.Looks)
	}
	if e.List != nil {
		fmt.Fprintf(&b, ", and the list cannot be seen: %v", e.List)
	}
	if e.Err != nil {
		fmt.Fprintf(&b, ": %v", e.Err)
	}
	return b.String()
}

// Unwrap returns both causes, as far as there are any, and never a nil one.
func (e *DoubtfulError) Unwrap() []error {
	var all []error
	for _, err := range []error{e.Err, e.List} {
		if err != nil {
			all = append(all, err)
		}
	}
	return all
}

// Hint says how the doubt is resolved. It never suggests to create the batch again while one may exist.
func (e *DoubtfulError) Hint() string {
	switch {
	case len(e.Candidates) > 0:
		return "Identify waits for the candidates to end and compares the custom ids of their results"
	case e.List != nil || e.Looks == 0:
		return "list the batches of the workspace when the API answers again, and look for one of this time and number of requests"
	}
	return "look at the list once more before you create the batch again; Client.Resend does that by itself after Settle"
}

// holds reports whether the results of a batch that has ended have the custom ids of the requests, all of them and no
// other.
func (c *Client) holds(ctx context.Context, ended *anthropic.MessageBatch, requests []Request) (bool, error) {
	wanted := make(map[string]bool, len(requests))
	for i := range requests {
		wanted[requests[i].CustomID] = true
	}
	if sizeOf(ended) != int64(len(wanted)) {
		return false, nil
	}
	found := 0
	for line, err := range c.lines(ctx, ended) {
		switch {
		case err != nil:
			return false, err
		case !wanted[line.CustomID]:
			return false, nil
		}
		delete(wanted, line.CustomID)
		found++
	}
	return found == len(requests), nil
}
