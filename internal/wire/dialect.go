package wire

import "strings"

// Dialect is the family of request and response shapes a path belongs to.
type Dialect uint8

const (
	// DialectUnknown is any path that is neither of the others. The zero value.
	DialectUnknown Dialect = iota
	// DialectAnthropic is the Messages API and its relatives.
	DialectAnthropic
	// DialectOpenAI is chat completions, responses, completions and embeddings.
	DialectOpenAI
)

// String returns "anthropic", "openai" or "unknown".
func (d Dialect) String() string {
	switch d {
	case DialectAnthropic:
		return "anthropic"
	case DialectOpenAI:
		return "openai"
	default:
		return "unknown"
	}
}

// dialectPaths lists the paths that tell a dialect, without the base path that
// a gateway or a cloud puts in front of them.
var dialectPaths = []struct {
	path    string
	dialect Dialect
}{
	{"/v1/messages", DialectAnthropic},
	{"/v1/chat/completions", DialectOpenAI},
	{"/v1/responses", DialectOpenAI},
	{"/v1/completions", DialectOpenAI},
	{"/v1/embeddings", DialectOpenAI},
}

// DialectOf returns the dialect of a request path. A prefix in front of the
// known path is allowed ("/anthropic/v1/messages"), and so is anything below it
// ("/v1/messages/count_tokens"). A query string is ignored.
func DialectOf(path string) Dialect {
	path, _, _ = strings.Cut(path, "?")
	for _, known := range dialectPaths {
		for rest := path; ; {
			i := strings.Index(rest, known.path)
			if i < 0 {
				break
			}
			rest = rest[i+len(known.path):]
			if rest == "" || rest[0] == '/' {
				return known.dialect
			}
		}
	}
	return DialectUnknown
}

// IsResponses reports whether the path is one of the Responses API, whose events have names, unlike the chunks of a chat.
func IsResponses(path string) bool { return strings.Contains(path, "/v1/responses") }
