package turn_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/anthropics/anthropic-sdk-go/v2"
	"github.com/anthropics/anthropic-sdk-go/v2/option"
	"pgregory.net/rapid"

	"holdfast/standin"
	"holdfast/turn"
)

// drawn is a client whose answers are drawn.
type drawn struct {
	turn.Client
	draw func(anthropic.MessageNewParams) *anthropic.Message
}

func (d drawn) New(_ context.Context, params anthropic.MessageNewParams, _ ...option.RequestOption) (*anthropic.Message, error) {
	return d.draw(params), nil
}

// Whatever comes back: no turn sends more than its policy says, no request ends with an answer that is begun, no model that
// has refused is asked again, and no half answer is done.
func TestRunKeepsItsBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := turn.Policy{
			Cap: rapid.Int64Range(0, 2000).Draw(t, "cap"), Continuations: rapid.IntRange(0, 5).Draw(t, "continuations"),
			FollowUps: rapid.IntRange(-1, 8).Draw(t, "followUps"), Pauses: rapid.IntRange(-1, 5).Draw(t, "pauses"),
			FallbackModel: rapid.SampledFrom([]string{"", opus, sonnet}).Draw(t, "fallback"),
		}
		sent, refused, paused := 0, map[string]bool{}, false
		last := ""
		client := drawn{draw: func(params anthropic.MessageNewParams) *anthropic.Message {
			if sent++; sent > p.MaxRequests() {
				t.Fatalf("request %d of at most %d", sent, p.MaxRequests())
			}
			if refused[string(params.Model)] {
				t.Fatalf("%s has refused, and is asked again", params.Model)
			}
			if end := params.Messages[len(params.Messages)-1]; end.OfAssistant != nil && !paused {
				t.Fatal("a request ends with an answer that is begun")
			}
			last = rapid.SampledFrom([]string{"end_turn", "max_tokens", "max_tokens", "pause_turn", "refusal", "tool_use", "foo_bar", "model_context_window_exceeded"}).Draw(t, "reason")
			text := rapid.SampledFrom([]string{"", "The same opening again and again.", "Something else to say."}).Draw(t, "text")
			body := says(text, last)
			if rapid.Bool().Draw(t, "call") {
				body = called(rapid.SampledFrom([]string{`{}`, `{"path":"a"}`}).Draw(t, "input"))
				body = replaced(body, last)
			}
			if last == "pause_turn" {
				body, paused = replaced(pausedAs(string(params.Model)), last), true
			}
			if last == "refusal" {
				refused[string(params.Model)] = true
				paused = false
			}
			var m anthropic.Message
			must(json.Unmarshal([]byte(body), &m))
			m.Model = params.Model
			return &m
		}}
		got, err := turn.Run(context.Background(), client, &p, question("hi", rapid.Int64Range(1, 2000).Draw(t, "maxTokens")))
		if (err == nil) != got.Outcome.Done() || len(got.Steps) != sent {
			t.Fatalf("%v with %v, %d steps of %d requests", err, got.Outcome, len(got.Steps), sent)
		}
		if got.Outcome.Done() && last != "end_turn" && last != "tool_use" {
			t.Fatalf("%q was told as %v", last, got.Outcome)
		}
		if got.Outcome != turn.ToolUse && got.ToolUses != nil {
			t.Fatalf("calls with %v", got.Outcome)
		}
		var sum turn.Usage
		for _, s := range got.Steps {
			sum.Add(s.Usage)
		}
		if sum != got.Usage {
			t.Fatalf("the sum is %+v, want %+v", got.Usage, sum)
		}
		for _, m := range got.History() {
			if _, err := json.Marshal(m); err != nil {
				t.Fatalf("the history is no JSON: %v", err)
			}
		}
	})
}

// An upstream that does the same for ever gets exactly the requests that its policy says.
func TestForEverIsAStatedNumberOfRequests(t *testing.T) {
	for name, test := range map[string]struct {
		step     standin.Step
		policy   turn.Policy
		requests int
	}{
		"truncates":              {times(standin.Truncation, -1), turn.Policy{Factor: 2, Cap: -1}, 7},
		"truncates, continued":   {times(standin.Truncation, -1), turn.Policy{Factor: -1, Continuations: 9}, 2}, // it begins anew each time
		"truncates, few":         {times(standin.Truncation, -1), turn.Policy{FollowUps: 2}, 3},
		"truncates, none":        {times(standin.Truncation, -1), turn.Policy{FollowUps: -1}, 1},
		"half a call":            {times(standin.HalfTool, -1), turn.Policy{Factor: 2, Cap: -1}, 7},
		"pauses":                 {times(standin.Pause, -1), turn.Policy{}, 11},
		"pauses, few":            {times(standin.Pause, -1), turn.Policy{Pauses: 1}, 2},
		"pauses, none":           {times(standin.Pause, -1), turn.Policy{Pauses: -1}, 1},
		"refuses":                {times(standin.Refusal, -1), turn.Policy{}, 1},
		"refuses, with fallback": {times(standin.Refusal, -1), turn.Policy{FallbackModel: opus}, 2},
		"says nothing known":     {standin.Step{Kind: standin.StopReason, Times: -1}, turn.Policy{}, 1},
		"fills the window":       {times(standin.ContextWindow, -1), turn.Policy{}, 1},
		"fails":                  {standin.Step{Kind: standin.HTTP, Status: 529, Times: -1}, turn.Policy{}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			bothWays(t, func(t *testing.T, p turn.Policy) {
				u := follow(t, standin.Plan{Steps: []standin.Step{test.step}})
				test := test
				test.policy.Stream = p.Stream
				ask := question("hi", 60)
				if test.step.Kind == standin.HalfTool {
					ask = withTool(60)
				}
				got, err := turn.Run(t.Context(), &u.Messages, &test.policy, ask)
				if err == nil || got.Outcome.Done() {
					t.Errorf("%v, %v", got.Outcome, err)
				}
				u.expect(t, test.requests)
				if test.requests > test.policy.MaxRequests() {
					t.Errorf("the maximum is %d", test.policy.MaxRequests())
				}
			})
		})
	}
}

func TestPolicyTellsItsMistakes(t *testing.T) {
	p := turn.Policy{Continuations: 9, Fallbacks: fallbacks("a", "b", "c", "d")}
	q := turn.Policy{Instruction: "go on"}
	for want, err := range map[string]error{
		"turn: policy Continuations is 9, more than the 6 FollowUps\nturn: policy Fallbacks has 4 models, more than 3": p.Validate(),
		"turn: policy Instruction is set, but Continuations is not: it is never sent":                                  q.Validate(),
	} {
		if err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
	if err := new(turn.Policy).Validate(); err != nil {
		t.Error(err)
	}
}
