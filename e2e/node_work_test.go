package e2e_test

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"holdfast/standin"
)

// twoRounds holds a call of a tool and the answer after it to what they must be.
func twoRounds(requests int, id string) func(t *testing.T, saw nodeSaw, s *standin.Server) {
	return func(t *testing.T, saw nodeSaw, s *standin.Server) {
		t.Helper()
		if saw.Rounds != 2 || len(s.Journal()) != requests || !strings.HasPrefix(saw.ToolID, id) {
			t.Errorf("%d rounds, %d requests, tool id %q", saw.Rounds, len(s.Journal()), saw.ToolID)
		}
		_, city := saw.Input["city"].(string)
		if days, number := saw.Input["days"].(float64); !city || !number || days != float64(int(days)) {
			t.Errorf("the input of the tool is %v", saw.Input)
		}
	}
}

// nodeAnthropicWork is all that is not a single message: tools, thinking, structured output, batches, files, models.
func nodeAnthropicWork() []nodeCase {
	early := standin.Plan{Rules: []standin.Rule{{Match: standin.Match{Path: "/v1/messages/batches/msgbatch_*", Nth: standin.Span{To: 2}},
		Steps: []standin.Step{{Kind: standin.HTTP, Status: 404, Times: 2}}}}}
	thought := func(t *testing.T, saw nodeSaw, _ *standin.Server) {
		if saw.Thinking == "" || saw.Signature == "" || !slices.Equal(saw.Blocks, []string{"thinking", "text"}) {
			t.Errorf("thinking %q, signature %q, blocks %v", saw.Thinking, saw.Signature, saw.Blocks)
		}
	}
	works := nodeSaw{OK: true}
	typed := func(typ string) nodeSaw { return nodeSaw{OK: true, Type: typ} }
	return []nodeCase{
		{name: "tools", ask: nodeAsk{Call: "tools"}, want: good(answer), check: twoRounds(2, "toolu_")},
		{name: "tools in streams", ask: nodeAsk{Call: "tools", Stream: true}, want: good(answer), check: twoRounds(2, "toolu_")},
		{name: "toolRunner", ask: nodeAsk{Call: "tool_runner"}, want: good(answer), check: twoRounds(2, "")},
		{name: "toolRunner in streams", ask: nodeAsk{Call: "tool_runner", Stream: true}, want: good(answer), check: twoRounds(2, "")},
		{name: "toolRunner over a 529", ask: nodeAsk{Call: "tool_runner"}, plan: standin.Failing(1, 529, ""), want: good(answer), check: twoRounds(3, "")},
		{name: "thinking", ask: nodeAsk{Call: "thinking", MaxTokens: 4096}, want: good(answer), attempts: 1, check: thought},
		{name: "thinking in a stream", ask: nodeAsk{Call: "thinking", MaxTokens: 4096, Stream: true}, want: good(answer), attempts: 1, check: thought},
		{name: "thinking left out", ask: nodeAsk{Call: "thinking", MaxTokens: 4096, Display: "omitted", Stream: true}, want: good(answer), attempts: 1,
			check: func(t *testing.T, saw nodeSaw, _ *standin.Server) {
				if saw.Thinking != "" || saw.Signature == "" || !slices.Equal(saw.Blocks, []string{"thinking", "text"}) {
					t.Errorf("thinking %q, signature %q, blocks %v", saw.Thinking, saw.Signature, saw.Blocks)
				}
			}},
		{name: "structured output", ask: nodeAsk{Call: "parse"}, want: nodeSaw{OK: true, StopReason: "end_turn"}, attempts: 1, check: func(t *testing.T, saw nodeSaw, _ *standin.Server) {
			_, name := saw.Input["name"].(string)
			_, tags := saw.Input["tags"].([]any)
			age, number := saw.Input["age"].(float64)
			if !name || !tags || !number || age != float64(int(age)) || len(saw.Input) != 3 {
				t.Errorf("parsed %v", saw.Input)
			}
		}},
		{name: "count_tokens", ask: nodeAsk{Call: "count_tokens", Prompt: strings.Repeat("word ", 40)}, want: works, attempts: 1, check: func(t *testing.T, saw nodeSaw, s *standin.Server) {
			if in, out := s.Billed(); saw.Count < 40 || saw.Count > 80 || in+out != 0 {
				t.Errorf("counted %d tokens, billed %d", saw.Count, in+out)
			}
		}},
		{name: "models", ask: nodeAsk{Call: "models"}, want: typed("model"), check: func(t *testing.T, saw nodeSaw, _ *standin.Server) {
			if len(saw.IDs) < 3 || saw.Model != saw.IDs[0] || !strings.HasPrefix(saw.Model, "claude-") {
				t.Errorf("models %v, the first is %q", saw.IDs, saw.Model)
			}
		}},
		{name: "batch", ask: nodeAsk{Call: "batch", IDs: []string{"a", "b", "c"}}, want: typed("message_batch_deleted"), check: batched(0)},
		{name: "batch that is not known at first", ask: nodeAsk{Call: "batch", IDs: []string{"a", "b", "c"}}, plan: early, want: typed("message_batch_deleted"), check: batched(2)},
		{name: "batch canceled", ask: nodeAsk{Call: "batch_cancel", IDs: []string{"a", "b"}}, want: typed("canceling")},
		{name: "batch created twice", ask: nodeAsk{Call: "batch_create", IDs: []string{"a"}}, plan: steps(standin.Step{Kind: standin.Lost}), want: typed("in_progress"), attempts: 2, gaps: ownBackoff[:1],
			check: func(t *testing.T, saw nodeSaw, _ *standin.Server) {
				if saw.Model != "msgbatch_standin_000002" { // the Go SDK does not repeat it, this one does
					t.Errorf("the caller knows batch %s, want the second", saw.Model)
				}
			}},
		{name: "files", ask: nodeAsk{Call: "files", Prompt: "twelve bytes"}, want: nodeSaw{OK: true, Type: "file_deleted", Text: "notes.txt", Code: "text/plain"}, check: func(t *testing.T, saw nodeSaw, _ *standin.Server) {
			if saw.Count != 12 || len(saw.IDs) != 1 || saw.IDs[0] != saw.Model || len(saw.Left) != 0 {
				t.Errorf("%d bytes, listed %v, file %s, left %v", saw.Count, saw.IDs, saw.Model, saw.Left)
			}
		}},
	}
}

// batched holds a batch of three to what it must be: early replies said that there is none.
func batched(early int) func(t *testing.T, saw nodeSaw, s *standin.Server) {
	return func(t *testing.T, saw nodeSaw, s *standin.Server) {
		t.Helper()
		if want := map[string]string{"a": "succeeded", "b": "succeeded", "c": "succeeded"}; !maps.Equal(saw.Results, want) || saw.Texts["a"] != answer {
			t.Errorf("results %v, texts %v", saw.Results, saw.Texts)
		}
		if saw.Early != early || saw.Counts["succeeded"] != 3 || saw.Counts["processing"] != 0 || !slices.Equal(saw.IDs, []string{saw.Model}) {
			t.Errorf("%d early replies, want %d; counts %v, batches %v", saw.Early, early, saw.Counts, saw.IDs)
		}
		if in, out := s.Billed(); in == 0 || out%3 != 0 || out == 0 {
			t.Errorf("billed %d and %d for three equal answers", in, out)
		}
	}
}

// nodeAnthropicFramings are streams that look odd and are right.
func nodeAnthropicFramings() []nodeCase {
	var cases []nodeCase
	for name, step := range map[string]standin.Step{
		"CRLF":                        {Lines: standin.CRLF},
		"CR":                          {Lines: standin.CR},
		"one byte per write":          {Writes: standin.WriteByte},
		"CRLF and one byte per write": {Lines: standin.CRLF, Writes: standin.WriteByte},
		"one write":                   {Writes: standin.WriteAll},
		"gzip":                        {Gzip: true},
		"comments between":            {Between: standin.BetweenComment},
		"ids between":                 {Between: standin.BetweenID},
		"retry times between":         {Between: standin.BetweenRetry},
		"pings between":               {Between: standin.BetweenPing},
		"slow first token":            {FirstToken: 300 * time.Millisecond, Ping: 50 * time.Millisecond},
		"slow tokens":                 {Gap: 20 * time.Millisecond},
		"a stall that ends":           {Kind: standin.Stall, After: 2, For: 300 * time.Millisecond, Ping: 50 * time.Millisecond},
	} {
		cases = append(cases, nodeCase{name: "framing: " + name, ask: nodeAsk{Call: "final"}, plan: steps(step), want: good(answer), attempts: 1})
	}
	return append(cases,
		nodeCase{name: "framing: unknown events between, raw", ask: nodeAsk{Call: "events"}, plan: steps(standin.Step{Between: standin.BetweenUnknown}), want: good(answer), attempts: 1},
		nodeCase{name: "gzip, not a stream", ask: nodeAsk{Call: "message"}, plan: steps(standin.Step{Gzip: true}), want: good(answer), attempts: 1},
	)
}

// nodeAnthropicEndings are answers that end oddly, and events that are not right.
func nodeAnthropicEndings() []nodeCase {
	ends := func(reason string) nodeSaw { return nodeSaw{OK: true, StopReason: reason} }
	text := func(s nodeSaw, text string) nodeSaw { s.Text = text; return s }
	ramp := failed("RampLimitExceededError", 429, "rate_limit_error")
	ramp.Code = "ramp_limit_exceeded"
	return []nodeCase{
		{name: "pause_turn", ask: nodeAsk{Call: "message"}, plan: steps(standin.Step{Kind: standin.Pause}), want: text(ends("pause_turn"), answer), attempts: 1},
		{name: "pause_turn in a stream", ask: nodeAsk{Call: "final"}, plan: steps(standin.Step{Kind: standin.Pause}), want: text(ends("pause_turn"), answer), attempts: 1},
		{name: "context window", ask: nodeAsk{Call: "message"}, plan: standin.Plan{Reply: "one two three four", Steps: []standin.Step{{Kind: standin.ContextWindow}}},
			want: text(ends("model_context_window_exceeded"), "one two "), attempts: 1},
		{name: "an unknown stop reason", ask: nodeAsk{Call: "final"}, plan: steps(standin.Step{Kind: standin.StopReason, Reason: "tired"}), want: text(ends("tired"), answer), attempts: 1},
		{name: "a tool with half its input", ask: nodeAsk{Call: "tools", Stream: true}, plan: steps(standin.Step{Kind: standin.HalfTool}), want: good(answer),
			check: func(t *testing.T, saw nodeSaw, _ *standin.Server) { // the helper mends the JSON: only the stop reason tells
				if saw.FirstStop != "max_tokens" || saw.Rounds != 2 || len(saw.Input) >= 3 {
					t.Errorf("the first round stopped by %s, its input %v", saw.FirstStop, saw.Input)
				}
			}},
		{name: "nameless events are skipped", ask: nodeAsk{Call: "events"}, plan: steps(standin.Step{Kind: standin.Nameless}), want: nodeSaw{OK: true}, attempts: 1},
		{name: "a malformed event", ask: nodeAsk{Call: "events"}, plan: steps(standin.Step{Kind: standin.Malformed, After: 2}), want: nodeSaw{Class: "SyntaxError", Text: "This is "}, attempts: 1},
		{name: "a duplicate event is told twice", ask: nodeAsk{Call: "events"}, plan: steps(standin.Step{Kind: standin.Duplicate, After: 2}), want: good("This is the " + strings.TrimPrefix(answer, "This is ")), attempts: 1},
		{name: "the reply lost", ask: nodeAsk{Call: "message"}, plan: steps(standin.Step{Kind: standin.Lost}), want: good(answer), attempts: 2, gaps: ownBackoff[:1],
			check: func(t *testing.T, saw nodeSaw, s *standin.Server) {
				if _, out := s.Billed(); out != 2*saw.Usage.Output {
					t.Errorf("billed %d, want twice %d", out, saw.Usage.Output)
				}
			}},
		{name: "a spend cap of the customer", ask: nodeAsk{Call: "message"}, plan: always(standin.Step{Kind: standin.SpendCap, Cap: standin.CapWorkspace}),
			want: failed("BadRequestError", 400, "invalid_request_error"), attempts: 1},
		{name: "a ramp limit", ask: nodeAsk{Call: "message"}, plan: always(standin.Step{Kind: standin.RampLimit, RetryAfter: "0.1"}), want: ramp, attempts: 3},
		{name: "half an error", ask: nodeAsk{Call: "message"}, plan: always(standin.Step{Kind: standin.HTTP, Status: 529, Form: standin.FormTruncated}), want: failed("OverloadedError", 529, ""), attempts: 3, closed: standin.Peer},
		{name: "an error of 4 MiB", ask: nodeAsk{Call: "message", MaxRetries: new(0)}, plan: always(standin.Step{Kind: standin.HTTP, Status: 529, Form: standin.FormOversized}),
			want: failed("OverloadedError", 529, "overloaded_error"), attempts: 1},
		{name: "limits", ask: nodeAsk{Call: "message"}, plan: standin.Plan{Limits: &standin.Limits{Tier: standin.TierStart}}, want: good(answer), attempts: 1},
	}
}

// nodeOpenAIWork is all of OpenAI that is not a plain chat completion.
func nodeOpenAIWork() []nodeCase {
	whole := nodeSaw{OK: true, Text: answer, StopReason: "completed"}
	once := standin.Plan{}
	return []nodeCase{
		{name: "chat tools", ask: nodeAsk{Call: "chat_tools"}, want: stopped(answer), check: twoRounds(2, "")},
		{name: "chat tools in streams", ask: nodeAsk{Call: "chat_tools", Stream: true}, want: stopped(answer), check: twoRounds(2, "")},
		{name: "chat runTools", ask: nodeAsk{Call: "chat_runner"}, want: nodeSaw{OK: true, Text: answer}, check: twoRounds(2, "")},
		{name: "response", ask: nodeAsk{Call: "response"}, plan: once, want: whole, attempts: 1},
		{name: "response stream", ask: nodeAsk{Call: "response_events"}, want: whole, attempts: 1, check: func(t *testing.T, saw nodeSaw, s *standin.Server) {
			_, out := s.Billed()
			if saw.Events[0] != "response.created" || saw.Events[len(saw.Events)-1] != "response.completed" || saw.Usage.Output != out {
				t.Errorf("events from %s to %s, usage %+v, billed %d", saw.Events[0], saw.Events[len(saw.Events)-1], saw.Usage, out)
			}
		}},
		{name: "finalResponse", ask: nodeAsk{Call: "response_final"}, want: whole, attempts: 1},
		{name: "response tools", ask: nodeAsk{Call: "response_tools"}, want: whole, check: twoRounds(2, "")},
		{name: "response tools in streams", ask: nodeAsk{Call: "response_tools", Stream: true}, want: whole, check: twoRounds(2, "")},
		{name: "response out of tokens", ask: nodeAsk{Call: "response"}, plan: steps(standin.Step{Kind: standin.Truncation}), want: nodeSaw{OK: true, Text: "This is the stand-in speaking: the call ", StopReason: "max_output_tokens"}, attempts: 1},
		{name: "response failed in the stream", ask: nodeAsk{Call: "response_events"}, plan: steps(standin.Step{Kind: standin.Error, Status: 503, After: 2}), want: nodeSaw{Class: "APIError", Type: "server_error", Code: "server_is_overloaded", Text: "This is ", StopReason: "in_progress"}, attempts: 1},
		{name: "response cut clean", ask: nodeAsk{Call: "response_events"}, plan: steps(standin.Step{Kind: standin.Cut, After: 2}), want: nodeSaw{OK: true, Text: "This is ", StopReason: "in_progress"}, attempts: 1, closed: standin.Peer},
		{name: "models", ask: nodeAsk{Call: "models"}, want: nodeSaw{OK: true}, attempts: 1},
		{name: "gzip", ask: nodeAsk{Call: "chat_events"}, plan: steps(standin.Step{Gzip: true}), want: stopped(answer), attempts: 1},
		{name: "CRLF, one byte per write", ask: nodeAsk{Call: "chat_events"}, plan: steps(standin.Step{Lines: standin.CRLF, Writes: standin.WriteByte}), want: stopped(answer), attempts: 1},
	}
}
