package transport

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"holdfast"
)

// stream is the body of an event stream: first held back by the attempt, then read by the caller.
//
// Bytes go from the upstream into the queue and from there to the reader; the watch sees a copy on the way.
type stream struct {
	call   *call
	sent   *sent
	answer *pending
	src    io.ReadCloser

	// The following belong to the one who reads.
	queue   []byte // read, and from at on not handed over
	at      int
	scratch []byte
	unpack  *unpacker // nil for a stream that is not compressed
	err     error     // how the reading ended, once it has
	final   error     // the same as the reader is to see it
	waited  time.Duration
	timer   *time.Timer

	reading atomic.Bool
	closed  atomic.Bool

	mu       sync.Mutex // Close may come while a Read waits
	watch    watch
	progress bool // since the last wait began
}

const (
	scratchSize = 16 << 10
	queueSize   = 64 << 10 // a queue that has grown beyond it is not kept
	lingerTime  = time.Second
)

// hold reads a stream up to its first content. What fails before it is an ordinary failure; from there on the stream is
// handed over, with everything that was held back.
func (c *call) hold(s *sent, resp *http.Response) (reply, *failure) {
	b := &stream{
		call: c, sent: s, answer: &pending{resp: resp, sent: s}, src: resp.Body,
		scratch: make([]byte, scratchSize), watch: watch{header: resp.Header},
	}
	switch strings.ToLower(resp.Header.Get("Content-Encoding")) {
	case "", "identity":
	case "gzip", "x-gzip":
		b.unpack = &unpacker{stream: b}
	default: // it cannot be read, so it is handed over unheld, and its end is that of the transfer
		b.watch.blind = true
	}
	s.startTimer(c.t)
	most, on := limit(c.t.MaxHeld, defaultMaxHeld)
	for on && !b.canGo(most) {
		b.err = b.more()
		if f := b.failed(); f != nil {
			return nil, f
		}
	}
	s.stopTimer()
	resp.Body = b
	return b.answer, nil
}

// canGo reports whether there is no more reason to hold back.
func (b *stream) canGo(most int) bool {
	w := &b.watch
	return w.blind || w.stream.Started() || len(b.queue) > most || w.stream.Complete() && !w.stream.Empty()
}

// failed decides after each read of a held stream. What was seen counts before how the reading ended.
func (b *stream) failed() *failure {
	w := &b.watch
	if b.err != nil {
		w.finish()
	}
	switch {
	case w.failed != nil && !w.stream.Started():
		return &failure{verdict: w.failed.verdict, header: w.header}
	case !w.stream.Started() && w.stream.Complete() && w.verdict() == holdfast.ErrRefused && b.call.asksElsewhere():
		return b.keep(holdfast.Verdict{Kind: holdfast.Refused, Rule: "stream-refused"})
	case w.stream.Empty() && (b.err != nil || w.ended):
		return b.keep(holdfast.Verdict{Kind: holdfast.Broken, Rule: "stream-empty"})
	case b.err != nil && !b.canGo(len(b.queue)):
		return b.call.torn(b.sent, b.cut())
	}
	return nil
}

// keep makes a failure of a complete stream, which can be handed over if it is the last.
func (b *stream) keep(v holdfast.Verdict) *failure {
	timer := time.AfterFunc(drainTime, func() { b.sent.cancel(errDone) })
	for b.err == nil && len(b.queue) < defaultMaxHeld {
		b.err = b.more()
	}
	timer.Stop()
	resp := b.answer.resp
	resp.Body = &keptBody{data: bytes.NewReader(b.queue)}
	return &failure{verdict: v, resp: resp}
}

func (b *stream) cut() *CutError {
	w := &b.watch
	lost := cut(w.phase(), w.bytes, b.err)
	lost.Events, lost.StopReason = w.events, w.stream.StopReason()
	return lost
}

// more reads once from the upstream.
func (b *stream) more() error {
	if b.unpack != nil && !b.watch.blind {
		return b.unpack.more()
	}
	n, err := b.src.Read(b.scratch)
	b.queue = append(b.queue, b.scratch[:n]...)
	b.feed(b.scratch[:n])
	return err
}

func (b *stream) feed(p []byte) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.watch.feed(p) {
		b.progress = true
	}
}

// Read hands over what is there, and waits for more if there is nothing.
func (b *stream) Read(p []byte) (int, error) {
	if b.closed.Load() {
		return 0, http.ErrBodyReadAfterClose
	}
	if len(p) == 0 {
		return 0, nil
	}
	b.reading.Store(true)
	defer b.reading.Store(false)
	for b.at == len(b.queue) {
		if b.final != nil {
			return 0, b.final
		}
		b.reuse()
		if b.err == nil {
			b.err = b.wait()
		}
		if b.err != nil {
			b.final = b.ended()
		}
	}
	n := copy(p, b.queue[b.at:])
	b.at += n
	return n, nil
}

func (b *stream) reuse() {
	b.queue, b.at = b.queue[:0], 0
	if cap(b.queue) > queueSize {
		b.queue = nil
	}
}

// wait is more with the idle timer. It runs only while somebody waits: a slow reader is no slow upstream. A stream whose
// terminal event has passed is not waited for long, since some upstreams leave the connection open behind it.
func (b *stream) wait() error {
	left, on := limit(b.call.t.Idle, defaultIdle)
	left -= b.waited
	if b.watch.ended {
		left, on = lingerTime, true
	}
	if !on {
		return b.more()
	}
	if b.timer == nil {
		b.timer = time.AfterFunc(left, func() { b.sent.cancel(errIdle) })
	} else {
		b.timer.Reset(left)
	}
	b.progress = false
	start := time.Now()
	err := b.more()
	b.timer.Stop()
	b.waited += time.Since(start)
	if b.progress {
		b.waited = 0
	}
	return err
}

// ended settles the call after the last read, and returns what the reader gets to see. An answer that is whole is a
// success however its connection ended.
func (b *stream) ended() error {
	b.mu.Lock()
	w := &b.watch
	w.finish()
	var reader, outcome error = io.EOF, nil
	switch {
	case b.closed.Load():
		reader, outcome = http.ErrBodyReadAfterClose, holdfast.ErrCancelled
	case w.over():
		outcome = w.verdict()
	case w.blind && b.err == io.EOF:
	default:
		reader = b.lost()
		outcome = reader
	}
	used := w.used()
	b.mu.Unlock()
	b.answer.settle(used, outcome)
	return reader
}

// lost is the error of a stream that ended too early, by whoever's doing.
func (b *stream) lost() error {
	caller := b.call.req.Context()
	switch cause := context.Cause(b.sent.ctx); {
	case caller.Err() != nil:
		return caller.Err()
	case cause == errIdle:
		limit, _ := limit(b.call.t.Idle, defaultIdle)
		w := &b.watch
		return &TimeoutError{Timer: Idle, Limit: limit, Phase: w.phase(), Events: w.events, Bytes: w.bytes}
	case b.sent.outer.Err() != nil:
		b.err = cause // a timer of the policy
	}
	return b.cut()
}

// Close lets the stream go. One that is whole, or has told its error, is settled by that; any other was left by its
// reader.
func (b *stream) Close() error {
	if b.closed.Swap(true) {
		return nil
	}
	b.mu.Lock()
	w := &b.watch
	over, used := w.over() || w.blind, w.used()
	var outcome error = holdfast.ErrCancelled
	if over {
		outcome = w.verdict()
	}
	b.mu.Unlock()
	if over && !b.reading.Load() && !b.answer.over.Load() {
		b.sent.discard(b.src)
	}
	b.answer.settle(used, outcome)
	return b.src.Close()
}
