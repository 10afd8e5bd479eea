package main

import (
	"time"

	"github.com/spf13/pflag"

	"holdfast"
)

// The policy of a command that makes one call for a person: a few attempts, and no waits that look like a hang.
const (
	tutorialAttempts = 4
	tutorialBase     = 500 * time.Millisecond
	tutorialMaxWait  = 10 * time.Second
)

func tutorialPolicy() holdfast.Policy {
	return holdfast.Policy{
		Attempts: tutorialAttempts, MaxServerWait: tutorialMaxWait, ServerWait: holdfast.PlusBase,
		Backoff: holdfast.Backoff{Base: tutorialBase, Cap: 8 * time.Second},
	}
}

// policyFlags are the flags that make a policy.
type policyFlags struct {
	config            string
	attempts          int
	deadline, maxWait time.Duration
	flags             *pflag.FlagSet
}

func (p *policyFlags) add(f *pflag.FlagSet) {
	p.flags = f
	f.IntVar(&p.attempts, "attempts", tutorialAttempts, "how often to ask, the first time included")
	f.DurationVar(&p.deadline, "deadline", 10*time.Minute, "longest `time` for everything")
	f.DurationVar(&p.maxWait, "max-wait", tutorialMaxWait, "longest `time` the server may ask to wait; above it the call gives up")
}

// policy returns what the flags ask for.
func (p *policyFlags) policy() (holdfast.Policy, error) {
	policy := tutorialPolicy()
	if p.flags.Changed("attempts") {
		policy.Attempts = p.attempts
	}
	if p.flags.Changed("deadline") {
		policy.Deadline = p.deadline
	}
	if p.flags.Changed("max-wait") {
		policy.MaxServerWait = p.maxWait
	}
	switch {
	case p.attempts < 1:
		return policy, badUsage("1 asks once and never repeats", "--attempts is %d, and must be at least 1", p.attempts)
	case p.deadline <= 0:
		return policy, badUsage("", "--deadline is %v, and must be above 0", p.deadline)
	case p.maxWait <= 0:
		return policy, badUsage("", "--max-wait is %v, and must be above 0", p.maxWait)
	}
	if err := policy.Validate(); err != nil {
		return policy, badUsage("", "%w", err)
	}
	return policy, nil
}
