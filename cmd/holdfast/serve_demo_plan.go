package main

import (
	"time"

	"holdfast/standin"
)

// The incident of holdfast serve --demo: what the API does, second by second.
const (
	incidentLength = 16 * time.Second
	incidentEvery  = 400 * time.Millisecond // from one call to the next
)

// phase is a part of the incident.
type phase struct {
	from time.Duration
	says string
}

var incidentPhases = []phase{
	{0, "The API works"},
	{2 * time.Second, "It throttles: 429 with retry-after: 1 for two requests in three"},
	{5 * time.Second, "It is down: 529 for every request. The second API of the chain still works"},
	{7500 * time.Millisecond, "Both are down: 529 everywhere"},
	{9 * time.Second, "It is back, but one stream in two breaks off after a few words"},
	{12 * time.Second, "A slow recovery: 529 for fewer and fewer requests"},
	{15 * time.Second, "It works again"},
}

// overloaded is what an API that is down answers.
var overloaded = standin.Step{Kind: standin.HTTP, Status: 529}

// incidentPlan is that of the first API of the chain. The draws go by the name of a call and the number of its attempt, so two
// servers with this plan do the same to the same calls.
func incidentPlan() standin.Plan {
	return standin.Plan{
		Seed:    7,
		Latency: incidentLatency(),
		Timeline: []standin.Incident{
			{Name: "throttled", From: 2 * time.Second, To: 5 * time.Second, Share: evenly(0.66),
				Step: standin.Step{Kind: standin.HTTP, Status: 429, RetryAfter: "1"}},
			{Name: "down", From: 5 * time.Second, To: 9 * time.Second, Step: overloaded},
			{Name: "cut", From: 9 * time.Second, To: 12 * time.Second, Share: evenly(0.5), Match: standin.Match{Stream: new(true)},
				Step: standin.Step{Kind: standin.Cut, After: 3, How: standin.Chunk}},
			{Name: "recovery", From: 12 * time.Second, To: 15 * time.Second, Share: standin.Ramp{From: 0.9, To: 0}, Step: overloaded},
		},
	}
}

// secondPlan is that of the second API of the chain.
func secondPlan() standin.Plan {
	return standin.Plan{
		Latency:  incidentLatency(),
		Timeline: []standin.Incident{{Name: "down", From: 7500 * time.Millisecond, To: 9 * time.Second, Step: overloaded}},
	}
}

func incidentLatency() standin.Latency {
	between := func(low, high time.Duration) standin.Spread { return standin.Spread{Min: low, Max: high} }
	return standin.Latency{FirstToken: between(30*time.Millisecond, 90*time.Millisecond), PerToken: between(2*time.Millisecond, 4*time.Millisecond)}
}

func evenly(share float64) standin.Ramp { return standin.Ramp{From: share, To: share} }

// incidentConfig is the whole configuration of the gateway in the demo, but for the addresses of the two APIs. It waits less
// than the defaults do, for an incident of seconds.
const incidentConfig = `
targets:
  - {name: first, url: "http://first.invalid", key: any}
  - {name: second, url: "http://second.invalid", key: any}
routes:
  - {name: demo, chain: [{target: first}, {target: second}, saved]}
policy: {attempts: 3, deadline: 20s, max_server_wait: 2s, backoff: {base: 200ms, cap: 1s}}
breaker: {failures: 5, cooldown: 500ms, max_cooldown: 1s, ramp: -1s}
stream: {delivery: whole}
`
