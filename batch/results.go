package batch

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/anthropics/anthropic-sdk-go/v2"

	"holdfast"
	"holdfast/turn"
)

// Outcome is what became of one request of a batch.
type Outcome uint8

const (
	// Succeeded: there is a message that says what it has to say, or whose tool calls are complete.
	Succeeded Outcome = iota
	// Refused: there is a message, and it is a refusal, which the API calls a success.
	Refused
	// Truncated: there is a message, and it ends where max_tokens or the context window ended it, or in the middle of a
	// tool call, whatever its stop reason says. Nothing is to be done with such a call.
	Truncated
	// Paused: there is a message, and the model wants to go on with its turn.
	Paused
	// Unknown: there is a message, and its stop reason is none that is known here, or it has none. What it is worth is the
	// caller's to say.
	Unknown
	// Retryable: it errored for a reason that passes: overload, a rate limit, a fault of the API, a spend limit.
	Retryable
	// Failed: it errored for a reason in the request itself, and would again.
	Failed
	// Canceled: the batch was canceled before its turn. It is not billed.
	Canceled
	// Expired: the batch expired before its turn. It is not billed.
	Expired
	// Missing: the results do not have it. Whether it was worked on, and billed, is not known.
	Missing
	// Other: a type of result that is not known here.
	Other
)

var outcomeWords = [...]string{
	Succeeded: "succeeded", Refused: "refused", Truncated: "truncated", Paused: "paused", Unknown: "unknown_reason",
	Retryable: "retryable", Failed: "failed", Canceled: "canceled", Expired: "expired", Missing: "missing", Other: "other",
}

// String returns the word for it, in lower case; it never returns an empty one.
func (o Outcome) String() string {
	if int(o) >= len(outcomeWords) {
		return fmt.Sprintf("Outcome(%d)", uint8(o))
	}
	return outcomeWords[o]
}

// Item is one result, with the request that it belongs to.
type Item struct {
	// CustomID of the request.
	CustomID string
	// Request is the one with this id among those that were given; nil if there is none.
	Request *Request
	Outcome Outcome
	// Reason is the stop reason, the error's type or the type of the result: a word of the API, never a text. Empty: a
	// message without a stop reason.
	Reason string
	// Again means that a result with this id has come before.
	Again bool
	// Result is what the API sent; the zero value for a Missing one.
	Result anthropic.MessageBatchResultUnion
	// Verdict of an error; OK for all else.
	Verdict holdfast.Verdict

	given *given
}

// given is what one Results was given, which its items tell a [Report].
type given struct {
	requests int // with different custom ids
}

// MismatchError is a batch whose results have not one custom id of the requests: it is the batch of others.
type MismatchError struct {
	// ID of the batch.
	ID string
	// Results that came, and Requests that they were compared with.
	Results, Requests int
}

// Error names the batch and what was compared. It never shows a custom id.
func (e *MismatchError) Error() string {
	return fmt.Sprintf("batch: not one of the %d results of %s belongs to one of the %d requests", e.Results, e.ID, e.Requests)
}

// Hint says what to look at; it never suggests to create the batch again.
func (e *MismatchError) Hint() string {
	return "it is the batch of other requests: look at the id; if Create adopted it by its count, set Client.Shared"
}

// Results yields what became of each request of a batch that has ended, in the order of the API, which is none, and then
// those that the results do not have. Results are matched by custom id; one that belongs to no request has a nil Request,
// and one that comes twice is told as Again. Without requests nothing is matched or missed. A reading that breaks off, or
// ends with too few results, is begun anew, and no result is yielded again.
//
// An error is yielded once, at the end, with the zero item: [ErrNotEnded], [ErrUnnamed] for no batch, a [*GoneError] for a batch of more than 29 days
// ago, a [*ReadError] that says how far it came, or a [*MismatchError].
//
// It never holds more than one message, never drops a result, and never tells a file that was cut as a whole one.
func (c *Client) Results(ctx context.Context, ended *anthropic.MessageBatch, requests []Request) iter.Seq2[Item, error] {
	return func(yield func(Item, error) bool) {
		at := make(map[string]int, len(requests))
		for i := range requests {
			at[requests[i].CustomID] = i
		}
		all := &given{requests: len(at)}
		seen, matched, results := map[string]bool{}, 0, 0
		for line, err := range c.lines(ctx, ended) {
			if err != nil {
				yield(Item{}, err)
				return
			}
			results++
			item := Item{CustomID: line.CustomID, Result: line.Result, Again: seen[line.CustomID], given: all}
			seen[line.CustomID] = true
			if i, ours := at[line.CustomID]; ours {
				item.Request = &requests[i]
				matched++
			}
			item.Outcome, item.Reason, item.Verdict = classify(&item.Result)
			if !yield(item, nil) {
				return
			}
		}
		if matched == 0 && results > 0 && len(requests) > 0 {
			yield(Item{}, &MismatchError{ID: ended.ID, Results: results, Requests: len(requests)})
			return
		}
		for i := range requests {
			if id := requests[i].CustomID; !seen[id] && !yield(Item{CustomID: id, Request: &requests[i], Outcome: Missing, Reason: "missing", given: all}, nil) {
				return
			}
		}
	}
}

// classify says what a result means.
func classify(r *anthropic.MessageBatchResultUnion) (Outcome, string, holdfast.Verdict) {
	switch r.Type {
	case "succeeded":
		return outcomeOf(&r.Message), word(string(r.Message.StopReason)), holdfast.Verdict{}
	case "errored":
		v := holdfast.FromEvent("error", []byte(r.Error.RawJSON()), nil, time.Now())
		return errored(v), reasonOf(r, v), v
	case "canceled":
		return Canceled, r.Type, holdfast.Verdict{}
	case "expired":
		return Expired, r.Type, holdfast.Verdict{}
	}
	return Other, word(r.Type), holdfast.Verdict{}
}

// outcomeOf tells a message that says all from one that does not, as package turn does. Only what is known to be done counts
// as a success.
func outcomeOf(m *anthropic.Message) Outcome {
	switch o := turn.OutcomeOf(m); {
	case o.Done():
		return Succeeded
	case o == turn.HumanReview:
		return Refused
	case o == turn.Truncated:
		return Truncated
	case o == turn.Paused:
		return Paused
	}
	return Unknown
}

// lowBalance begins the message of the invalid_request_error with which the API refuses work that prepaid credit does not
// cover. It has no code of its own.
const lowBalance = "Your credit balance is too low"

func errored(v holdfast.Verdict) Outcome {
	switch v.Kind {
	case holdfast.Throttled, holdfast.Overloaded, holdfast.Broken, holdfast.Spent:
		return Retryable
	}
	if strings.HasPrefix(v.Message, lowBalance) {
		return Retryable
	}
	return Failed
}

func reasonOf(r *anthropic.MessageBatchResultUnion, v holdfast.Verdict) string {
	for _, s := range []string{v.Code, v.Type, string(r.Error.Error.Type)} {
		if s != "" {
			return word(s)
		}
	}
	return r.Type
}

// word keeps what should be a word of the API from being more than that.
func word(s string) string {
	if len(s) > 64 || strings.ContainsFunc(s, func(c rune) bool { return c != '_' && c != '-' && c != '.' && (c < '0' || c > 'z') }) {
		return "unknown"
	}
	return s
}
