package wire

import (
	"bytes"
	"net/http"
	"strings"
)

// requestLimit bounds what a compressed request may unpack to: the largest
// request that the Messages API takes.
const requestLimit = 32 << 20

// Safe reports whether a request may be sent again when the outcome of an
// earlier attempt is unknown: whether doing it twice does no more than cost
// twice. Reads, deletes and cancels are safe; so are the calls of a model,
// unless the body continues a thread or a conversation, starts work in the
// background, or lets the server run tools, whose effects would repeat. A body
// that cannot be read and a POST to an unknown path are not safe.
//
// An empty body counts as a body that asks for none of that.
func Safe(method, path string, body []byte) bool {
	switch method {
	case http.MethodGet, "", http.MethodHead, http.MethodOptions, http.MethodDelete:
		return true
	case http.MethodPost:
	default:
		return false
	}
	path, _, _ = strings.Cut(path, "?")
	path = strings.TrimSuffix(path, "/")
	for _, suffix := range safePosts {
		if strings.HasSuffix(path, suffix) {
			return true
		}
	}
	if isCancel(path) {
		return true
	}
	return isModelCall(path) && safeBody(body)
}

// safePosts ends the paths whose POST changes nothing, whatever its body.
var safePosts = []string{
	"/v1/messages/count_tokens",
	"/v1/responses/input_tokens",
	"/v1/completions",
	"/v1/embeddings",
	"/v1/moderations",
}

// isCancel reports whether the path cancels a batch or a response by its id.
func isCancel(path string) bool {
	parts := strings.Split(path, "/")
	n := len(parts)
	return n >= 4 && parts[n-1] == "cancel" && parts[n-2] != "" && (parts[n-3] == "batches" || parts[n-3] == "responses")
}

// isModelCall reports whether the path asks a model for an answer. The clouds
// name Claude in the path.
func isModelCall(path string) bool {
	for _, suffix := range []string{"/v1/messages", "/v1/chat/completions", "/v1/responses"} {
		if strings.HasSuffix(path, suffix) {
			return true
		}
	}
	if !strings.Contains(path, "anthropic") {
		return false
	}
	for _, suffix := range []string{"/invoke", "/invoke-with-response-stream", ":rawPredict", ":streamRawPredict"} {
		if strings.HasSuffix(path, suffix) {
			return true
		}
	}
	return false
}

// stateful lists the members that make a call more than a question.
var stateful = []string{"previous_message_id", "mcp_servers", "conversation", "background", "tools"}

func safeBody(body []byte) bool {
	content := unpack(body, requestLimit)
	if content.partial || content.torn {
		return false
	}
	text := bytes.TrimSpace(content.text)
	if len(text) == 0 {
		return true
	}
	if !node(text).closed() {
		return false
	}
	safe := true
	node(text).members(func(key, value node) bool {
		for _, name := range stateful {
			if key.is(name) {
				safe = safe && safeMember(name, value)
			}
		}
		return safe
	})
	return safe
}

func safeMember(name string, value node) bool {
	switch name {
	case "tools":
		safe := true
		value.elements(func(tool node) bool {
			safe = clientTool(tool.get("type").text())
			return safe
		})
		return safe
	case "background":
		return value.isNull() || value[0] == 'f'
	default:
		return !value.filled() && !value.isNumber()
	}
}

// clientTool reports whether a tool runs at the caller, or at the server
// without reaching beyond the request. Anything not known runs at the server.
func clientTool(typ string) bool {
	switch typ {
	case "", "custom", "function", "computer", "local_shell", "apply_patch", "file_search":
		return true
	}
	for _, prefix := range []string{"bash_", "text_editor_", "computer_", "memory_", "browser_toolset_", "tool_search_tool_"} {
		if strings.HasPrefix(typ, prefix) {
			return true
		}
	}
	return false
}
