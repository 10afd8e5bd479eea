package gateway_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"holdfast"
	"holdfast/gateway"
	"holdfast/standin"
)

// What an error means, and that it comes back as it was.

func TestFinalErrorsComeBackByteForByte(t *testing.T) {
	const quota = `{"error":{"type":"insufficient_quota","code":"credit_balance_exhausted","message":"x", "param":null}}`
	for _, c := range []struct {
		name     string
		status   int
		body     string
		headers  []string
		attempts int
		reason   string // of the verdict
	}{
		{"B17 B21 an allowance that is used up", 429, quota, nil, 1, "spent"},
		{"B21 the first of the codes", 429, `{"error":{"type":"insufficient_quota","code":"insufficient_quota","message":"you exceeded"}}`, nil, 1, "spent"},
		{"B20 a delay of days", 429, `{"error":{"type":"rate_limit_error","message":"monthly usage limit"}}`, []string{"Retry-After: 1382400"}, 1, "throttled"},
		{"B24 a prompt too long", 400, `{"error":{"type":"invalid_request_error","code":"context_length_exceeded","message":"x"}}`, nil, 1, "overflow"},
		{"B30 a bad key", 401, `{"type":"error","error":{"type":"authentication_error","message":"invalid x-api-key"}}`, nil, 1, "terminal"},
		{"B96 not there", 404, `{"type":"error","error":{"type":"not_found_error","message":"model: x"}}`, nil, 1, "terminal"},
		{"B96 too large, as a page", 413, "<html>too large</html>", []string{"Content-Type: text/html"}, 1, "terminal"},
		{"B96 overloaded", 529, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"},"request_id":"req_1"}`, []string{"Request-Id: req_1"}, 4, "overloaded"},
		{"B96 a fault", 500, `{"type":"error","error":{"type":"api_error","message":"x"}}`, nil, 4, "broken"},
		{"a body without an end of its own", 503, "upstream connect error or disconnect/reset before headers", []string{"Content-Type: text/plain"}, 4, "overloaded"},
		{"nothing at all", 502, "", nil, 4, "broken"},
	} {
		for path, body := range map[string]string{"/v1/messages": message, "/v1/chat/completions": chat, "/v1/messages stream": streamed(message), "/v1/chat/completions stream": streamed(chat)} {
			for _, zip := range []bool{false, true} {
				bubble(t, fmt.Sprintf("%s %s packed %v", c.name, path, zip), func(t *testing.T) {
					h := newHouse(t)
					reply := respond
					if zip {
						reply = packed
					}
					api := h.scripted("api", reply(c.status, c.body, append(c.headers, "X-Own: yes", "Anthropic-Ratelimit-Requests-Limit: 50")...))
					s := one("api", "")
					s.Base = h.plainBase()
					h.open(s)
					path, _, _ := strings.Cut(path, " ")
					r := h.ask(path, body) // which takes packed replies, and unpacks them
					if r.StatusCode != c.status || r.body != c.body || r.err != nil {
						t.Errorf("B82 got %d %q, %v", r.StatusCode, r.body, r.err)
					}
					for _, header := range append(c.headers, "X-Own: yes", "Anthropic-Ratelimit-Requests-Limit: 50", "X-Should-Retry: false") {
						name, value, _ := strings.Cut(header, ": ")
						if r.Header.Get(name) != value {
							t.Errorf("B82 %s is %q", name, r.Header.Get(name))
						}
					}
					if n := len(api.seen()); n != c.attempts {
						t.Errorf("%d attempts", n)
					}
					last := h.seen.last(t)
					if a := last.Trace.Attempts(); a[len(a)-1].Verdict.Kind.String() != c.reason {
						t.Errorf("the verdict is %v", a[len(a)-1].Verdict)
					}
				})
			}
		}
	}
}

// plainBase is a base that does not unpack, as that of a gateway.
func (h *house) plainBase() http.RoundTripper {
	base := h.Client().Transport.(*http.Transport)
	base.DisableCompression = true
	return base
}

func event(data string) string { return "data: " + data + "\n\n" }

// What calls itself a success and is none is asked for again, and if it is the last has a true status.
func TestFalseSuccesses(t *testing.T) {
	page := "[HTTP 502] <!DOCTYPE html><html><head><title>Bad gateway</title></head><body><h1>502</h1></body></html>"
	for _, c := range []struct {
		name, path, body string
		first            http.HandlerFunc
		again            bool
		status           []int // of the error when there is no other answer
	}{
		{"B27 an error of a proxy in the first event", "/v1/messages", streamed(message), parts("event: error\n" + event(`{"type":"error","error":{"type":"internal_error","message":"`+page+`"}}`)), true, []int{500, 502}},
		{"B29 a code that is a number", "/v1/chat/completions", chat, respond(200, `{"error":{"code":502,"message":"provider unavailable"}}`), true, []int{502}},
		{"B29 a code that is a text", "/v1/chat/completions", chat, respond(200, `{"error":{"code":"502","message":"provider unavailable"}}`), true, []int{502}},
		{"B29 a code in a stream", "/v1/chat/completions", streamed(chat), parts(event(`{"error":{"code":502,"message":"provider unavailable"}}`)), true, []int{502}},
		{"B29 a code in a stream as a text", "/v1/chat/completions", streamed(chat), parts(event(`{"error":{"code":"502","message":"provider unavailable"}}`)), true, []int{502}},
		{"B24 overflow in a stream", "/v1/chat/completions", streamed(chat), parts(event(`{"error":{"code":"context_length_exceeded","message":"x"}}`)), false, []int{400}},
		{"B90 an error object", "/v1/chat/completions", chat, respond(200, `{"error":{"code":429,"message":"busy"}}`), true, []int{429}},
		{"B90 an error in a choice", "/v1/chat/completions", chat, respond(200, `{"choices":[{"index":0,"finish_reason":"error","message":{"role":"assistant","content":""},"error":{"code":429,"message":"busy"}}]}`), true, []int{429}},
		{"B90 an error object in a stream", "/v1/chat/completions", streamed(chat), parts(event(`{"error":{"code":429,"message":"busy"}}`)), true, []int{429}},
		{"B92 a stream of nothing", "/v1/messages", streamed(message), parts(), true, []int{502}},
		{"B92 a stream of comments", "/v1/messages", streamed(message), parts(": hello\n\n: again\n\n"), true, []int{502}},
		{"B92 a stream of nothing but its end", "/v1/chat/completions", streamed(chat), parts("data: [DONE]\n\n"), true, []int{200, 502}},
		{"B93 a preamble, then an error", "/v1/messages", streamed(message), parts(start, ping, block, "event: error\n"+event(`{"type":"error","error":{"type":"overloaded_error","message":"busy"}}`)), true, []int{529}},
		{"an empty body", "/v1/messages", message, respond(200, ""), true, []int{502}},
		{"a page", "/v1/messages", message, respond(200, "<html>welcome</html>", "Content-Type: text/html"), true, []int{502}},
		{"half of an answer", "/v1/messages", message, respond(200, answer[:60]), true, []int{502}},
		{"a page for a stream", "/v1/messages", streamed(message), respond(200, "<html>welcome</html>", "Content-Type: text/html"), true, []int{502}},
	} {
		bubble(t, c.name, func(t *testing.T) {
			h := newHouse(t)
			api := h.scripted("api", c.first, good)
			always := h.scripted("always", c.first)
			other := h.scripted("other", good)
			h.open(gateway.Settings{
				Targets: []gateway.Target{target("api", ""), target("always", ""), target("other", "")},
				Policy:  holdfast.Policy{Attempts: 2},
				Routes: []gateway.Route{
					{Models: []string{"claude-sonnet-*", "gpt-5"}, Chain: []gateway.Entry{{Target: "api"}}},
					{Models: []string{"claude-opus-*", "gpt-6"}, Chain: []gateway.Entry{{Target: "always"}}},
					{Models: []string{"claude-haiku-*", "gpt-7"}, Chain: []gateway.Entry{{Target: "always"}, {Target: "other"}}},
				},
			})
			header := "X-None: 1"
			if strings.Contains(c.body, `"stream":true`) {
				header = wantsStream
			}
			asked := 1
			if c.again {
				asked = 2
				if r := h.ask(c.path, c.body, header); r.StatusCode != 200 || !strings.Contains(r.body, "hello") && !strings.Contains(r.body, "hi") || len(api.seen()) != 2 {
					t.Errorf("once: %d after %d attempts: %s", r.StatusCode, len(api.seen()), r.body)
				}
			}
			named := strings.NewReplacer("claude-sonnet-5-5", "claude-opus-4-8", "gpt-5", "gpt-6")
			r := h.ask(c.path, named.Replace(c.body), header)
			known := false
			for _, status := range c.status {
				known = known || r.StatusCode == status
			}
			if !known || r.Header.Get("X-Should-Retry") != "false" || len(always.seen()) != asked || strings.Contains(r.body, "<") {
				t.Errorf("for ever: %d %v after %d attempts: %s", r.StatusCode, r.Header, len(always.seen()), r.body)
			}
			if !c.again {
				return
			}
			named = strings.NewReplacer("claude-sonnet-5-5", "claude-haiku-4-5", "gpt-5", "gpt-7")
			if r := h.ask(c.path, named.Replace(c.body), header); r.StatusCode != 200 || r.Header.Get("Holdfast-Source") != "fallback" || len(other.seen()) != 1 {
				t.Errorf("with a fallback: %d %v, %s", r.StatusCode, r.Header, r.body)
			}
		})
	}
}

func TestEmptyAnswersAreNoAnswers(t *testing.T) {
	for _, c := range []struct {
		name, path, body, answer string
		empty                    bool
	}{
		{"no choice", "/v1/chat/completions", chat, `{"id":"c","object":"chat.completion","choices":[]}`, true},
		{"content of nothing", "/v1/messages", message, `{"type":"message","role":"assistant","content":[],"stop_reason":"end_turn"}`, true},
		{"content null", "/v1/chat/completions", chat, `{"choices":[{"index":0,"message":{"role":"assistant","content":null},"finish_reason":"stop"}]}`, true},
		{"content empty", "/v1/chat/completions", chat, `{"choices":[{"index":0,"message":{"role":"assistant","content":""},"finish_reason":"stop"}]}`, true},
		{"a refusal", "/v1/messages", message, `{"type":"message","role":"assistant","content":[],"stop_reason":"refusal"}`, false},
		{"a call of a tool", "/v1/chat/completions", chat, `{"choices":[{"index":0,"message":{"role":"assistant","content":null,"tool_calls":[{"id":"t","type":"function","function":{"name":"f","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}`, false},
	} {
		bubble(t, "B89 "+c.name, func(t *testing.T) {
			h := newHouse(t)
			a, b := h.scripted("a", respond(200, c.answer)), h.scripted("b", good)
			h.open(gateway.Settings{Targets: []gateway.Target{target("a", ""), target("b", "")}, Policy: holdfast.Policy{Attempts: -1}})
			r := h.ask(c.path, c.body)
			wantB := 0
			if c.empty {
				wantB = 1
			}
			if r.StatusCode != 200 || len(a.seen()) != 1 || len(b.seen()) != wantB || !c.empty && r.body != c.answer {
				t.Errorf("a %d, b %d: %d %s", len(a.seen()), len(b.seen()), r.StatusCode, r.body)
			}
			last := h.seen.last(t)
			kind := last.Trace.Attempts()[0].Verdict.Kind
			if (kind == holdfast.Broken) != c.empty {
				t.Errorf("the verdict is %v", kind)
			}
		})
	}
}

func TestB95_ClosedPortIsAnErrorWithAStatus(t *testing.T) {
	for path, body := range map[string]string{"/v1/messages": streamed(message), "/v1/chat/completions": streamed(chat)} {
		bubble(t, path, func(t *testing.T) {
			h := newHouse(t)
			h.open(one("nobody", ""))
			r := h.ask(path, body)
			if r.StatusCode != 502 || r.Header.Get("Content-Type") != "application/json" || r.Header.Get("X-Should-Retry") != "false" || !strings.HasPrefix(r.body, "{") {
				t.Errorf("got %d %v %s", r.StatusCode, r.Header, r.body)
			}
			if rec := h.seen.last(t); rec.Outcome != gateway.Failed || rec.Trace.Attempts()[0].Verdict.NotSent != true {
				t.Errorf("B49 B59 the record is %+v", rec)
			}
		})
	}
}

// A herd that was told one wait comes back spread, and nobody early.
func TestB16_HerdSpreads(t *testing.T) {
	bubble(t, "herd", func(t *testing.T) {
		h := newHouse(t)
		judge := h.upstream("api", standin.Plan{Steps: []standin.Step{{Kind: standin.HTTP, Status: 429, RetryAfter: "2", Times: 20, Delay: 100 * time.Millisecond}}})
		rolls := make(chan float64, 1000)
		for i := range cap(rolls) {
			rolls <- float64(i*617%1000) / 1000
		}
		s := one("api", "")
		h.openWith(s, func() float64 { return <-rolls })
		began := time.Now()
		done := make(chan reply)
		for i := range 20 {
			go func() { done <- h.ask("/v1/messages", strings.Replace(message, "one", fmt.Sprint(i), 1)) }()
		}
		for range 20 {
			if r := <-done; r.StatusCode != 200 {
				t.Errorf("got %d %s", r.StatusCode, r.body)
			}
		}
		windows := map[time.Duration]int{}
		for _, x := range judge.Journal()[20:] {
			after := x.Arrived.Sub(began) - 100*time.Millisecond // all were on their way when the first was told
			if after < 2*time.Second || after > 2*time.Second+8*time.Second {
				t.Errorf("came back after %v", after)
			}
			windows[after/(50*time.Millisecond)]++
		}
		for at, n := range windows {
			if n > 10 {
				t.Errorf("%d of 20 in one window of 50 ms, at %v", n, at*50*time.Millisecond)
			}
		}
	})
}
