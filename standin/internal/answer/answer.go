// Package answer makes the answers of a model that is not there, and gives them the shapes of the real APIs: messages,
// chat completions and responses, as JSON and as events. It keeps no state, and the same request gets the same answer.
package answer

import (
	"holdfast/standin/internal/request"
)

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
	Text        string // of the answer
	Events      int    // at least so many content events; the text is repeated for it
	Stop        Stop   // "" lets the request decide
	Category    string // of a refusal
	Explanation string // of a refusal
	HalfTool    bool   // a call of a tool whose input ends in its middle
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
	Usage                 Usage
	WantUsage             bool // chat completions: the stream ends with a chunk of usage
}

// Block is one content block.
type Block struct {
	Kind      string   // text, thinking, tool_use, server_tool_use
	Pieces    []string // one content event each; joined they are the text, the thinking or the input as JSON
	ID, Name  string   // of a tool
	Signature string   // of thinking
}

// Usage is the tokens of an answer.
type Usage struct {
	Input, Output, CacheRead, CacheCreation int
}

// Part is the part of a stream that an event belongs to.
type Part uint8

// The parts, in their order.
const (
	Preamble Part = iota
	Content
	Tail  // behind the content, the stop reason included
	Final // the event that ends the stream
)

// Event is one event of a stream.
type Event struct {
	Name   string // "" in the chat completions shape
	Data   []byte
	Part   Part
	Output int // tokens of output up to and with this event
}

var _ = request.Request{}
