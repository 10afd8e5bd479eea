package request_test

import (
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"

	"holdfast/standin/internal/request"
)

// Thousands of streams are open at once, each with its request. A name cut out of the body would hold all of it.
func TestWithoutItsPromptARequestHoldsNothingOfItsBody(t *testing.T) {
	const filler = 1 << 19
	text := strings.Repeat("word ", filler/5)
	for name, tt := range map[string]struct{ path, body string }{
		"messages": {"/v1/messages", `{"model":"claude-sonnet-5-5","max_tokens":9,"stop_sequences":["END"],"tool_choice":{"type":"tool","name":"look"},
			"tools":[{"name":"look","input_schema":{"type":"object","properties":{"where":{"type":"string","enum":["here","there"]}}}}],
			"output_config":{"format":{"type":"json_schema","schema":{"type":"object","title":"answer"}}},"messages":[{"role":"user","content":"` + text + `"}]}`},
		"chat": {"/v1/chat/completions", `{"model":"gpt-5","stop":["END"],"tool_choice":{"type":"function","function":{"name":"look"}},
			"tools":[{"type":"function","function":{"name":"look","parameters":{"type":"object","properties":{"where":{"type":"string"}}}}}],
			"messages":[{"role":"user","content":"` + text + `"}]}`},
		"responses": {"/v1/responses", `{"model":"gpt-5","tool_choice":"auto","tools":[{"type":"function","name":"look","parameters":{"type":"object","title":"place"}}],"input":"` + text + `"}`},
		"batch":     {"/v1/messages/batches", `{"requests":[{"custom_id":"one","params":{"model":"claude-sonnet-5-5","max_tokens":9,"messages":[{"role":"user","content":"` + text + `"}]}}]}`},
	} {
		t.Run(name, func(t *testing.T) {
			held := make([]request.Request, 8)
			before := heap()
			for i := range held {
				r := httptest.NewRequest("POST", tt.path, nil)
				r.Header.Set("x-api-key", "good")
				r.Header.Set("anthropic-version", "2023-06-01")
				if strings.HasPrefix(tt.path, "/v1/chat") || tt.path == "/v1/responses" {
					r.Header.Set("authorization", "Bearer good")
				}
				q, refusal := request.Read(r, []byte(tt.body), request.Settings{Window: -1})
				if refusal != nil {
					t.Fatal(refusal.Message)
				}
				q.Prompt = ""
				for j := range q.Items {
					q.Items[j].Params.Prompt = ""
				}
				held[i] = q
			}
			if grown := heap() - before; grown > int64(len(held))*filler/8 {
				t.Errorf("%d requests of 512 kB hold %d kB", len(held), grown/1000)
			}
			runtime.KeepAlive(held)
		})
	}
}

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
