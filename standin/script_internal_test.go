package standin

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// fault is a step that a test knows again.
func failing(status int) Step { return Step{Kind: HTTP, Status: status} }

// statuses plays requests and returns the status of each step, 0 for the answer.
func statuses(s *script, requests ...facts) []int {
	got := make([]int, len(requests))
	for i, f := range requests {
		got[i] = s.decide(f).step.Status
	}
	return got
}

// repeat returns n times the same request.
func repeat(n int, f facts) []facts {
	all := make([]facts, n)
	for i := range all {
		all[i] = f
	}
	return all
}

func valid(t *testing.T, plan Plan) *script {
	t.Helper()
	if err := plan.Validate(); err != nil {
		t.Fatal(err)
	}
	return newScript(plan)
}

func TestARequestMeetsThePartsOfAPlanInTheirOrder(t *testing.T) {
	t.Parallel()
	two := 2
	yes := true
	plan := Plan{
		Rules: []Rule{
			{Name: "opus", Match: Match{Model: "claude-opus-*"}, Steps: []Step{failing(501), {}}, Then: failing(502)},
			{Name: "third attempt", Match: Match{Attempt: &two}, Then: failing(503)},
			{Name: "shielded", Match: Match{Text: "please"}},
			{Name: "team", Match: Match{Header: map[string]string{"X-team": "a?"}, Stream: &yes}, Then: failing(504)},
			{Name: "row", Match: Match{CustomID: "row-*", Path: "/v1/messages/*"}, Then: failing(505)},
		},
		Jobs:  map[string][]Step{"JOB": {failing(510)}, "JOB-1": {failing(511), {Kind: OK}, failing(512)}},
		Steps: []Step{failing(520)},
		Timeline: []Incident{
			{Name: "early", To: time.Minute, Match: Match{Model: "sonnet"}, Step: failing(530)},
			{Name: "late", From: 30 * time.Second, Step: failing(531)},
		},
	}
	tests := []struct {
		name     string
		requests []facts
		want     []int
	}{
		{"a rule by model, then its rest", repeat(4, facts{model: "claude-opus-5"}), []int{501, 0, 502, 502}},
		{"a rule goes before job and incident", []facts{{model: "claude-opus-5", prompt: "JOB", now: time.Hour}}, []int{501}},
		{"by attempt", []facts{{sdkRetry: 2, prompt: "JOB"}, {sdkRetry: 1, prompt: "JOB"}}, []int{503, 510}},
		{"a rule that answers keeps job and steps away", []facts{{prompt: "JOB please"}, {prompt: "please"}}, []int{0, 0}},
		{"but an incident hits its answer", []facts{{prompt: "JOB please", now: time.Minute}}, []int{531}},
		{"by header and stream", []facts{
			{header: http.Header{"X-Team": {"b1", "a1"}}, stream: true}, {header: http.Header{"X-Team": {"a1"}}}, {header: http.Header{"X-Team": {"a12"}}, stream: true}, {stream: true},
		}, []int{504, 520, 0, 0}},
		{"by custom id and path", []facts{{customID: "row-1", path: "/v1/messages/batches"}, {customID: "row-1", path: "/v1/messages"}, {path: "/v1/messages/batches"}}, []int{505, 520, 0}},
		{"the longest key of a job counts", []facts{{prompt: "JOB-1"}, {prompt: "JOB-2"}, {prompt: "JOB-1"}, {prompt: "JOB JOB-1"}, {prompt: "JOB-1"}}, []int{511, 510, 0, 512, 0}},
		{"steps are for the others", repeat(2, facts{}), []int{520, 0}},
		{"an incident hits a plain answer", []facts{{now: time.Minute}, {now: 30 * time.Second}, {now: 30*time.Second - 1}}, []int{520, 531, 0}},
		{"of two incidents the first that matches", []facts{{}, {model: "sonnet", now: 59 * time.Second}, {model: "sonnet", now: 60 * time.Second}}, []int{520, 530, 531}},
		{"an ok step is a plain answer", []facts{{prompt: "JOB-1"}, {prompt: "JOB-1", now: time.Minute}}, []int{511, 531}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := valid(t, plan)
			for range 2 { // a reset begins anew
				if diff := cmp.Diff(tt.want, statuses(s, tt.requests...)); diff != "" {
					t.Errorf("statuses (-want +got):\n%s", diff)
				}
				s.reset()
			}
		})
	}
}

func TestADecisionNamesTheJobTheAttemptAndTheRule(t *testing.T) {
	t.Parallel()
	s := valid(t, Plan{
		Rules:    []Rule{{Match: Match{Model: "m"}, Steps: []Step{{Kind: Empty}}}},
		Jobs:     map[string][]Step{"JOB": {failing(500)}},
		Timeline: []Incident{{Step: Step{Kind: HTML}, From: time.Second}},
	})
	type seen struct {
		Job, Rule string
		Attempt   int
		Named     bool
		Kind      Kind
	}
	tests := []struct {
		f    facts
		want seen
	}{
		{facts{digest: "d1", model: "m"}, seen{"d1", "rules[0]", 1, false, Empty}},
		{facts{digest: "d1", model: "m"}, seen{"d1", "rules[0]", 2, false, OK}},
		{facts{digest: "d2"}, seen{"d2", "", 1, false, OK}},
		{facts{digest: "d3", prompt: "JOB"}, seen{"JOB", "JOB", 1, true, HTTP}},
		{facts{digest: "d4", prompt: "JOB"}, seen{"JOB", "JOB", 2, true, OK}},
		{facts{digest: "d4", prompt: "JOB", customID: "c"}, seen{"c", "JOB", 1, true, OK}},
		{facts{digest: "d2", now: time.Second}, seen{"d2", "timeline[0]", 2, false, HTML}},
	}
	for i, tt := range tests {
		d := s.decide(tt.f)
		if got := (seen{d.job, d.rule, d.attempt, d.named, d.step.Kind}); got != tt.want {
			t.Errorf("request %d: %+v, want %+v", i, got, tt.want)
		}
		if d.step.How != Clean {
			t.Errorf("request %d: a step without its defaults", i)
		}
	}
}

func TestNthCountsWhatFitsTheRest(t *testing.T) {
	t.Parallel()
	nth := func(text string) (s Span) {
		if err := s.UnmarshalText([]byte(text)); err != nil {
			t.Fatal(err)
		}
		return s
	}
	tests := []struct {
		name     string
		plan     Plan
		requests []facts
		want     []int
	}{
		{"one", Plan{Rules: []Rule{{Match: Match{Nth: nth("2")}, Then: failing(500)}}}, repeat(4, facts{}), []int{0, 500, 0, 0}},
		{"a range", Plan{Rules: []Rule{{Match: Match{Nth: nth("2-3")}, Then: failing(500)}}}, repeat(5, facts{}), []int{0, 500, 500, 0, 0}},
		{"from a place on", Plan{Rules: []Rule{{Match: Match{Nth: nth("3-")}, Then: failing(500)}}}, repeat(5, facts{}), []int{0, 0, 500, 500, 500}},
		{"every third", Plan{Rules: []Rule{{Match: Match{Nth: nth("/3")}, Then: failing(500)}}}, repeat(7, facts{}), []int{0, 0, 500, 0, 0, 500, 0}},
		{"every second of a range", Plan{Rules: []Rule{{Match: Match{Nth: nth("3-5/2")}, Then: failing(500)}}}, repeat(7, facts{}), []int{0, 0, 0, 500, 0, 0, 0}},
		{
			"of one model alone", Plan{Rules: []Rule{{Match: Match{Model: "a", Nth: nth("2")}, Then: failing(500)}}},
			[]facts{{model: "a"}, {model: "b"}, {model: "b"}, {model: "a"}}, []int{0, 0, 0, 500},
		},
		{
			"also what an earlier rule took", Plan{Rules: []Rule{{Match: Match{Nth: nth("1")}, Then: failing(500)}, {Match: Match{Nth: nth("2")}, Then: failing(501)}}},
			repeat(3, facts{}), []int{500, 501, 0},
		},
		{
			"within an incident", Plan{Timeline: []Incident{{From: 10, Match: Match{Nth: nth("2")}, Step: failing(500)}}},
			[]facts{{now: 1}, {now: 9}, {now: 10}, {now: 11}, {now: 12}}, []int{0, 0, 0, 500, 0},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := valid(t, tt.plan)
			for range 2 {
				if diff := cmp.Diff(tt.want, statuses(s, tt.requests...)); diff != "" {
					t.Errorf("statuses (-want +got):\n%s", diff)
				}
				s.reset()
			}
		})
	}
}

func TestPlacesAreKeptByRuleOrByJob(t *testing.T) {
	t.Parallel()
	requests := []facts{{digest: "a"}, {digest: "b"}, {digest: "a"}, {digest: "a"}, {digest: "b"}, {digest: "c"}}
	rule := Rule{Steps: []Step{{Kind: HTTP, Status: 500, Times: 2}, failing(501)}, Then: failing(502)}
	if diff := cmp.Diff([]int{500, 500, 501, 502, 502, 502}, statuses(valid(t, Plan{Rules: []Rule{rule}}), requests...)); diff != "" {
		t.Errorf("by rule (-want +got):\n%s", diff)
	}
	rule.Per = PerJob
	if diff := cmp.Diff([]int{500, 500, 500, 501, 500, 500}, statuses(valid(t, Plan{Rules: []Rule{rule}}), requests...)); diff != "" {
		t.Errorf("by job (-want +got):\n%s", diff)
	}
	rule.Steps[0].Times = -1
	rule.Then = Step{}
	rule.Steps = rule.Steps[:1]
	if diff := cmp.Diff([]int{500, 500, 500, 500, 500, 500}, statuses(valid(t, Plan{Rules: []Rule{rule}}), requests...)); diff != "" {
		t.Errorf("for ever (-want +got):\n%s", diff)
	}
}

// chaos is a plan that draws everything that can be drawn.
var chaos = Plan{
	Seed: 7,
	Rules: []Rule{
		{Name: "mix", Match: Match{Model: "m"}, Share: 0.3, Per: PerJob, Steps: []Step{failing(429), {Kind: Cut, After: 2}}, Then: failing(500)},
		{Name: "rare", Share: 0.05, Then: Step{Kind: Reset}},
	},
	Timeline: []Incident{
		{Name: "ramp", From: time.Second, To: 3 * time.Second, Share: Ramp{From: 0.1, To: 0.9}, Step: failing(529)},
		{Name: "slow", From: time.Second, Latency: &Latency{FirstToken: Spread{Median: time.Second, P99: 9 * time.Second}}},
	},
	Latency: Latency{FirstToken: Spread{Min: time.Second, Max: 2 * time.Second}, PerToken: Spread{Median: 20 * time.Millisecond, P99: 200 * time.Millisecond}},
}

type outcome struct {
	Kind                Kind
	Status              int
	Rule                string
	First, Token, Third time.Duration
}

// play decides attempts of many jobs with a number of workers, in an order of its own.
func play(t *testing.T, workers int, order uint64) map[string]outcome {
	t.Helper()
	const jobs, attempts = 300, 6
	s := valid(t, chaos)
	queue := make([]string, 0, jobs*attempts)
	for job := range jobs {
		for range attempts {
			queue = append(queue, fmt.Sprintf("job-%d", job))
		}
	}
	dice := rand.New(rand.NewPCG(order, 0))
	dice.Shuffle(len(queue), func(i, j int) { queue[i], queue[j] = queue[j], queue[i] })
	feed := make(chan string)
	var mu sync.Mutex
	all := map[string]outcome{}
	var running sync.WaitGroup
	for range workers {
		running.Go(func() {
			for job := range feed {
				d := s.decide(facts{now: 2 * time.Second, model: "m", customID: job})
				o := outcome{Kind: d.step.Kind, Status: d.step.Status, Rule: d.rule, First: d.first}
				o.Token, _, o.Third = d.tokens.next(), d.tokens.next(), d.tokens.next()
				mu.Lock()
				all[fmt.Sprintf("%s/%d", d.job, d.attempt)] = o
				mu.Unlock()
			}
		})
	}
	for _, job := range queue {
		feed <- job
	}
	close(feed)
	running.Wait()
	if len(all) != jobs*attempts {
		t.Errorf("%d outcomes, want %d", len(all), jobs*attempts)
	}
	return all
}

func TestFaultsOfAJobAreTheSameWith1AndWith200Workers(t *testing.T) {
	t.Parallel()
	want := play(t, 1, 1)
	kinds := map[Kind]int{}
	for _, o := range want {
		kinds[o.Kind]++
	}
	for _, kind := range []Kind{OK, HTTP, Cut, Reset} {
		if kinds[kind] < 10 {
			t.Errorf("the plan gives %d of %s, which proves nothing: %v", kinds[kind], kind, kinds)
		}
	}
	for order := range uint64(3) {
		if diff := cmp.Diff(want, play(t, 200, order)); diff != "" {
			t.Errorf("order %d (-one worker, +200 workers):\n%s", order, diff)
		}
	}
}

func TestCountsOfJobsAreBounded(t *testing.T) {
	t.Parallel()
	s := valid(t, Plan{Rules: []Rule{{Per: PerJob, Steps: []Step{failing(500)}}}})
	const size = 1000
	s.counts.attempts.size = size
	for i := range 2 {
		if d := s.decide(facts{customID: "kept"}); d.attempt != i+1 {
			t.Errorf("attempt %d, want %d", d.attempt, i+1)
		}
	}
	for i := range size { // two counts each: of the job, and of its place
		s.decide(facts{customID: fmt.Sprint(i)})
		if i == size/4 {
			if d := s.decide(facts{customID: "kept"}); d.attempt != 3 || d.step.Kind != OK {
				t.Errorf("attempt %d, %s after %d other jobs, want 3, ok", d.attempt, d.step.Kind, i)
			}
		}
		if n := len(s.counts.attempts.now) + len(s.counts.attempts.old); n > 2*size {
			t.Fatalf("%d counts are kept", n)
		}
	}
	if len(s.counts.attempts.old) == 0 {
		t.Error("the bound was not reached")
	}
}
