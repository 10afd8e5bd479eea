package standin

import "time"

// Kind is the noun of a fault. The package comment describes each.
type Kind string

// The kinds a Step can have. The zero value means ok.
const (
	OK         Kind = "ok"
	HTTP       Kind = "http"
	Refusal    Kind = "refusal"
	Truncation Kind = "truncation"
	Timeout    Kind = "timeout"
	Reset      Kind = "reset"
	Cut        Kind = "cut"
	Error      Kind = "error"
	Empty      Kind = "empty"
	HTML       Kind = "html"
)

// rejected is what the journal says of a request that the API itself would
// refuse. It uses up no step.
const rejected Kind = "rejected"

// Stage is a place in a stream.
type Stage string

const (
	// First is before the first event, after the headers.
	First Stage = "first"
	// Preamble is before the first content event.
	Preamble Stage = "preamble"
	// Content is behind Step.After content events.
	Content Stage = "content"
	// Stop is behind the stop reason, before the event that ends the stream.
	Stop Stage = "stop"
)

// Ending is the way in which a cut ends a reply.
type Ending string

const (
	// Clean ends the body properly, as if it were complete.
	Clean Ending = "clean"
	// Chunk closes the connection without the last chunk.
	Chunk Ending = "chunk"
	// RST resets the connection. What the client has not read yet may be lost.
	RST Ending = "rst"
	// Stall sends nothing more and keeps the connection open until the client leaves.
	Stall Ending = "stall"
)

// Plan is what a Server plays. The zero value answers everything.
type Plan struct {
	// Steps are played in order, one for each request that belongs to no job.
	// When they are used up, requests get the answer.
	Steps []Step
	// Jobs holds steps of their own for the requests whose prompt text contains
	// the key; of several keys the longest counts, of equally long ones the
	// first in the alphabet. Each job keeps its own place in its steps.
	Jobs map[string][]Step
	// Reply is the text of every answer. Default: a short sentence.
	Reply string
	// BadKeys are the API keys that get a 401. Default: "bad". Any other key is
	// good; a missing one is a 401 as well.
	BadKeys []string
}

// Step is one fault, or one good answer. Which fields a Kind takes is in the
// table that Faults returns; Validate refuses the others.
type Step struct {
	// Kind is the fault. Default: ok.
	Kind Kind
	// Times is how many requests in a row the step is for. 0 means one;
	// negative means all that follow.
	Times int
	// Delay is the time from the request to the first byte of the reply, as if it
	// waited in a queue: nothing is billed before. 0 means none.
	Delay time.Duration

	// Status is the HTTP status, 200 to 599, of an http step, which needs one,
	// and the status that stands for the type of an error step. Default there: 529.
	Status int
	// RetryAfter is the value of the retry-after header, sent as it is. Default: no header.
	RetryAfter string
	// Header holds further headers of the reply.
	Header map[string]string
	// RequestID replaces the request id, which is counted otherwise.
	RequestID string
	// Type is the error.type. Default: the one of Status.
	Type string
	// Code is error.details.error_code, in the OpenAI dialect error.code. Default: none.
	Code string
	// Message is error.message. Default: a sentence for the status.
	Message string
	// Body replaces the whole error body when it or ContentType is set.
	Body string
	// ContentType belongs to Body. Default: application/json.
	ContentType string

	// Category and Explanation are the stop_details of a refusal. Default: null.
	Category    string
	Explanation string

	// At is where in a stream the fault happens. Default: Content when After is
	// above 0, else Preamble.
	At Stage
	// After is the number of content events before the fault. An answer that is
	// too short for it is repeated until it is long enough.
	After int
	// How is the way a cut ends the reply. Default: clean.
	How Ending
	// Torn sends the first part of the next event before a cut, up to the middle of its data.
	Torn bool
	// Gap is the time before every content event but the first. 0 means none.
	Gap time.Duration
}

// Failing returns the plan of a server that fails n times with the status and
// then answers. Negative n fails for ever, 0 never. retryAfter is the value of
// the retry-after header; "" leaves it out.
func Failing(n, status int, retryAfter string) Plan {
	if n == 0 {
		return Plan{}
	}
	return Plan{Steps: []Step{{Kind: HTTP, Times: n, Status: status, RetryAfter: retryAfter}}}
}

// withDefaults returns the step with every default of its kind filled in.
func (s Step) withDefaults() Step {
	if s.Kind == "" {
		s.Kind = OK
	}
	if s.Kind == Error && s.Status == 0 {
		s.Status = 529
	}
	if s.At == "" {
		s.At = Preamble
		if s.After > 0 {
			s.At = Content
		}
	}
	if s.How == "" {
		s.How = Clean
	}
	return s
}
