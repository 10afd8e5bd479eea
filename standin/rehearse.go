package standin

import (
	"context"
	"fmt"
	"iter"
	"net/http"
	"time"
)

// Rehearsal plays a plan without a network and without a clock: its caller says
// what time it is, so that hours pass in no time and a run repeats exactly. What
// answers is the code of a Server, with every rule, limit, latency and fault, and
// the journal and the report are those of a Server.
//
// Every attempt comes on a connection of its own: while an incident refuses
// connections none gets through, and while they hang it is not read.
//
// A Rehearsal and its visits are not safe for concurrent use. Replies that wait
// are held as coroutines, so call Close in the end.
type Rehearsal struct {
	server *Server
	now    time.Time
	open   map[*Visit]struct{}
}

// Rehearse begins to play the plan, whose timeline starts at the given time. The
// error names the mistakes of a plan that Validate refuses.
func Rehearse(plan Plan, start time.Time) (*Rehearsal, error) {
	r := &Rehearsal{now: start, open: map[*Visit]struct{}{}}
	r.server = newServer(func() time.Time { return r.now })
	if err := r.server.SetPlan(plan); err != nil {
		return nil, fmt.Errorf("standin: nothing to rehearse: %w", err)
	}
	return r, nil
}

// Journal returns what has arrived so far, as Server.Journal does. A visit that
// met no connection is not in it.
func (r *Rehearsal) Journal() Journal { return r.server.Journal() }

// Ledger returns what the work cost, as Server.Ledger does.
func (r *Rehearsal) Ledger() Ledger { return r.server.Ledger() }

// Report judges the client, as Server.Report does.
func (r *Rehearsal) Report() Report { return r.server.Report() }

// Close ends the visits that are still open, as if their clients left.
func (r *Rehearsal) Close() {
	for v := range r.open {
		v.Leave(r.now)
	}
}

// pass lets the time come. It never goes back.
func (r *Rehearsal) pass(at time.Time) {
	if at.After(r.now) {
		r.now = at
	}
}

// Arrive lets a request arrive, and plays its reply up to the first moment at
// which it waits. A time before what has happened already is now. The request is
// as http.NewRequest makes it, with its body; its context is not looked at.
func (r *Rehearsal) Arrive(at time.Time, req *http.Request) *Visit {
	r.pass(at)
	state := r.server.state.Load()
	v := &Visit{rehearsal: r}
	r.open[v] = struct{}{}
	switch kind, until := state.script.connections(r.now.Sub(state.origin)); kind {
	case Refused:
		v.end(Unreachable)
	case Hang:
		v.begin(func() {
			v.stage.hangUp(state.origin, until)
		})
	default:
		ctx, cancel := context.WithCancel(context.Background())
		v.stage.cancel = cancel
		if req = req.WithContext(ctx); req.Body == nil {
			req.Body = http.NoBody // as a server has it
		}
		v.begin(func() {
			defer cancel()
			r.server.ServeHTTP(&v.stage, req)
		})
	}
	return v
}

// Visit is one request of a Rehearsal and as much of its reply as has come.
type Visit struct {
	rehearsal *Rehearsal
	stage     stage
	next      func() (time.Time, bool)
	stop      func()
	wake      time.Time // zero: only leaving ends it
	outcome   Outcome
}

// Outcome is how a visit ended.
type Outcome string

// The outcomes. The zero value is a visit that goes on.
const (
	// Whole is a reply that came to its end, whatever it says.
	Whole Outcome = "whole"
	// Broken is a connection that ended too early: before the headers when the
	// status is 0, else in the body.
	Broken Outcome = "broken"
	// Unreachable is a connection that was refused.
	Unreachable Outcome = "unreachable"
	// Left is a client that went away.
	Left Outcome = "left"
)

// Outcome returns how the visit ended, "" while it goes on.
func (v *Visit) Outcome() Outcome { return v.outcome }

// Status returns the status of the reply, 0 as long as no headers have come.
func (v *Visit) Status() int { return v.stage.status }

// Header returns the headers of the reply, nil as long as none have come.
func (v *Visit) Header() http.Header { return v.stage.sent }

// Body returns what has come of the body.
func (v *Visit) Body() []byte { return v.stage.body }

// Next returns when the reply goes on by itself. It is false when the visit is
// over, and when nothing but leaving ends it.
func (v *Visit) Next() (at time.Time, ok bool) {
	return v.wake, v.outcome == "" && !v.wake.IsZero()
}

// Continue plays the reply from the time that Next has named up to the next at
// which it waits. What several visits do is true to a server when they continue in
// order of time. It does nothing when there is no Next.
func (v *Visit) Continue() {
	if at, ok := v.Next(); ok {
		v.rehearsal.pass(at)
		v.move()
	}
}

// Leave lets the client go away. On a visit that is over it does nothing.
func (v *Visit) Leave(at time.Time) {
	if v.outcome != "" {
		return
	}
	v.rehearsal.pass(at)
	if v.stage.cancel != nil {
		v.stage.cancel()
	}
	v.stop()
	v.end(Left)
}

func (v *Visit) begin(play func()) {
	v.next, v.stop = iter.Pull(func(yield func(time.Time) bool) {
		defer v.stage.close()
		v.stage.now, v.stage.yield = v.rehearsal.server.now, yield
		play()
	})
	v.move()
}

// move plays on to the next wait.
func (v *Visit) move() {
	at, waits := v.next()
	switch {
	case waits:
		v.wake = at
	case v.stage.broken:
		v.end(Broken)
	default:
		v.end(Whole)
	}
}

func (v *Visit) end(how Outcome) {
	v.outcome = how
	delete(v.rehearsal.open, v)
}
