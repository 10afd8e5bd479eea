package transport

import (
	"bytes"
	"context"
	"errors"
	"io"
	"mime"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"holdfast"
	"holdfast/internal/wire"
)

// reply is what a good attempt brings.
type reply interface{ response() *http.Response }

// whole is an answer that was read and checked to its end, or a saved one.
type whole struct {
	resp *http.Response
	ending
}

func (w *whole) response() *http.Response { return w.resp }

// pending is an answer that is handed over before its end. It is settled once, by whoever sees the end first.
type pending struct {
	call  *call
	resp  *http.Response
	sent  *sent
	end   func(holdfast.Tokens, error)
	trace holdfast.Trace // once it is settled
	over  atomic.Bool
}

func (p *pending) response() *http.Response { return p.resp }

// AtEnd implements [holdfast.Pending].
func (p *pending) AtEnd(end func(holdfast.Tokens, error)) { p.end = end }

// Settled implements [holdfast.Settled].
func (p *pending) Settled(trace holdfast.Trace) { p.trace = trace }

func (p *pending) settle(e ending) {
	if !p.over.CompareAndSwap(false, true) {
		return
	}
	defer p.tell(e)
	defer p.sent.end()
	err := e.err
	if err != nil && p.call.hurriedOff(p.sent) {
		err = &hurried{err}
	}
	p.end(p.call.tokens(e.used), err)
}

func (p *pending) tell(e ending) {
	if p.call.t.Ended == nil {
		return
	}
	v, err := lastVerdict(&p.trace), e.err
	if v.Kind == holdfast.Refused {
		err = nil // it is an answer
	}
	p.call.tell(&p.trace, err, v, e)
}

const (
	maxErrorBody = 1 << 20 // of an error reply that is looked at; as much as wire reads
	maxDrain     = 64 << 10
	drainTime    = 50 * time.Millisecond
	errorTime    = 10 * time.Second // for the body of an error reply, whose status has said enough
)

// discard makes a connection reusable if little is left on it, and closes the body in any case.
func (s *sent) discard(body io.ReadCloser) {
	timer := time.AfterFunc(drainTime, func() { s.cancel(errDone) })
	_, _ = io.CopyN(io.Discard, body, maxDrain)
	timer.Stop()
	_ = body.Close()
}

// receive turns a response into an answer or a failure. Either way the response is taken care of.
func (c *call) receive(s *sent, resp *http.Response) (answer reply, f *failure) {
	src, handed := resp.Body, false
	defer func() {
		if !handed { // also when something panics
			s.discard(src)
		}
	}()
	switch {
	case resp.StatusCode >= http.StatusBadRequest:
		return nil, c.errorReply(s, resp)
	case c.model && resp.StatusCode == http.StatusOK && isEventStream(resp.Header):
		answer, f = c.hold(s, resp)
	case c.model && resp.StatusCode == http.StatusOK:
		answer, f = c.check(s, resp)
	default:
		answer = c.unread(s, resp)
	}
	handed = f == nil
	return answer, f
}

func isEventStream(h http.Header) bool {
	kind := h.Get("Content-Type")
	if kind == "application/json" {
		return false
	}
	kind, _, _ = mime.ParseMediaType(kind)
	return kind == "text/event-stream"
}

// errorReply keeps an error reply whole, to be judged and, if it is the last, to be handed over as it came.
func (c *call) errorReply(s *sent, resp *http.Response) *failure {
	most, on := limit(c.t.MaxAnswer, defaultMaxAnswer)
	if !on {
		most = maxErrorBody
	}
	slow := time.AfterFunc(errorTime, func() { s.cancel(errDone) })
	body, more, err := c.readAll(resp, most)
	slow.Stop()
	switch {
	case more:
		err = &CutError{Phase: AfterContent, Bytes: int64(len(body)), Err: errTooLong}
	case err != nil:
		err = cut(AfterContent, int64(len(body)), err)
	}
	resp.Body = &keptBody{data: bytes.NewReader(body), end: err}
	v := holdfast.FromReply(resp.StatusCode, resp.Header, body[:min(len(body), maxErrorBody)], time.Now())
	if v.Kind == holdfast.OK || v.Kind == holdfast.Cancelled { // the caller is still there: a 499 is the upstream's affair
		v.Kind = holdfast.Terminal
	}
	return &failure{verdict: v, resp: resp}
}

// check reads an answer and sees whether it is one.
func (c *call) check(s *sent, resp *http.Response) (reply, *failure) {
	most, on := limit(c.t.MaxAnswer, defaultMaxAnswer)
	if !on || resp.ContentLength > int64(most) {
		return c.unread(s, resp), nil
	}
	src := resp.Body
	body, more, err := c.readAll(resp, most)
	if err != nil {
		return nil, c.torn(s, cut(BeforeContent, int64(len(body)), err))
	}
	if more {
		resp.Body = struct {
			io.Reader
			io.Closer
		}{io.MultiReader(bytes.NewReader(body), src), src}
		return c.unread(s, resp), nil
	}
	_ = src.Close()
	resp.Body = &keptBody{data: bytes.NewReader(body)}
	v := holdfast.FromReply(resp.StatusCode, resp.Header, body, time.Now())
	switch v.Kind {
	case holdfast.OK:
	case holdfast.Refused:
		return c.refusal(s, resp, body, v)
	default:
		return nil, falseSuccess(resp, v)
	}
	s.end()
	return &whole{resp: resp, ending: c.endingOf(body)}, nil
}

// endingOf is what a complete answer says of itself.
func (c *call) endingOf(body []byte) ending {
	e := ending{bytes: int64(len(body))}
	e.used, e.reason = wire.Summary(body)
	return e
}

// refusal is an answer, unless the policy would ask another model.
func (c *call) refusal(s *sent, resp *http.Response, body []byte, v holdfast.Verdict) (reply, *failure) {
	e := c.endingOf(body)
	if c.asksElsewhere() {
		return nil, &failure{verdict: v, resp: resp, ending: e}
	}
	a := c.unread(s, resp).(*pending)
	e.err = &partial{v}
	a.resp.Body.(*openBody).ending = e
	return a, nil
}

// asksElsewhere reports whether a refusal may go to another target. The rest of a pool is the same model.
func (c *call) asksElsewhere() bool {
	all := c.policy.Targets
	return c.policy.RefusalFallback && len(all) > 1 && len(all) > len(home(all))
}

// falseSuccess is a 200 that is none. An error in it gets the status that it names. What is an answer in all but content
// is handed over as it came if it is the last, since a model may mean it so; what is no answer at all is not.
func falseSuccess(resp *http.Response, v holdfast.Verdict) *failure {
	switch {
	case slices.Contains([]string{"200-no-content", "200-empty-choice", "200-no-output"}, v.Rule):
		return &failure{verdict: v, resp: resp}
	case strings.HasPrefix(v.Rule, "200-"):
		return &failure{verdict: v, err: holdfast.ErrEmpty}
	}
	resp.StatusCode, resp.Status = v.Status, statusText(v.Status)
	return &failure{verdict: v, resp: resp}
}

// torn is an answer that was lost on its way, before anything of it was handed over.
func (c *call) torn(s *sent, lost *CutError) *failure {
	if stalled := c.stalled(s, lost); stalled != nil {
		return &failure{verdict: stalled.Verdict(), err: stalled}
	}
	return &failure{verdict: lost.Verdict(), err: lost}
}

// stalled is the loss as the timer of ours tells it that caused it, nil if none did.
func (c *call) stalled(s *sent, lost *CutError) *TimeoutError {
	stalled := &TimeoutError{Phase: lost.Phase, Events: lost.Events, Bytes: lost.Bytes}
	switch context.Cause(s.ctx) {
	case errFirstContent:
		stalled.Timer = FirstContent
		stalled.Limit, _ = limit(c.t.FirstContent, defaultFirstContent)
	case errIdle:
		stalled.Timer = Idle
		stalled.Limit, _ = limit(c.t.Idle, defaultIdle)
	default:
		return nil
	}
	return stalled
}

var errTooLong = errors.New("holdfast: the error reply is too long to be kept")

func cut(phase Phase, n int64, err error) *CutError {
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return &CutError{Phase: phase, Bytes: n, Err: err}
}

// readAll reads up to most bytes and reports whether there is more.
func (c *call) readAll(resp *http.Response, most int) (body []byte, more bool, err error) {
	if n := resp.ContentLength; n > 0 && n <= int64(most) && c.req.Method != http.MethodHead {
		body, err = readExactly(resp.Body, int(n))
		return body, false, err
	}
	var buffer bytes.Buffer
	_, err = buffer.ReadFrom(io.LimitReader(resp.Body, int64(most)+1))
	body = buffer.Bytes()
	return body, len(body) > most, err
}

// readExactly reads a body whose length is known. A base other than net/http may not notice that it is shorter.
func readExactly(src io.Reader, n int) ([]byte, error) {
	body := make([]byte, n, n+1)
	got, err := io.ReadFull(src, body)
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return body[:got], err
	}
	_, err = src.Read(body[n : n+1]) // the end is to be seen: then the connection is free again
	if err == io.EOF {
		err = nil
	}
	return body, err
}

// keptBody is a body in memory. It ends with the error that ended the original.
type keptBody struct {
	data *bytes.Reader // not embedded: its WriteTo would pass end by
	end  error
}

func (k *keptBody) Read(p []byte) (int, error) {
	n, err := k.data.Read(p)
	if err == io.EOF && k.end != nil {
		err = k.end
	}
	return n, err
}

func (k *keptBody) Close() error { return nil }

// unread hands an answer over without a look at it. It is settled at its end: whoever closes it early had what he wanted.
func (c *call) unread(s *sent, resp *http.Response) reply {
	s.stopTimer()
	a := &pending{call: c, resp: resp, sent: s}
	body := &openBody{src: resp.Body, answer: a}
	resp.Body = body
	if w, ok := body.src.(io.Writer); ok { // a connection that was switched to another protocol
		resp.Body = struct {
			*openBody
			io.Writer
		}{body, w}
	}
	return a
}

// openBody is the body of an answer that is handed over unread.
type openBody struct {
	src    io.ReadCloser
	answer *pending
	ending ending
	read   atomic.Int64
}

func (b *openBody) Read(p []byte) (int, error) {
	n, err := b.src.Read(p)
	read := b.read.Add(int64(n))
	switch {
	case err == io.EOF:
		b.settle()
	case err != nil:
		b.answer.settle(ending{bytes: read, partial: true, produced: unseen(read), err: cut(AfterContent, read, err)})
	}
	return n, err
}

func (b *openBody) Close() error {
	err := b.src.Close()
	b.settle()
	return err
}

func (b *openBody) settle() {
	e := b.ending
	e.bytes = b.read.Load()
	if e.used == (wire.Tokens{}) {
		e.partial, e.produced = true, unseen(e.bytes)
	}
	b.answer.settle(e)
}
