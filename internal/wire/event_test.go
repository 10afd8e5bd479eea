package wire_test

import (
	"strings"
	"testing"
	"time"

	"holdfast/internal/wire"
)

func TestReadEventClassifies(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, event, data string
		status            int
		fault             wire.Fault
		rule              string
	}{
		{"B26 overloaded", "error", anthropic("overloaded_error", ""), 529, wire.FaultOverload, "anthropic-type-overloaded_error"},
		{"B26 rate limit", "error", anthropic("rate_limit_error", ""), 429, wire.FaultRateLimit, "anthropic-type-rate_limit_error"},
		{"B26 api error", "error", anthropic("api_error", ""), 500, wire.FaultServer, "anthropic-type-api_error"},
		{"B26 authentication", "error", anthropic("authentication_error", ""), 401, wire.FaultAuth, "anthropic-type-authentication_error"},
		{"B26 invalid request", "error", anthropic("invalid_request_error", ""), 400, wire.FaultRequest, "anthropic-type-invalid_request_error"},
		{"B26 timeout", "error", anthropic("timeout_error", ""), 504, wire.FaultTimeout, "anthropic-type-timeout_error"},
		{"B26 spend", "error", anthropic("rate_limit_error", "enforced_spend_limit_reached"), 429, wire.FaultSpend, "anthropic-code-enforced_spend_limit_reached"},
		{"B27 page inside an internal error", "error", `{"type":"error","error":{"type":"internal_error","message":"[HTTP 502] <html><head><title>502</title></head><body><h1>Bad Gateway</h1></body></html>"}}`, 500, wire.FaultServer, "proxy-type-internal_error"},
		{"B29 number", "", `{"error":{"code":502,"message":"provider unavailable"}}`, 502, wire.FaultServer, "status-5xx"},
		{"B29 text", "", `{"error":{"code":"502","message":"provider unavailable"}}`, 502, wire.FaultServer, "status-5xx"},
		{"B24 overflow by code", "error", `{"type":"error","error":{"code":"context_length_exceeded","message":"x"}}`, 400, wire.FaultOverflow, "openai-code-context_length_exceeded"},
		{"B24 overflow inside a message", "error", `{"type":"error","error":{"type":"api_error","message":"{\"error\":{\"code\":\"context_length_exceeded\",\"message\":\"too big\"}}"}}`, 400, wire.FaultOverflow, "openai-code-context_length_exceeded"},
		{"B24 overflow by text", "error", `{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 3 > 2"}}`, 400, wire.FaultOverflow, "text-overflow"},
		{"B92 bare number", "", `{"error":{"code":429}}`, 429, wire.FaultRateLimit, "status-429"},
		{"B23 overflow code beside 429", "", `{"error":{"code":429,"type":"context_length_exceeded"}}`, 429, wire.FaultRateLimit, "status-429"},
		{"failed response", "response.failed", `{"type":"response.failed","response":{"status":"failed","error":{"code":"server_is_overloaded","message":"x"}}}`, 503, wire.FaultOverload, "openai-code-server_is_overloaded"},
		{"failed response, slow down", "", `{"type":"response.failed","response":{"status":"failed","error":{"code":"slow_down","message":"x"}}}`, 429, wire.FaultRamp, "openai-code-slow_down"},
		{"error event of responses", "error", `{"type":"error","code":"rate_limit_exceeded","message":"x","param":null}`, 429, wire.FaultRateLimit, "openai-code-rate_limit_exceeded"},
		{"aws by type", "error", `{"type":"error","error":{"type":"throttlingException","message":"x"}}`, 429, wire.FaultRateLimit, "aws-type-throttlingexception"},
		{"aws by event name", "modelStreamErrorException", `{"message":"x"}`, 424, wire.FaultServer, "aws-type-modelstreamerrorexception"},
		{"aws by key", "", `{"serviceUnavailableException":{"message":"x"}}`, 503, wire.FaultOverload, "aws-type-serviceunavailableexception"},
		{"google", "", `{"error":{"code":499,"status":"CANCELLED","message":"x"}}`, 499, wire.FaultCancelled, "google-type-cancelled"},
		{"name alone", "", `{"error":"overloaded_error"}`, 529, wire.FaultOverload, "anthropic-type-overloaded_error"},
		{"text alone", "error", `upstream went away`, 500, wire.FaultServer, "in-band-unknown"},
		{"nothing", "error", ``, 500, wire.FaultServer, "in-band-unknown"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := wire.ReadEvent(tt.event, []byte(tt.data), nil, noon)
			if got.Status != tt.status || got.Fault != tt.fault || got.Rule != tt.rule || !got.InBand {
				t.Errorf("ReadEvent(%q, %s)\n got %d %v by %q, in band %v\nwant %d %v by %q, in band", tt.event, tt.data, got.Status, got.Fault, got.Rule, got.InBand, tt.status, tt.fault, tt.rule)
			}
		})
	}
}

func TestB27_MessageOfAPageIsShortAndTagFree(t *testing.T) {
	t.Parallel()
	page := `[HTTP 502] <html>\n<head><title>502</title></head><body><h1>Bad Gateway</h1>` + strings.Repeat("<hr>nginx", 400) + `</body></html>`
	got := wire.ReadEvent("error", []byte(`{"type":"error","error":{"type":"internal_error","message":"`+page+`"}}`), nil, noon)
	if !strings.HasPrefix(got.Message, "[HTTP 502] Bad Gateway nginx") || len([]rune(got.Message)) > 200 || strings.ContainsAny(got.Message, "<>\n") {
		t.Errorf("message %q", got.Message)
	}
}

func TestReadEventKeepsHeadersAndBodyFacts(t *testing.T) {
	t.Parallel()
	got := wire.ReadEvent("error", []byte(`{"error":{"type":"rate_limit_error","retry_after":4},"request_id":"req_b"}`), header("Request-Id", "req_h", "X-Should-Retry", "true"), noon)
	if got.RequestID != "req_h" || got.Retry != wire.AdviceRetry || got.Wait != 4*time.Second || got.WaitFrom != "body" {
		t.Errorf("got %+v", got)
	}
}
