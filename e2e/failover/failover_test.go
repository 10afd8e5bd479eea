package failover_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"text/tabwriter"

	"github.com/google/go-cmp/cmp"

	"holdfast/gateway"
	"holdfast/internal/testnet"
	"holdfast/standin"
)

const (
	messagesPath = "/v1/messages"
	chatPath     = "/v1/chat/completions"
	upstreamURL  = "http://api.test"
)

// dialect is how a column of the table calls.
type dialect struct {
	name, path string
	primary    string
	fallback   string // rejects the beginning of an answer, as all new models do
	old        string // takes it
}

var dialects = []dialect{
	{"anthropic", messagesPath, "claude-opus-4-8", "claude-sonnet-5-5", "claude-haiku-4-5"},
	{"openai", chatPath, "gpt-5.1", "gpt-5-mini", "gpt-4.1-mini"},
}

// subject is what stands between the caller and the upstream.
type subject struct {
	name string
	// open returns it for a chain of two models, and what it recorded of the calls so far: nil for one that keeps none.
	open func(t *testing.T, base http.RoundTripper, models [2]string) (http.Handler, func() []account)
	// must is whether the rows have to pass, or be honest failures where live delivery is hopeless.
	must, whole bool
}

// account is what a subject recorded of a call.
type account struct {
	target, source string
	input, output  int
}

var subjects = []subject{
	{name: "live,", open: gatewaySubject(gateway.Live), must: true},
	{name: "whole,", open: gatewaySubject(gateway.Whole), must: true, whole: true},
	{name: "no gateway,", open: bareSubject}, // what one has without
}

func upstream() *url.URL {
	u, err := url.Parse(upstreamURL)
	if err != nil {
		panic(err)
	}
	return u
}

type state int

const (
	failed state = iota
	told
	passed
)

// result is a cell of the table.
type result struct {
	state state
	why   string
}

func (r result) String() string { return [...]string{"FAIL", "told", "pass"}[r.state] }

const quiet = "a quiet end"

// world is the network of one cell.
type world struct {
	ctx               context.Context
	client            *http.Client
	url               string
	models            [2]string
	primary, fallback *standin.Server
	accounts          func() []account
}

// Sixty words of four characters are sixty tokens. Whose they are is on each.
func (w *world) text(whose string) string {
	var b strings.Builder
	for i := range 60 {
		fmt.Fprintf(&b, " %s%02d", whose[:1], i)
	}
	return b.String()[1:]
}

// ServeHTTP is the upstream: a stand-in for each model.
func (w *world) ServeHTTP(out http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	req.Body = io.NopCloser(bytes.NewReader(body))
	if bytes.Contains(body, fmt.Appendf(nil, `"model":%q`, w.models[1])) {
		w.fallback.ServeHTTP(out, req)
		return
	}
	w.primary.ServeHTTP(out, req)
}

// judge holds what the caller of one call got against the promises.
func (w *world) judge(c caller, got heard) result {
	right := got.text == w.text("primary") || got.text == w.text("fallback")
	part := strings.HasPrefix(w.text("primary"), got.text) || strings.HasPrefix(w.text("fallback"), got.text)
	switch {
	case !part:
		return result{failed, "two answers are joined, or one is there twice"}
	case got.whole && right:
		return result{state: passed}
	case got.whole && got.stop == "refusal", got.whole && got.stop == "content_filter":
		return result{told, "the refusal"}
	case got.told == "":
		return result{failed, quiet}
	case !c.stream && got.status == http.StatusOK:
		return result{failed, "a 200 that hides an error"}
	case c.stream && got.status == http.StatusOK:
		return result{told, fmt.Sprintf("%s, after %d of 60 tokens", got.told, len(strings.Fields(got.text)))}
	}
	return result{told, got.told}
}

// recorded wants one record, of the tokens that the caller was told.
func (w *world) recorded(got heard, source string) string {
	if w.accounts == nil {
		return "there is no record"
	}
	all := w.accounts()
	if len(all) != 1 {
		return fmt.Sprintf("%d records of one call", len(all))
	}
	if a := all[0]; a.source != source || a.input != got.input || a.output != got.output {
		return fmt.Sprintf("the record says %+v", a)
	}
	return ""
}

// play is one cell: the fault met by one subject in one dialect, with and without a stream.
func play(t *testing.T, s subject, d dialect, f fault) result {
	forms := []bool{true}
	if f.plain {
		forms = append(forms, false)
	}
	worst := result{state: passed}
	for _, stream := range forms {
		synctest.Test(t, func(t *testing.T) {
			if r := meet(t, s, d, f, stream); r.state < worst.state {
				worst = r
			}
		})
	}
	return worst
}

func meet(t *testing.T, s subject, d dialect, f fault, stream bool) result {
	net := testnet.New()
	w := &world{ctx: t.Context(), client: net.Client(), models: [2]string{d.primary, d.fallback}}
	if f.old {
		w.models[1] = d.old
	}
	plan := f.plan
	plan.Reply = w.text("primary")
	w.primary, w.fallback = standin.New(plan), standin.New(standin.Plan{Reply: w.text("fallback")})
	net.Serve(t, "api.test:80", w)
	handler, accounts := s.open(t, net.Client().Transport, w.models)
	w.accounts = accounts
	w.url = net.Serve(t, "gateway.test:80", handler).URL
	c := caller{path: d.path, model: d.primary, stream: stream}
	if f.run != nil {
		return f.run(w, c)
	}
	got := c.call(w.ctx, w.client, w.url)
	synctest.Wait()
	r := w.judge(c, got)
	if fault := w.broken(f, got, r); fault != "" {
		return result{failed, fault}
	}
	return r
}

// broken looks for promises that were broken although the caller may be content.
func (w *world) broken(f fault, got heard, r result) string {
	asked := w.primary.Journal()
	if err := asked.Check(standin.WaitsHonoured(0)); err != nil {
		return "a wait was not kept"
	}
	if n := len(asked); n > 3 {
		return fmt.Sprintf("%d requests to the primary", n)
	}
	if n := w.primary.Open() + w.fallback.Open(); n > 0 {
		return fmt.Sprintf("%d requests are open at the upstream", n)
	}
	if r.state == passed && f.also != nil {
		return f.also(w, got)
	}
	return ""
}

// TestFailover is the benchmark. Its table is golden: UPDATE=1 writes it anew, but no row of the gateway may get worse than
// the row says.
func TestFailover(t *testing.T) {
	var out strings.Builder
	var reasons []string
	fmt.Fprint(&out, "16 faults of the primary model, under 2 retries, 30 s to the first content and one fallback model.\n"+
		"Holdfast with live and whole delivery of streams, and a bare httputil.ReverseProxy.\n\n")
	table := tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)
	fmt.Fprint(table, "   fault")
	for _, s := range subjects {
		for _, d := range dialects {
			fmt.Fprintf(table, "\t%s %s", s.name, d.name)
		}
	}
	fmt.Fprintln(table)
	passes := make([]int, len(subjects)*len(dialects))
	for i, f := range faults {
		fmt.Fprintf(table, "%2d %s", i+1, f.name)
		for j, s := range subjects {
			for k, d := range dialects {
				r := play(t, s, d, f)
				fmt.Fprintf(table, "\t%v", r)
				if r.state == passed {
					passes[j*len(dialects)+k]++
				} else {
					reasons = append(reasons, fmt.Sprintf("%2d %s %s: %v: %s", i+1, s.name, d.name, r, r.why))
				}
				if s.must && r.state < f.least(s.whole) {
					t.Errorf("%s: %s %s: %v: %s", f.name, s.name, d.name, r, r.why)
				}
			}
		}
		fmt.Fprintln(table)
	}
	fmt.Fprint(table, "   passed")
	for _, n := range passes {
		fmt.Fprintf(table, "\t%d of %d", n, len(faults))
	}
	fmt.Fprintln(table)
	if err := table.Flush(); err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(&out, "\ntold: no answer, and the caller knows it. FAIL: a broken promise, or a failure that nobody is told of.\n\n%s\n", strings.Join(reasons, "\n"))
	if os.Getenv("HOLDFAST_FAILOVER_TABLE") == "1" {
		fmt.Print(out.String())
	}
	golden(t, filepath.Join("testdata", "failover.txt"), out.String())
}

// least is the worst that a row may come to.
func (f fault) least(whole bool) state {
	if f.hopeless && !whole {
		return told
	}
	return passed
}

func golden(t *testing.T, file, got string) {
	t.Helper()
	if os.Getenv("UPDATE") != "" {
		if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%v; UPDATE=1 writes it", err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("the table differs from %s (UPDATE=1 writes it anew):\n%s", file, diff)
	}
}
