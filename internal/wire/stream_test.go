package wire_test

import (
	"strings"
	"testing"

	"holdfast/internal/wire"
)

// line is one event: its name, a space and its data. A line that begins with
// "{" or "[" has no name.
func play(s *wire.Stream, lines ...string) string {
	var seen []string
	for _, line := range lines {
		name, data := "", line
		if !strings.HasPrefix(line, "{") && !strings.HasPrefix(line, "[") {
			name, data, _ = strings.Cut(line, " ")
		}
		seen = append(seen, s.Event(name, []byte(data)).String())
	}
	return strings.Join(seen, " ")
}

const (
	start     = `message_start {"type":"message_start","message":{"id":"m","content":[],"stop_reason":null,"usage":{"input_tokens":9,"cache_read_input_tokens":1,"output_tokens":1}}}`
	pingEvent = `ping {"type":"ping"}`
	textStart = `content_block_start {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`
	hello     = `content_block_delta {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hello"}}`
	blockEnd  = `content_block_stop {"type":"content_block_stop","index":0}`
	endTurn   = `message_delta {"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"input_tokens":9,"cache_read_input_tokens":1,"output_tokens":16}}`
	stopEvent = `message_stop {"type":"message_stop"}`
	overload  = `error {"type":"error","error":{"type":"overloaded_error","message":"x"}}`
)

func delta(inner string) string {
	return `content_block_delta {"type":"content_block_delta","index":0,"delta":` + inner + `}`
}

func block(inner string) string {
	return `content_block_start {"type":"content_block_start","index":0,"content_block":` + inner + `}`
}

func TestEventKnowsContent(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, line, want string }{
		{"start", start, "preamble"},
		{"ping", pingEvent, "ping"},
		{"ping without data", "ping ", "ping"},
		{"keepalive", `{"type":"keepalive"}`, "ping"},
		{"empty text block", textStart, "preamble"},
		{"text block with text", block(`{"type":"text","text":"H"}`), "content"},
		{"thinking block", block(`{"type":"thinking","thinking":"","signature":""}`), "preamble"},
		{"redacted thinking", block(`{"type":"redacted_thinking","data":"abc"}`), "content"},
		{"redacted thinking of nothing", block(`{"type":"redacted_thinking","data":""}`), "preamble"},
		{"tool use", block(`{"type":"tool_use","id":"t","name":"f","input":{}}`), "content"},
		{"server tool use", block(`{"type":"server_tool_use","id":"t","name":"web_search","input":{}}`), "content"},
		{"tool result", block(`{"type":"web_search_tool_result","content":[]}`), "content"},
		{"hand-over to another model", block(`{"type":"fallback","from":{"model":"a"},"to":{"model":"b"}}`), "preamble"},
		{"text", hello, "content"},
		{"text without a name", strings.TrimPrefix(hello, "content_block_delta "), "content"},
		{"text under the default name", "message " + strings.TrimPrefix(hello, "content_block_delta "), "content"},
		{"text with blanks around", delta(`{ "type" : "text_delta" , "text" : "H" }`), "content"},
		{"empty text", delta(`{"type":"text_delta","text":""}`), "preamble"},
		{"thinking", delta(`{"type":"thinking_delta","thinking":"hm"}`), "content"},
		{"thinking count alone", delta(`{"type":"thinking_delta","thinking":"","estimated_tokens":50}`), "preamble"},
		{"tool arguments", delta(`{"type":"input_json_delta","partial_json":"{\"a\""}`), "content"},
		{"empty tool arguments", delta(`{"type":"input_json_delta","partial_json":""}`), "preamble"},
		{"signature", delta(`{"type":"signature_delta","signature":"abc"}`), "content"},
		{"citation", delta(`{"type":"citations_delta","citation":{"type":"char_location"}}`), "content"},
		{"compaction", delta(`{"type":"compaction_delta","content":"summary"}`), "content"},
		{"block stop", blockEnd, "preamble"},
		{"stop reason", endTurn, "stop"},
		{"usage alone", `message_delta {"type":"message_delta","delta":{"stop_reason":null},"usage":{"output_tokens":3}}`, "preamble"},
		{"end", stopEvent, "end"},
		{"error", overload, "error"},
		{"error without a name", `{"error":{"code":429}}`, "error"},
		{"error as text", `error gone`, "error"},
		{"aws exception", `throttlingException {"message":"x"}`, "error"},
		{"unknown event", `shiny {"type":"shiny","error":null}`, "preamble"},
		{"no data", `content_block_delta `, "preamble"},
		{"no object", `[1,2]`, "preamble"},

		{"chat role", `{"choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}`, "preamble"},
		{"chat text", `{"choices":[{"index":0,"delta":{"content":"H"},"finish_reason":null}]}`, "content"},
		{"chat refusal", `{"choices":[{"index":0,"delta":{"refusal":"No"}}]}`, "content"},
		{"chat tool call", `{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c"}]}}]}`, "content"},
		{"chat function call", `{"choices":[{"index":0,"delta":{"function_call":{"name":"f"}}}]}`, "content"},
		{"chat reasoning", `{"choices":[{"index":0,"delta":{"role":"assistant","reasoning":"hm"}}]}`, "content"},
		{"chat finish", `{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`, "stop"},
		{"chat usage", `{"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":4}}`, "preamble"},
		{"chat filter results", `{"choices":[],"prompt_filter_results":[{"prompt_index":0}]}`, "preamble"},
		{"chat error", `{"choices":[{"index":0,"delta":{"content":""},"finish_reason":"error","error":{"code":502}}]}`, "error"},
		{"chat mark", `[DONE]`, "end"},
		{"text completion", `{"object":"text_completion","choices":[{"index":0,"text":"H","finish_reason":null}]}`, "content"},

		{"response created", `response.created {"type":"response.created","response":{"status":"in_progress","error":null,"output":[]}}`, "preamble"},
		{"response text", `response.output_text.delta {"type":"response.output_text.delta","delta":"H","obfuscation":"xyz"}`, "content"},
		{"response text of nothing", `response.output_text.delta {"type":"response.output_text.delta","delta":"","obfuscation":"xyz"}`, "preamble"},
		{"response arguments", `{"type":"response.function_call_arguments.delta","delta":"{"}`, "content"},
		{"response text whole", `{"type":"response.output_text.done","text":"Hello"}`, "content"},
		{"response call", `{"type":"response.output_item.added","item":{"type":"function_call","name":"f","arguments":""}}`, "content"},
		{"response message begins", `{"type":"response.output_item.added","item":{"type":"message","content":[]}}`, "preamble"},
		{"response reasoning hidden", `{"type":"response.output_item.done","item":{"type":"reasoning","summary":[]}}`, "preamble"},
		{"response part", `{"type":"response.content_part.added","part":{"type":"output_text","text":""}}`, "preamble"},
		{"response picture", `{"type":"response.image_generation_call.partial_image","partial_image_b64":"AA"}`, "content"},
		{"response completed", `{"type":"response.completed","response":{"status":"completed"}}`, "end"},
		{"response failed", `{"type":"response.failed","response":{"status":"failed","error":{"code":"server_error"}}}`, "error"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var s wire.Stream
			if got := play(&s, tt.line); got != tt.want || s.Started() != (tt.want == "content") {
				t.Errorf("%s: %s, started %v; want %s", tt.line, got, s.Started(), tt.want)
			}
		})
	}
}

func TestStreamKnowsItsEnd(t *testing.T) {
	t.Parallel()
	const (
		role    = `{"choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}`
		first   = `{"choices":[{"index":0,"delta":{"content":"A"}}]}`
		second  = `{"choices":[{"index":1,"delta":{"content":"B"}}]}`
		finish0 = `{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`
		finish1 = `{"choices":[{"index":1,"delta":{},"finish_reason":"length"}]}`
	)
	tests := []struct {
		name     string
		lines    []string
		complete bool
		empty    bool
		reason   string
	}{
		{"normal", []string{start, pingEvent, textStart, hello, blockEnd, endTurn, stopEvent}, true, false, "end_turn"},
		{"B60 cut in the text", []string{start, textStart, hello, hello}, false, false, ""},
		{"B61 cut in tool arguments", []string{start, block(`{"type":"tool_use","name":"f"}`), delta(`{"type":"input_json_delta","partial_json":"{\"a"}`)}, false, false, ""},
		{"B63 cut behind the block", []string{start, textStart, hello, blockEnd}, false, false, ""},
		{"B64 torn terminal frame", []string{start, textStart, hello, blockEnd, endTurn, `message_stop {"type":"m`}, true, false, "end_turn"},
		{"B64 torn terminal frame without a name", []string{start, textStart, hello, blockEnd, endTurn, `{"type":"m`}, true, false, "end_turn"},
		{"B64 terminal frame lost", []string{start, textStart, hello, blockEnd, endTurn}, true, false, "end_turn"},
		{"B66 error behind content", []string{start, hello, overload}, false, false, ""},
		{"error behind the stop reason", []string{start, hello, endTurn, overload}, false, false, "end_turn"},
		{"error behind the end", []string{start, hello, endTurn, stopEvent, overload}, true, false, "end_turn"},
		{"content behind the stop reason", []string{start, hello, endTurn, hello}, false, false, "end_turn"},
		{"mark behind an Anthropic cut", []string{start, hello, `[DONE]`}, false, false, ""},
		{"empty", []string{start, endTurn, stopEvent}, true, true, "end_turn"},
		{"B168 refusal of everything", []string{start, strings.Replace(endTurn, "end_turn", "refusal", 1), stopEvent}, true, false, "refusal"},
		{"B168 new stop reason", []string{start, hello, strings.Replace(endTurn, "end_turn", "foo_bar", 1), stopEvent}, true, false, "foo_bar"},
		{"B92 nothing", nil, false, false, ""},
		{"chat", []string{role, first, finish0, `[DONE]`}, true, false, "stop"},
		{"chat without its mark", []string{role, first, finish0}, true, false, "stop"},
		{"chat cut", []string{role, first}, false, false, ""},
		{"chat empty", []string{role, finish0, `[DONE]`}, true, true, "stop"},
		{"chat with one of two choices", []string{role, first, second, finish0}, false, false, "stop"},
		{"chat with both choices", []string{role, first, second, finish0, finish1}, true, false, "length"},
		{"response completed", []string{`{"type":"response.output_text.delta","delta":"H"}`, `{"type":"response.completed","response":{"status":"completed"}}`}, true, false, "completed"},
		{"response incomplete", []string{`{"type":"response.output_text.delta","delta":"H"}`, `{"type":"response.incomplete","response":{"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"}}}`}, true, false, "max_output_tokens"},
		{"response cut", []string{`{"type":"response.output_text.delta","delta":"H"}`}, false, false, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var s wire.Stream
			play(&s, tt.lines...)
			if s.Complete() != tt.complete || s.Empty() != tt.empty || s.StopReason() != tt.reason {
				t.Errorf("complete %v, empty %v, reason %q; want %v, %v, %q", s.Complete(), s.Empty(), s.StopReason(), tt.complete, tt.empty, tt.reason)
			}
		})
	}
}

func TestB80_OneBadLineCostsOnlyItself(t *testing.T) {
	t.Parallel()
	var s wire.Stream
	got := play(&s, start, `{broken`, textStart, hello, `content_block_delta {"type":"content_block_delta","delta":{"type":"text_delta","text":"H`, endTurn, stopEvent)
	if want := "preamble preamble preamble content preamble stop end"; got != want {
		t.Errorf("progress %s, want %s", got, want)
	}
	if s.Malformed() != 2 || !s.Complete() {
		t.Errorf("malformed %d, complete %v; want 2, true", s.Malformed(), s.Complete())
	}
}

func TestB93_PreambleIsNotContent(t *testing.T) {
	t.Parallel()
	var s wire.Stream
	if got := play(&s, start, pingEvent, textStart, overload); got != "preamble ping preamble error" || s.Started() {
		t.Errorf("progress %s, started %v", got, s.Started())
	}
	got := s.Reply(header("Request-Id", "req_s"), noon)
	want := wire.Reply{
		Status: 529, InBand: true, Fault: wire.FaultOverload, Rule: "anthropic-type-overloaded_error",
		Type: "overloaded_error", Message: "x", RequestID: "req_s",
	}
	if d := diff(want, got); d != "" {
		t.Errorf("reply (-want +got):\n%s", d)
	}
	var healthy wire.Stream
	play(&healthy, start, hello)
	if d := diff(wire.Reply{}, healthy.Reply(nil, noon)); d != "" {
		t.Errorf("reply before an error (-want +got):\n%s", d)
	}
}

func TestStreamKeepsACopyOfTheError(t *testing.T) {
	t.Parallel()
	var s wire.Stream
	data := []byte(`{"error":{"code":429,"message":"busy"}}`)
	s.Event("", data)
	for i := range data {
		data[i] = '#'
	}
	if got := s.Reply(nil, noon); got.Status != 429 || got.Message != "busy" {
		t.Errorf("reply after the buffer was used again: %+v", got)
	}
}

func TestStreamTokens(t *testing.T) {
	t.Parallel()
	outputOnly := `message_delta {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":16}}`
	tests := []struct {
		name  string
		lines []string
		want  wire.Tokens
		found bool
	}{
		{"B174 cumulative", []string{start, hello, endTurn, stopEvent}, wire.Tokens{Input: 9, CacheRead: 1, Output: 16}, true},
		{"B174 output alone", []string{start, hello, outputOnly}, wire.Tokens{Input: 9, CacheRead: 1, Output: 16}, true},
		{"B174 twice", []string{start, hello, outputOnly, endTurn}, wire.Tokens{Input: 9, CacheRead: 1, Output: 16}, true},
		{"B175 cut", []string{start, hello}, wire.Tokens{Input: 9, CacheRead: 1, Output: 1}, true},
		{"B63 none is not zero", []string{`{"choices":[{"delta":{"content":"A"}}],"usage":null}`}, wire.Tokens{}, false},
		{"chat", []string{`{"choices":[],"usage":{"prompt_tokens":10,"completion_tokens":4,"prompt_tokens_details":{"cached_tokens":6}}}`}, wire.Tokens{Input: 4, CacheRead: 6, Output: 4}, true},
		{"response", []string{`{"type":"response.completed","response":{"usage":{"input_tokens":10,"input_tokens_details":{"cached_tokens":6,"cache_write_tokens":1},"output_tokens":2}}}`}, wire.Tokens{Input: 3, CacheRead: 6, CacheWrite: 1, Output: 2}, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var s wire.Stream
			play(&s, tt.lines...)
			if got, found := s.Tokens(); got != tt.want || found != tt.found {
				t.Errorf("tokens %+v, %v; want %+v, %v", got, found, tt.want, tt.found)
			}
		})
	}
}

func TestEventDoesNotAllocateOnContent(t *testing.T) {
	if raceDetector {
		t.Skip("allocations are not counted under the race detector")
	}
	var s wire.Stream
	anthropicData := []byte(strings.TrimPrefix(hello, "content_block_delta "))
	chatData := []byte(`{"id":"c","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"Hello"},"finish_reason":null}],"usage":null}`)
	got := testing.AllocsPerRun(100, func() {
		s.Event("content_block_delta", anthropicData)
		s.Event("", chatData)
	})
	if got != 0 {
		t.Errorf("%v allocations for two content events, want 0", got)
	}
}

func BenchmarkStreamEvent(b *testing.B) {
	data := []byte(strings.TrimPrefix(hello, "content_block_delta "))
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	var s wire.Stream
	for b.Loop() {
		s.Event("content_block_delta", data)
	}
}

func BenchmarkRead(b *testing.B) {
	h := header("Retry-After", "3", "Request-Id", "req_1")
	body := wire.ErrorBody(wire.DialectAnthropic, "rate_limit_error", "", "Number of requests has exceeded your rate limit", "req_1")
	b.ReportAllocs()
	for b.Loop() {
		wire.Read(429, h, body, noon)
	}
}
