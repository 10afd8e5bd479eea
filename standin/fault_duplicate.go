package standin

import (
	"slices"

	"holdfast/standin/internal/answer"
)

var duplicateFault = &fault{
	Fault: Fault{
		Kind: Duplicate,
		What: "an event that comes twice",
		Doc: `The event at the place comes twice: with at first the one that begins the stream, with content and after 2 the third
content event, with stop the one that ends it. The stream is otherwise complete. A client that adds up deltas gets a text that nobody wrote;
there is no sequence number in the Messages API by which it could tell.`,
		Fields: slices.Concat(placed, framed),
	},
	meet: func(_ *reply, out *stream, next answer.Event) bool {
		out.event(next)
		return true
	},
}
