package standin

import "holdfast/standin/internal/answer"

var refusalFault = &fault{
	Fault: Fault{
		Kind: Refusal,
		What: "a 200 with stop_reason refusal",
		Doc: `A complete 200 whose stop_reason is refusal, with its category and explanation and no content; in the OpenAI dialect
finish_reason content_filter. Error rates do not show it. Nothing is billed, but it counts against the rate limits. A request that
brings fallbacks of its own is answered by the first of them, behind a fallback block, and each model is billed; declines lets
them refuse too, and recommended_model is what comes back when the fallback is overloaded.`,
		Fields: []string{"category", "explanation", "declines", "recommended_model", "gzip"},
	},
	shape: func(s Step, o *answer.Options) {
		o.Stop, o.Category, o.Explanation = answer.Refusal, s.Category, s.Explanation
		o.Declines, o.Recommended = s.Declines, s.RecommendedModel
	},
}
