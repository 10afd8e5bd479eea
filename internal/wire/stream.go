package wire

import (
	"bytes"
	"net/http"
	"time"
)

// Progress is what one event means for the stream it belongs to.
type Progress uint8

const (
	// ProgressPreamble is an event that carries nothing a reader would miss: it
	// opens or closes a part of the answer, or is not known. The zero value.
	ProgressPreamble Progress = iota
	// ProgressPing is a keep-alive. It is no sign of progress.
	ProgressPing
	// ProgressContent is a piece of the answer.
	ProgressContent
	// ProgressStop carries the stop reason, and perhaps the last piece of content.
	ProgressStop
	// ProgressEnd is the terminal event of a good stream.
	ProgressEnd
	// ProgressError is an error inside the stream.
	ProgressError
)

var progressNames = [...]string{
	ProgressPreamble: "preamble",
	ProgressPing:     "ping",
	ProgressContent:  "content",
	ProgressStop:     "stop",
	ProgressEnd:      "end",
	ProgressError:    "error",
}

// String returns the progress's lower-case name, such as "content".
func (p Progress) String() string {
	if int(p) < len(progressNames) {
		return progressNames[p]
	}
	return "unknown"
}

// errorData bounds how much of an error event is kept for Reply.
const errorData = 64 << 10

// Stream follows one event stream of either dialect, event by event, and knows
// whether the answer has begun, is whole, or has failed. The zero value is
// ready. It is not safe for concurrent use.
type Stream struct {
	started, ended, failed bool
	// whole is true between a stop reason and any content behind it.
	whole     bool
	anthropic bool
	reason    string
	malformed int

	tokens   Tokens
	hasUsage bool
	// counted is true once the output was counted behind the content.
	counted bool
	// pieces and runes are those of the content.
	pieces, runes int

	// begun and done have one bit for each choice of a chat stream.
	begun, done uint64

	errorName string
	errorData []byte
}

// Event takes the next event of the stream and says what it means. name is the
// event's name, or "" when it has none. data is read before Event returns and
// not kept, save a copy of an error. Events behind the terminal one or behind
// an error change nothing.
//
// An event that cannot be read is counted and otherwise passed over, so that
// one bad line costs nothing but itself; only a name that says "error" or ends
// the stream counts without its data.
func (s *Stream) Event(name string, data []byte) Progress {
	if s.ended || s.failed {
		return ProgressPreamble
	}
	data = bytes.TrimSpace(data)
	if string(data) == "[DONE]" {
		return s.doneMark()
	}
	if !valid(data) {
		return s.unreadable(name, data)
	}
	if s.anthropic && s.started && !s.whole && (name == "" || name == "content_block_delta") {
		if text := plainDelta(data); text != nil {
			s.pieces++
			s.runes += runesOf(text)
			return ProgressContent
		}
	}
	event := node(data)
	kind := kindOf(name, event.get("type"))
	if kind >= messageStart && kind <= messageStop {
		s.anthropic = true
		return s.message(kind, event)
	}
	switch kind {
	case ping:
		return ProgressPing
	case failure:
		return s.fail(name, data)
	case responseEnd:
		return s.responseEnd(event.get("response"))
	}
	if isException(name) || errorInside(event) {
		return s.fail(name, data)
	}
	if choices := event.get("choices"); choices.isArray() {
		return s.chunk(choices, event.get("usage"))
	}
	if s.response(kind, event) {
		return s.content()
	}
	return ProgressPreamble
}

// plainDelta knows the event of which a stream of the Messages API has the most,
// written as that API writes it, with content in it, and returns what follows the
// quote before that. It says nothing of others.
func plainDelta(data []byte) []byte {
	const head = `{"type":"content_block_delta","index":`
	if len(data) < len(head) || string(data[:len(head)]) != head {
		return nil
	}
	i := len(head)
	for i < len(data) && data[i] >= '0' && data[i] <= '9' {
		i++
	}
	for _, text := range [...]string{`,"delta":{"type":"text_delta","text":"`, `,"delta":{"type":"input_json_delta","partial_json":"`, `,"delta":{"type":"thinking_delta","thinking":"`} {
		if rest := data[i:]; len(rest) > len(text) && string(rest[:len(text)]) == text && rest[len(text)] != '"' {
			return rest[len(text):]
		}
	}
	return nil
}

// doneMark takes OpenAI's "[DONE]". Proxies append it to Anthropic streams
// too, where it ends nothing.
func (s *Stream) doneMark() Progress {
	if s.anthropic {
		return ProgressPreamble
	}
	s.ended = true
	return ProgressEnd
}

func (s *Stream) unreadable(name string, data []byte) Progress {
	if len(data) > 0 {
		s.malformed++
	}
	kind := kinds[name]
	switch {
	case kind == failure || isException(name):
		return s.fail(name, data)
	case kind == messageStop:
		s.ended = true
		return ProgressEnd
	case kind == ping:
		return ProgressPing
	default:
		return ProgressPreamble
	}
}

// message takes an event of the Messages API.
func (s *Stream) message(kind kind, event node) Progress {
	switch kind {
	case messageStart:
		s.usage(event.get("message", "usage"))
	case blockStart:
		if block := event.get("content_block"); blockHolds(block) {
			s.produce(block, "text", "thinking", "name", "input", "data")
			return s.content()
		}
	case blockDelta:
		if delta := event.get("delta"); anyFilled(delta, "type") {
			s.produce(delta, "text", "partial_json", "thinking", "content")
			return s.content()
		}
	case messageDelta:
		usage := event.get("usage")
		s.usage(usage)
		s.counted = s.counted || hasOutput(usage)
		return s.stop(event.get("delta", "stop_reason"))
	case messageStop:
		s.ended = true
		return ProgressEnd
	}
	return ProgressPreamble
}

// chunk takes a chat or text completion chunk. A stream of several choices is
// whole when each of them has stopped.
func (s *Stream) chunk(choices, usage node) Progress {
	s.usage(usage)
	s.counted = s.counted || hasOutput(usage)
	progress := ProgressPreamble
	choices.elements(func(choice node) bool {
		index, _ := choice.get("index").count()
		bit := uint64(1) << min(index, 63)
		s.begun |= bit
		if delta := choice.get("delta"); anyFilled(delta, "role") || choice.get("text").filled() {
			s.done &^= bit
			s.produce(delta, "content", "reasoning_content", "reasoning", "refusal", "tool_calls", "function_call")
			s.runes += choice.get("text").runes()
			progress = max(progress, s.content())
		}
		if reason := choice.get("finish_reason"); reason.filled() {
			s.done |= bit
			progress = s.stop(reason)
		}
		return true
	})
	s.whole = s.reason != "" && s.begun == s.done
	return progress
}

// responseEnd takes response.completed and response.incomplete.
func (s *Stream) responseEnd(response node) Progress {
	usage := response.get("usage")
	s.usage(usage)
	s.counted = s.counted || hasOutput(usage)
	s.reason = firstText(response.get("incomplete_details", "reason").text(), response.get("status").text(), "completed")
	s.ended = true
	return ProgressEnd
}

// response reports whether an event of the Responses API carries content.
func (s *Stream) response(kind kind, event node) bool {
	switch kind {
	case responseDelta:
		delta := event.get("delta")
		if delta.filled() {
			s.produce(event, "delta")
		}
		return delta.filled()
	case responseDone: // as a rule the deltas again
		for _, name := range [...]string{"text", "arguments", "refusal", "input"} {
			s.runes = max(s.runes, event.get(name).runes())
		}
		return event.get("text").filled() || event.get("arguments").filled() || event.get("refusal").filled() || event.get("input").filled()
	case responsePart:
		return event.get("part", "text").filled()
	case responseImage:
		return event.get("partial_image_b64").filled()
	case responseItem:
		return itemHolds(event.get("item"))
	default:
		return false
	}
}

// itemHolds reports whether an output item carries something by itself: a
// message through its parts, a call through its name.
func itemHolds(item node) bool {
	switch typ := item.get("type"); {
	case typ.is("message"):
		held := false
		item.get("content").elements(func(part node) bool {
			held = part.get("text").filled() || part.get("refusal").filled()
			return !held
		})
		return held
	case typ.is("reasoning"):
		return item.get("summary").filled() || item.get("content").filled() || item.get("encrypted_content").filled()
	default:
		return typ.filled()
	}
}

func (s *Stream) content() Progress {
	s.started, s.whole = true, false
	return ProgressContent
}

func (s *Stream) stop(reason node) Progress {
	if !reason.filled() {
		return ProgressPreamble
	}
	s.reason, s.whole = reason.text(), true
	return ProgressStop
}

func (s *Stream) usage(usage node) {
	if s.tokens.replace(usage) {
		s.hasUsage = true
	}
}

func (s *Stream) fail(name string, data []byte) Progress {
	s.failed = true
	s.errorName, s.errorData = name, bytes.Clone(data[:min(len(data), errorData)])
	return ProgressError
}

// Started reports whether content has been seen.
func (s *Stream) Started() bool { return s.started }

// Complete reports whether the answer is whole: the terminal event was seen, or
// everything up to the stop reason was and no error behind it. In the second
// case the terminal event may have been lost, whole or in part; it carries
// nothing. That holds for both dialects: a chat stream that ends without
// "[DONE]" is complete once every choice has its finish_reason.
func (s *Stream) Complete() bool { return s.ended || s.whole && !s.failed }

// Empty reports whether a complete stream brought no content and gave no reason
// for that. It is what FaultEmpty is for a JSON answer.
func (s *Stream) Empty() bool { return s.Complete() && !s.started && unexplained(s.reason) }

// StopReason returns why the model stopped, in the dialect's own word, known
// here or not; "" when it has not said so. The Responses API has no such word:
// there it is the reason of an incomplete response, else its status.
func (s *Stream) StopReason() string { return s.reason }

// Malformed returns how many events could not be read.
func (s *Stream) Malformed() int { return s.malformed }

// Tokens returns the usage seen so far, and false when none was. The counts in
// a stream are cumulative: a later one replaces an earlier one.
func (s *Stream) Tokens() (Tokens, bool) { return s.tokens, s.hasUsage }

// Reply returns the facts of the error after ProgressError, and a zero Reply
// before one. h holds the headers that opened the stream and may be nil.
func (s *Stream) Reply(h http.Header, now time.Time) Reply {
	if !s.failed {
		return Reply{}
	}
	return ReadEvent(s.errorName, s.errorData, h, now)
}
