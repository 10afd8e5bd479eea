package holdfast

import (
	"fmt"
	"time"
)

// Event is something that happened in a call, for live logs and metrics. What happened in all is in the [Trace].
type Event struct {
	Kind EventKind
	At   time.Time
	// Target is its name, Attempt the number of the attempt that is concerned or was the last.
	Target  string
	Attempt int
	// Verdict of the attempt, with EventAttempt, EventWait and EventEnd.
	Verdict Verdict
	// Wait, with EventWait and EventPace, is how long it will be; with EventSkip how long the target refuses.
	Wait time.Duration
	// From and To, with EventCircuit, are the breaker's states.
	From, To State
	// Reason, with EventSkip and EventEnd, is a sentinel of this package.
	Reason error
	// Source, with EventEnd, is where the answer came from, before a saved one is looked for.
	Source Source
}

// EventKind is what kind of thing happened.
type EventKind uint8

const (
	// EventSend: an attempt is about to be sent.
	EventSend EventKind = iota
	// EventAttempt: an attempt ended.
	EventAttempt
	// EventWait: the call waits before it asks the same target again.
	EventWait
	// EventPace: the call queues for permission to send.
	EventPace
	// EventSkip: a target is not asked, or not asked again.
	EventSkip
	// EventCircuit: this call moved a breaker from one state to another.
	EventCircuit
	// EventEnd: the call is over.
	EventEnd
)

// String returns a word for logs.
func (k EventKind) String() string {
	names := [...]string{"send", "attempt", "wait", "pace", "skip", "circuit", "end"}
	if int(k) < len(names) {
		return names[k]
	}
	return fmt.Sprintf("EventKind(%d)", uint8(k))
}
