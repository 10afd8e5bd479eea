// Package failover_test is the failover benchmark: `make failover` prints its table.
package failover_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing/synctest"
	"time"

	"holdfast/standin"
)

// The failover benchmark: 16 faults of a primary model whose fallback model is healthy, under the policy that the
// published comparison of gateways gives each of them: two retries, 30 seconds, one fallback model.
//
// A call has passed when its caller saw one complete answer, exactly once, whosever it is, and
//   - no word of another answer is in it, and none is there twice;
//   - the tokens in the answer are those that the upstream billed for it, and the gateway's own record says the same;
//   - the upstream was asked no more often than the policy allows, and never before a wait that it had named was over;
//   - no request is left open at the upstream.
//
// Where that failed, the caller has to have been told: by an error status, an error event or a broken transfer. Such a
// call has not passed, but it is honest. Any other is a silent failure, which no row of the gateway may have.
//
// "30 seconds" is the timer for the first content: an answer that has begun may well take longer than that in all. Every
// fault is met by a streamed call; those that are no faults of streams by a call without a stream, too, and both have to
// pass.

// fault is a row of the benchmark.
type fault struct {
	name string
	// why says what is right, where that is not plain from the name.
	why  string
	plan standin.Plan // of the primary; its Reply is set by the runner
	// plain tells that the fault befalls calls without a stream as well.
	plain bool
	// old makes the fallback a model that takes the beginning of an answer and would go on from it.
	old bool
	// hopeless tells that live delivery cannot pass: what was handed over cannot be taken back, and joining two
	// answers is no answer. The caller has to be told.
	hopeless bool
	// also holds what this row asks beyond a pass.
	also func(w *world, got heard) string
	// run replaces the one call.
	run func(w *world, c caller) result
}

var faults = []fault{
	{
		name:  "429 with retry-after, once",
		why:   "the wait that the server names is kept; then the primary answers",
		plan:  standin.Failing(1, http.StatusTooManyRequests, "2"),
		plain: true,
		also:  from("primary", 2, 0),
	},
	{
		name:  "429 for ever",
		why:   "the fallback answers, after at most three attempts at the primary, none of them early",
		plan:  standin.Failing(-1, http.StatusTooManyRequests, "2"),
		plain: true,
		also:  from("fallback", 3, 1),
	},
	{
		name:  "500 once",
		plan:  standin.Failing(1, http.StatusInternalServerError, ""),
		plain: true,
		also:  from("primary", 2, 0),
	},
	{
		name:  "503 for ever",
		plan:  standin.Failing(-1, http.StatusServiceUnavailable, ""),
		plain: true,
		also:  from("fallback", 3, 1),
	},
	{
		name:  "reset before headers",
		why:   "every connection to the primary is reset when the request has been read",
		plan:  always(standin.Step{Kind: standin.Reset}),
		plain: true,
		also:  from("fallback", 3, 1),
	},
	{
		name: "silence for 120 s",
		why:  "the primary would answer after two minutes; the timer of 30 s has to give it up before, and close what it left",
		plan: always(standin.Step{Kind: standin.OK, Delay: 2 * time.Minute}),
		also: func(w *world, got heard) string {
			if got.took > 95*time.Second { // three attempts of 30 s, and waits
				return fmt.Sprintf("it took %v", got.took)
			}
			return from("fallback", 3, 1)(w, got)
		},
	},
	{
		name: "first token after 20 s",
		why:  "slow is not broken: the primary answers, is asked once, and nobody else is",
		plan: always(standin.Step{Kind: standin.OK, FirstToken: 20 * time.Second}),
		also: from("primary", 1, 0),
	},
	{
		name:     "cut after 40 of 60 tokens",
		why:      "every stream of the primary breaks off there; a fallback that goes on from the beginning of an answer is there to tempt",
		plan:     always(standin.Step{Kind: standin.Cut, How: standin.Chunk, After: 40}),
		old:      true,
		hopeless: true,
		also:     from("fallback", 3, 1),
	},
	{
		name: "stream silent for 30 s",
		why:  "it goes on then: waiting is right, and asking anew would be paid twice",
		plan: always(standin.Step{Kind: standin.Stall, For: 30 * time.Second, After: 20}),
		also: from("primary", 1, 0),
	},
	{
		name:     "one malformed event",
		why:      "it comes in every stream of the primary, among complete ones; nobody can know what was in it, and the SDKs fail at it",
		plan:     always(standin.Step{Kind: standin.Malformed, After: 10}),
		hopeless: true,
		also:     from("fallback", 3, 1),
	},
	{
		name: "missing terminator",
		why:  "all that matters has come, the stop reason too: asking anew would be paid twice",
		plan: always(standin.Step{Kind: standin.Cut, At: standin.Stop}),
		also: from("primary", 1, 0),
	},
	{
		name:  "context length",
		why:   "no retry makes a prompt shorter: the primary is asked once, then a model with another window",
		plan:  overflowing(),
		plain: true,
		also:  from("fallback", 1, 1),
	},
	{
		name:  "content filter",
		why:   "the route names the fallback for refusals: it is asked once, and its answer is the answer",
		plan:  always(standin.Step{Kind: standin.Refusal}),
		plain: true,
		also:  from("fallback", 1, 1),
	},
	{
		name:     "cut, fallback rejects prefill",
		why:      "as above, and a gateway that lets the fallback go on from the fragment gets a 400 from it",
		plan:     always(standin.Step{Kind: standin.Cut, How: standin.Chunk, After: 40}),
		hopeless: true,
		also:     from("fallback", 3, 1),
	},
	{
		name: "60 s outage under 20 calls",
		why:  "all are answered, the primary is asked no more often than there are calls, and works again five minutes later",
		plan: standin.Plan{Timeline: []standin.Incident{{To: time.Minute, Step: standin.Step{Kind: standin.HTTP, Status: http.StatusServiceUnavailable}}}},
		run:  outage,
	},
	{
		name:  "accounting of a fallback",
		why:   "headers, record and answer name the fallback, and count its tokens and nobody else's",
		plan:  standin.Failing(-1, standin529, ""),
		plain: true,
		also:  accounted,
	},
}

const standin529 = 529

func always(s standin.Step) standin.Plan {
	s.Times = -1
	return standin.Plan{Steps: []standin.Step{s}}
}

// overflowing is the error of each dialect for a prompt that is too long.
func overflowing() standin.Plan {
	rule := func(path string, s standin.Step) standin.Rule {
		s.Kind, s.Status = standin.HTTP, http.StatusBadRequest
		return standin.Rule{Match: standin.Match{Path: path}, Then: s}
	}
	return standin.Plan{Rules: []standin.Rule{
		rule("/v1/messages", standin.Step{Message: "prompt is too long: 210000 tokens > 200000 maximum"}),
		rule("/v1/chat/completions", standin.Step{Code: "context_length_exceeded", Message: "This model's maximum context length is 128000 tokens."}),
	}}
}

// from says whose answer is right, and how often at most each model is asked for it.
func from(whose string, primary, fallback int) func(*world, heard) string {
	return func(w *world, got heard) string {
		asked, also := len(w.primary.Journal()), len(w.fallback.Journal())
		switch {
		case got.text != w.text(whose):
			return "the answer is not that of the " + whose
		case asked > primary || also > fallback:
			return fmt.Sprintf("%d requests to the primary, %d to the fallback", asked, also)
		}
		return ""
	}
}

// accounted wants headers and record to say whose answer it is.
func accounted(w *world, got heard) string {
	if fault := from("fallback", 3, 1)(w, got); fault != "" {
		return fault
	}
	in, out := w.fallback.Billed()
	paid, _ := w.primary.Billed()
	switch {
	case got.model != w.models[1]:
		return "the answer says that it is from " + got.model
	case paid != 0 || got.input != in || got.output != out:
		return fmt.Sprintf("%d and %d tokens in the answer, %d and %d billed", got.input, got.output, in, out)
	case got.header.Get("holdfast-source") != "fallback":
		return "no header says that it is a fallback's"
	}
	return w.recorded(got, "fallback")
}

// outage is a call every three seconds, the first at the beginning of an outage of a minute, and one more long after it.
func outage(w *world, c caller) result {
	const calls, every = 20, 3 * time.Second
	answers := make([]heard, calls)
	done := make(chan struct{})
	for i := range calls {
		go func() {
			time.Sleep(time.Duration(i) * every)
			answers[i] = c.call(w.ctx, w.client, w.url)
			done <- struct{}{}
		}()
	}
	for range calls {
		<-done
	}
	var lost []string
	for _, got := range answers {
		if r := w.judge(c, got); r.state != passed {
			lost = append(lost, r.why)
		}
	}
	during := len(w.primary.Journal())
	time.Sleep(5 * time.Minute)
	after := c.call(w.ctx, w.client, w.url)
	synctest.Wait()
	switch {
	case len(lost) > 0:
		r := result{told, fmt.Sprintf("%d of %d calls lost, %s", len(lost), calls, lost[0])}
		if strings.Contains(strings.Join(lost, ","), quiet) {
			r.state = failed
		}
		return r
	case during > calls:
		return result{failed, fmt.Sprintf("%d requests to the primary for %d calls", during, calls)}
	case after.text != w.text("primary"):
		return result{failed, "the primary is not asked again after the outage"}
	}
	return result{state: passed}
}
