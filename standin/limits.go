package standin

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"holdfast/internal/strict"
)

// Limits are rate limits as the providers enforce them: buckets that refill
// continuously, for each key and model group. A bucket starts full, is drawn on
// by every request that is let in, also by one that then fails, and is never
// looked at without taking: either all buckets of a request give, or none does.
//
// Requests of the Anthropic dialect draw on requests, on input tokens (an
// estimate at the start, without cache reads, put right when the usage is known)
// and on output tokens as they are really produced: what a request will say is not
// known before, so it is let in while there is one token, and a long answer
// leaves a debt. Those of the OpenAI dialect draw on requests and on tokens, and
// pay the larger of max_tokens and the estimate up front, for good.
//
// When the numbers change in the middle of a run, every bucket keeps its share: one
// that was three quarters full stays so, one in debt stays as far in time from
// the end of it, and a bucket without a limit before starts full. The change is
// noticed by the first request after it.
type Limits struct {
	// Tier takes the public numbers of a tier: start, build or scale. Fields that
	// are set besides replace its numbers. Default: no tier.
	Tier Tier `yaml:"tier"`
	// RequestsPerMinute, InputTokensPerMinute and OutputTokensPerMinute are what a
	// bucket holds and gains in a minute. 0: that of the tier, or no limit.
	// Negative: no limit.
	RequestsPerMinute     int `yaml:"requests_per_minute"`
	InputTokensPerMinute  int `yaml:"input_tokens_per_minute"`
	OutputTokensPerMinute int `yaml:"output_tokens_per_minute"`
	// TokensPerMinute is the one bucket of tokens of the OpenAI dialect; requests
	// of the Anthropic dialect do not draw on it. 0: input and output tokens
	// together. Negative: no limit.
	TokensPerMinute int `yaml:"tokens_per_minute"`
	// CountTokensPerMinute is the pool of requests of count_tokens, one for all
	// models of a key. 0: that of the tier, or no limit. Negative: no limit.
	CountTokensPerMinute int `yaml:"count_tokens_per_minute"`
	// Groups replaces numbers for single model groups, by the name of any model in
	// the group: models that share a limit are one group, without their dates.
	Groups map[string]GroupLimits `yaml:"groups"`
	// Window enforces requests and input tokens on a shorter interval than a
	// minute, so that bursts fail while the headers still show room: with 1s and
	// 60 requests per minute a second one at once is too many. A single request
	// above the window's part is let in when the bucket is full. At most 1m.
	// 0 means the minute.
	Window time.Duration `yaml:"window"`
	// Concurrent is how many requests of a key may be open at once. The one above
	// it gets a 429 at once, without retry-after, for nobody knows how long the
	// others last. 0: no limit.
	Concurrent int `yaml:"concurrent"`
	// Growth is the acceleration limit: the requests of a key in the last 60
	// seconds may be at most this many times those of the 60 seconds before. From
	// a cold start a tenth of the requests per minute, at least 10, are free.
	// The last minute ends with the running second. Requests that got a 429 do not
	// count, nor do those of count_tokens, batches, files and models. At least 1.
	// 0: no limit.
	Growth float64 `yaml:"growth"`
}

// GroupLimits are the numbers of one model group, as in Limits. 0: that of Limits.
// Negative: no limit.
type GroupLimits struct {
	RequestsPerMinute     int `yaml:"requests_per_minute"`
	InputTokensPerMinute  int `yaml:"input_tokens_per_minute"`
	OutputTokensPerMinute int `yaml:"output_tokens_per_minute"`
	TokensPerMinute       int `yaml:"tokens_per_minute"`
}

// maxRate bounds every number per minute, so that no sum of them can overflow.
const maxRate = 1_000_000_000_000

// limitMistake is a mistake about a field of Limits, by its path in there.
type limitMistake struct{ path, text string }

// mistakes returns what is wrong with the numbers of the limits.
func (l *Limits) mistakes() (found []limitMistake) {
	add := func(path, format string, args ...any) {
		found = append(found, limitMistake{path, fmt.Sprintf(format, args...)})
	}
	rate := func(path string, value int) {
		if value > maxRate {
			add(path, "%d is above %d; a negative number means no limit", value, int64(maxRate))
		}
	}
	rate("requests_per_minute", l.RequestsPerMinute)
	rate("input_tokens_per_minute", l.InputTokensPerMinute)
	rate("output_tokens_per_minute", l.OutputTokensPerMinute)
	rate("tokens_per_minute", l.TokensPerMinute)
	rate("count_tokens_per_minute", l.CountTokensPerMinute)
	first := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(l.Groups)) {
		path, group := strict.Join("groups", name), modelGroup(name)
		switch other, twice := first[group]; {
		case group == "":
			add(path, "a group needs the name of a model")
		case twice:
			add(path, "it shares one limit with %s; keep one of them", other)
		}
		first[group] = name
		g := l.Groups[name]
		rate(path, max(g.RequestsPerMinute, g.InputTokensPerMinute, g.OutputTokensPerMinute, g.TokensPerMinute))
	}
	if l.Window < 0 || l.Window > time.Minute {
		add("window", "%v is not between 0 and 1m", l.Window)
	}
	if l.Concurrent < 0 {
		add("concurrent", "%d is negative; leave it out for no limit", l.Concurrent)
	}
	if l.Growth != 0 && !between(l.Growth, 1, maxRate) {
		add("growth", "%v is not a factor from 1, such as 1.5", l.Growth)
	}
	return found
}
