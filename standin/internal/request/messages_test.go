package request_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"holdfast/internal/wire"
	"holdfast/standin/internal/request"
)

const (
	messagesPath = "/v1/messages"
	old          = "2023-06-01"
	current      = "2026-10-21"
)

// ask reads a request of the Anthropic dialect under a version, with further headers by name and value.
func ask(path, version, body string, header ...string) (request.Request, *request.Refusal) {
	r := httptest.NewRequest(http.MethodPost, path, nil)
	r.Header.Set("x-api-key", "good")
	r.Header.Set("content-type", "application/json")
	if version != "" {
		r.Header.Set("anthropic-version", version)
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	return request.Read(r, []byte(body), request.Settings{BadKeys: []string{"bad"}, UnknownModels: []string{"claude-gone"}})
}

// message fills a body up: what is not given is good.
func message(fields string) string {
	body := "{" + fields
	for _, field := range []struct{ name, value string }{
		{`"model"`, `"claude-opus-5-5"`}, {`"max_tokens"`, `2048`}, {`"messages"`, `[{"role":"user","content":"Hello"}]`},
	} {
		if !strings.Contains(fields, field.name+":") {
			if body != "{" {
				body += ","
			}
			body += field.name + ":" + field.value
		}
	}
	return body + "}"
}

func turns(messages string) string { return message(`"messages":[` + messages + `]`) }

const (
	user     = `{"role":"user","content":"Hello"}`
	calling  = `{"role":"assistant","content":[{"type":"tool_use","id":"toolu_1","name":"f","input":{}}]}`
	answered = `{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","content":"ok"}]}`
)

// refusalRow is a body and the message it is refused with. The wordings are those that users of the API have reported.
type refusalRow struct{ name, version, body, want string }

func checkRefusals(t *testing.T, path string, rows []refusalRow) {
	t.Helper()
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			version := row.version
			if version == "" {
				version = current
			}
			_, refusal := ask(path, version, row.body)
			switch {
			case refusal == nil:
				t.Fatalf("accepted, want %q", row.want)
			case refusal.Message != row.want:
				t.Errorf("message\n%q, want\n%q", refusal.Message, row.want)
			case refusal.Status != http.StatusBadRequest && refusal.Status != http.StatusNotFound || refusal.Type != "":
				t.Errorf("status %d type %q", refusal.Status, refusal.Type)
			}
		})
	}
}

func TestMessagesRefusesFields(t *testing.T) {
	t.Parallel()
	checkRefusals(t, messagesPath, []refusalRow{
		{"no body", "", ``, "The request body is not valid JSON: input data is empty: line 1 column 1 (char 0)"},
		{"cut body", "", `{"model":`, "The request body is not valid JSON: unexpected end of data: line 1 column 10 (char 9)"},
		{"half a surrogate pair", "", "{\n\"model\":\"é\\ud83d\"}", "The request body is not valid JSON: no low surrogate in string: line 2 column 17 (char 18)"},
		{"a list", "", `[]`, "Input should be a valid dictionary"},
		{"nothing", "", `{}`, "model: Field required"},
		{"no model", "", `{"max_tokens":1,"messages":[` + user + `]}`, "model: Field required"},
		{"model is a number", "", message(`"model":1`), "model: Input should be a valid string"},
		{"model is empty", "", message(`"model":""`), "model: String should have at least 1 character"},
		{"model is long", "", message(`"model":"` + strings.Repeat("m", 257) + `"`), "model: String should have at most 256 characters"},
		{"model with a space", "", message(`"model":"my model"`), "model: my model"},
		{"unknown model", "", message(`"model":"claude-gone"`), "model: claude-gone"},
		{"no messages", "", `{"model":"m","max_tokens":1}`, "messages: Field required"},
		{"messages is a text", "", message(`"messages":"hi"`), "messages: Input should be a valid list"},
		{"messages is empty", "", turns(``), "messages: at least one message is required"},
		{"no max_tokens", "", `{"model":"m","messages":[` + user + `]}`, "max_tokens: Field required"},
		{"max_tokens 0", "", message(`"max_tokens":0`), "max_tokens: Input should be greater than or equal to 1"},
		{"max_tokens is a text", "", message(`"max_tokens":"10"`), "max_tokens: Input should be a valid integer"},
		{"max_tokens with a fraction", "", message(`"max_tokens":1.5`), "max_tokens: Input should be a valid integer, got a number with a fractional part"},
		{"max_tokens null", "", message(`"max_tokens":null`), "max_tokens: Input should be a valid integer"},
		{"more than the model can", "", message(`"model":"claude-haiku-4-5-20251001","max_tokens":64001`), "max_tokens: 64001 > 64000, which is the maximum allowed number of output tokens for claude-haiku-4-5-20251001"},
		{"stream is a text", "", message(`"stream":"yes"`), "stream: Input should be a valid boolean"},
		{"unknown field", "", message(`"response_format":{}`), "response_format: Extra inputs are not permitted"},
		{"field of a beta", "", message(`"context_management":{}`), "context_management: Extra inputs are not permitted"},
		{"temperature under the new version", "", message(`"temperature":1`), "temperature: Extra inputs are not permitted"},
		{"top_p under the new version", "", message(`"top_p":1`), "top_p: Extra inputs are not permitted"},
		{"top_k under the new version", "", message(`"top_k":5`), "top_k: Extra inputs are not permitted"},
		{"temperature above 1", old, message(`"model":"claude-haiku-4-5","temperature":1.1`), "temperature: range: 0..1"},
		{"temperature is a text", old, message(`"temperature":"hot"`), "temperature: Input should be a valid number"},
		{"temperature of a new model", old, message(`"temperature":0.5`), "`temperature` is deprecated for this model."},
		{"temperature and top_p", old, message(`"model":"claude-sonnet-4-5","temperature":0.5,"top_p":0.5`), "`temperature` and `top_p` cannot both be specified for this model. Please use only one."},
		{"negative top_k", old, message(`"model":"claude-haiku-4-5","top_k":-1`), "top_k: Input should be greater than or equal to 0"},
		{"blank stop sequence", "", message(`"stop_sequences":["END","\n"]`), "stop_sequences: each stop sequence must contain non-whitespace"},
		{"stop sequence is a number", "", message(`"stop_sequences":[1]`), "stop_sequences.0: Input should be a valid string"},
		{"service tier", "", message(`"service_tier":"fast"`), "service_tier: Input should be 'auto' or 'standard_only'"},
		{"user id is a number", "", message(`"metadata":{"user_id":7}`), "metadata.user_id: Input should be a valid string"},
		{"empty system text", "", message(`"system":[{"type":"text","text":""}]`), "system: text content blocks must be non-empty"},
		{"system is a number", "", message(`"system":1`), "system: Input should be a valid list"},
		{"system block is a text", "", message(`"system":["a"]`), "system.0: Input should be a valid dictionary"},
		{"system block of another kind", "", message(`"system":[{"type":"image","source":{}}]`), "system.0.type: Input should be 'text'"},
		{"system block without a text", "", message(`"system":[{"type":"text"}]`), "system.0.text: Field required"},
		{"system block with a number", "", message(`"system":[{"type":"text","text":1}]`), "system.0.text: Input should be a valid string"},
		{"unknown field of a system block", "", message(`"system":[{"type":"text","text":"a","title":"b"}]`), "system.0.title: Extra inputs are not permitted"},
		{"stop_sequences is a text", "", message(`"stop_sequences":"END"`), "stop_sequences: Input should be a valid list"},
		{"metadata is a list", "", message(`"metadata":[]`), "metadata: Input should be a valid dictionary"},
		{"output_config is a text", "", message(`"output_config":"low"`), "output_config: Input should be a valid dictionary"},
		{"format without a schema", "", message(`"output_config":{"format":{"type":"json_schema"}}`), "output_config.format.schema: Field required"},
		{"top_k of a new model", old, message(`"top_k":5`), "`top_k` is deprecated for this model."},
		{"top_k with thinking", old, message(`"model":"claude-haiku-4-5","top_k":5,"thinking":{"type":"enabled","budget_tokens":1024}`), "`top_k` must be unset when thinking is enabled."},
		{"five cache marks", "", message(`"system":[` + strings.Repeat(`{"type":"text","text":"a","cache_control":{"type":"ephemeral"}},`, 4) + `{"type":"text","text":"a","cache_control":{"type":"ephemeral"}}]`), "A maximum of 4 blocks with cache_control may be provided. Found 5."},
	})
}

func TestMessagesRefusesTurns(t *testing.T) {
	t.Parallel()
	thinking := `{"role":"assistant","content":[{"type":"thinking","thinking":"t","signature":"s","cache_control":{}}]}`
	checkRefusals(t, messagesPath, []refusalRow{
		{"no role", "", turns(`{"content":"a"}`), "messages.0.role: Field required"},
		{"no content", "", turns(`{"role":"user"}`), "messages.0.content: Field required"},
		{"content is a number", "", turns(`{"role":"user","content":1}`), "messages.0.content: Input should be a valid list"},
		{"a name beside the role", "", turns(`{"role":"user","name":"x","content":"a"}`), "messages.0.name: Extra inputs are not permitted"},
		{"role of the other API", "", turns(user + `,{"role":"tool","content":"a"}`), `messages: Unexpected role "tool". Allowed roles are "user" or "assistant".`},
		{"assistant first", "", turns(`{"role":"assistant","content":"a"},` + user), `messages: first message must use the "user" role`},
		{"system first", "", turns(`{"role":"system","content":"a"},` + user), "messages.0: use the top-level 'system' parameter for the initial system prompt"},
		{"system on an old model", "", message(`"model":"claude-sonnet-4-6","messages":[` + user + `,{"role":"system","content":"a"}]`), "role 'system' is not supported on this model"},
		{"empty text", "", turns(`{"role":"user","content":[{"type":"text","text":""}]}`), "messages: text content blocks must be non-empty"},
		{"blank text", "", turns(`{"role":"user","content":[{"type":"text","text":" \n"}]}`), "messages: text content blocks must contain non-whitespace text"},
		{"user without content", "", turns(`{"role":"user","content":[]}`), "messages.0: user messages must have non-empty content"},
		{"user with an empty text", "", turns(user + `,{"role":"assistant","content":"a"},{"role":"user","content":""}`), "messages.2: user messages must have non-empty content"},
		{"assistant without content", "", turns(user + `,{"role":"assistant","content":[]},` + user), "messages.1: all messages must have non-empty content except for the optional final assistant message"},
		{"prefill", "", turns(user + `,{"role":"assistant","content":"Sure"}`), "This model does not support assistant message prefill. The conversation must end with a user message."},
		{"prefill of the preview", "", message(`"model":"claude-mythos-preview","messages":[` + user + `,{"role":"assistant","content":"Sure"}]`), "This model does not support assistant message prefill. The conversation must end with a user message."},
		{"prefill that ends in a space", "", message(`"model":"claude-haiku-4-5","messages":[` + user + `,{"role":"assistant","content":"Sure "}]`), "messages: final assistant content cannot end with trailing whitespace"},
		{"block without a type", "", turns(`{"role":"user","content":[{"text":"a"}]}`), "messages.0.content.0.type: Field required"},
		{"block is a text", "", turns(`{"role":"user","content":["a"]}`), "messages.0.content.0: Input should be a valid dictionary"},
		{"block of no known kind", "", turns(`{"role":"user","content":[{"type":"image_url"}]}`), "messages.0.content.0: Input tag 'image_url' found using 'type' does not match any of the expected tags: 'document', 'image', 'redacted_thinking', 'search_result', 'server_tool_use', 'text', 'thinking', 'tool_result', 'tool_use', 'web_search_tool_result'"},
		{"text without a text", "", turns(`{"role":"user","content":[{"type":"text"}]}`), "messages.0.content.0.text.text: Field required"},
		{"text is null", "", turns(`{"role":"user","content":[{"type":"text","text":null}]}`), "messages.0.content.0.text.text: Input should be a valid string"},
		{"image without a source", "", turns(`{"role":"user","content":[{"type":"image"}]}`), "messages.0.content.0.image.source: Field required"},
		{"cache mark on thinking", "", turns(user + "," + thinking + "," + user), "messages.1.content.0.thinking.cache_control: Extra inputs are not permitted"},
		{"citations of the user", "", turns(`{"role":"user","content":[{"type":"text","text":"a","citations":[{}]}]}`), "messages.0.content.0.text.citations: Extra inputs are not permitted"},
		{"document of the assistant", "", turns(user + `,{"role":"assistant","content":[{"type":"document","source":{}}]},` + user), "messages.1.content.0: Input tag 'document' found using 'type' does not match any of the expected tags: 'image', 'redacted_thinking', 'search_result', 'server_tool_use', 'text', 'thinking', 'tool_result', 'tool_use', 'web_search_tool_result'"},
		{"call without a result", "", turns(user + "," + calling + "," + user), "messages.1: `tool_use` ids were found without `tool_result` blocks immediately after: toolu_1. Each `tool_use` block must have a corresponding `tool_result` block in the next message."},
		{"call at the end", "", turns(user + "," + calling), "messages.1: `tool_use` ids were found without `tool_result` blocks immediately after: toolu_1. Each `tool_use` block must have a corresponding `tool_result` block in the next message."},
		{"text in front of the result", "", turns(user + "," + calling + "," + user + "," + answered), "messages.1: `tool_use` ids were found without `tool_result` blocks immediately after: toolu_1. Each `tool_use` block must have a corresponding `tool_result` block in the next message."},
		{"result without a call", "", turns(answered), "messages.0.content.0: unexpected `tool_use_id` found in `tool_result` blocks: toolu_1. Each `tool_result` block must have a corresponding `tool_use` block in the previous message."},
		{"two results of a call", "", turns(user + "," + calling + "," + answered + "," + answered), "messages.3.content.0: each tool_use must have a single result. Found multiple `tool_result` blocks with id: toolu_1"},
		{"one id twice", "", turns(user + "," + calling + "," + answered + "," + calling + "," + answered), "messages: `tool_use` ids must be unique"},
		{"call of the user", "", turns(strings.Replace(calling, "assistant", "user", 1)), "messages.0: `tool_use` blocks can only be in `assistant` messages"},
		{"result of the assistant", "", turns(user + "," + strings.Replace(answered, "user", "assistant", 1)), "messages.1: `tool_result` blocks can only be in `user` messages"},
		{"arguments as a text", "", turns(user + "," + strings.Replace(calling, "{}", `"{}"`, 1)), "messages.1.content.0.tool_use.input: Input should be a valid dictionary"},
	})
}

func TestMessagesRefusesToolsAndThinking(t *testing.T) {
	t.Parallel()
	tool := func(more string) string { return `"tools":[{"name":"f","input_schema":{"type":"object"}` + more + `}]` }
	enabled := func(model, more string) string {
		return message(`"model":"` + model + `","thinking":{"type":"enabled",` + more + `}`)
	}
	const budget = `"budget_tokens":1024`
	checkRefusals(t, messagesPath, []refusalRow{
		{"two tools of one name", "", message(`"tools":[{"name":"f","input_schema":{"type":"object"}},{"type":"custom","name":"f","input_schema":{"type":"object"}}]`), "tools: Tool names must be unique."},
		{"tool without a name", "", message(`"tools":[{"input_schema":{"type":"object"}}]`), "tools.0.custom.name: Field required"},
		{"tool with a bad name", "", message(`"tools":[{"name":"my tool","input_schema":{"type":"object"}}]`), "tools.0.custom.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'"},
		{"tool without a schema", "", message(`"tools":[{"name":"f"}]`), "tools.0.custom.input_schema: Field required"},
		{"schema without a type", "", message(`"tools":[{"name":"f","input_schema":{}}]`), "tools.0.custom.input_schema.type: Field required"},
		{"unknown field of a tool", "", message(tool(`,"parameters":{}`)), "tools.0.custom.parameters: Extra inputs are not permitted"},
		{"tool of the other API", "", message(`"tools":[{"type":"function","function":{}}]`), "tools.0: Input tag 'function' found using 'type' does not match any of the expected tags: 'bash_20250124', 'custom', 'text_editor_20250728', 'web_search_20250305'"},
		{"choice of a tool that is not there", "", message(tool("") + `,"tool_choice":{"type":"tool","name":"g"}`), "Tool 'g' not found in provided tools"},
		{"choice without tools", "", message(`"tool_choice":{"type":"any"}`), "tool_choice.any may only be specified while providing tools"},
		{"choice of the other API", "", message(tool("") + `,"tool_choice":{"type":"required"}`), "tool_choice: Input tag 'required' found using 'type' does not match any of the expected tags: 'any', 'auto', 'none', 'tool'"},
		{"tool is a text", "", message(`"tools":["f"]`), "tools.0: Input should be a valid dictionary"},
		{"tools is an object", "", message(`"tools":{}`), "tools: Input should be a valid list"},
		{"name of a tool is a number", "", message(`"tools":[{"name":1}]`), "tools.0.custom.name: Input should be a valid string"},
		{"schema is a list", "", message(`"tools":[{"name":"f","input_schema":[]}]`), "tools.0.custom.input_schema: Input should be a valid dictionary"},
		{"schema of a list", "", message(`"tools":[{"name":"f","input_schema":{"type":"array"}}]`), "tools.0.custom.input_schema.type: Input should be 'object'"},
		{"choice is a text", "", message(`"tool_choice":"auto"`), "tool_choice: Input should be a valid dictionary"},
		{"choice without a type", "", message(`"tool_choice":{}`), "tool_choice.type: Field required"},
		{"choice of a tool without its name", "", message(`"tool_choice":{"type":"tool"}`), "tool_choice.tool.name: Field required"},
		{"thinking is a text", "", message(`"thinking":"on"`), "thinking: Input should be a valid dictionary"},
		{"thinking without a type", "", message(`"thinking":{}`), "thinking.type: Field required"},
		{"display", "", message(`"thinking":{"type":"adaptive","display":"full"}`), "thinking.adaptive.display: Input should be 'summarized' or 'omitted'"},
		{"small budget", "", enabled("claude-haiku-4-5", `"budget_tokens":1023`), "thinking.enabled.budget_tokens: Input should be greater than or equal to 1024"},
		{"no budget", "", enabled("claude-haiku-4-5", `"display":"omitted"`), "thinking.enabled.budget_tokens: Field required"},
		{"budget of all tokens", "", enabled("claude-haiku-4-5", `"budget_tokens":2048`), "`max_tokens` must be greater than `thinking.budget_tokens`."},
		{"budget on a new model", "", enabled("claude-opus-4-7", budget), `"thinking.type.enabled" is not supported for this model. Use "thinking.type.adaptive" and "output_config.effort" to control thinking behavior.`},
		{"adaptive on an old model", "", message(`"model":"claude-sonnet-4-5","thinking":{"type":"adaptive"}`), "adaptive thinking is not supported on this model"},
		{"disabled where it cannot be", "", message(`"model":"claude-fable-5-2","thinking":{"type":"disabled"}`), `"thinking.type.disabled" is not supported for this model.`},
		{"thinking of no known kind", "", message(`"thinking":{"type":"on"}`), "thinking: Input tag 'on' found using 'type' does not match any of the expected tags: 'adaptive', 'between_tools', 'disabled', 'enabled'"},
		{"thinking and a forced tool", "", message(tool("") + `,"thinking":{"type":"adaptive"},"tool_choice":{"type":"any"}`), "Thinking may not be enabled when tool_choice forces tool use."},
		{"thinking and a temperature", old, message(`"model":"claude-haiku-4-5","temperature":0,"thinking":{"type":"enabled",` + budget + `}`), "`temperature` may only be set to 1 when thinking is enabled."},
		{"call without its thinking", "", message(`"model":"claude-haiku-4-5","thinking":{"type":"enabled",` + budget + `},"messages":[` + user + "," + calling + "," + answered + `]`), "messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found `tool_use`. When `thinking` is enabled, a final `assistant` message must start with a thinking block (preceeding the lastmost set of `tool_use` and `tool_result` blocks). We recommend you include thinking blocks from previous turns. To avoid this requirement, disable `thinking`."},
	})
}

func TestMessagesAccepts(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ name, version, body string }{
		{"least", current, message("")},
		{"any name of a model", current, message(`"model":"qwen3:8b"`)},
		{"one role twice", current, turns(user + "," + user + `,{"role":"assistant","content":"a"},{"role":"assistant","content":"b"},` + user)},
		{"system in the middle", current, turns(user + `,{"role":"system","content":"Be short."}`)},
		{"result in a message of its own", current, turns(user + "," + calling + "," + answered + "," + user)},
		{"prefill on an old model", current, message(`"model":"claude-sonnet-4-5","messages":[` + user + `,{"role":"assistant","content":"Sure"}]`)},
		{"empty prefill on an old model", current, message(`"model":"claude-sonnet-4-5","messages":[` + user + `,{"role":"assistant","content":[]}]`)},
		{"answer that a server tool paused", current, turns(user + `,{"role":"assistant","content":[{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{}}]}`)},
		{"sampling of an old model", old, message(`"model":"claude-haiku-4-5","temperature":0.3,"top_k":5`)},
		{"default sampling of a new model", old, message(`"temperature":1`)},
		{"max_tokens as 10.0", current, message(`"max_tokens":10.0`)},
		{"document of the assistant under the old version", old, turns(user + `,{"role":"assistant","content":[{"type":"document","source":{"type":"text","data":"d"}}]},` + user)},
		{"tools of the server", current, message(`"tools":[{"type":"web_search_20250305","name":"web_search"}],"tool_choice":{"type":"tool","name":"web_search"}`)},
		{"budget above max_tokens by one", current, message(`"model":"claude-haiku-4-5","max_tokens":1025,"thinking":{"type":"enabled","budget_tokens":1024}`)},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			if _, refusal := ask(messagesPath, row.version, row.body); refusal != nil {
				t.Errorf("refused: %s", refusal.Message)
			}
		})
	}
	if _, refusal := ask(messagesPath, current, message(`"context_management":{}`), "anthropic-beta", "context-management-2025-06-27"); refusal != nil {
		t.Errorf("field of a beta with its header refused: %s", refusal.Message)
	}
}

// A thread that goes on brings the results of calls that the API holds; whatever starts one, or is none, does not.
func TestMessagesOfAThreadThatGoesOn(t *testing.T) {
	t.Parallel()
	for thread, refused := range map[string]bool{
		`{"type":"continue","previous_message_id":"msg_1"}`: false,
		`{"type":"create"}`: true,
	} {
		q, refusal := ask(messagesPath, current, message(`"messages":[`+answered+`],"thread":`+thread), "anthropic-beta", "message-threads-2026-08-12")
		if (refusal != nil) != refused || !refused && !q.ToolAnswered {
			t.Errorf("%s: refusal %+v, tool answered %v", thread, refusal, q.ToolAnswered)
		}
	}
	again := `{"role":"user","content":[{"type":"text","text":"a"}]},{"role":"assistant","content":"b"},` + answered
	if _, refusal := ask(messagesPath, current, message(`"messages":[`+again+`],"thread":{"type":"continue","previous_message_id":"msg_1"}`), "anthropic-beta", "message-threads-2026-08-12"); refusal == nil {
		t.Error("a result whose turn before is known and has no call was taken")
	}
}

func TestMessagesRead(t *testing.T) {
	t.Parallel()
	body := `{"model":"claude-opus-5-5","max_tokens":100,"stream":true,"stop_sequences":["END"],"thinking":{"type":"adaptive","display":"omitted"},
		"system":[{"type":"text","text":"Be brief.","cache_control":{"type":"ephemeral"}}],
		"tools":[{"name":"f","input_schema":{"type":"object","properties":{"a":{"type":"number"}}}},{"type":"bash_20250124","name":"bash"},{"type":"web_search_20250305","name":"web_search"}],
		"tool_choice":{"type":"auto"},"output_config":{"format":{"type":"json_schema","schema":{"type":"object"}}},
		"messages":[{"role":"user","content":"a\u00e9\ud83d\ude00\n\"b\""},` + calling + `,
		{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","content":[{"type":"text","text":"result"},{"type":"image","source":{}}]},{"type":"text","text":"Go on."}]}]}`
	got, refusal := ask("/base/v1/messages?beta=true", current, body, "x-custom-id", "row-7")
	if refusal != nil {
		t.Fatal(refusal.Message)
	}
	// Characters: tools 170, system 9, a mark, then text 7, the call 1 and 2, its result 6, text 6; 1,600 tokens of the image.
	want := request.Request{
		Endpoint: request.Messages, Dialect: wire.DialectAnthropic, Path: messagesPath, Key: "good", CustomID: "row-7",
		Model: "claude-opus-5-5", MaxTokens: 100, Stream: true, Prompt: "Be brief.\naé😀\n\"b\"\nresult\nGo on.\n", Input: 51 + 1600, Cacheable: 45,
		Tools: []request.Tool{
			{Name: "f", Schema: map[string]any{"type": "object", "properties": map[string]any{"a": map[string]any{"type": "number"}}}},
			{Name: "bash"},
		},
		ToolChoice: request.ToolChoice{Mode: "auto"}, ToolAnswered: true, Thinking: true, Omitted: true, StopSequences: []string{"END"},
		Schema: map[string]any{"type": "object"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestPromptTooLong(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("abcd", 200_001)
	of := func(model string) string {
		return fmt.Sprintf(`{"model":%q,"max_tokens":10,"messages":[{"role":"user","content":%q}]}`, model, text)
	}
	_, refusal := ask(messagesPath, current, of("claude-haiku-4-5"))
	if want := "prompt is too long: 200001 tokens > 200000 maximum"; refusal == nil || refusal.Message != want {
		t.Errorf("%+v, want %q", refusal, want)
	}
	if q, refusal := ask(messagesPath, current, of("claude-opus-5-5")); refusal != nil || q.Input != 200_001 {
		t.Errorf("%d tokens for a window of a million: %+v", q.Input, refusal)
	}
	if q, refusal := ask("/v1/messages/count_tokens", current, strings.Replace(of("claude-haiku-4-5"), `"max_tokens":10,`, "", 1)); refusal != nil || q.Input != 200_001 {
		t.Errorf("count of %d tokens: %+v", q.Input, refusal)
	}
	if _, refusal := ask(messagesPath, current, of("claude-sonnet-4-5"), "anthropic-beta", "context-1m-2025-08-07"); refusal != nil {
		t.Errorf("under the beta of the large window: %+v", refusal)
	}
	older := fmt.Sprintf(`{"model":"claude-sonnet-4-20250514","max_tokens":64000,"messages":[{"role":"user","content":%q}]}`, text[:4*190_000])
	_, refusal = ask(messagesPath, current, older)
	if want := "input length and `max_tokens` exceed context limit: 190000 + 64000 > 200000, decrease input length or `max_tokens` and try again"; refusal == nil || refusal.Message != want {
		t.Errorf("%+v, want %q", refusal, want)
	}
}

// A window of the plan stands in for that of the model, known or not.
func TestPromptTooLongForThePlan(t *testing.T) {
	t.Parallel()
	r := httptest.NewRequest(http.MethodPost, messagesPath, nil)
	r.Header = http.Header{"X-Api-Key": {"good"}, "Anthropic-Version": {current}}
	body := []byte(message(`"model":"any","messages":[{"role":"user","content":"` + strings.Repeat("abcd", 11) + `"}]`))
	for window, want := range map[int]string{0: "", -1: "", 11: "", 10: "prompt is too long: 11 tokens > 10 maximum"} {
		_, refusal := request.Read(r, body, request.Settings{Window: window})
		if (refusal != nil) != (want != "") || refusal != nil && refusal.Message != want {
			t.Errorf("window %d: %+v, want %q", window, refusal, want)
		}
	}
}

// Pictures and pages count as a flat number of tokens; the text of a document as text.
func TestInputOfDocuments(t *testing.T) {
	t.Parallel()
	for block, want := range map[string]int{
		`{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AAAA"}}`:                                     1600,
		`{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"AAAA"}}`:                            2000,
		`{"type":"document","title":"abcd","source":{"type":"text","media_type":"text/plain","data":"abcdefgh"}}`:                3,
		`{"type":"document","source":{"type":"content","content":[{"type":"text","text":"abcd"},{"type":"image","source":{}}]}}`: 1601,
	} {
		q, refusal := ask(messagesPath, current, turns(`{"role":"user","content":[`+block+`]}`))
		if refusal != nil || q.Input != want {
			t.Errorf("%s: %d tokens, want %d: %+v", block, q.Input, want, refusal)
		}
	}
}

func TestCountTokensRefuses(t *testing.T) {
	t.Parallel()
	checkRefusals(t, "/v1/messages/count_tokens", []refusalRow{
		{"max_tokens", "", message(""), "max_tokens: Extra inputs are not permitted"},
		{"stream", "", `{"model":"m","messages":[` + user + `],"stream":false}`, "stream: Extra inputs are not permitted"},
		{"no messages", "", `{"model":"m"}`, "messages: Field required"},
	})
}

func TestTokens(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{"": 1, "a": 1, "abcd": 1, "abcde": 2, "ééééé": 2, strings.Repeat("x", 400): 100} {
		if got := request.Tokens(text); got != want {
			t.Errorf("%d characters: %d tokens, want %d", len(text), got, want)
		}
	}
}
