package standin

import "time"

// peek returns the rate-limit headers of the claim's buckets without taking
// anything. nil without limits.
func (t *throttle) peek(now time.Time, limits *Limits, c claim) *view {
	if limits == nil {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	l := t.lane(c)
	l.tune(now.Sub(t.start), limits)
	v := l.view(now)
	return &v
}

// name returns what was short.
func (d *denial) name() string {
	kind, empty := d.reason.bucket()
	switch {
	case d.reason == tooManyOpen:
		return "concurrent"
	case d.reason == tooSteep:
		return "growth"
	case empty && d.claim.pool == poolCountTokens:
		return "count_tokens"
	}
	return [...]string{kindRequests: "requests", kindInput: "input_tokens", kindOutput: "output_tokens", kindTokens: "tokens"}[kind]
}
