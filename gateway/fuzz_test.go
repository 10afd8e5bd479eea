package gateway_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"holdfast"
	"holdfast/gateway"
	"holdfast/internal/wire"
)

// stub is an upstream without a network. It keeps what it was asked.
type stub struct {
	reply string
	kind  string
	seen  []*http.Request
	body  []string
}

func (s *stub) RoundTrip(req *http.Request) (*http.Response, error) {
	var body []byte
	if req.Body != nil {
		body, _ = io.ReadAll(req.Body)
		_ = req.Body.Close()
	}
	s.seen, s.body = append(s.seen, req), append(s.body, string(body))
	return &http.Response{
		StatusCode: 200, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{"Content-Type": {s.kind}},
		Body: io.NopCloser(strings.NewReader(s.reply)), ContentLength: int64(len(s.reply)), Request: req,
	}, nil
}

// Whatever a caller sends: it arrives as it was or rewritten as the route says, at the route's upstream and nowhere else,
// with one credential and without what concerns one connection alone.
func FuzzRequest(f *testing.F) {
	for _, seed := range []struct{ method, path, query, header, value, body string }{
		{"POST", "/v1/messages", "", "X-Api-Key", "sk-1", message},
		{"POST", "/v1/messages", "beta=true", "Authorization", "Bearer sk-1", streamed(message)},
		{"POST", "/v1/chat/completions", "", "Api-Key", "x", chat},
		{"POST", "/v1/responses", "", "Connection", "X-Api-Key, close", `{"model":"gpt-5","input":"q"}`},
		{"GET", "/v1/models/..%2f..%2fadmin", "a=%zz", "Holdfast-Deadline", "-5s", ""},
		{"PUT", "/../../etc/passwd", "", "Holdfast-Fallback", "off", "\x00\xff"},
		{"POST", "/v1/messages/batches", "", "X-Stainless-Timeout", "1e400", `{"requests":[]}`},
		{"POST", "//evil.test/v1/messages", "", "Upgrade", "websocket", `{"model":"a","model":"b","mod\u0065l":"c"}`},
		{"HEAD", "/v1/messages%00", "x=;", "Content-Encoding", "gzip", "\x1f\x8b\x08\x00"},
	} {
		f.Add(seed.method, seed.path, seed.query, seed.header, seed.value, seed.body)
	}
	f.Fuzz(func(t *testing.T, method, path, query, header, value, body string) {
		if !strings.HasPrefix(path, "/") || strings.ContainsAny(method, " /\x00") || method == "" {
			t.Skip()
		}
		u, err := url.ParseRequestURI(path)
		if err != nil {
			t.Skip()
		}
		u.RawQuery = query
		up := &stub{reply: answer, kind: "application/json"}
		g, err := gateway.New(gateway.Settings{
			Targets: []gateway.Target{{Name: "api", URL: "http://api.test/base", Keys: []gateway.Key{{Secret: "sk-own-key"}}, Auth: "bearer"}},
			Routes:  []gateway.Route{{Chain: []gateway.Entry{{Target: "api", Model: "other"}}}},
			Policy:  holdfast.Policy{Attempts: -1}, Base: up,
		})
		if err != nil {
			t.Fatal(err)
		}
		r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body))
		r.Method, r.URL, r.RequestURI, r.ContentLength = method, u, u.RequestURI(), int64(len(body))
		if header != "" && header != "Upgrade" && header != "Holdfast-Delivery" {
			r.Header.Set(header, value)
		}
		w := httptest.NewRecorder()
		g.ServeHTTP(w, r)
		for i, sent := range up.seen {
			if sent.URL.Host != "api.test" || sent.URL.Scheme != "http" || sent.Host != "api.test" || sent.URL.User != nil {
				t.Errorf("it went to %s, %s", sent.URL, sent.Host)
			}
			if !strings.HasPrefix(sent.URL.Path, "/base/") || sent.URL.RawQuery != query {
				t.Errorf("it went to %q, asked for %q", sent.URL, u)
			}
			if sent.Header.Get("Authorization") != "Bearer sk-own-key" || sent.Header.Get("X-Api-Key") != "" || sent.Header.Get("Api-Key") != "" {
				t.Errorf("its credentials are %v", sent.Header)
			}
			for name := range sent.Header {
				if strings.HasPrefix(name, "Holdfast-") || name == "Connection" || name == "Upgrade" || name == "Transfer-Encoding" {
					t.Errorf("%s came along", name)
				}
			}
			if asked := wire.ReadRequest([]byte(body)); up.body[i] != body && (asked.Model == "" || wire.ReadRequest([]byte(up.body[i])).Model != "other") {
				t.Errorf("%q arrived as %q", body, up.body[i])
			}
		}
		if len(up.seen) > 1 || w.Code < 200 || w.Header().Get("Holdfast-Trace") == "" {
			t.Errorf("%d requests, %d, %v", len(up.seen), w.Code, w.Header())
		}
	})
}

// ending is what can end a stream: its last event, an error of the upstream's own, and the mark of the other dialect.
var ending = regexp.MustCompile(`stop|error|\[DONE\]`)

// Whatever an upstream streams: what goes to the caller is what came, but for the end of a stream that broke off, which is
// an error event, and never a false end.
//
// An ending that lacks its blank line gets it.
func FuzzStream(f *testing.F) {
	for _, seed := range []string{fine, start + block + hello, start, "", "data: [DONE]\n\n", strings.ReplaceAll(fine, "\n", "\r\n"), "\xEF\xBB\xBF" + fine,
		start + block + hello + "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"x\"}}\n\n", ": c\n\nid: 1\nretry: x\n\ndata", fine[:len(fine)-9], "\x1f\x8b\x08"} {
		f.Add(seed, false)
		f.Add(seed, true)
	}
	f.Fuzz(func(t *testing.T, sent string, whole bool) {
		up := &stub{reply: sent, kind: "text/event-stream"}
		s := gateway.Settings{Targets: []gateway.Target{{Name: "api", URL: "http://api.test"}}, Policy: holdfast.Policy{Attempts: -1}, Base: up}
		if whole {
			s.Stream.Delivery = gateway.Whole
		}
		g, err := gateway.New(s)
		if err != nil {
			t.Fatal(err)
		}
		w := httptest.NewRecorder()
		g.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/v1/messages", strings.NewReader(streamed(message))))
		got := w.Body.String()
		if w.Code != 200 || got == sent {
			return
		}
		kept, _, broken := strings.Cut(got, "event: error\ndata: {\"type\":\"error\",\"error\":{\"details\":null,\"type\":")
		if !broken {
			kept = strings.TrimRight(strings.TrimSuffix(got, over), "\r\n") // what lacks its last event gets it
		}
		if !strings.HasPrefix(sent, kept) || broken && strings.HasSuffix(got, over) || !broken && !ending.MatchString(got) {
			t.Errorf("%q became %q", sent, got)
		}
	})
}
