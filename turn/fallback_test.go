package turn_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/anthropics/anthropic-sdk-go/v2"
	"github.com/anthropics/anthropic-sdk-go/v2/option"
	"github.com/anthropics/anthropic-sdk-go/v2/shared/constant"

	"holdfast/standin"
	"holdfast/turn"
)

const haiku = "claude-haiku-5-5"

func askOpus() anthropic.MessageNewParams {
	p := question("hi", 100)
	p.Model = opus
	return p
}

func TestServerFallbacks(t *testing.T) {
	for name, test := range map[string]struct {
		step      standin.Step
		fallbacks anthropic.BetaFallbacksParamUnion
		model     string // the policy's own fallback
		want      []string
		outcome   turn.Outcome
		answered  string
		text      string
	}{
		"not needed": {standin.Step{}, fallbacks(sonnet), "", []string{opus}, turn.Completed, opus, reply},
		"the first answers": {standin.Step{Kind: standin.Refusal, Category: "bio"}, fallbacks(sonnet, haiku), "",
			[]string{opus}, turn.Completed, sonnet, reply},
		"the second answers": {standin.Step{Kind: standin.Refusal, Declines: 2}, fallbacks(sonnet, haiku), "",
			[]string{opus}, turn.Completed, haiku, reply},
		"the API chooses": {standin.Step{Kind: standin.Refusal}, anthropic.BetaFallbacksParamUnion{OfDefault: constant.ValueOf[constant.Default]()}, "",
			[]string{opus}, turn.Completed, sonnet, reply},
		"all refuse": {standin.Step{Kind: standin.Refusal, Declines: -1, Times: -1}, fallbacks(sonnet, haiku), "",
			[]string{opus}, turn.HumanReview, haiku, ""},
		"all refuse, another answers": {standin.Step{Kind: standin.Refusal, Declines: -1}, fallbacks(sonnet), haiku,
			[]string{opus, haiku}, turn.Completed, haiku, reply},
		"all refuse, and the other is one of them": {standin.Step{Kind: standin.Refusal, Declines: -1, Times: -1}, fallbacks(sonnet), sonnet,
			[]string{opus}, turn.HumanReview, sonnet, ""},
		"the fallback was overloaded": {standin.Step{Kind: standin.Refusal, RecommendedModel: sonnet}, fallbacks(sonnet), "",
			[]string{opus, sonnet}, turn.Completed, sonnet, reply},
		"the fallback was overloaded, and refuses": {standin.Step{Kind: standin.Refusal, RecommendedModel: sonnet, Times: -1}, fallbacks(sonnet), "",
			[]string{opus, sonnet}, turn.HumanReview, sonnet, ""},
	} {
		t.Run(name, func(t *testing.T) {
			bothWays(t, func(t *testing.T, p turn.Policy) {
				u := follow(t, standin.Plan{Steps: []standin.Step{test.step}})
				p.Fallbacks, p.FallbackModel = test.fallbacks, test.model
				got, err := turn.Run(t.Context(), &u.Messages, &p, askOpus(), option.WithHeaderAdd("anthropic-beta", "other-2026-01-01"))
				if got.Outcome != test.outcome || (err == nil) != got.Outcome.Done() || got.Model != test.answered || got.Text != test.text {
					t.Fatalf("%v: %v by %s, %q", err, got.Outcome, got.Model, got.Text)
				}
				u.expect(t, len(test.want))
				billed, counted := 0, 0
				for i, e := range u.server.Journal() {
					b, beta := u.body(t, i+1), u.headers[i].Values("anthropic-beta")
					if chained := strings.Contains(strings.Join(beta, ","), "server-side-fallback-2026-07-01"); b.Model != test.want[i] || chained != (i == 0) || (b.Fallbacks != nil) != chained {
						t.Errorf("request %d asks %s with fallbacks %s under %q", i+1, b.Model, b.Fallbacks, beta)
					}
					billed, counted = billed+e.Input+e.Output, counted+int(got.Steps[i].Usage.Input+got.Steps[i].Usage.Output)
				}
				if billed != counted {
					t.Errorf("%d tokens were billed, %d counted", billed, counted)
				}
				for _, m := range got.History() {
					if text := string(must1(m.MarshalJSON())); strings.Contains(text, `"fallback"`) {
						t.Errorf("the history holds %s, which needs a beta header", text)
					}
				}
			})
		})
	}
}

// handedOver is a turn in which the first model had said something, thought something and called tools when it declined.
const handedOver = `{"id":"msg_1","type":"message","role":"assistant","model":"claude-sonnet-5-5","content":[
	{"type":"thinking","thinking":"of opus","signature":"b3B1cw=="},
	{"type":"text","text":"First, "},
	{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{"query":"done"}},
	{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[]},
	{"type":"server_tool_use","id":"srvtoolu_2","name":"web_search","input":{"query":"left"}},
	{"type":"tool_use","id":"toolu_1","name":"write","input":{"path":"of opus"}},
	{"type":"fallback","from":{"model":"claude-opus-5-5"},"to":{"model":"claude-sonnet-5-5"},"trigger":{"type":"refusal","category":"cyber"}},
	{"type":"text","text":"then."},
	{"type":"tool_use","id":"toolu_2","name":"write","input":{"path":"of sonnet"}}],
	"stop_reason":"REASON","stop_sequence":null,"stop_details":null,"usage":{"input_tokens":20,"output_tokens":5,"iterations":[
	{"type":"message","model":"claude-opus-5-5","input_tokens":10,"output_tokens":7,"cache_read_input_tokens":3,"cache_creation_input_tokens":2},
	{"type":"compaction","input_tokens":1000,"output_tokens":1000},
	{"type":"fallback_message","model":"claude-sonnet-5-5","input_tokens":20,"output_tokens":5}]}}`

func TestFallbackInTheMiddle(t *testing.T) {
	bothWays(t, func(t *testing.T, p turn.Policy) {
		u := serve(t, scripted(strings.ReplaceAll(handedOver, "REASON", "tool_use")))
		p.Fallbacks = fallbacks(sonnet)
		got, err := turn.Run(t.Context(), &u.Messages, &p, askOpus())
		if err != nil || got.Model != sonnet || got.Text != "First, then." {
			t.Fatalf("%v, %+v", err, got)
		}
		if len(got.ToolUses) != 1 || got.ToolUses[0].ID != "toolu_2" {
			t.Errorf("calls %+v: those of the model that declined are not to be run", got.ToolUses)
		}
		if want := (turn.Usage{Input: 30, Output: 12, CacheRead: 3, CacheWrite: 2}); got.Usage != want {
			t.Errorf("counted %+v, want %+v of both models", got.Usage, want)
		}
		history := string(must1(got.History()[0].MarshalJSON()))
		for _, block := range []string{"of opus", "srvtoolu_2", `"toolu_1"`, `"fallback"`} {
			if strings.Contains(history, block) {
				t.Errorf("the history holds %s: %s", block, history)
			}
		}
		for _, block := range []string{"First", "srvtoolu_1", "then.", "toolu_2"} {
			if !strings.Contains(history, block) {
				t.Errorf("the history lacks %s: %s", block, history)
			}
		}
	})
}

// A turn that is paused behind a fallback goes back to the model that took over, with what that model may have, and without
// the mark of a beta that its request does not bear.
func TestAPauseBehindAFallback(t *testing.T) {
	bothWays(t, func(t *testing.T, p turn.Policy) {
		u := serve(t, scripted(strings.ReplaceAll(handedOver, "REASON", "pause_turn"), spoken))
		p.Fallbacks = fallbacks(sonnet)
		got, err := turn.Run(t.Context(), &u.Messages, &p, askOpus())
		if err != nil || got.Text != "It costs 2." {
			t.Fatalf("%v, %+v", err, got)
		}
		u.expect(t, 2)
		direct(t, u, 2, sonnet)
		sent := string(u.body(t, 2).Messages[1])
		if strings.Contains(sent, `"fallback"`) || strings.Contains(sent, "of opus") || !strings.Contains(sent, "of sonnet") {
			t.Errorf("sent back: %s", sent)
		}
	})
}

// direct holds a request against what it is to be: to the model itself, and nothing of the API's own fallbacks about it.
func direct(t *testing.T, u *upstream, n int, model string) {
	t.Helper()
	b, beta := u.body(t, n), strings.Join(u.headers[n-1].Values("anthropic-beta"), ",")
	if b.Model != model || b.Fallbacks != nil || strings.Contains(beta, "server-side-fallback") {
		t.Errorf("request %d asks %s with fallbacks %s under %q, want %s alone", n, b.Model, b.Fallbacks, beta, model)
	}
}

// The model that declined is not asked again, however the answer ends that another one took over.
func TestWhoTookOverGoesOn(t *testing.T) {
	short := says("All of it, but for the", "max_tokens")
	declined := strings.Replace(short, `"content":[`, `"content":[{"type":"fallback","from":{"model":"claude-opus-5-5"},"to":{"model":"claude-sonnet-5-5"}},`, 1)
	usage := func(rounds string) string {
		return strings.Replace(short, `"output_tokens":5`, `"output_tokens":5,"iterations":[`+rounds+`{"type":"fallback_message","model":"claude-sonnet-5-5","input_tokens":9,"output_tokens":5}]`, 1)
	}
	for name, first := range map[string]string{
		"told by a block":          declined,
		"told by the usage":        usage(`{"type":"message","model":"claude-opus-5-5","input_tokens":9,"output_tokens":0},`),
		"declined in another turn": usage(""), // nothing says so but the model that answers
	} {
		t.Run(name, func(t *testing.T) {
			bothWays(t, func(t *testing.T, p turn.Policy) {
				p.Fallbacks, p.FallbackModel = fallbacks(sonnet), opus
				p.Adapt = func(params *anthropic.MessageNewParams) {
					params.System = []anthropic.TextBlockParam{{Text: "for another"}}
				}
				u := serve(t, scripted(first, says("All of it.", "end_turn")))
				got, err := turn.Run(t.Context(), &u.Messages, &p, askOpus())
				if err != nil || got.Text != "All of it." || got.Steps[0].Action != turn.Raise || got.Steps[1].Model != sonnet {
					t.Fatalf("%v, %+v", err, got)
				}
				u.expect(t, 2)
				direct(t, u, 2, sonnet)
				if b := u.body(t, 2); b.MaxTokens != 400 || !strings.Contains(string(u.asked[1]), "for another") {
					t.Errorf("the model that took over was asked for %d tokens: %s", b.MaxTokens, u.asked[1])
				}

				u = serve(t, scripted(first, says("No, I", "refusal")))
				got, err = turn.Run(t.Context(), &u.Messages, &p, askOpus())
				if !errors.Is(err, turn.ErrRefused) {
					t.Errorf("%v, %+v", err, got)
				}
				u.expect(t, 2) // the fallback model is the one that declined
			})
		})
	}
}

// The stand-in refuses fallbacks of a model that knows none, and so holds the request behind one against the API's rules.
func TestWhoTookOverIsAskedWithoutFallbacks(t *testing.T) {
	bothWays(t, func(t *testing.T, p turn.Policy) {
		u := follow(t, standin.Plan{Steps: []standin.Step{times(standin.Refusal, 1)}})
		p.Fallbacks = fallbacks(sonnet)
		ask := askOpus()
		ask.MaxTokens = 4
		got, err := turn.Run(t.Context(), &u.Messages, &p, ask)
		if err != nil || got.Text != reply || got.Steps[0].StopReason != "max_tokens" {
			t.Fatalf("%v, %+v", err, got)
		}
		u.expect(t, 3)
		direct(t, u, 2, sonnet)
		direct(t, u, 3, sonnet)
	})
}

func TestRecommendedModelIsTold(t *testing.T) {
	bothWays(t, func(t *testing.T, p turn.Policy) {
		u := follow(t, standin.Plan{Steps: []standin.Step{{Kind: standin.Refusal, RecommendedModel: haiku, Times: -1}}})
		got, err := turn.Run(t.Context(), &u.Messages, &p, askOpus())
		if !errors.Is(err, turn.ErrRefused) || got.Recommended != haiku {
			t.Errorf("%v, %q", err, got.Recommended)
		}
		u.expect(t, 1) // nobody asked for fallbacks
	})
}

// A model that the usage names has refused, whether or not a block of the content says so.
func TestRefusedByTheUsage(t *testing.T) {
	bothWays(t, func(t *testing.T, p turn.Policy) {
		message := strings.Replace(says("", "refusal"), `"output_tokens":5`, `"output_tokens":0,"iterations":[
			{"type":"message","model":"claude-opus-5-5","input_tokens":9},{"type":"message","model":"claude-sonnet-5-5","input_tokens":9}]`, 1)
		u := serve(t, scripted(strings.Replace(message, `"model":"claude-sonnet-5-5","content"`, `"model":"claude-opus-5-5","content"`, 1)))
		p.Fallbacks, p.FallbackModel = fallbacks(sonnet), sonnet
		got, err := turn.Run(t.Context(), &u.Messages, &p, askOpus())
		if !errors.Is(err, turn.ErrRefused) || got.Usage != (turn.Usage{}) { // none of them said anything
			t.Errorf("%v, %+v", err, got.Usage)
		}
		u.expect(t, 1)
	})
}
