package standin_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/anthropics/anthropic-sdk-go/v2"
	"github.com/anthropics/anthropic-sdk-go/v2/option"

	"holdfast/standin"
)

func TestShipmentSurvivesAnOverload(t *testing.T) {
	plan, err := standin.ParsePlan([]byte(`jobs: {SHP-1: [{kind: http, status: 529}, {kind: http, status: 429, retry_after: 0.1}]}`))
	if err != nil {
		t.Fatal(err) // every mistake, with its line
	}
	server, url := standin.Serve(t, plan)
	client := anthropic.NewClient(option.WithBaseURL(url), option.WithAPIKey("any"))

	_, err = client.Messages.New(t.Context(), anthropic.MessageNewParams{
		Model: "claude-sonnet-5-5", MaxTokens: 100,
		Messages: []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock("Where is SHP-1?"))},
	})
	if err != nil {
		t.Fatal(err)
	}
	standin.Expect(t, server.Journal(),
		standin.Attempts("SHP-1", 3), standin.SameBody(), standin.WaitsHonoured(0), standin.PaidOnce())
}

// A stand-in that answers the first request with an overload, and every one after it.
func Example() {
	server := standin.New(standin.Failing(1, 529, ""))
	url, stop, err := server.Start("")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer stop()

	for range 2 {
		req, _ := http.NewRequestWithContext(context.Background(), http.MethodPost, url+"/v1/messages", strings.NewReader(
			`{"model": "claude-sonnet-5-5", "max_tokens": 100, "messages": [{"role": "user", "content": "Hello"}]}`))
		req.Header = http.Header{"X-Api-Key": {"any"}, "Anthropic-Version": {"2023-06-01"}, "Content-Type": {"application/json"}}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			fmt.Println(err)
			return
		}
		_, _ = io.Copy(io.Discard, res.Body)
		_ = res.Body.Close()
	}
	for _, e := range server.Journal() {
		fmt.Println(e.Number, e.Status, e.Fault)
	}
	// Output:
	// 1 529 http
	// 2 200 ok
}

// Every mistake of a plan is reported at once, with its line and what was meant.
func ExampleParsePlan() {
	_, err := standin.ParsePlan([]byte(`
steps:
  - {kind: htpp, status: 529}
  - {kind: http, stauts: 529}
`))
	fmt.Println(err)
	// Output:
	// standin: plan line 3: steps.0.kind: unknown kind "htpp"; did you mean "http"?
	// standin: plan line 4: steps.1.stauts: unknown key; did you mean "status"?
}
