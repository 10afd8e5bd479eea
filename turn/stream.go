package turn

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"time"
	"unicode/utf8"

	"github.com/anthropics/anthropic-sdk-go/v2"
	"github.com/anthropics/anthropic-sdk-go/v2/option"
	"github.com/anthropics/anthropic-sdk-go/v2/packages/ssestream"

	"holdfast"
)

// Client is the part of the SDK that a turn needs: &client.Messages is one. See the example of [Client] for one whose calls
// are kept working by [holdfast.Do].
type Client interface {
	New(ctx context.Context, params anthropic.MessageNewParams, opts ...option.RequestOption) (*anthropic.Message, error)
	NewStreaming(ctx context.Context, params anthropic.MessageNewParams, opts ...option.RequestOption) *ssestream.Stream[anthropic.MessageStreamEventUnion]
}

// Collect asks with a stream and returns the whole message, so that a long answer needs no long silence. A stream that
// fails, or ends before the answer does, is a [*StreamError]: the SDK alone takes a stream that just ends for a good one.
//
// It never returns a part of a message, never asks twice by itself, and never mends the input of a tool that is no JSON, in
// whose place the SDK puts an empty object. Within the operation of [holdfast.Do] a stream that was cut is asked for again
// like any call that failed.
func Collect(ctx context.Context, client Client, params anthropic.MessageNewParams, opts ...option.RequestOption) (*anthropic.Message, error) {
	g, err := gather(ctx, client, params, opts, nil)
	if err != nil {
		return nil, err
	}
	return g, nil
}

// afterEnd is how long a stream may take to close when its answer is whole. An orderly end leaves the connection for
// the next request.
const afterEnd = time.Second

// gather reads one stream to its end. tell is told of each event, with the text that it adds, and may be nil.
func gather(ctx context.Context, client Client, params anthropic.MessageNewParams, opts []option.RequestOption,
	tell func(*anthropic.MessageStreamEventUnion, string)) (*anthropic.Message, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream := client.NewStreaming(ctx, params, opts...)
	defer func() { _ = stream.Close() }() // what it could say, the reading has said
	g := gathering{pieces: map[int64]bool{}}
	left := time.AfterFunc(math.MaxInt64, cancel)
	defer left.Stop()
	for stream.Next() {
		event := stream.Current()
		if g.ended {
			continue
		}
		if err := g.add(event); err != nil {
			return nil, g.failed(err)
		}
		if g.ended {
			left.Reset(afterEnd)
		}
		if tell != nil {
			tell(&event, textOf(&event))
		}
	}
	err := stream.Err()
	var said *anthropic.Error
	switch {
	case g.ended:
	case errors.As(err, &said), !g.complete() && err != nil:
		return nil, g.failed(err)
	case !g.started:
		return nil, holdfast.ErrEmpty
	case !g.complete():
		return nil, g.failed(holdfast.ErrCut)
	default: // behind the stop reason nothing is missing but the event that says so
		if err := g.message.Accumulate(anthropic.MessageStreamEventUnion{Type: "message_stop"}); err != nil {
			return nil, g.failed(err)
		}
	}
	for i, input := range g.broken {
		g.message.Content[i].Input = json.RawMessage(input)
	}
	return &g.message, nil
}

// textOf is the text that an event adds.
func textOf(e *anthropic.MessageStreamEventUnion) string {
	switch e.Type {
	case "content_block_start":
		return e.ContentBlock.Text
	case "content_block_delta":
		if e.Delta.Type == "text_delta" {
			return e.Delta.Text
		}
	}
	return ""
}

// gathering is a message on its way.
type gathering struct {
	message anthropic.Message
	started bool
	stopped bool           // the stop reason is there
	ended   bool           // the event that ends the stream is there
	counted bool           // the usage is the final one
	pieces  map[int64]bool // blocks that are open
	broken  map[int]string // inputs of tools that are no JSON
	events  int            // of content
	runes   int            // of content
}

// complete reports whether all of the answer is there.
func (g *gathering) complete() bool { return g.ended || g.stopped && len(g.pieces) == 0 }

var errSecondStart = errors.New("turn: a second message began in one stream")

func (g *gathering) add(e anthropic.MessageStreamEventUnion) error {
	switch e.Type {
	case "message_start":
		if g.started { // what came before it would be lost without a word
			return errSecondStart
		}
		g.started = true
	case "content_block_start":
		g.pieces[e.Index] = true
	case "content_block_delta":
		g.events++
		g.runes += utf8.RuneCountInString(e.Delta.Text) + utf8.RuneCountInString(e.Delta.PartialJSON) + utf8.RuneCountInString(e.Delta.Thinking)
	case "content_block_stop":
		g.close(e.Index)
	case "message_delta":
		g.stopped = g.stopped || e.Delta.StopReason != ""
		g.counted = g.counted || e.Usage.JSON.OutputTokens.Valid()
	case "message_stop":
		if !g.stopped { // it ends in the middle of an answer, whatever it says
			return holdfast.ErrCut
		}
		for index := range g.pieces { // some servers leave the end of a block out
			g.close(index)
		}
		g.ended = true
	}
	return g.message.Accumulate(e)
}

// close looks at the input of a tool before the SDK puts an empty object in the place of what is no JSON: a tool that is
// run with nothing is worse than one that is not run.
func (g *gathering) close(index int64) {
	delete(g.pieces, index)
	if index < 0 || index >= int64(len(g.message.Content)) {
		return
	}
	block := &g.message.Content[index]
	if len(block.Input) > 0 && !json.Valid(block.Input) {
		if g.broken == nil {
			g.broken = map[int]string{}
		}
		g.broken[int(index)] = string(block.Input)
	}
}

// failed is the error of a stream that did not come to its end.
func (g *gathering) failed(err error) error {
	if !g.started {
		return err
	}
	e := &StreamError{Model: string(g.message.Model), Usage: usageOf(&g.message), Err: err}
	if !g.counted {
		// Three characters to a token, and a token to an event, err on the side of the bill.
		e.Usage.Output = max(e.Usage.Output, int64(g.events), int64(g.runes+2)/3)
		e.Usage.Partial = true
	}
	return e
}

// StreamError is a stream that broke off in the middle of its answer, which is billed. errors.Is finds [holdfast.ErrCut] for one that just
// ended, errors.As the SDK's own error.
type StreamError struct {
	// Model that was answering.
	Model string
	// Usage is what is known of the cost, an estimate as a rule.
	Usage Usage
	// Err is what ended it.
	Err error
}

// Error tells what ended the stream. It never holds anything of the answer.
func (e *StreamError) Error() string {
	return "turn: the stream ended before the answer did: " + plain(e.Err)
}

// Unwrap returns the cause, never nil.
func (e *StreamError) Unwrap() error { return e.Err }

// Hint says what the caller can do about it. It never depends on the text of an error.
func (e *StreamError) Hint() string {
	return fmt.Sprintf("ask again; until then count %d input and %d output tokens as billed", e.Usage.Input, e.Usage.Output)
}

// Verdict is that of the cause. One that nobody knows, such as an event that is no JSON, is the upstream's failure, and
// may be repeated. It never makes an error of the API, or a caller who left, anything else than they are.
func (e *StreamError) Verdict() holdfast.Verdict {
	v := holdfast.Judge(e.Err)
	if v.Kind == holdfast.Terminal && v.Status == 0 && !v.NotSent {
		v.Kind, v.Rule = holdfast.Broken, "stream-unreadable"
	}
	return v
}
