package wire

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// RateLimit is what a reply tells of one rate limit. A Limit of zero means that
// it tells nothing.
type RateLimit struct {
	// Limit is what the bucket holds when it is full, and gains in a minute.
	Limit int64
	// Remaining of it, from 0 to Limit.
	Remaining int64
	// Full is the time until the bucket is completely full again; 0 when it is
	// full already, or when the reply does not say.
	Full time.Duration
}

// RateLimits are the limits that hold for every request of a key and model.
// Those of a tier or a mode of its own are left out.
type RateLimits struct {
	Requests, Input, Output RateLimit
	// Tokens are input and output together: the only limit on tokens that some
	// providers have, and the strictest one in force with others.
	Tokens RateLimit
}

// mostLimit is above every real limit: what is larger is a mistake.
const mostLimit = 1_000_000_000_000

// limitNames are the headers of one limit: what it is, what remains, when it is
// full again.
// They have their canonical form.
type limitNames struct{ limit, remaining, reset string }

func anthropicLimit(name string) limitNames {
	name = "Anthropic-Ratelimit-" + name
	return limitNames{name + "-Limit", name + "-Remaining", name + "-Reset"}
}

func openAINames(name string) limitNames {
	return limitNames{openAILimit + "-" + name, openAIRemain + "-" + name, openAIReset + "-" + name}
}

// The first that says something holds.
var (
	requestLimits = []limitNames{anthropicLimit("Requests"), openAINames("Requests")}
	inputLimits   = []limitNames{anthropicLimit("Input-Tokens")}
	outputLimits  = []limitNames{anthropicLimit("Output-Tokens")}
	tokenLimits   = []limitNames{anthropicLimit("Tokens"), openAINames("Tokens")}
)

// Limits reads the rate-limit headers of a reply, in both dialects. What is
// missing, negative, malformed or absurd tells nothing.
func Limits(h http.Header, now time.Time) RateLimits {
	if !tellLimits(h) {
		return RateLimits{}
	}
	now = serverTime(h, now)
	return RateLimits{
		Requests: readLimit(h, requestLimits, now), Input: readLimit(h, inputLimits, now),
		Output: readLimit(h, outputLimits, now), Tokens: readLimit(h, tokenLimits, now),
	}
}

// tellLimits is asked of every reply.
func tellLimits(h http.Header) bool {
	for name := range h {
		if strings.HasPrefix(name, "Anthropic-Ratelimit-") || strings.HasPrefix(name, "X-Ratelimit-") {
			return true
		}
	}
	return false
}

func readLimit(h http.Header, names []limitNames, now time.Time) RateLimit {
	for _, n := range names {
		r := RateLimit{Limit: count(first(h[n.limit])), Remaining: count(first(h[n.remaining]))}
		if r.Limit > 0 && r.Remaining >= 0 && r.Remaining <= r.Limit {
			r.Full = parseReset(first(h[n.reset]), now)
			return r
		}
	}
	return RateLimit{}
}

// first is h.Get of a name that has its canonical form, which is not put into it
// again for each of a dozen headers of each reply.
func first(values []string) string {
	if len(values) == 0 {
		return ""
	}
	return values[0]
}

// count reads a whole number; -1 for all that is none.
func count(text string) int64 {
	text = strings.TrimSpace(text)
	if !digits(text) {
		return -1
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n > mostLimit {
		return -1
	}
	return n
}
