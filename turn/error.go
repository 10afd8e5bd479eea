package turn

import (
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/anthropics/anthropic-sdk-go/v2"

	"holdfast"
	"holdfast/internal/wire"
)

// reason is a sentinel, with what it is called elsewhere and what can be done about it.
type reason struct {
	text string
	also error
	hint string
}

func (r *reason) Error() string { return "turn: " + r.text }

func (r *reason) Is(target error) bool { return r.also != nil && target == r.also }

// The reasons for which a turn ends without a whole answer. They are the Reason of an [*Error].
var (
	// ErrTruncated: the answer is cut off. What there is of it is in the Result.
	ErrTruncated error = &reason{text: "the answer is truncated", hint: "raise Cap or FollowUps, allow Continuations, or ask for less; for a full context window, shorten the conversation"}
	// ErrRefused: the model refused, and so did the fallback model if there was one. It answers to [holdfast.ErrRefused].
	ErrRefused error = &reason{text: "the model refused", also: holdfast.ErrRefused, hint: "let a human look at it; the same models refuse the same request again"}
	// ErrPaused: the turn was paused more often than the policy allows.
	ErrPaused error = &reason{text: "the turn is still paused", hint: "raise Pauses, or go on later with the History of the Result, which ends with the paused turn"}
	// ErrUnknownReason: the stop reason is not known here. The answer is in the Result, whole or not.
	ErrUnknownReason error = &reason{text: "the stop reason is unknown", hint: "look up StopReason at the provider, and decide what the answer is worth"}
	// ErrUnfinished: a request failed, and Err says why. What was spent until then is in the Result.
	ErrUnfinished error = &reason{text: "the turn was not finished", hint: "the cause says why; what was spent is in the Result"}
)

var reasons = map[Outcome]error{
	Truncated: ErrTruncated, HumanReview: ErrRefused, Paused: ErrPaused, Unknown: ErrUnknownReason, Unfinished: ErrUnfinished,
}

// Error is what [Run] returns for a turn that did not end with a whole answer. errors.Is finds its Reason, errors.As what
// the SDK or the upstream said.
type Error struct {
	// Reason is one of the sentinels of this package.
	Reason error
	// Outcome of the turn; Unfinished when a request failed.
	Outcome Outcome
	// Requests of the turn, the failed one included.
	Requests int
	// Why the turn went no further, in the words of [Next].
	Why string
	// StopReason as it came, "" for a request that failed.
	StopReason string
	// RequestID of the last answer, "" when it is unknown.
	RequestID string
	// Err is why a request failed, nil when none did.
	Err error
}

// Unwrap returns the reason, and the cause if there is one. It is never empty.
func (e *Error) Unwrap() []error {
	if e.Err == nil {
		return []error{e.Reason}
	}
	return []error{e.Reason, e.Err}
}

// Error names the reason, the requests and the cause. It never holds a prompt, an answer or a key.
func (e *Error) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%v after %d request", e.Reason, e.Requests)
	if e.Requests != 1 {
		b.WriteByte('s')
	}
	switch {
	case e.Err != nil:
		b.WriteString(": " + plain(e.Err))
	case e.Outcome == Unknown:
		b.WriteString(": " + wire.Scrub(e.StopReason, 60))
	case e.Why != "":
		b.WriteString(": " + e.Why)
	}
	if e.RequestID != "" {
		b.WriteString(" (request " + wire.Scrub(e.RequestID, 100) + ")")
	}
	return b.String()
}

// Hint says what the caller can do about it. It never suggests the same request again where that cannot help.
func (e *Error) Hint() string {
	var hinted interface{ Hint() string }
	if e.Err != nil && errors.As(e.Err, &hinted) {
		return hinted.Hint()
	}
	var r *reason
	if errors.As(e.Reason, &r) {
		return r.hint
	}
	return ""
}

// Verdict is what the error means for a call that is a whole turn: one that ended is never repeated, and one that failed
// means what its cause means.
func (e *Error) Verdict() holdfast.Verdict {
	switch {
	case e.Err != nil:
		return holdfast.Judge(e.Err)
	case e.Outcome == HumanReview:
		return holdfast.Verdict{Kind: holdfast.Refused, Rule: "turn-refused", RequestID: e.RequestID}
	}
	return holdfast.Verdict{Kind: holdfast.Terminal, Rule: "turn-ended", RequestID: e.RequestID}
}

// plain is an error's text without what a URL, a header or an upstream may have put into it.
func plain(err error) string {
	var own *holdfast.Error
	if errors.As(err, &own) {
		return own.Error() // it takes the same care
	}
	var said *anthropic.Error
	if errors.As(err, &said) {
		words := fmt.Sprint(holdfast.Judge(said).Status) // an error inside a stream came under a 200
		if kind := string(said.Type()); kind != "" {
			words += " " + wire.Scrub(kind, 60)
		}
		if said.Message != "" {
			words += ": " + wire.Scrub(said.Message, 200)
		}
		return words
	}
	var u *url.Error
	if errors.As(err, &u) && u.Err != nil {
		return u.Op + ": " + wire.Scrub(u.Err.Error(), 200)
	}
	return wire.Scrub(strings.TrimPrefix(err.Error(), "turn: "), 200)
}
