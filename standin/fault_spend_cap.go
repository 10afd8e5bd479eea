package standin

import (
	"net/http"

	"holdfast/internal/wire"
)

var spendCapFault = &fault{
	Fault: Fault{
		Kind: SpendCap,
		What: "a limit on money, which no retry gets past",
		Doc: `The error of a spend limit, as cap has it: tier is the monthly cap of the usage tier, a 429 that never has a retry-after;
contract is a 429 too; organization and workspace are limits that the customer has set, a 400 that only the first words of its message tell from
any other; linked is the limit of a linked organization and billing a payment problem, both a 402. In the OpenAI dialect all of
them are a 429 of type insufficient_quota with a code of their own. A client that repeats any of them wastes its time: the report
says so. Nothing is billed.`,
		Fields: []string{"cap", "message"},
	},
	instead: func(a *reply) {
		s := spendCaps[a.step.Cap]
		if a.q.Dialect == wire.DialectOpenAI {
			s = openAICaps[a.step.Cap]
		}
		if a.step.Message != "" {
			s.Message = a.step.Message
		}
		s.Header = a.step.Header
		a.step = s
		a.failAsTold()
	},
}

// spendCaps are the errors of the Messages API; "" is the tier.
var spendCaps = map[Cap]Step{
	"":              tierCap,
	CapTier:         tierCap,
	CapContract:     {Status: http.StatusTooManyRequests, Code: "contract_spend_limit_reached", Message: "Your organization has reached the spend limit of its contract."},
	CapOrganization: {Status: http.StatusBadRequest, Message: "You have reached your specified API usage limits. You will regain access on 2027-01-01 at 00:00 UTC."},
	CapWorkspace:    {Status: http.StatusBadRequest, Message: "You have reached your specified workspace API usage limits. You will regain access on 2027-01-01 at 00:00 UTC."},
	CapLinked:       {Status: http.StatusPaymentRequired, Code: "linked_organization_spend_limit_reached", Message: "The spend limit of the linked organization has been reached."},
	CapBilling:      {Status: http.StatusPaymentRequired, Message: "There is a problem with the payment method of your organization."},
}

var tierCap = Step{Status: http.StatusTooManyRequests, Code: "enforced_spend_limit_reached", Message: "Your organization has reached the monthly spend limit of its usage tier."}

var openAICaps = map[Cap]Step{
	"":              quota("organization_usage_limit_exceeded"),
	CapTier:         quota("organization_usage_limit_exceeded"),
	CapContract:     quota("organization_spend_limit_exceeded"),
	CapOrganization: quota("organization_spend_limit_exceeded"),
	CapWorkspace:    quota("project_spend_limit_exceeded"),
	CapLinked:       quota("insufficient_quota"),
	CapBilling:      quota("credit_balance_exhausted"),
}

func quota(code string) Step {
	return Step{
		Status: http.StatusTooManyRequests, Type: "insufficient_quota", Code: code,
		Message: "You exceeded your current quota, please check your plan and billing details.",
	}
}
