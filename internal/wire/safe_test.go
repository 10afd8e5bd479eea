package wire_test

import (
	"testing"

	"holdfast/internal/wire"
)

func TestSafe(t *testing.T) {
	t.Parallel()
	const question = `{"model":"m","max_tokens":5,"messages":[{"role":"user","content":"the tools of \"mcp_servers\""}]}`
	tests := []struct {
		name, method, path, body string
		want                     bool
	}{
		{"read", "GET", "/v1/messages/batches/b/results", "", true},
		{"head", "HEAD", "/anything", "", true},
		{"options", "OPTIONS", "/anything", "", true},
		{"no method is GET", "", "/v1/models", "", true},
		{"delete", "DELETE", "/v1/files/f", "", true},
		{"put", "PUT", "/v1/files/f", "", false},
		{"patch", "PATCH", "/v1/files/f", "", false},
		{"messages", "POST", "/v1/messages", question, true},
		{"messages behind a prefix, with a query", "POST", "/anthropic/v1/messages?beta=true", question, true},
		{"messages without a body", "POST", "/v1/messages", "", true},
		{"messages with a torn body", "POST", "/v1/messages", question[:20], false},
		{"messages with a list", "POST", "/v1/messages", `[]`, false},
		{"thread", "POST", "/v1/messages", `{"previous_message_id":"msg_1"}`, false},
		{"thread, name escaped", "POST", "/v1/messages", `{"previous\u005fmessage_id":"msg_1"}`, false},
		{"no thread", "POST", "/v1/messages", `{"previous_message_id":null}`, true},
		{"mcp", "POST", "/v1/messages", `{"mcp_servers":[{"url":"u"}]}`, false},
		{"no mcp", "POST", "/v1/messages", `{"mcp_servers":[ ]}`, true},
		{"client tools", "POST", "/v1/messages", `{"tools":[{"name":"f","input_schema":{}},{"type":"custom","name":"g"},{"type":"bash_20250124","name":"bash"},{"type":"memory_20250818"}]}`, true},
		{"server tool", "POST", "/v1/messages", `{"tools":[{"name":"f","input_schema":{}},{"type":"web_search_20260318","name":"web_search"}]}`, false},
		{"code execution", "POST", "/v1/messages", `{"tools":[{"type":"code_execution_20260521"}]}`, false},
		{"tool of a type to come", "POST", "/v1/messages", `{"tools":[{"type":"rocket_20300101"}]}`, false},
		{"count", "POST", "/v1/messages/count_tokens", question, true},
		{"batch", "POST", "/v1/messages/batches", `{"requests":[]}`, false},
		{"batch cancel", "POST", "/v1/messages/batches/b/cancel", "", true},
		{"openai batch cancel", "POST", "/v1/batches/b/cancel", "", true},
		{"response cancel", "POST", "/v1/responses/r/cancel", "", true},
		{"cancel of something else", "POST", "/v1/uploads/u/cancel", "", false},
		{"cancel of nothing", "POST", "/v1/batches//cancel", "", false},
		{"file", "POST", "/v1/files", "", false},
		{"openai batch", "POST", "/v1/batches", "", false},
		{"chat", "POST", "/v1/chat/completions", `{"tools":[{"type":"function","function":{"name":"f"}}]}`, true},
		{"responses", "POST", "/v1/responses", `{"input":"x","background":false}`, true},
		{"responses continuing another", "POST", "/v1/responses", `{"previous_response_id":"resp_1"}`, true},
		{"responses in a conversation", "POST", "/v1/responses", `{"conversation":"conv_1"}`, false},
		{"responses in a conversation given as an object", "POST", "/v1/responses", `{"conversation":{"id":"conv_1"}}`, false},
		{"responses in the background", "POST", "/v1/responses", `{"background":true}`, false},
		{"responses with mcp", "POST", "/v1/responses", `{"tools":[{"type":"mcp","server_url":"u"}]}`, false},
		{"embeddings", "POST", "/v1/embeddings", "", true},
		{"completions", "POST", "/v1/completions", "", true},
		{"bedrock", "POST", "/model/us.anthropic.claude-opus-5-v1:0/invoke", question, true},
		{"bedrock, another model", "POST", "/model/amazon.nova/invoke", question, false},
		{"vertex", "POST", "/v1/projects/p/locations/l/publishers/anthropic/models/claude:streamRawPredict", question, true},
		{"assistant thread", "POST", "/v1/threads/t/runs", "", false},
		{"unknown", "POST", "/v1/sessions", "", false},
		{"unknown that ends alike", "POST", "/v1/threads/t/messages", question, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := wire.Safe(tt.method, tt.path, []byte(tt.body)); got != tt.want {
				t.Errorf("Safe(%s, %s, %s) = %v, want %v", tt.method, tt.path, tt.body, got, tt.want)
			}
		})
	}
	if wire.Safe("POST", "/v1/messages", zipped(t, `{"mcp_servers":[{"url":"u"}]}`)) {
		t.Error("a compressed body hides its servers")
	}
	if !wire.Safe("POST", "/v1/messages", zipped(t, question)) {
		t.Error("a compressed question is not safe")
	}
}
