package once_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"holdfast"
	"holdfast/once"
)

// status is an error as an HTTP client of any kind returns it.
type status int

func (s status) Error() string   { return fmt.Sprintf("status %d", int(s)) }
func (s status) StatusCode() int { return int(s) }

// desk is a far side. Each post meets the next of its faults; then it opens a ticket, or with keys gives the first one's again.
type desk struct {
	keys bool // it honours them

	mu      sync.Mutex
	faults  []string // "reject", "throttle", "odd" (an error nobody knows, and it does not happen), "lost" (it happens and its answer is lost), "void" (it does not, and nobody can tell), "" none
	posts   []time.Time
	keyed   []string
	tickets map[string][]string // by key
}

type ticket struct {
	ID  string `json:"id"`
	Job string `json:"job"`
}

func (d *desk) open(ctx context.Context, key string) (ticket, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.posts, d.keyed = append(d.posts, time.Now()), append(d.keyed, once.KeyOf(ctx))
	fault := ""
	if len(d.faults) > 0 {
		fault, d.faults = d.faults[0], d.faults[1:]
	}
	switch fault {
	case "reject":
		return ticket{}, status(400)
	case "throttle":
		return ticket{}, status(429)
	case "odd":
		return ticket{}, errors.New("what is this")
	case "void":
		return ticket{}, status(502)
	}
	if d.tickets == nil {
		d.tickets = map[string][]string{}
	}
	if open := d.tickets[key]; d.keys && len(open) > 0 {
		return ticket{open[0], key}, nil
	}
	id := fmt.Sprintf("TCK-%d", len(d.posts))
	d.tickets[key] = append(d.tickets[key], id)
	if fault == "lost" {
		return ticket{}, context.DeadlineExceeded
	}
	return ticket{id, key}, nil
}

func (d *desk) effect() once.Effect[ticket] {
	return once.Effect[ticket]{Run: d.open, Replays: d.keys}
}

var key = once.Key("ticket", "4711")

// What comes of one call, by what its posts meet and what the desk is like.
func TestDoByFaultAndFarSide(t *testing.T) {
	for _, row := range []struct {
		name    string
		keys    bool
		faults  []string
		posts   int // the far side saw
		tickets int
		err     string // "", unknown, certain
	}{
		{name: "nothing fails", posts: 1, tickets: 1},
		{name: "nothing fails, keys", keys: true, posts: 1, tickets: 1},
		{name: "rejected", faults: []string{"reject"}, posts: 1, err: "certain"},
		{name: "rejected, keys", keys: true, faults: []string{"reject"}, posts: 1, err: "certain"},
		{name: "throttled, then done", faults: []string{"throttle", "throttle"}, posts: 3, tickets: 1},
		{name: "throttled for ever", faults: []string{"throttle", "throttle", "throttle", "throttle", "throttle"}, posts: 4, err: "certain"},
		{name: "lost acknowledgement", faults: []string{"lost"}, posts: 1, tickets: 1, err: "unknown"},
		{name: "lost acknowledgement, keys", keys: true, faults: []string{"lost"}, posts: 2, tickets: 1},
		{name: "not done and nobody can tell", faults: []string{"void"}, posts: 1, err: "unknown"},
		{name: "not done and nobody can tell, keys", keys: true, faults: []string{"void"}, posts: 2, tickets: 1},
		{name: "an error nobody knows", faults: []string{"odd"}, posts: 1, err: "unknown"},
		{name: "an error nobody knows, keys", keys: true, faults: []string{"odd"}, posts: 2, tickets: 1},
		{name: "throttled, then lost", faults: []string{"throttle", "lost"}, posts: 2, tickets: 1, err: "unknown"},
		{name: "lost, then rejected, keys", keys: true, faults: []string{"lost", "reject"}, posts: 2, tickets: 1, err: "unknown"},
		{name: "lost, then throttled, keys", keys: true, faults: []string{"lost", "throttle"}, posts: 3, tickets: 1},
		{name: "lost for ever, keys", keys: true, faults: []string{"void", "void", "void", "void", "void"}, posts: 4, err: "unknown"},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := &desk{keys: row.keys, faults: row.faults}
				ledger := once.New(once.NewMemory(), once.Options{})
				got, err := once.Do(t.Context(), ledger, key, d.effect())
				var doubt *once.UnknownError
				switch unknown := errors.As(err, &doubt); {
				case row.err == "" && (err != nil || got.Value.Job != key || got.Source != once.Ran || got.Starts != 1 || got.Shared):
					t.Errorf("got %+v, %v", got, err)
				case row.err == "certain" && (err == nil || unknown), row.err == "unknown" && !unknown:
					t.Errorf("got error %v", err)
				}
				if len(d.posts) != row.posts || len(d.tickets[key]) != row.tickets {
					t.Errorf("%d posts and %d tickets, want %d and %d", len(d.posts), len(d.tickets[key]), row.posts, row.tickets)
				}
				for _, sent := range d.keyed {
					if (sent == key) != row.keys {
						t.Errorf("a post carried %q; a far side without keys must not be sent one", sent)
					}
				}
				_, recorded, _ := ledger.Record(t.Context(), key)
				if recorded == (row.err == "certain") {
					t.Errorf("recorded: %v, with %v", recorded, err)
				}

				// The next caller, when nothing fails any more.
				d.faults = nil
				again, err := once.Do(t.Context(), ledger, key, d.effect())
				switch {
				case row.err == "" && (err != nil || again.Value != got.Value || again.Source != once.Recorded):
					t.Errorf("again: %+v, %v", again, err)
				case row.err == "certain" && (err != nil || again.Source != once.Ran || again.Starts != 1):
					t.Errorf("after a failure that did nothing: %+v, %v", again, err)
				case row.err == "unknown" && row.keys && (err != nil || again.Source != once.Ran || again.Starts != 2 || again.Value.ID == ""):
					t.Errorf("in doubt, with keys: %+v, %v", again, err)
				case row.err == "unknown" && !row.keys && (!errors.As(err, &doubt) || len(d.posts) != row.posts):
					t.Errorf("in doubt, without keys: %v, %d posts", err, len(d.posts))
				}
				if n := len(d.tickets[key]); n > 1 {
					t.Errorf("%d tickets", n)
				}
			})
		})
	}
}

// The policy's waits are those of the reliable call.
func TestDoWaitsAsItsPolicySays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &desk{keys: true, faults: []string{"lost", "void"}}
		e := d.effect()
		e.Policy = &holdfast.Policy{Attempts: 3, Backoff: holdfast.Backoff{Base: time.Second, Cap: time.Minute, Jitter: holdfast.NoJitter}, Targets: []holdfast.Target{{Name: "a"}, {Name: "b"}}}
		if _, err := once.Do(t.Context(), once.New(once.NewMemory(), once.Options{}), key, e); err != nil {
			t.Fatal(err)
		}
		if len(d.posts) != 3 || d.posts[1].Sub(d.posts[0]) != time.Second || d.posts[2].Sub(d.posts[1]) != 2*time.Second {
			t.Errorf("posts at %v", d.posts)
		}
	})
}
