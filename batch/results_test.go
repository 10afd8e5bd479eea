package batch_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anthropics/anthropic-sdk-go/v2"
	"github.com/google/go-cmp/cmp"

	"holdfast/batch"
	"holdfast/standin"
)

const itemPath = batchPath + "/items"

// item is a rule for items whose custom id fits the glob.
func item(glob string, step standin.Step) standin.Rule {
	return standin.Rule{Match: standin.Match{Path: itemPath, CustomID: glob}, Then: step}
}

// onResults plays steps to the requests for results.
func onResults(steps ...standin.Step) standin.Plan {
	return standin.Plan{Rules: []standin.Rule{{Match: standin.Match{Path: batchPath + "/*/results"}, Steps: steps}}}
}

// collect reads all results.
func (w *world) collect(ended *anthropic.MessageBatch, wanted []batch.Request) (items []batch.Item, err error) {
	w.Helper()
	for one, err := range w.client.Results(w.Context(), ended, wanted) {
		if err != nil {
			w.tellsNothing(err)
			return items, err
		}
		items = append(items, one)
	}
	return items, nil
}

// eachOnce expects one result for every request, with the request it belongs to.
func (w *world) eachOnce(items []batch.Item, wanted []batch.Request) {
	w.Helper()
	seen := map[string]int{}
	for _, one := range items {
		seen[one.CustomID]++
		if one.Request == nil || one.Request.CustomID != one.CustomID || one.Again {
			w.Errorf("%+v", one)
		}
	}
	for _, r := range wanted {
		if seen[r.CustomID] != 1 {
			w.Errorf("%s came %d times", r.CustomID, seen[r.CustomID])
		}
	}
	if len(items) != len(wanted) {
		w.Errorf("%d results of %d requests", len(items), len(wanted))
	}
}

// B155: 60 succeeded, 30 expired, 10 errored, in an order of their own. The 60 are kept, the 40 are listed with their
// reasons, and another run has exactly them.
func TestB155_RestOfABatchIsRunAgain(t *testing.T) {
	t.Parallel()
	plan := standin.Plan{Rules: []standin.Rule{
		item("late-*", standin.Step{Kind: standin.Timeout}),
		item("poor-*", standin.Step{Kind: standin.HTTP, Status: 400, Message: "Your credit balance is too low to access the Claude API."}),
	}}
	in(t, plan, func(w *world) {
		wanted := slices.Concat(requests("good", 60), requests("late", 30), requests("poor", 10))
		items, err := w.collect(w.ended(wanted), wanted)
		if err != nil {
			w.Fatal(err)
		}
		w.eachOnce(items, wanted)
		if slices.EqualFunc(items, wanted, func(i batch.Item, r batch.Request) bool { return i.CustomID == r.CustomID }) {
			w.Error("the results came in the order of the requests: nothing is proven")
		}
		var report batch.Report
		reasons := map[string]int{}
		for _, one := range items {
			report.Add(one)
		}
		for _, e := range report.Again {
			reasons[e.Outcome.String()+" "+e.Reason]++
		}
		if diff := cmp.Diff(map[string]int{"expired expired": 30, "retryable invalid_request_error": 10}, reasons); diff != "" {
			w.Errorf("reasons (-want +got):\n%s", diff)
		}
		if report.String() != "60 succeeded, 40 to run again, 0 failed, 0 flagged, 0 missing, 0 strange" || report.Complete() {
			w.Errorf("%v", &report)
		}
		w.create(report.Rerun())
		ledger := w.server.Ledger()
		if again := report.Rerun(); len(again) != 40 || slices.ContainsFunc(again, func(r batch.Request) bool { return strings.HasPrefix(r.CustomID, "good") }) {
			w.Errorf("%d to run again", len(again))
		}
		if ledger.Items.Succeeded != 60 || ledger.Items.Waiting != 40 || ledger.Items.PaidTwice.Attempts != 0 {
			w.Errorf("items %+v", ledger.Items)
		}
	})
}

// B152: every result is that of its own request, whatever became of the others. B158: what a rate limit has ended is no
// failure of the request, the report is incomplete, and another run touches only it.
func TestB152_B158_OutcomesOfItems(t *testing.T) {
	t.Parallel()
	steps := map[string]standin.Step{
		"good": {}, "refused": {Kind: standin.Refusal}, "cut": {Kind: standin.Truncation}, "window": {Kind: standin.ContextWindow},
		"paused": {Kind: standin.Pause}, "odd": {Kind: standin.StopReason, Reason: "foo_bar"},
		"limited": {Kind: standin.HTTP, Status: 429}, "overloaded": {Kind: standin.HTTP, Status: 529}, "broken": {Kind: standin.HTTP, Status: 500},
		"spent": {Kind: standin.SpendCap}, "bill": {Kind: standin.HTTP, Status: 402}, "ramp": {Kind: standin.RampLimit},
		"wrong": {Kind: standin.HTTP, Status: 400}, "absent": {Kind: standin.HTTP, Status: 404}, "large": {Kind: standin.HTTP, Status: 413},
		"denied": {Kind: standin.HTTP, Status: 403}, "late": {Kind: standin.Timeout},
	}
	want := map[string]string{
		"good": "succeeded end_turn", "odd": "unknown_reason foo_bar", "refused": "refused refusal", "cut": "truncated max_tokens",
		"window": "truncated model_context_window_exceeded", "paused": "paused pause_turn",
		"limited": "retryable rate_limit_error", "overloaded": "retryable overloaded_error", "broken": "retryable api_error",
		"spent": "retryable enforced_spend_limit_reached", "bill": "retryable billing_error", "ramp": "retryable ramp_limit_exceeded",
		"wrong": "failed invalid_request_error", "absent": "failed not_found_error", "large": "failed request_too_large",
		"denied": "failed permission_error", "late": "expired expired",
	}
	var plan standin.Plan
	var wanted []batch.Request
	for _, id := range slices.Sorted(maps.Keys(steps)) {
		plan.Rules = append(plan.Rules, item(id, steps[id]))
		wanted = append(wanted, request(id))
	}
	in(t, plan, func(w *world) {
		items, err := w.collect(w.ended(wanted), wanted)
		if err != nil {
			w.Fatal(err)
		}
		w.eachOnce(items, wanted)
		got := map[string]string{}
		var report batch.Report
		for _, one := range items {
			got[one.CustomID] = one.Outcome.String() + " " + one.Reason
			report.Add(one)
			if message := one.Result.Message.ID != ""; message != (one.Outcome <= batch.Unknown) {
				w.Errorf("%s: %+v", one.CustomID, one.Result)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			w.Errorf("(-want +got):\n%s", diff)
		}
		if report.String() != "1 succeeded, 7 to run again, 4 failed, 5 flagged, 0 missing, 0 strange" || report.Complete() {
			w.Errorf("%v", &report)
		}
		var again []string
		for _, r := range report.Rerun() {
			again = append(again, r.CustomID)
		}
		slices.Sort(again)
		if diff := cmp.Diff([]string{"bill", "broken", "late", "limited", "overloaded", "ramp", "spent"}, again); diff != "" {
			w.Errorf("to run again (-want +got):\n%s", diff)
		}
	})
}

// A reading that breaks off is begun anew, and no result comes twice, wherever and however it breaks off.
func TestResultsSurviveCuts(t *testing.T) {
	t.Parallel()
	for name, steps := range map[string][]standin.Step{
		"whole":             nil,
		"chunk":             {{Kind: standin.Cut, How: standin.Chunk}},
		"clean":             {{Kind: standin.Cut}},
		"reset":             {{Kind: standin.Cut, How: standin.RST}},
		"stall":             {{Kind: standin.Cut, How: standin.Silence}},
		"before the body":   {{Kind: standin.Cut, At: standin.First, How: standin.Chunk}},
		"malformed":         {{Kind: standin.Malformed}},
		"error in the body": {{Kind: standin.Error}, {Kind: standin.Error}},
		"empty":             {{Kind: standin.Empty}, {Kind: standin.Empty}},
		"web page":          {{Kind: standin.HTML}},
		"529":               {{Kind: standin.HTTP, Status: 529, Times: 9}},
		"429":               {{Kind: standin.HTTP, Status: 429, RetryAfter: "30"}},
		"a row":             {{Kind: standin.Cut}, {Kind: standin.Cut, How: standin.RST}, {Kind: standin.Reset}, {Kind: standin.Timeout}, {Kind: standin.Cut, How: standin.Silence}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in(t, onResults(steps...), func(w *world) {
				wanted := requests("a", 50)
				items, err := w.collect(w.ended(wanted), wanted)
				if err != nil {
					w.Fatal(err)
				}
				w.eachOnce(items, wanted)
			})
		})
	}
}

// A file that ends cleanly between two lines, and too early, is not taken for a whole one.
func TestResultsThatEndCleanlyAndTooEarly(t *testing.T) {
	t.Parallel()
	all := lineA + lineB + lineC
	for cut := 0; cut <= len(all); cut++ {
		synctest.Test(t, func(t *testing.T) {
			client := batch.Client{API: &file{data: []byte(all), cut: cut}}
			ended := &anthropic.MessageBatch{ID: "id", ProcessingStatus: "ended", RequestCounts: anthropic.MessageBatchRequestCounts{Succeeded: 3}}
			got := ""
			for one, err := range client.Results(t.Context(), ended, []batch.Request{{CustomID: "a"}, {CustomID: "b"}, {CustomID: "c"}}) {
				got += fmt.Sprint(one.CustomID, " ", one.Outcome, " ", one.Reason, " ", err, "; ")
			}
			if want := "a succeeded end_turn <nil>; b retryable overloaded_error <nil>; c other something_new <nil>; "; got != want {
				t.Errorf("cut after %d bytes: %q", cut, got)
			}
		})
	}
}

// A result that stands there twice is told twice, and what is lacking is told too; a batch like that is nobody's for sure.
func TestResultsThatComeTwice(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		twice := &file{data: []byte(lineA + lineA), cut: len(lineA)}
		client := batch.Client{API: twice}
		wanted := []batch.Request{{CustomID: "a"}, {CustomID: "b"}}
		ended, err := client.Wait(t.Context(), "id")
		if err != nil {
			t.Fatal(err)
		}
		var report batch.Report
		for one, err := range client.Results(t.Context(), ended, wanted) {
			if err != nil {
				t.Fatal(err)
			}
			report.Add(one)
		}
		if report.String() != "1 succeeded, 0 to run again, 0 failed, 0 flagged, 1 missing, 1 strange" || report.Strange[0].CustomID != "a" {
			t.Errorf("%v", &report)
		}
		if _, err := client.Identify(t.Context(), []anthropic.MessageBatch{*ended}, wanted); !errors.Is(err, batch.ErrNotMade) {
			t.Errorf("error %v", err)
		}
	})
}

// Results come a little later than the end; after 29 days they are gone.
func TestResultsThatAreLateOrGone(t *testing.T) {
	t.Parallel()
	in(t, standin.Plan{Batches: standin.Batches{LateResults: 5}}, func(w *world) {
		wanted := requests("a", 5)
		items, err := w.collect(w.ended(wanted), wanted)
		if err != nil {
			w.Fatal(err)
		}
		w.eachOnce(items, wanted)
	})
	in(t, standin.Plan{Batches: standin.Batches{LateResults: 500}}, func(w *world) {
		ended := w.ended(requests("a", 5))
		began := time.Now()
		_, err := w.collect(ended, nil)
		var broken *batch.ReadError
		if took := time.Since(began); !errors.As(err, &broken) || broken.Read != 0 || broken.Want != 5 || statusOf(err) != 404 || took > 3*time.Minute {
			w.Errorf("error %v after %v", err, took)
		}
	})
	in(t, standin.Plan{}, func(w *world) {
		ended := w.ended(requests("a", 5))
		w.sleep(29 * 24 * time.Hour)
		requested := len(w.server.Journal())
		_, err := w.collect(ended, nil) // as it stood when it had ended
		var gone *batch.GoneError
		if !errors.As(err, &gone) || gone.ID != ended.ID || !strings.Contains(err.Error(), "29 days") || gone.Hint() == "" {
			w.Errorf("error %v", err)
		}
		if n := len(w.server.Journal()) - requested; n > 3 {
			w.Errorf("%d requests for what is gone", n)
		}
		today, err := w.client.Wait(w.Context(), ended.ID)
		if err != nil {
			w.Fatal(err)
		}
		requested = len(w.server.Journal())
		if _, err := w.collect(today, nil); !errors.As(err, &gone) || len(w.server.Journal()) != requested {
			w.Errorf("error %v, %d requests", err, len(w.server.Journal())-requested)
		}
	})
}

func TestResultsEndWhereNoRetryHelps(t *testing.T) {
	t.Parallel()
	in(t, onResults(standin.Step{Kind: standin.HTTP, Status: 403, Times: 9}), func(w *world) {
		ended, before := w.ended(requests("a", 5)), len(w.server.Journal())
		_, err := w.collect(ended, nil)
		var broken *batch.ReadError
		if !errors.As(err, &broken) || statusOf(err) != 403 || len(w.server.Journal()) != before+1 || broken.Hint() == "" {
			w.Errorf("error %v", err)
		}
	})
	in(t, onResults(standin.Step{Kind: standin.Cut, How: standin.Chunk, Times: 99}), func(w *world) {
		wanted := requests("a", 50)
		items, err := w.collect(w.ended(wanted), wanted)
		var broken *batch.ReadError
		if !errors.As(err, &broken) || broken.Want != 50 || broken.Read != len(items) || len(items) == 0 || len(items) > 30 {
			w.Errorf("%d results, error %v", len(items), err)
		}
		if n := len(w.server.Journal()); n > 20 {
			w.Errorf("%d requests", n)
		}
	})
	in(t, standin.Plan{Batches: standin.Batches{Takes: time.Hour}}, func(w *world) {
		if _, err := w.collect(w.create(requests("a", 2)), nil); !errors.Is(err, batch.ErrNotEnded) {
			w.Errorf("error %v", err)
		}
	})
	in(t, onResults(standin.Step{Kind: standin.Timeout}), func(w *world) {
		ended := w.ended(requests("a", 2))
		ctx, cancel := context.WithTimeout(w.Context(), 5*time.Second)
		defer cancel()
		began, failed := time.Now(), error(nil)
		for _, err := range w.client.Results(ctx, ended, nil) {
			failed = err
		}
		if !errors.Is(failed, context.DeadlineExceeded) || time.Since(began) != 5*time.Second {
			w.Errorf("error %v after %v", failed, time.Since(began))
		}
	})
}

// Results that belong to none of the requests, requests without a result, and results that come twice are told.
func TestResultsThatDoNotMatch(t *testing.T) {
	t.Parallel()
	in(t, standin.Plan{}, func(w *world) {
		ended := w.ended(requests("a", 3))
		items, err := w.collect(ended, slices.Concat(requests("a", 2), requests("b", 1)))
		if err != nil {
			w.Fatal(err)
		}
		var report batch.Report
		for _, one := range items {
			report.Add(one)
		}
		if report.Succeeded != 2 || len(report.Strange) != 1 || report.Strange[0].CustomID != "a-2" || len(report.Missing) != 1 || report.Missing[0].CustomID != "b-0" || report.Complete() {
			w.Errorf("%+v", report)
		}
		var mismatch *batch.MismatchError
		if _, err := w.collect(ended, requests("b", 3)); !errors.As(err, &mismatch) || mismatch.Results != 3 || mismatch.Requests != 3 || mismatch.Hint() == "" {
			w.Errorf("error %v", err)
		}
		if items, err := w.collect(ended, nil); err != nil || len(items) != 3 || items[0].Outcome != batch.Succeeded {
			w.Errorf("%d results without requests, error %v", len(items), err)
		}
	})
}

// A reader who has seen enough leaves nothing open.
func TestResultsThatAreNotReadToTheEnd(t *testing.T) {
	t.Parallel()
	in(t, standin.Plan{}, func(w *world) {
		ended := w.ended(requests("a", 20))
		n := 0
		for one, err := range w.client.Results(w.Context(), ended, nil) {
			if n++; err != nil || one.CustomID == "" || n == 3 {
				break
			}
		}
		if n != 3 {
			w.Errorf("%d results", n)
		}
	})
}

// A reader may take his time: only the API's silence counts.
func TestResultsWaitForASlowReader(t *testing.T) {
	t.Parallel()
	in(t, standin.Plan{}, func(w *world) {
		wanted := requests("a", 2000) // more than fits into buffers on the way
		ended, before := w.ended(wanted), len(w.server.Journal())
		var items []batch.Item
		for one, err := range w.client.Results(w.Context(), ended, wanted) {
			if err != nil {
				w.Fatal(err)
			}
			items = append(items, one)
			if len(items)%500 == 1 {
				w.sleep(10 * time.Minute)
			}
		}
		w.eachOnce(items, wanted)
		if n := len(w.server.Journal()) - before; n != 1 {
			w.Errorf("read %d times", n)
		}
	})
}

func TestOutcomesHaveWords(t *testing.T) {
	t.Parallel()
	if got := fmt.Sprint(batch.Succeeded, batch.Other, batch.Outcome(99), batch.ByIDs, batch.How(9)); got != "succeeded other Outcome(99) custom ids How(9)" {
		t.Error(got)
	}
}

// A message is a success only if it is known to be whole: no stop reason, one that nobody knows, and half a tool call under
// whatever stop reason are flagged, with the message kept.
func TestMessagesThatAreNotKnownToBeWholeAreFlagged(t *testing.T) {
	t.Parallel()
	const (
		text = `{"type":"text","text":"It is"}`
		call = `{"type":"tool_use","id":"t","name":"ship","input":{"a":1}}`
		half = `{"type":"tool_use","id":"t","name":"ship","input":"{\"a\":"}`
	)
	for _, tt := range []struct {
		reason, content string
		want            batch.Outcome
		word            string
	}{
		{`"end_turn"`, text, batch.Succeeded, "end_turn"},
		{`"stop_sequence"`, text, batch.Succeeded, "stop_sequence"},
		{`"tool_use"`, call, batch.Succeeded, "tool_use"},
		{`"foo_bar"`, text, batch.Unknown, "foo_bar"},
		{`""`, text, batch.Unknown, ""},
		{`null`, text, batch.Unknown, ""},
		{`"` + secret + ` and more"`, text, batch.Unknown, "unknown"},
		{`"tool_use"`, half, batch.Truncated, "tool_use"},
		{`"end_turn"`, half, batch.Truncated, "end_turn"},
		{`"max_tokens"`, call, batch.Truncated, "max_tokens"},
		{`"model_context_window_exceeded"`, text, batch.Truncated, "model_context_window_exceeded"},
		{`"refusal"`, text, batch.Refused, "refusal"},
		{`"pause_turn"`, text, batch.Paused, "pause_turn"},
	} {
		t.Run(tt.reason+" "+tt.content, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				line := fmt.Sprintf(`{"custom_id":"a","result":{"type":"succeeded","message":{"id":"m","stop_reason":%s,"content":[%s]}}}`+"\n", tt.reason, tt.content)
				client := batch.Client{API: &file{data: []byte(line), cut: len(line)}}
				ended := &anthropic.MessageBatch{ID: "id", ProcessingStatus: "ended", RequestCounts: anthropic.MessageBatchRequestCounts{Succeeded: 1}}
				var report batch.Report
				for one, err := range client.Results(t.Context(), ended, []batch.Request{{CustomID: "a"}}) {
					if err != nil || one.Outcome != tt.want || one.Reason != tt.word || one.Result.Message.ID != "m" {
						t.Errorf("%v %q, error %v, want %v %q", one.Outcome, one.Reason, err, tt.want, tt.word)
					}
					report.Add(one)
				}
				if flagged := tt.want != batch.Succeeded; (len(report.Flagged) == 1) != flagged || (report.Succeeded == 0) != flagged || len(report.Rerun()) != 0 {
					t.Errorf("%v", &report)
				}
			})
		})
	}
}
