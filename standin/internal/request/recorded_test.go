package request_test

import (
	"cmp"
	"encoding/json"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	diff "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"holdfast/internal/wire"
	"holdfast/standin/internal/request"
)

// recorded is a request as a real client sent it; testdata/README.md says where it is from.
type recorded struct {
	Cassette    string
	Method, URL string
	Header      map[string]string
	Body        json.RawMessage
	Text        string
}

func (c *recorded) read() (request.Request, *request.Refusal) {
	r := httptest.NewRequest(cmp.Or(c.Method, "POST"), c.URL, nil)
	for name, value := range c.Header {
		r.Header.Set(name, value)
	}
	body := []byte(c.Body)
	if c.Text != "" {
		body = []byte(c.Text)
	}
	return request.Read(r, body, request.Settings{})
}

func load(t *testing.T, file string, into any) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", file))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, into); err != nil {
		t.Fatal(err)
	}
}

func TestReadsWhatTheSDKsSend(t *testing.T) {
	t.Parallel()
	const prompt, weather = "Be brief.\nWhat is the weather in Paris?\n", "What is the weather in Paris?\n"
	object := map[string]any{"type": "object"}
	city := map[string]any{"type": "object", "properties": map[string]any{"city": map[string]any{"type": "string"}}}
	cityRequired := map[string]any{"type": "object", "properties": city["properties"], "required": []any{"city"}}
	auto := request.ToolChoice{Mode: "auto"}
	question := request.Request{
		Endpoint: request.Messages, Path: messagesPath, Model: "claude-opus-5-5", MaxTokens: 1024, StopSequences: []string{"END"},
		Prompt: prompt, Tools: []request.Tool{{Name: "get_weather", Schema: cityRequired}}, ToolChoice: auto,
	}
	stream, result := question, question
	stream.Stream, stream.Thinking = true, true
	result.Thinking, result.ToolAnswered, result.Prompt = true, true, prompt+"I look.\nSunny, 20 degrees\n"
	tools := []request.Tool{{Name: "get_weather", Schema: city}}
	batched := func(id, text string) request.Item {
		return request.Item{CustomID: id, Params: request.Request{
			Endpoint: request.Messages, Dialect: wire.DialectAnthropic, Path: messagesPath, Key: "recorded", CustomID: id,
			Model: "claude-opus-5-5", MaxTokens: 64, Prompt: text, Input: 1,
		}}
	}
	for name, want := range map[string]request.Request{
		"anthropic-message":       question,
		"anthropic-stream":        stream,
		"anthropic-tool-result":   result,
		"anthropic-count-tokens":  {Endpoint: request.CountTokens, Path: "/v1/messages/count_tokens", Model: "claude-opus-5-5", Prompt: prompt, Thinking: true},
		"anthropic-batch":         {Endpoint: request.BatchCreate, Path: batchPath, Items: []request.Item{batched("row-1", "One\n"), batched("row-2", "Two\n")}},
		"anthropic-batch-list":    {Endpoint: request.BatchList, Path: batchPath, Page: request.Page{Limit: 20, AfterID: "msgbatch_1"}},
		"anthropic-batch-cancel":  {Endpoint: request.BatchCancel, Path: batchPath + "/msgbatch_1/cancel", ID: "msgbatch_1"},
		"anthropic-batch-results": {Endpoint: request.BatchResults, Path: batchPath + "/msgbatch_1/results", ID: "msgbatch_1"},
		"anthropic-models":        {Endpoint: request.ModelList, Path: "/v1/models"},
		"anthropic-file":          {Endpoint: request.FileUpload, Path: "/v1/files", File: &request.File{Name: "rows.csv", Type: "text/csv", Content: []byte("a,b\n1,2\n")}},
		"anthropic-file-content":  {Endpoint: request.FileContent, Path: "/v1/files/file_1/content", ID: "file_1"},
		"anthropic-beta-message":  {Endpoint: request.Messages, Path: messagesPath, Model: "claude-opus-5-5", MaxTokens: 64, Prompt: "Hello\n"},
		"anthropic-v1-message":    {Endpoint: request.Messages, Path: messagesPath, Model: "claude-haiku-4-5", MaxTokens: 2048, Prompt: "Hello\n", Thinking: true},
		"openai-chat":             {Endpoint: request.ChatCompletions, Path: "/v1/chat/completions", Model: "gpt-5", MaxTokens: 256, Prompt: prompt, Tools: tools},
		"openai-chat-stream":      {Endpoint: request.ChatCompletions, Path: "/v1/chat/completions", Model: "gpt-5", MaxTokens: 256, Prompt: prompt, Tools: tools, Stream: true, IncludeUsage: true},
		"openai-models":           {Endpoint: request.ModelList, Path: "/v1/models"},
		"openai-responses":        {Endpoint: request.Responses, Path: "/v1/responses", Model: "gpt-5", MaxTokens: 256, Prompt: "Be brief.\nHello\n"},
		"openai-responses-tool": {
			Endpoint: request.Responses, Path: "/v1/responses", Model: "gpt-5", Prompt: weather + "Sunny\n", Stream: true, ToolAnswered: true,
			Tools: []request.Tool{{Name: "get_weather", Schema: object}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var sent recorded
			load(t, "sdk/"+name+".json", &sent)
			got, refusal := sent.read()
			if refusal != nil {
				t.Fatalf("refused: %+v", refusal)
			}
			want.Key, want.Dialect = "recorded", wire.DialectAnthropic
			if strings.HasPrefix(name, "openai") {
				want.Dialect = wire.DialectOpenAI
			}
			if d := diff.Diff(want, got, cmpopts.IgnoreFields(request.Request{}, "Input")); d != "" {
				t.Error(d)
			}
			if want.Prompt != "" && got.Input < request.Tokens(want.Prompt)-2 {
				t.Errorf("%d tokens of input for a prompt of %d", got.Input, request.Tokens(want.Prompt))
			}
		})
	}
}

// The real API took all of them, so the stand-in has to.
func TestReadsTheCassettes(t *testing.T) {
	t.Parallel()
	var all []recorded
	load(t, "cassettes.json", &all)
	if len(all) < 10 {
		t.Fatalf("%d requests", len(all))
	}
	results := 0
	for i := range all {
		got, refusal := all[i].read()
		if refusal != nil {
			t.Errorf("%s: refused: %s", all[i].Cassette, refusal.Message)
			continue
		}
		var body struct {
			Model    string
			Messages []json.RawMessage
			Tools    []json.RawMessage
		}
		if err := json.Unmarshal(all[i].Body, &body); err != nil {
			t.Fatal(err)
		}
		answered := strings.Contains(string(body.Messages[len(body.Messages)-1]), `"tool_result"`)
		if answered {
			results++
		}
		if got.Model != body.Model || len(got.Tools) != len(body.Tools) || got.ToolAnswered != answered || got.Dialect != wire.DialectAnthropic {
			t.Errorf("%s: %+v", all[i].Cassette, got)
		}
	}
	if results == 0 {
		t.Error("no request brings the result of a tool: the recordings are not the ones that were meant")
	}
}
