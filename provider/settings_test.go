package provider_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"

	"holdfast"
	"holdfast/internal/testcloud"
	"holdfast/provider"
)

func TestWhatIsWrongWithSettings(t *testing.T) {
	alone(t)
	for _, c := range []struct {
		name string
		s    provider.Settings
		want string // of the error or its hint; empty: they are good
	}{
		{"nothing", provider.Settings{}, "say one of bedrock"},
		{"unknown", provider.Settings{Provider: "bedrok"}, `no provider "bedrok"`},
		{"bedrock", provider.Settings{Provider: provider.Bedrock, Region: region}, ""},
		{"bedrock without a region", provider.Settings{Provider: provider.Bedrock}, "set AWS_REGION"},
		{"region of a configuration", provider.Settings{Provider: provider.Bedrock, AWSConfig: &aws.Config{Region: region}}, ""},
		{"mantle without a region", provider.Settings{Provider: provider.BedrockMantle}, "no region"},
		{"aws without a workspace", provider.Settings{Provider: provider.AWS, Region: region}, "ANTHROPIC_AWS_WORKSPACE_ID"},
		{"vertex", provider.Settings{Provider: provider.Vertex, Region: "global", Project: project}, ""},
		{"vertex without a region", provider.Settings{Provider: provider.Vertex, Project: project}, "no region"},
		{"vertex without a project", provider.Settings{Provider: provider.Vertex, Region: region}, "no project"},
		{"google cloud without a workspace", provider.Settings{Provider: provider.GoogleCloud, Project: project}, "workspace"},
		{"foundry", provider.Settings{Provider: provider.Foundry, Resource: "r"}, ""},
		{"foundry without a resource", provider.Settings{Provider: provider.Foundry}, "ANTHROPIC_FOUNDRY_RESOURCE"},
		{"foundry with both", provider.Settings{Provider: provider.Foundry, Resource: "r", URL: "https://h/anthropic"}, "both"},
		{"a key of Google", provider.Settings{Provider: provider.Vertex, Region: region, Project: project, Key: canary}, "vertex has no key"},
		{"a project of AWS", provider.Settings{Provider: provider.Bedrock, Region: region, Project: project}, "has no project"},
		{"a key and a profile", provider.Settings{Provider: provider.Bedrock, Region: region, Key: canary, Profile: "p"}, "both"},
		{"a key and tokens", provider.Settings{Provider: provider.Foundry, Resource: "r", Key: canary, Tokens: func(context.Context) (string, error) { return "", nil }}, "both"},
		{"a URL with a password", provider.Settings{Provider: provider.Bedrock, Region: region, URL: "https://u:" + canary + "@h"}, "cannot be used"},
		{"a path for bedrock", provider.Settings{Provider: provider.Bedrock, Region: region, URL: "https://h/v1"}, "has a path"},
		{"a key with a newline", provider.Settings{Provider: provider.Bedrock, Region: region, Key: canary + "\n"}, "its key holds a space"},
		{"a key with a space", provider.Settings{Provider: provider.Foundry, Resource: "r", Key: canary + " x"}, "its key holds a space"},
		{"a profile with a newline", provider.Settings{Provider: provider.Bedrock, Region: region, Profile: "p\n"}, "its profile holds"},
		{"an empty model", provider.Settings{Provider: provider.Bedrock, Region: region, Models: map[string]string{"claude-opus-5": ""}}, "empty name"},
	} {
		t.Run(c.name, func(t *testing.T) {
			made, err := provider.New(c.s)
			if c.want == "" {
				if err != nil || made.Provider() != c.s.Provider {
					t.Fatalf("%v", err)
				}
				return
			}
			var own *provider.Error
			if !errors.As(err, &own) || !errors.Is(err, provider.ErrSettings) || made != nil {
				t.Fatalf("%v, %v", made, err)
			}
			if text := err.Error() + "\n" + own.Hint(); !strings.Contains(text, c.want) || strings.Contains(text, canary) {
				t.Errorf("it says %s", text)
			}
			if v := holdfast.Judge(err); v.Kind != holdfast.Broken || v.ShouldRetry != "false" || !v.NotSent {
				t.Errorf("verdict %+v", v)
			}
		})
	}
}

// A name of a place can never make the address another host's or another path's, wherever it comes from.
func TestPlacesCannotChangeTheAddress(t *testing.T) {
	alone(t)
	for _, c := range []struct {
		s    func(name string) provider.Settings
		name string // of the field
		from string // the variable that it is taken from, too
		good []string
	}{
		{func(n string) provider.Settings {
			return provider.Settings{Provider: provider.Bedrock, Region: n, Key: canary}
		}, "region", "AWS_REGION", []string{"us-east-1", "us-gov-west-1"}},
		{func(n string) provider.Settings {
			return provider.Settings{Provider: provider.BedrockMantle, Region: n}
		}, "region", "AWS_DEFAULT_REGION", []string{"eu-central-1"}},
		{func(n string) provider.Settings {
			return provider.Settings{Provider: provider.AWS, Region: n, Workspace: "w"}
		}, "region", "AWS_REGION", []string{"us-east-1"}},
		{func(n string) provider.Settings {
			return provider.Settings{Provider: provider.AWS, Region: region, Workspace: n}
		}, "workspace", "ANTHROPIC_AWS_WORKSPACE_ID", []string{"wrkspc_01Ab-C"}},
		{func(n string) provider.Settings {
			return provider.Settings{Provider: provider.Vertex, Region: n, Project: project}
		}, "region", "", []string{"global", "eu", "us-east5"}},
		{func(n string) provider.Settings {
			return provider.Settings{Provider: provider.Vertex, Region: region, Project: n}
		}, "project", "", []string{"my-project", "example.com:my-project", "1234567"}},
		{func(n string) provider.Settings {
			return provider.Settings{Provider: provider.GoogleCloud, Region: n, Project: project, Workspace: "w"}
		}, "region", "", []string{"global"}},
		{func(n string) provider.Settings {
			return provider.Settings{Provider: provider.GoogleCloud, Project: n, Workspace: "w"}
		}, "project", "GOOGLE_CLOUD_PROJECT", []string{"p"}},
		{func(n string) provider.Settings {
			return provider.Settings{Provider: provider.GoogleCloud, Project: project, Workspace: n}
		}, "workspace", "ANTHROPIC_GOOGLE_CLOUD_WORKSPACE_ID", []string{"wrkspc_01"}},
		{func(n string) provider.Settings { return provider.Settings{Provider: provider.Foundry, Resource: n} }, "resource", "ANTHROPIC_FOUNDRY_RESOURCE", []string{"acme", "acme-2"}},
		{func(string) provider.Settings {
			return provider.Settings{Provider: provider.Bedrock, AWSConfig: &aws.Config{Region: "x.evil.test/"}}
		}, "region", "", nil},
	} {
		for _, good := range c.good {
			if _, err := provider.New(c.s(good)); err != nil {
				t.Errorf("%s: %q: %v", c.name, good, err)
			}
		}
		for _, bad := range []string{"x.evil.test/", "../../x", "..", ".", "a..b", "a/b", "a?b", "a#b", "a@b", "a%2fb", `a\b`, "a b", "a\n", " a", "-a", "a-", "a\x00", "ä", ":80", "a:", strings.Repeat("a", 300)} {
			check := func(how string, s provider.Settings) {
				made, err := provider.New(s)
				if !errors.Is(err, provider.ErrSettings) || made != nil || !strings.Contains(err.Error(), "its "+c.name+" has") || strings.Contains(err.Error(), "evil") {
					t.Errorf("%s of %s %q %s: %v", c.name, s.Provider, bad, how, err)
				}
			}
			check("named", c.s(bad))
			if c.from != "" && !strings.Contains(bad, "\x00") {
				t.Setenv(c.from, bad)
				check("in "+c.from, c.s(""))
				t.Setenv(c.from, "")
			}
		}
	}
}

// Made without a variable, a file or a network: a service starts, and what is missing is missed when it is asked for.
func TestNewLooksForNothing(t *testing.T) {
	alone(t)
	nobody := roundTripper(func(*http.Request) (*http.Response, error) {
		t.Error("something was sent")
		return nil, errors.New("no network")
	})
	for _, d := range doors {
		s := d.settings
		s.Base, s.Tokens, s.GoogleTokens = nobody, nil, nil
		if _, err := provider.New(s); err != nil {
			t.Errorf("%s: %v", d.name, err)
		}
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// The addresses are the providers' own.
func TestAddresses(t *testing.T) {
	alone(t)
	for _, c := range []struct {
		s    provider.Settings
		want string
	}{
		{provider.Settings{Provider: provider.Bedrock, Region: region, Key: testcloud.Key}, "https://bedrock-runtime.us-east-1.amazonaws.com/model/claude-sonnet-5-5/invoke"},
		{provider.Settings{Provider: provider.BedrockMantle, Region: region, Key: testcloud.Key}, "https://bedrock-mantle.us-east-1.api.aws/anthropic/v1/messages"},
		{provider.Settings{Provider: provider.AWS, Region: region, Workspace: "w", Key: testcloud.Key}, "https://aws-external-anthropic.us-east-1.api.aws/v1/messages"},
		{provider.Settings{Provider: provider.Vertex, Region: "global", Project: project, GoogleTokens: googleTokens()}, "https://aiplatform.googleapis.com/v1/projects/my-project/locations/global/publishers/anthropic/models/claude-sonnet-5-5:rawPredict"},
		{provider.Settings{Provider: provider.Vertex, Region: region, Project: project, GoogleTokens: googleTokens()}, "https://us-east-1-aiplatform.googleapis.com/v1/projects/my-project/locations/us-east-1/publishers/anthropic/models/claude-sonnet-5-5:rawPredict"},
		{provider.Settings{Provider: provider.GoogleCloud, Project: project, Workspace: "w", GoogleTokens: googleTokens()}, "https://claude.googleapis.com/v1/projects/my-project/locations/global/workspaces/w/invoke/v1/messages"},
		{provider.Settings{Provider: provider.Foundry, Resource: "acme", Key: testcloud.Key}, "https://acme.services.ai.azure.com/anthropic/v1/messages"},
	} {
		got := ""
		c.s.Base = roundTripper(func(r *http.Request) (*http.Response, error) {
			got = r.URL.String()
			return nil, errors.New("no network")
		})
		rt, err := provider.New(c.s)
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := post(t, rt, "/v1/messages", question); err == nil || err.Error() != "no network" {
			t.Errorf("%s: %v", c.s.Provider, err)
		}
		if got != c.want {
			t.Errorf("%s is asked at\n%s, want\n%s", c.s.Provider, got, c.want)
		}
	}
}

// A model whose name would lead elsewhere is refused by the SDK, and the chain goes on.
func TestModelsCannotChangeTheAddress(t *testing.T) {
	alone(t)
	rt, err := provider.New(provider.Settings{Provider: provider.Bedrock, Region: region, Key: testcloud.Key, Base: roundTripper(func(r *http.Request) (*http.Response, error) {
		t.Errorf("sent to %s", r.URL)
		return nil, errors.New("no network")
	})})
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = post(t, rt, "/v1/messages", `{"model":"..","max_tokens":1,"messages":[]}`)
	if !errors.Is(err, provider.ErrRequest) || holdfast.Judge(err).Kind != holdfast.Broken || !holdfast.Judge(err).Neutral {
		t.Errorf("%v", err)
	}
}
