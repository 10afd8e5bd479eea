package standin

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"holdfast/internal/wire"
	"holdfast/standin/internal/answer"
	"holdfast/standin/internal/request"
	"holdfast/standin/internal/tape"
)

// reply is one reply being given. Its methods do not return when the exchange
// has ended early: they end the handler with http.ErrAbortHandler.
type reply struct {
	server    *Server
	state     *state
	w         http.ResponseWriter
	rc        *http.ResponseController
	r         *http.Request
	q         request.Request // read by accept, also of a request that is refused
	entry     *entry
	recorded  *tape.Exchange // that answers the request; nil: without a tape
	requestID string
	step      Step
	fault     *fault
	ticket    *ticket       // of the rate limits; nil: there are none
	first     time.Duration // before the first content
	tokens    tokenTimes    // before each further content

	// last holds back what is written until the handler has returned. By then the exchange has departed and its place is
	// free: a client that has seen the end of its reply finds it ended, and what it sends next never meets it.
	last bool
}

// play gives the reply that the step asks for.
func (a *reply) play() {
	a.wait(a.step.Delay)
	if a.fault.instead != nil {
		a.fault.instead(a)
		return
	}
	if a.recorded != nil {
		a.replay()
		return
	}
	result := a.work()
	if a.q.Stream && result.answer != nil {
		a.stream(result)
		return
	}
	a.whole(result)
}

// loseWork does the work of a reply that will not be sent.
func (a *reply) loseWork() { a.bill(a.work().usage) }

// bill says what the reply has cost so far, to the journal and to the rate limits.
func (a *reply) bill(t tokens) {
	a.entry.bill(t)
	a.ticket.settle(a.server.now(), t.Input, t.Output)
}

// whole gives the result as one body, or what the fault makes of it.
func (a *reply) whole(result result) {
	a.think(result)
	maps.Copy(a.w.Header(), result.header)
	if a.fault.whole != nil {
		result = result.gathered()
		if a.fault.whole(a, result) {
			return
		}
	}
	if result.lines != nil {
		a.list(result)
		return
	}
	a.send(result.status, result.contentType, result.body)
}

// think lets the time of an answer pass. It is billed then, also to a client that has not waited for it.
func (a *reply) think(result result) {
	if a.fault != errorFault {
		defer a.bill(result.usage)
	}
	if result.answer != nil {
		a.wait(a.untilWhole(result))
	}
}

// untilWhole is the time that an answer takes which comes in one piece.
func (a *reply) untilWhole(result result) time.Duration {
	d := a.first
	for range max(0, result.answer.ContentEvents(result.shape)-1) {
		d += a.tokens.next()
	}
	return d
}

// list gives a result of many lines, one at a time.
func (a *reply) list(result result) {
	a.start(result.status, result.contentType, -1)
	out := newStream(a)
	for line := range result.lines {
		out.out(line)
	}
	out.close()
}

// refuse gives the error of a request that the API itself refuses.
func (a *reply) refuse(r *request.Refusal) {
	a.step = stepOf(r)
	if r.HTML {
		a.step.Form = FormHTML
	}
	a.failAsTold()
}

// stepOf is the step that gives the error of a refusal.
func stepOf(r *request.Refusal) Step {
	return Step{Status: r.Status, Type: r.Type, Code: r.Code, Message: r.Message}
}

// errorBody is the error of the step.
func (a *reply) errorBody() []byte { return a.errorOf(a.step) }

// errorOf is the error of a step in the dialect of the request.
func (a *reply) errorOf(s Step) []byte {
	dialect := a.q.Dialect
	if dialect == wire.DialectUnknown {
		dialect = wire.DialectAnthropic
	}
	typ, code, message := s.errorWords(dialect)
	a.entry.code(code)
	return wire.ErrorBody(dialect, typ, code, message, a.requestID)
}

// inError is the error of the step as an event inside a stream.
func (a *reply) inError(sequence int) answer.Event {
	typ, code, message := a.step.errorWords(a.q.Dialect)
	a.entry.code(code)
	return answer.InError(shapeOf(a.q.Endpoint), typ, code, message, a.requestID, sequence)
}

// errorWords are error.type, code and error.message of an error with the step's status.
func (s Step) errorWords(dialect wire.Dialect) (typ, code, message string) {
	typ, code, message = s.Type, s.Code, cmp.Or(s.Message, messageOf(s.Status))
	if words, ok := openAIWords[s.Status]; ok && dialect == wire.DialectOpenAI && typ == "" && code == "" {
		return words.typ, words.code, message
	}
	return cmp.Or(typ, wire.ErrorType(dialect, s.Status)), code, message
}

// openAIWords are the errors of the OpenAI API that have both a type and a code.
var openAIWords = map[int]struct{ typ, code string }{
	http.StatusTooManyRequests:    {"requests", "rate_limit_exceeded"},
	http.StatusServiceUnavailable: {"server_error", "server_is_overloaded"},
	529:                           {"server_error", "server_is_overloaded"},
}

func messageOf(status int) string {
	switch status {
	case http.StatusTooManyRequests:
		return "This request would exceed your rate limit"
	case 529:
		return "Overloaded"
	}
	return cmp.Or(http.StatusText(status), "Error")
}

// retryAfter turns "now+3s" and "now-3s" into an HTTP date; all else stays as it is.
func retryAfter(value string, now time.Time) string {
	offset, relative := strings.CutPrefix(value, "now")
	if d, err := time.ParseDuration(offset); relative && err == nil {
		return now.Add(d).UTC().Format(http.TimeFormat)
	}
	return value
}

// send gives a complete reply.
func (a *reply) send(status int, contentType string, body []byte) {
	if status == http.StatusNoContent || status == http.StatusNotModified { // these have no body by definition
		a.start(status, contentType, -1)
		a.writeLast(nil)
		return
	}
	body = a.coded(body)
	a.start(status, contentType, len(body))
	a.writeLast(body)
}

// coded is a whole body as it goes over the wire.
func (a *reply) coded(body []byte) []byte {
	if a.compressed() {
		return zipped(body)
	}
	return body
}

// compressed reports whether the step wants gzip and the client takes it.
func (a *reply) compressed() bool {
	return a.step.Gzip && slices.ContainsFunc(a.r.Header.Values("accept-encoding"), func(v string) bool { return strings.Contains(v, "gzip") })
}

// zippers are compressors that wait for the next reply: a new one is 800 kB of memory.
var zippers = sync.Pool{New: func() any { return gzip.NewWriter(nil) }}

func zipTo(b *bytes.Buffer) *gzip.Writer {
	z, _ := zippers.Get().(*gzip.Writer) // nothing else is in there
	z.Reset(b)
	return z
}

func zipped(body []byte) []byte {
	var b bytes.Buffer
	z := zipTo(&b)
	_, _ = z.Write(body) // a buffer takes everything
	_ = z.Close()
	zippers.Put(z)
	return b.Bytes()
}

// start sends the headers. length is that of the body; negative: not known.
func (a *reply) start(status int, contentType string, length int) {
	a.headers(contentType, length)
	a.w.WriteHeader(status)
	a.entry.headers(status, a.w.Header())
}

// headers fills in the headers of the reply.
func (a *reply) headers(contentType string, length int) {
	h := a.w.Header()
	h.Set("Content-Type", contentType) // names as the map has them: any other spelling costs an allocation
	a.nameHeaders()
	if a.q.Dialect != wire.DialectOpenAI {
		h.Set("Anthropic-Organization-Id", organization)
	}
	if a.compressed() {
		h.Set("content-encoding", "gzip")
	}
	if length >= 0 {
		h.Set("Content-Length", strconv.Itoa(length))
	}
	a.ownHeaders()
}

// nameHeaders fills in the request id.
func (a *reply) nameHeaders() {
	a.w.Header().Set("Request-Id", a.requestID)
	if a.q.Dialect == wire.DialectOpenAI {
		a.w.Header().Set("X-Request-Id", a.requestID)
	}
}

// ownHeaders fills in the headers that stand above all others: those of the plan's limits and of its step.
func (a *reply) ownHeaders() {
	h := a.w.Header()
	a.ticket.header(h)
	for name, values := range a.step.Header {
		h[http.CanonicalHeaderKey(name)] = values
	}
}

// head is the status line and the headers as they go over the wire.
func (a *reply) head(status int) []byte {
	var b bytes.Buffer
	b.WriteString("HTTP/1.1 " + strconv.Itoa(status) + " " + http.StatusText(status) + "\r\nConnection: close\r\n")
	_ = a.w.Header().Write(&b) // a buffer takes everything
	b.WriteString("\r\n")
	return b.Bytes()
}

// write sends b at once, with the headers if they are still waiting.
func (a *reply) write(b []byte) {
	a.stillThere()
	n, err := a.w.Write(b)
	a.entry.sent(n)
	if err == nil && !a.last {
		err = a.rc.Flush()
	}
	if err != nil && !errors.Is(err, errors.ErrUnsupported) {
		a.abort(Client)
	}
}

// lastBytes is how much of a reply net/http surely keeps until the handler has returned: its buffer holds twice as much.
const lastBytes = 1024

// writeLast sends the last of a reply.
func (a *reply) writeLast(b []byte) {
	if n := len(b) - lastBytes; n > 0 {
		a.write(b[:n])
		b = b[n:]
	}
	a.last = true
	a.write(b)
}

// stillThere ends the exchange when the client has left.
func (a *reply) stillThere() {
	if a.r.Context().Err() != nil {
		a.abort(Client)
	}
}

// wait lets d pass, unless the client leaves or the server is closed before.
func (a *reply) wait(d time.Duration) {
	if d > 0 {
		a.pause(d, nil)
	}
}

// pause lets d pass; 0 means until the client leaves. Into a stream it sends
// the pings of the step meanwhile.
func (a *reply) pause(d time.Duration, out *stream) {
	if v, rehearsed := a.w.(*stage); rehearsed {
		v.pause(a, d, out)
		return
	}
	var over, ping <-chan time.Time
	if d > 0 {
		timer := time.NewTimer(d)
		defer timer.Stop()
		over = timer.C
	}
	if out != nil && a.step.Ping > 0 {
		ticker := time.NewTicker(a.step.Ping)
		defer ticker.Stop()
		ping = ticker.C
	}
	for {
		select {
		case <-over:
			return
		case <-ping:
			out.ping()
		case <-a.r.Context().Done():
			a.abort(Client)
		case <-a.server.closed:
			a.abort(Peer)
		}
	}
}

// hang waits until the client leaves or the server is closed.
func (a *reply) hang() { a.pause(0, nil) }

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
