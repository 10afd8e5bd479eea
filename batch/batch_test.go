package batch_test

import (
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anthropics/anthropic-sdk-go/v2"
	"github.com/anthropics/anthropic-sdk-go/v2/option"

	"holdfast"
	"holdfast/batch"
	"holdfast/internal/testnet"
	"holdfast/standin"
)

const (
	batchPath = "/v1/messages/batches"
	secret    = "PROMPT-CANARY"
)

// world is a stand-in and a client of it, in a bubble.
type world struct {
	*testing.T

	server *standin.Server
	net    *testnet.Network
	sdk    anthropic.Client
	client *batch.Client
}

// in runs the test on a stand-in that plays the plan.
func in(t *testing.T, plan standin.Plan, test func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{T: t, server: standin.New(plan), net: testnet.New()}
		at := w.net.Serve(t, "api.test:80", w.server)
		t.Cleanup(w.server.Close)
		w.sdk = anthropic.NewClient(option.WithBaseURL(at.URL), option.WithHTTPClient(w.net.Client()), option.WithAPIKey("KEY-CANARY"))
		w.client = w.another()
		test(w)
	})
}

// another is a client that knows nothing of the first, as after a restart.
func (w *world) another() *batch.Client {
	return &batch.Client{API: &w.sdk.Messages.Batches, Policy: &holdfast.Policy{AttemptTimeout: 20 * time.Second}}
}

// posts is how many requests to create a batch arrived, and made how many batches were made.
func (w *world) posts() int {
	return len(w.server.Journal().Where(func(e standin.Exchange) bool { return e.Method == http.MethodPost && e.Path == batchPath }))
}

func (w *world) made() (ids []string) {
	for _, e := range w.server.Journal() {
		if e.Effect != "" {
			ids = append(ids, e.Effect)
		}
	}
	return ids
}

// counts holds the requests and the batches against what they should be.
func (w *world) counts(posts, made int) {
	w.Helper()
	if w.posts() != posts || len(w.made()) != made {
		w.Errorf("%d requests to create made %v, want %d and %d", w.posts(), w.made(), posts, made)
	}
}

func (w *world) create(requests []batch.Request) *anthropic.MessageBatch {
	w.Helper()
	made, _, err := w.client.Create(w.Context(), requests)
	if err != nil {
		w.Fatal(err)
	}
	return made
}

// ended creates a batch and waits for its end.
func (w *world) ended(requests []batch.Request) *anthropic.MessageBatch {
	w.Helper()
	ended, err := w.client.Wait(w.Context(), w.create(requests).ID)
	if err != nil {
		w.Fatal(err)
	}
	return ended
}

// sleep lets time pass in the bubble.
func (w *world) sleep(d time.Duration) { time.Sleep(d) }

func request(id string) batch.Request {
	return batch.Request{CustomID: id, Params: anthropic.MessageBatchNewParamsRequestParams{
		Model: "claude-sonnet-5-5", MaxTokens: 100,
		Messages: []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock(secret + " of " + id))},
	}}
}

// requests are n of them, with ids that begin with the name.
func requests(name string, n int) []batch.Request {
	all := make([]batch.Request, n)
	for i := range all {
		all[i] = request(fmt.Sprintf("%s-%d", name, i))
	}
	return all
}

// onCreate plays steps to the requests on the path that creates and lists, in order of arrival.
func onCreate(steps ...standin.Step) standin.Plan {
	return standin.Plan{Rules: []standin.Rule{{Match: standin.Match{Path: batchPath}, Steps: steps}}}
}

// onPost plays steps to the requests that create.
func onPost(steps ...standin.Step) standin.Plan {
	return standin.Plan{Rules: []standin.Rule{{Match: standin.Match{Path: batchPath, Header: map[string]string{"content-type": "*"}}, Steps: steps}}}
}

// slow makes batches take their time, so that looks at the list do not end them.
func slow(p standin.Plan) standin.Plan {
	p.Batches.Takes = time.Hour
	return p
}
