package turn_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
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

// paused is a turn whose parts an API would not take back changed: fields that no SDK knows, signatures, numbers.
const paused = `{"id":"msg_1","type":"message","role":"assistant","model":"claude-sonnet-5-5","content":[
	{"type":"thinking","thinking":"I should search.","signature":"c2lnbmF0dXJl"},
	{"type":"text","text":"I will look it up <now> & then."},
	{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{"query":"price of 1.50 \u20ac","max":1e3},"caller":{"type":"direct"},"of_tomorrow":[1,2.50]}],
	"stop_reason":"pause_turn","stop_sequence":null,"stop_details":null,"container":{"id":"container_7","expires_at":"2026-12-01T00:00:00Z"},"usage":{"input_tokens":9,"output_tokens":16}}`

const spoken = `{"id":"msg_2","type":"message","role":"assistant","model":"claude-sonnet-5-5","content":[{"type":"text","text":"It costs 2."}],
	"stop_reason":"end_turn","stop_sequence":null,"stop_details":null,"usage":{"input_tokens":12,"output_tokens":5}}`

// B165: a paused turn goes back as it came, and nothing with it.
func TestB165_APausedTurnGoesBackUnchanged(t *testing.T) {
	bothWays(t, func(t *testing.T, p turn.Policy) {
		u := serve(t, scripted(paused, paused, spoken))
		got, err := turn.Run(t.Context(), &u.Messages, &p, question("what does it cost?", 100))
		if err != nil || got.Text != "It costs 2." {
			t.Fatalf("%v, %+v", err, got)
		}
		u.expect(t, 3)
		var came struct{ Content json.RawMessage }
		must(json.Unmarshal([]byte(paused), &came))
		for n := 2; n <= 3; n++ {
			b := u.body(t, n)
			if len(b.Messages) != n || same(t, b.Messages[0], u.body(t, 1).Messages[0]) != "" || string(b.Container) != `"container_7"` {
				t.Fatalf("request %d has %d messages and the container %s", n, len(b.Messages), b.Container)
			}
			for _, m := range b.Messages[1:] {
				var sent struct {
					Role    string
					Content json.RawMessage
				}
				must(json.Unmarshal(m, &sent))
				if diff := same(t, sent.Content, came.Content); sent.Role != "assistant" || diff != "" {
					t.Errorf("request %d sends back %s: %s", n, m, diff)
				}
			}
		}
		if h := got.History(); len(h) != 3 || h[2].OfAssistant == nil || len(got.Kept) != 3 {
			t.Errorf("%d messages of history, %d kept", len(h), len(got.Kept))
		}
	})
}

// same compares two documents, numbers by their digits.
func same(t *testing.T, a, b json.RawMessage) string {
	t.Helper()
	var texts [2]string
	for i, raw := range []json.RawMessage{a, b} {
		d := json.NewDecoder(strings.NewReader(string(raw)))
		d.UseNumber()
		var v any
		if err := d.Decode(&v); err != nil {
			t.Fatal(err)
		}
		texts[i] = string(must1(json.Marshal(v)))
	}
	if texts[0] != texts[1] {
		return texts[0] + " is not " + texts[1]
	}
	return ""
}

// B165: a turn that is paused for ever ends with an error that says so, after a stated number of requests.
func TestB165_ForeverPausedIsAnError(t *testing.T) {
	bothWays(t, func(t *testing.T, p turn.Policy) {
		u := follow(t, standin.Plan{Steps: []standin.Step{times(standin.Pause, -1)}})
		got, err := turn.Run(t.Context(), &u.Messages, &p, question("hi", 100))
		if !errors.Is(err, turn.ErrPaused) || got.Outcome != turn.Paused {
			t.Errorf("%v, %v", got.Outcome, err)
		}
		u.expect(t, 11)
	})
}

// B166: a pause is not the end, though no tool of the client is called.
func TestB166_APauseIsNotTheEnd(t *testing.T) {
	bothWays(t, func(t *testing.T, p turn.Policy) {
		u := follow(t, standin.Plan{Steps: []standin.Step{times(standin.Pause, 1)}})
		got, err := turn.Run(t.Context(), &u.Messages, &p, question("hi", 100))
		if err != nil || got.Text != reply || got.Outcome != turn.Completed || got.Steps[0].Action != turn.Resume {
			t.Errorf("%v, %+v", err, got)
		}
		u.expect(t, 2)
	})
}

// B168: a refusal ends the turn, and a reason that nobody knows is kept with all that was said. Neither is asked again.
func TestB168_UnknownReasonsAreKept(t *testing.T) {
	bothWays(t, func(t *testing.T, p turn.Policy) {
		u := follow(t, standin.Plan{Steps: []standin.Step{
			{Kind: standin.Refusal, Category: "bio", Explanation: "not this"}, {Kind: standin.StopReason, Reason: "foo_bar"},
		}})
		got, err := turn.Run(t.Context(), &u.Messages, &p, question("hi", 100))
		if !errors.Is(err, turn.ErrRefused) || !errors.Is(err, holdfast.ErrRefused) || got.Outcome != turn.HumanReview || got.Category != "bio" || got.Explanation != "not this" {
			t.Errorf("%v, %+v", err, got)
		}
		u.expect(t, 1)
		got, err = turn.Run(t.Context(), &u.Messages, &p, question("hi", 100))
		if !errors.Is(err, turn.ErrUnknownReason) || got.Outcome != turn.Unknown || got.StopReason != "foo_bar" || got.Text != reply {
			t.Errorf("%v, %+v", err, got)
		}
		u.expect(t, 2)
	})
}

// B169: an answer that ends because the window is full is truncated, and says so.
func TestB169_AFullWindowIsNoEnd(t *testing.T) {
	bothWays(t, func(t *testing.T, p turn.Policy) {
		u := follow(t, standin.Plan{Steps: []standin.Step{times(standin.ContextWindow, -1)}})
		got, err := turn.Run(t.Context(), &u.Messages, &p, question("hi", 100))
		if !errors.Is(err, turn.ErrTruncated) || got.Outcome != turn.Truncated || got.Outcome.Done() || got.Text == "" || got.Text == reply {
			t.Errorf("%v, %+v", err, got)
		}
		u.expect(t, 1)
	})
}

// B171: whoever runs the calls of a result, and looks at nothing else, writes no half file.
func TestB171_HalfACallIsNeverHandedOut(t *testing.T) {
	for name, step := range map[string]standin.Step{
		"max_tokens": times(standin.HalfTool, -1),
		"cut":        {Kind: standin.Cut, After: 3, Times: -1},
	} {
		t.Run(name, func(t *testing.T) {
			bothWays(t, func(t *testing.T, p turn.Policy) {
				file := filepath.Join(t.TempDir(), "file")
				must(os.WriteFile(file, []byte("as it was"), 0o600))
				u := follow(t, standin.Plan{Steps: []standin.Step{step}})
				got, err := turn.Run(t.Context(), &u.Messages, &p, withTool(100))
				for _, use := range got.ToolUses {
					must(os.WriteFile(file, use.Input, 0o600))
				}
				if text := string(must1(os.ReadFile(file))); text != "as it was" || err == nil || got.Outcome.Done() {
					t.Errorf("%v, %v, the file holds %q", err, got.Outcome, text)
				}
				if step.Kind == standin.Cut && !errors.Is(err, turn.ErrUnfinished) {
					t.Errorf("%v of an answer that was cut", err)
				}
				if got.Message != nil {
					for _, b := range got.Message.Content {
						if b.Type == "tool_use" {
							t.Errorf("the message holds the call %s", b.Input)
						}
					}
				}
				for _, m := range got.History() {
					if text := string(must1(json.Marshal(m))); strings.Contains(text, "tool_use") {
						t.Errorf("the history holds %s", text)
					}
				}
			})
		})
	}
}

// B171: an input that is no JSON is half a call whatever the stop reason says, and although the SDK makes an empty object
// of it.
func TestB171_AnInputThatIsNoJSONIsHalfACall(t *testing.T) {
	broken := strings.ReplaceAll(events(called(`{"path":"a","content":"whole"}`)), `hole\"}`, `hole`)
	synctest.Test(t, func(t *testing.T) {
		u := serve(t, scriptedEvents(broken, events(called(`{"path":"a","content":"whole"}`))))
		p := turn.Policy{Stream: true}
		got, err := turn.Run(t.Context(), &u.Messages, &p, withTool(100))
		if err != nil || len(got.ToolUses) != 1 || string(got.ToolUses[0].Input) != `{"path":"a","content":"whole"}` || got.Steps[0].Action != turn.Raise {
			t.Errorf("%v, %+v", err, got)
		}
		u.expect(t, 2)
		u = serve(t, scriptedEvents(broken))
		message, err := turn.Collect(t.Context(), &u.Messages, withTool(100))
		if err != nil || json.Valid(message.Content[0].Input) {
			t.Errorf("%v, %+v", err, message)
		}
	})
}

// called is a message with one call of the tool.
func called(input string) string {
	return `{"id":"msg_3","type":"message","role":"assistant","model":"claude-sonnet-5-5","content":[
		{"type":"tool_use","id":"toolu_1","name":"write","input":` + input + `}],
		"stop_reason":"tool_use","stop_sequence":null,"stop_details":null,"usage":{"input_tokens":12,"output_tokens":5}}`
}

// B172: the request after half a call has a valid history, and a 400 is not repeated.
func TestB172_TheHistoryIsAlwaysValid(t *testing.T) {
	bothWays(t, func(t *testing.T, p turn.Policy) {
		u := follow(t, standin.Plan{Steps: []standin.Step{times(standin.HalfTool, 1), {}, {Kind: standin.HTTP, Status: 400, Times: -1}}})
		p.Cap = 200
		ask := withTool(100)
		got, err := turn.Run(t.Context(), &u.Messages, &p, ask)
		if err != nil || len(got.ToolUses) != 1 || !json.Valid(got.ToolUses[0].Input) {
			t.Fatalf("%v, %+v", err, got)
		}
		if first, second := u.body(t, 1), u.body(t, 2); len(second.Messages) != 1 || same(t, first.Messages[0], second.Messages[0]) != "" {
			t.Errorf("request 2 has the history %s", second.Messages)
		}
		ask.Messages = append(append(ask.Messages, got.History()...),
			anthropic.NewUserMessage(anthropic.NewToolResultBlock(got.ToolUses[0].ID, "written", false)))
		if _, err = turn.Run(t.Context(), &u.Messages, &p, ask); err == nil {
			t.Fatal("a 400 is no answer")
		}
		u.expect(t, 3)
		synctest.Wait()
		if j := u.server.Journal(); j[2].Fault != standin.HTTP { // and not rejected for what it is
			t.Errorf("the stand-in says %s of the history", j[2].Fault)
		}
	})
}

// B174: the usage of a stream is cumulative, and the last word stands.
func TestB174_UsageOfAStreamIsNotAdded(t *testing.T) {
	start := "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"m\",\"type\":\"message\",\"role\":\"assistant\",\"model\":\"m\",\"content\":[],\"stop_reason\":null,\"usage\":{\"input_tokens\":9,\"cache_read_input_tokens\":1,\"output_tokens\":1}}}\n\n"
	end := "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"
	for name, usage := range map[string]string{
		"all of it":       `{"input_tokens":9,"cache_read_input_tokens":1,"output_tokens":16}`,
		"the output only": `{"output_tokens":16}`,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				delta := "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":" + usage + "}\n\n"
				u := serve(t, scriptedEvents(start+delta+delta+end))
				got, err := turn.Run(t.Context(), &u.Messages, &turn.Policy{Stream: true}, question("hi", 100))
				if want := (turn.Usage{Input: 9, CacheRead: 1, Output: 16}); err != nil || got.Usage != want || got.Steps[0].Usage != want {
					t.Errorf("%v, counted %+v, want %+v", err, got.Usage, want)
				}
			})
		})
	}
}

// B175: a stream that its caller leaves, or that is cut, is counted for what is known of it, and marked.
func TestB175_ABrokenStreamIsCounted(t *testing.T) {
	for name, step := range map[string]standin.Step{
		"left": {Kind: standin.Stall, After: 6}, "cut": {Kind: standin.Cut, After: 6, How: standin.Chunk}, "ended": {Kind: standin.Cut, After: 6},
		"failed": {Kind: standin.Error, After: 6},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				u := follow(t, standin.Plan{Steps: []standin.Step{step}})
				ctx, leave := context.WithCancel(t.Context())
				defer leave()
				var seen strings.Builder
				pieces, discarded := 0, 0
				p := turn.Policy{OnEvent: func(e turn.Event) {
					seen.WriteString(e.Text)
					if e.Text != "" {
						pieces++
					}
					if e.Discarded {
						discarded++
					}
					if step.Kind == standin.Stall && pieces == 6 {
						leave()
					}
				}}
				got, err := turn.Run(ctx, &u.Messages, &p, question("hi", 100))
				var cut *turn.StreamError
				if !errors.As(err, &cut) || got.Outcome != turn.Unfinished || got.Text != "" || discarded != 1 {
					t.Fatalf("%v, %+v, told %d times", err, got, discarded)
				}
				if seen.Len() == 0 || strings.Contains(err.Error(), seen.String()) {
					t.Errorf("the error %q holds what was said, %q", err, seen.String())
				}
				synctest.Wait()
				e := u.server.Journal()[0]
				if s := got.Steps[0]; !s.Usage.Partial || int(s.Usage.Input) != e.Input || int(s.Usage.Output) < e.Output || s.Answered != sonnet || got.Usage != s.Usage {
					t.Errorf("counted %+v, billed were %d and %d", s.Usage, e.Input, e.Output)
				}
				u.expect(t, 1)
			})
		})
	}
}

// B54: an answer that begins anew each time is continued once, and its opening is in the text once.
func TestB54_TheOpeningIsThereOnce(t *testing.T) {
	bothWays(t, func(t *testing.T, p turn.Policy) {
		u := follow(t, standin.Plan{Steps: []standin.Step{times(standin.Truncation, -1)}})
		p.Cap, p.Continuations = 100, 5
		got, err := turn.Run(t.Context(), &u.Messages, &p, question("hi", 100))
		if !errors.Is(err, turn.ErrTruncated) || strings.Count(got.Text, "Seven parcels") != 1 || !got.Steps[1].Discarded {
			t.Errorf("%v, %q", err, got.Text)
		}
		u.expect(t, 2)
	})
}

// B54: an upstream that cuts every stream is left for the one that is healthy, and nothing of the two is joined.
func TestB54_AnUpstreamThatCutsIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bad := follow(t, standin.Plan{Steps: []standin.Step{{Kind: standin.Cut, After: 5, Times: -1}}})
		good := follow(t, standin.Plan{})
		policy := holdfast.Policy{Attempts: 2, Targets: []holdfast.Target{{Name: "bad"}, {Name: "good"}}, Dice: func() float64 { return 0 }}
		client := kept{&policy, map[string]turn.Client{"bad": &bad.Messages, "good": &good.Messages}}
		got, err := turn.Run(t.Context(), client, nil, question("hi", 100))
		if err != nil || got.Text != reply {
			t.Errorf("%v, %q", err, got.Text)
		}
		bad.expect(t, 2)
		good.expect(t, 1)
	})
}

// kept is a client whose calls are kept working, each of them a stream that is taken whole.
type kept struct {
	policy  *holdfast.Policy
	clients map[string]turn.Client
}

func (k kept) New(ctx context.Context, params anthropic.MessageNewParams, opts ...option.RequestOption) (*anthropic.Message, error) {
	m, _, err := holdfast.Do(ctx, k.policy, func(ctx context.Context) (*anthropic.Message, error) {
		target, _ := holdfast.TargetOf(ctx)
		return turn.Collect(ctx, k.clients[target.Name], params, opts...)
	})
	return m, err
}

func (k kept) NewStreaming(ctx context.Context, params anthropic.MessageNewParams, opts ...option.RequestOption) *ssestream.Stream[anthropic.MessageStreamEventUnion] {
	return k.clients["good"].NewStreaming(ctx, params, opts...)
}
