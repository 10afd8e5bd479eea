package gateway

import (
	"strings"
	"sync"

	"holdfast"
	"holdfast/internal/wire"
)

// defaultRecords is how many of the last calls of each shelf are kept.
const defaultRecords = 1000

// The longest texts that a record keeps, in bytes: a caller must not be able to fill the memory with his model's name.
const (
	maxRecordName  = 100
	maxRecordPath  = 200
	maxRecordError = 500
)

// shelf is a ring of its own for one kind of call, so that many of one kind do not push out the few of another.
type shelf int

const (
	smooth   shelf = iota // answered live at the first attempt: most of all calls
	troubled              // answered all the same, or left by the caller
	lost                  // failed or cut: what people ask about
	rejected              // turned away by the gateway itself, by strangers perhaps
	shelves
)

func shelfOf(r *Record) shelf {
	switch {
	case r.Outcome == Failed, r.Outcome == Cut:
		return lost
	case r.Outcome == Rejected:
		return rejected
	case r.Outcome == Left, r.Source == holdfast.Saved, r.Source == holdfast.Fallback, r.Trace.Sent() > 1, len(r.Trace.Skips()) > 0:
		return troubled
	}
	return smooth
}

// records are the last calls, and counts of all. They are safe for concurrent use.
type records struct {
	size  int
	texts texts

	mu      sync.Mutex
	rings   [shelves]ring
	byID    map[string]*kept
	added   uint64
	totals  map[ending]uint64
	clients map[string]uint64
}

// ending is how a call ended and where its answer came from.
type ending struct {
	outcome Outcome
	source  holdfast.Source
}

// kept is a record and its place in the order of all. It is never changed.
type kept struct {
	Record
	number uint64
}

// ring is the last of one shelf; next is where the oldest is once it is full.
type ring struct {
	all  []*kept
	next int
}

// newRecords keeps size calls of each shelf. Zero or negative: defaultRecords.
func newRecords(size int) *records {
	if size <= 0 {
		size = defaultRecords
	}
	return &records{size: size, byID: map[string]*kept{}, totals: map[ending]uint64{}, clients: map[string]uint64{}}
}

// add takes one call that ended, and returns what is kept of it, which is fit to be logged and must not be changed.
func (rs *records) add(r Record) *Record {
	rs.clean(&r)
	k := &kept{Record: r}
	rs.mu.Lock()
	defer rs.mu.Unlock()
	rs.added++
	k.number = rs.added
	rs.totals[ending{r.Outcome, r.Source}]++
	if r.Client != "" {
		rs.clients[r.Client]++
	}
	if old := rs.rings[shelfOf(&r)].put(k, rs.size); old != nil && rs.byID[old.ID] == old {
		delete(rs.byID, old.ID)
	}
	rs.byID[r.ID] = k
	return &k.Record
}

// put returns the one that had to go.
func (r *ring) put(k *kept, size int) (old *kept) {
	if len(r.all) < size {
		r.all = append(r.all, k)
		return nil
	}
	old, r.all[r.next] = r.all[r.next], k
	r.next = (r.next + 1) % size
	return old
}

// newest is the one that came i before the newest, nil behind the oldest.
func (r *ring) newest(i int) *kept {
	n := len(r.all)
	if i >= n {
		return nil
	}
	return r.all[(r.next-1-i+2*n)%n]
}

// find returns the call of this ID, nil if there is none any more.
func (rs *records) find(id string) *Record {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if k := rs.byID[id]; k != nil {
		return &k.Record
	}
	return nil
}

// filter says which calls to list. Empty fields let every call through.
type filter struct {
	failed                        bool // those that failed or were cut
	outcome                       Outcome
	route, target, client, source string
	limit                         int
}

func (f *filter) takes(r *Record) bool {
	return (!f.failed || r.Outcome == Failed || r.Outcome == Cut) &&
		(f.outcome == "" || f.outcome == r.Outcome) &&
		(f.route == "" || f.route == r.Route) &&
		(f.target == "" || f.target == r.Target) &&
		(f.client == "" || f.client == r.Client) &&
		(f.source == "" || f.source == r.Source.String())
}

// list returns the calls that the filter takes, newest first.
func (rs *records) list(f filter) []*Record {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	var found []*Record
	var at [shelves]int
	for len(found) < f.limit {
		var newest *kept
		from := 0
		for i := range rs.rings {
			if k := rs.rings[i].newest(at[i]); k != nil && (newest == nil || k.number > newest.number) {
				newest, from = k, i
			}
		}
		if newest == nil {
			break
		}
		at[from]++
		if f.takes(&newest.Record) {
			found = append(found, &newest.Record)
		}
	}
	return found
}

// tally returns how many calls ended in each way, and how many each client made.
func (rs *records) tally() (ended map[ending]uint64, clients map[string]uint64) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	ended, clients = make(map[ending]uint64, len(rs.totals)), make(map[string]uint64, len(rs.clients))
	for k, n := range rs.totals {
		ended[k] = n
	}
	for k, n := range rs.clients {
		clients[k] = n
	}
	return ended, clients
}

// clean bounds the texts that come from elsewhere and takes out what looks like a key: people paste one into any field.
func (rs *records) clean(r *Record) {
	r.Method = rs.texts.shown(r.Method, maxRecordName)
	r.Path = rs.texts.shown(r.Path, maxRecordPath)
	r.Model = rs.texts.shown(r.Model, maxRecordName)
	r.StopReason = rs.texts.shown(r.StopReason, maxRecordName)
	r.Error = shown(r.Error, maxRecordError)
}

// shown is text from elsewhere as it may be kept and printed, in at most so many bytes.
func shown(text string, most int) string {
	if text == "" {
		return ""
	}
	text = wire.Scrub(text, most)
	for len(text) > most { // Scrub counts runes
		text = strings.ToValidUTF8(text[:most], "")
	}
	return strings.Clone(text) // it may be a piece of a whole request
}

// texts remember what is shown for a text: almost all calls have the same few paths and models, and looking for keys in
// each anew costs more than the rest of a record.
type texts struct {
	mu    sync.Mutex
	known map[string]string
}

// maxTexts bounds how many are remembered. Then all are forgotten: that costs a caller who invents paths nothing more
// than their patterns.
const maxTexts = 512

func (t *texts) shown(text string, most int) string {
	if text == "" {
		return ""
	}
	if len(text) > most {
		return shown(text, most)
	}
	t.mu.Lock()
	seen, ok := t.known[text]
	t.mu.Unlock()
	if ok {
		return seen
	}
	seen = shown(text, most)
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.known == nil || len(t.known) >= maxTexts {
		t.known = map[string]string{}
	}
	t.known[strings.Clone(text)] = seen
	return seen
}
