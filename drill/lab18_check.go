package drill

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// publishedLines are the jobs' lines as they were published.
var publishedLines = []string{
	"SHP-1001 completed attempts=1 elapsed 0.0s",
	"SHP-1002 completed attempts=2 elapsed 2.0s",
	"SHP-1003 completed attempts=3 elapsed 0.67s",
	"SHP-1004 completed attempts=2 elapsed 20.1s",
	"SHP-1005 failed attempts=1 elapsed 0.0s",
	"SHP-1006 completed attempts=2 elapsed 0.0s",
	"SHP-1007 completed attempts=2 elapsed 0.0s",
	"SHP-2001 deferred_circuit_open attempts=3 elapsed 0.74s",
	"SHP-2002 deferred_circuit_open attempts=0 elapsed 0.0s",
	"SHP-2001 completed attempts=1 elapsed 0.0s",
	"SHP-2002 completed attempts=1 elapsed 0.0s",
	"SHP-3001 deadline_exceeded attempts=2 elapsed 2.0s",
}

// checkPublished holds the run against the published figures: 19 checks.
func (l *lab) checkPublished(r *Report, trace []byte) {
	for i, want := range publishedLines {
		got := "no such line"
		if i < len(l.outcomes) {
			got = l.outcomes[i].line()
		}
		r.equal(fmt.Sprintf("job line %d", i+1), got, want)
	}
	r.equal("breaker transitions", strings.Join(l.transitions, ", "), "closed->open, open->half_open, half_open->closed")
	r.equal("trace events", len(l.lines), 30)
	c := l.counts()
	r.equal("errors, backoffs, openings, short circuits, deadlines, responses", fmt.Sprint(c[traceError], " ", c[traceBackoff], " ", c[traceOpened], " ", c[traceSkipped], " ", c[traceDeadline], " ", c[traceResponse]),
		"10 7 1 1 1 10")
	r.equal("tickets", strings.Join(l.keyed.ids(), " "), "TCK-0001 TCK-0002 TCK-0003 TCK-0004 TCK-0005 TCK-0006 TCK-0007 TCK-0008")
	posts := 0
	for _, t := range l.keyed.tickets {
		if t.Job == "SHP-1002" {
			posts = t.Posts
		}
	}
	r.equal("posts for the ticket of SHP-1002", posts, 2)
	r.equal("tickets without keys", len(l.plain.tickets), 9)
	l.checkTrace(r, trace)
}

// checkRules is for every other plan: what must hold whatever the faults are.
func (l *lab) checkRules(r *Report, trace []byte) {
	final := map[string]string{}
	completed := 0
	for _, o := range l.outcomes {
		final[o.Job] = o.Outcome
		if o.Outcome == jobCompleted {
			completed++
		}
	}
	open := 0
	for _, outcome := range final {
		if outcome == jobDeferred {
			open++
		}
	}
	r.equal("jobs with an outcome", len(final), len(l.plan.Jobs))
	r.equal("jobs still deferred", open, 0)
	r.equal("tickets, one for each completed job", len(l.keyed.tickets), completed)
	lost := 0
	for _, job := range l.plan.LostAcks {
		if final[job] == jobCompleted {
			lost++
		}
	}
	r.equal("tickets that keys prevented", len(l.plain.tickets)-len(l.keyed.tickets), lost)
	attempts, c := 0, l.counts()
	for _, o := range l.outcomes {
		attempts += o.Attempts
	}
	r.equal("attempts in the trace", c[traceError]+c[traceResponse], attempts)
	if l.live != nil {
		r.that("the endpoint answers", l.answers > 0, l.answers, "at least once")
	}
	l.checkTrace(r, trace)
}

// traceKeys are the only keys that a line of the trace may have; none of them holds what was asked or answered.
var traceKeys = []string{"at_s", "job", "event", "attempt", "status", "type", "rule", "request_id", "wait_s", "stop_reason"}

func (l *lab) checkTrace(r *Report, trace []byte) {
	wrong, n := 0, 0
	for text := range bytes.Lines(trace) {
		n++
		var line map[string]any
		if json.Unmarshal(text, &line) != nil || !slices.Contains(traceKinds, fmt.Sprint(line["event"])) {
			wrong++
			continue
		}
		for key := range line {
			if !slices.Contains(traceKeys, key) {
				wrong++
			}
		}
	}
	r.that("trace lines are one object each, without a prompt or an answer", wrong == 0 && n == len(l.lines), fmt.Sprintf("%d of %d", n-wrong, n), "all of them")
}
