package e2e_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/anthropics/anthropic-sdk-go/v2/option"

	"holdfast"
	"holdfast/batch"
	"holdfast/gateway"
	"holdfast/standin"
)

// The whole life of a batch through the gateway, with a fault at every step: the reply of the create is lost, which the gateway
// does not repeat and the client adopts; looks fail, and the results break off. One batch is made, and paid once.
func TestBatchThroughTheGateway(t *testing.T) {
	rule := func(path string, header map[string]string, steps ...standin.Step) standin.Rule {
		return standin.Rule{Match: standin.Match{Path: path, Header: header}, Steps: steps}
	}
	plan := standin.Plan{
		Batches: standin.Batches{Takes: 10 * time.Minute, Hidden: 5 * time.Second},
		Rules: []standin.Rule{
			rule("/v1/messages/batches", map[string]string{"content-type": "*"}, standin.Step{Kind: standin.HTTP, Status: 429, RetryAfter: "2"}, standin.Step{Kind: standin.Lost}),
			rule("/v1/messages/batches", nil, standin.Step{Kind: standin.HTTP, Status: 529}),
			rule("/v1/messages/batches/*/results", nil, standin.Step{Kind: standin.Cut, How: standin.Chunk}, standin.Step{Kind: standin.Cut}),
			rule("/v1/messages/batches/msgbatch_*", nil, standin.Step{Kind: standin.HTTP, Status: 500, Times: 20}),
		},
	}
	onStandin(t, plan, func(t *testing.T, s *standin.Server, upstream *http.Client, url string) {
		behind(&holdfast.Policy{}, upstream, url, gateway.Live, func(client *http.Client, url string) {
			sdk := anthropicClient(client, url, option.WithMaxRetries(2))
			batches := batch.Client{API: &sdk.Messages.Batches}
			wanted := batchOf("a", "b", "c", "d").Requests
			made, created, err := batches.Create(t.Context(), wanted)
			if err != nil || created.How != batch.ByCount {
				t.Fatalf("%v by %v, error %v", made, created.How, err)
			}
			ended, err := batches.Wait(t.Context(), made.ID)
			if err != nil {
				t.Fatal(err)
			}
			var report batch.Report
			for item, err := range batches.Results(t.Context(), ended, wanted) {
				if err != nil {
					t.Fatal(err)
				}
				report.Add(item)
			}
			if report.Succeeded != 4 || !report.Complete() {
				t.Errorf("%v", &report)
			}
		})
		creates := s.Journal().Where(func(e standin.Exchange) bool { return e.Method == http.MethodPost })
		if len(creates) != 2 || creates[0].Status != 429 || creates[1].Effect == "" {
			t.Errorf("the upstream saw %d creates", len(creates))
		}
		if items := s.Ledger().Items; items.Succeeded != 4 || items.PaidTwice.Attempts != 0 {
			t.Errorf("items %+v", items)
		}
		standin.Expect(t, s.Journal(), standin.PaidOnce(), standin.NothingOpen())
	})
}
