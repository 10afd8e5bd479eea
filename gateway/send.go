package gateway

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/textproto"
	"net/url"
	"strings"
	"time"

	"holdfast"
	"holdfast/internal/wire"
	"holdfast/saved"
	"holdfast/transport"
)

// send makes the call and gives its caller what came of it.
func (c *call) send() {
	t := c.transport()
	out := new(http.Request)
	*out = *c.r
	dropHops(out.Header)
	out.TransferEncoding, out.Trailer = nil, nil // its length is known now, and what came behind it is read
	if len(c.body.data) == 0 {
		out.Body, out.ContentLength = http.NoBody, 0
		if c.r.ContentLength == 0 || !methodHasBody(c.r) {
			out.Body = nil
		}
	} else {
		out.Body, out.ContentLength = known{bytes.NewReader(c.body.data), c.body.data}, int64(len(c.body.data))
	}
	resp, err := t.RoundTrip(out)
	out.Body = nil
	if err != nil { // only for a caller who left
		c.left()
		return
	}
	c.give(resp)
}

// transport is the one for this call: the settings are few words, and copied.
func (c *call) transport() *transport.Transport {
	s := &c.s.settings
	t := &transport.Transport{
		Policy: &c.lineup.policy, Base: c, Connect: s.Connect, FirstContent: s.FirstContent, Idle: s.Idle,
		Events: true, Whole: c.delivery() == Whole, Hold: orDefault(s.Stream.Hold, defaultHold),
		Ended:   c.over,
		Stacked: func(_ *http.Request, n int) { c.record.Stacked = n },
	}
	if t.Hold < 0 {
		t.Hold = 0
	}
	if c.client != nil && c.client.Lane != c.lineup.policy.Lane {
		p := c.lineup.policy
		p.Lane = c.client.Lane
		t.Policy = &p
	}
	if c.canBeSaved() {
		t.Load = c.load
	}
	return t
}

// delivery is the route's, unless the caller asks for the other one.
func (c *call) delivery() Delivery {
	switch c.r.Header.Get("Holdfast-Delivery") {
	case "whole":
		return Whole
	case "live":
		return Live
	}
	return c.route.delivery
}

// over takes what the transport tells at the end of the call.
func (c *call) over(e transport.End) {
	r := &c.record
	r.Trace, r.StopReason = e.Trace, word(e.StopReason)
	r.Input, r.Output, r.CacheRead, r.CacheWrite = e.Tokens.Input, e.Tokens.Output, e.Tokens.CacheRead, e.Tokens.CacheWrite
	c.bill.open, c.bill.produced = e.Partial || e.Verdict.Kind == holdfast.Cancelled && !e.Verdict.NotSent, e.Produced
	r.Target, r.Source = e.Trace.Target(), e.Trace.Source
	switch {
	case e.Err == nil && e.Verdict.Kind == holdfast.Refused:
		r.Outcome = Refused
	case e.Err == nil:
		r.Outcome = Answered
	}
}

// RoundTrip sends one attempt: the base of the call's transport. The request is a copy made for this attempt.
func (c *call) RoundTrip(req *http.Request) (*http.Response, error) {
	t, _ := holdfast.TargetOf(req.Context())
	st := c.lineup.find(t.Name)
	if err := c.unfit(st); err != nil {
		return nil, err
	}
	h := req.Header
	dropOwn(h)
	base := c.s.settings.Base
	switch own := st.entry.up.Base; {
	case own != nil:
		base = own
		dropKeys(h)
		delete(h, "Cookie")
	default:
		st.address(req)
		if st.secret != "" {
			setKey(h, st.entry.up.Auth, st.secret)
		}
	}
	if v := st.entry.Version; v != "" {
		h["Anthropic-Version"] = []string{v}
	}
	if b := st.entry.Betas; b != nil {
		delete(h, "Anthropic-Beta")
		if len(b) > 0 {
			h["Anthropic-Beta"] = []string{strings.Join(b, ",")}
		}
	}
	dropBetas(h, st.entry.up.Lacks.Betas)
	if c.asked.Stream {
		delete(h, "Accept-Encoding") // events are looked at, and pings and errors put between them
	}
	if _, given := h["User-Agent"]; !given {
		h["User-Agent"] = nil // net/http would add its own
	}
	c.attach(req, st)
	return base.RoundTrip(req)
}

// dropOwn takes out the words between the caller and the gateway.
func dropOwn(h http.Header) {
	for name := range h {
		if strings.HasPrefix(name, "Holdfast-") {
			delete(h, name)
		}
	}
}

// attach puts the body on, as the target is to see it.
func (c *call) attach(req *http.Request, st *stop) {
	if len(c.body.data) == 0 {
		return
	}
	if req.Body != nil {
		_ = req.Body.Close()
	}
	data := c.rewritten(st)
	if data == nil {
		req.Body = c.body.reader()
		req.GetBody = func() (io.ReadCloser, error) { return c.body.reader(), nil }
		return
	}
	if c.asked.Packed {
		delete(req.Header, "Content-Encoding")
	}
	req.Body, req.ContentLength = io.NopCloser(bytes.NewReader(data)), int64(len(data))
	req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil }
	delete(req.Header, "Content-Length")
}

// mostUnpacked is how large a compressed body may be to be rewritten for another model: what the Messages API takes.
const mostUnpacked = 32 << 20

// rewritten is the body with another model and without what the target cannot open; nil when it stays as it came.
func (c *call) rewritten(st *stop) []byte {
	e := st.entry
	model := e.model(c.record.Model)
	if lacks := e.up.Lacks.Members; model == c.record.Model && !e.strip && len(lacks) == 0 || c.record.Model == "" {
		return nil
	}
	if data, ok := c.bodies[st]; ok {
		return data
	}
	data, ok := wire.Unpack(c.body.data, mostUnpacked)
	if !ok {
		return nil
	}
	plain := data
	if model != c.record.Model {
		data = wire.SetModel(data, model)
	}
	if lacks := e.up.Lacks.Members; len(lacks) > 0 {
		data = wire.WithoutMembers(data, lacks...)
	}
	if e.strip {
		data = wire.WithoutSealed(data)
	}
	if len(data) == len(plain) && (len(data) == 0 || &data[0] == &plain[0]) {
		data = nil // nothing was to be changed
	}
	if c.bodies == nil {
		c.bodies = map[*stop][]byte{}
	}
	c.bodies[st] = data
	return data
}

// address points the request at the stop's upstream. The path is added to the base path, as an SDK does it; a version that stands at
// the end of one and at the beginning of the other stands there once.
func (st *stop) address(req *http.Request) {
	to := st.entry.url
	u := req.URL
	u.Scheme, u.Host, u.User = to.Scheme, to.Host, nil
	req.Host = to.Host
	req.RequestURI = ""
	if to.Path == "" || to.Path == "/" {
		return
	}
	head := strings.TrimSuffix(to.EscapedPath(), "/")
	tail := u.EscapedPath()
	if strings.HasSuffix(head, "/v1") && strings.HasPrefix(tail, "/v1/") {
		tail = tail[len("/v1"):]
	}
	joined, err := url.PathUnescape(head + tail)
	if err != nil {
		joined = head + tail
	}
	u.Path, u.RawPath = joined, head+tail
}

// hops are the headers that concern one connection alone (RFC 9110, 7.6.1).
var hops = []string{"Connection", "Keep-Alive", "Proxy-Connection", "Proxy-Authenticate", "Proxy-Authorization", "Te", "Trailer", "Transfer-Encoding", "Upgrade", "Expect"}

func dropHops(h http.Header) {
	for _, list := range h["Connection"] {
		for name := range strings.SplitSeq(list, ",") {
			if name = textproto.TrimString(name); name != "" {
				h.Del(name)
			}
		}
	}
	for _, name := range hops {
		delete(h, name)
	}
}

// canBeSaved reports whether a saved answer may stand in.
func (c *call) canBeSaved() bool {
	return (c.route.saved || c.route.answer != nil) && c.billed()
}

func (c *call) question() *Question {
	return &Question{Method: c.r.Method, Path: c.r.URL.Path, Header: c.r.Header, Body: c.body.data, Stream: c.asked.Stream}
}

// load finds the answer that stands in when nothing live works.
func (c *call) load(error) *http.Response {
	ctx := context.WithoutCancel(c.r.Context()) // it may be the deadline that nothing live met
	q := c.question()
	var found *Saved
	if c.route.saved {
		found, _ = c.s.settings.Saved.Load(ctx, q)
	}
	if found == nil && c.route.answer != nil {
		// An answer in another dialect than the request's gives an error, and does not stand in.
		found, _ = saved.Give(q, &Saved{ContentType: "application/json", Body: c.route.answer}, false)
	}
	if found == nil {
		return nil
	}
	c.record.SavedAt = found.At
	h := http.Header{"Content-Type": {found.ContentType}}
	if !found.At.IsZero() {
		h.Set("Holdfast-Saved", found.At.UTC().Format(time.RFC3339))
	}
	return &http.Response{
		StatusCode: http.StatusOK, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: h,
		Body: io.NopCloser(bytes.NewReader(found.Body)), ContentLength: int64(len(found.Body)),
	}
}
