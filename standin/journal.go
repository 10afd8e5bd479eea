package standin

import (
	"slices"
	"time"
)

// Closer is who ended an exchange before its reply was complete.
type Closer string

const (
	// Client left before the reply was complete.
	Client Closer = "client"
	// Peer is the stand-in itself, as its plan told it.
	Peer Closer = "standin"
)

// Advice is the value of the header x-should-retry, which the SDKs obey above
// the status. "" is a reply without it.
type Advice string

// What a reply can advise.
const (
	DoRetry   Advice = "true"
	DontRetry Advice = "false"
)

// Exchange is one request and what became of it. It holds no text of the
// request or the answer, and no key.
type Exchange struct {
	Number      int           `json:"number"`                 // order of arrival, from 1
	Arrived     time.Time     `json:"arrived"`                // when its headers had been read
	HeadersAt   time.Time     `json:"headers_at,omitzero"`    // when the reply's headers were written; zero when none were
	FirstByteAt time.Time     `json:"first_byte_at,omitzero"` // when the first byte of the reply's body was written; zero when none was
	Departed    time.Time     `json:"departed,omitzero"`      // when its reply ended; zero while it is open
	Method      string        `json:"method"`                 // of HTTP
	Path        string        `json:"path"`                   // without the query
	Endpoint    string        `json:"endpoint,omitempty"`     // operation of the API; "" for a path that it does not have
	Model       string        `json:"model,omitempty"`        // as asked for
	Stream      bool          `json:"stream"`                 // an event stream was asked for
	Key         string        `json:"key,omitempty"`          // the first 12 hex digits of the API key's SHA-256; "" without a key
	Rule        string        `json:"rule,omitempty"`         // name of the rule, job or incident that gave the step; "" for none
	Job         string        `json:"job,omitempty"`          // custom id, or key in Plan.Jobs; "" for neither
	CustomID    string        `json:"custom_id,omitempty"`    // header x-custom-id
	Attempt     int           `json:"attempt"`                // of its job, from 1; 0 when it was rejected
	SDKRetry    int           `json:"sdk_retry"`              // x-stainless-retry-count; -1 without the header
	Digest      string        `json:"digest"`                 // SHA-256 of the request body in hex
	Status      int           `json:"status"`                 // 0: no headers were sent
	Fault       Kind          `json:"fault"`                  // what was played; "rejected" for a request that the API refuses by itself
	Code        string        `json:"code,omitempty"`         // machine-readable code of the error; "" without one
	Wait        time.Duration `json:"wait_ns,omitzero"`       // how long retry-after-ms or retry-after asked to wait; 0: not at all
	ShouldRetry Advice        `json:"should_retry,omitempty"` // x-should-retry of the reply
	RequestID   string        `json:"request_id"`             // as sent, or as it would have been
	Effect      string        `json:"effect,omitempty"`       // id of the batch or file that it created
	Sent        int64         `json:"sent"`                   // bytes of the reply's body
	ClosedBy    Closer        `json:"closed_by,omitzero"`     // "" when the reply is complete or open
	Input       int           `json:"input"`                  // tokens billed
	Output      int           `json:"output"`                 // tokens billed
	BilledTwice bool          `json:"billed_twice,omitempty"` // it is billed, and so was an earlier exchange for the same work
}

// Open reports whether the reply has not ended yet.
func (e Exchange) Open() bool { return e.Departed.IsZero() }

// Billed reports whether tokens were billed.
func (e Exchange) Billed() bool { return e.Input+e.Output > 0 }

// Delivered reports whether the client got a whole answer, that is everything
// it needs to be done with the call: a good status, the reply to its end, and
// nothing in it that makes it unusable. A refusal is an answer.
func (e Exchange) Delivered() bool {
	if e.Open() || e.ClosedBy != "" || e.Status < 200 || e.Status > 299 {
		return false
	}
	return !slices.Contains(spoiling, e.Fault)
}

// spoiling are the faults that leave the client without an answer even when
// the reply comes whole under a good status.
var spoiling = []Kind{Rejected, Throttled, HTTP, SpendCap, RampLimit, Empty, HTML, Error, Malformed, Nameless, HalfTool, Lost}

// Journal is a list of exchanges in order of arrival. It is a copy: requests that
// come later do not change it.
type Journal []Exchange

// Job returns the exchanges of one job; "" are those without a job.
func (j Journal) Job(job string) Journal {
	return j.Where(func(e Exchange) bool { return e.Job == job })
}

// Where returns the exchanges that pass.
func (j Journal) Where(pass func(Exchange) bool) Journal {
	return slices.DeleteFunc(slices.Clone(j), func(e Exchange) bool { return !pass(e) })
}

// Gaps returns the times between one arrival and the next, one fewer than there
// are exchanges; nil for none and for one.
func (j Journal) Gaps() []time.Duration {
	if len(j) < 2 {
		return nil
	}
	gaps := make([]time.Duration, len(j)-1)
	for i := range gaps {
		gaps[i] = j[i+1].Arrived.Sub(j[i].Arrived)
	}
	return gaps
}
