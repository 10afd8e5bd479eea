package telemetry_test

import (
	"fmt"
	"io"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"holdfast"
	"holdfast/gateway"
	"holdfast/telemetry"
)

// scrape is the page, without comments and without the metrics of others.
func scrape(t *testing.T, m *telemetry.Metrics) map[string]string {
	t.Helper()
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	text, err := io.ReadAll(w.Body)
	if err != nil || w.Code != 200 {
		t.Fatalf("status %d, %v", w.Code, err)
	}
	found := map[string]string{}
	for line := range strings.Lines(string(text)) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), " "); ok && strings.HasPrefix(name, "holdfast_") {
			found[name] = value
		}
	}
	return found
}

func check(t *testing.T, got map[string]string, want map[string]string) {
	t.Helper()
	for name, value := range want {
		if got[name] != value {
			t.Errorf("%s is %q, want %q", name, got[name], value)
		}
	}
}

// retried is the trace of a call that waited 2 s for a throttle and 1 s for an overload, and was answered.
func retried(t *testing.T) holdfast.Trace {
	t.Helper()
	policy := holdfast.Policy{ServerWait: holdfast.Exact}
	now := time.Now()
	call := holdfast.NewCall(&policy)
	call.Begin(now, time.Time{}, holdfast.Tokens{})
	for _, v := range []holdfast.Verdict{{Kind: holdfast.Throttled, Wait: 2 * time.Second}, {Kind: holdfast.Overloaded, Wait: time.Second}} {
		step := call.Settle(now, v, holdfast.Tokens{})
		now = now.Add(step.Wait)
		call.Resume(now)
	}
	call.Settle(now, holdfast.Verdict{}, holdfast.Tokens{})
	return call.Trace()
}

func TestCallsAreCounted(t *testing.T) {
	t.Parallel()
	m := telemetry.New()
	good := gateway.Record{
		Route: "opus", Client: "alice", Model: "claude-opus-5", Target: "anthropic", Outcome: gateway.Answered, Source: holdfast.Live, Stream: true,
		FirstContent: 400 * time.Millisecond, Elapsed: 4 * time.Second, Input: 9, Output: 16, CacheRead: 1, Bytes: 1000, Stacked: 2, Trace: retried(t),
	}
	m.Call(good)
	m.Call(good)
	m.Call(gateway.Record{Route: "opus", Outcome: gateway.Cut, Stream: true, FirstContent: time.Second, Elapsed: time.Minute, Bytes: 10})
	m.Call(gateway.Record{Outcome: gateway.Rejected, Elapsed: time.Second, Bytes: 99})
	m.Call(gateway.Record{Route: "opus", Outcome: gateway.Answered, Source: holdfast.Saved, Input: -5})
	check(t, scrape(t, m), map[string]string{
		`holdfast_calls_total{outcome="answered",route="opus",source="live"}`:       "2",
		`holdfast_calls_total{outcome="answered",route="opus",source="saved"}`:      "1",
		`holdfast_calls_total{outcome="cut",route="opus",source="none"}`:            "1",
		`holdfast_calls_total{outcome="rejected",route="",source="none"}`:           "1",
		`holdfast_client_calls_total{client="alice",outcome="answered"}`:            "2",
		`holdfast_stacked_retries_total`:                                            "2",
		`holdfast_call_seconds_count{route="opus",stream="true"}`:                   "2",
		`holdfast_call_seconds_sum{route="opus",stream="true"}`:                     "8",
		`holdfast_call_seconds_bucket{route="opus",stream="true",le="2.5"}`:         "0",
		`holdfast_call_seconds_bucket{route="opus",stream="true",le="5"}`:           "2",
		`holdfast_call_seconds_count{route="opus",stream="false"}`:                  "1",
		`holdfast_first_content_seconds_count{route="opus",stream="true"}`:          "3",
		`holdfast_first_content_seconds_count{route="opus",stream="false"}`:         "0",
		`holdfast_response_bytes_total{route="opus",stream="true"}`:                 "2010",
		`holdfast_response_bytes_total{route="",stream="false"}`:                    "",
		`holdfast_tokens_total{kind="input",route="opus",target="anthropic"}`:       "18",
		`holdfast_tokens_total{kind="output",route="opus",target="anthropic"}`:      "32",
		`holdfast_tokens_total{kind="cache_read",route="opus",target="anthropic"}`:  "2",
		`holdfast_tokens_total{kind="cache_write",route="opus",target="anthropic"}`: "0",
		`holdfast_wait_seconds_count{reason="throttled"}`:                           "2",
		`holdfast_wait_seconds_sum{reason="throttled"}`:                             "4",
		`holdfast_wait_seconds_sum{reason="overloaded"}`:                            "2",
		`holdfast_wait_seconds_count{reason="pace"}`:                                "",
		`holdfast_tokens_total{kind="input",route="opus",target=""}`:                "0",
	})
}

// A caller who leaves in the middle of a wait has waited only so long.
func TestWaitThatWasCutShort(t *testing.T) {
	t.Parallel()
	policy := holdfast.Policy{ServerWait: holdfast.Exact}
	now := time.Now()
	call := holdfast.NewCall(&policy)
	call.Begin(now, time.Time{}, holdfast.Tokens{})
	call.Settle(now, holdfast.Verdict{Kind: holdfast.Overloaded, Wait: 30 * time.Second}, holdfast.Tokens{})
	call.Leave(now.Add(3 * time.Second))
	m := telemetry.New()
	m.Call(gateway.Record{Outcome: gateway.Left, Trace: call.Trace()})
	check(t, scrape(t, m), map[string]string{
		`holdfast_wait_seconds_count{reason="overloaded"}`: "1", `holdfast_wait_seconds_sum{reason="overloaded"}`: "3",
		`holdfast_call_seconds_count{route="",stream="false"}`: "0",
	})
}

func TestEventsAreCounted(t *testing.T) {
	t.Parallel()
	m := telemetry.New()
	for range 3 {
		m.Event(holdfast.Event{Kind: holdfast.EventSend, Target: "a"})
		m.Event(holdfast.Event{Kind: holdfast.EventAttempt, Target: "a", Verdict: holdfast.Verdict{Kind: holdfast.Broken}})
	}
	m.Event(holdfast.Event{Kind: holdfast.EventAttempt, Target: "a"})
	m.Event(holdfast.Event{Kind: holdfast.EventCircuit, Target: "a", From: holdfast.Closed, To: holdfast.Open})
	m.Event(holdfast.Event{Kind: holdfast.EventSkip, Target: "a", Reason: holdfast.ErrOpen})
	m.Event(holdfast.Event{Kind: holdfast.EventSkip, Target: "b", Reason: holdfast.ErrPace})
	m.Event(holdfast.Event{Kind: holdfast.EventEnd, Target: "b"})
	got := scrape(t, m)
	check(t, got, map[string]string{
		`holdfast_attempts_total{target="a",verdict="broken"}`:       "3",
		`holdfast_attempts_total{target="a",verdict="ok"}`:           "1",
		`holdfast_circuit_transitions_total{target="a",to="open"}`:   "1",
		`holdfast_skips_total{reason="open",target="a"}`:             "1",
		`holdfast_skips_total{reason="pace",target="b"}`:             "1",
		`holdfast_circuit_transitions_total{target="a",to="closed"}`: "",
	})
}

func watched(time.Time) gateway.Status {
	return gateway.Status{
		InFlight: 7, Draining: true, Reload: gateway.Reload{At: time.Unix(1_800_000_000, 0), Error: "line 3"},
		Targets: []gateway.TargetStatus{
			{Name: "a", CircuitStates: map[string]int{"open": 1, "closed": 4}, Credentials: []gateway.CredentialStatus{
				{Key: "1", Queued: 3, RestingSeconds: 2.5, Resting: "held", Budget: 25, BudgetCapacity: 100},
				{Key: "2", Queued: 1, RestingSeconds: 1, Resting: "held", Budget: 100, BudgetCapacity: 100},
			}},
			{Name: "b", CircuitStates: map[string]int{"half_open": 1}},
			{Name: "c"},
		},
		Saved: &gateway.SavedStatus{Answers: 5, Bytes: 500, Hits: 3, Misses: 2, Kept: 9, Dropped: 1},
	}
}

func TestStatusIsShownAtEachScrape(t *testing.T) {
	t.Parallel()
	m := telemetry.New()
	scrapes := 0
	m.Watch(func(now time.Time) gateway.Status {
		s := watched(now)
		s.InFlight += scrapes
		scrapes++
		return s
	})
	check(t, scrape(t, m), map[string]string{`holdfast_in_flight_calls`: "7"})
	check(t, scrape(t, m), map[string]string{
		`holdfast_in_flight_calls`:                        "8",
		`holdfast_draining`:                               "1",
		`holdfast_reload_success`:                         "0",
		`holdfast_reload_timestamp_seconds`:               "1.8e+09",
		`holdfast_circuits{state="open",target="a"}`:      "1",
		`holdfast_circuits{state="closed",target="a"}`:    "4",
		`holdfast_circuits{state="half_open",target="a"}`: "0",
		`holdfast_circuit_state{target="a"}`:              "2",
		`holdfast_circuit_state{target="b"}`:              "1",
		`holdfast_circuit_state{target="c"}`:              "0",
		`holdfast_pace_queued_calls{target="a"}`:          "4",
		`holdfast_pace_held_seconds{target="a"}`:          "2.5",
		`holdfast_resting_credentials{target="a"}`:        "2",
		`holdfast_retry_budget_ratio{target="a"}`:         "0.25",
		`holdfast_retry_budget_ratio{target="c"}`:         "1",
		`holdfast_saved_answers`:                          "5",
		`holdfast_saved_answers_bytes`:                    "500",
		`holdfast_saved_lookups_total{result="hit"}`:      "3",
		`holdfast_saved_lookups_total{result="miss"}`:     "2",
		`holdfast_saved_kept_total`:                       "9",
		`holdfast_saved_dropped_total`:                    "1",
	})
}

// used are metrics of which each has a value.
func used(t *testing.T) *telemetry.Metrics {
	t.Helper()
	m := telemetry.New()
	m.Watch(watched)
	m.Call(gateway.Record{Route: "r", Client: "c", Target: "t", Outcome: gateway.Answered, Source: holdfast.Live, FirstContent: 1, Elapsed: 1, Input: 1, Trace: retried(t)})
	m.Event(holdfast.Event{Kind: holdfast.EventAttempt, Target: "t"})
	m.Event(holdfast.Event{Kind: holdfast.EventCircuit, Target: "t"})
	m.Event(holdfast.Event{Kind: holdfast.EventSkip, Target: "t", Reason: holdfast.ErrOpen})
	return m
}

func TestMetricsAreWellNamed(t *testing.T) {
	t.Parallel()
	problems, err := testutil.GatherAndLint(used(t).Gatherer())
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		if strings.HasPrefix(p.Metric, "holdfast_") {
			t.Errorf("%s: %s", p.Metric, p.Text)
		}
	}
	names := map[string]bool{}
	for name := range scrape(t, used(t)) {
		name, _, _ = strings.Cut(name, "{")
		names[regexp.MustCompile(`_(bucket|sum|count)$`).ReplaceAllString(name, "")] = true
	}
	if len(names) < 26 {
		t.Errorf("%d metrics, want all 26: %v", len(names), names)
	}
}

func TestHistogramsAreNativeToo(t *testing.T) {
	t.Parallel()
	families, err := used(t).Gatherer().Gather()
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, f := range families {
		for _, metric := range f.GetMetric() {
			if h := metric.GetHistogram(); strings.HasPrefix(f.GetName(), "holdfast_") && h.GetSampleCount() > 0 {
				found++
				if h.Schema == nil || len(h.GetPositiveSpan()) == 0 || len(h.GetBucket()) == 0 {
					t.Errorf("%s has not both kinds of buckets", f.GetName())
				}
			}
		}
	}
	if found < 4 {
		t.Errorf("%d histograms, want 4", found)
	}
}

// The labels are names of the configuration. Should one ever come from a caller, it must not fill the memory.
func TestLabelsAreBounded(t *testing.T) {
	t.Parallel()
	m := telemetry.New()
	const many = 1200
	var all sync.WaitGroup
	for worker := range 4 {
		all.Go(func() {
			for i := range many / 4 {
				name := fmt.Sprint("invented", worker, "-", i)
				m.Call(gateway.Record{Route: name, Outcome: gateway.Rejected})
				m.Event(holdfast.Event{Kind: holdfast.EventAttempt, Target: name})
			}
		})
	}
	all.Wait()
	got := scrape(t, m)
	check(t, got, map[string]string{
		`holdfast_calls_total{outcome="rejected",route="other",source="none"}`: fmt.Sprint(many - 1000),
		`holdfast_attempts_total{target="other",verdict="ok"}`:                 fmt.Sprint(many - 1000),
	})
	calls := 0
	for name := range got {
		if strings.HasPrefix(name, "holdfast_calls_total{") {
			calls++
		}
	}
	if calls != 1001 {
		t.Errorf("%d series of calls, want 1001", calls)
	}
}

// The caller's texts are in no metric.
func TestB160_NoTextOfACallerIsALabel(t *testing.T) {
	t.Parallel()
	const canary = "sk-ant-CANARY0123456789"
	m := telemetry.New()
	v := holdfast.Verdict{Kind: holdfast.Terminal, Status: 401, Type: canary, Code: canary, Message: canary, RequestID: canary}
	m.Call(gateway.Record{ID: canary, Model: canary, Method: canary, Path: canary, Error: canary, StopReason: canary, Outcome: gateway.Failed})
	m.Event(holdfast.Event{Kind: holdfast.EventAttempt, Target: "a", Verdict: v})
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	if strings.Contains(w.Body.String(), "CANARY") {
		t.Error("the canary is in the page")
	}
}

func BenchmarkCall(b *testing.B) {
	m := telemetry.New()
	r := gateway.Record{
		Route: "opus", Client: "alice", Target: "anthropic", Outcome: gateway.Answered, Source: holdfast.Live, Stream: true,
		FirstContent: 400 * time.Millisecond, Elapsed: 4 * time.Second, Input: 9, Output: 16, CacheRead: 1, Bytes: 1000,
	}
	b.ReportAllocs()
	for b.Loop() {
		m.Event(holdfast.Event{Kind: holdfast.EventSend, Target: "anthropic"})
		m.Event(holdfast.Event{Kind: holdfast.EventAttempt, Target: "anthropic"})
		m.Call(r)
	}
}
