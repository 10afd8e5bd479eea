package drill_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"holdfast"
	"holdfast/drill"
	"holdfast/standin"
)

// examples are the example plans of the stand-in, short enough to be read as a whole.
func examplePlan(t *testing.T, name string) *standin.Plan {
	t.Helper()
	plan, err := standin.LoadPlan(filepath.Join("..", "standin", "testdata", "plans", name+".yaml"))
	if err != nil {
		t.Fatal(err)
	}
	return &plan
}

func failedChecks(r *drill.Report) string {
	var failed []string
	for _, c := range r.Checks {
		if !c.OK {
			failed = append(failed, c.Name)
		}
	}
	return strings.Join(failed, ", ")
}

// The reports in testdata/plan are golden: UPDATE=1 writes them anew.
func TestExamplePlansGiveTheirReports(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		plan    string
		traffic drill.Traffic
		fails   string
	}{
		{"batch", drill.Traffic{Calls: 20}, ""},
		{"brownout", drill.Traffic{Rate: 1}, ""},
		{"flaky", drill.Traffic{Calls: 600}, ""},
		{"limits", drill.Traffic{Calls: 600, Rate: 2}, ""},
		{"model", drill.Traffic{Rate: 2, Model: "claude-opus-4-1"}, "calls answered by holdfast"},
		{"outage", drill.Traffic{Rate: 4}, ""},
		{"streams", drill.Traffic{Calls: 12, Stream: true}, ""},
		{"tutorial", drill.Traffic{Calls: 5, Rate: -1, Workers: 1}, ""},
	} {
		t.Run(c.plan, func(t *testing.T) {
			t.Parallel()
			c.traffic.Plan = examplePlan(t, c.plan)
			r := play(t, "plan", drill.Options{Traffic: c.traffic})
			if got := failedChecks(r); got != c.fails {
				t.Errorf("failed checks: %q, want %q", got, c.fails)
			}
			golden(t, c.plan, text(t, r))
		})
	}
}

// A breaker that is opened again by the first failures of an API that comes back by and by, for longer and longer, is
// worse than none. Over some seeds as many calls are answered as without any retries, under a lower load.
func TestSlowRecoveryIsUsed(t *testing.T) {
	t.Parallel()
	ours, none := 0, 0
	for seed := range uint64(4) {
		r := play(t, "plan", drill.Options{Seed: seed + 1, Traffic: drill.Traffic{Rate: 4, Plan: examplePlan(t, "outage")}})
		for name, sum := range map[string]*int{"holdfast": &ours, "no retries": &none} {
			var answered int
			if _, err := fmt.Sscan(row(t, r, 0, name)["answered"], &answered); err != nil {
				t.Fatal(err)
			}
			*sum += answered
		}
	}
	if ours < none {
		t.Errorf("%d calls are answered, and %d without retries", ours, none)
	}
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", "plan", name+".txt")
	if os.Getenv("UPDATE") != "" {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%v; UPDATE=1 writes it", err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", file, diff)
	}
}

func TestPlanFigures(t *testing.T) {
	t.Parallel()
	broken := standin.Step{Kind: standin.HTTP, Status: 529, Times: -1}
	slow := standin.Latency{FirstToken: standin.Spread{Min: time.Second, Max: time.Second}}
	for _, c := range []struct {
		name    string
		traffic drill.Traffic
		policy  func(*holdfast.Policy)
		want    map[string]string
		fails   string
	}{
		{
			"nothing fails", drill.Traffic{Plan: &standin.Plan{}, Calls: 10, Tokens: holdfast.Tokens{Input: 300, Output: 40}}, nil,
			map[string]string{"answered": "10 (100.00 %)", "attempts per call": "1.000", "load": "1.000x", "half s": "0.0", "tokens billed": "3400", "paid twice": "0", "limit used": "-"}, "",
		},
		{
			"workers wait in line", drill.Traffic{Plan: &standin.Plan{Latency: slow}, Calls: 10, Rate: -1, Workers: 2}, nil,
			map[string]string{"answered": "10 (100.00 %)", "half s": "3.0", "99 % s": "5.0"}, "",
		},
		{
			"a minute's rate of one", drill.Traffic{Plan: &standin.Plan{Limits: &standin.Limits{RequestsPerMinute: 60}}, Calls: 60, Rate: 1}, nil,
			map[string]string{"answered": "60 (100.00 %)", "limit used": "50.4 %"}, "",
		},
		{
			"it fails for ever, and retries are bounded", drill.Traffic{Plan: &standin.Plan{Steps: []standin.Step{broken}}, Calls: 5, Rate: 0.01},
			func(p *holdfast.Policy) { p.Attempts, p.Breaker, p.Budget = 3, nil, nil },
			map[string]string{"answered": "0 (0.00 %)", "saved": "5", "failed": "0", "attempts per call": "3.000", "load": "3.000x"}, "",
		},
		{
			"a terminal error is not hidden", drill.Traffic{Plan: &standin.Plan{Steps: []standin.Step{{Kind: standin.HTTP, Status: 400, Times: -1}}}, Calls: 5}, nil,
			map[string]string{"answered": "0 (0.00 %)", "saved": "0", "failed": "5", "attempts per call": "1.000"}, "",
		},
		{
			"a lost reply is paid twice", drill.Traffic{Plan: &standin.Plan{Steps: []standin.Step{{Kind: standin.Lost}}}, Calls: 1}, nil,
			map[string]string{"answered": "1 (100.00 %)", "tokens billed": "1200", "paid twice": "600"}, "",
		},
		{
			"silence ends with the attempt's time", drill.Traffic{Plan: &standin.Plan{Steps: []standin.Step{{Kind: standin.Timeout}}}, Calls: 1},
			func(p *holdfast.Policy) { p.AttemptTimeout, p.Dice = 20*time.Second, nil },
			map[string]string{"answered": "1 (100.00 %)", "tokens billed": "1200"}, "",
		},
		{
			"silence without any timer", drill.Traffic{Plan: &standin.Plan{Steps: []standin.Step{{Kind: standin.Stall, Ping: time.Minute}}}, Calls: 2, Stream: true},
			func(p *holdfast.Policy) { p.Deadline = -1 },
			map[string]string{"answered": "1 (50.00 %)", "failed": "1"}, "every call of your policy ends",
		},
		{
			"a wait that is kept to the second", drill.Traffic{Plan: &standin.Plan{Steps: []standin.Step{{Kind: standin.HTTP, Status: 429, RetryAfter: "30"}}}, Calls: 1},
			func(p *holdfast.Policy) { p.ServerWait = holdfast.Exact },
			map[string]string{"answered": "1 (100.00 %)", "half s": "30.0"}, "",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			o, judged := drill.Options{Traffic: c.traffic}, "holdfast"
			if c.policy != nil {
				o.Policy, judged = own(c.policy), "your policy"
			}
			r := play(t, "plan", o)
			got := row(t, r, 0, judged)
			for column, want := range c.want {
				if got[column] != want {
					t.Errorf("%s is %s, want %s", column, got[column], want)
				}
			}
			if got := failedChecks(r); got != c.fails {
				t.Errorf("failed checks: %q, want %q\n%s", got, c.fails, text(t, r))
			}
		})
	}
}

func TestJobsOfAPlanTakeTurns(t *testing.T) {
	t.Parallel()
	fail := func(status int) []standin.Step { return []standin.Step{{Kind: standin.HTTP, Status: status}} }
	plan := &standin.Plan{Jobs: map[string][]standin.Step{"SHP-1": fail(500), "SHP-2": fail(503), "SHP-3": fail(400)}}
	r := play(t, "plan", drill.Options{Traffic: drill.Traffic{Plan: plan, Calls: 6}})
	for job, status := range map[string]string{"SHP-1": "500", "SHP-2": "503", "SHP-3": "400"} {
		if got := row(t, r, 2, job); got["attempts"] == "" {
			t.Errorf("job %s met nothing", job)
		}
		found := false
		for _, cells := range r.Sections[2].Rows {
			found = found || cells[0] == job && cells[2] == status && cells[3] == "1"
		}
		if !found {
			t.Errorf("job %s did not meet its %s once: %v", job, status, r.Sections[2].Rows)
		}
	}
}

func TestTrafficThatCannotBe(t *testing.T) {
	t.Parallel()
	for _, traffic := range []drill.Traffic{{Calls: -1}, {Calls: 100_001}, {Tokens: holdfast.Tokens{Input: -1}}} {
		if r, err := drill.Plan(t.Context(), drill.Options{Traffic: traffic}); err == nil {
			t.Errorf("%+v gives %v", traffic, r)
		}
	}
	if _, err := drill.Plan(t.Context(), drill.Options{Traffic: drill.Traffic{Plan: &standin.Plan{Steps: []standin.Step{{Kind: "typo"}}}}}); err == nil {
		t.Error("a plan with mistakes is played")
	}
}
