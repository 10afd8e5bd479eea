package wire

import (
	"bytes"
	"net/http"
	"strings"
)

// faultInside is not a fault of its own: the answer holds an error that says
// for itself what it is. It never leaves this package.
const faultInside Fault = 255

// answerFault says what is wrong with the body of a 2xx. A body of a media type
// that is neither JSON nor HTML is not judged: it may be a file.
func answerFault(status int, mediaType string, content content) (Fault, string) {
	text := bytes.TrimSpace(bytes.TrimPrefix(content.text, []byte("\xef\xbb\xbf")))
	switch {
	case content.partial:
		return FaultNone, "200-too-large"
	case content.torn:
		return FaultEmpty, "200-truncated"
	case len(text) == 0 && status != http.StatusOK:
		return FaultNone, "status-2xx"
	case len(text) == 0:
		return FaultEmpty, "200-empty-body"
	}
	mediaType = strings.ToLower(mediaType)
	switch {
	case !isJudged(mediaType), mediaType == "" && !mostlyText(text):
		return FaultNone, "200-other-media"
	case text[0] == '<':
		return FaultEmpty, "200-html"
	case valid(text):
		return objectFault(node(text))
	case strings.HasPrefix(mediaType, "text/plain") && text[0] != '{':
		return FaultNone, "200-other-media"
	default:
		return FaultEmpty, "200-truncated"
	}
}

// isJudged reports whether a media type is one that answers and error pages
// come in. Lines of JSON are results of a batch, with errors of their own.
func isJudged(mediaType string) bool {
	switch {
	case mediaType == "", strings.HasPrefix(mediaType, "text/plain"), strings.Contains(mediaType, "html"):
		return true
	default:
		return strings.Contains(mediaType, "json") && !strings.Contains(mediaType, "jsonl") && !strings.Contains(mediaType, "ndjson")
	}
}

// objectFault says what is wrong with a well-formed JSON answer.
func objectFault(whole node) (Fault, string) {
	if whole.isArray() && whole.first().isObject() {
		whole = whole.first()
	}
	var answer outline
	answer.read(whole)
	object := answer.get("object").text()
	switch {
	case whole.isNull(), !whole.filled() && !whole.isNumber() && whole[0] != 't' && whole[0] != 'f':
		return FaultEmpty, "200-no-answer"
	case !whole.isObject(), !isAnswer(object):
		return FaultNone, "200-answer"
	case holdsError(&answer):
		return faultInside, ""
	}
	switch choices, content := answer.get("choices"), answer.get("content"); {
	case len(choices) > 0:
		return choicesFault(choices)
	case object == "response":
		return responseFault(&answer)
	case len(content) > 0 || answer.get("type").is("message"):
		return messageFault(content, answer.get("stop_reason").text())
	}
	return FaultNone, "200-answer"
}

// isAnswer reports whether an object of this kind is an answer of a model.
// Others, such as a tuning job, keep the errors of work they report on.
func isAnswer(object string) bool {
	switch object {
	case "", "error", "response", "text_completion":
		return true
	}
	return strings.HasPrefix(object, "chat.completion")
}

// errorInside is holdsError of an event. Its outline takes a place on the stack
// that a stream, which waits for its next event, need not hold meanwhile.
//
//go:noinline
func errorInside(event node) bool {
	var all outline
	all.read(event)
	return holdsError(&all)
}

// holdsError reports whether a 200 or a stream's chunk is an error in disguise.
func holdsError(answer *outline) bool {
	if answer.get("type").is("message") && answer.get("content").isArray() && answer.get("error").isNull() {
		return false // as a rule
	}
	choice := answer.get("choices").first()
	if answer.get("error").filled() || choice.get("error").filled() || choice.get("finish_reason").is("error") {
		return true
	}
	if len(choice) > 0 {
		return false
	}
	return answer.get("type").is("error") || answer.get("object").is("error") || isException(shapeName(answer.get("__type").text())) ||
		answer.get("status").is("failed") && answer.get("object").is("response") || innerError(answer).filled()
}

func choicesFault(choices node) (Fault, string) {
	if !choices.filled() {
		return FaultEmpty, "200-no-choices"
	}
	fault, name := FaultEmpty, "200-empty-choice"
	choices.elements(func(choice node) bool {
		reason := choice.get("finish_reason").text()
		message := choice.get("message")
		switch {
		case reason == "content_filter":
			fault, name = FaultRefused, "openai-content_filter"
			return false
		case anyFilled(message, "role"), len(choice.get("text")) > 0, !unexplained(reason):
			// A text completion may be empty on purpose: nothing to fill in.
			fault, name = FaultNone, "200-answer"
		}
		return true
	})
	return fault, name
}

func responseFault(answer *outline) (Fault, string) {
	switch {
	case answer.get("incomplete_details").get("reason").is("content_filter"):
		return FaultRefused, "openai-content_filter"
	case answer.get("status").is("completed") && !answer.get("output").filled():
		return FaultEmpty, "200-no-output"
	default:
		return FaultNone, "200-answer"
	}
}

func messageFault(content node, reason string) (Fault, string) {
	if Refusal(reason) {
		return FaultRefused, "anthropic-refusal"
	}
	if !unexplained(reason) {
		return FaultNone, "200-answer"
	}
	held := content.isString() && content.filled()
	content.elements(func(block node) bool {
		held = held || blockHolds(block)
		return !held
	})
	if !held {
		return FaultEmpty, "200-no-content"
	}
	return FaultNone, "200-answer"
}

// Refusal reports whether a stop reason of either dialect means that the model
// or its filter declined.
func Refusal(reason string) bool {
	return reason == "refusal" || reason == "content_filter"
}

// unexplained reports whether a stop reason leaves an answer without content
// unexplained. Any other reason, known or new, says why nothing came: a limit,
// a stop sequence at the first word, a pause.
func unexplained(reason string) bool {
	switch reason {
	case "", "end_turn", "tool_use", "stop", "tool_calls", "function_call", "completed":
		return true
	}
	return false
}

// blockHolds reports whether a content block carries something by itself. The
// start of a tool call does: it has the tool's name. So does a block of a type
// that is not known here, as nobody can say what would be lost with it.
func blockHolds(block node) bool {
	switch typ := block.get("type"); {
	case typ.is("text"):
		return block.get("text").filled()
	case typ.is("thinking"):
		return block.get("thinking").filled() || block.get("signature").filled()
	case typ.is("redacted_thinking"):
		return block.get("data").filled()
	case typ.is("compaction"):
		return block.get("content").filled()
	case typ.is("fallback"):
		// A mark between two models; what the second one says follows.
		return false
	default:
		return typ.filled()
	}
}

// anyFilled reports whether any member except one has content.
func anyFilled(object node, except string) bool {
	filled := false
	object.members(func(key, value node) bool {
		filled = value.filled() && !key.is(except)
		return !filled
	})
	return filled
}
