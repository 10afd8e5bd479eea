package transport

import (
	"compress/gzip"
	"io"
)

// unpacker reads a compressed stream for the watch, while the queue gets the bytes as they came. An event that was
// flushed is seen at once: the reader of package gzip does not wait for more than it needs.
type unpacker struct {
	stream *stream
	plain  io.Reader
	err    error // the upstream's
}

// Read gives the compressed bytes to package gzip, and queues them.
func (u *unpacker) Read(p []byte) (int, error) {
	n, err := u.stream.src.Read(p)
	u.stream.queue = append(u.stream.queue, p[:n]...)
	if err != nil {
		u.err = err
	}
	return n, err
}

func (u *unpacker) more() error {
	b := u.stream
	if u.plain == nil {
		unpacked, err := gzip.NewReader(u)
		if err != nil {
			return u.broken(err)
		}
		u.plain = unpacked
	}
	n, err := u.plain.Read(b.scratch)
	b.feed(b.scratch[:n])
	if err != nil {
		return u.broken(err)
	}
	return nil
}

// broken tells an upstream that ended from bytes that are not what the header says: those are handed over unseen.
func (u *unpacker) broken(err error) error {
	if u.err != nil && (err == u.err || err == io.EOF || err == io.ErrUnexpectedEOF) {
		return u.err
	}
	u.stream.mu.Lock()
	defer u.stream.mu.Unlock()
	u.stream.watch.blind = true
	return nil
}
