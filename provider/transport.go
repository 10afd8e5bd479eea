package provider

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"

	"github.com/anthropics/anthropic-sdk-go/v2"
	"github.com/anthropics/anthropic-sdk-go/v2/option"

	"holdfast/internal/endpoint"
	"holdfast/internal/wire"
)

// Transport is an http.RoundTripper that asks one provider. Make one with [New]. It is safe for concurrent use, and one
// should serve all requests, since it keeps the credentials that it found.
type Transport struct {
	settings Settings
	known    endpoint.Endpoint
	client   *http.Client
	// options are those of the SDK's client of the provider, with credentials that are good for now.
	options func(ctx context.Context) ([]option.RequestOption, error)
}

var _ http.RoundTripper = (*Transport)(nil)

// New returns a transport for the provider that the settings name. It looks for no credentials, asks no network and never panics; what is
// missing or wrong in the settings is an [*Error].
func New(s Settings) (t *Transport, err error) {
	if err := s.Validate(); err != nil {
		return nil, err
	}
	defer func() { // the SDK's constructors panic where they could return an error
		if fault := recover(); fault != nil {
			t, err = nil, s.wrong(credentialHints[s.Provider], "the client of the SDK cannot be made: %v", fault)
		}
	}()
	s = s.copied()
	t = &Transport{settings: s}
	t.known, _ = endpoint.Cloud(s.Provider)
	t.client = &http.Client{
		Transport:     s.Base,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }, // a signature is for one address
	}
	switch s.Provider {
	case Bedrock:
		t.options = t.bedrock()
	case BedrockMantle, AWS:
		t.options = t.platform()
	case Vertex:
		t.options = t.vertex()
	case GoogleCloud:
		t.options, err = t.googleCloud()
	case Foundry:
		t.options, err = t.foundry()
	}
	if err != nil {
		return nil, err
	}
	return t, nil
}

// Provider returns its name. It never tells more of the settings.
func (t *Transport) Provider() string { return t.settings.Provider }

// MaxBody returns the largest request in bytes that the provider takes, 0 where that is not known to differ from the Claude API's.
// RoundTrip never sends a larger one.
func (t *Transport) MaxBody() int64 { return t.known.MaxBody }

// Serves reports whether the provider serves a path, such as /v1/messages/batches, as far as is known. It never asks the
// provider.
func (t *Transport) Serves(path string) bool { return t.known.Serves(path) }

// RoundTrip sends a request as the Claude API takes it, and returns the answer as the Claude API gives it: a stream is one of
// server-sent events and unbuffered, an error has the provider's own status and body. Of the request's URL the path and the query
// count alone. Credentials, cookies and hop-by-hop headers of the request are never sent. A path that the provider does not
// serve, and a request without a model, get an error in the shape of the Claude API that was made here. A request that
// could not be sent is an [*Error], or the error of Base.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Body != nil {
		defer func() { _ = req.Body.Close() }()
	}
	if req.URL == nil || !t.known.Serves(req.URL.Path) {
		return t.refuse(req, http.StatusNotFound, fmt.Sprintf("%s does not serve this path; Holdfast has not sent the request", t.known.Title)), nil
	}
	body, err := t.body(req)
	if err != nil {
		return nil, err
	}
	if needsModel(req) && wire.ReadRequest(body).Model == "" {
		return t.refuse(req, http.StatusBadRequest, "the request names no model, or is no JSON; Holdfast has not sent it"), nil
	}
	return t.send(req, body)
}

func needsModel(req *http.Request) bool {
	return req.Method == http.MethodPost && wire.DialectOf(req.URL.Path) == wire.DialectAnthropic
}

// body reads the request's body, plain and with the provider's name for the model: it is signed as a whole.
func (t *Transport) body(req *http.Request) ([]byte, error) {
	if req.Body == nil || req.Body == http.NoBody {
		return nil, nil
	}
	most := t.known.MaxBody
	src := io.Reader(req.Body)
	if most > 0 {
		if req.ContentLength > most {
			return nil, t.tooLarge()
		}
		src = io.LimitReader(src, most+1)
	}
	body, err := io.ReadAll(src)
	if err != nil {
		return nil, err
	}
	if most > 0 && int64(len(body)) > most {
		return nil, t.tooLarge() // and what was read is not all of it
	}
	if req.Header.Get("Content-Encoding") != "" {
		plain, ok := wire.Unpack(body, orDefault(most, mostUnpacked))
		if !ok {
			return nil, t.tooLarge()
		}
		body = plain
	}
	if name, ok := t.settings.Models[wire.ReadRequest(body).Model]; ok {
		body = wire.SetModel(body, name)
	}
	if most > 0 && int64(len(body)) > most {
		return nil, t.tooLarge()
	}
	return body, nil
}

const mostUnpacked = 32 << 20 // what the Claude API takes

func orDefault(n, standard int64) int64 {
	if n == 0 {
		return standard
	}
	return n
}

func (t *Transport) tooLarge() error {
	return &Error{
		Provider: t.settings.Provider, Reason: ErrTooLarge, text: fmt.Sprintf("%s takes %d bytes", t.known.Title, orDefault(t.known.MaxBody, mostUnpacked)),
		hint: "send less, or ask a provider that takes more",
	}
}

// send runs the SDK's client. What it receives is taken out of its hands unread: it would read an error's body whole, and
// decode what is none of its business.
func (t *Transport) send(req *http.Request, body []byte) (*http.Response, error) {
	ctx := req.Context()
	options, err := t.options(ctx)
	if err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, err
	}
	var got *http.Response
	outermost := option.WithMiddleware(func(r *http.Request, next option.MiddlewareNext) (*http.Response, error) {
		carry(r.Header, req.Header)
		resp, err := next(r)
		if err != nil || resp == nil {
			return resp, err
		}
		got = resp
		return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: http.NoBody}, nil
	})
	all := append([]option.RequestOption{outermost, option.WithHTTPClient(t.client), option.WithMaxRetries(0), option.WithoutOpenTelemetry()}, options...)
	path := req.URL.EscapedPath()
	if req.URL.RawQuery != "" {
		path += "?" + req.URL.RawQuery
	}
	var params any
	if body != nil {
		params = body
	}
	err = new(anthropic.Client).Execute(ctx, req.Method, path, params, nil, all...)
	if err == nil && got == nil {
		err = errors.New("there is neither an answer nor an error")
	}
	if err != nil {
		if got != nil {
			_ = got.Body.Close() // the caller left while it came
		}
		return nil, t.failure(ctx, err)
	}
	got.Request = req
	return got, nil
}

// failure is an error of the SDK's client as a base transport would have it.
func (t *Transport) failure(ctx context.Context, err error) error {
	var own *Error
	var sent *url.Error
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.As(err, &own):
		return own
	case errors.As(err, &sent) && sent.Err != nil:
		return sent.Err // without the address
	}
	return &Error{Provider: t.settings.Provider, Reason: ErrRequest, Err: err, hint: "the name of the model is a part of the address there; look at models"}
}

// refuse makes a reply in the shape of the Claude API.
func (t *Transport) refuse(req *http.Request, status int, text string) *http.Response {
	body := wire.ErrorBody(wire.DialectAnthropic, wire.ErrorType(wire.DialectAnthropic, status), "", text, "")
	return &http.Response{
		Status: strconv.Itoa(status) + " " + http.StatusText(status), StatusCode: status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header:  http.Header{"Content-Type": {"application/json"}, "Content-Length": {strconv.Itoa(len(body))}, "X-Should-Retry": {"false"}},
		Body:    io.NopCloser(bytes.NewReader(body)),
		Request: req, ContentLength: int64(len(body)),
	}
}
