package once

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// UnknownError is an effect of which nobody knows whether it happened. It is not repeated until somebody finds out.
type UnknownError struct {
	// Key of the effect.
	Key string
	// Since is when the effect was first started.
	Since time.Time
	// Starts is how often it was started.
	Starts int
	// Why says in a few words what happened, as "the process that ran it is gone".
	Why string
	// Err is the effect's or the lookup's own error, nil when it was another process's.
	Err error
}

// Error says which effect is in doubt and why. It never quotes the far side.
func (e *UnknownError) Error() string {
	return fmt.Sprintf("once: it is not known whether the effect of %s happened: %s", shown(e.Key), e.Why)
}

// Unwrap returns the effect's or the lookup's own error. It never returns one of the store's.
func (e *UnknownError) Unwrap() error { return e.Err }

// Hint says what the caller can do about it. It never returns an empty text.
func (e *UnknownError) Hint() string {
	return "ask the far side, then call once.Resolve with what it did, or Ledger.Forget if it did nothing; Effect.Lookup does it by itself"
}

// InProgressError is an effect that another process runs, or this one for other callers.
type InProgressError struct {
	// Key of the effect.
	Key string
	// Until is when the one who runs it counts as gone. Zero: not known.
	Until time.Time
	// Cause is why the caller did not wait any longer; nil with [Effect.NoWait].
	Cause error
}

// Error says which effect is under way, and why the caller left. It never says who runs it.
func (e *InProgressError) Error() string {
	text := fmt.Sprintf("once: the effect of %s is under way", shown(e.Key))
	if e.Cause != nil {
		text += ", and the caller left: " + e.Cause.Error()
	}
	return text
}

// Unwrap returns why the caller did not wait. It never returns an error of the effect.
func (e *InProgressError) Unwrap() error { return e.Cause }

// Hint says what the caller can do about it. It never returns an empty text.
func (e *InProgressError) Hint() string {
	return "call again with the same key: it gets the outcome, or learns that it is not known"
}

// MismatchError is a key that was used for another request.
type MismatchError struct {
	// Key of both.
	Key string
}

// Error says which key it is. It never quotes a request.
func (e *MismatchError) Error() string {
	return fmt.Sprintf("once: the key %s was used for another request", shown(e.Key))
}

// Hint says what the caller can do about it. It never returns an empty text.
func (e *MismatchError) Hint() string {
	return "put what makes the requests differ into the parts of the key, or send the same request"
}

// OutcomeError is an effect that happened, once, and whose outcome the record cannot give back: it could not be encoded, was
// too large, or is not of the type that is asked for. The caller whose call made the effect happen gets the value beside it.
type OutcomeError struct {
	// Key of the effect.
	Key string
	// Why says what is wrong with the outcome. It never quotes it.
	Why string
}

// Error says which effect happened and what is wrong with its outcome. It never quotes it.
func (e *OutcomeError) Error() string {
	return fmt.Sprintf("once: the effect of %s happened, but the record does not have its outcome: %s", shown(e.Key), e.Why)
}

// Hint says what the caller can do about it. It never returns an empty text.
func (e *OutcomeError) Hint() string {
	return "record something small that is JSON, as the id the far side gave"
}

// left is why a context ended, for a caller who asks with errors.Is.
func left(ctx context.Context) error {
	cause, err := context.Cause(ctx), ctx.Err()
	if cause == nil || errors.Is(cause, err) {
		return cause
	}
	return errors.Join(err, cause)
}
