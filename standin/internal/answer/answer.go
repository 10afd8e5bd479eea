// Package answer makes the answers of a model that is not there, and gives them the shapes of the real APIs: messages,
// chat completions and responses, as JSON and as events. It keeps no state, and the same request gets the same answer.
// No answer repeats text of the prompt.
package answer

import (
	"strconv"

	"holdfast/standin/internal/request"
)

// DefaultText is the answer when a plan gives none.
const DefaultText = "This is the stand-in speaking: the call went through and here is its answer."

// Shape is the API whose form an answer takes.
type Shape uint8

// The three forms.
const (
	Messages Shape = iota
	ChatCompletions
	Responses
)

// Stop is why an answer ends, in the words of the Messages API. Any other word is passed on.
type Stop string

// The reasons that are known.
const (
	EndTurn       Stop = "end_turn"
	MaxTokens     Stop = "max_tokens"
	StopSequence  Stop = "stop_sequence"
	ToolUse       Stop = "tool_use"
	PauseTurn     Stop = "pause_turn"
	Refusal       Stop = "refusal"
	ContextWindow Stop = "model_context_window_exceeded"
)

// Options are what a plan wants of an answer.
type Options struct {
	Number      int    // of the exchange; ids are made of it
	Text        string // of the answer. Default: DefaultText
	Events      int    // at least so many content events; the text is repeated for it, and limits of the request are not looked at
	Stop        Stop   // "" lets the request decide
	Category    string // of a refusal
	Explanation string // of a refusal
	Declines    int    // models that refuse, of those that the request names. 0: one; negative: all
	Recommended string // the model that a refusal names because it could not be asked
	HalfTool    bool   // a call of a tool whose input ends in its middle; without tools in the request, a text that does
	Rune        int    // put a character of more than one byte at the start of content event number Rune, from 1; 0: nowhere
}

// Answer is a complete answer, in no shape yet.
type Answer struct {
	Number                int
	Model                 string
	Blocks                []Block
	Stop                  Stop
	Sequence              string // the stop sequence that ended it
	Category, Explanation string
	Recommended           string
	Hops                  []string // models that have run, in order, when the request names others; the last is Model
	Usage                 Usage
	WantUsage             bool // chat completions: the stream ends with a chunk of usage
	Batch                 bool // it is the answer to an item of a batch

	told told
}

// told is what the responses shape repeats of a request.
type told struct {
	maxTokens int
	tools     []request.Tool
	choice    request.ToolChoice
	schema    any
	thinking  bool
	omitted   bool
}

// Kind is the type of a content block, in the words of the Messages API.
type Kind string

// The kinds that are made.
const (
	Text          Kind = "text"
	Thinking      Kind = "thinking"
	ToolCall      Kind = "tool_use"
	ServerToolUse Kind = "server_tool_use"
	Fallback      Kind = "fallback"
)

// Block is one content block.
type Block struct {
	Kind      Kind
	Pieces    []string // one content event each; joined they are the text, the thinking or the input as JSON
	ID, Name  string   // of a tool; of a fallback the model that it is from, and the one that goes on
	Category  string   // of a fallback
	Signature string   // of thinking; "" when it was cut off
	Cut       bool     // it ends in its middle
}

// Usage is the tokens of an answer. Thinking is a part of Output.
type Usage struct {
	Input, Output, Thinking, CacheRead, CacheCreation int
}

// Part is the part of a stream that an event belongs to. All events behind the last content event are Tail or Final.
type Part uint8

// The parts.
const (
	Preamble Part = iota // no content: the start of the message and of its blocks, a ping, what lies between two blocks
	Content              // a piece of a block
	Tail                 // behind the content, the stop reason included
	Final                // the event that ends the stream
)

// Event is one event of a stream. Data is overwritten by the next event.
type Event struct {
	Name   string // "" in the chat completions shape
	Data   []byte
	Part   Part
	Output int // tokens of output up to and with this event
	At     int // of a content event: where in Data its piece begins
}

// ContentEvents returns how many content events the stream of the answer has.
func (a Answer) ContentEvents(shape Shape) int {
	n := 0
	for i := range a.Blocks {
		if shape.shows(&a.Blocks[i]) {
			n += len(a.Blocks[i].Pieces)
		}
	}
	return n
}

// shows reports whether a block has a place in the shape.
func (s Shape) shows(b *Block) bool {
	switch b.Kind {
	case Thinking:
		return s != ChatCompletions
	case ServerToolUse, Fallback:
		return s == Messages
	}
	return true
}

// id returns the id of the answer, or with a part of it, under a prefix of its API.
func (a *Answer) id(prefix string) string {
	return prefix + "standin_" + digits(a.Number, 6)
}

// itemID returns the id of the output item that block i becomes.
func (a *Answer) itemID(prefix string, i int) string {
	return a.id(prefix) + "_" + strconv.Itoa(i)
}

// digits writes n with at least width digits.
func digits(n, width int) string {
	text := strconv.Itoa(n)
	for len(text) < width {
		text = "0" + text
	}
	return text
}
