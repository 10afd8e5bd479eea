package gateway

import (
	"net/http"
	"sync"

	lru "github.com/hashicorp/golang-lru/v2"

	"holdfast"
)

// health is what the gateway knows of its upstreams: a breaker for each upstream and model group, a pace and a budget for each
// credential of it. It outlives reloads. The number is bounded, since models and keys come from callers.
type health struct {
	mu       sync.Mutex
	breakers *lru.Cache[healthKey, *circuit]
	paces    *lru.Cache[healthKey, *limiter]
	budgets  *lru.Cache[healthKey, *purse]
	clients  map[string]*limiter
	base     *http.Transport
}

// healthKey is one upstream, credential and model group. A breaker has no credential: an upstream that fails does not
// look at the key.
type healthKey struct {
	target, key string
	caller      digest
	group       string
	counts      bool // the counting of tokens, which has limits of its own
}

type circuit struct {
	settings holdfast.BreakerSettings
	breaker  *holdfast.Breaker
}

type limiter struct {
	settings holdfast.Limits
	pace     *holdfast.Pace
}

type purse struct {
	settings holdfast.BudgetSettings
	budget   *holdfast.Budget
}

// mostHealth is how many of each are known. The one that was longest of no use goes.
const mostHealth = 4096

func newHealth() *health {
	h := &health{clients: map[string]*limiter{}}
	// New fails only for a size that is not positive.
	h.breakers, _ = lru.New[healthKey, *circuit](mostHealth)
	h.paces, _ = lru.New[healthKey, *limiter](mostHealth)
	h.budgets, _ = lru.New[healthKey, *purse](mostHealth)
	return h
}

func (h *health) breaker(k healthKey, s holdfast.BreakerSettings) *holdfast.Breaker {
	k.key, k.caller, k.counts = "", digest{}, false
	h.mu.Lock()
	defer h.mu.Unlock()
	if known, ok := h.breakers.Get(k); ok && sameBreaker(known.settings, s) {
		return known.breaker
	}
	made := &circuit{settings: s, breaker: holdfast.NewBreaker(s)}
	h.breakers.Add(k, made)
	return made.breaker
}

// sameBreaker compares settings apart from OnChange, which is the gateway's own.
func sameBreaker(a, b holdfast.BreakerSettings) bool {
	a.OnChange, b.OnChange = nil, nil
	return a.Failures == b.Failures && a.Ratio == b.Ratio && a.Window == b.Window && a.MinCalls == b.MinCalls && a.SlowCall == b.SlowCall &&
		a.Cooldown == b.Cooldown && a.MaxCooldown == b.MaxCooldown && a.Probes == b.Probes && a.Lease == b.Lease && a.Ramp == b.Ramp && a.Count == b.Count
}

func (h *health) limiter(k healthKey, s holdfast.Limits) *limiter {
	h.mu.Lock()
	defer h.mu.Unlock()
	if known, ok := h.paces.Get(k); ok && known.settings == s {
		return known
	}
	made := &limiter{settings: s, pace: holdfast.NewPace(s)}
	h.paces.Add(k, made)
	return made
}

func (h *health) budget(k healthKey, s holdfast.BudgetSettings) *holdfast.Budget {
	k.group, k.counts = "", false
	h.mu.Lock()
	defer h.mu.Unlock()
	if known, ok := h.budgets.Get(k); ok && known.settings == s {
		return known.budget
	}
	made := &purse{settings: s, budget: holdfast.NewBudget(s)}
	h.budgets.Add(k, made)
	return made.budget
}

func (h *health) clientPace(c Client) *holdfast.Pace {
	s := holdfast.Limits{RequestsPerMinute: c.RequestsPerMinute, Queue: -1}
	h.mu.Lock()
	defer h.mu.Unlock()
	if known := h.clients[c.Name]; known != nil && known.settings == s {
		return known.pace
	}
	made := &limiter{settings: s, pace: holdfast.NewPace(s)}
	h.clients[c.Name] = made
	return made.pace
}
