package gateway

import (
	"cmp"
	"fmt"
	"runtime/debug"
	"slices"
	"time"

	"holdfast"
)

// Status is what there is to see of a gateway at one moment: what the admin listener gives under /api/status. Times that
// end in Seconds are in seconds. No key, and of an upstream's URL nothing but the host, is in it.
type Status struct {
	Version       string    `json:"version"`
	Started       time.Time `json:"started"`
	UptimeSeconds float64   `json:"uptime_seconds"`
	InFlight      int       `json:"in_flight"`
	Draining      bool      `json:"draining"`
	Reload        Reload    `json:"reload"`

	Targets []TargetStatus `json:"targets"`
	Routes  []RouteStatus  `json:"routes"`
	Saved   *SavedStatus   `json:"saved,omitempty"`
	Clients []ClientStatus `json:"clients"`
	Calls   []CallCount    `json:"calls"`
}

// Reload is the last time that settings were taken or refused.
type Reload struct {
	At time.Time `json:"at"`
	// Error is why they were refused. Empty: they hold.
	Error string `json:"error,omitempty"`
}

// TargetStatus is one target and what the gateway knows of its upstream.
type TargetStatus struct {
	Name    string `json:"name"`
	Host    string `json:"host"`
	Dialect string `json:"dialect,omitempty"`
	// Keys are their names. None: the callers' own keys pass through.
	Keys []string `json:"keys"`
	// Open tells that every circuit is open, and none may be probed yet. CircuitStates counts all circuits by state.
	Open          bool           `json:"open"`
	CircuitStates map[string]int `json:"circuit_states"`
	// Circuits are those of its model groups, Credentials the pace and the retry budget of its keys. Only what was
	// used has any.
	Circuits    []CircuitStatus    `json:"circuits"`
	Credentials []CredentialStatus `json:"credentials"`
	// Hidden is how many more circuits and credentials there are: callers may bring any number.
	Hidden int `json:"hidden,omitempty"`
}

// CircuitStatus is the breaker of a model group.
type CircuitStatus struct {
	Model string `json:"model"`
	// State is closed, open or half_open. Until is when a probe may go, when its lease ends, or when the ramp is over.
	State           string    `json:"state"`
	Until           time.Time `json:"until,omitzero"`
	CooldownSeconds float64   `json:"cooldown_seconds,omitempty"`
	FailuresInARow  int       `json:"failures_in_a_row,omitempty"`
}

// CredentialStatus is the pace of one key and model group, and the retry budget of the key.
type CredentialStatus struct {
	// Key is its name; "caller" for one that a caller brought.
	Key   string `json:"key"`
	Model string `json:"model"`
	// Resting is why the key is not used at present: held, as the upstream asked, spent, which is out of money, or
	// rejected, so that others of the pool are asked before it. Empty: it is used. RestingSeconds is for how long.
	Resting        string       `json:"resting,omitempty"`
	RestingSeconds float64      `json:"resting_seconds,omitempty"`
	Queued         int          `json:"queued,omitempty"`
	Requests       *LevelStatus `json:"requests,omitempty"`
	Input          *LevelStatus `json:"input_tokens,omitempty"`
	Output         *LevelStatus `json:"output_tokens,omitempty"`
	// Budget is what is left for retries, BudgetCapacity what there is when it is full.
	Budget         float64 `json:"budget"`
	BudgetCapacity float64 `json:"budget_capacity"`
}

// LevelStatus is one limit: what it allows, and what of it is left.
type LevelStatus struct {
	PerMinute int `json:"per_minute"`
	Left      int `json:"left"`
}

// RouteStatus is one route.
type RouteStatus struct {
	Name   string   `json:"name"`
	Models []string `json:"models,omitempty"`
	// Chain is what is asked, in order: the target, and after a blank the model if it is another than the request's.
	Chain     []string `json:"chain"`
	OnRefusal string   `json:"on_refusal,omitempty"`
	Delivery  string   `json:"delivery"`
}

// SavedStatus is what the saved answers are and did.
type SavedStatus struct {
	Answers int    `json:"answers"`
	Bytes   int64  `json:"bytes"`
	Hits    uint64 `json:"hits"`
	Misses  uint64 `json:"misses"`
	Kept    uint64 `json:"kept"`
	Dropped uint64 `json:"dropped"`
	// Error is what last went wrong with them, such as a full disk. Empty: nothing.
	Error string `json:"error,omitempty"`
}

// ClientStatus is a client and how many calls he made.
type ClientStatus struct {
	Name  string `json:"name"`
	Lane  string `json:"lane"`
	Calls uint64 `json:"calls"`
}

// CallCount is how many calls ended so, since the start.
type CallCount struct {
	Outcome Outcome `json:"outcome"`
	Source  string  `json:"source"`
	Calls   uint64  `json:"calls"`
}

// circuitStatus is what a breaker shows at the given time. The model is a caller's text.
func circuitStatus(model string, b *holdfast.Breaker, now time.Time) CircuitStatus {
	s := b.Status(now)
	return CircuitStatus{Model: shown(model, maxRecordName), State: s.State.String(), Until: utc(s.Until), CooldownSeconds: seconds(s.Cooldown), FailuresInARow: s.Streak}
}

// credentialStatus is what a pace and a budget show at the given time.
func credentialStatus(key, model string, p *holdfast.Pace, b *holdfast.Budget, now time.Time) CredentialStatus {
	c := CredentialStatus{Key: key, Model: shown(model, maxRecordName)}
	if p != nil {
		s := p.Status(now)
		c.Queued = s.Queued
		c.Requests, c.Input, c.Output = levelStatus(s.Requests), levelStatus(s.Input), levelStatus(s.Output)
		switch {
		case s.Rejected > 0:
			c.Resting, c.RestingSeconds = "rejected", seconds(s.Rejected)
		case s.Spent > 0:
			c.Resting, c.RestingSeconds = "spent", seconds(s.Spent)
		case s.Held > 0:
			c.Resting, c.RestingSeconds = "held", seconds(s.Held)
		}
	}
	if b != nil {
		s := b.Status(now)
		c.Budget, c.BudgetCapacity = s.Level, s.Capacity
	}
	return c
}

func levelStatus(l holdfast.Level) *LevelStatus {
	if l.PerMinute == 0 {
		return nil
	}
	return &LevelStatus{PerMinute: l.PerMinute, Left: l.Left}
}

func utc(t time.Time) time.Time {
	if t.IsZero() {
		return t
	}
	return t.UTC()
}

// mostShown is how many circuits and credentials of a target are shown.
const mostShown = 100

// arrange sums up, puts what needs attention first, and leaves out what is too much.
func (t *TargetStatus) arrange(now time.Time) {
	t.Open = allOpen(t.Circuits, now)
	t.CircuitStates = map[string]int{}
	for _, c := range t.Circuits {
		t.CircuitStates[c.State]++
	}
	slices.SortFunc(t.Circuits, func(a, b CircuitStatus) int {
		return cmp.Or(troubleFirst(a.State != closedWord, b.State != closedWord), cmp.Compare(a.Model, b.Model))
	})
	slices.SortFunc(t.Credentials, func(a, b CredentialStatus) int {
		return cmp.Or(troubleFirst(a.Resting != "", b.Resting != ""), cmp.Compare(b.Queued, a.Queued), cmp.Compare(a.Key, b.Key), cmp.Compare(a.Model, b.Model))
	})
	if n := len(t.Circuits) - mostShown; n > 0 {
		t.Circuits, t.Hidden = t.Circuits[:mostShown], t.Hidden+n
	}
	if n := len(t.Credentials) - mostShown; n > 0 {
		t.Credentials, t.Hidden = t.Credentials[:mostShown], t.Hidden+n
	}
}

func troubleFirst(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}

var closedWord, openWord = holdfast.Closed.String(), holdfast.Open.String()

// allOpen reports whether nothing can be sent through these circuits at the given time. One whose cooldown is over is not
// shut: it waits for a call to probe with, and a load balancer that sent none would keep it so for ever.
func allOpen(circuits []CircuitStatus, now time.Time) bool {
	for _, c := range circuits {
		if c.State != openWord || !now.Before(c.Until) {
			return false
		}
	}
	return len(circuits) > 0
}

// readiness is what /readyz says.
type readiness struct {
	Ready bool `json:"ready"`
	// Reasons are why not, Warnings what is wrong all the same.
	Reasons  []string `json:"reasons"`
	Warnings []string `json:"warnings"`
}

// ready decides whether calls should be sent here.
func (s *Status) ready() readiness {
	r := readiness{Reasons: []string{}, Warnings: []string{}}
	if s.Draining {
		r.Reasons = append(r.Reasons, "the gateway is shutting down")
	}
	shut := 0
	for i := range s.Targets {
		if s.Targets[i].Open {
			shut++
			r.Warnings = append(r.Warnings, fmt.Sprintf("every circuit of target %s is open", s.Targets[i].Name))
		}
	}
	if shut > 0 && shut == len(s.Targets) {
		const all = "every circuit of every target is open"
		if s.Saved != nil {
			r.Warnings = append(r.Warnings, all+", and saved answers stand in")
		} else {
			r.Reasons = append(r.Reasons, all)
		}
	}
	if s.Reload.Error != "" {
		r.Warnings = append(r.Warnings, "the last reload was refused, and the settings before it hold")
	}
	if s.Saved != nil && s.Saved.Error != "" {
		r.Warnings = append(r.Warnings, "the saved answers do not work: "+s.Saved.Error)
	}
	r.Ready = len(r.Reasons) == 0
	return r
}

// addCalls fills in what the records have counted.
func (s *Status) addCalls(rs *records) {
	ended, clients := rs.tally()
	s.Calls = []CallCount{}
	for e, n := range ended {
		s.Calls = append(s.Calls, CallCount{Outcome: e.outcome, Source: e.source.String(), Calls: n})
	}
	slices.SortFunc(s.Calls, func(a, b CallCount) int {
		return cmp.Or(cmp.Compare(a.Outcome, b.Outcome), cmp.Compare(a.Source, b.Source))
	})
	for i := range s.Clients {
		s.Clients[i].Calls = clients[s.Clients[i].Name]
	}
}

// version of the program, as its build info has it.
func version() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}
