package standin

import (
	"cmp"
	"iter"
	"maps"
	"net/http"
	"slices"

	"holdfast/standin/internal/answer"
	"holdfast/standin/internal/request"
	"holdfast/standin/internal/tape"
)

// find looks for the request on the tape. What the tape answers, the stand-in does not refuse, unless the key is bad.
func (a *reply) find(refusal *request.Refusal) *request.Refusal {
	if a.state.deck == nil || refusal != nil && refusal.Status == http.StatusUnauthorized {
		return refusal
	}
	found, ok := a.state.deck.Next(tape.Request{
		Method: a.r.Method, Path: a.r.URL.Path, Query: a.r.URL.RawQuery, Model: a.q.Model, Digest: a.entry.digest(),
	})
	if ok {
		a.recorded = found
		return nil
	}
	return cmp.Or(refusal, &request.Refusal{Status: http.StatusNotFound, Message: "The tape holds no exchange for this request"})
}

// speed is how fast the tape is played.
func (a *reply) speed() float64 { return a.state.plan.Tape.Speed }

// replay gives the recorded reply, byte for byte, unless the step changes it.
func (a *reply) replay() {
	if a.fault.meet != nil || a.fault.whole != nil || a.step.reframes() {
		if p, ok := a.recorded.PlayEvents(a.speed()); ok {
			a.wait(p.Before)
			a.stream(a.taped(p))
			a.endAs(p)
			return
		}
	}
	p := a.recorded.Play(a.speed())
	a.wait(cmp.Or(a.step.FirstToken, p.Before))
	if p.Status == 0 {
		p.After = 0
		a.endAs(p)
		return
	}
	if p.End == tape.Complete && (a.fault.whole != nil || a.compressed()) {
		a.whole(a.workOnTape())
		return
	}
	maps.Copy(a.w.Header(), p.HeaderAt(a.server.now()))
	if a.step.RequestID != "" {
		a.nameHeaders()
	}
	a.ownHeaders()
	a.w.WriteHeader(p.Status)
	a.entry.headers(p.Status, a.w.Header())
	a.bill(tokens{p.Tokens.Input, p.Tokens.Output})
	for _, piece := range p.Pieces {
		a.wait(piece.Wait)
		a.write(piece.Data)
	}
	a.endAs(p)
}

// fromTape settles what of the recording the reply is: of a fault that shapes an answer nothing, for a recording has
// its shape, and of one that comes instead not even the request id.
func (a *reply) fromTape() {
	switch {
	case a.recorded == nil || a.fault.instead != nil:
	case a.fault.shape != nil && a.fault.meet == nil && a.generates():
		a.recorded = nil
	case a.step.RequestID == "":
		a.requestID = cmp.Or(a.recorded.Header.Get("request-id"), a.recorded.Header.Get("x-request-id"), a.requestID)
	}
}

// endAs ends the reply as the recorded one has ended. Where the client had left, nobody knows what would have come.
func (a *reply) endAs(p tape.Playback) {
	a.wait(p.After)
	switch {
	case p.By == tape.Client:
		a.end(Silence)
	case p.End == tape.Cut:
		a.end(Chunk)
	case p.End == tape.Reset:
		a.end(RST)
	}
}

// reframes reports whether the step changes how the bytes of a stream are cut.
func (s Step) reframes() bool {
	return s.Lines != "" || s.Writes != "" || s.Between != "" || s.Gzip || s.FirstToken != 0 || s.Gap != 0
}

// taped is a recorded stream as the result of work.
func (a *reply) taped(p tape.Playback) result {
	contents := 0
	for _, e := range p.Events {
		if e.Part == tape.Content {
			contents++
		}
	}
	return result{
		status: p.Status, contentType: p.Header.Get("content-type"), header: p.HeaderAt(a.server.now()),
		usage: tokens{p.Tokens.Input, p.Tokens.Output}, events: a.tapedEvents(p, contents),
	}
}

// partOf is the part of an answer that a part of a recording is.
var partOf = [...]answer.Part{tape.Preamble: answer.Preamble, tape.Content: answer.Content, tape.Tail: answer.Tail, tape.Final: answer.Final}

// tapedEvents are the events of a recorded stream, at the times that were recorded where the step says nothing of
// them. The output billed grows with the content.
func (a *reply) tapedEvents(p tape.Playback, contents int) iter.Seq[timed] {
	return func(yield func(timed) bool) {
		seen := 0
		for _, e := range p.Events {
			wait := e.Wait
			if e.Part == tape.Content {
				if seen++; seen == 1 {
					wait = cmp.Or(a.step.FirstToken, wait)
				} else {
					wait = cmp.Or(a.step.Gap, wait)
				}
			}
			output := p.Tokens.Output
			if seen < contents {
				output = output * seen / contents
			}
			next := timed{Event: answer.Event{Name: e.Name, Data: slices.Clone(e.Text), Part: partOf[e.Part], Output: output}, wait: wait}
			if !yield(next) {
				return
			}
		}
	}
}

// workOnTape is a recorded reply as the result of work, without its content coding where that is known.
func (a *reply) workOnTape() result {
	p := a.recorded.Play(0)
	r := result{
		status: p.Status, contentType: p.Header.Get("content-type"), header: p.HeaderAt(a.server.now()),
		usage: tokens{p.Tokens.Input, p.Tokens.Output},
	}
	r.header.Del("content-length")
	body, ok := a.recorded.Plain()
	if ok {
		r.header.Del("content-encoding")
	} else { // one coding over another is more than a client can undo
		body, a.step.Gzip = a.recorded.Reply(), false
	}
	r.body = body
	return r
}
