package gateway_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"go.uber.org/goleak"

	"holdfast"
	"holdfast/gateway"
	"holdfast/internal/testnet"
	"holdfast/standin"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	message = `{"model":"claude-sonnet-5-5","max_tokens":100,"messages":[{"role":"user","content":"one question"}]}`
	chat    = `{"model":"gpt-5","messages":[{"role":"user","content":"one question"}]}`
)

func streamed(body string) string { return strings.Replace(body, "{", `{"stream":true,`, 1) }

// house is a gateway in a network with the upstreams that it asks.
type house struct {
	*testnet.Network
	t       *testing.T
	gateway *gateway.Gateway
	url     string
	client  *http.Client
	seen    *records
}

// upstream is a stand-in and its name.
func (h *house) upstream(name string, plan standin.Plan) *standin.Server {
	h.t.Helper()
	s := standin.New(plan)
	h.Serve(h.t, name+".test:80", s)
	return s
}

// handle is an upstream of a test's own.
func (h *house) handle(name string, f http.HandlerFunc) {
	h.t.Helper()
	h.Serve(h.t, name+".test:80", f)
}

func newHouse(t *testing.T) *house {
	t.Helper()
	n := testnet.New()
	return &house{Network: n, t: t, client: n.Client(), seen: &records{}}
}

func target(name, dialect string, keys ...gateway.Key) gateway.Target {
	return gateway.Target{Name: name, URL: "http://" + name + ".test", Dialect: dialect, Keys: keys}
}

// open starts the gateway. Chance is switched off: every draw is the whole bound.
func (h *house) open(s gateway.Settings) {
	h.t.Helper()
	h.openWith(s, func() float64 { return 1 })
}

// openWith leaves chance to dice.
func (h *house) openWith(s gateway.Settings, dice func() float64) {
	h.t.Helper()
	if s.Base == nil {
		s.Base = h.Network.Client().Transport
	}
	s.Policy.Dice = dice
	if s.Observer == nil {
		s.Observer = h.seen
	}
	g, err := gateway.New(s)
	if err != nil {
		h.t.Fatal(err)
	}
	h.gateway = g
	h.url = h.Serve(h.t, "gateway.test:80", g).URL
}

// reply is what a caller got.
type reply struct {
	*http.Response
	body string
	err  error // of reading the body
}

func (h *house) ask(path, body string, headers ...string) reply {
	h.t.Helper()
	return h.do(h.t.Context(), http.MethodPost, path, body, headers...)
}

func (h *house) do(ctx context.Context, method, path, body string, headers ...string) reply {
	h.t.Helper()
	req, err := http.NewRequestWithContext(ctx, method, h.url+path, strings.NewReader(body))
	if err != nil {
		h.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-Api-Key", "sk-caller")
	req.Header.Set("Anthropic-Version", "2023-06-01")
	for _, header := range headers {
		name, value, _ := strings.Cut(header, ": ")
		req.Header.Set(name, value)
		if value == "" {
			req.Header.Del(name)
		}
	}
	resp, err := h.client.Do(req)
	if err != nil {
		return reply{Response: &http.Response{Header: http.Header{}}, err: err}
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return reply{resp, string(text), err}
}

// records are what the gateway told of its calls.
type records struct {
	mu     sync.Mutex
	calls  []gateway.Record
	events []holdfast.Event
}

func (r *records) Call(c gateway.Record) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls = append(r.calls, c)
}

func (r *records) Event(e holdfast.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, e)
}

// last is the record of the call that ended last, once it has.
func (r *records) last(t *testing.T) gateway.Record {
	t.Helper()
	synctest.Wait() // the record comes after the reply
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.calls) == 0 {
		t.Fatal("the gateway told of no call")
	}
	return r.calls[len(r.calls)-1]
}

// bubble runs a test on a clock of its own.
func bubble(t *testing.T, name string, f func(*testing.T)) {
	t.Helper()
	t.Run(name, func(t *testing.T) { synctest.Test(t, f) })
}
