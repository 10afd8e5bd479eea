package once

import "time"

// action is what becomes of a call, given what is recorded.
type action uint8

const (
	start  action = iota // run the effect
	give                 // the recorded outcome
	wait                 // another one runs it
	lookUp               // ask the far side what became of it
	report               // nobody knows, and nobody may try
	refuse               // the key is another request's
)

// facts are all that the decision depends on.
type facts struct {
	record  Record
	found   bool
	now     time.Time
	request string // SHA-256 of the caller's request, "" if it is not compared
	replays bool
	keyLife time.Duration // 0: for ever
	lookups bool
}

// decide says what becomes of a call. The string says why, where that is reported.
func decide(f *facts) (action, string) {
	r := &f.record
	switch {
	case !f.found:
		return start, ""
	case mismatch(r.Request, f.request):
		return refuse, ""
	case r.State == Done:
		return give, ""
	case r.State == Started && f.now.Before(r.Lease):
		return wait, ""
	}
	why := r.Why
	if r.State == Started {
		why = "whoever ran it is gone"
	}
	expired := f.keyLife > 0 && !f.now.Before(r.First.Add(f.keyLife))
	switch {
	case f.replays && !expired:
		return start, ""
	case f.lookups:
		return lookUp, why
	case f.replays:
		why += ", and the far side has forgotten the key by now"
	}
	return report, why
}

// mismatch reports that two requests differ. One that is not known differs from none.
func mismatch(recorded, asked string) bool {
	return recorded != "" && asked != "" && recorded != asked
}

// begun is the record of a start. A start after one whose end is not known inherits its doubt and the age of its key.
func begun(f *facts, key, run string, limit time.Duration) Record {
	next := Record{
		Key: key, State: Started, Revision: run, Owner: run, Request: f.request,
		First: f.now, Lease: f.now.Add(limit + recordTime), Starts: 1, Changed: f.now,
	}
	if f.found {
		next.First, next.Starts, next.Doubt = f.record.First, f.record.Starts+1, true
		if next.Request == "" {
			next.Request = f.record.Request
		}
	}
	return next
}

// timeLeft is how long a start may take: no longer than the far side remembers its key.
func timeLeft(first, now time.Time, limit, keyLife time.Duration) time.Duration {
	if keyLife > 0 {
		return min(limit, first.Add(keyLife).Sub(now))
	}
	return limit
}
