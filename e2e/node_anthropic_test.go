package e2e_test

import (
	"slices"
	"testing"
	"time"

	"holdfast/standin"
)

// The TypeScript SDK of the Claude API works against the stand-in and behaves under its faults as its source says (B178).
func TestNodeAnthropic(t *testing.T) {
	playNode(t, "anthropic.mjs", slices.Concat(
		nodeAnthropicAnswers(), nodeAnthropicErrors(), nodeAnthropicWaits(), nodeAnthropicBrokenReplies(), nodeAnthropicBrokenStreams(),
		nodeAnthropicWork(), nodeAnthropicFramings(), nodeAnthropicEndings(),
	))
}

// nodeAnthropicAnswers are calls that nothing is in the way of.
func nodeAnthropicAnswers() []nodeCase {
	return []nodeCase{
		{name: "message", ask: nodeAsk{Call: "message", System: "Be brief."}, want: good(answer), attempts: 1,
			check: func(t *testing.T, saw nodeSaw, s *standin.Server) {
				in, out := s.Billed()
				if saw.Usage.Input != in || saw.Usage.Output != out || in == 0 || out == 0 || saw.Model != "claude-sonnet-5-5" || saw.RequestID == "" {
					t.Errorf("usage %+v and billed %d, %d; model %q, request id %q", saw.Usage, in, out, saw.Model, saw.RequestID)
				}
			}},
		{name: "raw stream", ask: nodeAsk{Call: "events"}, want: good(answer), attempts: 1, check: func(t *testing.T, saw nodeSaw, s *standin.Server) {
			first, last := saw.Events[0], saw.Events[len(saw.Events)-1]
			if _, out := s.Billed(); first != "message_start" || last != "message_stop" || saw.Usage.Output != out {
				t.Errorf("events from %s to %s, usage %+v, billed %d", first, last, saw.Usage, out)
			}
		}},
		{name: "finalMessage", ask: nodeAsk{Call: "final"}, want: good(answer), attempts: 1, check: func(t *testing.T, saw nodeSaw, _ *standin.Server) {
			if saw.Streamed != answer || saw.RequestID == "" {
				t.Errorf("streamed %q, request id %q", saw.Streamed, saw.RequestID)
			}
		}},
		{name: "max_tokens", ask: nodeAsk{Call: "message", MaxTokens: 3}, plan: standin.Plan{Reply: "one two three four"}, attempts: 1,
			want: nodeSaw{OK: true, Text: "one two three ", StopReason: "max_tokens"}},
		{name: "truncation", ask: nodeAsk{Call: "final"}, plan: standin.Plan{Reply: "one two three four", Steps: []standin.Step{{Kind: standin.Truncation}}}, attempts: 1,
			want: nodeSaw{OK: true, Text: "one two ", StopReason: "max_tokens"}},
		{name: "refusal", ask: nodeAsk{Call: "message"}, plan: steps(standin.Step{Kind: standin.Refusal, Category: "cyber", Explanation: "not this"}), attempts: 1,
			want: nodeSaw{OK: true, StopReason: "refusal", Category: "cyber"}},
		{name: "refusal in a stream", ask: nodeAsk{Call: "final"}, plan: steps(standin.Step{Kind: standin.Refusal, Category: "bio"}), attempts: 1,
			want: nodeSaw{OK: true, StopReason: "refusal", Category: "bio"}},
	}
}

// nodeAnthropicErrors are all statuses with the classes that the SDK has for them, and how often it asks.
func nodeAnthropicErrors() []nodeCase {
	var cases []nodeCase
	for _, row := range []struct {
		status   int
		class    string
		typ      string
		attempts int
	}{
		{400, "BadRequestError", "invalid_request_error", 1},
		{401, "AuthenticationError", "authentication_error", 1},
		{402, "PaymentRequiredError", "billing_error", 1},
		{403, "PermissionDeniedError", "permission_error", 1},
		{404, "NotFoundError", "not_found_error", 1},
		{408, "RequestTimeoutError", "invalid_request_error", 3},
		{409, "ConflictError", "conflict_error", 3},
		{413, "ContentTooLargeError", "request_too_large", 1},
		{429, "RateLimitError", "rate_limit_error", 3},
		{500, "InternalServerError", "api_error", 3},
		{503, "ServiceUnavailableError", "overloaded_error", 3},
		{504, "GatewayTimeoutError", "timeout_error", 3},
		{529, "OverloadedError", "overloaded_error", 3},
	} {
		for _, call := range []string{"message", "final"} {
			c := nodeCase{name: statusName(row.status) + " " + call, plan: always(standin.Step{Kind: standin.HTTP, Status: row.status}), ask: nodeAsk{Call: call},
				want: failed(row.class, row.status, row.typ), attempts: row.attempts}
			if row.attempts == 3 {
				c.gaps = ownBackoff
			}
			cases = append(cases, c)
		}
	}
	spent := failed("EnforcedSpendLimitReachedError", 429, "rate_limit_error")
	spent.Code = "enforced_spend_limit_reached"
	return append(cases,
		nodeCase{name: "a spent tier", ask: nodeAsk{Call: "message"}, want: spent, attempts: 3, gaps: ownBackoff,
			plan: always(standin.Step{Kind: standin.HTTP, Status: 429, Code: "enforced_spend_limit_reached"})},
		nodeCase{name: "x-should-retry false", ask: nodeAsk{Call: "message"}, want: failed("OverloadedError", 529, "overloaded_error"), attempts: 1,
			plan: always(standin.Step{Kind: standin.HTTP, Status: 529, Header: standin.Header{"x-should-retry": {"false"}}})},
		nodeCase{name: "x-should-retry true", ask: nodeAsk{Call: "message"}, want: failed("BadRequestError", 400, "invalid_request_error"), attempts: 3, gaps: ownBackoff,
			plan: always(standin.Step{Kind: standin.HTTP, Status: 400, Header: standin.Header{"x-should-retry": {"true"}}})},
		nodeCase{name: "a bad key", ask: nodeAsk{Call: "message", APIKey: "bad"}, want: failed("AuthenticationError", 401, "authentication_error"), attempts: 1},
		nodeCase{name: "no retries", ask: nodeAsk{Call: "message", MaxRetries: new(0)}, want: failed("InternalServerError", 500, "api_error"), attempts: 1, plan: standin.Failing(-1, 500, "")},
		nodeCase{name: "twice 529, then the answer", ask: nodeAsk{Call: "message"}, want: good(answer), attempts: 3, gaps: ownBackoff, plan: standin.Failing(2, 529, "")},
		nodeCase{name: "a page for 413", ask: nodeAsk{Call: "message"}, want: failed("ContentTooLargeError", 413, ""), attempts: 1,
			plan: always(standin.Step{Kind: standin.HTTP, Status: 413, Body: "<html>too large</html>", ContentType: "text/html"})},
		nodeCase{name: "a page for 502", ask: nodeAsk{Call: "message"}, want: failed("InternalServerError", 502, ""), attempts: 3, gaps: ownBackoff,
			plan: always(standin.Step{Kind: standin.HTTP, Status: 502, Body: "<html>bad gateway</html>", ContentType: "text/html"})},
	)
}

// nodeAnthropicWaits are all forms of retry-after. The SDK obeys every positive time that fits in one timer of Node.
func nodeAnthropicWaits() []nodeCase {
	const second = time.Second
	header := func(name, value string) standin.Header { return standin.Header{name: {value}} }
	var cases []nodeCase
	for _, row := range []struct {
		name   string
		header standin.Header
		gap    time.Duration
	}{
		{"seconds", header("retry-after", "1"), second},
		{"a fraction", header("retry-after", "0.2"), second / 5},
		{"milliseconds win", standin.Header{"retry-after-ms": {"120"}, "retry-after": {"45"}}, 120 * time.Millisecond},
		{"milliseconds of 0 give way to seconds", standin.Header{"retry-after-ms": {"0"}, "retry-after": {"0.9"}}, 900 * time.Millisecond},
		{"zero", header("retry-after", "0"), ownBackoff[0]},
		{"negative", header("retry-after", "-5"), ownBackoff[0]},
		{"a past date", header("retry-after", "Wed, 21 Oct 2015 07:28:00 GMT"), ownBackoff[0]},
		{"no number", header("retry-after", "soon"), ownBackoff[0]},
		{"more than a timer can hold", header("retry-after", "2147484"), ownBackoff[0]},
	} {
		cases = append(cases, nodeCase{name: "retry-after: " + row.name, ask: nodeAsk{Call: "message"}, want: good(answer), attempts: 2, gaps: []time.Duration{row.gap},
			plan: steps(standin.Step{Kind: standin.HTTP, Status: 429, Header: row.header})})
	}
	return append(cases, nodeCase{name: "retry-after: an hour is slept out", ask: nodeAsk{Call: "message", LeaveMS: leaveLate}, want: nodeSaw{Class: "APIUserAbortError"}, attempts: 1,
		plan: standin.Failing(1, 429, "3600"), check: func(t *testing.T, saw nodeSaw, _ *standin.Server) {
			if saw.ElapsedMS < leaveLate-10 {
				t.Errorf("the caller got his error after %d ms, before he left", saw.ElapsedMS)
			}
		}})
}

// nodeAnthropicBrokenReplies are replies that are no answer and no error of the API.
func nodeAnthropicBrokenReplies() []nodeCase {
	return []nodeCase{
		{name: "reset before the headers", ask: nodeAsk{Call: "message"}, plan: always(standin.Step{Kind: standin.Reset}), want: nodeSaw{Class: "APIConnectionError"},
			attempts: 3, gaps: ownBackoff, closed: standin.Peer},
		{name: "one reset, then the answer", ask: nodeAsk{Call: "final"}, plan: steps(standin.Step{Kind: standin.Reset}), want: good(answer), attempts: 2, gaps: ownBackoff[:1]},
		{name: "no byte within the timeout", ask: nodeAsk{Call: "message", TimeoutMS: int(attemptTimeout.Milliseconds())}, plan: always(standin.Step{Kind: standin.Timeout}),
			want: nodeSaw{Class: "APIConnectionTimeoutError"}, attempts: 3, closed: standin.Client,
			check: sleptOutTimeouts},
		{name: "a page with 200", ask: nodeAsk{Call: "message"}, plan: steps(standin.Step{Kind: standin.HTML}), attempts: 1, want: nodeSaw{OK: true}},
		{name: "nothing with 200", ask: nodeAsk{Call: "message"}, plan: steps(standin.Step{Kind: standin.Empty}), attempts: 1, want: nodeSaw{OK: true}},
		{name: "an error with 200", ask: nodeAsk{Call: "message"}, plan: steps(standin.Step{Kind: standin.Error}), attempts: 1, want: nodeSaw{OK: true}},
		{name: "half a body, cut clean", ask: nodeAsk{Call: "message"}, plan: steps(standin.Step{Kind: standin.Cut}), attempts: 1, want: nodeSaw{Class: "SyntaxError"}, closed: standin.Peer},
		{name: "half a body, cut inside a chunk", ask: nodeAsk{Call: "message"}, plan: steps(standin.Step{Kind: standin.Cut, How: standin.Chunk}), attempts: 1, want: nodeSaw{Class: "TypeError"}, closed: standin.Peer},
	}
}

// nodeAnthropicBrokenStreams are streams that do not come to their end. None of them is asked for again.
func nodeAnthropicBrokenStreams() []nodeCase {
	overloaded := nodeSaw{Class: "APIError", Type: "overloaded_error"}
	after := func(s nodeSaw, text string) nodeSaw { s.Text = text; return s }
	cut := func(how standin.Ending) standin.Plan {
		return steps(standin.Step{Kind: standin.Cut, How: how, After: 2})
	}
	return []nodeCase{
		{name: "error event first", ask: nodeAsk{Call: "final"}, plan: steps(standin.Step{Kind: standin.Error, At: standin.First}), want: overloaded, attempts: 1},
		{name: "error event before content", ask: nodeAsk{Call: "events"}, plan: steps(standin.Step{Kind: standin.Error}), want: overloaded, attempts: 1},
		{name: "error event after content", ask: nodeAsk{Call: "final"}, plan: steps(standin.Step{Kind: standin.Error, After: 2}), want: after(overloaded, "This is "), attempts: 1},
		{name: "error event of another type", ask: nodeAsk{Call: "events"}, plan: steps(standin.Step{Kind: standin.Error, Status: 500, After: 1}),
			want: nodeSaw{Class: "APIError", Type: "api_error", Text: "This "}, attempts: 1},
		{name: "cut clean, raw", ask: nodeAsk{Call: "events"}, plan: cut(standin.Clean), want: nodeSaw{OK: true, Text: "This is "}, attempts: 1, closed: standin.Peer},
		{name: "cut clean, helper", ask: nodeAsk{Call: "final"}, plan: cut(standin.Clean), want: nodeSaw{Class: "AnthropicError", Text: "This is "}, attempts: 1, closed: standin.Peer},
		{name: "cut inside a chunk", ask: nodeAsk{Call: "events"}, plan: cut(standin.Chunk), want: nodeSaw{Class: "TypeError", Text: "This is "}, attempts: 1, closed: standin.Peer},
		{name: "cut by a reset", ask: nodeAsk{Call: "final"}, plan: steps(standin.Step{Kind: standin.Cut, How: standin.RST, After: 2, Gap: 100 * time.Millisecond}), want: nodeSaw{Class: "AnthropicError", Text: "This is "}, lossy: true, attempts: 1, closed: standin.Peer},
		{name: "silence until the caller leaves", ask: nodeAsk{Call: "final", LeaveMS: 50, LeaveAfterText: true}, plan: cut(standin.Silence), want: nodeSaw{Class: "APIUserAbortError", Text: "This is "},
			attempts: 1, closed: standin.Client},
		{name: "silence is no matter of the timeout", ask: nodeAsk{Call: "events", TimeoutMS: 5000, LeaveMS: 6000, LeaveAfterText: true}, plan: cut(standin.Silence), want: nodeSaw{OK: true, Text: "This is "}, attempts: 1, closed: standin.Client},
		{name: "an empty stream", ask: nodeAsk{Call: "final"}, plan: steps(standin.Step{Kind: standin.Empty}), want: nodeSaw{Class: "AnthropicError"}, attempts: 1},
		{name: "a page instead of a stream", ask: nodeAsk{Call: "events"}, plan: steps(standin.Step{Kind: standin.HTML}), want: nodeSaw{OK: true}, attempts: 1},
	}
}
