package standin

import (
	"maps"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// recordedHeaders are those of 21 replies of the Claude API, taken from the recordings that
// its Go SDK v2.15.0 ships (toolrunner/testdata/cassettes).
func recordedHeaders(t *testing.T) (all []http.Header) {
	t.Helper()
	text, err := os.ReadFile("testdata/anthropic_ratelimit_headers.txt")
	if err != nil {
		t.Fatal(err)
	}
	for block := range strings.SplitSeq(strings.TrimSpace(string(text)), "\n\n") {
		h := http.Header{}
		for line := range strings.SplitSeq(block, "\n") {
			name, value, _ := strings.Cut(line, ": ")
			h[name] = append(h[name], value)
		}
		h.Del("Date")
		all = append(all, h)
	}
	if len(all) != 21 {
		t.Fatalf("%d recordings, want 21", len(all))
	}
	return all
}

// form puts one digit for every number, so that two values compare by their form.
func form(value string) string { return regexp.MustCompile(`[0-9]+`).ReplaceAllString(value, "9") }

func TestHeadersHaveTheFormOfTheRecordedOnes(t *testing.T) {
	for i, recorded := range recordedHeaders(t) {
		number := func(name string) int {
			n, err := strconv.Atoi(recorded.Get("anthropic-ratelimit-" + name))
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
		limits := &Limits{RequestsPerMinute: number("requests-limit"), InputTokensPerMinute: number("input-tokens-limit"), OutputTokensPerMinute: number("output-tokens-limit")}
		reset, err := time.Parse(time.RFC3339, recorded.Get("anthropic-ratelimit-output-tokens-reset"))
		if err != nil {
			t.Fatal(err)
		}
		th := newThrottle(reset)
		var k *ticket
		for range number("requests-limit") - number("requests-remaining") {
			k, _ = th.admit(reset, limits, opus((number("input-tokens-limit")-number("input-tokens-remaining"))/(number("requests-limit")-number("requests-remaining"))))
		}
		ours := http.Header{}
		k.header(ours)
		if diff := cmp.Diff(slices.Sorted(maps.Keys(recorded)), slices.Sorted(maps.Keys(ours))); diff != "" {
			t.Fatalf("recording %d: names (-recorded +ours):\n%s", i, diff)
		}
		for name := range recorded {
			if strings.HasSuffix(name, "-Reset") {
				if form(recorded.Get(name)) != form(ours.Get(name)) {
					t.Errorf("recording %d: %s is %s, ours %s", i, name, recorded.Get(name), ours.Get(name))
				}
			} else if recorded.Get(name) != ours.Get(name) {
				t.Errorf("recording %d: %s is %s, ours %s", i, name, recorded.Get(name), ours.Get(name))
			}
		}
		for whose, h := range map[string]http.Header{"recorded": recorded, "ours": ours} {
			all := h.Get("anthropic-ratelimit-tokens-reset")
			if want := min(h.Get("anthropic-ratelimit-input-tokens-reset"), h.Get("anthropic-ratelimit-output-tokens-reset")); all != want {
				t.Errorf("recording %d, %s: the tokens reset at %s, want the earlier of both, %s", i, whose, all, want)
			}
		}
	}
}

func TestHeadersTellHowFullTheBucketsAre(t *testing.T) {
	full := &Limits{RequestsPerMinute: 60, InputTokensPerMinute: 60_000, OutputTokensPerMinute: 6_000}
	for _, tt := range []struct {
		name   string
		limits *Limits
		before []claim
		output int
		claim  claim
		want   map[string]string // without the prefix
	}{
		{"anthropic, the first request", full, nil, 0, opus(10_400), map[string]string{
			"requests-limit": "60", "requests-remaining": "59", "requests-reset": "2026-11-30T09:00:01Z",
			"input-tokens-limit": "60000", "input-tokens-remaining": "50000", "input-tokens-reset": "2026-11-30T09:00:10Z",
			"output-tokens-limit": "6000", "output-tokens-remaining": "6000", "output-tokens-reset": "2026-11-30T09:00:00Z",
			"tokens-limit": "66000", "tokens-remaining": "56000", "tokens-reset": "2026-11-30T09:00:00Z"}},
		{"anthropic in debt", full, []claim{opus(60_000)}, 9_000, opus(5), map[string]string{
			"requests-limit": "60", "requests-remaining": "59", "requests-reset": "2026-11-30T09:00:01Z",
			"input-tokens-limit": "60000", "input-tokens-remaining": "0", "input-tokens-reset": "2026-11-30T09:01:00Z",
			"output-tokens-limit": "6000", "output-tokens-remaining": "0", "output-tokens-reset": "2026-11-30T09:01:30Z",
			"tokens-limit": "66000", "tokens-remaining": "0", "tokens-reset": "2026-11-30T09:01:00Z"}},
		{"anthropic, rounded up to the limit at most", &Limits{InputTokensPerMinute: 1_800}, nil, 0, opus(200), map[string]string{
			"input-tokens-limit": "1800", "input-tokens-remaining": "1800", "input-tokens-reset": "2026-11-30T09:00:06Z",
			"tokens-limit": "1800", "tokens-remaining": "1800", "tokens-reset": "2026-11-30T09:00:06Z"}},
		{"anthropic, a limit below 1,000 as it is", &Limits{OutputTokensPerMinute: 600}, []claim{opus(1)}, 50, opus(1), map[string]string{
			"output-tokens-limit": "600", "output-tokens-remaining": "550", "output-tokens-reset": "2026-11-30T09:00:05Z",
			"tokens-limit": "600", "tokens-remaining": "550", "tokens-reset": "2026-11-30T09:00:05Z"}},
		{"count_tokens", &Limits{Tier: TierStart}, nil, 0, claim{key: "good", pool: poolCountTokens}, map[string]string{
			"requests-limit": "2000", "requests-remaining": "1999", "requests-reset": "2026-11-30T09:00:00Z"}},
		{"openai as once reported", &Limits{RequestsPerMinute: 500, TokensPerMinute: 30_000}, nil, 0, gpt(4, 0), map[string]string{
			"limit-requests": "500", "remaining-requests": "499", "reset-requests": "120ms",
			"limit-tokens": "30000", "remaining-tokens": "29996", "reset-tokens": "8ms"}},
		{"openai, minutes and parts of a millisecond", &Limits{RequestsPerMinute: 7_000, TokensPerMinute: 60}, []claim{gpt(1, 60)}, 0, gpt(1, 0), map[string]string{
			"limit-requests": "7000", "remaining-requests": "6999", "reset-requests": "9ms",
			"limit-tokens": "60", "remaining-tokens": "0", "reset-tokens": "1m0s"}},
		{"no bucket", &Limits{Concurrent: 1}, nil, 0, opus(1), map[string]string{}},
		{"none of batches", full, nil, 0, claim{key: "good", pool: poolOther}, map[string]string{}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			th, h := newThrottle(morning), http.Header{}
			for _, c := range tt.before {
				mustAdmit(t, th, 0, tt.limits, c).settle(morning, c.input, tt.output)
			}
			if k, d := th.admit(morning, tt.limits, tt.claim); d != nil {
				d.header(h)
			} else {
				k.header(h)
			}
			got := map[string]string{}
			for name, values := range h {
				name = strings.TrimPrefix(strings.TrimPrefix(strings.ToLower(name), "anthropic-ratelimit-"), "x-ratelimit-")
				got[name] = strings.Join(values, "|")
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("headers (-want +got):\n%s", diff)
			}
		})
	}
}

func TestNilViewWritesNoHeader(t *testing.T) {
	h := http.Header{}
	(*view)(nil).header(h)
	if len(h) != 0 {
		t.Errorf("headers %v", h)
	}
}

func TestBigNumbersAreGroupedByThree(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 999: "999", 1_000: "1,000", 80_000: "80,000", 1_000_000_000_000: "1,000,000,000,000"} {
		if got := grouped(n); got != want {
			t.Errorf("grouped(%d) = %q, want %q", n, got, want)
		}
	}
	if got := milliseconds(neverFits); got != neverFits.String() {
		t.Errorf("milliseconds(neverFits) = %q", got)
	}
}
