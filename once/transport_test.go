package once_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"holdfast"
	"holdfast/internal/testnet"
	"holdfast/once"
	"holdfast/transport"
)

// arrivals are the keys that a server saw, "-" for none.
type arrivals struct {
	*testnet.Server
	net *testnet.Network

	mu     sync.Mutex
	header string
	seen   []string
	bodies []string
	reply  func(n int, w http.ResponseWriter)
}

func serve(t *testing.T, header string, reply func(n int, w http.ResponseWriter)) *arrivals {
	t.Helper()
	a := &arrivals{net: testnet.New(), header: header, reply: reply}
	a.Server = a.net.Serve(t, "desk.test:80", a)
	return a
}

func (a *arrivals) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	a.mu.Lock()
	values := r.Header.Values(a.header)
	if len(values) == 0 {
		values = []string{"-"}
	}
	a.seen, a.bodies = append(a.seen, strings.Join(values, "+")), append(a.bodies, string(body))
	n := len(a.seen)
	a.mu.Unlock()
	if a.reply != nil {
		a.reply(n, w)
	}
}

func TestTransportSetsTheKeyWhereItBelongs(t *testing.T) {
	const header = "Idempotency-Key"
	k := once.Key("a")
	ofRequest := func(r *http.Request) string { return once.Key(r.Method, r.URL.Path) }
	for _, row := range []struct {
		name      string
		transport once.Transport
		method    string
		key       string // in the context
		own       []string
		set       bool
		header    string
		want      string
	}{
		{name: "POST", method: "POST", key: k, want: k},
		{name: "PUT", method: "PUT", key: k, want: k},
		{name: "PATCH", method: "PATCH", key: k, want: k},
		{name: "DELETE", method: "DELETE", key: k, want: k},
		{name: "GET", method: "GET", key: k, want: "-"},
		{name: "no method", key: k, want: "-"},
		{name: "HEAD", method: "HEAD", key: k, want: "-"},
		{name: "OPTIONS", method: "OPTIONS", key: k, want: "-"},
		{name: "no key", method: "POST", want: "-"},
		{name: "of the request", transport: once.Transport{Key: ofRequest}, method: "POST", want: once.Key("POST", "/tickets")},
		{name: "the context's comes first", transport: once.Transport{Key: ofRequest}, method: "POST", key: k, want: k},
		{name: "of the request, which has none", transport: once.Transport{Key: func(*http.Request) string { return "" }}, method: "POST", want: "-"},
		{name: "the caller's own", method: "POST", key: k, own: []string{"mine"}, set: true, want: "mine"},
		{name: "the caller's own, empty", method: "POST", key: k, own: []string{""}, set: true, want: ""},
		{name: "the caller's mark of a request that may be repeated", method: "POST", key: k, own: []string{}, set: true, want: "-"},
		{name: "another header", transport: once.Transport{Header: "paypal-request-id"}, method: "POST", key: k, header: "PayPal-Request-Id", want: k},
		{name: "in quotes", transport: once.Transport{Quote: true}, method: "POST", key: k, want: `"` + k + `"`},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				if row.header == "" {
					row.header = header
				}
				a := serve(t, row.header, nil)
				row.transport.Base = a.net.Client().Transport
				ctx := t.Context()
				if row.key != "" {
					ctx = once.WithKey(ctx, row.key)
				}
				req, _ := http.NewRequestWithContext(ctx, row.method, a.URL+"/tickets", nil)
				req.Method = row.method
				if row.set {
					req.Header[header] = row.own
				}
				before := req.Header.Clone()
				resp, err := (&http.Client{Transport: &row.transport}).Do(req)
				if err != nil {
					t.Fatal(err)
				}
				resp.Body.Close()
				if !slices.Equal(a.seen, []string{row.want}) {
					t.Errorf("the server saw %q, want %q", a.seen, row.want)
				}
				if len(req.Header) != len(before) || !slices.Equal(req.Header[header], before[header]) {
					t.Errorf("the caller's header became %v", req.Header)
				}
			})
		})
	}
}

// closeCounter is a body that knows whether it was closed.
type closeCounter struct {
	io.Reader
	closed int
}

func (c *closeCounter) Close() error { c.closed++; return nil }

func TestTransportSendsNoKeyThatNoHeaderHolds(t *testing.T) {
	t.Parallel()
	body := &closeCounter{Reader: strings.NewReader("x")}
	req, _ := http.NewRequestWithContext(once.WithKey(t.Context(), "a\r\nX-Evil: 1"), "POST", "http://desk.test", body)
	tr := &once.Transport{Base: roundTrip(func(*http.Request) (*http.Response, error) { t.Error("sent"); return nil, nil })}
	var wrong *once.KeyError
	if _, err := tr.RoundTrip(req); !errors.As(err, &wrong) || body.closed != 1 {
		t.Errorf("got %v, closed %d times", err, body.closed)
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// All attempts of a call carry one key, whichever side of the transport that repeats it stands on.
func TestAllAttemptsCarryOneKey(t *testing.T) {
	for _, outside := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			a := serve(t, "Idempotency-Key", func(n int, w http.ResponseWriter) {
				if n < 3 {
					w.WriteHeader(503)
				}
			})
			made := 0
			with := &once.Transport{Key: func(*http.Request) string { made++; return once.Key("call") }}
			again := transport.New(&holdfast.Policy{Judge: func(err error) holdfast.Verdict {
				v := holdfast.Judge(err)
				if v.Kind == holdfast.Unsafe { // the service honours keys
					v.Kind = v.Was
				}
				return v
			}}, nil)
			var client http.Client
			if outside {
				with.Base, again.Base, client.Transport = again, a.net.Client().Transport, with
			} else {
				again.Base, with.Base, client.Transport = with, a.net.Client().Transport, again
			}
			resp, err := client.Post(a.URL+"/tickets", "text/plain", strings.NewReader("note"))
			if err != nil || resp.StatusCode != 200 {
				t.Fatal(resp, err)
			}
			resp.Body.Close()
			k := once.Key("call")
			if !slices.Equal(a.seen, []string{k, k, k}) || !slices.Equal(a.bodies, []string{"note", "note", "note"}) || outside && made != 1 {
				t.Errorf("the server saw %q with %q; the key was made %d times", a.seen, a.bodies, made)
			}
		})
	}
}

// Do and Transport together, against a service that loses its first answer: one ticket, the first one, whoever asks.
func TestDoThroughTransport(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answers := map[string]string{}
		a := serve(t, "Idempotency-Key", nil)
		a.reply = func(n int, w http.ResponseWriter) {
			if answers[a.seen[n-1]] == "" {
				answers[a.seen[n-1]] = strings.Repeat("T", n)
			}
			if n == 1 {
				panic(http.ErrAbortHandler) // it happened, and nobody hears of it
			}
			io.WriteString(w, answers[a.seen[n-1]])
		}
		client := &http.Client{Transport: &once.Transport{Base: a.net.Client().Transport}}
		effect := once.Effect[string]{Replays: true, Run: func(ctx context.Context, _ string) (string, error) {
			req, err := http.NewRequestWithContext(ctx, "POST", a.URL, io.NopCloser(bytes.NewReader([]byte("note")))) // cannot be sent again by net/http
			if err != nil {
				return "", once.Nothing(err)
			}
			resp, err := client.Do(req)
			if err != nil {
				return "", err
			}
			defer resp.Body.Close()
			id, err := io.ReadAll(resp.Body)
			return string(id), err
		}}
		ledger := once.New(once.NewMemory(), once.Options{})
		for _, source := range []once.Source{once.Ran, once.Recorded} {
			if r, err := once.Do(t.Context(), ledger, key, effect); err != nil || r.Value != "T" || r.Source != source {
				t.Errorf("got %+v, %v", r, err)
			}
		}
		if !slices.Equal(a.seen, []string{key, key}) {
			t.Errorf("the server saw %q", a.seen)
		}
	})
}

// What the documentation warns of: with the header net/http repeats a POST by itself when a kept connection is dead, and
// without a way to have the body again it does not.
func TestNetHTTPRepeatsByItselfWhatHasAKey(t *testing.T) {
	for _, row := range []struct {
		key, again bool
		requests   int
		err        bool
	}{{key: true, again: true, requests: 3}, {key: true, requests: 2, err: true}, {again: true, requests: 2, err: true}} {
		synctest.Test(t, func(t *testing.T) {
			a := serve(t, "Idempotency-Key", func(n int, w http.ResponseWriter) {
				if n == 2 {
					panic(http.ErrAbortHandler) // the connection dies without a byte, after the request was served
				}
			})
			client := &http.Client{Transport: &once.Transport{Base: a.net.Client().Transport}}
			var last error
			for range 2 {
				ctx := t.Context()
				if row.key {
					ctx = once.WithKey(ctx, key)
				}
				req, _ := http.NewRequestWithContext(ctx, "POST", a.URL, strings.NewReader("note"))
				if !row.again {
					req.GetBody = nil
				}
				var resp *http.Response
				if resp, last = client.Do(req); last == nil {
					io.Copy(io.Discard, resp.Body)
					resp.Body.Close()
				}
				time.Sleep(time.Second)
			}
			if len(a.seen) != row.requests || (last != nil) != row.err {
				t.Errorf("%+v: the server saw %d requests, %v", row, len(a.seen), last)
			}
		})
	}
}
