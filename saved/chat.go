package saved

import (
	"slices"
	"strings"
	"unicode/utf8"

	"holdfast/internal/sse"
)

// judgeChat lets a completion pass every choice of which the model ended by itself and that says or calls something.
func judgeChat(completion object) error {
	choices := completion.list("choices")
	for _, text := range choices {
		choice, _ := readObject(text)
		message := choice.object("message")
		switch reason := choice.text("finish_reason"); {
		case !slices.Contains([]string{"stop", "tool_calls", "function_call"}, reason):
			return notGood("finish_reason is %q", reason)
		case filled(message.at("refusal")):
			return notGood("the model refuses")
		case !slices.ContainsFunc([]string{"content", "tool_calls", "function_call", "audio"}, func(name string) bool { return filled(message.at(name)) }):
			return notGood("it says nothing")
		}
	}
	if len(choices) == 0 {
		return notGood("it has no choices")
	}
	return nil
}

// chatCollector puts a completion together from its chunks.
type chatCollector struct {
	head    object
	choices map[int]*openChoice
}

// openChoice is a choice that is being put together.
type openChoice struct {
	message grown
	rest    grown // finish_reason, logprobs and whatever else stands beside the message
}

func collectChat() collector { return &chatCollector{choices: map[int]*openChoice{}} }

func (c *chatCollector) event(chunk object) error {
	for _, m := range chunk.without("choices", "object", "obfuscation") {
		if old := c.head.at(m.name); isNull(old) || !isNull(m.value) {
			if len(c.head) >= maxMembers {
				return errTooMany
			}
			c.head.set(m.name, m.value)
		}
	}
	for _, text := range chunk.list("choices") {
		choice, fits := readObject(text)
		index, known := numberOf(choice.at("index"))
		if !fits || !known {
			return notGood("a choice is none")
		}
		open := c.choices[index]
		if open == nil {
			open = &openChoice{message: grown{text: emptyObject}, rest: grown{text: emptyObject}}
			c.choices[index] = open
		}
		if err := open.message.add(choice.object("delta")); err != nil {
			return err
		}
		if err := open.rest.add(choice.without("index", "delta", "finish_reason")); err != nil {
			return err
		}
		if reason := choice.at("finish_reason"); !isNull(reason) {
			open.finish(reason)
		}
	}
	return nil
}

// finish sets the reason, which some providers send more than once.
func (o *openChoice) finish(reason raw) {
	if old := o.rest.at("finish_reason"); old != nil {
		*old = grown{text: reason}
		return
	}
	o.rest.members = append(o.rest.members, grownMember{"finish_reason", &grown{text: reason}})
}

func (c *chatCollector) answer() (object, error) {
	var choices []raw
	for index := range len(c.choices) {
		open := c.choices[index]
		if open == nil {
			return nil, notGood("a choice is missing")
		}
		message := open.message.object()
		for _, name := range []string{"content", "refusal"} {
			if message.at(name) == nil {
				message.set(name, null)
			}
		}
		choice := append(build("index", index, "message", message), open.rest.object()...)
		choices = append(choices, choice.raw())
	}
	completion := build("id", c.head.at("id"), "object", "chat.completion")
	completion = append(completion, c.head.without("id", "usage")...)
	completion.set("choices", appendList(nil, choices))
	if usage := c.head.at("usage"); !isNull(usage) {
		completion.set("usage", usage)
	}
	return completion, nil
}

// chatWriter writes the chunks of a completion.
type chatWriter struct {
	head  object
	usage bool // every chunk has a usage, null but for the last
	out   []byte
}

func (w *chatWriter) write(choices []raw, usage raw) {
	chunk := append(w.head.clone(), member{"choices", appendList(nil, choices)})
	if w.usage {
		chunk = append(chunk, member{"usage", usage})
	}
	w.out = sse.Append(w.out, "", chunk.raw())
}

// delta writes a chunk of one choice.
func (w *chatWriter) delta(choice, delta object, reason raw) {
	choice = choice.clone()
	choice.swap("delta", delta.raw())
	choice.swap("finish_reason", reason)
	w.write([]raw{choice.raw()}, null)
}

// chatEvents makes the chunks of a completion. The counts come in a chunk of their own, to whom asks for them.
func chatEvents(completion, body object) []byte {
	head := build("id", completion.at("id"), "object", "chat.completion.chunk")
	head = append(head, completion.without("id", "object", "choices", "usage")...)
	asked := startsWith(body.object("stream_options").at("include_usage"), 't')
	usage := completion.at("usage")
	w := &chatWriter{head: head, usage: asked && !isNull(usage)}
	for i, text := range completion.list("choices") {
		choice, _ := readObject(text)
		w.choice(i, choice)
	}
	if w.usage {
		w.write(nil, usage)
	}
	return sse.Append(w.out, "", []byte("[DONE]"))
}

// choice writes the chunks of one choice: who speaks, the pieces of what is said and called, and why it ended. Its log
// probabilities, which are one list, come with the first chunk.
func (w *chatWriter) choice(index int, choice object) {
	var (
		message = choice.object("message")
		beside  = append(build("index", index, "delta", emptyObject), choice.without("index", "message", "finish_reason")...)
		begin   = object{}
		deltas  []object
	)
	beside = append(beside, member{"finish_reason", null})
	for _, m := range message {
		switch {
		case m.name == "role", !filled(m.value):
			begin.set(m.name, m.value)
		case isString(m.value):
			begin.set(m.name, emptyText)
			for _, piece := range pieces(m.value) {
				deltas = append(deltas, object{{m.name, piece}})
			}
		case m.name == "tool_calls":
			for i, call := range message.list("tool_calls") {
				deltas = append(deltas, callDeltas(i, call)...)
			}
		case m.name == "function_call":
			for _, delta := range streamed(message.object(m.name), "arguments") {
				deltas = append(deltas, object{{m.name, delta.raw()}})
			}
		default:
			deltas = append(deltas, object{m})
		}
	}
	if len(deltas) > 0 && deltas[0].at("tool_calls") != nil { // a call without a word before it begins in the first chunk
		begin, deltas = append(begin, deltas[0]...), deltas[1:]
	}
	w.delta(beside, begin, null)
	beside.swap("logprobs", null)
	for _, delta := range deltas {
		w.delta(beside, delta, null)
	}
	w.delta(beside, object{}, choice.at("finish_reason"))
}

// callDeltas are the pieces of a tool call: what is called, then what it is called with.
func callDeltas(index int, text raw) []object {
	call, _ := readObject(text)
	var deltas []object
	add := func(delta object) {
		delta = append(build("index", index), delta...)
		deltas = append(deltas, object{{"tool_calls", appendList(nil, []raw{delta.raw()})}})
	}
	for _, way := range []struct{ name, with string }{{"function", "arguments"}, {"custom", "input"}} {
		called := call.object(way.name)
		if called == nil {
			continue
		}
		parts := streamed(called, way.with)
		begin := call.without("index")
		begin.swap(way.name, parts[0].raw())
		add(begin)
		for _, part := range parts[1:] {
			add(object{{way.name, part.raw()}})
		}
		return deltas
	}
	add(call.without("index"))
	return deltas
}

// streamed splits an object into itself with one text empty, and the pieces of that text.
func streamed(o object, name string) []object {
	text := o.at(name)
	if !isString(text) {
		return []object{o}
	}
	begin := o.clone()
	begin.swap(name, emptyText)
	parts := []object{begin}
	for _, piece := range pieces(text) {
		parts = append(parts, object{{name, piece}})
	}
	return parts
}

func markChat(completion object, line string) object {
	choices := slices.Clone(completion.list("choices"))
	for i := range choices {
		choice, _ := readObject(choices[i])
		message := choice.object("message")
		if !filled(message.at("content")) || !isString(message.at("content")) {
			continue
		}
		message.swap("content", joined(appendQuoted(nil, line), message.at("content")))
		message.swap("annotations", shifted(message.at("annotations"), utf8.RuneCountInString(line)))
		choice.swap("message", message.raw())
		choices[i] = choice.raw()
	}
	completion = completion.clone()
	completion.swap("choices", appendList(nil, choices))
	return completion
}

// shifted moves the places in a text that annotations point at.
func shifted(annotations raw, by int) raw {
	list, isList := readArray(annotations)
	if !isList {
		return annotations
	}
	list = slices.Clone(list)
	for i := range list {
		note, _ := readObject(list[i])
		move(note, by)
		if inner := note.object("url_citation"); inner != nil {
			move(inner, by)
			note.swap("url_citation", inner.raw())
		}
		if note != nil {
			list[i] = note.raw()
		}
	}
	return appendList(nil, list)
}

func move(note object, by int) {
	for _, name := range []string{"start_index", "end_index"} {
		if at, known := numberOf(note.at(name)); known {
			note.swap(name, encode(at+by))
		}
	}
}

func textOfChat(completion object) string {
	var texts []string
	for _, text := range completion.list("choices") {
		choice, _ := readObject(text)
		texts = append(texts, choice.object("message").text("content"))
	}
	return strings.Join(texts, "\n")
}
