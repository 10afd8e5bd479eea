package e2e_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	anthropic1 "github.com/anthropics/anthropic-sdk-go"
	option1 "github.com/anthropics/anthropic-sdk-go/option"
	"github.com/anthropics/anthropic-sdk-go/v2/option"
	openaioption "github.com/openai/openai-go/v3/option"

	"holdfast"
	"holdfast/gateway"
	"holdfast/internal/testnet"
)

// The gateway as a door: a client that knows nothing of Holdfast and has its address for a base URL. Clients that retry
// by themselves keep that: the gateway must make them do nothing.

func gatewayDoors(delivery gateway.Delivery) []door {
	through := func(call func(context.Context, *http.Client, string) result) func(context.Context, *holdfast.Policy, *http.Client, string) result {
		return func(ctx context.Context, p *holdfast.Policy, client *http.Client, url string) (r result) {
			behind(p, client, url, delivery, func(client *http.Client, url string) { r = call(ctx, client, url) })
			return r
		}
	}
	streaming := func(call func(context.Context, *http.Client, string) streamed) func(context.Context, *holdfast.Policy, *http.Client, string) result {
		return through(func(ctx context.Context, client *http.Client, url string) result {
			return call(ctx, client, url).result()
		})
	}
	name := "gateway" + words[delivery]
	all := []door{
		{name, "/v1/messages", through(plain("/v1/messages", messagesBody))},
		{name + ", other dialect", "/v1/chat/completions", through(plain("/v1/chat/completions", chatBody))},
		{name + ", streaming", "/v1/messages", streaming(plainStream)},
		{name + ", other dialect, streaming", "/v1/chat/completions", streaming(plainChunks)},
	}
	if delivery == gateway.Whole { // the SDKs meet no other answers than a plain client
		return all
	}
	return append(all,
		door{name + " to the Anthropic SDK", "/v1/messages", through(sdkMessages)},
		door{name + " to the Anthropic SDK, streaming", "/v1/messages", streaming(sdkMessagesStream)},
		door{name + " to the Anthropic SDK v1", "/v1/messages", through(sdkMessages1)},
		door{name + " to the OpenAI SDK", "/v1/chat/completions", through(sdkChat)},
		door{name + " to the OpenAI SDK, streaming", "/v1/chat/completions", streaming(sdkChatStream)},
	)
}

func gatewayStreamDoors(delivery gateway.Delivery) []streamDoor {
	name, whole := "gateway"+words[delivery], delivery == gateway.Whole
	through := func(call func(context.Context, *http.Client, string) streamed) func(context.Context, *holdfast.Policy, *http.Client, string) streamed {
		return func(ctx context.Context, p *holdfast.Policy, client *http.Client, url string) (s streamed) {
			behind(p, client, url, delivery, func(client *http.Client, url string) { s = call(ctx, client, url) })
			return s
		}
	}
	return []streamDoor{
		{name, through(plainStream), whole},
		{name + ", other dialect", through(plainChunks), whole},
		{name + " to the Anthropic SDK", through(sdkMessagesStream), whole},
		{name + " to the OpenAI SDK", through(sdkChatStream), whole},
	}
}

var words = map[gateway.Delivery]string{gateway.Live: "", gateway.Whole: " in whole delivery"}

// behind opens a gateway in front of url for one call.
func behind(p *holdfast.Policy, upstream *http.Client, url string, delivery gateway.Delivery, call func(*http.Client, string)) {
	g, err := gateway.New(gateway.Settings{
		Targets: []gateway.Target{{Name: "api", URL: url}}, Policy: *p, Base: upstream.Transport,
		Stream: gateway.Stream{Delivery: delivery, Hold: -1}, // until there is content, as at the other doors
	})
	if err != nil {
		panic(err) // a mistake in the table
	}
	net := testnet.New()
	server := net.Start("gateway.test:80", g)
	defer server.Close()
	call(net.Client(), server.URL)
}

const chatBody = `{"model":"gpt-5.1","messages":[{"role":"user","content":"` + prompt + `"}]}`

func postPlain(ctx context.Context, client *http.Client, url, body string) (*http.Response, []byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		return nil, nil, err
	}
	req.Header.Set("content-type", "application/json")
	if strings.Contains(url, "/v1/messages") {
		req.Header.Set("x-api-key", "sk-test")
		req.Header.Set("anthropic-version", "2023-06-01")
	} else {
		req.Header.Set("authorization", "Bearer sk-test")
	}
	resp, err := client.Do(req)
	if err != nil {
		return nil, nil, err
	}
	defer resp.Body.Close()
	all, err := io.ReadAll(resp.Body)
	return resp, all, err
}

func plain(path, body string) func(context.Context, *http.Client, string) result {
	return func(ctx context.Context, client *http.Client, url string) result {
		resp, _, err := postPlain(ctx, client, url+path, body)
		if err != nil {
			return result{err: err}
		}
		return result{status: resp.StatusCode, stopped: closing(resp)}
	}
}

// errEvent is a stream that ends with an error event.
var errEvent = errors.New("the stream ended with an error event")

func plainStream(ctx context.Context, client *http.Client, url string) streamed {
	resp, all, err := postPlain(ctx, client, url+"/v1/messages", strings.Replace(messagesBody, "{", `{"stream":true,`, 1))
	if resp == nil {
		return streamed{err: err}
	}
	s := streamed{status: resp.StatusCode, stopped: closing(resp), err: err}
	for _, part := range strings.Split(string(all), `"text_delta","text":"`)[1:] {
		text, _, _ := strings.Cut(part, `"`)
		s.text += text
	}
	return s.judged(all, `"stop_reason":"end_turn"`, "event: error\n", "event: message_stop\n")
}

func plainChunks(ctx context.Context, client *http.Client, url string) streamed {
	resp, all, err := postPlain(ctx, client, url+"/v1/chat/completions", strings.Replace(chatBody, "{", `{"stream":true,`, 1))
	if resp == nil {
		return streamed{err: err}
	}
	s := streamed{status: resp.StatusCode, stopped: closing(resp), err: err}
	for _, part := range strings.Split(string(all), `"delta":{"content":"`)[1:] {
		text, _, _ := strings.Cut(part, `"`)
		s.text += text
	}
	return s.judged(all, `"finish_reason":"stop"`, `data: {"error":`, "data: [DONE]\n")
}

// judged says how a stream ended: with its stop reason and its terminal event, or with an error event, never both and
// never neither.
func (s streamed) judged(all []byte, stop, failed, end string) streamed {
	if s.err != nil || s.status != http.StatusOK {
		return s
	}
	broken, ended := bytes.Contains(all, []byte(failed)), bytes.Contains(all, []byte(end))
	switch {
	case broken == ended:
		s.err = fmt.Errorf("error event: %v, terminal event: %v, in %.2000q", broken, ended, all)
	case broken:
		s.err = errEvent
	case !bytes.Contains(all, []byte(stop)):
		s.err = errors.New("the stream ended without a stop reason")
	default:
		s.complete = true
	}
	return s
}

// result is the same as a call sees it that wants an answer.
func (s streamed) result() result {
	if s.status == http.StatusOK && !s.complete {
		s.err = cmp.Or(s.err, errors.New("the stream is not complete"))
	}
	return result{status: s.status, stopped: s.stopped, err: s.err}
}

func sdkMessages(ctx context.Context, client *http.Client, url string) result {
	sdk := anthropicClient(client, url, option.WithHeader("x-test", "1"))
	_, err := sdk.Messages.New(ctx, params())
	return anthropicResult(err)
}

func sdkMessages1(ctx context.Context, client *http.Client, url string) result {
	sdk := anthropic1.NewClient(option1.WithAPIKey("sk-test"), option1.WithBaseURL(url), option1.WithHTTPClient(client))
	_, err := sdk.Messages.New(ctx, params1())
	return anthropic1Result(err)
}

func sdkChat(ctx context.Context, client *http.Client, url string) result {
	sdk := openaiClient(client, url, openaioption.WithHeader("x-test", "1"))
	_, err := sdk.Chat.Completions.New(ctx, chatParams())
	return openaiResult(err)
}

func sdkMessagesStream(ctx context.Context, client *http.Client, url string) streamed {
	sdk := anthropicClient(client, url, option.WithHeader("x-test", "1"))
	return messagesOf(sdk.Messages.NewStreaming(ctx, params()))
}

func sdkChatStream(ctx context.Context, client *http.Client, url string) streamed {
	sdk := openaiClient(client, url, openaioption.WithHeader("x-test", "1"))
	return chunksOf(sdk.Chat.Completions.NewStreaming(ctx, chatParams()))
}
