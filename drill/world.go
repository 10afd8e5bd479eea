package drill

import (
	"container/heap"
	"context"
	"math"
	"time"

	"holdfast"
)

// world is simulated time: what shall happen, in the order of time and then of planning. Nothing runs beside it, so that
// a run repeats exactly.
type world struct {
	origin  time.Time
	now     time.Duration // since the origin
	plan    schedule
	planned uint64
	opened  int // breakers that opened, where somebody counts them
}

func newWorld() *world { return &world{origin: origin()} }

// origin is the library's own zero of time. Breakers count in steps of that clock; a world that began anywhere else would
// see its steps begin elsewhere in each process. The far past is as far as a clock reaches below its zero.
func origin() time.Time {
	c := holdfast.NewCall(&holdfast.Policy{Deadline: -1})
	c.Begin(time.Time{}, time.Time{}, holdfast.Tokens{})
	trace := c.Trace()
	return trace.Started().Add(math.MaxInt64).Add(1)
}

// happening is something that is to happen.
type happening struct {
	at    time.Duration
	order uint64
	do    func()
	place int // in the schedule; -1: happened or called off
}

type schedule []*happening

func (s schedule) Len() int { return len(s) }
func (s schedule) Less(i, j int) bool {
	return s[i].at < s[j].at || s[i].at == s[j].at && s[i].order < s[j].order
}
func (s schedule) Swap(i, j int) {
	s[i], s[j] = s[j], s[i]
	s[i].place, s[j].place = i, j
}
func (s *schedule) Push(x any) {
	h := x.(*happening)
	h.place = len(*s)
	*s = append(*s, h)
}
func (s *schedule) Pop() any {
	old := *s
	last := old[len(old)-1]
	last.place = -1
	old[len(old)-1] = nil
	*s = old[:len(old)-1]
	return last
}

func (w *world) after(d time.Duration, do func()) *happening {
	w.planned++
	h := &happening{at: w.now + max(d, 0), order: w.planned, do: do}
	heap.Push(&w.plan, h)
	return h
}

// callOff keeps something from happening, if it has not happened yet.
func (w *world) callOff(h *happening) {
	if h != nil && h.place >= 0 {
		heap.Remove(&w.plan, h.place)
	}
}

func (w *world) time() time.Time { return w.origin.Add(w.now) }

// run lets everything happen. It ends early, with the context's error, when that ends.
func (w *world) run(ctx context.Context) error {
	for n := 0; len(w.plan) > 0; n++ {
		if n%1024 == 0 && ctx.Err() != nil {
			return context.Cause(ctx)
		}
		h := heap.Pop(&w.plan).(*happening)
		w.now = h.at
		h.do()
	}
	return nil
}

// upstream answers one attempt by calling reply, once, when the world's time for it has come; or never, when it hangs.
// It returns what tells it that the client has left, nil where it does not care.
type upstream func(reply func(holdfast.Verdict)) (leave func())

// ended is a call that is over.
type ended struct {
	trace holdfast.Trace
	step  holdfast.Step
	at    time.Duration
}

// ok reports whether the call was answered by somebody live.
func (e *ended) ok() bool {
	return e.trace.Source == holdfast.Live || e.trace.Source == holdfast.Fallback
}

// verdict is that of the last attempt.
func (e *ended) verdict() holdfast.Verdict {
	all := e.trace.Attempts()
	if len(all) == 0 {
		return holdfast.Verdict{}
	}
	return all[len(all)-1].Verdict
}

// player drives one call.
type player struct {
	w     *world
	call  *holdfast.Call
	send  upstream
	over  func(ended)
	turn  int        // counts steps, so that what belongs to an earlier one comes to nothing
	timer *happening // of the present step
}

// begin starts a call now, which takes from the pace what the policy estimates; over is called when it ends.
func (w *world) begin(p *holdfast.Policy, send upstream, over func(ended)) {
	need := holdfast.Tokens{}
	if p.Estimate != nil {
		need = p.Estimate(context.Background())
	}
	pl := &player{w: w, call: holdfast.NewCall(p), send: send, over: over}
	pl.call.Wake = func() {
		turn := pl.turn
		w.after(0, func() { pl.resume(turn) })
	}
	pl.step(pl.call.Begin(w.time(), time.Time{}, need))
}

func (p *player) step(s holdfast.Step) {
	p.turn++
	turn := p.turn
	p.w.callOff(p.timer)
	p.timer = nil
	switch s.Action {
	case holdfast.Wait:
		p.timer = p.w.after(s.Wait, func() { p.resume(turn) })
	case holdfast.Send:
		var leave func()
		if s.Timeout > 0 {
			p.timer = p.w.after(s.Timeout, func() {
				if p.turn != turn {
					return
				}
				p.turn++ // whatever the upstream still says comes to nothing
				if leave != nil {
					leave()
				}
				p.settle(p.turn, p.silence(s))
			})
		}
		leave = p.send(func(v holdfast.Verdict) { p.settle(turn, v) })
	case holdfast.Stop:
		p.over(ended{trace: p.call.Trace(), step: s, at: p.w.now})
	}
}

func (p *player) resume(turn int) {
	if p.turn == turn {
		p.step(p.call.Resume(p.w.time()))
	}
}

func (p *player) settle(turn int, v holdfast.Verdict) {
	if p.turn == turn {
		p.step(p.call.Settle(p.w.time(), v, holdfast.Tokens{}))
	}
}

// silence is the verdict of an attempt whose time ran out, as the library's own loop gives it: one that the deadline cut
// short says nothing about the upstream.
func (p *player) silence(s holdfast.Step) holdfast.Verdict {
	v := holdfast.Verdict{Kind: holdfast.Broken, Silent: true, Rule: "attempt-timeout"}
	if s.Whole {
		trace := p.call.Trace()
		v.Rule, v.Neutral = "deadline", trace.Sent() > 1 || trace.Paced > 0
	}
	return v
}

// client returns an upstream that is itself a client with a policy of its own, as an SDK that retries is.
func (w *world) client(p func() holdfast.Policy, behind upstream) upstream {
	return func(reply func(holdfast.Verdict)) func() {
		own := p()
		w.begin(&own, behind, func(e ended) { reply(e.verdict()) })
		return nil
	}
}
