package answer

import (
	"bytes"
	"encoding/json"

	"holdfast/standin/internal/request"
)

// The shape of the Messages API. The order of keys and what is null are those of the recordings.

// message appends the whole message.
func (a *Answer) message(dst []byte) []byte {
	dst = a.openMessage(dst, a.Model)
	for i := range a.Blocks {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = a.Blocks[i].message(dst, false)
	}
	dst = append(dst, `],"stop_reason":`...)
	dst = append(a.stopReason(dst), `,"usage":`...)
	dst = a.usageHead(dst)
	dst = number(dst, `,"output_tokens":`, a.Usage.Output)
	dst = number(dst, `,"output_tokens_details":{"thinking_tokens":`, a.Usage.Thinking)
	return append(a.served(a.iterations(append(dst, '}'))), '}')
}

// served appends how the answer was served, which ends its usage.
func (a *Answer) served(dst []byte) []byte {
	tier := "standard"
	if a.Batch {
		tier = "batch"
	}
	return append(append(append(dst, `,"service_tier":"`...), tier...), `","inference_geo":"global"}`...)
}

// iterations appends what each model was billed for, of those that the request names. Those that refused said nothing.
func (a *Answer) iterations(dst []byte) []byte {
	if len(a.Hops) == 0 {
		return dst
	}
	dst = append(dst, `,"iterations":[`...)
	for i, model := range a.Hops {
		kind, output := `{"type":"message","model":`, 0
		if i == len(a.Hops)-1 {
			output = a.Usage.Output
			if i > 0 && a.Stop != Refusal {
				kind = `{"type":"fallback_message","model":`
			}
		}
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = quote(append(dst, kind...), model)
		dst = number(dst, `,"input_tokens":`, a.Usage.Input)
		dst = number(dst, `,"output_tokens":`, output)
		dst = number(dst, `,"cache_creation_input_tokens":`, a.Usage.CacheCreation)
		dst = append(number(dst, `,"cache_read_input_tokens":`, a.Usage.CacheRead), '}')
	}
	return append(dst, ']')
}

// openMessage appends a message up to its content.
func (a *Answer) openMessage(dst []byte, model string) []byte {
	dst = quote(append(dst, `{"model":`...), model)
	dst = quote(append(dst, `,"id":`...), a.id("msg_"))
	return append(dst, `,"type":"message","role":"assistant","content":[`...)
}

// usageHead appends an open usage object with the counts of a whole message up to the output.
func (a *Answer) usageHead(dst []byte) []byte {
	dst = a.usageInput(dst)
	dst = number(dst, `,"cache_creation":{"ephemeral_5m_input_tokens":`, a.Usage.CacheCreation)
	return append(dst, `,"ephemeral_1h_input_tokens":0}`...)
}

func (a *Answer) usageInput(dst []byte) []byte {
	dst = number(dst, `{"input_tokens":`, a.Usage.Input)
	dst = number(dst, `,"cache_creation_input_tokens":`, a.Usage.CacheCreation)
	return number(dst, `,"cache_read_input_tokens":`, a.Usage.CacheRead)
}

// stopReason appends the reason with its sequence and details.
func (a *Answer) stopReason(dst []byte) []byte {
	dst = quote(dst, string(a.Stop))
	dst = orNull(append(dst, `,"stop_sequence":`...), a.Sequence)
	if a.Stop != Refusal {
		return append(dst, `,"stop_details":null`...)
	}
	dst = orNull(append(dst, `,"stop_details":{"type":"refusal","category":`...), a.Category)
	dst = orNull(append(dst, `,"explanation":`...), a.Explanation)
	if a.Recommended != "" || len(a.Hops) > 0 { // the beta's own field
		dst = orNull(append(dst, `,"recommended_model":`...), a.Recommended)
	}
	return append(dst, '}')
}

// message appends the block, or with start what a stream shows of it at first.
func (b *Block) message(dst []byte, start bool) []byte {
	pieces, signed := b.Pieces, b.Signature
	if start {
		pieces, signed = nil, ""
	}
	switch b.Kind {
	case Thinking:
		dst = quoteAll(append(dst, `{"type":"thinking","thinking":`...), pieces)
		dst = quote(append(dst, `,"signature":`...), signed)
		return append(dst, '}')
	case ToolCall, ServerToolUse:
		dst = quote(append(dst, `{"type":`...), string(b.Kind))
		dst = quote(append(dst, `,"id":`...), b.ID)
		dst = quote(append(dst, `,"name":`...), b.Name)
		dst = append(dst, `,"input":`...)
		if start {
			dst = append(dst, `{}`...)
		} else {
			dst = b.input(dst)
		}
		return append(dst, `,"caller":{"type":"direct"}}`...)
	case Fallback:
		dst = quote(append(dst, `{"type":"fallback","from":{"model":`...), b.ID)
		dst = quote(append(dst, `},"to":{"model":`...), b.Name)
		return append(orNull(append(dst, `},"trigger":{"type":"refusal","category":`...), b.Category), "}}"...)
	default:
		dst = quoteAll(append(dst, `{"type":"text","text":`...), pieces)
		return append(dst, '}')
	}
}

// input appends the input of a tool as an object. Of an input that was cut off those members are left that had come
// whole: a body cannot hold half an object, and the API keeps what it could read.
func (b *Block) input(dst []byte) []byte {
	text := b.joined()
	if !b.Cut {
		return append(dst, bytes.TrimSpace([]byte(text))...)
	}
	decoder := json.NewDecoder(bytes.NewReader([]byte(text)))
	if _, err := decoder.Token(); err != nil {
		return append(dst, `{}`...)
	}
	dst = append(dst, '{')
	for first := true; decoder.More(); first = false {
		name, err := decoder.Token()
		if err != nil {
			break
		}
		var value json.RawMessage
		// A number at the very end may lack digits.
		if err := decoder.Decode(&value); err != nil || decoder.InputOffset() == int64(len(text)) {
			break
		}
		if !first {
			dst = append(dst, ',')
		}
		key, _ := name.(string)
		dst = append(append(quote(dst, key), ':'), value...)
	}
	return append(dst, '}')
}

func (s *stream) messages() {
	a := s.answer
	asked := a.Model
	if len(a.Hops) > 0 { // a stream names the model that was asked, whoever goes on
		asked = a.Hops[0]
	}
	s.buf = a.openMessage(append(s.buf[:0], `{"type":"message_start","message":`...), asked)
	s.buf = append(s.buf, `],"stop_reason":null,"stop_sequence":null,"stop_details":null,"usage":`...)
	s.buf = number(a.usageHead(s.buf), `,"output_tokens":`, min(1, a.Usage.Output))
	s.buf = append(a.served(s.buf), "}}"...)
	s.send("message_start", Preamble)
	if a.hidden() {
		s.runes = 4 * a.Usage.Thinking
	}
	for i := range a.Blocks {
		if s.ended {
			return
		}
		s.messageBlock(i)
	}
	s.buf = a.stopReason(append(s.buf[:0], `{"type":"message_delta","delta":{"stop_reason":`...))
	// This usage is the sum for the whole message, not what came since message_start.
	s.buf = a.usageInput(append(s.buf, `},"usage":`...))
	s.buf = number(s.buf, `,"output_tokens":`, a.Usage.Output)
	s.buf = number(s.buf, `,"output_tokens_details":{"thinking_tokens":`, a.Usage.Thinking)
	s.buf = append(a.iterations(append(s.buf, '}')), `}}`...)
	s.send("message_delta", Tail)
	s.buf = append(s.buf[:0], `{"type":"message_stop"}`...)
	s.send("message_stop", Final)
}

// messageBlock sends the events of block i. The ping stands where the real API has its first.
func (s *stream) messageBlock(i int) {
	b := &s.answer.Blocks[i]
	s.buf = number(s.buf[:0], `{"type":"content_block_start","index":`, i)
	s.buf = append(b.message(append(s.buf, `,"content_block":`...), true), '}')
	s.send("content_block_start", Preamble)
	if i == 0 {
		s.buf = append(s.buf[:0], `{"type": "ping"}`...)
		s.send("ping", Preamble)
	}
	kind := `"text_delta","text":`
	switch b.Kind {
	case Thinking:
		kind = `"thinking_delta","thinking":`
	case ToolCall, ServerToolUse:
		kind = `"input_json_delta","partial_json":`
		s.buf = append(s.openDelta(i, kind), `""}}`...)
		s.send("content_block_delta", Preamble)
	}
	for _, piece := range b.Pieces {
		if s.ended {
			return
		}
		s.buf = s.openDelta(i, kind)
		at := len(s.buf) + 1
		s.buf = append(quote(s.buf, piece), `}}`...)
		s.sendPiece("content_block_delta", piece, at)
	}
	if b.Signature != "" {
		s.buf = append(quote(s.openDelta(i, `"signature_delta","signature":`), b.Signature), `}}`...)
		s.send("content_block_delta", Preamble)
	}
	s.buf = append(number(s.buf[:0], `{"type":"content_block_stop","index":`, i), '}')
	s.send("content_block_stop", s.after(i))
}

func (s *stream) openDelta(i int, kind string) []byte {
	dst := number(s.buf[:0], `{"type":"content_block_delta","index":`, i)
	return append(append(dst, `,"delta":{"type":`...), kind...)
}

// CountTokens returns the body of /v1/messages/count_tokens.
func CountTokens(q request.Request) []byte {
	return append(number(nil, `{"input_tokens":`, input(q)), '}')
}
