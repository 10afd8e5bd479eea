// Package tape keeps real exchanges with an API and plays them back. A tape is
// a file of JSON lines: a header with the version of the format, then one
// exchange each, with every read of the reply and the time at which it came.
//
// Prompts and answers are on a tape: that is what it is for. Credentials are
// not: of headers and query parameters only those on an allow list are kept,
// and a key of the request that an answer repeats is overwritten.
//
// A Recorder writes a tape while it passes exchanges through, Read reads one,
// a Deck hands its exchanges out again. Nothing here knows of plans or faults.
package tape

import (
	"bytes"
	"net/http"
	"strings"
	"time"
)

// Version is the version of the format that this package writes and reads.
const Version = 1

// End is how a reply ended.
type End string

// The ways in which a reply ends.
const (
	// Complete is a reply whose body has come to its end.
	Complete End = "complete"
	// Cut is a connection that was closed before the reply was complete.
	Cut End = "cut"
	// Reset is a connection that was reset before the reply was complete.
	Reset End = "reset"
)

// Closer is who ended an exchange before its reply was complete.
type Closer string

// The two sides of an exchange.
const (
	// Upstream closed or broke the connection.
	Upstream Closer = "upstream"
	// Client left. What the upstream would have sent is not known.
	Client Closer = "client"
)

// Tape is what was recorded. It does not change and is safe for concurrent use.
type Tape struct {
	// Host is the upstream that was recorded, without path, query and user.
	Host string
	// Created is when the recording began.
	Created time.Time
	// Exchanges are in the order in which their requests arrived.
	Exchanges []*Exchange
	// Warnings are what was passed over while reading, a sentence each.
	Warnings []string

	exact map[string][]*Exchange // by method, path, query and digest
	alike map[string][]*Exchange // by method, path and model
}

// Exchange is one request and its reply.
type Exchange struct {
	Number  int       // order of arrival, from 1
	Arrived time.Time // when the headers of the request had been read

	Method string
	Path   string      // as the client asked for it, decoded
	Query  string      // the parameters that may be kept, encoded
	Asked  http.Header // headers of the request that may be kept
	Model  string      // that the body asks for; "" for none
	Stream bool        // the body asks for an event stream
	Digest string      // SHA-256 of the body in hex, as far as it was read
	Size   int64       // of the body in bytes, as far as it was read
	Body   []byte      // JSON; nil when it is none, too large or not wanted

	Status int           // 0: the exchange ended before the headers of the reply
	Header http.Header   // headers of the reply that may be kept
	Began  time.Duration // from the request to the headers of the reply
	Frames []Frame
	End    End
	By     Closer        // "" when the reply is complete
	Ended  time.Duration // from the request to the end
}

// Frame is one read of a reply's body.
type Frame struct {
	At   time.Duration // from the request
	Data []byte
}

// Reply returns the body of the reply as it came over the wire.
func (x *Exchange) Reply() []byte { return joined(x.Frames) }

// Plain returns the body of the reply without its content coding. false: the
// coding is not known, or what came is none of it.
func (x *Exchange) Plain() ([]byte, bool) {
	frames, err := x.plain()
	if err != nil {
		return nil, false
	}
	return joined(frames), true
}

// Streamed reports whether the reply is an event stream.
func (x *Exchange) Streamed() bool {
	media, _, _ := strings.Cut(x.Header.Get("content-type"), ";")
	return x.Status == http.StatusOK && strings.EqualFold(strings.TrimSpace(media), "text/event-stream")
}

// compressed returns the coding of the reply's body; "" for none.
func (x *Exchange) compressed() string {
	coding := strings.ToLower(strings.TrimSpace(x.Header.Get("content-encoding")))
	if coding == "identity" {
		return ""
	}
	return coding
}

// overwrite masks every secret in the frames, also where it is spread over
// several of them. The number of bytes stays.
func overwrite(frames []Frame, secrets []string) {
	if len(secrets) == 0 || len(frames) == 0 {
		return
	}
	whole := joined(frames)
	if !mask(whole, secrets) {
		return
	}
	for i := range frames {
		n := copy(frames[i].Data, whole)
		whole = whole[n:]
	}
}

func joined(frames []Frame) []byte {
	size := 0
	for _, f := range frames {
		size += len(f.Data)
	}
	whole := make([]byte, 0, size)
	for _, f := range frames {
		whole = append(whole, f.Data...)
	}
	return whole
}

// mask overwrites every secret in text and reports whether there was one.
func mask(text []byte, secrets []string) (found bool) {
	for _, secret := range secrets {
		for rest := text; ; {
			at := bytes.Index(rest, []byte(secret))
			if at < 0 {
				break
			}
			found = true
			for i := range len(secret) {
				rest[at+i] = 'x'
			}
			rest = rest[at+len(secret):]
		}
	}
	return found
}
