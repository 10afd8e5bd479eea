package wire_test

import (
	"strings"
	"testing"

	"holdfast/internal/wire"
)

// B175: what a stream has produced by the time it breaks is told by its content.
func TestB175_StreamProduced(t *testing.T) {
	t.Parallel()
	text := func(s string) string { return delta(`{"type":"text_delta","text":"` + s + `"}`) }
	for _, tt := range []struct {
		name    string
		lines   []string
		want    int
		counted bool
	}{
		{"nothing", []string{start, pingEvent, textStart}, 0, false},
		{"a token for each piece", []string{start, textStart, text("a"), text("b"), text("c"), text("d")}, 4, false},
		{"a token for three characters", []string{start, textStart, text(strings.Repeat("x", 300))}, 100, false},
		{"rounded up", []string{start, text("Hello, you")}, 4, false},
		{"characters, not bytes", []string{start, text(strings.Repeat("ж", 300))}, 100, false},
		{"an escape is one", []string{start, text(strings.Repeat(`\n\"\u0416`, 100))}, 100, false},
		{"thinking", []string{start, delta(`{"type":"thinking_delta","thinking":"` + strings.Repeat("x", 30) + `"}`)}, 10, false},
		{"a signature is no text", []string{start, delta(`{"type":"signature_delta","signature":"` + strings.Repeat("x", 300) + `"}`)}, 1, false},
		{"a tool", []string{start, block(`{"type":"tool_use","id":"toolu_01234567890123456789","name":"nine_long","input":{}}`), delta(`{"type":"input_json_delta","partial_json":"{\"city\":\"Oslo\"}"}`)}, 8, false},
		{"a block that begins with its text", []string{start, block(`{"type":"text","text":"123456"}`)}, 2, false},
		{"what a tool of the server found", []string{start, block(`{"type":"web_search_tool_result","tool_use_id":"x","content":[{"encrypted_content":"` + strings.Repeat("x", 300) + `"}]}`)}, 1, false},
		{"a whole one", []string{start, text("Hello"), endTurn, stopEvent}, 2, true},
		{"the stop reason without its count", []string{start, text("Hello"), `message_delta {"type":"message_delta","delta":{"stop_reason":"end_turn"}}`}, 2, false},
		{"a count without the stop reason", []string{start, text("Hello"), `message_delta {"type":"message_delta","delta":{},"usage":{"output_tokens":3}}`}, 2, false},
		{"an error behind it", []string{start, text("Hello"), overload}, 2, false},
		{"chat", []string{`{"choices":[{"index":0,"delta":{"role":"assistant","content":"123456"}}]}`, `{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"call_0123456789","type":"function","function":{"name":"abc","arguments":"123456"}}]}}]}`}, 5, false},
		{"chat without a count", []string{`{"choices":[{"index":0,"delta":{"content":"123456"},"finish_reason":"stop"}]}`}, 2, false},
		{"chat with one", []string{`{"choices":[{"index":0,"delta":{"content":"123456"},"finish_reason":"stop"}]}`, `{"choices":[],"usage":{"prompt_tokens":10,"completion_tokens":4}}`}, 2, true},
		{"text completion", []string{`{"choices":[{"index":0,"text":"123456"}]}`}, 2, false},
		{"responses", []string{`{"type":"response.output_text.delta","delta":"123456"}`, `{"type":"response.output_text.done","text":"123456"}`}, 2, false},
		{"responses without deltas", []string{`{"type":"response.output_text.done","text":"123456"}`}, 2, false},
		{"responses, whole", []string{`{"type":"response.output_text.delta","delta":"123456"}`, `{"type":"response.completed","response":{"usage":{"input_tokens":10,"output_tokens":2}}}`}, 2, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var s wire.Stream
			play(&s, tt.lines...)
			if got, counted := s.Produced(), s.Counted(); got != tt.want || counted != tt.counted {
				t.Errorf("%d tokens, counted %v; want %d, %v", got, counted, tt.want, tt.counted)
			}
		})
	}
}
