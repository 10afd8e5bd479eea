package standin

import (
	"net/http"
	"slices"

	"holdfast/standin/internal/answer"
)

var errorFault = &fault{
	Fault: Fault{
		Kind: Error,
		What: "an error event inside a 200",
		Doc: `An error inside a 200 stream at a stage, after so many content events, with the type, code and message of the status that
it would have had: first (before any event), preamble (before the first content), content, or stop. The stream ends behind it without its
terminal event. An answer that is not a stream is a 200 with the error as its body. What was sent before is billed.`,
		Fields: slices.Concat([]string{"status"}, errorFields, placed, framed),
	},
	whole: func(a *reply, _ result) bool {
		a.send(http.StatusOK, "application/json", a.errorBody())
		return true
	},
	meet: func(a *reply, out *stream, _ answer.Event) bool {
		out.event(a.inError(out.events))
		return false
	},
}
