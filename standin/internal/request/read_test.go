package request_test

import (
	"bytes"
	"compress/gzip"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"holdfast/internal/wire"
	"holdfast/standin/internal/request"
)

// send reads a request with exactly the headers that are given, by name and value.
func send(method, target, body string, header ...string) (request.Request, *request.Refusal) {
	r := httptest.NewRequest(method, target, nil)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	return request.Read(r, []byte(body), request.Settings{BadKeys: []string{"bad"}, UnknownModels: []string{"gpt-gone"}})
}

const missingKey = "You didn't provide an API key. You need to provide your API key in an Authorization header using Bearer auth (i.e. Authorization: Bearer YOUR_KEY), or as the password field (with blank username) if you're accessing the API from your browser and are prompted for a username and password. You can obtain an API key from https://platform.openai.com/account/api-keys."

func TestReadRefusesHeaders(t *testing.T) {
	t.Parallel()
	good := []string{"x-api-key", "good", "anthropic-version", current}
	with := func(more ...string) []string { return append(good[:4:4], more...) }
	chat := "/v1/chat/completions"
	for _, row := range []struct {
		name, path string
		header     []string
		want       request.Refusal
	}{
		{"no key", messagesPath, good[2:], request.Refusal{Status: 401, Message: "x-api-key header is required"}},
		{"bad key", messagesPath, []string{"x-api-key", "bad", "anthropic-version", current}, request.Refusal{Status: 401, Message: "invalid x-api-key"}},
		{"bad bearer", messagesPath, []string{"authorization", "Bearer bad", "anthropic-version", current}, request.Refusal{Status: 401, Message: "Invalid bearer token"}},
		{"key header wins", messagesPath, []string{"authorization", "Bearer good", "x-api-key", "bad", "anthropic-version", current}, request.Refusal{Status: 401, Message: "invalid x-api-key"}},
		{"other scheme", messagesPath, []string{"authorization", "Basic good", "anthropic-version", current}, request.Refusal{Status: 401, Message: "x-api-key header is required"}},
		{"no key in the OpenAI dialect", chat, nil, request.Refusal{Status: 401, Type: "invalid_request_error", Message: missingKey}},
		{"bad key in the OpenAI dialect", chat, []string{"authorization", "Bearer bad"}, request.Refusal{Status: 401, Type: "invalid_request_error", Code: "invalid_api_key", Message: "Incorrect API key provided: ********. You can find your API key at https://platform.openai.com/account/api-keys."}},
		{"no version", messagesPath, good[:2], request.Refusal{Status: 400, Message: "anthropic-version: header is required"}},
		{"key before version", messagesPath, nil, request.Refusal{Status: 401, Message: "x-api-key header is required"}},
		{"unknown version", messagesPath, with("anthropic-version", "2027-01-01"), request.Refusal{Status: 400, Message: `anthropic-version: "2027-01-01" is not a valid version`}},
		{"form", messagesPath, with("content-type", "application/x-www-form-urlencoded"), request.Refusal{Status: 400, Message: "content-type: must be application/json"}},
		{"text in the OpenAI dialect", chat, []string{"authorization", "Bearer good", "content-type", "text/plain"}, request.Refusal{Status: 400, Type: "invalid_request_error", Code: "unsupported_content_type", Message: "Unsupported content type: 'text/plain'. This API method only accepts 'application/json' requests, but you specified the header 'Content-Type: text/plain'. Please try again with a supported content type."}},
		{"unknown encoding", messagesPath, with("content-encoding", "br"), request.Refusal{Status: 400, Code: "request_body_encoding_unsupported", Message: "content-encoding: not supported"}},
		{"not gzip", messagesPath, with("content-encoding", "gzip"), request.Refusal{Status: 400, Code: "request_body_encoding_invalid", Message: "The request body does not match its content-encoding"}},
		{"no such path", "/v1/complete", nil, request.Refusal{Status: 404, Message: "Not Found"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			_, refusal := send(http.MethodPost, row.path, message(""), row.header...)
			if diff := cmp.Diff(&row.want, refusal); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A refusal never repeats the key, and comes with what is known of the request.
func TestReadKeepsWhatIsKnown(t *testing.T) {
	t.Parallel()
	q, refusal := send(http.MethodPost, "/base/v1/messages", `{"model":"claude-opus-5-5","messages":[]}`, "authorization", "bearer sk-secret", "anthropic-version", old)
	want := request.Request{Endpoint: request.Messages, Dialect: wire.DialectAnthropic, Path: messagesPath, Key: "sk-secret", Model: "claude-opus-5-5", Input: 1}
	if diff := cmp.Diff(want, q); diff != "" || refusal == nil {
		t.Errorf("%+v %s", refusal, diff)
	}
	for _, path := range []string{"/v1/chat/completions", messagesPath} {
		r := httptest.NewRequest(http.MethodPost, path, nil)
		r.Header.Set("authorization", "Bearer sk-secret")
		if _, refusal := request.Read(r, nil, request.Settings{BadKeys: []string{"sk-secret"}}); refusal == nil || refusal.Status != 401 || strings.Contains(refusal.Message, "secret") {
			t.Errorf("%s: %+v", path, refusal)
		}
	}
}

func TestReadTooLarge(t *testing.T) {
	t.Parallel()
	const text = "Request exceeds the maximum size"
	body := "x" + strings.Repeat(" ", 32<<20)
	for path, want := range map[string]request.Refusal{
		messagesPath:                {Status: 413, Message: text, HTML: true},
		"/v1/messages/count_tokens": {Status: 413, Message: text, HTML: true},
		"/v1/chat/completions":      {Status: 413, Message: text, Type: "invalid_request_error", Code: "request_too_large"},
		// Of a batch it is less than the limit, and no JSON.
		"/v1/messages/batches": {Status: 400, Message: "The request body is not valid JSON: unexpected character: line 1 column 1 (char 0)"},
	} {
		_, refusal := ask(path, current, body)
		if diff := cmp.Diff(&want, refusal); diff != "" {
			t.Errorf("%s: %s", path, diff)
		}
	}
	if _, refusal := ask(messagesPath, current, message("")+body[1:32<<20-len(message(""))+1]); refusal != nil {
		t.Errorf("a body of exactly the limit: %+v", refusal)
	}
}

func TestReadGzip(t *testing.T) {
	t.Parallel()
	packed := func(text string) string {
		var b bytes.Buffer
		w := gzip.NewWriter(&b)
		if _, err := w.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	if q, refusal := ask(messagesPath, current, packed(message("")), "content-encoding", "gzip"); refusal != nil || q.Prompt != "Hello\n" {
		t.Errorf("%q %+v", q.Prompt, refusal)
	}
	// A gzip body may have several members, and one of 1 MiB is packed once.
	_, refusal := ask(messagesPath, current, strings.Repeat(packed(strings.Repeat(" ", 1<<20)), 32)+packed(message("")), "content-encoding", "gzip")
	if refusal == nil || refusal.Status != 413 || refusal.Code != "request_body_too_large_after_decoding" || refusal.HTML {
		t.Errorf("%+v", refusal)
	}
	whole := packed(message(""))
	if _, refusal := ask(messagesPath, current, whole[:len(whole)-4], "content-encoding", "gzip"); refusal == nil || refusal.Code != "request_body_encoding_invalid" {
		t.Errorf("a cut gzip body: %+v", refusal)
	}
}

func TestReadDialectOfModels(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name   string
		header []string
		want   wire.Dialect
		status int
	}{
		{"OpenAI client", []string{"authorization", "Bearer good"}, wire.DialectOpenAI, 0},
		{"Anthropic client", []string{"authorization", "Bearer good", "anthropic-version", current}, wire.DialectAnthropic, 0},
		{"Anthropic client without a version", []string{"x-api-key", "good"}, wire.DialectAnthropic, 400},
	} {
		q, refusal := send(http.MethodGet, "/v1/models", "", row.header...)
		if q.Dialect != row.want || (refusal != nil) != (row.status != 0) || refusal != nil && refusal.Status != row.status {
			t.Errorf("%s: %v %+v", row.name, q.Dialect, refusal)
		}
	}
}

func TestReadPage(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		query string
		want  request.Page
		says  string
	}{
		{"", request.Page{}, ""},
		{"?limit=1000&after_id=a&before_id=b", request.Page{Limit: 1000, AfterID: "a", BeforeID: "b"}, ""},
		{"?limit=1&beta=true", request.Page{Limit: 1}, ""},
		{"?limit=0", request.Page{}, "limit: Input should be greater than or equal to 1"},
		{"?limit=-99999999999999999999", request.Page{}, "limit: Input should be greater than or equal to 1"},
		{"?limit=1001", request.Page{}, "limit: Input should be less than or equal to 1000"},
		{"?limit=99999999999999999999", request.Page{}, "limit: Input should be less than or equal to 1000"},
		{"?limit=ten", request.Page{}, "limit: Input should be a valid integer, unable to parse string as an integer"},
	} {
		for _, path := range []string{"/v1/messages/batches", "/v1/models", "/v1/files"} {
			q, refusal := send(http.MethodGet, path+row.query, "", "x-api-key", "good", "anthropic-version", current)
			if (refusal != nil) != (row.says != "") || refusal != nil && refusal.Message != row.says || refusal == nil && q.Page != row.want {
				t.Errorf("%s%s: %+v %+v", path, row.query, q.Page, refusal)
			}
		}
	}
}
