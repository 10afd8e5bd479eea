// Package sse reads, relays and writes event streams (text/event-stream) by
// the WHATWG algorithm, and keeps the exact bytes of every frame so that a
// relay changes nothing.
//
// A Reader hands an event over the moment its blank line has arrived, whether
// lines end in LF, CRLF or a lone CR and however the network has cut the
// bytes. It differs from the algorithm in one point: an event that the end of
// the stream cut short is not dropped but delivered with a flag, because the
// caller, who knows the dialect, is the one to decide what its loss means.
//
// A Reader is not safe for concurrent use. It never closes its source, starts
// no goroutine and has no timer.
package sse

import (
	"bytes"
	"errors"
	"fmt"
	"io"
)

// DefaultLimit is the size in bytes (32 MiB) above which an event is too
// large when NewReader is not told otherwise. The Go SDKs stop at the same
// size, so nothing that they could have read is refused.
const DefaultLimit = 32 << 20

// ErrTooLarge is the error of an event, or of a run of comments without an
// event, above the reader's limit. Test with errors.Is; the text has the
// limit. It is final: the stream is not read any further.
var ErrTooLarge = errors.New("sse: event too large")

const (
	firstBuffer = 4 << 10
	scanWindow  = 512 // bounds the scan for a far LF in a stream of lone CRs
	emptyReads  = 100 // reads of no bytes and no error in a row before io.ErrNoProgress
	knownNames  = 64  // event names kept per reader, so that a name costs no allocation
)

var byteOrderMark = []byte("\xEF\xBB\xBF")

// Event is one event of a stream. Its slices belong to the Reader and are
// valid until the next call of Next.
type Event struct {
	// Name is the value of the event's last "event" field; "" when it has none.
	Name string
	// Data is the values of the "data" fields joined with LF. It is empty, and
	// still an event, when the only "data" field has no value.
	Data []byte
	// ID is the last id that the stream has set, in this event or before it;
	// "" when there was none.
	ID string
	// Raw is every byte of the stream since the event before: comments and
	// blocks without data that came in between, the frame, and its blank line.
	// Where the blank line is a CR whose LF has not arrived yet, that LF begins
	// the Raw of the next event.
	Raw []byte
	// Unterminated tells that the stream ended before the blank line. Data may
	// be cut anywhere.
	Unterminated bool
}

// Reader takes events from a stream. Use NewReader.
type Reader struct {
	src   io.Reader
	limit int
	err   error // final, once set

	buf   []byte
	start int // first byte that no returned event holds
	end   int // behind the last byte read

	// Offsets from start, so that moving the buffer keeps them.
	line    int  // first byte of the line being collected
	scan    int  // no line end lies between line and scan
	uncount int  // 1 when the frame begins with the LF of the CR before it
	begun   bool // the first line of the stream is behind us
	afterCR bool // a LF at line belongs to the CR before it

	block block
	id    string
	names map[string]string
}

// block is what the lines since the last blank line have said.
type block struct {
	name     string
	lines    int // "data" fields
	from, to int // value of the only one, as offsets from Reader.start
	joined   []byte
}

// NewReader returns a reader of src. limit is the largest event in bytes,
// counted from the end of the event before it; 0 or less means DefaultLimit.
func NewReader(src io.Reader, limit int) *Reader {
	if limit <= 0 {
		limit = DefaultLimit
	}
	return &Reader{src: src, limit: limit, names: make(map[string]string)}
}

// NewMemory returns a reader of a stream that is in memory, which it neither
// copies nor changes: give it one with Over.
func NewMemory() *Reader { return &Reader{err: io.EOF, names: make(map[string]string)} }

// Over begins anew with what is in memory, and takes it for a whole stream.
// It must stay as it is until the last of its events is done with. Over is for
// readers of NewMemory.
func (r *Reader) Over(stream []byte) {
	*r = Reader{err: io.EOF, limit: len(stream) + 1, buf: stream, end: len(stream), names: r.names, block: block{joined: r.block.joined[:0]}}
}

// Next returns the next event. The error is io.EOF where the source ended
// (whether the stream was complete is for the caller to know), ErrTooLarge, or
// the source's own error, each only after all events before it, and again on
// every later call. After an error of the source an unfinished event stays in
// Rest; only a clean end delivers it, marked Unterminated.
func (r *Reader) Next() (Event, error) {
	for {
		for r.err == nil || r.line < r.end-r.start {
			done, more := r.takeLine()
			if r.overLimit() {
				r.err = fmt.Errorf("%w: more than %d bytes without an end", ErrTooLarge, r.limit)
				return Event{}, r.err
			}
			if done {
				return r.deliver(), nil
			}
			if !more {
				break
			}
		}
		if r.err != nil {
			return r.finish()
		}
		r.fill()
	}
}

// Rest returns the bytes that were read and are in no event returned so far.
// At the end of a stream these are trailing comments and blocks without data;
// before it, whatever the source had ready. Valid until the next call of Next.
func (r *Reader) Rest() []byte { return r.buf[r.start:r.end] }

// takeLine consumes one complete line. done tells that it ended an event, more
// that there was a complete line at all.
func (r *Reader) takeLine() (done, more bool) {
	b := r.buf[r.start:r.end]
	if r.afterCR && r.line < len(b) {
		r.skipLF(b)
	}
	at := lineEnd(b, r.scan)
	if at < 0 {
		r.scan = len(b)
		return false, false
	}
	blank := r.endLine(b, at)
	r.line, r.scan = at+1, at+1
	r.afterCR = b[at] == '\r'
	if !blank {
		return false, true
	}
	if r.block.lines > 0 {
		return true, true
	}
	r.block.reset()
	return false, true
}

// endLine takes what b[r.line:at] says and reports whether it is a blank line.
func (r *Reader) endLine(b []byte, at int) (blank bool) {
	from := r.line
	if !r.begun {
		r.begun = true
		if bytes.HasPrefix(b[from:at], byteOrderMark) {
			from += len(byteOrderMark)
		}
	}
	if from == at {
		return true
	}
	r.field(b[:at], from)
	return false
}

// skipLF passes the LF of a CRLF whose CR has already ended the line.
func (r *Reader) skipLF(b []byte) {
	r.afterCR = false
	if b[r.line] != '\n' {
		return
	}
	if r.line == 0 {
		r.uncount = 1
	}
	r.line++
	r.scan = max(r.scan, r.line)
}

// lineEnd returns the index of the first CR or LF at or after from, or -1.
func lineEnd(b []byte, from int) int {
	for from < len(b) {
		window := b[from:min(from+scanWindow, len(b))]
		lf := bytes.IndexByte(window, '\n')
		if lf >= 0 {
			window = window[:lf]
		}
		if cr := bytes.IndexByte(window, '\r'); cr >= 0 {
			return from + cr
		}
		if lf >= 0 {
			return from + lf
		}
		from += len(window)
	}
	return -1
}

// overLimit reports whether the frame up to where it has been scanned exceeds
// the limit. A LF that only completes the CRLF of the blank line never counts,
// so the answer does not depend on how the bytes arrived.
func (r *Reader) overLimit() bool { return r.scan-r.uncount > r.limit }

// deliver returns the event that ends before r.line and starts a new frame.
func (r *Reader) deliver() Event {
	if b := r.buf[r.start:r.end]; r.afterCR && r.line < len(b) {
		r.skipLF(b)
	}
	frame := r.buf[r.start : r.start+r.line]
	e := Event{Name: r.block.name, ID: r.id, Raw: frame, Data: r.block.data(frame)}
	r.start += r.line
	r.line, r.scan, r.uncount = 0, 0, 0
	r.block.reset()
	return e
}

// finish handles what is left once the source has ended or failed.
func (r *Reader) finish() (Event, error) {
	if r.err != io.EOF || r.start == r.end {
		return Event{}, r.err
	}
	b := r.buf[r.start:r.end]
	r.endLine(b, len(b))
	r.line, r.scan = len(b), len(b)
	if r.block.lines == 0 {
		return Event{}, r.err
	}
	e := r.deliver()
	e.Unterminated = true
	return e, nil
}

// fill reads once into the buffer, and makes room first.
func (r *Reader) fill() {
	if r.start > 0 && (r.start == r.end || r.end == len(r.buf)) {
		r.end = copy(r.buf, r.buf[r.start:r.end])
		r.start = 0
	}
	if r.end == len(r.buf) {
		grown := make([]byte, max(firstBuffer, 2*len(r.buf)))
		copy(grown, r.buf[:r.end])
		r.buf = grown
	}
	for range emptyReads {
		n, err := r.src.Read(r.buf[r.end:])
		r.end += n
		r.err = err
		if n > 0 || err != nil {
			return
		}
	}
	r.err = io.ErrNoProgress
}

// field reads the line frame[from:], which is not blank.
func (r *Reader) field(frame []byte, from int) {
	name, value, found := bytes.Cut(frame[from:], []byte{':'})
	from += len(name)
	if found {
		from++
	}
	if len(value) > 0 && value[0] == ' ' {
		value = value[1:]
		from++
	}
	switch string(name) { // the comparison does not allocate
	case "data":
		r.block.addData(frame, from)
	case "event":
		r.block.name = r.intern(value)
	case "id":
		if r.id != string(value) && bytes.IndexByte(value, 0) < 0 {
			r.id = string(value)
		}
	}
	// A comment has the empty name. "retry" tells a browser when to connect
	// again, which nobody does with these streams. Other names are to be ignored.
}

// addData adds the value frame[from:].
func (k *block) addData(frame []byte, from int) {
	switch k.lines {
	case 0:
		k.from, k.to = from, len(frame)
	case 1:
		k.joined = append(k.joined[:0], frame[k.from:k.to]...)
		fallthrough
	default:
		k.joined = append(append(k.joined, '\n'), frame[from:]...)
	}
	k.lines++
}

func (k *block) data(frame []byte) []byte {
	if k.lines == 1 {
		return frame[k.from:k.to:k.to]
	}
	return k.joined
}

// reset forgets the block; the room for joined data stays.
func (k *block) reset() { *k = block{joined: k.joined[:0]} }

// intern returns value as a string, the same one for a name seen before.
func (r *Reader) intern(value []byte) string {
	if s, ok := r.names[string(value)]; ok {
		return s
	}
	s := string(value)
	if len(r.names) < knownNames {
		r.names[s] = s
	}
	return s
}
