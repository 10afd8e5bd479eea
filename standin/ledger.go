package standin

import (
	"cmp"
	"slices"
	"time"
)

// Ledger is what the work cost and who paid for it twice. It is computed from a
// Journal, so it covers the exchanges that the journal keeps.
type Ledger struct {
	// Jobs are in order of their first arrival.
	Jobs []Account `json:"jobs"`
	// Total is the sum of Jobs, without a name.
	Total Account `json:"total"`
	// Effects are the batches and files that were created more than once by one
	// job with one body.
	Effects []Effect `json:"effects,omitempty"`
	// Items are those of message batches, which are billed apart from requests.
	// Only Server.Ledger knows them.
	Items Items `json:"items"`
	// Forgotten is the number of older exchanges that the journal does not keep
	// any more. Only Server.Ledger knows it.
	Forgotten int `json:"forgotten,omitempty"`
}

// Account is the bill of one job.
//
// A job is told by its custom id, else by its key in Plan.Jobs, else by the
// digest of its body, together with method and path. Its exchanges are attempts
// at one call until the call has been answered; another body after that is the
// next call, as in a conversation, and the same body is an attempt too many.
type Account struct {
	Job       string `json:"job,omitempty"` // custom id, key in Plan.Jobs, or the first 12 hex digits of the body's digest
	Path      string `json:"path,omitempty"`
	Calls     int    `json:"calls"`
	Attempts  int    `json:"attempts"`
	Delivered int    `json:"delivered"` // attempts whose whole answer the client got
	Billed    int    `json:"billed"`    // attempts with a bill
	Lost      int    `json:"lost"`      // billed attempts that ended without their whole answer
	Input     int    `json:"input"`     // tokens billed
	Output    int    `json:"output"`
	PaidTwice Twice  `json:"paid_twice"`
}

// Items is the bill of the items of all batches.
type Items struct {
	Succeeded int `json:"succeeded"` // the only ones that are billed
	Errored   int `json:"errored"`
	Canceled  int `json:"canceled"`
	Expired   int `json:"expired"`
	Waiting   int `json:"waiting"` // of batches that have not ended
	Input     int `json:"input"`   // tokens billed
	Output    int `json:"output"`
	// PaidTwice are items that succeeded though an equal one, with the same custom
	// id, had succeeded in another batch.
	PaidTwice Twice `json:"paid_twice"`
}

// Twice is what was billed for a call beyond its first billed attempt.
type Twice struct {
	Attempts int `json:"attempts"`
	Input    int `json:"input"`
	Output   int `json:"output"`
}

// Effect is one thing that was created several times.
type Effect struct {
	Job       string   `json:"job"`
	Path      string   `json:"path"`
	Digest    string   `json:"digest"`
	IDs       []string `json:"ids"`
	Exchanges []int    `json:"exchanges"` // their numbers
}

// Ledger returns the bill of everything in the journal.
func (j Journal) Ledger() Ledger {
	l := Ledger{Jobs: []Account{}}
	places := map[workKey]int{}
	for _, w := range j.works() {
		i, known := places[w.key]
		if !known {
			i = len(l.Jobs)
			places[w.key] = i
			l.Jobs = append(l.Jobs, Account{Job: w.key.shown(), Path: w.key.path})
		}
		l.Jobs[i].add(w.account(j))
	}
	for _, a := range l.Jobs {
		l.Total.add(a)
	}
	l.Effects = j.repeatedEffects()
	return l
}

func (a *Account) add(b Account) {
	a.Calls += b.Calls
	a.Attempts += b.Attempts
	a.Delivered += b.Delivered
	a.Billed += b.Billed
	a.Lost += b.Lost
	a.Input += b.Input
	a.Output += b.Output
	a.PaidTwice.Attempts += b.PaidTwice.Attempts
	a.PaidTwice.Input += b.PaidTwice.Input
	a.PaidTwice.Output += b.PaidTwice.Output
}

// account is the bill of one call.
func (w *work) account(j Journal) Account {
	a := Account{Calls: 1, Attempts: len(w.attempts)}
	for _, i := range w.attempts {
		e := j[i]
		if e.Delivered() {
			a.Delivered++
		}
		if !e.Billed() {
			continue
		}
		if a.Billed++; a.Billed > 1 {
			a.PaidTwice.Attempts++
			a.PaidTwice.Input += e.Input
			a.PaidTwice.Output += e.Output
		}
		if !e.Open() && !e.Delivered() {
			a.Lost++
		}
		a.Input += e.Input
		a.Output += e.Output
	}
	return a
}

// repeatedEffects finds what one job created more than once with one body.
func (j Journal) repeatedEffects() []Effect {
	type cause struct {
		key    workKey
		digest string
	}
	var all []Effect
	places := map[cause]int{}
	names := j.names()
	for _, e := range j {
		if e.Effect == "" {
			continue
		}
		c := cause{names.of(e), e.Digest}
		i, known := places[c]
		if !known {
			i = len(all)
			places[c] = i
			all = append(all, Effect{Job: c.key.shown(), Path: e.Path, Digest: e.Digest})
		}
		all[i].IDs = append(all[i].IDs, e.Effect)
		all[i].Exchanges = append(all[i].Exchanges, e.Number)
	}
	return slices.DeleteFunc(all, func(e Effect) bool { return len(e.IDs) < 2 })
}

// workKey is what the attempts at a call have in common.
type workKey struct {
	method, path string
	name         string // custom id or key in Plan.Jobs
	digest       string // when there is no name
}

// shown is the key as people read it.
func (k workKey) shown() string {
	return cmp.Or(k.name, k.digest[:min(len(k.digest), 12)])
}

// String names the key in a sentence.
func (k workKey) String() string {
	switch {
	case k.name != "":
		return "job " + k.name
	case k.digest != "":
		return "body " + k.shown()
	}
	return k.method + " " + k.path
}

// jobNames are the jobs by what their requests look like. A request that was
// refused before its job was looked for is told by its body.
type jobNames map[workKey]string

func (j Journal) names() jobNames {
	names := jobNames{}
	for _, e := range j {
		if name := cmp.Or(e.CustomID, e.Job); name != "" && e.Digest != "" {
			names[workKey{method: e.Method, path: e.Path, digest: e.Digest}] = name
		}
	}
	return names
}

func (n jobNames) of(e Exchange) workKey {
	bare := workKey{method: e.Method, path: e.Path, digest: e.Digest}
	if name := cmp.Or(e.CustomID, e.Job, n[bare]); name != "" {
		return workKey{method: e.Method, path: e.Path, name: name}
	}
	return bare
}

// work is one call: its attempts are indexes into a Journal, in order of arrival.
type work struct {
	key      workKey
	attempts []int
	settled  bool      // an attempt is answered, or still being answered
	ended    time.Time // the last attempt
}

// works sorts the exchanges into calls, in order of first arrival.
func (j Journal) works() []*work {
	type body struct {
		key    workKey
		digest string
	}
	var all []*work
	names := j.names()
	latest := map[workKey]*work{} // of a job
	known := map[body]*work{}
	for i, e := range j {
		key := names.of(e)
		w := known[body{key, e.Digest}]
		if w == nil {
			// Another body is a changed attempt at the call before, unless nobody
			// can have known by then that it would be needed.
			w = latest[key]
			if w == nil || w.settled || w.ended.After(e.Arrived) {
				w = &work{key: key}
				latest[key] = w
				all = append(all, w)
			}
			known[body{key, e.Digest}] = w
		}
		w.attempts = append(w.attempts, i)
		w.settled = w.settled || e.Open() || e.Delivered()
		if e.Departed.After(w.ended) {
			w.ended = e.Departed
		}
	}
	return all
}

// isCall reports whether the exchanges are attempts at something that is done
// or paid for. A GET may be sent as often as its sender likes.
func (w *work) isCall() bool { return w.key.method == "POST" }

// markBilledTwice says of each exchange whether an earlier one was billed for
// the same call.
func (j Journal) markBilledTwice() {
	for _, w := range j.works() {
		billed := false
		for _, i := range w.attempts {
			j[i].BilledTwice = billed && j[i].Billed()
			billed = billed || j[i].Billed()
		}
	}
}
