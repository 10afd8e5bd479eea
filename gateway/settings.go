package gateway

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"holdfast"
	"holdfast/saved"
)

// Settings say what a gateway does. They are read by [New] and [Gateway.Reload] and must not be changed afterwards.
type Settings struct {
	// Targets that can be asked. At least one.
	Targets []Target
	// Routes, of which the first that matches a request holds. None, or no match: every target whose dialect is
	// that of the request, in order, with the model unchanged.
	Routes []Route

	// Policy is how calls are kept working. Its Breaker, Pace, Budget, Targets, Judge, Estimate, Usage and Observe are
	// not used: Breaker, Pace and Budget below are, for each upstream, credential and model group anew.
	Policy  holdfast.Policy
	Breaker holdfast.BreakerSettings
	Pace    holdfast.Limits
	Budget  holdfast.BudgetSettings
	// Connect, FirstContent and Idle are the timers of [transport.Transport], with its defaults.
	Connect, FirstContent, Idle time.Duration

	// Stream says how streams are handed over.
	Stream Stream
	// Clients that may use the gateway. None: everybody, which is meant for loopback alone.
	Clients []Client
	// Saved holds the answers of routes whose chain ends in Saved. Default: none.
	Saved SavedAnswers

	// MaxBody is the largest request body in bytes. Default: 512 MiB. Negative: no limit.
	MaxBody int64
	// BodyMemory is how much of a request body in bytes is kept in memory. Beyond it the body is kept in a temporary
	// file. Default: 1 MiB. Negative: everything in memory.
	BodyMemory int64
	// BodyTimeout is how long a caller may be silent while he sends his body. Default: 30s. Negative: no limit.
	BodyTimeout time.Duration
	// WriteTimeout is how long a caller may take nothing of what is written to him. Default: 1m. Negative: no limit.
	WriteTimeout time.Duration

	// Base sends the attempts. Default: an http.Transport of its own, with HTTP/2 and no proxy other than the
	// environment's. It must not retry by itself.
	Base http.RoundTripper
	// Log is told of every call that ended. Default: nobody.
	Log *slog.Logger
	// Observer is told of calls and events. Default: nobody.
	Observer Observer
}

// Target is an upstream and its credentials.
type Target struct {
	// Name in routes, traces, metrics and in the header holdfast-target.
	Name string
	// URL of the API, with the base path if there is one, as an SDK's base URL has it: the request's path is added.
	URL string
	// Dialect is anthropic or openai. Default: any.
	Dialect string
	// Keys are a pool of credentials of equal rights, each sent in place of the caller's. A key that is throttled,
	// spent or rejected is left for the next one at once. None: the caller's own key passes through.
	Keys []Key
	// Auth says how a key is sent: x-api-key, bearer or api-key. Default: x-api-key for the dialect anthropic, bearer
	// for any other.
	Auth string
	// Breaker and Pace replace those of the Settings where they are not nil.
	Breaker *holdfast.BreakerSettings
	Pace    *holdfast.Limits

	// Base sends the attempts of this target in place of that of the Settings, such as one that signs for a provider.
	// It finds the address and the credentials itself: the request has the caller's path, URL may be empty, no
	// credential of the caller ever reaches it, and a key in Keys is only known, so that it is hidden in what the
	// upstream says. It must not retry by itself. Default: that of the Settings.
	Base http.RoundTripper
	// Models turns a model, the caller's or that of the entry, into the upstream's own name of it. A model that is
	// not in it is passed on as it is.
	Models map[string]string
	// Betas and Version hold for every entry of this target that has none of its own.
	Betas   []string
	Version string
	// Lacks says what the upstream is known not to take. Default: nothing is known.
	Lacks Lacks
}

// Lacks is what is known beforehand not to work with an upstream. A request that it does not take goes past the target while
// there is another one in the chain.
type Lacks struct {
	// MaxBody is the largest request body in bytes. Zero or negative: no limit is known.
	MaxBody int64
	// CountTokens: it does not count tokens.
	CountTokens bool
	// Members of a request's body, at its top level, that are taken out for this target.
	Members []string
	// Betas are beginnings of names that are taken out of the header anthropic-beta for this target.
	Betas []string
}

// Key is a credential of a target.
type Key struct {
	// Name in traces, logs and metrics. Default: the number of its place.
	Name string
	// Secret is the key itself.
	Secret string
}

// Route says which targets answer which requests.
type Route struct {
	// Name in logs and metrics. Default: its models, or the number of its place.
	Name string
	// Models are patterns as of path.Match of which one must match the request's model. None: every request.
	Models []string
	// Chain is asked in order.
	Chain []Entry
	// OnRefusal is asked, once, when the model refuses. Default: a refusal is an answer.
	OnRefusal *Entry
	// Delivery replaces that of [Stream].
	Delivery Delivery
	// Answer is a file with a complete answer (a message, a chat completion or a response, as JSON) that stands in
	// when there is no saved one: for demos. Default: none.
	Answer string
}

// Entry is one place of a chain. All but Target is optional.
type Entry struct {
	// Target is its name.
	Target string
	// Saved makes the entry the saved answers. It has no Target and is the last of its chain.
	Saved bool
	// Model replaces the request's.
	Model string
	// Key is the name of the one key of the target to use. Default: all.
	Key string
	// Path replaces the base path of the target's URL.
	Path string
	// Betas replace the request's anthropic-beta header; an empty list that is not nil removes it.
	Betas []string
	// Version replaces the request's anthropic-version header.
	Version string
	// Sealed says what becomes of parts of the history that only the provider that made them can open, such as signed
	// thinking: keep or strip. Default: strip where the upstream is another than that of the chain's first entry.
	Sealed string
}

// Delivery says when an answer is handed over.
type Delivery uint8

const (
	// Live hands a stream over from its first content on.
	Live Delivery = iota + 1
	// Whole hands a stream over when it is complete, so that one that is cut can be repeated.
	Whole
)

// Stream says how streams are handed over.
type Stream struct {
	// Delivery is Live or Whole. Default: Live.
	Delivery Delivery
	// Hold is how long a stream that has begun is held back for want of content. Then what there is of it is handed
	// over, for callers and proxies who take silence for death, and it cannot be repeated any more. Default: 15s.
	// Negative: until there is content.
	Hold time.Duration
	// Ping is after how much silence of the upstream a caller gets a ping, until the idle timer ends the stream.
	// Default: 15s. Negative: never.
	Ping time.Duration
}

// Client is someone who may use the gateway.
type Client struct {
	// Name in logs and metrics.
	Name string
	// KeySHA256 is the SHA-256 of the client's key, in hex. The key itself is nowhere.
	KeySHA256 string
	// Lane of the client's calls. Default: interactive.
	Lane holdfast.Lane
	// RequestsPerMinute that the client may make. Zero or negative: no limit.
	RequestsPerMinute int
}

// SavedAnswers keeps good answers and gives them back. Implementations must be safe for concurrent use.
type SavedAnswers interface {
	// Load returns the answer to a request, in the form that the request asks for, and when it was saved. It reports
	// false when there is none that may be used.
	Load(ctx context.Context, req *Question) (*Saved, bool)
	// Keep takes a complete good answer, as it went to the caller.
	Keep(ctx context.Context, req *Question, answer *Saved) error
}

// Question is what determines an answer.
type Question = saved.Question

// Saved is an answer that was good once.
type Saved = saved.Answer

const (
	defaultMaxBody      = 512 << 20
	defaultBodyMemory   = 1 << 20
	defaultBodyTimeout  = 30 * time.Second
	defaultWriteTimeout = time.Minute
	defaultHold         = 15 * time.Second
	defaultPing         = 15 * time.Second
)
