package turn

import (
	"context"
	"errors"
	"net/http"
	"slices"

	"github.com/anthropics/anthropic-sdk-go/v2"
	"github.com/anthropics/anthropic-sdk-go/v2/option"
	"github.com/anthropics/anthropic-sdk-go/v2/packages/param"

	"holdfast"
)

// Run carries one turn to its end: it asks, reads how the answer ended, and asks again as often as the policy allows. A nil
// policy is the zero one. The options go with every request.
//
// The error is nil exactly when the Outcome is Done; else it is an [*Error], and the Result says what there is. Requests
// that fail are not repeated here: that is what the client is for, with [holdfast.Do] around its calls or the middleware of
// package transport in it.
//
// It never changes the parameters that it is given, never sends more than [Policy.MaxRequests] requests, never returns half
// a tool call, starts no goroutine, and runs no tool.
func Run(ctx context.Context, client Client, p *Policy, params anthropic.MessageNewParams, opts ...option.RequestOption) (Result, error) {
	if p == nil {
		p = &Policy{}
	}
	r := run{client: client, policy: p, opts: opts, base: params, params: params, chain: p.serverFallbacks()}
	r.course = NewCourse(p, string(params.Model), params.MaxTokens)
	for {
		if ctx.Err() != nil {
			return r.fail(context.Cause(ctx))
		}
		a, err := r.ask(ctx)
		if err != nil {
			return r.fail(err)
		}
		if next := r.settle(a); next.Action == End {
			return r.finish(a, next)
		}
	}
}

// run is a turn under way.
type run struct {
	client Client
	policy *Policy
	opts   []option.RequestOption
	base   anthropic.MessageNewParams // as given
	params anthropic.MessageNewParams // of the next request
	chain  bool                       // the next request asks for the API's own fallbacks
	course *Course
	parts  []part
	told   []bool // of which steps events were told
	result Result
}

// part is an answer that counts, but is not the last.
type part struct {
	answer *answer
	step   int                     // index
	asked  *anthropic.MessageParam // the user message that asked for the rest; nil: it was paused
}

// fallbackBeta is the only version of the header that takes both forms of the parameter.
const fallbackBeta = string(anthropic.AnthropicBetaServerSideFallback2026_07_01)

// errNoAnswer is a client that returned neither a message nor an error.
var errNoAnswer = errors.New("turn: the client returned no message")

// ask makes the next request.
func (r *run) ask(ctx context.Context) (*answer, error) {
	r.result.Steps = append(r.result.Steps, Step{Model: string(r.params.Model), MaxTokens: r.params.MaxTokens, Action: End, Why: "failed"})
	r.told = append(r.told, false)
	step := &r.result.Steps[len(r.result.Steps)-1]
	var reply *http.Response
	opts := append([]option.RequestOption{option.WithResponseInto(&reply)}, r.opts...)
	if r.chain {
		opts = append(opts, option.WithHeaderAdd("anthropic-beta", fallbackBeta), option.WithJSONSet("fallbacks", r.policy.Fallbacks))
	}
	step.Streamed = r.policy.Stream || r.policy.OnEvent != nil || needsStream(r.params, opts)
	message, err := r.send(ctx, step.Streamed, opts)
	if reply != nil {
		step.RequestID = reply.Header.Get("request-id")
	}
	if err == nil && message == nil {
		err = errNoAnswer
	}
	if err != nil {
		step.blame(err)
		r.result.Usage.Add(step.Usage)
		return nil, err
	}
	a := read(message)
	a.requestID = step.RequestID
	if a.fellBack && len(a.facts.Declined) == 0 && a.facts.Model != step.Model { // it declined in an earlier turn, and the API has remembered
		a.facts.Declined = []string{step.Model}
	}
	step.Answered, step.StopReason, step.Category, step.Usage = a.facts.Model, a.facts.StopReason, a.facts.Category, a.usage
	r.result.Usage.Add(step.Usage)
	if a.facts.StopReason == "" { // a body without an answer in it
		return nil, holdfast.ErrEmpty
	}
	return a, nil
}

// needsStream reports whether the SDK would refuse the request without a stream.
func needsStream(params anthropic.MessageNewParams, opts []option.RequestOption) bool {
	_, err := anthropic.CalculateNonStreamingTimeout(int(params.MaxTokens), params.Model, opts)
	return err != nil
}

func (r *run) send(ctx context.Context, streamed bool, opts []option.RequestOption) (*anthropic.Message, error) {
	if streamed {
		return gather(ctx, r.client, r.params, opts, r.teller())
	}
	return r.client.New(ctx, r.params, opts...)
}

// teller tells the policy's OnEvent of the step under way.
func (r *run) teller() func(*anthropic.MessageStreamEventUnion, string) {
	if r.policy.OnEvent == nil {
		return nil
	}
	n := len(r.told)
	return func(e *anthropic.MessageStreamEventUnion, text string) {
		r.told[n-1] = true
		r.policy.OnEvent(Event{Step: n, Text: text, Raw: e})
	}
}

// blame notes what a request cost that failed, as far as its error knows.
func (s *Step) blame(err error) {
	var cut *StreamError
	if errors.As(err, &cut) {
		s.Usage, s.Answered = cut.Usage, cut.Model
	}
	var said *anthropic.Error
	if errors.As(err, &said) && said.RequestID != "" {
		s.RequestID = said.RequestID
	}
}

// settle notes an answer, decides what comes next and makes the next request ready.
func (r *run) settle(a *answer) Next {
	if n := len(r.parts); n > 0 && r.parts[n-1].asked != nil {
		a.facts.Repeats = beginsAnew(r.text(""), a.text)
		a.facts.Continuable = a.facts.Continuable && !a.facts.Repeats
	}
	next := r.course.Settle(a.facts)
	step := &r.result.Steps[len(r.result.Steps)-1]
	step.Action, step.Why = next.Action, next.Why
	res := &r.result
	res.Message, res.StopReason, res.Model = a.message, a.facts.StopReason, a.facts.Model
	if a.facts.StopReason == "refusal" {
		res.Category, res.Explanation, res.Recommended = a.facts.Category, a.explanation, a.facts.Recommended
	}
	switch next.Action {
	case Raise:
		r.discard(len(res.Steps) - 1)
	case Resume:
		r.resume(a)
	case Continue:
		r.goOn(a)
	case Fallback:
		r.discardAll()
		r.params = r.base
	}
	if next.Action != End {
		r.address(next.Model, next.MaxTokens)
	}
	return next
}

// address makes the next request one to the model, which may be another than before.
func (r *run) address(model string, maxTokens int64) {
	moved := string(r.params.Model) != model
	r.params.Model, r.params.MaxTokens = anthropic.Model(model), maxTokens
	if !moved {
		return
	}
	r.chain = false // the models that know a chain are not those that it ends at
	if r.policy.Adapt != nil {
		r.policy.Adapt(&r.params)
		r.params.Model, r.params.MaxTokens = anthropic.Model(model), maxTokens // the course's to decide
	}
}

// resume sends the paused turn back: its content as it is, in its container, and nothing else. Of one that changed hands
// that is what the model may have that took over.
func (r *run) resume(a *answer) {
	r.keep(a, nil)
	if paused, ok := assistant(ours(a.message.Content)); ok {
		r.params.Messages = append(slices.Clip(r.params.Messages), paused)
	}
	if id := a.message.Container.ID; id != "" && param.IsOmitted(r.params.Container.OfString) {
		r.params.Container = inContainer(r.params.Container, id)
	}
}

// inContainer names the container that the paused turn works in, beside the skills that were asked for.
func inContainer(c anthropic.MessageCreateParamsContainerUnion, id string) anthropic.MessageCreateParamsContainerUnion {
	if c.OfContainers == nil {
		c.OfString = param.NewOpt(id)
		return c
	}
	with := *c.OfContainers
	if param.IsOmitted(with.ID) {
		with.ID = param.NewOpt(id)
	}
	c.OfContainers = &with
	return c
}

const defaultInstruction = "Your answer was cut off at its length limit. Continue it exactly where it ends: repeat nothing of it, and say nothing else."

// goOn asks for the rest of an answer, in a user message behind it.
func (r *run) goOn(a *answer) {
	text := r.policy.Instruction
	if text == "" {
		text = defaultInstruction
	}
	asked := anthropic.NewUserMessage(anthropic.NewTextBlock(text))
	r.keep(a, &asked)
	if said, ok := assistant(a.message.Content); ok {
		r.params.Messages = append(slices.Clip(r.params.Messages), said, asked)
	}
}

func (r *run) keep(a *answer, asked *anthropic.MessageParam) {
	r.parts = append(r.parts, part{a, len(r.result.Steps) - 1, asked})
}

// discard marks a step as no part of the answer, and tells whoever was shown it.
func (r *run) discard(i int) {
	if r.result.Steps[i].Discarded {
		return
	}
	r.result.Steps[i].Discarded = true
	if r.told[i] {
		r.policy.OnEvent(Event{Step: i + 1, Discarded: true})
	}
}

func (r *run) discardAll() {
	for i := range r.result.Steps {
		r.discard(i)
	}
	r.parts = nil
}

// text is the text of the answer so far: what was continued, and then more.
func (r *run) text(more string) string {
	from := len(r.parts)
	for from > 0 && r.parts[from-1].asked != nil {
		from--
	}
	text := ""
	for _, p := range r.parts[from:] {
		text = join(text, p.answer.text)
	}
	return join(text, more)
}

// finish is the end of a turn by its last answer.
func (r *run) finish(a *answer, next Next) (Result, error) {
	res := &r.result
	last := len(res.Steps) - 1
	switch {
	case next.Outcome == HumanReview:
		r.discardAll()
	case a.facts.Repeats && next.Outcome.Done(): // it is the whole answer by itself
		for n := len(r.parts); n > 0 && r.parts[n-1].asked != nil; n-- {
			r.discard(r.parts[n-1].step)
			r.parts = r.parts[:n-1]
		}
		res.Text = a.text
	case a.facts.Repeats:
		r.discard(last)
		res.Text = r.text("")
	default:
		res.Text = r.text(a.text)
	}
	content := ours(a.message.Content)
	switch next.Outcome {
	case ToolUse:
		res.ToolUses = toolUses(content)
	case Paused:
	default:
		content = settled(content)
	}
	r.close()
	if !res.Steps[last].Discarded {
		res.Kept = append(res.Kept, a.message)
		r.remember(content)
	}
	r.trim()
	res.Outcome = next.Outcome
	if next.Outcome.Done() {
		return *res, nil
	}
	return *res, &Error{
		Reason: reasons[next.Outcome], Outcome: next.Outcome, Requests: len(res.Steps), Why: next.Why,
		StopReason: a.facts.StopReason, RequestID: a.requestID,
	}
}

// fail is the end of a turn by a request that failed, or by its caller's leaving between two of them.
func (r *run) fail(err error) (Result, error) {
	e := &Error{Reason: ErrUnfinished, Requests: len(r.result.Steps), Err: err}
	if last := len(r.result.Steps) - 1; last >= 0 && r.result.Steps[last].Action == End {
		r.discard(last)
		e.RequestID = r.result.Steps[last].RequestID
	}
	r.result.Text = r.text("")
	r.close()
	r.trim()
	return r.result, e
}

// close takes the parts into the result.
func (r *run) close() {
	for _, p := range r.parts {
		r.result.Kept = append(r.result.Kept, p.answer.message)
		r.remember(ours(p.answer.message.Content))
		if p.asked != nil {
			r.result.history = append(r.result.history, *p.asked)
		}
	}
}

// remember puts content into the history.
func (r *run) remember(content []anthropic.ContentBlockUnion) {
	if m, ok := assistant(content); ok {
		r.result.history = append(r.result.history, m)
	}
}

// trim takes the last question out of the history when nothing came of it.
func (r *run) trim() {
	if n := len(r.result.history); n > 0 && r.result.history[n-1].OfUser != nil {
		r.result.history = r.result.history[:n-1]
	}
}
