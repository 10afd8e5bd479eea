package batch

import (
	"context"
	"fmt"
	"time"
)

// Ledger remembers what Create was about to do, so that a crash between the creation of a batch and the note of its id is
// survived. Both methods must have stored what they say before they return, and must be safe for concurrent use; two
// processes that call Begin with one digest must not both be told that nothing was noted.
//
// A Ledger is never told what the requests say: a digest is a SHA-256.
type Ledger interface {
	// Begin notes that a batch is about to be created. If there is a note with this digest already, it is returned
	// with true, and nothing is changed.
	Begin(ctx context.Context, note Note) (earlier Note, noted bool, err error)
	// Done completes the note with the id of the batch. An empty id means that surely none was made: the note is to be
	// forgotten.
	Done(ctx context.Context, digest, id string) error
}

// Note is what a [Ledger] keeps of a batch.
type Note struct {
	// Digest stands for the requests, their order and the Run of the [Client].
	Digest string
	// Requests is how many there are.
	Requests int
	// At is when the batch was about to be created, by the clock of this machine.
	At time.Time
	// ID of the batch; empty until it is known.
	ID string
}

// LedgerError is a [Ledger] that did not do its work. Without an ID nothing was sent.
type LedgerError struct {
	// ID of the batch that exists and is not noted; empty when none was created.
	ID string
	// Err is the ledger's own error.
	Err error
}

// Error names the batch that is not noted. It never holds what a request says.
func (e *LedgerError) Error() string {
	if e.ID == "" {
		return fmt.Sprintf("batch: the ledger took no note, and nothing was sent: %v", e.Err)
	}
	return fmt.Sprintf("batch: %s was created, and the ledger took no note of it: %v", e.ID, e.Err)
}

// Unwrap returns the ledger's own error.
func (e *LedgerError) Unwrap() error { return e.Err }

// Hint says what to do about it; it never suggests a second batch.
func (e *LedgerError) Hint() string {
	if e.ID == "" {
		return "mend the ledger's store, then create the batch again"
	}
	return "note the id by hand; the next Create of these requests would search the list for it"
}

// ledgerTime is how long a note may take that is written after the caller has left.
const ledgerTime = 10 * time.Second

func (c *Client) begin(ctx context.Context, note Note) (earlier Note, noted bool, err error) {
	if c.Ledger == nil {
		return Note{}, false, nil
	}
	if earlier, noted, err = c.Ledger.Begin(ctx, note); err != nil {
		return Note{}, false, &LedgerError{Err: err}
	}
	return earlier, noted, nil
}

// done notes the end, also for a caller who has left.
func (c *Client) done(ctx context.Context, digest, id string) error {
	if id != "" {
		c.remember(id)
	}
	if c.Ledger == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), ledgerTime)
	defer cancel()
	err := c.Ledger.Done(ctx, digest, id)
	if err != nil && id != "" {
		return &LedgerError{ID: id, Err: err}
	}
	return nil // a note that is not forgotten costs a search, no more
}
