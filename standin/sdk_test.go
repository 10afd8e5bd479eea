package standin_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anthropics/anthropic-sdk-go/v2"
	"github.com/anthropics/anthropic-sdk-go/v2/option"
	"github.com/google/go-cmp/cmp"

	"holdfast/internal/testnet"
	"holdfast/standin"
)

const defaultReply = "This is the stand-in speaking: the call went through and here is its answer."

// serve runs the plan on an in-memory network, inside the caller's bubble.
func serve(t *testing.T, plan standin.Plan) (*standin.Server, *http.Client, string) {
	t.Helper()
	s := standin.New(plan)
	n := testnet.New()
	server := n.Serve(t, "api.test:80", s)
	t.Cleanup(s.Close) // before the network is closed, so that nothing hangs
	return s, n.Client(), server.URL
}

// sdkClient is the real SDK talking to the server.
func sdkClient(c *http.Client, url string, more ...option.RequestOption) anthropic.Client {
	return anthropic.NewClient(append([]option.RequestOption{
		option.WithBaseURL(url), option.WithHTTPClient(c), option.WithAPIKey("good"),
	}, more...)...)
}

func params(prompt string) anthropic.MessageNewParams {
	return anthropic.MessageNewParams{
		Model: "claude-sonnet-5-5", MaxTokens: 100,
		Messages: []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock(prompt))},
	}
}

// TestTutorialFigures plays the published runs "reproduce 1" to "reproduce 4".
func TestTutorialFigures(t *testing.T) {
	second := []time.Duration{time.Second, time.Second}
	tests := []struct {
		name       string
		plan       standin.Plan
		retries    []option.RequestOption // none: the SDK's defaults
		class      string                 // "" for a reply
		status     int
		retryAfter string
		gaps       []time.Duration
	}{
		{"reproduce 1", standin.Failing(1, 429, "1"), []option.RequestOption{option.WithMaxRetries(0)}, "rate_limit_error", 429, "1", nil},
		{"reproduce 2", standin.Failing(1, 529, ""), []option.RequestOption{option.WithMaxRetries(0)}, "overloaded_error", 529, "", nil},
		{"reproduce 3", standin.Failing(2, 429, "1"), nil, "", 0, "", second},
		{"reproduce 4", standin.Failing(3, 429, "1"), nil, "rate_limit_error", 429, "1", second},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, c, url := serve(t, tt.plan)
				client := sdkClient(c, url, tt.retries...)
				msg, err := client.Messages.New(t.Context(), params("hello"))
				if tt.class == "" {
					if err != nil || msg.Content[0].Text != defaultReply {
						t.Errorf("reply %v, error %v", msg, err)
					}
				} else {
					e := sdkError(t, err)
					if string(e.Type()) != tt.class || e.StatusCode != tt.status || e.Response.Header.Get("retry-after") != tt.retryAfter {
						t.Errorf("error %s, status %d, retry-after %q", e.Type(), e.StatusCode, e.Response.Header.Get("retry-after"))
					}
				}
				j := s.Journal()
				if diff := cmp.Diff(tt.gaps, j.Gaps()); diff != "" || len(j) != len(tt.gaps)+1 {
					t.Errorf("%d calls, want %d; gaps (-want +got):\n%s", len(j), len(tt.gaps)+1, diff)
				}
				for i, e := range j {
					if e.SDKRetry != i || e.Attempt != i+1 {
						t.Errorf("call %d is attempt %d with x-stainless-retry-count %d", i+1, e.Attempt, e.SDKRetry)
					}
				}
			})
		})
	}
}

func sdkError(t *testing.T, err error) *anthropic.Error {
	t.Helper()
	e := new(anthropic.Error)
	if !errors.As(err, &e) {
		t.Fatalf("error %T %v, want *anthropic.Error", err, err)
	}
	return e
}

func TestSDKSeesTheClassOfEveryError(t *testing.T) {
	tests := []struct {
		status      int
		class, code string
		sets        string // given by the step; "" leaves it to the status
	}{
		{400, "invalid_request_error", "", ""},
		{401, "authentication_error", "", ""},
		{402, "billing_error", "linked_organization_spend_limit_reached", ""},
		{403, "permission_error", "", ""},
		{404, "not_found_error", "", ""},
		{429, "rate_limit_error", "ramp_limit_exceeded", ""},
		{500, "api_error", "", ""},
		{504, "timeout_error", "", ""},
		{529, "overloaded_error", "", ""},
		{400, "billing_error", "", "billing_error"},
	}
	for _, tt := range tests {
		t.Run(tt.class, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				step := standin.Step{Kind: standin.HTTP, Status: tt.status, Code: tt.code, Type: tt.sets, RequestID: "req_given"}
				_, c, url := serve(t, standin.Plan{Steps: []standin.Step{step}})
				client := sdkClient(c, url, option.WithMaxRetries(0))
				_, err := client.Messages.New(t.Context(), params("hello"))
				e := sdkError(t, err)
				if e.StatusCode != tt.status || string(e.Type()) != tt.class || string(e.ErrorCode()) != tt.code || e.RequestID != "req_given" {
					t.Errorf("status %d, type %q, code %q, request id %q", e.StatusCode, e.Type(), e.ErrorCode(), e.RequestID)
				}
			})
		})
	}
}

func TestSDKReadsAnswersAndStreamsAlike(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, c, url := serve(t, standin.Plan{Reply: "one two three"})
		client := sdkClient(c, url)
		for range 2 {
			msg, err := client.Messages.New(t.Context(), params(strings.Repeat("word", 10)))
			if err != nil {
				t.Fatal(err)
			}
			streamed, err := collect(client.Messages.NewStreaming(t.Context(), params(strings.Repeat("word", 10))))
			if err != nil {
				t.Fatal(err)
			}
			for how, m := range map[string]*anthropic.Message{"whole": msg, "streamed": streamed} {
				if m.Content[0].Text != "one two three" || m.StopReason != "end_turn" || m.Model != "claude-sonnet-5-5" {
					t.Errorf("%s: %s", how, m.RawJSON())
				}
				if m.Usage.InputTokens != 10 || m.Usage.OutputTokens != 3 {
					t.Errorf("%s: usage %d in, %d out; want 10 and 3", how, m.Usage.InputTokens, m.Usage.OutputTokens)
				}
			}
		}
	})
}

func collect(stream interface {
	Next() bool
	Current() anthropic.MessageStreamEventUnion
	Err() error
}) (*anthropic.Message, error) {
	m := &anthropic.Message{}
	for stream.Next() {
		if err := m.Accumulate(stream.Current()); err != nil {
			return m, err
		}
	}
	return m, stream.Err()
}

func TestSDKReadsRefusalAndTruncation(t *testing.T) {
	plan := standin.Plan{Reply: "one two three four", Jobs: map[string][]standin.Step{
		"J-1": {{Kind: standin.Refusal, Category: "cyber", Explanation: "not this", Times: 2}},
		"J-2": {{Kind: standin.Truncation, Times: 2}},
	}}
	synctest.Test(t, func(t *testing.T) {
		_, c, url := serve(t, plan)
		client := sdkClient(c, url)
		ask := map[string]func(string) (*anthropic.Message, error){
			"whole": func(p string) (*anthropic.Message, error) { return client.Messages.New(t.Context(), params(p)) },
			"streamed": func(p string) (*anthropic.Message, error) {
				return collect(client.Messages.NewStreaming(t.Context(), params(p)))
			},
		}
		for how, ask := range ask {
			m, err := ask("work on J-1 please")
			if err != nil || m.StopReason != "refusal" || m.StopDetails.Category != "cyber" || m.StopDetails.Explanation != "not this" || len(m.Content) != 0 {
				t.Errorf("%s refusal: %+v, error %v", how, m, err)
			}
			m, err = ask("work on J-2 please")
			if err != nil || m.StopReason != "max_tokens" || m.Content[0].Text != "one two " || m.Usage.OutputTokens != 100 {
				t.Errorf("%s truncation: %+v, error %v", how, m, err)
			}
		}
	})
}

func TestSDKErrorEventKeepsItsType(t *testing.T) {
	for _, at := range []standin.Stage{standin.First, standin.Preamble, standin.Content, standin.Stop} {
		t.Run(string(at), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				_, c, url := serve(t, standin.Plan{Steps: []standin.Step{{Kind: standin.Error, At: at, Message: "busy"}}})
				client := sdkClient(c, url)
				_, err := collect(client.Messages.NewStreaming(t.Context(), params("hello")))
				if e := sdkError(t, err); e.Type() != "overloaded_error" || e.StatusCode != 200 {
					t.Errorf("type %q, status %d", e.Type(), e.StatusCode)
				}
			})
		})
	}
}

func TestTimeoutHoldsTheCallUntilTheClientLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, c, url := serve(t, standin.Plan{Steps: []standin.Step{{Kind: standin.Timeout}}})
		client := sdkClient(c, url, option.WithMaxRetries(1))
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		start := time.Now()
		_, err := client.Messages.New(ctx, params("hello"), option.WithRequestTimeout(20*time.Second))
		synctest.Wait()
		j := s.Journal()
		if err != nil || len(j) != 2 {
			t.Fatalf("error %v, %d calls", err, len(j))
		}
		if held := j[0].Departed.Sub(j[0].Arrived); held != 20*time.Second || j[0].ClosedBy != standin.Client || j[0].Status != 0 {
			t.Errorf("held for %v, closed by %q, status %d", held, j[0].ClosedBy, j[0].Status)
		}
		if spent := time.Since(start); spent < 20*time.Second || spent > 21*time.Second {
			t.Errorf("the call took %v", spent)
		}
		if in, out := s.Billed(); in != 4 || out != 2*19 {
			t.Errorf("billed %d in, %d out: the timed-out work counts too", in, out)
		}
	})
}
