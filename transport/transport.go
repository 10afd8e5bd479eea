// Package transport keeps the calls of an HTTP client working: as the http.RoundTripper of any client, and as middleware
// of the Anthropic and OpenAI Go SDKs.
//
//	http.Client{Transport: transport.New(&policy, nil)}
//	anthropic.NewClient(option.WithMiddleware(transport.Middleware(&policy)))
//
// An answer is handed over as it came, byte for byte. A stream is held back until its first content and may be asked for
// again up to there; what was handed over is never asked for again, and a stream that ends too early ends with a
// [*CutError], never quietly. A final error of the upstream comes back as it came too. Refusals of our own and lost
// connections become responses in the shape of the dialect, because the SDKs repeat whatever a middleware returns as an
// error; all of them carry x-should-retry: false, so that nobody multiplies the policy's attempts. [ErrorOf] and [TraceOf]
// tell what is behind a response.
//
// The headers holdfast-source, holdfast-attempts, holdfast-wait-ms, holdfast-target where the policy has targets and, on
// refusals of our own, holdfast-reason are added to every response, unless the upstream has set them. The caller may bound
// the call with x-stainless-timeout or holdfast-deadline ("30s", or a number of seconds), and keep it on the first target
// with holdfast-fallback: off.
//
// The caller's request is never changed. No goroutine outlives a call.
package transport

import (
	"net/http"
	"time"

	"holdfast"
)

// Transport carries every request as one call under a policy. The zero value works. All fields must be set before the
// first request; after that a Transport is safe for concurrent use, and one should serve all requests to an API.
//
// It returns an error only when the request's own context ended, when the request's body could not be read, or with
// ReturnErrors; never together with a response. Whoever receives a response must close its body: a call that is streamed
// is settled with breaker, pace and budget when its body ends or is closed.
type Transport struct {
	// Policy says how calls are kept working. With Targets, Base learns from [holdfast.TargetOf] which one to ask. A
	// Judge of its own is given errors whose method Verdict tells what this package makes of them. Usage is taken
	// from the answers, whatever the policy says. Default: the zero Policy.
	Policy *holdfast.Policy
	// Base sends the attempts. Default: http.DefaultTransport. It must not retry by itself.
	Base http.RoundTripper

	// MaxReplay is the largest request body in bytes that is kept for further attempts when the request has no
	// GetBody. A larger one is sent once and never repeated. A body with a method Bytes() []byte, as that of
	// [NewBody], is in memory already: it is sent from there, whatever its size, and not copied. Default: 33 MiB, a
	// little above the largest request that the Messages API takes. Negative: no body is kept.
	MaxReplay int
	// MaxAnswer is how much of an answer, in bytes, is read before it is handed over, so that one that is an error,
	// empty or cut can be asked for again. The rest of a longer one is handed over unread. Default: 32 MiB.
	// Negative: answers are handed over unread.
	MaxAnswer int
	// MaxHeld is how many bytes of a stream are held back while there is no content. Default: 4 MiB. Negative:
	// streams are handed over at once, and none is asked for again.
	MaxHeld int
	// Connect is how long an attempt may take to make its connection, from the beginning of the dial. A host that is
	// not there is known so within seconds, however long an answer may take. It needs a Base that tells of its dials
	// as net/http does. Default: 5s. Negative: no limit but Base's own.
	Connect time.Duration
	// FirstContent is how long the first content of a stream may take, from the sending of a request that says that
	// it wants a stream, else from the headers. Default: 2m. Negative: no limit but the policy's.
	FirstContent time.Duration
	// Idle is how long a reader waits for content after other content; pings do not count, nor does time in which
	// nobody reads. Default: 90s. Negative: no limit but the policy's.
	Idle time.Duration

	// Whole hands a stream over only when it is complete, so that one that is cut, stalls, breaks off with an error,
	// has an event that cannot be read or ends in a refusal that has a fallback is a failure like any other. Idle holds
	// while it is collected, MaxHeld does not. Beyond MaxAnswer bytes it is handed over as if Whole were not set, and so is a
	// stream that cannot be read, as of an unknown Content-Encoding. Default: a stream is handed over at its first
	// content.
	Whole bool
	// Hold is how long a stream that has begun is held back for want of content, from its first event on. Then what
	// there is of it is handed over, and what fails later is not asked for again. For that the read under way is left
	// to a goroutine, which the reader waits for, and Close too: bodies of Base must end a Read when they are closed,
	// as those of net/http do. It has no meaning with Whole. Default: until there is content. Negative: the same.
	Hold time.Duration
	// Events makes a stream a sequence of whole events, for a reader who adds some of his own. A Read ends behind a
	// blank line. What a stream that breaks off leaves of an event is dropped; the last event of a complete one gets
	// the blank line that it lacks, and if only the terminal event is missing or torn, one is added. An event of more
	// than 32 MiB ends the stream with an error. A compressed stream is handed over unpacked, without Content-Encoding
	// and Content-Length. All else stays as it came, malformed events too. A stream of an unknown Content-Encoding is
	// handed over as it came. Default: bytes as they come.
	Events bool

	// Load returns a saved answer to stand in where nothing live works and the verdict allows it, or nil: see
	// [holdfast.SavedAnswers]. The cause is what [ErrorOf] tells of the response. Its header is cloned. It runs on the
	// goroutine of the call. Default: there are no saved answers.
	Load func(cause error) *http.Response
	// Ended is told once of every call when all of it is over: the end, the loss or the closing of an answer that was
	// handed over before its end, and otherwise before RoundTrip returns, also when it returns an error or panics. It
	// runs on the goroutine that saw the end, outside all locks. Default: nobody is told.
	Ended func(End)
	// ReturnErrors returns a [*holdfast.Error] where otherwise a response would be made up: for clients that do not
	// retry and branch on errors. Replies of the upstream stay responses.
	ReturnErrors bool
	// Stacked is told of requests that are another retry of a client on top (x-stainless-retry-count above 0), by
	// the goroutine of the call and before it begins. Such clients should be set to no retries. Default: nobody is
	// told, but the header holdfast-stacked on the response.
	Stacked func(req *http.Request, count int)
}

const (
	defaultMaxReplay    = 33 << 20
	defaultMaxAnswer    = 32 << 20
	defaultMaxHeld      = 4 << 20
	defaultConnect      = 5 * time.Second
	defaultFirstContent = 2 * time.Minute
	defaultIdle         = 90 * time.Second
)

// New returns a transport with the default limits. A nil policy is the zero one, a nil base http.DefaultTransport.
func New(policy *holdfast.Policy, base http.RoundTripper) *Transport {
	return &Transport{Policy: policy, Base: base}
}

// RoundTrip implements http.RoundTripper.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	base := t.Base
	if base == nil {
		base = http.DefaultTransport
	}
	return t.Middleware(req, base.RoundTrip)
}

// Middleware returns a middleware for the option WithMiddleware of the Anthropic and OpenAI SDKs. Register it last, so
// that it is the innermost, and share one among clients of the same API. The SDK's own retries do no harm, but are of
// no use any more.
func Middleware(policy *holdfast.Policy) func(*http.Request, func(*http.Request) (*http.Response, error)) (*http.Response, error) {
	return New(policy, nil).Middleware
}

// Middleware is the same with the limits of t. Base is not used.
func (t *Transport) Middleware(req *http.Request, next func(*http.Request) (*http.Response, error)) (*http.Response, error) {
	body, err := t.load(req)
	if err != nil {
		if t.Ended != nil {
			t.Ended(End{Err: err})
		}
		return nil, err
	}
	defer body.release()
	c := newCall(t, req, next, body)
	defer c.unwound()
	if c.stacked > 0 && t.Stacked != nil {
		t.Stacked(req, c.stacked)
	}
	var saved []holdfast.SavedAnswers[reply]
	if t.Load != nil {
		saved = append(saved, holdfast.SavedAnswers[reply]{Load: c.saved})
	}
	answer, trace, err := holdfast.Do(req.Context(), &c.policy, c.attempt, saved...)
	c.body = &payload{} // a stream may go on for long, and no attempt needs the prompt any more
	return c.conclude(answer, trace, err)
}

// limit is a field of a Transport: zero is the default, negative is off.
func limit[T ~int | ~int64](field, standard T) (n T, on bool) {
	switch {
	case field == 0:
		return standard, true
	case field < 0:
		return 0, false
	}
	return field, true
}
