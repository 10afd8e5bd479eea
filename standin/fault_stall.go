package standin

import (
	"slices"

	"holdfast/standin/internal/answer"
)

var stallFault = &fault{
	Fault: Fault{
		Kind: Stall,
		What: "a stream that falls silent, and perhaps goes on",
		Doc: `The stream stops at a stage, after so many content events, with the connection open: for a time, after which it goes on and
completes, or until the client leaves. With ping it sends ping events meanwhile, which keep a timer for bytes alive though there is no
progress. An answer that is not a stream waits before its headers. What was made before is billed.`,
		Fields: slices.Concat([]string{"for"}, placed, framed),
	},
	whole: func(a *reply, _ result) bool {
		a.stall(nil)
		return false
	},
	meet: func(a *reply, out *stream, _ answer.Event) bool {
		a.stall(out)
		return true
	},
}

// stall waits as the step has it, with pings into out if there is a stream.
func (a *reply) stall(out *stream) {
	if out != nil {
		out.flush()
	}
	a.pause(a.step.For, out)
}
