package drill

import (
	"fmt"
	"slices"
)

// ticket is what a completed job leaves at the support desk.
type ticket struct {
	ID  string `json:"id"`
	Job string `json:"job"`
	Key string `json:"idempotency_key"`
	// Posts is how often the desk was asked to open it.
	Posts int `json:"posts"`
}

// desk opens tickets. It keeps the answer to each key, so that a request which is repeated because its acknowledgement
// was lost opens nothing twice.
type desk struct {
	lost    []string // jobs whose first acknowledgement is lost
	keyed   bool
	tickets []*ticket
}

// open posts a job's ticket until it is acknowledged.
func (d *desk) open(job string) *ticket {
	first := d.post(job)
	if !slices.Contains(d.lost, job) {
		return first
	}
	return d.post(job)
}

func (d *desk) post(job string) *ticket {
	key := "open-ticket-" + job
	if d.keyed {
		for _, t := range d.tickets {
			if t.Key == key { // the answer of the first time, replayed
				t.Posts++
				return t
			}
		}
	}
	t := &ticket{ID: fmt.Sprintf("TCK-%04d", len(d.tickets)+1), Job: job, Key: key, Posts: 1}
	d.tickets = append(d.tickets, t)
	return t
}

func (d *desk) ids() (ids []string) {
	for _, t := range d.tickets {
		ids = append(ids, t.ID)
	}
	return ids
}
