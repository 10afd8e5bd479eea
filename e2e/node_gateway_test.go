package e2e_test

import (
	"context"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"holdfast"
	"holdfast/gateway"
	"holdfast/standin"
)

// gatewayCase is a scenario of a Node SDK that has a gateway for its base URL. The SDK keeps its own retries.
type gatewayCase struct {
	name     string
	delivery gateway.Delivery
	plan     standin.Plan
	ask      nodeAsk
	want     nodeSaw
	requests int // of the gateway; the SDK makes one attempt in any case
	lossy    bool
}

// playNodeThroughGateway is playNode with a gateway between each client and its stand-in. Its waits are short.
func playNodeThroughGateway(t *testing.T, script string, cases []gatewayCase) {
	node := needNode(t)
	servers := map[string]*standin.Server{}
	seen := map[string]*counted{}
	var asks []nodeAsk
	for _, c := range cases {
		if servers[c.name] != nil {
			t.Fatalf("two cases have the name %q", c.name)
		}
		s := standin.New(c.plan)
		url, stop, err := s.Start("")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = stop() })
		calls := &counted{}
		g, err := gateway.New(gateway.Settings{
			Targets: []gateway.Target{{Name: "api", URL: url}}, Observer: calls, Stream: gateway.Stream{Delivery: c.delivery},
			Policy: holdfast.Policy{Attempts: 3, AttemptTimeout: attemptTimeout, Backoff: holdfast.Backoff{Base: time.Millisecond, Cap: 10 * time.Millisecond, ThrottleBase: time.Millisecond}},
			Idle:   attemptTimeout / 2, FirstContent: attemptTimeout,
		})
		if err != nil {
			t.Fatal(err)
		}
		servers[c.name], seen[c.name] = s, calls
		ask := c.ask
		ask.Name, ask.BaseURL, ask.Prompt = c.name, onLoopback(t, g), "hello"
		asks = append(asks, ask)
	}
	saw := runNode(t, node, script, asks)
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got, reported := saw[c.name]
			if !reported {
				t.Fatal("the client reported nothing")
			}
			short := got
			short.nodeDetail = nodeDetail{}
			if c.lossy && short.Text != "" {
				short.Text = c.want.Text
			}
			if diff := cmp.Diff(c.want, short, cmp.AllowUnexported(nodeSaw{})); diff != "" {
				t.Errorf("the client saw (-want +got):\n%s%s", diff, got.Message)
			}
			j := servers[c.name].Journal()
			if len(j) != c.requests {
				t.Errorf("the gateway made %d requests, want %d", len(j), c.requests)
			}
			for _, x := range j {
				if x.SDKRetry != 0 || x.Digest != j[0].Digest {
					t.Errorf("request %d: counted %d by the client, same body %v", x.Number, x.SDKRetry, x.Digest == j[0].Digest)
				}
			}
			if n := seen[c.name].calls(); n != 1 {
				t.Errorf("the SDK made %d attempts", n)
			}
		})
	}
}

// onLoopback serves a gateway on a port of its own.
func onLoopback(t *testing.T, g *gateway.Gateway) (url string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- g.Serve(ctx, l, nil, 5*time.Second) }()
	t.Cleanup(func() {
		stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return "http://" + l.Addr().String()
}

// The TypeScript SDK of the Claude API behind a gateway: an answer is complete, and an error comes after one attempt and is
// of its true class.
func TestNodeAnthropicThroughTheGateway(t *testing.T) {
	var cases []gatewayCase
	for _, row := range []struct {
		status   int
		class    string
		typ      string
		requests int
	}{
		{400, "BadRequestError", "invalid_request_error", 1},
		{401, "AuthenticationError", "authentication_error", 1},
		{402, "PaymentRequiredError", "billing_error", 1},
		{403, "PermissionDeniedError", "permission_error", 1},
		{404, "NotFoundError", "not_found_error", 1},
		{409, "ConflictError", "conflict_error", 3},
		{413, "ContentTooLargeError", "request_too_large", 1},
		{429, "RateLimitError", "rate_limit_error", 3},
		{500, "InternalServerError", "api_error", 3},
		{503, "ServiceUnavailableError", "overloaded_error", 3},
		{504, "GatewayTimeoutError", "timeout_error", 3},
		{529, "OverloadedError", "overloaded_error", 3},
	} {
		for _, call := range []string{"message", "events", "final"} {
			cases = append(cases, gatewayCase{name: fmt.Sprint(row.status, " for ever, ", call), plan: always(standin.Step{Kind: standin.HTTP, Status: row.status}),
				ask: nodeAsk{Call: call}, want: failed(row.class, row.status, row.typ), requests: row.requests})
			if row.requests > 1 {
				cases = append(cases, gatewayCase{name: fmt.Sprint(row.status, " twice, ", call), plan: standin.Failing(2, row.status, ""),
					ask: nodeAsk{Call: call}, want: good(answer), requests: 3})
			}
		}
	}
	part := func(c gatewayCase, text string) gatewayCase { c.want.Text = text; return c }
	for name, step := range map[string]standin.Step{
		"reset": {Kind: standin.Reset}, "nothing with 200": {Kind: standin.Empty}, "a page with 200": {Kind: standin.HTML}, "silence": {Kind: standin.Timeout},
	} {
		for _, call := range []string{"message", "final"} {
			cases = append(cases, gatewayCase{name: name + " once, " + call, plan: steps(step), ask: nodeAsk{Call: call}, want: good(answer), requests: 2})
		}
	}
	bad := func(status int, class, typ string) nodeSaw { return failed(class, status, typ) }
	cases = append(cases,
		gatewayCase{name: "reset for ever", plan: always(standin.Step{Kind: standin.Reset}), ask: nodeAsk{Call: "message"}, want: bad(502, "InternalServerError", "api_error"), requests: 3},
		gatewayCase{name: "silence for ever", plan: always(standin.Step{Kind: standin.Timeout}), ask: nodeAsk{Call: "message"}, want: bad(504, "GatewayTimeoutError", "timeout_error"), requests: 3},
		gatewayCase{name: "nothing for ever", plan: always(standin.Step{Kind: standin.Empty}), ask: nodeAsk{Call: "message"}, want: bad(502, "InternalServerError", "api_error"), requests: 3},
	)
	for _, how := range []standin.Ending{standin.Clean, standin.Chunk, standin.RST, standin.Silence} {
		mid := standin.Step{Kind: standin.Cut, How: how, After: 2, Gap: 20 * time.Millisecond}
		typ := "api_error"
		if how == standin.Silence {
			typ = "timeout_error"
		}
		for _, call := range []string{"events", "final"} {
			name := fmt.Sprint("cut ", how, ", ", call)
			cases = append(cases,
				gatewayCase{name: name + ", before content", plan: steps(standin.Step{Kind: standin.Cut, How: how}), ask: nodeAsk{Call: call}, want: good(answer), requests: 2},
				part(gatewayCase{name: name + ", live", plan: steps(mid), ask: nodeAsk{Call: call}, want: nodeSaw{Class: "APIError", Type: typ}, requests: 1, lossy: how == standin.RST}, "This is "),
				gatewayCase{name: name + ", whole", delivery: gateway.Whole, plan: steps(mid), ask: nodeAsk{Call: call}, want: good(answer), requests: 2},
				gatewayCase{name: name + ", behind the stop reason", plan: steps(standin.Step{Kind: standin.Cut, How: how, At: standin.Stop, Gap: 20 * time.Millisecond}), ask: nodeAsk{Call: call}, want: good(answer), requests: 1},
			)
		}
	}
	for _, call := range []string{"events", "final"} {
		cases = append(cases,
			gatewayCase{name: "an error event first, " + call, plan: steps(standin.Step{Kind: standin.Error, At: standin.First}), ask: nodeAsk{Call: call}, want: good(answer), requests: 2},
			gatewayCase{name: "an error event before content for ever, " + call, plan: always(standin.Step{Kind: standin.Error}), ask: nodeAsk{Call: call}, want: bad(529, "OverloadedError", "overloaded_error"), requests: 3},
			part(gatewayCase{name: "an error event after content, " + call, plan: steps(standin.Step{Kind: standin.Error, After: 2}), ask: nodeAsk{Call: call}, want: nodeSaw{Class: "APIError", Type: "overloaded_error"}, requests: 1}, "This is "),
		)
	}
	playNodeThroughGateway(t, "anthropic.mjs", cases)
}

// The Node SDK of OpenAI behind a gateway.
func TestNodeOpenAIThroughTheGateway(t *testing.T) {
	var cases []gatewayCase
	for _, row := range []struct {
		status   int
		class    string
		typ      string
		requests int
	}{
		{400, "BadRequestError", "invalid_request_error", 1},
		{404, "NotFoundError", "invalid_request_error", 1},
		{429, "RateLimitError", "requests", 3},
		{500, "InternalServerError", "server_error", 3},
		{503, "InternalServerError", "server_error", 3},
	} {
		for _, call := range []string{"chat", "chat_events", "chat_final", "response", "response_events", "response_final"} {
			c := gatewayCase{name: fmt.Sprint(row.status, " for ever, ", call), plan: always(standin.Step{Kind: standin.HTTP, Status: row.status}),
				ask: nodeAsk{Call: call}, want: failed(row.class, row.status, row.typ), requests: row.requests}
			c.want.Code = map[int]string{429: "rate_limit_exceeded", 503: "server_is_overloaded"}[row.status]
			cases = append(cases, c)
			if row.requests > 1 {
				want := stopped(answer)
				if call[0] == 'r' {
					want.StopReason = "completed"
				}
				cases = append(cases, gatewayCase{name: fmt.Sprint(row.status, " twice, ", call), plan: standin.Failing(2, row.status, ""), ask: nodeAsk{Call: call}, want: want, requests: 3})
			}
		}
	}
	for _, how := range []standin.Ending{standin.Clean, standin.Chunk, standin.RST, standin.Silence} {
		mid := standin.Step{Kind: standin.Cut, How: how, After: 2, Gap: 20 * time.Millisecond}
		want := nodeSaw{Class: "APIError", Type: "server_error", Text: "This is "}
		cases = append(cases,
			gatewayCase{name: fmt.Sprint("cut ", how, " before content"), plan: steps(standin.Step{Kind: standin.Cut, How: how}), ask: nodeAsk{Call: "chat_events"}, want: stopped(answer), requests: 2},
			gatewayCase{name: fmt.Sprint("cut ", how, ", live"), plan: steps(mid), ask: nodeAsk{Call: "chat_events"}, want: want, requests: 1, lossy: how == standin.RST},
			gatewayCase{name: fmt.Sprint("cut ", how, ", whole"), delivery: gateway.Whole, plan: steps(mid), ask: nodeAsk{Call: "chat_events"}, want: stopped(answer), requests: 2},
			gatewayCase{name: fmt.Sprint("cut ", how, ", whole, helper"), delivery: gateway.Whole, plan: steps(mid), ask: nodeAsk{Call: "chat_final"}, want: stopped(answer), requests: 2},
		)
	}
	playNodeThroughGateway(t, "openai.mjs", cases)
}
