package config_test

import (
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"holdfast"
	"holdfast/config"
	"holdfast/gateway"
	"holdfast/provider"
)

// example loads the commented example, in its folder and with the variables that it wants.
func example(t *testing.T) *config.File {
	t.Helper()
	for _, name := range []string{"ANTHROPIC_API_KEY", "ANTHROPIC_API_KEY_2", "OPENAI_API_KEY", "FOUNDRY_KEY", "AWS_KEY"} {
		t.Setenv(name, "sk-CANARY-"+name)
	}
	t.Chdir("testdata")
	f, err := config.Load("holdfast.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestGatewayCarriesEveryKeyOfTheExample(t *testing.T) {
	got, err := example(t).Gateway()
	if err != nil {
		t.Fatal(err)
	}
	breaker := holdfast.BreakerSettings{
		Failures: 5, Ratio: 0.5, Window: time.Minute, MinCalls: 10, Cooldown: 20 * time.Second, MaxCooldown: 5 * time.Minute, Probes: 5,
		Lease: 2 * time.Minute, Ramp: 10 * time.Second, Count: holdfast.CountAttempts,
	}
	pace := holdfast.Limits{Burst: time.Minute, FollowHeaders: true, Queue: 1000}
	ownBreaker, ownPace := breaker, pace
	ownBreaker.Failures, ownPace.RequestsPerMinute = 3, 1000
	want := gateway.Settings{
		Targets: []gateway.Target{
			{
				Name: "anthropic", URL: "https://api.anthropic.com", Dialect: "anthropic", Auth: "x-api-key", Breaker: &ownBreaker, Pace: &ownPace,
				Keys: []gateway.Key{{Name: "first", Secret: "sk-CANARY-ANTHROPIC_API_KEY"}, {Name: "second", Secret: "sk-CANARY-ANTHROPIC_API_KEY_2"}},
			},
			{Name: "gpt", URL: "https://api.openai.com", Dialect: "openai", Keys: []gateway.Key{{Name: "1", Secret: "sk-CANARY-OPENAI_API_KEY"}}},
			{Name: "local", URL: "http://127.0.0.1:11434", Dialect: "anthropic", Betas: []string{}, Lacks: lacks(0, true)},
			{Name: "bedrock", Dialect: "anthropic", Models: map[string]string{"claude-sonnet-5-5": "your-bedrock-id"}, Lacks: lacks(20_000_000, true)},
			{Name: "vertex", Dialect: "anthropic", Lacks: lacks(30_000_000, false)},
			{Name: "foundry", Dialect: "anthropic", Auth: "bearer", Keys: []gateway.Key{{Name: "1", Secret: "sk-CANARY-FOUNDRY_KEY"}}, Lacks: lacks(0, false)},
			{Name: "aws", Dialect: "anthropic", Keys: []gateway.Key{{Name: "1", Secret: "sk-CANARY-AWS_KEY"}}},
		},
		Routes: []gateway.Route{{
			Name: "opus", Models: []string{"claude-opus-*"}, Delivery: gateway.Whole, Answer: "demo.json",
			Chain: []gateway.Entry{
				{Target: "anthropic"},
				{Target: "anthropic", Model: "claude-sonnet-5-5", Key: "second", Betas: []string{}, Version: "2023-06-01"},
				{Target: "local", Model: "qwen3", Path: "/api", Sealed: "strip"},
				{Saved: true},
			},
			OnRefusal: &gateway.Entry{Target: "anthropic", Model: "claude-sonnet-5-5"},
		}},
		Policy: holdfast.Policy{
			Attempts: 4, Deadline: 10 * time.Minute, AttemptTimeout: 10 * time.Minute, MaxServerWait: time.Minute,
			Backoff: holdfast.Backoff{Base: 500 * time.Millisecond, Cap: 8 * time.Second, ThrottleBase: 500 * time.Millisecond},
		},
		Breaker: breaker,
		Pace:    pace,
		Budget:  holdfast.BudgetSettings{Capacity: 100, Cost: 14, ThrottleCost: 5, Earn: 1, Refill: 10 * time.Second},
		Connect: 5 * time.Second, FirstContent: 2 * time.Minute, Idle: 90 * time.Second,
		Stream: gateway.Stream{Delivery: gateway.Live, Hold: 15 * time.Second, Ping: 15 * time.Second},
		Clients: []gateway.Client{
			{Name: "app", KeySHA256: "2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b"},
			{Name: "nightly", KeySHA256: "35224d0d3465d74e855f8d69a136e79c744ea35a675d3393360a327cbf6359a2", Lane: holdfast.Bulk, RequestsPerMinute: 60},
		},
		MaxBody: 512 << 20, BodyMemory: 1 << 20, BodyTimeout: 30 * time.Second, WriteTimeout: time.Minute,
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
}

// lacks is what is known of an API that has no server-side fallbacks.
func lacks(most int64, counts bool) gateway.Lacks {
	return gateway.Lacks{MaxBody: most, CountTokens: counts, Members: []string{"fallbacks"}, Betas: []string{"server-side-fallback-"}}
}

func TestGatewayTakesTheExample(t *testing.T) {
	f := example(t)
	settings, err := f.Gateway()
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Elsewhere(&settings, nil); err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"", "", "", "bedrock", "vertex", "foundry", "aws"} {
		made, ok := settings.Targets[i].Base.(*provider.Transport)
		if ok != (want != "") || ok && made.Provider() != want {
			t.Errorf("target %d is asked by %T, want %s", i, settings.Targets[i].Base, want)
		}
	}
	if _, err := gateway.New(settings); err != nil {
		t.Error(err)
	}
}

// An empty file leaves everything to the gateway's own defaults.
func TestGatewayOfAnEmptyFileLearnsAndIsZeroElse(t *testing.T) {
	t.Parallel()
	f, err := config.Parse(nil)
	if err != nil {
		t.Fatal(err)
	}
	got, err := f.Gateway()
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(gateway.Settings{Pace: holdfast.Limits{FollowHeaders: true}}, got); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
	if f.ListenAddress() != "127.0.0.1:4100" || f.AdminAddress() != "127.0.0.1:4101" || f.Grace() != 30*time.Second || f.KeepsAnswers() {
		t.Errorf("listen %s, admin %s, grace %v, keeps answers %v", f.ListenAddress(), f.AdminAddress(), f.Grace(), f.KeepsAnswers())
	}
}

func TestFilesThatAreNamedMustBeThere(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.WriteFile("holdfast.yaml", []byte(`tls: {cert: c.pem, key: k.pem}
targets: [{name: a, url: "http://h"}]
routes:
  - chain: [{target: a}]
    answer: no.json
`), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := config.Load("holdfast.yaml")
	if err != nil {
		t.Fatal(err)
	}
	want := `holdfast.yaml: line 1: tls.cert: c.pem: no such file or directory
holdfast.yaml: line 1: tls.key: k.pem: no such file or directory
holdfast.yaml: line 5: routes.0.answer: no.json: no such file or directory`
	if _, err := f.Gateway(); err == nil || err.Error() != want {
		t.Errorf("error is\n%v\nwant\n%s", err, want)
	}
}
