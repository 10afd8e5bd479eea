package saved_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"testing"

	"github.com/anthropics/anthropic-sdk-go/v2"
	anthropicoption "github.com/anthropics/anthropic-sdk-go/v2/option"
	"github.com/google/go-cmp/cmp"
	"github.com/openai/openai-go/v3"
	openaioption "github.com/openai/openai-go/v3/option"
	openairesponses "github.com/openai/openai-go/v3/responses"

	"holdfast/saved"
)

// replies are an upstream that gives one answer to everybody.
type replies struct{ answer *saved.Answer }

func (r replies) RoundTrip(req *http.Request) (*http.Response, error) {
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {r.answer.ContentType}},
		Body: io.NopCloser(bytes.NewReader(r.answer.Body)), Request: req,
	}, nil
}

// Answers with everything in them that has an event of its own.
const (
	richMessage = `{"id":"msg_1","type":"message","role":"assistant","model":"claude-opus-5-5","content":[` +
		`{"type":"thinking","thinking":"Hm, \"quotes\" and é 😀","signature":"c2ln"},{"type":"redacted_thinking","data":"xyz"},` +
		`{"type":"text","text":"See \ud83d\ude00 there.\n","citations":[{"type":"char_location","cited_text":"Sky","document_index":0,"document_title":null,"start_char_index":0,"end_char_index":3,"file_id":null}]},` +
		`{"type":"server_tool_use","id":"srv_1","name":"web_search","input":{"query":"sky"},"caller":{"type":"direct"}},` +
		`{"type":"web_search_tool_result","tool_use_id":"srv_1","content":[],"caller":{"type":"direct"}},` +
		`{"type":"tool_use","id":"toolu_1","name":"look","input":{"where":"up","far":1.50,"deep":{"a":[1,2,12345678901234567890]}},"caller":{"type":"direct"}},` +
		`{"type":"tool_use","id":"toolu_2","name":"blink","input":{},"caller":{"type":"direct"}}],` +
		`"stop_reason":"tool_use","stop_sequence":null,"stop_details":null,"container":{"id":"c","expires_at":"2026-12-01T00:00:00Z"},` +
		`"usage":{"input_tokens":9,"cache_creation_input_tokens":1,"cache_read_input_tokens":2,"cache_creation":{"ephemeral_5m_input_tokens":1,"ephemeral_1h_input_tokens":0},"output_tokens":30,"service_tier":"standard","server_tool_use":{"web_search_requests":1,"web_fetch_requests":0}}}`
	richChat = `{"id":"chatcmpl-1","object":"chat.completion","created":1,"model":"gpt-5","choices":[` +
		`{"index":0,"message":{"role":"assistant","content":"Up \ud83d\ude00 there.","refusal":null,"tool_calls":[` +
		`{"id":"call_1","type":"function","function":{"name":"look","arguments":"{\"where\":\"up\"}"}},{"id":"call_2","type":"function","function":{"name":"blink","arguments":"{}"}}]},` +
		`"logprobs":{"content":[{"token":"Up","logprob":-0.5,"bytes":[85,112],"top_logprobs":[]}],"refusal":null},"finish_reason":"tool_calls"},` +
		`{"index":1,"message":{"role":"assistant","content":"Down.","refusal":null},"logprobs":null,"finish_reason":"stop"}],` +
		`"usage":{"prompt_tokens":9,"completion_tokens":30,"total_tokens":39},"service_tier":"default","system_fingerprint":"fp"}`
	richResponse = `{"id":"resp_1","object":"response","created_at":1,"status":"completed","error":null,"incomplete_details":null,"model":"gpt-5","output":[` +
		`{"id":"rs_1","type":"reasoning","summary":[{"type":"summary_text","text":"Looking."}]},` +
		`{"id":"msg_1","type":"message","status":"completed","role":"assistant","content":[{"type":"output_text","text":"Up there.","logprobs":[],"annotations":[{"type":"url_citation","url":"u","title":"t","start_index":0,"end_index":2}]}]},` +
		`{"id":"fc_1","type":"function_call","status":"completed","call_id":"call_1","name":"look","arguments":"{\"where\":\"up\"}"},` +
		`{"id":"ct_1","type":"custom_tool_call","status":"completed","call_id":"call_2","name":"say","input":"hello"}],` +
		`"usage":{"input_tokens":9,"output_tokens":30,"total_tokens":39}}`
)

func made(t *testing.T, path, text string, body string) *saved.Answer {
	t.Helper()
	q := question(path, true)
	if body != "" {
		q.Body = []byte(body)
	}
	a, err := saved.Give(q, asJSON(text), false)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func sameJSON(t *testing.T, what, want, got string) {
	t.Helper()
	if diff := cmp.Diff(tree(t, want), tree(t, got)); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// The SDK puts the events that are made of a message together to that message, and a stream means to it what it means here.
func TestAnthropicSDKReadsMessages(t *testing.T) {
	t.Parallel()
	read := func(t *testing.T, a *saved.Answer) string {
		client := anthropic.NewClient(anthropicoption.WithHTTPClient(&http.Client{Transport: replies{a}}), anthropicoption.WithAPIKey("k"), anthropicoption.WithMaxRetries(0))
		events := client.Messages.NewStreaming(t.Context(), anthropic.MessageNewParams{
			Model: "m", MaxTokens: 1, Messages: []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock("Why?"))},
		})
		var message anthropic.Message
		for events.Next() {
			if err := message.Accumulate(events.Current()); err != nil {
				t.Fatal(err)
			}
		}
		if events.Err() != nil {
			t.Fatal(events.Err())
		}
		return message.RawJSON()
	}
	for _, r := range append(recordings(t, ".json"), recording{"rich", messages, richMessage}) {
		if r.path == messages {
			t.Run(r.name, func(t *testing.T) { sameJSON(t, "what the SDK read", r.text, read(t, made(t, messages, r.text, ""))) })
		}
	}
	for _, r := range recordings(t, ".sse") {
		if r.path == messages {
			t.Run(r.name, func(t *testing.T) {
				sameJSON(t, "what is kept", read(t, asStream(r.text)), give(t, messages, false, asStream(r.text)))
			})
		}
	}
}

func TestOpenAISDKReadsCompletions(t *testing.T) {
	t.Parallel()
	client := func(a *saved.Answer) openai.Client {
		return openai.NewClient(openaioption.WithHTTPClient(&http.Client{Transport: replies{a}}), openaioption.WithAPIKey("k"), openaioption.WithMaxRetries(0))
	}
	params := openai.ChatCompletionNewParams{Model: "m", Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("Why?")}}
	read := func(t *testing.T, a *saved.Answer) openai.ChatCompletion {
		c := client(a)
		chunks := c.Chat.Completions.NewStreaming(t.Context(), params)
		var all openai.ChatCompletionAccumulator
		for chunks.Next() {
			if !all.AddChunk(chunks.Current()) {
				t.Fatalf("the SDK cannot add %s", chunks.Current().RawJSON())
			}
		}
		if chunks.Err() != nil {
			t.Fatal(chunks.Err())
		}
		return all.ChatCompletion
	}
	compare := func(t *testing.T, a *saved.Answer, whole string) {
		c := client(asJSON(whole))
		want, err := c.Chat.Completions.New(context.Background(), params)
		if err != nil {
			t.Fatal(err)
		}
		got := read(t, a)
		sameJSON(t, "choices", encoded(t, choicesOf(want)), encoded(t, choicesOf(&got)))
		sameJSON(t, "usage", encoded(t, usageOf(want)), encoded(t, usageOf(&got)))
		if got.ID != want.ID || got.Model != want.Model || got.Created != want.Created {
			t.Errorf("the head is %+v, want %+v", got, want)
		}
	}
	const asks = `{"model":"m","messages":[],"stream":true,"stream_options":{"include_usage":true}}`
	for _, r := range append(recordings(t, ".json"), recording{"rich", chat, richChat}) {
		if r.path == chat {
			t.Run(r.name, func(t *testing.T) { compare(t, made(t, chat, r.text, asks), r.text) })
		}
	}
	for _, r := range recordings(t, ".sse") {
		if r.path == chat {
			t.Run(r.name, func(t *testing.T) { compare(t, asStream(r.text), give(t, chat, false, asStream(r.text))) })
		}
	}
}

type call struct{ ID, Type, Name, Arguments string }

// choicesOf is what both ways to a completion must agree on.
func choicesOf(c *openai.ChatCompletion) any {
	type choice struct {
		Index                      int64
		Role, Content, Refusal     string
		Finish                     string
		Calls                      []call
		Logprobs                   int
		FirstToken, FirstTokenText string
	}
	var all []choice
	for _, one := range c.Choices {
		kept := choice{
			Index: one.Index, Role: string(one.Message.Role), Content: one.Message.Content, Refusal: one.Message.Refusal,
			Finish: one.FinishReason, Logprobs: len(one.Logprobs.Content),
		}
		for _, each := range one.Message.ToolCalls {
			kept.Calls = append(kept.Calls, call{each.ID, each.Type, each.Function.Name, each.Function.Arguments})
		}
		all = append(all, kept)
	}
	return all
}

func usageOf(c *openai.ChatCompletion) any {
	return []int64{c.Usage.PromptTokens, c.Usage.CompletionTokens, c.Usage.TotalTokens, c.Usage.CompletionTokensDetails.ReasoningTokens}
}

func encoded(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// The events of a response build up the very items that the last of them holds.
func TestOpenAISDKReadsResponses(t *testing.T) {
	t.Parallel()
	for _, r := range append(recordings(t, ".json"), recording{"rich", responses, richResponse}) {
		if r.path != responses {
			continue
		}
		t.Run(r.name, func(t *testing.T) {
			client := openai.NewClient(openaioption.WithHTTPClient(&http.Client{Transport: replies{made(t, responses, r.text, "")}}), openaioption.WithAPIKey("k"), openaioption.WithMaxRetries(0))
			events := client.Responses.NewStreaming(t.Context(), openairesponses.ResponseNewParams{Model: "m"})
			var (
				text, arguments, input, summary string
				number                          int64
				last                            openairesponses.Response
				items                           int
			)
			for events.Next() {
				event := events.Current()
				if event.SequenceNumber != number {
					t.Errorf("event %d has number %d", number, event.SequenceNumber)
				}
				number++
				switch event.Type {
				case "response.output_text.delta":
					text += event.Delta
				case "response.function_call_arguments.delta":
					arguments += event.Delta
				case "response.custom_tool_call_input.delta":
					input += event.Delta
				case "response.reasoning_summary_text.delta":
					summary += event.Delta
				case "response.output_item.done":
					items++
				case "response.completed":
					last = event.Response
				}
			}
			if events.Err() != nil {
				t.Fatal(events.Err())
			}
			sameJSON(t, "the response", r.text, last.RawJSON())
			var wantArguments, wantInput, wantSummary string
			for _, item := range last.Output {
				switch item.Type {
				case "function_call":
					wantArguments += item.Arguments.OfString
				case "custom_tool_call":
					wantInput += item.Input
				case "reasoning":
					for _, part := range item.Summary {
						wantSummary += part.Text
					}
				}
			}
			if text != last.OutputText() || arguments != wantArguments || input != wantInput || summary != wantSummary || items != len(last.Output) {
				t.Errorf("pieces %q, %q, %q, %q in %d items; the response has %q, %q, %q, %q in %d", text, arguments, input, summary, items,
					last.OutputText(), wantArguments, wantInput, wantSummary, len(last.Output))
			}
		})
	}
}
