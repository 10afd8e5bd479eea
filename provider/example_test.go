package provider_test

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/anthropics/anthropic-sdk-go/v2"
	"github.com/anthropics/anthropic-sdk-go/v2/bedrock"
	"github.com/anthropics/anthropic-sdk-go/v2/option"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"

	"holdfast"
	"holdfast/internal/testcloud"
	"holdfast/internal/testnet"
	"holdfast/provider"
	"holdfast/standin"
)

// outage is a network on which the Claude API is overloaded and Bedrock is well.
func outage() (*http.Client, func()) {
	net := testnet.New()
	primary := net.Start("api.test:80", standin.New(standin.Failing(-1, 529, "")))
	cloud := net.Start("bedrock.test:80", testcloud.Bedrock("us-east-1", standin.New(standin.Plan{Reply: "It is at sea."})))
	return net.Client(), func() { primary.Close(); cloud.Close() }
}

// A second provider before anything else: two targets, each with a client of the SDK.
func ExampleNew() {
	network, stop := outage() // yours is http.DefaultClient
	defer stop()
	elsewhere, err := provider.New(provider.Settings{
		Provider: provider.Bedrock, Region: "us-east-1", Key: testcloud.Key, // no key: AWS's own credentials
		Models: map[string]string{"claude-sonnet-5-5": "your-bedrock-id"},
		URL:    "http://bedrock.test", Base: network.Transport, // left out, AWS itself
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	clients := map[string]anthropic.Client{
		"anthropic": anthropic.NewClient(option.WithMaxRetries(0), option.WithAPIKey("sk-ant-any"), option.WithBaseURL("http://api.test"), option.WithHTTPClient(network)),
		"bedrock":   anthropic.NewClient(option.WithMaxRetries(0), option.WithAPIKey("unused"), option.WithHTTPClient(&http.Client{Transport: elsewhere})),
	}
	policy := holdfast.Policy{
		Attempts: 2, Backoff: holdfast.Backoff{Base: time.Millisecond},
		Targets: []holdfast.Target{{Name: "anthropic"}, {Name: "bedrock"}},
	}
	msg, trace, err := holdfast.Do(context.Background(), &policy, func(ctx context.Context) (*anthropic.Message, error) {
		target, _ := holdfast.TargetOf(ctx)
		client := clients[target.Name]
		return client.Messages.New(ctx, anthropic.MessageNewParams{
			Model: "claude-sonnet-5-5", MaxTokens: 1024,
			Messages: []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock("Where is SHP-1?"))},
		})
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(msg.Content[0].Text)
	fmt.Println(trace.Source, trace.Target(), trace.Sent(), "attempts")
	// Output:
	// It is at sea.
	// fallback bedrock 3 attempts
}

// Without this package: the SDK's own client of a provider is a target like any other.
func ExampleNew_sdk() {
	network, stop := outage()
	defer stop()
	config := aws.Config{Region: "us-east-1", Credentials: credentials.NewStaticCredentialsProvider(testcloud.AccessKey, testcloud.SecretKey, "")}
	clients := map[string]anthropic.Client{
		"anthropic": anthropic.NewClient(option.WithMaxRetries(0), option.WithAPIKey("sk-ant-any"), option.WithBaseURL("http://api.test"), option.WithHTTPClient(network)),
		"bedrock":   anthropic.NewClient(option.WithMaxRetries(0), bedrock.WithConfig(config), option.WithBaseURL("http://bedrock.test"), option.WithHTTPClient(network)),
	}
	models := map[string]anthropic.Model{"anthropic": "claude-sonnet-5-5", "bedrock": "your-bedrock-id"}
	policy := holdfast.Policy{Attempts: -1, Targets: []holdfast.Target{{Name: "anthropic"}, {Name: "bedrock"}}}
	msg, trace, err := holdfast.Do(context.Background(), &policy, func(ctx context.Context) (*anthropic.Message, error) {
		target, _ := holdfast.TargetOf(ctx)
		client := clients[target.Name]
		return client.Messages.New(ctx, anthropic.MessageNewParams{
			Model: models[target.Name], MaxTokens: 1024,
			Messages: []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock("Where is SHP-1?"))},
		})
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(msg.Content[0].Text)
	fmt.Println(trace.Source, trace.Target())
	// Output:
	// It is at sea.
	// fallback bedrock
}
