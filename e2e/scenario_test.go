package e2e_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"holdfast"
	"holdfast/internal/testnet"
	"holdfast/standin"
)

// scenario is a fault and what must come of it, whichever door it is met at. Chance is switched off: every draw is the
// whole bound, so the waits are exact.
type scenario struct {
	name     string
	steps    []standin.Step
	policy   holdfast.Policy
	requests int
	gaps     []time.Duration
	status   int  // what the caller sees: 200, the upstream's error, or 0 for an error without one
	lost     bool // the upstream gave no usable reply: doors that answer with responses make up a 5xx
}

func failing(times int, s standin.Step) []standin.Step {
	s.Kind, s.Times = standin.HTTP, times
	return []standin.Step{s}
}

const (
	forEver = -1
	half    = 500 * time.Millisecond
	second  = time.Second
)

var scenarios = []scenario{
	{"healthy", nil, holdfast.Policy{}, 1, nil, 200, false},
	{"429 once", failing(1, standin.Step{Status: 429}), holdfast.Policy{}, 2, []time.Duration{half}, 200, false},
	{"B08 429 twice with retry-after 3", failing(2, standin.Step{Status: 429, RetryAfter: "3"}), holdfast.Policy{}, 3, []time.Duration{3*second + half, 4 * second}, 200, false},
	{"429 for ever", failing(forEver, standin.Step{Status: 429, RetryAfter: "1"}), holdfast.Policy{Attempts: 3}, 3, []time.Duration{second + half, 2 * second}, 429, false},
	{"529 for ever", failing(forEver, standin.Step{Status: 529}), holdfast.Policy{Attempts: 3}, 3, []time.Duration{half, second}, 529, false},
	{"B31 503 for ever", failing(forEver, standin.Step{Status: 503}), holdfast.Policy{}, 4, []time.Duration{half, second, 2 * second}, 503, false},
	{"500 once", failing(1, standin.Step{Status: 500}), holdfast.Policy{}, 2, []time.Duration{half}, 200, false},
	{"502 in HTML once", failing(1, standin.Step{Status: 502, Body: "<html><h1>Bad Gateway</h1></html>", ContentType: "text/html"}), holdfast.Policy{}, 2, []time.Duration{half}, 200, false},
	{"408 once", failing(1, standin.Step{Status: 408}), holdfast.Policy{}, 2, []time.Duration{half}, 200, false},
	{"409 once", failing(1, standin.Step{Status: 409}), holdfast.Policy{}, 2, []time.Duration{half}, 200, false},
	{"B30 401", failing(forEver, standin.Step{Status: 401}), holdfast.Policy{}, 1, nil, 401, false},
	{"400", failing(forEver, standin.Step{Status: 400}), holdfast.Policy{}, 1, nil, 400, false},
	{"404", failing(forEver, standin.Step{Status: 404}), holdfast.Policy{}, 1, nil, 404, false},
	{"413 in HTML", failing(forEver, standin.Step{Status: 413, Body: "<html>too large</html>", ContentType: "text/html"}), holdfast.Policy{}, 1, nil, 413, false},

	{"B01 429 with retry-after 90", failing(1, standin.Step{Status: 429, RetryAfter: "90"}), holdfast.Policy{}, 1, nil, 429, false},
	{"B02 429 with retry-after-ms 1800000", failing(1, standin.Step{Status: 429, Header: standin.Header{"retry-after-ms": {"1800000"}}}), holdfast.Policy{}, 1, nil, 429, false},
	{"B04 429 with retry-after soonish", failing(3, standin.Step{Status: 429, RetryAfter: "soonish"}), holdfast.Policy{}, 4, []time.Duration{half, second, 2 * second}, 200, false},
	{"B05 429 with a negative retry-after", failing(1, standin.Step{Status: 429, RetryAfter: "-5"}), holdfast.Policy{}, 2, []time.Duration{half}, 200, false},
	{"B05 429 with retry-after 3.5", failing(1, standin.Step{Status: 429, RetryAfter: "3.5"}), holdfast.Policy{}, 2, []time.Duration{4 * second}, 200, false},
	{"B05 429 with retry-after 1e3", failing(1, standin.Step{Status: 429, RetryAfter: "1e3"}), holdfast.Policy{}, 2, []time.Duration{half}, 200, false},
	{"B05 429 with retry-after 0", failing(1, standin.Step{Status: 429, RetryAfter: "0"}), holdfast.Policy{}, 2, []time.Duration{half}, 200, false},
	{"B05 429 with retry-after 120 and leave to wait", failing(1, standin.Step{Status: 429, RetryAfter: "120"}), holdfast.Policy{MaxServerWait: 2 * time.Minute}, 2, []time.Duration{2*time.Minute + half}, 200, false},
	{"B05 429 with a date", failing(1, standin.Step{Status: 429, RetryAfter: "Sat, 01 Jan 2000 00:00:03 GMT"}), holdfast.Policy{}, 2, []time.Duration{3*second + half}, 200, false},
	{"B07 503 with retry-after 2147483", failing(1, standin.Step{Status: 503, RetryAfter: "2147483"}), holdfast.Policy{}, 1, nil, 503, false},
	{"B10 524 with retry-after 20", failing(1, standin.Step{Status: 524, RetryAfter: "20"}), holdfast.Policy{}, 2, []time.Duration{20*second + half}, 200, false},
	{"B10 503 with a date in the past", failing(1, standin.Step{Status: 503, RetryAfter: "Fri, 31 Dec 1999 23:59:00 GMT"}), holdfast.Policy{}, 2, []time.Duration{half}, 200, false},
	{"B10 502 with error.retry_after", failing(1, standin.Step{Status: 502, Body: `{"error":{"type":"api_error","message":"x","retry_after":7}}`}), holdfast.Policy{}, 2, []time.Duration{7*second + half}, 200, false},
	{"B11 429 with an exhausted bucket", failing(1, standin.Step{Status: 429, Header: standin.Header{
		"anthropic-ratelimit-requests-remaining": {"0"}, "anthropic-ratelimit-requests-reset": {"2000-01-01T00:00:20Z"},
		"anthropic-ratelimit-tokens-remaining": {"16000"}, "anthropic-ratelimit-tokens-reset": {"2000-01-01T00:01:00Z"},
	}}), holdfast.Policy{}, 2, []time.Duration{20*second + half}, 200, false},
	{"B13 429 with a reset in the past", failing(1, standin.Step{Status: 429, Header: standin.Header{"x-ratelimit-reset": {"946684795"}}}), holdfast.Policy{}, 2, []time.Duration{half}, 200, false},
	{"B14 429 from a clock that runs 30 s behind", failing(1, standin.Step{Status: 429, Header: standin.Header{
		"date": {"Fri, 31 Dec 1999 23:59:30 GMT"}, "anthropic-ratelimit-requests-remaining": {"0"}, "anthropic-ratelimit-requests-reset": {"1999-12-31T23:59:40Z"},
	}}), holdfast.Policy{}, 2, []time.Duration{10*second + half}, 200, false},
	{"B14 429 from a clock that runs 30 s ahead", failing(1, standin.Step{Status: 429, Header: standin.Header{
		"date": {"Sat, 01 Jan 2000 00:00:30 GMT"}, "anthropic-ratelimit-requests-remaining": {"0"}, "anthropic-ratelimit-requests-reset": {"2000-01-01T00:00:40Z"},
	}}), holdfast.Policy{}, 2, []time.Duration{10*second + half}, 200, false},

	{"B17 429 of a spent balance", failing(forEver, standin.Step{Status: 429, Body: `{"error":{"type":"insufficient_quota","code":"credit_balance_exhausted","message":"x"}}`}), holdfast.Policy{}, 1, nil, 429, false},
	{"429 of a monthly cap", failing(forEver, standin.Step{Status: 429, Body: `{"type":"error","error":{"type":"rate_limit_error","message":"x","details":{"error_code":"enforced_spend_limit_reached"}}}`}), holdfast.Policy{}, 1, nil, 429, false},
	{"400 of a limit that the customer set", failing(forEver, standin.Step{Status: 400, Body: `{"type":"error","error":{"type":"invalid_request_error","message":"You have reached your specified API usage limits. You will regain access on 2026-12-01 at 00:00 UTC."}}`}), holdfast.Policy{}, 1, nil, 400, false},
	{"402", failing(forEver, standin.Step{Status: 402}), holdfast.Policy{}, 1, nil, 402, false},
	{"B18 429 worded like a spent allowance", failing(1, standin.Step{Status: 429, Body: `{"status":429,"error":"INSUFFICIENT QUOTA","message":"too many concurrent requests"}`}), holdfast.Policy{}, 2, []time.Duration{half}, 200, false},
	{"B20 429 with a delay of days", failing(forEver, standin.Step{Status: 429, RetryAfter: "1382400", Message: "monthly usage limit"}), holdfast.Policy{}, 1, nil, 429, false},
	{"B23 429 that speaks of too many tokens", failing(1, standin.Step{Status: 429, Body: `{"message":"Too many tokens, please wait before trying again"}`, Header: standin.Header{"x-amzn-errortype": {"ThrottlingException"}}}), holdfast.Policy{}, 2, []time.Duration{half}, 200, false},
	{"B24 400 of a prompt too long", failing(forEver, standin.Step{Status: 400, Body: `{"error":{"type":"invalid_request_error","code":"context_length_exceeded","message":"x"}}`}), holdfast.Policy{}, 1, nil, 400, false},
	{"529 that says false", failing(forEver, standin.Step{Status: 529, Header: standin.Header{"x-should-retry": {"false"}}}), holdfast.Policy{}, 1, nil, 529, false},
	{"400 that says true", failing(1, standin.Step{Status: 400, Header: standin.Header{"x-should-retry": {"true"}}}), holdfast.Policy{}, 2, []time.Duration{half}, 200, false},

	{"B42 a wait beyond the deadline", failing(forEver, standin.Step{Status: 503, RetryAfter: "10"}), holdfast.Policy{Deadline: second}, 1, nil, 503, false},
	{"B59 reset after the request was read", []standin.Step{{Kind: standin.Reset}}, holdfast.Policy{}, 2, []time.Duration{half}, 200, false},
	{"reset for ever", []standin.Step{{Kind: standin.Reset, Times: forEver}}, holdfast.Policy{Attempts: 2}, 2, []time.Duration{half}, 0, true},
	{"silence once", []standin.Step{{Kind: standin.Timeout}}, holdfast.Policy{AttemptTimeout: 20 * second}, 2, []time.Duration{20*second + half}, 200, false},
	{"silence for ever", []standin.Step{{Kind: standin.Timeout, Times: forEver}}, holdfast.Policy{Attempts: 2, AttemptTimeout: 20 * second}, 2, []time.Duration{20*second + half}, 0, true},
	{"an answer that takes 15 s", []standin.Step{{Kind: standin.OK, Delay: 15 * second}}, holdfast.Policy{AttemptTimeout: 20 * second}, 1, nil, 200, false},
}

// Every scenario through every door: the same attempts, the same waits, the same outcome, by the stand-in's journal.
func TestOneScenarioManyDoors(t *testing.T) {
	for _, s := range scenarios {
		for _, d := range doors {
			t.Run(s.name+"/"+d.name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { s.through(t, d) })
			})
		}
	}
}

func (s scenario) through(t *testing.T, d door) {
	judge := standin.New(standin.Plan{Steps: s.steps})
	net := testnet.New()
	server := net.Serve(t, "api.test:80", judge)
	p := s.policy
	p.Dice = func() float64 { return 1 }
	got := d.call(t.Context(), &p, net.Client(), server.URL)
	expectResult(t, s, d, got)

	journal := judge.Journal()
	if len(journal) != s.requests {
		t.Errorf("the stand-in saw %d requests, want %d", len(journal), s.requests)
	}
	if gaps := journal.Gaps(); !slices.Equal(gaps, s.gaps) {
		t.Errorf("gaps %v, want %v", gaps, s.gaps)
	}
	for _, x := range journal {
		if x.Digest != journal[0].Digest { // B57
			t.Errorf("request %d carried another body than the first", x.Number)
		}
		if x.Path != d.path {
			t.Errorf("request %d went to %s", x.Number, x.Path)
		}
	}
	// After every fault a healthy call on the same pool must succeed.
	judge.Reset()
	healthy := standin.New(standin.Plan{})
	again := net.Serve(t, "healthy.test:80", healthy)
	if got := d.call(t.Context(), &p, net.Client(), again.URL); got.status != http.StatusOK {
		t.Errorf("a healthy call afterwards: %d, %v", got.status, got.err)
	}
}

func expectResult(t *testing.T, s scenario, d door, got result) {
	t.Helper()
	madeUp := s.lost && !strings.HasPrefix(d.name, "Do ") // a response in place of an error, so that no SDK repeats it
	switch {
	case madeUp && (got.status < 500 || !got.stopped):
		t.Errorf("a lost call became %d, stopped %v, %v", got.status, got.stopped, got.err)
	case !madeUp && got.status != s.status:
		t.Errorf("the caller saw %d, want %d: %v", got.status, s.status, got.err)
	case !madeUp && s.status == 200 && got.err != nil:
		t.Errorf("an answer with an error: %v", got.err)
	case s.status != 200 && !strings.HasPrefix(d.name, "Do ") && !got.stopped:
		t.Error("nothing keeps an SDK from repeating the final error")
	}
}
