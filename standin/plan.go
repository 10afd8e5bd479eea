package standin

import "time"

// Plan is what a Server plays. The zero value answers everything.
//
// A request meets its parts in this order: Limits, when a bucket is empty; then
// the first of Rules that matches it, the job it belongs to, or Steps; and when
// what these give is a plain answer, the first incident of Timeline that is on
// and hits it.
type Plan struct {
	// Seed decides every draw together with the job and the attempt. Two runs
	// with one seed see the same faults per job, however many clients work in
	// parallel; another seed gives other draws. 0 is a seed like any other.
	Seed uint64 `yaml:"seed"`
	// Rules are asked in order; the first whose Match fits the request decides its step.
	Rules []Rule `yaml:"rules"`
	// Jobs holds steps for the requests whose prompt text contains the key; of
	// several keys the longest counts, of equally long ones the first in the
	// alphabet. Each job keeps its own place in its steps.
	Jobs map[string][]Step `yaml:"jobs"`
	// Steps are played in order, one for each request that no rule matches and
	// that belongs to no job. When they are used up, requests get the answer.
	Steps []Step `yaml:"steps"`
	// Timeline is a list of incidents by time since New or the last Reset.
	Timeline []Incident `yaml:"timeline"`
	// Limits are the rate limits. nil: none, and no rate-limit headers.
	Limits *Limits `yaml:"limits"`
	// Latency is how long answers take. The zero value answers at once.
	Latency Latency `yaml:"latency"`
	// Batches say how message batches go.
	Batches Batches `yaml:"batches"`
	// Tape answers requests with what was recorded, and the steps lie over it: ok
	// plays the recording, any other step its fault. One that shapes an answer,
	// such as refusal, has one made in place of the recording. Of the exchanges with
	// the same method, path and body the next one answers; when there is none, the next one with the same
	// method, path and model, so that prompts may differ; and when there is none of those, a 404. nil: answers are made. A document cannot name one.
	Tape *Tape `yaml:"-"`
	// Reply is the text of every answer. Default: a short sentence.
	Reply string `yaml:"reply"`
	// BadKeys are the API keys that get a 401. Default: "bad". Any other key is
	// good; a missing one is a 401 as well.
	BadKeys []string `yaml:"bad_keys"`
}

// Rule gives steps to the requests that match.
type Rule struct {
	// Name stands in the journal. Default: rules[i].
	Name string `yaml:"name"`
	// Match says which requests. The zero value matches all.
	Match Match `yaml:"match"`
	// Share is the part of the matched requests that the steps are for, drawn by
	// seed, job and attempt: 0.1 is one in ten. The others go on to the next
	// rule. 0 means 1; below 0 and above 1 are mistakes.
	Share float64 `yaml:"share"`
	// Per says whose place in the steps it is: PerRule (default) has one place
	// for all requests, in order of arrival; PerJob plays the steps to each job
	// from their beginning, so that the order of arrival makes no difference.
	Per Per `yaml:"per"`
	// Steps are played in order.
	Steps []Step `yaml:"steps"`
	// Then is the step of all requests after Steps. The zero value is the answer.
	Then Step `yaml:"then"`
}

// Per is whose place in a list of steps is kept.
type Per string

// The ways to keep a place.
const (
	PerRule Per = "rule"
	PerJob  Per = "job"
)

// Match is a condition on a request. Every field that is set must fit; the zero
// value of a field, and of the whole, fits every request. Globs
// know * for any run of characters and ? for one; all else is literal.
type Match struct {
	// Path is a glob for the URL path without a base path: "/v1/messages*".
	Path string `yaml:"path"`
	// Model is a glob for the model asked for: "claude-haiku-*".
	Model string `yaml:"model"`
	// Header holds globs for header values. A header that is absent matches none.
	Header map[string]string `yaml:"header"`
	// Text is contained in the prompt, system text and tool results included.
	Text string `yaml:"text"`
	// CustomID is a glob for the custom id of an item of a batch, or the header
	// x-custom-id of any other request.
	CustomID string `yaml:"custom_id"`
	// Nth counts the requests that fit all the rest of this Match, from 1.
	Nth Span `yaml:"nth"`
	// Attempt is the number in the header x-stainless-retry-count, which the SDKs
	// count from 0. nil: any. A request without the header has the number 0.
	Attempt *int `yaml:"attempt"`
	// Stream is whether an event stream was asked for. nil: either.
	Stream *bool `yaml:"stream"`
}

// Span is a range of counts. The zero value is every count. In a document it is
// a number "3", a range "3-5", an open range "3-", or "/10" for every tenth;
// "3-20/5" is the fifth, tenth, fifteenth and twentieth.
type Span struct {
	// From and To are the first and last count. 0: no bound.
	From, To int
	// Every takes one in so many, the tenth, twentieth and so on with 10. 0: all.
	Every int
}

// Incident is a stretch of the timeline.
type Incident struct {
	// Name stands in the journal. Default: timeline[i].
	Name string `yaml:"name"`
	// From is when it begins. 0 is the moment of New or the last Reset.
	From time.Duration `yaml:"from"`
	// To is when it is over, behind From and counted from the same moment. 0 means never.
	To time.Duration `yaml:"to"`
	// Match says which requests it hits. Nth counts within the incident.
	Match Match `yaml:"match"`
	// Share is the part of the requests that get Step, drawn by seed, job and
	// attempt. Default: all of them.
	Share Ramp `yaml:"share"`
	// Step is what they get. The zero value is the answer, for an incident that
	// changes only limits or latency.
	Step Step `yaml:"step"`
	// Limits replace those of the plan while the incident is on, for all requests.
	// Of several incidents with limits the first counts. nil: no change.
	Limits *Limits `yaml:"limits"`
	// Latency replaces that of the plan while the incident is on, for the requests
	// that match, all of them. Of several incidents the first counts. nil: no change.
	Latency *Latency `yaml:"latency"`
}

// Ramp is a share that goes evenly from one value to another over an incident.
// The zero value is a share of 1. In a document it is a number, or {from, to}.
type Ramp struct {
	// From and To are between 0 and 1. An incident without an end stays at From.
	From float64 `yaml:"from"`
	To   float64 `yaml:"to"`
}

// Batches say how message batches go. The zero value works at the speed of
// the looks: half of the items are done at the first, and all at the second.
//
// Each item is decided when it is done, by the first rule that matches it and
// has a custom_id or the path "/v1/messages/batches/items": an http, error, spend_cap or ramp_limit
// step makes it errored, a timeout, reset or lost step expired, any other step shapes its answer.
// Steps, jobs and incidents without such a match do not touch items.
type Batches struct {
	// Takes is how long a batch is worked on. 0: two looks. Negative: for ever, so that all items expire.
	Takes time.Duration `yaml:"takes"`
	// CancelTakes is how long a canceled batch is canceling. 0 or less: until the next look.
	CancelTakes time.Duration `yaml:"cancel_takes"`
	// Hidden is how long requests that name a new batch get a 404, and HiddenLooks how many of them do. 0 or less: none.
	Hidden      time.Duration `yaml:"hidden"`
	HiddenLooks int           `yaml:"hidden_looks"`
	// LateResults is how many requests for the results get a 404 after the batch has ended. 0 or less: none.
	LateResults int `yaml:"late_results"`
	// Lifetime is the time from creation to expiry. 0 or less: 24 h.
	Lifetime time.Duration `yaml:"lifetime"`
}

// Latency is how long an answer takes to come. The zero value is no time.
type Latency struct {
	// FirstToken is the time from the request to the first content event, or to
	// the headers of an answer that is not a stream.
	FirstToken Spread `yaml:"first_token"`
	// PerToken is the time each further content event takes; an answer that is
	// not a stream takes the sum before its headers.
	PerToken Spread `yaml:"per_token"`
}

// Spread is a time that is drawn, by seed, job and attempt. The zero value is
// no time. In a document it is a time for a constant one, {min, max} for an even
// spread, or {median, p99} for a log-normal one, which is how API latencies look.
// Negative times, both pairs at once and a Max below Min are mistakes.
type Spread struct {
	// Min and Max bound an even spread; equal bounds make it constant.
	Min time.Duration `yaml:"min"`
	Max time.Duration `yaml:"max"`
	// Median and P99 are the points that half and 99 % of the draws stay below.
	Median time.Duration `yaml:"median"`
	P99    time.Duration `yaml:"p99"`
}

// Failing returns the plan of a server that fails n times with the status and
// then answers. Negative n fails for ever, 0 never. retryAfter is the value of
// the retry-after header; "" leaves it out. The status is 200 to 599; with
// another one New panics, as for every plan with a mistake.
func Failing(n, status int, retryAfter string) Plan {
	if n == 0 {
		return Plan{}
	}
	return Plan{Steps: []Step{{Kind: HTTP, Times: n, Status: status, RetryAfter: retryAfter}}}
}
