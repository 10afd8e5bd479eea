package gateway

import (
	"net/http"
	"strings"

	"holdfast"
	"holdfast/internal/wire"
)

// lineup is what a call may ask, in order, ready to be used: the entries of its route, each with each of its keys, with their
// breakers and paces. It is the same for all calls of one route, model and credential.
type lineup struct {
	policy holdfast.Policy
	stops  []*stop
	keys   []string // that calls are made with: so many of the gateway's own, and the caller's
	own    int
}

// stop is one place of a lineup: an upstream, a credential and a model.
type stop struct {
	name    string
	entry   *entry
	secret  string // empty: the caller's own
	key     string // its name
	group   string
	limiter *limiter
	breaker *holdfast.Breaker
}

type lineupKey struct {
	route  *route
	model  string
	caller digest
	only   bool // the first entry and key alone
	counts bool // counts tokens
	long   bool // the caller listens to events for as long as they come
}

// lineup returns the one for the call. What is no call of a model goes to the first target alone, and with its first key:
// a file or a batch is where it was made, and another provider knows nothing of it.
func (s *state) lineup(c *call) *lineup {
	k := lineupKey{route: c.route, model: c.record.Model, caller: digestOf(c.r.Header), only: !asksModel(c)}
	k.long = k.only && c.r.Method == http.MethodGet && strings.Contains(c.r.Header.Get("Accept"), "text/event-stream")
	k.counts = strings.HasSuffix(c.r.URL.Path, "/count_tokens")
	if l, ok := s.lineups.Get(k); ok {
		return l
	}
	l := s.lineUp(k)
	l.know(c.r.Header)
	s.lineups.Add(k, l)
	return l
}

// asksModel reports whether the call asks a model, so that any target can answer it.
func asksModel(c *call) bool {
	return wire.DialectOf(c.r.URL.Path) != wire.DialectUnknown && c.record.Model != "" && !strings.Contains(c.r.URL.Path, "/batches")
}

func (s *state) lineUp(k lineupKey) *lineup {
	l := &lineup{policy: s.settings.Policy}
	for i, e := range k.route.chain {
		if i > 0 && k.counts && e.up.Lacks.CountTokens {
			continue
		}
		s.addStops(l, e, k)
		if k.only {
			l.stops = l.stops[:1]
			break
		}
	}
	p := &l.policy
	if k.long {
		p.Deadline, p.AttemptTimeout = -1, -1 // the events of a session come for hours
	}
	p.Breaker, p.Pace, p.Judge, p.Estimate, p.Usage = nil, nil, nil, nil, nil
	p.Budget = s.health.budget(l.stops[0].healthKey(k), s.settings.Budget)
	p.Targets = nil
	for _, st := range l.stops {
		p.Targets = append(p.Targets, st.target())
	}
	if e := k.route.onRefusal; e != nil && !k.only {
		from := len(l.stops)
		s.addStops(l, e, k)
		p.RefusalFallback = true
		for _, st := range l.stops[from:] {
			t := st.target()
			t.Name, st.name = "on-refusal:"+t.Name, "on-refusal:"+t.Name
			t.OnRefusal = true
			p.Targets = append(p.Targets, t)
		}
	}
	if o := s.settings.Observer; o != nil {
		p.Observe = o.Event
	}
	return l
}

// addStops adds an entry with each of its keys.
func (s *state) addStops(l *lineup, e *entry, k lineupKey) {
	keys := e.keys
	if len(keys) == 0 {
		keys = []Key{{}}
	}
	model := e.model(k.model)
	for _, key := range keys {
		st := &stop{entry: e, secret: key.Secret, key: key.Name, group: modelGroup(model)}
		st.name = e.up.Name
		if len(keys) > 1 {
			st.name += "/" + key.Name
		}
		if e.Model != "" {
			st.name += ":" + e.Model
		}
		breaker, limits := s.settings.Breaker, s.settings.Pace
		if e.up.Breaker != nil {
			breaker = *e.up.Breaker
		}
		if e.up.Pace != nil {
			limits = *e.up.Pace
		}
		hk := st.healthKey(k)
		st.breaker = s.health.breaker(hk, breaker)
		st.limiter = s.health.limiter(hk, limits)
		st.name = l.free(st.name)
		l.stops = append(l.stops, st)
	}
}

// free is a name that no stop has.
func (l *lineup) free(name string) string {
	for _, st := range l.stops {
		if st.name == name {
			return l.free(name + "'")
		}
	}
	return name
}

func (st *stop) healthKey(k lineupKey) healthKey {
	hk := healthKey{target: st.entry.up.Name, key: st.key, group: st.group, counts: k.counts}
	if st.secret == "" && st.entry.up.Base == nil {
		hk.caller = k.caller
	}
	return hk
}

// target is the stop as the policy knows it.
func (st *stop) target() holdfast.Target {
	t := holdfast.Target{Name: st.name, Credential: st.entry.up.Name + "/" + st.key, Model: st.entry.Model, Breaker: st.breaker, Pace: st.limiter.pace}
	if len(st.entry.keys) > 1 {
		t.Pool = st.entry.up.Name + ":" + st.entry.Model + ":" + st.entry.Path
	}
	return t
}

// find is the stop of a name.
func (l *lineup) find(name string) *stop {
	for _, st := range l.stops {
		if st.name == name {
			return st
		}
	}
	return nil
}

// sharedGroups are the model groups that share one rate limit, by the beginning of the model's name:
// the Claude API counts Opus 4.x together and Sonnet 4.x together (its documentation of rate limits).
var sharedGroups = []string{"claude-opus-4", "claude-sonnet-4"}

// modelGroup is what a model shares its rate limit with: its name without a date, or its family.
func modelGroup(model string) string {
	for _, g := range sharedGroups {
		if rest, ok := strings.CutPrefix(model, g); ok && (rest == "" || rest[0] == '-' || rest[0] == '@') {
			return g
		}
	}
	if at := strings.LastIndexByte(model, '-'); at > 0 && len(model)-at-1 == len("20260101") && isDigits(model[at+1:]) {
		return model[:at]
	}
	return strings.TrimSuffix(model, "-latest")
}

func isDigits(s string) bool {
	for _, c := range s {
		if c < '0' || c > '9' {
			return false
		}
	}
	return true
}
