package gateway_test

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"holdfast/gateway"
	"holdfast/standin"
)

// A page can send a request to this machine that no browser asks about first, and would spend the gateway's own key.
func TestPagesOfOtherMachinesSpendNoKeys(t *testing.T) {
	var asked int
	up := roundTrip(func(*http.Request) (*http.Response, error) {
		asked++
		return &http.Response{StatusCode: 200, Header: http.Header{}, Body: http.NoBody}, nil
	})
	g, err := gateway.New(gateway.Settings{Targets: []gateway.Target{{Name: "api", URL: "http://api.test", Keys: []gateway.Key{{Secret: "sk-own"}}}}, Base: up})
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: g}
	go func() { _ = server.Serve(l) }()
	t.Cleanup(func() { _ = server.Close() })
	for _, c := range []struct {
		name, host, origin, site string
		status                   int
	}{
		{"a program", "", "", "", 200},
		{"a program by name", "localhost:4100", "", "", 200},
		{"a page of this machine", "", "http://localhost:5173", "same-site", 200},
		{"another page of it", "", "http://127.0.0.1:8080", "cross-site", 200},
		{"a page from elsewhere", "", "https://evil.example", "cross-site", 403},
		{"a picture on it", "", "", "cross-site", 403},
		{"a sandboxed frame", "", "null", "cross-site", 403},
		{"a name that leads here", "evil.example:4100", "", "", 403},
	} {
		asked = 0
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+l.Addr().String()+"/v1/other", strings.NewReader("x"))
		if err != nil {
			t.Fatal(err)
		}
		req.Host = c.host
		for name, value := range map[string]string{"Origin": c.origin, "Sec-Fetch-Site": c.site} {
			if value != "" {
				req.Header.Set(name, value)
			}
		}
		client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != c.status || asked != map[int]int{200: 1, 403: 0}[c.status] {
			t.Errorf("%s: got %d, the upstream was asked %d times", c.name, resp.StatusCode, asked)
		}
	}
}

// Some clients offer HTTP/2 on every connection without TLS.
func TestOfferOfAnotherProtocolIsARequestLikeAnyOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t)
		judge := h.upstream("api", standin.Plan{Steps: []standin.Step{{Kind: standin.HTTP, Status: 429}}})
		h.open(one("api", "anthropic"))
		r := h.ask("/v1/messages", message, "Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "Http2-Settings: AAMAAABkAAQCAAAAAAIAAAAA", "Holdfast-Deadline: 30s")
		if r.StatusCode != 200 || len(judge.Journal()) != 2 {
			t.Errorf("got %d after %d attempts", r.StatusCode, len(judge.Journal()))
		}
	})
}

func TestPromptsThatAnUpstreamQuotesGoToTheCallerAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t)
		h.handle("api", func(w http.ResponseWriter, r *http.Request) {
			text, _ := io.ReadAll(r.Body)
			w.WriteHeader(http.StatusBadRequest)
			_ = json.NewEncoder(w).Encode(map[string]any{"type": "error", "error": map[string]string{"type": "not a word: " + string(text), "message": "bad prompt " + string(text)}})
		})
		var log strings.Builder
		s := one("api", "anthropic")
		s.Log = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
		h.open(s)
		if r := h.ask("/v1/messages", message); r.StatusCode != 400 || !strings.Contains(r.body, "one question") {
			t.Errorf("the caller got %d %s", r.StatusCode, r.body)
		}
		rec := h.seen.last(t)
		if told, err := json.Marshal(rec.Report()); err != nil || strings.Contains(string(told)+log.String(), "question") || log.Len() == 0 {
			t.Errorf("%v: it is in the report or the log:\n%s\n%s", err, told, log.String())
		}
	})
}

func TestShutdownTellsWhatWasSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t)
		judge := h.upstream("api", standin.Plan{Steps: []standin.Step{{Kind: standin.OK, Delay: time.Minute}}})
		g, err := gateway.New(gateway.Settings{Targets: []gateway.Target{target("api", "")}, Base: h.Network.Client().Transport})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		served := make(chan error, 1)
		go func() { served <- g.Serve(ctx, h.Listen("gateway.test:80"), nil, time.Second) }()
		synctest.Wait()
		h.url = "http://gateway.test"
		time.AfterFunc(time.Second, stop)
		r := h.ask("/v1/messages", message)
		if r.StatusCode != 503 || r.Header.Get("Holdfast-Attempts") != "1" || r.Header.Get("X-Should-Retry") != "false" || !strings.Contains(r.body, "may have been done") || len(judge.Journal()) != 1 {
			t.Errorf("got %d %v %s", r.StatusCode, r.Header, r.body)
		}
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
}
