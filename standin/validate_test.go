package standin_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"holdfast/standin"
)

func TestMistakesInThePlanNameTheirLine(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, text string
		want       []string
	}{
		{"unknown fields, all of them", "{\n\"step\": [],\n\"jobs\": {\"a\": [\n{\"kind\": \"http\", \"staus\": 500}\n]},\n\"colour\": 1\n}", []string{
			`2: step: unknown key; did you mean "steps"?`,
			`4: jobs.a.0.staus: unknown key; did you mean "status"?`,
			`6: colour: unknown key; known are seed, rules, jobs, steps, timeline, limits, latency, batches, reply, bad_keys`,
		}},
		{"repeated field", "{\"jobs\": {\"a\": [],\n\"a\": []}}", []string{`2: jobs.a: stands here again after line 1`}},
		{"wrong kind, and what is wrong besides", "steps:\n- {kind: http, status: x}\n- {delay: soon}\n- {kind: cut, how: loud}\nseed: -1\nreply: [a]", []string{
			`2: steps.0.status: must be a whole number, not "x"`,
			`3: steps.1.delay: must be a time such as 500ms or 10m, or a number of seconds, not "soon"`,
			`4: steps.2.how: unknown ending "loud"; there are clean, chunk, rst, stall`,
			`5: seed: must be a whole number, not negative, not "-1"`,
			`6: reply: must be text, not a list`,
		}},
		{"fields of other kinds", "steps:\n  - kind: cut\n    status: 500\n  - retry_after: 1\n  - kind: htpp\n    status: 500\n", []string{
			`3: steps.0.status: a step of kind "cut" takes no status; these do: `,
			`4: steps.1.retry_after: a step without a kind is an answer and takes no retry_after; these do: `,
			`5: steps.2.kind: unknown kind "htpp"; did you mean "http"?`,
		}},
		{"broken", "{\n\"steps\": [\n", []string{"2: sequence end token ']' not found"}},
		{"nothing", " \n", []string{"1: the plan is empty; {} answers everything"}},
		{"two plans", "reply: a\n---\nreply: b\n", []string{"3: a second document begins here; only one is read"}},
		{"not a plan", "- a\n", []string{"1: must be a mapping of keys, not a list"}},
		{"counts", "rules:\n- match: {nth: 5-3}\n- match: {nth: 0}\n- match: {nth: -1}\n- match: {nth: 1-2-3}\n- match: {nth: 5/}\n- match: {nth: 1.5}", []string{
			`2: rules.0.match.nth: must be a count 3, a range 3-5 or 3-, or /10 for every tenth, not "5-3"`,
			`3: rules.1.match.nth: `, `4: rules.2.match.nth: `, `5: rules.3.match.nth: `, `6: rules.4.match.nth: `, `7: rules.5.match.nth: `,
		}},
		{"shares", "rules:\n- share: 0\n- share: 1.5\n- share: .nan\ntimeline:\n- {share: 0, step: {kind: empty}}\n- {share: half, step: {kind: empty}}\n- step: {kind: empty}\n  share:\n    from: 0\n    to: -1\n- {share: {from: 0, to: 0}, step: {kind: empty}}", []string{
			`2: rules.0.share: 0 would hit no request; remove the rule`,
			`3: rules.1.share: 1.5 is not between 0 and 1`,
			`4: rules.2.share: must be a number, not ".nan"`,
			`6: timeline.0.share: 0 would hit no request; remove the incident`,
			`7: timeline.1.share: must be a share such as 0.1, or {from: 0, to: 1}, not "half"`,
			`11: timeline.2.share.to: -1 is not between 0 and 1`,
			`12: timeline.3.share: from 0 to 0 would hit no request; remove the incident`,
		}},
		{"latency", "latency:\n  first_token: slow\n  per_token: {min: 2s, max: 1s}\ntimeline:\n- latency: {first_token: {median: 1s, p99: 10ms}, per_token: {p99: 1s}}\n- latency: {first_token: {min: 1, median: 1, p99: 2}, per_token: -1s}", []string{
			`2: latency.first_token: must be a time such as 300ms, or {min: 1s, max: 2s}, or {median: 1s, p99: 8s}, not "slow"`,
			`3: latency.per_token: max 1s is below min 2s`,
			`5: timeline.0.latency.first_token: p99 10ms is below the median 1s`,
			`5: timeline.0.latency.per_token: p99 needs a median`,
			`6: timeline.1.latency.first_token: either min and max, or median and p99`,
			`6: timeline.1.latency.per_token: a time cannot be negative`,
		}},
		{"connections", "steps:\n- kind: refused\nrules:\n- {then: {kind: hang}}\ntimeline:\n- {step: {kind: refused, for: 1s}, share: 0.5}\n- {step: {kind: hang}, match: {model: a}}\n- {to: 1s, step: {kind: hang}}", []string{
			`2: steps.0.kind: refused is about connections, so it can only be the step of an incident of the timeline`,
			`4: rules.0.then.kind: hang is about connections`,
			`6: timeline.0.step.for: a step of kind "refused" takes no for`,
			`6: timeline.0.share: refused is for every connection; it takes no share`,
			`7: timeline.1.match: hang is about connections, before there is a request to match`,
		}},
		{"incidents", "timeline:\n- {from: -1s, step: {kind: empty}}\n- {from: 2s, to: 2s, step: {kind: empty, times: 3}}\n- name: idle\n- {limits: {}, share: 0.5}\n- {limits: {concurrent: 1}, match: {model: a}}\n- name: idle\n  step: {kind: empty}", []string{
			`2: timeline.0.from: -1s is negative; the timeline begins at 0`,
			`3: timeline.1.to: 2s is not behind from, which is 2s`,
			`3: timeline.1.step.times: the step of an incident takes no times`,
			`4: timeline.2: this incident changes nothing; it needs a step, limits or latency`,
			`5: timeline.3.share: a share is of the requests that get the step, and there is none`,
			`6: timeline.4.match: limits hold for all requests, whatever matches`,
			`7: timeline.5.name: "idle" is the name of timeline.2 already; draws and journal go by it`,
		}},
		{"rules", "rules:\n- {match: {path: v1/messages, attempt: -1, header: {a b: c}}, per: client}\n- {steps: [{kind: empty, times: -1}], then: {kind: html, times: 2}}\n- name: rules[0]", []string{
			`2: rules.0.match.path: "v1/messages" fits no path; they begin with a slash`,
			`2: rules.0.match.header.a b: "a b" is not the name of a header`,
			`2: rules.0.match.attempt: -1 is negative; the SDKs count from 0`,
			`2: rules.0.per: unknown count "client"; there are rule, job`,
			`3: rules.1.then.times: then is for all requests after the steps; it takes no times`,
			`3: rules.1.then: the last step has negative times, so then is never played`,
			`4: rules.2.name: "rules[0]" is the name of rules.0 already`,
		}},
		{"limits", "limits:\n  tier: buidl\n  concurrent: -1\n  growth: 0.5\n", []string{
			`2: limits.tier: unknown tier "buidl"; did you mean "build"?`,
			`3: limits.concurrent: -1 is negative; leave it out for no limit`,
			`4: limits.growth: 0.5 is not a factor from 1, such as 1.5`,
		}},
		{"times of a step", "steps:\n- {kind: http, status: 500, retry_after: now}\n- {kind: http, status: 500, retry_after: nowish}\n- {kind: http, status: 500, retry_after: now-3s}\n- {gap: -1}", []string{
			`2: steps.0.retry_after: "now" is neither now+3s nor now-3s`,
			`3: steps.1.retry_after: "nowish" is neither now+3s nor now-3s`,
			`5: steps.3.gap: -1s is negative`,
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := standin.ParsePlan([]byte(tt.text))
			if err == nil {
				t.Fatal("no error")
			}
			lines := strings.Split(err.Error(), "\n")
			if len(lines) != len(tt.want) {
				t.Errorf("%d mistakes, want %d:\n%v", len(lines), len(tt.want), err)
			}
			for i, want := range tt.want {
				if i < len(lines) && !strings.HasPrefix(lines[i], "standin: plan line "+want) {
					t.Errorf("mistake %d is\n%s\nwant\n%s", i, lines[i], want)
				}
			}
		})
	}
}

func TestValidateReportsEveryMistakeAtOnce(t *testing.T) {
	t.Parallel()
	plan := standin.Plan{
		BadKeys: []string{""},
		Steps: []standin.Step{
			{Kind: "explosion"},
			{Kind: standin.HTTP, Times: -1, Status: 99, Category: "cyber"},
			{Kind: standin.Cut, After: 2, At: standin.First, How: "loud"},
			{Kind: standin.Error, At: "late", After: -1},
			{Status: 500},
			{Delay: -1, RequestID: "a\nb", Header: standin.Header{"a b": {"c"}, "x-c": {"d\n"}}},
		},
		Jobs: map[string][]standin.Step{"": nil, "J": {{Kind: standin.HTTP}}},
	}
	before := cmp.Diff(standin.Plan{}, plan)
	err := plan.Validate()
	var wrong *standin.PlanError
	if !errors.As(err, &wrong) {
		t.Fatalf("%v is no PlanError", err)
	}
	want := []string{
		`jobs."": a job needs a text`,
		`jobs.J.0.status: a step of kind "http" needs a status`,
		`steps.0.kind: unknown kind "explosion"; there are ok, http, `,
		`steps.1.category: a step of kind "http" takes no category; these do: refusal`,
		`steps.1.status: status 99 is not between`,
		`steps.1.times: times is negative, so the steps behind this one are never played`,
		`steps.2.how: unknown ending "loud"`,
		`steps.2.after: after counts content events; at "first" has none`,
		`steps.3.at: unknown stage "late"`,
		`steps.3.after: after -1 is not between`,
		`steps.4.status: a step without a kind is an answer and takes no status`,
		`steps.5.request_id: request_id holds a control character`,
		`steps.5.header.a b: "a b" is not the name of a header`,
		`steps.5.header.x-c: it holds a control character`,
		`steps.5.delay: -1ns is negative`,
		`bad_keys.0: `,
	}
	lines := strings.Split(err.Error(), "\n")
	if len(lines) != len(want) || len(wrong.Mistakes) != len(want) {
		t.Errorf("%d mistakes in %d lines, want %d", len(wrong.Mistakes), len(lines), len(want))
	}
	for i, line := range lines {
		if i < len(want) && !strings.HasPrefix(line, "standin: "+want[i]) {
			t.Errorf("mistake %d: %s\nwant %s", i, line, want[i])
		}
	}
	if after := cmp.Diff(standin.Plan{}, plan); after != before {
		t.Errorf("Validate changed the plan:\n%s", after)
	}
	defer func() {
		if recover() == nil {
			t.Error("New took the plan")
		}
	}()
	standin.New(plan)
}

func TestMistakesInAFileBeginWithItsName(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "plan.yaml")
	if err := os.WriteFile(name, []byte("rules:\n- steps:\n  - {}\n  - {kind: cut, status: 500}\nsed: 1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := standin.LoadPlan(name)
	want := name + `:4: rules.0.steps.1.status: a step of kind "cut" takes no status; these do: `
	second := name + `:5: sed: unknown key; did you mean "seed"?`
	lines := strings.Split(err.Error(), "\n")
	if len(lines) != 2 || !strings.HasPrefix(lines[0], want) || lines[1] != second {
		t.Errorf("%v\nwant\n%s…\n%s", err, want, second)
	}
	if _, err := standin.LoadPlan(name + "x"); !errors.Is(err, fs.ErrNotExist) || !strings.HasPrefix(err.Error(), "standin: cannot read the plan: open ") {
		t.Errorf("of no file: %v", err)
	}
	if err := os.WriteFile(name, []byte("latency: {first_token: 1.5}"), 0o600); err != nil {
		t.Fatal(err)
	}
	plan, err := standin.LoadPlan(name)
	if err != nil || plan.Latency.FirstToken.Min != 1500*time.Millisecond {
		t.Errorf("%+v, %v", plan, err)
	}
}

// Headers of the transfer would break the connection in a way that no journal tells of.
func TestHeadersOfTheTransferAreNoHeadersOfAPlan(t *testing.T) {
	for _, name := range []string{"content-length", "Content-Length", "transfer-encoding", "connection", "trailer"} {
		err := standin.Plan{Steps: []standin.Step{{Header: standin.Header{name: {"5"}}}}}.Validate()
		if err == nil || !strings.Contains(err.Error(), "belongs to the transfer") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestPlanMayBeginWithAByteOrderMark(t *testing.T) {
	for _, text := range []string{"\ufeffseed: 7\n", "\ufeff{\"seed\": 7}"} {
		if plan, err := standin.ParsePlan([]byte(text)); err != nil || plan.Seed != 7 {
			t.Errorf("%q: seed %d, %v", text, plan.Seed, err)
		}
	}
}
