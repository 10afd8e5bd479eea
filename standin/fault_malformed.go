package standin

import (
	"bytes"
	"slices"

	"holdfast/standin/internal/answer"
)

var malformedFault = &fault{
	Fault: Fault{
		Kind: Malformed,
		What: "an event whose data is not JSON",
		Doc: `At the place comes an event whose data ends in its middle, with a frame that is complete; then the stream goes on as if
nothing were wrong. An answer that is not a stream is JSON without its last byte. The answer is billed.`,
		Fields: slices.Concat(placed, framed),
	},
	whole: func(a *reply, r result) bool {
		body := bytes.TrimSuffix(r.body, []byte("\n"))
		a.send(r.status, r.contentType, body[:max(0, len(body)-1)])
		return true
	},
	meet: func(_ *reply, out *stream, next answer.Event) bool {
		next.Data = next.Data[:len(next.Data)/2]
		out.event(next)
		return true
	},
}
