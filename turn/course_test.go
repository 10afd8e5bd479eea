package turn_test

import (
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"holdfast/turn"
)

var (
	whole   = turn.Response{StopReason: "end_turn", Continuable: true}
	cut     = turn.Response{StopReason: "max_tokens", Continuable: true}
	half    = turn.Response{StopReason: "max_tokens", HalfTool: true}
	refusal = turn.Response{StopReason: "refusal", Category: "cyber"}
	pause   = turn.Response{StopReason: "pause_turn"}
	taken   = turn.Response{StopReason: "max_tokens", Continuable: true, Model: "b", Declined: []string{"model"}} // by b
)

func TestCourseDecides(t *testing.T) {
	lab := turn.Policy{Cap: 1024, FallbackModel: "other"}
	chain := turn.Policy{Fallbacks: fallbacks("next")}
	for name, test := range map[string]struct {
		policy    turn.Policy
		maxTokens int64
		answers   []turn.Response
		want      []string // action, model and max_tokens of each Next
		outcome   turn.Outcome
		why       string
	}{
		"a whole answer is done":       {lab, 60, []turn.Response{whole}, nil, turn.Completed, "end_turn"},
		"a stop sequence is done":      {lab, 60, []turn.Response{{StopReason: "stop_sequence"}}, nil, turn.Completed, "stop_sequence"},
		"a tool call is done":          {lab, 60, []turn.Response{{StopReason: "tool_use"}}, nil, turn.ToolUse, "tool_use"},
		"the budget is raised":         {lab, 60, []turn.Response{cut, whole}, []string{"raise model 240"}, turn.Completed, "end_turn"},
		"to the cap and no further":    {lab, 60, []turn.Response{cut, cut, cut, cut}, []string{"raise model 240", "raise model 960", "raise model 1024"}, turn.Truncated, "max_tokens at 1024"},
		"not when it begins above it":  {lab, 2000, []turn.Response{cut}, nil, turn.Truncated, "max_tokens at 2000"},
		"not without a budget at all":  {lab, 0, []turn.Response{cut}, nil, turn.Truncated, "max_tokens at 0"},
		"not with a factor of 1":       {turn.Policy{Factor: 1}, 60, []turn.Response{cut}, nil, turn.Truncated, "max_tokens at 60"},
		"not with a negative factor":   {turn.Policy{Factor: -1}, 60, []turn.Response{cut}, nil, turn.Truncated, "max_tokens at 60"},
		"by default up to the limit":   {turn.Policy{}, 6000, []turn.Response{cut, cut}, []string{"raise model 21333"}, turn.Truncated, "max_tokens at 21333"},
		"without a cap it never flows": {turn.Policy{Cap: -1, FollowUps: 1}, math.MaxInt64 / 2, []turn.Response{cut, cut}, []string{"raise model 9223372036854775807"}, turn.Truncated, "max_tokens at 9223372036854775807, no follow-ups left"},
		"follow-ups are bounded":       {turn.Policy{FollowUps: 1}, 60, []turn.Response{cut, cut}, []string{"raise model 240"}, turn.Truncated, "max_tokens at 240, no follow-ups left"},
		"half a call is made again":    {lab, 60, []turn.Response{half, {StopReason: "tool_use"}}, []string{"raise model 240"}, turn.ToolUse, "tool_use"},
		"half a call is never used":    {lab, 1024, []turn.Response{half}, nil, turn.Truncated, "max_tokens at 1024"},
		"half a call is never told as a call": {lab, 1024, []turn.Response{{StopReason: "tool_use", HalfTool: true}}, nil,
			turn.Truncated, "half a tool call"},
		"half a call is never resumed": {lab, 1024, []turn.Response{{StopReason: "pause_turn", HalfTool: true}}, nil, turn.Truncated, "half a tool call"},
		"the window is no budget":      {lab, 60, []turn.Response{{StopReason: "model_context_window_exceeded"}}, nil, turn.Truncated, "the context window is full"},
		"an unknown reason is kept":    {lab, 60, []turn.Response{{StopReason: "foo_bar"}}, nil, turn.Unknown, "unknown stop reason"},
		"no reason is unknown":         {lab, 60, []turn.Response{{}}, nil, turn.Unknown, "unknown stop reason"},

		"continued after the cap": {turn.Policy{Cap: 60, Continuations: 2}, 60, []turn.Response{cut, cut, cut},
			[]string{"continue model 60", "continue model 60"}, turn.Truncated, "max_tokens at 60"},
		"raised before it is continued": {turn.Policy{Cap: 100, Continuations: 1}, 60, []turn.Response{cut, cut, whole},
			[]string{"raise model 100", "continue model 100"}, turn.Completed, "end_turn"},
		"thinking and calls are not continued": {turn.Policy{Cap: 60, Continuations: 2}, 60, []turn.Response{{StopReason: "max_tokens"}}, nil, turn.Truncated, "max_tokens at 60"},
		"B54: what begins anew is not continued": {turn.Policy{Cap: 60, Continuations: 5}, 60,
			[]turn.Response{cut, {StopReason: "max_tokens", Continuable: true, Repeats: true}}, []string{"continue model 60"}, turn.Truncated, "max_tokens at 60, the continuation began anew"},
		"begun anew and come to its end": {turn.Policy{Cap: 60, Continuations: 5}, 60,
			[]turn.Response{cut, {StopReason: "end_turn", Continuable: true, Repeats: true}}, []string{"continue model 60"}, turn.Completed, "end_turn, begun anew"},

		"the fallback is asked once": {lab, 60, []turn.Response{refusal, refusal}, []string{"fallback other 60"}, turn.HumanReview, "refusal, category cyber, by the fallback model too"},
		"the fallback may answer":    {lab, 60, []turn.Response{refusal, cut, whole}, []string{"fallback other 60", "raise other 240"}, turn.Completed, "end_turn"},
		"the budget stays raised":    {lab, 60, []turn.Response{cut, refusal, whole}, []string{"raise model 240", "fallback other 240"}, turn.Completed, "end_turn"},
		"without one a human is":     {turn.Policy{}, 60, []turn.Response{{StopReason: "refusal"}}, nil, turn.HumanReview, "refusal"},
		"never the same model":       {turn.Policy{FallbackModel: "model"}, 60, []turn.Response{refusal}, nil, turn.HumanReview, "refusal, category cyber, the fallback model has refused already"},
		"nor by its other name":      {lab, 60, []turn.Response{{StopReason: "refusal", Model: "other"}}, nil, turn.HumanReview, "refusal, the fallback model has refused already"},
		"nor one that the API asked": {lab, 60, []turn.Response{{StopReason: "refusal", Declined: []string{"other"}}}, nil, turn.HumanReview, "refusal, the fallback model has refused already"},
		"a recommendation is taken":  {chain, 60, []turn.Response{{StopReason: "refusal", Recommended: "next"}, whole}, []string{"fallback next 60"}, turn.Completed, "end_turn"},
		"not without a chain":        {turn.Policy{}, 60, []turn.Response{{StopReason: "refusal", Recommended: "next"}}, nil, turn.HumanReview, "refusal"},
		"not after a refusal of it":  {chain, 60, []turn.Response{{StopReason: "refusal", Recommended: "next", Declined: []string{"next"}}}, nil, turn.HumanReview, "refusal, the fallback model has refused already"},

		"who took over goes on": {lab, 60, []turn.Response{taken, cut, whole}, []string{"raise b 240", "raise b 960"}, turn.Completed, "end_turn"},
		"and is continued":      {turn.Policy{Cap: 60, Continuations: 2}, 60, []turn.Response{taken, whole}, []string{"continue b 60"}, turn.Completed, "end_turn"},
		"and is resumed":        {lab, 60, []turn.Response{{StopReason: "pause_turn", Model: "b", Declined: []string{"model"}}, pause, whole}, []string{"resume b 60", "resume b 60"}, turn.Completed, "end_turn"},
		"and may refuse":        {lab, 60, []turn.Response{taken, refusal, whole}, []string{"raise b 240", "fallback other 240"}, turn.Completed, "end_turn"},
		"who declined is not the fallback": {turn.Policy{FallbackModel: "b"}, 60,
			[]turn.Response{{StopReason: "max_tokens", Model: "c", Declined: []string{"model", "b"}}, {StopReason: "refusal", Model: "c"}}, []string{"raise c 240"},
			turn.HumanReview, "refusal, the fallback model has refused already"},
		"nor the one that was asked": {turn.Policy{FallbackModel: "model"}, 60, []turn.Response{taken, refusal}, []string{"raise b 240"},
			turn.HumanReview, "refusal, category cyber, the fallback model has refused already"},
		"nor by a dated name": {turn.Policy{FallbackModel: "b-20261101"}, 60, []turn.Response{{StopReason: "refusal", Declined: []string{"b"}}}, nil,
			turn.HumanReview, "refusal, the fallback model has refused already"},
		"nor by an undated one": {turn.Policy{FallbackModel: "b"}, 60, []turn.Response{{StopReason: "refusal", Declined: []string{"b-20261101"}}}, nil,
			turn.HumanReview, "refusal, the fallback model has refused already"},
		"but another date is another model": {turn.Policy{FallbackModel: "b-20261101"}, 60, []turn.Response{{StopReason: "refusal", Declined: []string{"b-20260101"}}, whole},
			[]string{"fallback b-20261101 60"}, turn.Completed, "end_turn"},
		"and a number is no date": {turn.Policy{FallbackModel: "b-1"}, 60, []turn.Response{{StopReason: "refusal", Declined: []string{"b"}}, whole},
			[]string{"fallback b-1 60"}, turn.Completed, "end_turn"},
		"who took over must have a name": {lab, 60, []turn.Response{{StopReason: "max_tokens", Declined: []string{"model"}}}, nil,
			turn.Truncated, "max_tokens at 60, the model that went on is not known"},
		"and not have declined": {lab, 60, []turn.Response{{StopReason: "pause_turn", Model: "b", Declined: []string{"b"}}}, nil,
			turn.Paused, "paused, the model that went on is not known"},

		"a new model may be continued anew": {turn.Policy{Cap: 60, Continuations: 1, FallbackModel: "other"}, 60, []turn.Response{cut, refusal, cut, whole},
			[]string{"continue model 60", "fallback other 60", "continue other 60"}, turn.Completed, "end_turn"},
		"half a call is never continued": {turn.Policy{Cap: 60, Continuations: 1}, 60, []turn.Response{{StopReason: "max_tokens", HalfTool: true, Continuable: true}}, nil,
			turn.Truncated, "max_tokens at 60"},

		"a pause is resumed":   {lab, 60, []turn.Response{pause, whole}, []string{"resume model 60"}, turn.Completed, "end_turn"},
		"as often as allowed":  {turn.Policy{Pauses: 2}, 60, []turn.Response{pause, pause, pause}, []string{"resume model 60", "resume model 60"}, turn.Paused, "paused after 2 resumptions"},
		"or never":             {turn.Policy{Pauses: -1}, 60, []turn.Response{pause}, nil, turn.Paused, "paused after 0 resumptions"},
		"beside the follow-up": {turn.Policy{FollowUps: -1}, 60, []turn.Response{pause, cut}, []string{"resume model 60"}, turn.Truncated, "max_tokens at 60, no follow-ups left"},
	} {
		t.Run(name, func(t *testing.T) {
			course := turn.NewCourse(&test.policy, "model", test.maxTokens)
			var got []string
			var next turn.Next
			for _, r := range test.answers {
				next = course.Settle(r)
				if next.Action != turn.End {
					got = append(got, described(next))
				}
			}
			if strings.Join(got, ", ") != strings.Join(test.want, ", ") {
				t.Errorf("decided %q, want %q", got, test.want)
			}
			if next.Action != turn.End || next.Outcome != test.outcome || next.Why != test.why {
				t.Errorf("ended as %v %v because %q, want %v because %q", next.Action, next.Outcome, next.Why, test.outcome, test.why)
			}
			if n := course.Requests(); n != len(test.want)+1 {
				t.Errorf("%d requests, want %d", n, len(test.want)+1)
			}
			if again := course.Settle(pause); again != next {
				t.Errorf("after its end it said %v, want the same end", again)
			}
		})
	}
}

// Whatever the answers and the policy: no more requests than stated, no model that has refused, no budget above the cap,
// no cut answer that counts as done.
func TestCourseKeepsItsBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := turn.Policy{
			Factor: rapid.Int64Range(-1, 10).Draw(t, "factor"), Cap: rapid.Int64Range(-1, 5000).Draw(t, "cap"),
			Continuations: rapid.IntRange(-1, 30).Draw(t, "continuations"), FollowUps: rapid.IntRange(-1, 20).Draw(t, "followUps"),
			Pauses: rapid.IntRange(-1, 20).Draw(t, "pauses"), FallbackModel: rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "fallback"),
		}
		if rapid.Bool().Draw(t, "chain") {
			p.Fallbacks = fallbacks("b", "c")
		}
		begun := rapid.Int64Range(0, 6000).Draw(t, "maxTokens")
		names := rapid.SampledFrom([]string{"", "a", "b", "c"})
		course := turn.NewCourse(&p, "a", begun)
		model, budget, refused, requests := "a", begun, map[string]bool{}, 1
		for {
			r := turn.Response{
				StopReason: rapid.SampledFrom([]string{"end_turn", "max_tokens", "max_tokens", "stop_sequence", "tool_use", "pause_turn", "pause_turn", "refusal",
					"model_context_window_exceeded", "", "foo_bar"}).Draw(t, "reason"),
				Model: names.Draw(t, "model"), Recommended: names.Draw(t, "recommended"), Declined: rapid.SliceOfN(names, 0, 2).Draw(t, "declined"),
				HalfTool: rapid.Bool().Draw(t, "half"), Continuable: rapid.Bool().Draw(t, "continuable"), Repeats: rapid.Bool().Draw(t, "repeats"),
			}
			if r.StopReason == "refusal" {
				refused[model], refused[r.Model] = true, true
			}
			if len(r.Declined) > 0 {
				refused[model] = true
			}
			for _, name := range r.Declined {
				refused[name] = true
			}
			next := course.Settle(r)
			if next.Outcome.Done() && (r.HalfTool || r.StopReason == "max_tokens" || r.StopReason == "model_context_window_exceeded") {
				t.Fatalf("%+v was told as %v", r, next.Outcome)
			}
			if next.Action == turn.End {
				break
			}
			requests++
			if next.Outcome != turn.Unfinished {
				t.Fatalf("not over, but %v", next.Outcome)
			}
			if refused[next.Model] {
				t.Fatalf("asks %q, which has refused", next.Model)
			}
			if next.MaxTokens < budget || next.MaxTokens > budget && p.Cap > 0 && next.MaxTokens > p.Cap {
				t.Fatalf("max_tokens went from %d to %d under a cap of %d", budget, next.MaxTokens, p.Cap)
			}
			if next.Action == turn.Raise && next.MaxTokens == budget {
				t.Fatal("raised to nothing more")
			}
			model, budget = next.Model, next.MaxTokens
			if requests > p.MaxRequests() {
				t.Fatalf("request %d of at most %d", requests, p.MaxRequests())
			}
		}
		if requests != course.Requests() {
			t.Fatalf("%d requests, the course counts %d", requests, course.Requests())
		}
	})
}

func TestCourseReachesItsMaximum(t *testing.T) {
	for name, p := range map[string]turn.Policy{
		"zero":  {},
		"small": {FollowUps: 2, Pauses: 1},
		"none":  {FollowUps: -1, Pauses: -1},
	} {
		p.Factor, p.Cap = 2, -1
		course := turn.NewCourse(&p, "model", 1)
		sent := 1
		for next := course.Settle(cut); next.Action != turn.End; next = course.Settle(cut) {
			sent++
			if next = course.Settle(pause); next.Action == turn.End {
				break
			}
			sent++
		}
		if want := p.MaxRequests(); sent > want || sent != course.Requests() {
			t.Errorf("%s: %d requests, at most %d", name, sent, want)
		}
	}
	var zero turn.Policy
	if n := zero.MaxRequests(); n != 17 {
		t.Errorf("the zero policy sends up to %d requests, want 17", n)
	}
	endless := turn.Policy{FollowUps: math.MaxInt, Pauses: math.MaxInt}
	if n := endless.MaxRequests(); n != 2001 || endless.Validate() == nil {
		t.Errorf("a policy without bounds sends at most %d, and is right: %v", n, endless.Validate())
	}
}

func FuzzCourse(f *testing.F) {
	f.Add("max_tokens", "a", "b", int64(60), uint8(0b011), []byte{1, 2, 3})
	f.Add("refusal", "b", "c", int64(0), uint8(0b100), []byte{4, 4, 4, 4})
	reasons := []string{"end_turn", "max_tokens", "tool_use", "pause_turn", "refusal", "stop_sequence"}
	f.Fuzz(func(t *testing.T, reason, model, recommended string, maxTokens int64, flags uint8, order []byte) {
		p := turn.Policy{FallbackModel: model, Continuations: int(flags), Fallbacks: fallbacks(recommended)}
		course := turn.NewCourse(&p, "first", maxTokens)
		sent := 1
		for _, b := range order {
			r := turn.Response{StopReason: reason, Model: model, Recommended: recommended,
				HalfTool: flags&1 != 0, Continuable: flags&2 != 0, Repeats: flags&4 != 0}
			if int(b) < len(reasons) {
				r.StopReason = reasons[b]
			}
			next := course.Settle(r)
			if next.Action == turn.End {
				if next.Outcome == turn.Unfinished {
					t.Fatal("an end without an outcome")
				}
				break
			}
			if sent++; sent > p.MaxRequests() || sent != course.Requests() {
				t.Fatalf("request %d of at most %d, the course counts %d", sent, p.MaxRequests(), course.Requests())
			}
		}
	})
}
