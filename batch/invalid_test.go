package batch_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/anthropics/anthropic-sdk-go/v2"

	"holdfast/batch"
	"holdfast/standin"
)

// B154: two requests with one id are refused before anything is sent, like all else that the API would refuse; every place
// is named, and no id.
func TestB154_BatchWithMistakesIsNotSent(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 65)
	for _, tt := range []struct {
		name   string
		ids    []string
		places []string
	}{
		{"none", nil, []string{"requests holds 0, of 1 to 100000"}},
		{"one id twice", []string{"a", "b", "a"}, []string{"requests[2].custom_id is that of requests[0] too"}},
		{"one id three times", []string{"a", "a", "a"}, []string{"requests[1].custom_id is that of requests[0] too", "requests[2].custom_id is that of requests[0] too"}},
		{"every mistake", []string{"", "with space", long, "ünd", "ok"}, []string{
			"requests[0].custom_id is empty", "requests[1].custom_id has characters other than letters, digits, _ and -",
			"requests[2].custom_id has 65 bytes, of at most 64", "requests[3].custom_id has characters other than letters, digits, _ and -",
		}},
	} {
		in(t, standin.Plan{}, func(w *world) {
			var wanted []batch.Request
			for _, id := range tt.ids {
				wanted = append(wanted, request(id))
			}
			_, _, err := w.client.Create(w.Context(), wanted)
			var invalid *batch.InvalidError
			if !errors.As(err, &invalid) {
				w.Fatalf("%s: error %v", tt.name, err)
			}
			var got []string
			for _, p := range invalid.Places {
				got = append(got, p.Path+" "+p.Text)
				if !strings.Contains(err.Error(), p.Path+" "+p.Text) {
					w.Errorf("%s: %q does not name %s", tt.name, err, p.Path)
				}
			}
			if !slices.Equal(got, tt.places) || invalid.Hint() == "" {
				w.Errorf("%s: places %q, want %q", tt.name, got, tt.places)
			}
			w.tellsNothing(err)
			if len(w.server.Journal()) != 0 {
				w.Errorf("%s: %d requests were sent", tt.name, len(w.server.Journal()))
			}
		})
	}
}

// What is refused here is what the stand-in, in the words of the API, refuses.
func TestInvalidBatchesAreThoseThatTheAPIRefuses(t *testing.T) {
	t.Parallel()
	in(t, standin.Plan{}, func(w *world) {
		for _, id := range []string{"a", "A-1_z", strings.Repeat("x", 64), strings.Repeat("x", 65), "", "a b", "a.b", "é", "a\n", "a/b"} {
			_, _, err := w.client.Create(w.Context(), []batch.Request{request(id)})
			var invalid *batch.InvalidError
			_, refused := w.sdk.Messages.Batches.New(w.Context(), anthropic.MessageBatchNewParams{Requests: []batch.Request{request(id)}})
			if errors.As(err, &invalid) != (statusOf(refused) == 400) {
				w.Errorf("%q: %v here, %v there", id, err, refused)
			}
		}
	})
}

func TestManyMistakesAreCounted(t *testing.T) {
	t.Parallel()
	in(t, standin.Plan{}, func(w *world) {
		_, _, err := w.client.Create(w.Context(), make([]batch.Request, 25))
		if err == nil || !strings.HasSuffix(err.Error(), "; and 15 more") {
			w.Errorf("error %v", err)
		}
	})
}

func TestSplitFindsMistakes(t *testing.T) {
	t.Parallel()
	if runs, err := batch.Split(requests("a", 9)); err != nil || len(runs) != 1 || len(runs[0]) != 9 {
		t.Errorf("%d runs, error %v", len(runs), err)
	}
	var invalid *batch.InvalidError
	if _, err := batch.Split([]batch.Request{request("a"), request("b"), request("a")}); !errors.As(err, &invalid) || invalid.Places[0].Path != "requests[2].custom_id" {
		t.Errorf("one id twice: error %v", err)
	}
	if runs, err := batch.Split(nil); err != nil || len(runs) != 0 {
		t.Errorf("%d runs of nothing, error %v", len(runs), err)
	}
}
