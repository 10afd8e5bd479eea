package saved

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/textproto"
	"slices"
	"strings"
)

// Question is what determines an answer.
type Question struct {
	// Method and Path as the caller sent them, the path with its query. Only a POST is a question.
	Method, Path string
	// Header of the request. Only anthropic-version and anthropic-beta count.
	Header http.Header
	// Body of the request, not compressed.
	Body []byte
	// Stream tells that the request asks for a stream.
	Stream bool
}

// ErrQuestion is the error of a question whose answer cannot be saved: it is no call of a model, or what determines its
// answer lies elsewhere. Test with errors.Is; the text says which.
var ErrQuestion = errors.New("saved: not a question whose answer can be saved")

const notOurs = "only messages, chat completions and responses are saved"

func badQuestion(why string) error { return fmt.Errorf("%w: %s", ErrQuestion, why) }

// Key identifies a question: it is the SHA-256 of what determines its answer, and nothing can be read back from it.
type Key [sha256.Size]byte

// String returns the key in hex.
func (k Key) String() string { return hex.EncodeToString(k[:]) }

// Key returns the key of the question; the error is [ErrQuestion].
//
// What counts is the path with its query, anthropic-version, the set of betas in whatever order, and the body, in which
// neither the order of members nor space counts. What does not count in the body:
//
//   - how the answer is delivered: stream, stream_options
//   - whom it is for: metadata, user, safety_identifier
//   - how it is paid and computed: service_tier, speed, inference_geo, billing_policy, fallback_credit_token
//   - what the provider stores for later: store, prompt_cache_key, prompt_cache_retention, prompt_cache_options,
//     diagnostics, and in the Messages API cache_control wherever it marks a part of the prompt
//   - members that are null, which is as good as absent
//
// The model counts, and so does max_tokens. Who asks does not count: whoever may use a store gets what was answered to
// another who asked the very same.
//
// A question has no key when its answer depends on a state that the provider keeps and changes: a conversation, a thread, a
// running container, work in the background.
func (q *Question) Key() (Key, error) {
	key, _, err := q.read()
	return key, err
}

// volatile are the members of a body that do not determine the answer.
var volatile = []string{
	"stream", "stream_options",
	"metadata", "user", "safety_identifier",
	"service_tier", "speed", "inference_geo", "billing_policy", "fallback_credit_token",
	"store", "prompt_cache_key", "prompt_cache_retention", "prompt_cache_options", "diagnostics",
}

// asked is what is read from a question.
type asked struct {
	kind   *kind
	body   object
	stream bool
}

func (q *Question) read() (Key, asked, error) {
	a := asked{kind: kindOf(q.Path), stream: q.Stream}
	if q.Method != http.MethodPost || a.kind == nil {
		return Key{}, a, badQuestion(notOurs)
	}
	if !json.Valid(q.Body) {
		return Key{}, a, badQuestion("the body is not JSON")
	}
	var isObject bool
	if a.body, isObject = readObject(q.Body); !isObject {
		return Key{}, a, badQuestion("the body is not an object, or one with too many members")
	}
	if name := stateful(a.body); name != "" {
		return Key{}, a, badQuestion("its answer depends on " + name)
	}
	body := digestOf(q.Body, a.kind.omits)
	path, query := pathAndQuery(q.Path)
	text := fmt.Appendf(nil, "holdfast 1\n%q\n%q\n%q\n%q\n%x", path, query, versionOf(q.Header), betasOf(q.Header), body)
	return sha256.Sum256(text), a, nil
}

// pathAndQuery splits a path as it was sent. The order of the query's parts does not count.
func pathAndQuery(sent string) (string, []string) {
	path, query, _ := strings.Cut(sent, "?")
	if query == "" {
		return strings.TrimSuffix(path, "/"), nil
	}
	parts := strings.Split(query, "&")
	slices.Sort(parts)
	return strings.TrimSuffix(path, "/"), parts
}

const (
	versionHeader = "Anthropic-Version"
	betaHeader    = "Anthropic-Beta"
)

func versionOf(h http.Header) string { return textproto.TrimString(h.Get(versionHeader)) }

// betasOf returns the set of betas, in one order.
func betasOf(h http.Header) []string {
	var betas []string
	for _, line := range h.Values(betaHeader) {
		for beta := range strings.SplitSeq(line, ",") {
			if beta = strings.TrimSpace(beta); beta != "" {
				betas = append(betas, beta)
			}
		}
	}
	slices.Sort(betas)
	return slices.Compact(betas)
}

// stateful returns the member of a body that makes the answer depend on more than the request, "" when there is none.
func stateful(body object) string {
	for _, name := range []string{"conversation", "thread", "previous_message_id"} {
		if !isNull(body.at(name)) {
			return name
		}
	}
	if bytes.HasPrefix(body.at("background"), []byte("t")) {
		return "background"
	}
	container := body.at("container")
	if isString(container) || !isNull(body.object("container").at("id")) {
		return "container"
	}
	return ""
}

// omitted is the rule for the members at the top of any body.
func omitted(path []string, name string, rest []byte) bool {
	return len(path) == 0 && (slices.Contains(volatile, name) || bytes.HasPrefix(rest, []byte("null")))
}

// omittedMessage is the rule for a body of the Messages API. A member called cache_control in the input of a tool or in the
// schema of one is no mark for the cache.
func omittedMessage(path []string, name string, rest []byte) bool {
	if name != "cache_control" {
		return omitted(path, name, rest)
	}
	return !slices.Contains(path, "input") && !slices.Contains(path, "input_schema")
}
