package batch

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/anthropics/anthropic-sdk-go/v2"
	"pgregory.net/rapid"
)

// Every run fits both bounds, no run could take the first request of the next one, and together they are all.
func TestFittingTakesAsManyAsFit(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		sizes := rapid.SliceOfN(rapid.IntRange(1, 60), 1, 50).Draw(r, "sizes")
		most, bytes := rapid.IntRange(1, 10).Draw(r, "most"), rapid.IntRange(80, 300).Draw(r, "bytes")
		for from := 0; from < len(sizes); {
			n := fitting(sizes[from:], most, bytes)
			run := sizes[from : from+n]
			if n < 1 || n > most || bodySize(run) > bytes {
				r.Fatalf("%d of %v, %d bytes", n, sizes[from:], bodySize(run))
			}
			if from += n; from < len(sizes) && n < most && bodySize(sizes[from-n:from+1]) <= bytes {
				r.Fatalf("%d of %v, and another would fit", n, sizes[from-n:])
			}
		}
	})
}

// The bounds of the API, by sizes alone: 256 MB of requests take their time.
func TestBoundsOfABatch(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		in     inspection
		places string
	}{
		{"as many as allowed", inspection{sizes: make([]int, MaxRequests)}, ""},
		{"one more", inspection{sizes: make([]int, MaxRequests+1)}, "batch: not sent: requests holds 100001, of 1 to 100000"},
		{"as large as allowed", inspection{sizes: []int{tooManyBytes - bodyFrame}}, ""},
		{"a byte more", inspection{sizes: []int{tooManyBytes - bodyFrame - 10, 10}}, "batch: not sent: requests takes 268435457 bytes, of at most 268435456"},
	} {
		tt.in.bounded()
		if err := tt.in.err(); (err == nil) != (tt.places == "") || err != nil && err.Error() != tt.places {
			t.Errorf("%s: error %v, want %q", tt.name, err, tt.places)
		}
	}
	in := inspection{sizes: []int{10, MaxBytes - bodyFrame, MaxBytes}}
	in.fit(MaxBytes)
	if len(in.places) != 1 || in.places[0].Path != "requests[2]" {
		t.Errorf("places %v", in.places)
	}
}

// Runs are parts of the requests in their order, and appending to one does not write over the next.
func TestRunsAreParts(t *testing.T) {
	t.Parallel()
	requests := make([]Request, 7)
	for i := range requests {
		requests[i].CustomID = string(rune('a' + i))
	}
	all, ids := runs(requests, []int{10, 10, 10, 10, 10, 10, 10}, 3, 1000), ""
	for _, run := range all {
		for _, r := range run {
			ids += r.CustomID
		}
		ids += " "
	}
	if ids != "abc def g " {
		t.Errorf("runs %q", ids)
	}
	_ = append(all[0], Request{CustomID: "x"})
	if requests[3].CustomID != "d" || &all[1][0] != &requests[3] {
		t.Error("a run is not a part of its own")
	}
}

// The size that is reckoned is that of the body that the SDK sends.
func TestBodySizeIsThatOfTheBody(t *testing.T) {
	t.Parallel()
	for n := range 4 {
		requests := []Request{}
		for i := range n {
			requests = append(requests, Request{CustomID: string(rune('a' + i)), Params: anthropic.MessageBatchNewParamsRequestParams{
				Model: "m", MaxTokens: 1, Messages: []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock("<&> \u2028 é"))},
			}})
		}
		body, err := json.Marshal(anthropic.MessageBatchNewParams{Requests: requests})
		if err != nil {
			t.Fatal(err)
		}
		if got := bodySize(inspect("", requests).sizes); n > 0 && got != len(body) {
			t.Errorf("%d requests: reckoned %d bytes, sent %d", n, got, len(body))
		}
	}
}

// The digest is that of the requests in their order, and of the run.
func TestDigestTellsBatchesApart(t *testing.T) {
	t.Parallel()
	one := func(id string) Request { return Request{CustomID: id} }
	seen := map[string]string{}
	for name, digest := range map[string]string{
		"ab": inspect("", []Request{one("a"), one("b")}).digest, "ba": inspect("", []Request{one("b"), one("a")}).digest,
		"a": inspect("", []Request{one("a")}).digest, "run": inspect("run", []Request{one("a"), one("b")}).digest, "none": inspect("", nil).digest,
	} {
		if other, taken := seen[digest]; taken {
			t.Errorf("%s and %s have one digest", name, other)
		}
		seen[digest] = name
	}
	if again := inspect("", []Request{one("a"), one("b")}).digest; seen[again] != "ab" {
		t.Error("the digest of equal requests differs")
	}
}

// Of several batches that appear in turn, each begins anew; only one that stays alone is taken.
func TestSightingWantsOneThatStaysAlone(t *testing.T) {
	t.Parallel()
	of := func(ids ...string) (all []anthropic.MessageBatch) {
		for _, id := range ids {
			all = append(all, anthropic.MessageBatch{ID: id})
		}
		return all
	}
	var s sighting
	start := time.Now()
	for i, tt := range []struct {
		at    time.Duration
		ids   []string
		taken bool
	}{
		{0, nil, false}, {5, []string{"a"}, false}, {12, []string{"b"}, false}, {20, []string{"b"}, false}, {21, []string{"a", "b"}, false},
		{40, []string{"b"}, false}, {49, []string{"b"}, false}, {50, []string{"b"}, true},
	} {
		if got := s.saw(of(tt.ids...), start.Add(tt.at*time.Second)); (got != nil) != tt.taken {
			t.Errorf("look %d: took %v", i, got)
		}
	}
	if s.absent() || s.hopeless() || s.looks != 8 {
		t.Errorf("%+v", s)
	}
}

func TestPollWaitGrowsAndIsBounded(t *testing.T) {
	t.Parallel()
	if d := pollWait(0, 0, 100, 1); d != 96*time.Second {
		t.Errorf("chance takes %v of the longest wait, want a fifth", 2*time.Minute-d)
	}
	rapid.Check(t, func(r *rapid.T) {
		first := time.Duration(rapid.Int64Range(-1, int64(time.Hour)).Draw(r, "first"))
		most := time.Duration(rapid.Int64Range(-1, int64(2*time.Hour)).Draw(r, "most"))
		n, dice := rapid.IntRange(0, 200).Draw(r, "n"), rapid.Float64Range(0, 1).Draw(r, "dice")
		d, low, high := pollWait(first, most, n, dice), first, most
		if low <= 0 {
			low = defaultPoll
		}
		if high <= 0 {
			high = defaultMaxPoll
		}
		high = max(low, high)
		if d < low || d > high || pollWait(first, most, n+1, 0) < pollWait(first, most, n, 0) || n > 100 && pollWait(first, most, n, 0) != high {
			r.Fatalf("wait %v, between %v and %v", d, low, high)
		}
	})
}
