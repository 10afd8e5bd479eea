package standin

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"holdfast/internal/wire"
)

// denial is the 429 of a request that was not let in.
type denial struct {
	view // the rate-limit headers

	claim     claim
	reason    denialReason
	wait      time.Duration // until a like request is let in, if no other comes before it; 0: nobody knows; neverFits
	limit     int64
	used      int64 // of the limit, before the request
	requested int64
}

// denialReason is why a request was not let in.
type denialReason uint8

const (
	letIn       denialReason = iota
	tooManyOpen              // Limits.Concurrent
	tooSteep                 // Limits.Growth
	bucketEmpty              // the bucket of kind 0; the others follow
)

// bucket returns the kind of bucket that was empty.
func (r denialReason) bucket() (kind int, ok bool) {
	return int(r) - int(bucketEmpty), r >= bucketEmpty
}

// errorType returns the error.type of the 429.
func (d *denial) errorType() string {
	if kind, empty := d.reason.bucket(); empty && d.openAI {
		return [...]string{kindRequests: "requests", kindTokens: "tokens"}[kind]
	}
	return wire.ErrorType(d.claim.dialect, 429)
}

// code returns error.details.error_code, in the OpenAI dialect error.code.
func (d *denial) code() string {
	switch {
	case d.openAI && d.reason == tooSteep:
		return "slow_down"
	case d.openAI:
		return "rate_limit_exceeded"
	case d.reason == tooSteep:
		return "ramp_limit_exceeded"
	}
	return ""
}

// retryAfter returns the value of the retry-after header: whole seconds, rounded
// up, at least 1. It is "" where no wait is known to help: when too many requests
// are open, and when a request is larger than the whole limit.
func (d *denial) retryAfter() string {
	if d.wait <= 0 || d.wait == neverFits {
		return ""
	}
	seconds := d.wait / time.Second
	if d.wait%time.Second > 0 {
		seconds++
	}
	return strconv.FormatInt(int64(seconds), 10)
}

// message returns the error.message, in the words that clients of the real APIs
// have reported. They name neither the key nor anything of the request but the model.
func (d *denial) message() string {
	if d.openAI {
		return d.openAIMessage()
	}
	switch kind, _ := d.reason.bucket(); {
	case d.reason == tooManyOpen:
		return "Number of concurrent connections has exceeded your rate limit. Please try again later or contact sales to discuss your options for a rate limit increase."
	case d.reason == tooSteep:
		return "This request would exceed your organization's maximum usage increase rate for requests per minute. Please scale up your requests more gradually to stay within the acceleration limit."
	default:
		unit := [...]string{kindRequests: "requests", kindInput: "input tokens", kindOutput: "output tokens"}[kind]
		return fmt.Sprintf("This request would exceed the rate limit for your organization (%s) of %s %s per minute. For details, refer to: https://docs.claude.com/en/api/rate-limits."+
			" You can see the response headers for current usage. Please reduce the prompt length or the maximum tokens requested, or try again later.",
			organization, grouped(d.limit), unit)
	}
}

func (d *denial) openAIMessage() string {
	model := shortKey(d.claim.model)
	switch kind, _ := d.reason.bucket(); {
	case d.reason == tooManyOpen:
		return fmt.Sprintf("Rate limit reached for %s in organization %s on concurrent requests: Limit %d. Please try again later.", model, organization, d.limit)
	case d.reason == tooSteep:
		return "Your requests are growing too fast. Please reduce your request rate to its earlier level, keep it steady for a while, and then raise it slowly."
	default:
		unit := [...]string{kindRequests: "requests per min (RPM)", kindTokens: "tokens per min (TPM)"}[kind]
		if d.wait == neverFits {
			return fmt.Sprintf("Request too large for %s in organization %s on %s: Limit %d, Requested %d. The input or output tokens must be reduced in order to run successfully.",
				model, organization, unit, d.limit, d.requested)
		}
		return fmt.Sprintf("Rate limit reached for %s in organization %s on %s: Limit %d, Used %d, Requested %d. Please try again in %s.",
			model, organization, unit, d.limit, d.used, d.requested, milliseconds(d.wait))
	}
}

// grouped writes a number with a comma before every third digit.
func grouped(n int64) string {
	text := strconv.FormatInt(n, 10)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// milliseconds writes a time as the OpenAI API does, like Go, in whole
// milliseconds, rounded up.
func milliseconds(d time.Duration) string {
	if d > math.MaxInt64-time.Millisecond {
		return d.String()
	}
	return (d + time.Millisecond - 1).Truncate(time.Millisecond).String()
}
