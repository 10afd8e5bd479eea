package main

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"holdfast"
	"holdfast/gateway"
	"holdfast/standin"
)

// course is the record of a call to the targets first and second whose attempts end with these verdicts after 100 ms, under
// a policy that waits exactly as it is told.
func courseOf(t *testing.T, policy holdfast.Policy, verdicts ...holdfast.Verdict) gateway.Record {
	t.Helper()
	policy.ServerWait, policy.Dice = holdfast.Exact, func() float64 { return 0.5 }
	start := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	now := start
	call := holdfast.NewCall(&policy)
	step := call.Begin(now, time.Time{}, holdfast.Tokens{})
	for _, v := range verdicts {
		if step.Action != holdfast.Send {
			t.Fatalf("the call is to %v before the verdict %v", step.Action, v.Kind)
		}
		now = now.Add(100 * time.Millisecond)
		if step = call.Settle(now, v, holdfast.Tokens{}); step.Action == holdfast.Wait {
			now = now.Add(step.Wait)
			step = call.Resume(now)
		}
	}
	if step.Action != holdfast.Stop {
		now = now.Add(50 * time.Millisecond)
		call.Leave(now)
	}
	trace := call.Trace()
	return gateway.Record{
		ID: "3f9c1b2a44d0e871", Start: start, Method: "POST", Path: "/v1/messages", Model: "claude-opus-5", Route: "opus", Client: "alice",
		Trace: trace, Elapsed: now.Sub(start), Source: trace.Source, Target: trace.Target(),
	}
}

var (
	throttled = holdfast.Verdict{Kind: holdfast.Throttled, Status: 429, Type: "rate_limit_error", Message: "Slow down.", RequestID: "req_1", Wait: 7 * time.Second, Rule: "status-throttle"}
	down      = holdfast.Verdict{Kind: holdfast.Overloaded, Status: 529, Type: "overloaded_error", Rule: "status-overload"}
	pair      = []holdfast.Target{{Name: "first"}, {Name: "second"}}
)

// The whole text of three calls, so that whoever changes a word sees what is read.
func TestExplainedCalls(t *testing.T) {
	answered := courseOf(t, holdfast.Policy{Targets: pair, Attempts: 2}, throttled, holdfast.Verdict{Kind: holdfast.Broken, Silent: true, Rule: "attempt-timeout"}, holdfast.Verdict{})
	answered.Outcome, answered.Status, answered.Stream = gateway.Answered, 200, true
	failed := courseOf(t, holdfast.Policy{Attempts: 2}, down, down)
	failed.Outcome, failed.Status, failed.Reason, failed.Error = gateway.Failed, 529, "upstream-error", "holdfast: all attempts used after 2 attempts in 450ms: 529 overloaded_error"
	left := courseOf(t, holdfast.Policy{}, down)
	left.Outcome, left.Status, left.Stacked = gateway.Left, 499, 1
	for file, r := range map[string]gateway.Record{"answered": answered, "failed": failed, "left": left} {
		c := r.Report()
		got := (&explained{c, advice(&c)}).text()
		file = "testdata/explain/" + file + ".txt"
		if os.Getenv("UPDATE") != "" {
			if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if got != string(want) {
			t.Errorf("it differs from %s; UPDATE=1 go test -run TestExplainedCalls ./cmd/holdfast writes it anew:\n%s", file, got)
		}
	}
}

func TestAdviceFitsTheFailure(t *testing.T) {
	t.Parallel()
	open := holdfast.NewBreaker(holdfast.BreakerSettings{Failures: 1})
	ticket, _, _ := open.Allow(time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC))
	open.Settle(time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC), ticket, holdfast.Failure)
	terminal := func(status int) holdfast.Verdict { return holdfast.Verdict{Kind: holdfast.Terminal, Status: status} }
	const failed = gateway.Failed
	for _, c := range []struct {
		name     string
		policy   holdfast.Policy
		verdicts []holdfast.Verdict
		outcome  gateway.Outcome
		reason   string
		want     []string // a piece of each line, in order
	}{
		{"answered", holdfast.Policy{}, []holdfast.Verdict{{}}, gateway.Answered, "", nil},
		{"cut", holdfast.Policy{}, []holdfast.Verdict{down}, gateway.Cut, "cut", []string{"delivery: whole"}},
		{"refused", holdfast.Policy{}, []holdfast.Verdict{{}}, gateway.Refused, "", []string{"on_refusal"}},
		{"left", holdfast.Policy{}, []holdfast.Verdict{down}, gateway.Left, "", []string{"no patience for more than"}},
		{"no client key", holdfast.Policy{}, nil, gateway.Rejected, "client-key", []string{"holdfast key new"}},
		{"too much of a client", holdfast.Policy{}, nil, gateway.Rejected, "client-limit", []string{"requests_per_minute"}},
		{"the body", holdfast.Policy{}, nil, gateway.Rejected, "too-large", []string{"limits.max_body"}},
		{"draining", holdfast.Policy{}, nil, gateway.Rejected, "draining", []string{"another instance"}},
		{"a new kind of rejection", holdfast.Policy{}, nil, gateway.Rejected, "who-knows", nil},
		{"bad key", holdfast.Policy{}, []holdfast.Verdict{terminal(401)}, failed, "", []string{"another key"}},
		{"bad request", holdfast.Policy{}, []holdfast.Verdict{terminal(400)}, failed, "", []string{"another request"}},
		{"too long", holdfast.Policy{}, []holdfast.Verdict{{Kind: holdfast.Overflow, Status: 400}}, failed, "", []string{"a shorter prompt"}},
		{"unsafe", holdfast.Policy{}, []holdfast.Verdict{{Kind: holdfast.Unsafe, Was: holdfast.Broken}}, failed, "", []string{"look at the upstream"}},
		{"attempts", holdfast.Policy{Attempts: 1}, []holdfast.Verdict{down}, failed, "", []string{"a further target", "saved at the end"}},
		{"attempts on two targets", holdfast.Policy{Attempts: 1, Targets: pair}, []holdfast.Verdict{down, down}, failed, "", []string{"saved at the end"}},
		{"throttled", holdfast.Policy{Attempts: 1}, []holdfast.Verdict{throttled}, failed, "", []string{"a further key", "a further target", "saved at the end"}},
		{"the server's wait", holdfast.Policy{MaxServerWait: time.Second}, []holdfast.Verdict{throttled}, failed, "", []string{"policy.max_server_wait of at least 7s", "a further key", "a further target", "saved"}},
		{"deadline", holdfast.Policy{Deadline: 2 * time.Second}, []holdfast.Verdict{throttled}, failed, "", []string{"more time for the call", "a further key", "a further target", "saved"}},
		{"spent", holdfast.Policy{}, []holdfast.Verdict{{Kind: holdfast.Spent, Status: 402}}, failed, "", []string{"a key with another account", "saved"}},
		{"circuit", holdfast.Policy{Breaker: open}, nil, failed, "", []string{"asking again later", "a further target", "saved"}},
	} {
		r := courseOf(t, c.policy, c.verdicts...)
		r.Outcome, r.Status = c.outcome, 500
		if c.reason != "" {
			r.Reason = c.reason
		}
		report := r.Report()
		got := advice(&report)
		if len(got) != len(c.want) {
			t.Errorf("%s: advice is %q, want %d lines", c.name, got, len(c.want))
			continue
		}
		for i, piece := range c.want {
			if !strings.Contains(got[i], piece) {
				t.Errorf("%s: line %d is %q, want one with %q", c.name, i+1, got[i], piece)
			}
		}
	}
}

// fakeAdmin answers as an admin listener does, and notes what was asked.
func fakeAdmin(t *testing.T, calls ...gateway.CallReport) (url string, asked *[]string) {
	t.Helper()
	asked = new([]string)
	mux := http.NewServeMux()
	give := func(w http.ResponseWriter, status int, v any) {
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(v)
	}
	mux.HandleFunc("GET /api/calls/{id}", func(w http.ResponseWriter, r *http.Request) {
		*asked = append(*asked, r.URL.String())
		for _, c := range calls {
			if c.ID == r.PathValue("id") {
				give(w, 200, c)
				return
			}
		}
		give(w, 404, gateway.ErrorReport{Error: "gateway: no call of this id is known", Hint: "look at the log"})
	})
	mux.HandleFunc("GET /api/calls", func(w http.ResponseWriter, r *http.Request) {
		*asked = append(*asked, r.URL.String())
		give(w, 200, map[string]any{"calls": calls[:min(1, len(calls))]})
	})
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s.URL, asked
}

// What the gateway tells and what the command reads are held against each other on real sockets.
func TestExplainAfterACallThroughTheGateway(t *testing.T) {
	_, api := standin.Serve(t, standin.Failing(1, 429, "0.01"))
	g, err := gateway.New(gateway.Settings{Targets: []gateway.Target{{Name: "api", URL: api, Dialect: "anthropic"}}, Policy: holdfast.Policy{ServerWait: holdfast.Exact}})
	if err != nil {
		t.Fatal(err)
	}
	front, admin := httptest.NewServer(g), httptest.NewServer(g.Admin(nil))
	defer front.Close()
	defer admin.Close()
	const body = `{"model":"claude-sonnet-5-5","max_tokens":10,"messages":[{"role":"user","content":"one question"}]}`
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, front.URL+"/v1/messages", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header = http.Header{"X-Api-Key": {"any"}, "Anthropic-Version": {"2023-06-01"}, "Content-Type": {"application/json"}}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, res.Body)
	_ = res.Body.Close()
	front.Close() // which waits for the call, and so for its record
	out, words, code := runLine(t, "explain", res.Header.Get("Holdfast-Trace"), "--admin", admin.URL)
	for _, want := range []string{
		"call " + res.Header.Get("Holdfast-Trace") + ": POST /v1/messages for claude-sonnet-5-5\n", "\nanswered after ", ", live by api\n",
		"\nattempt 1 at ", "  429 rate_limit_error after ", "it asked to wait 10ms; so the call waited 10ms and asked again\n", "\nattempt 2 at ", "  so its answer is the call's\n",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("exit code %d, %q is not in\n%s%s", code, want, out, words)
		}
	}
}

func TestExplainAsksTheGateway(t *testing.T) {
	r := courseOf(t, holdfast.Policy{Attempts: 1}, down)
	r.Outcome, r.Status = gateway.Failed, 529
	admin, asked := fakeAdmin(t, r.Report())
	other := httptest.NewServer(http.NotFoundHandler())
	defer other.Close()
	none, _ := fakeAdmin(t)
	for _, c := range []struct {
		args       string
		code       int
		out, words string
	}{
		{"3f9c1b2a44d0e871 --admin " + admin, 0, "call 3f9c1b2a44d0e871: POST /v1/messages for claude-opus-5\n", ""},
		{"last --admin " + admin, 0, "call 3f9c1b2a44d0e871: ", ""},
		{"last --json --admin " + admin, 0, `"advice": [`, ""},
		{"0123 --admin " + admin, 1, "", "error: no call of this id is known\nhint: look at the log\n"},
		{"../status --admin " + admin, 1, "", "error: no call of this id is known\n"},
		{"last --admin " + none, 1, "", "error: no call failed since the gateway started\nhint: give the id"},
		{"0123 --admin " + other.URL, 1, "", "is no admin listener of a gateway\nhint: --admin says where"},
		{"0123 --admin http://127.0.0.1:1", 1, "", "error: no gateway answers: "},
		{"0123 --admin nowhere", 2, "", `error: --admin "nowhere" is not the URL of an admin listener`},
		{"0123 --status 429", 2, "", `error: "0123" is the id of a call, and the flags describe a reply`},
		{"0123 4567", 2, "", "accepts at most 1 arg"},
	} {
		out, words, code := runLine(t, append([]string{"explain"}, strings.Fields(c.args)...)...)
		if code != c.code || !strings.Contains(out, c.out) || !strings.Contains(words, c.words) || code != 0 && out != "" {
			t.Errorf("explain %s: exit code %d, want %d\n%s%s", c.args, code, c.code, out, words)
		}
	}
	if want := "/api/calls/3f9c1b2a44d0e871 /api/calls?failed=1&limit=1"; strings.Join((*asked)[:2], " ") != want {
		t.Errorf("asked %v, want first %s", *asked, want)
	}
}
