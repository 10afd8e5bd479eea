package standin

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"time"

	"holdfast/internal/wire"
)

// laneKey is whose buckets they are.
type laneKey struct {
	key     string // API key, or what stands for a long one
	group   string // of models; "" where models do not matter
	dialect wire.Dialect
	pool    pool
}

// lane is the buckets of one key and model group, with what became of the
// requests that asked for them.
type lane struct {
	laneKey
	account *account
	open    int // requests let in that are not over
	buckets [bucketKinds]bucket
	used    [bucketKinds]int64
	limits  *Limits // where the numbers of the buckets are from
	began   time.Duration

	admitted, denied int64
	older, newer     *lane
}

// account is what all lanes of a key share.
type account struct {
	lanes  int
	open   int
	growth *growth // nil until there is a limit to growth
}

// lane finds the lane of a claim, or opens one, and puts it in front of the ring.
func (t *throttle) lane(c claim) *lane {
	key := laneKey{key: shortKey(c.key), dialect: c.dialect, pool: c.pool}
	if c.pool == poolMessages {
		key.group = shortKey(modelGroup(c.model))
	}
	l := t.lanes[key]
	if l == nil {
		l = t.open(key)
	} else {
		l.older.newer, l.newer.older = l.newer, l.older
	}
	l.older, l.newer = t.byUse.older, &t.byUse
	l.older.newer, t.byUse.older = l, l
	return l
}

// open adds a lane, and forgets one when there are too many.
func (t *throttle) open(key laneKey) *lane {
	if len(t.lanes) >= t.maxLanes {
		t.forget()
	}
	key.key, key.group = strings.Clone(key.key), strings.Clone(key.group) // the request they are cut from may be large
	a := t.accounts[key.key]
	if a == nil {
		a = &account{}
		t.accounts[key.key] = a
	}
	a.lanes++
	l := &lane{laneKey: key, account: a}
	t.lanes[key] = l
	return l
}

// forget drops the lane that has been idle longest. Lanes with open requests
// stay, and there are no more of them than requests.
func (t *throttle) forget() {
	l := t.byUse.newer
	for l != &t.byUse && l.open > 0 {
		l = l.newer
	}
	if l == &t.byUse {
		return
	}
	l.older.newer, l.newer.older = l.newer, l.older
	delete(t.lanes, l.laneKey)
	if l.account.lanes--; l.account.lanes == 0 {
		delete(t.accounts, l.key)
	}
}

// longestKey is the longest text that is kept as a key of a lane. API keys and
// names of models are shorter by far.
const longestKey = 256

// shortKey returns the text, or a digest that stands for a long one.
func shortKey(text string) string {
	if len(text) <= longestKey {
		return text
	}
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// tune brings the buckets to the time and to the limits in force.
func (l *lane) tune(at time.Duration, limits *Limits) {
	if l.limits == limits {
		for i := range l.buckets {
			l.buckets[i].advance(at)
		}
		return
	}
	if l.limits == nil {
		l.began = at
	}
	l.limits = limits
	r := limits.rates(l.group)
	window := func(limit int64) int64 {
		if limit == 0 || limits.Window <= 0 || limits.Window > time.Minute {
			return limit
		}
		return max(1, scaled(limit, int64(limits.Window), int64(time.Minute)))
	}
	set := func(kind int, limit, hold int64) { l.buckets[kind].retune(at, limit, hold) }
	switch {
	case l.pool == poolCountTokens:
		set(kindRequests, r.countTokens, window(r.countTokens))
	case l.pool == poolOther:
	case l.dialect == wire.DialectOpenAI:
		set(kindRequests, r.requests, window(r.requests))
		set(kindTokens, r.tokens, window(r.tokens))
	default:
		set(kindRequests, r.requests, window(r.requests))
		set(kindInput, r.input, window(r.input))
		set(kindOutput, r.output, r.output) // the length of an answer is nobody's burst
	}
}

// refuse returns why a request that needs so much cannot come in now, or nil.
// Of several reasons it names the one that lasts longest, and that long is the
// wait: who comes back then finds everything there.
func (l *lane) refuse(at time.Duration, limits *Limits, need need) *denial {
	if limits.Concurrent > 0 && l.account.open >= limits.Concurrent {
		return &denial{reason: tooManyOpen, limit: int64(limits.Concurrent)}
	}
	var longest time.Duration
	reason := letIn
	for kind := range l.buckets {
		if w := l.buckets[kind].wait(need[kind]); w > longest {
			longest, reason = w, bucketEmpty+denialReason(kind)
		}
	}
	if g := l.account.growth; g != nil && limits.Growth > 0 && l.pool == poolMessages && longest != neverFits {
		g.advance(at)
		if w := g.wait(at, longest, limits.Growth, growthFree(l.buckets[kindRequests].limit)); w > longest {
			longest, reason = w, tooSteep
		}
	}
	if reason == letIn {
		return nil
	}
	d := &denial{reason: reason, wait: longest}
	if kind, ok := reason.bucket(); ok {
		b := &l.buckets[kind]
		d.limit, d.used, d.requested = b.limit, b.limit-b.remaining(), need[kind]
	}
	return d
}

// take takes what refuse has found to be there.
func (l *lane) take(at time.Duration, limits *Limits, need need) {
	need[kindOutput] = 0 // counted when it is produced
	for kind, n := range need {
		l.charge(at, kind, n)
	}
	l.admitted++
	l.open++
	l.account.open++
	if limits.Growth > 0 && l.pool == poolMessages {
		if l.account.growth == nil {
			l.account.growth = &growth{}
		}
		l.account.growth.advance(at)
		l.account.growth.add()
	}
}

// charge takes n units from a bucket, or gives them back when n is negative.
func (l *lane) charge(at time.Duration, kind int, n int64) {
	l.buckets[kind].advance(at)
	l.buckets[kind].take(n)
	l.used[kind] += n
}
