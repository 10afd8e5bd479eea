package standin

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"
)

// journalSize is the number of exchanges that are kept.
const journalSize = 100_000

// Closer is who ended an exchange before its reply was complete.
type Closer string

const (
	// Client left before the reply was complete.
	Client Closer = "client"
	// Peer is the stand-in itself, as its plan told it.
	Peer Closer = "standin"
)

// Exchange is one request and what became of it. It holds no text of the
// request or the answer, and no key.
type Exchange struct {
	Number    int       `json:"number"`             // order of arrival, from 1
	Arrived   time.Time `json:"arrived"`            // when its headers had been read
	Departed  time.Time `json:"departed,omitzero"`  // when its reply ended; zero while it is open
	Method    string    `json:"method"`             //
	Path      string    `json:"path"`               // without the query
	Model     string    `json:"model,omitempty"`    // as asked for
	Stream    bool      `json:"stream"`             // an event stream was asked for
	Job       string    `json:"job,omitempty"`      // key in Plan.Jobs; "" for none
	Attempt   int       `json:"attempt"`            // of its job, from 1; 0 when it was rejected
	SDKRetry  int       `json:"sdk_retry"`          // x-stainless-retry-count; -1 without the header
	Digest    string    `json:"digest"`             // SHA-256 of the request body in hex
	Status    int       `json:"status"`             // 0: no headers were sent
	Fault     Kind      `json:"fault"`              // what was played; "rejected" for a request that the API refuses by itself
	RequestID string    `json:"request_id"`         // as sent, or as it would have been
	Sent      int64     `json:"sent"`               // bytes of the reply's body
	ClosedBy  Closer    `json:"closed_by,omitzero"` // "" when the reply is complete or open
	Input     int       `json:"input"`              // tokens billed
	Output    int       `json:"output"`             // tokens billed
}

// Journal is a list of exchanges in order of arrival.
type Journal []Exchange

// Job returns the exchanges of one job; "" are those without a job.
func (j Journal) Job(job string) Journal {
	return slices.DeleteFunc(slices.Clone(j), func(e Exchange) bool { return e.Job != job })
}

// Gaps returns the times between one arrival and the next.
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

// tokens is an amount of work.
type tokens struct{ Input, Output int }

// journal records exchanges. Its lock guards the entries as well.
type journal struct {
	mu      sync.Mutex
	arrived int // since the last reset; the number of the newest entry
	open    int
	billed  tokens
	ring    []*entry // ring[(number-1) % journalSize]
}

// entry is an exchange being recorded.
type entry struct {
	Exchange
	journal   *journal
	forgotten bool // a reset has come in between
}

// arrive opens an entry.
func (j *journal) arrive(r *http.Request) *entry {
	e := &entry{journal: j, Exchange: Exchange{
		Arrived: time.Now(), Method: r.Method, Path: r.URL.Path, SDKRetry: sdkRetry(r.Header),
	}}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.arrived++
	j.open++
	e.Number = j.arrived
	if len(j.ring) < journalSize {
		j.ring = append(j.ring, e)
	} else {
		j.ring[(e.Number-1)%journalSize] = e
	}
	return e
}

func sdkRetry(h http.Header) int {
	n, err := strconv.Atoi(h.Get("x-stainless-retry-count"))
	if err != nil || n < 0 {
		return -1
	}
	return n
}

func (j *journal) copy() Journal {
	j.mu.Lock()
	defer j.mu.Unlock()
	all := make(Journal, 0, len(j.ring))
	oldest := 0
	if len(j.ring) == journalSize {
		oldest = j.arrived % journalSize
	}
	for i := range j.ring {
		all = append(all, j.ring[(oldest+i)%len(j.ring)].Exchange)
	}
	return all
}

func (j *journal) openNow() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.open
}

func (j *journal) billedSoFar() tokens {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.billed
}

func (j *journal) reset() {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, e := range j.ring {
		e.forgotten = true
	}
	j.ring, j.arrived, j.billed = nil, 0, tokens{}
}

// update changes the entry under the journal's lock.
func (e *entry) update(change func()) {
	e.journal.mu.Lock()
	defer e.journal.mu.Unlock()
	change()
}

func (e *entry) number() (n int) {
	e.update(func() { n = e.Number })
	return n
}

func (e *entry) read(body []byte) {
	sum := sha256.Sum256(body)
	e.update(func() { e.Digest = hex.EncodeToString(sum[:]) })
}

func (e *entry) asked(q request) {
	e.update(func() { e.Model, e.Stream = q.model, q.stream })
}

func (e *entry) begin(fault Kind, job string, attempt int, requestID string) {
	e.update(func() { e.Fault, e.Job, e.Attempt, e.RequestID = fault, job, attempt, requestID })
}

func (e *entry) headers(status int) {
	e.update(func() { e.Status = status })
}

func (e *entry) sent(n int) {
	e.update(func() { e.Sent += int64(n) })
}

// bill replaces what was billed for the exchange so far.
func (e *entry) bill(t tokens) {
	e.update(func() {
		if !e.forgotten {
			e.journal.billed.Input += t.Input - e.Input
			e.journal.billed.Output += t.Output - e.Output
		}
		e.Input, e.Output = t.Input, t.Output
	})
}

// closedBy records who ended the exchange; the first to be named stays.
func (e *entry) closedBy(c Closer) {
	e.update(func() {
		if e.ClosedBy == "" {
			e.ClosedBy = c
		}
	})
}

func (e *entry) depart() {
	e.update(func() {
		e.Departed = time.Now()
		e.journal.open--
	})
}
