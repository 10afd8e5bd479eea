package wire

// Fault is what the other side says is wrong. It is a fact about a reply, not
// a decision: two callers may treat the same fault differently.
type Fault uint8

const (
	// FaultNone means that nothing is wrong. The zero value.
	FaultNone Fault = iota
	// FaultRateLimit is an ordinary limit on requests or tokens; it clears by itself.
	FaultRateLimit
	// FaultRamp is a limit on growth: traffic rose too fast, below the nominal limit.
	FaultRamp
	// FaultSpend is money: a spend limit, a balance, a billing problem. Repeating does not help.
	FaultSpend
	// FaultOverload is a provider without capacity, for everyone and not for this key.
	FaultOverload
	// FaultServer is a provider or proxy that broke.
	FaultServer
	// FaultTimeout is a provider that ran out of its own time.
	FaultTimeout
	// FaultConflict is a concurrent change of the same resource.
	FaultConflict
	// FaultOverflow is a prompt larger than the context window of the model.
	FaultOverflow
	// FaultAuth is a key that is missing, wrong or not allowed.
	FaultAuth
	// FaultRequest is a request that will be refused every time.
	FaultRequest
	// FaultCancelled is a caller that went away before the answer.
	FaultCancelled
	// FaultEmpty is a 200 that carries no answer: empty, HTML, cut short, or without content.
	FaultEmpty
	// FaultRefused is a complete answer in which the model or its filter declined.
	FaultRefused
)

var faultNames = [...]string{
	FaultNone:      "none",
	FaultRateLimit: "rate_limit",
	FaultRamp:      "ramp",
	FaultSpend:     "spend",
	FaultOverload:  "overload",
	FaultServer:    "server",
	FaultTimeout:   "timeout",
	FaultConflict:  "conflict",
	FaultOverflow:  "overflow",
	FaultAuth:      "auth",
	FaultRequest:   "request",
	FaultCancelled: "cancelled",
	FaultEmpty:     "empty",
	FaultRefused:   "refused",
}

// String returns the fault's stable lower-case name, such as "rate_limit".
func (f Fault) String() string {
	if int(f) < len(faultNames) {
		return faultNames[f]
	}
	return "unknown"
}
