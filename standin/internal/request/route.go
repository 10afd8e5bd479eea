package request

import (
	"fmt"
	"net/http"
	"strings"

	"holdfast/internal/wire"
)

// The largest request bodies that the API takes, in bytes.
const (
	maxMessage = 32 << 20
	maxBatch   = 256 << 20
	maxFile    = 500 << 20
)

// MaxBody returns how long the body of a request may be, in bytes; an unknown endpoint has the limit of Messages. Read
// refuses a longer one, and sees that it is longer when it gets one byte more.
// Limits of platform.claude.com/docs/en/api/errors, "Request size limits".
func MaxBody(e Endpoint) int64 {
	switch e {
	case BatchCreate:
		return maxBatch
	case FileUpload:
		return maxFile
	default:
		return maxMessage
	}
}

// rule is an operation by method and path. {id} stands for one segment.
type rule struct {
	method, path string
	endpoint     Endpoint
}

var rules = []rule{
	{http.MethodPost, "messages", Messages},
	{http.MethodPost, "messages/count_tokens", CountTokens},
	{http.MethodPost, "messages/batches", BatchCreate},
	{http.MethodGet, "messages/batches", BatchList},
	{http.MethodGet, "messages/batches/{id}", BatchGet},
	{http.MethodDelete, "messages/batches/{id}", BatchDelete},
	{http.MethodGet, "messages/batches/{id}/results", BatchResults},
	{http.MethodPost, "messages/batches/{id}/cancel", BatchCancel},
	{http.MethodGet, "models", ModelList},
	{http.MethodGet, "models/{id}", ModelGet},
	{http.MethodPost, "files", FileUpload},
	{http.MethodGet, "files", FileList},
	{http.MethodGet, "files/{id}", FileGet},
	{http.MethodDelete, "files/{id}", FileDelete},
	{http.MethodGet, "files/{id}/content", FileContent},
	{http.MethodPost, "chat/completions", ChatCompletions},
	{http.MethodPost, "responses", Responses},
}

// Route returns the endpoint that a method and a URL path ask for, the id in the path, and the base path in front of
// /v1, which clients keep from their base URL; it must not hold a segment v1 itself, as a base URL that ends in /v1
// makes it for an SDK that adds another. A path that is none is a 404, a known path under another method a 405, HEAD
// included; a slash at the end makes another path.
func Route(method, path string) (e Endpoint, id, base string, refusal *Refusal) {
	base, rest, found := strings.Cut(path, "/v1/")
	if !found || strings.HasPrefix(rest, "v1/") || strings.Contains(rest, "/v1/") {
		return "", "", "", notFound(method, path)
	}
	known := false
	for i := range rules {
		at, ok := rules[i].match(rest)
		if ok && rules[i].method == method {
			return rules[i].endpoint, at, base, nil
		}
		known = known || ok
	}
	if known {
		return "", "", base, notAllowed(method, "/v1/"+rest)
	}
	return "", "", base, notFound(method, "/v1/"+rest)
}

// match says whether the path is the one of the rule, and returns the id in it.
func (r *rule) match(path string) (id string, ok bool) {
	front, back, found := strings.Cut(r.path, "{id}")
	if !found {
		return "", path == r.path
	}
	id, ok = strings.CutPrefix(path, front)
	if !ok {
		return "", false
	}
	id, ok = strings.CutSuffix(id, back)
	return id, ok && id != "" && !strings.Contains(id, "/")
}

func notFound(method, path string) *Refusal {
	if wire.DialectOf(path) == wire.DialectOpenAI {
		return openAI(http.StatusNotFound, "", "", fmt.Sprintf("Invalid URL (%s %s)", method, path))
	}
	return &Refusal{Status: http.StatusNotFound, Message: "Not Found"}
}

func notAllowed(method, path string) *Refusal {
	if wire.DialectOf(path) == wire.DialectOpenAI {
		return openAI(http.StatusMethodNotAllowed, "", "method_not_supported",
			fmt.Sprintf("Not allowed to %s on %s. (HINT: Perhaps you meant to use a different HTTP method?)", method, path))
	}
	return &Refusal{Status: http.StatusMethodNotAllowed, Type: "invalid_request_error", Message: "Method Not Allowed"}
}
