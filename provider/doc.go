// Package provider asks Claude elsewhere: on Amazon Bedrock, Google Vertex AI, Microsoft Foundry and the Claude platforms of AWS
// and Google. A [Transport] takes requests as the Claude API has them, and gives back answers as the Claude API has them;
// between the two is the Anthropic SDK's own client of the provider, which signs, finds tokens, and reads AWS's event streams.
//
//	bedrock, err := provider.New(provider.Settings{Provider: provider.Bedrock, Region: "us-east-1",
//		Models: map[string]string{"claude-sonnet-5-5": "your-bedrock-id"}})
//	client := anthropic.NewClient(option.WithAPIKey("unused"), option.WithMaxRetries(0),
//		option.WithHTTPClient(&http.Client{Transport: bedrock}))
//
// So a second provider stands in before a saved answer does: one holdfast.Target for each, and an operation that asks the one
// that holdfast.TargetOf names, as the example of [New] shows.
//
// Credentials are looked for when the first request needs them, for at most 10 seconds and at most a third of
// the time that the request has left, and never while a Transport is made. That they did not come in time is remembered for 30 seconds. When there are none,
// the request fails with an [*Error] that leaves the target for the next one.
//
// It never retries, never waits, never logs, never sends the caller's own key or cookie to a provider, never translates what
// a provider answers beyond what the SDK does, and never asks for a path that the provider does not serve.
package provider
