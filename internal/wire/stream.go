package wire

import (
	"net/http"
	"time"
)

// Progress is what one event means for the stream it belongs to.
type Progress uint8

const (
	// ProgressPreamble is an event before or between content: it carries nothing
	// a reader would miss. The zero value.
	ProgressPreamble Progress = iota
	// ProgressPing is a keep-alive.
	ProgressPing
	// ProgressContent is a piece of the answer.
	ProgressContent
	// ProgressStop carries the stop reason.
	ProgressStop
	// ProgressEnd is the terminal event of a good stream.
	ProgressEnd
	// ProgressError is an error inside the stream.
	ProgressError
)

// Stream follows one event stream of either dialect. The zero value is ready.
// It is not safe for concurrent use.
type Stream struct {
	started bool
	ended   bool
	reason  string
}

// Event takes the next event and says what it means.
func (s *Stream) Event(name string, data []byte) Progress { return ProgressPreamble }

// Started reports whether content has been seen.
func (s *Stream) Started() bool { return s.started }

// Complete reports whether the answer is whole.
func (s *Stream) Complete() bool { return s.ended }

// StopReason returns why the model stopped; "" when it has not said so.
func (s *Stream) StopReason() string { return s.reason }

// Malformed returns how many events could not be read.
func (s *Stream) Malformed() int { return 0 }

// Tokens returns the usage seen so far, and false when none was.
func (s *Stream) Tokens() (Tokens, bool) { return Tokens{}, false }

// Reply returns the facts of the error after ProgressError, and a zero Reply
// before one.
func (s *Stream) Reply(h http.Header, now time.Time) Reply { return Reply{} }
