package standin

import (
	"cmp"
	"hash/maphash"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

// script decides which step a request gets. It holds the place in every list of
// steps and the counts of every job, and nothing else. It is safe for concurrent use.
type script struct {
	seed     uint64
	rules    []scriptRule
	jobs     []scriptJob // the one that wins first
	steps    []scriptStep
	timeline []scriptIncident
	limits   *Limits
	latency  Latency

	mu     sync.Mutex
	counts counts
}

// counts is all that changes from one request to the next.
type counts struct {
	seen      []uint64 // by rule: requests that fit all but Nth
	played    []uint64 // by rule: requests that its steps were for
	jobs      []uint64 // by job: requests that its steps were for
	steps     uint64   // requests that Plan.Steps were for
	incidents []uint64 // by incident: requests that fit all but Nth while it was on
	attempts  jobCounts
}

// scriptStep is a step with its defaults.
type scriptStep struct {
	Step
	plain bool // it is the answer as it is without a plan, so an incident may hit it
}

type scriptRule struct {
	name   string
	match  matcher
	share  float64
	perJob bool
	steps  []scriptStep
	then   scriptStep
}

type scriptJob struct {
	key   string
	steps []scriptStep
}

type scriptIncident struct {
	Incident
	match matcher
	empty bool // there is no step
}

// decision is what a request gets.
type decision struct {
	job     string // custom id, key in Plan.Jobs, or digest
	named   bool   // job is not the digest
	attempt int    // of the job, from 1
	rule    string // name of the rule, job or incident that gave the step; "" for none
	step    Step   // with its defaults
	first   time.Duration
	tokens  tokenTimes
}

func newScript(plan Plan) *script {
	s := &script{seed: plan.Seed, steps: newSteps(plan.Steps), limits: plan.Limits, latency: plan.Latency}
	for i, r := range plan.Rules {
		share := r.Share
		if share == 0 {
			share = 1
		}
		s.rules = append(s.rules, scriptRule{
			name: r.name(i), match: newMatcher(r.Match), share: share, perJob: r.Per == PerJob, steps: newSteps(r.Steps), then: newStep(r.Then),
		})
	}
	for _, key := range slices.SortedFunc(maps.Keys(plan.Jobs), func(a, b string) int {
		return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(a, b))
	}) {
		s.jobs = append(s.jobs, scriptJob{key: key, steps: newSteps(plan.Jobs[key])})
	}
	for i, n := range plan.Timeline {
		empty := n.Step.isZero() || n.Step.Kind == Refused || n.Step.Kind == Hang // what comes over an open connection is answered
		n.Name, n.Step = n.name(i), n.Step.withDefaults()
		s.timeline = append(s.timeline, scriptIncident{Incident: n, match: newMatcher(n.Match), empty: empty})
	}
	s.reset()
	return s
}

func newSteps(steps []Step) []scriptStep {
	ready := make([]scriptStep, len(steps))
	for i, step := range steps {
		ready[i] = newStep(step)
	}
	return ready
}

func newStep(step Step) scriptStep {
	bare := step
	bare.Times = 0
	if bare.Kind == OK {
		bare.Kind = ""
	}
	return scriptStep{Step: step.withDefaults(), plain: bare.isZero()}
}

// reset begins all steps and counts anew.
func (s *script) reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counts = counts{
		seen: make([]uint64, len(s.rules)), played: make([]uint64, len(s.rules)), jobs: make([]uint64, len(s.jobs)),
		incidents: make([]uint64, len(s.timeline)), attempts: jobCounts{seed: maphash.MakeSeed(), size: generation},
	}
}

// fitting is what can be found out about a request without a count.
type fitting struct {
	rules     []bool
	incidents []bool // on, too
	job       int    // index of the job in script.jobs; -1: none
	item      bool   // of a batch
}

// fit compares the request with the plan. It takes no lock: a prompt may be long.
func (s *script) fit(f *facts) fitting {
	all := make([]bool, len(s.rules)+len(s.timeline))
	fits := fitting{rules: all[:len(s.rules)], incidents: all[len(s.rules):]}
	for i := range s.rules {
		fits.rules[i] = s.rules[i].match.fits(f)
	}
	for i := range s.timeline {
		fits.incidents[i] = s.timeline[i].on(f.now) && s.timeline[i].match.fits(f)
	}
	fits.job = -1
	if f.item {
		fits.item = true
		return fits
	}
	for i := range s.jobs { // in place: the count beside the key belongs to the lock
		if strings.Contains(f.prompt, s.jobs[i].key) {
			fits.job = i
			break
		}
	}
	return fits
}

// decide returns what a request gets, and moves on in the steps it was given from.
func (s *script) decide(f facts) decision {
	fits := s.fit(&f)
	d := decision{job: f.digest}
	switch {
	case f.customID != "":
		d.job, d.named = f.customID, true
	case fits.job >= 0:
		d.job, d.named = s.jobs[fits.job].key, true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	d.attempt = int(s.counts.attempts.next(0, d.job))
	about := subject{seed: s.seed, job: d.job, attempt: d.attempt}
	from, step := s.scripted(&fits, about)
	d.rule, d.step = from, step.Step
	latency := s.latency
	hit, slowed := !step.plain, false
	for i := range s.timeline {
		n := &s.timeline[i]
		if !fits.incidents[i] {
			continue
		}
		if s.counts.incidents[i]++; !n.match.Nth.includes(s.counts.incidents[i]) {
			continue
		}
		if n.Latency != nil && !slowed {
			latency, slowed = *n.Latency, true
		}
		if !hit && !n.empty && about.hit(n.Name, n.share(f.now)) {
			d.rule, d.step, hit = n.Name, n.Step, true
		}
	}
	d.first, d.tokens = latency.draw(d.step, about)
	return d
}

// scripted returns the step that rules, jobs or steps have for a request, and
// where it is from. The lock is held.
func (s *script) scripted(fits *fitting, about subject) (from string, step *scriptStep) {
	chosen := -1
	for i := range s.rules { // all of them: Nth counts what fits, whoever gets it
		r := &s.rules[i]
		if !fits.rules[i] {
			continue
		}
		s.counts.seen[i]++
		if chosen < 0 && r.match.Nth.includes(s.counts.seen[i]) && about.hit(r.name, r.share) {
			chosen = i
		}
	}
	switch {
	case chosen >= 0:
		r := &s.rules[chosen]
		s.counts.played[chosen]++
		place := s.counts.played[chosen]
		if r.perJob {
			place = uint64(s.counts.attempts.next(chosen+1, about.job))
		}
		return r.name, stepAt(r.steps, place-1, &r.then)
	case fits.job >= 0:
		j := &s.jobs[fits.job]
		s.counts.jobs[fits.job]++
		return j.key, stepAt(j.steps, s.counts.jobs[fits.job]-1, &answerStep)
	case fits.item:
		return "", &answerStep
	}
	s.counts.steps++
	return "", stepAt(s.steps, s.counts.steps-1, &answerStep)
}

// answerStep is the step of a plain answer.
var answerStep = newStep(Step{})

// stepAt returns the step for the request with a number, from 0, that a list is
// played to; then is that of all requests behind the list.
func stepAt(steps []scriptStep, number uint64, then *scriptStep) *scriptStep {
	for i := range steps {
		times := uint64(max(steps[i].Times, 1))
		if steps[i].Times < 0 || number < times {
			return &steps[i]
		}
		number -= times
	}
	return then
}

// draw returns the time before the first content event and those before all
// others. What the step says itself goes first.
func (l Latency) draw(s Step, about subject) (first time.Duration, tokens tokenTimes) {
	first = s.FirstToken
	if first == 0 {
		once := tokenTimes{l.FirstToken, about.dice(drawFirst, "")}
		first = once.next()
	}
	if s.Gap != 0 {
		return first, tokenTimes{spread: Spread{Min: s.Gap, Max: s.Gap}}
	}
	return first, tokenTimes{l.PerToken, about.dice(drawToken, "")}
}

// generation is how many counts are kept before the oldest go.
const generation = 1 << 19

// jobCounts counts requests by list and job. It keeps what was asked for among
// the last half million of different jobs at least, so that a server which runs
// for weeks does not grow for ever; a job that comes back later begins anew.
type jobCounts struct {
	seed     maphash.Seed
	size     int // of a generation
	now, old map[uint64]uint32
}

// next adds one to the count of a job in a list, and returns it.
func (c *jobCounts) next(list int, job string) uint32 {
	key := mix(maphash.String(c.seed, job) + oddMultiple*uint64(list))
	n, ok := c.now[key]
	if !ok {
		n = c.old[key]
		if len(c.now) >= c.size || c.now == nil {
			c.now, c.old = make(map[uint64]uint32), c.now
		}
	}
	n++
	c.now[key] = n
	return n
}
