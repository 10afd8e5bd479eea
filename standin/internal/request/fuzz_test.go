package request_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"holdfast/standin/internal/request"
)

var fuzzTargets = []struct{ method, path string }{
	{"POST", "/v1/messages"}, {"POST", "/v1/messages/count_tokens"}, {"POST", "/v1/messages/batches"}, {"POST", "/v1/chat/completions"},
	{"POST", "/v1/responses"}, {"POST", "/v1/files"}, {"GET", "/v1/models"}, {"GET", "/v1/messages/batches"}, {"GET", "/v1/files"},
}

// Whatever comes in, there is an answer or a refusal that can be shown.
func FuzzRead(f *testing.F) {
	add := func(target uint8, version, contentType, query, body string) {
		f.Add(target, version, contentType, query, []byte(body))
	}
	for i := range fuzzTargets {
		add(uint8(i), current, "application/json", "limit=5", message(""))
		add(uint8(i), old, "", "limit=x", `{"model":1,"messages":[null,{"role":"user","content":[[]]}],"tools":[0],"input":[{}],"requests":[{"custom_id":"a","params":{"messages":[{}]}}]}`)
	}
	add(0, current, "application/json", "", turns(user+","+calling+","+answered))
	add(0, old, "application/json", "", message(`"model":"claude-3-7-sonnet-latest","temperature":1e999,"thinking":{"type":"enabled","budget_tokens":1024},"system":[{"type":"text","text":"a"}],"tool_choice":{"type":"tool","name":"f"},"tools":[{"name":"f","input_schema":{"type":"object"}}]`))
	add(2, current, "application/json", "", batch(item("a", message("")), item("b", "{}")))
	add(3, "", "application/json", "", `{"model":"gpt-4o","messages":[{"role":"assistant","tool_calls":[{"id":"c","function":{}}]},{"role":"tool","tool_call_id":"c","content":"a"}],"stop":["a"]}`)
	add(4, "", "application/json", "", `{"model":"gpt-5","input":[{"type":"function_call","call_id":"c"},{"type":"function_call_output","call_id":"c","output":[{"type":"input_image"}]}]}`)
	add(5, current, "multipart/form-data; boundary=x", "", "--x\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a\"\r\n\r\nabc\r\n--x--\r\n")
	f.Fuzz(func(t *testing.T, target uint8, version, contentType, query string, body []byte) {
		at := fuzzTargets[int(target)%len(fuzzTargets)]
		r := httptest.NewRequest(at.method, at.path, nil)
		r.URL.RawQuery = query
		r.Header = http.Header{"Authorization": {"Bearer good"}, "Anthropic-Version": {version}, "Content-Type": {contentType}}
		q, refusal := request.Read(r, body, request.Settings{})
		again, refusedAgain := request.Read(r, body, request.Settings{})
		if !cmp.Equal(q, again) || !cmp.Equal(refusal, refusedAgain) {
			t.Fatal("read twice, two results")
		}
		if q.Endpoint == "" || q.Path != at.path || q.Key != "good" || q.Input < 0 || q.MaxTokens < 0 || q.Cacheable > q.Input {
			t.Fatalf("%+v", q)
		}
		if refusal != nil && (refusal.Message == "" || len(refusal.Message) > 4096 || refusal.Status < 400 || refusal.Status > 413 || refusal.HTML) {
			t.Fatalf("%+v", refusal)
		}
		for i := range q.Items {
			if q.Items[i].Params.Stream || q.Items[i].CustomID != q.Items[i].Params.CustomID {
				t.Fatalf("item %d: %+v", i, q.Items[i])
			}
		}
	})
}

// A refusal tells fields and ids, never what was written to the model.
func TestRefusalsKeepThePromptToThemselves(t *testing.T) {
	t.Parallel()
	const secret = "the words of the prompt that nobody else may see"
	at := func(path, body string) (request.Request, *request.Refusal) {
		if strings.HasPrefix(path, messagesPath) {
			return ask(path, current, body)
		}
		return askOpenAI(path, body)
	}
	for name, row := range map[string][2]string{
		"cut":                       {messagesPath, `{"messages":[{"role":"user","content":"` + secret},
		"text as a role":            {messagesPath, turns(`{"role":"` + secret + `","content":"a"}`)},
		"text as a type":            {messagesPath, turns(`{"role":"user","content":[{"type":"` + secret + `"}]}`)},
		"text as a field":           {messagesPath, message(`"` + secret + `":1`)},
		"text as a block's field":   {messagesPath, turns(`{"role":"user","content":[{"type":"text","text":"a","` + secret + `":1}]}`)},
		"text as a choice":          {messagesPath, message(`"tool_choice":{"type":"` + secret + `"}`)},
		"text as thinking":          {messagesPath, message(`"thinking":{"type":"` + secret + `"}`)},
		"prefill":                   {messagesPath, turns(user + `,{"role":"assistant","content":"` + secret + `"}`)},
		"blank beside text":         {messagesPath, turns(`{"role":"user","content":[{"type":"text","text":"` + secret + `"},{"type":"text","text":""}]}`)},
		"text as an OpenAI role":    {"/v1/chat/completions", completion(`"messages":[{"role":"` + secret + `","content":"a"}]`)},
		"text as a format":          {"/v1/chat/completions", completion(`"response_format":{"type":"` + secret + `"}`)},
		"text as an argument":       {"/v1/chat/completions", completion(`"` + secret + `":1`)},
		"text as a parameter":       {"/v1/responses", `{"model":"m","input":"a","` + secret + `":1}`},
		"text as a role of an item": {"/v1/responses", `{"model":"m","input":[{"role":"` + secret + `","content":"a"}]}`},
	} {
		_, refusal := at(row[0], row[1])
		switch {
		case refusal == nil:
			t.Errorf("%s: accepted", name)
		case strings.Contains(refusal.Message+refusal.Param, "words"):
			t.Errorf("%s: %q", name, refusal.Message)
		}
	}
}
