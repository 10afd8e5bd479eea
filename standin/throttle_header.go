package standin

import (
	"net/http"
	"strconv"
	"time"

	"holdfast/internal/wire"
)

// view is how full the buckets of a request are, for the headers of its reply: as
// they were right after it was let in or refused, for that is when a server sends
// them, before it knows the length of the answer.
type view struct {
	at     time.Time
	openAI bool
	rows   [bucketKinds]gauge
}

// gauge is one bucket of a view. The zero value is a bucket that there is not.
type gauge struct {
	limit, remaining int64
	full             time.Duration // until it is
}

// view reads the buckets at a time that they have been advanced to.
func (l *lane) view(now time.Time) view {
	v := view{at: now, openAI: l.dialect == wire.DialectOpenAI}
	for i := range l.buckets {
		if b := &l.buckets[i]; b.limit > 0 {
			v.rows[i] = gauge{limit: b.limit, remaining: b.remaining(), full: b.full()}
		}
	}
	return v
}

// header writes the rate-limit headers of the dialect. Buckets without a limit
// have none, nor has a nil view.
func (v *view) header(h http.Header) {
	switch {
	case v == nil:
	case v.openAI:
		v.openAIHeader(h)
	default:
		v.anthropicHeader(h)
	}
}

// anthropicHeader writes the set of the Claude API. What tokens-* holds is input
// and output together, and its reset is the earlier of theirs: all recorded
// replies have it so.
func (v *view) anthropicHeader(h http.Header) {
	in, out := v.rows[kindInput], v.rows[kindOutput]
	in.remaining, out.remaining = rounded(in), rounded(out)
	both := gauge{limit: in.limit + out.limit, remaining: in.remaining + out.remaining, full: min(in.full, out.full)}
	switch {
	case in.limit == 0:
		both.full = out.full
	case out.limit == 0:
		both.full = in.full
	}
	for _, row := range [...]struct {
		gauge
		limit, remaining, reset string
	}{
		{v.rows[kindRequests], "Anthropic-Ratelimit-Requests-Limit", "Anthropic-Ratelimit-Requests-Remaining", "Anthropic-Ratelimit-Requests-Reset"},
		{in, "Anthropic-Ratelimit-Input-Tokens-Limit", "Anthropic-Ratelimit-Input-Tokens-Remaining", "Anthropic-Ratelimit-Input-Tokens-Reset"},
		{out, "Anthropic-Ratelimit-Output-Tokens-Limit", "Anthropic-Ratelimit-Output-Tokens-Remaining", "Anthropic-Ratelimit-Output-Tokens-Reset"},
		{both, "Anthropic-Ratelimit-Tokens-Limit", "Anthropic-Ratelimit-Tokens-Remaining", "Anthropic-Ratelimit-Tokens-Reset"},
	} {
		if row.gauge.limit == 0 {
			continue
		}
		h[row.limit] = []string{strconv.FormatInt(row.gauge.limit, 10)}
		h[row.remaining] = []string{strconv.FormatInt(row.gauge.remaining, 10)}
		h[row.reset] = []string{wholeSeconds(v.at.Add(row.full))}
	}
}

// wholeSeconds writes a time as RFC 3339 in UTC. The part of a second is cut off,
// so a bucket that is full can name a time that is past: recorded replies do.
func wholeSeconds(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// rounded returns the remaining tokens to the nearest 1,000, never more than the
// limit. Limits below that, which no organisation has, are told as they are.
func rounded(g gauge) int64 {
	if g.limit < 1000 {
		return g.remaining
	}
	return min(g.limit, (g.remaining+500)/1000*1000)
}

// openAIHeader writes the set of the OpenAI API. Its reset is the time until the
// bucket is full, written like a Go duration.
func (v *view) openAIHeader(h http.Header) {
	for _, row := range [...]struct {
		gauge
		limit, remaining, reset string
	}{
		{v.rows[kindRequests], "X-Ratelimit-Limit-Requests", "X-Ratelimit-Remaining-Requests", "X-Ratelimit-Reset-Requests"},
		{v.rows[kindTokens], "X-Ratelimit-Limit-Tokens", "X-Ratelimit-Remaining-Tokens", "X-Ratelimit-Reset-Tokens"},
	} {
		if row.gauge.limit == 0 {
			continue
		}
		h[row.limit] = []string{strconv.FormatInt(row.gauge.limit, 10)}
		h[row.remaining] = []string{strconv.FormatInt(row.gauge.remaining, 10)}
		h[row.reset] = []string{milliseconds(row.full)}
	}
}
