package e2e_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"holdfast"
	"holdfast/gateway"
	"holdfast/internal/testnet"
	"holdfast/saved"
	"holdfast/telemetry"
)

// Keys are told as such by how they begin; a prompt is told by nothing, and must be nowhere in the first place.
const (
	canary       = "sk-CANARY-0a1b2c3d4e5f6071"
	clientCanary = "hf-CANARY-1029384756afbecd"
	ownCanary    = "66778899aabbccddxOWNx" // as most clouds have them, keys without a mark
	plainCanary  = "0f1e2d3c4b5a6978xCALLERx"
	promptCanary = "zqxjwvkp-PR0MPT-qqzzxxjj"
	answerCanary = "jjxxzzqq-4NSW3R-pkvwjxqz"
)

// ears hear everything that a gateway tells anybody but its caller and its upstream.
type ears struct {
	mu    sync.Mutex
	text  bytes.Buffer
	other gateway.Observer
}

func (e *ears) Write(p []byte) (int, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.text.Write(p)
}

func (e *ears) Call(r gateway.Record)    { _, _ = fmt.Fprintf(e, "%+v\n", r); e.other.Call(r) }
func (e *ears) Event(v holdfast.Event)   { fmt.Fprintf(e, "%+v\n", v); e.other.Event(v) }
func (e *ears) heard(secret string) bool { return e.told(secret) != "" }

// told is where a secret, or any eight characters of it in a row, was heard.
func (e *ears) told(secret string) string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return pieceOf(e.text.String(), secret)
}

const pieceLength = 8

func pieceOf(text, secret string) string {
	for at := 0; at+pieceLength <= len(secret); at++ {
		if i := strings.Index(text, secret[at:at+pieceLength]); i >= 0 {
			return text[max(0, i-200):min(len(text), i+200)]
		}
	}
	return ""
}

// panicking is a base that has a mistake of its own, and tells the key with it.
type panicking struct{}

func (panicking) RoundTrip(req *http.Request) (*http.Response, error) {
	panic(fmt.Sprintf("broken: %v %v", req.URL, req.Header)) //nolint:forbidigo // that is the case
}

// telling is a base whose errors tell everything.
type telling struct{}

func (telling) RoundTrip(req *http.Request) (*http.Response, error) {
	return nil, fmt.Errorf("Get %q with %v: %w", req.URL, req.Header, errors.New("connection refused"))
}

// B160 B161 B163 B164: keys reached logs, pages, metrics, errors and crash reports. They are sent in every place in which they
// can travel, and looked for in everything that is told.
func TestB160_B161_B163_B164_NoKeyIsToldAnybody(t *testing.T) {
	for name, play := range secretFaults() {
		for _, stream := range []bool{false, true} {
			for place, send := range secretPlaces {
				t.Run(fmt.Sprint(name, "/", place, "/", stream), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) { tellsNothing(t, play, stream, send) })
				})
			}
		}
	}
}

// secretPlaces are where a key travels.
var secretPlaces = map[string]func(*http.Request){
	"x-api-key":     func(r *http.Request) { r.Header.Set("X-Api-Key", canary) },
	"authorization": func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+canary) },
	"basic":         func(r *http.Request) { r.Header.Set("Authorization", "Basic "+canary) },
	"api-key":       func(r *http.Request) { r.Header.Set("Api-Key", canary) },
	"without mark":  func(r *http.Request) { r.Header.Set("Api-Key", plainCanary) },
	"bearer w/o":    func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+plainCanary) },
	"cookie":        func(r *http.Request) { r.Header.Set("Cookie", "session="+canary) },
	"query":         func(r *http.Request) { r.URL.RawQuery = "key=" + canary + "&api_key=" + canary },
	"custom header": func(r *http.Request) { r.Header.Set("X-My-Auth", canary) },
	"metadata":      func(r *http.Request) { setBody(r, `"metadata":{"user_id":"`+canary+`"},`) },
	"model":         func(r *http.Request) { setBody(r, `"model":"`+canary+`",`) },
	"user agent":    func(r *http.Request) { r.Header.Set("User-Agent", canary) },
	"path":          func(r *http.Request) { r.URL.Path = "/v1/" + canary + "/messages" },
	"deadline":      func(r *http.Request) { r.Header.Set("Holdfast-Deadline", canary) },
	"beta":          func(r *http.Request) { r.Header.Set("Anthropic-Beta", canary) },
	"a wrong key":   func(r *http.Request) { r.Header.Set("Holdfast-Key", "vk-"+canary) },
}

func setBody(r *http.Request, field string) {
	old, _ := io.ReadAll(r.Body)
	body := strings.Replace(string(old), "{", "{"+field, 1)
	r.Body, r.ContentLength = io.NopCloser(strings.NewReader(body)), int64(len(body))
}

// secretFault is what an upstream or a base does.
type secretFault struct {
	upstream http.HandlerFunc
	base     http.RoundTripper
	gone     bool // nobody listens
}

func secretFaults() map[string]secretFault {
	reply := func(status int, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(status)
			_, _ = io.WriteString(w, body)
		}
	}
	echo := func(status int) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			said := fmt.Sprintf("bad key %s%s%s in %s %s", r.Header.Get("X-Api-Key"), r.Header.Get("Authorization"), r.Header.Get("Api-Key"), r.URL.RawQuery, r.Header.Get("Cookie"))
			reply(status, fmt.Sprintf(`{"type":"error","error":{"type":"invalid_request_error","message":%q}}`, said))(w, r)
		}
	}
	return map[string]secretFault{
		"success":           {upstream: reply(200, `{"type":"message","role":"assistant","content":[{"type":"text","text":"`+answerCanary+`"}],"stop_reason":"end_turn","usage":{"input_tokens":1,"output_tokens":1}}`)},
		"429":               {upstream: reply(429, `{"type":"error","error":{"type":"rate_limit_error","message":"x"}}`)},
		"401":               {upstream: reply(401, `{"type":"error","error":{"type":"authentication_error","message":"x"}}`)},
		"500":               {upstream: reply(500, `{"type":"error","error":{"type":"api_error","message":"x"}}`)},
		"401 with an echo":  {upstream: echo(401)},
		"500 with an echo":  {upstream: echo(500)},
		"200 that is a 500": {upstream: echo(200)},
		"timeout":           {upstream: func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }},
		"reset":             {upstream: func(_ http.ResponseWriter, r *http.Request) { testnet.ConnOf(r).Reset() }},
		"refused":           {gone: true},
		"a panic":           {base: panicking{}},
		"errors that tell":  {base: telling{}},
		"cut": {upstream: func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":1}}}\n\nevent: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\""+answerCanary+"\"}}\n\n")
			_ = http.NewResponseController(w).Flush()
			time.Sleep(time.Second)
			testnet.ConnOf(r).Reset()
		}},
	}
}

func tellsNothing(t *testing.T, play secretFault, stream bool, send func(*http.Request)) {
	metrics := telemetry.New()
	all := &ears{other: metrics}
	net := testnet.New()
	if !play.gone && play.base == nil {
		net.Serve(t, "api.test:80", play.upstream)
	}
	base := play.base
	if base == nil {
		base = net.Client().Transport
	}
	file := filepath.Join(t.TempDir(), "answers.db")
	store, err := saved.Open(file, saved.Options{})
	if err != nil {
		t.Fatal(err)
	}
	g, err := gateway.New(gateway.Settings{
		Targets: []gateway.Target{{Name: "api", URL: "http://api.test"}, {Name: "own", URL: "http://api.test/own", Keys: []gateway.Key{{Secret: ownCanary}}, Auth: "bearer"}},
		Routes:  []gateway.Route{{Name: "all", Chain: []gateway.Entry{{Target: "api"}, {Target: "own"}, {Saved: true}}}},
		Policy:  holdfast.Policy{Attempts: 2, AttemptTimeout: time.Minute, Dice: func() float64 { return 1 }},
		Clients: []gateway.Client{{Name: "web", KeySHA256: digest(clientCanary)}}, Saved: store,
		Base: base, Log: slog.New(slog.NewTextHandler(all, &slog.HandlerOptions{Level: slog.LevelDebug})), Observer: all,
	})
	if err != nil {
		t.Fatal(err)
	}
	server := net.Serve(t, "gateway.test:80", g, func(s *http.Server) { s.ErrorLog = slog.NewLogLogger(slog.NewTextHandler(all, nil), slog.LevelError) })

	body := `{"model":"claude-sonnet-5-5","max_tokens":9,"messages":[{"role":"user","content":"` + promptCanary + `"}]}`
	if stream {
		body = strings.Replace(body, "{", `{"stream":true,`, 1)
	}
	req, err := http.NewRequestWithContext(context.Background(), http.MethodPost, server.URL+"/v1/messages", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Anthropic-Version", "2023-06-01")
	req.Header.Set("Holdfast-Key", clientCanary)
	send(req)
	resp, err := net.Client().Do(req)
	if err == nil {
		said, _ := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if where := pieceOf(string(said), ownCanary); where != "" {
			t.Errorf("the caller was told the gateway's own key: %s", where)
		}
		if resp.Header.Get("Content-Type") == "application/json" && strings.Contains(string(said), "Holdfast") { // an error of our own
			fmt.Fprintf(all, "reply: %v %s\n", resp.Header, said)
		}
	}
	synctest.Wait()
	admin := g.Admin(metrics.Handler())
	pages := []string{"/", "/healthz", "/readyz", "/metrics", "/api/status", "/api/calls"}
	if resp != nil {
		pages = append(pages, "/api/calls/"+resp.Header.Get("Holdfast-Trace"))
	}
	for _, page := range pages {
		w := httptest.NewRecorder()
		admin.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "http://127.0.0.1"+page, nil))
		fmt.Fprintf(all, "%s: %d %s\n", page, w.Code, w.Body)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	files, _ := filepath.Glob(file + "*")
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, secret := range []string{canary, plainCanary, clientCanary, ownCanary, promptCanary} {
			if where := pieceOf(string(text), secret); where != "" {
				t.Errorf("the saved answers hold %q", where)
			}
		}
	}
	for _, secret := range []string{canary, plainCanary, clientCanary, ownCanary, promptCanary, answerCanary} {
		if all.heard(secret) {
			t.Errorf("told: %s", all.told(secret))
		}
	}
	if !all.heard("outcome=") {
		t.Error("nothing was heard at all")
	}
}

func digest(key string) string {
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:])
}
