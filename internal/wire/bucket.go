package wire

import (
	"net/http"
	"strings"
	"time"
)

// anthropicBuckets are the header prefixes of the Anthropic rate limits, each
// with -limit, -remaining and -reset behind it.
var anthropicBuckets = []string{
	"Anthropic-Ratelimit-Requests",
	"Anthropic-Ratelimit-Tokens",
	"Anthropic-Ratelimit-Input-Tokens",
	"Anthropic-Ratelimit-Output-Tokens",
	"Anthropic-Priority-Input-Tokens",
	"Anthropic-Priority-Output-Tokens",
	"Anthropic-Fast-Input-Tokens",
	"Anthropic-Fast-Output-Tokens",
}

const (
	unified        = "Anthropic-Ratelimit-Unified-"
	openAIRemain   = "X-Ratelimit-Remaining"
	openAIReset    = "X-Ratelimit-Reset"
	openAILimit    = "X-Ratelimit-Limit"
	unifiedReset   = unified + "Reset"
	unifiedStatus  = unified + "Status"
	statusSuffix   = "-Status"
	statusRejected = "rejected"
)

// bucketWait returns the time until the last of the exhausted buckets resets;
// 0 when none is exhausted.
//
// A reset names the moment at which the bucket is full again, so one request
// could often go a little earlier, at (reset-now)/limit. But a bucket may be
// enforced over shorter spans than its limit says, the limit in force may be
// one that has no header, and everyone who shares the key reads the same
// numbers. After a refusal the reset is the one time that is known to be
// late enough, so that is what this returns.
func bucketWait(h http.Header, now time.Time) time.Duration {
	longest := unifiedWait(h, now)
	for _, bucket := range anthropicBuckets {
		longest = max(longest, exhausted(h, bucket+"-Limit", bucket+"-Remaining", bucket+"-Reset", now))
	}
	for name := range h {
		if suffix, found := strings.CutPrefix(name, openAIRemain+"-"); found {
			longest = max(longest, exhausted(h, openAILimit+"-"+suffix, name, openAIReset+"-"+suffix, now))
		}
	}
	if h.Get(openAIRemain) == "" {
		// A server with a single bucket may send its reset alone.
		return max(longest, parseReset(h.Get(openAIReset), now))
	}
	return max(longest, exhausted(h, openAILimit, openAIRemain, openAIReset, now))
}

// exhausted returns the wait for one bucket when nothing remains in it. A limit
// that is not positive means that the server does not keep the bucket: Azure
// sends limit -1, remaining -1 and reset 0.
func exhausted(h http.Header, limit, remaining, reset string, now time.Time) time.Duration {
	if text := strings.TrimSpace(h.Get(limit)); text != "" && strings.Trim(text, "0") == "" || strings.HasPrefix(text, "-") {
		return 0
	}
	left := strings.TrimSpace(h.Get(remaining))
	if left == "" || strings.Trim(left, "0") != "" {
		return 0
	}
	return parseReset(h.Get(reset), now)
}

// unifiedWait reads the limits of subscription traffic, which say whether they
// refused instead of what remains. The overall status decides; the windows
// count only where it is missing or has no usable reset.
func unifiedWait(h http.Header, now time.Time) time.Duration {
	overall := h.Get(unifiedStatus)
	if overall != "" && !rejected(overall) {
		return 0
	}
	if rejected(overall) {
		if d := parseReset(h.Get(unifiedReset), now); d > 0 {
			return d
		}
	}
	var longest time.Duration
	for name := range h {
		window, found := strings.CutSuffix(name, statusSuffix)
		if found && strings.HasPrefix(name, unified) && name != unifiedStatus && rejected(h.Get(name)) {
			longest = max(longest, parseReset(h.Get(window+"-Reset"), now))
		}
	}
	return longest
}

func rejected(status string) bool {
	return strings.EqualFold(strings.TrimSpace(status), statusRejected)
}

// sinceEpochFrom parts two meanings of a bare number: below it, seconds from now;
// from it on, a moment since 1970. As a delay it would be nine years.
const sinceEpochFrom = 300_000_000 * time.Second

// parseReset returns the time until a reset, in any of the forms that are
// sent: RFC 3339, epoch seconds or milliseconds, seconds from now, and Go's
// duration text ("6m0s"). Past and malformed are 0.
func parseReset(value string, now time.Time) time.Duration {
	value = strings.TrimSpace(value)
	if seconds, ok := parseDecimal(value, time.Second); ok {
		return untilNumber(value, seconds, now)
	}
	if moment, err := time.Parse(time.RFC3339, value); err == nil {
		return max(0, moment.Sub(now))
	}
	if strings.HasPrefix(value, "-") {
		return 0
	}
	d, err := time.ParseDuration(value)
	if err != nil {
		return 0
	}
	return max(0, d)
}

func untilNumber(value string, seconds time.Duration, now time.Time) time.Duration {
	if seconds < sinceEpochFrom {
		return seconds
	}
	unit := time.Second
	// Thirteen digits of seconds would be the year 33658: these are milliseconds.
	if whole, _, _ := strings.Cut(value, "."); len(strings.TrimLeft(whole, "0")) >= 13 {
		unit = time.Millisecond
	}
	sinceEpoch, _ := parseDecimal(value, unit)
	if sinceEpoch == forever {
		return forever
	}
	return max(0, time.Unix(0, 0).Add(sinceEpoch).Sub(now))
}
