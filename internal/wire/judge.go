package wire

import "strings"

// spendPrefix begins the message of the one money error that has no code: the
// limit a customer set, for the organization or for a workspace.
const spendPrefix = "You have reached your specified"

// overflowTexts are the ways to say that the prompt is larger than the window,
// in lower case. They count on a 400 alone: a throttle also speaks of too many
// tokens.
var overflowTexts = []string{
	"prompt is too long",
	"context_length_exceeded",
	"maximum context length",
	"exceed context limit",
	"input is too long",
	"exceeds the available context size",
	"exceeds the maximum number of tokens",
}

// judge decides what is wrong from the status and the body. inBand says that
// the status is the one the body's own words carry, not one that was sent.
//
// Structured words come first, codes before types; then the texts that nothing
// structured tells; then the status. Inside a 200 the words that repeat a
// status are all there is, unless the body names a status of its own.
func (p problem) judge(status int, inBand bool) (Fault, string) {
	words := [...]word{codeWord(p.code), typeWord(p.typ)}
	for _, word := range words {
		if !word.known() || word.weak || status == 429 && word.fault == FaultOverflow {
			continue
		}
		return p.settle(word), word.name
	}
	if fault, name := p.judgeText(status); fault != FaultNone {
		return fault, name
	}
	if !inBand || p.status != 0 {
		return statusFault(status)
	}
	for _, word := range words {
		if word.known() {
			return word.fault, word.name
		}
	}
	return FaultServer, "in-band-unknown"
}

// settle reads the one word that depends on more than itself: AWS wraps the
// status of a failed model in a 424 of its own.
func (p problem) settle(word word) Fault {
	if strings.EqualFold(p.typ, "ModelErrorException") && p.original != 0 {
		fault, _ := statusFault(p.original)
		return fault
	}
	return word.fault
}

// judgeText reads the two refusals that are told by text alone.
func (p problem) judgeText(status int) (Fault, string) {
	if status != 400 {
		return FaultNone, ""
	}
	if strings.HasPrefix(strings.TrimSpace(p.message), spendPrefix) {
		return FaultSpend, "anthropic-text-specified-limit"
	}
	message := strings.ToLower(p.message)
	for _, text := range overflowTexts {
		if strings.Contains(message, text) {
			return FaultOverflow, "text-overflow"
		}
	}
	return FaultNone, ""
}

// inBandStatus returns the status that an error inside a 200 would have had
// over HTTP: the one it names, or the one its words carry, or 500.
func (p problem) inBandStatus() int {
	if p.status != 0 {
		return p.status
	}
	for _, word := range []word{codeWord(p.code), typeWord(p.typ)} {
		if word.known() {
			return word.status
		}
	}
	return 500
}

// statusFault is what a status means when nothing else is known.
func statusFault(status int) (Fault, string) {
	switch status {
	case 401, 403:
		return FaultAuth, "status-auth"
	case 402:
		return FaultSpend, "status-402"
	case 408:
		return FaultTimeout, "status-408"
	case 409:
		return FaultConflict, "status-409"
	case 425:
		// RFC 8470: the same request is welcome again, later.
		return FaultConflict, "status-425"
	case 429:
		return FaultRateLimit, "status-429"
	case 499:
		return FaultCancelled, "status-499"
	case 503, 529:
		return FaultOverload, "status-overload"
	}
	switch {
	case status >= 200 && status < 300:
		return FaultNone, "status-2xx"
	case status >= 300 && status < 400:
		return FaultRequest, "status-3xx"
	case status >= 400 && status < 500:
		return FaultRequest, "status-4xx"
	case status >= 500 && status < 600:
		return FaultServer, "status-5xx"
	default:
		return FaultServer, "status-unknown"
	}
}
