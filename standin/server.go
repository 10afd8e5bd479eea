package standin

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"holdfast/standin/internal/request"
	"holdfast/standin/internal/tape"
)

// organization is the value of the header anthropic-organization-id.
const organization = "org_standin"

// Server plays a Plan. It is an http.Handler, safe for concurrent use; use New.
//
// Resets and cuts end the handler with http.ErrAbortHandler, which net/http
// expects; whoever calls ServeHTTP without a server has to expect it too.
type Server struct {
	now     func() time.Time // its clock; a rehearsal has one of its own
	journal *journal
	state   atomic.Pointer[state]

	closed    chan struct{}
	closeOnce sync.Once
}

// state is a plan being played. A new plan, or the same one begun anew, is a new state.
type state struct {
	plan      Plan
	origin    time.Time     // of the timeline
	replaced  chan struct{} // closed when the next state has taken over
	script    *script
	throttle  *throttle
	resources *resources
	deck      *tape.Deck // nil: without a tape
}

func newState(plan Plan, now time.Time) *state {
	if plan.BadKeys == nil {
		plan.BadKeys = []string{"bad"}
	}
	s := &state{plan: plan, origin: now, replaced: make(chan struct{}), script: newScript(plan), throttle: newThrottle(now)}
	s.resources = newResources(s)
	if plan.Tape != nil {
		s.deck = tape.NewDeck(plan.Tape.tape)
	}
	return s
}

// New returns a server for the plan. It panics when Plan.Validate reports a
// mistake, so a plan that comes from outside is to be validated first; those of
// ParsePlan are.
func New(plan Plan) *Server {
	s := newServer(time.Now)
	if err := s.SetPlan(plan); err != nil {
		panic(err)
	}
	return s
}

// newServer returns a server without a plan.
func newServer(now func() time.Time) *Server {
	return &Server{now: now, journal: newJournal(now), closed: make(chan struct{})}
}

// Plan returns the plan in force.
func (s *Server) Plan() Plan { return s.state.Load().plan }

// SetPlan replaces the plan and begins anew, as Reset does. With a plan that
// Validate refuses it returns the mistakes and changes nothing.
func (s *Server) SetPlan(plan Plan) error {
	if err := plan.Validate(); err != nil {
		return err
	}
	s.begin(plan)
	return nil
}

// Close ends every request that is waiting: delays, timeouts and stalls. The
// connections are cut. Requests that come later do not wait either.
func (s *Server) Close() { s.closeOnce.Do(func() { close(s.closed) }) }

// Reset forgets the journal, the bill and every count, and begins the steps, the timeline, the buckets, batches and files anew.
// Requests that are open then are no longer recorded.
func (s *Server) Reset() { s.begin(s.state.Load().plan) }

func (s *Server) begin(plan Plan) {
	before := s.state.Swap(newState(plan, s.now()))
	s.journal.reset()
	if before != nil {
		close(before.replaced)
	}
}

// Journal returns what has arrived so far, in order of arrival, open requests
// included. Of more than 100,000 requests the newest are kept.
func (s *Server) Journal() Journal {
	all, _ := s.journal.copy()
	all.markBilledTwice()
	return all
}

// Ledger returns what the work in the journal cost and who paid for it twice.
func (s *Server) Ledger() Ledger {
	all, forgotten := s.journal.copy()
	l := all.Ledger()
	l.Forgotten, l.Items = forgotten, s.state.Load().resources.items(s.now())
	return l
}

// Report judges the client by what the journal holds.
func (s *Server) Report() Report {
	return s.Journal().Report(s.LimitsUsed()...)
}

// LimitsUsed returns how much of the rate limits was used, for each key and model
// group. Without limits there is nothing.
func (s *Server) LimitsUsed() []LimitUse { return s.state.Load().throttle.use(s.now()) }

// Open returns the number of requests being answered now.
func (s *Server) Open() int { return s.journal.openNow() }

// Billed returns the tokens billed since the start or the last Reset: for every
// answer, also one that was lost on its way, and for every item of a batch that succeeded.
func (s *Server) Billed() (input, output int) {
	b, items := s.journal.billedSoFar(), s.state.Load().resources.items(s.now())
	return b.Input + items.Input, b.Output + items.Output
}

// ServeHTTP answers one request as the plan has it.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if strings.HasPrefix(r.URL.Path+"/", inspectPrefix) {
		s.inspect(w, r)
		return
	}
	entry := s.journal.arrive(r)
	defer entry.depart()
	a := &reply{
		server: s, state: s.state.Load(), w: w, rc: http.NewResponseController(w), r: r, entry: entry,
		requestID: fmt.Sprintf("req_standin_%06d", entry.number()), fault: okFault,
	}
	if refusal := a.find(a.accept()); refusal != nil {
		entry.begin(Rejected, "", 0, a.requestID)
		a.refuse(refusal)
		return
	}
	if denial := a.admit(); denial != nil {
		entry.begin(Throttled, "", 0, a.requestID)
		a.deny(denial)
		return
	}
	defer a.ticket.done()
	a.decide()
	a.play()
}

// accept reads the request, and returns what the API itself would refuse it for.
func (a *reply) accept() *request.Refusal {
	endpoint, _, _, _ := request.Route(a.r.Method, a.r.URL.Path)
	// Read to the end in every case: net/http notices that a client leaves only
	// when nothing of the body is left. One byte above the limit shows that it is too long.
	body, err := io.ReadAll(http.MaxBytesReader(a.w, a.r.Body, request.MaxBody(endpoint)+1))
	a.entry.read(body)
	var refusal *request.Refusal
	a.q, refusal = request.Read(a.r, body, request.Settings{BadKeys: a.state.plan.BadKeys})
	a.entry.asked(a.q)
	if tooLong := new(http.MaxBytesError); refusal == nil && err != nil && !errors.As(err, &tooLong) {
		return &request.Refusal{Status: http.StatusBadRequest, Message: "The request body could not be read"}
	}
	return refusal
}

// admit takes what the request needs of the rate limits, or returns why it cannot.
func (a *reply) admit() *denial {
	now := a.server.now()
	claim := claim{key: a.q.Key, model: a.q.Model, dialect: a.q.Dialect, pool: poolOther, input: a.q.Input, maxTokens: a.q.MaxTokens}
	switch {
	case a.generates():
		claim.pool = poolMessages
	case a.q.Endpoint == request.CountTokens:
		claim.pool = poolCountTokens
	}
	var denial *denial
	a.ticket, denial = a.state.throttle.admit(now, a.state.script.limitsAt(now.Sub(a.state.origin)), claim)
	return denial
}

// deny gives the error of an empty bucket.
func (a *reply) deny(d *denial) {
	d.view.header(a.w.Header())
	a.step = Step{Status: http.StatusTooManyRequests, Type: d.errorType(), Code: d.code(), Message: d.message(), RetryAfter: d.retryAfter()}
	a.failAsTold()
}

// decide asks the plan what the request gets.
func (a *reply) decide() {
	d := a.state.script.decide(facts{
		now: a.server.now().Sub(a.state.origin), path: a.q.Path, model: a.q.Model, header: a.r.Header, prompt: a.q.Prompt,
		customID: a.q.CustomID, sdkRetry: sdkRetry(a.r.Header), stream: a.q.Stream, digest: string(a.entry.rec.digest[:]),
	})
	a.q.Prompt = "" // nobody asks for it any more, and thousands of streams would hold theirs
	if d.step.RequestID != "" {
		a.requestID = d.step.RequestID
	}
	job := ""
	if d.named {
		job = d.job
	}
	a.step, a.fault, a.first, a.tokens = d.step, ofKind(d.step.Kind), d.first, d.tokens
	a.fromTape()
	a.entry.rule(d.rule)
	a.entry.begin(d.step.Kind, job, d.attempt, a.requestID)
}
