package wire_test

import (
	"math"
	"net/http"
	"strings"
	"testing"
	"time"

	"holdfast/internal/wire"
)

func TestWaitReadsHeaders(t *testing.T) {
	t.Parallel()
	const forever = time.Duration(math.MaxInt64)
	imf := noon.Add(3 * time.Second).Format(http.TimeFormat)
	tests := []struct {
		name string
		h    http.Header
		want time.Duration
		from string
	}{
		{"B01 above any ceiling", header("Retry-After", "90"), 90 * time.Second, "retry-after"},
		{"B02 half an hour", header("Retry-After", "1800"), 30 * time.Minute, "retry-after"},
		{"B02 in milliseconds", header("Retry-After-Ms", "1800000"), 30 * time.Minute, "retry-after-ms"},
		{"B04 not a date", header("Retry-After", "soonish"), 0, ""},
		{"B05 date", header("Retry-After", imf), 3 * time.Second, "retry-after"},
		{"B05 a number is no year", header("Retry-After", "120"), 2 * time.Minute, "retry-after"},
		{"B05 negative", header("Retry-After", "-5"), 0, ""},
		{"B05 padded", header("Retry-After", " 5 "), 5 * time.Second, "retry-after"},
		{"B05 exponent", header("Retry-After", "1e3"), 0, ""},
		{"B05 fraction", header("Retry-After", "3.5"), 3500 * time.Millisecond, "retry-after"},
		{"B07 at the timer's limit", header("Retry-After", "2147483"), 2147483 * time.Second, "retry-after"},
		{"B07 above the timer's limit", header("Retry-After", "9223372037"), forever, "retry-after"},
		{"B07 more than 64 bits", header("Retry-After", "99999999999999999999"), forever, "retry-after"},
		{"B07 milliseconds above 64 bits", header("Retry-After-Ms", strings.Repeat("9", 400)), forever, "retry-after-ms"},
		{"B10 past date", header("Retry-After", noon.Add(-time.Minute).Format(http.TimeFormat)), 0, ""},
		{"B10 date of an old form", header("Retry-After", noon.Add(30*time.Second).Format(time.ANSIC)), 30 * time.Second, "retry-after"},
		{"B10 date of another old form", header("Retry-After", noon.Add(30*time.Second).Format("Monday, 02-Jan-06 15:04:05 GMT")), 30 * time.Second, "retry-after"},
		{"B14 date by a clock behind", header("Date", noon.Add(-30*time.Second).Format(http.TimeFormat), "Retry-After", noon.Add(-20*time.Second).Format(http.TimeFormat)), 10 * time.Second, "retry-after"},
		{"zero", header("Retry-After", "0"), 0, ""},
		{"zero milliseconds give way", header("Retry-After-Ms", "0", "Retry-After", "4"), 4 * time.Second, "retry-after"},
		{"milliseconds win", header("Retry-After-Ms", "250", "Retry-After", "9"), 250 * time.Millisecond, "retry-after-ms"},
		{"NaN milliseconds give way", header("Retry-After-Ms", "NaN", "Retry-After", "3"), 3 * time.Second, "retry-after"},
		{"infinity", header("Retry-After", "Inf"), 0, ""},
		{"hexadecimal", header("Retry-After", "0x10"), 0, ""},
		{"leading zeros", header("Retry-After", "007"), 7 * time.Second, "retry-after"},
		{"point alone", header("Retry-After", "5."), 0, ""},
		{"point first", header("Retry-After", ".5"), 0, ""},
		{"plus", header("Retry-After", "+5"), 0, ""},
		{"fine fraction", header("Retry-After", "0.0000000019"), 1, "retry-after"},
		{"fraction at the edge saturates", header("Retry-After", "9223372036.999999999"), forever, "retry-after"},
		{"two values", header("Retry-After", "abc", "Retry-After", "20"), 20 * time.Second, "retry-after"},
		{"two good values", header("Retry-After", "30", "Retry-After", "20"), 30 * time.Second, "retry-after"},
		{"two values joined", header("Retry-After", "5, 20"), 20 * time.Second, "retry-after"},
		{"nothing", nil, 0, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got, from := wire.Wait(tt.h, nil, noon); got != tt.want || from != tt.from {
				t.Errorf("Wait(%v) = %v from %q, want %v from %q", tt.h, got, from, tt.want, tt.from)
			}
		})
	}
}

func TestWaitReadsBuckets(t *testing.T) {
	t.Parallel()
	in := func(d time.Duration) string { return noon.Add(d).Format(time.RFC3339) }
	const (
		requests = "Anthropic-Ratelimit-Requests-"
		tokens   = "Anthropic-Ratelimit-Tokens-"
		unified  = "Anthropic-Ratelimit-Unified-"
	)
	tests := []struct {
		name string
		h    http.Header
		want time.Duration
	}{
		{"B11 the exhausted one of two", header(requests+"Remaining", "0", requests+"Reset", in(20*time.Second), tokens+"Remaining", "16000", tokens+"Reset", in(time.Minute)), 20 * time.Second},
		{"B11 the later of two exhausted", header(requests+"Remaining", "0", requests+"Reset", in(20*time.Second), tokens+"Remaining", "0", tokens+"Reset", in(time.Minute)), time.Minute},
		{"B11 none exhausted", header(requests+"Remaining", "1", requests+"Reset", in(20*time.Second)), 0},
		{"B11 exhausted, reset missing", header(requests+"Remaining", "0"), 0},
		{"B13 epoch just past", header("X-Ratelimit-Reset", "1796039995"), 0},
		{"B13 epoch to come", header("X-Ratelimit-Reset", "1796040005"), 5 * time.Second},
		{"B13 epoch in milliseconds", header("X-Ratelimit-Remaining", "0", "X-Ratelimit-Reset", "1796040005000"), 5 * time.Second},
		{"B13 RFC 3339 just past", header(requests+"Remaining", "0", requests+"Reset", in(-5*time.Second)), 0},
		{"B14 server 30 s behind", header("Date", noon.Add(-30*time.Second).Format(http.TimeFormat), requests+"Remaining", "0", requests+"Reset", in(-20*time.Second)), 10 * time.Second},
		{"B14 server 30 s ahead", header("Date", noon.Add(30*time.Second).Format(http.TimeFormat), requests+"Remaining", "0", requests+"Reset", in(40*time.Second)), 10 * time.Second},
		{"remaining, single bucket", header("X-Ratelimit-Remaining", "3", "X-Ratelimit-Reset", "1796040005"), 0},
		{"output tokens", header("Anthropic-Ratelimit-Output-Tokens-Remaining", "0", "Anthropic-Ratelimit-Output-Tokens-Reset", in(4*time.Second)), 4 * time.Second},
		{"fast mode", header("Anthropic-Fast-Input-Tokens-Remaining", "0", "Anthropic-Fast-Input-Tokens-Reset", in(4*time.Second)), 4 * time.Second},
		{"openai duration", header("X-Ratelimit-Remaining-Requests", "0", "X-Ratelimit-Reset-Requests", "6m0s"), 6 * time.Minute},
		{"openai short duration", header("X-Ratelimit-Remaining-Tokens", "0", "X-Ratelimit-Reset-Tokens", "12ms"), 12 * time.Millisecond},
		{"openai not exhausted", header("X-Ratelimit-Remaining-Tokens", "5", "X-Ratelimit-Reset-Tokens", "6m0s"), 0},
		{"openai negative duration", header("X-Ratelimit-Remaining-Tokens", "0", "X-Ratelimit-Reset-Tokens", "-6m"), 0},
		{"azure seconds", header("X-Ratelimit-Limit-Tokens", "10", "X-Ratelimit-Remaining-Tokens", "0", "X-Ratelimit-Reset-Tokens", "45"), 45 * time.Second},
		{"azure without a bucket", header("X-Ratelimit-Limit-Tokens", "-1", "X-Ratelimit-Remaining-Tokens", "-1", "X-Ratelimit-Reset-Tokens", "30"), 0},
		{"limit of nothing", header("X-Ratelimit-Limit-Tokens", "0", "X-Ratelimit-Remaining-Tokens", "0", "X-Ratelimit-Reset-Tokens", "30"), 0},
		{"subscription rejected", header(unified+"Status", "rejected", unified+"Reset", "1796043600"), time.Hour},
		{"subscription allowed", header(unified+"Status", "allowed", unified+"Reset", "1796043600", unified+"7d-Status", "rejected", unified+"7d-Reset", "1796043600"), 0},
		{"subscription window", header(unified+"5h-Status", "rejected", unified+"5h-Reset", "1796040060", unified+"7d-Status", "allowed", unified+"7d-Reset", "1796043600"), time.Minute},
		{"epoch beyond all time", header("X-Ratelimit-Reset", "99999999999999999999999"), time.Duration(math.MaxInt64)},
		{"malformed", header(requests+"Remaining", "0", requests+"Reset", "tomorrow"), 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			from := "bucket"
			if tt.want == 0 {
				from = ""
			}
			if got, gotFrom := wire.Wait(tt.h, nil, noon); got != tt.want || gotFrom != from {
				t.Errorf("Wait(%v) = %v from %q, want %v from %q", tt.h, got, gotFrom, tt.want, from)
			}
		})
	}
}

func TestWaitReadsBodies(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, body string
		want       time.Duration
	}{
		{"B10 in the error", `{"error":{"retry_after":120}}`, 2 * time.Minute},
		{"B10 beside the error", `{"status":524,"retry_after":120}`, 2 * time.Minute},
		{"as text", `{"error":{"retry_after":"1.5"}}`, 1500 * time.Millisecond},
		{"google", `{"error":{"code":429,"details":[{"@type":"type.googleapis.com/google.rpc.QuotaFailure"},{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"45.837906927s"}]}}`, 45837906927},
		{"google in an array", `[{"error":{"details":[{"retryDelay":"2s"}]}}]`, 2 * time.Second},
		{"negative", `{"error":{"retry_after":-1}}`, 0},
		{"exponent", `{"error":{"retry_after":1e9}}`, 0},
		{"zero gives way", `{"error":{"retry_after":0},"retry_after":3}`, 3 * time.Second},
		{"words are no wait", `{"error":{"message":"try again in 20s"}}`, 0},
		{"not JSON", `retry_after: 5`, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			from := "body"
			if tt.want == 0 {
				from = ""
			}
			if got, gotFrom := wire.Wait(nil, []byte(tt.body), noon); got != tt.want || gotFrom != from {
				t.Errorf("Wait(%s) = %v from %q, want %v from %q", tt.body, got, gotFrom, tt.want, from)
			}
		})
	}
	both := []byte(`{"error":{"retry_after":120}}`)
	if got, from := wire.Wait(header("Retry-After", "3"), both, noon); got != 3*time.Second || from != "retry-after" {
		t.Errorf("header and body: %v from %q, want 3s from retry-after", got, from)
	}
	if got, _ := wire.Wait(nil, zipped(t, string(both)), noon); got != 2*time.Minute {
		t.Errorf("compressed body: %v, want 2m", got)
	}
}

func TestB10_EveryStatusCarriesItsWait(t *testing.T) {
	t.Parallel()
	for _, status := range []int{408, 409, 425, 429, 500, 502, 503, 504, 524, 529} {
		if got := wire.Read(status, header("Retry-After", "120"), nil, noon); got.Wait != 2*time.Minute || got.WaitFrom != "retry-after" {
			t.Errorf("%d: %v from %q, want 2m from retry-after", status, got.Wait, got.WaitFrom)
		}
	}
	if got := wire.Read(200, header("Anthropic-Ratelimit-Requests-Remaining", "0", "Anthropic-Ratelimit-Requests-Reset", noon.Add(time.Minute).Format(time.RFC3339)), []byte(`{"input_tokens":1}`), noon); got.Wait != 0 {
		t.Errorf("a healthy answer asks to wait %v", got.Wait)
	}
}
