package gateway_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"holdfast"
	"holdfast/gateway"
	"holdfast/telemetry"
)

// No key, prompt or answer is in a log line at any level, in a record, on a page of the admin listener, in a metric or in
// an error of our own (B160, B161, B163, B164).

const (
	canaryTail = "8f3k2j9d7s6a5q4w"
	canary     = "sk-CANARY-" + canaryTail
	secretText = "a prompt that nobody else may read"
	secretSays = "an answer that nobody else may read"
)

// watcher collects all that the gateway tells anybody but the caller.
type watcher struct {
	mu      sync.Mutex
	text    bytes.Buffer
	metrics *telemetry.Metrics
}

func (w *watcher) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.Write(p)
}

func (w *watcher) Call(r gateway.Record) {
	w.metrics.Call(r)
	_, _ = fmt.Fprintf(w, "record %+v %+v\n", r, r.Report())
}

func (w *watcher) Event(e holdfast.Event) {
	w.metrics.Event(e)
	_, _ = fmt.Fprintf(w, "event %+v\n", e)
}

// watch opens the gateway with everything that it can tell switched on, in all formats.
func (h *house) watch(s gateway.Settings) *watcher {
	h.t.Helper()
	w := &watcher{metrics: telemetry.New()}
	all := &slog.HandlerOptions{Level: slog.LevelDebug - 100, AddSource: true}
	s.Log = slog.New(slog.NewMultiHandler(slog.NewTextHandler(w, all), slog.NewJSONHandler(w, all)))
	s.Observer = w
	h.open(s)
	w.metrics.Watch(h.gateway.Status)
	return w
}

// told is all of it, with every page of the admin listener.
func (h *house) told(w *watcher) string {
	h.t.Helper()
	synctest.Wait() // the record comes after the reply
	admin := h.gateway.Admin(w.metrics.Handler())
	for _, page := range []string{"/", "/readyz", "/metrics", "/api/status", "/api/calls?limit=1000", "/api/calls/nothing-" + canary} {
		r := httptest.NewRequest(http.MethodGet, page, nil)
		got := httptest.NewRecorder()
		admin.ServeHTTP(got, r)
		_, _ = fmt.Fprintf(w, "page %s %d\n%s\n", strings.ReplaceAll(page, canary, ""), got.Code, got.Body)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.String()
}

// leaks lists what of the canary, or of the texts, is in a text: any eight letters are too many.
func leaks(text string) (found []string) {
	for i := range len(canaryTail) - 7 {
		if piece := canaryTail[i : i+8]; strings.Contains(text, piece) {
			found = append(found, piece)
		}
	}
	for _, word := range []string{"CANARY", secretText, secretSays} {
		if strings.Contains(text, word) {
			found = append(found, word)
		}
	}
	return found
}

// around is the text about the first find, for whoever looks for the leak.
func around(text, piece string) string {
	at := strings.Index(text, piece)
	return text[max(0, at-300):min(len(text), at+100)]
}

// carriers are the places in which a caller may send a key.
var carriers = []struct {
	name, path string
	headers    []string
	model      string
}{
	{name: "x-api-key", headers: []string{"X-Api-Key: " + canary}},
	{name: "bearer", headers: []string{"X-Api-Key: ", "Authorization: Bearer " + canary}},
	{name: "basic", headers: []string{"X-Api-Key: ", "Authorization: Basic " + canary}},
	{name: "api-key", headers: []string{"X-Api-Key: ", "Api-Key: " + canary}},
	{name: "holdfast-key", headers: []string{"Holdfast-Key: " + canary}},
	{name: "cookie", headers: []string{"Cookie: session=" + canary}},
	{name: "own header", headers: []string{"X-Custom-Auth: " + canary}},
	{name: "name of a header", headers: []string{"X-" + canary + ": 1"}},
	{name: "user agent", headers: []string{"User-Agent: client/1 " + canary}},
	{name: "deadline", headers: []string{"Holdfast-Deadline: " + canary}},
	{name: "stainless", headers: []string{"X-Stainless-Timeout: " + canary, "X-Stainless-Retry-Count: " + canary}},
	{name: "version and beta", headers: []string{"Anthropic-Version: " + canary, "Anthropic-Beta: " + canary}},
	{name: "query", path: "?key=" + canary},
	{name: "path", path: "/" + canary},
	{name: "path, escaped", path: "/%73k-CANARY-" + canaryTail},
	{name: "model", model: canary},
}

// mishaps are what may become of the request at the upstream, which says the canary wherever it can.
var mishaps = []struct {
	name  string
	serve http.HandlerFunc
}{
	{"success", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Request-Id", canary)
		_, _ = io.WriteString(w, `{"type":"message","role":"assistant","content":[{"type":"text","text":"`+secretSays+`"}],"stop_reason":"end_turn","usage":{"input_tokens":1,"output_tokens":1}}`)
	}},
	{"401", refusing(401, `{"type":"error","error":{"type":"authentication_error","message":"Incorrect API key provided: `+canary+`. You asked for it."}}`)},
	{"429", refusing(429, `{"type":"error","error":{"type":"rate_limit_error","message":"key `+canary+` is too fast","code":"`+canary+`"},"request_id":"`+canary+`"}`)},
	{"400", refusing(400, `{"error":{"type":"`+canary+`","message":"unknown key=`+canary+`"}}`)},
	{"500 in HTML", refusing(500, `<html><title>`+canary+`</title><body>http://user:`+canary+`@internal/?key=`+canary+`</body></html>`)},
	{"an error in a stream", streaming("event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"" + canary + "\"}}\n\n")},
	{"a cut stream", streaming("event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"" + secretSays + "\"}}\n\nevent: err")},
	{"a malformed header", func(w http.ResponseWriter, _ *http.Request) {
		hijacked(w, "HTTP/1.1 200 OK\r\nBad Header "+canary+"\r\n\r\n")
	}},
	{"silence", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }},
	{"a reset", func(w http.ResponseWriter, _ *http.Request) { hijacked(w, "") }},
}

func refusing(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Request-Id", canary)
		w.Header().Set("Retry-After", canary)
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

func streaming(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, text)
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}
}

func hijacked(w http.ResponseWriter, text string) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(err)
	}
	_, _ = io.WriteString(conn, text)
	_ = conn.Close()
}

func TestB161_KeyOfTheCallerIsToldNobody(t *testing.T) {
	for _, m := range mishaps {
		bubble(t, m.name, func(t *testing.T) {
			h := newHouse(t)
			h.handle("api", m.serve)
			s := one("api", "")
			s.Policy = holdfast.Policy{Attempts: 2, AttemptTimeout: 10 * time.Second}
			w := h.watch(s)
			for _, c := range carriers {
				model := "claude-sonnet-5-5"
				if c.model != "" {
					model = c.model
				}
				body := fmt.Sprintf(`{"model":%q,"max_tokens":1,"metadata":{"user_id":%q},"messages":[{"role":"user","content":%q}]}`, model, canary, secretText)
				h.ask("/v1/messages"+c.path, body, c.headers...)
				h.ask("/v1/chat/completions"+c.path, streamed(body), c.headers...)
				h.do(t.Context(), http.MethodGet, "/v1/models"+c.path, "", c.headers...)
			}
			told := h.told(w)
			if found := leaks(told); found != nil {
				t.Errorf("it tells %q:\n…%s…", found, around(told, found[0]))
			}
			if n := strings.Count(told, "\nrecord "); n < 3*len(carriers)-1 {
				t.Errorf("%d records of %d calls: nothing was watched", n, 3*len(carriers))
			}
		})
	}
}

// The keys of the gateway's own configuration, and one in the query of a target's URL.
func TestB164_KeyOfTheGatewayIsToldNobody(t *testing.T) {
	for _, m := range mishaps {
		bubble(t, m.name, func(t *testing.T) {
			h := newHouse(t)
			h.handle("api", m.serve)
			sum := sha256.Sum256([]byte("vk-good"))
			w := h.watch(gateway.Settings{
				Targets: []gateway.Target{
					{Name: "api", URL: "http://api.test/v1?key=" + canary, Keys: []gateway.Key{{Secret: canary}, {Name: "b", Secret: canary + "b"}}},
					{Name: "gone", URL: "http://gone.test/" + url.PathEscape("?key="+canary), Keys: []gateway.Key{{Secret: canary}}},
				},
				Clients: []gateway.Client{{Name: "alice", KeySHA256: hex.EncodeToString(sum[:])}},
				Policy:  holdfast.Policy{Attempts: 2, AttemptTimeout: 10 * time.Second},
			})
			replies := ""
			for _, body := range []string{message, streamed(message)} {
				r := h.ask("/v1/messages", body, "X-Api-Key: vk-good")
				replies += fmt.Sprint(r.StatusCode) + " "
			}
			told := h.told(w)
			if found := leaks(told); found != nil {
				t.Errorf("it tells %q:\n…%s…", found, around(told, found[0]))
			}
			if !strings.Contains(told, "\nrecord ") || !strings.Contains(told, "Client:alice") {
				t.Errorf("nothing was watched: %s", told)
			}
			t.Log(replies)
		})
	}
}

// A connection that cannot be made has the URL in its error, and the answer is an error of our own.
func TestB160_OurOwnErrorsHoldNoKey(t *testing.T) {
	for _, failure := range []error{
		errors.New("dial tcp: lookup api.test?key=" + canary),
		&url.Error{Op: "Post", URL: "http://api.test/?key=" + canary, Err: &net.OpError{Op: "dial", Err: errors.New("connection refused, Authorization: Bearer " + canary)}},
		&net.DNSError{Err: "no such host", Name: canary, IsNotFound: true},
		fmt.Errorf("proxy http://user:%s@proxy.test: %w", canary, io.ErrUnexpectedEOF),
	} {
		bubble(t, fmt.Sprintf("%T", failure), func(t *testing.T) {
			h := newHouse(t)
			s := one("api", "")
			s.Base = failing{failure}
			s.Policy.Attempts = 2
			w := h.watch(s)
			r := h.ask("/v1/messages?key="+canary, message, "X-Api-Key: "+canary)
			if r.StatusCode < 500 && r.StatusCode != 400 || r.Header.Get("Holdfast-Trace") == "" {
				t.Errorf("got %d %s", r.StatusCode, r.body)
			}
			told := h.told(w) + fmt.Sprint(r.Header) + r.body
			if found := leaks(told); found != nil {
				t.Errorf("it tells %q:\n…%s…", found, around(told, found[0]))
			}
		})
	}
}

type failing struct{ err error }

func (f failing) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		_ = r.Body.Close()
	}
	return nil, f.err
}

func TestB163_UnknownClientKeyIsToldNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t)
		asked := 0
		h.handle("api", func(http.ResponseWriter, *http.Request) { asked++ })
		s := one("api", "")
		s.Clients = []gateway.Client{{Name: "alice", KeySHA256: strings.Repeat("0", 64)}}
		w := h.watch(s)
		for _, c := range carriers {
			r := h.ask("/v1/messages"+c.path, message, append([]string{"X-Api-Key: vk-CANARY-" + canaryTail}, c.headers...)...)
			if r.StatusCode != http.StatusUnauthorized || asked != 0 {
				t.Errorf("%s: status %d, the upstream was asked %d times", c.name, r.StatusCode, asked)
			}
			if found := leaks(r.body + fmt.Sprint(r.Header)); found != nil {
				t.Errorf("%s: the reply tells %q: %s", c.name, found, r.body)
			}
		}
		told := h.told(w)
		if found := leaks(told); found != nil {
			t.Errorf("it tells %q:\n…%s…", found, around(told, found[0]))
		}
		if n := strings.Count(told, "call rejected"); n != 2*len(carriers) {
			t.Errorf("%d lines of %d rejected calls in two formats", n, len(carriers))
		}
	})
}

// A panic may have anything in its value.
func TestPanicIsToldWithoutItsValue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t)
		s := one("api", "")
		s.Base = panicking{}
		w := h.watch(s)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		h.do(ctx, http.MethodPost, "/v1/messages", message, "X-Api-Key: "+canary)
		told := h.told(w)
		if found := leaks(told); found != nil {
			t.Errorf("it tells %q:\n…%s…", found, around(told, found[0]))
		}
		if !strings.Contains(told, "msg=panic") || !strings.Contains(told, "Outcome:failed") {
			t.Errorf("nobody is told of the panic:\n%s", told)
		}
	})
}

type panicking struct{}

func (panicking) RoundTrip(*http.Request) (*http.Response, error) { panic("key " + canary) }
