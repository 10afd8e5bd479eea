package request_test

import (
	"net/http/httptest"
	"testing"

	"holdfast/standin/internal/request"
)

const smallMessage = `{"model":"claude-opus-5-5","max_tokens":1024,"messages":[{"role":"user","content":[{"type":"text","text":"Say hello to job 17, please.\nThank you."}]}],"system":[{"type":"text","text":"You answer in one word."}]}`

// A stand-in that answers 2,000 requests a second on two cores has 1 ms for each; reading may take a hundredth of it.
func BenchmarkRead(b *testing.B) {
	r := httptest.NewRequest("POST", "/v1/messages", nil)
	r.Header.Set("x-api-key", "good")
	r.Header.Set("anthropic-version", "2026-10-21")
	r.Header.Set("content-type", "application/json")
	body := []byte(smallMessage)
	b.ReportAllocs()
	b.SetBytes(int64(len(body)))
	for b.Loop() {
		if _, refusal := request.Read(r, body, request.Settings{}); refusal != nil {
			b.Fatal(refusal.Message)
		}
	}
}

func BenchmarkReadChat(b *testing.B) {
	r := httptest.NewRequest("POST", "/v1/chat/completions", nil)
	r.Header.Set("authorization", "Bearer good")
	body := []byte(`{"model":"gpt-5","max_completion_tokens":100,"messages":[{"role":"system","content":"One word."},{"role":"user","content":"Say hello to job 17, please."}],"stream":true,"stream_options":{"include_usage":true}}`)
	b.ReportAllocs()
	for b.Loop() {
		if _, refusal := request.Read(r, body, request.Settings{}); refusal != nil {
			b.Fatal(refusal.Message)
		}
	}
}
