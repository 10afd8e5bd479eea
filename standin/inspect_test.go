package standin_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"holdfast/standin"
)

// ask sends a request to a page of the server without a network.
func ask(s *standin.Server, method, page, body string, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, "/_standin/"+page, strings.NewReader(body))
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w
}

func TestJournalPageTakesAJobANumberAndALimit(t *testing.T) {
	s := standin.New(standin.Plan{Jobs: map[string][]standin.Step{"J-1": nil, "J-2": nil}})
	for _, job := range []string{"J-1", "J-2", "J-1", "nobody", "J-1"} {
		serveOnce(s, about(job))
	}
	for query, want := range map[string][]int{
		"": {1, 2, 3, 4, 5}, "?job=J-1": {1, 3, 5}, "?job=J-9": {}, "?job=": {4}, "?since=0": {1, 2, 3, 4, 5}, "?since=3": {4, 5}, "?since=5": {}, "?since=99": {},
		"?limit=2": {1, 2}, "?limit=0": {}, "?job=J-1&since=1&limit=1": {3}, "?limit=99": {1, 2, 3, 4, 5},
	} {
		w := ask(s, "GET", "journal"+query, "")
		j, err := standin.ReadJournal(w.Body)
		if err != nil || w.Code != 200 {
			t.Fatalf("%s: status %d, %v", query, w.Code, err)
		}
		got := []int{}
		for _, e := range j {
			got = append(got, e.Number)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", query, diff)
		}
	}
	for _, query := range []string{"?since=x", "?since=-1", "?limit=1.5", "?limit=-2"} {
		if w := ask(s, "GET", "journal"+query, ""); w.Code != 400 || !strings.Contains(w.Body.String(), "whole numbers from 0") {
			t.Errorf("%s: status %d: %s", query, w.Code, w.Body)
		}
	}
}

func TestLedgerAndReportPagesAreWhatTheMethodsReturn(t *testing.T) {
	s := standin.New(standin.Plan{Jobs: map[string][]standin.Step{"J-1": {{Kind: standin.Cut, How: standin.Clean}}}})
	serveOnce(s, about("J-1"))
	serveOnce(s, about("J-1"))

	var ledger standin.Ledger
	if err := json.Unmarshal(ask(s, "GET", "ledger", "").Body.Bytes(), &ledger); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(s.Ledger(), ledger); diff != "" || ledger.Total.PaidTwice.Attempts != 1 {
		t.Errorf("ledger (-want +got):\n%s", diff)
	}
	var report standin.Report
	w := ask(s, "GET", "report", "", "accept", "application/json")
	if err := json.Unmarshal(w.Body.Bytes(), &report); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(s.Report(), report); diff != "" || report.Requests != 2 || w.Header().Get("content-type") != "application/json" {
		t.Errorf("report (-want +got):\n%s", diff)
	}
	w = ask(s, "GET", "report", "", "accept", "text/plain")
	if w.Body.String() != s.Report().String() || !strings.HasPrefix(w.Header().Get("content-type"), "text/plain") {
		t.Errorf("report as text: %s", w.Body)
	}
}

func TestIndexListsEveryPage(t *testing.T) {
	s := standin.New(standin.Plan{})
	w := ask(s, "GET", "", "")
	lines := strings.Split(strings.TrimSuffix(w.Body.String(), "\n"), "\n")
	if w.Code != 200 || len(lines) != 7 {
		t.Errorf("status %d, %d lines:\n%s", w.Code, len(lines), w.Body)
	}
	for _, line := range lines {
		method, rest, _ := strings.Cut(line, " ")
		name, what, _ := strings.Cut(strings.TrimSpace(rest), " ")
		if got := ask(s, method, name, "").Code; got >= 400 && got != http.StatusBadRequest || strings.TrimSpace(what) == "" {
			t.Errorf("%s: status %d", line, got)
		}
	}
	for page, want := range map[string]int{"nothing": 404, "journal/": 404, "..": 404} {
		if w := ask(s, "GET", page, ""); w.Code != want || !strings.Contains(w.Body.String(), "GET  journal") {
			t.Errorf("%s: status %d: %s", page, w.Code, w.Body)
		}
	}
	if w := ask(s, "DELETE", "plan", ""); w.Code != 405 || w.Header().Get("allow") != "GET, PUT, POST" {
		t.Errorf("DELETE plan: status %d, allow %q", w.Code, w.Header().Get("allow"))
	}
	if n := len(s.Journal()); n != 0 {
		t.Errorf("%d pages are in the journal", n)
	}
}

func TestPlanPageShowsThePlanWithoutItsSecrets(t *testing.T) {
	attempt := 0
	s := standin.New(standin.Plan{
		Seed: 7, Reply: "canary-reply", BadKeys: []string{"canary-key"},
		Jobs:  map[string][]standin.Step{"J-1": {{Kind: standin.HTTP, Status: 429, RetryAfter: "1", Body: "canary-body"}}},
		Steps: []standin.Step{{Delay: 1500 * time.Millisecond}, {Kind: standin.HTTP, Status: 529, Header: standin.Header{"x-should-retry": {"false"}}}},
		Rules: []standin.Rule{{Match: standin.Match{
			Model: "claude-*", Header: map[string]string{"X-Api-Key": "canary-key", "x-team": "blue"}, Nth: standin.Span{From: 3}, Attempt: &attempt,
		}, Share: 0.5, Steps: []standin.Step{{Kind: standin.Empty}}}},
		Timeline: []standin.Incident{{Name: "outage", From: time.Minute, Share: standin.Ramp{From: 1, To: 0.5}, Step: standin.Step{Kind: standin.Empty}, Limits: &standin.Limits{RequestsPerMinute: 5}}},
		Latency:  standin.Latency{FirstToken: standin.Spread{Min: time.Second, Max: 2 * time.Second}},
	})
	w := ask(s, "GET", "plan", "")
	want := `{"seed":7,` +
		`"rules":[{"match":{"model":"claude-*","header":{"x-team":"blue"},"nth":"3-","attempt":0},"share":0.5,"steps":[{"kind":"empty"}]}],` +
		`"jobs":{"J-1":[{"kind":"http","status":429,"retry_after":"1","body":"(11 bytes)"}]},` +
		`"steps":[{"delay":"1.5s"},{"kind":"http","header":{"x-should-retry":["false"]},"status":529}],` +
		`"timeline":[{"name":"outage","from":"1m0s","share":{"from":1,"to":0.5},"step":{"kind":"empty"},"limits":{"requests_per_minute":5}}],` +
		`"latency":{"first_token":{"min":"1s","max":"2s"}}}` + "\n"
	if diff := cmp.Diff(want, w.Body.String()); diff != "" || w.Code != 200 || w.Header().Get("content-type") != "application/json" {
		t.Errorf("status %d (-want +got):\n%s", w.Code, diff)
	}
}

func TestPlanPageRefusesABadPlanWithEveryMistake(t *testing.T) {
	s := standin.New(standin.Failing(-1, 503, ""))
	for _, method := range []string{"PUT", "POST"} {
		w := ask(s, method, "plan", `{"steps":[{"kind":"http","status":9},`+"\n"+`{"kind":"cut","how":"loudly"}]}`)
		if text := w.Body.String(); w.Code != 400 || !strings.Contains(text, "status") || !strings.Contains(text, "how") {
			t.Errorf("%s: status %d: %s", method, w.Code, text)
		}
	}
	if got := serveOnce(s, question).Code; got != 503 {
		t.Errorf("the old plan is not in force: status %d", got)
	}
	if w := ask(s, "PUT", "plan", strings.Repeat(" ", 9<<20)); w.Code != 413 {
		t.Errorf("a plan of 9 MiB: status %d", w.Code)
	}
}

// What the page shows is a plan: sent back, it means the same.
func TestPlanPageCanBeSentBack(t *testing.T) {
	stream := false
	for name, plan := range map[string]standin.Plan{
		"empty": {},
		"all": {
			Seed: 1<<64 - 1,
			Rules: []standin.Rule{{
				Name: "r", Per: standin.PerJob, Share: 0.25, Then: standin.Step{Kind: standin.Refusal, Category: "cyber"},
				Match: standin.Match{Path: "/v1/*", Stream: &stream, Nth: standin.Span{From: 3, To: 20, Every: 5}, Header: map[string]string{"x-a": "b*"}},
				Steps: []standin.Step{{Kind: standin.Cut, After: 2, How: standin.RST, Torn: standin.TornRune}},
			}},
			Jobs:     map[string][]standin.Step{"b": {{Kind: standin.Timeout}}, "a": {{Delay: 90 * time.Second}}},
			Steps:    []standin.Step{{Delay: 20 * time.Microsecond, Header: standin.Header{"x": {"1", "2"}}}, {Kind: standin.HTTP, Status: 429, RetryAfter: "now+3s", Code: "7", Times: -1}},
			Timeline: []standin.Incident{{From: time.Hour, To: 2 * time.Hour, Share: standin.Ramp{To: 1}, Step: standin.Step{Kind: standin.Reset}, Latency: &standin.Latency{}}},
			Limits:   &standin.Limits{Tier: standin.TierBuild, RequestsPerMinute: 7},
			Latency:  standin.Latency{FirstToken: standin.Spread{Median: time.Second, P99: 8 * time.Second}, PerToken: standin.Spread{Min: time.Millisecond, Max: time.Millisecond}},
		},
	} {
		text := ask(standin.New(plan), "GET", "plan", "").Body.Bytes()
		got, err := standin.ParsePlan(text)
		if diff := cmp.Diff(plan, got); diff != "" || err != nil {
			t.Errorf("%s: %s: %v (-want +got):\n%s", name, text, err, diff)
		}
	}
}

// No page shows a key, a prompt or an answer, whatever has happened.
func TestPagesShowNoKeyPromptOrAnswer(t *testing.T) {
	const canary = "canary"
	synctest.Test(t, func(t *testing.T) {
		s, c, url := serve(t, standin.Plan{
			Reply: canary + " answer", BadKeys: []string{canary + "-bad"},
			Steps: []standin.Step{{Kind: standin.HTTP, Status: 500, Body: canary}, {Kind: standin.Cut, After: 2}, {Kind: standin.Error}, {}, {Kind: standin.Refusal}},
		})
		for i := range 8 {
			for _, path := range []string{anthropicPath, openAIPath, "/v1/" + "nothing"} {
				for _, key := range []string{canary + "-good", canary + "-bad", ""} {
					body := `{"model":"m","max_tokens":50,"stream":` + []string{"true", "false"}[i%2] + `,"messages":[{"role":"user","content":"` + canary + `"}],"metadata":{"user_id":"` + canary + `"}}`
					req, err := http.NewRequestWithContext(t.Context(), "POST", url+path+"?key="+canary, strings.NewReader(body))
					if err != nil {
						t.Fatal(err)
					}
					req.Header.Set("authorization", "Bearer "+key)
					if res, err := c.Do(req); err == nil {
						_, _ = io.Copy(io.Discard, res.Body)
						res.Body.Close()
					}
				}
			}
		}
		for _, page := range []string{"", "journal", "ledger", "report", "plan", "nothing"} {
			for _, accept := range []string{"text/plain", "application/json"} {
				if text := ask(s, "GET", page, "", "accept", accept).Body.String(); strings.Contains(text, canary) || text == "" {
					t.Errorf("%s as %s: %s", page, accept, text)
				}
			}
		}
	})
}

// A tape is for plans made in Go, and no part of the page.
func TestPlanPageIsThereBesideATape(t *testing.T) {
	var tape bytes.Buffer
	upstream := &url.URL{Scheme: "http", Host: "api.test"}
	recorder, err := standin.Record(upstream, &tape, standin.RecordOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := recorder.Close(); err != nil {
		t.Fatal(err)
	}
	played, err := standin.ReadTape(&tape)
	if err != nil {
		t.Fatal(err)
	}
	w := ask(standin.New(standin.Plan{Seed: 7, Tape: played}), "GET", "plan", "")
	if want := "{\"seed\":7}\n"; w.Code != 200 || w.Body.String() != want {
		t.Errorf("status %d, page %s, want %s", w.Code, w.Body, want)
	}
}
