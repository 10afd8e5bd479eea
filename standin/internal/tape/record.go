package tape

import (
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/http/httputil"
	"net/url"
	"sync/atomic"
	"time"

	"holdfast/internal/wire"
)

// Options are what a Recorder can be told. The zero value is useful.
type Options struct {
	// NoPrompts keeps the digest and the size of a request's body in place of it.
	NoPrompts bool
	// Transport reaches the upstream. nil: one of its own, which unpacks nothing.
	Transport http.RoundTripper
	// Break resets the connection of a client whose reply the upstream reset. nil
	// closes it.
	Break func(net.Conn)
}

// Recorder is a proxy that keeps what passes through it on a tape. It changes
// nothing that passes and delays nothing. It is an http.Handler, safe for
// concurrent use; use NewRecorder.
type Recorder struct {
	proxy    *httputil.ReverseProxy
	own      *http.Transport // nil when the caller gave one
	upstream *url.URL
	options  Options
	tape     *writer
	arrived  atomic.Int64
	missed   atomic.Int64
}

// NewRecorder returns a recorder of the upstream, an http or https URL, and
// writes the head of the tape.
func NewRecorder(upstream *url.URL, out io.Writer, o Options) (*Recorder, error) {
	if upstream == nil || upstream.Host == "" || upstream.Scheme != "http" && upstream.Scheme != "https" {
		return nil, errors.New("the upstream is no http or https URL; it looks like https://api.anthropic.com")
	}
	kept, err := newWriter(out, upstream.Host, time.Now())
	if err != nil {
		return nil, err
	}
	r := &Recorder{upstream: upstream, options: o, tape: kept}
	next := o.Transport
	if next == nil {
		r.own = http.DefaultTransport.(*http.Transport).Clone()
		r.own.DisableCompression = true // the bytes pass as the client has asked for them
		r.own.MaxIdleConnsPerHost = 100
		next = r.own
	}
	r.proxy = &httputil.ReverseProxy{
		Rewrite:       r.rewrite,
		Transport:     listening{next},
		FlushInterval: -1,
		ErrorHandler:  r.unanswered,
		ErrorLog:      log.New(io.Discard, "", 0), // what fails is on the tape
	}
	return r, nil
}

// Close waits until the exchanges that have ended are on the tape. The error
// says how many are not, and why. End what serves the recorder before.
func (r *Recorder) Close() error {
	_, err := r.tape.rest()
	if r.own != nil {
		r.own.CloseIdleConnections()
	}
	return err
}

// Kept returns how many exchanges are on the tape by now.
func (r *Recorder) Kept() int {
	r.tape.mu.Lock()
	defer r.tape.mu.Unlock()
	return r.tape.kept
}

// Missed returns how many requests got a 502 because the upstream could not be
// reached. They are not on the tape.
func (r *Recorder) Missed() int { return int(r.missed.Load()) }

// leftOver is how much of a request is read after its reply so that its
// connection lives on. It is as much as net/http takes.
const leftOver = 256<<10 + 1

// ServeHTTP passes one exchange through. A reply that the upstream breaks off is
// broken off for the client too, with http.ErrAbortHandler.
func (r *Recorder) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	c := &capture{
		number: int(r.arrived.Add(1)), start: time.Now(), gone: req.Context(), digest: newDigest(),
		secrets: secretsOf(req, r.upstream.User),
	}
	defer func() {
		thrown := recover()
		x, err := c.exchange(req, r.options.NoPrompts)
		switch {
		case err != nil:
			r.tape.lose(err)
		case x != nil:
			r.tape.put(x)
		}
		if thrown == nil {
			return
		}
		if x != nil && x.End == Reset && r.options.Break != nil {
			if conn, _, err := http.NewResponseController(w).Hijack(); err == nil {
				r.options.Break(conn)
			}
		}
		panic(thrown)
	}()
	ctx := context.WithValue(req.Context(), captureKey{}, c)
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { c.reached() }})
	in := req.WithContext(ctx)
	if req.Body != nil && req.Body != http.NoBody {
		in.Body = &askedBody{ReadCloser: req.Body, to: c}
	}
	// The upstream may reply before it has the whole body; net/http would then
	// close what the transport is still reading. Where there is no HTTP/1, nothing
	// has to be asked for.
	_ = http.NewResponseController(w).EnableFullDuplex()
	r.proxy.ServeHTTP(&unadorned{ResponseWriter: w}, in)
	// And whoever asks has to read what is left: net/http would read it between
	// two requests, and panic in the second of them.
	if req.Body != nil {
		_, _ = io.CopyN(io.Discard, req.Body, leftOver)
	}
}

// rewrite points the request at the upstream and leaves the rest of it alone.
func (r *Recorder) rewrite(p *httputil.ProxyRequest) {
	p.Out.URL.RawQuery = p.In.URL.RawQuery // with what cannot be read of it
	p.SetURL(r.upstream)
	if user := r.upstream.User; user != nil && p.Out.Header.Get("Authorization") == "" {
		password, _ := user.Password()
		p.Out.SetBasicAuth(user.Username(), password)
	}
	for _, name := range []string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto"} {
		if values, ok := p.In.Header[name]; ok {
			p.Out.Header[name] = values
		}
	}
}

// unanswered ends an exchange that has no reply: one that has reached the
// upstream as the upstream did, by breaking it off.
func (r *Recorder) unanswered(w http.ResponseWriter, req *http.Request, _ error) {
	c := captureOf(req.Context())
	if c.hasReached() || c.gone.Err() != nil {
		panic(http.ErrAbortHandler)
	}
	r.missed.Add(1)
	dialect := wire.DialectOf(req.URL.Path)
	if dialect == wire.DialectUnknown {
		dialect = wire.DialectAnthropic
	}
	w.Header().Set("content-type", "application/json")
	w.WriteHeader(http.StatusBadGateway)
	body := wire.ErrorBody(dialect, wire.ErrorType(dialect, http.StatusBadGateway), "", "The recorder cannot reach its upstream", "")
	_, _ = w.Write(body) // who left need not know
}

// unadorned is a ResponseWriter to which net/http adds no header of its own.
type unadorned struct{ http.ResponseWriter }

// WriteHeader implements http.ResponseWriter.
func (u *unadorned) WriteHeader(status int) {
	for _, name := range []string{"Content-Type", "Date"} {
		if _, ok := u.Header()[name]; !ok && status >= http.StatusOK {
			u.Header()[name] = nil
		}
	}
	u.ResponseWriter.WriteHeader(status)
}

// Unwrap is for http.ResponseController.
func (u *unadorned) Unwrap() http.ResponseWriter { return u.ResponseWriter }
