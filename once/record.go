package once

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// State is what is known of a key's effect. A key without a record has none: nothing was started, or what was started
// certainly did nothing.
type State uint8

const (
	// Started: an owner runs the effect, or died while it did. The owner moves it on, to Done or Unknown or by removing the
	// record; once the lease is over, the next caller.
	Started State = iota + 1
	// Done: the effect happened and its outcome is recorded. Only [Ledger.Expire] and [Ledger.Forget] move it on.
	Done
	// Unknown: the effect was started, and its owner could not find out whether it happened. The next caller moves it on, if
	// the far side replays or can be asked; otherwise [Resolve] or [Ledger.Forget].
	Unknown
)

var stateNames = [...]string{Started: "started", Done: "done", Unknown: "unknown"}

// String returns the state's word. It never returns an empty one.
func (s State) String() string {
	if int(s) < len(stateNames) && stateNames[s] != "" {
		return stateNames[s]
	}
	return fmt.Sprintf("State(%d)", uint8(s))
}

// Record is what a [Store] keeps of a key.
type Record struct {
	Key   string
	State State
	// Revision is new and random with every write, so that a writer can tell whether anybody wrote since it looked.
	Revision string
	// Owner is the run that started the effect last. It is random, and says nothing about the process.
	Owner string
	// Request is the SHA-256 of what the effect asks for, in hex. Empty: the caller did not say.
	Request string
	// First is when the effect was first started: from then on the far side may know the key.
	First time.Time
	// Lease is until when the owner is taken to be alive. Of Started only.
	Lease time.Time
	// Starts is how often the effect was started, by whomever.
	Starts int
	// Doubt means that an earlier start may have done something: its failure would not mean that nothing happened.
	Doubt bool
	// Changed is when the record was last written.
	Changed time.Time
	// Expires is when [Ledger.Expire] may remove the record. Of Done only. Zero: never.
	Expires time.Time
	// Outcome is the effect's value as JSON. Of Done only.
	Outcome []byte
	// Unkept says why a Done record has no outcome: it could not be encoded, or was too large. Empty: it has one.
	Unkept string
	// Why says in a few words of ours why it is not known what happened. Of Unknown only. It never contains an error's text.
	Why string
}

// stored is a record as it is written. The key stands beside it, in a column of its own.
type stored struct {
	Version  int             `json:"v"`
	State    string          `json:"state"`
	Revision string          `json:"revision"`
	Owner    string          `json:"owner"`
	Request  string          `json:"request,omitempty"`
	First    int64           `json:"first"` // this and all times: milliseconds since 1970
	Lease    int64           `json:"lease,omitempty"`
	Starts   int             `json:"starts"`
	Doubt    bool            `json:"doubt,omitempty"`
	Changed  int64           `json:"changed"`
	Expires  int64           `json:"expires,omitempty"`
	Unkept   string          `json:"unkept,omitempty"`
	Why      string          `json:"why,omitempty"`
	Outcome  json.RawMessage `json:"outcome,omitempty"`
}

const recordVersion = 1

// ErrCorrupt is the error of a record that cannot be read. It is never taken for a missing one.
var ErrCorrupt = errors.New("once: the record cannot be read")

// MarshalBinary writes the record for a store, without its key, as JSON. Times are cut to milliseconds. It never writes a
// record that UnmarshalBinary would not read.
func (r Record) MarshalBinary() ([]byte, error) {
	if err := r.check(); err != nil {
		return nil, err
	}
	return json.Marshal(stored{
		Version: recordVersion, State: r.State.String(), Revision: r.Revision, Owner: r.Owner, Request: r.Request,
		First: millis(r.First), Lease: millis(r.Lease), Starts: r.Starts, Doubt: r.Doubt, Changed: millis(r.Changed),
		Expires: millis(r.Expires), Unkept: r.Unkept, Why: r.Why, Outcome: r.Outcome,
	})
}

// UnmarshalBinary reads what MarshalBinary wrote, and leaves the key as it is. The error is [ErrCorrupt]; the record is
// unchanged then. It never returns a record that could not have been written.
func (r *Record) UnmarshalBinary(data []byte) error {
	var s stored
	if err := json.Unmarshal(data, &s); err != nil {
		return ErrCorrupt // without the decoder's words, which quote the outcome
	}
	if s.Version != recordVersion {
		return fmt.Errorf("%w: it is of version %d, this is %d", ErrCorrupt, s.Version, recordVersion)
	}
	read := Record{
		Key: r.Key, Revision: s.Revision, Owner: s.Owner, Request: s.Request, First: fromMillis(s.First), Lease: fromMillis(s.Lease),
		Starts: s.Starts, Doubt: s.Doubt, Changed: fromMillis(s.Changed), Expires: fromMillis(s.Expires),
		Unkept: s.Unkept, Why: s.Why, Outcome: s.Outcome,
	}
	for state, name := range stateNames {
		if name != "" && name == s.State {
			read.State = State(state)
		}
	}
	if err := read.check(); err != nil {
		return err
	}
	*r = read
	return nil
}

// check holds the record against what [Do] writes.
func (r *Record) check() error {
	wrong := func(what string) error { return fmt.Errorf("%w: %s", ErrCorrupt, what) }
	switch {
	case r.State < Started || r.State > Unknown:
		return wrong("it has no state")
	case r.Revision == "" || r.Owner == "":
		return wrong("it has no revision or no owner")
	case r.Starts < 0:
		return wrong("it was started less than never")
	case r.First.IsZero() || r.Changed.IsZero():
		return wrong("it has no time")
	case r.State == Started && r.Lease.IsZero():
		return wrong("it has no lease")
	case r.State != Done && !r.Expires.IsZero():
		return wrong("it expires before it is done")
	case r.State == Done && r.Unkept == "" && !json.Valid(r.Outcome):
		return wrong("its outcome is no JSON")
	case (r.State != Done || r.Unkept != "") && len(r.Outcome) > 0:
		return wrong("it has an outcome that it cannot have")
	}
	return nil
}

func millis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

func fromMillis(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}
