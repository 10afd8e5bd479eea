package turn_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/anthropics/anthropic-sdk-go/v2"
	"github.com/anthropics/anthropic-sdk-go/v2/option"

	"holdfast"
	"holdfast/internal/testnet"
	"holdfast/standin"
	"holdfast/transport"
	"holdfast/turn"
)

// api serves a plan of the stand-in on a network in memory, and returns a client for it.
func api(plan standin.Plan, opts ...option.RequestOption) (client anthropic.Client, stop func()) {
	n := testnet.New()
	s := n.Start("api.test:80", standin.New(plan))
	return anthropic.NewClient(append([]option.RequestOption{
		option.WithAPIKey("any"), option.WithBaseURL(s.URL), option.WithHTTPClient(n.Client()), option.WithMaxRetries(0),
	}, opts...)...), s.Close
}

// The client's calls are kept working by the middleware, which serves streams too; the turn is carried over what comes.
func ExampleRun() {
	policy := holdfast.Policy{Deadline: 30 * time.Second, Backoff: holdfast.Backoff{Base: time.Millisecond}}
	client, stop := api(standin.Plan{Reply: "The parcel is in Rotterdam.", Steps: []standin.Step{
		{Kind: standin.Truncation}, {Kind: standin.HTTP, Status: 529}, {Kind: standin.Refusal, Category: "cyber"},
	}}, option.WithMiddleware(transport.Middleware(&policy)))
	defer stop()

	result, err := turn.Run(context.Background(), &client.Messages, &turn.Policy{FallbackModel: "claude-opus-5-5"}, anthropic.MessageNewParams{
		Model: "claude-sonnet-5-5", MaxTokens: 60,
		Messages: []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock("Where is the parcel?"))},
	})
	fmt.Println(err, result.Outcome, result.Model)
	fmt.Println(result.Text)
	for _, s := range result.Steps {
		fmt.Println(s.Model, s.MaxTokens, s.Why)
	}
	// Output:
	// <nil> completed claude-opus-5-5
	// The parcel is in Rotterdam.
	// claude-sonnet-5-5 60 max_tokens at 60, budget raised to 240
	// claude-sonnet-5-5 240 refusal, category cyber, fallback model
	// claude-opus-5-5 240 end_turn
}

// reliable is a client whose calls are kept working by holdfast.Do: each is a stream that is taken whole, so one that is
// cut is asked for again. What is shown while it comes, with OnEvent, goes past it: there the middleware is the way.
type reliable struct {
	turn.Client
	policy *holdfast.Policy
}

func (r reliable) New(ctx context.Context, params anthropic.MessageNewParams, opts ...option.RequestOption) (*anthropic.Message, error) {
	message, _, err := holdfast.Do(ctx, r.policy, func(ctx context.Context) (*anthropic.Message, error) {
		return turn.Collect(ctx, r.Client, params, opts...)
	})
	return message, err
}

func ExampleClient() {
	client, stop := api(standin.Plan{Reply: "All of it.", Steps: []standin.Step{{Kind: standin.Cut, After: 1}}})
	defer stop()
	kept := reliable{&client.Messages, &holdfast.Policy{Backoff: holdfast.Backoff{Base: time.Millisecond}}}

	result, err := turn.Run(context.Background(), kept, nil, anthropic.MessageNewParams{
		Model: "claude-sonnet-5-5", MaxTokens: 60,
		Messages: []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock("Say it."))},
	})
	fmt.Println(err, result.Text)
	// Output: <nil> All of it.
}

// A refusal is an error with a hint, and what is known of it is in the result.
func ExampleError() {
	client, stop := api(standin.Plan{Steps: []standin.Step{{Kind: standin.Refusal, Category: "bio", Times: -1}}})
	defer stop()

	result, err := turn.Run(context.Background(), &client.Messages, &turn.Policy{FallbackModel: "claude-opus-5-5"}, anthropic.MessageNewParams{
		Model: "claude-sonnet-5-5", MaxTokens: 60,
		Messages: []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock("Tell me."))},
	})
	var ended *turn.Error
	if errors.As(err, &ended) {
		fmt.Println(errors.Is(err, turn.ErrRefused), ended.Outcome, result.Category)
		fmt.Println(ended.Hint())
	}
	// Output:
	// true human_review bio
	// let a human look at it; the same models refuse the same request again
}

// A UI shows each step as it comes, and takes back what is void.
func ExampleEvent() {
	client, stop := api(standin.Plan{Reply: "one two three four", Steps: []standin.Step{{Kind: standin.Truncation}}})
	defer stop()

	_, err := turn.Run(context.Background(), &client.Messages, &turn.Policy{OnEvent: func(e turn.Event) {
		switch {
		case e.Discarded:
			fmt.Printf("(%d is void) ", e.Step)
		case e.Text != "":
			fmt.Printf("%d:%q ", e.Step, e.Text)
		}
	}}, anthropic.MessageNewParams{
		Model: "claude-sonnet-5-5", MaxTokens: 60,
		Messages: []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock("Count."))},
	})
	fmt.Println(err)
	// Output:
	// 1:"one " 1:"two " (1 is void) 2:"one " 2:"two " 2:"three " 2:"four" <nil>
}

// A simulation drives the machine that Run drives.
func ExampleCourse() {
	policy := turn.Policy{Cap: 1024}
	course := turn.NewCourse(&policy, "model", 60)
	ask := func(_ string, maxTokens int64) turn.Response {
		if maxTokens < 500 {
			return turn.Response{StopReason: "max_tokens"}
		}
		return turn.Response{StopReason: "end_turn"}
	}
	next := course.Settle(ask("model", 60))
	for next.Action != turn.End {
		fmt.Println(next.Why)
		next = course.Settle(ask(next.Model, next.MaxTokens))
	}
	fmt.Println(next.Outcome, course.Requests(), "of at most", policy.MaxRequests())
	// Output:
	// max_tokens at 60, budget raised to 240
	// max_tokens at 240, budget raised to 960
	// completed 3 of at most 17
}

// The conversation goes on with what the turn left behind and the results of its tools.
func ExampleResult_History() {
	client, stop := api(standin.Plan{Reply: "It is written."})
	defer stop()
	params := withTool(500)
	for {
		result, err := turn.Run(context.Background(), &client.Messages, nil, params)
		if err != nil {
			fmt.Println(err)
			return
		}
		params.Messages = append(params.Messages, result.History()...)
		if result.Outcome != turn.ToolUse {
			fmt.Println(result.Text)
			return
		}
		var results []anthropic.ContentBlockParamUnion
		for _, use := range result.ToolUses {
			fmt.Println("run", use.Name)
			results = append(results, anthropic.NewToolResultBlock(use.ID, "done", false))
		}
		params.Messages = append(params.Messages, anthropic.NewUserMessage(results...))
	}
	// Output:
	// run write
	// It is written.
}
