package turn_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/anthropics/anthropic-sdk-go/v2"

	"holdfast/turn"
)

// A message by itself is judged as the last one of a turn is, and is done only if it is whole.
func TestOutcomeOfAMessage(t *testing.T) {
	t.Parallel()
	const (
		text = `{"type":"text","text":"It is"}`
		call = `{"type":"tool_use","id":"t","name":"ship","input":{"a":1}}`
		half = `{"type":"tool_use","id":"t","name":"ship","input":"{\"a\":"}`
	)
	for _, c := range []struct {
		reason, content string
		want            turn.Outcome
	}{
		{"end_turn", text, turn.Completed},
		{"stop_sequence", text, turn.Completed},
		{"tool_use", call, turn.ToolUse},
		{"tool_use", half, turn.Truncated},
		{"end_turn", half, turn.Truncated},
		{"pause_turn", half, turn.Truncated},
		{"max_tokens", text, turn.Truncated},
		{"max_tokens", call, turn.Truncated},
		{"model_context_window_exceeded", call, turn.Truncated},
		{"refusal", text, turn.HumanReview},
		{"pause_turn", text, turn.Paused},
		{"foo_bar", text, turn.Unknown},
		{"", text, turn.Unknown},
		{"", half, turn.Unknown},
	} {
		t.Run(c.reason+" "+c.content, func(t *testing.T) {
			t.Parallel()
			var m anthropic.Message
			body := fmt.Sprintf(`{"id":"m","model":"claude-sonnet-5-5","stop_reason":%q,"content":[%s],"usage":{"output_tokens":5}}`, c.reason, c.content)
			if err := json.Unmarshal([]byte(body), &m); err != nil {
				t.Fatal(err)
			}
			if got := turn.OutcomeOf(&m); got != c.want || got.Done() != (c.want == turn.Completed || c.want == turn.ToolUse) {
				t.Errorf("%v, want %v", got, c.want)
			}
		})
	}
	if got := turn.OutcomeOf(&anthropic.Message{}); got != turn.Unknown {
		t.Errorf("an empty message is %v", got)
	}
}
