package shipment_test

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"holdfast/once"
	"holdfast/standin"
	"holdfast/turn"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// result is what a turn comes to: its outcome, the requests that it takes itself, and those that arrive.
type result struct {
	outcome         turn.Outcome
	steps, requests int
}

var (
	atOnce     = result{turn.Completed, 1, 1}
	repeated   = result{turn.Completed, 1, 2}
	followed   = result{turn.Completed, 2, 2}
	givenUp    = result{turn.Unfinished, 1, 4}
	notWorthIt = result{turn.Unfinished, 1, 1}
)

// met is a fault of the stand-in, and what comes of it: when the first request alone meets it, and when all do.
type met struct {
	step         standin.Step
	first, every result
}

// ends has a row for every fault there is.
var ends = map[standin.Kind][]met{
	standin.OK: {{first: atOnce, every: atOnce}},
	standin.HTTP: {
		{standin.Step{Status: 429, RetryAfter: "1"}, repeated, givenUp},
		{standin.Step{Status: 500}, repeated, givenUp},
		{standin.Step{Status: 503}, repeated, givenUp},
		{standin.Step{Status: 529}, repeated, givenUp},
		{standin.Step{Status: 400}, notWorthIt, notWorthIt},
		{standin.Step{Status: 401}, notWorthIt, notWorthIt},
		{standin.Step{Status: 413}, notWorthIt, notWorthIt},
	},
	standin.SpendCap:    {{first: notWorthIt, every: notWorthIt}},
	standin.RampLimit:   {{first: repeated, every: result{turn.Unfinished, 1, 2}}}, // it names 5 s, twice is too long
	standin.Empty:       {{first: repeated, every: givenUp}},
	standin.HTML:        {{first: repeated, every: givenUp}},
	standin.Timeout:     {{first: repeated, every: givenUp}},
	standin.Reset:       {{first: repeated, every: givenUp}},
	standin.Lost:        {{first: repeated, every: givenUp}, {standin.Step{How: standin.Silence}, repeated, givenUp}},
	standin.SlowHeaders: {{first: repeated, every: givenUp}},
	standin.Error:       {{first: repeated, every: givenUp}},
	standin.Cut:         {{first: repeated, every: givenUp}},
	standin.Stall:       {{first: repeated, every: givenUp}},
	standin.Malformed:   {{first: repeated, every: givenUp}},
	standin.Duplicate:   {{first: atOnce, every: atOnce}},
	standin.Nameless:    {{first: atOnce, every: atOnce}},
	standin.Refusal: {{standin.Step{Category: "cyber", Explanation: "no"}, followed,
		result{turn.HumanReview, 2, 2}}},
	standin.Truncation:    {{first: followed, every: result{turn.Truncated, 6, 6}}}, // 60, 240, 960, 3840, 15360, 21333
	standin.HalfTool:      {{first: followed, every: result{turn.Truncated, 6, 6}}},
	standin.Pause:         {{first: followed, every: result{turn.Paused, 11, 11}}},                      // B165, B166: no note of a pause
	standin.ContextWindow: {{first: result{turn.Truncated, 1, 1}, every: result{turn.Truncated, 1, 1}}}, // B169: and never completed
	standin.StopReason:    {{first: result{turn.Unknown, 1, 1}, every: result{turn.Unknown, 1, 1}}},     // B168: nobody acts on it
	standin.Refused:       {{first: result{turn.Completed, 1, 1}, every: result{turn.Unfinished, 1, 0}}},
	standin.Hang:          {{first: result{turn.Completed, 1, 1}, every: result{turn.Unfinished, 1, 0}}},
}

// inAStream are the ends that depend on where in a stream a fault is.
func inAStream(kind standin.Kind, at standin.Stage, m met) met {
	switch {
	case at == standin.Stop && kind != standin.Error && kind != standin.Malformed: // nothing is missing but the event that says so
		m.first, m.every = atOnce, atOnce
	case kind == standin.Nameless, // which the SDK drops without a word: the stream looks cut, and is paid for in full
		kind == standin.Duplicate && at == standin.First: // two beginnings, and nobody knows which is the answer's
		m.first, m.every = notWorthIt, notWorthIt
	}
	return m
}

// Whatever the API does: exactly one ticket for a note that is whole, none for one that is not, an outcome for every
// shipment, and a bill that says what was billed.
func TestEveryFaultOfTheStandIn(t *testing.T) {
	for _, f := range standin.Faults() {
		rows, known := ends[f.Kind]
		if !known {
			t.Errorf("nobody says what becomes of a shipment that meets %s", f.Kind)
		}
		for _, row := range rows {
			row.step.Kind = f.Kind
			t.Run(name(row.step)+"/whole", func(t *testing.T) { meet(t, row, false) })
			stages := []standin.Stage{""}
			if slices.Contains(f.Fields, "at") {
				stages = []standin.Stage{standin.First, standin.Preamble, standin.Content, standin.Stop}
			}
			for _, at := range stages {
				streamed := inAStream(f.Kind, at, row)
				streamed.step.At = at
				if at == standin.Content {
					streamed.step.After = 3
				}
				t.Run(name(streamed.step)+"/stream", func(t *testing.T) { meet(t, streamed, true) })
			}
		}
	}
}

func name(s standin.Step) string {
	text := string(s.Kind)
	if s.Status != 0 {
		text += fmt.Sprint(" ", s.Status)
	}
	return text + string(s.How) + string(s.At)
}

// meet handles a shipment that meets a fault, once and always, and another one that meets none.
func meet(t *testing.T, m met, stream bool) {
	for _, times := range []int{1, -1} {
		want := m.first
		if times < 0 {
			want = m.every
		}
		inBubble(t, fmt.Sprint("times ", times), func(t *testing.T) {
			step := m.step
			step.Times = times
			plan := standin.Plan{}
			if step.Kind != standin.Refused && step.Kind != standin.Hang {
				plan.Jobs = map[string][]standin.Step{"SHP-1.": {step}}
			}
			o := officeOf(plan)
			defer o.close()
			c := newClerk(&unreachable{o, step, o.api()}, o.far(), once.NewMemory(), time.Now)
			c.turns.Stream = stream
			s := shipment{Number: "SHP-1"}
			err := c.handle(t.Context(), &s)
			if got := (result{s.Answer.Outcome, len(s.Answer.Steps), len(o.upstream.Journal())}); got != want {
				t.Errorf("%+v, want %+v: %v", got, want, err)
			}
			o.audit(t, &s, err, &c.turns)
			standin.Expect(t, o.upstream.Journal(), standin.WaitsHonoured(0))

			if times < 0 {
				return
			}
			// The fault is over: whoever handles the shipment again completes it, and never opens a second ticket.
			first := s.Ticket
			if err := c.handle(t.Context(), &s); err != nil || first != "" && s.Ticket != first || len(o.of("SHP-1")) != 1 || o.posted("SHP-1") != 1 {
				t.Errorf("once more: %v, %q after %q, %d posts, tickets %+v", err, s.Ticket, first, o.posted("SHP-1"), o.of("SHP-1"))
			}
		})
	}
}

func inBubble(t *testing.T, name string, f func(*testing.T)) {
	t.Run(name, func(t *testing.T) { synctest.Test(t, f) })
}

// unreachable is a way to an API that cannot be connected to, at first or for ever.
type unreachable struct {
	office *office
	step   standin.Step
	base   http.RoundTripper
}

func (u *unreachable) RoundTrip(req *http.Request) (*http.Response, error) {
	switch u.step.Kind {
	case standin.Refused:
		u.office.network.Refuse("api.test")
	case standin.Hang:
		u.office.network.Hang("api.test")
	default:
		return u.base.RoundTrip(req)
	}
	resp, err := u.base.RoundTrip(req)
	if u.step.Times > 0 {
		u.step.Kind = standin.OK
		u.office.network.Restore("api.test")
	}
	return resp, err
}

// audit holds a shipment against what the far sides saw.
func (o *office) audit(t *testing.T, s *shipment, err error, p *turn.Policy) {
	t.Helper()
	synctest.Wait()
	tickets := o.of(s.Number)
	var failed interface{ Hint() string }
	switch {
	case err == nil:
		if len(tickets) != 1 || tickets[0].ID != s.Ticket || tickets[0].Note != s.Note || s.Note == "" || !s.Answer.Outcome.Done() {
			t.Errorf("%v, %q, but the tickets are %+v", s.Answer.Outcome, s.Ticket, tickets)
		}
	case len(tickets) > 0 || s.Ticket != "" || s.Note != "" || s.Answer.Outcome.Done():
		t.Errorf("%v, but there are %+v", err, tickets)
	case !errors.As(err, &failed) || failed.Hint() == "":
		t.Errorf("%v says nothing that could be done", err)
	}
	if n := len(s.Answer.Steps); n == 0 || n > p.MaxRequests() {
		t.Errorf("%d requests, at most %d", n, p.MaxRequests())
	}
	o.auditBill(t, s)
}

// auditBill holds every answer's usage against what was billed for it. Beyond them only attempts are billed that brought no
// answer, which the transport repeated or gave up.
func (o *office) auditBill(t *testing.T, s *shipment) {
	t.Helper()
	steps := map[string]turn.Step{}
	for _, step := range s.Answer.Steps {
		steps[step.RequestID] = step
	}
	unanswered := turn.Usage{}
	for _, e := range o.upstream.Journal() {
		step := steps[e.RequestID]
		switch cost := (turn.Usage{Input: int64(e.Input), Output: int64(e.Output)}); {
		case step.StopReason == "":
			unanswered.Add(cost)
			if e.Delivered() && !step.Usage.Partial {
				t.Errorf("request %s brought an answer that the turn does not know", e.RequestID)
			}
			unanswered.Input, unanswered.Output = unanswered.Input-step.Usage.Input, unanswered.Output-step.Usage.Output
		case step.Usage != cost:
			t.Errorf("step %+v, billed %+v", step, cost)
		}
	}
	said, total := s.Answer.Usage, o.upstream.Ledger().Total
	if int64(total.Input) != said.Input+unanswered.Input || int64(total.Output) != said.Output+unanswered.Output || unanswered.Output < 0 {
		t.Errorf("billed are %d and %d tokens; the turn says %+v, and attempts without an answer took %+v", total.Input, total.Output, said, unanswered)
	}
}
