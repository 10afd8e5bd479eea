package turn

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// Response is what decides in one answer.
type Response struct {
	// StopReason as it came.
	StopReason string
	// Model that answered; empty: the one that was asked.
	Model string
	// HalfTool: a tool call in it ends in its middle.
	HalfTool bool
	// Continuable: it is text and nothing but text, so the rest can be asked for.
	Continuable bool
	// Repeats: it was to continue another answer, and begins anew instead.
	Repeats bool
	// Category of a refusal, empty for none.
	Category string
	// Declined are models that refused before Model answered, where the API's own fallbacks were asked. With them the model
	// that was asked has refused too, whatever the StopReason, and it is Model that goes on.
	Declined []string
	// Recommended is the model that the API names for asking after a refusal, empty for none.
	Recommended string
}

// Next is what a [Course] wants after an answer.
type Next struct {
	Action Action
	// Model and MaxTokens of the request to send; with End, those of the last one.
	Model     string
	MaxTokens int64
	// Outcome, with End.
	Outcome Outcome
	// Why, in a few words without anything of the prompt or the answer: "max_tokens at 60, budget raised to 240".
	Why string
}

// Course decides one turn: it is told what each answer was, and says what comes next. It has no clock, no context and no
// client, so a simulation drives the very machine that [Run] drives:
//
//	course := turn.NewCourse(&policy, model, 60)
//	next := course.Settle(ask(model, 60))
//	for next.Action != turn.End {
//		next = course.Settle(ask(next.Model, next.MaxTokens))
//	}
//
// A model that took over from one that refused answers from then on: every later request names it. That one way to keep the
// other from being asked again is ours to take; that the API itself keeps to the model is its best effort.
//
// It never asks for more than [Policy.MaxRequests] requests, whatever it is told, never names a model that has refused or
// declined, and never takes a cut answer for a whole one. It is not safe for concurrent use.
type Course struct {
	policy    *Policy
	model     string
	maxTokens int64
	refused   []string // models, by every name that is known of them
	fallen    bool     // the one fallback after a refusal is used up

	followUps, pauses, continuations int
	over                             bool
	end                              Next
}

// NewCourse returns the course of a turn whose first request goes to model with maxTokens. A nil policy is the zero one,
// which is not changed. It never sends that request.
func NewCourse(p *Policy, model string, maxTokens int64) *Course {
	if p == nil {
		p = &Policy{}
	}
	return &Course{policy: p, model: model, maxTokens: maxTokens}
}

// Requests returns how many requests the turn took so far, the one under way included. It is never above
// [Policy.MaxRequests].
func (c *Course) Requests() int { return 1 + c.followUps + c.pauses }

// Settle says what comes after an answer. After an End it returns the same End again, and never anything to send.
func (c *Course) Settle(r Response) Next {
	if c.over {
		return c.end
	}
	if len(r.Declined) > 0 {
		c.refused = append(append(c.refused, c.model), r.Declined...)
	}
	switch r.StopReason {
	case "end_turn", "stop_sequence", "tool_use":
		return c.settleWhole(&r)
	case "max_tokens":
		return c.settleCut(&r, fmt.Sprintf("max_tokens at %d", c.maxTokens))
	case "refusal":
		return c.settleRefusal(&r)
	case "pause_turn":
		return c.settlePause(&r)
	case "model_context_window_exceeded":
		return c.stop(Truncated, "the context window is full") // a larger budget cannot help
	}
	return c.stop(Unknown, "unknown stop reason")
}

func (c *Course) settleWhole(r *Response) Next {
	switch {
	case r.HalfTool: // whatever it says, nothing is done with half a call
		return c.settleCut(r, "half a tool call")
	case r.Repeats: // and this time it came to its end: it is the answer, without what it was to continue
		return c.stop(Completed, r.StopReason+", begun anew")
	case r.StopReason == "tool_use":
		return c.stop(ToolUse, "tool_use")
	}
	return c.stop(Completed, r.StopReason)
}

// settleCut raises the budget as long as it can be raised, then continues as often as the policy allows.
func (c *Course) settleCut(r *Response, what string) Next {
	if r.Repeats {
		return c.stop(Truncated, what+", the continuation began anew")
	}
	raised := c.raised()
	model := c.goesOn(r)
	switch {
	case c.hasRefused(model):
		return c.stop(Truncated, what+", the model that went on is not known")
	case !c.mayFollow():
		return c.stop(Truncated, what+", no follow-ups left")
	case raised > c.maxTokens:
		c.followUps++
		c.model, c.maxTokens = model, raised
		return c.next(Raise, fmt.Sprintf("%s, budget raised to %d", what, raised))
	case r.Continuable && !r.HalfTool && c.continuations < c.policy.Continuations:
		c.followUps++
		c.continuations++
		c.model = model
		return c.next(Continue, what+", continued")
	}
	return c.stop(Truncated, what)
}

// goesOn is the model that is asked for more of an answer: the one that took over, or else the one that was asked.
func (c *Course) goesOn(r *Response) string {
	if len(r.Declined) > 0 && r.Model != "" {
		return r.Model
	}
	return c.model
}

// hasRefused knows a model by its name with a date and without.
func (c *Course) hasRefused(model string) bool {
	return slices.ContainsFunc(c.refused, func(name string) bool {
		return name == model || undated(name) == model || name == undated(model)
	})
}

// undated is the name of a model without the date of its snapshot, "-20261101".
func undated(model string) string {
	cut := len(model) - len("-20261101")
	if cut < 1 || model[cut] != '-' || strings.Trim(model[cut+1:], "0123456789") != "" {
		return model
	}
	return model[:cut]
}

// raised is the next budget; not above the present one when there is none.
func (c *Course) raised() int64 {
	if c.maxTokens <= 0 {
		return c.maxTokens // nothing was to be said at all
	}
	factor := orDefault(c.policy.Factor, defaultFactor)
	limit := orDefault(c.policy.Cap, defaultCap)
	if limit == 0 {
		limit = math.MaxInt64
	}
	if factor > 1 && c.maxTokens > limit/factor { // and so it never overflows
		return limit
	}
	return c.maxTokens * factor
}

// settleRefusal asks the one fallback, if it is another model than all that have refused.
func (c *Course) settleRefusal(r *Response) Next {
	c.refused = append(c.refused, c.model, r.Model)
	what := "refusal"
	if r.Category != "" {
		what += ", category " + r.Category
	}
	model := c.policy.FallbackModel
	if model == "" && c.policy.serverFallbacks() {
		model = r.Recommended
	}
	switch {
	case model == "":
		return c.stop(HumanReview, what)
	case c.fallen:
		return c.stop(HumanReview, what+", by the fallback model too")
	case c.hasRefused(model):
		return c.stop(HumanReview, what+", the fallback model has refused already")
	case !c.mayFollow():
		return c.stop(HumanReview, what+", no follow-ups left")
	}
	c.followUps++
	c.fallen = true
	c.model = model
	c.continuations = 0 // what the other model said is discarded
	return c.next(Fallback, what+", fallback model")
}

func (c *Course) settlePause(r *Response) Next {
	switch {
	case r.HalfTool: // it could not be sent back as it is
		return c.settleCut(r, "half a tool call")
	case c.pauses >= c.policy.pauses():
		return c.stop(Paused, fmt.Sprintf("paused after %d resumptions", c.pauses))
	}
	model := c.goesOn(r)
	if c.hasRefused(model) {
		return c.stop(Paused, "paused, the model that went on is not known")
	}
	c.pauses++
	c.model = model
	return c.next(Resume, "paused, resumed")
}

func (c *Course) mayFollow() bool {
	return c.followUps < c.policy.followUps()
}

func (c *Course) next(a Action, why string) Next {
	return Next{Action: a, Model: c.model, MaxTokens: c.maxTokens, Why: why}
}

func (c *Course) stop(o Outcome, why string) Next {
	c.over = true
	c.end = Next{Action: End, Model: c.model, MaxTokens: c.maxTokens, Outcome: o, Why: why}
	return c.end
}
