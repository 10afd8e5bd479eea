package config

import (
	"time"

	"holdfast"
)

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
	// ConnectTimeout is how long the gateway's attempt may take to make its connection. 0: the default, 5s. Negative:
	// no limit of its own.
	ConnectTimeout time.Duration `yaml:"connect_timeout"`
	// FirstContentTimeout is how long the first content of a stream may take at the gateway. 0: the default, 2m.
	// Negative: no limit of its own.
	FirstContentTimeout time.Duration `yaml:"first_content_timeout"`
	// IdleTimeout is how long a stream may pause after content at the gateway. 0: the default, 90s. Negative: no
	// limit of its own.
	IdleTimeout time.Duration `yaml:"idle_timeout"`
	// FallbackFirst leaves a target that throttles for the next of its chain, instead of waiting for it. Default: wait.
	FallbackFirst bool        `yaml:"fallback_first"`
	Backoff       Backoff     `yaml:"backoff"`
	RetryBudget   RetryBudget `yaml:"retry_budget"`
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
	// Cooldown is how long it stays open at least. 0: the default, 20s.
	Cooldown time.Duration `yaml:"cooldown"`
	// MaxCooldown bounds the growth of the cooldown, which is a tenth of the outage so far. 0: the default, 5m.
	MaxCooldown time.Duration `yaml:"max_cooldown"`
	// Probes that must all fail after a cooldown before it opens again. 0: the default, 5. Negative: 1.
	Probes int `yaml:"probes"`
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
	// FollowHeaders makes the gateway learn the limits from the rate-limit headers of the answers, and from refusals
	// alone where answers have none. Those above are kept to all the same. Default: true.
	FollowHeaders *bool `yaml:"follow_headers"`
}

func (b Breaker) settings() holdfast.BreakerSettings {
	return holdfast.BreakerSettings{
		Failures: b.Failures, Ratio: b.Ratio, Window: b.Window, MinCalls: b.MinCalls, SlowCall: b.SlowCall,
		Cooldown: b.Cooldown, MaxCooldown: b.MaxCooldown, Probes: b.Probes, Lease: b.Lease, Ramp: b.Ramp, Count: holdfast.Count(b.Count),
	}
}

func (p Pace) limits() holdfast.Limits {
	return holdfast.Limits{
		RequestsPerMinute: p.RequestsPerMinute, InputTokensPerMinute: p.InputTokensPerMinute,
		OutputTokensPerMinute: p.OutputTokensPerMinute, Burst: p.Burst, Queue: p.Queue,
		FollowHeaders: p.FollowHeaders == nil || *p.FollowHeaders,
	}
}

func (r RetryBudget) settings() holdfast.BudgetSettings {
	return holdfast.BudgetSettings{Capacity: r.Capacity, Cost: r.Cost, ThrottleCost: r.ThrottleCost, Earn: r.Earn, Refill: r.Refill}
}

// plain is the policy without what learns from many calls.
func (c Call) plain() holdfast.Policy {
	return holdfast.Policy{
		Attempts:       c.Attempts,
		Deadline:       c.Deadline,
		AttemptTimeout: c.AttemptTimeout,
		MaxServerWait:  c.MaxServerWait,
		FallbackFirst:  c.FallbackFirst,
		Backoff: holdfast.Backoff{
			Base: c.Backoff.Base, Cap: c.Backoff.Cap, ThrottleBase: c.Backoff.ThrottleBase, Jitter: holdfast.Jitter(c.Backoff.Jitter),
		},
		ServerWait: holdfast.ServerWait(c.Backoff.ServerWait),
	}
}
