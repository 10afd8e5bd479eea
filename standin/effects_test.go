package standin_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anthropics/anthropic-sdk-go/v2"
	"github.com/google/go-cmp/cmp"

	"holdfast/standin"
)

func lineOf(t *testing.T, r standin.Report, name string) standin.Line {
	t.Helper()
	for _, line := range r.Lines {
		if line.Name == name {
			return line
		}
	}
	t.Fatalf("no line %s", name)
	return standin.Line{}
}

// TestALostReplyLeavesItsEffectBehind for the creations of a batch and of a file, by the SDK: it sends an upload
// again, and a batch only when there was no connection.
func TestALostReplyLeavesItsEffectBehind(t *testing.T) {
	for _, tt := range []struct {
		name    string
		create  func(t *testing.T, c anthropic.Client) error
		list    string
		effects []string // the ids that exist after one call of the SDK
		again   []string // and after a second one
	}{
		{"file", func(t *testing.T, c anthropic.Client) error {
			_, err := c.Files.Upload(t.Context(), anthropic.FileUploadParams{File: strings.NewReader("the content")})
			return err
		}, "files", []string{"file_standin_000001", "file_standin_000002"}, []string{"file_standin_000001", "file_standin_000002", "file_standin_000003"}},
		{"batch", func(t *testing.T, c anthropic.Client) error {
			_, err := c.Messages.Batches.New(t.Context(), anthropic.MessageBatchNewParams{Requests: []anthropic.MessageBatchNewParamsRequest{{
				CustomID: "one", Params: anthropic.MessageBatchNewParamsRequestParams{
					Model: "claude-sonnet-5-5", MaxTokens: 10, Messages: []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock("hello"))},
				},
			}}})
			return err
		}, "messages/batches", []string{"msgbatch_standin_000001"}, []string{"msgbatch_standin_000001", "msgbatch_standin_000002"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, c, url := serve(t, standin.Plan{Steps: []standin.Step{{Kind: standin.Lost}}})
				client := sdkClient(c, url)
				err := tt.create(t, client)
				if failed := err != nil; failed != (len(tt.effects) == 1) {
					t.Errorf("the first call: %v", err)
				}
				var effects []string
				for _, e := range s.Journal() {
					effects = append(effects, e.Effect)
				}
				if diff := cmp.Diff(tt.effects, effects); diff != "" || s.Journal()[0].Status != 0 || s.Journal()[0].Fault != standin.Lost {
					t.Errorf("effects (-want +got):\n%s", diff)
				}
				if err := tt.create(t, client); err != nil {
					t.Errorf("the second call: %v", err)
				}
				list := caller{t: t, client: c, url: url}.ask(operation{"", "GET", "/v1/" + tt.list, ""})
				for _, id := range tt.again {
					if !strings.Contains(list.body, id) {
						t.Errorf("%s is not in the list: %s", id, list.body)
					}
				}
				if tt.name == "file" { // the SDK draws a new boundary for each call: one more body
					if got := s.Ledger().Effects; len(got) != 1 || !cmp.Equal(got[0].IDs, tt.effects) {
						t.Errorf("effects %+v", got)
					}
				} else if got := s.Ledger().Effects; len(got) != 1 || !cmp.Equal(got[0].IDs, tt.again) {
					t.Errorf("effects %+v", got)
				}
				if line := lineOf(t, s.Report(), "creation"); line.Verdict != standin.Warn || len(line.Exchanges) != 1 {
					t.Errorf("the report: %+v", line)
				}
				if err := s.Journal().Check(standin.PaidOnce()); err == nil {
					t.Error("PaidOnce has found nothing")
				}
			})
		})
	}
}

// TestTheSDKCreatesABatchAgainOnlyWhenNothingCanHaveHappened: rule of anthropic-sdk-go from v2.14.0 on.
func TestTheSDKCreatesABatchAgainOnlyWhenNothingCanHaveHappened(t *testing.T) {
	for status, want := range map[int]int{429: 3, 500: 1, 529: 1, 409: 1} {
		synctest.Test(t, func(t *testing.T) {
			s, c, url := serve(t, standin.Failing(2, status, "1"))
			client := sdkClient(c, url)
			_, err := client.Messages.Batches.New(t.Context(), anthropic.MessageBatchNewParams{Requests: []anthropic.MessageBatchNewParamsRequest{{
				CustomID: "one", Params: anthropic.MessageBatchNewParamsRequestParams{
					Model: "claude-sonnet-5-5", MaxTokens: 10, Messages: []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock("hello"))},
				},
			}}})
			standin.Expect(t, s.Journal(), standin.Requests(want), standin.WaitsHonoured(0))
			if (err == nil) != (want == 3) {
				t.Errorf("%d: %v", status, err)
			}
		})
	}
}

// TestABatchFromItsCreationToItsBill: hidden at first, worked on for an hour, some items errored by a rule, late results.
func TestABatchFromItsCreationToItsBill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, c, url := serve(t, standin.Plan{
			Seed: 5, Reply: "one two three",
			Batches: standin.Batches{Takes: time.Hour, HiddenLooks: 2, LateResults: 1, CancelTakes: time.Minute},
			Rules: []standin.Rule{
				{Match: standin.Match{CustomID: "item-?7"}, Then: standin.Step{Kind: standin.HTTP, Status: 529}},
				{Match: standin.Match{CustomID: "item-?8"}, Then: standin.Step{Kind: standin.Timeout}},
			},
		})
		all := caller{t: t, client: c, url: url}
		get, results := operation{"", "GET", "/v1/messages/batches/BATCH", ""}, operation{"", "GET", "/v1/messages/batches/BATCH/results", ""}
		all.batch = all.idOf(operation{"", "POST", "/v1/messages/batches", batchOf(100, "item-")})
		for i, want := range []int{404, 404, 200} {
			if got := all.ask(get); got.status != want || want == 200 && got.header.Get("retry-after") != "10" {
				t.Errorf("look %d: %+v", i+1, got)
			}
		}
		if got := all.ask(results); got.status != 404 {
			t.Errorf("early results: %+v", got)
		}
		time.Sleep(30 * time.Minute)
		if got := all.ask(get); !strings.Contains(got.body, `"processing":50`) {
			t.Errorf("half way: %s", got.body)
		}
		if input, output := s.Billed(); input+output != 0 || s.Ledger().Items.Waiting != 100 {
			t.Errorf("half way %d and %d are billed, %+v", input, output, s.Ledger().Items)
		}
		time.Sleep(30 * time.Minute)
		if got := all.ask(get); !strings.Contains(got.body, `"ended"`) || !strings.Contains(got.body, `"succeeded":82`) || !strings.Contains(got.body, `"errored":9`) || !strings.Contains(got.body, `"expired":9`) {
			t.Errorf("in the end: %s", got.body)
		}
		if got := all.ask(results); got.status != 404 {
			t.Errorf("results that are late: %+v", got)
		}
		got := all.ask(results)
		if strings.Count(got.body, `"succeeded"`) != 82 || strings.Count(got.body, `"overloaded_error"`) != 9 || strings.Count(got.body, `"expired"`) != 9 {
			t.Errorf("results: %+v", got)
		}
		if first, _, _ := strings.Cut(got.body, "\n"); strings.Contains(first, `"item-0"`) || got.body != all.ask(results).body {
			t.Errorf("the results are in order, or in another one each time")
		}
		if input, output := s.Billed(); input != 82*3 || output != 82*3 {
			t.Errorf("billed %d and %d", input, output)
		}
		all.batch = all.idOf(operation{"", "POST", "/v1/messages/batches", batchOf(10, "other-")})
		all.ask(get)
		all.ask(get)
		if got := all.ask(operation{"", "POST", "/v1/messages/batches/BATCH/cancel", ""}); !strings.Contains(got.body, `"canceling"`) {
			t.Errorf("cancel: %+v", got)
		}
		time.Sleep(time.Minute)
		if got := all.ask(get); !strings.Contains(got.body, `"canceled":10`) {
			t.Errorf("canceled: %s", got.body)
		}
	})
}

// TestResultsOfTenThousandItemsComeWhileTheyAreMade, in order of no item.
func TestResultsOfTenThousandItemsComeWhileTheyAreMade(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, c, url := serve(t, standin.Plan{Batches: standin.Batches{Takes: time.Second}})
		all := caller{t: t, client: c, url: url}
		all.batch = all.idOf(operation{"", "POST", "/v1/messages/batches", batchOf(10_000, "item-")})
		time.Sleep(time.Second)
		req := all.request(operation{"", "GET", "/v1/messages/batches/BATCH/results", ""})
		res, err := c.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		first := make([]byte, 1)
		if _, err := res.Body.Read(first); err != nil || res.ContentLength >= 0 {
			t.Errorf("%v, %d bytes", err, res.ContentLength)
		}
		synctest.Wait() // the window of the connection is full
		if sent := s.Journal()[1].Sent; s.Open() != 1 || sent > 2<<20 {
			t.Errorf("%d open, %d bytes sent before the client has read one", s.Open(), sent)
		}
		var rest bytes.Buffer
		if _, err := rest.ReadFrom(res.Body); err != nil {
			t.Fatal(err)
		}
		for _, i := range []int{0, 1, 4_711, 9_999} {
			if n := strings.Count(rest.String(), fmt.Sprintf(`"custom_id":"item-%d"`, i)); n != 1 {
				t.Errorf("item %d is there %d times", i, n)
			}
		}
		if n := strings.Count(rest.String(), "\n"); n != 10_000 {
			t.Errorf("%d lines", n)
		}
	})
}
