package standin

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"holdfast/internal/strict"
)

// maxAfter bounds Step.After, and with it the size of a repeated answer.
const maxAfter = 1_000_000

// Validate reports every mistake of the plan at once as a *PlanError, each with
// its place, or returns nil. It changes nothing. Plans of ParsePlan and LoadPlan
// have been checked.
func (p Plan) Validate() error {
	var d strict.Document
	check(&p, &d)
	return planError(&d)
}

// checker looks for mistakes in values that have been read.
type checker struct{ doc *strict.Document }

// wrong adds a mistake about the value at path.
func (c checker) wrong(path, format string, args ...any) {
	if !c.doc.Misread(path) {
		c.doc.Wrong(path, format, args...)
	}
}

func check(p *Plan, doc *strict.Document) {
	c := checker{doc}
	c.names(p)
	for i := range p.Rules {
		c.rule(item("rules", i), &p.Rules[i])
	}
	for _, job := range slices.Sorted(maps.Keys(p.Jobs)) {
		path := strict.Join("jobs", job)
		if job == "" {
			c.wrong(path, "a job needs a text to know its requests by")
		}
		c.steps(path, p.Jobs[job])
	}
	c.steps("steps", p.Steps)
	for i := range p.Timeline {
		c.incident(item("timeline", i), &p.Timeline[i])
	}
	if p.Limits != nil {
		c.limits("limits", p.Limits)
	}
	c.latency("latency", p.Latency)
	for i, key := range p.BadKeys {
		if key == "" {
			c.wrong(item("bad_keys", i), "a missing key is bad already; remove the empty one")
		}
	}
}

func item(path string, i int) string { return strict.Join(path, strconv.Itoa(i)) }

// names refuses a name that stands twice: draws and journal go by it.
func (c checker) names(p *Plan) {
	first := map[string]string{}
	one := func(path, name string) {
		if before, again := first[name]; again {
			c.wrong(path+".name", "%q is the name of %s already; draws and journal go by it", name, before)
			return
		}
		first[name] = path
	}
	for i := range p.Rules {
		one(item("rules", i), p.Rules[i].name(i))
	}
	for i := range p.Timeline {
		one(item("timeline", i), p.Timeline[i].name(i))
	}
}

func (c checker) rule(path string, r *Rule) {
	c.match(path+".match", &r.Match)
	c.word(path+".per", r.Per)
	if !between(r.Share, 0, 1) {
		c.wrong(path+".share", "%v is not between 0 and 1", r.Share)
	} else if r.Share == 0 && c.doc.Line(path+".share") > 0 {
		c.wrong(path+".share", "0 would hit no request; remove the rule")
	}
	c.steps(path+".steps", r.Steps)
	c.step(path+".then", &r.Then)
	if r.Then.Times != 0 {
		c.wrong(path+".then.times", "then is for all requests after the steps; it takes no times")
	}
	if n := len(r.Steps); n > 0 && r.Steps[n-1].Times < 0 && !r.Then.isZero() {
		c.wrong(path+".then", "the last step has negative times, so then is never played")
	}
}

func (c checker) match(path string, m *Match) {
	if m.Path != "" && !strings.ContainsAny(m.Path[:1], "/*?") {
		c.wrong(path+".path", "%q fits no path; they begin with a slash", m.Path)
	}
	for _, name := range slices.Sorted(maps.Keys(m.Header)) {
		if !headerName(name) {
			c.wrong(strict.Join(path+".header", name), "%q is not the name of a header", name)
		}
	}
	if n := m.Nth; n.From < 0 || n.To < 0 || n.Every < 0 || n.To > 0 && n.To < n.From {
		c.wrong(path+".nth", "from %d to %d, every %d, is no range of counts", n.From, n.To, n.Every)
	}
	if m.Attempt != nil && *m.Attempt < 0 {
		c.wrong(path+".attempt", "%d is negative; the SDKs count from 0", *m.Attempt)
	}
}

func (c checker) incident(path string, n *Incident) {
	c.match(path+".match", &n.Match)
	if n.From < 0 {
		c.wrong(path+".from", "%v is negative; the timeline begins at 0", n.From)
	}
	if n.To < 0 || n.To > 0 && n.To <= n.From {
		c.wrong(path+".to", "%v is not behind from, which is %v; leave it out for an incident without an end", n.To, n.From)
	}
	for _, share := range []struct {
		key   string
		value float64
	}{{".from", n.Share.From}, {".to", n.Share.To}} {
		at := path + ".share"
		if c.doc.Line(at+share.key) > 0 {
			at += share.key
		}
		if !between(share.value, 0, 1) {
			c.wrong(at, "%v is not between 0 and 1", share.value)
			break
		}
	}
	if n.Share == (Ramp{}) && c.doc.Line(path+".share.to") > 0 {
		c.wrong(path+".share", "from 0 to 0 would hit no request; remove the incident")
	}
	c.incidentStep(path, n)
	if n.Limits != nil {
		c.limits(path+".limits", n.Limits)
	}
	if n.Latency != nil {
		c.latency(path+".latency", *n.Latency)
	}
}

// incidentStep checks the step of an incident, and what goes together with it.
func (c checker) incidentStep(path string, n *Incident) {
	if n.Step.isZero() && !c.doc.Misread(path+".step") {
		switch {
		case n.Limits == nil && n.Latency == nil:
			c.wrong(path, "this incident changes nothing; it needs a step, limits or latency")
		case n.Share != Ramp{}:
			c.wrong(path+".share", "a share is of the requests that get the step, and there is none")
		case n.Latency == nil && !n.Match.isZero():
			c.wrong(path+".match", "limits hold for all requests, whatever matches")
		}
	}
	if !n.Step.onConnections() {
		c.step(path+".step", &n.Step)
		if n.Step.Times != 0 {
			c.wrong(path+".step.times", "the step of an incident takes no times; match.nth counts its requests")
		}
		return
	}
	c.fields(path+".step", &n.Step)
	c.times(path+".step", &n.Step)
	if !n.Match.isZero() {
		c.wrong(path+".match", "%s is about connections, before there is a request to match", n.Step.Kind)
	}
	if n.Share != (Ramp{}) {
		c.wrong(path+".share", "%s is for every connection; it takes no share", n.Step.Kind)
	}
}

func (c checker) limits(path string, l *Limits) {
	c.word(path+".tier", l.Tier)
	for _, m := range l.mistakes() {
		c.wrong(path+"."+m.path, "%s", m.text)
	}
}

func (c checker) latency(path string, l Latency) {
	c.spread(path+".first_token", l.FirstToken)
	c.spread(path+".per_token", l.PerToken)
}

func (c checker) spread(path string, s Spread) {
	even, normal := s.Min != 0 || s.Max != 0, s.Median != 0 || s.P99 != 0
	switch {
	case min(s.Min, s.Max, s.Median, s.P99) < 0:
		c.wrong(path, "a time cannot be negative")
	case even && normal:
		c.wrong(path, "either min and max, or median and p99")
	case even && s.Max < s.Min:
		c.wrong(path, "max %v is below min %v", s.Max, s.Min)
	case normal && s.Median == 0:
		c.wrong(path, "p99 needs a median")
	case normal && s.P99 < s.Median:
		c.wrong(path, "p99 %v is below the median %v", s.P99, s.Median)
	}
}

// word checks a word of a closed set.
func (c checker) word(path string, word any) {
	if text := wordMistake(word); text != "" {
		c.wrong(path, "%s", text)
	}
}

// between is false for NaN too.
func between(x, low, high float64) bool { return x >= low && x <= high }

// times says which of them are below 0.
func (c checker) times(path string, s *Step) {
	for _, row := range []struct {
		key  string
		time time.Duration
	}{{"delay", s.Delay}, {"for", s.For}, {"ping", s.Ping}, {"first_token", s.FirstToken}, {"gap", s.Gap}} {
		if row.time < 0 {
			c.wrong(strict.Join(path, row.key), "%v is negative", row.time)
		}
	}
}

func headerText(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f })
}

func headerName(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		return r <= ' ' || r >= 0x7f || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, r)
	})
}

// name is the rule's name for draws and journal.
func (r *Rule) name(i int) string {
	if r.Name != "" {
		return r.Name
	}
	return fmt.Sprintf("rules[%d]", i)
}

// name is the incident's name for draws and journal.
func (n *Incident) name(i int) string {
	if n.Name != "" {
		return n.Name
	}
	return fmt.Sprintf("timeline[%d]", i)
}
