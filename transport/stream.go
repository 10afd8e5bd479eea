package transport

import (
	"context"
	"io"
	"net/http"
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

	whole  bool // held back to its end
	events bool // handed over by whole events
	most   int  // bytes that are held back; negative: none

	// The following belong to the one who reads.
	queue    []byte // read, and from at on not handed over
	at       int
	ready    int // what of the queue may be handed over: all, or with events up to the last blank line
	scratch  []byte
	filled   bool      // by the last read
	unpack   *unpacker // nil for a stream that is not compressed
	err      error     // how the reading ended, once it has
	final    error     // the same as the reader is to see it
	finished bool      // the end was put into shape
	torn     bool      // the error event was dropped
	landed   bool      // the flight's bytes were taken
	waited   time.Duration
	timer    *time.Timer // idle
	patience *time.Timer // of a stream that is held back, from its first event on

	flight *flight // the latest read that may be under way; set while it is held back
	handed atomic.Int64

	reading atomic.Bool
	closed  atomic.Bool

	mu       sync.Mutex // Close may come while a Read waits
	watch    watch
	progress bool // since the last wait began
}

const (
	scratchSize = 1 << 10  // at first: most streams are slow, and many are open at once
	mostScratch = 32 << 10 // of one that fills it
	queueSize   = 64 << 10 // a queue that has grown beyond it is not kept
	lingerTime  = time.Second
)

func (b *stream) cut() *CutError {
	w := &b.watch
	lost := cut(w.phase(), w.bytes, b.err)
	lost.Events, lost.StopReason = w.events, w.stream.StopReason()
	return lost
}

// pull reads once from the upstream.
func (b *stream) pull() (int, error) {
	if b.filled && len(b.scratch) < mostScratch {
		b.scratch = make([]byte, 2*len(b.scratch))
	}
	n, err := b.fetch()
	b.filled = n == len(b.scratch)
	return n, err
}

func (b *stream) fetch() (int, error) {
	if b.unpack != nil {
		return b.unpack.pull(b.scratch)
	}
	return b.src.Read(b.scratch)
}

// more takes what the next read brings, or the one that is under way.
func (b *stream) more() error {
	f := b.flight
	if f == nil || b.landed {
		return b.take(b.pull())
	}
	<-f.landed
	b.landed = true
	if f.broken != nil {
		panic(f.broken) //nolint:forbidigo // it is passed on to the goroutine whose doing it is
	}
	return b.take(f.n, f.err)
}

// Read hands over what is there, and waits for more if there is nothing.
func (b *stream) Read(p []byte) (int, error) {
	if b.closed.Load() {
		return 0, http.ErrBodyReadAfterClose
	}
	if len(p) == 0 {
		return 0, nil
	}
	if err := b.await(); err != nil {
		return 0, err
	}
	n := copy(p, b.queue[b.at:b.ready])
	b.handedOver(n)
	return n, nil
}

// WriteTo is Read without a buffer in between: it writes what there is as it comes, until the stream ends.
func (b *stream) WriteTo(w io.Writer) (written int64, err error) {
	for {
		if b.closed.Load() {
			return written, http.ErrBodyReadAfterClose
		}
		if err := b.await(); err != nil {
			if err == io.EOF {
				err = nil
			}
			return written, err
		}
		n, err := w.Write(b.queue[b.at:b.ready])
		written += int64(n)
		b.handedOver(n)
		if err != nil {
			return written, err
		}
	}
}

// await returns when there is something to hand over, or the end.
func (b *stream) await() error {
	b.reading.Store(true)
	defer b.reading.Store(false)
	for b.at == b.ready {
		if b.final != nil {
			return b.final
		}
		b.reuse()
		if b.err == nil {
			b.err = b.wait()
		}
		if b.err != nil {
			b.final = b.ended()
		}
	}
	return nil
}

func (b *stream) handedOver(n int) {
	b.at += n
	b.handed.Add(int64(n))
}

// reuse makes room. What there is of the next event goes to the front, once.
func (b *stream) reuse() {
	if b.at > 0 {
		left := b.queue[b.at:]
		if cap(b.queue) > queueSize && len(left) < queueSize {
			b.queue = nil
		}
		b.queue = append(b.queue[:0], left...)
	}
	b.at, b.ready = 0, 0
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
	b.finish()
	var reader, outcome error = io.EOF, nil
	switch {
	case b.closed.Load():
		reader, outcome = http.ErrBodyReadAfterClose, holdfast.ErrCancelled
	case w.over():
		outcome = w.verdict()
		if b.torn {
			reader = b.lost()
		}
	case w.blind && b.err == io.EOF:
	default:
		reader = b.lost()
		outcome = reader
	}
	e := w.ending(outcome)
	e.bytes = b.handed.Load() + int64(b.ready-b.at)
	b.mu.Unlock()
	b.answer.settle(e)
	return reader
}

// lost is the error of a stream that ended too early, by whoever's doing.
func (b *stream) lost() error {
	if err := b.call.req.Context().Err(); err != nil {
		return err
	}
	lost := b.cut()
	if stalled := b.call.stalled(b.sent, lost); stalled != nil {
		return stalled
	}
	if b.sent.outer.Err() != nil {
		lost.Err = context.Cause(b.sent.ctx) // a timer of the policy
	}
	return lost
}

// Close lets the stream go. One that is whole, or has told its error, is settled by that; any other was left by its
// reader.
func (b *stream) Close() error {
	if b.closed.Swap(true) {
		return nil
	}
	b.mu.Lock()
	w := &b.watch
	over := w.over() || w.blind
	e := w.ending(holdfast.ErrCancelled)
	if over {
		e.err = w.verdict()
	}
	e.bytes = b.handed.Load()
	b.mu.Unlock()
	if over && !b.reading.Load() && !b.answer.over.Load() && !b.flight.aloft() {
		b.sent.discard(b.src)
	}
	b.answer.settle(e)
	err := b.src.Close()
	if b.flight != nil {
		<-b.flight.landed
	}
	return err
}
