package standin

import "holdfast/standin/internal/answer"

var stopReasonFault = &fault{
	Fault: Fault{
		Kind: StopReason,
		What: "a 200 with a stop_reason that nobody knows yet",
		Doc: `A complete answer whose stop_reason is the reason of the step, by default a word that no client can know yet. Providers
add such words without a new version of their API. What was made is billed.`,
		Fields: append([]string{"reason"}, framed...),
	},
	shape: func(s Step, o *answer.Options) {
		o.Stop = answer.Stop(s.Reason)
		if s.Reason == "" {
			o.Stop = "reason_of_tomorrow"
		}
	},
}
