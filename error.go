package holdfast

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"holdfast/internal/wire"
)

// reason is a sentinel that may also answer to a standard error.
type reason struct {
	text string
	also error
	hint string
}

func (r *reason) Error() string { return "holdfast: " + r.text }

func (r *reason) Is(target error) bool { return r.also != nil && target == r.also }

// The reasons for which a call ends without an answer of its own. They are the Reason of an [*Error].
var (
	// ErrAttempts: every attempt the policy allows was made.
	ErrAttempts error = &reason{text: "all attempts used", hint: "the upstream kept failing; look at its status page, or allow more attempts"}
	// ErrDeadline: the deadline passed, or the next wait would not have ended before it. It answers to
	// context.DeadlineExceeded too, since callers branch on that.
	ErrDeadline error = &reason{text: "the deadline leaves no time", also: context.DeadlineExceeded, hint: "allow the call more time, or a shorter wait between attempts"}
	// ErrBudget: the retry budget is empty; the upstream's own error is still the cause.
	ErrBudget error = &reason{text: "the retry budget is empty", hint: "most calls to this upstream fail; retries would only add load"}
	// ErrOpen: the breaker is open, and nothing was sent.
	ErrOpen error = &reason{text: "the circuit is open", hint: "the upstream failed repeatedly and is left alone; ask again after the wait"}
	// ErrPace: permission to send would come too late, or too many wait for it already.
	ErrPace error = &reason{text: "the pace gives no permission in time", hint: "send less, wait longer, or raise the limits if the provider raised yours"}
	// ErrServerWait: the upstream asked for a longer wait than the policy's maximum.
	ErrServerWait error = &reason{text: "the server asks for too long a wait", hint: "ask again after the wait, or use another credential or model"}
	// ErrSpent: a money limit is reached.
	ErrSpent error = &reason{text: "a spend limit is reached", hint: "no retry helps; raise the limit or pay the bill at the provider, or use another credential"}
	// ErrRejected: a credential of a pool was rejected a while ago, and others are asked before it. Calls do not end
	// for this reason; it is that of a [Skip].
	ErrRejected error = &reason{text: "the credential was rejected", hint: "replace the key, or give it the permission"}
	// ErrNoRetry: the upstream said with x-should-retry: false that repeating is useless.
	ErrNoRetry error = &reason{text: "the upstream says not to repeat", hint: "the upstream's own error says why"}
	// ErrCancelled: the caller went away. It answers to context.Canceled too.
	ErrCancelled error = &reason{text: "the caller went away", also: context.Canceled, hint: "the context given to the call ended"}
)

// Causes with which contexts of single attempts end; they tell our timers from the caller's. That of the deadline answers
// to ErrDeadline, for an operation that wants to know.
var (
	errAttemptTime       = errors.New("holdfast: the attempt's time ran out")
	errCallTime    error = &reason{text: "the call's time ran out", also: ErrDeadline}
)

// Error is what a call returns that ended for a reason of ours. Errors that no retry can help (terminal ones) are
// returned as they came instead. errors.Is finds the Reason, errors.As finds the upstream's own error behind it.
type Error struct {
	// Reason is one of the sentinels of this package.
	Reason error
	// Attempts sent, on all targets, and the time they and their waits took.
	Attempts int
	Elapsed  time.Duration
	// Wait is how long the upstream, the breaker or the pace asks to wait before another call. 0: unknown.
	Wait time.Duration
	// Verdict of the last attempt; the zero value when none was sent.
	Verdict Verdict
	// Err is the last attempt's own error, nil when none was sent.
	Err error
	// Cause is why the caller went away, nil when it did not.
	Cause error
}

// Unwrap returns the reason, the upstream's error and the caller's cause, as far as there are any.
func (e *Error) Unwrap() []error {
	all := make([]error, 0, 3)
	for _, err := range []error{e.Reason, e.Err, e.Cause} {
		if err != nil {
			all = append(all, err)
		}
	}
	return all
}

// Error names the reason, the attempts, the time, and what the upstream said, without URL queries and keys.
func (e *Error) Error() string {
	var b strings.Builder
	if e.Reason != nil {
		b.WriteString(e.Reason.Error())
	} else {
		b.WriteString("holdfast: the call failed")
	}
	switch {
	case e.Attempts > 0:
		fmt.Fprintf(&b, " after %s in %v", counted(e.Attempts, "attempt"), e.Elapsed.Round(time.Millisecond))
	case e.Reason == ErrOpen || e.Reason == ErrPace || e.Reason == ErrSpent:
		b.WriteString(", nothing was sent")
	}
	if e.Wait > 0 {
		fmt.Fprintf(&b, ", next in %v", e.Wait.Round(time.Millisecond))
	}
	if said := e.said(); said != "" {
		b.WriteString(": ")
		b.WriteString(said)
	}
	return b.String()
}

// said is the last outcome in the fewest words.
func (e *Error) said() string {
	v := &e.Verdict
	if v.Status == 0 {
		if e.Err == nil {
			return ""
		}
		return plain(e.Err)
	}
	words := []string{fmt.Sprint(v.Status)}
	for _, w := range []string{v.Type, v.Code} {
		if w != "" {
			words = append(words, w)
		}
	}
	text := strings.Join(words, " ")
	if v.Message != "" {
		text += ": " + wire.Scrub(v.Message, 200)
	}
	if v.RequestID != "" {
		text += " (request " + v.RequestID + ")"
	}
	return text
}

// Hint says what the caller can do about it.
func (e *Error) Hint() string {
	var r *reason
	if errors.As(e.Reason, &r) {
		return r.hint
	}
	return ""
}

// plain is an error's text without the URL that net/http puts into it, which may carry a key.
func plain(err error) string {
	var u *url.Error
	if errors.As(err, &u) && u.Err != nil {
		return u.Op + ": " + wire.Scrub(u.Err.Error(), 200)
	}
	return wire.Scrub(err.Error(), 200)
}

func counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
