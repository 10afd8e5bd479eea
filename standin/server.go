package standin

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"

	"holdfast/internal/wire"
)

// organization is the value of the header anthropic-organization-id.
const organization = "org_standin"

// Server plays a Plan. It is an http.Handler, safe for concurrent use; use New.
//
// Resets and cuts end the handler with http.ErrAbortHandler, which net/http
// expects; whoever calls ServeHTTP without a server has to expect it too.
type Server struct {
	plan    Plan
	script  *script
	journal *journal

	closed    chan struct{}
	closeOnce sync.Once
}

// New returns a server for the plan. It panics when Plan.Validate reports a
// mistake, so a plan that comes from outside is to be validated first; those of
// ParsePlan are.
func New(plan Plan) *Server {
	if err := plan.Validate(); err != nil {
		panic(err)
	}
	if plan.Reply == "" {
		plan.Reply = defaultReply
	}
	if plan.BadKeys == nil {
		plan.BadKeys = []string{"bad"}
	}
	plan.BadKeys = slices.Clone(plan.BadKeys)
	return &Server{plan: plan, script: newScript(plan), journal: newJournal(), closed: make(chan struct{})}
}

// Close ends every request that is waiting: delays, timeouts and stalls. The
// connections are cut. Requests that come later do not wait either.
func (s *Server) Close() { s.closeOnce.Do(func() { close(s.closed) }) }

// Reset forgets the journal, the bill and every count, and begins all steps anew.
// Requests that are open then are no longer recorded.
func (s *Server) Reset() {
	s.script.reset()
	s.journal.reset()
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
	l.Forgotten = forgotten
	return l
}

// Report judges the client by what the journal holds.
func (s *Server) Report() Report { return s.Journal().Report() }

// Open returns the number of requests being answered now.
func (s *Server) Open() int { return s.journal.openNow() }

// Billed returns the tokens billed since the start or the last Reset: for every
// answer, also one that was lost on its way.
func (s *Server) Billed() (input, output int) {
	b := s.journal.billedSoFar()
	return b.Input, b.Output
}

// ServeHTTP answers one request as the plan has it.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if strings.HasPrefix(r.URL.Path, inspectPrefix) {
		s.inspect(w, r)
		return
	}
	entry := s.journal.arrive(r)
	defer entry.depart()

	dialect := wire.DialectOf(r.URL.Path)
	q, refused := s.accept(w, r, dialect, entry)
	a := &reply{server: s, w: w, rc: http.NewResponseController(w), r: r, q: q, dialect: dialect, entry: entry}
	a.requestID = fmt.Sprintf("req_standin_%06d", entry.number())
	if refused != nil {
		entry.begin(Rejected, "", 0, a.requestID)
		a.fail(refused.status, refused.code, refused.message)
		return
	}
	d := s.script.decide(facts{
		now: entry.now(), path: r.URL.Path, model: q.model, header: r.Header, prompt: q.prompt,
		customID: r.Header.Get("x-custom-id"), sdkRetry: sdkRetry(r.Header), stream: q.stream, digest: string(entry.rec.digest[:]),
	})
	if d.step.RequestID != "" {
		a.requestID = d.step.RequestID
	}
	job := ""
	if d.named {
		job = d.job
	}
	entry.rule(d.rule)
	entry.begin(d.step.Kind, job, d.attempt, a.requestID)
	a.step = d.step
	a.play()
}
