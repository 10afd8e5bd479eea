package request_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"holdfast/internal/wire"
	"holdfast/standin/internal/request"
)

// askOpenAI reads a request of the OpenAI dialect.
func askOpenAI(path, body string) (request.Request, *request.Refusal) {
	return send(http.MethodPost, path, body, "authorization", "Bearer good", "content-type", "application/json")
}

// completion fills the body of a chat completion up.
func completion(fields string) string {
	if !strings.Contains(fields, `"messages":`) {
		fields = `"messages":[` + user + `],` + fields
	}
	if !strings.Contains(fields, `"model":`) {
		fields = `"model":"gpt-4o",` + fields
	}
	return "{" + strings.TrimSuffix(fields, ",") + "}"
}

// openAIRow is a body and what it is refused with.
type openAIRow struct{ name, body, param, code, message string }

func checkOpenAI(t *testing.T, path string, rows []openAIRow) {
	t.Helper()
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			_, refusal := askOpenAI(path, row.body)
			want := &request.Refusal{Status: 400, Type: "invalid_request_error", Param: row.param, Code: row.code, Message: row.message}
			if row.code == "model_not_found" {
				want.Status = 404
			}
			if diff := cmp.Diff(want, refusal); diff != "" {
				t.Error(diff)
			}
		})
	}
}

const notJSON = "We could not parse the JSON body of your request. (HINT: This likely means you aren't using your HTTP library correctly. The OpenAI API expects a JSON payload, but what was sent was not valid JSON. If you have trouble figuring out how to fix this, please contact us through our help center at help.openai.com.)"

func TestChatRefuses(t *testing.T) {
	t.Parallel()
	const missing = "missing_required_parameter"
	called := `{"role":"assistant","content":null,"tool_calls":[{"id":"call_1","type":"function","function":{"name":"f","arguments":"{}"}}]}`
	tool := `"tools":[{"type":"function","function":{"name":"f"}}]`
	checkOpenAI(t, "/v1/chat/completions", []openAIRow{
		{"not JSON", `{`, "", "", notJSON},
		{"a list", `[]`, "", "", notJSON},
		{"no model", `{"messages":[` + user + `]}`, "", "", "you must provide a model parameter"},
		{"unknown model", completion(`"model":"gpt-gone",`), "", "model_not_found", "The model `gpt-gone` does not exist or you do not have access to it."},
		{"no messages", `{"model":"gpt-4o"}`, "messages", missing, "Missing required parameter: 'messages'."},
		{"messages is a text", completion(`"messages":"hi"`), "messages", "invalid_type", "Invalid type for 'messages': expected an array, but got a string instead."},
		{"messages is empty", completion(`"messages":[]`), "messages", "empty_array", "Invalid 'messages': empty array. Expected an array with minimum length 1, but got an empty array instead."},
		{"wrong role", completion(`"messages":[{"role":"foobar","content":"a"}]`), "messages[0].role", "invalid_value", "Invalid value: 'foobar'. Supported values are: 'system', 'assistant', 'user', 'function', 'tool', and 'developer'."},
		{"text as a role is not repeated", completion(`"messages":[{"role":"What was written to the model, at length","content":"a"}]`), "messages[0].role", "invalid_value", "Invalid value: 'Wha...gth'. Supported values are: 'system', 'assistant', 'user', 'function', 'tool', and 'developer'."},
		{"no role", completion(`"messages":[{"content":"a"}]`), "messages[0].role", missing, "Missing required parameter: 'messages[0].role'."},
		{"no content", completion(`"messages":[{"role":"user"}]`), "messages[0].content", missing, "Missing required parameter: 'messages[0].content'."},
		{"content null", completion(`"messages":[{"role":"user","content":null}]`), "messages.[0].content", "", "Invalid value for 'content': expected a string, got null."},
		{"result without a call", completion(`"messages":[` + user + `,{"role":"tool","tool_call_id":"call_1","content":"a"}]`), "messages.[1].role", "", "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'."},
		{"call without a result", completion(`"messages":[` + user + "," + called + "," + user + `]`), "messages.[2].role", "", "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The following tool_call_ids did not have response messages: call_1"},
		{"result of another call", completion(`"messages":[` + user + "," + called + `,{"role":"tool","tool_call_id":"call_2","content":"a"}]`), "messages.[2].role", "", "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'."},
		{"unknown field", completion(`"max_output_tokens":5`), "", "", "Unrecognized request argument supplied: max_output_tokens"},
		{"both limits", completion(`"max_tokens":5,"max_completion_tokens":5`), "max_tokens", "invalid_parameter_combination", "Setting 'max_tokens' and 'max_completion_tokens' at the same time is not supported."},
		{"old limit of a reasoning model", completion(`"model":"gpt-5-mini","max_tokens":5`), "max_tokens", "unsupported_parameter", "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."},
		{"limit 0", completion(`"max_tokens":0`), "max_tokens", "integer_below_min_value", "Invalid 'max_tokens': integer below minimum value. Expected a value >= 1, but got 0 instead."},
		{"limit is a text", completion(`"max_tokens":"5"`), "max_tokens", "invalid_type", "Invalid type for 'max_tokens': expected an integer, but got a string instead."},
		{"temperature", completion(`"temperature":2.5`), "temperature", "decimal_above_max_value", "Invalid 'temperature': decimal above maximum value. Expected a value <= 2, but got 2.5 instead."},
		{"negative temperature", completion(`"temperature":-1`), "temperature", "decimal_below_min_value", "Invalid 'temperature': decimal below minimum value. Expected a value >= 0, but got -1 instead."},
		{"temperature is a text", completion(`"temperature":"hot"`), "temperature", "invalid_type", "Invalid type for 'temperature': expected a decimal, but got a string instead."},
		{"limit with a fraction", completion(`"max_tokens":1.5`), "max_tokens", "invalid_type", "Invalid type for 'max_tokens': expected an integer, but got a decimal number instead."},
		{"stream is a number", completion(`"stream":1`), "stream", "invalid_type", "Invalid type for 'stream': expected a boolean, but got a number instead."},
		{"five stop sequences", completion(`"stop":["a","b","c","d","e"]`), "stop", "array_above_max_length", "Invalid 'stop': array too long. Expected an array with maximum length 4, but got an array with length 5 instead."},
		{"message is a text", completion(`"messages":["a"]`), "messages[0]", "invalid_type", "Invalid type for 'messages[0]': expected an object, but got a string instead."},
		{"content is a number", completion(`"messages":[{"role":"user","content":1}]`), "messages[0].content", "invalid_type", "Invalid type for 'messages[0].content': expected a string, but got a number instead."},
		{"result without the id of its call", completion(`"messages":[` + user + `,{"role":"tool","content":"a"}]`), "messages[1].tool_call_id", missing, "Missing required parameter: 'messages[1].tool_call_id'."},
		{"tool without a type", completion(`"tools":[{}]`), "tools[0].type", missing, "Missing required parameter: 'tools[0].type'."},
		{"format without a schema", completion(`"response_format":{"type":"json_schema"}`), "response_format.json_schema.schema", missing, "Missing required parameter: 'response_format.json_schema.schema'."},
		{"stream options without a stream", completion(`"stream_options":{"include_usage":true}`), "stream_options", "", "The 'stream_options' parameter is only allowed when 'stream' is enabled."},
		{"tools is empty", completion(`"tools":[]`), "tools", "empty_array", "Invalid 'tools': empty array. Expected an array with minimum length 1, but got an empty array instead."},
		{"tool without a function", completion(`"tools":[{"type":"function","name":"f"}]`), "tools[0].function", missing, "Missing required parameter: 'tools[0].function'."},
		{"tool with a bad name", completion(`"tools":[{"type":"function","function":{"name":"my tool"}}]`), "tools[0].function.name", "invalid_value", "Invalid 'tools[0].function.name': string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'."},
		{"choice without tools", completion(`"tool_choice":"auto"`), "tool_choice", "", "Invalid value for 'tool_choice': 'tool_choice' is only allowed when 'tools' are specified."},
		{"choice of the other API", completion(tool + `,"tool_choice":"any"`), "tool_choice", "invalid_value", "Invalid value: 'any'. Supported values are: 'none', 'auto', and 'required'."},
		{"choice of a tool that is not there", completion(tool + `,"tool_choice":{"type":"function","function":{"name":"g"}}`), "tool_choice", "", "Tool choice 'g' not found in 'tools' parameter."},
		{"JSON that is not spoken of", completion(`"response_format":{"type":"json_object"}`), "messages", "", "'messages' must contain the word 'json' in some form, to use 'response_format' of type 'json_object'."},
		{"unknown format", completion(`"response_format":{"type":"xml"}`), "response_format.type", "invalid_value", "Invalid value: 'xml'. Supported values are: 'json_object', 'json_schema', and 'text'."},
		{"too long", completion(`"model":"gpt-4","messages":[{"role":"user","content":"` + strings.Repeat("abcd", 8193) + `"}]`), "messages", "context_length_exceeded", "This model's maximum context length is 8192 tokens. However, your messages resulted in 8193 tokens. Please reduce the length of the messages."},
	})
}

func TestChatRead(t *testing.T) {
	t.Parallel()
	got, refusal := askOpenAI("/v1/chat/completions", `{"model":"gpt-5","max_completion_tokens":50,"stream":true,"stream_options":{"include_usage":true},"stop":"END",
		"messages":[{"role":"developer","content":"Brief."},{"role":"user","content":[{"type":"text","text":"Hi"},{"type":"image_url","image_url":{"url":"data:"}}]},
		{"role":"assistant","content":null,"tool_calls":[{"id":"call_1","type":"function","function":{"name":"f","arguments":"{}"}}]},
		{"role":"tool","tool_call_id":"call_1","content":"done"}],
		"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object"}}}],"tool_choice":"required",
		"response_format":{"type":"json_schema","json_schema":{"name":"n","schema":{"type":"object"}}}}`)
	if refusal != nil {
		t.Fatal(refusal.Message)
	}
	object := map[string]any{"type": "object"}
	want := request.Request{
		Endpoint: request.ChatCompletions, Dialect: wire.DialectOpenAI, Path: "/v1/chat/completions", Key: "good", Model: "gpt-5",
		MaxTokens: 50, Stream: true, IncludeUsage: true, StopSequences: []string{"END"}, Prompt: "Brief.\nHi\ndone\n", ToolAnswered: true,
		Tools: []request.Tool{{Name: "f", Schema: object}}, ToolChoice: request.ToolChoice{Mode: "any"}, Schema: object,
		Input: 1600 + 23, // 6 + 2 + 1 + 2 + 4 + 74 characters
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestResponsesRefuses(t *testing.T) {
	t.Parallel()
	const missing, none = "missing_required_parameter", `One of "input" or "previous_response_id" or 'prompt' or 'conversation' must be provided.`
	checkOpenAI(t, "/v1/responses", []openAIRow{
		{"no model", `{"input":"a"}`, "model", missing, "Missing required parameter: 'model'."},
		{"unknown model", `{"model":"gpt-gone","input":"a"}`, "", "model_not_found", "The model `gpt-gone` does not exist or you do not have access to it."},
		{"no input", `{"model":"gpt-5"}`, "", missing, none},
		{"empty input", `{"model":"gpt-5","input":""}`, "", missing, none},
		{"empty list", `{"model":"gpt-5","input":[]}`, "", missing, none},
		{"input is a number", `{"model":"gpt-5","input":1}`, "input", "invalid_type", "Invalid type for 'input': expected a string, but got a number instead."},
		{"messages of the other API", `{"model":"gpt-5","input":"a","messages":[]}`, "messages", "unknown_parameter", "Unknown parameter: 'messages'."},
		{"wrong role", `{"model":"gpt-5","input":[{"role":"tool","content":"a"}]}`, "input[0].role", "invalid_value", "Invalid value: 'tool'. Supported values are: 'assistant', 'system', 'developer', and 'user'."},
		{"few tokens", `{"model":"gpt-5","input":"a","max_output_tokens":15}`, "max_output_tokens", "integer_below_min_value", "Invalid 'max_output_tokens': integer below minimum value. Expected a value >= 16, but got 15 instead."},
		{"output without a call", `{"model":"gpt-5","input":[{"type":"function_call_output","call_id":"call_1","output":"a"}]}`, "input", "", "No tool call found for function call output with call_id call_1."},
		{"call without an output", `{"model":"gpt-5","input":[{"type":"function_call","call_id":"call_1","name":"f","arguments":"{}"}]}`, "input", "", "No tool output found for function call call_1."},
		{"tool of the other form", `{"model":"gpt-5","input":"a","tools":[{"type":"function","function":{"name":"f"}}]}`, "tools[0].name", missing, "Missing required parameter: 'tools[0].name'."},
	})
}

func TestResponsesRead(t *testing.T) {
	t.Parallel()
	got, refusal := askOpenAI("/v1/responses", `{"model":"gpt-5","instructions":"Brief.","max_output_tokens":16,"stream":true,"reasoning":{"summary":"auto"},
		"input":[{"role":"user","content":[{"type":"input_text","text":"Hi"}]},{"type":"function_call","call_id":"call_1","name":"f","arguments":"{}"},{"type":"function_call_output","call_id":"call_1","output":"done"}],
		"tools":[{"type":"function","name":"f","parameters":{"type":"object"}},{"type":"web_search"}],"tool_choice":{"type":"function","name":"f"},
		"text":{"format":{"type":"json_schema","name":"n","schema":{"type":"object"}}}}`)
	if refusal != nil {
		t.Fatal(refusal.Message)
	}
	object := map[string]any{"type": "object"}
	want := request.Request{
		Endpoint: request.Responses, Dialect: wire.DialectOpenAI, Path: "/v1/responses", Key: "good", Model: "gpt-5",
		MaxTokens: 16, Stream: true, Prompt: "Brief.\nHi\ndone\n", ToolAnswered: true, Thinking: true,
		Tools: []request.Tool{{Name: "f", Schema: object}}, ToolChoice: request.ToolChoice{Mode: "tool", Name: "f"}, Schema: object,
		Input: 42, // 6 + 2 + 71 + 4 + 61 + 21 characters
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if _, refusal := askOpenAI("/v1/responses", `{"model":"gpt-5","previous_response_id":"resp_1","input":[{"type":"function_call_output","call_id":"call_1","output":"a"}]}`); refusal != nil {
		t.Errorf("output of a call in a stored response: %s", refusal.Message)
	}
}
