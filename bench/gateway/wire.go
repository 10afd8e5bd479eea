package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"strconv"
)

// Both ends of the measurement speak HTTP/1.1 by hand: what they cost is taken from the subject's processors, and would
// make every ratio look better than it is.

// head is what matters of the head of a request or a reply.
type head struct {
	status  int // of a reply
	work    work
	length  int // of the body; -1 when it is not known
	chunked bool
}

var errHead = errors.New("not an HTTP/1.1 head")

// readHead reads up to the blank line.
func readHead(r *bufio.Reader) (h head, err error) {
	h.length = -1
	line, err := r.ReadSlice('\n')
	if err != nil {
		return h, err
	}
	if bytes.HasPrefix(line, []byte("HTTP/1.1 ")) && len(line) > 12 {
		if h.status, err = strconv.Atoi(string(line[9:12])); err != nil {
			return h, errHead
		}
	}
	for {
		line, err := r.ReadSlice('\n')
		if err != nil {
			return h, err
		}
		line = bytes.TrimRight(line, "\r\n")
		if len(line) == 0 {
			return h, nil
		}
		name, value, ok := bytes.Cut(line, []byte(":"))
		if !ok {
			return h, errHead
		}
		value = bytes.TrimSpace(value)
		switch {
		case is(name, "content-length"):
			if h.length, err = strconv.Atoi(string(value)); err != nil {
				return h, errHead
			}
		case is(name, "transfer-encoding"):
			h.chunked = true
		case is(name, "x-work"):
			h.work = work(value)
		}
	}
}

func is(name []byte, want string) bool {
	return len(name) == len(want) && bytes.EqualFold(name, []byte(want))
}

// readBody reads a body to its end, and hands each piece to seen where that is not nil.
func readBody(r *bufio.Reader, h head, seen func([]byte)) (n int64, err error) {
	switch {
	case h.chunked:
		for {
			line, err := r.ReadSlice('\n')
			if err != nil {
				return n, err
			}
			size, err := strconv.ParseInt(string(bytes.TrimRight(line, "\r\n")), 16, 64)
			if err != nil {
				return n, fmt.Errorf("chunk: %w", err)
			}
			if err := take(r, int(size), seen); err != nil {
				return n, err
			}
			if _, err := r.Discard(2); err != nil {
				return n, err
			}
			n += size
			if size == 0 {
				return n, nil
			}
		}
	case h.length > 0:
		return int64(h.length), take(r, h.length, seen)
	}
	return 0, nil
}

func take(r *bufio.Reader, n int, seen func([]byte)) error {
	if seen == nil {
		_, err := r.Discard(n)
		return err
	}
	for n > 0 {
		if _, err := r.Peek(1); err != nil {
			return err
		}
		piece, err := r.Peek(min(n, r.Buffered()))
		if err != nil {
			return err
		}
		seen(piece)
		n -= len(piece)
		if _, err := r.Discard(len(piece)); err != nil {
			return err
		}
	}
	return nil
}

// appendChunk adds one chunk of a chunked body.
func appendChunk(dst, data []byte) []byte {
	dst = strconv.AppendInt(dst, int64(len(data)), 16)
	dst = append(dst, "\r\n"...)
	dst = append(dst, data...)
	return append(dst, "\r\n"...)
}
