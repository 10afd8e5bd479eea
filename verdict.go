package holdfast

import (
	"context"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"net/url"
	"reflect"
	"time"

	"holdfast/internal/wire"
)

// Kind is what an outcome means for the call, the breaker, the pace and the fallback.
type Kind uint8

const (
	// OK is a complete answer.
	OK Kind = iota
	// Throttled asks this credential and model group to slow down: 429, slow_down, ramp_limit_exceeded. It is
	// retried after the server's wait, and says nothing about the health of the upstream.
	Throttled
	// Overloaded is an upstream out of capacity: 529, 503, an overloaded_error inside a stream.
	Overloaded
	// Broken is a failure of the upstream or the way to it: 500, 502, 504, 408, 409, timeouts, resets, an
	// empty or HTML "200", a stream cut before content.
	Broken
	// Spent is a money limit that no wait of a call's length cures. Another credential or provider may help.
	Spent
	// Terminal is a request that will fail again: 400, 401, 403, 404, 413, 422. It is returned unchanged, and
	// never hidden behind a saved answer.
	Terminal
	// Overflow is a prompt too long for this model. Another model may take it.
	Overflow
	// Refused is a model's refusal. The same model usually refuses again.
	Refused
	// Cancelled means that the caller went away: neither success nor failure of anything.
	Cancelled
	// Unsafe is an unknown outcome on a path that must not repeat, as creating a batch.
	Unsafe
)

// meaning is the verdict table: what each kind means for the parts of a call.
type meaning struct {
	name     string
	retry    bool   // again on the same target
	fallback bool   // on to the next target
	saved    bool   // a saved answer may stand in; not where it would hide a bug
	breaker  Result // what the target's breaker learns
	refund   bool   // tokens taken from the pace were surely not used
}

var meanings = [...]meaning{
	OK:         {name: "ok", breaker: Success},
	Throttled:  {name: "throttled", retry: true, fallback: true, saved: true, breaker: Ignore, refund: true},
	Overloaded: {name: "overloaded", retry: true, fallback: true, saved: true, breaker: Failure, refund: true},
	Broken:     {name: "broken", retry: true, fallback: true, saved: true, breaker: Failure},
	Spent:      {name: "spent", fallback: true, saved: true, breaker: Ignore, refund: true},
	Terminal:   {name: "terminal", breaker: Ignore, refund: true},
	Overflow:   {name: "overflow", fallback: true, breaker: Ignore, refund: true},
	Refused:    {name: "refused", fallback: true, breaker: Success},
	Cancelled:  {name: "cancelled", breaker: Ignore, refund: true},
	Unsafe:     {name: "unsafe", breaker: Ignore},
}

func (k Kind) meaning() *meaning {
	if int(k) >= len(meanings) {
		return &meanings[Terminal] // an unknown kind must not be repeated
	}
	return &meanings[k]
}

// String returns the word used in traces, metrics and configuration.
func (k Kind) String() string {
	if int(k) >= len(meanings) {
		return "unknown"
	}
	return meanings[k].name
}

// Verdict is what one attempt's outcome means. The zero value is OK.
type Verdict struct {
	Kind Kind
	// Was is, for Unsafe, the kind the outcome would have on a path that may repeat: what the breaker learns.
	Was Kind
	// Status is the HTTP status to judge by, 0 when there was none. An error inside a stream carries the
	// status that its type has over HTTP, never the 200 of the open response.
	Status int
	// Type and Code are the provider's own words, empty when it gave none.
	Type, Code string
	// Message is the provider's text in one short line without markup; empty when there was none.
	Message string
	// RequestID is the provider's name for the attempt.
	RequestID string
	// Wait is the server's wait. 0: it named none that makes sense.
	Wait time.Duration
	// Resumes is when a spent credential works again, as far as the upstream says. Zero: unknown.
	Resumes time.Time
	// ShouldRetry is the upstream's x-should-retry header: "true", "false" or empty. It overrides what the
	// status would mean.
	ShouldRetry string
	// Rejected means that it is the credential that is refused, and not the request: 401, and 403 for want of a
	// permission. Another credential of the same pool may be accepted; without a pool it changes nothing.
	Rejected bool
	// NotSent means that no connection was made, so that repeating is safe on any path.
	NotSent bool
	// Silent means that the attempt's time ran out without one byte of an answer.
	Silent bool
	// Neutral means that the outcome tells a breaker nothing whatever its kind: a 409, or an attempt whose time the
	// deadline had cut short.
	Neutral bool
	// Rule names the rule that decided, for people who ask why.
	Rule string
}

// retryable reports whether the same target may be asked again.
func (v *Verdict) retryable() bool {
	switch {
	case v.Kind == Unsafe:
		return false
	case v.ShouldRetry == "true":
		return v.Kind == Terminal || v.Kind.meaning().retry
	case v.ShouldRetry == "false":
		return false
	}
	return v.Kind.meaning().retry
}

func (v *Verdict) breaker() Result {
	if v.Neutral {
		return Ignore
	}
	if v.Kind == Unsafe {
		return v.Was.meaning().breaker
	}
	return v.Kind.meaning().breaker
}

// Sentinels that an operation returns, wrapped or bare, to say what it found in an answer that arrived. They carry
// their verdict through [Judge].
var (
	// ErrRefused: the model refused. Judged Refused.
	ErrRefused = errors.New("holdfast: the model refused")
	// ErrEmpty: a success without an answer in it. Judged Broken.
	ErrEmpty = errors.New("holdfast: the answer is empty")
	// ErrCut: the answer ended before its end. Judged Broken.
	ErrCut = errors.New("holdfast: the answer was cut")
)

// Judge gives the verdict of an error. It knows the errors of the Anthropic and OpenAI SDKs, any error with a
// StatusCode method or field, context and network errors, and any error with a method `Verdict() Verdict`, which is
// asked first. An error it does not know is Terminal: what is not known to be safe is not repeated. Nil is OK.
//
// Judge cannot know whether a context error came from the caller; [Do] can, and calls it Cancelled only then.
func Judge(err error) Verdict {
	if err == nil {
		return Verdict{}
	}
	if p := reflect.ValueOf(err); p.Kind() == reflect.Pointer && p.IsNil() {
		return Verdict{Kind: Terminal, Rule: "nil-error"} // asking it anything would panic
	}
	if own, ok := ownVerdict(err); ok {
		return own
	}
	switch {
	case errors.Is(err, ErrRefused):
		return Verdict{Kind: Refused, Rule: "answer-refused"}
	case errors.Is(err, ErrEmpty):
		return Verdict{Kind: Broken, Rule: "answer-empty"}
	case errors.Is(err, ErrCut):
		return Verdict{Kind: Broken, Rule: "answer-cut"}
	}
	if facts, ok := apiFacts(err); ok {
		return facts.verdict(time.Now())
	}
	return judgeTransport(err)
}

// ownVerdict is that of an error which knows it.
func ownVerdict(err error) (Verdict, bool) {
	var known interface{ Verdict() Verdict }
	if !errors.As(err, &known) {
		return Verdict{}, false
	}
	return known.Verdict(), true
}

// FromReply gives the verdict of a raw HTTP reply: an error status, or a 200 whose JSON body is an error, empty or not
// an answer at all. now is used for dates when the reply has no Date header.
func FromReply(status int, header http.Header, body []byte, now time.Time) Verdict {
	return verdictOf(wire.Read(status, header, body, now))
}

// FromEvent gives the verdict of an error event inside an open stream, named event in its SSE frame, by its type and
// codes; header is that of the open response.
func FromEvent(event string, data []byte, header http.Header, now time.Time) Verdict {
	return verdictOf(wire.ReadEvent(event, data, header, now))
}

var kindOfFault = map[wire.Fault]Kind{
	wire.FaultNone:      OK,
	wire.FaultRateLimit: Throttled,
	wire.FaultRamp:      Throttled,
	wire.FaultSpend:     Spent,
	wire.FaultOverload:  Overloaded,
	wire.FaultServer:    Broken,
	wire.FaultTimeout:   Broken,
	wire.FaultConflict:  Broken,
	wire.FaultOverflow:  Overflow,
	wire.FaultAuth:      Terminal,
	wire.FaultRequest:   Terminal,
	wire.FaultCancelled: Cancelled,
	wire.FaultEmpty:     Broken,
	wire.FaultRefused:   Refused,
}

func verdictOf(r wire.Reply) Verdict {
	kind, known := kindOfFault[r.Fault]
	if !known {
		kind = Terminal
	}
	v := Verdict{
		Kind: kind, Status: r.Status, Type: r.Type, Code: r.Code, Message: r.Message, RequestID: r.RequestID,
		Wait: r.Wait, Resumes: r.Resumes, Rule: r.Rule, Neutral: r.Fault == wire.FaultConflict,
		Rejected: r.Fault == wire.FaultAuth,
	}
	switch r.Retry {
	case wire.AdviceRetry:
		v.ShouldRetry = "true"
	case wire.AdviceStop:
		v.ShouldRetry = "false"
	}
	return v
}

type replyFacts struct {
	status int
	header http.Header
	body   []byte
}

// verdict judges an API error. One with the status of a success came inside an open stream, and carries that stream's
// status and headers: its type says what it is.
func (f *replyFacts) verdict(now time.Time) Verdict {
	if f.status < http.StatusOK || f.status >= http.StatusMultipleChoices {
		return FromReply(f.status, f.header, f.body, now)
	}
	v := FromEvent("error", f.body, f.header, now)
	if v.Kind == OK {
		v.Kind, v.Rule = Broken, "error-inside-success"
	}
	return v
}

// apiFacts finds an API error anywhere in the chain: by method, else by the exported fields StatusCode and Response,
// which both SDKs' error structs have. Reflection costs only where something has failed already.
func apiFacts(err error) (replyFacts, bool) {
	for err != nil {
		if f, ok := factsOf(err); ok {
			return f, true
		}
		if many, ok := err.(interface{ Unwrap() []error }); ok {
			for _, e := range many.Unwrap() {
				if f, ok := apiFacts(e); ok {
					return f, true
				}
			}
			return replyFacts{}, false
		}
		err = errors.Unwrap(err)
	}
	return replyFacts{}, false
}

func factsOf(err error) (f replyFacts, ok bool) {
	switch e := err.(type) {
	case interface{ StatusCode() int }:
		f.status, ok = e.StatusCode(), true
	case interface{ HTTPStatusCode() int }: // the AWS SDK
		f.status, ok = e.HTTPStatusCode(), true
	}
	if s := structOf(err); s.IsValid() {
		if n := s.FieldByName("StatusCode"); n.IsValid() && n.CanInt() && !ok {
			f.status, ok = int(n.Int()), true
		}
		if r := s.FieldByName("Response"); r.IsValid() && r.CanInterface() {
			if resp, is := r.Interface().(*http.Response); is && resp != nil {
				f.header = resp.Header
			}
		}
	}
	if raw, is := err.(interface{ RawJSON() string }); is && ok {
		f.body = []byte(raw.RawJSON())
	}
	if coded, is := err.(interface{ ErrorCode() string }); is && ok && len(f.body) == 0 {
		f.body = wire.ErrorBody(wire.DialectUnknown, coded.ErrorCode(), "", "", "")
	}
	return f, ok
}

func structOf(err error) reflect.Value {
	v := reflect.ValueOf(err)
	if v.Kind() == reflect.Pointer && !v.IsNil() {
		v = v.Elem()
	}
	if v.Kind() != reflect.Struct {
		return reflect.Value{}
	}
	return v
}

// judgeTransport judges what failed without an answer.
func judgeTransport(err error) Verdict {
	var (
		certificate *x509.CertificateInvalidError
		hostname    x509.HostnameError
		authority   x509.UnknownAuthorityError
		request     *url.Error
		operation   *net.OpError
		name        *net.DNSError
		network     net.Error
	)
	switch {
	case errors.Is(err, context.Canceled):
		return Verdict{Kind: Cancelled, Rule: "context-canceled"}
	case errors.As(err, &certificate), errors.As(err, &hostname), errors.As(err, &authority):
		return Verdict{Kind: Terminal, NotSent: true, Rule: "tls-certificate"} // no retry makes a certificate right
	case errors.As(err, &name), errors.As(err, &operation) && operation.Op == "dial":
		return Verdict{Kind: Broken, NotSent: true, Rule: "no-connection"}
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &network) && network.Timeout():
		return Verdict{Kind: Broken, Silent: true, Rule: "timeout"}
	case connectionLost(err), errors.As(err, &operation):
		return Verdict{Kind: Broken, Rule: "connection-lost"}
	case errors.As(err, &request) && request.Temporary():
		return Verdict{Kind: Broken, Rule: "connection-lost"}
	}
	return Verdict{Kind: Terminal, Rule: "unknown-error"}
}
