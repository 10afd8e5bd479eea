package transport_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"holdfast"
	"holdfast/transport"
)

func TestFalseSuccess(t *testing.T) {
	const busy = `{"error":{"code":429,"message":"busy"}}`
	const refused = `{"type":"message","role":"assistant","content":[],"stop_reason":"refusal","usage":{"input_tokens":3,"output_tokens":0}}`
	for _, c := range []struct {
		name     string
		path     string
		first    http.HandlerFunc
		requests int    // with a good answer as the second
		final    int    // the status when the first repeats for ever
		kept     string // and the body, if it is the upstream's
	}{
		{"B89 no choices", "/v1/chat/completions", respond(200, `{"choices":[]}`), 2, 502, ""},
		{"B89 no content", "/v1/messages", respond(200, `{"type":"message","content":[],"stop_reason":"end_turn"}`), 2, 200, `{"type":"message","content":[],"stop_reason":"end_turn"}`},
		{"B89 nothing at all", "/v1/messages", respond(200, ""), 2, 502, ""},
		{"B89 a refusal is an answer", "/v1/messages", respond(200, refused), 1, 200, refused},
		{"B89 so is a tool call without text", "/v1/chat/completions", respond(200, `{"choices":[{"message":{"content":null,"tool_calls":[{"id":"a"}]},"finish_reason":"tool_calls"}]}`), 1, 200, `{"choices":[{"message":{"content":null,"tool_calls":[{"id":"a"}]},"finish_reason":"tool_calls"}]}`},
		{"B168 an unknown stop reason", "/v1/messages", respond(200, strings.Replace(message, "end_turn", "foo_bar", 1)), 1, 200, strings.Replace(message, "end_turn", "foo_bar", 1)},
		{"an answer of the full length", "/v1/messages", respond(200, strings.Replace(message, "end_turn", "max_tokens", 1)), 1, 200, strings.Replace(message, "end_turn", "max_tokens", 1)},
		{"B90 an error inside", "/v1/chat/completions", respond(200, busy), 2, 429, busy},
		{"B29 an error with its code as text", "/v1/chat/completions", respond(200, `{"error":{"code":"502","message":"provider unavailable"}}`), 2, 502, `{"error":{"code":"502","message":"provider unavailable"}}`},
		{"a page", "/v1/messages", respond(200, "<html>", "content-type: text/html"), 2, 502, ""},
		{"an answer cut by its length", "/v1/messages", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "1000")
			respond(200, message)(w, r)
		}, 2, 502, ""},
		{"an answer cut without its last chunk", "/v1/messages", then(respond(200, message[:20]), flush, abort), 2, 502, ""},
		{"an answer cut that ends cleanly", "/v1/messages", respond(200, message[:60]), 2, 502, ""},
		{"B88 an answer in two pieces", "/v1/messages", then(respond(200, message[:20]), flush, rest(50*time.Millisecond), piece(message[20:])), 1, 200, message},
		{"another path is not judged", "/v1/other", respond(200, `{"choices":[]}`), 1, 200, `{"choices":[]}`},
	} {
		bubble(t, c.name, func(t *testing.T) {
			u := serve(t, c.first, good)
			client := u.through(transport.New(&holdfast.Policy{Dice: half}, nil))
			resp, err := client.Post(u.URL+c.path, "application/json", strings.NewReader(prompt))
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			if got := text(t, resp); c.requests == 2 && got != message {
				t.Errorf("got %q", got)
			}
			u.expect(t, c.requests)
		})
		bubble(t, c.name+" for ever", func(t *testing.T) {
			u := serve(t, c.first)
			client := u.through(transport.New(&holdfast.Policy{Dice: half, Attempts: 2}, nil))
			resp, err := client.Post(u.URL+c.path, "application/json", strings.NewReader(prompt))
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			got := text(t, resp)
			if resp.StatusCode != c.final || c.kept != "" && got != c.kept {
				t.Errorf("got %d %s, want %d %s", resp.StatusCode, got, c.final, c.kept)
			}
			if c.requests == 2 && (transport.ErrorOf(resp) == nil || resp.Header.Get("X-Should-Retry") != "false") {
				t.Error("the caller is not told that it failed")
			}
		})
	}
}

func flush(w http.ResponseWriter, _ *http.Request) { _ = http.NewResponseController(w).Flush() }

func piece(s string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, s) }
}

func TestRefusalIsSeenAndNotRepeated(t *testing.T) {
	const refused = `{"type":"message","role":"assistant","content":[],"stop_reason":"refusal","usage":{"input_tokens":3,"output_tokens":0}}`
	for name, script := range map[string]http.HandlerFunc{
		"JSON":   respond(200, refused),
		"stream": stream(start, strings.Replace(reason, "end_turn", "refusal", 1), end),
	} {
		bubble(t, "B168 "+name, func(t *testing.T) {
			u := serve(t, script)
			policy, verdicts := watched(1)
			resp := ask(t, u.through(transport.New(policy, nil)), u.URL)
			text(t, resp)
			u.expect(t, 1)
			if resp.StatusCode != 200 || transport.ErrorOf(resp) != nil || resp.Header.Get("X-Should-Retry") != "" {
				t.Errorf("it came back as %d with %v", resp.StatusCode, transport.ErrorOf(resp))
			}
			if v := verdicts(); len(v) != 1 || v[0].Kind != holdfast.Refused {
				t.Errorf("the verdicts are %+v", v)
			}
			if policy.Breaker.State() != holdfast.Closed {
				t.Error("a refusal opened the breaker")
			}
		})
		bubble(t, "goes to another model if the policy says so, "+name, func(t *testing.T) {
			second := good
			if name == "stream" {
				second = stream(complete)
			}
			u := serve(t, script, second)
			policy := &holdfast.Policy{RefusalFallback: true, Targets: []holdfast.Target{{Name: "a", Model: "x"}, {Name: "b", Model: "y"}}}
			resp := ask(t, u.through(transport.New(policy, nil)), u.URL)
			if got := text(t, resp); got != message && got != complete {
				t.Errorf("got %s", got)
			}
			if got := resp.Header.Get("Holdfast-Source"); got != "fallback" {
				t.Errorf("holdfast-source is %q", got)
			}
			u.expect(t, 2)
		})
		bubble(t, "comes back as it came if that one refuses too, "+name, func(t *testing.T) {
			u := serve(t, script)
			policy := &holdfast.Policy{RefusalFallback: true, Targets: []holdfast.Target{{Name: "a", Model: "x"}, {Name: "b", Model: "y"}}}
			resp := ask(t, u.through(transport.New(policy, nil)), u.URL)
			if got := text(t, resp); resp.StatusCode != 200 || !strings.Contains(got, "refusal") {
				t.Errorf("got %d %s", resp.StatusCode, got)
			}
			u.expect(t, 2)
		})
	}
}

func TestLongAnswersAreHandedOverUnread(t *testing.T) {
	long := strings.Replace(message, "hello", strings.Repeat("hello", 1000), 1)
	for name, script := range map[string]http.HandlerFunc{
		"known length": func(w http.ResponseWriter, r *http.Request) {
			respond(200, long)(w, r)
		},
		"chunks": then(respond(200, long[:500]), flush, piece(long[500:])),
	} {
		for _, most := range []int{-1, 100, len(long) - 1, len(long), 0} {
			bubble(t, name, func(t *testing.T) {
				u := serve(t, script)
				policy, verdicts := watched(1)
				resp := ask(t, u.through(&transport.Transport{Policy: policy, MaxAnswer: most}), u.URL)
				if got := text(t, resp); got != long {
					t.Errorf("with MaxAnswer %d got %d bytes, want %d", most, len(got), len(long))
				}
				if v := verdicts(); len(v) != 1 || v[0].Kind != holdfast.OK {
					t.Errorf("the verdicts are %+v", v)
				}
			})
		}
	}
}

func TestUnreadAnswers(t *testing.T) {
	for _, c := range []struct {
		name   string
		script http.HandlerFunc
		fails  bool
		kind   holdfast.Kind
	}{
		{"to the end", respond(200, "data"), false, holdfast.OK},
		{"without a body", respond(204, ""), false, holdfast.OK},
		{"a redirect", respond(304, ""), false, holdfast.OK},
		{"cut", then(respond(200, "data"), flush, abort), true, holdfast.Broken},
	} {
		bubble(t, c.name, func(t *testing.T) {
			u := serve(t, c.script)
			policy, verdicts := watched(1)
			resp, err := u.through(transport.New(policy, nil)).Get(u.URL + "/v1/files/1/content")
			if err != nil {
				t.Fatal(err)
			}
			if len(verdicts()) != 0 && resp.ContentLength > 0 {
				t.Error("it was settled before its end")
			}
			_, err = io.ReadAll(resp.Body)
			if (err != nil) != c.fails || err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Errorf("reading ended with %v", err)
			}
			resp.Body.Close()
			if v := verdicts(); len(v) != 1 || v[0].Kind != c.kind {
				t.Errorf("the verdicts are %+v, want one %v", v, c.kind)
			}
		})
	}
}

func TestB133_CallerWhoLeavesEndsTheUpstreamsWork(t *testing.T) {
	for name, c := range map[string]struct {
		script http.HandlerFunc
		path   string
	}{
		"answer":                      {hang, "/v1/messages"},
		"B134 stream without content": {then(stream(start, ping), hang), "/v1/messages"},
		"unread":                      {then(respond(200, "data"), flush, hang), "/v1/files/1"},
	} {
		bubble(t, name, func(t *testing.T) {
			gone := make(chan time.Time, 1)
			u := serve(t, func(w http.ResponseWriter, r *http.Request) {
				c.script(w, r)
				gone <- time.Now()
			})
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			began := time.Now()
			resp, err := u.through(transport.New(nil, nil)).Do(request(t, ctx, "POST", u.URL+c.path, strings.NewReader(prompt)))
			if err == nil {
				_, err = failedRead(resp)
				resp.Body.Close()
			}
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("got %v", err)
			}
			if took := (<-gone).Sub(began); took > 2*time.Second {
				t.Errorf("the upstream worked for %v", took)
			}
			u.expect(t, 1)
		})
	}
}
