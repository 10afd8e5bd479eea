package main

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"holdfast/internal/testcloud"
	"holdfast/internal/testnet"
	"holdfast/standin"
)

// bend sends every request to one host of a network in memory, and keeps what it saw.
type bend struct {
	next  http.RoundTripper
	host  string
	hosts []string
	seen  []http.Header
}

func (b *bend) RoundTrip(req *http.Request) (*http.Response, error) {
	b.hosts, b.seen = append(b.hosts, req.URL.Host), append(b.seen, req.Header.Clone())
	req = req.Clone(req.Context())
	req.URL.Scheme, req.URL.Host, req.Host = "http", b.host, b.host
	return b.next.RoundTrip(req)
}

// secondary serves a cloud and gives what leads there.
func secondary(t *testing.T, cloud http.Handler) *bend {
	t.Helper()
	n := testnet.New()
	n.Serve(t, "cloud.test:80", cloud)
	return &bend{next: n.Client().Transport, host: "cloud.test"}
}

// bareOfClouds takes away what stands around a test.
func bareOfClouds(t *testing.T) {
	t.Helper()
	for _, name := range []string{"AWS_BEARER_TOKEN_BEDROCK", "AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE", "AWS_ACCESS_KEY_ID", "ANTHROPIC_AWS_WORKSPACE_ID", "GOOGLE_CLOUD_PROJECT",
		"ANTHROPIC_FOUNDRY_RESOURCE", "ANTHROPIC_FOUNDRY_BASE_URL", "ANTHROPIC_FOUNDRY_API_KEY", "ANTHROPIC_GOOGLE_CLOUD_WORKSPACE_ID", "ANTHROPIC_GOOGLE_CLOUD_PROJECT"} {
		t.Setenv(name, "")
	}
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	t.Setenv("HOME", t.TempDir())
	t.Setenv("ANTHROPIC_API_KEY", markedKey)
}

func TestAskFallsBackToAnotherProvider(t *testing.T) {
	bareOfClouds(t)
	t.Setenv("AWS_BEARER_TOKEN_BEDROCK", testcloud.Key)
	for _, stream := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			f := newFixture(t, standin.Failing(-1, 529, ""), markedKey)
			f.withSaved(t)
			f.policy.Dice = dice(0)
			f.options.stream, f.options.fallback = stream, []string{"bedrock:us-east-1=cloud-sonnet"}
			model := standin.New(standin.Plan{Reply: "from elsewhere"})
			cloud := testcloud.Bedrock("us-east-1", model)
			way := secondary(t, cloud)
			all, err := f.options.fallbacks(markedQuestion, way)
			if err != nil {
				t.Fatal(err)
			}
			f.stand(all)
			if err := f.ask(t.Context()); err != nil {
				t.Fatal(err)
			}
			if f.out.String() != "from elsewhere\n" {
				t.Errorf("stdout %q", f.out.String())
			}
			words := f.words.String()
			for _, want := range []string{"retry 3 of 3: overloaded_error 529", "asking bedrock for cloud-sonnet instead\n", "source fallback (bedrock), 5 attempts in "} {
				if !strings.Contains(words, want) {
					t.Errorf("stderr does not say %q:\n%s", want, words)
				}
			}
			if model.Journal()[0].Model != "cloud-sonnet" || way.hosts[0] != "bedrock-runtime.us-east-1.amazonaws.com" || cloud.Requests()[0].Stream != stream {
				t.Errorf("asked %v for %s", way.hosts, model.Journal()[0].Model)
			}
			for name, values := range way.seen[0] {
				if strings.Contains(strings.Join(values, " "), markedKey) {
					t.Errorf("the key of the one came to the other in %s", name)
				}
			}
		})
	}
}

// Both down: the saved answer is last, with its label.
func TestAskFallsBackAndThenToTheSavedAnswer(t *testing.T) {
	bareOfClouds(t)
	t.Setenv("AWS_BEARER_TOKEN_BEDROCK", testcloud.Key)
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, standin.Failing(-1, 529, ""), markedKey)
		f.withSaved(t)
		f.policy.Dice, f.policy.Attempts = dice(0), 2
		f.options.fallback = []string{"bedrock:us-east-1=cloud-sonnet"}
		model := standin.New(standin.Failing(-1, 503, ""))
		all, err := f.options.fallbacks(markedQuestion, secondary(t, testcloud.Bedrock("us-east-1", model)))
		if err != nil {
			t.Fatal(err)
		}
		f.stand(all)
		if err := f.ask(t.Context()); err != nil || f.out.String() != "kept\n" || !strings.Contains(f.words.String(), "[saved answer of ") {
			t.Errorf("%v, %q\n%s", err, f.out.String(), f.words.String())
		}
		standin.Expect(t, f.server.Journal(), standin.Requests(2))
		standin.Expect(t, model.Journal(), standin.Requests(2))
	})
}

// A provider without credentials is no help, and no obstacle: the saved answer comes, and what is missing is told.
func TestAskWithoutCredentialsOfTheFallback(t *testing.T) {
	bareOfClouds(t)
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, standin.Failing(-1, 529, ""), markedKey)
		f.withSaved(t)
		f.policy.Dice = dice(0)
		f.options.fallback = []string{"foundry:acme"}
		all, err := f.options.fallbacks(markedQuestion, secondary(t, http.NotFoundHandler()))
		if err != nil {
			t.Fatal(err)
		}
		f.stand(all)
		if err := f.ask(t.Context()); err != nil || f.out.String() != "kept\n" || !strings.Contains(f.words.String(), "no credentials of foundry") {
			t.Errorf("%v, %q\n%s", err, f.out.String(), f.words.String())
		}
	})
}

// Without a saved answer the error tells of both: what the first said, what the second lacks and what to do about that.
func TestAskTellsWhatTheFallbackLacksAndWhatTheFirstSaid(t *testing.T) {
	bareOfClouds(t)
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, standin.Failing(-1, 529, ""), markedKey)
		f.policy.Dice, f.policy.Attempts = dice(0), 1
		f.options.fallback = []string{"foundry:acme"}
		all, err := f.options.fallbacks(markedQuestion, secondary(t, http.NotFoundHandler()))
		if err != nil {
			t.Fatal(err)
		}
		f.stand(all)
		err = f.ask(t.Context())
		if err == nil || err.Error() != "anthropic: overloaded_error 529; foundry: provider: no credentials of foundry: nothing was found" || !strings.Contains(hintOf(err), "ANTHROPIC_FOUNDRY_API_KEY") {
			t.Errorf("%v, hint %s\n%s", err, hintOf(err), f.words.String())
		}
	})
}

// Retries are counted for each target, as the policy does.
func TestAskCountsRetriesOfEachTarget(t *testing.T) {
	bareOfClouds(t)
	t.Setenv("AWS_BEARER_TOKEN_BEDROCK", testcloud.Key)
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, standin.Failing(-1, 529, ""), markedKey)
		f.policy.Dice, f.policy.Attempts = dice(0), 2
		f.options.fallback = []string{"bedrock:us-east-1=cloud-sonnet"}
		all, err := f.options.fallbacks(markedQuestion, secondary(t, testcloud.Bedrock("us-east-1", standin.New(standin.Failing(-1, 503, "")))))
		if err != nil {
			t.Fatal(err)
		}
		f.stand(all)
		_ = f.ask(t.Context())
		if words := f.words.String(); strings.Count(words, "retry 1 of 1: ") != 2 || strings.Count(words, "retry ") != 2 {
			t.Errorf("it says\n%s", words)
		}
	})
}

func TestAskFallsBackToATargetOfTheConfiguration(t *testing.T) {
	bareOfClouds(t)
	path := filepath.Join(t.TempDir(), "holdfast.yaml")
	text := "targets:\n- {name: other, url: \"http://cloud.test/v1\", dialect: anthropic, key: sk-of-the-other, models: {claude-sonnet-5-5: cloud-sonnet}}\n- {name: gpt, url: \"http://h\", dialect: openai}\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, standin.Failing(-1, 529, ""), markedKey)
		f.policy.Attempts = -1
		f.options.policy.config, f.options.fallback = path, []string{"other"}
		model := standin.New(standin.Plan{Reply: "from elsewhere"})
		way := secondary(t, model)
		all, err := f.options.fallbacks(markedQuestion, way)
		if err != nil {
			t.Fatal(err)
		}
		f.stand(all)
		f.options.json = true
		if err := f.ask(t.Context()); err != nil || !strings.Contains(f.out.String(), `"target": "other"`) || !strings.Contains(f.out.String(), `"source": "fallback"`) {
			t.Errorf("%v\n%s", err, f.out.String())
		}
		if h := way.seen[0]; model.Journal()[0].Model != "cloud-sonnet" || h.Get("X-Api-Key") != "sk-of-the-other" || h.Get("Authorization") != "" {
			t.Errorf("%v", h)
		}
	})
	o := askOptions{fallback: []string{"gpt"}, policy: policyFlags{config: path}}
	if _, err := o.fallbacks("q", nil); err == nil || !strings.Contains(err.Error(), "speaks openai") {
		t.Errorf("%v", err)
	}
}

// The same one twice has two names.
func TestAskFallbacksOfOneName(t *testing.T) {
	bareOfClouds(t)
	o := askOptions{model: "claude-sonnet-5-5", maxTokens: 1, fallback: []string{"bedrock:us-east-1=a", "bedrock:eu-west-1=b", "vertex:global/p=c", "aws:us-east-1/w", "google-cloud:p/w", "bedrock-mantle:us-east-1"}}
	all, err := o.fallbacks("q", nil)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range all {
		got = append(got, f.name+" "+f.model)
	}
	if text := strings.Join(got, ", "); text != "bedrock a, bedrock#2 b, vertex c, aws claude-sonnet-5-5, google-cloud claude-sonnet-5-5, bedrock-mantle claude-sonnet-5-5" {
		t.Error(text)
	}
}

func TestAskRefusesFallbacks(t *testing.T) {
	bareOfClouds(t)
	for spec, want := range map[string]string{
		"bedrock": "it has no region", "vertex:global": "it has no project", "foundry": "it has no resource", "aws:us-east-1": "no workspace", "sk-ant-CANARY": "names no provider", "": "names no provider",
		"bedrock:x.CANARY.test/": "its region has more", "vertex:global/../../CANARY": "its project has more", "foundry:x.CANARY.test/": "its resource has more",
	} {
		o := askOptions{model: "m", maxTokens: 1, fallback: []string{spec}}
		_, err := o.fallbacks("q", nil)
		if err == nil || !strings.Contains(err.Error(), want) || hintOf(err) == "" || strings.Contains(err.Error(), "CANARY") {
			t.Errorf("%q: %v, hint %s", spec, err, hintOf(err))
		}
	}
}
