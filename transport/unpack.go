package transport

import (
	"bufio"
	"compress/gzip"
	"errors"
	"io"
)

// unpacker reads a compressed stream for the watch, and keeps the bytes as they came. An event that was flushed is seen at
// once: the reader of package gzip does not wait for more than it needs.
type unpacker struct {
	src   io.Reader
	plain io.Reader
	keep  bool   // the bytes as they came are wanted
	raw   []byte // what was kept of them
	err   error  // the upstream's
}

// errPacked is of bytes that are not what the header says.
var errPacked = errors.New("holdfast: the stream is not what its content-encoding says")

// Read gives the compressed bytes to package gzip.
func (u *unpacker) Read(p []byte) (int, error) {
	n, err := u.src.Read(p)
	if u.keep {
		u.raw = append(u.raw, p[:n]...)
	}
	if err != nil {
		u.err = err
	}
	return n, err
}

// pull reads plain bytes. Its error is the upstream's, or errPacked.
func (u *unpacker) pull(p []byte) (int, error) {
	if u.plain == nil {
		if err := u.begin(); err != nil {
			return 0, u.broken(err)
		}
	}
	n, err := u.plain.Read(p)
	if err != nil {
		return n, u.broken(err)
	}
	return n, nil
}

// begin opens the stream. Where nobody wants the bytes as they came, one that was never packed is read as it is.
func (u *unpacker) begin() error {
	if !u.keep {
		peeked := bufio.NewReader(u)
		if head, _ := peeked.Peek(2); len(head) < 2 || head[0] != 0x1f || head[1] != 0x8b {
			u.plain = peeked
			return nil
		}
		unpacked, err := gzip.NewReader(peeked)
		u.plain = unpacked
		return err
	}
	unpacked, err := gzip.NewReader(u)
	if err == nil {
		u.plain = unpacked
	}
	return err
}

// broken tells an upstream that ended from bytes that are not what the header says.
func (u *unpacker) broken(err error) error {
	if u.err != nil && (err == u.err || err == io.EOF || err == io.ErrUnexpectedEOF) {
		return u.err
	}
	return errPacked
}
