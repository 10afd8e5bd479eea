package standin

import "holdfast/standin/internal/answer"

var contextWindowFault = &fault{
	Fault: Fault{
		Kind: ContextWindow,
		What: "a 200 with stop_reason model_context_window_exceeded",
		Doc: `A complete 200 whose text ends half-way because the context window is full: stop_reason model_context_window_exceeded, in
the OpenAI dialect finish_reason length. It is truncated, not done, and the same request on the same model ends the same way. What
was made is billed.`,
		Fields: framed,
	},
	shape: func(_ Step, o *answer.Options) { o.Stop = answer.ContextWindow },
}
