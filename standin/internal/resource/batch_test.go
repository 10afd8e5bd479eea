package resource_test

import (
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anthropics/anthropic-sdk-go/v2"
	"github.com/google/go-cmp/cmp"

	"holdfast/standin/internal/answer"
	"holdfast/standin/internal/request"
	"holdfast/standin/internal/resource"
)

// standing is what a client sees of a batch.
type standing struct {
	status                                            string
	processing, succeeded, errored, canceled, expired int64
}

func standingOf(t *testing.T, batches *resource.Batches, at resource.Look, id string) standing {
	t.Helper()
	one := look(t, batches, at, id)
	c := one.RequestCounts
	return standing{string(one.ProcessingStatus), c.Processing, c.Succeeded, c.Errored, c.Canceled, c.Expired}
}

func TestBatchGoesOnWithTime(t *testing.T) {
	t.Parallel()
	type step struct {
		at     int // seconds
		cancel bool
		want   standing
	}
	cases := map[string]struct {
		settings resource.BatchSettings
		steps    []step
	}{
		"half at the first look, all at the second": {
			resource.BatchSettings{},
			[]step{
				{at: 0, want: standing{"in_progress", 5, 5, 0, 0, 0}},
				{at: 0, want: standing{"ended", 0, 10, 0, 0, 0}},
				{at: 9, want: standing{"ended", 0, 10, 0, 0, 0}},
			},
		},
		"evenly over its time": {
			resource.BatchSettings{Takes: 100 * time.Second},
			[]step{
				{at: 0, want: standing{"in_progress", 10, 0, 0, 0, 0}},
				{at: 9, want: standing{"in_progress", 10, 0, 0, 0, 0}},
				{at: 10, want: standing{"in_progress", 9, 1, 0, 0, 0}},
				{at: 70, want: standing{"in_progress", 3, 7, 0, 0, 0}},
				{at: 99, want: standing{"in_progress", 1, 9, 0, 0, 0}},
				{at: 100, want: standing{"ended", 0, 10, 0, 0, 0}},
			},
		},
		"counts only at the end": {
			resource.BatchSettings{Takes: 100 * time.Second, CountsAtEnd: true},
			[]step{
				{at: 70, want: standing{"in_progress", 10, 0, 0, 0, 0}},
				{at: 100, want: standing{"ended", 0, 10, 0, 0, 0}},
			},
		},
		"a clock that goes back takes nothing away": {
			resource.BatchSettings{Takes: 100 * time.Second},
			[]step{
				{at: 50, want: standing{"in_progress", 5, 5, 0, 0, 0}},
				{at: -5, want: standing{"in_progress", 5, 5, 0, 0, 0}},
			},
		},
		"what is not done expires": {
			resource.BatchSettings{Takes: 100 * time.Second, Lifetime: 45 * time.Second},
			[]step{
				{at: 44, want: standing{"in_progress", 6, 4, 0, 0, 0}},
				{at: 45, want: standing{"ended", 0, 4, 0, 0, 6}},
			},
		},
		"nothing is done ever": {
			resource.BatchSettings{Takes: -1},
			[]step{
				{at: 24*3600 - 1, want: standing{"in_progress", 10, 0, 0, 0, 0}},
				{at: 24 * 3600, want: standing{"ended", 0, 0, 0, 0, 10}},
			},
		},
		"canceled, it has ended at the next look": {
			resource.BatchSettings{Takes: 100 * time.Second},
			[]step{
				{at: 30, cancel: true, want: standing{"canceling", 7, 3, 0, 0, 0}},
				{at: 30, cancel: true, want: standing{"canceling", 7, 3, 0, 0, 0}},
				{at: 31, want: standing{"ended", 0, 3, 0, 7, 0}},
			},
		},
		"canceled before anything is done": {
			resource.BatchSettings{},
			[]step{
				{at: 0, cancel: true, want: standing{"canceling", 10, 0, 0, 0, 0}},
				{at: 0, want: standing{"ended", 0, 0, 0, 10, 0}},
			},
		},
		"canceling takes its time, in which nothing is done": {
			resource.BatchSettings{Takes: 100 * time.Second, CancelTakes: 20 * time.Second},
			[]step{
				{at: 30, cancel: true, want: standing{"canceling", 7, 3, 0, 0, 0}},
				{at: 49, want: standing{"canceling", 7, 3, 0, 0, 0}},
				{at: 50, want: standing{"ended", 0, 3, 0, 7, 0}},
			},
		},
		"expiry ends the canceling": {
			resource.BatchSettings{Takes: 100 * time.Second, CancelTakes: time.Hour, Lifetime: 40 * time.Second},
			[]step{
				{at: 30, cancel: true, want: standing{"canceling", 7, 3, 0, 0, 0}},
				{at: 40, want: standing{"ended", 0, 3, 0, 7, 0}},
			},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.settings.Outcome = succeed
			batches := resource.NewBatches(c.settings)
			id := create(t, batches, now(0), items(10))
			for i, s := range c.steps {
				var got standing
				if s.cancel {
					body, refusal := batches.Cancel(now(s.at), id)
					refuseNot(t, refusal)
					one := wellShaped[anthropic.MessageBatch](t, body)
					n := one.RequestCounts
					got = standing{string(one.ProcessingStatus), n.Processing, n.Succeeded, n.Errored, n.Canceled, n.Expired}
					if one.CancelInitiatedAt.IsZero() {
						t.Errorf("step %d: no cancel_initiated_at in %s", i, body)
					}
				} else {
					got = standingOf(t, batches, now(s.at), id)
				}
				if got != s.want {
					t.Errorf("step %d, second %d: got %v, want %v", i, s.at, got, s.want)
				}
			}
		})
	}
}

func TestBatchEndsWhenItsWorkDoesNotWhenItIsSeen(t *testing.T) {
	t.Parallel()
	var worked []time.Duration
	batches := resource.NewBatches(resource.BatchSettings{Takes: 40 * time.Second, Outcome: func(item request.Item, at time.Time) resource.Result {
		if want := "item-" + strconv.Itoa(len(worked)); item.CustomID != want {
			t.Errorf("worked on %s, want %s", item.CustomID, want)
		}
		worked = append(worked, at.Sub(start))
		return succeed(item, at)
	}})
	id := create(t, batches, now(0), items(4))
	look(t, batches, now(25), id)
	ended := look(t, batches, now(3600), id)
	if want := start.Add(40 * time.Second); !ended.EndedAt.Equal(want) {
		t.Errorf("ended at %v, want %v", ended.EndedAt, want)
	}
	want := []time.Duration{10 * time.Second, 20 * time.Second, 30 * time.Second, 40 * time.Second}
	if !slices.Equal(worked, want) {
		t.Errorf("worked at %v, want %v", worked, want)
	}
}

func TestErrorsOfBatches(t *testing.T) {
	t.Parallel()
	const id = "msgbatch_standin_000001"
	batches := resource.NewBatches(resource.BatchSettings{Outcome: succeed, Queue: 10})
	noBatch := "Message Batch " + id + " not found."
	for name, op := range operations(batches, id) {
		t.Run("missing/"+name, func(t *testing.T) {
			refused(t, op(now(0)), 404, "not_found_error", "", noBatch)
		})
	}
	create(t, batches, now(0), items(6))
	refused(t, operations(batches, id)["delete"](now(0)), 400, "invalid_request_error", "",
		"In progress batches cannot be deleted. Consider canceling the batch instead.")
	refused(t, operations(batches, id)["results"](now(0)), 404, "not_found_error", "",
		"Message Batch "+id+" has no available results.")
	_, refusal := batches.Create(now(0), items(5))
	refused(t, refusal, 429, "rate_limit_error", "",
		"This request would exceed your organization's rate limit of 10 batch requests in the processing queue.")

	look(t, batches, now(1), id) // the second look: asking for results was the first
	refused(t, operations(batches, id)["cancel"](now(1)), 400, "invalid_request_error", "",
		"Message Batch "+id+" has already ended and cannot be canceled.")
	if got := create(t, batches, now(1), items(5)); got != "msgbatch_standin_000002" {
		t.Errorf("the next batch is %s; a refused one has no number", got)
	}
	if refusal := operations(batches, id)["delete"](now(2)); refusal != nil {
		t.Errorf("deleting refused: %+v", *refusal)
	}
	refused(t, operations(batches, id)["delete"](now(2)), 404, "not_found_error", "", noBatch)
	refused(t, operations(batches, id)["get"](now(2)), 404, "not_found_error", "", noBatch)
}

// operations are those that name a batch.
func operations(batches *resource.Batches, id string) map[string]func(resource.Look) *request.Refusal {
	return map[string]func(resource.Look) *request.Refusal{
		"get":     func(at resource.Look) *request.Refusal { _, _, r := batches.Get(at, id); return r },
		"cancel":  func(at resource.Look) *request.Refusal { _, r := batches.Cancel(at, id); return r },
		"delete":  func(at resource.Look) *request.Refusal { _, r := batches.Delete(at, id); return r },
		"results": func(at resource.Look) *request.Refusal { _, r := batches.Results(at, id); return r },
	}
}

func TestNewBatchCannotBeSeenForAWhile(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		settings resource.BatchSettings
		hidden   []int // seconds of the looks that get a 404
		seen     int
	}{
		"for two looks":    {resource.BatchSettings{HiddenLooks: 2}, []int{0, 0}, 0},
		"for five seconds": {resource.BatchSettings{HiddenFor: 5 * time.Second}, []int{0, 1, 4}, 5},
		"for both":         {resource.BatchSettings{HiddenLooks: 1, HiddenFor: 5 * time.Second}, []int{9}, 9},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.settings.Outcome = succeed
			batches := resource.NewBatches(c.settings)
			id := create(t, batches, now(0), items(2))
			for _, second := range c.hidden {
				if page := listBatches(t, batches, now(second), request.Page{}); len(page.Data) != 0 {
					t.Errorf("second %d: the list shows it", second)
				}
				_, _, refusal := batches.Get(now(second), id)
				refused(t, refusal, 404, "not_found_error", "", "Message Batch "+id+" not found.")
			}
			want := standing{"in_progress", 1, 1, 0, 0, 0} // a hidden look is none
			if got := standingOf(t, batches, now(c.seen), id); got != want {
				t.Errorf("got %v, want %v", got, want)
			}
			if page := listBatches(t, batches, now(c.seen), request.Page{}); len(page.Data) != 1 {
				t.Error("the list does not show it")
			}
		})
	}
}

func TestResultsCanComeLate(t *testing.T) {
	t.Parallel()
	batches := resource.NewBatches(resource.BatchSettings{Outcome: succeed, LateResults: 2})
	id := create(t, batches, now(0), items(3))
	look(t, batches, now(0), id)
	look(t, batches, now(0), id)
	for range 2 {
		_, refusal := batches.Results(now(1), id)
		refused(t, refusal, 404, "not_found_error", "", "Message Batch "+id+" has no available results.")
	}
	if got := readResults(t, batches, now(1), id); len(got) != 3 {
		t.Errorf("%d results, want 3", len(got))
	}
}

func TestResultsAreGoneAfter29Days(t *testing.T) {
	t.Parallel()
	const day = 24 * 3600
	batches := resource.NewBatches(resource.BatchSettings{Outcome: succeed, Takes: time.Second})
	id := create(t, batches, now(0), items(3))
	if got := readResults(t, batches, now(29*day-1), id); len(got) != 3 {
		t.Errorf("%d results, want 3", len(got))
	}
	_, refusal := batches.Results(now(29*day), id)
	refused(t, refusal, 404, "not_found_error", "", "Message Batch "+id+" has no available results.")
	if one := look(t, batches, now(29*day), id); !one.ArchivedAt.Equal(start.Add(29 * 24 * time.Hour)) {
		t.Errorf("archived at %v", one.ArchivedAt)
	}
}

func TestResultsAreShuffledTheSameEachTime(t *testing.T) {
	t.Parallel()
	read := func(seed uint64, batch, n int) []string {
		batches := resource.NewBatches(resource.BatchSettings{Outcome: succeed, Seed: seed, Takes: time.Second})
		var id string
		for range batch {
			id = create(t, batches, now(0), items(n))
		}
		first := readResults(t, batches, now(1), id)
		if again := readResults(t, batches, now(2), id); !slices.Equal(first, again) {
			t.Errorf("seed %d batch %d: read again, the order is another", seed, batch)
		}
		return first
	}
	for n := 2; n < 40; n++ {
		inOrder := make([]string, n)
		for i, item := range items(n) {
			inOrder[i] = `{"custom_id":"` + item.CustomID + `","result":{"type":"succeeded","message":` + message + `}}`
		}
		got := read(7, 1, n)
		if slices.Equal(got, inOrder) {
			t.Errorf("%d results stand in the order of the request", n)
		}
		slices.Sort(inOrder)
		slices.Sort(got)
		if !slices.Equal(got, inOrder) {
			t.Errorf("%d results are not one for each item", n)
		}
	}
	one := read(7, 1, 30)
	if !slices.Equal(one, read(7, 1, 30)) {
		t.Error("the same seed and number give another order")
	}
	if slices.Equal(one, read(8, 1, 30)) || slices.Equal(one, read(7, 2, 30)) {
		t.Error("another seed or number gives the same order")
	}
}

func TestReadingResultsCanStopEarly(t *testing.T) {
	t.Parallel()
	made := 0
	batches := resource.NewBatches(resource.BatchSettings{Takes: time.Second, Outcome: func(request.Item, time.Time) resource.Result {
		return resource.Result{Message: func() []byte { made++; return []byte(message) }}
	}})
	id := create(t, batches, now(0), items(100))
	lines, refusal := batches.Results(now(1), id)
	refuseNot(t, refusal)
	for range lines {
		break
	}
	if made != 1 {
		t.Errorf("%d messages were made for one line", made)
	}
}

func TestListOfBatchesIsPaged(t *testing.T) {
	t.Parallel()
	batches := resource.NewBatches(resource.BatchSettings{Outcome: succeed, Takes: -1})
	if page := listBatches(t, batches, now(0), request.Page{}); len(page.Data) != 0 || page.HasMore || page.JSON.FirstID.Raw() != "null" {
		t.Errorf("empty: %s", page.RawJSON())
	}
	for range 45 {
		create(t, batches, now(0), items(1))
	}
	id := func(n int) string { return "msgbatch_standin_0000" + strconv.Itoa(n/10) + strconv.Itoa(n%10) }
	for name, c := range map[string]struct {
		page        request.Page
		first, last int
		more        bool
	}{
		"default":              {request.Page{}, 45, 26, true},
		"limit":                {request.Page{Limit: 3}, 45, 43, true},
		"all":                  {request.Page{Limit: 5000}, 45, 1, false},
		"after":                {request.Page{Limit: 10, AfterID: id(26)}, 25, 16, true},
		"after, the rest":      {request.Page{Limit: 10, AfterID: id(6)}, 5, 1, false},
		"after, exactly":       {request.Page{Limit: 5, AfterID: id(6)}, 5, 1, false},
		"before":               {request.Page{Limit: 10, BeforeID: id(26)}, 36, 27, true},
		"before, the rest":     {request.Page{Limit: 10, BeforeID: id(41)}, 45, 42, false},
		"before, exactly":      {request.Page{Limit: 4, BeforeID: id(41)}, 45, 42, false},
		"negative is the same": {request.Page{Limit: -1}, 45, 26, true},
	} {
		t.Run(name, func(t *testing.T) {
			page := listBatches(t, batches, now(0), c.page)
			if page.FirstID != id(c.first) || page.LastID != id(c.last) || page.HasMore != c.more || len(page.Data) != c.first-c.last+1 {
				t.Errorf("%s to %s, more %v, %d", page.FirstID, page.LastID, page.HasMore, len(page.Data))
			}
			if page.Data[0].ID != page.FirstID || page.Data[len(page.Data)-1].ID != page.LastID {
				t.Error("first_id and last_id are not those of the data")
			}
		})
	}
	for _, page := range []request.Page{{AfterID: "msgbatch_none"}, {BeforeID: "msgbatch_none"}, {AfterID: id(1), BeforeID: id(2)}} {
		if _, refusal := batches.List(now(0), page); refusal == nil || refusal.Status != 400 {
			t.Errorf("%+v: %+v", page, refusal)
		}
	}
	if page := listBatches(t, batches, now(0), request.Page{AfterID: id(1)}); len(page.Data) != 0 || page.HasMore {
		t.Errorf("after the last: %s", page.RawJSON())
	}
}

func TestOldestFinishedBatchesAreForgotten(t *testing.T) {
	t.Parallel()
	batches := resource.NewBatches(resource.BatchSettings{Outcome: succeed, Kept: 10})
	var ids []string
	for i := range 4 {
		ids = append(ids, create(t, batches, now(i), items(4)))
	}
	end := func(id string) { look(t, batches, now(9), id); look(t, batches, now(9), id) }
	for _, i := range []int{2, 0, 3} { // the third to end makes 12 items, so the first to end goes
		end(ids[i])
	}
	for i, gone := range []bool{false, false, true, false} {
		if refusal := operations(batches, ids[i])["delete"](now(9)); (refusal != nil && refusal.Status == 404) != gone {
			t.Errorf("batch %d: %+v, want gone %v", i+1, refusal, gone)
		}
	}
	end(ids[1])
	big := create(t, batches, now(12), items(50))
	end(big)
	if got := readResults(t, batches, now(13), big); len(got) != 50 {
		t.Errorf("the latest has %d results, want 50", len(got))
	}
	if page := listBatches(t, batches, now(13), request.Page{}); len(page.Data) != 1 {
		t.Errorf("%d batches are left, want 1: it takes all the room", len(page.Data))
	}
}

func TestCountsShowWorkPaidTwice(t *testing.T) {
	t.Parallel()
	batches := resource.NewBatches(resource.BatchSettings{Takes: 10 * time.Second, Outcome: func(item request.Item, at time.Time) resource.Result {
		if item.CustomID == "item-0" {
			return resource.Result{Kind: resource.Errored, Usage: usage}
		}
		return succeed(item, at)
	}})
	create(t, batches, now(0), items(4))
	create(t, batches, now(0), items(4)) // the acknowledgement of the first was lost
	create(t, batches, now(0), items(5)[1:])
	want := resource.BatchCounts{Created: 3, Repeated: 1, Waiting: 12}
	if diff := cmp.Diff(want, batches.Counts(now(5).At)); diff != "" {
		t.Errorf("half way (-want +got)\n%s", diff)
	}
	// No one has looked at them since. The account has.
	want = resource.BatchCounts{
		Created: 3, Repeated: 1, Succeeded: 10, Errored: 2, BilledAgain: 6,
		Usage: answer.Usage{Input: 30, Output: 50}, UsageAgain: answer.Usage{Input: 18, Output: 30},
	}
	for range 2 {
		if diff := cmp.Diff(want, batches.Counts(now(10).At)); diff != "" {
			t.Errorf("at the end (-want +got)\n%s", diff)
		}
	}
	batches.Reset()
	if got := batches.Counts(now(11).At); got != (resource.BatchCounts{}) {
		t.Errorf("after the reset %+v", got)
	}
	if id := create(t, batches, now(11), items(1)); id != "msgbatch_standin_000001" {
		t.Errorf("after the reset the first batch is %s", id)
	}
}

func TestCountsAreNoLook(t *testing.T) {
	t.Parallel()
	batches := resource.NewBatches(resource.BatchSettings{Outcome: succeed})
	id := create(t, batches, now(0), items(10))
	for range 5 {
		batches.Counts(now(1).At)
	}
	if got, want := standingOf(t, batches, now(1), id), (standing{"in_progress", 5, 5, 0, 0, 0}); got != want {
		t.Errorf("got %v, want %v", got, want)
	}
}

// The upstream of the case: 60 succeeded, 30 expired, 10 errored, in an order of their own.
func TestB155_BatchThatExpiresKeepsWhatIsDone(t *testing.T) {
	t.Parallel()
	batches := resource.NewBatches(resource.BatchSettings{
		Takes: 100 * time.Second, Lifetime: 70 * time.Second,
		Outcome: func(item request.Item, at time.Time) resource.Result {
			if strings.HasSuffix(item.CustomID, "5") {
				return resource.Result{Kind: resource.Errored, Error: &request.Refusal{Status: 400, Message: "Your credit balance is too low"}}
			}
			return succeed(item, at)
		},
	})
	all := items(100)
	for i := range 3 { // of the 100 items, 7 of the first 70 end in 5
		all[i].CustomID += "-5"
	}
	id := create(t, batches, now(0), all)
	if got, want := standingOf(t, batches, now(70), id), (standing{"ended", 0, 60, 10, 0, 30}); got != want {
		t.Fatalf("got %v, want %v", got, want)
	}
	var order []string
	kinds := map[string]int{}
	for _, line := range readResults(t, batches, now(71), id) {
		one := wellShaped[anthropic.MessageBatchIndividualResponse](t, []byte(line))
		order = append(order, one.CustomID)
		kinds[one.Result.Type]++
		place := slices.IndexFunc(all, func(item request.Item) bool { return item.CustomID == one.CustomID })
		if (one.Result.Type == "expired") != (place >= 70) {
			t.Errorf("item %d is %s", place, one.Result.Type)
		}
	}
	if diff := cmp.Diff(map[string]int{"succeeded": 60, "errored": 10, "expired": 30}, kinds); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if slices.IsSortedFunc(order, func(a, b string) int { return len(a) - len(b) }) {
		t.Error("the results stand in the order of the request")
	}
	if counts := batches.Counts(now(71).At); counts.Usage.Output != 60*5 {
		t.Errorf("%d tokens billed for 60 items of 5", counts.Usage.Output)
	}
}

func TestQueueIsFreedByBatchesThatEndUnseen(t *testing.T) {
	t.Parallel()
	batches := resource.NewBatches(resource.BatchSettings{Outcome: succeed, Takes: time.Minute, Queue: 5})
	create(t, batches, now(0), items(5))
	if _, refusal := batches.Create(now(59), items(1)); refusal == nil {
		t.Error("the queue takes more than it holds")
	}
	create(t, batches, now(60), items(5))
}

func TestOutcomeMayUseOtherBatches(t *testing.T) {
	t.Parallel()
	var batches *resource.Batches
	var other string
	batches = resource.NewBatches(resource.BatchSettings{Outcome: func(item request.Item, at time.Time) resource.Result {
		if item.CustomID == "asks" {
			_, _, refusal := batches.Get(resource.Look{At: at}, other)
			return resource.Result{Kind: resource.Errored, Error: refusal}
		}
		return succeed(item, at)
	}})
	other = create(t, batches, now(0), items(2))
	id := create(t, batches, now(0), []request.Item{{CustomID: "asks"}})
	look(t, batches, now(0), id)
	look(t, batches, now(0), id)
	if got := readResults(t, batches, now(0), id); !strings.Contains(got[0], "api_error") {
		t.Errorf("got %s", got)
	}
}

func TestCancelingAgainChangesNothing(t *testing.T) {
	t.Parallel()
	batches := resource.NewBatches(resource.BatchSettings{Takes: -1, CancelTakes: 10 * time.Second})
	id := create(t, batches, now(0), items(1))
	for _, second := range []int{3, 7} {
		body, refusal := batches.Cancel(now(second), id)
		refuseNot(t, refusal)
		if one := wellShaped[anthropic.MessageBatch](t, body); !one.CancelInitiatedAt.Equal(now(3).At) {
			t.Errorf("second %d: canceled at %v, want %v", second, one.CancelInitiatedAt, now(3).At)
		}
	}
	if one := look(t, batches, now(20), id); !one.EndedAt.Equal(now(13).At) {
		t.Errorf("ended at %v, want %v", one.EndedAt, now(13).At)
	}
}

func TestBatchInWorkAtAResetIsInNoCount(t *testing.T) {
	t.Parallel()
	var batches *resource.Batches
	batches = resource.NewBatches(resource.BatchSettings{Takes: time.Second, Outcome: func(item request.Item, at time.Time) resource.Result {
		batches.Reset()
		return succeed(item, at)
	}})
	id := create(t, batches, now(0), items(3))
	look(t, batches, now(1), id)
	if got := batches.Counts(now(1).At); got != (resource.BatchCounts{}) {
		t.Errorf("counts %+v", got)
	}
}

func TestBatchesServeManyAtOnce(t *testing.T) {
	t.Parallel()
	const workers, each, size = 8, 10, 30
	batches := resource.NewBatches(resource.BatchSettings{Outcome: succeed, Takes: 10 * time.Second, Kept: -1, Queue: -1})
	var all sync.WaitGroup
	for w := range workers {
		all.Go(func() {
			for i := range each {
				mine := items(size)
				mine[0].CustomID = strconv.Itoa(w*each + i)
				id := create(t, batches, now(0), mine)
				for second := range 12 {
					look(t, batches, now(second), id)
					if second%4 == 0 {
						listBatches(t, batches, now(second), request.Page{Limit: 5})
						batches.Counts(now(second).At)
					}
				}
				if got := readResults(t, batches, now(12), id); len(got) != size {
					t.Errorf("%d results", len(got))
				}
				if i%2 == 0 {
					_, refusal := batches.Delete(now(12), id)
					refuseNot(t, refusal)
				}
			}
		})
	}
	all.Wait()
	got := batches.Counts(now(12).At)
	if n := workers * each; got.Created != n || got.Succeeded != n*size || got.Waiting != 0 || got.BilledAgain != (n-1)*(size-1) {
		t.Errorf("counts %+v", got)
	}
	if page := listBatches(t, batches, now(12), request.Page{Limit: 1000}); len(page.Data) != workers*each/2 {
		t.Errorf("%d batches left", len(page.Data))
	}
}
