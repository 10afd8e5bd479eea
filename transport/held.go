package transport

import (
	"bytes"
	"errors"
	"net/http"
	"strings"
	"time"

	"holdfast"
)

// errMalformed makes a failure of what a stream handed over live passes on as it came: nobody knows what was in the event, so
// the answer cannot be called whole.
var errMalformed = errors.New("holdfast: an event of the stream cannot be read")

// hold reads a stream up to its first content, or to its end with Whole. What fails before is an ordinary failure; from
// there on the stream is handed over, with everything that was held back.
func (c *call) hold(s *sent, resp *http.Response) (reply, *failure) {
	b := c.newStream(s, resp)
	s.startTimer(c.t)
	for b.most >= 0 && !b.canGo() {
		if !b.step() {
			break
		}
		if f := b.failed(); f != nil {
			return nil, f
		}
	}
	s.stopTimer()
	if b.patience != nil {
		b.patience.Stop()
	}
	resp.Body = b
	return b.answer, nil
}

func (c *call) newStream(s *sent, resp *http.Response) *stream {
	b := &stream{
		call: c, sent: s, answer: &pending{call: c, resp: resp, sent: s}, src: resp.Body, most: -1,
		scratch: make([]byte, scratchSize), watch: watch{header: resp.Header}, whole: c.t.Whole, events: c.t.Events,
	}
	most, on := limit(c.t.MaxHeld, defaultMaxHeld)
	if b.whole {
		most, on = limit(c.t.MaxAnswer, defaultMaxAnswer)
	}
	if on {
		b.most = most
	}
	switch strings.ToLower(resp.Header.Get("Content-Encoding")) {
	case "", "identity":
	case "gzip", "x-gzip":
		b.unpack = &unpacker{src: b.src, keep: !b.events}
	default: // it cannot be read, so it is handed over unheld, and its end is that of the transfer
		b.watch.blind, b.events = true, false
	}
	if b.events {
		resp.Header.Del("Content-Encoding")
		resp.Header.Del("Content-Length")
		resp.ContentLength = -1
	}
	return b
}

// canGo reports whether there is no more reason to hold back, or no more room.
func (b *stream) canGo() bool { return b.good() || len(b.queue) > b.most }

func (b *stream) good() bool {
	w := &b.watch
	switch {
	case w.blind && !b.events:
		return true
	case b.whole:
		return w.stream.Complete() && !w.stream.Empty() && (w.ended || b.err != nil)
	}
	return w.stream.Started() || w.stream.Complete() && !w.stream.Empty()
}

// step reads once more of a stream that is held back. It reports false when the time for that is over: then a read may be
// under way.
func (b *stream) step() bool {
	switch {
	case b.whole && b.watch.stream.Started():
		b.sent.stopTimer()
		b.err = b.wait()
		return true
	case b.patience == nil:
		b.err = b.more()
	default:
		b.flight, b.landed = b.takeOff(), false
		select {
		case <-b.flight.landed:
			b.err = b.more()
		case <-b.patience.C:
			return false
		}
	}
	if d := b.call.t.Hold; d > 0 && !b.whole && b.patience == nil && b.watch.events > 0 {
		b.patience = time.NewTimer(d)
	}
	return true
}

// failed decides after each read of a held stream. What was seen counts before how the reading ended.
func (b *stream) failed() *failure {
	w := &b.watch
	malformed := w.stream.Malformed() // what the end tears is not
	if b.err != nil {
		b.finish()
	}
	held := b.whole || !w.stream.Started()
	switch {
	case w.failed != nil && held:
		return &failure{verdict: w.failed.verdict, header: w.header}
	case b.whole && malformed > 0:
		return &failure{verdict: holdfast.Verdict{Kind: holdfast.Broken, Rule: "stream-malformed"}, err: errMalformed}
	case held && w.stream.Complete() && w.verdict() == holdfast.ErrRefused && b.call.asksElsewhere():
		return b.keep(holdfast.Verdict{Kind: holdfast.Refused, Rule: "stream-refused"})
	case w.stream.Empty() && (b.err != nil || w.ended):
		return b.keep(holdfast.Verdict{Kind: holdfast.Broken, Rule: "stream-empty"})
	case b.err != nil && !b.good():
		return b.call.torn(b.sent, b.cut())
	}
	return nil
}

// keep makes a failure of a complete stream, which can be handed over if it is the last.
func (b *stream) keep(v holdfast.Verdict) *failure {
	timer := time.AfterFunc(drainTime, func() { b.sent.cancel(errDone) })
	for b.err == nil && len(b.queue) < max(b.most, defaultMaxHeld) {
		b.err = b.more()
	}
	timer.Stop()
	b.finish()
	resp := b.answer.resp
	resp.Body = &keptBody{data: bytes.NewReader(b.queue[:b.ready])}
	return &failure{verdict: v, resp: resp, ending: b.watch.ending(nil)}
}

// flight is one read that goes on while its stream may be handed over.
type flight struct {
	landed chan struct{} // closed when the read is over
	n      int
	err    error
	broken any // what it panicked with
}

func (b *stream) takeOff() *flight {
	f := &flight{landed: make(chan struct{})}
	go func() {
		defer close(f.landed)
		defer func() { f.broken = recover() }()
		f.n, f.err = b.pull()
	}()
	return f
}

// aloft reports that the read has not come back.
func (f *flight) aloft() bool {
	if f == nil {
		return false
	}
	select {
	case <-f.landed:
		return false
	default:
		return true
	}
}
