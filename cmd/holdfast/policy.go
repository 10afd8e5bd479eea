package main

import (
	"strings"
	"time"

	"github.com/spf13/pflag"

	"holdfast"
	"holdfast/config"
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
	overrides         []string
	attempts          int
	deadline, maxWait time.Duration
	flags             *pflag.FlagSet
}

func (p *policyFlags) add(f *pflag.FlagSet) {
	p.flags = f
	f.StringVar(&p.config, "config", "", "take the policy from a YAML or JSON `file`")
	f.StringArrayVar(&p.overrides, "set", nil, "override one `key.path=value` of the policy; may be repeated")
	f.IntVar(&p.attempts, "attempts", tutorialAttempts, "how often to ask, the first time included")
	f.DurationVar(&p.deadline, "deadline", 10*time.Minute, "longest `time` for everything")
	f.DurationVar(&p.maxWait, "max-wait", tutorialMaxWait, "longest `time` the server may ask to wait; above it the call gives up")
}

// policy returns what the file says, overridden by --set and then by the flags that were given; without a file, the
// tutorial's.
func (p *policyFlags) policy() (holdfast.Policy, error) {
	switch {
	case p.attempts < 1:
		return holdfast.Policy{}, badUsage("1 asks once and never repeats", "--attempts is %d, and must be at least 1", p.attempts)
	case p.deadline <= 0:
		return holdfast.Policy{}, badUsage("", "--deadline is %v, and must be above 0", p.deadline)
	case p.maxWait <= 0:
		return holdfast.Policy{}, badUsage("", "--max-wait is %v, and must be above 0", p.maxWait)
	}
	policy, err := p.configured()
	if err != nil {
		return policy, err
	}
	if p.flags.Changed("attempts") {
		policy.Attempts = p.attempts
	}
	if p.flags.Changed("deadline") {
		policy.Deadline = p.deadline
	}
	if p.flags.Changed("max-wait") {
		policy.MaxServerWait = p.maxWait
	}
	if err := policy.Validate(); err != nil {
		return policy, badUsage("", "%w", err)
	}
	return policy, nil
}

func (p *policyFlags) configured() (holdfast.Policy, error) {
	tutorial := tutorialPolicy()
	for _, override := range p.overrides {
		for _, key := range []string{"breaker.", "pace.", "policy.retry_budget."} {
			if strings.HasPrefix(override, key) {
				return tutorial, badUsage("breaker, pace and retry budget learn from many calls; holdfast drill plays those", "--set %s means nothing to a single call", override)
			}
		}
	}
	file := &config.File{Call: config.Call{
		Attempts: tutorial.Attempts, MaxServerWait: tutorial.MaxServerWait,
		Backoff: config.Backoff{Base: tutorial.Backoff.Base, Cap: tutorial.Backoff.Cap, ServerWait: config.ServerWait(tutorial.ServerWait)},
	}}
	file, err := configFile(file, p.config, p.overrides)
	if err != nil {
		return tutorial, err
	}
	policy := file.Policy()
	policy.Breaker, policy.Budget, policy.Pace = nil, nil, nil // they learn from many calls, and here is one
	return policy, nil
}

// configFile returns what the file at path says, or otherwise when there is no path, with the overrides.
func configFile(otherwise *config.File, path string, overrides []string) (*config.File, error) {
	file := otherwise
	var err error
	if path != "" {
		file, err = config.Load(path)
	}
	if err == nil {
		err = file.SetAll(overrides)
	}
	if err != nil {
		return nil, badUsage(hintOf(err), "%w", err)
	}
	return file, nil
}
