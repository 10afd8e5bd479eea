package standin

import (
	"slices"

	"holdfast/standin/internal/answer"
)

var namelessFault = &fault{
	Fault: Fault{
		Kind: Nameless,
		What: "events without their event: line",
		Doc: `From the place on, events come as data alone, without the line that names them, as some bridges send them. Readers that go by the name
skip them and see an empty answer, or a whole one that never ends. A dialect that has no names is not changed. The answer is billed.`,
		Fields: slices.Concat(placed, framed),
	},
	meet: func(_ *reply, out *stream, _ answer.Event) bool {
		out.nameless = true
		return true
	},
}
