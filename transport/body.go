package transport

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
)

// Body is a request body in memory. It is sent from there with every attempt, whatever its size, and never copied.
type Body struct {
	unread *bytes.Reader
	data   []byte
}

// NewBody returns a body of data, which must not be changed any more: an attempt may still be sending it when the call is
// over.
func NewBody(data []byte) *Body { return &Body{unread: bytes.NewReader(data), data: data} }

// Read implements io.Reader.
func (b *Body) Read(p []byte) (int, error) { return b.unread.Read(p) }

// Bytes returns all of the body, also what was read and after Close.
func (b *Body) Bytes() []byte { return b.data }

// Close does nothing.
func (b *Body) Close() error { return nil }

// payload is the request's body, to be sent with every attempt.
type payload struct {
	data   []byte // the whole body, if it is kept
	whole  bool
	again  func() (io.ReadCloser, error) // gives it once more; nil when there is no body, or only one copy
	once   *single                       // the only copy
	length int64                         // as of http.Request.ContentLength
}

// load takes the body over from the request. From then on the request's own body is closed, save an only copy.
func (t *Transport) load(req *http.Request) (*payload, error) {
	if req.Body == nil || req.Body == http.NoBody {
		return &payload{whole: true}, nil
	}
	if held, ok := req.Body.(interface{ Bytes() []byte }); ok {
		data := held.Bytes()
		_ = req.Body.Close()
		return kept(data), nil
	}
	most, keep := limit(t.MaxReplay, defaultMaxReplay)
	keep = keep && req.ContentLength <= int64(most)
	if req.GetBody != nil {
		_ = req.Body.Close()
		return recall(req)
	}
	if !keep {
		return &payload{once: &single{src: req.Body, close: req.Body}, length: req.ContentLength}, nil
	}
	data, more, err := read(req.Context(), req.Body, req.ContentLength, most)
	if err != nil {
		_ = req.Body.Close()
		return nil, fmt.Errorf("holdfast: reading the request's body: %w", err)
	}
	if more {
		src := io.MultiReader(bytes.NewReader(data), req.Body)
		return &payload{once: &single{src: src, close: req.Body}, length: req.ContentLength}, nil
	}
	_ = req.Body.Close()
	return kept(data), nil
}

// recall is for a body that its request can give again. It is read where its content decides something, and kept then.
func recall(req *http.Request) (*payload, error) {
	p := &payload{again: req.GetBody, length: req.ContentLength}
	if !known(req) || req.ContentLength > defaultMaxReplay {
		return p, nil
	}
	body, err := req.GetBody()
	if err != nil {
		return nil, fmt.Errorf("holdfast: getting the request's body: %w", err)
	}
	data, more, err := read(req.Context(), body, req.ContentLength, defaultMaxReplay)
	_ = body.Close()
	if err != nil {
		return nil, fmt.Errorf("holdfast: reading the request's body: %w", err)
	}
	if more {
		return p, nil
	}
	return kept(data), nil
}

func kept(data []byte) *payload {
	p := &payload{data: data, whole: true, length: int64(len(data))}
	if len(data) > 0 {
		p.again = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil }
	}
	return p
}

// read reads up to most bytes, and reports whether there is more. A caller who leaves ends it by having the body closed.
func read(ctx context.Context, body io.ReadCloser, length int64, most int) (data []byte, more bool, err error) {
	stop := context.AfterFunc(ctx, func() { _ = body.Close() })
	defer stop()
	var buffer bytes.Buffer
	if length > 0 {
		buffer.Grow(int(length) + bytes.MinRead) // ReadFrom grows before it sees the end
	}
	_, err = buffer.ReadFrom(io.LimitReader(body, int64(most)+1))
	if ctx.Err() != nil {
		return nil, false, ctx.Err()
	}
	return buffer.Bytes(), buffer.Len() > most, err
}

// attach puts the body on an attempt's own request.
func (p *payload) attach(req *http.Request) error {
	req.GetBody, req.ContentLength = p.again, p.length
	switch {
	case p.once != nil:
		req.Body = p.once
	case p.again == nil:
		req.Body = nil
	default:
		body, err := p.again()
		if err != nil {
			return fmt.Errorf("holdfast: getting the request's body: %w", err)
		}
		req.Body = body
	}
	return nil
}

// spent reports that the only copy is gone.
func (p *payload) spent() bool { return p.once != nil && p.once.touched.Load() }

// release closes a body that nobody has begun to read; whoever has is to close it.
func (p *payload) release() {
	if p.once != nil && p.once.touched.CompareAndSwap(false, true) {
		_ = p.once.close.Close()
	}
}

// single is a body of which there is one copy. A connection that fails closes it unread, and then it can still be sent.
type single struct {
	src     io.Reader
	close   io.Closer
	touched atomic.Bool
}

var errSpent = errors.New("holdfast: the request's body was sent already and is too large to be kept")

func (s *single) Read(b []byte) (int, error) {
	s.touched.Store(true)
	return s.src.Read(b)
}

func (s *single) Close() error {
	if !s.touched.Load() {
		return nil
	}
	return s.close.Close()
}
