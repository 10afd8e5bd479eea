package answer

import (
	"iter"
	"unicode/utf8"
)

// Events returns the events of the answer's stream, one after the other, all encoded into the same buffer: what an
// event's Data holds is good until the next one. A loop over them may end anywhere.
func (a Answer) Events(shape Shape) iter.Seq[Event] {
	return func(yield func(Event) bool) {
		s := stream{answer: &a, shape: shape, yield: yield, buf: make([]byte, 0, 1024)}
		for i := range a.Blocks {
			if shape.shows(&a.Blocks[i]) {
				s.last = i
			}
		}
		switch shape {
		case ChatCompletions:
			s.chat()
		case Responses:
			s.responses()
		default:
			s.messages()
		}
	}
}

// stream is the stream of an answer on its way. After the receiver has had enough nothing more is yielded.
type stream struct {
	answer *Answer
	shape  Shape
	yield  func(Event) bool
	ended  bool
	buf    []byte
	last   int // index of the last block that is shown
	runes  int // of output so far
	events int // so far: the sequence number in the responses shape
}

// send yields what is in the buffer.
func (s *stream) send(name string, part Part) {
	output := 0
	if s.runes > 0 {
		output = min(tokensOf(s.runes), s.answer.Usage.Output)
	}
	if part >= Tail {
		output = s.answer.Usage.Output
	}
	s.emit(Event{Name: name, Part: part, Output: output})
}

// sendPiece yields what is in the buffer as a content event whose piece begins at the offset at.
func (s *stream) sendPiece(name, piece string, at int) {
	s.runes += utf8.RuneCountInString(piece)
	s.emit(Event{Name: name, Part: Content, Output: min(tokensOf(s.runes), s.answer.Usage.Output), At: at})
}

func (s *stream) emit(e Event) {
	if s.ended {
		return
	}
	e.Data = s.buf
	s.events++
	s.ended = !s.yield(e)
}

// after is the part of what follows the content of block i.
func (s *stream) after(i int) Part {
	if i == s.last {
		return Tail
	}
	return Preamble
}

// JSON returns the answer as one body.
func (a Answer) JSON(shape Shape) []byte {
	dst := make([]byte, 0, 1024)
	switch shape {
	case ChatCompletions:
		return a.completion(dst)
	case Responses:
		return a.response(dst, phase{status: a.status(), whole: true})
	default:
		return a.message(dst)
	}
}
