// Package turn carries one turn with Claude to a deliberate end. A response that arrives is not yet an answer: it may be cut
// off, paused, refused, or end for a reason that nobody has heard of. [Course] decides what comes next, and [Policy] says
// how far it may go.
//
// It never prefills an answer, never asks a model again that has refused, never hands out half a tool call, never takes a
// cut answer for a whole one, never adds anything to a paused turn that it sends back, and never sends more than
// [Policy.MaxRequests] requests.
package turn
