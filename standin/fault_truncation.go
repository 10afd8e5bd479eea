package standin

import "holdfast/standin/internal/answer"

var truncationFault = &fault{
	Fault: Fault{
		Kind: Truncation,
		What: "a 200 with stop_reason max_tokens",
		Doc: `A complete 200 whose text ends half-way with stop_reason max_tokens, in the OpenAI dialect finish_reason length. All of
max_tokens is billed.`,
		Fields: framed,
	},
	shape: func(_ Step, o *answer.Options) { o.Stop = answer.MaxTokens },
}
