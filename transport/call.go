package transport

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"holdfast"
	"holdfast/internal/wire"
)

// call is one request on its way through all its attempts.
type call struct {
	t    *Transport
	req  *http.Request // the caller's
	next func(*http.Request) (*http.Response, error)
	body *payload

	path     string
	dialect  wire.Dialect
	model    bool // asks a model for an answer whose shape is known
	safe     bool // may be repeated after an unknown outcome
	streamed bool // asks for a stream
	most     int  // tokens of output that it asks for
	stacked  int
	policy   holdfast.Policy
	hurried  bool // the deadline is the caller's own

	cause *holdfast.Error // why a saved answer stands in
	open  bool            // the answer was handed over before its end
	told  atomic.Bool     // of the end
}

func newCall(t *Transport, req *http.Request, next func(*http.Request) (*http.Response, error), body *payload) *call {
	c := &call{t: t, req: req, next: next, body: body}
	if req.URL != nil {
		c.path = req.URL.Path
	}
	c.dialect = wire.DialectOf(c.path)
	c.model = asksModel(req.Method, c.path)
	c.safe = wire.Safe(req.Method, c.path, body.data) && (body.whole || !known(req))
	if c.model {
		asked := wire.ReadRequest(body.data)
		c.streamed, c.most = asked.Stream, asked.MaxOutput
	}
	if text := req.Header.Get("X-Stainless-Retry-Count"); text != "" {
		if n, err := strconv.Atoi(text); err == nil && n > 0 {
			c.stacked = n
		}
	}
	c.ownPolicy()
	return c
}

// known reports whether a request's body can say something about the call.
func known(req *http.Request) bool {
	return req.URL != nil && wire.DialectOf(req.URL.Path) != wire.DialectUnknown
}

// asksModel reports whether the answer is one whose emptiness and end are known.
func asksModel(method, path string) bool {
	if method != http.MethodPost {
		return false
	}
	path = strings.TrimSuffix(path, "/")
	for _, suffix := range []string{"/v1/messages", "/v1/chat/completions", "/v1/responses", "/v1/completions", "/v1/embeddings"} {
		if strings.HasSuffix(path, suffix) {
			return true
		}
	}
	return false
}

// ownPolicy is the call's copy of the policy, with what only this call knows. Breaker, pace and budget are shared.
func (c *call) ownPolicy() {
	p := &c.policy
	if c.t.Policy != nil {
		*p = *c.t.Policy
	}
	p.Usage = c.usage
	if p.Estimate == nil && (p.Pace != nil || len(p.Targets) > 0) {
		p.Estimate = func(context.Context) holdfast.Tokens { return c.estimate() }
	}
	if d := patienceOf(c.req.Header); d > 0 && (p.Deadline < 0 || d < p.Deadline || p.Deadline == 0 && d < defaultDeadline) {
		p.Deadline, c.hurried = d, true
	}
	if len(p.Targets) > 1 && staysHome(c.req.Header) {
		p.Targets = home(p.Targets)
	}
}

const defaultDeadline = 10 * time.Minute // of the policy

// bytesPerToken is a low guess, so that the pace errs on the side of waiting; usage corrects it.
const bytesPerToken = 4

// estimate is what the call will take from the pace. Output is known beforehand only at OpenAI, which charges the maximum;
// Anthropic counts what is really produced, which is what such calls usually produce.
func (c *call) estimate() holdfast.Tokens {
	length := max(c.body.length, int64(len(c.body.data)), 0)
	need := holdfast.Tokens{Input: int(length / bytesPerToken)}
	switch {
	case c.charged():
		need.Output = c.most
	case c.model && !strings.HasSuffix(c.path, "/embeddings"):
		need.Output = holdfast.UsualOutput
	}
	return need
}

// charged reports whether the maximum of output is counted, whatever is produced.
func (c *call) charged() bool { return c.dialect == wire.DialectOpenAI && c.most > 0 }

func (c *call) usage(answer any) holdfast.Tokens {
	if w, ok := answer.(*whole); ok {
		return c.tokens(w.used)
	}
	return holdfast.Tokens{}
}

// tokens is what the upstream counts of what an answer used; zero when it is not known.
func (c *call) tokens(used wire.Tokens) holdfast.Tokens {
	t := holdfast.Tokens{Input: used.Input + used.CacheWrite, Output: used.Output}
	if c.charged() && t != (holdfast.Tokens{}) {
		t.Output = max(t.Output, c.most)
	}
	return t
}

// sent is one attempt under way.
type sent struct {
	ctx      context.Context
	cancel   context.CancelCauseFunc
	outer    context.Context // the attempt's as Do made it, with the policy's timers
	progress progress
	timer    *time.Timer // of the first content; nil when it does not run
}

var (
	errConnect      = errors.New("holdfast: no connection in time")
	errFirstContent = errors.New("holdfast: no content in time")
	errIdle         = errors.New("holdfast: no further content in time")
	errDone         = errors.New("holdfast: the answer is over")
	errNoResponse   = errors.New("holdfast: the base transport returned neither a response nor an error")
)

func (c *call) begin(ctx context.Context) *sent {
	s := &sent{outer: ctx}
	s.ctx, s.cancel = context.WithCancelCause(ctx)
	if d, on := limit(c.t.Connect, defaultConnect); on {
		s.progress.onDial = func() {
			// A connection that was kept may become free meanwhile: then the dial is nobody's business.
			expire := time.AfterFunc(d, func() {
				if !s.progress.connected.Load() {
					s.cancel(errConnect)
				}
			})
			context.AfterFunc(s.ctx, func() { expire.Stop() })
		}
	}
	s.ctx = httptrace.WithClientTrace(s.ctx, s.progress.hooks())
	if c.streamed {
		s.startTimer(c.t)
	}
	return s
}

func (s *sent) startTimer(t *Transport) {
	if d, on := limit(t.FirstContent, defaultFirstContent); on && s.timer == nil {
		s.timer = time.AfterFunc(d, func() { s.cancel(errFirstContent) })
	}
}

func (s *sent) stopTimer() {
	if s.timer != nil {
		s.timer.Stop()
	}
}

// end lets go of everything the attempt holds. A response must have been read or closed.
func (s *sent) end() {
	s.stopTimer()
	s.cancel(errDone)
}

// attempt is what [holdfast.Do] repeats.
func (c *call) attempt(ctx context.Context) (answer reply, err error) {
	if c.body.spent() {
		return nil, c.unsafe(&failure{verdict: holdfast.Verdict{Kind: holdfast.Broken}, err: errSpent}, "body-not-kept")
	}
	s := c.begin(ctx)
	handed := false
	defer func() {
		if !handed { // failed, or panicked
			s.end()
		}
	}()
	req := c.req.Clone(s.ctx)
	if err := c.body.attach(req); err != nil {
		return nil, &failure{verdict: holdfast.Verdict{Kind: holdfast.Terminal, NotSent: true, Rule: "request-body"}, err: err}
	}
	resp, err := c.next(req)
	switch {
	case err != nil:
		if resp != nil && resp.Body != nil {
			_ = resp.Body.Close()
		}
		return nil, c.judge(s, c.lost(s, err))
	case resp == nil:
		return nil, c.judge(s, c.lost(s, errNoResponse))
	case resp.Body == nil:
		resp.Body = http.NoBody
	}
	c.follow(ctx, resp.Header)
	answer, f := c.receive(s, resp)
	if f != nil {
		return nil, c.judge(s, f)
	}
	handed = true
	return answer, nil
}

// hurriedOff reports that the deadline that the caller named has ended the attempt. That is no fault of the target: another
// caller's patience may be longer.
func (c *call) hurriedOff(s *sent) bool {
	return c.hurried && errors.Is(context.Cause(s.outer), holdfast.ErrDeadline)
}

// follow shows the limits that a reply tells of to the pace of its target.
func (c *call) follow(ctx context.Context, h http.Header) {
	pace := c.policy.Pace
	if t, ok := holdfast.TargetOf(ctx); ok {
		pace = t.Pace
	}
	if f, ok := any(pace).(interface{ Follow(time.Time, http.Header) }); ok && pace != nil {
		f.Follow(time.Now(), h)
	}
}

// lost is an attempt without a response.
func (c *call) lost(s *sent, err error) *failure {
	phase := s.progress.phase()
	if context.Cause(s.ctx) == errFirstContent {
		limit, _ := limit(c.t.FirstContent, defaultFirstContent)
		stalled := &TimeoutError{Timer: FirstContent, Limit: limit, Phase: phase}
		return &failure{verdict: notSent(stalled.Verdict(), phase), err: stalled}
	}
	if context.Cause(s.ctx) == errConnect {
		limit, _ := limit(c.t.Connect, defaultConnect)
		late := &TimeoutError{Timer: Connect, Limit: limit, Phase: phase}
		return &failure{verdict: late.Verdict(), err: late}
	}
	v := holdfast.Judge(err)
	var knows interface{ Verdict() holdfast.Verdict }
	switch {
	case s.ctx.Err() == nil && errors.As(err, &knows): // a base that knows more than that a connection was lost
		return &failure{verdict: v, err: err}
	case s.ctx.Err() != nil: // whose doing it was is for Do to say
		v = holdfast.Verdict{Kind: holdfast.Broken, Silent: !s.progress.answered.Load(), Rule: "timeout"}
	case v.Kind != holdfast.Broken && v.Kind != holdfast.Cancelled:
		return &failure{verdict: v, err: bare(err)} // such as a certificate that no retry makes right
	case turnedAway(err):
		v.NotSent = true
	}
	v = notSent(v, phase)
	if v.Rule == "connection-lost" {
		v.Rule += "-" + phase.dashed()
		v.Neutral = phase == BeforeAnswer && s.progress.stale()
	}
	return &failure{verdict: v, err: &CutError{Phase: phase, Err: bare(err)}}
}

// bare is an error without the URL around it, which may carry a key in its query.
func bare(err error) error {
	var u *url.Error
	if errors.As(err, &u) && u.Err != nil {
		return u.Err
	}
	return err
}

func notSent(v holdfast.Verdict, phase Phase) holdfast.Verdict {
	v.NotSent = v.NotSent || phase < BeforeAnswer
	return v
}

// judge keeps what must not repeat from being repeated, and what is the caller's own doing from the breaker.
func (c *call) judge(s *sent, f *failure) *failure {
	v := &f.verdict
	v.Neutral = v.Neutral || c.hurriedOff(s)
	switch {
	case v.Kind == holdfast.Cancelled, v.Kind == holdfast.Terminal && v.ShouldRetry != "true":
	case c.body.spent():
		return c.unsafe(f, "body-not-kept")
	case c.safe || v.NotSent || v.Status == http.StatusTooManyRequests:
	case v.Kind == holdfast.Broken || v.Kind == holdfast.Overloaded || v.Kind == holdfast.Throttled || v.Kind == holdfast.Terminal:
		return c.unsafe(f, v.Rule)
	}
	return f
}

func (c *call) unsafe(f *failure, rule string) *failure {
	f.verdict.Kind, f.verdict.Was, f.verdict.Rule = holdfast.Unsafe, f.verdict.Kind, rule
	return f
}
