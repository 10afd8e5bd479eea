package answer_test

// The real SDKs read the answers: they are the judges of what a client can make of them.

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/anthropics/anthropic-sdk-go/v2"
	anthropicoption "github.com/anthropics/anthropic-sdk-go/v2/option"
	"github.com/google/go-cmp/cmp"
	"github.com/openai/openai-go/v3"
	openaioption "github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/ssestream"
	"github.com/openai/openai-go/v3/responses"

	"holdfast/internal/sse"
	"holdfast/standin/internal/answer"
	"holdfast/standin/internal/request"
)

// reply is an HTTP transport that gives one reply to all requests.
type reply struct {
	contentType string
	body        []byte
}

func (r reply) RoundTrip(q *http.Request) (*http.Response, error) {
	return &http.Response{
		StatusCode: http.StatusOK, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: q,
		Header: http.Header{"Content-Type": {r.contentType}}, Body: io.NopCloser(bytes.NewReader(r.body)),
	}, nil
}

func whole(a answer.Answer, shape answer.Shape) *http.Client {
	return &http.Client{Transport: reply{"application/json", a.JSON(shape)}}
}

func streamed(a answer.Answer, shape answer.Shape, more ...answer.Event) *http.Client {
	var body []byte
	if len(more) == 0 {
		for e := range a.Events(shape) {
			body = sse.Append(body, e.Name, e.Data)
		}
	}
	for _, e := range more {
		body = sse.Append(body, e.Name, e.Data)
	}
	return &http.Client{Transport: reply{"text/event-stream; charset=utf-8", body}}
}

// read is what an SDK has understood of an answer.
type read struct {
	Text, Thinking, Signature string
	Tool, ToolID, Input       string
	Server                    string // tool of the server that was called
	Stop, Sequence            string
	Category, Explanation     string
	In, Out, Thought          int64
	ID, Model                 string
	UnknownBlocks             int
}

// wanted is what an answer holds. Chat completions and responses name stops their own way.
func wanted(a answer.Answer, shape answer.Shape, stop string) read {
	w := read{
		Text: text(a), Stop: stop, Out: int64(a.Usage.Output), In: int64(a.Usage.Input), Thought: int64(a.Usage.Thinking), Model: a.Model,
		ID: map[answer.Shape]string{answer.Messages: "msg_", answer.ChatCompletions: "chatcmpl-", answer.Responses: "resp_"}[shape] + "standin_000042",
	}
	for _, b := range a.Blocks {
		switch joined := strings.Join(b.Pieces, ""); b.Kind {
		case answer.Thinking:
			w.Thinking, w.Signature = joined, b.Signature
		case answer.ToolCall:
			w.Tool, w.ToolID, w.Input = b.Name, b.ID, joined
		case answer.ServerToolUse:
			w.Server = b.Name
		}
	}
	switch shape {
	case answer.Messages:
		w.Sequence, w.Category, w.Explanation = a.Sequence, a.Category, a.Explanation
	case answer.ChatCompletions:
		w.Thinking, w.Signature, w.Server = "", "", ""
		w.Explanation = a.Explanation
	case answer.Responses:
		w.Signature, w.Server = "", ""
		w.Explanation = a.Explanation
	}
	return w
}

func readMessage(m *anthropic.Message) read {
	r := read{
		Stop: string(m.StopReason), Sequence: m.StopSequence, Category: string(m.StopDetails.Category), Explanation: m.StopDetails.Explanation,
		In: m.Usage.InputTokens, Out: m.Usage.OutputTokens, Thought: m.Usage.OutputTokensDetails.ThinkingTokens, ID: m.ID, Model: m.Model,
	}
	for _, b := range m.Content {
		switch block := b.AsAny().(type) {
		case anthropic.TextBlock:
			r.Text += block.Text
		case anthropic.ThinkingBlock:
			r.Thinking, r.Signature = block.Thinking, block.Signature
		case anthropic.ToolUseBlock:
			r.Tool, r.ToolID, r.Input = block.Name, block.ID, string(block.Input)
		case anthropic.ServerToolUseBlock:
			r.Server = string(block.Name)
		default:
			r.UnknownBlocks++
		}
	}
	return r
}

// scenario is a kind of answer with the names that the shapes have for its end.
type scenario struct {
	name                      string
	request                   request.Request
	options                   answer.Options
	messages, chat, responses string
}

func scenarios(t *testing.T) []scenario {
	tools := weather(t)[1:]
	return []scenario{
		{"text", request.Request{}, answer.Options{Text: "one \"two\" <three>\n→"}, "end_turn", "stop", "completed"},
		{"empty prompt text", request.Request{}, answer.Options{Text: " "}, "end_turn", "stop", "completed"},
		{"thinking", request.Request{Thinking: true}, answer.Options{}, "end_turn", "stop", "completed"},
		{"omitted thinking", request.Request{Thinking: true, Omitted: true}, answer.Options{}, "end_turn", "stop", "completed"},
		{"tool", request.Request{Tools: tools}, answer.Options{}, "tool_use", "tool_calls", "completed"},
		{"thinking and tool", request.Request{Tools: tools, Thinking: true}, answer.Options{}, "tool_use", "tool_calls", "completed"},
		{"text and tool", request.Request{Tools: tools}, answer.Options{Rune: 2}, "tool_use", "tool_calls", "completed"},
		{"structured", request.Request{Schema: decoded(t, weatherSchema)}, answer.Options{}, "end_turn", "stop", "completed"},
		{"limit", request.Request{MaxTokens: 5}, answer.Options{}, "max_tokens", "length", "incomplete max_output_tokens"},
		{"half tool", request.Request{Tools: tools, MaxTokens: 50}, answer.Options{HalfTool: true}, "max_tokens", "length", "incomplete max_output_tokens"},
		{"stop sequence", request.Request{StopSequences: []string{"call"}}, answer.Options{}, "stop_sequence", "stop", "completed"},
		{"context window", request.Request{}, answer.Options{Stop: answer.ContextWindow}, "model_context_window_exceeded", "length", "incomplete max_output_tokens"},
		{"refusal", request.Request{}, answer.Options{Stop: answer.Refusal, Category: "cyber", Explanation: "not this"}, "refusal", "content_filter", "incomplete content_filter"},
		{"bare refusal", request.Request{}, answer.Options{Stop: answer.Refusal}, "refusal", "content_filter", "incomplete content_filter"},
		{"pause", request.Request{}, answer.Options{Stop: answer.PauseTurn}, "pause_turn", "pause_turn", "incomplete pause_turn"},
		{"new word", request.Request{}, answer.Options{Stop: "foo_bar"}, "foo_bar", "foo_bar", "incomplete foo_bar"},
	}
}

func (s scenario) answer(shape answer.Shape) answer.Answer {
	s.request.Endpoint, s.request.Model, s.request.Input, s.request.IncludeUsage = endpoint(shape), "model-1", 12, true
	s.options.Number = 42
	return answer.New(s.request, s.options)
}

// B178: a stock SDK reports a complete message.
func TestAnthropicSDKReadsTheAnswer(t *testing.T) {
	ask := anthropic.MessageNewParams{Model: "m", MaxTokens: 10, Messages: []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock("hello"))}}
	for _, s := range scenarios(t) {
		t.Run(s.name, func(t *testing.T) {
			a := s.answer(answer.Messages)
			want := wanted(a, answer.Messages, s.messages)
			client := func(c *http.Client) anthropic.Client {
				return anthropic.NewClient(anthropicoption.WithHTTPClient(c), anthropicoption.WithAPIKey("good"), anthropicoption.WithMaxRetries(0))
			}
			message := new(anthropic.Message)
			one := client(streamed(a, answer.Messages))
			stream := one.Messages.NewStreaming(t.Context(), ask)
			for stream.Next() {
				if err := message.Accumulate(stream.Current()); err != nil {
					t.Error(err)
				}
			}
			if err := stream.Err(); err != nil {
				t.Fatal(err)
			}
			got := readMessage(message)
			if s.options.HalfTool { // the SDK makes an empty object of half an input
				want.Input = "{}"
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("streamed (-want +got):\n%s", diff)
			}
			one = client(whole(a, answer.Messages))
			message, err := one.Messages.New(t.Context(), ask)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, readMessage(message)); diff != "" {
				t.Errorf("whole (-want +got):\n%s", diff)
			}
		})
	}
}

func readCompletion(c *openai.ChatCompletion) read {
	choice := c.Choices[0]
	r := read{
		Text: choice.Message.Content, Explanation: choice.Message.Refusal, Stop: choice.FinishReason, ID: c.ID, Model: c.Model,
		In: c.Usage.PromptTokens, Out: c.Usage.CompletionTokens, Thought: c.Usage.CompletionTokensDetails.ReasoningTokens,
	}
	for _, call := range choice.Message.ToolCalls {
		r.Tool, r.ToolID, r.Input = call.Function.Name, call.ID, call.Function.Arguments
	}
	return r
}

func openAI(c *http.Client) openai.Client {
	return openai.NewClient(openaioption.WithHTTPClient(c), openaioption.WithAPIKey("good"), openaioption.WithMaxRetries(0))
}

var askChat = openai.ChatCompletionNewParams{Model: "m", Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("hello")}}

func TestOpenAISDKReadsTheCompletion(t *testing.T) {
	for _, s := range scenarios(t) {
		t.Run(s.name, func(t *testing.T) {
			a := s.answer(answer.ChatCompletions)
			want := wanted(a, answer.ChatCompletions, s.chat)
			one := openAI(streamed(a, answer.ChatCompletions))
			stream := one.Chat.Completions.NewStreaming(t.Context(), askChat)
			var sum openai.ChatCompletionAccumulator
			for stream.Next() {
				if !sum.AddChunk(stream.Current()) {
					t.Errorf("chunk not taken: %s", stream.Current().RawJSON())
				}
			}
			if err := stream.Err(); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, readCompletion(&sum.ChatCompletion)); diff != "" {
				t.Errorf("streamed (-want +got):\n%s", diff)
			}
			one = openAI(whole(a, answer.ChatCompletions))
			completion, err := one.Chat.Completions.New(t.Context(), askChat)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, readCompletion(completion)); diff != "" {
				t.Errorf("whole (-want +got):\n%s", diff)
			}
		})
	}
}

func readResponse(p *responses.Response) read {
	r := read{
		Text: p.OutputText(), Stop: strings.TrimSpace(string(p.Status) + " " + p.IncompleteDetails.Reason), ID: p.ID, Model: p.Model,
		In: p.Usage.InputTokens, Out: p.Usage.OutputTokens, Thought: p.Usage.OutputTokensDetails.ReasoningTokens,
	}
	for _, item := range p.Output {
		switch item.Type {
		case "reasoning":
			for _, part := range item.Summary {
				r.Thinking += part.Text
			}
		case "function_call":
			call := item.AsFunctionCall()
			r.Tool, r.ToolID, r.Input = call.Name, call.CallID, call.Arguments
		case "message":
			for _, part := range item.Content {
				r.Explanation += part.Refusal
			}
		default:
			r.UnknownBlocks++
		}
	}
	return r
}

var askResponse = responses.ResponseNewParams{Model: "m", Input: responses.ResponseNewParamsInputUnion{OfString: openai.String("hello")}}

func TestOpenAISDKReadsTheResponse(t *testing.T) {
	for _, s := range scenarios(t) {
		t.Run(s.name, func(t *testing.T) {
			a := s.answer(answer.Responses)
			want := wanted(a, answer.Responses, s.responses)
			one := openAI(streamed(a, answer.Responses))
			stream := one.Responses.NewStreaming(t.Context(), askResponse)
			var final responses.Response
			deltas, events := read{}, int64(0)
			for ; stream.Next(); events++ {
				e := stream.Current()
				switch e.Type {
				case "response.output_text.delta":
					deltas.Text += e.Delta
				case "response.function_call_arguments.delta":
					deltas.Input += e.Delta
				case "response.reasoning_summary_text.delta":
					deltas.Thinking += e.Delta
				case "response.refusal.delta":
					deltas.Explanation += e.Delta
				case "response.completed", "response.incomplete":
					final = e.Response
				}
				if e.SequenceNumber != events {
					t.Errorf("event %d has the number %d", events, e.SequenceNumber)
				}
			}
			if err := stream.Err(); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, readResponse(&final)); diff != "" {
				t.Errorf("streamed (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(read{Text: want.Text, Input: want.Input, Thinking: want.Thinking, Explanation: want.Explanation}, deltas); diff != "" {
				t.Errorf("deltas (-want +got):\n%s", diff)
			}
			one = openAI(whole(a, answer.Responses))
			response, err := one.Responses.New(t.Context(), askResponse)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, readResponse(response)); diff != "" {
				t.Errorf("whole (-want +got):\n%s", diff)
			}
		})
	}
}

func TestSDKsTakeTheErrorInsideAStreamForOne(t *testing.T) {
	for _, shape := range []answer.Shape{answer.ChatCompletions, answer.Responses} {
		e := answer.InError(shape, "server_error", "server_is_overloaded", "busy", "", 0)
		one := openAI(streamed(answer.Answer{}, shape, e))
		var failed *ssestream.StreamError
		var err error
		if shape == answer.Responses {
			stream := one.Responses.NewStreaming(t.Context(), askResponse)
			for stream.Next() {
				t.Errorf("event %s", stream.Current().RawJSON())
			}
			err = stream.Err()
		} else {
			stream := one.Chat.Completions.NewStreaming(t.Context(), askChat)
			for stream.Next() {
				t.Errorf("event %s", stream.Current().RawJSON())
			}
			err = stream.Err()
		}
		if !errors.As(err, &failed) || !strings.Contains(failed.Message, "server_is_overloaded") {
			t.Errorf("shape %d: error %T %v", shape, err, err)
		}
	}
	one := openAI(streamed(answer.Answer{}, answer.Responses, answer.New(request.Request{}, answer.Options{}).Failed("rate_limit_exceeded", "slow", 0)))
	stream := one.Responses.NewStreaming(t.Context(), askResponse)
	if !stream.Next() || stream.Current().Response.Error.Code != "rate_limit_exceeded" || stream.Current().Response.Status != "failed" {
		t.Errorf("failed response is read as %+v", stream.Current().Response.Error)
	}
	client := anthropic.NewClient(anthropicoption.WithHTTPClient(streamed(answer.Answer{}, answer.Messages, answer.InError(answer.Messages, "overloaded_error", "", "busy", "req_1", 0))), anthropicoption.WithAPIKey("good"), anthropicoption.WithMaxRetries(0))
	messages := client.Messages.NewStreaming(t.Context(), anthropic.MessageNewParams{Model: "m", MaxTokens: 10})
	for messages.Next() {
		t.Errorf("event %s", messages.Current().RawJSON())
	}
	var failed *anthropic.Error
	if !errors.As(messages.Err(), &failed) || failed.Type() != "overloaded_error" {
		t.Errorf("error %T %v", messages.Err(), messages.Err())
	}
}
