package saved

import (
	"bytes"
	"slices"
	"strings"

	"holdfast/internal/sse"
)

// judgeMessage lets a message pass that the model ended by itself and that says or calls something.
func judgeMessage(message object) error {
	switch reason := message.text("stop_reason"); reason {
	case "end_turn", "tool_use", "stop_sequence":
	default:
		return notGood("stop_reason is %q", reason)
	}
	for _, content := range message.list("content") {
		block, _ := readObject(content)
		switch block.text("type") {
		case "text":
			if filled(block.at("text")) {
				return nil
			}
		case "", "thinking", "redacted_thinking", "fallback":
		default:
			return nil
		}
	}
	return notGood("it says nothing")
}

// messageCollector puts a message together from its events.
type messageCollector struct {
	message object
	blocks  map[int]*openBlock
}

// openBlock is a content block that is being put together.
type openBlock struct {
	block grown
	input raw // what a tool is called with, as one string
}

func collectMessage() collector { return &messageCollector{blocks: map[int]*openBlock{}} }

func (c *messageCollector) event(data object) error {
	switch data.text("type") {
	case "message_start":
		c.message = data.object("message")
	case "content_block_start":
		index, known := numberOf(data.at("index"))
		if block := data.at("content_block"); known && startsWith(block, '{') && c.blocks[index] == nil {
			c.blocks[index] = &openBlock{block: grown{text: block}}
			return nil
		}
		return notGood("a block begins that cannot be")
	case "content_block_delta":
		index, _ := numberOf(data.at("index"))
		block := c.blocks[index]
		if block == nil {
			return notGood("a block goes on that has not begun")
		}
		return block.delta(data.object("delta"))
	case "message_delta":
		c.delta(data)
	}
	return nil
}

// delta adds a piece to a block. A kind of piece that is not known here is added by the form of what it holds.
func (b *openBlock) delta(delta object) error {
	switch delta.text("type") {
	case "input_json_delta":
		if isString(delta.at("partial_json")) {
			b.input = joined(b.input, delta.at("partial_json"))
		}
		return nil
	case "citations_delta":
		return b.block.add(object{{"citations", appendList(nil, []raw{delta.at("citation")})}})
	}
	return b.block.add(delta.without("type"))
}

// close returns the block once all its pieces are there.
func (b *openBlock) close() (raw, error) {
	if !filled(b.input) {
		return b.block.append(nil), nil
	}
	input, err := compact([]byte(stringOf(b.input)))
	if err != nil {
		return nil, notGood("a tool's input is not JSON")
	}
	block := b.block.object()
	block.set("input", input)
	return block.raw(), nil
}

// delta takes what is known at the end. Its counts are of the whole message; what it leaves out stays as it was.
func (c *messageCollector) delta(data object) {
	for _, m := range data.object("delta") {
		c.message.set(m.name, m.value)
	}
	usage := c.message.object("usage")
	for _, m := range data.object("usage") {
		if !isNull(m.value) {
			usage.set(m.name, m.value)
		}
	}
	c.message.set("usage", usage.raw())
	for _, m := range data.without("type", "delta", "usage") {
		c.message.set(m.name, m.value)
	}
}

func (c *messageCollector) answer() (object, error) {
	content := make([]raw, 0, len(c.blocks))
	for index := range len(c.blocks) {
		block := c.blocks[index]
		if block == nil {
			return nil, notGood("a block is missing")
		}
		text, err := block.close()
		if err != nil {
			return nil, err
		}
		content = append(content, text)
	}
	c.message.set("content", appendList(nil, content))
	return c.message, nil
}

// eventWriter writes an event stream whose events are named after their types.
type eventWriter struct{ out []byte }

func (w *eventWriter) write(pairs ...any) {
	data := build(pairs...)
	w.out = sse.Append(w.out, data.text("type"), data.raw())
}

// lateMembers are null until message_delta brings them.
var lateMembers = []string{"stop_reason", "stop_sequence", "stop_details", "container"}

// earlyUsage are the parts of usage that message_start alone has.
var earlyUsage = []string{"cache_creation", "service_tier", "inference_geo", "speed"}

// messageEvents makes the events of a message, in the order and with the members that the API gives them.
func messageEvents(message, _ object) []byte {
	start, late := message.clone(), object{}
	start.set("content", emptyList)
	for _, name := range lateMembers {
		if value := message.at(name); value != nil {
			start.swap(name, null)
			if name != "container" || !isNull(value) {
				late.set(name, value)
			}
		}
	}
	usage := message.object("usage")
	first := usage.clone()
	first.swap("output_tokens", raw("0"))
	if message.at("usage") != nil {
		start.set("usage", first.raw())
	}
	w := &eventWriter{}
	w.write("type", "message_start", "message", start.without("context_management"))
	for i, content := range message.list("content") {
		block, _ := readObject(content)
		w.block(i, block)
	}
	end := object{}
	if managed := message.at("context_management"); managed != nil {
		end.set("context_management", managed)
	}
	last := append(build("type", "message_delta", "delta", late, "usage", usage.without(earlyUsage...)), end...)
	w.out = sse.Append(w.out, "message_delta", last.raw())
	w.write("type", "message_stop")
	return w.out
}

// block writes the events of one content block: what it begins with, and the pieces of what is streamed.
func (w *eventWriter) block(index int, block object) {
	var (
		begin  = block.clone()
		deltas []object
		stream = func(name, delta string) {
			if isString(block.at(name)) {
				begin.set(name, emptyText)
				for _, piece := range pieces(block.at(name)) {
					deltas = append(deltas, build("type", delta, name, piece))
				}
			}
		}
	)
	switch typ := block.text("type"); {
	case typ == "text":
		if citations := block.list("citations"); len(citations) > 0 {
			begin.set("citations", emptyList)
			for _, citation := range citations {
				deltas = append(deltas, build("type", "citations_delta", "citation", citation))
			}
		}
		stream("text", "text_delta")
	case typ == "thinking":
		stream("thinking", "thinking_delta")
		if filled(block.at("signature")) {
			begin.set("signature", emptyText)
			deltas = append(deltas, build("type", "signature_delta", "signature", block.at("signature")))
		}
	case strings.HasSuffix(typ, "tool_use") && filled(block.at("input")):
		begin.set("input", emptyObject)
		deltas = append(deltas, build("type", "input_json_delta", "partial_json", emptyText))
		for _, piece := range pieces(appendQuoted(nil, string(block.at("input")))) {
			deltas = append(deltas, build("type", "input_json_delta", "partial_json", piece))
		}
	}
	w.write("type", "content_block_start", "index", index, "content_block", begin)
	for _, delta := range deltas {
		w.write("type", "content_block_delta", "index", index, "delta", delta)
	}
	w.write("type", "content_block_stop", "index", index)
}

func markMessage(message object, line string) object {
	content := slices.Clone(message.list("content"))
	for i := range content {
		block, _ := readObject(content[i])
		if block.text("type") != "text" || !filled(block.at("text")) {
			continue
		}
		block.set("text", joined(appendQuoted(nil, line), block.at("text")))
		content[i] = block.raw()
		message = message.clone()
		message.set("content", appendList(nil, content))
		break
	}
	return message
}

func textOfMessage(message object) string {
	var b bytes.Buffer
	for _, content := range message.list("content") {
		block, _ := readObject(content)
		b.WriteString(block.text("text"))
	}
	return b.String()
}
