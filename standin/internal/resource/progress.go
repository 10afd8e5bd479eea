package resource

import (
	"math/bits"
	"time"
)

// phase is the processing_status of a batch.
type phase string

const (
	inProgress phase = "in_progress"
	canceling  phase = "canceling"
	ended      phase = "ended"
)

// facts are what the progress of a batch depends on.
type facts struct {
	size             int
	created, expires time.Time
	canceled         time.Time // zero: not
	looks            int       // since it was created, or canceled
	done             int       // items that had an outcome before
}

// progress is where a batch stands.
type progress struct {
	done int       // items, in the order of the request, that have an outcome
	end  time.Time // of the processing; zero: it goes on
	rest Kind      // what became of the items after done, when it has ended
}

// progressAt says where a batch stands at a moment. It is the whole of the rule:
//
//	in_progress -> ended      all items are done, or the batch expires
//	in_progress -> canceling  the client cancels; items that are not done are given up
//	canceling   -> ended      CancelTakes is over, or the batch expires
func (s *BatchSettings) progressAt(f facts, at time.Time) progress {
	if !f.canceled.IsZero() {
		return s.windDown(f, at)
	}
	expired := !at.Before(f.expires)
	switch {
	case s.Takes == 0 && (f.looks >= 2 || expired):
		return progress{done: f.size, end: earlier(at, f.expires)}
	case s.Takes == 0 && f.looks == 1:
		return progress{done: max(f.done, f.size/2)}
	case s.Takes > 0 && !f.created.Add(s.Takes).After(earlier(at, f.expires)):
		return progress{done: f.size, end: f.created.Add(s.Takes)}
	}
	done := max(f.done, s.share(f, earlier(at, f.expires)))
	if expired {
		return progress{done: done, end: f.expires, rest: Expired}
	}
	return progress{done: done}
}

// share is the number of items that are done at a moment when they take the same time each.
func (s *BatchSettings) share(f facts, at time.Time) int {
	if s.Takes <= 0 || at.Before(f.created) {
		return 0
	}
	return int(part(uint64(f.size), at.Sub(f.created), s.Takes))
}

// windDown is the progress of a batch that was canceled.
func (s *BatchSettings) windDown(f facts, at time.Time) progress {
	end := earlier(f.canceled.Add(s.CancelTakes), f.expires)
	if s.CancelTakes <= 0 {
		end = earlier(at, f.expires)
	}
	if at.Before(end) || s.CancelTakes <= 0 && f.looks == 0 && at.Before(f.expires) {
		return progress{done: f.done}
	}
	return progress{done: f.done, end: end, rest: Canceled}
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// part returns n*of/whole without a rounding on the way. of is not above whole, and neither is negative.
func part(n uint64, of, whole time.Duration) uint64 {
	high, low := bits.Mul64(n, uint64(of))
	quotient, _ := bits.Div64(high, low, uint64(whole))
	return quotient
}
