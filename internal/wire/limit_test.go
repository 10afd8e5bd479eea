package wire_test

import (
	"net/http"
	"testing"
	"time"

	"holdfast/internal/wire"
)

func TestLimits(t *testing.T) {
	t.Parallel()
	const requests, input, output = "Anthropic-Ratelimit-Requests-", "Anthropic-Ratelimit-Input-Tokens-", "Anthropic-Ratelimit-Output-Tokens-"
	in := func(d time.Duration) string { return noon.Add(d).Format(time.RFC3339) }
	for _, row := range []struct {
		name string
		h    http.Header
		want wire.RateLimits
	}{
		{"nothing", nil, wire.RateLimits{}},
		{
			"anthropic", header(requests+"Limit", "4000", requests+"Remaining", "3997", requests+"Reset", in(time.Second),
				input+"Limit", "200000", input+"Remaining", "199000", input+"Reset", in(2*time.Second),
				output+"Limit", "80000", output+"Remaining", "80000", output+"Reset", in(0),
				"Anthropic-Ratelimit-Tokens-Limit", "280000", "Anthropic-Ratelimit-Tokens-Remaining", "279000", "Anthropic-Ratelimit-Tokens-Reset", in(2*time.Second)),
			wire.RateLimits{
				Requests: wire.RateLimit{4000, 3997, time.Second}, Input: wire.RateLimit{200_000, 199_000, 2 * time.Second},
				Output: wire.RateLimit{80_000, 80_000, 0}, Tokens: wire.RateLimit{280_000, 279_000, 2 * time.Second},
			},
		},
		{
			"openai", header("X-Ratelimit-Limit-Requests", "500", "X-Ratelimit-Remaining-Requests", "499", "X-Ratelimit-Reset-Requests", "120ms",
				"X-Ratelimit-Limit-Tokens", "30000", "X-Ratelimit-Remaining-Tokens", "0", "X-Ratelimit-Reset-Tokens", "1m0s"),
			wire.RateLimits{Requests: wire.RateLimit{500, 499, 120 * time.Millisecond}, Tokens: wire.RateLimit{30_000, 0, time.Minute}},
		},
		{"azure without a bucket", header("X-Ratelimit-Limit-Requests", "-1", "X-Ratelimit-Remaining-Requests", "-1", "X-Ratelimit-Reset-Requests", "0"), wire.RateLimits{}},
		{"a limit of nothing", header(requests+"Limit", "0", requests+"Remaining", "0"), wire.RateLimits{}},
		{"more than there can be", header(requests+"Limit", "60", requests+"Remaining", "61"), wire.RateLimits{}},
		{"beyond all limits", header(requests+"Limit", "9999999999999", requests+"Remaining", "5"), wire.RateLimits{}},
		{"beyond all numbers", header(requests+"Limit", "99999999999999999999999", requests+"Remaining", "5"), wire.RateLimits{}},
		{"fractions", header(requests+"Limit", "60.5", requests+"Remaining", "5"), wire.RateLimits{}},
		{"what remains is missing", header(requests+"Limit", "60"), wire.RateLimits{}},
		{"the limit is missing", header(requests+"Remaining", "60"), wire.RateLimits{}},
		{"no reset", header(requests+"Limit", "60", requests+"Remaining", "5"), wire.RateLimits{Requests: wire.RateLimit{60, 5, 0}}},
		{"a reset in the past", header(requests+"Limit", "60", requests+"Remaining", "60", requests+"Reset", in(-time.Minute)), wire.RateLimits{Requests: wire.RateLimit{60, 60, 0}}},
		{"a clock that is behind", header("Date", noon.Add(-time.Hour).Format(http.TimeFormat), requests+"Limit", "60", requests+"Remaining", "5", requests+"Reset", in(55*time.Second-time.Hour)), wire.RateLimits{Requests: wire.RateLimit{60, 5, 55 * time.Second}}},
		{"other tiers are not ours", header("Anthropic-Priority-Input-Tokens-Limit", "60", "Anthropic-Priority-Input-Tokens-Remaining", "0", "X-Ratelimit-Limit", "9", "X-Ratelimit-Remaining", "3"), wire.RateLimits{}},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			if got := wire.Limits(row.h, noon); got != row.want {
				t.Errorf("Limits = %+v, want %+v", got, row.want)
			}
		})
	}
}

func FuzzLimits(f *testing.F) {
	for _, row := range [][3]string{{"60", "5", "2026-12-01T12:00:55Z"}, {"500", "499", "120ms"}, {"-1", "-1", "0"}, {"", "", ""}, {"1e9", "0x10", "NaN"}, {"60", "60", "99999999999999999999"}} {
		f.Add(row[0], row[1], row[2])
	}
	f.Fuzz(func(t *testing.T, limit, remaining, reset string) {
		for _, name := range []string{"Anthropic-Ratelimit-Requests-", ""} {
			h := http.Header{}
			if name == "" {
				h = http.Header{"X-Ratelimit-Limit-Requests": {limit}, "X-Ratelimit-Remaining-Requests": {remaining}, "X-Ratelimit-Reset-Requests": {reset}}
			} else {
				h[name+"Limit"], h[name+"Remaining"], h[name+"Reset"] = []string{limit}, []string{remaining}, []string{reset}
			}
			r := wire.Limits(h, noon).Requests
			if r.Limit < 0 || r.Limit > 1_000_000_000_000 || r.Remaining < 0 || r.Remaining > r.Limit || r.Full < 0 || r.Limit == 0 && r != (wire.RateLimit{}) {
				t.Errorf("%q %q %q: %+v", limit, remaining, reset, r)
			}
		}
	})
}
