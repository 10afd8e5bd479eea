package turn_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anthropics/anthropic-sdk-go/v2"
	"github.com/anthropics/anthropic-sdk-go/v2/packages/param"

	"holdfast"
	"holdfast/turn"
)

// says is a message of text that ends for a reason; with thinking when it is given.
func says(text, reason string, thinking ...string) string {
	blocks := []string{}
	for _, t := range thinking {
		blocks = append(blocks, `{"type":"thinking","thinking":`+quoted(t)+`,"signature":"c2ln"}`)
	}
	if text != "" {
		blocks = append(blocks, `{"type":"text","text":`+quoted(text)+`}`)
	}
	return `{"id":"msg_1","type":"message","role":"assistant","model":"claude-sonnet-5-5","content":[` + strings.Join(blocks, ",") + `],
		"stop_reason":"` + reason + `","stop_sequence":null,"stop_details":null,"usage":{"input_tokens":9,"output_tokens":5}}`
}

func quoted(s string) string { return string(must1(json.Marshal(s))) }

// roles are the roles and texts of messages, "user: hi".
func roles(t *testing.T, messages []json.RawMessage) (all []string) {
	t.Helper()
	for _, m := range messages {
		var message struct {
			Role    string
			Content []struct{ Text string }
		}
		if err := json.Unmarshal(m, &message); err != nil {
			t.Fatal(err)
		}
		line := message.Role + ":"
		for _, b := range message.Content {
			line += " " + b.Text
		}
		all = append(all, line)
	}
	return all
}

func TestContinuation(t *testing.T) {
	const first, second, third = "The first part of a long story ends in the mid", "dle of a word, and goes on to the", " end of it."
	for name, test := range map[string]struct {
		answers  []string
		text     string
		outcome  turn.Outcome
		requests int
		kept     int
		history  int
	}{
		"once": {[]string{says(first, "max_tokens"), says(second, "end_turn")}, first + second, turn.Completed, 2, 2, 3},
		"twice": {[]string{says(first, "max_tokens"), says(second, "max_tokens"), says(third, "end_turn")},
			first + second + third, turn.Completed, 3, 3, 5},
		"no more than allowed": {[]string{says(first, "max_tokens"), says(second, "max_tokens"), says(third, "max_tokens"), says("x", "end_turn")},
			first + second + third, turn.Truncated, 3, 3, 5},
		"what is said twice is there once": {[]string{says(first, "max_tokens"), says("long story ends in the middle.", "end_turn")},
			"The first part of a long story ends in the middle.", turn.Completed, 2, 2, 3},
		"begun anew, and whole":     {[]string{says(first, "max_tokens"), says(first+"dle.", "end_turn")}, first + "dle.", turn.Completed, 2, 1, 1},
		"begun anew, and cut":       {[]string{says(first, "max_tokens"), says(first, "max_tokens")}, first, turn.Truncated, 2, 1, 1},
		"nothing more comes":        {[]string{says(first, "max_tokens"), says("", "end_turn")}, first, turn.Completed, 2, 2, 1},
		"thinking is not continued": {[]string{says(first, "max_tokens", "hm")}, first, turn.Truncated, 1, 1, 1},
		"nothing is not continued":  {[]string{says(" ", "max_tokens")}, " ", turn.Truncated, 1, 1, 0},
		"a pause in the rest": {[]string{says(first, "max_tokens"), paused, says("It costs 2.", "end_turn")},
			"It costs 2.", turn.Completed, 3, 3, 4},
		"a refusal of the rest": {[]string{says(first, "max_tokens"), says("dle", "refusal")}, "", turn.HumanReview, 2, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			bothWays(t, func(t *testing.T, p turn.Policy) {
				u := serve(t, scripted(test.answers...))
				p.Cap, p.Continuations, p.Instruction = 60, 2, "go on"
				got, err := turn.Run(t.Context(), &u.Messages, &p, question("hi", 60))
				if got.Text != test.text || got.Outcome != test.outcome || (err == nil) != got.Outcome.Done() {
					t.Errorf("%v: %v, %q, want %v, %q", err, got.Outcome, got.Text, test.outcome, test.text)
				}
				u.expect(t, test.requests)
				if len(got.Kept) != test.kept || len(got.History()) != test.history {
					t.Errorf("%d kept and a history of %d, want %d and %d", len(got.Kept), len(got.History()), test.kept, test.history)
				}
				for n := 2; n <= test.requests; n++ {
					all := roles(t, u.body(t, n).Messages)
					if last := all[len(all)-1]; last != "user: go on" && got.Steps[n-2].Action != turn.Resume {
						t.Errorf("request %d ends with %q, and not with a user message", n, last)
					}
					if all[0] != "user: hi" || all[1] != "assistant: "+first {
						t.Errorf("request %d is %q", n, all)
					}
				}
			})
		})
	}
}

// What a turn leaves behind is sent back and accepted, whatever it was.
func TestHistoryIsSentBack(t *testing.T) {
	half := strings.Replace(called(`{"path":"a"}`), `"stop_reason":"tool_use"`, `"stop_reason":"max_tokens"`, 1)
	two := strings.Replace(half, `"content":[`, `"content":[{"type":"text","text":"Two calls."},{"type":"text","text":""},{"type":"tool_use","id":"toolu_0","name":"write","input":{"path":"b"}},`, 1)
	for name, test := range map[string]struct {
		answers []string
		want    string
	}{
		"text":                              {[]string{says("All of it.", "end_turn", "hm")}, `[{"content":[{"signature":"c2ln","thinking":"hm","type":"thinking"},{"text":"All of it.","type":"text"}],"role":"assistant"}]`},
		"half a call":                       {[]string{half}, `[]`},
		"half a call behind another":        {[]string{two}, `[{"content":[{"text":"Two calls.","type":"text"}],"role":"assistant"}]`},
		"a call under a reason of tomorrow": {[]string{strings.Replace(called(`{}`), `"stop_reason":"tool_use"`, `"stop_reason":"foo_bar"`, 1)}, `[]`},
		"nothing":                           {[]string{says("", "end_turn")}, `[]`},
		"a refusal":                         {[]string{says("No, I", "refusal")}, `[]`},
	} {
		t.Run(name, func(t *testing.T) {
			bothWays(t, func(t *testing.T, p turn.Policy) {
				u := serve(t, scripted(test.answers...))
				p.Cap = 100
				got, _ := turn.Run(t.Context(), &u.Messages, &p, withTool(100))
				all := []json.RawMessage{}
				for _, m := range got.History() {
					all = append(all, must1(m.MarshalJSON()))
				}
				if diff := same(t, must1(json.Marshal(all)), json.RawMessage(test.want)); diff != "" {
					t.Error(diff)
				}
			})
		})
	}
}

func TestEventsTellWhatIsVoid(t *testing.T) {
	const whole = "The whole of it."
	for name, test := range map[string]struct {
		answers []string
		shown   string // what a reader has in front of it at the end, step by step
		void    string // the steps that were taken back, in order
	}{
		"one answer":                {[]string{says(whole, "end_turn")}, "1:" + whole, ""},
		"a raised budget":           {[]string{says("The wh", "max_tokens"), says(whole, "end_turn")}, "2:" + whole, "1"},
		"a pause":                   {[]string{paused, says(whole, "end_turn")}, "1:I will look it up <now> & then. 2:" + whole, ""},
		"a refusal in the middle":   {[]string{says("The wh", "refusal"), says(whole, "end_turn")}, "2:" + whole, "1"},
		"a refusal behind a pause":  {[]string{paused, says("It", "refusal"), says(whole, "end_turn")}, "3:" + whole, "1 2"},
		"refused by all":            {[]string{says("The wh", "refusal"), says("The", "refusal")}, "", "1 2"},
		"a continuation":            {[]string{says(whole, "max_tokens"), says(whole, "max_tokens"), says(" Yes.", "end_turn")}, "2:" + whole + " 3: Yes.", "1"},
		"a continuation begun anew": {[]string{says(whole, "max_tokens"), says(whole, "max_tokens"), says(whole+" Yes.", "end_turn")}, "3:" + whole + " Yes.", "1 2"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := turn.Policy{}
				shown, order, void := map[int]string{}, []int{}, []string{}
				p.OnEvent = func(e turn.Event) {
					if e.Discarded {
						delete(shown, e.Step)
						void = append(void, string(rune('0'+e.Step)))
						return
					}
					if _, ok := shown[e.Step]; !ok {
						order = append(order, e.Step)
					}
					shown[e.Step] += e.Text
				}
				p.Cap, p.Continuations, p.FallbackModel = 100, 1, opus
				u := serve(t, scripted(test.answers...))
				got, _ := turn.Run(t.Context(), &u.Messages, &p, question("hi", 60))
				var left []string
				for _, n := range order {
					if text, ok := shown[n]; ok {
						left = append(left, string(rune('0'+n))+":"+text)
					}
				}
				if strings.Join(left, " ") != test.shown || strings.Join(void, " ") != test.void {
					t.Errorf("shown %q, taken back %q; want %q and %q", left, void, test.shown, test.void)
				}
				for i, s := range got.Steps {
					if s.Discarded != strings.Contains(test.void, string(rune('1'+i))) {
						t.Errorf("step %d: discarded %v", i+1, s.Discarded)
					}
				}
			})
		})
	}
}

// B64: behind the stop reason nothing is missing, so an answer whose end is torn is not asked for again.
func TestB64_TornEndOfAWholeAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := turn.Policy{Stream: true}
		whole := events(says(reply, "end_turn"))
		u := serve(t, scriptedEvents(whole[:len(whole)-5]))
		got, err := turn.Run(t.Context(), &u.Messages, &p, question("hi", 60))
		if err != nil || got.Text != reply || got.Usage.Partial {
			t.Errorf("%v, %+v", err, got)
		}
		u.expect(t, 1)
	})
}

// A stream that ends anywhere before the stop reason is never an answer, though the SDK has no error for it.
func TestAStreamThatJustEndsIsNoAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := turn.Policy{Stream: true}
		frames := strings.SplitAfter(events(says(reply, "end_turn")), "\n\n")
		for n := range len(frames) - 3 { // without the stop reason, the end, and the nothing behind it
			u := serve(t, scriptedEvents(strings.Join(frames[:n], "")))
			got, err := turn.Run(t.Context(), &u.Messages, &p, question("hi", 60))
			if !errors.Is(err, turn.ErrUnfinished) || got.Outcome.Done() || got.Text != "" {
				t.Errorf("after %d events: %v, %v", n, err, got.Outcome)
			}
			u.expect(t, 1)
		}
		twice := strings.Join(frames[:3], "") + strings.Join(frames, "")
		u := serve(t, scriptedEvents(twice))
		if got, err := turn.Run(t.Context(), &u.Messages, &p, question("hi", 60)); err == nil {
			t.Errorf("two messages in one stream are no answer: %+v", got)
		}
	})
}

// An upstream that holds its connection open behind the answer takes a second, and not the rest of the caller's time.
func TestAStreamThatNeverClosesIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := turn.Policy{Stream: true}
		u := serve(t, lingering(events(says(reply, "end_turn"))))
		began := time.Now()
		if got, err := turn.Run(t.Context(), &u.Messages, &p, question("hi", 60)); err != nil || got.Text != reply || time.Since(began) != time.Second {
			t.Errorf("%v after %v, %+v", err, time.Since(began), got)
		}
	})
}

// The event that ends a stream ends no answer that has no stop reason.
func TestAnEndWithoutAReasonIsNoAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		frames := strings.SplitAfter(events(says(reply, "end_turn")), "\n\n")
		n := len(frames) - 3 // the stop reason
		u := serve(t, scriptedEvents(strings.Join(frames[:n], "")+strings.Join(frames[n+1:], "")))
		if m, err := turn.Collect(t.Context(), &u.Messages, question("hi", 60)); m != nil || !errors.Is(err, holdfast.ErrCut) {
			t.Errorf("%v, %+v", err, m)
		}
	})
}

// A paused turn goes on in its container, beside what the caller asked for, which stands.
func TestAPauseKeepsItsContainer(t *testing.T) {
	mine := param.NewOpt("container_mine")
	skills := []anthropic.SkillParams{{SkillID: "xlsx", Type: "anthropic"}}
	for want, container := range map[string]anthropic.MessageCreateParamsContainerUnion{
		`"container_7"`:    {},
		`"container_mine"`: {OfString: mine},
		`{"id":"container_7","skills":[{"skill_id":"xlsx","type":"anthropic"}]}`:    {OfContainers: &anthropic.ContainerParams{Skills: skills}},
		`{"id":"container_mine","skills":[{"skill_id":"xlsx","type":"anthropic"}]}`: {OfContainers: &anthropic.ContainerParams{ID: mine, Skills: skills}},
	} {
		bothWays(t, func(t *testing.T, p turn.Policy) {
			u := serve(t, scripted(paused, spoken))
			ask := question("hi", 60)
			ask.Container = container
			before := string(must1(json.Marshal(ask)))
			if got, err := turn.Run(t.Context(), &u.Messages, &p, ask); err != nil {
				t.Fatalf("%v, %+v", err, got)
			}
			if diff := same(t, u.body(t, 2).Container, json.RawMessage(want)); diff != "" {
				t.Error(diff)
			}
			if after := string(must1(json.Marshal(ask))); after != before {
				t.Errorf("the caller's parameters are %s now", after)
			}
		})
	}
}

// A full window cuts a call as a full budget does, and nobody is to see the half.
func TestAFullWindowCutsACall(t *testing.T) {
	bothWays(t, func(t *testing.T, p turn.Policy) {
		u := serve(t, scripted(replaced(called(`{"path":"a"}`), "model_context_window_exceeded")))
		got, err := turn.Run(t.Context(), &u.Messages, &p, withTool(100))
		if !errors.Is(err, turn.ErrTruncated) || len(got.Message.Content) != 0 || got.ToolUses != nil || got.History() != nil {
			t.Errorf("%v, %+v", err, got)
		}
	})
}
