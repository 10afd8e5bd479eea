package standin

import "time"

// on reports whether the incident is on.
func (n *Incident) on(now time.Duration) bool { return now >= n.From && (n.To == 0 || now < n.To) }

// share returns the part of the requests that get the step.
func (n *Incident) share(now time.Duration) float64 {
	if n.To == 0 {
		return n.Share.at(0)
	}
	return n.Share.at(float64(now-n.From) / float64(n.To-n.From))
}

// limitsAt returns the limits that hold at a time since the origin. nil: none.
// The pointer is the same for as long as the limits are.
func (s *script) limitsAt(now time.Duration) *Limits {
	for i := range s.timeline {
		if n := &s.timeline[i]; n.Limits != nil && n.on(now) {
			return n.Limits
		}
	}
	return s.limits
}

// connections returns what happens to connections at a time since the origin,
// Refused, Hang or "", and when that changes next, never if it does not.
func (s *script) connections(now time.Duration) (kind Kind, until time.Duration) {
	kind = s.connectionsAt(now)
	until = never
	for i := range s.timeline {
		n := &s.timeline[i]
		if !n.Step.onConnections() {
			continue
		}
		for _, bound := range []time.Duration{n.From, n.To} {
			if bound > now && (until == never || bound < until) && s.connectionsAt(bound) != kind {
				until = bound
			}
		}
	}
	return kind, until
}

func (s *script) connectionsAt(now time.Duration) Kind {
	for i := range s.timeline {
		if n := &s.timeline[i]; n.Step.onConnections() && n.on(now) {
			return n.Step.Kind
		}
	}
	return ""
}
