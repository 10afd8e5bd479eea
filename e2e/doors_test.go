// Package e2e_test drives whole calls through every door of Holdfast against the stand-in, and holds them against each
// other: one scenario, many doors.
package e2e_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"

	"holdfast"
	"holdfast/gateway"
	"holdfast/transport"

	anthropic1 "github.com/anthropics/anthropic-sdk-go"
	option1 "github.com/anthropics/anthropic-sdk-go/option"
	"github.com/anthropics/anthropic-sdk-go/v2"
	"github.com/anthropics/anthropic-sdk-go/v2/option"
	"github.com/openai/openai-go/v3"
	openaioption "github.com/openai/openai-go/v3/option"
)

// result is what a caller got.
type result struct {
	status  int // of the error, 200 for an answer, 0 for an error without one
	stopped bool
	err     error
}

// door is a way into Holdfast. It makes one call and returns what the caller sees.
type door struct {
	name string
	path string // what the stand-in sees
	call func(ctx context.Context, p *holdfast.Policy, client *http.Client, url string) result
}

const prompt = "one question"

var doors = slices.Concat([]door{
	{"Do over net/http", "/v1/messages", callDo},
	{"transport", "/v1/messages", callTransport},
	{"Do over the Anthropic SDK", "/v1/messages", callSDKInDo},
	{"middleware of the Anthropic SDK", "/v1/messages", callAnthropic},
	{"middleware of the Anthropic SDK, streaming", "/v1/messages", callAnthropicStream},
	{"middleware of the Anthropic SDK v1", "/v1/messages", callAnthropic1},
	{"middleware of the OpenAI SDK", "/v1/chat/completions", callOpenAI},
}, gatewayDoors(gateway.Live), gatewayDoors(gateway.Whole))

const messagesBody = `{"model":"claude-sonnet-5-5","max_tokens":100,"messages":[{"role":"user","content":"` + prompt + `"}]}`

func post(ctx context.Context, client *http.Client, url string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/v1/messages", bytes.NewReader([]byte(messagesBody)))
	if err != nil {
		return nil, err
	}
	req.Header.Set("content-type", "application/json")
	req.Header.Set("x-api-key", "sk-test")
	req.Header.Set("anthropic-version", "2023-06-01")
	return client.Do(req)
}

// replyError is how a client without an SDK tells of an error reply.
type replyError struct {
	status int
	header http.Header
	body   []byte
}

func (e *replyError) Error() string { return fmt.Sprintf("status %d", e.status) }

func (e *replyError) Verdict() holdfast.Verdict {
	return holdfast.FromReply(e.status, e.header, e.body, time.Now())
}

func callDo(ctx context.Context, p *holdfast.Policy, client *http.Client, url string) result {
	_, _, err := holdfast.Do(ctx, p, func(ctx context.Context) ([]byte, error) {
		resp, err := post(ctx, client, url)
		if err != nil {
			return nil, err
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			return nil, err
		}
		e := &replyError{resp.StatusCode, resp.Header, body}
		if v := e.Verdict(); v.Kind != holdfast.OK && v.Kind != holdfast.Refused {
			return nil, e
		}
		return body, nil
	})
	var e *replyError
	r := result{err: err}
	switch {
	case err == nil:
		r.status = http.StatusOK
	case errors.As(err, &e) && e.status != http.StatusOK:
		r.status = e.status
	}
	return r
}

func callTransport(ctx context.Context, p *holdfast.Policy, client *http.Client, url string) result {
	through := &http.Client{Transport: transport.New(p, client.Transport)}
	resp, err := post(ctx, through, url)
	if err != nil {
		return result{err: err}
	}
	defer resp.Body.Close()
	if _, err := io.ReadAll(resp.Body); err != nil {
		return result{status: resp.StatusCode, err: err}
	}
	return result{status: resp.StatusCode, stopped: resp.Header.Get("x-should-retry") == "false"}
}

func params() anthropic.MessageNewParams {
	return anthropic.MessageNewParams{
		Model: "claude-sonnet-5-5", MaxTokens: 100,
		Messages: []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock(prompt))},
	}
}

func anthropicClient(client *http.Client, url string, more option.RequestOption) anthropic.Client {
	return anthropic.NewClient(option.WithAPIKey("sk-test"), option.WithBaseURL(url), option.WithHTTPClient(client), more)
}

func openaiClient(client *http.Client, url string, more openaioption.RequestOption) openai.Client {
	return openai.NewClient(openaioption.WithAPIKey("sk-test"), openaioption.WithBaseURL(url+"/v1"), openaioption.WithHTTPClient(client), more)
}

// resultOf is what an SDK's caller sees: reply takes the response out of that SDK's error, and is nil for other errors.
func resultOf(err error, reply func() *http.Response) result {
	if err == nil {
		return result{status: http.StatusOK}
	}
	if resp := reply(); resp != nil {
		return result{status: resp.StatusCode, stopped: resp.Header.Get("x-should-retry") == "false", err: err}
	}
	return result{err: err}
}

func anthropicResult(err error) result {
	return resultOf(err, func() *http.Response {
		var e *anthropic.Error
		if errors.As(err, &e) {
			return e.Response
		}
		return nil
	})
}

func callSDKInDo(ctx context.Context, p *holdfast.Policy, client *http.Client, url string) result {
	sdk := anthropicClient(client, url, option.WithMaxRetries(0))
	_, _, err := holdfast.Do(ctx, p, func(ctx context.Context) (*anthropic.Message, error) {
		return sdk.Messages.New(ctx, params())
	})
	return anthropicResult(err)
}

// The SDKs keep their own retries switched on: the middleware must make them do nothing.
func callAnthropic(ctx context.Context, p *holdfast.Policy, client *http.Client, url string) result {
	sdk := anthropicClient(client, url, option.WithMiddleware(transport.Middleware(p)))
	_, err := sdk.Messages.New(ctx, params())
	return anthropicResult(err)
}

func callAnthropicStream(ctx context.Context, p *holdfast.Policy, client *http.Client, url string) result {
	sdk := anthropicClient(client, url, option.WithMiddleware(transport.Middleware(p)))
	stream := sdk.Messages.NewStreaming(ctx, params())
	defer stream.Close()
	var message anthropic.Message
	for stream.Next() {
		if err := message.Accumulate(stream.Current()); err != nil {
			return result{err: err}
		}
	}
	if err := stream.Err(); err != nil {
		return anthropicResult(err)
	}
	if message.StopReason == "" {
		return result{err: errors.New("the stream ended without a stop reason")}
	}
	return result{status: http.StatusOK}
}

func callAnthropic1(ctx context.Context, p *holdfast.Policy, client *http.Client, url string) result {
	sdk := anthropic1.NewClient(option1.WithAPIKey("sk-test"), option1.WithBaseURL(url), option1.WithHTTPClient(client), option1.WithMiddleware(transport.Middleware(p)))
	_, err := sdk.Messages.New(ctx, params1())
	return anthropic1Result(err)
}

func params1() anthropic1.MessageNewParams {
	return anthropic1.MessageNewParams{
		Model: "claude-sonnet-5-5", MaxTokens: 100,
		Messages: []anthropic1.MessageParam{anthropic1.NewUserMessage(anthropic1.NewTextBlock(prompt))},
	}
}

func anthropic1Result(err error) result {
	return resultOf(err, func() *http.Response {
		var e *anthropic1.Error
		if errors.As(err, &e) {
			return e.Response
		}
		return nil
	})
}

func callOpenAI(ctx context.Context, p *holdfast.Policy, client *http.Client, url string) result {
	sdk := openaiClient(client, url, openaioption.WithMiddleware(transport.Middleware(p)))
	_, err := sdk.Chat.Completions.New(ctx, chatParams())
	return openaiResult(err)
}

func openaiResult(err error) result {
	return resultOf(err, func() *http.Response {
		var e *openai.Error
		if errors.As(err, &e) {
			return e.Response
		}
		return nil
	})
}
