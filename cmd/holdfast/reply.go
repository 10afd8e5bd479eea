package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/anthropics/anthropic-sdk-go/v2"
	"github.com/anthropics/anthropic-sdk-go/v2/option"
	"github.com/anthropics/anthropic-sdk-go/v2/packages/ssestream"

	"holdfast"
)

// client asks one question with the SDK, whose own retries are off. It is used by one goroutine.
type client struct {
	sdk    anthropic.Client
	params anthropic.MessageNewParams
	header http.Header // of the last reply; nil when there was none
}

func newClient(model string, maxTokens int64, question string, options ...option.RequestOption) *client {
	return &client{
		sdk: anthropic.NewClient(append([]option.RequestOption{option.WithMaxRetries(0)}, options...)...),
		params: anthropic.MessageNewParams{
			Model: anthropic.Model(model), MaxTokens: maxTokens,
			Messages: []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock(question))},
		},
	}
}

// asked says what wait the last reply named, or that it named none.
func (c *client) asked() string {
	for _, name := range []string{"retry-after-ms", "retry-after"} {
		if value := c.header.Get(name); value != "" {
			return fmt.Sprintf("%s %s", name, printable(value))
		}
	}
	return "no retry-after"
}

// printable shortens a server's text and drops what could move a terminal's cursor.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, text[:min(len(text), 40)])
}

// whole asks for the answer in one piece.
func (c *client) whole(ctx context.Context) (*reply, error) {
	c.header = nil
	var got *http.Response
	message, err := c.sdk.Messages.New(ctx, c.params, option.WithResponseInto(&got))
	if got != nil {
		c.header = got.Header
	}
	if err != nil {
		return nil, notAnAnswer(got, err)
	}
	if len(message.Content) == 0 && message.StopReason == "" {
		if v := holdfast.FromReply(http.StatusOK, c.header, []byte(message.RawJSON()), time.Now()); v.Kind != holdfast.OK && v.Type != "" {
			return nil, &insideSuccess{v} // an error in the place of an answer
		}
		return nil, holdfast.ErrEmpty
	}
	r := &reply{message: *message, requestID: c.header.Get("request-id")}
	r.pending = text(*message)
	return r, nil
}

// insideSuccess is an error that came as the body of a 200.
type insideSuccess struct{ verdict holdfast.Verdict }

func (e *insideSuccess) Error() string             { return said(e.verdict) }
func (e *insideSuccess) Verdict() holdfast.Verdict { return e.verdict }

// notAnAnswer says of a success that the SDK could not read that it holds no answer: a web page, or nothing at all.
func notAnAnswer(got *http.Response, err error) error {
	var api *anthropic.Error
	var network net.Error
	if got == nil || got.StatusCode >= 300 || errors.As(err, &api) || errors.As(err, &network) || errors.Is(err, context.Canceled) {
		return err
	}
	if v := holdfast.Judge(err); v.Kind != holdfast.Terminal {
		return err
	}
	return fmt.Errorf("%w: %w", holdfast.ErrEmpty, err)
}

// open asks for a stream and reads it up to the first word. On a failure, the reply holds what was billed already.
func (c *client) open(ctx context.Context) (*reply, error) {
	c.header = nil
	var got *http.Response
	r := &reply{stream: c.sdk.Messages.NewStreaming(ctx, c.params, option.WithResponseInto(&got))}
	if got != nil {
		c.header = got.Header
		r.requestID = got.Header.Get("request-id")
	}
	for r.pending == "" && r.next() {
	}
	if r.failure != nil {
		_ = r.stream.Close() // it failed already
		return r, r.failure
	}
	return r, nil
}

// reply is an answer, whole or still coming. It is a holdfast.Pending, so that a call whose stream breaks is not taken
// for a success.
type reply struct {
	message   anthropic.Message
	requestID string
	pending   string // text that was read and not yet given out

	stream  *ssestream.Stream[anthropic.MessageStreamEventUnion] // nil: the reply is whole
	over    bool                                                 // message_stop has come
	failure error
	end     func(holdfast.Tokens, error)
}

// AtEnd is called by holdfast.Do.
func (r *reply) AtEnd(end func(used holdfast.Tokens, err error)) { r.end = end }

// settle tells the call how its answer ended.
func (r *reply) settle(err error) {
	if r.end != nil {
		r.end(holdfast.Tokens{Input: int(r.message.Usage.InputTokens), Output: int(r.message.Usage.OutputTokens)}, err)
	}
	if r.stream != nil {
		_ = r.stream.Close() // it has been read to its end, or is given up
	}
}

// rest gives out the text to its end, or until give returns false.
func (r *reply) rest(give func(text string) bool) error {
	for {
		if r.pending != "" && !give(r.pending) {
			return holdfast.ErrCancelled
		}
		r.pending = ""
		if r.stream == nil || !r.next() {
			return r.failure
		}
	}
}

// next reads one event. It reports false at the end, which is a failure when message_stop is missing.
func (r *reply) next() bool {
	if r.over || r.failure != nil {
		return false
	}
	if !r.stream.Next() {
		if r.failure = r.stream.Err(); r.failure == nil {
			r.failure = holdfast.ErrCut // a clean end without message_stop is no end
		}
		return false
	}
	event := r.stream.Current()
	if err := r.message.Accumulate(event); err != nil {
		r.failure = fmt.Errorf("%w: %w", holdfast.ErrCut, err)
		return false
	}
	switch event.Type {
	case "content_block_delta":
		r.pending += event.Delta.Text
	case "message_stop":
		r.over = true
	}
	return true
}

// text joins the text of a message.
func text(m anthropic.Message) string {
	var b strings.Builder
	for _, block := range m.Content {
		if block.Type == "text" {
			b.WriteString(block.Text)
		}
	}
	return b.String()
}

// incomplete returns the error of an answer that is not a whole one.
func (r *reply) incomplete(maxTokens int64) error {
	incomplete := func(hint, format string, args ...any) error {
		return &exitError{code: exitIncomplete, err: fmt.Errorf(format, args...), hint: hint}
	}
	switch r.message.StopReason {
	case anthropic.StopReasonEndTurn, anthropic.StopReasonStopSequence:
		return nil
	case anthropic.StopReasonMaxTokens:
		return incomplete("--max-tokens takes a larger number", "the answer was cut at %d tokens (max_tokens)", maxTokens)
	case anthropic.StopReasonRefusal:
		text := "the model refused"
		if category := r.message.StopDetails.Category; category != "" {
			text += " (category " + printable(string(category)) + ")"
		}
		return incomplete("the same model usually refuses again; rephrase the question or use --model", "%s", text)
	}
	return incomplete("", "the answer is not whole (stop_reason %q)", printable(string(r.message.StopReason)))
}
