package standin

import (
	"errors"
	"net/http"
	"strconv"
	"time"
	"unicode/utf8"

	"holdfast/internal/sse"
	"holdfast/internal/wire"
)

const webPage = "<!DOCTYPE html>\n<html><head><title>Welcome</title></head><body><h1>It works!</h1></body></html>\n"

// reply is one reply being given. Its methods do not return when the exchange
// has ended early: they end the handler with http.ErrAbortHandler.
type reply struct {
	server    *Server
	w         http.ResponseWriter
	rc        *http.ResponseController
	r         *http.Request
	q         request
	dialect   wire.Dialect
	entry     *entry
	requestID string
	step      Step
}

// play gives the reply that the step asks for.
func (a *reply) play() {
	a.wait(a.step.Delay)
	full := newAnswer(a.entry.number(), a.q, a.step, a.server.plan.Reply)
	switch a.step.Kind {
	case HTTP:
		a.failAsTold()
	case Timeout:
		a.entry.bill(full.usage)
		a.hang()
	case Reset:
		a.entry.bill(full.usage)
		a.reset()
	case Empty:
		a.send(http.StatusOK, "application/json", nil)
	case HTML:
		a.send(http.StatusOK, "text/html; charset=utf-8", []byte(webPage))
	default:
		if a.q.stream {
			a.stream(full)
		} else {
			a.whole(full)
		}
	}
}

// failAsTold gives the error, or the body, of an http step.
func (a *reply) failAsTold() {
	if a.step.RetryAfter != "" {
		a.w.Header().Set("retry-after", a.step.RetryAfter)
	}
	if a.step.Body == "" && a.step.ContentType == "" {
		a.send(a.step.Status, "application/json", a.errorBody())
		return
	}
	contentType := a.step.ContentType
	if contentType == "" {
		contentType = "application/json"
	}
	a.send(a.step.Status, contentType, []byte(a.step.Body))
}

// fail gives an error that no step has asked for.
func (a *reply) fail(status int, code, message string) {
	a.step = Step{Status: status, Code: code, Message: message}
	a.failAsTold()
}

// errorBody is the error of the step in the dialect of the request.
func (a *reply) errorBody() []byte {
	a.entry.code(a.step.Code)
	dialect, typ, message := a.dialect, a.step.Type, a.step.Message
	if dialect == wire.DialectUnknown {
		dialect = wire.DialectAnthropic
	}
	if typ == "" {
		typ = wire.ErrorType(dialect, a.step.Status)
	}
	if message == "" {
		message = messageOf(a.step.Status)
	}
	return wire.ErrorBody(dialect, typ, a.step.Code, message, a.requestID)
}

func messageOf(status int) string {
	switch status {
	case http.StatusTooManyRequests:
		return "This request would exceed your rate limit"
	case 529:
		return "Overloaded"
	}
	if text := http.StatusText(status); text != "" {
		return text
	}
	return "Error"
}

// whole gives the answer as one JSON body, or what the step makes of it.
func (a *reply) whole(full answer) {
	body := full.anthropicJSON()
	if a.dialect == wire.DialectOpenAI {
		body = full.openAIJSON()
	}
	switch a.step.Kind {
	case Error:
		body = a.errorBody()
	case Refusal:
	case Cut:
		a.entry.bill(full.usage)
		a.cutBody(body)
		return
	default:
		a.entry.bill(full.usage)
	}
	a.send(http.StatusOK, "application/json", body)
}

// cutBody sends the first half of the body, or at the first stage none of it.
func (a *reply) cutBody(body []byte) {
	sent := body[:len(body)/2]
	if a.step.At == First {
		sent = nil
	}
	length := len(body)
	if a.step.How == Clean {
		length = -1 // a wrong length would show that something is missing
	}
	a.start(http.StatusOK, "application/json", length)
	a.write(sent)
	a.end(a.step.How)
}

// stream gives the answer as events, up to the place of the fault.
func (a *reply) stream(full answer) {
	events := full.anthropicEvents()
	if a.dialect == wire.DialectOpenAI {
		events = full.openAIEvents()
	}
	last := len(events)
	if a.step.Kind == Cut || a.step.Kind == Error {
		last = position(events, a.step)
	}
	a.start(http.StatusOK, "text/event-stream; charset=utf-8", -1)
	a.write(nil)
	var frame []byte
	billed, runes, contents := tokens{Input: full.usage.Input}, 0, 0
	for _, e := range events[:last] {
		if e.part == content {
			if contents++; contents > 1 {
				a.wait(a.step.Gap)
			}
			runes += utf8.RuneCountInString(e.text)
			billed.Output = tokensOf(runes)
		}
		if e.part >= tail {
			billed.Output = full.usage.Output
		}
		if full.ending != declined {
			a.entry.bill(billed)
		}
		frame = sse.Append(frame[:0], e.name, e.data)
		a.write(frame)
	}
	switch a.step.Kind {
	case Error:
		name := "error"
		if a.dialect == wire.DialectOpenAI {
			name = ""
		}
		a.write(sse.Append(nil, name, a.errorBody()))
	case Cut:
		if a.step.Torn != "" {
			a.write(torn(events[last]))
		}
		a.end(a.step.How)
	}
}

// torn is the frame of an event up to the middle of its data.
func torn(e event) []byte {
	frame := sse.Append(nil, e.name, e.data)
	return frame[:len(frame)-len("\n\n")-(len(e.data)+1)/2]
}

// send gives a complete reply.
func (a *reply) send(status int, contentType string, body []byte) {
	length := len(body)
	if status == http.StatusNoContent || status == http.StatusNotModified {
		body, length = nil, -1 // these have none by definition
	}
	a.start(status, contentType, length)
	a.write(body)
}

// start sends the headers. length is that of the body; negative: not known.
func (a *reply) start(status int, contentType string, length int) {
	h := a.w.Header()
	h.Set("content-type", contentType)
	h.Set("request-id", a.requestID)
	if a.dialect == wire.DialectOpenAI {
		h.Set("x-request-id", a.requestID)
	} else {
		h.Set("anthropic-organization-id", organization)
	}
	if length >= 0 {
		h.Set("content-length", strconv.Itoa(length))
	}
	for name, values := range a.step.Header {
		h[http.CanonicalHeaderKey(name)] = values
	}
	a.w.WriteHeader(status)
	a.entry.headers(status, a.w.Header())
}

// write sends b at once, with the headers if they are still waiting.
func (a *reply) write(b []byte) {
	a.stillThere()
	n, err := a.w.Write(b)
	a.entry.sent(n)
	if err == nil {
		err = a.rc.Flush()
	}
	if err != nil && !errors.Is(err, errors.ErrUnsupported) {
		a.abort(Client)
	}
}

// stillThere ends the exchange when the client has left.
func (a *reply) stillThere() {
	if a.r.Context().Err() != nil {
		a.abort(Client)
	}
}

// wait lets d pass, unless the client leaves or the server is closed before.
func (a *reply) wait(d time.Duration) {
	if d <= 0 {
		return
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-a.r.Context().Done():
		a.abort(Client)
	case <-a.server.closed:
		a.abort(Peer)
	}
}

// hang waits until the client leaves or the server is closed.
func (a *reply) hang() {
	select {
	case <-a.r.Context().Done():
		a.abort(Client)
	case <-a.server.closed:
		a.abort(Peer)
	}
}

// end ends a reply that is not complete.
func (a *reply) end(how Ending) {
	switch how {
	case Clean:
		a.entry.closedBy(Peer)
	case Chunk:
		a.abort(Peer)
	case RST:
		a.reset()
	case Silence:
		a.hang()
	}
}

// abort closes the connection without an end of the body.
func (a *reply) abort(by Closer) {
	a.entry.closedBy(by)
	panic(http.ErrAbortHandler)
}
