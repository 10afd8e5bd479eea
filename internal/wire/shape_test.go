package wire_test

import (
	"encoding/json"
	"testing"

	"holdfast/internal/wire"
)

func TestErrorBody(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		got  []byte
		want string
	}{
		{"anthropic", wire.ErrorBody(wire.DialectAnthropic, "rate_limit_error", "ramp_limit_exceeded", `a "b" <c>`, "req_1"), `{"type":"error","error":{"details":{"error_code":"ramp_limit_exceeded"},"type":"rate_limit_error","message":"a \"b\" <c>"},"request_id":"req_1"}`},
		{"anthropic, bare", wire.ErrorBody(wire.DialectAnthropic, "api_error", "", "m", ""), `{"type":"error","error":{"details":null,"type":"api_error","message":"m"}}`},
		{"unknown is anthropic", wire.ErrorBody(wire.DialectUnknown, "api_error", "", "m", ""), `{"type":"error","error":{"details":null,"type":"api_error","message":"m"}}`},
		{"openai", wire.ErrorBody(wire.DialectOpenAI, "requests", "rate_limit_exceeded", "m", "req_1"), `{"error":{"message":"m","type":"requests","param":null,"code":"rate_limit_exceeded"}}`},
		{"openai, bare", wire.ErrorBody(wire.DialectOpenAI, "server_error", "", "\xff", ""), `{"error":{"message":"\ufffd","type":"server_error","param":null,"code":null}}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if !json.Valid(tt.got) || string(tt.got) != tt.want {
				t.Errorf("got  %s\nwant %s", tt.got, tt.want)
			}
		})
	}
}

func TestErrorTypesReadBackAsTheirStatus(t *testing.T) {
	t.Parallel()
	for _, status := range []int{400, 401, 402, 403, 404, 409, 413, 429, 500, 504, 529} {
		if got := wire.StatusOf(wire.DialectAnthropic, wire.ErrorType(wire.DialectAnthropic, status)); got != status {
			t.Errorf("anthropic %d is %q, which is %d", status, wire.ErrorType(wire.DialectAnthropic, status), got)
		}
	}
	for _, status := range []int{400, 429, 500, 503} {
		if got := wire.StatusOf(wire.DialectOpenAI, wire.ErrorType(wire.DialectOpenAI, status)); got != status {
			t.Errorf("openai %d is %q, which is %d", status, wire.ErrorType(wire.DialectOpenAI, status), got)
		}
	}
	for typ, want := range map[string]int{"overloaded_error": 529, "timeout_error": 504, "insufficient_quota": 429, "never_heard_of": 0, "": 0} {
		if got := wire.StatusOf(wire.DialectAnthropic, typ); got != want {
			t.Errorf("StatusOf(anthropic, %q) = %d, want %d", typ, got, want)
		}
	}
	if got := wire.StatusOf(wire.DialectOpenAI, "overloaded_error"); got != 503 {
		t.Errorf("StatusOf(openai, overloaded_error) = %d, want 503", got)
	}
	for status, want := range map[int]string{418: "invalid_request_error", 502: "api_error", 503: "overloaded_error"} {
		if got := wire.ErrorType(wire.DialectAnthropic, status); got != want {
			t.Errorf("ErrorType(anthropic, %d) = %q, want %q", status, got, want)
		}
	}
}

func TestDialectOf(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]wire.Dialect{
		"/v1/messages":                         wire.DialectAnthropic,
		"/v1/messages?beta=true":               wire.DialectAnthropic,
		"/v1/messages/":                        wire.DialectAnthropic,
		"/v1/messages/count_tokens":            wire.DialectAnthropic,
		"/anthropic/v1/messages/batches/b":     wire.DialectAnthropic,
		"/v1/messages2/v1/messages":            wire.DialectAnthropic,
		"/v1/messagesx":                        wire.DialectUnknown,
		"/v1/chat/completions":                 wire.DialectOpenAI,
		"/openai/v1/responses/resp_1/cancel":   wire.DialectOpenAI,
		"/v1/completions":                      wire.DialectOpenAI,
		"/v1/embeddings":                       wire.DialectOpenAI,
		"/v1/models":                           wire.DialectUnknown,
		"/v1/models?next=/v1/chat/completions": wire.DialectUnknown,
		"":                                     wire.DialectUnknown,
	} {
		if got := wire.DialectOf(path); got != want {
			t.Errorf("DialectOf(%q) = %v, want %v", path, got, want)
		}
	}
}

func TestNamesAreStable(t *testing.T) {
	t.Parallel()
	for got, want := range map[string]string{
		wire.FaultNone.String():        "none",
		wire.FaultRefused.String():     "refused",
		wire.Fault(200).String():       "unknown",
		wire.DialectOpenAI.String():    "openai",
		wire.DialectUnknown.String():   "unknown",
		wire.DialectAnthropic.String(): "anthropic",
		wire.AdviceStop.String():       "stop",
		wire.AdviceRetry.String():      "retry",
		wire.Advice(0).String():        "none",
		wire.ProgressEnd.String():      "end",
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestUsage(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, body string
		want       wire.Tokens
		found      bool
	}{
		{"anthropic", `{"type":"message","usage":{"input_tokens":3,"cache_creation_input_tokens":5,"cache_read_input_tokens":7,"output_tokens":11,"service_tier":"standard"}}`, wire.Tokens{Input: 3, Output: 11, CacheRead: 7, CacheWrite: 5}, true},
		{"anthropic, null caches", `{"usage":{"input_tokens":3,"cache_read_input_tokens":null,"output_tokens":1}}`, wire.Tokens{Input: 3, Output: 1}, true},
		{"chat", `{"usage":{"prompt_tokens":10,"completion_tokens":2,"total_tokens":12,"prompt_tokens_details":{"cached_tokens":4,"audio_tokens":0}}}`, wire.Tokens{Input: 6, Output: 2, CacheRead: 4}, true},
		{"responses", `{"usage":{"input_tokens":10,"input_tokens_details":{"cached_tokens":0},"output_tokens":2}}`, wire.Tokens{Input: 10, Output: 2}, true},
		{"embeddings", `{"usage":{"prompt_tokens":8,"total_tokens":8}}`, wire.Tokens{Input: 8}, true},
		{"more cached than sent", `{"usage":{"prompt_tokens":1,"prompt_tokens_details":{"cached_tokens":4}}}`, wire.Tokens{CacheRead: 4}, true},
		{"negative and absurd", `{"usage":{"input_tokens":-1,"output_tokens":1e400}}`, wire.Tokens{}, false},
		{"beyond 64 bits", `{"usage":{"input_tokens":99999999999999999999}}`, wire.Tokens{}, false},
		{"as text", `{"usage":{"input_tokens":"12"}}`, wire.Tokens{Input: 12}, true},
		{"null", `{"usage":null}`, wire.Tokens{}, false},
		{"none", `{}`, wire.Tokens{}, false},
		{"not JSON", `<html>`, wire.Tokens{}, false},
		{"words inside an answer", `{"content":[{"type":"text","text":"\"usage\":{\"input_tokens\":9}"}]}`, wire.Tokens{}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got, found := wire.Usage([]byte(tt.body)); got != tt.want || found != tt.found {
				t.Errorf("Usage(%s) = %+v, %v; want %+v, %v", tt.body, got, found, tt.want, tt.found)
			}
		})
	}
}
