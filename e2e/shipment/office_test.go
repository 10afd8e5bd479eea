// Package shipment_test is a job that acts on what Claude says: a note for each shipment, and one ticket with it. The job is
// in the example; here is what it works against, and what must hold whatever goes wrong.
package shipment_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"

	"holdfast/internal/testnet"
	"holdfast/once"
	"holdfast/standin"
)

// note is what the stand-in answers.
const note = "Seven parcels left the harbour on Monday and arrived on Tuesday, dry and whole."

// office is a network with an API that fails as its plan says, and a desk that takes tickets.
type office struct {
	network  *testnet.Network
	upstream *standin.Server
	servers  []*testnet.Server

	mu      sync.Mutex
	keyless bool // the desk ignores keys
	lost    map[string]int
	tickets []ticket
	posts   map[string]int // by shipment
}

// ticket is what the desk has opened.
type ticket struct{ ID, Key, Shipment, Note string }

func newOffice(plan string) *office {
	p, err := standin.ParsePlan([]byte(plan))
	if err != nil {
		panic(err) //nolint:forbidigo // a mistake in the test itself
	}
	return officeOf(p)
}

func officeOf(plan standin.Plan) *office {
	plan.Reply = note
	o := &office{network: testnet.New(), upstream: standin.New(plan), lost: map[string]int{}, posts: map[string]int{}}
	o.servers = []*testnet.Server{o.network.Start("api.test", o.upstream), o.network.Start("desk.test", http.HandlerFunc(o.take))}
	return o
}

func (o *office) close() {
	for _, s := range o.servers {
		s.Close()
	}
}

func (o *office) api() http.RoundTripper { return o.network.Client().Transport }
func (o *office) far() http.RoundTripper { return o.network.Client().Transport }

// loseAcknowledgement makes the desk open a shipment's ticket and break off while it says so, once more than before.
func (o *office) loseAcknowledgement(shipment string) { o.lost[shipment]++ }

// take opens a ticket, or gives the one again that was opened with the same key.
func (o *office) take(w http.ResponseWriter, r *http.Request) {
	var posted ticket
	if err := json.NewDecoder(r.Body).Decode(&posted); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	posted.Key = r.Header.Get("Idempotency-Key")
	o.mu.Lock()
	defer o.mu.Unlock()
	o.posts[posted.Shipment]++
	i := slices.IndexFunc(o.tickets, func(t ticket) bool { return !o.keyless && t.Key == posted.Key })
	switch {
	case i < 0:
		i = len(o.tickets)
		posted.ID = fmt.Sprint("TCK-", i+1)
		o.tickets = append(o.tickets, posted)
	case o.tickets[i].Note != posted.Note: // as services do that compare
		http.Error(w, "the key was used for another request", http.StatusUnprocessableEntity)
		return
	}
	w.WriteHeader(http.StatusCreated)
	if o.lost[posted.Shipment] > 0 {
		o.lost[posted.Shipment]--
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler) //nolint:forbidigo // which is how a handler breaks off
	}
	_ = json.NewEncoder(w).Encode(o.tickets[i])
}

// of are a shipment's tickets.
func (o *office) of(shipment string) (tickets []ticket) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, t := range o.tickets {
		if t.Shipment == shipment {
			tickets = append(tickets, t)
		}
	}
	return tickets
}

func (o *office) posted(shipment string) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.posts[shipment]
}

// summary tells what became of a shipment.
func (o *office) summary(s *shipment, err error) string {
	var why []string
	for _, step := range s.Answer.Steps {
		why = append(why, step.Why)
	}
	text := fmt.Sprintf("%s %v: %s", s.Number, s.Answer.Outcome, strings.Join(why, "; "))
	if s.Answer.Model != "claude-sonnet-5-5" {
		text += "; by " + s.Answer.Model
	}
	switch n := o.posted(s.Number); {
	case err != nil:
		return text + ". No ticket"
	case n > 1:
		return fmt.Sprintf("%s. %s after %d posts", text, s.Ticket, n)
	}
	return text + ". " + s.Ticket
}

// dying is the store as a process has it that dies as soon as the shipment's ticket is open: what it writes from then on is
// lost.
func (o *office) dying(store once.Store, shipment string) once.Store {
	return &dying{store, func() bool { return len(o.of(shipment)) > 0 }}
}

type dying struct {
	once.Store
	dead func() bool
}

func (d *dying) Swap(ctx context.Context, key, revision string, next *once.Record) (bool, error) {
	if d.dead() {
		return true, nil
	}
	return d.Store.Swap(ctx, key, revision, next)
}

// desk is the desk as its clients see it.
type desk struct{ client http.Client }

func (d *desk) open(ctx context.Context, shipment, note string) (id string, err error) {
	body, err := json.Marshal(ticket{Shipment: shipment, Note: note})
	if err != nil {
		return "", err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://desk.test/tickets", bytes.NewReader(body))
	if err != nil {
		return "", err
	}
	resp, err := d.client.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusCreated {
		return "", status(resp.StatusCode)
	}
	var opened ticket
	err = json.NewDecoder(resp.Body).Decode(&opened)
	return opened.ID, err
}

// status is a reply that opens no ticket.
type status int

func (s status) Error() string   { return fmt.Sprintf("the desk says %d", int(s)) }
func (s status) StatusCode() int { return int(s) }
