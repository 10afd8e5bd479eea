package config_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"holdfast"
	"holdfast/config"
	"holdfast/gateway"
)

const everyKey = `
policy:
  {attempts: 5, deadline: 1m, attempt_timeout: 20s, max_server_wait: 10s,
   backoff: {base: 250ms, cap: 4s, throttle_base: 1s, jitter: none, server_wait: at-least},
   retry_budget: {capacity: 50, cost: 7, throttle_cost: 2, earn: 3, refill: 5s}}
breaker: {failures: 3, ratio: 0.25, window: 30s, min_calls: 4, slow_call: 9s, cooldown: 10s, max_cooldown: 1m, probes: 2, lease: 1m, ramp: 2s, count: calls}
pace: {requests_per_minute: 60, input_tokens_per_minute: 1000, output_tokens_per_minute: 500, burst: 1s, queue: 7}
`

func everyField() *config.File {
	return &config.File{
		Call: config.Call{
			Attempts: 5, Deadline: time.Minute, AttemptTimeout: 20 * time.Second, MaxServerWait: 10 * time.Second,
			Backoff: config.Backoff{
				Base: 250 * time.Millisecond, Cap: 4 * time.Second, ThrottleBase: time.Second,
				Jitter: config.Jitter(holdfast.NoJitter), ServerWait: config.ServerWait(holdfast.AtLeast),
			},
			RetryBudget: config.RetryBudget{Capacity: 50, Cost: 7, ThrottleCost: 2, Earn: 3, Refill: 5 * time.Second},
		},
		Breaker: config.Breaker{
			Failures: 3, Ratio: 0.25, Window: 30 * time.Second, MinCalls: 4, SlowCall: 9 * time.Second, Cooldown: 10 * time.Second,
			MaxCooldown: time.Minute, Probes: 2, Lease: time.Minute, Ramp: 2 * time.Second, Count: config.Count(holdfast.CountCalls),
		},
		Pace: config.Pace{RequestsPerMinute: 60, InputTokensPerMinute: 1000, OutputTokensPerMinute: 500, Burst: time.Second, Queue: 7},
	}
}

// plainData leaves out where a file came from.
var plainData = cmpopts.IgnoreUnexported(config.File{})

func TestParseReadsEveryKeyFromYAMLAndJSON(t *testing.T) {
	t.Parallel()
	asJSON := "{\n\t\"policy\": {\"attempts\": 5, \"deadline\": \"1m\"},\n\t\"breaker\": {\"ratio\": 0.25, \"count\": \"calls\"}\n}\n"
	for _, c := range []struct {
		name, text string
		want       *config.File
	}{
		{"empty", "", &config.File{}},
		{"comment alone", "# nothing\n", &config.File{}},
		{"key without a value", "policy:\n", &config.File{}},
		{"every key", everyKey, everyField()},
		{"JSON with tabs", asJSON, &config.File{
			Call:    config.Call{Attempts: 5, Deadline: time.Minute},
			Breaker: config.Breaker{Ratio: 0.25, Count: config.Count(holdfast.CountCalls)},
		}},
		{"negative turns off", "breaker: {failures: -1}\n", &config.File{Breaker: config.Breaker{Failures: -1}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, err := config.Parse([]byte(c.text))
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(c.want, got, plainData); d != "" {
				t.Errorf("(-want +got)\n%s", d)
			}
		})
	}
}

func TestParseReportsMistakesWithLines(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, text string
		want       []string
	}{
		{"all at once", "policy:\n  atempts: 5\n  deadline: 10\nbreakers: {}\nbreaker:\n  count: calss\n  ratio: high\n", []string{
			`config: line 2: policy.atempts: unknown key; did you mean "attempts"?`,
			`config: line 3: policy.deadline: 10 has no unit; write 10s for seconds`,
			`config: line 4: breakers: unknown key; did you mean "breaker"?`,
			`config: line 6: breaker.count: must be attempts or calls; did you mean "calls"?`,
			`config: line 7: breaker.ratio: must be a number, not "high"`,
		}},
		{"camel case", "policy:\n  maxServerWait: 1s\n", []string{`config: line 2: policy.maxServerWait: unknown key; did you mean "max_server_wait"?`}},
		{"nothing near", "pace:\n  colour: red\n", []string{
			"config: line 2: pace.colour: unknown key; known are requests_per_minute, input_tokens_per_minute, output_tokens_per_minute, burst, queue, follow_headers"}},
		{"twice", "policy:\n  attempts: 1\n  attempts: 2\n", []string{"config: line 3: policy.attempts: stands here again after line 2"}},
		{"a list", "policy: [1]\n", []string{"config: line 1: policy: must be a mapping of keys, not a list"}},
		{"not a mapping", "hello\n", []string{`config: line 1: must be a mapping of keys, not a single value`}},
		{"quoted number", "policy: {attempts: \"5\"}\n", []string{`config: line 1: policy.attempts: must be a whole number, not the text "5"`}},
		{"fraction of an attempt", "policy: {attempts: 1.5}\n", []string{`config: line 1: policy.attempts: must be a whole number, not "1.5"`}},
		{"rules of the policy, with its key and line", "policy:\n  deadline: 1s\n  attempt_timeout: 2s\n  backoff:\n    base: 9s\nbreaker:\n  ratio: 2\n", []string{
			"config: line 3: policy.attempt_timeout: is 2s, more than the Deadline of 1s",
			"config: line 5: policy.backoff.base: is 9s, more than its Cap of 8s: every wait would be the cap",
			"config: line 7: breaker.ratio: is 2, more than all calls",
		}},
		{"budget", "policy:\n  retry_budget: {capacity: 5}\n", []string{
			"config: line 2: policy.retry_budget.cost: is 14, more than its Capacity of 5: no retry is ever paid for"}},
		{"unset variable", "policy:\n  deadline: ${HOLDFAST_NOT_SET}\n", []string{"config: line 2: policy.deadline: environment variable ${HOLDFAST_NOT_SET} is not set"}},
		{"second document", "policy: {}\n---\npace: {}\n", []string{"config: line 3: a second document begins here; only one is read"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, err := config.Parse([]byte(c.text))
			if err == nil {
				t.Fatal("no error")
			}
			if d := cmp.Diff(c.want, strings.Split(err.Error(), "\n")); d != "" {
				t.Errorf("(-want +got)\n%s", d)
			}
			var e *config.Error
			if !errors.As(err, &e) || e.Hint() == "" || len(e.Mistakes) != len(c.want) {
				t.Errorf("error is %#v", err)
			}
		})
	}
}

func TestSyntaxErrorNamesItsLine(t *testing.T) {
	t.Parallel()
	_, err := config.Parse([]byte("policy:\n  attempts: 4\n bad: [\n"))
	if err == nil || !strings.Contains(err.Error(), "config: line ") {
		t.Errorf("error is %v", err)
	}
}

func TestVariablesExpand(t *testing.T) {
	t.Setenv("HOLDFAST_TEST_ATTEMPTS", "7")
	t.Setenv("HOLDFAST_TEST_UNIT", "s")
	f, err := config.Parse([]byte("policy:\n  attempts: ${HOLDFAST_TEST_ATTEMPTS}\n  backoff: {base: \"2${HOLDFAST_TEST_UNIT}\"}\n"))
	if err != nil {
		t.Fatal(err)
	}
	if f.Call.Attempts != 7 || f.Call.Backoff.Base != 2*time.Second {
		t.Errorf("got %d attempts and base %v, want 7 and 2s", f.Call.Attempts, f.Call.Backoff.Base)
	}
}

func TestPolicyCarriesTheSettings(t *testing.T) {
	t.Parallel()
	p := everyField().Policy()
	got := holdfast.Policy{Attempts: p.Attempts, Deadline: p.Deadline, AttemptTimeout: p.AttemptTimeout, MaxServerWait: p.MaxServerWait, Backoff: p.Backoff, ServerWait: p.ServerWait}
	want := holdfast.Policy{
		Attempts: 5, Deadline: time.Minute, AttemptTimeout: 20 * time.Second, MaxServerWait: 10 * time.Second, ServerWait: holdfast.AtLeast,
		Backoff: holdfast.Backoff{Base: 250 * time.Millisecond, Cap: 4 * time.Second, ThrottleBase: time.Second, Jitter: holdfast.NoJitter},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
	now := time.Now()
	if level := p.Budget.Level(now); level != 50 {
		t.Errorf("budget holds %v, want 50", level)
	}
	sent := 0
	for p.Pace.Allow(now, holdfast.Tokens{}) {
		sent++
	}
	if sent != 1 { // 60 per minute with a burst of one second
		t.Errorf("pace let %d go at once, want 1", sent)
	}
	for range 3 { // failures: 3
		ticket, _, _ := p.Breaker.Allow(now)
		p.Breaker.Settle(now, ticket, holdfast.Failure)
	}
	if _, wait, ok := p.Breaker.Allow(now); ok || wait != 10*time.Second {
		t.Errorf("breaker after three failures: ok %v, wait %v; want an open one for 10s", ok, wait)
	}
}

func TestEachPolicyStartsAnew(t *testing.T) {
	t.Parallel()
	f := &config.File{}
	a, b := f.Policy(), f.Policy()
	if a.Breaker == b.Breaker || a.Pace == b.Pace || a.Budget == b.Budget {
		t.Error("two policies share their state")
	}
}

func TestSet(t *testing.T) {
	t.Parallel()
	f := &config.File{}
	if err := f.SetAll([]string{"policy.attempts=2", "policy.backoff.base=1s", "breaker.count=calls", "pace={requests_per_minute: 5}"}); err != nil {
		t.Fatal(err)
	}
	want := &config.File{
		Call: config.Call{Attempts: 2, Backoff: config.Backoff{Base: time.Second}}, Breaker: config.Breaker{Count: config.Count(holdfast.CountCalls)},
		Pace: config.Pace{RequestsPerMinute: 5},
	}
	if d := cmp.Diff(want, f, plainData); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
	for override, wrong := range map[string]string{
		"policy.atempts=3":    `--set: policy.atempts: unknown key; did you mean "attempts"?`,
		"policy.attempts.x=3": `--set: policy.attempts.x: policy.attempts is a single value and has no key "x"`,
		"policy.attempts=few": `--set: policy.attempts: must be a whole number, not "few"`,
		"policy.attempts":     `--set: "policy.attempts" is not of the form key.path=value`,
		"breaker.ratio=3":     `--set: breaker.ratio: is 3, more than all calls`,
		"policy.attempts=":    `--set: policy.attempts: "" is not a value`,
	} {
		err := f.SetAll([]string{override})
		if err == nil || err.Error() != wrong {
			t.Errorf("%s: error is %v, want %s", override, err, wrong)
		}
		if d := cmp.Diff(want, f, plainData); d != "" {
			t.Errorf("%s changed the file (-want +got)\n%s", override, d)
		}
	}
}

func TestLoadNamesTheFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "holdfast.yaml")
	if _, err := config.Load(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("missing file: %v", err)
	}
	if err := os.WriteFile(path, []byte("pace: {queu: 1}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	want := path + `: line 1: pace.queu: unknown key; did you mean "queue"?`
	if _, err := config.Load(path); err == nil || err.Error() != want {
		t.Errorf("error is %v, want %s", err, want)
	}
}

func TestSchemaKnowsEveryKey(t *testing.T) {
	t.Parallel()
	var schema struct {
		AdditionalProperties bool
		Properties           map[string]struct {
			AdditionalProperties bool
			Properties           map[string]json.RawMessage
		}
	}
	if err := json.Unmarshal(config.Schema(), &schema); err != nil {
		t.Fatal(err)
	}
	for section, keys := range map[string]int{"policy": 10, "breaker": 11, "pace": 6} {
		if got := len(schema.Properties[section].Properties); got != keys {
			t.Errorf("%s has %d keys in the schema, want %d", section, got, keys)
		}
	}
	if !strings.Contains(string(schema.Properties["breaker"].Properties["count"]), `"calls"`) {
		t.Errorf("count does not list its words: %s", schema.Properties["breaker"].Properties["count"])
	}
}

// Keys that only make sense together may be set in any order, and lists grow place by place.
func TestSetAllIsCheckedAsAWhole(t *testing.T) {
	t.Parallel()
	f := &config.File{}
	err := f.SetAll([]string{
		"listen=0.0.0.0:4100", "routes=[{chain: [{target: a}, saved]}]", "targets.0.name=a", "targets.0.url=http://127.0.0.1:1", "targets.0.keys.0=k",
		"clients.0={name: app, key_sha256: " + hashOfSecret + "}", "routes.0.chain.0.model=m",
	})
	if err != nil {
		t.Fatal(err)
	}
	want := &config.File{
		Listen:  "0.0.0.0:4100",
		Targets: []config.Target{{Name: "a", URL: "http://127.0.0.1:1", Keys: []config.Key{{Key: "k"}}}},
		Routes:  []config.Route{{Chain: []config.Entry{{Target: "a", Model: "m"}, {Saved: true}}}},
		Clients: []config.Client{{Name: "app", KeySHA256: hashOfSecret}},
	}
	if d := cmp.Diff(want, f, plainData); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
	kept := *f
	if err := f.SetAll([]string{"targets.0.url=http://127.0.0.1:2", "clients=[]"}); err == nil {
		t.Error("an open listener without clients is let through")
	}
	if d := cmp.Diff(&kept, f, plainData); d != "" {
		t.Errorf("a refused override changed the file (-before +after)\n%s", d)
	}
	if err := f.Set("targets.0.url", "http://127.0.0.1:3"); err != nil || kept.Targets[0].URL != "http://127.0.0.1:1" {
		t.Errorf("%v; a copy has the URL %s, want its own", err, kept.Targets[0].URL)
	}
}

func FuzzParse(f *testing.F) {
	example, err := os.ReadFile("testdata/holdfast.yaml")
	if err != nil {
		f.Fatal(err)
	}
	for _, seed := range []string{
		everyKey, "{", "a: &x [*x]", "policy: {attempts: 1e3}", "- - -", "\xff\xfe", "policy: !!binary x", "? a\n: b", "{\"a\":\t1}", "policy: |\n  x\n",
		strings.ReplaceAll(string(example), "${", "$"), two + "routes: [{models: [\"a*[\"], chain: [{target: gpt}, saved], on_refusal: {}}]",
		"targets: [{url: \"http://[::1]:1\", keys: [a, {name: b}], breaker: {ratio: 3}, pace: {}}]", "limits: {max_body: 1.5GiB}\nlisten: \"[::1]:0\"",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if len(text) > 4096 {
			t.Skip("nobody writes such a file by hand")
		}
		if bytes.Contains(text, []byte("${")) {
			t.Skip("files and variables of this machine are not the fuzzer's")
		}
		file, err := config.Parse(text)
		if (file == nil) == (err == nil) {
			t.Fatalf("file %v with error %v", file, err)
		}
		if err != nil && err.Error() == "" {
			t.Fatal("an error without a text")
		}
		if file == nil {
			return
		}
		p := file.Policy()
		if err := p.Validate(); err != nil {
			t.Fatalf("accepted, but the policy has mistakes: %v", err)
		}
		file.Warnings()
		settings, err := file.Gateway()
		if err != nil || len(settings.Targets) == 0 { // it names files that are not there, or leaves the targets to the command
			return
		}
		if _, err := gateway.New(settings); err != nil {
			t.Fatalf("accepted, but the gateway refuses it: %v", err)
		}
	})
}

// A key that the environment puts into a wrong place is a mistake that does not show it.
func TestMistakesHideWhatTheEnvironmentSays(t *testing.T) {
	t.Setenv("HOLDFAST_TEST_KEY", "sk-ant-CANARY0123456789")
	for _, text := range []string{"policy: {attempts: \"${HOLDFAST_TEST_KEY}\"}", "policy: {deadline: \"${HOLDFAST_TEST_KEY}\"}", "policy: {backoff: {jitter: \"${HOLDFAST_TEST_KEY}\"}}"} {
		_, err := config.Parse([]byte(text))
		if err == nil || strings.Contains(err.Error(), "CANARY") || !strings.Contains(err.Error(), "${HOLDFAST_TEST_KEY}") {
			t.Errorf("%s: %v", text, err)
		}
	}
}
