package transport

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"holdfast"
)

// CutError is a connection that ended before the answer did. It is what the reader of a stream gets instead of a quiet
// end, and what is behind a [*holdfast.Error] when the connection was lost earlier. It answers to io.ErrUnexpectedEOF and,
// once the answer had begun, to [holdfast.ErrCut].
type CutError struct {
	// Phase is how far it had come.
	Phase Phase
	// Events and Bytes of the answer that had arrived. Events is 0 for an answer that is no stream.
	Events, Bytes int64
	// StopReason is why the model had stopped by then; empty when it had not said so.
	StopReason string
	// Err is the cause: io.ErrUnexpectedEOF for a body that ended cleanly but too early.
	Err error
}

// Error names the phase, what had arrived, and the cause.
func (e *CutError) Error() string {
	if e.Phase < BeforeContent {
		return fmt.Sprintf("holdfast: the connection was lost %v: %v", e.Phase, e.Err)
	}
	return fmt.Sprintf("holdfast: the answer was cut %v, after %d events and %d bytes: %v", e.Phase, e.Events, e.Bytes, e.Err)
}

// Unwrap returns the cause.
func (e *CutError) Unwrap() error { return e.Err }

// Is reports whether the error answers to target.
func (e *CutError) Is(target error) bool {
	return target == io.ErrUnexpectedEOF || target == holdfast.ErrCut && e.Phase >= BeforeContent
}

// Verdict is Broken.
func (e *CutError) Verdict() holdfast.Verdict {
	return holdfast.Verdict{Kind: holdfast.Broken, Rule: "cut-" + e.Phase.dashed()}
}

// Timer is one of the timers of a [Transport].
type Timer string

const (
	// Connect is the timer of [Transport.Connect].
	Connect Timer = "connect"
	// FirstContent is the timer of [Transport.FirstContent].
	FirstContent Timer = "first content"
	// Idle is the timer of [Transport.Idle].
	Idle Timer = "idle"
)

// TimeoutError is a host that could not be reached in time, or a stream that came to a stop although its connection was
// open. The reader of a stream gets it when Idle ran out. It answers to [holdfast.ErrCut], unless there was no connection.
type TimeoutError struct {
	// Timer that ran out, and what it was set to.
	Timer Timer
	Limit time.Duration
	// Phase, Events and Bytes are those of a [CutError].
	Phase         Phase
	Events, Bytes int64
}

// Error names the timer and what had arrived.
func (e *TimeoutError) Error() string {
	if e.Timer == Connect {
		return fmt.Sprintf("holdfast: no connection within %v (%s timer)", e.Limit, e.Timer)
	}
	return fmt.Sprintf("holdfast: no content for %v (%s timer), %v, after %d events and %d bytes",
		e.Limit, e.Timer, e.Phase, e.Events, e.Bytes)
}

// Timeout is true, as of a net.Error.
func (e *TimeoutError) Timeout() bool { return true }

// Is reports whether the error answers to target.
func (e *TimeoutError) Is(target error) bool { return target == holdfast.ErrCut && e.Timer != Connect }

// Verdict is Broken.
func (e *TimeoutError) Verdict() holdfast.Verdict {
	rule := strings.ReplaceAll(string(e.Timer), " ", "-") + "-timeout"
	return holdfast.Verdict{Kind: holdfast.Broken, Silent: e.Phase < BeforeContent, NotSent: e.Timer == Connect, Rule: rule}
}

// failure is an attempt without an answer: what it means, and what there is to hand over if it was the last.
type failure struct {
	verdict holdfast.Verdict
	resp    *http.Response // the upstream's reply with its body kept; nil when none can be handed over
	header  http.Header    // of a reply that cannot be
	err     error          // nil when a reply says it all
	ending  ending         // of an answer that is handed over although it is a failure
}

// Error says what the upstream said, or what happened to the connection.
func (f *failure) Error() string {
	if f.err != nil {
		return f.err.Error()
	}
	v := &f.verdict
	text := fmt.Sprintf("holdfast: the upstream answered %d", v.Status)
	if v.Type != "" {
		text += " " + v.Type
	}
	if v.Message != "" {
		text += ": " + v.Message
	}
	return text
}

// Unwrap returns the cause, if there is one.
func (f *failure) Unwrap() error { return f.err }

// Verdict is what it means.
func (f *failure) Verdict() holdfast.Verdict { return f.verdict }

// partial is a failure after the answer was handed over.
type partial struct{ verdict holdfast.Verdict }

func (p *partial) Error() string             { return "holdfast: the stream failed: " + p.verdict.Rule }
func (p *partial) Verdict() holdfast.Verdict { return p.verdict }

// hurried is a loss that is the doing of the deadline which the caller named.
type hurried struct{ error }

func (h *hurried) Unwrap() error { return h.error }

func (h *hurried) Verdict() holdfast.Verdict {
	v := holdfast.Judge(h.error)
	v.Neutral = true
	return v
}
