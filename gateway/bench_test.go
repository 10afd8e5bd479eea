package gateway_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"

	"holdfast/gateway"
)

// BenchmarkProxy compares a small call through the gateway, with every protection on, with the same through a bare reverse
// proxy of the standard library. Client and upstream are in the figures of both.
func BenchmarkProxy(b *testing.B) {
	const answer = `{"id":"msg_1","type":"message","role":"assistant","model":"claude-sonnet-5-5","content":[{"type":"text","text":"hello there"}],"stop_reason":"end_turn","usage":{"input_tokens":12,"output_tokens":5}}`
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, answer)
	}))
	defer up.Close()
	target, err := url.Parse(up.URL)
	if err != nil {
		b.Fatal(err)
	}
	bare := httputil.NewSingleHostReverseProxy(target)
	bare.Transport = &http.Transport{MaxIdleConnsPerHost: 256, DisableCompression: true}
	ours, err := gateway.New(gateway.Settings{Targets: []gateway.Target{{Name: "up", URL: up.URL}}})
	if err != nil {
		b.Fatal(err)
	}
	for _, c := range []struct {
		name    string
		handler http.Handler
	}{{"ReverseProxy", bare}, {"Gateway", ours}} {
		b.Run(c.name, func(b *testing.B) {
			s := httptest.NewServer(c.handler)
			defer s.Close()
			client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 256, DisableCompression: true}}
			b.ReportAllocs()
			b.SetParallelism(16)
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					resp, err := client.Post(s.URL+"/v1/messages", "application/json", strings.NewReader(message))
					if err != nil {
						b.Error(err)
						return
					}
					if _, err := io.Copy(io.Discard, resp.Body); err != nil || resp.StatusCode != http.StatusOK {
						b.Error(resp.StatusCode, err)
						return
					}
					_ = resp.Body.Close()
				}
			})
			client.CloseIdleConnections()
		})
	}
}

// BenchmarkHandler is the gateway's own share: no network, and an upstream that answers at once.
func BenchmarkHandler(b *testing.B) {
	const answer = `{"id":"msg_1","type":"message","role":"assistant","model":"claude-sonnet-5-5","content":[{"type":"text","text":"hello there"}],"stop_reason":"end_turn","usage":{"input_tokens":12,"output_tokens":5}}`
	base := roundTrip(func(r *http.Request) (*http.Response, error) {
		_, _ = io.Copy(io.Discard, r.Body)
		_ = r.Body.Close()
		return &http.Response{StatusCode: 200, ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(answer)), ContentLength: int64(len(answer))}, nil
	})
	target := &url.URL{Scheme: "http", Host: "up.test"}
	bare := httputil.NewSingleHostReverseProxy(target)
	bare.Transport = base
	ours, err := gateway.New(gateway.Settings{Targets: []gateway.Target{{Name: "up", URL: target.String()}}, Base: base})
	if err != nil {
		b.Fatal(err)
	}
	for _, c := range []struct {
		name    string
		handler http.Handler
	}{{"ReverseProxy", bare}, {"Gateway", ours}} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				r := httptest.NewRequest(http.MethodPost, "/v1/messages", strings.NewReader(message))
				r.Header.Set("X-Api-Key", "sk-caller")
				w := httptest.NewRecorder()
				c.handler.ServeHTTP(w, r)
				if w.Code != http.StatusOK {
					b.Fatal(w.Code)
				}
			}
		})
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
