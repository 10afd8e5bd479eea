// Package config reads the one file that configures Holdfast. Every key is optional and absent keys have the library's
// own defaults, so an empty file is the zero [holdfast.Policy] with a breaker, a pace and a budget.
//
//	policy:
//	  {attempts: 4, deadline: 10m, max_server_wait: 60s,
//	   backoff: {base: 500ms, cap: 8s, jitter: full, server_wait: plus-jitter}, retry_budget: {capacity: 100}}
//	breaker: {failures: 5, ratio: 0.5, window: 60s, cooldown: 20s, count: attempts}
//	pace: {requests_per_minute: 1000}
//
// The file is YAML or JSON. "${NAME}" in a value is replaced by the environment variable; inside braces it must be
// quoted. Unknown keys are mistakes, and all mistakes are reported at once with their lines.
package config

import (
	"time"

	"holdfast"
)

// File is the whole configuration. The zero value is the defaults. It is plain data: copies are independent, and it is
// safe for concurrent use while nobody changes it.
type File struct {
	// Call is the section "policy".
	Call    Call    `yaml:"policy"`
	Breaker Breaker `yaml:"breaker"`
	Pace    Pace    `yaml:"pace"`
}

// Call is how a call is kept working, the section "policy". Each field has the meaning and default of the field of that name in
// [holdfast.Policy].
type Call struct {
	// Attempts on one target. 0: the default, 4. Negative: one.
	Attempts int `yaml:"attempts"`
	// Deadline of the whole call. 0: the default, 10m. Negative: none.
	Deadline time.Duration `yaml:"deadline"`
	// AttemptTimeout of one attempt. Zero or negative: only the deadline.
	AttemptTimeout time.Duration `yaml:"attempt_timeout"`
	// MaxServerWait is the longest wait an upstream may ask for. 0: the default, 60s. Negative: any.
	MaxServerWait time.Duration `yaml:"max_server_wait"`
	Backoff       Backoff       `yaml:"backoff"`
	RetryBudget   RetryBudget   `yaml:"retry_budget"`
}

// Backoff is how long to wait between attempts, as in [holdfast.Backoff].
type Backoff struct {
	// Base bounds the first wait. 0: the default, 500ms. Negative: no wait of our own.
	Base time.Duration `yaml:"base"`
	// Cap bounds every wait. 0: the default, 8s. Negative: no bound.
	Cap time.Duration `yaml:"cap"`
	// ThrottleBase replaces Base after a throttle or an overload. 0: same as Base.
	ThrottleBase time.Duration `yaml:"throttle_base"`
	// Jitter is full or none. Default: full.
	Jitter Jitter `yaml:"jitter"`
	// ServerWait is plus-jitter, plus-base, at-least or exact. Default: plus-jitter.
	ServerWait ServerWait `yaml:"server_wait"`
}

// RetryBudget bounds the retries of all calls together, as in [holdfast.BudgetSettings].
type RetryBudget struct {
	// Capacity when full. 0: the default, 100.
	Capacity int `yaml:"capacity"`
	// Cost of a retry. 0: the default, 14.
	Cost int `yaml:"cost"`
	// ThrottleCost of a retry after a throttle. 0: the default, 5.
	ThrottleCost int `yaml:"throttle_cost"`
	// Earn is what a success at the first attempt pays in. 0: the default, 1. Negative: nothing.
	Earn int `yaml:"earn"`
	// Refill is the time in which one Cost comes back. 0: the default, 10s. Negative: never.
	Refill time.Duration `yaml:"refill"`
}

// Breaker is when a failing upstream is left alone, as in [holdfast.BreakerSettings].
type Breaker struct {
	// Failures in a row that open it. 0: the default, 5. Negative: off.
	Failures int `yaml:"failures"`
	// Ratio of failures that opens it, from 0 to 1. 0: the default, 0.5. Negative: off.
	Ratio float64 `yaml:"ratio"`
	// Window that Ratio looks back over. 0: the default, 60s.
	Window time.Duration `yaml:"window"`
	// MinCalls below which Ratio says nothing. 0: the default, 10.
	MinCalls int `yaml:"min_calls"`
	// SlowCall counts a longer success as a failure. Zero or negative: off.
	SlowCall time.Duration `yaml:"slow_call"`
	// Cooldown is how long it stays open the first time. 0: the default, 20s.
	Cooldown time.Duration `yaml:"cooldown"`
	// MaxCooldown bounds the growth of the cooldown. 0: the default, 5m.
	MaxCooldown time.Duration `yaml:"max_cooldown"`
	// Lease of one probe. 0: the default, 2m.
	Lease time.Duration `yaml:"lease"`
	// Ramp after closing. 0: the default, 10s. Negative: off.
	Ramp time.Duration `yaml:"ramp"`
	// Count is attempts or calls. Default: attempts.
	Count Count `yaml:"count"`
}

// Pace is what may be sent, as in [holdfast.Limits].
type Pace struct {
	// RequestsPerMinute, InputTokensPerMinute and OutputTokensPerMinute. Zero or negative: not limited.
	RequestsPerMinute     int `yaml:"requests_per_minute"`
	InputTokensPerMinute  int `yaml:"input_tokens_per_minute"`
	OutputTokensPerMinute int `yaml:"output_tokens_per_minute"`
	// Burst is how much time's worth may be saved up. 0: the default, 1m.
	Burst time.Duration `yaml:"burst"`
	// Queue is how many calls may wait. 0: the default, 1000. Negative: none.
	Queue int `yaml:"queue"`
}

// Policy returns the policy that the file describes, with a new breaker, pace and budget: keep it for all calls to one
// API. Each result starts with nothing counted.
func (f *File) Policy() holdfast.Policy {
	p, b := f.Call, f.Breaker
	return holdfast.Policy{
		Attempts:       p.Attempts,
		Deadline:       p.Deadline,
		AttemptTimeout: p.AttemptTimeout,
		MaxServerWait:  p.MaxServerWait,
		Backoff: holdfast.Backoff{
			Base: p.Backoff.Base, Cap: p.Backoff.Cap, ThrottleBase: p.Backoff.ThrottleBase, Jitter: holdfast.Jitter(p.Backoff.Jitter),
		},
		ServerWait: holdfast.ServerWait(p.Backoff.ServerWait),
		Breaker: holdfast.NewBreaker(holdfast.BreakerSettings{
			Failures: b.Failures, Ratio: b.Ratio, Window: b.Window, MinCalls: b.MinCalls, SlowCall: b.SlowCall,
			Cooldown: b.Cooldown, MaxCooldown: b.MaxCooldown, Lease: b.Lease, Ramp: b.Ramp, Count: holdfast.Count(b.Count),
		}),
		Pace: holdfast.NewPace(holdfast.Limits{
			RequestsPerMinute: f.Pace.RequestsPerMinute, InputTokensPerMinute: f.Pace.InputTokensPerMinute,
			OutputTokensPerMinute: f.Pace.OutputTokensPerMinute, Burst: f.Pace.Burst, Queue: f.Pace.Queue,
		}),
		Budget: holdfast.NewBudget(holdfast.BudgetSettings{
			Capacity: p.RetryBudget.Capacity, Cost: p.RetryBudget.Cost, ThrottleCost: p.RetryBudget.ThrottleCost,
			Earn: p.RetryBudget.Earn, Refill: p.RetryBudget.Refill,
		}),
	}
}
