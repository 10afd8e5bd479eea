package wire_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"holdfast/internal/wire"
)

var noon = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

// header takes names and values in turn.
func header(pairs ...string) http.Header {
	h := http.Header{}
	for i := 0; i < len(pairs); i += 2 {
		h.Add(pairs[i], pairs[i+1])
	}
	return h
}

func anthropic(typ, code string) string {
	return string(wire.ErrorBody(wire.DialectAnthropic, typ, code, "m", "req_1"))
}

func openAI(typ, code string) string {
	return string(wire.ErrorBody(wire.DialectOpenAI, typ, code, "m", ""))
}

func TestReadClassifiesErrors(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		status int
		body   string
		fault  wire.Fault
		rule   string
	}{
		{"B17 prepaid balance by type and unknown code", 429, `{"error":{"type":"insufficient_quota","code":"credit_balance_exhausted","message":"x"}}`, wire.FaultSpend, "openai-code-credit_balance_exhausted"},
		{"B17 by type alone", 429, openAI("insufficient_quota", "never_heard_of"), wire.FaultSpend, "openai-type-insufficient_quota"},
		{"B17 by code alone", 429, openAI("requests", "insufficient_quota"), wire.FaultSpend, "openai-code-insufficient_quota"},
		{"B18 words of quota without a code", 429, `{"status":429,"error":"INSUFFICIENT QUOTA","message":"too many concurrent requests"}`, wire.FaultRateLimit, "status-429"},
		{"B18 words of the customer's limit on a 429", 429, `{"type":"error","error":{"type":"rate_limit_error","message":"You have reached your specified API usage limits."}}`, wire.FaultRateLimit, "status-429"},
		{"B21 quota through a bridge that adds a layer", 429, `{"error":{"error":{"type":"insufficient_quota","code":"insufficient_quota","message":"x"}}}`, wire.FaultSpend, "openai-code-insufficient_quota"},
		{"B23 throttle that speaks of tokens, as text", 429, `ThrottlingException: Too many tokens, please wait before trying again`, wire.FaultRateLimit, "aws-type-throttlingexception"},
		{"B23 throttle that says prompt is too long", 429, `{"error":{"message":"prompt is too long, maximum context length"}}`, wire.FaultRateLimit, "status-429"},
		{"B23 overflow code on a 429", 429, openAI("tokens", "context_length_exceeded"), wire.FaultRateLimit, "status-429"},
		{"B24 overflow by code", 400, openAI("invalid_request_error", "context_length_exceeded"), wire.FaultOverflow, "openai-code-context_length_exceeded"},
		{"B24 overflow as JSON inside the message", 400, `{"error":{"type":"invalid_request_error","message":"{\"error\":{\"code\":\"context_length_exceeded\",\"message\":\"too big\"}}"}}`, wire.FaultOverflow, "openai-code-context_length_exceeded"},

		{"anthropic rate limit", 429, anthropic("rate_limit_error", ""), wire.FaultRateLimit, "status-429"},
		{"anthropic ramp", 429, anthropic("rate_limit_error", "ramp_limit_exceeded"), wire.FaultRamp, "anthropic-code-ramp_limit_exceeded"},
		{"anthropic tier cap", 429, anthropic("rate_limit_error", "enforced_spend_limit_reached"), wire.FaultSpend, "anthropic-code-enforced_spend_limit_reached"},
		{"anthropic contract cap", 429, anthropic("rate_limit_error", "contract_spend_limit_reached"), wire.FaultSpend, "anthropic-code-contract_spend_limit_reached"},
		{"anthropic linked organization", 402, anthropic("billing_error", "linked_organization_billing_unavailable"), wire.FaultSpend, "anthropic-code-linked_organization_billing_unavailable"},
		{"customer's limit", 400, `{"type":"error","error":{"type":"invalid_request_error","message":"You have reached your specified API usage limits. You will regain access on 2026-12-01 at 00:00 UTC."}}`, wire.FaultSpend, "anthropic-text-specified-limit"},
		{"customer's workspace limit", 400, `{"type":"error","error":{"type":"invalid_request_error","message":"You have reached your specified workspace API usage limits."}}`, wire.FaultSpend, "anthropic-text-specified-limit"},
		{"the same words further inside are nothing", 400, `{"type":"error","error":{"type":"invalid_request_error","message":"bad text: You have reached your specified"}}`, wire.FaultRequest, "status-4xx"},
		{"bare 402", 402, ``, wire.FaultSpend, "status-402"},
		{"prompt too long", 400, `{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 210000 tokens > 200000 maximum"}}`, wire.FaultOverflow, "text-overflow"},
		{"input and max_tokens", 400, `{"type":"error","error":{"type":"invalid_request_error","message":"input length and ` + "`max_tokens`" + ` exceed context limit: 1 + 2 > 3"}}`, wire.FaultOverflow, "text-overflow"},
		{"bedrock input too long", 400, `{"__type":"com.amazon.coral.service#ValidationException","message":"Input is too long for requested model."}`, wire.FaultOverflow, "text-overflow"},
		{"too many bytes is no overflow", 413, `<html>413 prompt is too long</html>`, wire.FaultRequest, "status-4xx"},
		{"thread already continued", 400, anthropic("invalid_request_error", "thread_already_continued"), wire.FaultRequest, "anthropic-code-thread_already_continued"},
		{"permanent conflict", 409, anthropic("conflict_error", "skill_read_blocked_undecryptable"), wire.FaultRequest, "anthropic-code-skill_read_blocked_undecryptable"},
		{"conflict", 409, anthropic("conflict_error", ""), wire.FaultConflict, "status-409"},
		{"overloaded without a body", 529, ``, wire.FaultOverload, "status-overload"},
		{"overloaded on another status", 500, anthropic("overloaded_error", ""), wire.FaultOverload, "anthropic-type-overloaded_error"},
		{"key service unreachable", 503, anthropic("api_error", "cmek_key_unreachable"), wire.FaultServer, "anthropic-code-cmek_key_unreachable"},
		{"timeout by type", 504, anthropic("timeout_error", ""), wire.FaultTimeout, "anthropic-type-timeout_error"},
		{"504 of a proxy", 504, `<html>`, wire.FaultServer, "status-5xx"},
		{"api error", 500, anthropic("api_error", ""), wire.FaultServer, "status-5xx"},
		{"status beats a repeated word", 529, anthropic("api_error", ""), wire.FaultOverload, "status-overload"},
		{"cloudflare", 524, `{"status":524,"retry_after":120}`, wire.FaultServer, "status-5xx"},
		{"401", 401, anthropic("authentication_error", ""), wire.FaultAuth, "status-auth"},
		{"403 page", 403, `<!doctype html><p>no</p>`, wire.FaultAuth, "status-auth"},
		{"404", 404, anthropic("not_found_error", ""), wire.FaultRequest, "status-4xx"},
		{"422", 422, ``, wire.FaultRequest, "status-4xx"},
		{"408", 408, ``, wire.FaultTimeout, "status-408"},
		{"425", 425, ``, wire.FaultConflict, "status-425"},
		{"499", 499, ``, wire.FaultCancelled, "status-499"},
		{"redirect", 302, ``, wire.FaultRequest, "status-3xx"},
		{"nonsense status", 0, ``, wire.FaultServer, "status-unknown"},

		{"openai rate limit", 429, openAI("tokens", "rate_limit_exceeded"), wire.FaultRateLimit, "status-429"},
		{"openai slow down", 429, openAI("requests", "slow_down"), wire.FaultRamp, "openai-code-slow_down"},
		{"openai slow down as 503", 503, openAI("slow_down", ""), wire.FaultRamp, "openai-type-slow_down"},
		{"openai overloaded", 503, openAI("server_error", "server_is_overloaded"), wire.FaultOverload, "openai-code-server_is_overloaded"},
		{"bedrock model error behind a 5xx", 424, `{"__type":"ModelErrorException","originalStatusCode":500,"message":"x"}`, wire.FaultServer, "aws-type-modelerrorexception"},
		{"bedrock model error behind a 4xx", 424, `{"__type":"ModelErrorException","originalStatusCode":400,"message":"x"}`, wire.FaultRequest, "aws-type-modelerrorexception"},
		{"bedrock stream error", 424, `{"modelStreamErrorException":{"message":"x","originalStatusCode":500}}`, wire.FaultServer, "aws-type-modelstreamerrorexception"},
		{"plain 424", 424, ``, wire.FaultRequest, "status-4xx"},
		{"bedrock timeout", 408, `{"__type":"ModelTimeoutException"}`, wire.FaultTimeout, "aws-type-modeltimeoutexception"},
		{"vertex exhausted, in an array", 429, `[{"error":{"code":429,"message":"x","status":"RESOURCE_EXHAUSTED"}}]`, wire.FaultRateLimit, "google-type-resource_exhausted"},
		{"vertex unavailable", 503, `{"error":{"code":503,"message":"x","status":"UNAVAILABLE"}}`, wire.FaultOverload, "google-type-unavailable"},
		{"vertex deadline", 504, `{"error":{"code":504,"status":"DEADLINE_EXCEEDED"}}`, wire.FaultTimeout, "google-type-deadline_exceeded"},
		{"torn error body keeps its type", 400, `{"type":"error","error":{"type":"billing_error","message":"your ba`, wire.FaultSpend, "anthropic-type-billing_error"},
		{"error in a framework's detail", 503, `{"detail":{"error":{"type":"overloaded_error","message":"x"}}}`, wire.FaultOverload, "anthropic-type-overloaded_error"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := wire.Read(tt.status, nil, []byte(tt.body), noon)
			if got.Fault != tt.fault || got.Rule != tt.rule || got.Status != tt.status || got.InBand {
				t.Errorf("Read(%d, %s)\n got %v by %q, status %d, in band %v\nwant %v by %q", tt.status, tt.body, got.Fault, got.Rule, got.Status, got.InBand, tt.fault, tt.rule)
			}
		})
	}
}

func TestB20_MonthlyTextStaysAThrottleWithItsWait(t *testing.T) {
	t.Parallel()
	got := wire.Read(429, header("Retry-After", "1382400"), []byte(`{"error":{"message":"monthly usage limit"}}`), noon)
	if got.Fault != wire.FaultRateLimit || got.Wait != 16*24*time.Hour || got.WaitFrom != "retry-after" {
		t.Errorf("got %v, wait %v from %q; want rate_limit, 384h from retry-after", got.Fault, got.Wait, got.WaitFrom)
	}
}

func TestB21_TypeCodeAndMessageAreKept(t *testing.T) {
	t.Parallel()
	got := wire.Read(429, header("X-Request-Id", "req_9", "X-Should-Retry", "false"), []byte(`{"error":{"type":"insufficient_quota","code":"insufficient_quota","message":"You exceeded your quota"}}`), noon)
	want := wire.Reply{
		Status: 429, Fault: wire.FaultSpend, Rule: "openai-code-insufficient_quota",
		Type: "insufficient_quota", Code: "insufficient_quota", Message: "You exceeded your quota",
		RequestID: "req_9", Retry: wire.AdviceStop,
	}
	if d := diff(want, got); d != "" {
		t.Errorf("reply (-want +got):\n%s", d)
	}
}

func TestReadFindsErrorsInsideA200(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		body   string
		status int
		fault  wire.Fault
	}{
		{"B90 top level", `{"error":{"code":429,"message":"busy"}}`, 429, wire.FaultRateLimit},
		{"B90 in the first choice", `{"choices":[{"finish_reason":"error","error":{"code":429,"message":"busy"}}]}`, 429, wire.FaultRateLimit},
		{"B90 finish reason alone", `{"choices":[{"finish_reason":"error","message":{"content":"half"}}]}`, 500, wire.FaultServer},
		{"B29 number", `{"error":{"code":502,"message":"provider unavailable"}}`, 502, wire.FaultServer},
		{"B29 text", `{"error":{"code":"502","message":"provider unavailable"}}`, 502, wire.FaultServer},
		{"anthropic body", anthropic("overloaded_error", ""), 529, wire.FaultOverload},
		{"failed response", `{"object":"response","status":"failed","error":{"code":"rate_limit_exceeded","message":"x"},"output":[]}`, 429, wire.FaultRateLimit},
		{"failed response for a picture", `{"object":"response","status":"failed","error":{"code":"image_too_large","message":"x"},"output":[]}`, 400, wire.FaultRequest},
		{"error as text, status beside it", `{"status":429,"error":"slow"}`, 429, wire.FaultRateLimit},
		{"spend inside", `{"error":{"type":"insufficient_quota","code":429,"message":"x"}}`, 429, wire.FaultSpend},
		{"unknown error", `{"error":{"message":"boom"}}`, 500, wire.FaultServer},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := wire.Read(200, nil, []byte(tt.body), noon)
			if got.Status != tt.status || got.Fault != tt.fault || !got.InBand {
				t.Errorf("Read(200, %s) = %d %v (in band %v, rule %s), want %d %v in band", tt.body, got.Status, got.Fault, got.InBand, got.Rule, tt.status, tt.fault)
			}
		})
	}
	if got := wire.Read(200, nil, []byte(`{"error":{"code":429,"message":"busy"}}`), noon); got.Message != "busy" || got.Code != "429" {
		t.Errorf("B90: message %q, code %q; want busy, 429", got.Message, got.Code)
	}
}

func TestReadTellsAnswersFromNothing(t *testing.T) {
	t.Parallel()
	const json, html, none = "application/json", "text/html; charset=utf-8", ""
	tests := []struct {
		name, media, body string
		fault             wire.Fault
		rule              string
	}{
		{"B89 no choices", json, `{"choices":[]}`, wire.FaultEmpty, "200-no-choices"},
		{"B89 null choices", json, `{"choices":null}`, wire.FaultEmpty, "200-no-choices"},
		{"B89 empty content", json, `{"content": []}`, wire.FaultEmpty, "200-no-content"},
		{"B89 null content", json, `{"type":"message","content":null}`, wire.FaultEmpty, "200-no-content"},
		{"B89 content of nothing", json, `{"content":""}`, wire.FaultEmpty, "200-no-content"},
		{"B89 empty text", json, `""`, wire.FaultEmpty, "200-no-answer"},
		{"B89 empty chat message", json, `{"choices":[{"finish_reason":"stop","message":{"role":"assistant","content":""}}]}`, wire.FaultEmpty, "200-empty-choice"},
		{"B89 refusal without content", json, `{"type":"message","content":[],"stop_reason":"refusal"}`, wire.FaultRefused, "anthropic-refusal"},
		{"B89 tool call without text", json, `{"type":"message","content":[{"type":"tool_use","id":"t","name":"f","input":{}}],"stop_reason":"tool_use"}`, wire.FaultNone, "200-answer"},
		{"B89 chat tool call without text", json, `{"choices":[{"finish_reason":"tool_calls","message":{"role":"assistant","content":null,"tool_calls":[{"id":"c"}]}}]}`, wire.FaultNone, "200-answer"},
		{"empty body", json, ``, wire.FaultEmpty, "200-empty-body"},
		{"blank body", json, " \n", wire.FaultEmpty, "200-empty-body"},
		{"empty object", json, `{}`, wire.FaultEmpty, "200-no-answer"},
		{"null", json, `null`, wire.FaultEmpty, "200-no-answer"},
		{"page", html, `<!DOCTYPE html><title>Hello</title>`, wire.FaultEmpty, "200-html"},
		{"page said to be JSON", json, `<html></html>`, wire.FaultEmpty, "200-html"},
		{"cut", json, `{"type":"message","content":[{"type":"text","text":"Hel`, wire.FaultEmpty, "200-truncated"},
		{"cut, no media type", none, `{"choices":[{`, wire.FaultEmpty, "200-truncated"},
		{"no output", json, `{"object":"response","status":"completed","error":null,"output":[]}`, wire.FaultEmpty, "200-no-output"},
		{"output still coming", json, `{"object":"response","status":"in_progress","error":null,"output":[]}`, wire.FaultNone, "200-answer"},
		{"content filter", json, `{"choices":[{"finish_reason":"content_filter","message":{"content":"ha"}}]}`, wire.FaultRefused, "openai-content_filter"},
		{"content filter on a response", json, `{"object":"response","status":"incomplete","incomplete_details":{"reason":"content_filter"},"output":[]}`, wire.FaultRefused, "openai-content_filter"},
		{"limit before the first word", json, `{"type":"message","content":[],"stop_reason":"max_tokens"}`, wire.FaultNone, "200-answer"},
		{"limit before the first word, chat", json, `{"choices":[{"finish_reason":"length","message":{"content":""}}]}`, wire.FaultNone, "200-answer"},
		{"B168 new stop reason", json, `{"type":"message","content":[],"stop_reason":"foo_bar"}`, wire.FaultNone, "200-answer"},
		{"answer", json, `{"type":"message","content":[{"type":"text","text":"Hi"}],"stop_reason":"end_turn"}`, wire.FaultNone, "200-answer"},
		{"text completion of nothing", json, `{"object":"text_completion","choices":[{"text":"","finish_reason":"stop"}]}`, wire.FaultNone, "200-answer"},
		{"count", json, `{"input_tokens":7}`, wire.FaultNone, "200-answer"},
		{"empty list of models", json, `{"object":"list","data":[]}`, wire.FaultNone, "200-answer"},
		{"error of a job reported on", json, `{"object":"fine_tuning.job","error":{"code":"x","message":"y"}}`, wire.FaultNone, "200-answer"},
		{"lines of a batch", "application/x-jsonl", `{"custom_id":"a","error":{"code":"x"}}`, wire.FaultNone, "200-other-media"},
		{"file", "application/octet-stream", "<\x00\xff", wire.FaultNone, "200-other-media"},
		{"stream", "text/event-stream", "event: ping\n\n", wire.FaultNone, "200-other-media"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := wire.Read(200, header("Content-Type", tt.media, "Request-Id", "req_1"), []byte(tt.body), noon)
			wantStatus := 200
			if tt.fault == wire.FaultEmpty {
				wantStatus = 502
			}
			if got.Fault != tt.fault || got.Rule != tt.rule || got.Status != wantStatus || got.RequestID != "req_1" {
				t.Errorf("Read(200, %s) = %+v, want %v by %q with status %d", tt.body, got, tt.fault, tt.rule, wantStatus)
			}
		})
	}
	if got := wire.Read(204, nil, nil, noon); got.Fault != wire.FaultNone {
		t.Errorf("Read(204) = %v, want none", got.Fault)
	}
}

func zipped(t testing.TB, text string) []byte {
	t.Helper()
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	if _, err := w.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestB82_CompressedBodiesAreRead(t *testing.T) {
	t.Parallel()
	h := header("Content-Encoding", "gzip", "Content-Type", "application/json", "Retry-After", "7")
	body := zipped(t, anthropic("rate_limit_error", "ramp_limit_exceeded"))
	if got := wire.Read(429, h, body, noon); got.Fault != wire.FaultRamp || got.Wait != 7*time.Second {
		t.Errorf("got %v, wait %v; want ramp, 7s", got.Fault, got.Wait)
	}
	if got := wire.Read(429, h, body[:len(body)/2], noon); got.Fault != wire.FaultRateLimit && got.Fault != wire.FaultRamp {
		t.Errorf("half the gzip: %v", got.Fault)
	}
	if got := wire.Read(200, h, body[:len(body)/2], noon); got.Rule != "200-truncated" {
		t.Errorf("half the gzip of a 200: %q, want 200-truncated", got.Rule)
	}
	bomb := zipped(t, `{"content":"`+strings.Repeat("a", 2<<20)+`"}`)
	if got := wire.Read(200, h, bomb, noon); got.Fault != wire.FaultNone || got.Rule != "200-too-large" {
		t.Errorf("a 200 above the limit: %v by %q, want none by 200-too-large", got.Fault, got.Rule)
	}
}

func TestSpendSaysWhenItResumes(t *testing.T) {
	t.Parallel()
	month := time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)
	text := func(message string) string {
		return string(wire.ErrorBody(wire.DialectAnthropic, "invalid_request_error", "", "You have reached your specified API usage limits. "+message, ""))
	}
	tests := []struct {
		name   string
		status int
		h      http.Header
		body   string
		want   time.Time
	}{
		{"tier cap ends with the month", 429, nil, anthropic("rate_limit_error", "enforced_spend_limit_reached"), month},
		{"by the server's clock", 429, header("Date", "Tue, 01 Dec 2026 00:00:01 GMT"), anthropic("rate_limit_error", "enforced_spend_limit_reached"), month.AddDate(0, 1, 0)},
		{"stated time", 400, nil, text("You will regain access on 2026-12-05 at 06:30 UTC."), time.Date(2026, 12, 5, 6, 30, 0, 0, time.UTC)},
		{"stated day", 400, nil, text("You will regain access on 2026-12-05."), time.Date(2026, 12, 5, 0, 0, 0, 0, time.UTC)},
		{"stated time is past", 400, nil, text("You will regain access on 2025-12-05 at 00:00 UTC."), time.Time{}},
		{"no such day", 400, nil, text("You will regain access on 2026-13-45 at 00:00 UTC."), time.Time{}},
		{"contract cap does not say", 429, nil, anthropic("rate_limit_error", "contract_spend_limit_reached"), time.Time{}},
		{"retry-after", 402, header("Retry-After", "3600"), ``, noon.Add(time.Hour)},
		{"an ordinary limit has none", 429, header("Retry-After", "3600"), anthropic("rate_limit_error", ""), time.Time{}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := wire.Read(tt.status, tt.h, []byte(tt.body), noon); !got.Resumes.Equal(tt.want) {
				t.Errorf("resumes %v, want %v (%v)", got.Resumes, tt.want, got.Fault)
			}
		})
	}
}

func TestReadNamesTheRequest(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		h    http.Header
		want string
	}{
		{"anthropic", header("Request-Id", "req_a", "X-Request-Id", "req_b"), "req_a"},
		{"openai", header("X-Request-Id", "req_b"), "req_b"},
		{"aws", header("X-Amzn-Requestid", "req_c"), "req_c"},
		{"azure", header("Apim-Request-Id", "req_d"), "req_d"},
		{"body", nil, "req_1"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := wire.Read(500, tt.h, []byte(anthropic("api_error", "")), noon); got.RequestID != tt.want {
				t.Errorf("request id %q, want %q", got.RequestID, tt.want)
			}
		})
	}
}

func TestReadMessageIsShortAndPlain(t *testing.T) {
	t.Parallel()
	page := "<html><head><title>x</title><style>p{}</style></head><body>\n<h1>502 Bad Gateway</h1>" + strings.Repeat("<p>word</p>\n", 5000) + "</body></html>"
	got := wire.Read(502, nil, []byte(page), noon).Message
	if !strings.HasPrefix(got, "502 Bad Gateway word") || strings.ContainsAny(got, "<>\n") || utf8.RuneCountInString(got) > 200 {
		t.Errorf("message %q", got)
	}
	if got := wire.Read(500, nil, []byte("\x1b\x00\xff\xfe\x80binary"), noon).Message; got != "" {
		t.Errorf("message of a binary body %q, want none", got)
	}
}

func TestXShouldRetryIsRead(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]wire.Advice{"true": wire.AdviceRetry, " False ": wire.AdviceStop, "": wire.AdviceNone, "maybe": wire.AdviceNone} {
		if got := wire.Read(400, header("X-Should-Retry", value), nil, noon); got.Retry != want {
			t.Errorf("%q: %v, want %v", value, got.Retry, want)
		}
	}
}

func TestReadTakesTheExceptionNameFromTheHeader(t *testing.T) {
	t.Parallel()
	h := header("X-Amzn-Errortype", "ThrottlingException:http://internal.amazon.com/coral/com.amazon.bedrock/")
	got := wire.Read(400, h, []byte(`{"message":"Too many requests"}`), noon)
	if got.Fault != wire.FaultRateLimit || got.Type != "ThrottlingException" || got.Message != "Too many requests" {
		t.Errorf("got %v, type %q, message %q", got.Fault, got.Type, got.Message)
	}
}

func TestReadShowsNoKey(t *testing.T) {
	t.Parallel()
	const canary = "sk-ant-api03-CANARYCANARY"
	body := `{"error":{"type":"` + canary + `","code":"` + canary + `","message":"bad key ` + canary + ` at https://h/x?key=` + canary + `"}}`
	for _, got := range []wire.Reply{
		wire.Read(401, header("Request-Id", canary), []byte(body), noon),
		wire.Read(200, header("Request-Id", canary), []byte(body), noon),
		wire.ReadEvent("error", []byte(body), header("Request-Id", canary), noon),
	} {
		for _, text := range []string{got.Type, got.Code, got.Message, got.RequestID, got.Rule} {
			if strings.Contains(text, "CANARY") {
				t.Errorf("a key shows in %q", text)
			}
		}
		if got.Message != "bad key [redacted] at https://h/x" {
			t.Errorf("message %q", got.Message)
		}
	}
}

// diff is empty when the two are equal. The tests of this package use the standard library alone, as those of the root
// do: what they import comes into the go.sum of everybody who imports the root.
func diff(want, got any) string {
	if reflect.DeepEqual(want, got) {
		return ""
	}
	return fmt.Sprintf("-%+v\n+%+v", want, got)
}
