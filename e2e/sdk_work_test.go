package e2e_test

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/anthropics/anthropic-sdk-go/v2"
	"github.com/anthropics/anthropic-sdk-go/v2/option"
	"github.com/anthropics/anthropic-sdk-go/v2/toolrunner"
	"github.com/openai/openai-go/v3"
	openaioption "github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/responses"

	"holdfast/internal/testnet"
	"holdfast/standin"
)

var weatherSchema = map[string]any{
	"type": "object", "required": []string{"city", "unit", "days"},
	"properties": map[string]any{
		"city": map[string]any{"type": "string"}, "days": map[string]any{"type": "integer"},
		"unit": map[string]any{"type": "string", "enum": []string{"celsius", "fahrenheit"}},
	},
}

// onStandin gives the test a client of the stand-in, in a bubble.
func onStandin(t *testing.T, plan standin.Plan, work func(t *testing.T, s *standin.Server, client *http.Client, url string)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		net := testnet.New()
		s := standin.New(plan)
		server := net.Serve(t, "api.test:80", s)
		t.Cleanup(s.Close)
		work(t, s, net.Client(), server.URL)
	})
}

// must returns what a call returned, and ends the test on its error.
func must[T any](t *testing.T, got T, err error) T {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// fits says whether the input of a tool is one that weatherSchema allows.
func fits(input map[string]any) bool {
	_, city := input["city"].(string)
	days, number := input["days"].(float64)
	return city && number && days == float64(int(days)) && slices.Contains([]any{"celsius", "fahrenheit"}, input["unit"])
}

func decoded(t *testing.T, text string) (input map[string]any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &input); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return input
}

// Two rounds with a tool: the model calls, the result goes back, the model answers. Whole and as a stream.
func TestToolsOfTheAnthropicSDK(t *testing.T) {
	for _, streaming := range []bool{false, true} {
		onStandin(t, standin.Plan{}, func(t *testing.T, s *standin.Server, client *http.Client, url string) {
			c := anthropicClient(client, url, option.WithMaxRetries(0))
			ask := func(p anthropic.MessageNewParams) *anthropic.Message {
				if !streaming {
					got, err := c.Messages.New(t.Context(), p)
					return must(t, got, err)
				}
				stream, m := c.Messages.NewStreaming(t.Context(), p), &anthropic.Message{}
				for stream.Next() {
					if err := m.Accumulate(stream.Current()); err != nil {
						t.Fatal(err)
					}
				}
				return must(t, m, stream.Err())
			}
			p := params()
			p.MaxTokens = 1024
			p.Tools = []anthropic.ToolUnionParam{{OfTool: &anthropic.ToolParam{Name: "get_weather", InputSchema: anthropic.ToolInputSchemaParam{
				Properties: weatherSchema["properties"], Required: weatherSchema["required"].([]string),
			}}}}
			first := ask(p)
			call := first.Content[len(first.Content)-1].AsToolUse()
			if first.StopReason != anthropic.StopReasonToolUse || call.Name != "get_weather" || !fits(decoded(t, string(call.Input))) || !strings.HasPrefix(call.ID, "toolu_") {
				t.Fatalf("streaming %v: first round %s", streaming, first.RawJSON())
			}
			p.Messages = append(p.Messages, first.ToParam(), anthropic.NewUserMessage(anthropic.NewToolResultBlock(call.ID, "21 degrees", false)))
			second := ask(p)
			if second.StopReason != anthropic.StopReasonEndTurn || second.Content[0].Text != answer {
				t.Errorf("streaming %v: second round %s", streaming, second.RawJSON())
			}
			in, out := s.Billed()
			if int64(in) != first.Usage.InputTokens+second.Usage.InputTokens || int64(out) != first.Usage.OutputTokens+second.Usage.OutputTokens {
				t.Errorf("billed %d and %d, usage %+v and %+v", in, out, first.Usage, second.Usage)
			}
		})
	}
}

// The SDK's own loop keeps its turns in a thread: the second request brings the result of the tool alone.
func TestToolRunnerOfTheAnthropicSDK(t *testing.T) {
	type place struct {
		City string `json:"city" jsonschema:"required"`
		Days int    `json:"days" jsonschema:"required"`
	}
	onStandin(t, standin.Failing(1, 529, ""), func(t *testing.T, s *standin.Server, client *http.Client, url string) {
		c := anthropicClient(client, url, option.WithMaxRetries(1))
		var inputs []place
		tool, err := toolrunner.NewBetaToolFromJSONSchema("get_weather", "The weather at a place", func(_ context.Context, in place) (anthropic.BetaToolResultBlockParamContentUnion, error) {
			inputs = append(inputs, in)
			return anthropic.BetaToolResultBlockParamContentUnion{OfText: &anthropic.BetaTextBlockParam{Text: "21 degrees"}}, nil
		})
		runner := c.Beta.Messages.NewToolRunner([]anthropic.BetaTool{must(t, tool, err)}, anthropic.BetaToolRunnerParams{BetaMessageNewParams: anthropic.BetaMessageNewParams{
			Model: "claude-sonnet-5-5", MaxTokens: 1024, Messages: []anthropic.BetaMessageParam{anthropic.NewBetaUserMessage(anthropic.NewBetaTextBlock(prompt))},
		}})
		got, err := runner.RunToCompletion(t.Context())
		if m := must(t, got, err); m.Content[0].Text != answer || len(inputs) != 1 || inputs[0].City == "" || len(s.Journal()) != 3 {
			t.Errorf("ended with %s, inputs %v, %d requests", m.RawJSON(), inputs, len(s.Journal()))
		}
	})
}

func TestThinkingOfTheAnthropicSDK(t *testing.T) {
	onStandin(t, standin.Plan{}, func(t *testing.T, _ *standin.Server, client *http.Client, url string) {
		c := anthropicClient(client, url, option.WithMaxRetries(0))
		p := params()
		p.MaxTokens = 4096
		p.Thinking = anthropic.ThinkingConfigParamUnion{OfAdaptive: &anthropic.ThinkingConfigAdaptiveParam{}}
		got, err := c.Messages.New(t.Context(), p)
		m := must(t, got, err)
		block := m.Content[0].AsThinking()
		if len(m.Content) != 2 || block.Type != "thinking" || block.Signature == "" || m.Content[1].Text != answer {
			t.Errorf("content %s", m.RawJSON())
		}
	})
}

func TestModelsAndTokensOfTheAnthropicSDK(t *testing.T) {
	onStandin(t, standin.Plan{}, func(t *testing.T, s *standin.Server, client *http.Client, url string) {
		c := anthropicClient(client, url, option.WithMaxRetries(0))
		pages := c.Models.ListAutoPaging(t.Context(), anthropic.ModelListParams{Limit: anthropic.Int(2)})
		var ids []string
		for pages.Next() {
			ids = append(ids, pages.Current().ID)
		}
		if pages.Err() != nil || len(ids) < 3 || len(slices.Compact(slices.Sorted(slices.Values(ids)))) != len(ids) {
			t.Fatalf("models %v, error %v", ids, pages.Err())
		}
		got, err := c.Models.Get(t.Context(), ids[0], anthropic.ModelGetParams{})
		if model := must(t, got, err); model.ID != ids[0] || model.DisplayName == "" {
			t.Errorf("model %s", model.RawJSON())
		}
		if _, err := c.Models.Get(t.Context(), "claude-none", anthropic.ModelGetParams{}); statusOf(err) != 404 {
			t.Errorf("an unknown model: %v", err)
		}
		counted, err := c.Messages.CountTokens(t.Context(), anthropic.MessageCountTokensParams{Model: "claude-sonnet-5-5", Messages: params().Messages})
		asked, err2 := c.Messages.New(t.Context(), params())
		if must(t, counted, err).InputTokens != must(t, asked, err2).Usage.InputTokens {
			t.Errorf("counted %d tokens, the message had %d", counted.InputTokens, asked.Usage.InputTokens)
		}
		if in, _ := s.Billed(); int64(in) != asked.Usage.InputTokens {
			t.Errorf("billed %d: counting is free", in)
		}
	})
}

func batchOf(ids ...string) anthropic.MessageBatchNewParams {
	var p anthropic.MessageBatchNewParams
	for _, id := range ids {
		p.Requests = append(p.Requests, anthropic.MessageBatchNewParamsRequest{CustomID: id, Params: anthropic.MessageBatchNewParamsRequestParams{
			Model: "claude-sonnet-5-5", MaxTokens: 100, Messages: params().Messages,
		}})
	}
	return p
}

func TestBatchesOfTheAnthropicSDK(t *testing.T) {
	onStandin(t, standin.Plan{}, func(t *testing.T, s *standin.Server, client *http.Client, url string) {
		c := anthropicClient(client, url, option.WithMaxRetries(0))
		got, err := c.Messages.Batches.New(t.Context(), batchOf("a", "b", "c"))
		batch := must(t, got, err)
		for polls := 0; batch.ProcessingStatus != anthropic.MessageBatchProcessingStatusEnded; polls++ {
			if polls == 100 {
				t.Fatalf("the batch does not end: %s", batch.RawJSON())
			}
			got, err := c.Messages.Batches.Get(t.Context(), batch.ID, anthropic.MessageBatchGetParams{})
			batch = must(t, got, err)
		}
		results, usage := map[string]string{}, [2]int64{}
		lines := c.Messages.Batches.ResultsStreaming(t.Context(), batch.ID, anthropic.MessageBatchResultsParams{})
		for lines.Next() {
			m := lines.Current().Result.Message
			results[lines.Current().CustomID] = m.Content[0].Text
			usage[0], usage[1] = usage[0]+m.Usage.InputTokens, usage[1]+m.Usage.OutputTokens
		}
		if want := map[string]string{"a": answer, "b": answer, "c": answer}; lines.Err() != nil || !maps.Equal(results, want) || batch.RequestCounts.Succeeded != 3 {
			t.Errorf("results %v, error %v, counts %+v", results, lines.Err(), batch.RequestCounts)
		}
		gone, err := c.Messages.Batches.Delete(t.Context(), batch.ID, anthropic.MessageBatchDeleteParams{})
		if must(t, gone, err).Type != "message_batch_deleted" {
			t.Errorf("deleted %s", gone.RawJSON())
		}
		if in, out := s.Billed(); out == 0 || usage != [2]int64{int64(in), int64(out)} {
			t.Errorf("billed %d and %d, the results say %v", in, out, usage)
		}
	})
}

// Creating a batch twice pays twice, so the SDK repeats it only when it surely has not happened. An upload it repeats.
func TestCreatesOfTheAnthropicSDK(t *testing.T) {
	for name, c := range map[string]struct {
		step          standin.Step
		batch, upload int // attempts
	}{
		"529":                     {standin.Step{Kind: standin.HTTP, Status: 529}, 1, 3},
		"429":                     {standin.Step{Kind: standin.HTTP, Status: 429}, 3, 3},
		"a reset, the reply lost": {standin.Step{Kind: standin.Reset}, 1, 3},
		"400":                     {standin.Step{Kind: standin.HTTP, Status: 400}, 1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			onStandin(t, always(c.step), func(t *testing.T, s *standin.Server, client *http.Client, url string) {
				sdk := anthropicClient(client, url, option.WithHeader("x-test", "1"))
				if _, err := sdk.Messages.Batches.New(t.Context(), batchOf("a")); err == nil || len(s.Journal()) != c.batch {
					t.Errorf("batch: error %v after %d attempts, want %d", err, len(s.Journal()), c.batch)
				}
				s.Reset()
				upload := anthropic.FileUploadParams{File: anthropic.File(bytes.NewReader([]byte("x")), "notes.txt", "text/plain")}
				if _, err := sdk.Files.Upload(t.Context(), upload); err == nil || len(s.Journal()) != c.upload {
					t.Errorf("upload: error %v after %d attempts, want %d", err, len(s.Journal()), c.upload)
				}
			})
		})
	}
}

func TestFilesOfTheAnthropicSDK(t *testing.T) {
	onStandin(t, standin.Plan{}, func(t *testing.T, _ *standin.Server, client *http.Client, url string) {
		c := anthropicClient(client, url, option.WithMaxRetries(0))
		got, err := c.Files.Upload(t.Context(), anthropic.FileUploadParams{File: anthropic.File(bytes.NewReader([]byte("twelve bytes")), "notes.txt", "text/plain")})
		file := must(t, got, err)
		if file.Filename != "notes.txt" || file.SizeBytes != 12 || file.MimeType != "text/plain" {
			t.Errorf("uploaded %s", file.RawJSON())
		}
		page, err := c.Files.List(t.Context(), anthropic.FileListParams{})
		if must(t, page, err); len(page.Data) != 1 || page.Data[0].ID != file.ID {
			t.Errorf("listed %s", page.RawJSON())
		}
		gone, err := c.Files.Delete(t.Context(), file.ID, anthropic.FileDeleteParams{})
		if must(t, gone, err).ID != file.ID {
			t.Errorf("deleted %s", gone.RawJSON())
		}
		if _, err := c.Files.GetMetadata(t.Context(), file.ID, anthropic.FileGetMetadataParams{}); statusOf(err) != 404 {
			t.Errorf("a deleted file: %v", err)
		}
	})
}

func TestToolsOfTheOpenAISDK(t *testing.T) {
	onStandin(t, standin.Plan{}, func(t *testing.T, _ *standin.Server, client *http.Client, url string) {
		c := openaiClient(client, url, openaioption.WithMaxRetries(0))
		p := chatParams()
		p.Tools = []openai.ChatCompletionToolUnionParam{openai.ChatCompletionFunctionTool(openai.FunctionDefinitionParam{Name: "get_weather", Parameters: weatherSchema})}
		got, err := c.Chat.Completions.New(t.Context(), p)
		first := must(t, got, err).Choices[0]
		if first.FinishReason != "tool_calls" || len(first.Message.ToolCalls) != 1 || !fits(decoded(t, first.Message.ToolCalls[0].Function.Arguments)) {
			t.Fatalf("first round %s", first.RawJSON())
		}
		p.Messages = append(p.Messages, first.Message.ToParam(), openai.ToolMessage("21 degrees", first.Message.ToolCalls[0].ID))
		acc := openai.ChatCompletionAccumulator{}
		p.StreamOptions.IncludeUsage = openai.Bool(true)
		stream := c.Chat.Completions.NewStreaming(t.Context(), p)
		for stream.Next() {
			acc.AddChunk(stream.Current())
		}
		if stream.Err() != nil || acc.Choices[0].Message.Content != answer || acc.Usage.CompletionTokens == 0 {
			t.Errorf("second round %q, usage %+v, error %v", acc.Choices[0].Message.Content, acc.Usage, stream.Err())
		}
	})
}

func TestResponsesOfTheOpenAISDK(t *testing.T) {
	onStandin(t, standin.Plan{}, func(t *testing.T, s *standin.Server, client *http.Client, url string) {
		c := openaiClient(client, url, openaioption.WithMaxRetries(0))
		p := responses.ResponseNewParams{Model: "gpt-6", Input: responses.ResponseNewParamsInputUnion{OfString: openai.String(prompt)}}
		got, err := c.Responses.New(t.Context(), p)
		whole := must(t, got, err)
		if whole.OutputText() != answer || whole.Status != "completed" {
			t.Errorf("response %s", whole.RawJSON())
		}
		stream := c.Responses.NewStreaming(t.Context(), p)
		text, last := "", responses.ResponseStreamEventUnion{}
		for stream.Next() {
			last = stream.Current()
			if last.Type == "response.output_text.delta" {
				text += last.Delta
			}
		}
		if stream.Err() != nil || text != answer || last.Type != "response.completed" || last.Response.OutputText() != answer {
			t.Errorf("streamed %q, last event %s, error %v", text, last.Type, stream.Err())
		}
		if in, out := s.Billed(); int64(in) != 2*whole.Usage.InputTokens || int64(out) != whole.Usage.OutputTokens+last.Response.Usage.OutputTokens {
			t.Errorf("billed %d and %d, usage %+v", in, out, whole.Usage)
		}
	})
}
