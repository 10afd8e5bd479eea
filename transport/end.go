package transport

import (
	"errors"

	"holdfast"
	"holdfast/internal/wire"
)

// End is what became of a call, once all of it is over.
type End struct {
	// Trace tells of all attempts, the last one's end included.
	Trace holdfast.Trace
	// Err is why the call failed, or what ended an answer that had been handed over in part: a [*CutError], a
	// [*TimeoutError], the error event that the upstream sent, [holdfast.ErrCancelled] or the context's error if the
	// caller left. Nil for a complete answer, also for one that refuses and for a saved one.
	Err error
	// Verdict of the answer that was handed over, or of the last attempt if there was none. OK is a good answer if
	// there is no Err, and says nothing if there is one: then nothing was sent.
	Verdict holdfast.Verdict
	// Tokens are those of the last attempt, as the provider counted them. A stream that ended early has what it had
	// told by then.
	Tokens Usage
	// Partial tells that the final counts are not among the Tokens: an answer that was handed over before its end was left or
	// broke off before they came, or they never come. False for a call without an answer.
	Partial bool
	// Produced is, where Partial, how many tokens of output what was read of the answer makes: an estimate from its content
	// that errs on the side of the bill. 0 where the answer is counted.
	Produced int
	// StopReason is why the model stopped, in the dialect's own word; empty when it has not said so.
	StopReason string
	// Bytes of the answer that were handed over: of a body in memory all, of any other what was read of it.
	Bytes int64
}

// Usage counts the tokens of an answer, in the way of the Messages API for all dialects: the sum of Input, CacheRead and
// CacheWrite is the whole prompt. 0 is also what was not told.
type Usage struct{ Input, Output, CacheRead, CacheWrite int }

// ending is what an answer says of itself at its end.
type ending struct {
	used     wire.Tokens
	partial  bool
	produced int
	reason   string
	bytes    int64
	err      error // as the call is to hear it: nil for a good answer
}

var errPanicked = errors.New("holdfast: the call panicked")

// tell tells of the end, once.
func (c *call) tell(trace *holdfast.Trace, err error, v holdfast.Verdict, e ending) {
	if c.t.Ended == nil || !c.told.CompareAndSwap(false, true) {
		return
	}
	c.t.Ended(End{Trace: *trace, Err: err, Verdict: v, Tokens: Usage(e.used), Partial: e.partial, Produced: e.produced, StopReason: e.reason, Bytes: e.bytes})
}

// unwound is for a call that a panic ends.
func (c *call) unwound() {
	if !c.open {
		c.tell(&holdfast.Trace{}, errPanicked, holdfast.Verdict{}, ending{})
	}
}

// lastVerdict is that of the last attempt, OK if there was none.
func lastVerdict(trace *holdfast.Trace) holdfast.Verdict {
	attempts := trace.Attempts()
	if len(attempts) == 0 {
		return holdfast.Verdict{}
	}
	return attempts[len(attempts)-1].Verdict
}
