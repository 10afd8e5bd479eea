package standin

import (
	"fmt"
	"slices"
	"time"
)

// Report judges a client by what it did to the stand-in. It is computed from a
// Journal alone: what the client had to put up with is in there, and what it
// made of that.
type Report struct {
	Requests int           `json:"requests"`
	Open     int           `json:"open"`     // requests whose reply has not ended
	Calls    int           `json:"calls"`    // what the requests were attempts at; see Account. Reading with GET is no call
	Answered int           `json:"answered"` // calls with a whole answer
	Span     time.Duration `json:"span_ns"`  // from the first arrival to the last departure

	AttemptsMean float64 `json:"attempts_mean"` // for each call
	AttemptsMax  int     `json:"attempts_max"`

	WaitsAsked    int `json:"waits_asked"`    // replies that asked for a wait and saw another attempt
	WaitsHonoured int `json:"waits_honoured"` // those whose next attempt was not early

	TokensBilled    int     `json:"tokens_billed"`
	TokensDelivered int     `json:"tokens_delivered"` // once for each call, of a whole answer
	Efficiency      float64 `json:"efficiency"`       // delivered of billed; 1 when nothing is billed
	PaidTwice       Twice   `json:"paid_twice"`

	// Limits are what was made of the rate limits. Empty when there are none, and
	// in a report on a journal alone.
	Limits []LimitUse `json:"limits,omitempty"`

	// Lines are the judgements, always the same ones in the same order.
	Lines []Line `json:"lines"`
}

// Line is one judgement.
type Line struct {
	Name    string  `json:"name"`
	Verdict Verdict `json:"verdict"`
	// Found is what was seen, as a sentence.
	Found string `json:"found"`
	// Hint says what to do about a warning, or how to put the client to the test.
	Hint string `json:"hint,omitempty"`
	// Exchanges are the numbers of those that the warning is about.
	Exchanges []int `json:"exchanges,omitempty"`
}

// Verdict is how a client stood up to one thing.
type Verdict string

// The verdicts.
const (
	Pass Verdict = "PASS"
	Warn Verdict = "WARN"
	// Untested is the verdict on what had no occasion to go wrong.
	Untested Verdict = "-"
)

// Verdict is Warn when one of the lines is, Pass when none is and one passes,
// else Untested.
func (r Report) Verdict() Verdict {
	verdict := Untested
	for _, line := range r.Lines {
		switch line.Verdict {
		case Warn:
			return Warn
		case Pass:
			verdict = Pass
		}
	}
	return verdict
}

// Report judges the client that the journal is about. Whoever knows what was made
// of the rate limits can add it; Server.Report does.
func (j Journal) Report(limits ...LimitUse) Report {
	e := newEvidence(j)
	r := Report{Requests: len(j), Calls: len(e.calls), Efficiency: 1, Limits: limits}
	e.count(&r)
	for _, judge := range judges {
		r.Lines = append(r.Lines, judge(e, r))
	}
	return r
}

// judges are in the order of the lines.
var judges = []func(evidence, Report) Line{
	judgeAttempts, judgeLayers, judgeWaits, judgeTerminal, judgeSpendCaps, judgeAdvice,
	judgePayment, judgeCreation, judgeEfficiency, judgePatience, judgeRecovery, judgeLimits,
}

// evidence is a journal in the order that the judges want.
type evidence struct {
	journal Journal
	calls   []*work
	retries []retry
	waits   []wait // that saw another attempt
}

// retry is an attempt and the one before it, which had ended without an answer.
type retry struct{ failed, next *Exchange }

func newEvidence(j Journal) evidence {
	e := evidence{journal: j}
	works := j.works()
	e.waits = slices.DeleteFunc(j.waits(works, clockTolerance), func(w wait) bool { return w.next == nil })
	for _, w := range works {
		if !w.isCall() {
			continue
		}
		e.calls = append(e.calls, w)
		for n, i := range w.attempts[1:] {
			failed, next := &j[w.attempts[n]], &j[i]
			if !failed.Open() && !failed.Delivered() && !failed.Departed.After(next.Arrived) {
				e.retries = append(e.retries, retry{failed, next})
			}
		}
	}
	return e
}

// count fills in the figures.
func (e evidence) count(r *Report) {
	attempts := 0
	for _, w := range e.calls {
		attempts += len(w.attempts)
		r.AttemptsMax = max(r.AttemptsMax, len(w.attempts))
		account := w.account(e.journal)
		r.PaidTwice.Attempts += account.PaidTwice.Attempts
		r.PaidTwice.Input += account.PaidTwice.Input
		r.PaidTwice.Output += account.PaidTwice.Output
		r.TokensBilled += account.Input + account.Output
		if account.Delivered > 0 {
			r.Answered++
			r.TokensDelivered += w.delivered(e.journal)
		}
	}
	if r.Calls > 0 {
		r.AttemptsMean = float64(attempts) / float64(r.Calls)
	}
	if r.TokensBilled > 0 {
		r.Efficiency = float64(r.TokensDelivered) / float64(r.TokensBilled)
	}
	r.WaitsAsked = len(e.waits)
	for _, w := range e.waits {
		if !w.early {
			r.WaitsHonoured++
		}
	}
	var last time.Time
	for _, x := range e.journal {
		if x.Open() {
			r.Open++
		}
		for _, t := range []time.Time{x.Arrived, x.Departed} {
			if t.After(last) {
				last = t
			}
		}
	}
	if len(e.journal) > 0 {
		r.Span = last.Sub(e.journal[0].Arrived)
	}
}

// delivered is the bill of the first attempt that brought the whole answer.
func (w *work) delivered(j Journal) int {
	for _, i := range w.attempts {
		if j[i].Delivered() {
			return j[i].Input + j[i].Output
		}
	}
	return 0
}

func pass(name, format string, args ...any) Line {
	return Line{Name: name, Verdict: Pass, Found: fmt.Sprintf(format, args...)}
}

// untested says what would be needed for a judgement.
func untested(name, found, hint string) Line {
	return Line{Name: name, Verdict: Untested, Found: found, Hint: hint}
}
