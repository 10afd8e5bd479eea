package holdfast

import (
	"fmt"
	"strings"
	"time"
)

// Source is where an answer came from.
type Source uint8

const (
	// NoSource: there is no answer.
	NoSource Source = iota
	// Live: the first target answered, with whichever credential of its pool.
	Live
	// Fallback: a further target answered.
	Fallback
	// Saved: nothing live worked, and a saved answer stands in.
	Saved
)

// String returns none, live, fallback or saved.
func (s Source) String() string {
	switch s {
	case Live:
		return "live"
	case Fallback:
		return "fallback"
	case Saved:
		return "saved"
	}
	return "none"
}

// Trace is what happened in one call. It holds no prompt, no answer and no key.
type Trace struct {
	// Elapsed is how long the call took, its waits included.
	Elapsed time.Duration
	// Waited is the part of Elapsed spent between attempts, Paced the part spent queueing for permission.
	Waited time.Duration
	Paced  time.Duration
	// Source of the answer.
	Source Source
	// Reason for which the call ended without a live answer: a sentinel of this package, or nil when it ended with
	// an answer or with a terminal error.
	Reason error

	started instant
	sent    int
	first   entry // most calls make one attempt, and then a trace costs no allocation
	more    []entry
	skips   []Skip
}

// Attempt is one send and what came of it.
type Attempt struct {
	// Target is the name of the target, empty when the policy has none.
	Target string
	// Number counts the attempts of the call from 1, over all targets.
	Number int
	// After is when the attempt was sent, from the start of the call; Took how long it ran.
	After, Took time.Duration
	Verdict     Verdict
	// Next is what the call did then.
	Next Next
	// Wait is how long it waited before it did.
	Wait time.Duration
}

// entry is how an attempt is kept: without its number, and with a verdict only if it failed, since every call that is
// answered at once copies it.
type entry struct {
	target            string
	after, took, wait time.Duration
	verdict           *Verdict // nil is OK
	next              Next
}

func (e *entry) attempt(number int) Attempt {
	a := Attempt{Target: e.target, Number: number, After: e.after, Took: e.took, Next: e.next, Wait: e.wait}
	if e.verdict != nil {
		a.Verdict = *e.verdict
	}
	return a
}

func (e *entry) kind() Kind {
	if e.verdict == nil {
		return OK
	}
	return e.verdict.Kind
}

// Next is what a call does after an attempt.
type Next uint8

const (
	// Answered: the attempt's answer is the call's.
	Answered Next = iota
	// Retried: the same target was asked again.
	Retried
	// MovedOn: another target was asked.
	MovedOn
	// GaveUp: a failure that could have been retried was not.
	GaveUp
	// Stopped: the failure cannot be retried, and was returned as it came.
	Stopped
	// Left: the caller went away, during the attempt or the wait after it.
	Left
	// Running: the attempt has not ended.
	Running
)

// String returns the word used in traces.
func (n Next) String() string {
	switch n {
	case Answered:
		return "answered"
	case Retried:
		return "retried"
	case MovedOn:
		return "moved on"
	case GaveUp:
		return "gave up"
	case Stopped:
		return "stopped"
	case Left:
		return "left"
	case Running:
		return "running"
	}
	return fmt.Sprintf("Next(%d)", uint8(n))
}

// Skip is a target that was not asked, or not asked again, although the call would have liked to.
type Skip struct {
	Target string
	// After is when, from the start of the call.
	After time.Duration
	// Reason is ErrOpen, ErrPace, ErrSpent or, in a pool, ErrRejected.
	Reason error
	// Wait is how long the breaker or the pace asks to wait, or the credential rests.
	Wait time.Duration
}

// Started returns when the call began.
func (t *Trace) Started() time.Time { return t.started.time() }

// Sent returns the number of attempts.
func (t *Trace) Sent() int { return t.sent }

// Attempts returns the attempts in order.
func (t *Trace) Attempts() []Attempt {
	if t.sent == 0 {
		return nil
	}
	all := make([]Attempt, 0, t.sent)
	all = append(all, t.first.attempt(1))
	for i := range t.more {
		all = append(all, t.more[i].attempt(i+2))
	}
	return all
}

// Skips returns the targets that were not asked, in order.
func (t *Trace) Skips() []Skip { return t.skips }

// Target returns the name of the target that was asked last.
func (t *Trace) Target() string {
	if t.sent == 0 {
		return ""
	}
	return t.last().target
}

// RequestIDs returns the provider's names of the attempts in order, as its support asks for them.
func (t *Trace) RequestIDs() (ids []string) {
	for _, a := range t.Attempts() {
		if a.Verdict.RequestID != "" {
			ids = append(ids, a.Verdict.RequestID)
		}
	}
	return ids
}

func (t *Trace) last() *entry {
	if n := len(t.more); n > 0 {
		return &t.more[n-1]
	}
	return &t.first
}

// begin adds an attempt and returns it to be filled in.
func (t *Trace) begin() *entry {
	if t.sent++; t.sent > 1 {
		t.more = append(t.more, entry{})
	}
	return t.last()
}

// Outcome says in a few words how the call ended.
func (t *Trace) Outcome() string {
	switch {
	case t.Source == Saved:
		return "answered from the saved answer"
	case t.Source != NoSource:
		return "answered"
	case t.Reason == ErrCancelled:
		return "cancelled"
	case t.sent == 0 && t.Reason == ErrOpen:
		return "circuit open, not sent"
	case t.sent == 0 && t.Reason != nil:
		return strings.TrimPrefix(t.Reason.Error(), "holdfast: ") + ", not sent"
	case t.sent > 0 && t.last().next == Stopped:
		v := t.verdict()
		return "stopped, " + v.words()
	}
	return "gave up"
}

// verdict is that of the last attempt, and OK when there was none.
func (t *Trace) verdict() Verdict {
	if t.sent == 0 || t.last().verdict == nil {
		return Verdict{}
	}
	return *t.last().verdict
}

// words is the verdict as a person would say it.
func (v *Verdict) words() string {
	switch {
	case v.Kind == Terminal && v.Status == 400:
		return "bad request"
	case v.Kind == Terminal && v.Status == 401:
		return "bad credential"
	case v.Kind == Terminal && v.Status == 403:
		return "not allowed"
	case v.Kind == Terminal && v.Status == 404:
		return "not found"
	case v.Kind == Terminal && v.Status == 413:
		return "too large"
	}
	return v.Kind.String()
}

// Summary is what to send to a provider's support, and what to read first when a call failed: one line about the call
// and one for each attempt, with its status, request id and what was done about it.
func (t *Trace) Summary() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s in %s", t.Outcome(), counted(t.sent, "attempt"), brief(t.Elapsed))
	if t.Waited > 0 {
		fmt.Fprintf(&b, ", %s of them waiting", brief(t.Waited))
	}
	if t.Paced > 0 {
		fmt.Fprintf(&b, ", %s queueing", brief(t.Paced))
	}
	if t.Reason != nil {
		fmt.Fprintf(&b, " (%s)", strings.TrimPrefix(t.Reason.Error(), "holdfast: "))
	}
	for _, a := range t.Attempts() {
		b.WriteByte('\n')
		a.line(&b)
	}
	for _, s := range t.skips {
		fmt.Fprintf(&b, "\n  at %s %snot asked: %s", brief(s.After), named(s.Target), strings.TrimPrefix(s.Reason.Error(), "holdfast: "))
	}
	return b.String()
}

func (a *Attempt) line(b *strings.Builder) {
	fmt.Fprintf(b, "  %d at %s %s", a.Number, brief(a.After), named(a.Target))
	switch {
	case a.Verdict.Status != 0:
		fmt.Fprintf(b, "%d ", a.Verdict.Status)
	case a.Verdict.Kind == OK:
		b.WriteString("200 ")
	}
	switch {
	case a.Verdict.Code != "":
		b.WriteString(a.Verdict.Code)
	case a.Verdict.Type != "":
		b.WriteString(a.Verdict.Type)
	default:
		b.WriteString(a.Verdict.Kind.String())
	}
	if id := a.Verdict.RequestID; id != "" {
		b.WriteString(" " + id)
	}
	fmt.Fprintf(b, " took %s: %s", brief(a.Took), a.Next)
	if a.Next == Retried || a.Wait > 0 {
		fmt.Fprintf(b, " after %s", brief(a.Wait))
	}
}

func named(target string) string {
	if target == "" {
		return ""
	}
	return target + " "
}

func brief(d time.Duration) string { return d.Round(time.Millisecond).String() }
