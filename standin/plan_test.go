package standin_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"holdfast/standin"
)

func TestPlanIsReadFromYAMLAndFromJSON(t *testing.T) {
	t.Parallel()
	one, yes := 1, true
	want := standin.Plan{
		Seed: 18446744073709551615, Reply: "fine", BadKeys: []string{"old"},
		Steps: []standin.Step{{
			Kind: standin.HTTP, Times: -1, Status: 429, RetryAfter: "2.50", Code: "17", Delay: 90 * time.Second,
			Header: standin.Header{"x-a": {"b"}, "x-should-retry": {"true"}, "retry-after": {"1", "2.0"}},
		}},
		Jobs: map[string][]standin.Step{"SHP-1": {}, "SHP: 2": {
			{Kind: standin.Cut, After: 3, How: standin.RST, Torn: standin.TornFrame, Gap: 250 * time.Millisecond},
			{Kind: standin.Refusal, Category: "cyber"},
		}},
		Rules: []standin.Rule{{
			Name: "one in ten",
			Match: standin.Match{
				Path: "/v1/messages*", Model: "claude-haiku-*", Header: map[string]string{"x-team": "a?"}, Text: "#7", CustomID: "row-*",
				Nth: standin.Span{From: 3, To: 5}, Attempt: &one, Stream: &yes,
			},
			Share: 0.1, Per: standin.PerJob, Steps: []standin.Step{{Kind: standin.Error}}, Then: standin.Step{Kind: standin.Empty},
		}},
		Timeline: []standin.Incident{
			{
				Name: "ramp", From: time.Minute, To: 3 * time.Minute, Share: standin.Ramp{From: 0.2, To: 1}, Match: standin.Match{Nth: standin.Span{Every: 10}},
				Step:    standin.Step{Kind: standin.HTTP, Status: 529, RetryAfter: "now+3s"},
				Limits:  &standin.Limits{Tier: standin.TierStart, RequestsPerMinute: 5, Growth: 1.5},
				Latency: &standin.Latency{FirstToken: standin.Spread{Min: time.Second, Max: 2 * time.Second}},
			},
			{Share: standin.Ramp{From: 0.5, To: 0.5}, Step: standin.Step{Kind: standin.Empty}},
		},
		Limits: &standin.Limits{InputTokensPerMinute: 2_000_000, Concurrent: 8},
		Latency: standin.Latency{
			FirstToken: standin.Spread{Median: 800 * time.Millisecond, P99: 5 * time.Second},
			PerToken:   standin.Spread{Min: 20 * time.Millisecond, Max: 20 * time.Millisecond},
		},
	}
	for name, text := range map[string]string{"YAML": planYAML, "JSON": planJSON} {
		got, err := standin.ParsePlan([]byte(text))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

const planYAML = `# a comment
seed: 18446744073709551615
reply: fine
bad_keys: old
steps:
  - {kind: http, times: -1, status: 429, retry_after: 2.50, code: 17, delay: 90, header: {x-a: b, x-should-retry: true, retry-after: [1, 2.0]}}
jobs:
  SHP-1: []
  "SHP: 2":
    - {kind: cut, after: 3, how: rst, torn: frame, gap: 0.25}
    - kind: refusal
      category: cyber
rules:
  - name: one in ten
    match: {path: /v1/messages*, model: claude-haiku-*, header: {x-team: a?}, text: "#7", custom_id: row-*, nth: 3-5, attempt: 1, stream: true}
    share: 0.1
    per: job
    steps: [{kind: error}]
    then: {kind: empty}
timeline:
  - name: ramp
    from: 60
    to: 3m
    share: {from: 0.2, to: 1}
    match: {nth: /10}
    step: {kind: http, status: 529, retry_after: now+3s}
    limits: {tier: start, requests_per_minute: 5, growth: 1.5}
    latency: {first_token: {min: 1s, max: 2}}
  - share: 0.5
    step: {kind: empty}
limits: {input_tokens_per_minute: 2000000, concurrent: 8}
latency:
  first_token: {median: 800ms, p99: 5s}
  per_token: 0.02
`

const planJSON = `{
	"seed": 18446744073709551615, "reply": "fine", "bad_keys": ["old"],
	"steps": [{"kind": "http", "times": -1, "status": 429, "retry_after": 2.50, "code": 17, "delay": 90,
		"header": {"x-a": "b", "x-should-retry": true, "retry-after": [1, 2.0]}}],
	"jobs": {
		"SHP-1": [],
		"SHP: 2": [{"kind": "cut", "after": 3, "how": "rst", "torn": "frame", "gap": 0.25}, {"kind": "refusal", "category": "cyber", "code": null}]
	},
	"rules": [{"name": "one in ten", "match": {"path": "/v1/messages*", "model": "claude-haiku-*", "header": {"x-team": "a?"}, "text": "#7",
		"custom_id": "row-*", "nth": "3-5", "attempt": 1, "stream": true}, "share": 1e-1, "per": "job", "steps": [{"kind": "error"}], "then": {"kind": "empty"}}],
	"timeline": [{"name": "ramp", "from": 60, "to": "3m", "share": {"from": 0.2, "to": 1}, "match": {"nth": "/10"},
		"step": {"kind": "http", "status": 529, "retry_after": "now+3s"}, "limits": {"tier": "start", "requests_per_minute": 5, "growth": 1.5},
		"latency": {"first_token": {"min": "1s", "max": 2}}}, {"share": 0.5, "step": {"kind": "empty"}}],
	"limits": {"input_tokens_per_minute": 2000000, "concurrent": 8},
	"latency": {"first_token": {"median": "800ms", "p99": "5s"}, "per_token": 0.02}
}`

func TestFailingIsTheTutorialsServer(t *testing.T) {
	tests := []struct {
		n    int
		want []standin.Step
	}{
		{0, nil},
		{2, []standin.Step{{Kind: standin.HTTP, Times: 2, Status: 429, RetryAfter: "1"}}},
		{-1, []standin.Step{{Kind: standin.HTTP, Times: -1, Status: 429, RetryAfter: "1"}}},
	}
	for _, tt := range tests {
		plan := standin.Failing(tt.n, 429, "1")
		if diff := cmp.Diff(standin.Plan{Steps: tt.want}, plan); diff != "" || plan.Validate() != nil {
			t.Errorf("%d: %v (-want +got):\n%s", tt.n, plan.Validate(), diff)
		}
	}
}

func TestTableOfFaultsIsTrue(t *testing.T) {
	for _, f := range standin.Faults() {
		step := standin.Step{Kind: f.Kind}
		if f.Kind == standin.HTTP {
			step.Status = 500
		}
		plan := standin.Plan{Steps: []standin.Step{step}}
		if f.Kind == standin.Refused || f.Kind == standin.Hang {
			plan = standin.Plan{Timeline: []standin.Incident{{Step: step}}}
		}
		if err := plan.Validate(); err != nil || f.What == "" {
			t.Errorf("%s alone: %v", f.Kind, err)
		}
		for _, field := range f.Fields {
			if _, err := standin.ParsePlan(fmt.Appendf(nil, `{"steps":[{"kind":%q,%q:null}]}`, f.Kind, field)); err != nil && strings.Contains(err.Error(), "unknown field") {
				t.Errorf("%s has no field %q: %v", f.Kind, field, err)
			}
		}
	}
}

// FuzzParsePlan: whatever is accepted is valid, and nothing panics.
func FuzzParsePlan(f *testing.F) {
	for _, s := range []string{
		`{}`, `{"steps":[{"kind":"http","status":429,"retry_after":1}]}`, `{"jobs":{"a":[{"kind":"cut","after":2}]}}`, `{"steps":[{"delay":1e9}]}`,
		planYAML, planJSON, "rules:\n  - match: {nth: 3-}\n    share: 0\n", "latency: {first_token: {median: 1s}}", "jobs: {? : []}", "- a", "a: &x b", "\t", "steps:\n- {kind: refused}",
		`{"step":1}`, `[`, `{"steps":null,"reply":null,"bad_keys":null}`, `{"steps":[{"delay":null,"code":null}]}`, `{"a":1,"a":2}`,
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		plan, err := standin.ParsePlan([]byte(text))
		if err == nil && plan.Validate() != nil {
			t.Errorf("accepted, but %v", plan.Validate())
		}
	})
}
