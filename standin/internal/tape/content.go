package tape

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"time"
)

// errCoding is a content coding that cannot be undone here.
var errCoding = errors.New("tape: the content coding is not known")

// decoded undoes the content coding, up to limit bytes and one more.
func decoded(body []byte, coding string, limit int) ([]byte, error) {
	switch coding {
	case "", "identity":
		return body, nil
	case "gzip":
		z, err := gzip.NewReader(bytes.NewReader(body))
		if err != nil {
			return nil, err
		}
		return io.ReadAll(io.LimitReader(z, int64(limit)+1))
	default:
		return nil, errCoding
	}
}

// plain returns the frames of the reply without its content coding. A frame that
// brings no byte by itself is left out. What a cut has made unreadable is lost.
func (x *Exchange) plain() ([]Frame, error) {
	switch x.compressed() {
	case "":
		return x.Frames, nil
	case "gzip":
	default:
		return nil, errCoding
	}
	src := &byteSource{frames: x.Frames}
	z, err := gzip.NewReader(src)
	if err != nil {
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return nil, nil
		}
		return nil, err
	}
	var frames []Frame
	size := 0
	for buffer := make([]byte, 32<<10); ; {
		n, err := z.Read(buffer)
		if n > 0 {
			data := bytes.Clone(buffer[:n])
			if last := len(frames) - 1; last >= 0 && frames[last].At == src.at {
				frames[last].Data = append(frames[last].Data, data...)
			} else {
				frames = append(frames, Frame{At: src.at, Data: data})
			}
		}
		size += n
		switch {
		case err == nil && size > replyLimit:
			return nil, errTooLarge
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return frames, nil
		case err != nil:
			return nil, err
		}
	}
}

// byteSource hands out the bytes of frames one by one, so that its reader takes
// none before it needs it, and knows when the last one came.
type byteSource struct {
	frames []Frame
	at     time.Duration
	next   int // in the first of frames
}

// ReadByte implements io.ByteReader.
func (s *byteSource) ReadByte() (byte, error) {
	for len(s.frames) > 0 && s.next >= len(s.frames[0].Data) {
		s.frames, s.next = s.frames[1:], 0
	}
	if len(s.frames) == 0 {
		return 0, io.EOF
	}
	s.at = s.frames[0].At
	s.next++
	return s.frames[0].Data[s.next-1], nil
}

// Read implements io.Reader.
func (s *byteSource) Read(p []byte) (n int, err error) {
	for n < len(p) {
		b, err := s.ReadByte()
		if err != nil {
			return n, err
		}
		p[n] = b
		n++
	}
	return n, nil
}
