// Package turn carries one turn with Claude to a deliberate end. A response that arrives is not yet an answer: it may be cut
// off, paused, refused, or end for a reason that nobody has heard of.
//
//	result, err := turn.Run(ctx, &client.Messages, &turn.Policy{FallbackModel: "claude-opus-5-5"}, params)
//
// The error is nil when the answer is whole, and only then. [Course] decides what comes next and [Policy] how far it may go;
// [Run] does it over the types of the Anthropic Go SDK, streaming or not. It does not repeat requests that fail: give it a
// client that does, with transport.Middleware, or with [holdfast.Do] as in the example of [Client].
//
// The API's own fallbacks are asked for with Policy.Fallbacks and understood wherever they appear. The plain surface of the
// SDK serves for it, with a header and what its types lack read from their JSON: one result serves both, and the SDK's
// betafallback, which knows the beta surface alone, cannot interfere. Use one of the two. A fallback that took over answers
// from then on.
//
// It never prefills an answer, never asks a model again that has refused, never hands out half a tool call, never takes a
// cut answer for a whole one, never adds anything to a paused turn that it sends back, and never sends more than
// [Policy.MaxRequests] requests.
package turn
