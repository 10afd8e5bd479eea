package endpoint_test

import (
	"slices"
	"strings"
	"testing"

	"holdfast/internal/endpoint"
)

func TestEveryEntryIsWhole(t *testing.T) {
	t.Parallel()
	names := map[string]bool{}
	for _, e := range endpoint.All() {
		switch {
		case names[e.Name] || e.Name == "" || e.Title == "":
			t.Errorf("%q, %q: no name, or one that is taken", e.Name, e.Title)
		case e.AsOf == "":
			t.Errorf("%s has no date", e.Name)
		case !e.Cloud && (e.Base == "" || len(e.Hosts) == 0):
			t.Errorf("%s cannot be found", e.Name)
		case !e.Serves("/v1/messages"):
			t.Errorf("%s serves no messages", e.Name)
		}
		if e.Base != "" && !strings.Contains(e.Base, "{") {
			if found, ok := endpoint.At(e.Base); !ok || found.Name != e.Name {
				t.Errorf("at %s there is %q", e.Base, found.Name)
			}
			if want, wrong := e.WrongPath(e.Base); wrong {
				t.Errorf("%s: its own base is wrong, %s", e.Name, want)
			}
		}
		names[e.Name] = true
	}
}

func TestAt(t *testing.T) {
	t.Parallel()
	for base, want := range map[string]string{
		"https://api.anthropic.com": "anthropic", "https://API.anthropic.com:443/": "anthropic", "https://openrouter.ai/api/v1": "openrouter",
		"https://acme.services.ai.azure.com/anthropic": "foundry", "http://127.0.0.1:11434": "ollama", "http://[::1]:11434": "ollama", "https://ollama.com": "ollama-cloud",
		"https://api.moonshot.cn/anthropic": "moonshot", "http://127.0.0.1:8000": "", "https://services.ai.azure.com.evil.test": "", "": "", "://": "", "https://openrouter.ai.evil.test": "",
	} {
		if found, ok := endpoint.At(base); found.Name != want || ok != (want != "") {
			t.Errorf("at %q there is %q, want %q", base, found.Name, want)
		}
	}
}

func TestServes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		cloud, path string
		want        bool
	}{
		{"bedrock", "/v1/messages", true}, {"bedrock", "/base/v1/messages?beta=true", true}, {"bedrock", "/v1/messages/", true}, {"bedrock", "/v1/messages/count_tokens", false},
		{"vertex", "/v1/messages/count_tokens", true}, {"vertex", "/v1/messages/batches", false}, {"foundry", "/v1/messages/batches/b/results", false},
		{"foundry", "/v1/files", true}, {"foundry", "/v1/models/m", false}, {"foundry", "/v1/modelsx", true}, {"aws", "/v1/messages/batches", true}, {"google-cloud", "/v1/files", true},
	} {
		e, ok := endpoint.Cloud(c.cloud)
		if !ok || e.Serves(c.path) != c.want {
			t.Errorf("%s serves %s: %v", c.cloud, c.path, !c.want)
		}
	}
}

func TestWrongPath(t *testing.T) {
	t.Parallel()
	for base, want := range map[string]string{
		"https://openrouter.ai/api": "", "https://openrouter.ai/api/v1": "", "https://openrouter.ai/api/": "", "https://openrouter.ai": "/api", "https://openrouter.ai/api/v1/messages": "/api",
		"https://api.deepseek.com": "/anthropic", "https://acme.services.ai.azure.com/anthropic": "", "https://acme.services.ai.azure.com": "/anthropic", "https://api.anthropic.com/v1": "",
	} {
		e, _ := endpoint.At(base)
		if got, wrong := e.WrongPath(base); wrong != (want != "") || wrong && got != want {
			t.Errorf("%s: %q, %v; want %q", base, got, wrong, want)
		}
	}
}

func TestModelOf(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]endpoint.Model{
		"claude-opus-4-8": {"opus", 408}, "claude-opus-4-20250514": {"opus", 400}, "claude-sonnet-5-5": {"sonnet", 505}, "claude-opus-5": {"opus", 500},
		"us.anthropic.claude-sonnet-4-5-20250929-v1:0": {"sonnet", 405}, "claude-opus-4-5@20251101": {"opus", 405}, "anthropic/claude-opus-4.5": {"opus", 405},
		"claude-3-5-sonnet-20241022": {}, "qwen3": {}, "": {}, "Claude-Fable-5-1": {"fable", 501}, "claude-sonnet-5-latest": {"sonnet", 500},
	} {
		if got, ok := endpoint.ModelOf(name); got != want || ok != (want.Family != "") {
			t.Errorf("%q is %v, want %v", name, got, want)
		}
	}
}

func FuzzModelOf(f *testing.F) {
	for _, seed := range []string{"claude-opus-4-8", "claude-opus-4-5@20251101", "anthropic/claude-opus-4.5", "claude-opus-", "claude-opus-99-99-", "claude-opus-4-"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, name string) {
		m, ok := endpoint.ModelOf(name)
		if ok && (m.Family == "" || m.Version < 0 || m.Version > 9999) || !ok && m != (endpoint.Model{}) {
			t.Errorf("%q is %v", name, m)
		}
		if name != "" && !endpoint.SharesLimit(name, name) {
			t.Errorf("%q does not share its own limit", name)
		}
		endpoint.Differences(name)
	})
}

func TestSharesLimit(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{"claude-opus-4-8", "claude-opus-4-5-20251101", true}, {"claude-opus-4-8", "claude-opus-5", false}, {"claude-sonnet-4-5", "claude-sonnet-4-6", true},
		{"claude-sonnet-5", "claude-sonnet-5-5", false}, {"claude-fable-5", "claude-fable-5-1", true}, {"claude-opus-5", "claude-opus-5-5", false},
		{"claude-opus-4-8", "claude-sonnet-4-6", false}, {"claude-opus-4-1", "claude-opus-4-8", false}, {"claude-haiku-4-5", "claude-haiku-4-5-20251001", true},
		{"qwen3", "qwen3", true}, {"qwen3", "claude-opus-4-8", false}, {"", "", false},
	} {
		if got := endpoint.SharesLimit(c.a, c.b); got != c.want || endpoint.SharesLimit(c.b, c.a) != got {
			t.Errorf("%s and %s share a limit: %v", c.a, c.b, got)
		}
	}
}

func TestDifferences(t *testing.T) {
	t.Parallel()
	for model, want := range map[string][]string{
		"claude-opus-4-7": {"prefill", "temperature", "enabled"}, "claude-opus-5": {"prefill", "temperature", "enabled"}, "claude-sonnet-4-6": {"prefill"},
		"claude-sonnet-5-5": {"prefill", "enabled"}, "claude-haiku-4-5": {"adaptive"}, "claude-fable-5": {"prefill", "enabled", "disabled"}, "qwen3": nil, "": nil,
	} {
		got := endpoint.Differences(model)
		if len(got) != len(want) {
			t.Errorf("%s: %q, want %q", model, got, want)
			continue
		}
		for i, word := range want {
			if !strings.Contains(got[i], word) {
				t.Errorf("%s: %q, want %q", model, got, want)
			}
		}
	}
}

func TestMissing(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		cloud, set, file string
		want             string // a word of what is missing
	}{
		{"bedrock", "", "", "AWS"}, {"bedrock", "AWS_BEARER_TOKEN_BEDROCK", "", ""}, {"bedrock", "AWS_ACCESS_KEY_ID", "", ""}, {"bedrock", "", "/nest/.aws/config", ""},
		{"bedrock-mantle", "ANTHROPIC_AWS_API_KEY", "", ""}, {"aws", "AWS_BEARER_TOKEN_BEDROCK", "", "ANTHROPIC_AWS_API_KEY"}, {"aws", "AWS_PROFILE", "", ""},
		{"vertex", "", "", "gcloud"}, {"vertex", "GOOGLE_APPLICATION_CREDENTIALS", "", ""}, {"google-cloud", "", "/nest/.config/gcloud/application_default_credentials.json", ""},
		{"foundry", "", "", "ANTHROPIC_FOUNDRY_API_KEY"}, {"foundry", "ANTHROPIC_FOUNDRY_API_KEY", "", ""}, {"anthropic", "", "", ""},
	} {
		s := endpoint.Surroundings{
			Env: func(name string) string {
				if name == c.set {
					return "set"
				}
				return ""
			},
			Exists: func(path string) bool { return path == c.file && c.file != "" },
			Home:   "/nest",
		}
		if got := s.Missing(c.cloud); (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s with %s%s: %q", c.cloud, c.set, c.file, got)
		}
	}
}

func TestClouds(t *testing.T) {
	t.Parallel()
	for _, name := range endpoint.Clouds() {
		if e, ok := endpoint.Cloud(name); !ok || !e.Cloud || !e.Claude {
			t.Errorf("%s: %+v", name, e)
		}
	}
	if _, ok := endpoint.Cloud("ollama"); ok || !slices.Contains(endpoint.Clouds(), "bedrock") {
		t.Error("what is no cloud is one")
	}
}

func FuzzAt(f *testing.F) {
	for _, e := range endpoint.All() {
		f.Add(e.Base)
	}
	f.Add("https://user:pass@openrouter.ai:443/api?x#y")
	f.Fuzz(func(t *testing.T, base string) {
		e, ok := endpoint.At(base)
		if ok != e.Known() {
			t.Errorf("%q: %v, %q", base, ok, e.Name)
		}
		e.WrongPath(base)
		e.Serves(base)
	})
}
