package e2e_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"holdfast"
	"holdfast/gateway"
	"holdfast/internal/testnet"
	"holdfast/standin"
	"holdfast/transport"

	"github.com/anthropics/anthropic-sdk-go/v2"
	"github.com/anthropics/anthropic-sdk-go/v2/option"
	"github.com/anthropics/anthropic-sdk-go/v2/packages/ssestream"
	"github.com/openai/openai-go/v3"
	openaioption "github.com/openai/openai-go/v3/option"
	openaistream "github.com/openai/openai-go/v3/packages/ssestream"
)

// streamed is what a caller saw of a stream.
type streamed struct {
	status   int    // of the response
	stopped  bool   // nothing invites to repeat it
	text     string // of the content
	complete bool   // the SDK or the reader saw a whole message
	err      error
}

type streamDoor struct {
	name  string
	call  func(ctx context.Context, p *holdfast.Policy, client *http.Client, url string) streamed
	whole bool // hands a stream over when it is complete, so that a failure after content is one before
}

var streamDoors = slices.Concat([]streamDoor{
	{"transport", streamTransport, false},
	{"middleware of the Anthropic SDK", streamAnthropic, false},
	{"middleware of the OpenAI SDK", streamOpenAI, false},
}, gatewayStreamDoors(gateway.Live), gatewayStreamDoors(gateway.Whole))

func streamTransport(ctx context.Context, p *holdfast.Policy, client *http.Client, url string) (s streamed) {
	body := strings.Replace(messagesBody, "{", `{"stream":true,`, 1)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/v1/messages", strings.NewReader(body))
	if err != nil {
		return streamed{err: err}
	}
	req.Header.Set("x-api-key", "sk-test")
	req.Header.Set("anthropic-version", "2023-06-01")
	resp, err := transport.New(p, client.Transport).RoundTrip(req)
	if err != nil {
		return streamed{err: err}
	}
	defer resp.Body.Close()
	all, err := io.ReadAll(resp.Body)
	s = streamed{status: resp.StatusCode, err: err}
	s.complete = err == nil && bytes.Contains(all, []byte("message_delta")) && !bytes.Contains(all, []byte("event: error"))
	for _, part := range strings.Split(string(all), `"text_delta","text":"`)[1:] {
		text, _, _ := strings.Cut(part, `"`)
		s.text += text
	}
	return s
}

func streamAnthropic(ctx context.Context, p *holdfast.Policy, client *http.Client, url string) (s streamed) {
	sdk := anthropicClient(client, url, option.WithMiddleware(transport.Middleware(p)))
	return messagesOf(sdk.Messages.NewStreaming(ctx, params()))
}

func streamOpenAI(ctx context.Context, p *holdfast.Policy, client *http.Client, url string) (s streamed) {
	sdk := openaiClient(client, url, openaioption.WithMiddleware(transport.Middleware(p)))
	return chunksOf(sdk.Chat.Completions.NewStreaming(ctx, chatParams()))
}

func messagesOf(stream *ssestream.Stream[anthropic.MessageStreamEventUnion]) (s streamed) {
	defer stream.Close()
	s.status = http.StatusOK
	for stream.Next() {
		event := stream.Current()
		s.text += event.Delta.Text
		s.complete = s.complete || event.Delta.StopReason != ""
	}
	s.err = stream.Err()
	var e *anthropic.Error
	if errors.As(s.err, &e) {
		s.status, s.stopped = e.StatusCode, closing(e.Response)
	}
	s.complete = s.complete && s.err == nil
	return s
}

func chunksOf(stream *openaistream.Stream[openai.ChatCompletionChunk]) (s streamed) {
	defer stream.Close()
	s.status = http.StatusOK
	for stream.Next() {
		for _, choice := range stream.Current().Choices {
			s.text += choice.Delta.Content
			s.complete = s.complete || choice.FinishReason != ""
		}
	}
	s.err = stream.Err()
	var e *openai.Error
	if errors.As(s.err, &e) {
		s.status, s.stopped = e.StatusCode, closing(e.Response)
	}
	s.complete = s.complete && s.err == nil
	return s
}

func closing(resp *http.Response) bool {
	return resp != nil && resp.Header.Get("x-should-retry") == "false"
}

// throughStream plays steps and then good answers to a streaming call.
func throughStream(t *testing.T, d streamDoor, p holdfast.Policy, steps ...standin.Step) (streamed, *standin.Server, *testnet.Server) {
	t.Helper()
	judge := standin.New(standin.Plan{Steps: steps, Reply: whole})
	net := testnet.New()
	server := net.Serve(t, "api.test:80", judge)
	p.Dice = func() float64 { return 1 }
	return d.call(t.Context(), &p, net.Client(), server.URL), judge, server
}

const whole = "one two three four five six seven eight"

// A status four ways: as HTTP status, as the first event, after the preamble, after content. The first three end in the
// same decision; the fourth is never replayed (B26, B50, B66, B92, B93).
func TestStatusFourWays(t *testing.T) {
	for _, status := range []int{429, 500, 503, 529, 401, 400} {
		retried := status == 429 || status >= 500
		for name, step := range map[string]standin.Step{
			"http":     {Kind: standin.HTTP, Status: status},
			"first":    {Kind: standin.Error, Status: status, At: standin.First},
			"preamble": {Kind: standin.Error, Status: status, At: standin.Preamble},
			"content":  {Kind: standin.Error, Status: status, After: 3},
		} {
			for _, d := range streamDoors {
				t.Run(fmt.Sprintf("%d %s/%s", status, name, d.name), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						got, judge, _ := throughStream(t, d, holdfast.Policy{}, step)
						requests := len(judge.Journal())
						switch {
						case name == "content" && !d.whole:
							if requests != 1 || got.complete || !strings.HasPrefix(whole, got.text) || got.text == "" {
								t.Errorf("%d requests; complete %v, %q, %v", requests, got.complete, got.text, got.err)
							}
						case retried:
							if requests != 2 || !got.complete || got.text != whole || got.status != 200 {
								t.Errorf("%d requests; status %d, complete %v, %q, %v", requests, got.status, got.complete, got.text, got.err)
							}
						default:
							if requests != 1 || got.complete || got.text != "" {
								t.Errorf("%d requests; complete %v, %q, %v", requests, got.complete, got.text, got.err)
							}
							if name == "http" && got.status != status {
								t.Errorf("status %d", got.status)
							}
						}
					})
				})
			}
		}
	}
}

// A cut four ways at each place of a stream: before content it is asked for again, after content it is visible, and
// once the stop reason has come it is whole (B60, B63, B64, B146, B147).
func TestCutsFourWays(t *testing.T) {
	for _, how := range []standin.Ending{standin.Clean, standin.Chunk, standin.RST, standin.Silence} {
		for name, step := range map[string]standin.Step{
			"after headers":      {At: standin.First},
			"after the preamble": {At: standin.Preamble},
			"mid text":           {After: 3},
			"mid frame":          {After: 3, Torn: standin.TornFrame},
			"after stop reason":  {At: standin.Stop},
			"in the last frame":  {At: standin.Stop, Torn: standin.TornFrame},
			"in the first frame": {At: standin.First, Torn: standin.TornFrame},
			"in the first words": {At: standin.Preamble, Torn: standin.TornFrame},
		} {
			step.Kind, step.How = standin.Cut, how
			for _, d := range streamDoors {
				t.Run(string(how)+" "+name+"/"+d.name, func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						start := time.Now()
						got, judge, _ := throughStream(t, d, holdfast.Policy{}, step)
						requests := len(judge.Journal())
						switch {
						case how == standin.RST:
							// A reset takes with it what had not been read, so chance says how much was handed over:
							// nothing, and it was asked for again; all; or a part that is visibly one.
							again := requests == 2 && got.complete && got.text == whole
							all := requests == 1 && got.complete && got.text == whole && step.At == standin.Stop
							part := requests == 1 && !d.whole && !got.complete && got.err != nil && strings.HasPrefix(whole, got.text)
							if !again && !all && !part {
								t.Errorf("%d requests; complete %v, %q, %v", requests, got.complete, got.text, got.err)
							}
						case step.At == standin.Stop:
							// How much of the tail arrives before a reset or a stall is up to the network; if it is
							// not whole, it must not look so.
							if requests != 1 || got.text != whole || (got.err == nil) != got.complete {
								t.Errorf("%d requests; complete %v, %q, %v", requests, got.complete, got.text, got.err)
							}
							if how == standin.Clean && !got.complete {
								t.Errorf("all that matters had arrived: %v", got.err)
							}
						case step.After > 0 && !d.whole:
							if requests != 1 || got.complete || got.err == nil || !strings.HasPrefix(whole, got.text) {
								t.Errorf("%d requests; complete %v, %q, %v", requests, got.complete, got.text, got.err)
							}
						default:
							if requests != 2 || !got.complete || got.text != whole {
								t.Errorf("%d requests; complete %v, %q, %v", requests, got.complete, got.text, got.err)
							}
						}
						if took := time.Since(start); took > 5*time.Minute {
							t.Errorf("took %v", took)
						}
						synctest.Wait()
						if open := judge.Open(); open != 0 {
							t.Errorf("%d requests are still open at the stand-in", open)
						}
					})
				})
			}
		}
	}
}
