package resource

import (
	"iter"
	"math/rand/v2"
	"time"

	"holdfast/standin/internal/answer"
	"holdfast/standin/internal/request"
)

// Kind is what became of an item of a batch: the type of its result.
type Kind string

// The kinds of results. Only items that succeeded are billed.
const (
	Succeeded Kind = "succeeded"
	Errored   Kind = "errored"
	Canceled  Kind = "canceled"
	Expired   Kind = "expired"
)

// Result is the outcome of an item.
type Result struct {
	// Kind is what became of it. The zero value means Succeeded.
	Kind Kind
	// Message makes the message of an item that succeeded, as JSON in one line. It is called anew whenever the results
	// are read, at any time and from any goroutine, so that a batch does not hold 100,000 answers. It must give the same
	// bytes each time. In the usage of a batch, service_tier is "batch". nil: an empty message.
	Message func() []byte
	// Usage is what is billed when the item succeeded.
	Usage answer.Usage
	// Error is the error of an item that errored; of it, Type, Status, Code and Message count. nil: an api_error.
	Error *request.Refusal
}

// outcome is what becomes of an item that is worked on at a moment.
func (s *BatchSettings) outcome(item request.Item, at time.Time) Result {
	refusal := item.Refusal
	if refusal == nil && item.Params.Stream {
		// A batch cannot stream, which the API finds out late: at the item, not when the batch is created.
		refusal = &request.Refusal{Status: 400, Message: `"stream=True" is not supported in the Message Batches API`}
	}
	switch {
	case refusal != nil:
		return Result{Kind: Errored, Error: refusal}
	case s.Outcome == nil:
		return Result{Kind: Errored}
	}
	result := s.Outcome(item, at)
	if result.Kind == "" {
		result.Kind = Succeeded
	}
	return result
}

// emptyMessage stands for the message of a Result without one.
const emptyMessage = `{"id":"msg_standin","type":"message","role":"assistant","model":"","content":[],"container":null,"diagnostics":null,` +
	`"stop_details":null,"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":0,` +
	`"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"cache_creation":{"ephemeral_5m_input_tokens":0,` +
	`"ephemeral_1h_input_tokens":0},"output_tokens":0,"output_tokens_details":null,"server_tool_use":null,` +
	`"service_tier":"batch","inference_geo":"not_available","speed":null}}`

// itemError is the error of an item. The API names no request, because none failed.
type itemError struct {
	Type  string `json:"type"`
	Error struct {
		Details map[string]string `json:"details"`
		Type    string            `json:"type"`
		Message string            `json:"message"`
	} `json:"error"`
	RequestID *string `json:"request_id"`
}

func newItemError(refusal *request.Refusal) itemError {
	if refusal == nil {
		refusal = &request.Refusal{Status: 500, Type: "api_error", Message: "Internal server error"}
	}
	failed := itemError{Type: "error"}
	failed.Error.Type, failed.Error.Message = errorType(refusal), refusal.Message
	failed.Error.Details = map[string]string{"error_visibility": "user_facing"}
	if refusal.Code != "" {
		failed.Error.Details["error_code"] = refusal.Code
	}
	return failed
}

// errorType is the error.type of a refused item. One without status is a refused request like any other.
func errorType(refusal *request.Refusal) string {
	switch {
	case refusal.Type != "":
		return refusal.Type
	case refusal.Status == 404:
		return "not_found_error"
	case refusal.Status == 413:
		return "request_too_large"
	case refusal.Status == 429:
		return "rate_limit_error"
	case refusal.Status == 529:
		return "overloaded_error"
	case refusal.Status >= 500:
		return "api_error"
	}
	return "invalid_request_error"
}

// row is an item with its result.
type row struct {
	customID string
	digest   uint64 // of the item, when it was worked on
	result   Result
}

// appendLine appends the line of a results file.
func (r row) appendLine(line []byte) []byte {
	line = append(line, `{"custom_id":`...)
	line = appendText(line, r.customID)
	line = append(line, `,"result":{"type":"`...)
	line = append(line, r.result.Kind...)
	line = append(line, '"')
	switch r.result.Kind {
	case Succeeded:
		line = append(line, `,"message":`...)
		if r.result.Message == nil {
			line = append(line, emptyMessage...)
		} else {
			line = append(line, r.result.Message()...)
		}
	case Errored:
		line = append(line, `,"error":`...)
		line = append(line, encode(newItemError(r.result.Error))...)
	}
	return append(line, "}}\n"...)
}

// appendText appends a text as JSON. Custom ids are letters, digits, _ and - in batches that the API takes; for these it
// costs nothing.
func appendText(line []byte, text string) []byte {
	for _, c := range []byte(text) {
		if c < ' ' || c == '"' || c == '\\' || c > '~' {
			return append(line, encode(text)...)
		}
	}
	line = append(line, '"')
	line = append(line, text...)
	return append(line, '"')
}

// lines yields the lines of a results file in an order of their own. Each line is good until the next is asked for.
func lines(rows []row, seed uint64, number int) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		var line []byte
		for _, i := range shuffled(len(rows), seed, number) {
			line = rows[i].appendLine(line[:0])
			if !yield(line) {
				return
			}
		}
	}
}

// shuffled is the order of the results of a batch: the same for the same seed and number, and never that of the request,
// so that a client that relies on the order is found out with two items already.
func shuffled(n int, seed uint64, number int) []int {
	order := rand.New(rand.NewPCG(seed, uint64(number))).Perm(n)
	for i, place := range order {
		if i != place {
			return order
		}
	}
	if n > 1 {
		order = append(order[1:], order[0])
	}
	return order
}

func addUsage(sum *answer.Usage, more answer.Usage) {
	sum.Input += more.Input
	sum.Output += more.Output
	sum.CacheRead += more.CacheRead
	sum.CacheCreation += more.CacheCreation
}
