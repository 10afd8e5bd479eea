package config_test

import (
	"fmt"
	"strings"
	"testing"

	"holdfast/config"
)

// bare takes away what stands around a test: variables and files of credentials.
func bare(t *testing.T) {
	t.Helper()
	for _, name := range []string{
		"AWS_BEARER_TOKEN_BEDROCK", "AWS_REGION", "AWS_DEFAULT_REGION", "AWS_ACCESS_KEY_ID", "AWS_PROFILE", "AWS_DEFAULT_PROFILE", "AWS_WEB_IDENTITY_TOKEN_FILE",
		"AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "AWS_CONTAINER_CREDENTIALS_FULL_URI", "AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE", "ANTHROPIC_AWS_API_KEY",
		"ANTHROPIC_AWS_WORKSPACE_ID", "ANTHROPIC_FOUNDRY_API_KEY", "ANTHROPIC_FOUNDRY_RESOURCE", "ANTHROPIC_FOUNDRY_BASE_URL", "GOOGLE_APPLICATION_CREDENTIALS",
		"GOOGLE_CLOUD_PROJECT", "ANTHROPIC_GOOGLE_CLOUD_PROJECT", "ANTHROPIC_GOOGLE_CLOUD_WORKSPACE_ID",
	} {
		t.Setenv(name, "")
	}
	t.Setenv("HOME", t.TempDir())
}

func TestMistakesOfProviders(t *testing.T) {
	bare(t)
	for _, c := range []struct {
		name, target string
		want         []string
	}{
		{"unknown", "{provider: bedrok}", []string{`targets.0.provider: must be bedrock, bedrock-mantle, aws, vertex, google-cloud or foundry; did you mean "bedrock"?`}},
		{"no region", "{provider: bedrock}", []string{`targets.0: bedrock: it has no region; name its region, or set AWS_REGION`}},
		{"no project", "{provider: vertex, region: global}", []string{`targets.0: vertex: it has no project; name its project`}},
		{"a region that is a host", "{provider: bedrock, region: \"x.evil.test/\", key: CANARY}", []string{`targets.0: bedrock: its region has more than letters, digits and hyphens`}},
		{"a project that is a path", "{provider: vertex, region: global, project: ../../x}", []string{`targets.0: vertex: its project has more than letters`}},
		{"a resource that is a host", "{provider: foundry, resource: \"x.evil.test/\", key: CANARY}", []string{`targets.0: foundry: its resource has more than`}},
		{"a workspace that is a path", "{provider: aws, region: r, workspace: ../w}", []string{`targets.0: aws: its workspace has more than`}},
		{"a key of Google", "{provider: vertex, region: global, project: p, key: CANARY}", []string{`targets.0: vertex: vertex has no key; that is of bedrock, bedrock-mantle, aws, foundry; leave it out`}},
		{"a path", "{provider: bedrock, region: r, url: \"https://h/v1\"}", []string{`targets.0: bedrock: the URL of Amazon Bedrock has a path; leave the path out: the SDK makes it of the model`}},
		{"no URL", "{provider: bedrock, region: r, url: CANARY}", []string{`targets.0.url: must begin with https:// or http://`}},
		{"several keys", "{provider: bedrock, region: r, keys: [CANARY1, CANARY2]}", []string{`targets.0.keys: a provider is asked with one key; a second one is a target of its own`}},
		{"another dialect", "{provider: bedrock, region: r, dialect: openai}", []string{`targets.0.dialect: bedrock speaks anthropic`}},
		{"a way of its own", "{provider: bedrock, region: r, key: CANARY, auth: bearer}", []string{`targets.0.auth: bedrock has its own way of sending a key; only foundry has another one, bearer, for the token under key`}},
		{"no provider", "{url: \"https://h\", region: r, credentials: f}", []string{
			`targets.0.region: is that of a provider, and none is named; provider is one of bedrock, bedrock-mantle, aws, vertex, google-cloud or foundry`,
			`targets.0.credentials: is that of a provider, and none is named; provider is one of bedrock, bedrock-mantle, aws, vertex, google-cloud or foundry`}},
		{"empty models", "{provider: bedrock, region: r, models: {claude-opus-5: \"\"}}", []string{`targets.0.models: must map names of models to names of models`}},
		{"models that are a list", "{provider: bedrock, region: r, models: [a]}", []string{`targets.0.models: must be a mapping of keys, not a list`}},
		{"the same twice", "{provider: bedrock, region: r}, {provider: bedrock, region: s}", []string{`targets.1.name: is "bedrock", and so is that of targets.0`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := config.Parse([]byte("targets: [" + c.target + "]\n"))
			if err == nil {
				t.Fatal("no mistake was found")
			}
			for _, want := range c.want {
				if !strings.Contains(err.Error(), "line 1: "+want) {
					t.Errorf("it says\n%v\nwant %s", err, want)
				}
			}
			if n := strings.Count(err.Error(), "targets."); n != len(c.want) && c.name != "the same twice" {
				t.Errorf("%d mistakes:\n%v", n, err)
			}
			if strings.Contains(err.Error(), "CANARY") {
				t.Errorf("it shows a secret: %v", err)
			}
		})
	}
}

// What works and is probably not meant is told before the first call.
func TestWarningsOfEndpoints(t *testing.T) {
	bare(t)
	const claude = "{name: a, url: \"https://api.anthropic.com\", dialect: anthropic, key: k}"
	for _, c := range []struct{ name, text, want string }{
		{"no credentials at AWS", "targets: [{provider: bedrock, region: r, models: {m: n}}]", `line 1: targets.0: there are no AWS credentials here`},
		{"no credentials at Google", "targets: [{provider: vertex, region: r, project: p, models: {m: n}}]", `line 1: targets.0: there are no Google credentials here`},
		{"no key of Foundry", "targets: [{provider: foundry, resource: r}]", `line 1: targets.0: it has no key, and ANTHROPIC_FOUNDRY_API_KEY is not set`},
		{"a file that is not there", "targets: [{provider: vertex, region: r, project: p, credentials: /no/such, models: {m: n}}]", `line 1: targets.0.credentials: there is no file /no/such`},
		{"names of Bedrock", "targets: [" + claude + ", {provider: bedrock, region: r, key: k}]", `line 1: targets.1: Amazon Bedrock names models in its own way, such as anthropic.claude-`},
		{"names of Bedrock in a chain", "targets: [" + claude + ", {provider: bedrock, region: r, key: k}]\nroutes:\n- chain: [{target: a}, {target: bedrock}]\n", `line 3: routes.0.chain.1: Amazon Bedrock names models in its own way`},
		{"names that are not listed", "targets: [" + claude + ", {provider: bedrock, region: r, key: k, models: {claude-opus-5: x}}]\nroutes:\n- {models: [claude-haiku-4-5, claude-opus-5], chain: [{target: a}, {target: bedrock}]}\n", `line 3: routes.0.chain.1: Amazon Bedrock names models in its own way, and the models of bedrock do not list claude-haiku-4-5`},
		{"a model in the chain", "targets: [" + claude + ", {provider: bedrock, region: r, key: k}]\nroutes:\n- chain: [{target: a}, {target: bedrock, model: x}]\n", ""},
		{"listed names", "targets: [" + claude + ", {provider: bedrock, region: r, key: k, models: {claude-opus-5: x}}]\n", ""},
		{"deployments of Foundry", "targets: [" + claude + ", {provider: foundry, resource: r, key: k}]\n", ""},
		{"OpenRouter by another header", "targets: [{url: \"https://openrouter.ai/api\", dialect: anthropic, key: k, auth: x-api-key, models: {m: n}}]", `line 1: targets.0.auth: OpenRouter takes its key as bearer alone (2026-08)`},
		{"OpenRouter without a key", "targets: [{url: \"https://openrouter.ai/api\", dialect: anthropic, models: {m: n}}]", `line 1: targets.0: OpenRouter takes a key as bearer alone`},
		{"OpenRouter as it should be", "targets: [{url: \"https://openrouter.ai/api/v1\", dialect: anthropic, key: k, models: {m: n}}]", ""},
		{"OpenRouter in the other dialect", "targets: [{url: \"https://openrouter.ai/api/v1\", dialect: openai, key: k}]", ""},
		{"DeepSeek without its path", "targets: [{url: \"https://api.deepseek.com\", dialect: anthropic, key: k, models: {m: n}}]", `line 1: targets.0.url: the messages of DeepSeek are at the base path "/anthropic"; such as https://api.deepseek.com/anthropic`},
		{"a base with too much", "targets: [{url: \"https://api.anthropic.com/v1/messages\", dialect: anthropic, key: k}]", `line 1: targets.0.url: the messages of Claude API are at the base path ""`},
		{"one limit for both", "targets: [" + claude + "]\nroutes:\n- chain: [{target: a, model: claude-opus-4-8}, {target: a, model: claude-opus-4-5}]\n", `line 3: routes.0.chain.1: claude-opus-4-5 has one rate limit together with claude-opus-4-8 at place 0`},
		{"one limit with that of the route", "targets: [" + claude + "]\nroutes:\n- {models: [claude-opus-4-8], chain: [{target: a}, {target: a, model: claude-opus-4-6}]}\n", `claude-opus-4-6 has one rate limit`},
		{"two limits", "targets: [" + claude + "]\nroutes:\n- chain: [{target: a, model: claude-opus-5}, {target: a, model: claude-opus-4-5}]\n", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			f, err := config.Parse([]byte(c.text))
			if err != nil {
				t.Fatal(err)
			}
			all := strings.Join(f.Warnings(), "\n")
			if c.want == "" && all != "" || !strings.Contains(all, c.want) {
				t.Errorf("it warns\n%s\nwant %s", all, c.want)
			}
		})
	}
}

func TestNotes(t *testing.T) {
	bare(t)
	f, err := config.Parse([]byte(`targets:
- {name: a, url: "https://api.anthropic.com", dialect: anthropic}
- {provider: bedrock, region: r, key: k, models: {claude-sonnet-5-5: x}}
- {url: "https://api.deepseek.com/anthropic", dialect: anthropic, key: k}
- {url: "https://of.nobody.test", dialect: anthropic}
routes:
- chain: [{target: a}, {target: a, model: claude-opus-5}, {target: bedrock, model: claude-haiku-4-5}, saved]
`))
	if err != nil {
		t.Fatal(err)
	}
	all := strings.Join(f.Notes(), "\n")
	for _, want := range []string{
		"line 3: targets.1: Amazon Bedrock has no count_tokens, batches, the models API, files, server-side fallbacks, rate-limit headers (2026-11-24)",
		"line 3: targets.1: Amazon Bedrock takes requests up to 20 MB, less than limits.max_body",
		"line 3: targets.1: Amazon Bedrock: a throttle (429) names no wait, so our own is taken",
		"line 4: targets.2: DeepSeek: it answers for Claude models by silently taking its own",
		"line 4: targets.2: DeepSeek serves models of its own: signed thinking and betas are left out for it",
		"line 7: routes.0.chain.1: claude-opus-5 refuses with a 400, which no fallback hides: an assistant message at the end (prefill); temperature, top_p or top_k other than the default; thinking of type enabled",
		"line 7: routes.0.chain.2: claude-haiku-4-5 refuses with a 400, which no fallback hides: thinking of type adaptive",
	} {
		if !strings.Contains(all, want) {
			t.Errorf("no note says %s\n%s", want, all)
		}
	}
	if strings.Contains(all, "targets.0") || strings.Contains(all, "targets.3") {
		t.Errorf("there is a note of an API of which nothing differs:\n%s", all)
	}
	if f, _ := config.Parse([]byte("limits: {max_body: 10MB}\ntargets: [{provider: bedrock, region: r, key: k}]")); strings.Contains(fmt.Sprint(f.Notes()), "max_body") {
		t.Error("a limit that is low enough is told of")
	}
}

// Keys are sent as the API is known to want them.
func TestAuthIsThatOfTheEndpoint(t *testing.T) {
	bare(t)
	f, err := config.Parse([]byte(`targets:
- {name: openrouter, url: "https://openrouter.ai/api", dialect: anthropic, key: k}
- {name: kimi, url: "https://api.moonshot.ai/anthropic", dialect: anthropic, key: k}
- {name: deepseek, url: "https://api.deepseek.com/anthropic", dialect: anthropic, key: k}
- {name: claude, url: "https://api.anthropic.com", dialect: anthropic, key: k}
- {name: explicit, url: "https://ollama.com", dialect: anthropic, key: k, auth: x-api-key}
`))
	if err != nil {
		t.Fatal(err)
	}
	s, err := f.Gateway()
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"bearer", "bearer", "", "", "x-api-key"} {
		if got := s.Targets[i].Auth; got != want {
			t.Errorf("%s: %q, want %q", s.Targets[i].Name, got, want)
		}
	}
}
