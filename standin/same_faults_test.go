package standin_test

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"holdfast/standin"
)

// drawn is a plan with everything that is drawn or counted for each job.
func drawn(seed uint64) standin.Plan {
	return standin.Plan{
		Seed: seed, Reply: "one two three",
		Rules: []standin.Rule{
			{Name: "share", Match: standin.Match{CustomID: "job-?0*"}, Share: 0.4, Then: standin.Step{Kind: standin.HTTP, Status: 500}},
			{Name: "per job", Match: standin.Match{CustomID: "job-*"}, Per: standin.PerJob, Share: 0.8, Steps: []standin.Step{
				{Kind: standin.HTTP, Status: 529}, {Kind: standin.Error, After: 1}, {Kind: standin.HTTP, Status: 429}, {Times: 2},
			}},
			{Name: "items", Match: standin.Match{CustomID: "item-*"}, Share: 0.5, Per: standin.PerJob, Steps: []standin.Step{{Kind: standin.HTTP, Status: 500}, {Kind: standin.Timeout}}},
		},
		Timeline: []standin.Incident{
			{Name: "trouble", To: 1000 * time.Hour, Share: standin.Ramp{From: 0.3, To: 0.3}, Step: standin.Step{Kind: standin.Refusal}},
			{Name: "slow", To: 1000 * time.Hour, Latency: &standin.Latency{
				FirstToken: standin.Spread{Median: time.Second, P99: 20 * time.Second}, PerToken: standin.Spread{Min: time.Millisecond, Max: time.Second},
			}},
		},
	}
}

// outcomes asks five times for each of 200 jobs, with so many workers, and returns what came of each attempt.
func outcomes(t *testing.T, plan standin.Plan, workers int) map[string]string {
	t.Helper()
	all := map[string]string{}
	synctest.Test(t, func(t *testing.T) {
		s, c, url := serve(t, plan)
		c.Transport.(*http.Transport).MaxIdleConnsPerHost = workers
		var running sync.WaitGroup
		for worker := range workers {
			running.Go(func() {
				for job := worker; job < 200; job += workers {
					for range 5 {
						o := operation{"", "POST", anthropicPath, streamQuestion}
						caller{t: t, client: c, url: url}.ask(o, "x-custom-id", fmt.Sprintf("job-%03d", job))
					}
				}
			})
		}
		running.Wait()
		synctest.Wait()
		for _, e := range s.Journal() {
			at := fmt.Sprintf("%s/%d", e.CustomID, e.Attempt)
			if _, twice := all[at]; twice || e.Open() {
				t.Errorf("%s is there twice, or open", at)
			}
			all[at] = fmt.Sprint(e.Rule, " ", e.Fault, " ", e.Status, " ", e.Sent > 0, " ", e.Input, " ", e.Output, " ", e.Departed.Sub(e.Arrived))
		}
	})
	return all
}

func TestTheSameFaultsWithOneAndWith200Workers(t *testing.T) {
	t.Parallel()
	one := outcomes(t, drawn(1), 1)
	if diff := cmp.Diff(one, outcomes(t, drawn(1), 200)); diff != "" || len(one) != 1000 {
		t.Errorf("%d attempts (-one worker +200):\n%s", len(one), diff)
	}
	kinds := map[string]int{}
	for _, outcome := range one {
		rule, rest, _ := strings.Cut(outcome, " ")
		if rule == "per" {
			rule, rest = "per job", strings.TrimPrefix(rest, "job ")
		}
		kind, _, _ := strings.Cut(rest, " ")
		kinds[rule+"/"+kind]++
	}
	for _, want := range []string{"share/http", "per job/http", "per job/error", "per job/ok", "trouble/refusal", "/ok"} {
		if kinds[want] < 5 {
			t.Errorf("%s was played %d times: %v", want, kinds[want], kinds)
		}
	}
	if cmp.Equal(one, outcomes(t, drawn(2), 200)) {
		t.Error("another seed gives the same faults")
	}
}

// TestTheSameItemsFailInWhateverOrderBatchesAreDone creates ten batches of items at once, and one after the other.
func TestTheSameItemsFailInWhateverOrderBatchesAreDone(t *testing.T) {
	results := func(workers int) map[string]string {
		all := map[string]string{}
		synctest.Test(t, func(t *testing.T) {
			_, c, url := serve(t, drawn(3))
			var running sync.WaitGroup
			var mu sync.Mutex
			for worker := range workers {
				running.Go(func() {
					for batch := worker; batch < 10; batch += workers {
						lines := finished(caller{t: t, client: c, url: url}, batchOf(20, fmt.Sprintf("item-%d-", batch)))
						mu.Lock()
						maps.Copy(all, lines)
						mu.Unlock()
					}
				})
			}
			running.Wait()
		})
		return all
	}
	one := results(1)
	if diff := cmp.Diff(one, results(10)); diff != "" || len(one) != 200 {
		t.Errorf("%d items (-one worker +10):\n%s", len(one), diff)
	}
	if failed := slices.DeleteFunc(slices.Collect(maps.Values(one)), func(line string) bool { return !strings.Contains(line, `"errored"`) }); len(failed) < 70 || len(failed) > 130 {
		t.Errorf("%d of 200 failed, want about half", len(failed))
	}
}

// batchOf is the body of a batch with so many items.
func batchOf(n int, prefix string) string {
	items := make([]string, n)
	for i := range items {
		items[i] = fmt.Sprintf(`{"custom_id":"%s%d","params":%s}`, prefix, i, question)
	}
	return `{"requests":[` + strings.Join(items, ",") + `]}`
}

// finished creates a batch, looks until it has ended, and returns the lines of its results by custom id.
func finished(c caller, body string) map[string]string {
	c.t.Helper()
	c.batch = c.idOf(operation{"", "POST", "/v1/messages/batches", body})
	for range 3 {
		if got := c.ask(operation{"", "GET", "/v1/messages/batches/BATCH", ""}); strings.Contains(got.body, `"processing_status":"ended"`) {
			break
		}
	}
	got := c.ask(operation{"", "GET", "/v1/messages/batches/BATCH/results", ""})
	if got.status != 200 || got.readErr != nil {
		c.t.Errorf("results: %+v", got)
	}
	lines := map[string]string{}
	for line := range strings.Lines(got.body) {
		_, rest, _ := strings.Cut(line, `{"custom_id":"`)
		id, _, _ := strings.Cut(rest, `"`)
		lines[id] = line
	}
	return lines
}
