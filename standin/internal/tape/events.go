package tape

import (
	"bytes"
	"errors"
	"io"
	"math"
	"net/http"
	"strings"
	"time"

	"holdfast/internal/sse"
	"holdfast/internal/wire"
)

// Part is the part of a stream that an event belongs to. What opens and closes
// the blocks between two content events is preamble.
type Part uint8

// The parts, in their order.
const (
	Preamble Part = iota
	Content
	Tail  // behind the content, the stop reason included
	Final // the event that ends the stream, or an error
)

// Piece is some bytes of a reply and the time to wait before they are sent: for
// the first from the headers, for every further one from the one before.
type Piece struct {
	Wait time.Duration
	Data []byte
}

// Event is one event of a recorded stream. Data is every byte of it, with
// comments in front of it and its blank line behind it.
type Event struct {
	Piece
	Name string // "" when it has none
	Text []byte // the value of its data
	Part Part
	Torn bool // the recording ends inside it
}

// Playback is a recorded reply with its times as they are to be played.
type Playback struct {
	Status int           // 0: it ends before the headers
	Header http.Header   // as kept; for events without content-length and content-encoding
	Before time.Duration // from the request to the headers, or to the end when there are none
	Pieces []Piece       // of the body as it came, unless there are Events
	Events []Event       // of an event stream
	After  time.Duration // from the last piece or event to the end
	End    End
	By     Closer      // Client: it left, and the upstream had sent all that is here; whoever plays it waits for the same
	Tokens wire.Tokens // that the reply says were used; zero when it says nothing

	arrived time.Time // when the recorded request came
}

// HeaderAt returns Header for a reply to a request that has come at now: every
// absolute time in it, the date and those at which a limit ends, is moved by
// what lies between the recording and now, in whole seconds. Without that a
// client would find every wait in the past.
func (p Playback) HeaderAt(now time.Time) http.Header {
	moved := p.Header.Clone()
	by := now.Sub(p.arrived).Round(time.Second)
	for name, values := range moved {
		if lowered := strings.ToLower(name); lowered != "date" && lowered != "retry-after" && !strings.Contains(lowered, "reset") {
			continue
		}
		for i, value := range values {
			if at, err := http.ParseTime(value); err == nil {
				values[i] = at.Add(by).UTC().Format(http.TimeFormat)
			} else if at, err := time.Parse(time.RFC3339, value); err == nil {
				values[i] = at.Add(by).Format(time.RFC3339)
			}
		}
	}
	return moved
}

// Play returns the reply piece by piece, byte for byte as it was recorded. A
// speed of 1 plays in real time and 2 twice as fast; 0, what is below, and what
// is no number play at once.
func (x *Exchange) Play(speed float64) Playback {
	p := x.opening(speed)
	p.Pieces = make([]Piece, 0, len(x.Frames))
	last := x.Began
	for _, f := range x.Frames {
		p.Pieces = append(p.Pieces, Piece{Wait: paced(f.At-last, speed), Data: f.Data})
		last = f.At
	}
	p.After = paced(x.Ended-last, speed)
	return p
}

// PlayEvents returns the reply event by event, each at the time at which its
// last byte came, so that a fault can be laid over it. false: the reply is no
// event stream, or in a content coding that is not known; then Play is all
// there is.
func (x *Exchange) PlayEvents(speed float64) (Playback, bool) {
	if !x.Streamed() {
		return Playback{}, false
	}
	frames, err := x.plain()
	if err != nil {
		return Playback{}, false
	}
	events, ok := split(frames)
	if !ok {
		return Playback{}, false
	}
	p := x.opening(speed)
	p.Header.Del("content-length")
	p.Header.Del("content-encoding")
	last := x.Began
	for i, e := range events {
		at := e.Wait
		events[i].Wait = paced(at-last, speed)
		last = at
	}
	p.Events = events
	p.After = paced(x.Ended-last, speed)
	return p, true
}

func (x *Exchange) opening(speed float64) Playback {
	p := Playback{Status: x.Status, Header: x.Header.Clone(), End: x.End, By: x.By, Before: paced(x.Began, speed), Tokens: x.tokens(), arrived: x.Arrived}
	if x.Status == 0 {
		p.Before = paced(x.Ended, speed)
	}
	return p
}

func paced(d time.Duration, speed float64) time.Duration {
	if !(speed > 0) || math.IsInf(speed, 1) {
		return 0
	}
	return time.Duration(min(float64(d)/speed, float64(longest)))
}

// tokens returns what the reply says was used.
func (x *Exchange) tokens() wire.Tokens {
	frames, err := x.plain()
	if err != nil {
		return wire.Tokens{}
	}
	if !x.Streamed() {
		used, _ := wire.Usage(joined(frames))
		return used
	}
	var stream wire.Stream
	events := sse.NewReader(bytes.NewReader(joined(frames)), replyLimit)
	for {
		e, err := events.Next()
		if err != nil {
			used, _ := stream.Tokens()
			return used
		}
		stream.Event(e.Name, e.Data)
	}
}

// split returns the events of a stream. Wait is the time from the request at
// which the last byte came. Joined, their Data is the stream.
func split(frames []Frame) (events []Event, ok bool) {
	src := &frameSource{frames: frames}
	reader := sse.NewReader(src, replyLimit)
	var stream wire.Stream
	last, position := -1, 0 // index of the last content event; bytes behind us
	for {
		e, err := reader.Next()
		if err != nil {
			if !errors.Is(err, io.EOF) {
				return nil, false
			}
			break
		}
		position += len(e.Raw)
		of := Event{Piece: Piece{Wait: src.when(position), Data: bytes.Clone(e.Raw)}, Name: e.Name, Text: bytes.Clone(e.Data), Torn: e.Unterminated}
		switch progress := stream.Event(e.Name, e.Data); {
		case progress == wire.ProgressContent && !repeats(e.Name):
			of.Part, last = Content, len(events)
		case progress == wire.ProgressStop:
			of.Part = Tail
		case progress == wire.ProgressEnd, progress == wire.ProgressError:
			of.Part = Final
		}
		events = append(events, of)
	}
	for i := range events {
		switch part := &events[i].Part; {
		case *part == Preamble && i > last && last >= 0:
			*part = Tail
		case *part == Tail && i < last: // one of several choices has ended
			*part = Preamble
		}
	}
	if rest := reader.Rest(); len(rest) > 0 { // comments behind the last event
		part := Final
		if len(events) > 0 {
			part = events[len(events)-1].Part
		}
		events = append(events, Event{Piece: Piece{Wait: src.when(position + len(rest)), Data: bytes.Clone(rest)}, Part: part, Torn: true})
	}
	return events, true
}

// repeats reports whether an event of the Responses API says again what its
// deltas have said.
func repeats(name string) bool {
	return strings.HasPrefix(name, "response.") && !strings.HasSuffix(name, ".delta")
}

// frameSource reads frames and knows when each byte came.
type frameSource struct {
	frames []Frame
	read   int // frames
	within int // of the frame being read
	passed int // bytes of the frames in front of asked
	asked  int // the frame that when has come to
}

// Read implements io.Reader.
func (s *frameSource) Read(p []byte) (int, error) {
	for s.read < len(s.frames) && s.within == len(s.frames[s.read].Data) {
		s.read, s.within = s.read+1, 0
	}
	if s.read == len(s.frames) {
		return 0, io.EOF
	}
	n := copy(p, s.frames[s.read].Data[s.within:])
	s.within += n
	return n, nil
}

// when returns the time of the byte in front of position, which only grows.
func (s *frameSource) when(position int) time.Duration {
	for s.asked < len(s.frames)-1 && s.passed+len(s.frames[s.asked].Data) < position {
		s.passed += len(s.frames[s.asked].Data)
		s.asked++
	}
	return s.frames[s.asked].At
}
