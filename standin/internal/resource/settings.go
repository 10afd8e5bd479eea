package resource

import (
	"time"

	"holdfast/standin/internal/request"
)

// PollAfter is the value of the header retry-after, in seconds, that the API sends with a batch that has not ended.
const PollAfter = 10

// BatchSettings say how batches are worked on. The zero value works at the speed of the looks.
//
// A look is a get, a list that shows the batch, or a request for its results.
type BatchSettings struct {
	// Seed decides the order of the results, together with the number of the batch.
	Seed uint64
	// Outcome decides an item at the time when it is worked on. It is called once for each item that is done, in the
	// order of the request; items with a Refusal never reach it. It must not look at the batches. nil: every item is
	// errored with an api_error.
	Outcome func(item request.Item, at time.Time) Result
	// Takes is how long a batch is worked on. 0: half of the items are done at the first look, and it has ended at the
	// second. Negative: nothing is done ever, so that all items expire.
	Takes time.Duration
	// CancelTakes is how long a canceled batch is canceling. 0 or less: it has ended at the next look.
	CancelTakes time.Duration
	// HiddenLooks is how many requests that name a new batch get a 404, and HiddenFor how long they do. It does not
	// stand in lists meanwhile. 0 or less: none.
	HiddenLooks int
	HiddenFor   time.Duration
	// LateResults is how many requests for the results get a 404 after the batch has ended. 0 or less: none.
	LateResults int
	// CountsAtEnd leaves all items in processing until the batch has ended, as the documents of the API say. Recordings
	// of the API show the counts move meanwhile, which is what happens otherwise.
	CountsAtEnd bool
	// Lifetime is the time from creation to expiry. 0 or less: 24 h.
	Lifetime time.Duration
	// Queue bounds the items of batches that have not ended; further batches get a 429. 0: 500,000, the public number
	// of the scale tier. Negative: no bound.
	Queue int
	// Kept bounds the items of batches that have ended; the oldest are forgotten for it, as if they had been deleted.
	// The latest stays. 0: 500,000. Negative: no bound.
	Kept int
}

const (
	dayLong       = 24 * time.Hour
	archivedAfter = 29 * dayLong // from creation; results are gone then
	defaultItems  = 500_000
)
