package e2e_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anthropics/anthropic-sdk-go/v2"
	"github.com/anthropics/anthropic-sdk-go/v2/bedrock"
	"github.com/anthropics/anthropic-sdk-go/v2/option"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"golang.org/x/oauth2"

	"holdfast"
	"holdfast/config"
	"holdfast/gateway"
	"holdfast/internal/testcloud"
	"holdfast/internal/testnet"
	"holdfast/provider"
	"holdfast/saved"
	"holdfast/standin"
	"holdfast/transport"
)

// A second provider stands between the first one and the saved answer, at every door alike.

const (
	callersKey = "sk-ant-CANARY-of-the-caller"
	firstsKey  = "sk-ant-CANARY-of-the-first"
)

// cloud is a provider as a target, and what stands for it.
type cloud struct {
	name     string
	settings provider.Settings
	serve    func(model http.Handler) *testcloud.Cloud
}

var clouds = []cloud{
	{"bedrock", provider.Settings{Provider: provider.Bedrock, AWSConfig: &aws.Config{Region: "us-east-1", Credentials: credentials.NewStaticCredentialsProvider(testcloud.AccessKey, testcloud.SecretKey, "")}},
		func(m http.Handler) *testcloud.Cloud { return testcloud.Bedrock("us-east-1", m) }},
	{"bedrock by key", provider.Settings{Provider: provider.Bedrock, Region: "us-east-1", Key: testcloud.Key},
		func(m http.Handler) *testcloud.Cloud { return testcloud.Bedrock("us-east-1", m) }},
	{"vertex", provider.Settings{Provider: provider.Vertex, Region: "global", Project: "p", GoogleTokens: oauth2.StaticTokenSource(&oauth2.Token{AccessToken: testcloud.Token})},
		func(m http.Handler) *testcloud.Cloud { return testcloud.Vertex("global", "p", m) }},
	{"foundry", provider.Settings{Provider: provider.Foundry, Key: testcloud.Key}, testcloud.Foundry},
}

var cloudModels = map[string]string{"claude-sonnet-5-5": "cloud-sonnet"}

// pair is a first API and a cloud behind it, on a network in memory.
type pair struct {
	net           *testnet.Network
	first, second *standin.Server
	cloud         *testcloud.Cloud
	base          *provider.Transport
}

func (c cloud) pair(t *testing.T, first, second standin.Plan) *pair {
	t.Helper()
	p := &pair{net: testnet.New(), first: standin.New(first), second: standin.New(second)}
	p.cloud = c.serve(p.second)
	p.net.Serve(t, "first.test:80", p.first)
	p.net.Serve(t, "second.test:80", p.cloud)
	s := c.settings
	s.URL, s.Base = "http://second.test", p.net.Client().Transport
	if s.Provider == provider.Foundry {
		s.URL += "/anthropic"
	}
	var err error
	if p.base, err = provider.New(s); err != nil {
		t.Fatal(err)
	}
	return p
}

// said is what a caller sees of an answer.
type said struct {
	status               int
	text, source, target string
}

func ask(t *testing.T, rt http.RoundTripper, url, body string, headers ...string) said {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/v1/messages", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{"Content-Type": "application/json", "X-Api-Key": callersKey, "Anthropic-Version": "2023-06-01"} {
		req.Header.Set(name, value)
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		req.Header.Set(name, value)
	}
	resp, err := rt.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Error(err)
	}
	return said{resp.StatusCode, string(text), resp.Header.Get("Holdfast-Source"), resp.Header.Get("Holdfast-Target")}
}

// gatewayOf opens a gateway with the pair in one chain, and the saved answers of a store.
func (p *pair) gatewayOf(t *testing.T, more func(*gateway.Settings)) string {
	t.Helper()
	s := gateway.Settings{
		Targets: []gateway.Target{
			{Name: "first", URL: "http://first.test", Dialect: "anthropic", Keys: []gateway.Key{{Secret: firstsKey}}},
			{Name: "second", Dialect: "anthropic", Base: p.base, Models: cloudModels},
		},
		Routes: []gateway.Route{{Chain: []gateway.Entry{{Target: "first"}, {Target: "second"}, {Saved: true}}}},
		Policy: holdfast.Policy{Attempts: 2, Dice: func() float64 { return 0 }}, Base: p.net.Client().Transport,
	}
	if more != nil {
		more(&s)
	}
	g, err := gateway.New(s)
	if err != nil {
		t.Fatal(err)
	}
	return p.net.Serve(t, "gateway.test:80", g).URL
}

const elsewhereQuestion = `{"model":"claude-sonnet-5-5","max_tokens":64,"messages":[{"role":"user","content":"Where is SHP-1?"}]}`

func elsewhereBody(stream bool) string {
	if stream {
		return strings.Replace(elsewhereQuestion, "{", `{"stream":true,`, 1)
	}
	return elsewhereQuestion
}

// eachCloud runs a test with every cloud, whole and streamed.
func eachCloud(t *testing.T, test func(t *testing.T, c cloud, stream bool)) {
	for _, name := range []string{"AWS_BEARER_TOKEN_BEDROCK", "ANTHROPIC_FOUNDRY_RESOURCE", "ANTHROPIC_FOUNDRY_BASE_URL", "ANTHROPIC_FOUNDRY_API_KEY"} {
		t.Setenv(name, "")
	}
	t.Setenv("ANTHROPIC_API_KEY", firstsKey)
	for _, c := range clouds {
		for _, stream := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, stream %v", c.name, stream), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { test(t, c, stream) })
			})
		}
	}
}

// noStrangersKey fails if a key of another provider came to the cloud, or the cloud's own to the first API.
func (p *pair) noStrangersKey(t *testing.T) {
	t.Helper()
	for _, r := range p.cloud.Requests() {
		for name, values := range r.Header {
			if strings.Contains(strings.Join(values, " "), "CANARY") {
				t.Errorf("a key of another provider came to the cloud in %s", name)
			}
		}
		if strings.Contains(string(r.Body), "CANARY") || strings.Contains(fmt.Sprint(r.Header), testcloud.SecretKey) {
			t.Error("a secret came to the cloud")
		}
	}
}

// B99, B102: a first API that throttles without a word about when, or is overloaded, is left for the cloud; so is one that was
// reset. The caller sees who answered.
func TestB99_B102_ASecondProviderAnswersThroughTheGateway(t *testing.T) {
	eachCloud(t, func(t *testing.T, c cloud, stream bool) {
		for _, step := range []standin.Step{{Kind: standin.HTTP, Status: 429, Times: -1}, {Kind: standin.HTTP, Status: 529, Times: -1}, {Kind: standin.Reset, Times: -1}} {
			p := c.pair(t, standin.Plan{Steps: []standin.Step{step}}, standin.Plan{Reply: "from elsewhere"})
			got := ask(t, p.net.Client().Transport, p.gatewayOf(t, nil), elsewhereBody(stream))
			if got.status != http.StatusOK || got.source != "fallback" || got.target != "second" || !strings.Contains(got.text, "elsewhere") {
				t.Fatalf("%+v", got)
			}
			standin.Expect(t, p.first.Journal(), standin.Requests(2))
			standin.Expect(t, p.second.Journal(), standin.Requests(1))
			if r := p.cloud.Requests()[0]; r.Model != "cloud-sonnet" || r.Version == "" || r.Stream != stream {
				t.Errorf("the cloud was asked for %s by version %q, stream %v", r.Model, r.Version, r.Stream)
			}
			p.noStrangersKey(t)
		}
	})
}

// Both are down: the saved answer is last, with its label, and a good answer of the cloud is one to keep.
func TestSavedAnswersStandBehindASecondProvider(t *testing.T) {
	eachCloud(t, func(t *testing.T, c cloud, stream bool) {
		store, err := saved.Open(filepath.Join(t.TempDir(), "answers.db"), saved.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer store.Close()
		p := c.pair(t, standin.Failing(-1, 529, ""), standin.Plan{Reply: "from elsewhere", Steps: []standin.Step{{}, {Kind: standin.HTTP, Status: 503, Times: -1}}})
		url := p.gatewayOf(t, func(s *gateway.Settings) { s.Saved = store })
		for _, want := range []string{"fallback", "saved"} {
			got := ask(t, p.net.Client().Transport, url, elsewhereBody(stream))
			if got.status != http.StatusOK || got.source != want || !strings.Contains(got.text, "elsewhere") {
				t.Errorf("%+v, want it %s", got, want)
			}
			synctest.Wait()
		}
		standin.Expect(t, p.second.Journal(), standin.Requests(3))
		p.noStrangersKey(t)
	})
}

// B101: who wants no fallback gets none, wherever the first API fails.
func TestB101_NoFallbackMeansNoOtherProvider(t *testing.T) {
	eachCloud(t, func(t *testing.T, c cloud, stream bool) {
		p := c.pair(t, standin.Failing(-1, 529, ""), standin.Plan{})
		if got := ask(t, p.net.Client().Transport, p.gatewayOf(t, nil), elsewhereBody(stream), "Holdfast-Fallback: off"); got.status != 529 || len(p.cloud.Requests()) > 0 {
			t.Errorf("%+v, %d requests at the cloud", got, len(p.cloud.Requests()))
		}
	})
}

// B104: signed thinking of the first API stays with it.
func TestB104_SealedPartsDoNotGoElsewhere(t *testing.T) {
	eachCloud(t, func(t *testing.T, c cloud, stream bool) {
		body := strings.Replace(elsewhereBody(stream), `"messages":[`, `"messages":[{"role":"user","content":"q"},{"role":"assistant","content":[{"type":"thinking","thinking":"t","signature":"s"},{"type":"text","text":"a"}]},`, 1)
		p := c.pair(t, standin.Failing(-1, 429, ""), standin.Plan{})
		got := ask(t, p.net.Client().Transport, p.gatewayOf(t, nil), body)
		if got.status != http.StatusOK || got.source != "fallback" || strings.Contains(string(p.cloud.Requests()[0].Body), "signature") {
			t.Errorf("%+v\n%s", got, p.cloud.Requests()[0].Body)
		}
		standin.Expect(t, p.second.Journal(), standin.Requests(1))
	})
}

// B107: a long wait of the first API does not hold the cloud up.
func TestB107_ALongWaitGoesElsewhereAtOnce(t *testing.T) {
	eachCloud(t, func(t *testing.T, c cloud, stream bool) {
		p := c.pair(t, standin.Failing(-1, 429, "60"), standin.Plan{})
		start := time.Now()
		got := ask(t, p.net.Client().Transport, p.gatewayOf(t, func(s *gateway.Settings) { s.Policy.FallbackFirst = true }), elsewhereBody(stream))
		if took := time.Since(start); got.source != "fallback" || took > time.Second {
			t.Errorf("%+v after %v", got, took)
		}
	})
}

// The same through Do with the SDK's clients, and through a transport.
func TestASecondProviderAnswersInDoAndTransport(t *testing.T) {
	eachCloud(t, func(t *testing.T, c cloud, stream bool) {
		p := c.pair(t, standin.Failing(-1, 529, ""), standin.Plan{Reply: "from elsewhere"})
		first := anthropic.NewClient(option.WithMaxRetries(0), option.WithBaseURL("http://first.test"), option.WithHTTPClient(p.net.Client()))
		second := anthropic.NewClient(option.WithMaxRetries(0), option.WithAPIKey(callersKey), option.WithHTTPClient(&http.Client{Transport: p.base}))
		policy := holdfast.Policy{Attempts: 2, Targets: []holdfast.Target{{Name: "first", Model: "claude-sonnet-5-5"}, {Name: "second", Model: "cloud-sonnet"}}}
		text, trace, err := holdfast.Do(t.Context(), &policy, func(ctx context.Context) (string, error) {
			client := first
			target, _ := holdfast.TargetOf(ctx)
			if target.Name == "second" {
				client = second
			}
			return sdkAnswer(ctx, client, target.Model, stream)
		})
		if err != nil || text != "from elsewhere" || trace.Source != holdfast.Fallback || trace.Target() != "second" || trace.Sent() != 3 {
			t.Errorf("%q, %v\n%s", text, err, trace.Summary())
		}
		p.noStrangersKey(t)

		through := transport.New(&policy, roundTrip(func(req *http.Request) (*http.Response, error) {
			if target, _ := holdfast.TargetOf(req.Context()); target.Name == "second" {
				return p.base.RoundTrip(req)
			}
			return p.net.Client().Transport.RoundTrip(req)
		}))
		got := ask(t, through, "http://first.test", strings.Replace(elsewhereBody(stream), "claude-sonnet-5-5", "cloud-sonnet", 1))
		if got.status != http.StatusOK || got.source != "fallback" || got.target != "second" {
			t.Errorf("%+v", got)
		}
		p.noStrangersKey(t)
	})
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// sdkAnswer asks with the SDK.
func sdkAnswer(ctx context.Context, client anthropic.Client, model string, stream bool) (string, error) {
	p := anthropic.MessageNewParams{
		Model: anthropic.Model(model), MaxTokens: 64,
		Messages: []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock("Where is SHP-1?"))},
	}
	if !stream {
		msg, err := client.Messages.New(ctx, p)
		if err != nil {
			return "", err
		}
		return msg.Content[0].Text, nil
	}
	events := client.Messages.NewStreaming(ctx, p)
	defer events.Close()
	var text strings.Builder
	for events.Next() {
		text.WriteString(events.Current().Delta.Text)
	}
	return text.String(), events.Err()
}

// The SDK's own client of Bedrock, without package provider, is a target like any other, and its errors are judged.
func TestTheSDKsOwnBedrockClientIsJudged(t *testing.T) {
	t.Setenv("AWS_BEARER_TOKEN_BEDROCK", "")
	for _, c := range []struct {
		status     int
		name, body string
		attempts   int
	}{
		{http.StatusTooManyRequests, "ThrottlingException", `{"message":"Too many tokens, please wait"}`, 2},
		{http.StatusFailedDependency, "ModelErrorException", `{"originalStatusCode":500,"message":"the model failed"}`, 2},
		{http.StatusFailedDependency, "ModelErrorException", `{"originalStatusCode":400,"message":"the model failed"}`, 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			net := testnet.New()
			model := standin.New(standin.Plan{Steps: []standin.Step{{Kind: standin.HTTP, Status: c.status, Body: c.body, ContentType: "application/json", Header: standin.Header{"X-Amzn-Errortype": {c.name}}}}})
			net.Serve(t, "second.test:80", testcloud.Bedrock("us-east-1", model))
			client := anthropic.NewClient(option.WithMaxRetries(0), bedrock.WithConfig(*clouds[0].settings.AWSConfig), option.WithBaseURL("http://second.test"), option.WithHTTPClient(net.Client()))
			text, trace, err := holdfast.Do(t.Context(), &holdfast.Policy{}, func(ctx context.Context) (string, error) {
				return sdkAnswer(ctx, client, "cloud-sonnet", false)
			})
			if answered := err == nil && text != ""; answered != (c.attempts == 2) || trace.Sent() != c.attempts {
				t.Errorf("%s: %v\n%s", c.body, err, trace.Summary())
			}
		})
	}
}

// As a configuration has it.
func TestAConfigurationNamesAProvider(t *testing.T) {
	for _, name := range []string{"AWS_BEARER_TOKEN_BEDROCK", "ANTHROPIC_FOUNDRY_RESOURCE", "ANTHROPIC_FOUNDRY_BASE_URL"} {
		t.Setenv(name, "")
	}
	f, err := config.Parse([]byte(`targets:
- {name: first, url: "http://first.test", dialect: anthropic, key: ` + firstsKey + `}
- {name: second, provider: bedrock, region: us-east-1, url: "http://second.test", key: ` + testcloud.Key + `, models: {claude-sonnet-5-5: cloud-sonnet}}
routes: [{chain: [{target: first}, {target: second}, saved]}]
`))
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		p := clouds[1].pair(t, standin.Failing(-1, 529, ""), standin.Plan{})
		got := ask(t, p.net.Client().Transport, p.gatewayOf(t, func(s *gateway.Settings) {
			made, err := f.Gateway()
			if err != nil {
				t.Fatal(err)
			}
			if err := f.Elsewhere(&made, p.net.Client().Transport); err != nil {
				t.Fatal(err)
			}
			s.Targets, s.Routes = made.Targets, made.Routes
		}), strings.Replace(elsewhereQuestion, "{", `{"fallbacks":"default",`, 1), "Anthropic-Beta: server-side-fallback-2026-07-01, other-beta")
		r := p.cloud.Requests()
		if got.status != http.StatusOK || got.source != "fallback" || got.target != "second" || len(r) != 1 || r[0].Model != "cloud-sonnet" {
			t.Fatalf("%+v", got)
		}
		if body := string(r[0].Body); strings.Contains(body, "fallback") || !strings.Contains(body, `"anthropic_beta":["other-beta"]`) {
			t.Errorf("what Bedrock lacks came to it: %s", body)
		}
		p.noStrangersKey(t)
	})
}
