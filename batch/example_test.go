package batch_test

import (
	"context"
	"fmt"

	"github.com/anthropics/anthropic-sdk-go/v2"
	"github.com/anthropics/anthropic-sdk-go/v2/option"

	"holdfast/batch"
	"holdfast/internal/testnet"
	"holdfast/standin"
)

// upstream is the SDK's client of an API that plays the plan.
func upstream(plan standin.Plan) (client anthropic.Client, stop func()) {
	server, net := standin.New(plan), testnet.New()
	at := net.Start("api.test:80", server)
	client = anthropic.NewClient(option.WithBaseURL(at.URL), option.WithHTTPClient(net.Client()), option.WithAPIKey("any"))
	return client, func() { server.Close(); at.Close() }
}

func Example() {
	client, stop := upstream(standin.Plan{Batches: standin.Batches{Takes: 1}, Rules: []standin.Rule{
		{Match: standin.Match{Path: "/v1/messages/batches/items", CustomID: "SHP-2"}, Then: standin.Step{Kind: standin.HTTP, Status: 529}},
	}})
	defer stop()
	ctx := context.Background()
	batches := batch.Client{API: &client.Messages.Batches}
	requests := []batch.Request{request("SHP-1"), request("SHP-2"), request("SHP-3")}

	made, _, err := batches.Create(ctx, requests)
	if err != nil {
		fmt.Println(err)
		return
	}
	ended, err := batches.Wait(ctx, made.ID)
	if err != nil {
		fmt.Println(err) // it says the id to go on with
		return
	}
	var report batch.Report
	for item, err := range batches.Results(ctx, ended, requests) {
		if err != nil {
			fmt.Println(err)
			return
		}
		report.Add(item)
	}
	fmt.Println(&report)
	for _, e := range report.Again {
		fmt.Println(e.CustomID, e.Outcome, e.Reason)
	}
	// Output:
	// 2 succeeded, 1 to run again, 0 failed, 0 flagged, 0 missing, 0 strange
	// SHP-2 retryable overloaded_error
}

func ExampleSplit() {
	runs, err := batch.Split([]batch.Request{request("SHP-1"), request("SHP-2"), request("SHP-1")})
	fmt.Println(len(runs), err)
	// Output: 0 batch: not sent: requests[2].custom_id is that of requests[0] too
}

func ExampleClient_All() {
	client, stop := upstream(standin.Plan{Rules: []standin.Rule{
		{Match: standin.Match{Path: "/v1/messages/batches"}, Steps: []standin.Step{{Times: 2}, {Kind: standin.HTTP, Status: 529}}},
	}})
	defer stop()
	ctx := context.Background()
	batches := batch.Client{API: &client.Messages.Batches}
	for _, id := range []string{"SHP-1", "SHP-2"} {
		if _, _, err := batches.Create(ctx, []batch.Request{request(id)}); err != nil {
			fmt.Println(err)
		}
	}
	for one, err := range batches.All(ctx) {
		fmt.Println(one.ID, one.RequestCounts.Processing, err)
	}
	// Output:
	// msgbatch_standin_000002 1 <nil>
	// msgbatch_standin_000001 1 <nil>
}
