package saved_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"unicode/utf8"

	"holdfast/saved"
)

func keyOf(t testing.TB, path, body string, header ...string) saved.Key {
	t.Helper()
	q := &saved.Question{Method: http.MethodPost, Path: path, Body: []byte(body), Header: http.Header{}}
	for i := 0; i < len(header); i += 2 {
		q.Header.Add(header[i], header[i+1])
	}
	key, err := q.Key()
	if err != nil {
		t.Fatalf("%s %s: %v", path, body, err)
	}
	return key
}

func TestWhatDeterminesAnAnswer(t *testing.T) {
	t.Parallel()
	type asking struct {
		path, body string
		header     []string
	}
	const plain = `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"Why?"}]}`
	with := func(members string) asking {
		return asking{messages, strings.TrimSuffix(plain, "}") + "," + members + "}", nil}
	}
	ask := func(path, body string, header ...string) asking { return asking{path, body, header} }
	first := ask(messages, plain)
	for _, row := range []struct {
		name string
		a, b asking
		same bool
	}{
		{"order and space", first, ask(messages, ` { "messages" : [ { "content" : "Why?" , "role":"user" } ],`+"\n\t"+`"max_tokens":9, "model":"m" } `), true},
		{"escapes", first, ask(messages, strings.Replace(plain, `"Why?"`, `"\u0057hy?"`, 1)), true},
		{"streamed or not", first, with(`"stream":true,"stream_options":{"include_usage":true}`), true},
		{"for whom", first, with(`"metadata":{"user_id":"u"},"user":"u","safety_identifier":"s"`), true},
		{"how it is paid", first, with(`"service_tier":"auto","speed":"fast","inference_geo":"us","billing_policy":{},"fallback_credit_token":"t"`), true},
		{"what is stored", first, with(`"store":true,"prompt_cache_key":"k","prompt_cache_retention":"24h","prompt_cache_options":{},"diagnostics":{},"cache_control":{"type":"ephemeral"}`), true},
		{"null is absent", first, with(`"temperature":null`), true},
		{"a trailing slash", first, ask(messages+"/", plain), true},
		{"order of betas", ask(messages, plain, "anthropic-beta", "b,a"), ask(messages, plain, "anthropic-beta", "a", "anthropic-beta", " b , a"), true},
		{"order of the query", ask(messages+"?a=1&b=2", plain), ask(messages+"?b=2&a=1", plain), true},
		{"other headers", first, ask(messages, plain, "x-api-key", "k", "authorization", "b", "x-stainless-retry-count", "1", "x-request-id", "r"), true},
		{
			"marks for the cache", ask(messages, `{"system":[{"type":"text","text":"S"}],"tools":[{"name":"n"}],"messages":[{"content":[{"type":"tool_result","content":[{"type":"text","text":"R"}]}]}]}`),
			ask(messages, `{"system":[{"type":"text","text":"S","cache_control":{"type":"ephemeral"}}],"tools":[{"name":"n","cache_control":{"type":"ephemeral"}}],"messages":[{"content":[{"type":"tool_result","cache_control":{"type":"ephemeral"},"content":[{"type":"text","text":"R","cache_control":{}}]}]}]}`), true,
		},

		{"the model", first, ask(messages, strings.Replace(plain, `"m"`, `"n"`, 1)), false},
		{"the limit", first, ask(messages, strings.Replace(plain, "9", "10", 1)), false},
		{"the prompt", first, ask(messages, strings.Replace(plain, "Why", "How", 1)), false},
		{"order in an array", with(`"stop_sequences":["a","b"]`), with(`"stop_sequences":["b","a"]`), false},
		{"arrays in arrays", with(`"x":[["a"],["b"]]`), with(`"x":[["a","b"],[]]`), false},
		{"a number's last digit", with(`"seed":12345678901234567890`), with(`"seed":12345678901234567891`), false},
		{"a number and its text", with(`"x":1`), with(`"x":"1"`), false},
		{"null further in", with(`"x":{"a":null}`), with(`"x":{}`), false},
		{"a member of a name that is volatile elsewhere", with(`"x":{"user":"a"}`), with(`"x":{"user":"b"}`), false},
		{"cache_control as a tool's input", with(`"x":[{"input":{"cache_control":1}}]`), with(`"x":[{"input":{"cache_control":2}}]`), false},
		{"cache_control in a schema", with(`"x":[{"input_schema":{"p":{"cache_control":1}}}]`), with(`"x":[{"input_schema":{"p":{"cache_control":2}}}]`), false},
		{"cache_control in the other dialect", ask(chat, `{"x":[{"cache_control":1}]}`), ask(chat, `{"x":[{"cache_control":2}]}`), false},
		{"halves of a character", with(`"x":"\ud83d"`), with(`"x":"\ud83e"`), false},
		{"bytes that are no text", with("\"x\":\"\xff\""), with("\"x\":\"\xfe\""), false},
		{"a member twice", with(`"x":1,"x":2`), with(`"x":2,"x":1`), false},
		{"names and values", with(`"x":{"a":"b"}`), with(`"x":{"ab":""}`), false},
		{"the version", ask(messages, plain, "anthropic-version", "2023-06-01"), ask(messages, plain, "anthropic-version", "2026-10-21"), false},
		{"the betas", first, ask(messages, plain, "anthropic-beta", "a"), false},
		{"the path", ask(chat, plain), ask(responses, plain), false},
		{"what stands before the path", first, ask("/anthropic"+messages, plain), false},
		{"the query", first, ask(messages+"?beta=true", plain), false},
	} {
		t.Run(row.name, func(t *testing.T) {
			a, b := keyOf(t, row.a.path, row.a.body, row.a.header...), keyOf(t, row.b.path, row.b.body, row.b.header...)
			if (a == b) != row.same {
				t.Errorf("same key: %v, want %v", a == b, row.same)
			}
		})
	}
}

func TestQuestionsWithoutAKey(t *testing.T) {
	t.Parallel()
	for name, q := range map[string]*saved.Question{
		"a read":                  {Method: http.MethodGet, Path: messages, Body: []byte(`{}`)},
		"a count":                 {Method: http.MethodPost, Path: messages + "/count_tokens", Body: []byte(`{}`)},
		"a batch":                 {Method: http.MethodPost, Path: messages + "/batches", Body: []byte(`{}`)},
		"a thread's message":      {Method: http.MethodPost, Path: "/v1/threads/t/messages", Body: []byte(`{}`)},
		"no JSON":                 {Method: http.MethodPost, Path: messages, Body: []byte(`{"model":`)},
		"no body":                 {Method: http.MethodPost, Path: messages},
		"no object":               {Method: http.MethodPost, Path: messages, Body: []byte(`[{}]`)},
		"a conversation":          {Method: http.MethodPost, Path: responses, Body: []byte(`{"conversation":{"id":"c"}}`)},
		"work in the background":  {Method: http.MethodPost, Path: responses, Body: []byte(`{"background":true}`)},
		"a container":             {Method: http.MethodPost, Path: messages, Body: []byte(`{"container":"c"}`)},
		"a container with skills": {Method: http.MethodPost, Path: messages, Body: []byte(`{"container":{"id":"c","skills":[]}}`)},
		"a thread":                {Method: http.MethodPost, Path: messages, Body: []byte(`{"thread":{"id":"t"}}`)},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := q.Key(); !errors.Is(err, saved.ErrQuestion) {
				t.Errorf("got %v", err)
			}
			if _, err := saved.Give(q, asJSON(goodMessage), false); !errors.Is(err, saved.ErrQuestion) {
				t.Errorf("Give: %v", err)
			}
		})
	}
	for _, body := range []string{`{"conversation":null}`, `{"background":false}`, `{"container":{"skills":[]}}`, `{"container":null}`} {
		keyOf(t, responses, body)
	}
}

// A body that comes out of a JSON encoder the other way round has the same key, whatever is in it.
func FuzzKey(f *testing.F) {
	for _, body := range []string{
		bodies[messages], `{"a":{"b":[1,{"c":"\u00e9\ud83d\ude00"}],"cache_control":{}},"input":{"cache_control":[]}}`,
		`{"a":1,"a":2}`, strings.Repeat(`{"a":`, 500) + "1" + strings.Repeat("}", 500), "{\"\xff\":\"\\ud800\"}", `{"a":1e400,"b":-0.0}`,
	} {
		f.Add(body)
	}
	f.Fuzz(func(t *testing.T, body string) {
		q := &saved.Question{Method: http.MethodPost, Path: messages, Body: []byte(body)}
		key, err := q.Key()
		if err != nil {
			return
		}
		var indented strings.Builder
		d := json.NewDecoder(strings.NewReader(body))
		d.UseNumber()
		var v map[string]any
		if d.Decode(&v) != nil || !utf8.ValidString(body) || strings.Contains(body, `\u`) || repeats(body) {
			return
		}
		e := json.NewEncoder(&indented)
		e.SetIndent(" ", "\t")
		if err := e.Encode(v); err != nil {
			return
		}
		q.Body = []byte(indented.String())
		if again, err := q.Key(); err != nil || again != key {
			t.Errorf("%q has the key %v, and %q %v, %v", body, key, q.Body, again, err)
		}
	})
}

// repeats reports whether an object may have two members of one name, of which an encoder keeps one.
func repeats(body string) bool {
	seen := map[string]bool{}
	d := json.NewDecoder(strings.NewReader(body))
	for {
		token, err := d.Token()
		if err != nil {
			return false
		}
		if text, isText := token.(string); isText {
			if seen[text] {
				return true
			}
			seen[text] = true
		}
	}
}
