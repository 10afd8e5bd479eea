package e2e_test

import (
	"slices"
	"testing"
	"time"

	"holdfast/standin"
)

// The Node SDK of OpenAI works against the stand-in and behaves under its faults as its source says (B178).
func TestNodeOpenAI(t *testing.T) {
	playNode(t, "openai.mjs", slices.Concat(nodeOpenAIAnswers(), nodeOpenAIErrors(), nodeOpenAIWaits(), nodeOpenAIBroken(), nodeOpenAIWork()))
}

// stopped is a complete answer of chat completions.
func stopped(text string) nodeSaw { return nodeSaw{OK: true, Text: text, StopReason: "stop"} }

// nodeOpenAIAnswers are calls that nothing is in the way of.
func nodeOpenAIAnswers() []nodeCase {
	billed := func(t *testing.T, saw nodeSaw, s *standin.Server) {
		if in, out := s.Billed(); saw.Usage.Input != in || saw.Usage.Output != out || in == 0 || out == 0 {
			t.Errorf("usage %+v, billed %d and %d", saw.Usage, in, out)
		}
	}
	return []nodeCase{
		{name: "chat", ask: nodeAsk{Call: "chat"}, want: stopped(answer), attempts: 1, check: billed},
		{name: "chat stream", ask: nodeAsk{Call: "chat_events"}, want: stopped(answer), attempts: 1, check: func(t *testing.T, saw nodeSaw, _ *standin.Server) {
			if saw.Usage.Input+saw.Usage.Output != 0 {
				t.Errorf("usage %+v, which nobody asked for", saw.Usage)
			}
		}},
		{name: "chat stream with usage", ask: nodeAsk{Call: "chat_events", WantUsage: true}, want: stopped(answer), attempts: 1, check: billed},
		{name: "finalChatCompletion", ask: nodeAsk{Call: "chat_final"}, want: stopped(answer), attempts: 1, check: billed},
		{name: "max_completion_tokens", ask: nodeAsk{Call: "chat", MaxTokens: 3}, plan: standin.Plan{Reply: "one two three four"}, attempts: 1,
			want: nodeSaw{OK: true, Text: "one two three ", StopReason: "length"}},
		{name: "truncation", ask: nodeAsk{Call: "chat_events"}, plan: standin.Plan{Reply: "one two three four", Steps: []standin.Step{{Kind: standin.Truncation}}}, attempts: 1,
			want: nodeSaw{OK: true, Text: "one two ", StopReason: "length"}},
		{name: "refusal", ask: nodeAsk{Call: "chat"}, plan: steps(standin.Step{Kind: standin.Refusal}), attempts: 1, want: nodeSaw{OK: true, StopReason: "content_filter"}},
	}
}

// nodeOpenAIErrors are all statuses with the classes that the SDK has for them, and how often it asks.
func nodeOpenAIErrors() []nodeCase {
	var cases []nodeCase
	for _, row := range []struct {
		status   int
		class    string
		typ      string
		attempts int
	}{
		{400, "BadRequestError", "invalid_request_error", 1},
		{401, "AuthenticationError", "invalid_request_error", 1},
		{403, "PermissionDeniedError", "invalid_request_error", 1},
		{404, "NotFoundError", "invalid_request_error", 1},
		{408, "APIError", "invalid_request_error", 3},
		{409, "ConflictError", "invalid_request_error", 3},
		{413, "APIError", "invalid_request_error", 1},
		{422, "UnprocessableEntityError", "invalid_request_error", 1},
		{429, "RateLimitError", "requests", 3},
		{500, "InternalServerError", "server_error", 3},
		{503, "InternalServerError", "server_error", 3},
	} {
		c := nodeCase{name: statusName(row.status), plan: always(standin.Step{Kind: standin.HTTP, Status: row.status}), ask: nodeAsk{Call: "chat"},
			want: failed(row.class, row.status, row.typ), attempts: row.attempts}
		if row.attempts == 3 {
			c.gaps = ownBackoff
		}
		c.want.Code = map[int]string{429: "rate_limit_exceeded", 503: "server_is_overloaded"}[row.status]
		cases = append(cases, c)
	}
	quota := failed("RateLimitError", 429, "insufficient_quota")
	quota.Code = "insufficient_quota"
	badKey := failed("AuthenticationError", 401, "invalid_request_error")
	badKey.Code = "invalid_api_key"
	return append(cases,
		nodeCase{name: "insufficient_quota", ask: nodeAsk{Call: "chat"}, want: quota, attempts: 3, gaps: ownBackoff,
			plan: always(standin.Step{Kind: standin.HTTP, Status: 429, Type: "insufficient_quota", Code: "insufficient_quota"})},
		nodeCase{name: "x-should-retry false", ask: nodeAsk{Call: "chat"}, want: failed("InternalServerError", 500, "server_error"), attempts: 1,
			plan: always(standin.Step{Kind: standin.HTTP, Status: 500, Header: standin.Header{"x-should-retry": {"false"}}})},
		nodeCase{name: "x-should-retry true", ask: nodeAsk{Call: "chat_events"}, want: failed("BadRequestError", 400, "invalid_request_error"), attempts: 3, gaps: ownBackoff,
			plan: always(standin.Step{Kind: standin.HTTP, Status: 400, Header: standin.Header{"x-should-retry": {"true"}}})},
		nodeCase{name: "a bad key", ask: nodeAsk{Call: "chat", APIKey: "bad"}, want: badKey, attempts: 1},
		nodeCase{name: "twice 503, then the answer", ask: nodeAsk{Call: "chat_events"}, want: stopped(answer), attempts: 3, gaps: ownBackoff, plan: standin.Failing(2, 503, "")},
		nodeCase{name: "a page for 502", ask: nodeAsk{Call: "chat"}, want: failed("InternalServerError", 502, ""), attempts: 3, gaps: ownBackoff,
			plan: always(standin.Step{Kind: standin.HTTP, Status: 502, Body: "<html>bad gateway</html>", ContentType: "text/html"})},
	)
}

// nodeOpenAIWaits are the forms of retry-after. The SDK obeys up to a minute, and 0 at once.
func nodeOpenAIWaits() []nodeCase {
	var cases []nodeCase
	for _, row := range []struct {
		name   string
		header standin.Header
		gap    time.Duration
	}{
		{"seconds", standin.Header{"retry-after": {"1"}}, time.Second},
		{"milliseconds win", standin.Header{"retry-after-ms": {"120"}, "retry-after": {"45"}}, 120 * time.Millisecond},
		{"negative", standin.Header{"retry-after": {"-5"}}, ownBackoff[0]},
		{"a past date", standin.Header{"retry-after": {"Wed, 21 Oct 2015 07:28:00 GMT"}}, ownBackoff[0]},
		{"no number", standin.Header{"retry-after": {"soon"}}, ownBackoff[0]},
		{"more than a minute", standin.Header{"retry-after": {"61"}}, ownBackoff[0]},
	} {
		cases = append(cases, nodeCase{name: "retry-after: " + row.name, ask: nodeAsk{Call: "chat"}, want: stopped(answer), attempts: 2, gaps: []time.Duration{row.gap},
			plan: steps(standin.Step{Kind: standin.HTTP, Status: 429, Header: row.header})})
	}
	for name, header := range map[string]standin.Header{
		"zero is at once": {"retry-after": {"0"}}, "milliseconds of 0 are at once": {"retry-after-ms": {"0"}, "retry-after": {"9"}},
	} {
		cases = append(cases, nodeCase{name: "retry-after: " + name, ask: nodeAsk{Call: "chat", MaxRetries: new(6)}, want: stopped(answer), attempts: 7,
			plan: steps(standin.Step{Kind: standin.HTTP, Status: 429, Header: header, Times: 6}), check: func(t *testing.T, saw nodeSaw, _ *standin.Server) {
				if saw.ElapsedMS > 15_000 { // its own waits for six retries are 17 seconds and more
					t.Errorf("six retries took %d ms", saw.ElapsedMS)
				}
			}})
	}
	return append(cases, nodeCase{name: "retry-after: a minute is slept out", ask: nodeAsk{Call: "chat", LeaveMS: leaveLate}, want: nodeSaw{Class: "APIUserAbortError"}, attempts: 1,
		plan: standin.Failing(1, 429, "60")})
}

// nodeOpenAIBroken are replies and streams that are no answer, or not all of it.
func nodeOpenAIBroken() []nodeCase {
	cut := func(how standin.Ending) standin.Plan {
		return steps(standin.Step{Kind: standin.Cut, How: how, After: 2})
	}
	return []nodeCase{
		{name: "reset before the headers", ask: nodeAsk{Call: "chat"}, plan: always(standin.Step{Kind: standin.Reset}), want: nodeSaw{Class: "APIConnectionError"}, attempts: 3, gaps: ownBackoff, closed: standin.Peer},
		{name: "no byte within the timeout", ask: nodeAsk{Call: "chat", TimeoutMS: int(attemptTimeout.Milliseconds())}, plan: always(standin.Step{Kind: standin.Timeout}), want: nodeSaw{Class: "APIConnectionTimeoutError"}, attempts: 3, closed: standin.Client,
			check: sleptOutTimeouts},
		{name: "error in the stream", ask: nodeAsk{Call: "chat_events"}, plan: steps(standin.Step{Kind: standin.Error, Status: 500, After: 2}), want: nodeSaw{Class: "APIError", Type: "server_error", Text: "This is "}, attempts: 1},
		{name: "error first", ask: nodeAsk{Call: "chat_events"}, plan: steps(standin.Step{Kind: standin.Error, Status: 429, At: standin.First}), want: nodeSaw{Class: "APIError", Type: "requests", Code: "rate_limit_exceeded"}, attempts: 1},
		{name: "cut clean, raw", ask: nodeAsk{Call: "chat_events"}, plan: cut(standin.Clean), want: nodeSaw{OK: true, Text: "This is "}, attempts: 1, closed: standin.Peer},
		{name: "cut clean, helper", ask: nodeAsk{Call: "chat_final"}, plan: cut(standin.Clean), want: nodeSaw{Class: "OpenAIError"}, attempts: 1, closed: standin.Peer},
		{name: "cut inside a chunk", ask: nodeAsk{Call: "chat_events"}, plan: cut(standin.Chunk), want: nodeSaw{Class: "TypeError", Text: "This is "}, attempts: 1, closed: standin.Peer},
		{name: "cut by a reset", ask: nodeAsk{Call: "chat_events"}, plan: steps(standin.Step{Kind: standin.Cut, How: standin.RST, After: 2, Gap: 100 * time.Millisecond}), want: nodeSaw{Class: "TypeError", Text: "This is "}, lossy: true, attempts: 1, closed: standin.Peer},
		{name: "silence until the caller leaves", ask: nodeAsk{Call: "chat_events", LeaveMS: 50, LeaveAfterText: true}, plan: cut(standin.Silence), want: nodeSaw{OK: true, Text: "This is "}, attempts: 1, closed: standin.Client},
		{name: "a page with 200", ask: nodeAsk{Call: "chat"}, plan: steps(standin.Step{Kind: standin.HTML}), want: nodeSaw{OK: true}, attempts: 1},
		{name: "nothing with 200", ask: nodeAsk{Call: "chat"}, plan: steps(standin.Step{Kind: standin.Empty}), want: nodeSaw{OK: true}, attempts: 1},
	}
}
