package turn

import (
	"errors"
	"fmt"

	"github.com/anthropics/anthropic-sdk-go/v2"
	"github.com/anthropics/anthropic-sdk-go/v2/packages/param"
)

// Policy says how far a turn may be carried. The zero value is useful: it raises the budget of a cut answer, resumes
// paused turns, and hands a refusal to a human. One Policy serves any number of turns at once; it must not be changed
// while it is in use. It never lets a turn send more than [Policy.MaxRequests] requests.
type Policy struct {
	// Factor is what max_tokens is multiplied by when an answer is cut off by it; the turn begins with the max_tokens
	// of its parameters. Default: 4. 1 and negative: it is never raised.
	Factor int64
	// Cap is the most tokens that max_tokens is raised to; a turn that begins above it is not raised. The default is
	// the most that the SDK takes without a stream on most models; above it, and for models with a lower limit, [Run]
	// streams by itself. A model that knows no such max_tokens answers 400, and the turn ends with that error.
	// Default: 21333. Negative: no cap, FollowUps alone bounds it.
	Cap int64
	// Continuations is how often an answer that is still cut off at the Cap is continued, in a new user message with the
	// Instruction. It changes the prompt, and the seam may show. Only text is continued, never a tool call or thinking,
	// and an answer that begins anew instead is not asked a second time. 0 and negative: never.
	Continuations int
	// Instruction is the text of that user message. Empty: a sentence that asks for the rest and nothing else.
	Instruction string
	// FallbackModel is asked once when the model refuses, with the same messages. Empty: a refusal goes to a human at
	// once, but for what Fallbacks says.
	FallbackModel string
	// Adapt makes the parameters fit another model, which stands in them already: the FallbackModel, or one of Fallbacks that
	// took over. A setting for thinking that it does not take would be a 400. It must replace what it changes and not write into slices and pointers, which the
	// parameters share with the caller's. Nil: nothing but the model is changed.
	Adapt func(params *anthropic.MessageNewParams)
	// FollowUps bounds the requests after the first, whatever for: raised budgets, continuations, the fallback model.
	// Resumed pauses are counted apart. Default: 6. Negative: none. Above 1000 it counts as 1000.
	FollowUps int
	// Pauses bounds how often a paused turn is resumed. Default: 10. Negative: never. Above 1000 it counts as 1000.
	Pauses int

	// Fallbacks asks the API itself to try other models when one refuses: a list of up to three, or the string
	// "default". [Run] adds the beta header for it. It works for refusals alone, on the models and platforms that the
	// provider names, and not together with the SDK's own betafallback. When such a fallback was overloaded, the API
	// returns the refusal and recommends it: it is then asked as FallbackModel would be, unless that is set.
	//
	// The fallback that took over answers from then on: what a raised budget, a pause or a continuation still needs is
	// asked of it by name, without Fallbacks, which it does not know. The API keeps to it too, but at its best effort
	// alone. What an entry of the list says for its own request is then for Adapt to say.
	// Omitted: not asked for.
	Fallbacks anthropic.BetaFallbacksParamUnion

	// Stream makes [Run] stream, which long answers need. OnEvent implies it.
	Stream bool
	// OnEvent is told of the stream as it comes, on the goroutine of Run. Nil: nobody is.
	OnEvent func(Event)
}

const (
	defaultFactor    = 4
	defaultCap       = 21333 // 10 minutes at the SDK's 128,000 tokens an hour
	defaultFollowUps = 6
	defaultPauses    = 10
)

// mostRequests bounds FollowUps and Pauses, each: one turn is never a loop that nobody meant.
const mostRequests = 1000

// maxFallbacks is how long a list of the API's own fallbacks may be.
const maxFallbacks = 3

// MaxRequests is the most requests that one turn sends under the policy, whatever the answers: 1 + FollowUps + Pauses. The
// retries of a client are below it, and multiply it. It is never less than 1.
func (p *Policy) MaxRequests() int {
	return 1 + p.followUps() + p.pauses()
}

func (p *Policy) followUps() int { return min(orDefault(p.FollowUps, defaultFollowUps), mostRequests) }
func (p *Policy) pauses() int    { return min(orDefault(p.Pauses, defaultPauses), mostRequests) }

// Validate reports every mistake in the policy at once, joined, each naming its field. It never changes anything. A policy with
// mistakes still works: fields out of range count as their nearest meaning.
func (p *Policy) Validate() error {
	var mistakes []error
	wrong := func(field, format string, args ...any) {
		mistakes = append(mistakes, fmt.Errorf("turn: policy %s %s", field, fmt.Sprintf(format, args...)))
	}
	if p.Continuations > p.followUps() {
		wrong("Continuations", "is %d, more than the %d FollowUps", p.Continuations, p.followUps())
	}
	if p.Instruction != "" && p.Continuations <= 0 {
		wrong("Instruction", "is set, but Continuations is not: it is never sent")
	}
	for name, n := range map[string]int{"FollowUps": p.FollowUps, "Pauses": p.Pauses} {
		if n > mostRequests {
			wrong(name, "is %d, and counts as %d, the most for one turn", n, mostRequests)
		}
	}
	if n := len(p.Fallbacks.OfBetaFallbackArray); n > maxFallbacks {
		wrong("Fallbacks", "has %d models, more than %d", n, maxFallbacks)
	}
	return errors.Join(mistakes...)
}

func (p *Policy) serverFallbacks() bool { return !param.IsOmitted(p.Fallbacks) }

// orDefault reads a field: 0 is its default, negative is off.
func orDefault[N int | int64](n, otherwise N) N {
	if n == 0 {
		return otherwise
	}
	return max(n, 0)
}
