package gateway

import (
	"time"

	"holdfast"
)

// Observer is told what happens, for metrics and logs. Its methods run on the goroutine of the call, must return at once and
// be safe for concurrent use. Nothing that it gets holds a prompt, an answer or a key.
type Observer interface {
	// Call is told of every call that ended, a stream at its end.
	Call(Record)
	// Event is told of attempts, waits, skips and circuits as they happen.
	Event(holdfast.Event)
}

// Record is what happened in one call.
type Record struct {
	// ID is the value of the header holdfast-trace.
	ID    string
	Start time.Time
	// Route and Client are as configured, empty where there is none. Model, Path, Method and StopReason are texts of
	// others, as Error may be: they are bounded, and what looks like a key is taken out.
	Route, Client, Model string
	Method, Path         string
	Dialect              string
	// Stream tells that the answer was an event stream.
	Stream bool
	// Status that the caller got, 499 if he left before. A stream that broke has the status it began with.
	Status int
	// Outcome is how the call ended for the caller: see the constants.
	Outcome Outcome
	// Reason is the word of the header holdfast-reason; empty for an answer.
	Reason string
	// Error says in a line what went wrong; empty for an answer.
	Error string
	// Target and Source of the answer, or the last target that was asked.
	Target string
	Source holdfast.Source
	// SavedAt is when a saved answer was made.
	SavedAt time.Time
	// Trace tells of the attempts.
	Trace holdfast.Trace
	// FirstContent is how long the caller waited for the first byte, Elapsed for the last.
	FirstContent, Elapsed time.Duration
	// Tokens as the provider counted them, for the answer that was handed over. Where Partial they are an estimate.
	Input, Output, CacheRead, CacheWrite int
	// Partial tells that the provider's final counts never came, although it bills: the caller left, or the answer broke
	// off. Output is then at least what went to the caller, the larger of the provider's last count and an estimate from
	// the content that errs on the side of the bill. Input is the provider's where it had told it, else a fourth of the
	// bytes of the request.
	Partial    bool
	StopReason string
	// Bytes that went to the caller.
	Bytes int64
	// Stacked is the caller's own count of his retries.
	Stacked int
}

// Outcome is how a call ended for its caller.
type Outcome string

const (
	// Answered: a complete answer, live, from a fallback or saved.
	Answered Outcome = "answered"
	// Refused: an answer in which the model refuses.
	Refused Outcome = "refused"
	// Failed: the upstream's own final error, or an error of ours that nothing live worked.
	Failed Outcome = "failed"
	// Rejected: the gateway itself turned the request away, and nothing was sent: a bad client key, a limit, a body
	// too large, a shutdown.
	Rejected Outcome = "rejected"
	// Cut: the answer broke off after a part of it had been handed over.
	Cut Outcome = "cut"
	// Left: the caller went away.
	Left Outcome = "left"
)
