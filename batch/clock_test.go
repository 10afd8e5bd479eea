package batch_test

import (
	"bytes"
	"errors"
	"net/http"
	"net/http/httptest"
	"regexp"
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

var stamps = regexp.MustCompile(`"\d{4}-\d\d-\d\dT[^"]+Z"`)

// ahead is an API whose clock is ahead of ours, or behind it.
func ahead(h http.Handler, by time.Duration, dated bool) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet {
			h.ServeHTTP(w, r)
			return
		}
		reply := httptest.NewRecorder()
		h.ServeHTTP(reply, r)
		body := stamps.ReplaceAllFunc(reply.Body.Bytes(), func(stamp []byte) []byte {
			at, _ := time.Parse(time.RFC3339, string(bytes.Trim(stamp, `"`)))
			return []byte(`"` + at.Add(by).Format(time.RFC3339) + `"`)
		})
		w.Header().Set("content-type", reply.Header().Get("content-type"))
		w.Header()["Date"] = nil
		if dated {
			w.Header().Set("date", time.Now().Add(by).UTC().Format(http.TimeFormat))
		}
		w.WriteHeader(reply.Code)
		_, _ = w.Write(body)
	})
}

// The clocks of this machine and of the API need not agree: what is compared is corrected by the API's own Date.
func TestCreateComparesByTheClockOfTheAPI(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		by     time.Duration
		dated  bool
		before bool // one of the same size was made five minutes before
		found  bool
	}{
		{name: "behind", by: -3 * time.Hour, dated: true, found: true},
		{name: "ahead, and another one before", by: 3 * time.Hour, dated: true, before: true, found: true},
		{name: "exact, and another one before", dated: true, before: true, found: true},
		{name: "exact, without dates", before: true, found: true},
		{name: "behind, without dates", by: -3 * time.Hour},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				server, net := standin.New(slow(onPost(standin.Step{}, standin.Step{Kind: standin.Lost}))), testnet.New()
				at := net.Serve(t, "api.test:80", ahead(server, tt.by, tt.dated))
				t.Cleanup(server.Close)
				sdk := anthropic.NewClient(option.WithBaseURL(at.URL), option.WithHTTPClient(net.Client()), option.WithAPIKey("any"))
				if tt.before {
					if _, _, err := (&batch.Client{API: &sdk.Messages.Batches}).Create(t.Context(), requests("other", 3)); err != nil {
						t.Fatal(err)
					}
					time.Sleep(5 * time.Minute)
				} else if _, err := sdk.Messages.Batches.New(t.Context(), anthropic.MessageBatchNewParams{Requests: requests("x", 2)}); err != nil {
					t.Fatal(err)
				}
				client := batch.Client{API: &sdk.Messages.Batches}
				got, _, err := client.Create(t.Context(), requests("a", 3))
				var doubt *batch.DoubtfulError
				journal := server.Journal()
				switch {
				case !tt.found:
					if !errors.As(err, &doubt) {
						t.Errorf("%v, error %v, want doubt", got, err)
					}
				case err != nil || got.ID != "msgbatch_standin_000002":
					t.Errorf("%v, error %v, after %d requests", got, err, len(journal))
				}
			})
		})
	}
}

// A breaker that the lost reply has opened keeps the search waiting, and not from finding.
func TestCreateUnderABreaker(t *testing.T) {
	t.Parallel()
	policy := func() *holdfast.Policy {
		return &holdfast.Policy{Breaker: holdfast.NewBreaker(holdfast.BreakerSettings{Failures: 1})}
	}
	in(t, slow(onPost(standin.Step{Kind: standin.Lost})), func(w *world) {
		w.client.Policy = policy()
		if _, created, err := w.client.Create(w.Context(), requests("a", 3)); err != nil || created.How != batch.ByCount {
			w.Errorf("by %v, error %v", created.How, err)
		}
		w.counts(1, 1)
	})
	in(t, slow(onPost(standin.Step{Kind: standin.HTTP, Status: 529})), func(w *world) {
		w.client.Policy, w.client.Settle = policy(), -1
		var doubt *batch.DoubtfulError
		if _, _, err := w.client.Create(w.Context(), requests("a", 3)); !errors.As(err, &doubt) {
			w.Errorf("error %v, want doubt", err)
		}
		doubt = nil
		if _, _, err := w.client.Create(w.Context(), requests("a", 3)); !errors.Is(err, holdfast.ErrOpen) || errors.As(err, &doubt) {
			w.Errorf("error %v, want that the circuit is open, and no doubt", err)
		}
		w.counts(1, 0)
	})
}
