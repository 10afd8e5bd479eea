package standin_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"holdfast/standin"
)

// line returns the line of the report with that name.
func line(t *testing.T, r standin.Report, name string) standin.Line {
	t.Helper()
	i := slices.IndexFunc(r.Lines, func(l standin.Line) bool { return l.Name == name })
	if i < 0 {
		t.Fatalf("no line %q in %+v", name, r.Lines)
	}
	return r.Lines[i]
}

func fault(k standin.Kind) func(*standin.Exchange) {
	return func(e *standin.Exchange) { e.Fault, e.Input, e.Output = k, 0, 0 }
}

func advising(a standin.Advice) func(*standin.Exchange) {
	return func(e *standin.Exchange) { e.ShouldRetry = a }
}

func code(c string) func(*standin.Exchange) { return func(e *standin.Exchange) { e.Code = c } }

func key(k string) func(*standin.Exchange) { return func(e *standin.Exchange) { e.Key = k } }

// several is n attempts at one call, a second apart, of which the last is answered.
func several(n int) (all []standin.Exchange) {
	for i := range n - 1 {
		all = append(all, posted(1000*i, "a", "x", status(529)))
	}
	return append(all, posted(1000*n, "a", "x"))
}

func TestReportJudges(t *testing.T) {
	second := time.Second
	tests := map[string]struct {
		line      string
		journal   standin.Journal
		verdict   standin.Verdict
		found     string
		exchanges []int
	}{
		"no call":                    {"attempts", nil, standin.Untested, "no call was made", nil},
		"three attempts":             {"attempts", journal(several(3)...), standin.Pass, "3.00 for each call, at most 3", nil},
		"four on average":            {"attempts", journal(several(4)...), standin.Warn, "4.00 for each call, at most 4", []int{1, 2, 3, 4}},
		"eleven once":                {"attempts", journal(append(several(11), posted(20_000, "b", "y"), posted(21_000, "c", "z"), posted(22_000, "d", "z"))...), standin.Warn, "3.50 for each call, at most 11", []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}},
		"no SDK":                     {"retry layers", journal(several(3)...), standin.Untested, "no SDK retried by itself", nil},
		"an SDK alone":               {"retry layers", journal(posted(0, "a", "x", status(529), sdkRetry(0)), posted(500, "a", "x", sdkRetry(1))), standin.Pass, "the SDK retried 1 time and nobody retried around it", nil},
		"an SDK in a loop":           {"retry layers", journal(posted(0, "a", "x", status(529), sdkRetry(0)), posted(500, "a", "x", status(529), sdkRetry(1)), posted(900, "a", "x", sdkRetry(0))), standin.Warn, "an SDK that had used up its retries was called again for the same work 1 time", []int{3}},
		"a new call is no loop":      {"retry layers", journal(posted(0, "a", "x", status(529), sdkRetry(0)), posted(500, "a", "x", sdkRetry(1)), posted(900, "a", "x", sdkRetry(0))), standin.Pass, "the SDK retried 1 time and nobody retried around it", nil},
		"no wait":                    {"waits", journal(several(3)...), standin.Untested, "no reply asked to wait before another attempt", nil},
		"gave up instead":            {"waits", journal(posted(0, "a", "x", status(429), asking(second))), standin.Untested, "no reply asked to wait before another attempt", nil},
		"waited":                     {"waits", journal(posted(0, "a", "x", status(429), asking(second)), posted(1010, "a", "x")), standin.Pass, "all 1 were honoured", nil},
		"a hair early":               {"waits", journal(posted(0, "a", "x", status(429), asking(second)), posted(1000, "a", "x")), standin.Pass, "all 1 were honoured", nil},
		"early":                      {"waits", journal(posted(0, "a", "x", status(429), asking(second)), posted(999, "a", "x", status(429), asking(second)), posted(2100, "a", "x")), standin.Warn, "1 of 2 were honoured; exchange 2 came 989ms after 1 had asked for 1s", []int{2}},
		"no terminal error":          {"terminal errors", journal(several(3)...), standin.Untested, "none came up", nil},
		"a 400 is left":              {"terminal errors", journal(posted(0, "a", "x", status(400))), standin.Pass, "none of 1 was sent again", nil},
		"a 400 is corrected":         {"terminal errors", journal(posted(0, "a", "x", status(400)), posted(50, "a", "y")), standin.Pass, "none of 1 was sent again", nil},
		"a 401 gets another key":     {"terminal errors", journal(posted(0, "a", "x", status(401), key("1")), posted(50, "a", "x", key("2"))), standin.Pass, "none of 1 was sent again", nil},
		"a 401 is repeated":          {"terminal errors", journal(posted(0, "a", "x", status(401), key("1")), posted(50, "a", "x", key("1"))), standin.Warn, "1 of 1 were sent again unchanged", []int{2}},
		"a 400 that asks for it":     {"terminal errors", journal(posted(0, "a", "x", status(400), advising(standin.DoRetry)), posted(50, "a", "x")), standin.Untested, "none came up", nil},
		"a 409 may be repeated":      {"terminal errors", journal(posted(0, "a", "x", status(409)), posted(50, "a", "x")), standin.Untested, "none came up", nil},
		"a cap is left":              {"spend caps", journal(posted(0, "a", "x", status(429), fault(standin.SpendCap))), standin.Pass, "none of 1 was sent again", nil},
		"a cap is run into":          {"spend caps", journal(posted(0, "a", "x", status(429), fault(standin.SpendCap)), posted(50, "a", "x", status(429), fault(standin.SpendCap)), posted(90, "a", "x")), standin.Warn, "2 of 2 were sent again unchanged", []int{2, 3}},
		"a cap by its code":          {"spend caps", journal(posted(0, "a", "x", status(429), code("insufficient_quota")), posted(50, "a", "x")), standin.Warn, "1 of 1 were sent again unchanged", []int{2}},
		"a cap is no terminal error": {"terminal errors", journal(posted(0, "a", "x", status(400), fault(standin.SpendCap)), posted(50, "a", "x")), standin.Untested, "none came up", nil},
		"advice is taken":            {"x-should-retry", journal(posted(0, "a", "x", status(529), advising(standin.DontRetry))), standin.Pass, "none of 1 was sent again", nil},
		"advice is not taken":        {"x-should-retry", journal(posted(0, "a", "x", status(529), advising(standin.DontRetry)), posted(50, "a", "x")), standin.Warn, "1 of 1 were sent again unchanged", []int{2}},
		"nothing billed":             {"payment", journal(posted(0, "a", "x", status(400))), standin.Untested, "nothing was billed", nil},
		"paid once":                  {"payment", journal(several(3)...), standin.Pass, "every call was paid once", nil},
		"paid twice":                 {"payment", journal(posted(0, "a", "x", lost), posted(50, "a", "x")), standin.Warn, "1 attempt billed again for a call that was paid already: 22 tokens", []int{2}},
		"nothing created":            {"creation", journal(several(3)...), standin.Untested, "no batch or file was created", nil},
		"created once":               {"creation", journal(posted(0, "", "x", creating("b1"))), standin.Pass, "1 created, each once", nil},
		"created twice":              {"creation", journal(posted(0, "", "x", creating("b1")), posted(50, "", "x", creating("b2"))), standin.Warn, "1 of 2 are there twice", []int{2}},
		"all arrived":                {"efficiency", journal(several(3)...), standin.Pass, "100.0 % of the billed tokens arrived in a whole answer, 22 of 22", nil},
		"the stand-in cut":           {"efficiency", journal(posted(0, "a", "x", lost), posted(50, "a", "x")), standin.Pass, "50.0 % of the billed tokens arrived in a whole answer, 22 of 44", nil},
		"left while it came":         {"efficiency", journal(posted(0, "a", "x", left), posted(50, "a", "x")), standin.Warn, "73.3 % of the billed tokens arrived in a whole answer, 22 of 30", []int{1}},
		"asked again":                {"efficiency", journal(posted(0, "a", "x"), posted(50, "a", "x")), standin.Warn, "50.0 % of the billed tokens arrived in a whole answer, 22 of 44", []int{2}},
		"patient":                    {"patience", journal(several(3)...), standin.Pass, "no reply was left before its end", nil},
		"impatient":                  {"patience", journal(posted(0, "a", "x", left)), standin.Warn, "1 request left while the reply was coming; 8 tokens were billed for them", []int{1}},
		"left a stall":               {"patience", journal(posted(0, "a", "x", left, fault(standin.Stall))), standin.Pass, "left 1 silent replies and no other", nil},
		"no limit":                   {"rate limits", journal(several(3)...), standin.Untested, "no request met one", nil},
		"many throttled":             {"rate limits", journal(posted(0, "a", "x", status(429), fault(standin.Throttled)), posted(50, "a", "x")), standin.Warn, "50.0 % of the requests were refused by one", []int{1}},
	}
	for name, tt := range tests {
		got := line(t, tt.journal.Report(), tt.line)
		want := standin.Line{Name: tt.line, Verdict: tt.verdict, Found: tt.found, Hint: got.Hint, Exchanges: tt.exchanges}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if (got.Verdict == standin.Warn) != (got.Hint != "" && len(got.Exchanges) > 0) && got.Verdict != standin.Untested {
			t.Errorf("%s: a warning needs a hint and exchanges, and nothing else does: %+v", name, got)
		}
	}
}

func TestReportSaysHowMuchOfTheLimitWasUsed(t *testing.T) {
	use := standin.LimitUse{Requests: standin.BucketUse{Limit: 50, Share: 0.25}, OutputTokens: standin.BucketUse{Limit: 1000, Share: 0.875}, Tokens: standin.BucketUse{Share: 3}}
	good := journal(posted(0, "a", "x"))
	bad := journal(posted(0, "a", "x", status(429), fault(standin.Throttled)), posted(90, "a", "x"))
	for name, tt := range map[string]struct {
		report  standin.Report
		verdict standin.Verdict
		found   string
	}{
		"used":           {good.Report(use), standin.Pass, "0.0 % of the requests were refused by one, and 87.5 % of what the busiest bucket had to give were used"},
		"refused":        {bad.Report(use), standin.Warn, "50.0 % of the requests were refused by one, and 87.5 % of what the busiest bucket had to give were used"},
		"without limits": {good.Report(standin.LimitUse{}), standin.Untested, "no request met one"},
	} {
		if got := line(t, tt.report, "rate limits"); got.Verdict != tt.verdict || got.Found != tt.found {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// The real SDK, called by a loop that retries as well: six requests for one call.
func TestReportFindsALoopAroundTheSDK(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, c, url := serve(t, standin.Plan{Steps: []standin.Step{{Kind: standin.HTTP, Status: 529, Times: 5}}})
		client := sdkClient(c, url)
		for range 2 {
			_, _ = client.Messages.New(t.Context(), params("hello"))
		}
		standin.Expect(t, s.Journal(), standin.Requests(6), standin.PaidOnce(), standin.NothingOpen(), standin.AtMost(1))
		r := s.Report()
		got := line(t, r, "retry layers")
		if diff := cmp.Diff([]int{4}, got.Exchanges); diff != "" || got.Verdict != standin.Warn || r.Calls != 1 || r.AttemptsMax != 6 || r.Answered != 1 {
			t.Errorf("%+v\n%s", got, r)
		}
	})
}

// The real SDK waits as it is told, and the report has nothing against it.
func TestReportPassesTheSDKByItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, c, url := serve(t, standin.Plan{Steps: []standin.Step{{Kind: standin.HTTP, Status: 429, RetryAfter: "3"}, {Kind: standin.HTTP, Status: 529}}})
		client := sdkClient(c, url)
		if _, err := client.Messages.New(t.Context(), params("hello")); err != nil {
			t.Fatal(err)
		}
		standin.Expect(t, s.Journal(), standin.Requests(3), standin.WaitsHonoured(0))
		r := s.Report()
		if r.Verdict() != standin.Pass || r.WaitsAsked != 1 || r.WaitsHonoured != 1 || line(t, r, "retry layers").Verdict != standin.Pass {
			t.Errorf("%s", r)
		}
	})
}

func TestReportSeesTheRushAfterAnOutage(t *testing.T) {
	// One request in half a second for five seconds, ten failures, and then so
	// many at once.
	build := func(rush int) standin.Journal {
		var all []standin.Exchange
		for i := range 10 {
			all = append(all, posted(500*i, "", "calm"))
		}
		for i := range 10 {
			all = append(all, posted(5000+500*i, "", "outage", status(529)))
		}
		for i := range rush {
			all = append(all, posted(20_000+i, "", "rush"))
		}
		return journal(append(all, posted(21_000, "", "later"))...)
	}
	if got := line(t, build(10).Report(), "recovery"); got.Verdict != standin.Pass || got.Found != "no rush after 1 outage" {
		t.Errorf("ten at once: %+v", got)
	}
	got := line(t, build(12).Report(), "recovery")
	if got.Verdict != standin.Warn || got.Found != "12 requests came in the first second after an outage, 2.0 a second before it" || len(got.Exchanges) != 12 || got.Exchanges[0] != 21 {
		t.Errorf("twelve at once: %+v", got)
	}
	if got := line(t, build(12)[10:].Report(), "recovery"); got.Verdict != standin.Untested {
		t.Errorf("nothing before the outage to compare with: %+v", got)
	}
	if got := line(t, build(12)[:20].Report(), "recovery"); got.Verdict != standin.Untested {
		t.Errorf("an outage that has not ended: %+v", got)
	}
}

func TestReportCounts(t *testing.T) {
	r := journal(
		posted(0, "a", "x", status(429), asking(time.Second)), posted(500, "b", "y"), posted(1010, "a", "x", lost), posted(1500, "a", "x"),
		posted(2000, "c", "z", open), posted(2100, "", "", func(e *standin.Exchange) { e.Method, e.Input, e.Output = "GET", 0, 0 }),
	).Report()
	r.Lines = nil
	want := standin.Report{
		Requests: 6, Open: 1, Calls: 3, Answered: 2, Span: 2110 * time.Millisecond, AttemptsMean: 5.0 / 3, AttemptsMax: 3, WaitsAsked: 1, WaitsHonoured: 1,
		TokensBilled: 88, TokensDelivered: 44, Efficiency: 0.5, PaidTwice: standin.Twice{Attempts: 1, Input: 3, Output: 19},
	}
	if diff := cmp.Diff(want, r); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestReportReadsWell(t *testing.T) {
	j := journal(posted(0, "a", "x", status(429), asking(time.Second)), posted(500, "a", "x"), posted(600, "b", "x", open))
	want := `3 requests, 2 calls, 1 answered, in 600ms
1 request still open: the report is not final

PASS  attempts         1.50 for each call, at most 2
-     retry layers     no SDK retried by itself
WARN  waits            0 of 1 were honoured; exchange 2 came 490ms after 1 had asked for 1s
                       exchange 2
                       hint: read retry-after-ms and retry-after on every error and wait at least so long; calls with equal bodies are told apart by the header x-custom-id
-     terminal errors  none came up
-     spend caps       none came up
-     x-should-retry   none came up
PASS  payment          every call was paid once
-     creation         no batch or file was created
PASS  efficiency       50.0 % of the billed tokens arrived in a whole answer, 22 of 44
PASS  patience         no reply was left before its end
-     recovery         there was no outage between two times of normal traffic (an incident in the timeline would test it)
-     rate limits      no request met one (limits in the plan would test it)

1 warning
`
	var b strings.Builder
	if n, err := j.Report().WriteTo(&b); err != nil || n != int64(len(want)) {
		t.Errorf("wrote %d bytes of %d: %v", n, len(want), err)
	}
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestReportHasAVerdictAsAWhole(t *testing.T) {
	for name, tt := range map[string]struct {
		journal standin.Journal
		want    standin.Verdict
		end     string
	}{
		"good":    {journal(several(2)...), standin.Pass, "\nno warnings\n"},
		"bad":     {journal(posted(0, "a", "x"), posted(50, "a", "x")), standin.Warn, "\n2 warnings\n"},
		"nothing": {nil, standin.Untested, "\nnothing to judge\n"},
	} {
		r := tt.journal.Report()
		if got := r.Verdict(); got != tt.want || !strings.HasSuffix(r.String(), tt.end) {
			t.Errorf("%s: %s\n%s", name, got, r)
		}
	}
	if got := (standin.Report{}).Verdict(); got != standin.Untested {
		t.Errorf("without a line: %s", got)
	}
}

func TestReportIsReadableByMachines(t *testing.T) {
	before := journal(append(several(4), posted(9000, "b", "y", left))...).Report()
	text, err := json.Marshal(before)
	if err != nil {
		t.Fatal(err)
	}
	var after standin.Report
	if err := json.Unmarshal(text, &after); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, after); diff != "" || !strings.Contains(string(text), `"verdict":"WARN"`) {
		t.Errorf("%s\n(-want +got):\n%s", text, diff)
	}
}

// A full journal of one body, every reply of which asks to wait, is the worst
// there is: each judge has to stay near linear in it.
func TestReportOfAFullJournalTakesNoMinutes(t *testing.T) {
	t.Parallel()
	all := make([]standin.Exchange, 100_000)
	for i := range all {
		all[i] = posted(i, "", "x", status(429), asking(time.Hour))
	}
	r := journal(all...).Report()
	if r.WaitsAsked != 100_000-10 || r.WaitsHonoured != 0 || r.Calls != 1 {
		t.Errorf("%d waits asked, %d honoured, %d calls", r.WaitsAsked, r.WaitsHonoured, r.Calls)
	}
}

func BenchmarkReport(b *testing.B) {
	all := make([]standin.Exchange, 100_000)
	for i := range all {
		all[i] = posted(i, strings.Repeat("j", 1+i%1000), "x", status(429), asking(time.Hour))
	}
	j := journal(all...)
	for b.Loop() {
		_ = j.Report()
	}
}
