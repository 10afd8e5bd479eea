package standin

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
	"unique"

	"holdfast/internal/wire"
	"holdfast/standin/internal/request"
)

// journalSize is the number of exchanges that are kept.
const journalSize = 100_000

// tokens is an amount of work.
type tokens struct{ Input, Output int }

// journal records exchanges. Its lock is taken once for each request, when it
// arrives: what happens later is the entry's own affair, so that thousands of
// streams do not wait for each other.
type journal struct {
	now  func() time.Time
	open atomic.Int64

	mu   sync.Mutex
	time *period
	ring []*entry // ring[(number-1) % journalSize]
}

// period is the time from one reset to the next. An entry keeps the period it
// arrived in, so that one from before a reset counts in none that is asked for.
type period struct {
	origin        time.Time
	arrived       int // the number of the newest entry; under the journal's lock
	input, output atomic.Int64
}

// newJournal returns a journal that goes by a clock.
func newJournal(now func() time.Time) *journal {
	return &journal{now: now, time: &period{origin: now()}}
}

// arrive opens an entry.
func (j *journal) arrive(r *http.Request) *entry {
	e := &entry{journal: j, rec: record{
		headersAt: never, firstByteAt: never, departed: never,
		method: wordOf(r.Method), path: wordOf(r.URL.Path), sdkRetry: sdkRetry(r.Header),
	}}
	j.open.Add(1)
	j.mu.Lock()
	defer j.mu.Unlock()
	e.period = j.time
	e.rec.arrived = e.now() // under the lock, so that the order of numbers is that of time
	e.period.arrived++
	e.rec.number = e.period.arrived
	if len(j.ring) < journalSize {
		j.ring = append(j.ring, e)
	} else {
		j.ring[(e.rec.number-1)%journalSize] = e
	}
	return e
}

func sdkRetry(h http.Header) int {
	text := h.Get("X-Stainless-Retry-Count")
	if text == "" {
		return -1
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		return -1
	}
	return n
}

// digestOfKey tells keys apart without showing them, in the form of LimitUse.
func digestOfKey(key string) string {
	if key == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:6])
}

// copy returns all exchanges that are kept, and how many older ones are not.
func (j *journal) copy() (all Journal, forgotten int) {
	j.mu.Lock()
	entries := make([]*entry, 0, len(j.ring))
	oldest := 0
	if len(j.ring) == journalSize {
		oldest = j.time.arrived % journalSize
	}
	entries = append(append(entries, j.ring[oldest:]...), j.ring[:oldest]...)
	forgotten = j.time.arrived - len(entries)
	j.mu.Unlock()

	all = make(Journal, len(entries))
	for i, e := range entries {
		all[i] = e.exchange()
	}
	return all, forgotten
}

func (j *journal) openNow() int { return int(j.open.Load()) }

func (j *journal) billedSoFar() tokens {
	j.mu.Lock()
	now := j.time
	j.mu.Unlock()
	return tokens{int(now.input.Load()), int(now.output.Load())}
}

func (j *journal) reset() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.ring, j.time = nil, &period{origin: j.now()}
}

// never is the moment of what has not happened.
const never time.Duration = -1

// word is a text that many exchanges share; they keep one copy of it.
type word struct{ unique.Handle[string] }

func wordOf(text string) word {
	if text == "" {
		return word{}
	}
	return word{unique.Make(text)}
}

func (w word) text() string {
	if w == (word{}) {
		return ""
	}
	return w.Value()
}

// record is an Exchange in a third of its size: 100,000 of them are always
// kept. Moments are counted from the origin of the period.
type record struct {
	number                                    int
	arrived, headersAt, firstByteAt, departed time.Duration
	method, path, endpoint, model, key, rule  word
	fault, code, closedBy, advice             word
	job, customID, requestID, effect          string
	digest                                    [sha256.Size]byte
	wait                                      time.Duration
	sent                                      int64
	attempt, sdkRetry, status                 int
	billed                                    tokens
	hasDigest, stream                         bool
}

// entry is an exchange being recorded. Its methods may be called from several
// goroutines.
type entry struct {
	journal *journal
	period  *period

	mu  sync.Mutex
	rec record
}

// exchange returns what is known by now.
func (e *entry) exchange() Exchange {
	e.mu.Lock()
	defer e.mu.Unlock()
	at := func(d time.Duration) time.Time {
		if d == never {
			return time.Time{}
		}
		return e.period.origin.Add(d)
	}
	digest := ""
	if e.rec.hasDigest {
		digest = hex.EncodeToString(e.rec.digest[:])
	}
	return Exchange{
		Number: e.rec.number, Arrived: at(e.rec.arrived), HeadersAt: at(e.rec.headersAt), FirstByteAt: at(e.rec.firstByteAt), Departed: at(e.rec.departed),
		Method: e.rec.method.text(), Path: e.rec.path.text(), Endpoint: e.rec.endpoint.text(), Model: e.rec.model.text(), Stream: e.rec.stream,
		Key: e.rec.key.text(), Rule: e.rec.rule.text(), Job: e.rec.job, CustomID: e.rec.customID, Attempt: e.rec.attempt, SDKRetry: e.rec.sdkRetry, Digest: digest,
		Status: e.rec.status, Fault: Kind(e.rec.fault.text()), Code: e.rec.code.text(), Wait: e.rec.wait, ShouldRetry: Advice(e.rec.advice.text()),
		RequestID: e.rec.requestID, Effect: e.rec.effect, Sent: e.rec.sent, ClosedBy: Closer(e.rec.closedBy.text()),
		Input: e.rec.billed.Input, Output: e.rec.billed.Output,
	}
}

func (e *entry) update(change func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	change()
}

// number is set before anybody else knows of the entry.
func (e *entry) number() int { return e.rec.number }

func (e *entry) now() time.Duration { return e.journal.now().Sub(e.period.origin) }

func (e *entry) read(body []byte) {
	sum := sha256.Sum256(body)
	e.update(func() { e.rec.digest, e.rec.hasDigest = sum, true })
}

// asked records what the request says.
func (e *entry) asked(q request.Request) {
	key := wordOf(digestOfKey(q.Key))
	e.update(func() {
		e.rec.key, e.rec.endpoint, e.rec.model, e.rec.stream, e.rec.customID = key, wordOf(string(q.Endpoint)), wordOf(q.Model), q.Stream, q.CustomID
	})
}

// digest of the body; set before anybody else asks.
func (e *entry) digest() string { return hex.EncodeToString(e.rec.digest[:]) }

func (e *entry) begin(fault Kind, job string, attempt int, requestID string) {
	e.update(func() {
		e.rec.fault, e.rec.job, e.rec.attempt, e.rec.requestID = wordOf(string(fault)), job, attempt, requestID
	})
}

// rule records the name of what gave the step.
func (e *entry) rule(name string) {
	e.update(func() { e.rec.rule = wordOf(name) })
}

// askedWait is what retry-after-ms or retry-after ask for. The reset times of
// buckets tell what is left; they ask for nothing.
func askedWait(h http.Header, now time.Time) time.Duration {
	if h["Retry-After-Ms"] == nil && h["Retry-After"] == nil {
		return 0 // so it is on most replies
	}
	wait, from := wire.Wait(h, nil, now)
	if from != "retry-after-ms" && from != "retry-after" {
		return 0
	}
	return wait
}

// headers records that the headers of the reply were sent, and what they ask for.
func (e *entry) headers(status int, h http.Header) {
	wait := askedWait(h, e.journal.now())
	e.update(func() {
		e.rec.status, e.rec.wait, e.rec.headersAt = status, wait, e.now()
		switch advice := Advice(h.Get("X-Should-Retry")); advice {
		case DoRetry, DontRetry:
			e.rec.advice = wordOf(string(advice))
		}
	})
}

// code records the machine-readable code of an error.
func (e *entry) code(code string) {
	e.update(func() { e.rec.code = wordOf(code) })
}

// effect records what the request created.
func (e *entry) effect(id string) {
	e.update(func() { e.rec.effect = id })
}

func (e *entry) sent(n int) {
	if n <= 0 {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.rec.firstByteAt == never {
		e.rec.firstByteAt = e.now()
	}
	e.rec.sent += int64(n)
}

// bill replaces what was billed for the exchange so far.
func (e *entry) bill(t tokens) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.period.input.Add(int64(t.Input - e.rec.billed.Input))
	e.period.output.Add(int64(t.Output - e.rec.billed.Output))
	e.rec.billed = t
}

// closedBy records who ended the exchange; the first to be named stays.
func (e *entry) closedBy(c Closer) {
	e.update(func() {
		e.rec.closedBy = cmp.Or(e.rec.closedBy, wordOf(string(c)))
	})
}

func (e *entry) depart() {
	e.journal.open.Add(-1)
	e.update(func() { e.rec.departed = e.now() })
}
