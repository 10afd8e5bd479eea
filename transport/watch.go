package transport

import (
	"net/http"
	"time"

	"holdfast"
	"holdfast/internal/sse"
	"holdfast/internal/wire"
)

// watch follows a stream whose bytes pass by in pieces of any size. It never changes or delays them.
type watch struct {
	header http.Header
	stream wire.Stream
	rest   []byte // behind the last complete frame
	events int64
	bytes  int64
	failed *partial // an error event has passed
	ended  bool     // the terminal event has passed
	blind  bool     // nothing can be said of the stream any more
	reader *sse.Reader
}

// feed takes the next bytes and reports whether there was progress in them: content, the stop reason or the end.
func (w *watch) feed(p []byte) (progress bool) {
	w.bytes += int64(len(p))
	if w.blind {
		return len(p) > 0
	}
	if len(w.rest) == 0 { // as a rule: an upstream writes whole events
		if at := lastFrame(p); at > 0 {
			progress = w.read(p[:at])
			w.rest = append(w.rest, p[at:]...)
			return progress
		}
	}
	from := max(len(w.rest)-1, 0)
	w.rest = append(w.rest, p...)
	at := lastFrame(w.rest[from:])
	if at < 0 {
		if len(w.rest) > sse.DefaultLimit {
			w.blind, w.rest = true, nil
		}
		return false
	}
	at += from
	progress = w.read(w.rest[:at])
	w.rest = append(w.rest[:0], w.rest[at:]...)
	return progress
}

// finish takes what the end of the stream left without a blank line.
func (w *watch) finish() {
	if !w.blind {
		w.read(w.rest)
		w.rest = nil
	}
}

// lastFrame returns the index behind the last blank line, or -1. A line ends in LF, CRLF or a lone CR. The LF of a blank
// line's CRLF that has not come yet is a blank line of no meaning to the frame that follows.
func lastFrame(b []byte) int {
	for i := len(b) - 1; i > 0; i-- {
		end, before := b[i], b[i-1]
		if end != '\n' && end != '\r' || before != '\n' && before != end { // CRLF alone is one end of a line, not two
			continue
		}
		if i++; end == '\r' && i < len(b) && b[i] == '\n' {
			i++
		}
		return i
	}
	return -1
}

// read takes complete frames.
func (w *watch) read(frames []byte) (progress bool) {
	if w.reader == nil {
		w.reader = sse.NewMemory()
	}
	for w.reader.Over(frames); ; {
		e, err := w.reader.Next()
		if err != nil {
			return progress
		}
		w.events++
		switch w.stream.Event(e.Name, e.Data) {
		case wire.ProgressContent, wire.ProgressStop:
			progress = true
		case wire.ProgressEnd:
			progress, w.ended = true, true
		case wire.ProgressError:
			w.failed = &partial{holdfast.FromEvent(e.Name, e.Data, w.header, time.Now())}
		}
	}
}

// ending is what the stream has told so far.
func (w *watch) ending(err error) ending {
	used, _ := w.stream.Tokens()
	e := ending{used: used, reason: w.stream.StopReason(), err: err, partial: !w.stream.Counted()}
	switch {
	case !e.partial:
	case w.blind:
		e.produced = unseen(w.bytes)
	default:
		e.produced = w.stream.Produced()
	}
	return e
}

// unseen is how many tokens of output an answer makes of which nothing but its length is known, on the high side.
func unseen(bytes int64) int {
	const bytesPerToken = 3
	return int((bytes + bytesPerToken - 1) / bytesPerToken)
}

func (w *watch) phase() Phase {
	if w.stream.Started() {
		return AfterContent
	}
	return BeforeContent
}

// over reports whether all that matters has passed: the answer is whole, or an error event has told that it is not.
func (w *watch) over() bool { return w.failed != nil || w.stream.Complete() }

// verdict is what a stream means that is over: nil when it is a good answer.
func (w *watch) verdict() error {
	switch {
	case w.failed != nil:
		return w.failed
	case wire.Refusal(w.stream.StopReason()):
		return holdfast.ErrRefused
	}
	return nil
}
