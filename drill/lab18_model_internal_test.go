package drill

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// model plays a plan by the rules as a person would write them down, in floating seconds and one loop. It shares nothing
// with the library but the dice.
type model struct {
	now, openUntil     float64
	state              string
	streak             int
	roll               func() float64
	attempts, failures int
	reset, timeout     float64
	deadline           float64
	base, most         float64
	lines, transitions []string
	events             int
}

type modelJob struct {
	name      string
	steps     []map[string]any
	maxTokens int
	deadline  float64
}

func (m *model) move(to string) {
	m.transitions = append(m.transitions, m.state+"->"+to)
	m.state = to
}

// call makes one call; it returns how it ended and the attempts it took.
func (m *model) call(j *modelJob, end float64, tokens int) (how string, attempts int) {
	for {
		if m.state == "open" && m.now < m.openUntil-1e-9 {
			m.events++ // short_circuit
			return "deferred_circuit_open", attempts
		}
		if m.state == "open" {
			m.move("half_open")
		}
		attempts++
		if len(j.steps) == 0 {
			m.succeed()
			if tokens < answerTokens {
				return "truncated", attempts
			}
			return "completed", attempts
		}
		s := j.steps[0]
		j.steps = j.steps[1:]
		switch {
		case s["kind"] == "refusal":
			m.succeed()
			return "refused", attempts
		case s["kind"] == "pause_turn":
			m.succeed()
			return "paused", attempts
		case s["kind"] == "context_window":
			m.succeed()
			return "window full", attempts
		case s["kind"] == "http" && s["status"].(int) != 429 && s["status"].(int) < 500 && s["status"].(int) != 408 && s["status"].(int) != 409:
			m.events++ // error
			return "failed", attempts
		}
		m.events++ // error
		told, _ := s["retry_after"].(int)
		neutral := false
		if s["kind"] == "timeout" {
			neutral = end-m.now <= m.timeout+1e-9 && attempts > 1
			m.now = min(m.now+m.timeout, end)
		}
		opened := !neutral && m.fail()
		switch {
		case m.now >= end-1e-9:
			m.events++ // deadline_exceeded
			return "deadline_exceeded", attempts
		case opened && float64(told) < m.reset:
			return "deferred_circuit_open", attempts
		case attempts >= m.attempts:
			if opened {
				return "deferred_circuit_open", attempts
			}
			return "failed", attempts
		}
		wait := max(float64(told), m.roll()*min(m.most, m.base*math.Pow(2, float64(attempts-1))))
		if m.now+wait >= end {
			m.events++ // deadline_exceeded
			return "deadline_exceeded", attempts
		}
		m.events++ // backoff
		m.now += wait
	}
}

func (m *model) succeed() {
	m.events++ // response
	m.streak = 0
	if m.state == "half_open" {
		m.move("closed")
	}
}

func (m *model) fail() (opened bool) {
	m.streak++
	if m.state == "half_open" || m.streak >= m.failures {
		m.move("open")
		m.openUntil = m.now + m.reset
		m.streak = 0
		m.events++ // circuit_opened
		return true
	}
	return false
}

func (m *model) job(j *modelJob) (deferred bool) {
	start, attempts, tokens, fallback, follow, pauses := m.now, 0, j.maxTokens, false, 0, 0
	for ; ; follow++ {
		how, n := m.call(j, start+j.deadline, tokens)
		attempts += n
		switch {
		case how == "paused" && pauses < 10:
			pauses++
			follow-- // a resumed pause is no follow-up
			continue
		case how == "window full":
			how = "truncated"
		case how == "refused" && !fallback:
			fallback = true
			continue
		case how == "refused":
			how = "human_review"
		case how == "truncated" && tokens < 1024 && follow < 6:
			tokens = min(4*tokens, 1024)
			continue
		}
		elapsed := strings.TrimSuffix(fmt.Sprintf("%.2f", m.now-start), "0")
		m.lines = append(m.lines, fmt.Sprintf("%s %s attempts=%d elapsed %ss", j.name, how, attempts, elapsed))
		return how == "deferred_circuit_open"
	}
}

// play runs the series of jobs one after another.
func (m *model) play(all [][]*modelJob) {
	m.state = "closed"
	for _, queue := range all {
		for {
			var deferred []*modelJob
			for _, j := range queue {
				if m.job(j) {
					deferred = append(deferred, j)
				}
			}
			if queue = deferred; len(queue) == 0 {
				break
			}
			m.now += max(21, m.reset+1)
		}
	}
}

// drawPlan draws a plan and the model that plays it.
func drawPlan(t *rapid.T) (text []byte, m *model, all [][]*modelJob) {
	seed := rapid.Uint32().Draw(t, "seed")
	m = &model{
		roll: dice(uint64(seed)), attempts: rapid.IntRange(1, 6).Draw(t, "attempts"), failures: rapid.IntRange(1, 5).Draw(t, "failures"),
		reset: float64(rapid.IntRange(1, 40).Draw(t, "reset")), timeout: float64(rapid.IntRange(1, 30).Draw(t, "timeout")),
		deadline: float64(rapid.IntRange(31, 90).Draw(t, "deadline")), base: 0.5, most: float64(rapid.IntRange(1, 8).Draw(t, "cap")),
	}
	jobs, settings := []string{}, map[string]any{}
	for s := range rapid.IntRange(1, 3).Draw(t, "series") {
		var queue []*modelJob
		for n := range rapid.IntRange(1, 5).Draw(t, "jobs") {
			j := &modelJob{name: fmt.Sprintf("JOB-%d%03d", s+1, n+1), maxTokens: 1024, deadline: m.deadline}
			j.steps = rapid.SliceOfN(rapid.Custom(drawStep), 0, 5).Draw(t, "steps")
			own := map[string]any{}
			if rapid.IntRange(0, 3).Draw(t, "own deadline") == 0 {
				j.deadline = float64(rapid.IntRange(1, 60).Draw(t, "job's deadline"))
				own["deadline"] = j.deadline
			}
			if rapid.IntRange(0, 3).Draw(t, "own tokens") == 0 {
				j.maxTokens = rapid.IntRange(1, 1024).Draw(t, "tokens")
				own["max_tokens"] = j.maxTokens
			}
			settings[j.name] = own
			steps, _ := json.Marshal(append([]map[string]any{}, j.steps...))
			jobs = append(jobs, fmt.Sprintf("%q: %s", j.name, steps))
			queue = append(queue, j)
		}
		all = append(all, queue)
	}
	rest, _ := json.Marshal(settings)
	text = fmt.Appendf(nil, `{"seed": %d, "jobs": {%s}, "settings": %s, "policy": {"max_attempts": %d, "failure_threshold": %d, "reset_timeout": %v,
		"per_call_timeout": %v, "deadline": %v, "base": 0.5, "cap": %v}}`,
		seed, strings.Join(jobs, ",\n"), rest, m.attempts, m.failures, m.reset, m.timeout, m.deadline, m.most)
	return text, m, all
}

func drawStep(t *rapid.T) map[string]any {
	switch kind := rapid.SampledFrom([]string{"http", "http", "http", "timeout", "refusal", "pause_turn", "context_window"}).Draw(t, "kind"); kind {
	case "http":
		s := map[string]any{"kind": kind, "status": rapid.SampledFrom([]int{400, 401, 408, 409, 429, 500, 503, 529}).Draw(t, "status")}
		if rapid.Bool().Draw(t, "told") {
			s["retry_after"] = rapid.IntRange(0, 12).Draw(t, "retry after")
		}
		return s
	default:
		return map[string]any{"kind": kind}
	}
}

func TestOtherPlansGiveWhatTheRulesGive(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text, m, all := drawPlan(t)
		p, err := parsePlan(text)
		if err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
		l := newLab(Options{}, p)
		if err := l.play(t.Context()); err != nil {
			t.Fatal(err)
		}
		m.play(all)
		var got []string
		for _, o := range l.outcomes {
			got = append(got, o.line())
		}
		if d := cmp.Diff(m.lines, got, nearly); d != "" {
			t.Errorf("jobs (-model +drill)\n%s\nplan\n%s", d, text)
		}
		if d := cmp.Diff(m.transitions, l.transitions); d != "" {
			t.Errorf("transitions (-model +drill)\n%s\nplan\n%s", d, text)
		}
		if len(l.lines) != m.events {
			t.Errorf("%d events, want %d\nplan\n%s", len(l.lines), m.events, text)
		}
		trace, err := l.traceJSONL()
		if err != nil {
			t.Fatal(err)
		}
		r := l.report()
		if l.checkRules(r, trace); r.Exit() != 0 {
			t.Errorf("the drill's own checks: %+v\nplan\n%s", r.Checks, text)
		}
	})
}

// nearly lets the last digit of the elapsed time differ, where the model's floating seconds round the other way.
var nearly = cmp.Comparer(func(a, b string) bool {
	i, j := strings.LastIndex(a, " "), strings.LastIndex(b, " ")
	x, errX := time.ParseDuration(a[i+1:])
	y, errY := time.ParseDuration(b[j+1:])
	return a == b || i > 0 && j > 0 && a[:i] == b[:j] && errX == nil && errY == nil && (x-y).Abs() <= 10*time.Millisecond
})
