package transport_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	anthropic1 "github.com/anthropics/anthropic-sdk-go"
	option1 "github.com/anthropics/anthropic-sdk-go/option"
	"github.com/anthropics/anthropic-sdk-go/v2"
	"github.com/anthropics/anthropic-sdk-go/v2/option"
	"github.com/openai/openai-go/v3"
	optionOpenAI "github.com/openai/openai-go/v3/option"

	"holdfast"
	"holdfast/internal/testnet"
	"holdfast/standin"
	"holdfast/transport"
)

// The plain func type is what each SDK takes.
var (
	_ option.Middleware       = transport.Middleware(nil)
	_ option1.Middleware      = transport.Middleware(nil)
	_ optionOpenAI.Middleware = transport.Middleware(nil)
)

type middleware = func(*http.Request, func(*http.Request) (*http.Response, error)) (*http.Response, error)

// sdk is one SDK with its defaults, its own retries included, and our middleware.
type sdk struct {
	name   string
	answer func(ctx context.Context, url string, c *http.Client, m middleware) (string, error)
	stream func(ctx context.Context, url string, c *http.Client, m middleware) (string, error)
	status func(err error) int // of the SDK's own error; 0 for any other
}

var sdks = []sdk{
	{
		name: "anthropic v2",
		answer: func(ctx context.Context, url string, c *http.Client, m middleware) (string, error) {
			client := anthropic.NewClient(option.WithAPIKey("k"), option.WithBaseURL(url), option.WithHTTPClient(c), option.WithMiddleware(m))
			answer, err := client.Messages.New(ctx, anthropicParams())
			if err != nil {
				return "", err
			}
			return answer.Content[0].Text, nil
		},
		stream: func(ctx context.Context, url string, c *http.Client, m middleware) (string, error) {
			client := anthropic.NewClient(option.WithAPIKey("k"), option.WithBaseURL(url), option.WithHTTPClient(c), option.WithMiddleware(m))
			s := client.Messages.NewStreaming(ctx, anthropicParams())
			defer s.Close()
			var got strings.Builder
			for s.Next() {
				got.WriteString(s.Current().Delta.Text)
			}
			return got.String(), s.Err()
		},
		status: func(err error) int {
			var e *anthropic.Error
			if errors.As(err, &e) {
				return e.StatusCode
			}
			return 0
		},
	},
	{
		name: "anthropic v1",
		answer: func(ctx context.Context, url string, c *http.Client, m middleware) (string, error) {
			client := anthropic1.NewClient(option1.WithAPIKey("k"), option1.WithBaseURL(url), option1.WithHTTPClient(c), option1.WithMiddleware(m))
			answer, err := client.Messages.New(ctx, anthropic1Params())
			if err != nil {
				return "", err
			}
			return answer.Content[0].Text, nil
		},
		stream: func(ctx context.Context, url string, c *http.Client, m middleware) (string, error) {
			client := anthropic1.NewClient(option1.WithAPIKey("k"), option1.WithBaseURL(url), option1.WithHTTPClient(c), option1.WithMiddleware(m))
			s := client.Messages.NewStreaming(ctx, anthropic1Params())
			defer s.Close()
			var got strings.Builder
			for s.Next() {
				got.WriteString(s.Current().Delta.Text)
			}
			return got.String(), s.Err()
		},
		status: func(err error) int {
			var e *anthropic1.Error
			if errors.As(err, &e) {
				return e.StatusCode
			}
			return 0
		},
	},
	{
		name: "openai v3",
		answer: func(ctx context.Context, url string, c *http.Client, m middleware) (string, error) {
			client := openai.NewClient(optionOpenAI.WithAPIKey("k"), optionOpenAI.WithBaseURL(url+"/v1"), optionOpenAI.WithHTTPClient(c), optionOpenAI.WithMiddleware(m))
			answer, err := client.Chat.Completions.New(ctx, openaiParams())
			if err != nil {
				return "", err
			}
			return answer.Choices[0].Message.Content, nil
		},
		stream: func(ctx context.Context, url string, c *http.Client, m middleware) (string, error) {
			client := openai.NewClient(optionOpenAI.WithAPIKey("k"), optionOpenAI.WithBaseURL(url+"/v1"), optionOpenAI.WithHTTPClient(c), optionOpenAI.WithMiddleware(m))
			s := client.Chat.Completions.NewStreaming(ctx, openaiParams())
			defer s.Close()
			var got strings.Builder
			for s.Next() {
				for _, choice := range s.Current().Choices {
					got.WriteString(choice.Delta.Content)
				}
			}
			return got.String(), s.Err()
		},
		status: func(err error) int {
			var e *openai.Error
			if errors.As(err, &e) {
				return e.StatusCode
			}
			return 0
		},
	},
}

func anthropicParams() anthropic.MessageNewParams {
	return anthropic.MessageNewParams{
		Model: "claude-sonnet-5-5", MaxTokens: 100, Messages: []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock("hi"))},
	}
}

func anthropic1Params() anthropic1.MessageNewParams {
	return anthropic1.MessageNewParams{
		Model: "claude-sonnet-5-5", MaxTokens: 100, Messages: []anthropic1.MessageParam{anthropic1.NewUserMessage(anthropic1.NewTextBlock("hi"))},
	}
}

func openaiParams() openai.ChatCompletionNewParams {
	return openai.ChatCompletionNewParams{Model: "gpt-6", Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("hi")}}
}

const words = "The quick brown fox jumps over the lazy dog."

func TestSDKs(t *testing.T) {
	shed := standin.Step{Kind: standin.HTTP, Status: 529, Times: -1}
	for _, c := range []struct {
		name     string
		plan     standin.Plan
		policy   func() *holdfast.Policy
		streams  bool // the case is about streams alone
		requests int
		calls    int // of the middleware
		status   int // 0: an answer
	}{
		{name: "a good answer", policy: plain, requests: 1, calls: 1},
		{name: "429, then an answer", plan: standin.Failing(1, 429, "1"), policy: plain, requests: 2, calls: 1},
		{name: "overloaded for ever is asked as often as our policy says", plan: standin.Plan{Steps: []standin.Step{shed}}, policy: plain, requests: 4, calls: 1, status: 529},
		{name: "an open circuit is one call of the middleware", policy: func() *holdfast.Policy { return &holdfast.Policy{Breaker: opened()} }, calls: 1, status: 503},
		{name: "no pace is one call of the middleware", policy: func() *holdfast.Policy { return &holdfast.Policy{Pace: emptied()} }, calls: 1, status: 429},
		{name: "a bad request", plan: standin.Failing(-1, 400, ""), policy: plain, requests: 1, calls: 1, status: 400},
		{name: "an error before content", plan: standin.Plan{Steps: []standin.Step{{Kind: standin.Error, At: standin.Preamble}}}, policy: plain, streams: true, requests: 2, calls: 1},
		{name: "an error before content for ever", plan: standin.Plan{Steps: []standin.Step{{Kind: standin.Error, Status: 500, At: standin.Preamble, Times: -1}}}, policy: plain, streams: true, requests: 4, calls: 1, status: 500},
	} {
		for _, s := range sdks {
			for kind, call := range map[string]func(context.Context, string, *http.Client, middleware) (string, error){"answer": s.answer, "stream": s.stream} {
				if c.streams && kind == "answer" {
					continue
				}
				bubble(t, fmt.Sprintf("%s, %s, %s", c.name, s.name, kind), func(t *testing.T) {
					c.plan.Reply = words
					upstream := standin.New(c.plan)
					n := testnet.New()
					server := n.Serve(t, "api.test:80", upstream)
					calls := 0
					own := transport.Middleware(c.policy())
					counted := func(req *http.Request, next func(*http.Request) (*http.Response, error)) (*http.Response, error) {
						calls++
						return own(req, next)
					}
					got, err := call(t.Context(), server.URL, n.Client(), counted)
					if c.status == 0 && (err != nil || got != words) {
						t.Errorf("got %q and %v", got, err)
					}
					if c.status != 0 && s.status(err) != c.status {
						t.Errorf("got %q and %v, want a %d", got, err, c.status)
					}
					if n := len(upstream.Journal()); n != c.requests || calls != c.calls {
						t.Errorf("%d requests and %d calls of the middleware, want %d and %d", n, calls, c.requests, c.calls)
					}
				})
			}
		}
	}
}

func plain() *holdfast.Policy { return &holdfast.Policy{Dice: half} }

func TestSDKsSeeACutStream(t *testing.T) {
	for _, how := range []standin.Ending{standin.Clean, standin.Chunk, standin.RST} {
		for _, s := range sdks {
			bubble(t, fmt.Sprintf("B60 %s, %s", how, s.name), func(t *testing.T) {
				upstream := standin.New(standin.Plan{Reply: words, Steps: []standin.Step{{Kind: standin.Cut, After: 3, How: how, Gap: time.Millisecond, Times: -1}}})
				n := testnet.New()
				server := n.Serve(t, "api.test:80", upstream)
				got, err := s.stream(t.Context(), server.URL, n.Client(), transport.Middleware(plain()))
				var lost *transport.CutError
				if !errors.As(err, &lost) || !errors.Is(err, holdfast.ErrCut) || lost.Phase != transport.AfterContent {
					t.Errorf("got %q and %v", got, err)
				}
				if got == "" || !strings.HasPrefix(words, got) {
					t.Errorf("got %q", got)
				}
				if n := len(upstream.Journal()); n != 1 {
					t.Errorf("%d requests, want 1", n)
				}
			})
		}
	}
}

func TestSDKCallerWhoLeaves(t *testing.T) {
	for _, s := range sdks {
		bubble(t, s.name, func(t *testing.T) {
			upstream := standin.New(standin.Failing(-1, 429, "30"))
			n := testnet.New()
			server := n.Serve(t, "api.test:80", upstream)
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(time.Second, cancel)
			began := time.Now()
			_, err := s.answer(ctx, server.URL, n.Client(), transport.Middleware(plain()))
			if !errors.Is(err, context.Canceled) || time.Since(began) != time.Second {
				t.Errorf("got %v after %v", err, time.Since(began))
			}
			if n := len(upstream.Journal()); n != 1 {
				t.Errorf("%d requests, want 1", n)
			}
		})
	}
}

// Keys travel in headers and, with some gateways, in the query; no error may repeat them.
func TestB160_KeysAreInNoErrorAndNoReply(t *testing.T) {
	const canary = "sk-ant-CANARY0123456789"
	for name, script := range map[string]http.HandlerFunc{"500": respond(500, ""), "reset": reset, "hang": hang, "cut": then(stream(preamble, delta), abort)} {
		for _, down := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				u := serve(t, script)
				if down {
					u.net.Refuse("api.test:80")
				}
				policy, verdicts := watched(100)
				policy.AttemptTimeout = time.Second
				for _, errs := range []bool{false, true} {
					req := request(t, t.Context(), "POST", u.URL+"/v1/messages?key="+canary, strings.NewReader(streamPrompt))
					req.Header.Set("X-Api-Key", canary)
					tr := &transport.Transport{Policy: policy, Base: roundTripper(u.client.Do), ReturnErrors: errs}
					resp, err := tr.RoundTrip(req)
					said := fmt.Sprint(err, verdicts())
					if resp != nil {
						body, err := io.ReadAll(resp.Body)
						resp.Body.Close()
						trace, _ := transport.TraceOf(resp)
						said += fmt.Sprint(string(body), err, resp.Header, transport.ErrorOf(resp), trace.Summary())
					}
					if strings.Contains(said, "CANARY") {
						t.Errorf("%s: the key is in %s", name, said)
					}
				}
			})
		}
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }
