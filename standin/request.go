package standin

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"

	"holdfast/internal/wire"
)

// maxBody is the API's own limit on a request body in bytes.
const maxBody = 32 << 20

// request is what the stand-in needs to know of a request.
type request struct {
	model     string
	maxTokens int // 0: no limit given
	stream    bool
	usage     bool // OpenAI: a chunk with usage at the end of the stream
	prompt    string
}

// refusedRequest is a request that the real API refuses by itself.
type refusedRequest struct {
	status        int
	code, message string
}

func invalid(message string) *refusedRequest {
	return &refusedRequest{status: http.StatusBadRequest, message: message}
}

// accept reads and checks the request.
func (s *Server) accept(w http.ResponseWriter, r *http.Request, dialect wire.Dialect, e *entry) (request, *refusedRequest) {
	// Read to the end in every case: net/http notices that a client leaves only
	// when nothing of the body is left.
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	e.read(body)
	switch tooLarge := new(http.MaxBytesError); {
	case errors.As(err, &tooLarge):
		return request{}, &refusedRequest{status: http.StatusRequestEntityTooLarge, message: "Request exceeds the maximum size"}
	case err != nil:
		return request{}, invalid("The request body could not be read")
	}
	switch path := r.URL.Path; {
	case !strings.HasSuffix(path, "/v1/messages") && !strings.HasSuffix(path, "/v1/chat/completions"):
		return request{}, &refusedRequest{status: http.StatusNotFound, message: "Not found"}
	case r.Method != http.MethodPost:
		return request{}, &refusedRequest{status: http.StatusMethodNotAllowed, message: "Method not allowed"}
	}
	e.endpoint(endpoints[dialect])
	if key := keyOf(r.Header); key == "" || slices.Contains(s.plan.BadKeys, key) {
		code := ""
		if dialect == wire.DialectOpenAI {
			code = "invalid_api_key"
		}
		return request{}, &refusedRequest{status: http.StatusUnauthorized, code: code, message: "invalid x-api-key"}
	}
	q, refused := parseRequest(body, dialect)
	e.asked(q)
	return q, refused
}

var endpoints = map[wire.Dialect]string{wire.DialectAnthropic: "messages", wire.DialectOpenAI: "chat_completions"}

// keyOf returns the API key from either header.
func keyOf(h http.Header) string {
	if key := h.Get("x-api-key"); key != "" {
		return key
	}
	scheme, key, _ := strings.Cut(h.Get("authorization"), " ")
	if !strings.EqualFold(scheme, "bearer") {
		return ""
	}
	return strings.TrimSpace(key)
}

func parseRequest(body []byte, dialect wire.Dialect) (request, *refusedRequest) {
	var in struct {
		Model               string `json:"model"`
		MaxTokens           *int   `json:"max_tokens"`
		MaxCompletionTokens *int   `json:"max_completion_tokens"`
		Stream              bool   `json:"stream"`
		StreamOptions       struct {
			IncludeUsage bool `json:"include_usage"`
		} `json:"stream_options"`
		System   any       `json:"system"`
		Messages []message `json:"messages"`
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return request{}, invalid("The request body is not valid JSON")
	}
	q := request{model: in.Model, stream: in.Stream, usage: in.StreamOptions.IncludeUsage}
	limit := in.MaxTokens
	if dialect == wire.DialectOpenAI && limit == nil {
		limit = in.MaxCompletionTokens
	}
	switch {
	case in.Model == "":
		return q, invalid("model: Field required")
	case limit == nil && dialect == wire.DialectAnthropic:
		return q, invalid("max_tokens: Field required")
	case limit != nil && *limit < 1:
		return q, invalid("max_tokens: Input should be greater than or equal to 1")
	case len(in.Messages) == 0:
		return q, invalid("messages: at least one message is required")
	}
	if limit != nil {
		q.maxTokens = *limit
	}
	var prompt strings.Builder
	addText(&prompt, in.System)
	for _, m := range in.Messages {
		if !slices.Contains(roles[dialect], m.Role) {
			return q, invalid("messages: unexpected role")
		}
		addText(&prompt, m.Content)
	}
	q.prompt = prompt.String()
	return q, nil
}

type message struct {
	Role    string `json:"role"`
	Content any    `json:"content"`
}

var roles = map[wire.Dialect][]string{
	wire.DialectAnthropic: {"user", "assistant", "system"},
	wire.DialectOpenAI:    {"developer", "system", "user", "assistant", "tool", "function"},
}

// addText collects the text of a content value: a string, or blocks with text,
// which may be nested as in a tool result. Each text ends with LF, so that a
// job's key is not found across two of them.
func addText(b *strings.Builder, content any) {
	switch c := content.(type) {
	case string:
		b.WriteString(c)
		b.WriteByte('\n')
	case []any:
		for _, block := range c {
			addText(b, block)
		}
	case map[string]any:
		addText(b, c["text"])
		addText(b, c["content"])
	}
}
