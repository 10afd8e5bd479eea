package turn_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/anthropics/anthropic-sdk-go/v2"
	"github.com/anthropics/anthropic-sdk-go/v2/option"
	"github.com/anthropics/anthropic-sdk-go/v2/packages/ssestream"

	"holdfast"
	"holdfast/standin"
	"holdfast/turn"
)

// times is one step of the stand-in so often, for ever when n is negative.
func times(kind standin.Kind, n int) standin.Step { return standin.Step{Kind: kind, Times: n} }

func TestRunEndsDeliberately(t *testing.T) {
	for name, test := range map[string]struct {
		steps    []standin.Step
		policy   turn.Policy
		ask      anthropic.MessageNewParams
		requests int
		outcome  turn.Outcome
		reason   error
		text     string // "half": something of the reply, and not all of it
		stop     string
	}{
		"end_turn":           {nil, turn.Policy{}, question("hi", 100), 1, turn.Completed, nil, reply, "end_turn"},
		"stop_sequence":      {[]standin.Step{{Kind: standin.StopReason, Reason: "stop_sequence"}}, turn.Policy{}, question("hi", 100), 1, turn.Completed, nil, reply, "stop_sequence"},
		"tool_use":           {nil, turn.Policy{}, withTool(500), 1, turn.ToolUse, nil, "", "tool_use"},
		"max_tokens, raised": {nil, turn.Policy{}, question("hi", 4), 3, turn.Completed, nil, reply, "end_turn"},
		"max_tokens, at the cap": {[]standin.Step{times(standin.Truncation, -1)}, turn.Policy{Cap: 100}, question("hi", 60), 2,
			turn.Truncated, turn.ErrTruncated, "half", "max_tokens"},
		"half a call, made whole": {[]standin.Step{times(standin.HalfTool, 1)}, turn.Policy{}, withTool(100), 2, turn.ToolUse, nil, "", "tool_use"},
		"half a call, at the cap": {[]standin.Step{times(standin.HalfTool, -1)}, turn.Policy{Cap: 100}, withTool(100), 1,
			turn.Truncated, turn.ErrTruncated, "", "max_tokens"},
		"refusal": {[]standin.Step{{Kind: standin.Refusal, Times: -1, Category: "cyber"}}, turn.Policy{}, question("hi", 100), 1,
			turn.HumanReview, turn.ErrRefused, "", "refusal"},
		"refusal, fallback": {[]standin.Step{times(standin.Refusal, 1)}, turn.Policy{FallbackModel: opus}, question("hi", 100), 2,
			turn.Completed, nil, reply, "end_turn"},
		"refusal, by the fallback too": {[]standin.Step{times(standin.Refusal, -1)}, turn.Policy{FallbackModel: opus}, question("hi", 100), 2,
			turn.HumanReview, turn.ErrRefused, "", "refusal"},
		"pause_turn": {[]standin.Step{times(standin.Pause, 3)}, turn.Policy{}, question("hi", 100), 4, turn.Completed, nil, reply, "end_turn"},
		"pause_turn, for ever": {[]standin.Step{times(standin.Pause, -1)}, turn.Policy{Pauses: 3}, question("hi", 100), 4,
			turn.Paused, turn.ErrPaused, reply, "pause_turn"},
		"context window": {[]standin.Step{times(standin.ContextWindow, -1)}, turn.Policy{}, question("hi", 100), 1,
			turn.Truncated, turn.ErrTruncated, "half", "model_context_window_exceeded"},
		"a reason of tomorrow": {[]standin.Step{{Kind: standin.StopReason, Reason: "foo_bar"}}, turn.Policy{}, question("hi", 100), 1,
			turn.Unknown, turn.ErrUnknownReason, reply, "foo_bar"},
	} {
		t.Run(name, func(t *testing.T) {
			bothWays(t, func(t *testing.T, p turn.Policy) {
				u := follow(t, standin.Plan{Steps: test.steps})
				stream := p.Stream
				p = test.policy
				p.Stream = stream
				got, err := turn.Run(t.Context(), &u.Messages, &p, test.ask)
				if !errors.Is(err, test.reason) || (err == nil) != got.Outcome.Done() {
					t.Errorf("error %v, want %v", err, test.reason)
				}
				if got.Outcome != test.outcome || got.StopReason != test.stop {
					t.Errorf("%v by %q, want %v by %q", got.Outcome, got.StopReason, test.outcome, test.stop)
				}
				if half := got.Text != "" && got.Text != reply && strings.HasPrefix(reply, got.Text); got.Text != test.text && !(test.text == "half" && half) {
					t.Errorf("text %q, want %q", got.Text, test.text)
				}
				if (test.outcome == turn.ToolUse) != (len(got.ToolUses) == 1) {
					t.Errorf("%d calls with %v", len(got.ToolUses), got.Outcome)
				}
				u.expect(t, test.requests)
				audit(t, u, &got, stream)
			})
		})
	}
}

// audit holds the steps of a result against the journal of the stand-in.
func audit(t *testing.T, u *upstream, got *turn.Result, stream bool) {
	t.Helper()
	synctest.Wait()
	j := u.server.Journal()
	if len(j) != len(got.Steps) {
		t.Fatalf("%d steps, but %d requests arrived", len(got.Steps), len(j))
	}
	var sum turn.Usage
	for i, e := range j {
		s := got.Steps[i]
		if s.RequestID != e.RequestID || s.Model != e.Model || s.Answered != e.Model || s.Streamed != stream || e.Stream != stream {
			t.Errorf("step %d is %+v, the stand-in saw request %s of %s, stream %v", i, s, e.RequestID, e.Model, e.Stream)
		}
		if int(s.Usage.Input) != e.Input || int(s.Usage.Output) != e.Output || s.Usage.Partial {
			t.Errorf("step %d counts %+v, billed were %d and %d", i, s.Usage, e.Input, e.Output)
		}
		sum.Add(s.Usage)
	}
	if sum != got.Usage {
		t.Errorf("the sum is %+v, want %+v", got.Usage, sum)
	}
}

func TestRunFails(t *testing.T) {
	bothWays(t, func(t *testing.T, p turn.Policy) {
		u := follow(t, standin.Plan{Steps: []standin.Step{times(standin.Truncation, 1), {Kind: standin.HTTP, Status: 400, Message: "no such budget"}}})
		got, err := turn.Run(t.Context(), &u.Messages, &p, question("the prompt", 60))
		var said *anthropic.Error
		var own *turn.Error
		if !errors.As(err, &said) || said.StatusCode != 400 || !errors.As(err, &own) || !errors.Is(err, turn.ErrUnfinished) {
			t.Fatalf("error %v", err)
		}
		if got.Outcome != turn.Unfinished || len(got.Steps) != 2 || got.Usage.Output != 60 || got.Text != "" || got.Message == nil || got.History() != nil {
			t.Errorf("%+v", got)
		}
		if holdfast.Judge(err).Kind != holdfast.Terminal || own.Hint() == "" {
			t.Errorf("verdict %v, hint %q", holdfast.Judge(err), own.Hint())
		}
		if want := "turn: the turn was not finished after 2 requests: 400 invalid_request_error: no such budget (request " + said.RequestID + ")"; err.Error() != want {
			t.Errorf("error %q, want %q", err, want)
		}
		u.expect(t, 2)
	})
}

func TestRunLeavesNothingOfAnEmptyReply(t *testing.T) {
	bothWays(t, func(t *testing.T, p turn.Policy) {
		for _, kind := range []standin.Kind{standin.Nameless, standin.Empty} {
			if kind == standin.Nameless && !p.Stream {
				continue // a body has no events
			}
			u := follow(t, standin.Plan{Steps: []standin.Step{times(kind, -1)}})
			got, err := turn.Run(t.Context(), &u.Messages, &p, question("hi", 60))
			if err == nil || got.Outcome != turn.Unfinished || got.Text != "" {
				t.Errorf("%s: %v, %+v", kind, err, got)
			}
			if kind == standin.Nameless && !errors.Is(err, holdfast.ErrCut) {
				t.Errorf("%s: error %v", kind, err)
			}
			u.expect(t, 1)
		}
	})
}

func TestRunStopsWhenItsCallerLeaves(t *testing.T) {
	bothWays(t, func(t *testing.T, p turn.Policy) {
		u := follow(t, standin.Plan{Steps: []standin.Step{times(standin.Pause, -1)}})
		ctx, leave := context.WithCancelCause(t.Context())
		gone := errors.New("gone home")
		n := 0
		client := before{&u.Messages, func() {
			if n++; n == 3 {
				leave(gone)
			}
		}}
		got, err := turn.Run(ctx, client, &p, question("hi", 60))
		if !errors.Is(err, context.Canceled) && !errors.Is(err, gone) {
			t.Errorf("error %v", err)
		}
		if got.Outcome != turn.Unfinished || got.Usage.Output == 0 || len(got.Kept) != 2 {
			t.Errorf("%v, %d kept, usage %+v", got.Outcome, len(got.Kept), got.Usage)
		}
		if h := got.History(); len(h) != 2 {
			t.Errorf("the paused turn is to be gone on with: %d messages", len(h))
		}
		u.expect(t, 2)
		if _, err := turn.Run(ctx, client, &p, question("hi", 60)); !errors.Is(err, gone) {
			t.Errorf("error %v of a turn whose caller was gone before", err)
		}
		u.expect(t, 2)
	})
}

func TestRunChangesNoParameters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := follow(t, standin.Plan{Steps: []standin.Step{times(standin.Pause, 1), times(standin.Truncation, 1), times(standin.Refusal, 1)}})
		ask := question("hi", 60)
		ask.Messages = append(make([]anthropic.MessageParam, 0, 10), ask.Messages...)
		p := turn.Policy{FallbackModel: opus, Cap: 60, Continuations: 3, Adapt: func(p *anthropic.MessageNewParams) { p.MaxTokens, p.Model = 1, sonnet }}
		got, err := turn.Run(t.Context(), &u.Messages, &p, ask)
		if err != nil || got.Model != opus || got.Text != reply {
			t.Fatalf("%v, %+v", err, got)
		}
		if ask.Messages[:2][1].OfAssistant != nil || ask.MaxTokens != 60 || ask.Model != sonnet || len(ask.Messages) != 1 {
			t.Errorf("the caller's parameters were changed: %+v", ask)
		}
		before := u
		u = follow(t, standin.Plan{Steps: []standin.Step{times(standin.Truncation, 1)}})
		if _, err := turn.Run(t.Context(), &u.Messages, &p, ask); err != nil || ask.Messages[:2][1].OfAssistant != nil {
			t.Errorf("a continuation wrote into the caller's messages, or failed: %v", err)
		}
		if b := before.body(t, 4); b.Model != opus || b.MaxTokens != 60 || len(b.Messages) != 1 {
			t.Errorf("the fallback was asked %+v", b)
		}
	})
}

func TestRunStreamsWhatTheSDKWouldRefuse(t *testing.T) {
	for name, test := range map[string]struct {
		model     string
		maxTokens int64
		raised    int64
		streams   []bool
	}{
		"below the limit":            {sonnet, 5000, 20000, []bool{false, false}},
		"the default cap":            {sonnet, 10000, 21333, []bool{false, false}},
		"above it":                   {sonnet, 20000, 80000, []bool{false, true}},
		"above it from the start":    {sonnet, 21334, 85336, []bool{true, true}},
		"a model with another limit": {"claude-opus-4-0", 8000, 8193, []bool{false, true}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				u := follow(t, standin.Plan{Steps: []standin.Step{times(standin.Truncation, 1)}})
				p := turn.Policy{Cap: test.raised}
				ask := question("hi", test.maxTokens)
				ask.Model = anthropic.Model(test.model)
				got, err := turn.Run(t.Context(), &u.Messages, &p, ask)
				if err != nil || got.Text != reply || got.Steps[1].MaxTokens != test.raised {
					t.Fatalf("%v, %+v", err, got.Steps)
				}
				synctest.Wait()
				for i, e := range u.server.Journal() {
					if e.Stream != test.streams[i] {
						t.Errorf("request %d of %d tokens: stream %v", i+1, got.Steps[i].MaxTokens, e.Stream)
					}
				}
			})
		})
	}
}

// before is a client that calls a func before each request.
type before struct {
	turn.Client
	call func()
}

func (b before) New(ctx context.Context, params anthropic.MessageNewParams, opts ...option.RequestOption) (*anthropic.Message, error) {
	b.call()
	return b.Client.New(ctx, params, opts...)
}

func (b before) NewStreaming(ctx context.Context, params anthropic.MessageNewParams, opts ...option.RequestOption) *ssestream.Stream[anthropic.MessageStreamEventUnion] {
	b.call()
	return b.Client.NewStreaming(ctx, params, opts...)
}
