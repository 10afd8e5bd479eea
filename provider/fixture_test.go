package provider_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"golang.org/x/oauth2"

	"holdfast/internal/testcloud"
	"holdfast/internal/testnet"
	"holdfast/provider"
	"holdfast/standin"
)

const (
	region  = "us-east-1"
	project = "my-project"
	// canary is the caller's own key: no provider may ever see it.
	canary = "sk-ant-CANARY-0123456789"
)

// alone keeps the tests from what stands around them: variables, files and the machines of a cloud.
func alone(t *testing.T) {
	t.Helper()
	for _, name := range []string{
		"AWS_BEARER_TOKEN_BEDROCK", "AWS_REGION", "AWS_DEFAULT_REGION", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE",
		"ANTHROPIC_AWS_API_KEY", "ANTHROPIC_AWS_WORKSPACE_ID", "ANTHROPIC_AWS_BASE_URL", "ANTHROPIC_BEDROCK_MANTLE_BASE_URL",
		"ANTHROPIC_FOUNDRY_API_KEY", "ANTHROPIC_FOUNDRY_RESOURCE", "ANTHROPIC_FOUNDRY_BASE_URL",
		"ANTHROPIC_GOOGLE_CLOUD_PROJECT", "ANTHROPIC_GOOGLE_CLOUD_BASE_URL", "ANTHROPIC_GOOGLE_CLOUD_WORKSPACE_ID", "GOOGLE_CLOUD_PROJECT",
		"GOOGLE_APPLICATION_CREDENTIALS", "HTTP_PROXY", "HTTPS_PROXY",
	} {
		t.Setenv(name, "")
	}
	t.Setenv("ANTHROPIC_API_KEY", canary)
	t.Setenv("ANTHROPIC_AUTH_TOKEN", canary)
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", t.TempDir()+"/none")
	t.Setenv("AWS_CONFIG_FILE", t.TempDir()+"/none")
	t.Setenv("HOME", t.TempDir())
}

func awsConfig() *aws.Config {
	return &aws.Config{Region: region, Credentials: credentials.NewStaticCredentialsProvider(testcloud.AccessKey, testcloud.SecretKey, "")}
}

func googleTokens() oauth2.TokenSource {
	return oauth2.StaticTokenSource(&oauth2.Token{AccessToken: testcloud.Token})
}

// door is a provider, and a way to make the cloud behind it.
type door struct {
	name     string
	settings provider.Settings
	cloud    func(model http.Handler) http.Handler
	// auth is the credential that must arrive.
	auth func(h http.Header) bool
	// inBody says that the version stands in the body.
	inBody bool
}

func bearer(key string) func(http.Header) bool {
	return func(h http.Header) bool { return h.Get("Authorization") == "Bearer "+key && h.Get("X-Api-Key") == "" }
}

func straight(model http.Handler) http.Handler { return model }

var doors = []door{
	{"bedrock", provider.Settings{Provider: provider.Bedrock, AWSConfig: awsConfig(), URL: "http://cloud.test"},
		func(m http.Handler) http.Handler { return testcloud.Bedrock(region, m) },
		func(h http.Header) bool { return strings.HasPrefix(h.Get("Authorization"), "AWS4-HMAC-SHA256 ") }, true},
	{"bedrock by key", provider.Settings{Provider: provider.Bedrock, Region: region, Key: testcloud.Key, URL: "http://cloud.test"},
		func(m http.Handler) http.Handler { return testcloud.Bedrock(region, m) }, bearer(testcloud.Key), true},
	{"bedrock mantle", provider.Settings{Provider: provider.BedrockMantle, Region: region, Key: testcloud.Key, URL: "http://cloud.test/anthropic"}, straight, bearer(testcloud.Key), false},
	{"aws", provider.Settings{Provider: provider.AWS, Region: region, Workspace: "w", Key: testcloud.Key, URL: "http://cloud.test"}, straight, bearer(testcloud.Key), false},
	{"vertex", provider.Settings{Provider: provider.Vertex, Region: region, Project: project, GoogleTokens: googleTokens(), URL: "http://cloud.test"},
		func(m http.Handler) http.Handler { return testcloud.Vertex(region, project, m) }, bearer(testcloud.Token), true},
	{"google cloud", provider.Settings{Provider: provider.GoogleCloud, Project: project, Workspace: "w", GoogleTokens: googleTokens(), URL: "http://cloud.test/p"}, straight, bearer(testcloud.Token), false},
	{"foundry", provider.Settings{Provider: provider.Foundry, Key: testcloud.Key, URL: "http://cloud.test/anthropic"},
		func(m http.Handler) http.Handler { return testcloud.Foundry(m) },
		func(h http.Header) bool { return h.Get("X-Api-Key") == testcloud.Key && h.Get("Authorization") == "" }, false},
	{"foundry by token", provider.Settings{Provider: provider.Foundry, URL: "http://cloud.test/anthropic", Tokens: func(context.Context) (string, error) { return testcloud.Token, nil }},
		func(m http.Handler) http.Handler { return testcloud.Foundry(m) }, bearer(testcloud.Token), false},
}

// behind is a provider with its cloud on a network in memory.
type behind struct {
	*provider.Transport
	model *standin.Server
	seen  []http.Header
	paths []string
	net   *testnet.Network
}

// open puts a cloud on a network of its own. It is called in a bubble.
func (d door) open(t *testing.T, plan standin.Plan) *behind {
	t.Helper()
	b := &behind{model: standin.New(plan), net: testnet.New()}
	cloud := d.cloud(b.model)
	b.net.Serve(t, "cloud.test:80", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b.seen, b.paths = append(b.seen, r.Header.Clone()), append(b.paths, r.Host+r.URL.EscapedPath())
		cloud.ServeHTTP(w, r)
	}))
	s := d.settings
	s.Base = b.net.Client().Transport
	s.Models = map[string]string{"claude-sonnet-5-5": "cloud-sonnet-5-5"}
	var err error
	if b.Transport, err = provider.New(s); err != nil {
		t.Fatal(err)
	}
	return b
}

const (
	question       = `{"model":"claude-sonnet-5-5","max_tokens":64,"messages":[{"role":"user","content":"Where is SHP-1?"}]}`
	streamQuestion = `{"model":"claude-sonnet-5-5","max_tokens":64,"stream":true,"messages":[{"role":"user","content":"Where is SHP-1?"}]}`
)

func asking(stream bool) string {
	if stream {
		return streamQuestion
	}
	return question
}

func newRequest(ctx context.Context, path, body string) *http.Request {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://api.anthropic.com"+path, strings.NewReader(body))
	if err != nil {
		panic(err)
	}
	for name, value := range map[string]string{
		"Content-Type": "application/json", "X-Api-Key": canary, "Authorization": "Bearer " + canary, "Cookie": "session=" + canary, "Anthropic-Version": "2023-06-01",
		"Anthropic-Workspace-Id": canary, "X-Trace": "kept", "Api-Key": canary, "Proxy-Authorization": "Basic " + canary,
		"X-Goog-Api-Key": canary, "X-Amz-Security-Token": canary, "X-Amz-Date": canary, "X-Amz-Content-Sha256": canary, "Accept-Encoding": "gzip", "Holdfast-Anything": "ours", "Connection": "keep-alive",
	} {
		req.Header.Set(name, value)
	}
	return req
}

// post asks by a transport and reads all of the answer.
func post(t *testing.T, rt http.RoundTripper, path, body string) (*http.Response, string, error) {
	t.Helper()
	resp, err := rt.RoundTrip(newRequest(t.Context(), path, body))
	if err != nil {
		return nil, "", err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return resp, string(text), err
}
