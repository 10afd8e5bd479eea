package holdfast_test

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"syscall"
	"testing"
	"time"

	"holdfast"
)

type methodError struct{ status int }

func (e methodError) Error() string   { return "method" }
func (e methodError) StatusCode() int { return e.status }

type knowing struct{ v holdfast.Verdict }

func (e knowing) Error() string             { return "knowing" }
func (e knowing) Verdict() holdfast.Verdict { return e.v }

func TestJudge(t *testing.T) {
	dial := &net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	read := &net.OpError{Op: "read", Err: os.NewSyscallError("read", syscall.ECONNRESET)}
	get := func(err error) error { return &url.Error{Op: "Post", URL: "http://x/?key=SECRET", Err: err} }
	for name, c := range map[string]struct {
		err  error
		want holdfast.Kind
	}{
		"nil":                                  {nil, holdfast.OK},
		"refused":                              {fmt.Errorf("turn: %w", holdfast.ErrRefused), holdfast.Refused},
		"empty":                                {holdfast.ErrEmpty, holdfast.Broken},
		"cut":                                  {holdfast.ErrCut, holdfast.Broken},
		"knows its verdict":                    {fmt.Errorf("x: %w", knowing{holdfast.Verdict{Kind: holdfast.Spent}}), holdfast.Spent},
		"status by method":                     {methodError{503}, holdfast.Overloaded},
		"status by field":                      {reply(529, ""), holdfast.Overloaded},
		"status in a joined error":             {errors.Join(errors.New("a"), fmt.Errorf("b: %w", reply(500, ""))), holdfast.Broken},
		"401":                                  {reply(401, ""), holdfast.Terminal},
		"413":                                  {reply(413, "<html>"), holdfast.Terminal},
		"408":                                  {reply(408, ""), holdfast.Broken},
		"409":                                  {reply(409, ""), holdfast.Broken},
		"unknown 4xx":                          {reply(418, ""), holdfast.Terminal},
		"unknown 5xx":                          {reply(599, ""), holdfast.Broken},
		"499":                                  {reply(499, ""), holdfast.Cancelled},
		"dial refused":                         {get(dial), holdfast.Broken},
		"reset":                                {get(read), holdfast.Broken},
		"no such host":                         {get(&net.DNSError{Err: "no such host", IsNotFound: true}), holdfast.Broken},
		"unexpected EOF":                       {io.ErrUnexpectedEOF, holdfast.Broken},
		"idle connection closed by the server": {get(errors.New("http: server closed idle connection")), holdfast.Broken},
		"GOAWAY":                               {get(errors.New("http2: server sent GOAWAY and closed the connection; LastStreamID=1")), holdfast.Broken},
		"timeout of something underneath":      {context.DeadlineExceeded, holdfast.Broken},
		"cancelled":                            {context.Canceled, holdfast.Cancelled},
		"unknown certificate authority":        {get(x509.UnknownAuthorityError{}), holdfast.Terminal},
		"certificate of another host":          {get(x509.HostnameError{Certificate: &x509.Certificate{}, Host: "x"}), holdfast.Terminal},
		"no protocol":                          {get(errors.New("unsupported protocol scheme \"\"")), holdfast.Terminal},
		"something else":                       {errors.New("json: cannot marshal"), holdfast.Terminal},
		"a nil pointer that is an error":       {(*apiError)(nil), holdfast.Terminal},
	} {
		t.Run(name, func(t *testing.T) {
			if got := holdfast.Judge(c.err); got.Kind != c.want {
				t.Errorf("judged %v by rule %q, want %v", got.Kind, got.Rule, c.want)
			}
		})
	}
	if v := holdfast.Judge(get(dial)); !v.NotSent {
		t.Error("a refused connection carried nothing")
	}
	if v := holdfast.Judge(get(read)); v.NotSent {
		t.Error("a reset connection may have carried everything")
	}
}

// The verdict table of the design, by what a call does.
func TestVerdictTable(t *testing.T) {
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	v := holdfast.FromReply(429, http.Header{"Retry-After": {"7"}, "Request-Id": {"req_1"}}, []byte(`{"type":"error","error":{"type":"rate_limit_error","message":"slow"}}`), now)
	if v.Kind != holdfast.Throttled || v.Wait != 7*time.Second || v.RequestID != "req_1" || v.Status != 429 || v.Type != "rate_limit_error" || v.Message != "slow" {
		t.Errorf("%+v", v)
	}
	v = holdfast.FromReply(429, nil, []byte(`{"error":{"type":"rate_limit_error","details":{"error_code":"enforced_spend_limit_reached"}}}`), now)
	if want := time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC); v.Kind != holdfast.Spent || !v.Resumes.Equal(want) {
		t.Errorf("%+v, want spent until %v", v, want)
	}
	v = holdfast.FromEvent("error", []byte(`{"type":"error","error":{"type":"overloaded_error","message":"x"}}`), nil, now)
	if v.Kind != holdfast.Overloaded || v.Status != 529 {
		t.Errorf("an error inside a stream is judged by its type, never by the 200: %+v", v)
	}
}

func FuzzFromReply(f *testing.F) {
	f.Add(429, "retry-after", "3", []byte(`{"error":{"type":"x"}}`))
	f.Add(200, "content-type", "text/html", []byte(`<html>`))
	f.Fuzz(func(t *testing.T, status int, header, value string, body []byte) {
		v := holdfast.FromReply(status, http.Header{http.CanonicalHeaderKey(header): {value}}, body, time.Unix(0, 0))
		if v.Wait < 0 || v.Kind.String() == "unknown" {
			t.Errorf("%+v", v)
		}
	})
}

func TestRejectedIsTheCredential(t *testing.T) {
	for _, row := range []struct {
		name string
		err  error
		want bool
	}{
		{"401", anthropicError(401, "authentication_error"), true},
		{"403", anthropicError(403, "permission_error"), true},
		{"a key that OpenAI does not know", reply(401, `{"error":{"code":"invalid_api_key","message":"x"}}`), true},
		{"404", anthropicError(404, "not_found_error"), false},
		{"400", anthropicError(400, "invalid_request_error"), false},
		{"429", anthropicError(429, "rate_limit_error"), false},
	} {
		t.Run(row.name, func(t *testing.T) {
			if v := holdfast.Judge(row.err); v.Rejected != row.want || row.want && v.Kind != holdfast.Terminal {
				t.Errorf("%+v, want rejected %v", v, row.want)
			}
		})
	}
}
