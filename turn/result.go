package turn

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/anthropics/anthropic-sdk-go/v2"
	"github.com/anthropics/anthropic-sdk-go/v2/packages/param"
)

// Result is what became of a turn. It is complete with an error too: what was spent is in it, and what there is of an
// answer.
type Result struct {
	// Outcome is how the turn ended. Only of one that is Done the answer is whole.
	Outcome Outcome
	// Text is the text of the last answer, together with what it continued. What was said before a pause is in Kept, and
	// what was refused or discarded is in neither.
	Text string
	// Message is the last one that came, also one that was refused or discarded. Half a tool call is not in its Content.
	// Nil: none came.
	Message *anthropic.Message
	// Kept are the messages of the turn that count, in order: those before a pause, those that were continued, and the
	// last, if it counts.
	Kept []*anthropic.Message
	// Model that answered last; after a fallback of the API it is the one that went on. "" when none did.
	Model string
	// ToolUses are the calls that wait for results, each of them complete. Nil unless the Outcome is ToolUse.
	ToolUses []anthropic.ToolUseBlock
	// StopReason of the last answer, as it came.
	StopReason string
	// Category and Explanation are of the last refusal, which a fallback model may have made up for; "" where the API
	// gave none. Recommended is the model that the API named then.
	Category, Explanation, Recommended string
	// Steps are the requests, in order. They hold nothing of a prompt or an answer.
	Steps []Step
	// Usage is the sum over all steps.
	Usage Usage

	history []anthropic.MessageParam
}

// Step is one request of a turn.
type Step struct {
	// Model and MaxTokens as asked for.
	Model     string
	MaxTokens int64
	// Answered is the model that answered, "" when none did.
	Answered string
	// StopReason as it came, "" when no answer did.
	StopReason string
	// Category of a refusal, "" for none.
	Category string
	// Usage of this request; Partial when its stream broke off.
	Usage Usage
	// RequestID of the reply, "" when it is unknown.
	RequestID string
	// Streamed: it was asked for as a stream.
	Streamed bool
	// Action that followed and Why, in the words of [Next]. Of a request that failed: End, and "failed".
	Action Action
	Why    string
	// Discarded: nothing of its answer is in the Result.
	Discarded bool
}

// History returns what to append to the conversation for the turn: the assistant's messages and, between the parts of an
// answer that was continued, the user message that asked for the rest. The results of ToolUses go behind it. Nil when
// nothing of the turn counts.
//
// It never holds half a tool call, an input that is no JSON, an empty text or anything of a discarded step, all of which
// the API answers with 400.
func (r *Result) History() []anthropic.MessageParam { return slices.Clone(r.history) }

// assistant is a message to be sent back, block for block as it came. The beta blocks that mark a fallback are left out:
// no request behind one bears their header.
func assistant(content []anthropic.ContentBlockUnion) (anthropic.MessageParam, bool) {
	var blocks []anthropic.ContentBlockParamUnion
	for i := range content {
		b := &content[i]
		if b.Type == blockText && strings.TrimSpace(b.Text) == "" || b.Type == blockFallback {
			continue
		}
		blocks = append(blocks, unchanged(b))
	}
	if len(blocks) == 0 {
		return anthropic.MessageParam{}, false
	}
	return anthropic.NewAssistantMessage(blocks...), true
}

// unchanged sends a block back as it came, fields included that the SDK does not know.
func unchanged(b *anthropic.ContentBlockUnion) anthropic.ContentBlockParamUnion {
	if raw := b.RawJSON(); json.Valid([]byte(raw)) {
		return param.Override[anthropic.ContentBlockParamUnion](json.RawMessage(raw))
	}
	return b.ToParam()
}
