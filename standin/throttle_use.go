package standin

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"
	"time"
)

// LimitUse is what one key has made of its limits in one model group. It is for
// judging a client: one that keeps itself busy takes nearly all that was on offer and
// is denied next to nothing.
type LimitUse struct {
	// Key stands for the API key: the first 12 hex digits of its SHA-256.
	Key string `json:"key"`
	// Group is the model group, "" for the pool of count_tokens.
	Group string `json:"group"`
	// Admitted and Denied count the requests that were let in and those that got
	// a 429.
	Admitted int64 `json:"admitted"`
	Denied   int64 `json:"denied"`
	// Since is the time from the start to the first request.
	Since time.Duration `json:"since"`
	// Requests, InputTokens and OutputTokens are the buckets, in the OpenAI dialect
	// Requests and Tokens. One without a limit has the use alone.
	Requests     BucketUse `json:"requests"`
	InputTokens  BucketUse `json:"input_tokens"`
	OutputTokens BucketUse `json:"output_tokens"`
	Tokens       BucketUse `json:"tokens"`
}

// BucketUse is what was taken of one bucket.
type BucketUse struct {
	// Limit is the number per minute in force last. 0: no limit.
	Limit int64 `json:"limit"`
	// Used is what requests took.
	Used int64 `json:"used"`
	// Supply is what was on offer since the first request: the first filling and
	// all refill, also that which ran over because the bucket was full.
	Supply int64 `json:"supply"`
	// Share is Used over Supply, 0 without a limit. It can exceed 1 while output is
	// in debt.
	Share float64 `json:"share"`
}

// use returns what has been made of the limits up to now, in an order
// that every run repeats. Keys that were forgotten are missing.
func (t *throttle) use(now time.Time) []LimitUse {
	t.mu.Lock()
	defer t.mu.Unlock()
	at := now.Sub(t.start)
	asked := slices.DeleteFunc(slices.Collect(maps.Values(t.lanes)), func(l *lane) bool {
		return l.pool == poolOther || l.admitted+l.denied == 0
	})
	var all []LimitUse
	slices.SortFunc(asked, func(a, b *lane) int {
		return cmp.Or(cmp.Compare(a.key, b.key), cmp.Compare(a.group, b.group), cmp.Compare(a.pool, b.pool), cmp.Compare(a.dialect, b.dialect))
	})
	for _, l := range asked {
		sum := sha256.Sum256([]byte(l.key))
		all = append(all, LimitUse{
			Key: hex.EncodeToString(sum[:6]), Group: l.group, Admitted: l.admitted, Denied: l.denied, Since: l.began,
			Requests: l.useOf(at, kindRequests), InputTokens: l.useOf(at, kindInput),
			OutputTokens: l.useOf(at, kindOutput), Tokens: l.useOf(at, kindTokens),
		})
	}
	return all
}

func (l *lane) useOf(at time.Duration, kind int) BucketUse {
	b := &l.buckets[kind]
	u := BucketUse{Limit: b.limit, Used: l.used[kind]}
	if supply := b.supply(at); supply > 0 {
		u.Supply, u.Share = supply, float64(u.Used)/float64(supply)
	}
	return u
}
