package gateway_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"holdfast"
	"holdfast/gateway"
	"holdfast/standin"
)

func one(name, dialect string) gateway.Settings {
	return gateway.Settings{Targets: []gateway.Target{target(name, dialect)}}
}

func TestRequestArrivesAsSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t)
		var got *http.Request
		var body string
		h.handle("api", func(w http.ResponseWriter, r *http.Request) {
			text, _ := io.ReadAll(r.Body)
			got, body = r, string(text)
			w.Header().Set("X-Own", "yes")
			w.Header().Set("Connection", "X-Hop")
			w.Header().Set("X-Hop", "no")
			w.WriteHeader(http.StatusTeapot)
			fmt.Fprint(w, "short and stout")
		})
		h.open(gateway.Settings{Targets: []gateway.Target{{Name: "api", URL: "http://api.test/base"}}})
		r := h.do(t.Context(), "PATCH", "/v1/some%2Fthing/new?b=2&a=1&key=x;y", "a body", "X-Mine: 1", "Connection: X-Hop", "X-Hop: no", "Holdfast-Deadline: 30s", "User-Agent: ")
		if r.StatusCode != http.StatusTeapot || r.body != "short and stout" || r.Header.Get("X-Own") != "yes" || r.Header.Get("X-Hop") != "" {
			t.Errorf("got %d %q %v", r.StatusCode, r.body, r.Header)
		}
		if got.Method != "PATCH" || got.RequestURI != "/base/v1/some%2Fthing/new?b=2&a=1&key=x;y" || body != "a body" || got.Host != "api.test" {
			t.Errorf("arrived as %s %s %q at %s", got.Method, got.RequestURI, body, got.Host)
		}
		want := http.Header{"X-Mine": {"1"}, "X-Api-Key": {"sk-caller"}, "Anthropic-Version": {"2023-06-01"}, "Content-Type": {"application/json"}, "Content-Length": {"6"}}
		got.Header.Del("Accept-Encoding") // the test's client asks for gzip, and so it arrives
		got.Header.Del("User-Agent")
		if d := cmp.Diff(want, got.Header); d != "" {
			t.Errorf("headers (-want +got)\n%s", d)
		}
		if rec := h.seen.last(t); rec.Status != http.StatusTeapot || rec.Outcome != gateway.Failed || rec.ID != r.Header.Get("Holdfast-Trace") {
			t.Errorf("the record is %+v", rec)
		}
	})
}

func TestBasePaths(t *testing.T) {
	for _, c := range []struct{ url, path, want string }{
		{"http://api.test", "/v1/messages", "/v1/messages"},
		{"http://api.test/", "/v1/messages", "/v1/messages"},
		{"http://api.test/anthropic", "/v1/messages", "/anthropic/v1/messages"},
		{"http://api.test/anthropic/", "/v1/messages", "/anthropic/v1/messages"},
		{"http://api.test/v1", "/v1/messages", "/v1/messages"},
		{"http://api.test/api/v1/", "/v1/messages", "/api/v1/messages"},
		{"http://api.test/v1", "/v2/messages", "/v1/v2/messages"},
	} {
		bubble(t, c.url+" "+c.path, func(t *testing.T) {
			h := newHouse(t)
			h.handle("api", func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.RequestURI) })
			h.open(gateway.Settings{Targets: []gateway.Target{{Name: "api", URL: c.url}}})
			if r := h.do(t.Context(), http.MethodGet, c.path, ""); r.body != c.want {
				t.Errorf("asked for %s, want %s", r.body, c.want)
			}
		})
	}
}

func TestAnswersAndErrorsComeAsTheyAre(t *testing.T) {
	for _, c := range []struct {
		name     string
		steps    []standin.Step
		status   int
		requests int
		outcome  gateway.Outcome
	}{
		{"healthy", nil, 200, 1, gateway.Answered},
		{"429 once", []standin.Step{{Kind: standin.HTTP, Status: 429, RetryAfter: "1"}}, 200, 2, gateway.Answered},
		{"529 for ever", []standin.Step{{Kind: standin.HTTP, Status: 529, Times: -1}}, 529, 4, gateway.Failed},
		{"400", []standin.Step{{Kind: standin.HTTP, Status: 400, Times: -1}}, 400, 1, gateway.Failed},
		{"reset", []standin.Step{{Kind: standin.Reset}}, 200, 2, gateway.Answered},
		{"reset for ever", []standin.Step{{Kind: standin.Reset, Times: -1}}, 502, 4, gateway.Failed},
		{"refusal", []standin.Step{{Kind: standin.Refusal}}, 200, 1, gateway.Refused},
	} {
		for path, body := range map[string]string{"/v1/messages": message, "/v1/chat/completions": chat} {
			for _, stream := range []bool{false, true} {
				if c.name == "refusal" && path != "/v1/messages" {
					continue
				}
				bubble(t, fmt.Sprintf("%s %s %v", c.name, path, stream), func(t *testing.T) {
					h := newHouse(t)
					judge := h.upstream("api", standin.Plan{Steps: c.steps})
					h.open(one("api", ""))
					sent := body
					if stream {
						sent = streamed(body)
					}
					r := h.ask(path, sent)
					if r.StatusCode != c.status || r.err != nil {
						t.Fatalf("got %d %s %v", r.StatusCode, r.body, r.err)
					}
					if final := r.Header.Get("X-Should-Retry"); (final == "false") != (c.status >= 400) {
						t.Errorf("x-should-retry is %q", final)
					}
					if n := r.Header.Get("Holdfast-Attempts"); n != fmt.Sprint(c.requests) || len(judge.Journal()) != c.requests {
						t.Errorf("holdfast-attempts is %s, the upstream saw %d, want %d", n, len(judge.Journal()), c.requests)
					}
					rec := h.seen.last(t)
					if rec.Outcome != c.outcome || rec.Status != c.status || rec.Trace.Sent() != c.requests || rec.Bytes != int64(len(r.body)) {
						t.Errorf("the record is %+v", rec)
					}
					if c.outcome == gateway.Answered && (rec.Input == 0 || rec.Output == 0 || rec.StopReason == "") && !strings.Contains(path, "chat") {
						t.Errorf("usage %d %d, stop reason %q", rec.Input, rec.Output, rec.StopReason)
					}
				})
			}
		}
	}
}

func TestChainsRewriteModelKeyVersionAndBetas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t)
		first := h.upstream("first", standin.Plan{Steps: []standin.Step{{Kind: standin.HTTP, Status: 529, Times: -1}}})
		var got http.Header
		var body, path string
		h.handle("second", func(w http.ResponseWriter, r *http.Request) {
			text, _ := io.ReadAll(r.Body)
			got, body, path = r.Header, string(text), r.URL.Path
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, `{"type":"message","role":"assistant","content":[{"type":"text","text":"hi"}],"stop_reason":"end_turn","usage":{"input_tokens":3,"output_tokens":2}}`)
		})
		h.open(gateway.Settings{
			Targets: []gateway.Target{target("first", "anthropic"), target("second", "anthropic", gateway.Key{Secret: "sk-own"})},
			Routes: []gateway.Route{{Models: []string{"claude-*"}, Chain: []gateway.Entry{
				{Target: "first"}, {Target: "second", Model: "qwen3", Path: "/other", Betas: []string{}, Version: "2020-01-01"},
			}}},
		})
		history := `{"model":"claude-sonnet-5-5","max_tokens":9,"messages":[{"role":"user","content":"q"},{"role":"assistant","content":[{"type":"thinking","thinking":"t","signature":"s"},{"type":"text","text":"a"}]},{"role":"user","content":"r"}]}`
		r := h.ask("/v1/messages", history, "Anthropic-Beta: some-beta")
		if r.StatusCode != 200 || r.Header.Get("Holdfast-Source") != "fallback" || r.Header.Get("Holdfast-Target") != "second:qwen3" || len(first.Journal()) != 4 {
			t.Fatalf("got %d %v after %d attempts", r.StatusCode, r.Header, len(first.Journal()))
		}
		want := `{"model":"qwen3","max_tokens":9,"messages":[{"role":"user","content":"q"},{"role":"assistant","content":[{"type":"text","text":"a"}]},{"role":"user","content":"r"}]}`
		if body != want || path != "/other/v1/messages" {
			t.Errorf("B104 it arrived at %s as %s", path, body)
		}
		if got.Get("X-Api-Key") != "sk-own" || got.Get("Anthropic-Version") != "2020-01-01" || got.Get("Anthropic-Beta") != "" || got.Get("Content-Length") != fmt.Sprint(len(want)) {
			t.Errorf("B87 headers %v", got)
		}
	})
}

func TestB98_DeadKeysAreLeftForTheNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t)
		asked := map[string]int{}
		h.handle("api", func(w http.ResponseWriter, r *http.Request) {
			key := r.Header.Get("X-Api-Key")
			asked[key]++
			w.Header().Set("Content-Type", "application/json")
			if key != "sk-5" {
				w.WriteHeader(http.StatusUnauthorized)
				fmt.Fprint(w, `{"type":"error","error":{"type":"authentication_error","message":"invalid x-api-key"}}`)
				return
			}
			fmt.Fprint(w, `{"type":"message","role":"assistant","content":[{"type":"text","text":"hi"}],"stop_reason":"end_turn","usage":{"input_tokens":3,"output_tokens":2}}`)
		})
		var keys []gateway.Key
		for i := range 5 {
			keys = append(keys, gateway.Key{Secret: fmt.Sprintf("sk-%d", i+1)})
		}
		h.open(gateway.Settings{Targets: []gateway.Target{target("api", "anthropic", keys...)}, Policy: holdfast.Policy{Attempts: 3}})
		began := time.Now()
		if r := h.ask("/v1/messages", message); r.StatusCode != 200 || r.Header.Get("Holdfast-Target") != "api/5" {
			t.Fatalf("got %d %s from %s", r.StatusCode, r.body, r.Header.Get("Holdfast-Target"))
		}
		if took := time.Since(began); took > time.Second/10 {
			t.Errorf("walking over dead keys took %v", took)
		}
		if d := cmp.Diff(map[string]int{"sk-1": 1, "sk-2": 1, "sk-3": 1, "sk-4": 1, "sk-5": 1}, asked); d != "" {
			t.Error(d)
		}
		// They rest: the next call goes to the good one at once.
		if r := h.ask("/v1/messages", message); r.StatusCode != 200 || r.Header.Get("Holdfast-Attempts") != "1" {
			t.Errorf("the second call made %s attempts", r.Header.Get("Holdfast-Attempts"))
		}
	})
}

func TestClientKeys(t *testing.T) {
	hash := func(key string) string {
		sum := sha256.Sum256([]byte(key))
		return hex.EncodeToString(sum[:])
	}
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t)
		var key string
		h.handle("api", func(w http.ResponseWriter, r *http.Request) {
			key = r.Header.Get("X-Api-Key") + r.Header.Get("Authorization")
			fmt.Fprint(w, "{}")
		})
		h.open(gateway.Settings{
			Targets: []gateway.Target{target("api", "anthropic", gateway.Key{Secret: "sk-own"})},
			Clients: []gateway.Client{{Name: "web", KeySHA256: hash("hf-web")}, {Name: "batch", KeySHA256: hash("hf-batch"), RequestsPerMinute: 1}},
		})
		for _, c := range []struct {
			name    string
			headers []string
			status  int
			client  string
		}{
			{"none", []string{"X-Api-Key: "}, 401, ""},
			{"B163 unknown", []string{"X-Api-Key: vk-CANARY"}, 401, ""},
			{"as x-api-key", []string{"X-Api-Key: hf-web"}, 200, "web"},
			{"as a bearer token", []string{"X-Api-Key: ", "Authorization: Bearer hf-web"}, 200, "web"},
			{"as holdfast-key", []string{"Holdfast-Key: hf-web"}, 200, "web"},
			{"within the limit", []string{"X-Api-Key: hf-batch"}, 200, "batch"},
			{"above the limit", []string{"X-Api-Key: hf-batch"}, 429, "batch"},
		} {
			key = ""
			r := h.do(t.Context(), http.MethodGet, "/v1/models", "", c.headers...)
			if r.StatusCode != c.status {
				t.Errorf("%s: got %d %s", c.name, r.StatusCode, r.body)
			}
			rec := h.seen.last(t)
			if rec.Client != c.client || strings.Contains(fmt.Sprintf("%+v %s %v", rec, r.body, r.Header), "CANARY") {
				t.Errorf("%s: the record is %+v", c.name, rec)
			}
			if c.status == 200 && key != "sk-own" || c.status != 200 && key != "" {
				t.Errorf("%s: the upstream was sent %q", c.name, key)
			}
			if c.status == 429 && r.Header.Get("Retry-After") != "60" {
				t.Errorf("%s: retry-after is %q", c.name, r.Header.Get("Retry-After"))
			}
		}
	})
}

func TestBodies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t)
		judge := h.upstream("api", standin.Plan{Steps: []standin.Step{{Kind: standin.HTTP, Status: 529, Times: 2}}})
		h.open(gateway.Settings{Targets: []gateway.Target{target("api", "anthropic")}, MaxBody: 3 << 20, BodyMemory: 64 << 10})
		large := strings.Replace(message, "one question", strings.Repeat("question ", 200_000), 1)
		if r := h.ask("/v1/messages", large); r.StatusCode != 200 {
			t.Fatalf("got %d %.200s", r.StatusCode, r.body)
		}
		j := judge.Journal()
		if len(j) != 3 || j[0].Digest != j[2].Digest {
			t.Errorf("B57 a body from a file arrived %d times as %v", len(j), j)
		}
		if r := h.ask("/v1/messages", strings.Replace(message, "one question", strings.Repeat("question ", 400_000), 1)); r.StatusCode != 413 || len(judge.Journal()) != 3 {
			t.Errorf("a body above the limit: %d %s", r.StatusCode, r.body)
		}
	})
}

func TestNoRoute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t)
		h.upstream("api", standin.Plan{})
		h.open(one("api", "anthropic"))
		r := h.ask("/v1/chat/completions", chat)
		if r.StatusCode != 404 || r.Header.Get("Holdfast-Reason") != "no-route" || !strings.Contains(r.body, `"type":"invalid_request_error"`) {
			t.Errorf("got %d %s", r.StatusCode, r.body)
		}
	})
}

// A write deadline must not outlive its call: the next one on the connection would never be answered.
func TestRefusalReachesACallerWhoWasIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t)
		h.upstream("api", standin.Plan{})
		h.open(one("api", "anthropic"))
		if r := h.ask("/v1/messages", message); r.StatusCode != 200 {
			t.Fatalf("got %d", r.StatusCode)
		}
		time.Sleep(90 * time.Second) // longer than the gateway waits for a caller to take what is written
		if r := h.ask("/v1/chat/completions", chat); r.StatusCode != 404 || h.Stats().Opened > 2 {
			t.Errorf("got %d %v over %+v", r.StatusCode, r.err, h.Stats())
		}
	})
}
