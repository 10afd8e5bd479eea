package transport

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"holdfast"
	"holdfast/internal/wire"
)

// record is what [TraceOf] and [ErrorOf] tell of a response. It travels in the context of the response's request, where
// clients that wrap the body do not lose it.
type record struct {
	trace holdfast.Trace
	err   *holdfast.Error
}

type recordKey struct{}

func recordOf(resp *http.Response) (*record, bool) {
	if resp == nil || resp.Request == nil {
		return nil, false
	}
	r, ok := resp.Request.Context().Value(recordKey{}).(*record)
	return r, ok
}

// TraceOf returns what happened in the call that brought the response, up to its handing over. It reports false for a
// response that did not come through this package.
func TraceOf(resp *http.Response) (holdfast.Trace, bool) {
	r, ok := recordOf(resp)
	if !ok {
		return holdfast.Trace{}, false
	}
	return r.trace, true
}

// ErrorOf returns why the call failed whose last reply, or whose made-up reply, the response is. It is nil for an answer,
// and for a response that did not come through this package; for a saved answer it tells why nothing live worked. Its Reason
// is nil when the upstream's error could not be retried.
func ErrorOf(resp *http.Response) *holdfast.Error {
	if r, ok := recordOf(resp); ok {
		return r.err
	}
	return nil
}

// conclude turns what Do returned into what a RoundTripper returns.
func (c *call) conclude(answer reply, trace holdfast.Trace, err error) (*http.Response, error) {
	r := &record{trace: trace, err: c.cause}
	if err == nil {
		return c.answered(answer, r), nil
	}
	var f *failure
	errors.As(err, &f)
	r.err = errorOf(err, f, &r.trace)
	if c.req.Context().Err() != nil {
		c.failed(r, nil)
		return nil, r.err
	}
	resp := c.lastReply(f)
	c.failed(r, f)
	if resp == nil {
		if c.t.ReturnErrors {
			return nil, r.err
		}
		resp = c.refuse(r.err)
	}
	resp.Header.Set("X-Should-Retry", "false")
	c.label(resp, r)
	return resp, nil
}

func errorOf(err error, f *failure, trace *holdfast.Trace) *holdfast.Error {
	if e, ours := err.(*holdfast.Error); ours {
		return e
	}
	e := &holdfast.Error{Attempts: trace.Sent(), Elapsed: trace.Elapsed, Err: err}
	if f != nil {
		e.Verdict = f.verdict
	}
	return e
}

// answered hands an answer over.
func (c *call) answered(answer reply, r *record) *http.Response {
	resp := answer.response()
	c.label(resp, r)
	switch a := answer.(type) {
	case *pending:
		c.open = true
		if open, ok := resp.Body.(*openBody); ok && open.src == http.NoBody {
			_ = open.Close() // many never close what has no content
		}
	case *whole:
		c.tell(&r.trace, nil, holdfast.Verdict{}, a.ending)
	}
	return resp
}

// failed tells of a call without an answer, or with one that refuses, which is all that it came to.
func (c *call) failed(r *record, f *failure) {
	if c.t.Ended == nil {
		return
	}
	var e ending
	var err error = r.err
	if f != nil {
		e = f.ending
		if kept, ok := bodyOf(f.resp).(*keptBody); ok {
			e.bytes = kept.data.Size()
		}
		if f.verdict.Kind == holdfast.Refused {
			err = nil
		}
	}
	c.tell(&r.trace, err, r.err.Verdict, e)
}

func bodyOf(resp *http.Response) io.ReadCloser {
	if resp == nil {
		return nil
	}
	return resp.Body
}

// saved asks for an answer to stand in.
func (c *call) saved(_ context.Context, cause error) (reply, bool) {
	resp := c.t.Load(cause) //nolint:bodyclose // it is the caller's to close
	if resp == nil {
		return nil, false
	}
	c.cause, _ = cause.(*holdfast.Error)
	kept := *resp
	kept.Header = resp.Header.Clone()
	if kept.Body == nil {
		kept.Body = http.NoBody
	}
	return &whole{resp: &kept, ending: ending{bytes: max(kept.ContentLength, 0)}}, true
}

// label adds our headers, unless an upstream that is a Holdfast has set its own.
func (c *call) label(resp *http.Response, r *record) {
	if resp.Header == nil {
		resp.Header = http.Header{}
	}
	var room [5]string // one allocation for all of them
	values := room[:0]
	set := func(name, value string) {
		if len(resp.Header[name]) == 0 {
			values = append(values, value)
			resp.Header[name] = values[len(values)-1 : len(values) : len(values)]
		}
	}
	if r.trace.Source != holdfast.NoSource {
		set("Holdfast-Source", r.trace.Source.String())
	}
	if target := r.trace.Target(); target != "" && r.trace.Source != holdfast.Saved {
		set("Holdfast-Target", target)
	}
	set("Holdfast-Attempts", strconv.Itoa(r.trace.Sent()))
	set("Holdfast-Wait-Ms", strconv.FormatInt((r.trace.Waited+r.trace.Paced).Milliseconds(), 10))
	if c.stacked > 0 {
		set("Holdfast-Stacked", strconv.Itoa(c.stacked))
	}
	resp.Request = c.req.WithContext(context.WithValue(c.req.Context(), recordKey{}, r))
}

// lastReply is the upstream's own last word, if it came to one: its reply as it came, or the error that it sent inside a
// stream, with the status that it would have had.
func (c *call) lastReply(f *failure) *http.Response {
	switch {
	case f == nil:
		return nil
	case f.resp != nil:
		if f.resp.Header == nil {
			f.resp.Header = http.Header{}
		}
		return f.resp
	case f.err != nil || f.verdict.Status < http.StatusBadRequest:
		return nil
	}
	v := &f.verdict
	typ := v.Type
	if typ == "" {
		typ = wire.ErrorType(c.dialect, v.Status)
	}
	resp := c.makeUp(v.Status, wire.ErrorBody(c.dialect, typ, v.Code, v.Message, v.RequestID), f.header)
	if v.Wait > 0 && resp.Header.Get("Retry-After") == "" {
		resp.Header.Set("Retry-After", wholeSeconds(v.Wait))
	}
	return resp
}

// refuse makes a reply of a call that ended without one.
func (c *call) refuse(e *holdfast.Error) *http.Response {
	word, status := refusalOf(e)
	text := "Holdfast got no answer from the upstream: "
	if e.Attempts == 0 {
		text = "Holdfast did not send this request: "
	}
	text += trimmed(e.Error())
	hint := e.Hint()
	var own interface{ Hint() string }
	if hint == "" && errors.As(e.Err, &own) {
		hint = own.Hint()
	}
	if hint != "" {
		text += ". Hint: " + hint
	}
	resp := c.makeUp(status, wire.ErrorBody(c.dialect, wire.ErrorType(c.dialect, status), "", text, ""), nil)
	if e.Wait > 0 {
		resp.Header.Set("Retry-After", wholeSeconds(e.Wait))
	}
	resp.Header.Set("Holdfast-Reason", word)
	return resp
}

// refusals say in one word, and in a status, why a call ended.
var refusals = []struct {
	reason error
	word   string
	status int // 0: as the last attempt has it
}{
	{holdfast.ErrOpen, "open", http.StatusServiceUnavailable},
	{holdfast.ErrPace, "pace", http.StatusTooManyRequests},
	{holdfast.ErrDeadline, "deadline", http.StatusGatewayTimeout},
	{holdfast.ErrBudget, "budget", 0},
	{holdfast.ErrServerWait, "server-wait", 0},
	{holdfast.ErrSpent, "spent", http.StatusPaymentRequired},
	{holdfast.ErrNoRetry, "no-retry", 0},
	{holdfast.ErrAttempts, "attempts", 0},
}

func refusalOf(e *holdfast.Error) (word string, status int) {
	word = "no-answer"
	for _, r := range refusals {
		if e.Reason == r.reason {
			word, status = r.word, r.status
		}
	}
	if v := &e.Verdict; v.NotSent && v.Status >= http.StatusBadRequest && e.Reason == nil {
		return word, v.Status // a base that refused the request itself
	}
	if e.Attempts > 0 || status == 0 {
		status = http.StatusBadGateway
		if timedOut(e) {
			status = http.StatusGatewayTimeout
		}
	}
	return word, status
}

// timedOut tells an upstream that gave no answer in time from one that broke off.
func timedOut(e *holdfast.Error) bool {
	var timeout interface{ Timeout() bool }
	switch e.Verdict.Rule {
	case "attempt-timeout", "deadline", "timeout":
		return true
	}
	return errors.As(e.Err, &timeout) && timeout.Timeout()
}

// makeUp makes a JSON reply. What a header of the upstream says about its body is left out.
func (c *call) makeUp(status int, body []byte, header http.Header) *http.Response {
	h := header.Clone()
	if h == nil {
		h = http.Header{}
	}
	for _, name := range []string{"Content-Encoding", "Transfer-Encoding", "Cache-Control", "Trailer"} {
		h.Del(name)
	}
	h.Set("Content-Type", "application/json")
	h.Set("Content-Length", strconv.Itoa(len(body)))
	resp := &http.Response{
		Status: statusText(status), StatusCode: status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: h, Body: &keptBody{data: bytes.NewReader(body)}, ContentLength: int64(len(body)),
	}
	if c.req.Method == http.MethodHead {
		resp.Body = http.NoBody // of which the headers tell
	}
	return resp
}

func statusText(status int) string {
	text := http.StatusText(status)
	if status == 529 {
		text = "Overloaded"
	}
	return fmt.Sprintf("%d %s", status, text)
}

// wholeSeconds rounds up: earlier would be refused again.
func wholeSeconds(d time.Duration) string {
	return strconv.FormatInt(int64((d+time.Second-1)/time.Second), 10)
}

func trimmed(text string) string {
	const own = "holdfast: "
	if len(text) > len(own) && text[:len(own)] == own {
		return text[len(own):]
	}
	return text
}
