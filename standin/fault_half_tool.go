package standin

import "holdfast/standin/internal/answer"

var halfToolFault = &fault{
	Fault: Fault{
		Kind: HalfTool,
		What: "a tool call whose arguments end half-way",
		Doc: `For requests with tools: a complete 200 with a tool call whose arguments end half-way and stop_reason max_tokens. In a stream the pieces of JSON do not
make a whole; a client that runs the tool on a guess of the rest does something that nobody asked for. A request without tools gets a text
that ends half-way, as with truncation. What was made is billed.`,
		Fields: framed,
	},
	shape: func(_ Step, o *answer.Options) { o.HalfTool = true },
}
