package standin

import (
	"net/http"

	"holdfast/internal/wire"
)

var rampLimitFault = &fault{
	Fault: Fault{
		Kind: RampLimit,
		What: "a 429 because the traffic grows too fast",
		Doc: `A 429 below every limit, since requests grow faster than the provider allows: code ramp_limit_exceeded, in the OpenAI
dialect slow_down, with a retry_after of 5 unless another is set. The cure is to slow the growth, not just this request. Limits with a growth
send the same when it is true. Nothing is billed.`,
		Fields: []string{"retry_after", "message"},
	},
	instead: func(a *reply) {
		a.step.Status, a.step.Code = http.StatusTooManyRequests, "ramp_limit_exceeded"
		if a.q.Dialect == wire.DialectOpenAI {
			a.step.Code = "slow_down"
		}
		if a.step.RetryAfter == "" {
			a.step.RetryAfter = "5"
		}
		if a.step.Message == "" {
			a.step.Message = "Your traffic is growing faster than your acceleration limit allows. Increase it more gradually."
		}
		a.failAsTold()
	},
}
