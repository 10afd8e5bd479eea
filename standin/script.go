package standin

import (
	"cmp"
	"slices"
	"strings"
	"sync"
)

// script decides which step a request gets. It holds the place in every list
// of steps and nothing else.
type script struct {
	keys  []string          // of the jobs, the one that wins first
	steps map[string][]Step // by job; "" is the list for requests without a job

	mu    sync.Mutex
	place map[string]*place
}

// place is how far a list of steps has been played.
type place struct {
	attempts int // requests so far
	step     int // index of the current step
	played   int // how often it was played
}

func newScript(plan Plan) *script {
	s := &script{steps: map[string][]Step{"": withDefaults(plan.Steps)}}
	for job, steps := range plan.Jobs {
		s.keys = append(s.keys, job)
		s.steps[job] = withDefaults(steps)
	}
	slices.SortFunc(s.keys, func(a, b string) int {
		return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(a, b))
	})
	s.reset()
	return s
}

func withDefaults(steps []Step) []Step {
	filled := make([]Step, len(steps))
	for i, step := range steps {
		filled[i] = step.withDefaults()
	}
	return filled
}

func (s *script) reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.place = make(map[string]*place)
}

// next returns the job that the prompt belongs to, which attempt of the job
// this is, from 1, and the step for it.
func (s *script) next(prompt string) (job string, attempt int, step Step) {
	if i := slices.IndexFunc(s.keys, func(key string) bool { return strings.Contains(prompt, key) }); i >= 0 {
		job = s.keys[i]
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	at := s.place[job]
	if at == nil {
		at = &place{}
		s.place[job] = at
	}
	return job, at.advanceAttempts(), at.advance(s.steps[job])
}

func (p *place) advanceAttempts() int {
	p.attempts++
	return p.attempts
}

// advance returns the current step and moves on.
func (p *place) advance(steps []Step) Step {
	if p.step >= len(steps) {
		return Step{}.withDefaults()
	}
	step := steps[p.step]
	p.played++
	if step.Times >= 0 && p.played >= max(step.Times, 1) {
		p.step, p.played = p.step+1, 0
	}
	return step
}
