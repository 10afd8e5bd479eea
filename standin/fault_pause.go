package standin

import "holdfast/standin/internal/answer"

var pauseFault = &fault{
	Fault: Fault{
		Kind: Pause,
		What: "a 200 with stop_reason pause_turn",
		Doc: `A turn with a server tool that has reached its limit of rounds: some text, a server_tool_use without a result, and
stop_reason pause_turn. The client is to send the content back unchanged and let the turn go on. What was made is billed.`,
		Fields: framed,
	},
	shape: func(_ Step, o *answer.Options) { o.Stop = answer.PauseTurn },
}
