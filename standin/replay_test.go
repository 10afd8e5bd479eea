package standin_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"holdfast/standin"
)

// TestATapePlaysAndFaultsLieOverIt records a stand-in, and plays it in another whose own reply would be another.
func TestATapePlaysAndFaultsLieOverIt(t *testing.T) {
	get, results := operation{"", "GET", "/v1/messages/batches/BATCH", ""}, operation{"", "GET", "/v1/messages/batches/BATCH/results", ""}
	create := operation{"", "POST", "/v1/messages/batches", batchItems}
	recording := recordFrom(t, standin.Plan{Reply: "four five six"}, operations[0], operations[1], create, get, get, results, operations[17])
	play := func(t *testing.T, o operation, steps ...standin.Step) (*standin.Server, answered) {
		s, c, url := serve(t, standin.Plan{Tape: recording, Steps: steps})
		got := caller{t: t, client: c, url: url, batch: "msgbatch_standin_000001"}.ask(o)
		synctest.Wait()
		return s, got
	}
	billed := func(s *standin.Server) [2]int {
		input, output := s.Billed()
		return [2]int{input, output}
	}
	for _, tt := range []struct {
		name   string
		o      operation
		step   standin.Step
		status int
		events []string // of a stream
		holds  string
		billed [2]int
	}{
		{"message", operations[0], standin.Step{}, 200, nil, `"four five six"`, paid},
		{"stream", operations[1], standin.Step{}, 200, list(start3, delta, delta, delta, end3), `"four "`, paid},
		{"cut after two", operations[1], standin.Step{Kind: standin.Cut, After: 2}, 200, list(start3, delta, delta), `"five "`, [2]int{3, 2}},
		{"error first", operations[1], standin.Step{Kind: standin.Error, At: standin.First}, 200, list("error"), `"overloaded_error"`, free},
		{"error in one piece", operations[0], standin.Step{Kind: standin.Error}, 200, nil, `"overloaded_error"`, free},
		{"cut in one piece", operations[0], standin.Step{Kind: standin.Cut}, 200, nil, `{"model"`, paid},
		{"framing", operations[1], standin.Step{Lines: standin.CRLF, Between: standin.BetweenPing, Gzip: true}, 200,
			list("message_start", "ping", "content_block_start", "ping", "ping", "ping", delta, "ping", delta, "ping", delta, "ping", "content_block_stop", "ping", "message_delta", "ping", "message_stop"), "event: ping\r\n", paid},
		{"status over it", operations[1], standin.Step{Kind: standin.HTTP, Status: 529}, 529, nil, `"overloaded_error"`, free},
		{"refusal in its place", operations[0], standin.Step{Kind: standin.Refusal}, 200, nil, `"refusal"`, free},
		{"slow headers", operations[0], standin.Step{Kind: standin.SlowHeaders}, 200, nil, `"four five six"`, paid},
		{"chat stream without its usage", operations[17], standin.Step{}, 200, nil, "data: [DONE]", free},
		{"batch", create, standin.Step{}, 200, nil, `"in_progress"`, free},
		{"results", results, standin.Step{}, 200, nil, `"four five six"`, free},
		{"not on the tape", operations[9], standin.Step{}, 404, nil, "The tape holds no exchange for this request", free},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, got := play(t, tt.o, tt.step)
				if got.status != tt.status || got.readErr != nil || !strings.Contains(got.body, tt.holds) || billed(s) != tt.billed {
					t.Errorf("billed %v: %+v", billed(s), got)
				}
				if tt.events != nil {
					if diff := cmp.Diff(tt.events, names(t, got.body)); diff != "" {
						t.Errorf("events (-want +got):\n%s", diff)
					}
				}
				if e := s.Journal()[0]; e.RequestID != got.header.Get("request-id") {
					t.Errorf("the journal has %s, the client %s", e.RequestID, got.header.Get("request-id"))
				}
			})
		})
	}
	synctest.Test(t, func(t *testing.T) { // in its order, and the last again
		_, c, url := serve(t, standin.Plan{Tape: recording})
		all := caller{t: t, client: c, url: url, batch: "msgbatch_standin_000001"}
		for _, want := range []string{`"in_progress"`, `"ended"`, `"ended"`} {
			if got := all.ask(get); !strings.Contains(got.body, want) {
				t.Errorf("%+v", got)
			}
		}
		if got := all.ask(operations[0], "x-api-key", "bad"); got.status != 401 {
			t.Errorf("a bad key: %+v", got)
		}
	})
	synctest.Test(t, func(t *testing.T) { // limits hold over a tape
		_, c, url := serve(t, standin.Plan{Tape: recording, Limits: &standin.Limits{RequestsPerMinute: 1}})
		first, second := post(t, c, url+anthropicPath, streamQuestion), post(t, c, url+anthropicPath, streamQuestion)
		if first.status != 200 || first.header.Get("anthropic-ratelimit-requests-limit") != "1" || second.status != 429 || second.header.Get("retry-after") != "60" {
			t.Errorf("%+v, %+v", first, second)
		}
	})
}

// TestATapeOfACompressedReply is spoiled in what it says, not in its coding.
func TestATapeOfACompressedReply(t *testing.T) {
	recording := recordFrom(t, standin.Plan{Reply: "four five six", Steps: []standin.Step{{Gzip: true, Times: -1}}}, operations[0], operations[1])
	synctest.Test(t, func(t *testing.T) {
		_, c, url := serve(t, standin.Plan{Tape: recording, Steps: []standin.Step{
			{}, {Kind: standin.Malformed}, {Kind: standin.Error}, {Kind: standin.SlowHeaders, Gap: time.Millisecond}, {Gzip: true},
		}})
		for i, want := range []string{`"four five six"`, `"four five six"`, `"overloaded_error"`, `"four five six"`, `"four five six"`} {
			if got := post(t, c, url+anthropicPath, question); got.status != 200 || got.readErr != nil || !strings.Contains(got.body, want) {
				t.Errorf("step %d: %+v", i, got)
			}
		}
	})
}
