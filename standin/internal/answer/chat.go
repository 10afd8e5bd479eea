package answer

// The shape of chat completions. The order of keys and what is null are those of the recordings.

// created is the time of every answer: the real clock would make two runs of one plan differ.
const created = 1_780_000_000

const fingerprint = "fp_standin"

// finish is the finish_reason. There is none for a pause or a new word, which are passed on.
func (a *Answer) finish() string {
	switch a.Stop {
	case EndTurn, StopSequence:
		return "stop"
	case MaxTokens, ContextWindow:
		return "length"
	case ToolUse:
		return "tool_calls"
	case Refusal:
		return "content_filter"
	}
	return string(a.Stop)
}

// completion appends the whole completion.
func (a *Answer) completion(dst []byte) []byte {
	dst = a.openCompletion(dst, "chat.completion")
	dst = append(dst, `,"choices":[{"index":0,"message":{"role":"assistant","content":`...)
	dst = a.chatText(dst)
	if calls := a.chatCalls(nil, false); len(calls) > 0 {
		dst = append(append(append(dst, `,"tool_calls":[`...), calls...), ']')
	}
	dst = orNull(append(dst, `,"refusal":`...), a.Explanation)
	dst = quote(append(dst, `,"annotations":[]},"logprobs":null,"finish_reason":`...), a.finish())
	dst = a.chatUsage(append(dst, `}],"usage":`...))
	return append(dst, `,"service_tier":"default","system_fingerprint":"`+fingerprint+`"}`...)
}

func (a *Answer) openCompletion(dst []byte, object string) []byte {
	dst = quote(append(dst, `{"id":`...), a.id("chatcmpl-"))
	dst = quote(append(dst, `,"object":`...), object)
	dst = number(dst, `,"created":`, created)
	return quote(append(dst, `,"model":`...), a.Model)
}

// chatText appends the text, and null when there is none.
func (a *Answer) chatText(dst []byte) []byte {
	start := len(dst)
	dst = append(dst, '"')
	for i := range a.Blocks {
		if a.Blocks[i].Kind == Text {
			for _, piece := range a.Blocks[i].Pieces {
				dst = escape(dst, piece)
			}
		}
	}
	if len(dst) == start+1 && !a.emptyText() {
		return append(dst[:start], "null"...)
	}
	return append(dst, '"')
}

// emptyText reports whether the model has spoken and said nothing, which is "" and not null.
func (a *Answer) emptyText() bool { return a.Stop == StopSequence || a.Stop == EndTurn }

// chatCalls appends the calls of tools, or with start what a stream shows of them at first.
func (a *Answer) chatCalls(dst []byte, start bool) []byte {
	index := 0
	for i := range a.Blocks {
		if a.Blocks[i].Kind != ToolCall {
			continue
		}
		if index > 0 {
			dst = append(dst, ',')
		}
		dst = a.Blocks[i].chatCall(dst, index, start)
		index++
	}
	return dst
}

// chatCall appends one call. Only a stream numbers them.
func (b *Block) chatCall(dst []byte, index int, start bool) []byte {
	dst = append(dst, '{')
	pieces := b.Pieces
	if start {
		dst = append(number(dst, `"index":`, index), ',')
		pieces = nil
	}
	dst = quote(append(dst, `"id":`...), b.ID)
	dst = quote(append(dst, `,"type":"function","function":{"name":`...), b.Name)
	dst = quoteAll(append(dst, `,"arguments":`...), pieces)
	return append(dst, `}}`...)
}

func (a *Answer) chatUsage(dst []byte) []byte {
	u := a.Usage
	dst = number(dst, `{"prompt_tokens":`, u.Input+u.CacheRead+u.CacheCreation)
	dst = number(dst, `,"completion_tokens":`, u.Output)
	dst = number(dst, `,"total_tokens":`, u.Input+u.CacheRead+u.CacheCreation+u.Output)
	dst = number(dst, `,"prompt_tokens_details":{"cached_tokens":`, u.CacheRead)
	dst = number(dst, `,"audio_tokens":0},"completion_tokens_details":{"reasoning_tokens":`, u.Thinking)
	return append(dst, `,"audio_tokens":0,"accepted_prediction_tokens":0,"rejected_prediction_tokens":0}}`...)
}

// chatStream is the stream of a completion: all chunks begin with the same bytes, which stay in the buffer.
type chatStream struct {
	*stream
	head int
}

func (s *stream) chat() {
	a := s.answer
	s.buf = a.openCompletion(s.buf[:0], "chat.completion.chunk")
	s.buf = append(s.buf, `,"service_tier":"default","system_fingerprint":"`+fingerprint+`","choices":[`...)
	c := chatStream{s, len(s.buf)}
	if a.hidden() {
		s.runes = 4 * a.Usage.Thinking
	}
	index, begun := 0, false
	for i := range a.Blocks {
		b := &a.Blocks[i]
		switch {
		case s.ended:
			return
		case b.Kind == Text:
			c.begin(&begun, nil, 0)
			c.text(b)
		case b.Kind == ToolCall:
			c.begin(&begun, b, index)
			c.call(b, index)
			index++
		}
	}
	c.begin(&begun, nil, 0)
	if a.Explanation != "" {
		c.open()
		s.buf = quote(append(s.buf, `{"refusal":`...), a.Explanation)
		s.buf = append(s.buf, '}')
		c.close("", len(a.Explanation))
		s.send("", Tail)
	}
	c.open()
	s.buf = append(s.buf, `{}`...)
	c.close(a.finish(), 0)
	s.send("", Tail)
	if a.WantUsage {
		s.buf = a.chatUsage(append(s.buf[:c.head], `],"usage":`...))
		c.pad(0)
		s.send("", Tail)
	}
	s.buf = append(s.buf[:0], "[DONE]"...)
	s.send("", Final)
}

// begin sends the first chunk, which names the role. A call that nothing goes before begins in it, any other in a chunk
// of its own.
func (c chatStream) begin(begun *bool, call *Block, index int) {
	switch {
	case *begun && call == nil:
		return
	case *begun:
		c.open()
		c.buf = append(call.chatCall(append(c.buf, `{"tool_calls":[`...), index, true), `]}`...)
	case call == nil:
		c.open()
		c.buf = append(c.buf, `{"role":"assistant","content":"","refusal":null}`...)
	default:
		c.open()
		c.buf = call.chatCall(append(c.buf, `{"role":"assistant","content":null,"tool_calls":[`...), index, true)
		c.buf = append(c.buf, `],"refusal":null}`...)
	}
	*begun = true
	c.close("", 0)
	c.send("", Preamble)
}

func (c chatStream) text(b *Block) {
	for _, piece := range b.Pieces {
		if c.ended {
			return
		}
		c.open()
		c.buf = append(c.buf, `{"content":`...)
		at := len(c.buf) + 1
		c.buf = append(quote(c.buf, piece), '}')
		c.close("", len(piece))
		c.sendPiece("", piece, at)
	}
}

func (c chatStream) call(b *Block, index int) {
	for _, piece := range b.Pieces {
		if c.ended {
			return
		}
		c.open()
		c.buf = number(c.buf, `{"tool_calls":[{"index":`, index)
		c.buf = append(c.buf, `,"function":{"arguments":`...)
		at := len(c.buf) + 1
		c.buf = append(quote(c.buf, piece), `}}]}`...)
		c.close("", len(piece))
		c.sendPiece("", piece, at)
	}
}

// open begins a chunk up to its delta.
func (c chatStream) open() { c.buf = append(c.buf[:c.head], `{"index":0,"delta":`...) }

// close ends a chunk behind its delta, which brings so many bytes of content.
func (c chatStream) close(reason string, size int) {
	c.buf = orNull(append(c.buf, `,"logprobs":null,"finish_reason":`...), reason)
	c.buf = append(c.buf, `}]`...)
	if c.answer.WantUsage {
		c.buf = append(c.buf, `,"usage":null`...)
	}
	c.pad(size)
}

// pad ends a chunk with the noise that hides its length on the wire.
func (c chatStream) pad(size int) {
	c.buf = append(obfuscation(append(c.buf, ','), size), '}')
}

// noise is what obfuscation is cut from.
const noise = "k3VbQx8ZtL0pWdRy"

// obfuscation appends the member that fills a delta of so many bytes up to a whole number of blocks.
func obfuscation(dst []byte, size int) []byte {
	dst = append(dst, `"obfuscation":"`...)
	return append(append(dst, noise[size%len(noise):]...), '"')
}
