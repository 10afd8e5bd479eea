package standin

import "time"

// Step is one fault, or one good answer. Which fields a Kind takes is in the
// table that Faults returns; Validate refuses the others, and negative times and
// counts but for Times and Declines.
type Step struct {
	// Kind is the fault. Default: ok.
	Kind Kind `yaml:"kind"`
	// Times is how many requests in a row the step is for. 0 means one;
	// negative means all that follow.
	Times int `yaml:"times"`
	// Delay is the time from the request to the first byte of the reply, as if it
	// waited in a queue: nothing is billed before. 0 means none.
	Delay time.Duration `yaml:"delay"`
	// Header holds further headers of the reply. Several values of one header are
	// sent as several lines.
	Header Header `yaml:"header"`
	// RequestID replaces the request id. Default: one that counts the requests.
	RequestID string `yaml:"request_id"`

	// Status is the HTTP status, 200 to 599, of an http step, which needs one,
	// and the status that stands for the type of an error step. Default there: 529.
	Status int `yaml:"status"`
	// RetryAfter is the value of the retry-after header, sent as it is, but for
	// "now+3s" and "now-3s", which become an HTTP date. Default: no header.
	RetryAfter string `yaml:"retry_after"`
	// Type is the error.type. Default: the one of Status.
	Type string `yaml:"type"`
	// Code is error.details.error_code, in the OpenAI dialect error.code. Default: none.
	Code string `yaml:"code"`
	// Message is error.message. Default: a sentence for the status.
	Message string `yaml:"message"`
	// Form is the shape of an error's body. Default: the provider's JSON.
	Form Form `yaml:"form"`
	// Body replaces the whole error body when it or ContentType is set.
	Body string `yaml:"body"`
	// ContentType belongs to Body and Form. Default: that of the Form.
	ContentType string `yaml:"content_type"`
	// Cap is the kind of money limit of a spend_cap step. Default: tier.
	Cap Cap `yaml:"cap"`

	// Category and Explanation are the stop_details of a refusal. Default: null.
	Category    string `yaml:"category"`
	Explanation string `yaml:"explanation"`
	// Declines is how many models refuse a request that brings fallbacks of its own:
	// the model that was asked, then those of the list. 0 means one; negative means all.
	Declines int `yaml:"declines"`
	// RecommendedModel is the model that a refusal names because the API could not
	// ask it, as when it is overloaded: no fallback is asked. Default: null.
	RecommendedModel string `yaml:"recommended_model"`
	// Reason is the stop_reason of a stop_reason step. Default: a word that no
	// client can know yet.
	Reason string `yaml:"reason"`

	// At is where in a stream the fault happens. Default: Content when After is
	// above 0, else Preamble.
	At Stage `yaml:"at"`
	// After is the number of content events before the fault. An answer that is
	// too short for it is repeated until it is long enough. At most 1,000,000.
	After int `yaml:"after"`
	// How is the way a cut ends the reply. Default: clean.
	How Ending `yaml:"how"`
	// Torn sends a part of the next event before a cut. Default: none of it.
	Torn Tear `yaml:"torn"`
	// For is how long a stall lasts before the answer goes on. 0 means until the
	// client leaves.
	For time.Duration `yaml:"for"`
	// Ping is the time between the ping events that are sent while a stream waits:
	// in a stall, in FirstToken, in Gap. 0 means none.
	Ping time.Duration `yaml:"ping"`

	// FirstToken is the time before the first content event. Default: the plan's Latency.
	FirstToken time.Duration `yaml:"first_token"`
	// Gap is the time before every further content event. Default: the plan's Latency.
	Gap time.Duration `yaml:"gap"`

	// Lines is the end of line in an event stream. Default: LF.
	Lines LineEnd `yaml:"lines"`
	// Writes is how a stream is cut into writes. Default: one for each event.
	Writes Writes `yaml:"writes"`
	// Between is what stands between two events of a stream. Default: nothing.
	Between Between `yaml:"between"`
	// Gzip compresses the body, flushed at each write, when the client accepts that.
	Gzip bool `yaml:"gzip"`
}

// Kind is the noun of a fault. Each has a file of its own.
type Kind string

// The kinds a Step can have; Faults returns a paragraph on each. The zero value
// means ok. Refused and Hang are about connections, so only an incident of the
// timeline can have them.
const (
	OK            Kind = "ok"             // a complete answer
	HTTP          Kind = "http"           // a status with the provider's error body, or any body
	SpendCap      Kind = "spend_cap"      // a limit on money, which no retry gets past
	RampLimit     Kind = "ramp_limit"     // a 429 because the traffic grows too fast
	Empty         Kind = "empty"          // a 200 without a body
	HTML          Kind = "html"           // a 200 with a web page
	Timeout       Kind = "timeout"        // no byte until the client leaves
	Reset         Kind = "reset"          // a broken connection before the work
	Lost          Kind = "lost"           // the work is done and billed, and the reply is lost
	SlowHeaders   Kind = "slow_headers"   // headers that come one line at a time
	Error         Kind = "error"          // an error event inside a 200
	Cut           Kind = "cut"            // a stream that ends before its end
	Stall         Kind = "stall"          // a stream that falls silent, and perhaps goes on
	Duplicate     Kind = "duplicate"      // an event that comes twice
	Malformed     Kind = "malformed"      // an event whose data is not JSON
	Nameless      Kind = "nameless"       // events without their event: line
	Refusal       Kind = "refusal"        // a 200 with stop_reason refusal
	Truncation    Kind = "truncation"     // a 200 with stop_reason max_tokens
	Pause         Kind = "pause_turn"     // a 200 with stop_reason pause_turn
	ContextWindow Kind = "context_window" // a 200 with stop_reason model_context_window_exceeded
	StopReason    Kind = "stop_reason"    // a 200 with a stop_reason that nobody knows yet
	HalfTool      Kind = "half_tool"      // a tool call whose arguments end half-way
	Refused       Kind = "refused"        // no connection: the port is closed
	Hang          Kind = "hang"           // a connection that is accepted and never read
)

// The kinds that the journal knows besides: no step is used up by either.
const (
	// Rejected is a request that the API itself would refuse.
	Rejected Kind = "rejected"
	// Throttled is a request that found a bucket of Limits empty.
	Throttled Kind = "throttled"
)

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
	// Silence sends nothing more and keeps the connection open until the client leaves.
	Silence Ending = "stall"
)

// Tear is the part of an event that is sent before a cut.
type Tear string

const (
	// TornFrame ends in the middle of the event's data.
	TornFrame Tear = "frame"
	// TornRune ends inside a character of more than one byte, which is put there
	// for it.
	TornRune Tear = "rune"
)

// Form is the shape of an error's body.
type Form string

const (
	// FormJSON is the provider's own error, the default.
	FormJSON Form = "json"
	// FormHTML is the page of a proxy.
	FormHTML Form = "html"
	// FormText is a line of plain text.
	FormText Form = "text"
	// FormEmpty has no byte.
	FormEmpty Form = "empty"
	// FormTruncated is the first half of the provider's error under the length of the whole.
	FormTruncated Form = "truncated"
	// FormOversized is the provider's error with a message of 4 MiB.
	FormOversized Form = "oversized"
)

// Cap is a limit on money.
type Cap string

const (
	// CapTier is the monthly cap of the usage tier: a 429 without retry-after.
	CapTier Cap = "tier"
	// CapContract is the cap of a contract: a 429.
	CapContract Cap = "contract"
	// CapOrganization is a limit that the customer set for all: a 400 that only
	// its message tells apart.
	CapOrganization Cap = "organization"
	// CapWorkspace is one that the customer set for a workspace, told apart alike.
	CapWorkspace Cap = "workspace"
	// CapLinked is the limit of a linked organization: a 402.
	CapLinked Cap = "linked"
	// CapBilling is a payment problem: a 402 without a code.
	CapBilling Cap = "billing"
)

// LineEnd is the end of a line in an event stream.
type LineEnd string

// The three line ends that the format knows.
const (
	LF   LineEnd = "lf"
	CR   LineEnd = "cr"
	CRLF LineEnd = "crlf"
)

// Writes is how a stream is cut into writes.
type Writes string

const (
	// WriteEvent is one write for each event, the default.
	WriteEvent Writes = "event"
	// WriteByte is one write for each byte.
	WriteByte Writes = "byte"
	// WriteAll is one write for the whole stream.
	WriteAll Writes = "all"
)

// Between is what stands between two events.
type Between string

const (
	// BetweenComment is a comment line.
	BetweenComment Between = "comment"
	// BetweenID is a line id: in front of the event.
	BetweenID Between = "id"
	// BetweenRetry is a line retry: in front of the event.
	BetweenRetry Between = "retry"
	// BetweenPing is a ping event.
	BetweenPing Between = "ping"
	// BetweenUnknown is an event of a type that no client can know yet.
	BetweenUnknown Between = "unknown"
)

// Header holds header values by name. In a document a value is a text, a number
// or a list of them.
type Header map[string][]string

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
