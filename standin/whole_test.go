package standin_test

import (
	"compress/gzip"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"holdfast/standin"
)

// opened undoes gzip as far as the bytes go.
func opened(t *testing.T, body string) (text string, err error) {
	t.Helper()
	z, err := gzip.NewReader(strings.NewReader(body))
	if err != nil {
		t.Fatalf("%v in %q", err, body)
	}
	plain, err := io.ReadAll(z)
	return string(plain), err
}

// TestACompressedReplyThatBreaksOffIsStillCompressed: it had the header and plain bytes, which
// every client reports as a broken coding and none as a broken reply.
func TestACompressedReplyThatBreaksOffIsStillCompressed(t *testing.T) {
	for name, step := range map[string]standin.Step{
		"cut":             {Kind: standin.Cut, Gzip: true},
		"cut, no end":     {Kind: standin.Cut, How: standin.Chunk, Gzip: true},
		"truncated error": {Kind: standin.HTTP, Status: 529, Form: standin.FormTruncated, Gzip: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				_, c, url := serve(t, playing(step))
				got := newCaller(t, c, url).ask(operations[0], played, "yes", "accept-encoding", "gzip")
				text, err := opened(t, got.body)
				if got.header.Get("content-encoding") != "gzip" || !errors.Is(err, io.ErrUnexpectedEOF) || !strings.HasPrefix(text, "{") {
					t.Errorf("%v, %q of %+v", err, text, got)
				}
				if broken := got.readErr != nil; broken != (step.How != "" || step.Form != "") {
					t.Errorf("read error %v", got.readErr)
				}
			})
		})
	}
}

// TestResultsOfABatchMeetTheFaults: they go out line by line, and no fault reached them.
func TestResultsOfABatchMeetTheFaults(t *testing.T) {
	results := operation{"", "GET", "/v1/messages/batches/BATCH/results", ""}
	for _, tt := range []struct {
		name  string
		step  standin.Step
		check func(got answered, whole string) bool
	}{
		{"slow headers", standin.Step{Kind: standin.SlowHeaders}, func(got answered, whole string) bool { return got.body == whole && got.readErr == nil }},
		{"clean cut", standin.Step{Kind: standin.Cut}, func(got answered, whole string) bool { return got.body == whole[:len(whole)/2] && got.readErr == nil }},
		{"cut", standin.Step{Kind: standin.Cut, How: standin.Chunk}, func(got answered, whole string) bool {
			return got.body == whole[:len(whole)/2] && errors.Is(got.readErr, io.ErrUnexpectedEOF)
		}},
		{"malformed", standin.Step{Kind: standin.Malformed}, func(got answered, whole string) bool { return got.body == strings.TrimSuffix(whole, "}\n") }},
		{"error", standin.Step{Kind: standin.Error}, func(got answered, _ string) bool {
			return strings.Contains(got.body, "overloaded_error") && got.header.Get("content-type") == "application/json"
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				_, c, url := serve(t, playing(tt.step))
				all := newCaller(t, c, url)
				whole := all.ask(results)
				if strings.Count(whole.body, "\n") != 2 || whole.header.Get("content-type") != "application/x-jsonl" {
					t.Fatalf("%+v", whole)
				}
				got := all.ask(results, played, "yes")
				if got.status != 200 || !tt.check(got, whole.body) || tt.step.Kind != standin.Error && got.header.Get("content-type") != "application/x-jsonl" {
					t.Errorf("%+v of %q", got, whole.body)
				}
			})
		})
	}
	synctest.Test(t, func(t *testing.T) {
		_, c, url := serve(t, playing(standin.Step{Gzip: true}))
		all := newCaller(t, c, url)
		whole, got := all.ask(results), all.ask(results, played, "yes", "accept-encoding", "gzip")
		if text, err := opened(t, got.body); got.header.Get("content-encoding") != "gzip" || err != nil || text != whole.body {
			t.Errorf("gzip: %v, %q of %v", err, text, got.header)
		}
	})
}

// TestAFaultLeavesTheStatusOfTheReply: a cut 404 had become a cut 200.
func TestAFaultLeavesTheStatusOfTheReply(t *testing.T) {
	for _, kind := range []standin.Kind{standin.Cut, standin.Malformed, standin.SlowHeaders, standin.Stall} {
		synctest.Test(t, func(t *testing.T) {
			step := standin.Step{Kind: kind}
			if kind == standin.Stall {
				step.For = time.Second
			}
			_, c, url := serve(t, playing(step))
			all := newCaller(t, c, url)
			got := all.ask(operation{"", "GET", "/v1/files/file_nobody", ""}, played, "yes")
			if got.status != 404 || !strings.HasPrefix(got.body, `{"type":"error"`) {
				t.Errorf("%s: %+v", kind, got)
			}
		})
	}
}

// TestWhoLeavesBeforeAnAnswerInOnePieceHasPaid: a provider does not notice that nobody waits.
func TestWhoLeavesBeforeAnAnswerInOnePieceHasPaid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, c, url := serve(t, standin.Plan{Reply: "one two three", Latency: standin.Latency{FirstToken: standin.Spread{Min: time.Minute, Max: time.Minute}}})
		c.Timeout = time.Second
		if got := post(t, c, url+anthropicPath, question); got.err == nil {
			t.Fatalf("%+v", got)
		}
		c.Timeout = 0
		if got := post(t, c, url+anthropicPath, question); got.status != 200 {
			t.Fatalf("%+v", got)
		}
		synctest.Wait()
		j := s.Journal()
		if input, output := s.Billed(); j[0].Input != 3 || j[0].Output != 3 || j[0].ClosedBy != standin.Client || input != 6 || output != 6 || !j[1].BilledTwice {
			t.Errorf("billed %d and %d: %+v", input, output, j)
		}
		if twice := s.Ledger().Total.PaidTwice; twice.Attempts != 1 || twice.Input != 3 || twice.Output != 3 {
			t.Errorf("paid twice: %+v", twice)
		}
	})
}

// TestARefusalTakesItsTime also in a stream, where it has no content to wait for.
func TestARefusalTakesItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, c, url := serve(t, standin.Plan{
			Steps:   []standin.Step{{Kind: standin.Refusal, Times: 2}},
			Latency: standin.Latency{FirstToken: standin.Spread{Min: time.Minute, Max: time.Minute}},
		})
		for _, body := range []string{question, streamQuestion} {
			began := time.Now()
			if got := post(t, c, url+anthropicPath, body); !strings.Contains(got.body, `"refusal"`) || time.Since(began) != time.Minute {
				t.Errorf("after %v: %+v", time.Since(began), got)
			}
		}
	})
}

// TestAnEmptyBodyCanBeMalformed: there is no last byte to take away.
func TestAnEmptyBodyCanBeMalformed(t *testing.T) {
	empty := recordFrom(t, standin.Plan{Steps: []standin.Step{{Kind: standin.Empty}}}, operations[0])
	synctest.Test(t, func(t *testing.T) {
		_, c, url := serve(t, standin.Plan{Steps: []standin.Step{{Kind: standin.Malformed}}, Tape: empty})
		if got := post(t, c, url+anthropicPath, question); got.status != http.StatusOK || got.body != "" || got.readErr != nil {
			t.Errorf("%+v", got)
		}
	})
}
