package standin

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"holdfast/internal/wire"
)

var morning = time.Date(2026, 11, 30, 9, 0, 0, 250_000_000, time.UTC)

// after returns the time so long after the start.
func after(d time.Duration) time.Time { return morning.Add(d) }

func opus(input int) claim {
	return claim{key: "good", model: "claude-opus-5", dialect: wire.DialectAnthropic, input: input, maxTokens: 1_000}
}

func gpt(input, maxTokens int) claim {
	return claim{key: "good", model: "gpt-4o", dialect: wire.DialectOpenAI, input: input, maxTokens: maxTokens}
}

// told is the part of a denial that a client sees.
type told struct {
	Name, Type, Code, RetryAfter, Message string
	Wait                                  time.Duration
}

func tell(d *denial) told {
	if d == nil {
		return told{}
	}
	return told{Name: d.name(), Type: d.errorType(), Code: d.code(), RetryAfter: d.retryAfter(), Message: d.message(), Wait: d.wait}
}

// mustAdmit lets the claim in or ends the test.
func mustAdmit(t *testing.T, th *throttle, at time.Duration, limits *Limits, c claim) *ticket {
	t.Helper()
	k, d := th.admit(after(at), limits, c)
	if d != nil {
		t.Fatalf("at %v: denied: %+v", at, tell(d))
	}
	return k
}

func TestEmptyBucketIsToldInTheWordsOfTheAPI(t *testing.T) {
	const details = " For details, refer to: https://docs.claude.com/en/api/rate-limits. You can see the response headers for current usage. Please reduce the prompt length or the maximum tokens requested, or try again later."
	counting := claim{key: "good", model: "claude-opus-5", dialect: wire.DialectAnthropic, pool: poolCountTokens}
	for _, tt := range []struct {
		name   string
		limits Limits
		before []claim
		output int // of each of them
		claim  claim
		want   told
	}{
		{"requests", Limits{RequestsPerMinute: 2}, []claim{opus(1), opus(1)}, 0, opus(1), told{
			"requests", "rate_limit_error", "", "30", "This request would exceed the rate limit for your organization (org_standin) of 2 requests per minute." + details, 30 * time.Second}},
		{"input tokens, rounded up", Limits{InputTokensPerMinute: 20_000}, []claim{opus(19_000)}, 0, opus(1_500), told{
			"input_tokens", "rate_limit_error", "", "2", "This request would exceed the rate limit for your organization (org_standin) of 20,000 input tokens per minute." + details, 1500 * time.Millisecond}},
		{"output tokens in debt", Limits{OutputTokensPerMinute: 6_000}, []claim{opus(1)}, 8_999, opus(1), told{
			"output_tokens", "rate_limit_error", "", "30", "This request would exceed the rate limit for your organization (org_standin) of 6,000 output tokens per minute." + details, 30 * time.Second}},
		{"prompt above the whole limit", Limits{InputTokensPerMinute: 1_000_000}, nil, 0, opus(1_000_001), told{
			"input_tokens", "rate_limit_error", "", "", "This request would exceed the rate limit for your organization (org_standin) of 1,000,000 input tokens per minute." + details, neverFits}},
		{"the longest wait of several", Limits{RequestsPerMinute: 1, InputTokensPerMinute: 100}, []claim{opus(100)}, 0, opus(10), told{
			"requests", "rate_limit_error", "", "60", "This request would exceed the rate limit for your organization (org_standin) of 1 requests per minute." + details, time.Minute}},
		{"count_tokens", Limits{CountTokensPerMinute: 1}, []claim{counting}, 0, counting, told{
			"count_tokens", "rate_limit_error", "", "60", "This request would exceed the rate limit for your organization (org_standin) of 1 requests per minute." + details, time.Minute}},
		{"concurrent", Limits{Concurrent: 1}, []claim{opus(1)}, 0, opus(1), told{
			"concurrent", "rate_limit_error", "", "", "Number of concurrent connections has exceeded your rate limit. Please try again later or contact sales to discuss your options for a rate limit increase.", 0}},
		{"OpenAI requests", Limits{RequestsPerMinute: 3000}, many(3000, gpt(1, 1)), 0, gpt(1, 1), told{
			"requests", "requests", "rate_limit_exceeded", "1", "Rate limit reached for gpt-4o in organization org_standin on requests per min (RPM): Limit 3000, Used 3000, Requested 1. Please try again in 20ms.", 20 * time.Millisecond}},
		{"OpenAI tokens, as they were once reported", Limits{TokensPerMinute: 30_000}, []claim{gpt(14_567, 0)}, 0, gpt(7, 24_754), told{
			"tokens", "tokens", "rate_limit_exceeded", "19", "Rate limit reached for gpt-4o in organization org_standin on tokens per min (TPM): Limit 30000, Used 14567, Requested 24754. Please try again in 18.642s.", 18_642 * time.Millisecond}},
		{"OpenAI too large", Limits{TokensPerMinute: 30_000}, nil, 0, gpt(36_278, 5), told{
			"tokens", "tokens", "rate_limit_exceeded", "", "Request too large for gpt-4o in organization org_standin on tokens per min (TPM): Limit 30000, Requested 36278. The input or output tokens must be reduced in order to run successfully.", neverFits}},
		{"OpenAI concurrent", Limits{Concurrent: 1}, []claim{gpt(1, 1)}, 0, gpt(1, 1), told{
			"concurrent", "rate_limit_exceeded", "rate_limit_exceeded", "", "Rate limit reached for gpt-4o in organization org_standin on concurrent requests: Limit 1. Please try again later.", 0}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			th := newThrottle(morning)
			for _, c := range tt.before {
				mustAdmit(t, th, 0, &tt.limits, c).settle(morning, c.input, tt.output)
			}
			k, d := th.admit(morning, &tt.limits, tt.claim)
			if diff := cmp.Diff(tt.want, tell(d)); diff != "" || k != nil {
				t.Errorf("ticket %v, denial (-want +got):\n%s", k, diff)
			}
		})
	}
}

func many(n int, c claim) []claim {
	all := make([]claim, n)
	for i := range all {
		all[i] = c
	}
	return all
}

func TestDeniedRequestTakesNothing(t *testing.T) {
	th, limits := newThrottle(morning), &Limits{RequestsPerMinute: 10, InputTokensPerMinute: 100}
	mustAdmit(t, th, 0, limits, opus(60))
	for range 5 {
		if _, d := th.admit(morning, limits, opus(41)); tell(d).Name != "input_tokens" {
			t.Fatalf("denial %+v, want one for input tokens", tell(d))
		}
	}
	use := th.use(morning)[0]
	if use.Requests.Used != 1 || use.InputTokens.Used != 60 || use.Admitted != 1 || use.Denied != 5 {
		t.Errorf("use %+v, want 1 request, 60 tokens, 5 denied", use)
	}
	mustAdmit(t, th, 0, limits, opus(40))
}

func TestBucketsBelongToKeyAndModelGroup(t *testing.T) {
	limits := &Limits{RequestsPerMinute: 1, CountTokensPerMinute: 1}
	claims := []claim{
		{key: "a", model: "claude-opus-4-5-20251101"},
		{key: "b", model: "claude-opus-4-5-20251101"},
		{key: "a", model: "claude-opus-5"},
		{key: "a", model: "claude-opus-5", dialect: wire.DialectOpenAI},
		{key: "a", model: "claude-opus-5", pool: poolCountTokens},
	}
	th := newThrottle(morning)
	for _, c := range claims {
		mustAdmit(t, th, 0, limits, c)
	}
	claims[0].model, claims[4].model = "claude-opus-4-8", "claude-haiku-4-5" // the same group, the same pool
	for i, c := range claims {
		if _, d := th.admit(morning, limits, c); d == nil {
			t.Errorf("claim %d found another bucket", i)
		}
	}
	for range 3 {
		mustAdmit(t, th, 0, limits, claim{key: "a", pool: poolOther})
	}
}

func TestSettlingPutsTheChargeRight(t *testing.T) {
	limits := &Limits{InputTokensPerMinute: 1_000, OutputTokensPerMinute: 600}
	th := newThrottle(morning)
	k := mustAdmit(t, th, 0, limits, opus(400))
	left := func(at time.Duration) (in, out int64) {
		v := th.peek(after(at), limits, opus(0))
		return v.rows[kindInput].remaining, v.rows[kindOutput].remaining
	}
	for _, tt := range []struct {
		name          string
		at            time.Duration
		input, output int
		in, out       int64
	}{
		{"most was read from a cache", 0, 100, 0, 900, 600},
		{"an answer comes, word by word", 0, 100, 30, 900, 570},
		{"more of it", 0, 100, 50, 900, 550},
		{"told once more", 0, 100, 50, 900, 550},
		{"more input than estimated", 0, 1_200, 50, 0, 550},
		{"a long answer leaves a debt", time.Second, 1_200, 1_250, 0, 0},
	} {
		k.settle(after(tt.at), tt.input, tt.output)
		if in, out := left(tt.at); in != tt.in || out != tt.out {
			t.Errorf("%s: %d input and %d output tokens left, want %d, %d", tt.name, in, out, tt.in, tt.out)
		}
	}
	_, d := th.admit(after(time.Second), limits, opus(0)) // 1,240 out of 600: one is there after 641 have come back
	if got, want := tell(d).Wait, 64_100*time.Millisecond; got != want {
		t.Errorf("wait %v, want %v", got, want)
	}
}

func TestOpenAIChargesUpFrontForGood(t *testing.T) {
	th, limits := newThrottle(morning), &Limits{InputTokensPerMinute: 600, OutputTokensPerMinute: 400}
	mustAdmit(t, th, 0, limits, gpt(50, 700)).settle(morning, 50, 10)
	if got := th.peek(morning, limits, gpt(0, 0)).rows[kindTokens].remaining; got != 300 {
		t.Errorf("%d of 1000 tokens left after a request with max_tokens 700, want 300", got)
	}
}

func TestPlaceAmongConcurrentRequestsIsGivenBackOnce(t *testing.T) {
	th, limits := newThrottle(morning), &Limits{Concurrent: 2}
	first := mustAdmit(t, th, 0, limits, opus(1))
	mustAdmit(t, th, 0, limits, claim{key: "good", pool: poolOther})
	if _, d := th.admit(morning, limits, gpt(1, 1)); tell(d).Name != "concurrent" {
		t.Fatalf("a third request of the key came in: %+v", tell(d))
	}
	mustAdmit(t, th, 0, limits, claim{key: "other"})
	first.done()
	first.done()
	mustAdmit(t, th, 0, limits, opus(1))
	if _, d := th.admit(morning, limits, opus(1)); tell(d).Name != "concurrent" {
		t.Errorf("a ticket given back twice made room for two: %+v", tell(d))
	}
}

func TestWindowFailsBurstsBelowTheLimit(t *testing.T) {
	th, limits := newThrottle(morning), &Limits{RequestsPerMinute: 60, InputTokensPerMinute: 6_000, OutputTokensPerMinute: 60, Window: time.Second}
	k := mustAdmit(t, th, 0, limits, opus(10))
	k.settle(morning, 10, 50) // output is no burst
	_, d := th.admit(morning, limits, opus(10))
	if got := tell(d); got.Name != "requests" || got.Wait != time.Second || d.rows[kindRequests].remaining != 59 {
		t.Errorf("denial %+v with %d remaining; want requests, 1s, 59", got, d.rows[kindRequests].remaining)
	}
	mustAdmit(t, th, time.Second, limits, opus(5_000)) // above the window's 100, let in by a full bucket
	_, d = th.admit(after(2*time.Second), limits, opus(100))
	if got := tell(d); got.Name != "input_tokens" || got.Wait != 49*time.Second {
		t.Errorf("denial %+v; want input tokens, 49s", got)
	}
}

func TestGrowthIsHeldDownToTheMinuteBefore(t *testing.T) {
	limits := &Limits{Growth: 1.5, RequestsPerMinute: 1_200}
	const free = 120 // a tenth of the requests per minute
	burst := func(th *throttle, at time.Duration, c claim) (admitted int, last *denial) {
		for {
			_, d := th.admit(after(at), limits, c)
			if d != nil {
				return admitted, d
			}
			admitted++
		}
	}
	for dialect, want := range map[wire.Dialect]told{
		wire.DialectAnthropic: {"growth", "rate_limit_error", "ramp_limit_exceeded", "60", "This request would exceed your organization's maximum usage increase rate for requests per minute. Please scale up your requests more gradually to stay within the acceleration limit.", time.Minute},
		wire.DialectOpenAI:    {"growth", "rate_limit_exceeded", "slow_down", "60", "Your requests are growing too fast. Please reduce your request rate to its earlier level, keep it steady for a while, and then raise it slowly.", time.Minute},
	} {
		th, c := newThrottle(morning), opus(1)
		c.dialect = dialect
		n, d := burst(th, 0, c)
		if n != free {
			t.Errorf("%v: a cold start lets in %d, want %d", dialect, n, free)
		}
		if diff := cmp.Diff(want, tell(d)); diff != "" {
			t.Errorf("%v: denial (-want +got):\n%s", dialect, diff)
		}
		if n, _ := burst(th, 59*time.Second, c); n != 0 {
			t.Errorf("%v: %d more in the same minute", dialect, n)
		}
		if n, d := burst(th, time.Minute, c); n != 180 || tell(d).Name != "growth" {
			t.Errorf("%v: the second minute lets in %d, want 180", dialect, n)
		}
		if n, _ := burst(th, 2*time.Minute, c); n != 270 {
			t.Errorf("%v: the third minute lets in %d, want 270", dialect, n)
		}
		if n, _ := burst(th, 10*time.Minute, c); n != free {
			t.Errorf("%v: after a pause %d, want %d", dialect, n, free)
		}
	}
}

func TestSteadyTrafficNeverMeetsTheGrowthLimit(t *testing.T) {
	th, limits := newThrottle(morning), &Limits{Growth: 1, RequestsPerMinute: 600}
	for at := time.Duration(0); at < 10*time.Minute; at += time.Second { // 60 a minute, which is free
		mustAdmit(t, th, at, limits, opus(1))
	}
}

func TestLimitsMayComeGoAndChange(t *testing.T) {
	th := newThrottle(morning)
	high, low := &Limits{RequestsPerMinute: 100}, &Limits{RequestsPerMinute: 10}
	for _, tt := range []struct {
		name   string
		at     time.Duration
		limits *Limits
		left   int64
	}{
		{"none", 0, nil, 0},
		{"a bucket without a limit before is full", time.Second, high, 99},
		{"the refill so far is of the old limit", 1600 * time.Millisecond, low, 9},
		{"share kept", 1600 * time.Millisecond, high, 89},
		{"the same numbers elsewhere change nothing", 1600 * time.Millisecond, &Limits{RequestsPerMinute: 100}, 88},
		{"no limit in between", time.Minute, &Limits{Concurrent: 5}, 0},
	} {
		k := mustAdmit(t, th, tt.at, tt.limits, opus(1))
		if k == nil {
			if v := th.peek(morning, nil, opus(1)); v != nil || tt.limits != nil {
				t.Errorf("%s: ticket nil, view %v", tt.name, v)
			}
			k.settle(morning, 1, 1) // does nothing
			k.done()
			k.header(nil)
			continue
		}
		if got := k.rows[kindRequests].remaining; got != tt.left {
			t.Errorf("%s: %d left, want %d", tt.name, got, tt.left)
		}
		k.done()
	}
}

func TestUseTellsTheShareOfWhatWasOnOffer(t *testing.T) {
	th, limits := newThrottle(morning), &Limits{RequestsPerMinute: 60, OutputTokensPerMinute: 6_000, CountTokensPerMinute: 10}
	for i := range 120 { // one a second, from the fifth on: two minutes of refill are on offer besides the 60 of the start
		k := mustAdmit(t, th, time.Duration(i+5)*time.Second, limits, opus(1))
		k.settle(after(time.Duration(i+5)*time.Second), 1, 20)
		k.done()
	}
	mustAdmit(t, th, 5*time.Second, limits, claim{key: "good", pool: poolCountTokens})
	mustAdmit(t, th, 5*time.Second, limits, claim{key: "good", pool: poolOther})
	const good = "770e607624d6" // printf good | sha256sum
	want := []LimitUse{
		{Key: good, Admitted: 1, Since: 5 * time.Second, Requests: BucketUse{10, 1, 30, 1.0 / 30}},
		{Key: good, Group: "claude-opus-5", Admitted: 120, Since: 5 * time.Second,
			Requests:     BucketUse{60, 120, 180, 120.0 / 180},
			InputTokens:  BucketUse{Used: 120},
			OutputTokens: BucketUse{6_000, 2_400, 18_000, 2_400.0 / 18_000}},
	}
	if diff := cmp.Diff(want, th.use(after(125*time.Second))); diff != "" {
		t.Errorf("use (-want +got):\n%s", diff)
	}
	th.reset(after(time.Hour))
	if got := th.use(after(2 * time.Hour)); len(got) != 0 {
		t.Errorf("after a reset: %+v", got)
	}
}

func TestKeysThatAreRememberedAreBounded(t *testing.T) {
	th, limits := newThrottle(morning), &Limits{RequestsPerMinute: 1, Concurrent: 1}
	th.maxLanes = 50
	open := mustAdmit(t, th, 0, limits, claim{key: "open", model: "m"})
	busy := claim{key: "busy", model: "m"}
	mustAdmit(t, th, 0, limits, busy).done()
	for i := range 10_000 {
		mustAdmit(t, th, 0, limits, claim{key: fmt.Sprint(i), model: strings.Repeat("x", 10_000)}).done()
		if _, d := th.admit(morning, limits, busy); d == nil {
			t.Fatalf("after %d other keys one that is in use was forgotten", i)
		}
	}
	if len(th.lanes) != 50 || len(th.accounts) != 50 {
		t.Errorf("%d lanes and %d accounts are kept, want 50", len(th.lanes), len(th.accounts))
	}
	if _, d := th.admit(morning, limits, claim{key: "open", model: "m"}); tell(d).Name != "concurrent" {
		t.Errorf("a key with an open request was forgotten: %+v", tell(d))
	}
	open.done()
	for key := range th.lanes {
		if len(key.group) > longestKey {
			t.Fatalf("a name of %d bytes is kept", len(key.group))
		}
	}
}

func TestLanesWithOpenRequestsAreNotForgotten(t *testing.T) {
	th, limits := newThrottle(morning), &Limits{Concurrent: 1}
	th.maxLanes = 3
	var open []*ticket
	for i := range 10 {
		open = append(open, mustAdmit(t, th, 0, limits, claim{key: fmt.Sprint(i)}))
	}
	for _, k := range open {
		k.done()
	}
	if len(th.lanes) != 10 {
		t.Errorf("%d lanes, want 10", len(th.lanes))
	}
}

func TestThrottleTellsNoKey(t *testing.T) {
	const key, prompt = "sk-ant-secret-0123456789", "claude-opus-5"
	limits := []*Limits{{RequestsPerMinute: 1}, {InputTokensPerMinute: 1}, {TokensPerMinute: 1}, {Concurrent: 1}, {Growth: 1}}
	for _, l := range limits {
		for _, dialect := range []wire.Dialect{wire.DialectAnthropic, wire.DialectOpenAI} {
			th := newThrottle(morning)
			for range 50 {
				_, d := th.admit(morning, l, claim{key: key, model: prompt, dialect: dialect, input: 1})
				if text := fmt.Sprintf("%+v %+v", tell(d), th.use(morning)); strings.Contains(text, "secret") {
					t.Fatalf("the key is told: %s", text)
				}
			}
		}
	}
}

func TestThrottleUnderManyHandsLetsInAsMuchAsOnOffer(t *testing.T) {
	th, limits := newThrottle(morning), &Limits{RequestsPerMinute: 500, InputTokensPerMinute: 4_000, Concurrent: 40}
	var hands sync.WaitGroup
	for hand := range 8 {
		hands.Go(func() {
			for i := range 500 {
				k, d := th.admit(after(time.Duration(i)*time.Millisecond), limits, opus(10))
				if d == nil {
					k.settle(morning, 10, hand)
					k.done()
					k.done()
				}
				th.use(morning)
				th.peek(morning, limits, opus(1))
			}
		})
	}
	hands.Wait()
	use := th.use(after(499 * time.Millisecond))[0]
	if use.Admitted+use.Denied != 4_000 || use.Requests.Used != use.Admitted || use.InputTokens.Used != 10*use.Admitted || use.InputTokens.Used > use.InputTokens.Supply {
		t.Errorf("use %+v", use)
	}
	if use.Admitted < 400 {
		t.Errorf("%d let in, want the 400 that the tokens are enough for", use.Admitted)
	}
	for _, a := range th.accounts {
		if a.open != 0 {
			t.Errorf("%d requests are open at the end", a.open)
		}
	}
}

// TestWaitLooksAheadToTheMinuteBefore: a growth limit that fits now is no promise for the moment when the empty bucket has
// enough, for by then the minute before may have gone quiet.
func TestWaitLooksAheadToTheMinuteBefore(t *testing.T) {
	th, limits := newThrottle(morning), &Limits{Growth: 2, InputTokensPerMinute: 100}
	for range 10 {
		mustAdmit(t, th, 0, limits, opus(0))
	}
	const at = 100 * time.Second
	mustAdmit(t, th, at, limits, opus(100))
	for range 14 {
		mustAdmit(t, th, at, limits, claim{key: "good", model: "other"})
	}
	_, d := th.admit(after(at), limits, opus(40)) // the tokens are there after 24s, when ten requests are free and fifteen have come
	if got := tell(d); got.Name != "growth" || got.Wait != time.Minute {
		t.Errorf("denial %+v; want growth, 1m", got)
	}
	mustAdmit(t, th, at, limits, claim{key: "good", model: "other"})
}
