package standin

import (
	"bytes"
	"compress/gzip"
	"maps"
	"net/http"
	"strconv"
	"time"

	"holdfast/internal/sse"
	"holdfast/internal/wire"
	"holdfast/standin/internal/answer"
)

// stream gives the answer as events, with the fault at its place.
func (a *reply) stream(result result) {
	maps.Copy(a.w.Header(), result.header)
	a.start(http.StatusOK, "text/event-stream; charset=utf-8", -1)
	a.write(nil)
	out := newStream(a)
	contents, met := 0, a.fault.meet == nil
	for e := range result.events {
		if !met && a.step.reached(e.Part, contents) {
			met = true
			if !a.fault.meet(a, out, e.Event) {
				out.close()
				return
			}
		}
		out.wait(e.wait)
		if e.Part == answer.Content {
			contents++
		}
		a.bill(tokens{Input: result.usage.Input, Output: min(e.Output, result.usage.Output)})
		if e.Part == answer.Final && a.step.Writes != WriteByte {
			a.last = true
		}
		out.event(e.Event)
	}
	out.close()
}

// reached reports whether the next event, of the given part and behind so many
// content events, is the first one at or behind the step's place in the stream.
func (s Step) reached(part answer.Part, contents int) bool {
	switch s.At {
	case First:
		return true
	case Preamble:
		return part > answer.Preamble
	case Content:
		return part > answer.Content || part == answer.Content && contents == s.After
	default:
		return part == answer.Final
	}
}

// stream writes events, framed as the step has it.
type stream struct {
	*reply
	nameless bool
	events   int
	frame    []byte // the event being written
	held     []byte // what WriteAll has kept back
	zip      *gzip.Writer
	zipped   bytes.Buffer // what zip has made and nobody has sent
}

// newStream begins a body that is sent in pieces.
func newStream(a *reply) *stream {
	out := &stream{reply: a}
	if a.compressed() {
		out.zip = zipTo(&out.zipped)
	}
	return out
}

// event sends one event and what stands in front of it.
func (o *stream) event(e answer.Event) {
	name := e.Name
	if o.nameless {
		name = ""
	}
	o.frame = o.frame[:0]
	if o.events > 0 {
		o.frame = o.between(o.frame)
	}
	o.events++
	o.frame = sse.Append(o.frame, name, e.Data)
	o.raw(o.lines(o.frame))
}

// between appends what stands between two events.
func (o *stream) between(to []byte) []byte {
	switch o.step.Between {
	case BetweenComment:
		return append(to, ": nothing to see here\n\n"...)
	case BetweenID:
		return append(to, "id: "+strconv.Itoa(o.events)+"\n"...)
	case BetweenRetry:
		return append(to, "retry: 3000\n"...)
	case BetweenPing:
		return o.appendPing(to)
	case BetweenUnknown:
		return sse.Append(to, o.named("event_of_tomorrow"), []byte(`{"type":"event_of_tomorrow"}`))
	}
	return to
}

// named is the name of an event in a dialect that has names.
func (o *stream) named(name string) string {
	if o.q.Dialect == wire.DialectOpenAI || o.nameless {
		return ""
	}
	return name
}

// ping sends what keeps a silent stream alive.
func (o *stream) ping() {
	o.raw(o.lines(o.appendPing(nil)))
	o.flush()
}

func (o *stream) appendPing(to []byte) []byte {
	if o.q.Dialect == wire.DialectOpenAI { // it has no ping event
		return append(to, ": ping\n\n"...)
	}
	return sse.Append(to, o.named("ping"), []byte(`{"type": "ping"}`))
}

// lines gives the frame the line ends of the step. Data has none of its own.
func (o *stream) lines(frame []byte) []byte {
	switch o.step.Lines {
	case CR:
		return bytes.ReplaceAll(frame, []byte("\n"), []byte("\r"))
	case CRLF:
		return bytes.ReplaceAll(frame, []byte("\n"), []byte("\r\n"))
	}
	return frame
}

// raw sends bytes in the writes that the step asks for.
func (o *stream) raw(b []byte) {
	switch o.step.Writes {
	case WriteAll:
		o.held = append(o.held, b...)
	case WriteByte:
		for i := range b {
			o.out(b[i : i+1])
		}
	default:
		o.out(b)
	}
}

// out sends bytes at once, compressed if the reply is.
func (o *stream) out(b []byte) {
	if o.zip == nil {
		o.write(b)
		return
	}
	_, _ = o.zip.Write(b) // a buffer takes everything
	_ = o.zip.Flush()
	o.unload()
}

func (o *stream) unload() {
	o.write(o.zipped.Bytes())
	o.zipped.Reset()
}

// flush sends what is kept back.
func (o *stream) flush() {
	if len(o.held) > 0 {
		o.out(o.held)
		o.held = o.held[:0]
	}
}

// close ends a stream that ends properly. Nothing is sent through it any more.
func (o *stream) close() {
	o.flush()
	if o.zip != nil {
		_ = o.zip.Close() // a buffer takes everything
		o.unload()
		zippers.Put(o.zip)
	}
}

// wait lets time pass between events, with the step's pings meanwhile. Of a stream that
// goes out in one write it is the time before that.
func (o *stream) wait(d time.Duration) {
	if d <= 0 {
		return
	}
	if o.step.Writes == WriteAll {
		o.reply.wait(d)
		return
	}
	o.pause(d, o)
}
