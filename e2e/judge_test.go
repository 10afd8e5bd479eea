package e2e_test

import (
	"net/http"
	"testing"
	"time"

	"holdfast"
	"holdfast/internal/testnet"
	"holdfast/standin"

	"github.com/anthropics/anthropic-sdk-go/v2/option"
	"github.com/openai/openai-go/v3"
	openaioption "github.com/openai/openai-go/v3/option"
)

// The errors that the SDKs really return are judged without importing them, with all that the reply said.
func TestErrorsOfTheSDKs(t *testing.T) {
	const spent = `{"type":"error","error":{"type":"insufficient_quota","code":"credit_balance_exhausted","message":"x"}}`
	for name, c := range map[string]struct {
		step standin.Step
		want holdfast.Kind
		wait time.Duration
	}{
		"429":             {standin.Step{Status: 429, RetryAfter: "7", RequestID: "req_7"}, holdfast.Throttled, 7 * time.Second},
		"529":             {standin.Step{Status: 529, RequestID: "req_7"}, holdfast.Overloaded, 0},
		"500":             {standin.Step{Status: 500, RequestID: "req_7"}, holdfast.Broken, 0},
		"401":             {standin.Step{Status: 401, RequestID: "req_7"}, holdfast.Terminal, 0},
		"a spent balance": {standin.Step{Status: 429, Body: spent, RequestID: "req_7"}, holdfast.Spent, 0},
		"502 of a proxy":  {standin.Step{Status: 502, Body: "<html>", ContentType: "text/html", RequestID: "req_7"}, holdfast.Broken, 0},
		"prompt too long": {standin.Step{Status: 400, Message: "prompt is too long: 3 tokens > 2 maximum", RequestID: "req_7"}, holdfast.Overflow, 0},
	} {
		c.step.Kind, c.step.Times = standin.HTTP, -1
		net := testnet.New()
		server := net.Serve(t, "api.test:80", standin.New(standin.Plan{Steps: []standin.Step{c.step}}))
		for sdk, call := range map[string]func() error{
			"anthropic": func() error {
				client := anthropicClient(net.Client(), server.URL, option.WithMaxRetries(0))
				_, err := client.Messages.New(t.Context(), params())
				return err
			},
			"openai": func() error {
				client := openaiClient(net.Client(), server.URL, openaioption.WithMaxRetries(0))
				_, err := client.Chat.Completions.New(t.Context(), openai.ChatCompletionNewParams{Model: "m", Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage(prompt)}})
				return err
			},
		} {
			t.Run(name+"/"+sdk, func(t *testing.T) {
				v := holdfast.Judge(call())
				status := c.step.Status
				if v.Kind != c.want || v.Wait != c.wait || v.Status != status {
					t.Errorf("%v, wait %v, status %d by rule %s; want %v, wait %v, status %d", v.Kind, v.Wait, v.Status, v.Rule, c.want, c.wait, status)
				}
				if v.RequestID != "req_7" && http.StatusText(status) != "" {
					t.Errorf("request id %q", v.RequestID)
				}
			})
		}
	}
}

// An error event inside a stream reaches the caller of an SDK as an error with the status 200 of the open response. It is
// judged by its type: a bad key was repeated and hidden behind a saved answer, and an overload was booked as a success.
func TestErrorEventsOfTheSDKs(t *testing.T) {
	for status, want := range map[int]holdfast.Kind{
		401: holdfast.Terminal, 400: holdfast.Terminal, 402: holdfast.Spent, 429: holdfast.Throttled, 500: holdfast.Broken, 529: holdfast.Overloaded,
	} {
		for name, at := range map[string]standin.Step{"first": {At: standin.First}, "after content": {After: 2}} {
			at.Kind, at.Status, at.Times = standin.Error, status, -1
			net := testnet.New()
			server := net.Serve(t, "api.test:80", standin.New(standin.Plan{Steps: []standin.Step{at}}))
			client := anthropicClient(net.Client(), server.URL, option.WithMaxRetries(0))
			stream := client.Messages.NewStreaming(t.Context(), params())
			for stream.Next() {
			}
			v := holdfast.Judge(stream.Err())
			if v.Kind != want || v.Status != status || v.Type == "" {
				t.Errorf("%d %s: judged %v, status %d, type %q by rule %s, want %v", status, name, v.Kind, v.Status, v.Type, v.Rule, want)
			}
			_ = stream.Close()
		}
	}
}
