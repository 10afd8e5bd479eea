package standin

import (
	"net/http"
	"sync"
	"time"

	"holdfast/internal/wire"
)

// throttle decides who may come in under Limits. It knows no clock: every method
// takes the time. It is safe for concurrent use; decisions are made one after the
// other, in the order in which the calls come in.
type throttle struct {
	mu       sync.Mutex
	start    time.Time
	lanes    map[laneKey]*lane
	accounts map[string]*account
	byUse    lane // ring of all lanes, the one used last in front
	maxLanes int
}

// maxLanes bounds what is remembered. Above it the lane that has been idle
// longest is forgotten: its buckets are most likely full anyway.
const maxLanes = 16_384

func newThrottle(start time.Time) *throttle {
	t := &throttle{maxLanes: maxLanes}
	t.reset(start)
	return t
}

// reset begins anew at the time: all buckets are full and nothing is counted.
// Tickets from before change nothing any more.
func (t *throttle) reset(start time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.start = start
	t.lanes, t.accounts = map[laneKey]*lane{}, map[string]*account{}
	t.byUse.older, t.byUse.newer = &t.byUse, &t.byUse
}

// pool is what a request draws on.
type pool uint8

const (
	poolMessages    pool = iota // requests and tokens of the model group
	poolCountTokens             // the requests of count_tokens
	poolOther                   // nothing but a place among the concurrent requests: batches, files, models
)

// claim is what a request asks of the throttle.
type claim struct {
	key       string // API key
	model     string
	dialect   wire.Dialect // unknown counts as Anthropic
	pool      pool
	input     int // tokens, estimated, without those read from a cache
	maxTokens int // 0: none given
}

// admit lets the request in or says why not. Without limits it lets in all, with a
// nil ticket, whose methods do nothing. A request that is let in has taken
// everything it needs; one that is not has taken nothing.
func (t *throttle) admit(now time.Time, limits *Limits, c claim) (*ticket, *denial) {
	if limits == nil {
		return nil, nil
	}
	t.mu.Lock()
	l, at := t.lane(c), now.Sub(t.start)
	l.tune(at, limits)
	need := c.need()
	d := l.refuse(at, limits, need)
	if d != nil {
		l.denied++
		d.claim, d.view = c, l.view(now)
		t.mu.Unlock()
		return nil, d
	}
	l.take(at, limits, need)
	k := &ticket{throttle: t, lane: l, input: need[kindInput], view: l.view(now)}
	t.mu.Unlock()
	return k, nil
}

// kinds of buckets, as indexes.
const (
	kindRequests = iota
	kindInput
	kindOutput
	kindTokens // of the OpenAI dialect
	bucketKinds
)

// need is how much of each bucket must be there.
type need [bucketKinds]int64

func (c claim) need() need {
	n := need{kindRequests: 1}
	input := int64(max(0, c.input))
	switch {
	case c.pool != poolMessages:
	case c.dialect == wire.DialectOpenAI:
		n[kindTokens] = max(input, int64(c.maxTokens))
	default:
		n[kindInput], n[kindOutput] = input, 1
	}
	return n
}

// ticket is the permission of one request. Its methods are safe for concurrent
// use and for a nil ticket.
type ticket struct {
	view

	throttle      *throttle
	lane          *lane
	input, output int64 // charged so far
	over          bool
}

// header writes the rate-limit headers of the reply.
func (k *ticket) header(h http.Header) {
	if k != nil {
		k.view.header(h)
	}
}

// settle puts the charge right when the true numbers are known: all input that
// counts, without cache reads, and all output so far. It may be called as often
// as they change. Without it the estimate stays charged and no output is, as it is
// for a request that failed. The OpenAI dialect keeps what it charged up front.
func (k *ticket) settle(now time.Time, input, output int) {
	if k == nil {
		return
	}
	k.throttle.mu.Lock()
	defer k.throttle.mu.Unlock()
	if k.lane.pool != poolMessages || k.lane.dialect == wire.DialectOpenAI {
		return
	}
	at := now.Sub(k.throttle.start)
	in, out := int64(max(0, input)), int64(max(0, output))
	k.lane.charge(at, kindInput, in-k.input)
	k.lane.charge(at, kindOutput, out-k.output)
	k.input, k.output = in, out
}

// done gives back the place among the concurrent requests. More calls than one
// do nothing.
func (k *ticket) done() {
	if k == nil {
		return
	}
	k.throttle.mu.Lock()
	defer k.throttle.mu.Unlock()
	if !k.over {
		k.over = true
		k.lane.open--
		k.lane.account.open--
	}
}
