package standin_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"holdfast/standin"
)

func TestPlanIsReadFromJSON(t *testing.T) {
	got, err := standin.ParsePlan([]byte(`{
		"reply": "fine",
		"bad_keys": ["old"],
		"steps": [{"kind": "http", "times": -1, "status": 429, "retry_after": 2.50, "code": 17, "header": {"x-a": "b"}}],
		"jobs": {
			"SHP-1": [],
			"SHP-2": [{"kind": "cut", "after": 3, "how": "rst", "torn": "frame", "gap": 0.25}, {"delay": "1m"}, {"kind": "refusal", "category": "cyber"}]
		}
	}`))
	if err != nil {
		t.Fatal(err)
	}
	want := standin.Plan{
		Reply: "fine", BadKeys: []string{"old"},
		Steps: []standin.Step{{Kind: standin.HTTP, Times: -1, Status: 429, RetryAfter: "2.50", Code: "17", Header: standin.Header{"x-a": {"b"}}}},
		Jobs: map[string][]standin.Step{"SHP-1": nil, "SHP-2": {
			{Kind: standin.Cut, After: 3, How: standin.RST, Torn: standin.TornFrame, Gap: 250 * time.Millisecond},
			{Delay: time.Minute}, {Kind: standin.Refusal, Category: "cyber"},
		}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("plan (-want +got):\n%s", diff)
	}
}

func TestMistakesInThePlanNameTheirLine(t *testing.T) {
	tests := []struct {
		name, text string
		want       []string
	}{
		{"unknown fields, all of them", "{\n\"step\": [],\n\"jobs\": {\"a\": [\n{\"kind\": \"http\", \"retryAfter\": 1}\n]},\n\"colour\": 1\n}", []string{
			`line 2: unknown field "step" in a plan; did you mean "steps"?`,
			`line 4: unknown field "retryAfter" in a step; did you mean "retry_after"?`,
			`line 6: unknown field "colour" in a plan; there are ["bad_keys" "jobs" "reply" "steps"]`,
		}},
		{"repeated field", "{\"jobs\": {\"a\": [],\n\"a\": []}}", []string{`line 2: field "a" stands twice`}},
		{"wrong type", "{\"steps\": [\n{\"status\": \"x\"},\n{\"delay\": \"soon\"}, {\"retry_after\": true}]}", []string{
			"line 2: string where a value of type int belongs", `line 3: "soon" is not a time`, "line 3: true is neither text nor a number",
		}},
		{"wrong bracket", "{\n\"steps\": {}}", []string{"line 2: a list of steps must begin with ["}},
		{"broken JSON", "{\n\"steps\": [\n", []string{"line 3: unexpected EOF"}},
		{"nothing", "", []string{"line 1: unexpected EOF"}},
		{"more than a plan", "{}\n{}", []string{"something follows the plan"}},
		{"checked as well", `{"steps": [{"kind": "http"}]}`, []string{`steps[0]: a step of kind "http" needs a status`}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := standin.ParsePlan([]byte(tt.text))
			if err == nil {
				t.Fatal("no error")
			}
			lines := strings.Split(err.Error(), "\n")
			if len(lines) != len(tt.want) {
				t.Errorf("%d mistakes, want %d:\n%v", len(lines), len(tt.want), err)
			}
			for _, want := range tt.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("no %q in:\n%v", want, err)
				}
			}
		})
	}
}

func TestValidateReportsEveryMistakeAtOnce(t *testing.T) {
	plan := standin.Plan{
		BadKeys: []string{""},
		Steps: []standin.Step{
			{Kind: "explosion"},
			{Kind: standin.HTTP, Times: -1, Status: 99, Category: "cyber"},
			{Kind: standin.Cut, After: 2, At: standin.First, How: "loud"},
			{Kind: standin.Error, At: "late", After: -1},
			{Status: 500},
			{Delay: -1, RequestID: "a\nb", Header: standin.Header{"a b": {"c"}}},
		},
		Jobs: map[string][]standin.Step{"": nil, "J": {{Kind: standin.HTTP}}},
	}
	err := plan.Validate()
	if err == nil {
		t.Fatal("no mistake found")
	}
	want := []string{
		`steps[0]: unknown kind "explosion"; there are ok, http, refusal,`,
		`steps[1]: a step of kind "http" takes no category`,
		`steps[1]: status 99 is not between`,
		`steps[1]: times is negative, so the steps behind it are never played`,
		`steps[2]: after counts content events; at "first" has none`,
		`steps[2]: unknown ending "loud"`,
		`steps[3]: after -1 is not between`,
		`steps[3]: unknown stage "late"`,
		`steps[4]: a step of kind "ok" takes no status`,
		`steps[5]: delay and gap cannot be negative`,
		`steps[5]: header "a b" is not a header`,
		`steps[5]: request_id holds a control character`,
		`jobs[""]: a job needs a text`,
		`jobs["J"][0]: a step of kind "http" needs a status`,
		`bad_keys: `,
	}
	lines := strings.Split(err.Error(), "\n")
	if len(lines) != len(want) {
		t.Errorf("%d mistakes, want %d", len(lines), len(want))
	}
	for i, line := range lines {
		if i < len(want) && !strings.HasPrefix(line, "standin: "+want[i]) {
			t.Errorf("mistake %d: %s\nwant %s", i, line, want[i])
		}
	}
	defer func() {
		if recover() == nil {
			t.Error("New took the plan")
		}
	}()
	standin.New(plan)
}

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
	doc, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range standin.Faults() {
		step := standin.Step{Kind: f.Kind}
		if f.Kind == standin.HTTP {
			step.Status = 500
		}
		if err := (standin.Plan{Steps: []standin.Step{step}}).Validate(); err != nil || f.What == "" {
			t.Errorf("%s alone: %v", f.Kind, err)
		}
		for _, field := range f.Fields {
			if _, err := standin.ParsePlan(fmt.Appendf(nil, `{"steps":[{"kind":%q,%q:null}]}`, f.Kind, field)); err != nil && strings.Contains(err.Error(), "unknown field") {
				t.Errorf("%s has no field %q: %v", f.Kind, field, err)
			}
		}
		if !strings.Contains(string(doc), "//\n// "+string(f.Kind)+" ") {
			t.Errorf("the package comment has no paragraph that begins with %q", f.Kind)
		}
	}
}

// FuzzParsePlan: whatever is accepted is valid, and nothing panics.
func FuzzParsePlan(f *testing.F) {
	for _, s := range []string{
		`{}`, `{"steps":[{"kind":"http","status":429,"retry_after":1}]}`, `{"jobs":{"a":[{"kind":"cut","after":2}]}}`, `{"steps":[{"delay":1e9}]}`,
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
