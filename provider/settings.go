package provider

import (
	"context"
	"maps"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"golang.org/x/oauth2"

	"holdfast/internal/endpoint"
)

// The providers.
const (
	// Bedrock is Amazon Bedrock, at bedrock-runtime. It takes POST /v1/messages alone.
	Bedrock = "bedrock"
	// BedrockMantle is Amazon Bedrock at bedrock-mantle, which counts tokens too.
	BedrockMantle = "bedrock-mantle"
	// AWS is the Claude Platform on AWS, with the paths of the Claude API.
	AWS = "aws"
	// Vertex is Google Vertex AI. It takes messages and counts tokens.
	Vertex = "vertex"
	// GoogleCloud is Claude on Google Cloud as Anthropic runs it, with the paths of the Claude API.
	GoogleCloud = "google-cloud"
	// Foundry is Microsoft Foundry.
	Foundry = "foundry"
)

// Settings say who is asked, and with whose credentials. They are plain data and are not changed. A key and credentials never
// appear in what this package prints.
type Settings struct {
	// Provider is one of the constants above.
	Provider string
	// Region of Bedrock, BedrockMantle and AWS. Default: AWS_REGION, then AWS_DEFAULT_REGION. Of Vertex, which needs
	// one, and of GoogleCloud, where the default is global.
	Region string
	// Project of Vertex, which needs one, and of GoogleCloud. Default there: GOOGLE_CLOUD_PROJECT.
	Project string
	// Resource of Foundry. Default: ANTHROPIC_FOUNDRY_RESOURCE.
	Resource string
	// Workspace of AWS and of GoogleCloud, which need one. Default: ANTHROPIC_AWS_WORKSPACE_ID and
	// ANTHROPIC_GOOGLE_CLOUD_WORKSPACE_ID.
	Workspace string
	// URL replaces the provider's own address, as for a private link. That of Bedrock and of Vertex has no path; that of
	// Foundry ends in /anthropic. Default: made of Region, Project and Resource.
	URL string

	// Key is sent as it is: a bearer key of AWS, the key of Foundry. It comes before all credentials. Google takes none.
	// Default: the variable of the SDK, such as AWS_BEARER_TOKEN_BEDROCK, and without one the credentials below.
	Key string
	// Profile of AWS's shared files whose credentials sign. At Bedrock, the variable AWS_BEARER_TOKEN_BEDROCK comes before
	// it. Default: AWS's own chain, which ends at the machine's role.
	Profile string
	// Credentials is the path of a file with Google credentials. Default: Google's application default credentials.
	Credentials string
	// AWSConfig has region and credentials for Bedrock, and replaces Profile. Default: what AWS's SDK loads.
	AWSConfig *aws.Config
	// GoogleTokens gives the tokens of Vertex and GoogleCloud, and replaces Credentials. Default: none.
	GoogleTokens oauth2.TokenSource
	// Tokens gives Entra ID tokens for Foundry, and replaces Key. It is asked for every request, and should keep them. Its
	// context ends with the request and carries no values; a request that has a deadline waits a third of its time, whatever
	// the function does, and a panic of it is an error.
	// Default: none.
	Tokens func(ctx context.Context) (string, error)

	// Models turns a model of the caller into the provider's id of it. One that is not in it is passed on as it is.
	Models map[string]string
	// Base sends what was signed. Default: http.DefaultTransport. It must not retry by itself.
	Base http.RoundTripper

	late *late // shared by all requests of a Transport
}

// Validate reports what is missing, contradicts itself or would lead to another host, without a network and without looking
// for credentials. It never changes anything. The error is an [*Error].
func (s Settings) Validate() error {
	known, ok := endpoint.Cloud(s.Provider)
	if !ok {
		return s.wrong("say one of "+strings.Join(endpoint.Clouds(), ", "), "there is no provider %q", s.Provider)
	}
	if err := s.foreign(); err != nil {
		return err
	}
	if err := s.misplaced(); err != nil {
		return err
	}
	if s.URL != "" {
		u, err := url.Parse(s.URL)
		switch {
		case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "":
			return s.wrong("a URL such as https://host, without user, password and query", "its URL cannot be used") // and is not shown
		case (s.Provider == Bedrock || s.Provider == Vertex) && strings.Trim(u.Path, "/") != "":
			return s.wrong("leave the path out: the SDK makes it of the model", "the URL of %s has a path", known.Title)
		}
	}
	for from, to := range s.Models {
		if from == "" || to == "" {
			return s.wrong("models maps the model that callers ask for to the provider's id of it", "its models hold an empty name")
		}
	}
	return s.missing()
}

// foreign finds what means something to other providers alone: it would be ignored in silence.
func (s Settings) foreign() error {
	for _, f := range []struct {
		name string
		set  bool
		of   []string
	}{
		{"region", s.Region != "", []string{Bedrock, BedrockMantle, AWS, Vertex, GoogleCloud}},
		{"project", s.Project != "", []string{Vertex, GoogleCloud}},
		{"resource", s.Resource != "", []string{Foundry}},
		{"workspace", s.Workspace != "", []string{AWS, GoogleCloud}},
		{"key", s.Key != "", []string{Bedrock, BedrockMantle, AWS, Foundry}},
		{"profile", s.Profile != "", []string{Bedrock, BedrockMantle, AWS}},
		{"credentials", s.Credentials != "", []string{Vertex, GoogleCloud}},
		{"AWS configuration", s.AWSConfig != nil, []string{Bedrock}},
		{"Google tokens", s.GoogleTokens != nil, []string{Vertex, GoogleCloud}},
		{"tokens", s.Tokens != nil, []string{Foundry}},
	} {
		if f.set && !slices.Contains(f.of, s.Provider) {
			return s.wrong("leave it out", "%s has no %s; that is of %s", s.Provider, f.name, strings.Join(f.of, ", "))
		}
	}
	switch {
	case s.Key != "" && s.Profile != "":
		return s.wrong("keep one of them", "it has both a key and a profile")
	case s.Key != "" && s.Tokens != nil:
		return s.wrong("keep one of them", "it has both a key and tokens")
	case s.Resource != "" && s.URL != "":
		return s.wrong("keep one of them", "it has both a resource and a URL")
	}
	return nil
}

// missing finds what has no default.
func (s Settings) missing() error {
	for _, f := range []struct {
		name, value string
		of          []string
	}{
		{"region", s.region(), []string{Bedrock, BedrockMantle, AWS, Vertex}},
		{"project", s.project(), []string{Vertex}},
		{"workspace", s.workspace(), []string{AWS}},
		{"resource", s.resource(), []string{Foundry}},
	} {
		if f.value == "" && slices.Contains(f.of, s.Provider) {
			hint := "name its " + f.name
			if v := variables[f.name+" "+s.Provider]; len(v) > 0 {
				hint += ", or set " + v[0]
			}
			return s.wrong(hint, "it has no %s", f.name)
		}
	}
	if s.Provider == GoogleCloud && s.URL == "" && (s.project() == "" || s.workspace() == "") {
		return s.wrong("name both, or the whole URL", "it has no project or no workspace")
	}
	return nil
}

// variables are what a field is taken from when it is empty, as the SDK's clients do. Those of keys are in package endpoint.
var variables = map[string][]string{
	"region " + Bedrock:        {"AWS_REGION", "AWS_DEFAULT_REGION"},
	"region " + BedrockMantle:  {"AWS_REGION", "AWS_DEFAULT_REGION"},
	"region " + AWS:            {"AWS_REGION", "AWS_DEFAULT_REGION"},
	"project " + GoogleCloud:   {"ANTHROPIC_GOOGLE_CLOUD_PROJECT", "GOOGLE_CLOUD_PROJECT"},
	"workspace " + AWS:         {"ANTHROPIC_AWS_WORKSPACE_ID"},
	"workspace " + GoogleCloud: {"ANTHROPIC_GOOGLE_CLOUD_WORKSPACE_ID"},
	"resource " + Foundry:      {"ANTHROPIC_FOUNDRY_RESOURCE", "ANTHROPIC_FOUNDRY_BASE_URL"},
}

func (s Settings) region() string {
	if s.Region == "" && s.AWSConfig != nil {
		return s.AWSConfig.Region
	}
	return s.orVariable("region", s.Region)
}

func (s Settings) project() string   { return s.orVariable("project", s.Project) }
func (s Settings) workspace() string { return s.orVariable("workspace", s.Workspace) }

func (s Settings) resource() string {
	if s.URL != "" {
		return s.URL
	}
	return s.orVariable("resource", s.Resource)
}

// namedResource is the resource alone, where its variable may hold it.
func (s Settings) namedResource() string {
	if s.Resource == "" {
		return os.Getenv(variables["resource "+Foundry][0])
	}
	return s.Resource
}

// copied is a copy that shares nothing with what its maker may change.
func (s Settings) copied() Settings {
	s.Models = maps.Clone(s.Models)
	s.late = new(late)
	if s.Base == nil {
		s.Base = http.DefaultTransport
	}
	return s
}
