package standin

import (
	"iter"
	"net/http"
	"time"

	"holdfast/standin/internal/answer"
	"holdfast/standin/internal/request"
)

// result is what the work of an endpoint gives when nothing is in the way.
type result struct {
	status      int
	contentType string
	body        []byte
	lines       iter.Seq[[]byte] // in place of body
	usage       tokens           // billed when the work is done

	answer *answer.Answer // nil where no model answers
	shape  answer.Shape

	events iter.Seq[timed] // of a stream
	header http.Header     // further headers
}

// gathered returns the result with its lines as one body.
func (r result) gathered() result {
	if r.lines != nil {
		for line := range r.lines {
			r.body = append(r.body, line...)
		}
		r.lines = nil
	}
	return r
}

// timed is an event and the time before it.
type timed struct {
	answer.Event
	wait time.Duration
}

// work does what the request asks for, with all that it changes, and returns what to send.
func (a *reply) work() result {
	if a.recorded != nil {
		return a.workOnTape()
	}
	switch {
	case a.generates():
		return a.generate()
	case a.q.Endpoint == request.CountTokens:
		return result{status: http.StatusOK, contentType: "application/json", body: answer.CountTokens(a.q)}
	}
	return a.resource()
}

// generates reports whether a model answers.
func (a *reply) generates() bool {
	return a.q.Endpoint == request.Messages || a.q.Endpoint == request.ChatCompletions || a.q.Endpoint == request.Responses
}

// shapeOf is the form of the answers of an endpoint.
func shapeOf(e request.Endpoint) answer.Shape {
	switch e {
	case request.ChatCompletions:
		return answer.ChatCompletions
	case request.Responses:
		return answer.Responses
	default:
		return answer.Messages
	}
}

// generate makes the answer of a model.
func (a *reply) generate() result {
	full := newAnswer(a.entry.number(), a.q, a.state.plan.Reply, a.step, a.fault)
	r := result{
		status: http.StatusOK, contentType: "application/json", answer: &full, shape: shapeOf(a.q.Endpoint),
		usage: tokens{Input: full.Usage.Input, Output: full.Usage.Output},
	}
	switch {
	case full.Stop == answer.Refusal:
		r.usage = tokens{} // a refusal before any output is not billed
	case len(full.Hops) > 0:
		r.usage.Input *= len(full.Hops) // each model has read it
	}
	r.events = a.paced(full.Events(r.shape))
	if !a.q.Stream || a.fault.instead != nil {
		r.body = full.JSON(r.shape)
	}
	return r
}

// paced puts the drawn times between the events of an answer.
func (a *reply) paced(events iter.Seq[answer.Event]) iter.Seq[timed] {
	return func(yield func(timed) bool) {
		begun := false
		for e := range events {
			next := timed{Event: e}
			switch {
			case e.Part == answer.Preamble:
			case !begun: // also of an answer without content, which takes as long to come
				begun, next.wait = true, a.first
			case e.Part == answer.Content:
				next.wait = a.tokens.next()
			}
			if !yield(next) {
				return
			}
		}
	}
}

// newAnswer makes the answer to a request, shaped by a step and its fault.
func newAnswer(number int, q request.Request, text string, step Step, f *fault) answer.Answer {
	o := answer.Options{Number: number, Text: text}
	if step.After > 0 {
		o.Events = step.After + 1
	}
	if f.shape != nil {
		f.shape(step, &o)
	}
	return answer.New(q, o)
}
