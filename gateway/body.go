package gateway

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// body is a request's body, whole, to be sent as often as needed: in memory, or in a file that has no name any more and
// is mapped into it.
type body struct {
	data    []byte // nil once it was given back
	release func() // gives back the mapping, or memory that is used again; nil: nothing is to be given back

	mu    sync.Mutex
	users int  // beside the call itself
	ended bool // the call is done with it
}

// Close is the call's own end with it, and may be called more than once. What is given back goes when nobody reads it any
// more: net/http may still be sending what an upstream did not wait for.
func (b *body) Close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ended = true
	b.giveBack()
}

// giveBack is called with the lock held.
func (b *body) giveBack() {
	if b.ended && b.users == 0 && b.data != nil {
		release := b.release
		b.data, b.release = nil, nil // which would keep it, too
		if release != nil {
			release()
		}
	}
}

// enter keeps the data where they are until leave. It returns nil when they are gone.
func (b *body) enter() []byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.data != nil {
		b.users++
	}
	return b.data
}

func (b *body) leave() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.users--
	b.giveBack()
}

// reader gives the body once more. It must be closed, as net/http does at some time with every body.
func (b *body) reader() io.ReadCloser {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.release == nil && b.data != nil {
		// net/http knows this kind of reader, and sends header and body with one write.
		return io.NopCloser(bytes.NewReader(b.data))
	}
	r := &bodyReader{of: b, size: len(b.data)}
	if b.data == nil {
		r.closed.Store(true)
	} else {
		b.users++
	}
	return r
}

// bodyReader reads a body that will be given back. net/http may close it while another of its goroutines reads: then
// what is being read stays until that is over, for it may be another call's a moment later.
type bodyReader struct {
	of     *body
	size   int
	at     int // of the one who reads
	closed atomic.Bool
}

// Close may be called more than once.
func (r *bodyReader) Close() error {
	if !r.closed.Swap(true) {
		r.of.leave()
	}
	return nil
}

// rest is what has not been read. It must be left.
func (r *bodyReader) rest() ([]byte, error) {
	data := r.of.enter()
	switch {
	case data == nil:
		return nil, http.ErrBodyReadAfterClose
	case r.closed.Load():
		r.of.leave()
		return nil, http.ErrBodyReadAfterClose
	}
	return data[r.at:], nil
}

// Len returns how much has not been read.
func (r *bodyReader) Len() int {
	rest, err := r.rest()
	if err != nil {
		return 0
	}
	defer r.of.leave()
	return len(rest)
}

// Read implements io.Reader. net/http looks for the end of a body when all of it has been sent; by then an upstream may have
// answered, and the call may be over. To tell it that the body is closed would make it give up a good connection.
func (r *bodyReader) Read(p []byte) (int, error) {
	if r.at > 0 && r.at == r.size {
		return 0, io.EOF
	}
	rest, err := r.rest()
	if err != nil {
		return 0, err
	}
	defer r.of.leave()
	n := copy(p, rest)
	r.at += n
	if n == 0 && len(p) > 0 {
		return 0, io.EOF
	}
	return n, nil
}

// WriteTo implements io.WriterTo.
func (r *bodyReader) WriteTo(w io.Writer) (int64, error) {
	rest, err := r.rest()
	if err != nil {
		return 0, err
	}
	defer r.of.leave()
	n, err := w.Write(rest)
	r.at += n
	return int64(n), err
}

// known is how a transport gets a body that it need not read or copy.
type known struct {
	*bytes.Reader
	data []byte
}

// Bytes is the whole body.
func (k known) Bytes() []byte { return k.data }

// Close does nothing: the call closes the body.
func (known) Close() error { return nil }

// tooLargeError is a body above the limit.
type tooLargeError struct{ limit int64 }

func (e *tooLargeError) Error() string {
	return fmt.Sprintf("its body is larger than the %d bytes that the gateway takes (limits.max_body)", e.limit)
}

// readBody takes the whole body: it is sent on when it is complete, since an upstream bills and counts what it is sent.
func readBody(w http.ResponseWriter, r *http.Request, s *Settings) (*body, error) {
	if !methodHasBody(r) {
		return &body{}, nil
	}
	most := s.MaxBody
	if most == 0 {
		most = defaultMaxBody
	}
	if most > 0 && r.ContentLength > most {
		return nil, &tooLargeError{most}
	}
	src := &patientReader{src: r.Body, control: http.NewResponseController(w), patience: orDefault(s.BodyTimeout, defaultBodyTimeout)}
	b, err := src.body(r.ContentLength, most, s.BodyMemory)
	if err == nil {
		src.done() // else what is left of the body is not waited for any longer
	}
	return b, err
}

// body reads it into memory or into a file.
func (p *patientReader) body(length, most, memory int64) (*body, error) {
	switch {
	case memory == 0:
		memory = defaultBodyMemory
	case memory < 0:
		memory = most
	}
	if length >= 0 && length <= mostTrusted && (length <= memory || memory <= 0) {
		return readKnown(p, int(length))
	}
	data, more, err := readUpTo(p, length, memory)
	if err != nil || !more {
		return &body{data: data}, err
	}
	return spool(data, p, most)
}

// mostTrusted is the longest body for which there is room before it has come: a header costs its sender nothing.
const mostTrusted = 8 << 20

// readKnown reads a body whose length its header tells. A large one is put where one was before: a prompt of 50,000 tokens is
// 200 KB, and it would be garbage a moment later.
func readKnown(src io.Reader, n int) (*body, error) {
	b := &body{}
	if n < leastRoom {
		b.data = make([]byte, n)
	} else {
		b.data, b.release = room(n)
	}
	if _, err := io.ReadFull(src, b.data); err != nil {
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return nil, err // and the memory is not used again: it is rare
	}
	return b, nil
}

// readUpTo reads at most so many bytes, and one more to see whether there is more.
func readUpTo(src io.Reader, length, most int64) (data []byte, more bool, err error) {
	if length > most && most > 0 {
		return nil, true, nil
	}
	var buffer bytes.Buffer
	if most > 0 {
		src = io.LimitReader(src, most+1)
	}
	_, err = buffer.ReadFrom(src)
	return buffer.Bytes(), most > 0 && int64(buffer.Len()) > most, err
}

// errNoRoom is a body for which there is no room on the disk: nothing that the caller did.
var errNoRoom = errors.New("no room for a temporary file")

// spool keeps a large body in a temporary file.
func spool(begun []byte, src io.Reader, most int64) (*body, error) {
	file, err := os.CreateTemp("", "holdfast-body-*")
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errNoRoom, err)
	}
	defer func() {
		_ = file.Close()
		_ = os.Remove(file.Name())
	}()
	if most > 0 {
		src = io.LimitReader(src, most-int64(len(begun))+1)
	}
	size, err := io.Copy(file, io.MultiReader(bytes.NewReader(begun), src))
	var disk *fs.PathError
	switch {
	case errors.As(err, &disk): // of the file, not of the caller
		return nil, fmt.Errorf("%w: %w", errNoRoom, err)
	case err != nil:
		return nil, err
	case most > 0 && size > most:
		return nil, &tooLargeError{most}
	}
	data, release, err := mapped(file, size)
	if err != nil {
		return nil, fmt.Errorf("reading it back: %w", err)
	}
	return &body{data: data, release: release}, nil
}

// patientReader gives up on a caller who is silent for too long.
type patientReader struct {
	src      io.Reader
	control  *http.ResponseController
	patience time.Duration
	armed    patience
	set      bool
}

func (p *patientReader) Read(b []byte) (int, error) {
	if until, ok := p.armed.next(p.patience); ok {
		p.set = p.control.SetReadDeadline(until) == nil
	}
	return p.src.Read(b)
}

// patience is a deadline that moves on. To move it costs a microsecond, so it is done once in a while alone.
type patience struct{ at time.Time }

// exactness is the part of a patience by which it may be too short.
const exactness = 64

// next returns the deadline if it is to be set anew.
func (p *patience) next(d time.Duration) (until time.Time, ok bool) {
	if d <= 0 {
		return until, false
	}
	now := time.Now()
	if now.Sub(p.at) < d/exactness {
		return until, false
	}
	p.at = now
	return now.Add(d), true
}

// done takes the deadline back: the connection is read on, to see the caller leave.
func (p *patientReader) done() {
	if p.set {
		_ = p.control.SetReadDeadline(time.Time{})
	}
}
