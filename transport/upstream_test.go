package transport_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"holdfast"
	"holdfast/internal/testnet"
	"holdfast/transport"
)

// arrival is one request as the upstream saw it.
type arrival struct {
	at     time.Time
	header http.Header
	body   string
}

// upstream answers the nth request with the nth reply of its script, and all further ones with the last.
type upstream struct {
	*testnet.Server
	net    *testnet.Network
	client *http.Client // without Holdfast

	mu       sync.Mutex
	script   []http.HandlerFunc
	arrivals []arrival
}

func serve(t *testing.T, script ...http.HandlerFunc) *upstream {
	t.Helper()
	u := &upstream{net: testnet.New(), script: script}
	u.Server = u.net.Serve(t, "api.test:80", u)
	u.client = u.net.Client()
	return u
}

func (u *upstream) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	u.mu.Lock()
	n := min(len(u.arrivals), len(u.script)-1)
	u.arrivals = append(u.arrivals, arrival{time.Now(), r.Header.Clone(), string(body)})
	play := u.script[n]
	u.mu.Unlock()
	play(w, r)
}

func (u *upstream) seen() []arrival {
	u.mu.Lock()
	defer u.mu.Unlock()
	return append([]arrival(nil), u.arrivals...)
}

// gaps are the times between arrivals.
func (u *upstream) gaps() (gaps []time.Duration) {
	seen := u.seen()
	for i := 1; i < len(seen); i++ {
		gaps = append(gaps, seen[i].at.Sub(seen[i-1].at))
	}
	return gaps
}

func (u *upstream) expect(t *testing.T, requests int) {
	t.Helper()
	if got := len(u.seen()); got != requests {
		t.Errorf("the upstream saw %d requests, want %d", got, requests)
	}
}

// through returns a client with a transport on this network.
func (u *upstream) through(tr *transport.Transport) *http.Client {
	tr.Base = u.client.Transport
	return &http.Client{Transport: tr}
}

// respond is a reply with a status, headers ("name: value") and a body.
func respond(status int, body string, headers ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		for _, h := range headers {
			name, value, _ := strings.Cut(h, ": ")
			w.Header().Set(name, value)
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

const (
	message    = `{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[{"type":"text","text":"hello"}],"stop_reason":"end_turn","usage":{"input_tokens":10,"output_tokens":5}}`
	overloaded = `{"type":"error","error":{"details":null,"type":"overloaded_error","message":"Overloaded"},"request_id":"req_1"}`
	limited    = `{"type":"error","error":{"details":null,"type":"rate_limit_error","message":"slow"},"request_id":"req_2"}`
	invalid    = `{"type":"error","error":{"details":null,"type":"invalid_request_error","message":"bad"},"request_id":"req_3"}`
)

var good = respond(200, message)

// Pieces of an event stream.
const (
	start   = "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"msg_1\",\"type\":\"message\",\"role\":\"assistant\",\"model\":\"m\",\"content\":[],\"stop_reason\":null,\"usage\":{\"input_tokens\":10,\"output_tokens\":1}}}\n\n"
	block   = "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n"
	ping    = "event: ping\ndata: {\"type\":\"ping\"}\n\n"
	delta   = "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"hé\"}}\n\n"
	stop    = "event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":0}\n\n"
	reason  = "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\",\"stop_sequence\":null},\"usage\":{\"output_tokens\":16}}\n\n"
	end     = "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"
	failing = "event: error\ndata: " + overloaded + "\n\n"

	preamble = start + ping + block
	complete = preamble + delta + delta + stop + reason + end
)

// stream sends each piece in a write of its own.
func stream(pieces ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		send(w, pieces...)
	}
}

func send(w http.ResponseWriter, pieces ...string) {
	if w.Header().Get("Content-Type") == "" {
		w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	}
	w.WriteHeader(200)
	_ = http.NewResponseController(w).Flush()
	for _, p := range pieces {
		_, _ = io.WriteString(w, p)
		_ = http.NewResponseController(w).Flush()
	}
}

// then plays one after the other on the same response.
func then(parts ...http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		for _, p := range parts {
			p(w, r)
		}
	}
}

func rest(d time.Duration) http.HandlerFunc {
	return func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-time.After(d):
		case <-r.Context().Done():
		}
	}
}

// reset breaks the connection off; what the client has not read yet may be lost, so it is given the time to.
func reset(_ http.ResponseWriter, r *http.Request) {
	<-time.After(time.Millisecond)
	testnet.ConnOf(r).Reset()
}

func abort(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) } //nolint:forbidigo // the way of net/http to cut a body

func hang(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }

const prompt = `{"model":"m","max_tokens":100,"messages":[{"role":"user","content":"hi"}]}`

// ask posts a prompt to the Messages API.
func ask(t *testing.T, c *http.Client, url string) *http.Response {
	t.Helper()
	resp, err := c.Post(url+"/v1/messages", "application/json", strings.NewReader(prompt))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = resp.Body.Close() })
	return resp
}

func text(t *testing.T, resp *http.Response) string {
	t.Helper()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Errorf("reading the answer: %v", err)
	}
	return string(body)
}

// expectReply checks status and body, and that no client repeats an error.
func expectReply(t *testing.T, resp *http.Response, status int, body string) {
	t.Helper()
	got := text(t, resp)
	if resp.StatusCode != status || got != body {
		t.Errorf("got %d %s\nwant %d %s", resp.StatusCode, got, status, body)
	}
	if again := resp.Header.Get("X-Should-Retry"); (again == "false") != (status >= 400) {
		t.Errorf("x-should-retry is %q with %d", again, status)
	}
}

// bubble runs a test on fake time.
func bubble(t *testing.T, name string, f func(t *testing.T)) {
	t.Helper()
	t.Run(name, func(t *testing.T) { synctest.Test(t, f) })
}

// half is dice that always show the middle.
func half() float64 { return 0.5 }

// watched returns a policy with a breaker that opens after n failures, and the verdicts of its attempts as they come.
func watched(n int) (*holdfast.Policy, func() []holdfast.Verdict) {
	var mu sync.Mutex
	var verdicts []holdfast.Verdict
	p := &holdfast.Policy{
		Breaker: holdfast.NewBreaker(holdfast.BreakerSettings{Failures: n, Ratio: -1}),
		Dice:    half,
		Observe: func(e holdfast.Event) {
			if e.Kind == holdfast.EventAttempt {
				mu.Lock()
				defer mu.Unlock()
				verdicts = append(verdicts, e.Verdict)
			}
		},
	}
	return p, func() []holdfast.Verdict {
		mu.Lock()
		defer mu.Unlock()
		return verdicts
	}
}

// body is a request body that counts how it is treated.
type body struct {
	io.Reader
	closed atomic.Int32
	reads  atomic.Int32
}

func newBody(s string) *body { return &body{Reader: strings.NewReader(s)} }

func (b *body) Read(p []byte) (int, error) { b.reads.Add(1); return b.Reader.Read(p) }
func (b *body) Close() error               { b.closed.Add(1); return nil }

func request(t *testing.T, ctx context.Context, method, url string, b io.Reader) *http.Request {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, method, url, b)
	if err != nil {
		t.Fatal(err)
	}
	return req
}

// failedRead reads to the end and returns what came and the error that ended it.
func failedRead(resp *http.Response) (string, error) {
	var b bytes.Buffer
	_, err := b.ReadFrom(resp.Body)
	if err == nil {
		return b.String(), errors.New("it ended without an error")
	}
	return b.String(), err
}
