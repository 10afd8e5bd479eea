package wire

import (
	"math"
	"net/http"
	"strings"
	"time"
)

// The names of the places in which a wait can be found.
const (
	fromMillis = "retry-after-ms"
	fromHeader = "retry-after"
	fromBucket = "bucket"
	fromBody   = "body"
)

// forever is what a wait saturates to: a server that asks for more than fits
// must still be told from one that asks for nothing.
const forever = time.Duration(math.MaxInt64)

// Wait returns how long the server asks to wait before the next attempt and
// where it said so, in this order: "retry-after-ms", "retry-after", "bucket"
// (the time until an exhausted rate-limit bucket resets), "body" (a numeric
// retry_after or Google's RetryInfo). A wait that is zero, negative, malformed
// or past is absent, and the next place is asked; when none has one the result
// is 0 and "".
//
// Dates are judged against the response's own Date header where it has one, so
// that two clocks that disagree make no difference, and against now otherwise.
// A wait too large for a Duration becomes the largest Duration: it is for the
// caller to refuse, never to shorten.
func Wait(h http.Header, body []byte, now time.Time) (d time.Duration, from string) {
	return wait(h, parse(plain(body).text), serverTime(h, now))
}

// wait takes the server's time, not the local one.
func wait(h http.Header, body node, now time.Time) (time.Duration, string) {
	if d := largest(h.Values("Retry-After-Ms"), parseMillis); d > 0 {
		return d, fromMillis
	}
	if d := largest(h.Values("Retry-After"), func(value string) time.Duration { return parseRetryAfter(value, now) }); d > 0 {
		return d, fromHeader
	}
	if d := bucketWait(h, now); d > 0 {
		return d, fromBucket
	}
	if d := bodyWait(body); d > 0 {
		return d, fromBody
	}
	return 0, ""
}

// serverTime is the clock of the machine that wrote the reset times.
func serverTime(h http.Header, now time.Time) time.Time {
	if date, err := http.ParseTime(strings.TrimSpace(h.Get("Date"))); err == nil {
		return date
	}
	return now
}

// largest returns the longest wait among several values of one header: a
// client that obeys it also obeys the others.
func largest(values []string, parse func(string) time.Duration) time.Duration {
	var longest time.Duration
	for _, value := range values {
		d := parse(value)
		if d == 0 {
			// A proxy may have joined two header lines into one.
			for part := range strings.SplitSeq(value, ",") {
				if seconds, ok := parseDecimal(part, time.Second); ok && strings.Contains(value, ",") {
					d = max(d, seconds)
				}
			}
		}
		longest = max(longest, d)
	}
	return longest
}

func parseMillis(value string) time.Duration {
	d, _ := parseDecimal(value, time.Millisecond)
	return d
}

func parseRetryAfter(value string, now time.Time) time.Duration {
	if d, ok := parseDecimal(value, time.Second); ok {
		return d
	}
	date, err := http.ParseTime(strings.TrimSpace(value))
	if err != nil {
		return 0
	}
	return max(0, date.Sub(now))
}

// parseDecimal reads digits with an optional fraction, in the given unit, and
// nothing else: no sign, exponent, hexadecimal, "inf" or "nan", all of which
// strconv.ParseFloat would take. What does not fit saturates.
func parseDecimal(value string, unit time.Duration) (time.Duration, bool) {
	whole, fraction, dotted := strings.Cut(strings.TrimSpace(value), ".")
	if !digits(whole) || dotted && !digits(fraction) {
		return 0, false
	}
	var total time.Duration
	for _, c := range []byte(whole) {
		digit := time.Duration(c - '0')
		if total > (forever/unit-digit)/10 {
			return forever, true
		}
		total = total*10 + digit
	}
	total *= unit
	for i, place := 0, unit/10; i < len(fraction) && place > 0; i, place = i+1, place/10 {
		part := time.Duration(fraction[i]-'0') * place
		if total > forever-part {
			return forever, true
		}
		total += part
	}
	return total, true
}

func digits(text string) bool {
	for _, c := range []byte(text) {
		if c < '0' || c > '9' {
			return false
		}
	}
	return text != ""
}

// bodyWait reads the forms in which a body carries a wait: a number of seconds
// in retry_after, and google.rpc.RetryInfo in the details of an error.
func bodyWait(body node) time.Duration {
	if body.isArray() {
		body = body.first()
	}
	problem := body.get("error")
	for _, value := range []node{problem.get("retry_after"), body.get("retry_after")} {
		if d, ok := parseDecimal(value.scalar(), time.Second); ok && d > 0 {
			return d
		}
	}
	var longest time.Duration
	problem.get("details").elements(func(detail node) bool {
		if seconds, ok := strings.CutSuffix(detail.get("retryDelay").text(), "s"); ok {
			d, _ := parseDecimal(seconds, time.Second)
			longest = max(longest, d)
		}
		return true
	})
	return longest
}
