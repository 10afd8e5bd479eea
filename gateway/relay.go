package gateway

import (
	"context"
	"errors"
	"io"
	"mime"
	"net/http"
	"strconv"
	"sync"
	"time"

	"holdfast"
	"holdfast/internal/sse"
	"holdfast/internal/wire"
	"holdfast/transport"
)

// give hands the answer over, or what came in its place.
func (c *call) give(resp *http.Response) {
	defer func() { _ = resp.Body.Close() }()
	c.record.Status = resp.StatusCode
	c.record.Stream = isEventStream(resp.Header)
	c.lineup.hideOwn(resp)
	c.header(resp)
	c.record.FirstContent = time.Since(c.record.Start)
	c.w.WriteHeader(resp.StatusCode)
	var err error
	if resp.Request != nil {
		resp.Request.Body = nil
	}
	if !c.canBeSaved() { // no attempt needs the prompt any more, and a stream may go on for long
		c.body.Close()
		c.bodies = nil
	}
	if c.record.Stream {
		err = c.relay(resp)
	} else {
		err = c.copy(resp)
	}
	_ = resp.Body.Close() // settles the call, if its end has not
	c.conclude(resp, err)
}

func isEventStream(h http.Header) bool {
	kind := h.Get("Content-Type")
	if kind == "text/event-stream" {
		return true
	}
	kind, _, _ = mime.ParseMediaType(kind)
	return kind == "text/event-stream"
}

// header makes the header of the reply: the upstream's, and our words.
func (c *call) header(resp *http.Response) {
	h := c.w.Header()
	dropHops(resp.Header)
	for name, values := range resp.Header {
		h[name] = values
	}
	h["Holdfast-Trace"] = []string{c.record.ID}
	if c.record.Stacked > 0 {
		h["Holdfast-Stacked"] = []string{strconv.Itoa(c.record.Stacked)}
	}
	if e := transport.ErrorOf(resp); e != nil {
		c.record.Reason, c.record.Error = h.Get("Holdfast-Reason"), wire.Scrub(c.lineup.hide(told(*e).Error()), maxErrorText)
		if c.record.Reason == "" {
			c.record.Reason = "upstream-error" // it could not be retried
			if e.Reason != nil {
				c.record.Reason = holdfast.ReasonWord(e.Reason)
			}
			h["Holdfast-Reason"] = []string{c.record.Reason}
		}
	}
	for name := range resp.Trailer {
		h.Add("Trailer", name)
	}
	if resp.ContentLength < 0 && !c.record.Stream {
		return
	}
	if c.record.Stream { // its length may change with what is put between its events
		delete(h, "Content-Length")
		if h.Get("Cache-Control") == "" {
			h["Cache-Control"] = []string{"no-cache"}
		}
		h["X-Accel-Buffering"] = []string{"no"} // a proxy in front of us must not hold events back either
	}
}

// told is an error without what the upstream says in its own words: they are for the caller, and may quote his prompt.
func told(e holdfast.Error) *holdfast.Error {
	e.Verdict = worded(e.Verdict)
	return &e
}

var buffers = sync.Pool{New: func() any { return new([bufferSize]byte) }}

const bufferSize = 8 << 10

// readError is what ended the reading, to be told from what ended the writing.
type readError struct{ error }

func (e readError) Unwrap() error { return e.error }

// copy relays a body that is no event stream.
func (c *call) copy(resp *http.Response) error {
	buffer := buffers.Get().(*[bufferSize]byte)
	defer buffers.Put(buffer)
	out := c.writer()
	flush := resp.ContentLength < 0
	for {
		n, err := resp.Body.Read(buffer[:])
		if n > 0 {
			c.capture(buffer[:n])
			if err := out.write(buffer[:n], flush); err != nil {
				return err
			}
		}
		switch {
		case err == io.EOF:
			for name, values := range resp.Trailer {
				c.w.Header()[name] = values
			}
			if !flush {
				_ = out.control.Flush() // the caller does not wait for the log
			}
			return nil
		case err != nil:
			return readError{err}
		}
	}
}

// relay hands a stream over event by event, with pings in its silences.
func (c *call) relay(resp *http.Response) error {
	out := c.writer()
	events := &eventWriter{c: c, out: out, pings: c.startPings(out)}
	defer events.pings.stop()
	_, err := io.Copy(events, resp.Body)
	switch {
	case events.err != nil:
		return events.err
	case err != nil:
		events.pings.stop()
		return c.tell(out, err)
	}
	return nil
}

// eventWriter writes pieces of a stream to the caller, each at once.
type eventWriter struct {
	c     *call
	out   *writer
	pings *pinger
	err   error // of the writing
}

func (w *eventWriter) Write(p []byte) (int, error) {
	w.c.capture(p)
	w.pings.pause()
	if w.err = w.out.write(p, true); w.err != nil {
		return 0, w.err
	}
	w.pings.resume(endsEvent(p))
	return len(p), nil
}

// endsEvent reports whether a blank line is the last that was sent. A long event comes in several pieces.
func endsEvent(b []byte) bool {
	n := len(b)
	return n >= 2 && (b[n-1] == '\n' || b[n-1] == '\r') && (b[n-2] == b[n-1] || n >= 4 && string(b[n-4:]) == "\r\n\r\n")
}

// tell ends a stream that broke with an error event, in the shape of the dialect: never with a clean end.
func (c *call) tell(out *writer, err error) error {
	text := "the upstream's answer broke off: " + err.Error()
	status := http.StatusBadGateway
	var late *transport.TimeoutError
	switch {
	case context.Cause(c.r.Context()) == errShutdown:
		text, status = "the gateway was shut down before the answer was over", http.StatusServiceUnavailable
	case c.r.Context().Err() != nil:
		return readError{err}
	case errors.As(err, &late):
		status = http.StatusGatewayTimeout
	}
	body := wire.ErrorBody(c.dialect, wire.ErrorType(c.dialect, status), "", "Holdfast: "+wire.Scrub(c.lineup.hide(text), maxErrorText), "")
	name := "error"
	if c.dialect == wire.DialectOpenAI && !wire.IsResponses(c.r.URL.Path) {
		name = ""
	}
	if writing := out.write(sse.Append(nil, name, body), true); writing != nil {
		return writing
	}
	return readError{err}
}

// conclude says in the record how it ended.
func (c *call) conclude(resp *http.Response, err error) {
	r := &c.record
	var reading readError
	cause := context.Cause(c.r.Context())
	switch {
	case err == nil:
		c.concludeWhole(resp)
	case errors.As(err, &reading) && cause == errShutdown:
		r.Outcome, r.Reason, r.Error = Cut, "draining", "the gateway was shut down"
		c.broken = !r.Stream
	case cause != nil || !errors.As(err, &reading):
		r.Outcome, r.Status = Left, statusClientLeft
		if r.Error = "the caller went away"; cause == nil {
			r.Error = "the caller took nothing more: " + plain(err)
		}
		c.broken = true
	default:
		r.Outcome, r.Reason, r.Error = Cut, "cut", wire.Scrub(c.lineup.hide(reading.Error()), maxErrorText)
		c.broken = !r.Stream // an error event has told it; anything else must not look whole
	}
}

// concludeWhole is for a reply that went out to its last byte.
func (c *call) concludeWhole(resp *http.Response) {
	r := &c.record
	e := transport.ErrorOf(resp)
	switch {
	case r.Source == holdfast.Saved:
		r.Outcome = Answered
	case e != nil:
		r.Outcome = Failed
	case r.Outcome == Answered:
		c.keep(resp)
	case r.Outcome == "": // an error event of the upstream's own, passed on
		r.Outcome, r.Reason = Cut, "error-event"
	}
}

// writer writes to the caller, and gives up on one who takes nothing.
type writer struct {
	c        *call
	control  *http.ResponseController
	patience time.Duration
	armed    patience
	mu       sync.Mutex
}

func (c *call) writer() *writer {
	return &writer{c: c, control: http.NewResponseController(c.w), patience: orDefault(c.s.settings.WriteTimeout, defaultWriteTimeout)}
}

func (w *writer) write(p []byte, flush bool) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if until, ok := w.armed.next(w.patience); ok {
		_ = w.control.SetWriteDeadline(until) // what cannot be set is not needed
	}
	n, err := w.c.w.Write(p)
	w.c.record.Bytes += int64(n)
	if err == nil && flush {
		err = w.control.Flush()
		if errors.Is(err, http.ErrNotSupported) {
			err = nil
		}
	}
	return err
}
