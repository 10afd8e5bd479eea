package drill_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"holdfast"
	"holdfast/drill"
)

// jobLines are the lines of the jobs, remarks included.
func jobLines(r *drill.Report) []string { return r.Sections[0].Lines }

func TestLab18PrintsThePublishedLines(t *testing.T) {
	t.Parallel()
	want := []string{
		"SHP-1001 completed attempts=1 elapsed 0.0s  TCK-0001",
		"SHP-1002 completed attempts=2 elapsed 2.0s  TCK-0002 after 2 posts: acknowledgement lost, same key, replayed",
		"SHP-1003 completed attempts=3 elapsed 0.67s  TCK-0003",
		"SHP-1004 completed attempts=2 elapsed 20.1s  TCK-0004",
		"SHP-1005 failed attempts=1 elapsed 0.0s  invalid_request_error, status 400",
		"SHP-1006 completed attempts=2 elapsed 0.0s  max_tokens at 60, budget raised to 240; TCK-0005",
		"SHP-1007 completed attempts=2 elapsed 0.0s  refusal, category cyber, fallback model; TCK-0006",
		"SHP-2001 deferred_circuit_open attempts=3 elapsed 0.74s",
		"SHP-2002 deferred_circuit_open attempts=0 elapsed 0.0s",
		"SHP-2001 completed attempts=1 elapsed 0.0s  requeued; TCK-0007",
		"SHP-2002 completed attempts=1 elapsed 0.0s  requeued; TCK-0008",
		"SHP-3001 deadline_exceeded attempts=2 elapsed 2.0s",
	}
	r := published(t, "lab18")
	if d := cmp.Diff(want, jobLines(r)); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
	if got := r.Sections[1].Lines[0]; got != "closed->open, open->half_open, half_open->closed" {
		t.Errorf("transitions are %s", got)
	}
	if got := r.Sections[2].Title; got != "Tickets: 8 with idempotency keys, 9 without" {
		t.Errorf("tickets: %s", got)
	}
}

func TestLab18WritesItsFiles(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "new", "out")
	play(t, "lab18", drill.Options{Out: dir})
	trace, err := os.ReadFile(filepath.Join(dir, "trace.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	var events []string
	for line := range bytes.Lines(trace) {
		var e struct{ Job, Event string }
		if err := json.Unmarshal(line, &e); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		events = append(events, e.Job[4:]+" "+e.Event)
	}
	want := strings.Split(strings.TrimSpace(`
1001 response
1002 error
1002 backoff
1002 response
1003 error
1003 backoff
1003 error
1003 backoff
1003 response
1004 error
1004 backoff
1004 response
1005 error
1006 response
1006 response
1007 response
1007 response
2001 error
2001 backoff
2001 error
2001 backoff
2001 error
2001 circuit_opened
2002 short_circuit
2001 response
2002 response
3001 error
3001 backoff
3001 error
3001 deadline_exceeded`), "\n")
	if d := cmp.Diff(want, events); d != "" || len(events) != 30 {
		t.Errorf("%d events (-want +got)\n%s", len(events), d)
	}
	text, err := os.ReadFile(filepath.Join(dir, "outcomes.json"))
	if err != nil {
		t.Fatal(err)
	}
	var result struct {
		Outcomes    []struct{ Job, Outcome string }
		Transitions []string `json:"breaker_transitions"`
		Tickets     []struct {
			ID, Job string
			Key     string `json:"idempotency_key"`
			Posts   int
		}
		Events int `json:"trace_events"`
	}
	if err := json.Unmarshal(text, &result); err != nil {
		t.Fatal(err)
	}
	if len(result.Outcomes) != 12 || len(result.Transitions) != 3 || len(result.Tickets) != 8 || result.Events != 30 {
		t.Errorf("outcomes.json has %d outcomes, %d transitions, %d tickets, %d events", len(result.Outcomes), len(result.Transitions), len(result.Tickets), result.Events)
	}
	keys := map[string]bool{}
	for i, tk := range result.Tickets {
		keys[tk.Key] = true
		if want := fmt.Sprintf("TCK-%04d", i+1); tk.ID != want || tk.Key == "" {
			t.Errorf("ticket %d is %+v", i+1, tk)
		}
	}
	if len(keys) != 8 || result.Tickets[1].Job != "SHP-1002" || result.Tickets[1].Posts != 2 {
		t.Errorf("tickets are %+v", result.Tickets)
	}
}

func TestLab18TakesThePublishedPlanAsAFile(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("lab18.json")
	if err != nil {
		t.Fatal(err)
	}
	if r := play(t, "lab18", drill.Options{Plan: text}); len(r.Checks) != 19 || r.Exit() != 0 {
		t.Errorf("%d checks, exit status %d; want the 19 published ones to pass", len(r.Checks), r.Exit())
	}
}

func TestLab18PlansAreData(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, plan string
		want       []string
	}{
		{"no faults", `{"jobs": {"A": []}}`, []string{"A completed attempts=1 elapsed 0.0s  TCK-0001"}},
		{"attempts used up", `{"jobs": {"A": [{"kind":"http","status":500,"retry_after":1},{"kind":"http","status":500,"retry_after":1}]}, "policy": {"max_attempts": 2}}`,
			[]string{"A failed attempts=2 elapsed 1.0s  all attempts used"}},
		{"timeouts", `{"jobs": {"A": [{"kind":"timeout"}]}, "policy": {"per_call_timeout": 5, "max_attempts": 1}}`,
			[]string{"A failed attempts=1 elapsed 5.0s  all attempts used"}},
		{"a deadline ends a hang", `{"jobs": {"A": [{"kind":"timeout"}]}, "settings": {"A": {"deadline": 1.5}}}`,
			[]string{"A deadline_exceeded attempts=1 elapsed 1.5s"}},
		{"refused twice", `{"jobs": {"A": [{"kind":"refusal","category":"bio"},{"kind":"refusal"}]}}`,
			[]string{"A human_review attempts=2 elapsed 0.0s  refusal, category bio, fallback model; refusal, by the fallback model too"}},
		{"a pause is resumed", `{"jobs": {"A": [{"kind":"pause_turn"},{"kind":"pause_turn"},{"kind":"http","status":529,"retry_after":1}]}}`,
			[]string{"A completed attempts=4 elapsed 1.0s  paused, resumed; paused, resumed; TCK-0001"}},
		{"a pause without end", `{"jobs": {"A": [` + strings.Repeat(`{"kind":"pause_turn"},`, 99) + `{"kind":"pause_turn"}]}}`,
			[]string{"A paused attempts=11 elapsed 0.0s  " + strings.Repeat("paused, resumed; ", 10) + "paused after 10 resumptions"}},
		{"a full context window", `{"jobs": {"A": [{"kind":"context_window"}]}}`,
			[]string{"A truncated attempts=1 elapsed 0.0s  the context window is full"}},
		{"a fallback model that is cut", `{"jobs": {"A": [{"kind":"refusal"}]}, "settings": {"A": {"max_tokens": 100}}}`,
			[]string{"A completed attempts=3 elapsed 0.0s  refusal, fallback model; max_tokens at 100, budget raised to 400; TCK-0001"}},
		{"lost acknowledgements", `{"jobs": {"A": [], "B b": []}, "lost_acks": ["A", "B b"]}`,
			[]string{"A completed attempts=1 elapsed 0.0s  TCK-0001 after 2 posts: acknowledgement lost, same key, replayed", "B b completed attempts=1 elapsed 0.0s  TCK-0002 after 2 posts: acknowledgement lost, same key, replayed"}},
		{"many follow-ups", `{"jobs": {"A": []}, "settings": {"A": {"max_tokens": 1}}}`,
			[]string{"A completed attempts=5 elapsed 0.0s  max_tokens at 1, budget raised to 4; max_tokens at 4, budget raised to 16; max_tokens at 16, budget raised to 64; max_tokens at 64, budget raised to 256; TCK-0001"}},
		{"one failure opens", `{"jobs": {"A": [{"kind":"http","status":429}], "B": []}, "policy": {"failure_threshold": 1}}`,
			[]string{"A deferred_circuit_open attempts=1 elapsed 0.0s", "B deferred_circuit_open attempts=0 elapsed 0.0s", "A completed attempts=1 elapsed 0.0s  requeued; TCK-0001", "B completed attempts=1 elapsed 0.0s  requeued; TCK-0002"}},
		{"a long reset is waited for", `{"jobs": {"A": [{"kind":"http","status":500}]}, "policy": {"failure_threshold": 1, "reset_timeout": 100}}`,
			[]string{"A deferred_circuit_open attempts=1 elapsed 0.0s", "A completed attempts=1 elapsed 0.0s  requeued; TCK-0001"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := play(t, "lab18", drill.Options{Plan: []byte(c.plan)})
			if d := cmp.Diff(c.want, jobLines(r)); d != "" {
				t.Errorf("(-want +got)\n%s", d)
			}
			if r.Exit() != 0 {
				t.Errorf("checks: %+v", r.Checks)
			}
		})
	}
}

func TestLab18ReportsAllMistakesOfAPlan(t *testing.T) {
	t.Parallel()
	plan := `{
	"seed": -3,
	"jobs": {
		"SHP-1": [{"kind": "htpp", "status": 429}],
		"SHP-2": [{"kind": "http", "status": 200}, {"kind": "http"}],
		"SHP-3": [{"kind": "http", "status": 503, "retry_after": -1}],
		"SHP-4": [{"kind": "timeout", "status": 500}, {}],
		"SHP-5": [{"kind": "http", "status": "429", "category": "x"}]
	},
	"settings": {"SHP-6": {"deadline": 0, "max_tokens": 0}},
	"lost_ack": [],
	"lost_acks": ["SHP-1", "SHP-1"],
	"policy": {"base": -1}
}`
	_, err := drill.Lab18(t.Context(), drill.Options{Plan: []byte(plan)})
	var wrong *drill.PlanError
	if !errors.As(err, &wrong) || wrong.Hint() == "" {
		t.Fatalf("error is %v", err)
	}
	want := strings.Split(`drill: the plan has mistakes
line 2: seed: must be a whole number, not negative, not "-3"
line 4: jobs.SHP-1.0.kind: "htpp" is no kind of step; did you mean "http"?
line 5: jobs.SHP-2.0.status: is 200; a failure has a status from 400 to 599
line 5: jobs.SHP-2.1: an http step needs a status
line 6: jobs.SHP-3.0.retry_after: is -1, and must not be negative
line 7: jobs.SHP-4.0: only an http step has a status and a retry_after
line 7: jobs.SHP-4.1: a step needs a kind: http, timeout, refusal, pause_turn or context_window
line 8: jobs.SHP-5.0.status: must be a whole number, not the text "429"
line 8: jobs.SHP-5.0.status: is 0; a failure has a status from 400 to 599
line 8: jobs.SHP-5.0.category: only a refusal has a category
line 10: settings.SHP-6: there is no job "SHP-6"; did you mean "SHP-1"?
line 10: settings.SHP-6.max_tokens: is 0, and must be at least 1
line 10: settings.SHP-6.deadline: is 0, and must be above 0 seconds
line 11: lost_ack: unknown key; did you mean "lost_acks"?
line 12: lost_acks.1: "SHP-1" is there already; a job loses one acknowledgement
line 13: policy.base: is -1, and must be above 0 seconds`, "\n")
	if d := cmp.Diff(want, strings.Split(err.Error(), "\n")); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
	for text, want := range map[string]string{"": "jobs: must have at least one job", "{\"jobs\": 3}": `line 1: jobs: must be a mapping of keys, not "3"`, "{": "line 1: "} {
		if _, err := drill.Lab18(t.Context(), drill.Options{Plan: []byte(text)}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("plan %q: error is %v, want %q", text, err, want)
		}
	}
}

func TestLab18LiveAsksOnlyWhatThePlanLetsThrough(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		var asked []drill.LiveRequest
		r := play(t, "lab18", drill.Options{Live: func(_ context.Context, q drill.LiveRequest) (drill.LiveReply, error) {
			asked = append(asked, q)
			if q.MaxTokens < 100 {
				return drill.LiveReply{StopReason: "max_tokens", RequestID: "req_1"}, nil
			}
			return drill.LiveReply{StopReason: "end_turn", RequestID: "req_2"}, nil
		}})
		var outcomes []string
		for _, line := range jobLines(r) {
			outcomes = append(outcomes, strings.Join(strings.Fields(line)[:3], " "))
		}
		want := []string{
			"SHP-1001 completed attempts=1", "SHP-1002 completed attempts=2", "SHP-1003 completed attempts=3", "SHP-1004 completed attempts=2",
			"SHP-1005 failed attempts=1", "SHP-1006 completed attempts=2", "SHP-1007 completed attempts=2", "SHP-2001 deferred_circuit_open attempts=3",
			"SHP-2002 deferred_circuit_open attempts=0", "SHP-2001 completed attempts=1", "SHP-2002 completed attempts=1", "SHP-3001 deadline_exceeded attempts=2",
		}
		if d := cmp.Diff(want, outcomes); d != "" {
			t.Errorf("(-want +got)\n%s", d)
		}
		if len(asked) != 9 {
			t.Errorf("the endpoint was asked %d times, want 9: %v", len(asked), asked)
		}
		if asked[4].MaxTokens != 60 || asked[5].MaxTokens != 240 || asked[6].MaxTokens != 1024 {
			t.Errorf("budgets are those of %+v, want 60, 240 and 1024", asked[4:7])
		}
		if q := asked[6]; !q.Fallback || q.Job != "SHP-1007" {
			t.Errorf("after the refusal %+v was asked, want the fallback model", q)
		}
		if took := time.Since(start).Seconds(); took < 46 || took > 47 {
			t.Errorf("took %v s; want the waits of the plan, 46.5 s", took)
		}
		if r.Exit() != 0 {
			t.Errorf("checks: %+v", r.Checks)
		}
	})
}

// What an endpoint says is decided as production decides it: only an end that is one completes a job.
func TestLab18LiveTellsHowTurnsEnded(t *testing.T) {
	t.Parallel()
	for stop, want := range map[string]string{
		"end_turn": "A completed attempts=1 elapsed 0.0s  TCK-0001", "stop_sequence": "A completed attempts=1 elapsed 0.0s  TCK-0001",
		"max_tokens":                    "A truncated attempts=1 elapsed 0.0s  max_tokens at 1024",
		"model_context_window_exceeded": "A truncated attempts=1 elapsed 0.0s  the context window is full",
		"pause_turn":                    "A paused attempts=1 elapsed 0.0s  paused after 0 resumptions",
		"refusal":                       "A human_review attempts=2 elapsed 0.0s  refusal, category bio, fallback model; refusal, category bio, by the fallback model too",
		"never heard of":                "A unknown_reason attempts=1 elapsed 0.0s  unknown stop reason",
	} {
		t.Run(stop, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r := play(t, "lab18", drill.Options{Plan: []byte(`{"jobs": {"A": []}}`), Live: func(context.Context, drill.LiveRequest) (drill.LiveReply, error) {
					return drill.LiveReply{StopReason: stop, Category: "bio"}, nil
				}})
				if got := jobLines(r); len(got) != 1 || got[0] != want {
					t.Errorf("got %q, want %q", got, want)
				}
				if r.Exit() != 0 {
					t.Errorf("checks: %+v", r.Checks)
				}
			})
		})
	}
}

func TestLab18LiveFailsWhenNothingAnswers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := play(t, "lab18", drill.Options{Plan: []byte(`{"jobs": {"A": []}}`), Live: func(context.Context, drill.LiveRequest) (drill.LiveReply, error) {
			return drill.LiveReply{}, errors.New("no key")
		}})
		if r.Exit() != 1 {
			t.Errorf("checks: %+v", r.Checks)
		}
	})
}

func TestLab18LiveEndsWithItsContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for _, after := range []time.Duration{time.Second, 10 * time.Second, 30 * time.Second} { // in a wait, in a hang, between the rounds
			ctx, cancel := context.WithTimeout(t.Context(), after)
			start := time.Now()
			_, err := drill.Lab18(ctx, drill.Options{Live: func(context.Context, drill.LiveRequest) (drill.LiveReply, error) {
				return drill.LiveReply{StopReason: "end_turn"}, nil
			}})
			cancel()
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("after %v: error is %v", after, err)
			}
			if took := time.Since(start); took != after {
				t.Errorf("ended after %v, want %v", took, after)
			}
		}
	})
}

func TestLab18JudgesAPolicy(t *testing.T) {
	t.Parallel()
	r := play(t, "lab18", drill.Options{Policy: func() holdfast.Policy { return holdfast.Policy{Attempts: -1} }})
	if got := jobLines(r)[2]; got != "SHP-1003 failed attempts=1 elapsed 0.0s  all attempts used" {
		t.Errorf("a policy of one attempt: %s", got)
	}
}

func FuzzLab18Plan(f *testing.F) {
	if text, err := os.ReadFile("lab18.json"); err == nil {
		f.Add(text)
	}
	for _, seed := range []string{"{}", `{"jobs": {"A": [{"kind": "timeout"}]}, "policy": {"deadline": 1e300}}`, "jobs: {a: [{kind: refusal}]}", `{"jobs": {"A": [{"kind": "http", "status": 500, "retry_after": 1e300}]}}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if len(text) > 2048 {
			t.Skip("nobody writes such a plan by hand")
		}
		r, err := drill.Lab18(t.Context(), drill.Options{Plan: text})
		var wrong *drill.PlanError
		if err != nil && !errors.As(err, &wrong) {
			t.Fatal(err)
		}
		if r != nil && r.Exit() != 0 {
			t.Fatalf("the plan's own rules are broken: %+v", r.Checks)
		}
	})
}
