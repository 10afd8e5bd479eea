package main

import (
	"fmt"
	"math"

	"holdfast/gateway"
)

// advice is what would have helped a call, most telling first. A call that was answered in the usual way needs none.
func advice(c *gateway.CallReport) (lines []string) {
	add := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	switch c.Outcome {
	case gateway.Rejected:
		if help, known := rejections[c.Reason]; known {
			add("%s", help)
		}
	case gateway.Left:
		add("the caller had no patience for more than %s: give the client a longer timeout, or the call a deadline below it (policy.deadline, or the header holdfast-deadline)", span(c.ElapsedSeconds))
	case gateway.Cut:
		add("delivery: whole on the route collects a stream before it hands it over, so that one that is cut can be repeated")
	case gateway.Refused:
		add("on_refusal on the route asks another model when one refuses")
	case gateway.Failed:
		lines = append(lines, failureAdvice(c)...)
	}
	if c.StackedRetries > 0 {
		add("the client retries on top of the gateway (its count was %d): set its own retries to 0", c.StackedRetries)
	}
	return lines
}

// rejections say what helps against what the gateway itself turned away, by the word of holdfast-reason.
var rejections = map[string]string{
	"client-key":   "send a client key that the configuration knows; holdfast key new makes one",
	"client-limit": "let the client send less, or raise its requests_per_minute",
	"too-large":    "send less, or raise limits.max_body",
	"slow-body":    "send the body without pauses, or raise limits.body_timeout",
	"draining":     "send it again: the gateway was shutting down, and another instance takes it",
	"no-route":     "add a route, or a target of the request's dialect",
}

// failureAdvice is for a call for which nothing live worked.
func failureAdvice(c *gateway.CallReport) (lines []string) {
	add := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	var last gateway.AttemptReport
	if n := len(c.Attempts); n > 0 {
		last = c.Attempts[n-1]
	}
	switch {
	case last.Verdict == "terminal" && (last.Status == 401 || last.Status == 403):
		return []string{"another key: the upstream does not take this one"}
	case last.Verdict == "terminal":
		return []string{"another request: no retry and no other target changes what is wrong with this one"}
	case last.Verdict == "overflow":
		return []string{"a shorter prompt, or a model with room for it further on in the route's chain"}
	case last.Verdict == "unsafe":
		return []string{"nothing that repeats by itself: look at the upstream whether it was done, then send it again"}
	}
	switch c.GaveUp {
	case "server-wait":
		add("policy.max_server_wait of at least %s would have waited as the upstream asked", span(math.Ceil(longestWait(c))))
	case "deadline":
		add("more time for the call (policy.deadline, or the header holdfast-deadline), or shorter waits between attempts")
	case "budget":
		add("less of a failing upstream: so many of its calls failed that retries only added load")
	case "open":
		add("asking again later: the upstream had failed repeatedly, and is left alone until a probe succeeds")
	case "pace":
		add("sending less, a longer deadline to queue in, or higher limits in pace if the provider has raised yours")
	case "spent":
		add("a higher limit at the provider, or a key with another account")
	}
	if last.Verdict == "throttled" {
		add("a further key in the target's pool, or a higher rate limit at the provider")
	}
	if targets(c) < 2 && last.Verdict != "spent" {
		add("a further target in the route's chain: only one could be asked")
	}
	add("saved at the end of the route's chain, which gives the last good answer when nothing live works")
	return lines
}

// longestWait is the longest wait that an upstream asked for, in seconds.
func longestWait(c *gateway.CallReport) (longest float64) {
	for _, a := range c.Attempts {
		longest = max(longest, a.ServerWaitSeconds)
	}
	return longest
}

// targets is how many different targets the call asked or would have asked.
func targets(c *gateway.CallReport) int {
	names := map[string]bool{}
	for _, a := range c.Attempts {
		names[a.Target] = true
	}
	for _, s := range c.Skips {
		names[s.Target] = true
	}
	return len(names)
}
