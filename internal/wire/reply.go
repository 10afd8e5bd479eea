package wire

import "time"

// Advice is what the header x-should-retry says.
type Advice uint8

const (
	// AdviceNone means that the header is absent or unreadable. The zero value.
	AdviceNone Advice = iota
	// AdviceRetry is "x-should-retry: true".
	AdviceRetry
	// AdviceStop is "x-should-retry: false".
	AdviceStop
)

// String returns "none", "retry" or "stop".
func (a Advice) String() string {
	switch a {
	case AdviceRetry:
		return "retry"
	case AdviceStop:
		return "stop"
	default:
		return "none"
	}
}

// Reply holds the facts of one answer. Its zero value means "nothing known".
type Reply struct {
	// Status is the HTTP status to judge by. For an in-band error it is the
	// status the same error would have had over HTTP, never the stream's 200.
	Status int
	// InBand is true when the error came inside a 200.
	InBand bool
	// Fault is what the other side says is wrong.
	Fault Fault
	// Type is error.type or the exception or status name of a cloud; "" when absent.
	Type string
	// Code is error.code or error.details.error_code, numbers as decimal text; "" when absent.
	Code string
	// Message is the provider's text as one short, tag-free line of at most 200
	// runes; "" when absent.
	Message string
	// RequestID is the provider's name for the request; "" when absent.
	RequestID string
	// Retry is the advice of x-should-retry.
	Retry Advice
	// Wait is how long the server asks to wait; 0 when it does not say.
	Wait time.Duration
	// WaitFrom names the source of Wait: "retry-after-ms", "retry-after",
	// "bucket", "body", or "" when Wait is 0.
	WaitFrom string
	// Resumes is when access comes back after FaultSpend, in UTC; zero when unknown.
	Resumes time.Time
	// Rule is the short stable name of the rule that decided Fault, such as
	// "status-5xx".
	Rule string
}
