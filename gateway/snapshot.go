package gateway

import (
	"net/http"
	"time"

	"holdfast"
	"holdfast/saved"
)

// Admin returns the handler of the admin listener: health, readiness, status, the last calls, and metrics if a handler
// for them is given.
func (g *Gateway) Admin(metrics http.Handler) http.Handler {
	return newAdmin(g.Status, g.records, metrics)
}

// Status is what there is to see at the given time.
func (g *Gateway) Status(now time.Time) Status {
	s := g.now.Load()
	st := Status{
		Version: version(), Started: g.started, UptimeSeconds: seconds(now.Sub(g.started)), InFlight: g.InFlight(), Draining: g.draining.Load(),
		Reload: *g.reload.Load(), Targets: []TargetStatus{}, Routes: []RouteStatus{}, Clients: []ClientStatus{},
	}
	for _, up := range s.targets {
		t := TargetStatus{Name: up.Name, Host: up.url.Host, Dialect: up.Dialect, Keys: []string{}}
		for _, k := range up.Keys {
			t.Keys = append(t.Keys, k.Name)
		}
		g.health.show(&t, now)
		t.arrange(now)
		st.Targets = append(st.Targets, t)
	}
	for _, r := range s.routes {
		st.Routes = append(st.Routes, r.status())
	}
	for _, c := range s.clients {
		st.Clients = append(st.Clients, ClientStatus{Name: c.Name, Lane: c.Lane.String()})
	}
	if shown, ok := s.settings.Saved.(interface{ Stats() saved.Stats }); ok {
		n := shown.Stats()
		st.Saved = &SavedStatus{Answers: n.Answers, Bytes: n.Bytes, Hits: uint64(n.Hits), Misses: uint64(n.Misses), Kept: uint64(n.Keeps), Dropped: uint64(n.Drops)}
		if n.Err != nil {
			st.Saved.Error = n.Err.Error()
		}
	}
	st.addCalls(g.records)
	return st
}

func (r *route) status() RouteStatus {
	st := RouteStatus{Name: r.name, Models: r.models, Delivery: "live"}
	if r.delivery == Whole {
		st.Delivery = "whole"
	}
	for _, e := range r.chain {
		st.Chain = append(st.Chain, e.words())
	}
	if r.saved {
		st.Chain = append(st.Chain, "saved")
	}
	if r.onRefusal != nil {
		st.OnRefusal = r.onRefusal.words()
	}
	return st
}

func (e *entry) words() string {
	if e.Model == "" {
		return e.up.Name
	}
	return e.up.Name + " " + e.Model
}

// show fills in what is known of a target.
func (h *health) show(t *TargetStatus, now time.Time) {
	h.mu.Lock()
	circuits, limiters := map[healthKey]*holdfast.Breaker{}, map[healthKey]*limiter{}
	budgets := map[healthKey]*holdfast.Budget{}
	for _, k := range h.breakers.Keys() {
		if c, ok := h.breakers.Peek(k); ok && k.target == t.Name {
			circuits[k] = c.breaker
		}
	}
	for _, k := range h.paces.Keys() {
		if l, ok := h.paces.Peek(k); ok && k.target == t.Name {
			limiters[k] = l
		}
	}
	for _, k := range h.budgets.Keys() {
		if p, ok := h.budgets.Peek(k); ok && k.target == t.Name {
			budgets[k] = p.budget
		}
	}
	h.mu.Unlock()
	for k, b := range circuits {
		t.Circuits = append(t.Circuits, circuitStatus(k.group, b, now))
	}
	for k, l := range limiters {
		name := k.key
		if name == "" {
			name = "caller"
		}
		purse := k
		purse.group, purse.counts = "", false
		group := k.group
		if k.counts {
			group += " (count_tokens)"
		}
		c := credentialStatus(name, group, l.pace, budgets[purse], now)
		t.Credentials = append(t.Credentials, c)
	}
}
