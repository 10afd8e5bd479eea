package tape_test

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"holdfast/internal/testnet"
	"holdfast/standin/internal/tape"
)

const canary = "canary-0123456789-secret"

func digest(body string) string {
	sum := sha256.Sum256([]byte(body))
	return hex.EncodeToString(sum[:])
}

// A key is in every place in which a client or an upstream can put it, and on no tape.
func TestNoKeyIsOnATape(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		upstream := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			h := w.Header()
			h.Set("set-cookie", "session="+canary)
			h.Set("anthropic-organization-id", "org-"+canary)
			h.Set("anthropic-workspace-id", "wrk-"+canary)
			h.Set("openai-organization", canary)
			h.Set("request-id", "req_"+canary) // an allowed name does not save it
			h.Set("server", "sk-ant-0123456789abcdef")
			h.Set("x-request-id", "req_1")
			h.Set("location", "https://x/?key="+canary)
			half := len(canary) / 2
			for _, piece := range []string{"you sent " + canary[:half], canary[half:] + ", twice " + canary} {
				_, _ = io.WriteString(w, piece)
				_ = http.NewResponseController(w).Flush()
				time.Sleep(time.Second)
			}
		})
		s := record(t, upstream, tape.Options{})
		headers := []string{
			"authorization", "Bearer " + canary, "proxy-authorization", "Basic " + base64.StdEncoding.EncodeToString([]byte("me:"+canary)),
			"api-key", canary, "x-goog-api-key", canary, "cookie", "a=" + canary, "openai-organization", canary, "user-agent", "x/" + canary,
			"x-custom-token", canary, "anthropic-beta", "sk-ant-0123456789abcdef",
		}
		body := fmt.Sprintf(`{"model":"m-%s","messages":[{"role":"user","content":"my key is \n%s"}]}`, canary, canary)
		got, _ := s.post(s.url, "/v1/files/"+canary+"/content?key="+canary+"&api_key="+canary+"&beta=true&after_id="+canary, body, headers...)
		if !strings.Contains(got.Body, canary) {
			t.Errorf("the client got %q: what passes must not be changed", got.Body)
		}
		x := s.tape().Exchanges[0]
		text := s.reel.String()
		for _, secret := range []string{canary, "sk-ant", base64.StdEncoding.EncodeToString([]byte("me:" + canary)), "org-", "wrk-"} {
			if strings.Contains(text, secret) {
				t.Errorf("%q is on the tape:\n%s", secret, text)
			}
		}
		want := "you sent " + strings.Repeat("x", len(canary)) + ", twice " + strings.Repeat("x", len(canary))
		if string(x.Reply()) != want || len(x.Frames) != 2 {
			t.Errorf("reply %q in %d frames", x.Reply(), len(x.Frames))
		}
		if x.Path != "/v1/files/redacted/content" || x.Query != "beta=true" || x.Header.Get("x-request-id") != "req_1" || x.Asked.Get("anthropic-version") != "2023-06-01" {
			t.Errorf("kept: %s ? %s, %v, %v", x.Path, x.Query, x.Header, x.Asked)
		}
		if !json.Valid(x.Body) || x.Digest != digest(body) || x.Size != int64(len(body)) {
			t.Errorf("body %s, digest %s, size %d", x.Body, x.Digest, x.Size)
		}
	})
}

func TestUserOfTheUpstreamIsSentAndNotKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network, out := testnet.New(), &reel{}
		authorized, asked := "", ""
		network.Serve(t, "api.test", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, authorized, _ = r.BasicAuth()
			asked = r.RequestURI
			_, _ = io.WriteString(w, "your password is "+canary)
		}))
		transport := &http.Transport{DialContext: network.Dial, DisableCompression: true}
		defer transport.CloseIdleConnections()
		upstream, err := url.Parse("http://me:" + canary + "@api.test/base/" + canary + "?token=" + canary)
		if err != nil {
			t.Fatal(err)
		}
		r, err := tape.NewRecorder(upstream, out, tape.Options{Transport: transport})
		if err != nil {
			t.Fatal(err)
		}
		res, err := network.Client().Get(network.Serve(t, "recorder.test", r).URL + "/v1/models?limit=3")
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		synctest.Wait()
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
		if authorized != canary || asked != "/base/"+canary+"/v1/models?token="+canary+"&limit=3" {
			t.Errorf("the upstream got the password %q and %q", authorized, asked)
		}
		if strings.Contains(out.String(), canary) || !strings.Contains(out.String(), `"path":"/v1/models?limit=3"`) {
			t.Errorf("on the tape:\n%s", out.String())
		}
	})
}

func TestPromptsAreKeptUnlessUnwanted(t *testing.T) {
	large := `{"model":"m","pad":"` + strings.Repeat("p", 1<<20) + `"}`
	tests := []struct {
		name, body, model string
		coding            string
		unwanted          bool
		kept              string
	}{
		{name: "JSON", body: "{ \"model\": \"m\",\n \"x\": 1.50 }", model: "m", kept: `{"model":"m","x":1.50}`},
		{name: "unwanted", body: question, model: "m", unwanted: true},
		{name: "large", body: large, model: "m"},
		{name: "no JSON", body: "--boundary\r\nfile"},
		{name: "model of another type", body: `{"model":7}`, kept: `{"model":7}`},
		{name: "empty", body: ""},
		{name: "gzip", body: gzipped(question), coding: "gzip", model: "m", kept: question},
		{name: "broken gzip", body: gzipped(question)[:20], coding: "gzip"},
		{name: "unknown coding", body: "{}", coding: "br"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := record(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { _, _ = io.ReadAll(r.Body) }), tape.Options{NoPrompts: test.unwanted})
				s.post(s.url, "/v1/messages", test.body, "content-encoding", test.coding)
				x := s.tape().Exchanges[0]
				if string(x.Body) != test.kept || x.Model != test.model {
					t.Errorf("kept %.99q of model %q, want %q", x.Body, x.Model, test.kept)
				}
				if x.Digest != digest(test.body) || x.Size != int64(len(test.body)) {
					t.Errorf("digest %s, size %d", x.Digest, x.Size)
				}
			})
		})
	}
}

func gzipped(text string) string {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, _ = io.WriteString(z, text)
	_ = z.Close()
	return b.String()
}
