package drill

import (
	_ "embed" // the published plan
	"fmt"
	"slices"
	"time"

	"holdfast"
	"holdfast/internal/strict"
)

//go:embed lab18.json
var publishedPlan []byte

// plan is which faults each job meets. Times are in seconds.
type plan struct {
	Seed     *uint64                     `yaml:"seed"`
	Jobs     strict.Ordered[[]step]      `yaml:"jobs"` // played in this order
	Settings strict.Ordered[jobSettings] `yaml:"settings"`
	LostAcks []string                    `yaml:"lost_acks"`
	Policy   planPolicy                  `yaml:"policy"`
}

// step is what an attempt meets. Attempts beyond a job's steps are answered.
type step struct {
	Kind       string   `yaml:"kind"`
	Status     *int     `yaml:"status"`
	RetryAfter *float64 `yaml:"retry_after"`
	Category   string   `yaml:"category"`
}

type jobSettings struct {
	MaxTokens *int     `yaml:"max_tokens"`
	Deadline  *float64 `yaml:"deadline"`
}

type planPolicy struct {
	MaxAttempts      *int     `yaml:"max_attempts"`
	FailureThreshold *int     `yaml:"failure_threshold"`
	ResetTimeout     *float64 `yaml:"reset_timeout"`
	PerCallTimeout   *float64 `yaml:"per_call_timeout"`
	Deadline         *float64 `yaml:"deadline"`
	Base             *float64 `yaml:"base"`
	Cap              *float64 `yaml:"cap"`
}

// What a plan that does not say otherwise gets.
const (
	labSeed     = 18
	labAttempts = 4
	labFailures = 3
	labReset    = 20 * time.Second
	labTimeout  = 20 * time.Second
	labDeadline = 120 * time.Second
	labBase     = 500 * time.Millisecond
	labCap      = 8 * time.Second
)

// PlanError is a plan that cannot be played. Its text has one line per mistake.
type PlanError struct {
	// Mistakes, each with its line, joined.
	Mistakes error
}

// Error lists the mistakes.
func (e *PlanError) Error() string {
	return fmt.Sprintf("drill: the plan has mistakes\n%v", e.Mistakes)
}

// Unwrap returns the mistakes.
func (e *PlanError) Unwrap() error { return e.Mistakes }

// Hint says what the caller can do about it.
func (e *PlanError) Hint() string {
	return `a step is {"kind": "http", "status": 429, "retry_after": 2}, {"kind": "timeout"}, {"kind": "refusal", "category": "cyber"}, {"kind": "pause_turn"} or {"kind": "context_window"}`
}

func parsePlan(text []byte) (*plan, error) {
	p := new(plan)
	var d strict.Document
	d.Decode(text, p)
	p.check(&d)
	if err := d.Err(); err != nil {
		return nil, &PlanError{err}
	}
	return p, nil
}

func (p *plan) check(d *strict.Document) {
	if len(p.Jobs) == 0 && d.Err() == nil {
		d.Wrong("jobs", "must have at least one job")
	}
	known := map[string]bool{}
	var names []string
	for _, j := range p.Jobs {
		known[j.Key] = true
		names = append(names, j.Key)
		for i, s := range j.Value {
			s.check(d, fmt.Sprintf("jobs.%s.%d", j.Key, i))
		}
	}
	job := func(path, name string) {
		if known[name] {
			return
		}
		if near := strict.Nearest(name, names); near != "" {
			d.Wrong(path, "there is no job %q; did you mean %q?", name, near)
			return
		}
		d.Wrong(path, "there is no job %q", name)
	}
	for _, s := range p.Settings {
		path := "settings." + s.Key
		job(path, s.Key)
		atLeastOne(d, path+".max_tokens", s.Value.MaxTokens)
		above(d, path+".deadline", s.Value.Deadline)
	}
	for i, name := range p.LostAcks {
		path := fmt.Sprintf("lost_acks.%d", i)
		job(path, name)
		if slices.Contains(p.LostAcks[:i], name) {
			d.Wrong(path, "%q is there already; a job loses one acknowledgement", name)
		}
	}
	y := &p.Policy
	atLeastOne(d, "policy.max_attempts", y.MaxAttempts)
	atLeastOne(d, "policy.failure_threshold", y.FailureThreshold)
	for path, value := range map[string]*float64{
		"policy.reset_timeout": y.ResetTimeout, "policy.per_call_timeout": y.PerCallTimeout, "policy.deadline": y.Deadline,
		"policy.base": y.Base, "policy.cap": y.Cap,
	} {
		above(d, path, value)
	}
}

// stopReasons are the kinds of steps that are answers, and what those end for.
var stopReasons = map[string]string{"refusal": "refusal", "pause_turn": "pause_turn", "context_window": "model_context_window_exceeded"}

var stepKinds = []string{"http", "timeout", "refusal", "pause_turn", "context_window"}

func (s *step) check(d *strict.Document, path string) {
	switch s.Kind {
	case "http":
		if s.Status == nil {
			d.Wrong(path, "an http step needs a status")
		} else if *s.Status < 400 || *s.Status > 599 {
			d.Wrong(path+".status", "is %d; a failure has a status from 400 to 599", *s.Status)
		}
		if s.RetryAfter != nil && *s.RetryAfter < 0 {
			d.Wrong(path+".retry_after", "is %v, and must not be negative", *s.RetryAfter)
		}
	case "timeout", "refusal", "pause_turn", "context_window":
		if s.Status != nil || s.RetryAfter != nil {
			d.Wrong(path, "only an http step has a status and a retry_after")
		}
	case "":
		d.Wrong(path, "a step needs a kind: http, timeout, refusal, pause_turn or context_window")
	default:
		if near := strict.Nearest(s.Kind, stepKinds); near != "" {
			d.Wrong(path+".kind", "%q is no kind of step; did you mean %q?", s.Kind, near)
		} else {
			d.Wrong(path+".kind", "%q is no kind of step; known are http, timeout, refusal, pause_turn and context_window", s.Kind)
		}
	}
	if s.Category != "" && s.Kind != "refusal" {
		d.Wrong(path+".category", "only a refusal has a category")
	}
}

func atLeastOne(d *strict.Document, path string, n *int) {
	if n != nil && *n < 1 {
		d.Wrong(path, "is %d, and must be at least 1", *n)
	}
}

func above(d *strict.Document, path string, n *float64) {
	if n != nil && !(*n > 0) {
		d.Wrong(path, "is %v, and must be above 0 seconds", *n)
	}
}

// longest keeps seconds inside the range of a Duration, with room to add.
const longest = 1 << 61

func orElse(n *float64, own time.Duration) time.Duration {
	if n == nil {
		return own
	}
	return time.Duration(min(*n*float64(time.Second), longest))
}

func given[N any](n *N, own N) N {
	if n == nil {
		return own
	}
	return *n
}

// build returns the policy of the plan: the longer of the server's wait and the own draw, and a breaker that opens after
// so many attempts in a row and always cools down equally long.
func (p *plan) build(roll func() float64) holdfast.Policy {
	y := &p.Policy
	reset := orElse(y.ResetTimeout, labReset)
	base := orElse(y.Base, labBase)
	return holdfast.Policy{
		Attempts:       given(y.MaxAttempts, labAttempts),
		Deadline:       orElse(y.Deadline, labDeadline),
		AttemptTimeout: orElse(y.PerCallTimeout, labTimeout),
		Backoff:        holdfast.Backoff{Base: base, Cap: orElse(y.Cap, labCap)},
		ServerWait:     holdfast.AtLeast,
		MaxServerWait:  -1, // the deadline decides
		Breaker: holdfast.NewBreaker(holdfast.BreakerSettings{
			Failures: given(y.FailureThreshold, labFailures), Ratio: -1, Cooldown: reset, MaxCooldown: reset, Probes: -1, Ramp: -1,
		}),
		Dice: roll,
	}
}

// setting returns what the plan says about one job.
func (p *plan) setting(job string) jobSettings {
	for _, s := range p.Settings {
		if s.Key == job {
			return s.Value
		}
	}
	return jobSettings{}
}
