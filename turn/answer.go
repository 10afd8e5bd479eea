package turn

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/anthropics/anthropic-sdk-go/v2"

	"holdfast/internal/wire"
)

// answer is one message with what matters in it.
type answer struct {
	message     *anthropic.Message
	facts       Response
	text        string
	usage       Usage
	requestID   string
	explanation string
	fellBack    bool // one of the API's own fallbacks answered
}

// The types of content blocks that are looked at. The SDK's plain union does not model a fallback, and keeps its JSON.
const (
	blockText       = "text"
	blockToolUse    = "tool_use"
	blockServerTool = "server_tool_use"
	blockFallback   = "fallback"
)

// read finds out what a message is.
func read(m *anthropic.Message) *answer {
	rounds := iterationsOf(m)
	a := answer{message: m, usage: billed(m, rounds)}
	f := &a.facts
	f.StopReason, f.Model, f.Continuable = string(m.StopReason), string(m.Model), true
	for i := range m.Content {
		b := &m.Content[i]
		switch b.Type {
		case blockText:
			a.text += b.Text
		case blockFallback:
			from, to := handedOver(b.RawJSON())
			f.Declined = append(f.Declined, from)
			if to != "" { // a stream begins with the model that was asked
				f.Model = to
			}
			f.Continuable = false
		default:
			f.Continuable = false
		}
		if b.Type == blockToolUse && !isObject(b.Input) {
			f.HalfTool = true
		}
	}
	f.Continuable = f.Continuable && strings.TrimSpace(a.text) != ""
	if n := len(m.Content); n > 0 && m.Content[n-1].Type == blockToolUse && cutOff(m.StopReason) {
		f.HalfTool = true // a body repairs the input that was cut off; it is still half a call
	}
	if f.HalfTool { // nobody is to see it
		whole := *m
		whole.Content = withoutHalves(m.Content)
		a.message = &whole
	}
	a.handOver(rounds)
	if m.StopReason == anthropic.StopReasonRefusal {
		a.refusal(rounds)
	}
	return &a
}

// handOver looks for a fallback that answered. The usage tells of it also where no block of the content does: a model that
// has declined in an earlier turn is not run again for a while.
func (a *answer) handOver(rounds []iteration) {
	served := slices.IndexFunc(rounds, func(r iteration) bool { return r.Type == "fallback_message" })
	if served < 0 {
		return
	}
	a.fellBack = true
	for _, r := range rounds {
		if r.Type == "message" && r.Model != rounds[served].Model {
			a.facts.Declined = append(a.facts.Declined, r.Model)
		}
	}
}

func (a *answer) refusal(rounds []iteration) {
	details := &a.message.StopDetails
	a.facts.Category, a.explanation = wire.Scrub(string(details.Category), 60), details.Explanation
	for _, r := range rounds { // all of them refused
		a.facts.Declined = append(a.facts.Declined, r.Model)
	}
	var more struct {
		Recommended string `json:"recommended_model"`
	}
	if json.Unmarshal([]byte(details.RawJSON()), &more) == nil {
		a.facts.Recommended = more.Recommended
	}
}

func cutOff(reason anthropic.StopReason) bool {
	return reason == anthropic.StopReasonMaxTokens || reason == anthropic.StopReasonModelContextWindowExceeded
}

func isObject(input json.RawMessage) bool {
	var object map[string]json.RawMessage
	return json.Unmarshal(input, &object) == nil && object != nil
}

// handedOver reads a fallback block: the model that declined, and the one that went on.
func handedOver(raw string) (from, to string) {
	var block struct {
		From, To struct {
			Model string `json:"model"`
		}
	}
	if json.Unmarshal([]byte(raw), &block) != nil {
		return "", ""
	}
	return block.From.Model, block.To.Model
}

// withoutHalves leaves out the calls that end in their middle: the last block, and inputs that are no JSON.
func withoutHalves(content []anthropic.ContentBlockUnion) []anthropic.ContentBlockUnion {
	var whole []anthropic.ContentBlockUnion
	for i := range content {
		if b := &content[i]; b.Type != blockToolUse || i < len(content)-1 && isObject(b.Input) {
			whole = append(whole, *b)
		}
	}
	return whole
}

// ours is the content of a message that counts: without what a model said that handed over, but for its text and the tools
// of the server that were done. The rules are those of the provider's guide on fallbacks, as the SDK's betafallback has
// them.
func ours(content []anthropic.ContentBlockUnion) []anthropic.ContentBlockUnion {
	last := -1
	for i := range content {
		if content[i].Type == blockFallback {
			last = i
		}
	}
	if last < 0 {
		return content
	}
	done := results(content)
	var kept []anthropic.ContentBlockUnion
	for i, b := range content {
		foreign := b.Type == blockServerTool && !done[b.ID] || slices.Contains([]string{"thinking", "redacted_thinking", "connector_text", blockToolUse}, b.Type)
		if i > last || !foreign {
			kept = append(kept, b)
		}
	}
	return kept
}

// settled is content to which no result will come: without calls that wait for one.
func settled(content []anthropic.ContentBlockUnion) []anthropic.ContentBlockUnion {
	done := results(content)
	var kept []anthropic.ContentBlockUnion
	for _, b := range content {
		if b.Type != blockToolUse && (b.Type != blockServerTool || done[b.ID]) {
			kept = append(kept, b)
		}
	}
	return kept
}

// results are the ids of the server's tools that were done.
func results(content []anthropic.ContentBlockUnion) map[string]bool {
	done := map[string]bool{}
	for i := range content {
		if strings.HasSuffix(content[i].Type, "_tool_result") {
			done[content[i].ToolUseID] = true
		}
	}
	return done
}

// toolUses are the calls of a message that waits for their results.
func toolUses(content []anthropic.ContentBlockUnion) []anthropic.ToolUseBlock {
	var uses []anthropic.ToolUseBlock
	for i := range content {
		if content[i].Type == blockToolUse {
			uses = append(uses, content[i].AsToolUse())
		}
	}
	return uses
}
