// Package drill plays calls against failing upstreams in simulated time and checks what came of them. Hours of failure
// take milliseconds, and the same seed gives the same report.
//
// Nothing here copies the rules of a call: every attempt, wait and refusal is decided by the same [holdfast.Call] that
// production runs, and every failure is judged from the bytes and headers that a provider sends. A drill adds the clock,
// the upstream and the questions: how often was it asked, when did calls come back, who gave up, and was that right. What an
// answer of [Lab18] means for its job is decided by [turn.Course], and its tickets are opened by [once.Do].
//
// The drills are [Tutorial], [Interview], [FiveCalls], [Lab18], [Herd], [Outage] and [Plan]; [Find] finds one by its name. The
// first four reproduce published figures digit for digit. The last four also judge a policy of your own, and the last one
// by any plan of the stand-in.
package drill

import (
	"context"

	"holdfast"
)

// Options say what to play. The zero value is the published drill.
type Options struct {
	// Plan of faults for Lab18, as JSON or YAML. Nil: the published plan.
	Plan []byte
	// Out is the directory that Lab18 writes trace.jsonl and outcomes.json into; it is made if it is missing. Empty:
	// nothing is written.
	Out string
	// Traffic is what Plan plays. The zero value is a plan of the drill's own.
	Traffic Traffic
	// Policy returns the policy to judge in Lab18, Herd, Outage and Plan, with a breaker, pace and budget that have
	// counted nothing yet. Nil: the drill's own.
	Policy func() holdfast.Policy
	// Seed of all dice. 0: the drill's own, or the plan's.
	Seed uint64
	// Live makes Lab18 ask a real endpoint in real time; faults are still made here. It is called once per attempt
	// that the plan lets through, never concurrently. Nil: simulated.
	Live func(context.Context, LiveRequest) (LiveReply, error)
}

// Drill is one drill. It returns an error when it could not be played: a plan with mistakes, a directory that cannot be
// written, a context that ended. What did not come out as it should is in the report's checks instead.
type Drill func(context.Context, Options) (*Report, error)

// Entry is a drill with its name and what it shows.
type Entry struct {
	Name, About string
	Play        Drill
	// Judges tells that the drill takes Options.Policy.
	Judges bool
}

// All returns the drills in the order in which they are best met.
func All() []Entry {
	return []Entry{
		{"tutorial", "a demo that keeps working: two client rows, the wrapper, and its six tests", Tutorial, false},
		{"interview", "a retry wrapper and the questions asked about it, up to 200,000 items through a limit", Interview, false},
		{"five-calls", "five calls, their attempts, and a breaker that counts calls", FiveCalls, false},
		{"lab18", "a support desk's jobs under a plan of faults, with trace, outcomes and tickets", Lab18, true},
		{"herd", "5,000 clients that fail in the same second, and when they come back", Herd, true},
		{"outage", "an upstream that is down for a minute, and how much load retries add", Outage, true},
		{"plan", "a stand-in's plan of your own: faults, timeline, limits and latency against your policy", Plan, true},
	}
}

// Find returns the drill of that name.
func Find(name string) (Entry, bool) {
	for _, e := range All() {
		if e.Name == name {
			return e, true
		}
	}
	return Entry{}, false
}
