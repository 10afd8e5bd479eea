package transport

import (
	"bytes"
	"encoding/json"
	"fmt"

	"holdfast/internal/sse"
	"holdfast/internal/wire"
)

// What becomes of the end of a stream whose reader gets whole events.

var errTooLarge = fmt.Errorf("holdfast: %w", sse.ErrTooLarge)

// take puts what a read brought into the queue, and before the watch.
func (b *stream) take(n int, err error) error {
	if b.unpack != nil && !b.events {
		b.queue = append(b.queue, b.unpack.raw...)
		b.unpack.raw = b.unpack.raw[:0]
	} else {
		b.queue = append(b.queue, b.scratch[:n]...)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	w := &b.watch
	if w.feed(b.scratch[:n]) {
		b.progress = true
	}
	if err == errPacked && !b.events {
		w.blind, b.unpack, err = true, nil, nil // the rest is handed over unseen
	}
	switch {
	case !b.events:
		b.ready = len(b.queue)
	case w.blind:
		b.queue, err = b.queue[:b.ready], errTooLarge
	default:
		b.ready = len(b.queue) - len(w.rest)
	}
	return err
}

// finish takes what the end of the stream left without a blank line, once.
func (b *stream) finish() {
	w := &b.watch
	rest, ended := w.rest, w.ended
	w.finish()
	if !b.events || b.finished {
		return
	}
	b.finished = true
	b.queue = b.queue[:b.ready]
	if !w.over() {
		return
	}
	sound := readable(rest)
	switch {
	case string(rest) == "\n": // of the last CRLF
		b.queue = append(b.queue, rest...)
	case sound:
		b.queue = append(append(b.queue, rest...), blankLine(rest)...)
	case w.failed != nil && len(bytes.TrimSpace(rest)) > 0:
		b.torn = true // the error event was torn: the reader has not seen why
	}
	if w.failed == nil && !ended && !(sound && w.ended) {
		b.queue = append(b.queue, terminal(b.call.dialect)...)
	}
	b.ready = len(b.queue)
}

// readable reports that an event is there but for its blank line.
func readable(frame []byte) bool {
	e, err := sse.NewReader(bytes.NewReader(frame), len(frame)+1).Next()
	data := bytes.TrimSpace(e.Data)
	return err == nil && (json.Valid(data) || string(data) == "[DONE]")
}

// blankLine is what an event lacks whose end is that of frame. A LF behind a lone CR would be of the same line.
func blankLine(frame []byte) string {
	if bytes.HasSuffix(frame, []byte("\n")) {
		return "\n"
	}
	return "\n\n"
}

func terminal(d wire.Dialect) string {
	if d == wire.DialectOpenAI {
		return "data: [DONE]\n\n"
	}
	return "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"
}
