package drill

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"

	"holdfast"
	"holdfast/once"
)

// ticket is what a completed job leaves at the support desk.
type ticket struct {
	ID  string `json:"id"`
	Job string `json:"job"`
	Key string `json:"idempotency_key"`
	// Posts is how often the desk was asked to open it.
	Posts int `json:"posts"`
}

// desk is the far side of the effect: it opens tickets. One that honours keys answers a key that it knows with the ticket
// of the first time; the other opens a ticket whenever it is asked.
type desk struct {
	lost    []string // jobs whose first acknowledgement is lost
	keyed   bool
	tickets []*ticket
}

// errLost is all that a client knows whose acknowledgement is lost: the ticket may be open or not.
var errLost = errors.New("drill: the acknowledgement is lost")

func (d *desk) post(job, key string) (*ticket, error) {
	for _, t := range d.tickets {
		if d.keyed && t.Key == key { // the answer of the first time, replayed
			t.Posts++
			return t, nil
		}
	}
	first := !slices.ContainsFunc(d.tickets, func(t *ticket) bool { return t.Job == job })
	t := &ticket{ID: fmt.Sprintf("TCK-%04d", len(d.tickets)+1), Job: job, Key: key, Posts: 1}
	d.tickets = append(d.tickets, t)
	if first && slices.Contains(d.lost, job) {
		return nil, errLost
	}
	return t, nil
}

// openOnce opens a job's ticket as the library's users do: what is in doubt is posted again with the same key. The desk is
// simulated, also beside a real endpoint, so nobody waits for it.
func (l *lab) openOnce(ctx context.Context, job string) (*ticket, error) {
	opened, err := once.Do(ctx, l.ledger, ticketKey(job), once.Effect[*ticket]{
		Run:     func(_ context.Context, key string) (*ticket, error) { return l.keyed.post(job, key) },
		Replays: true,
		Policy:  &holdfast.Policy{Backoff: holdfast.Backoff{Base: -1}},
	})
	return opened.Value, err
}

// openNaively opens a job's ticket as a job does that knows of no keys: it posts until it is acknowledged. No part of the
// library is in it, which would report the doubt and not post again: it is there for comparison.
func (d *desk) openNaively(job string) {
	for _, err := d.post(job, ""); err != nil; {
		_, err = d.post(job, "")
	}
}

var plainName = regexp.MustCompile(`^[A-Za-z0-9._-]{1,100}$`)

// ticketKey can be read, for a job's number says nothing about anybody; names that say more, or that no header takes, cannot.
func ticketKey(job string) string {
	if plainName.MatchString(job) {
		return "open-ticket-" + job
	}
	return once.Key("open-ticket", job)
}

func (d *desk) ids() (ids []string) {
	for _, t := range d.tickets {
		ids = append(ids, t.ID)
	}
	return ids
}
