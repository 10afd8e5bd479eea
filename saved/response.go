package saved

import (
	"slices"
	"strings"
	"unicode/utf8"

	"holdfast/internal/sse"
)

// judgeResponse lets a response pass that is completed and that says or calls something besides its reasoning.
func judgeResponse(response object) error {
	if status := response.text("status"); status != "completed" {
		return notGood("status is %q", status)
	}
	if !isNull(response.at("error")) || !isNull(response.at("incomplete_details")) {
		return notGood("it failed, or is incomplete")
	}
	says := false
	for _, text := range response.list("output") {
		item, _ := readObject(text)
		switch status := item.text("status"); status {
		case "incomplete", "failed", "in_progress":
			return notGood("an item is %s", status)
		}
		switch item.text("type") {
		case "", "reasoning":
		case "message":
			for _, text := range item.list("content") {
				part, _ := readObject(text)
				if part.text("type") == "refusal" {
					return notGood("the model refuses")
				}
				says = says || filled(part.at("text"))
			}
		default:
			says = true
		}
	}
	if !says {
		return notGood("it says nothing")
	}
	return nil
}

// responseCollector waits for the last event, which holds the whole response. Where its output is left out, it is that of
// the items before.
type responseCollector struct {
	response object
	items    []raw
}

func collectResponse() collector { return &responseCollector{} }

func (c *responseCollector) event(data object) error {
	switch data.text("type") {
	case "response.output_item.done":
		if index, known := numberOf(data.at("output_index")); !known || index != len(c.items) {
			return notGood("an item is missing")
		}
		c.items = append(c.items, data.at("item"))
	case "response.completed", "response.incomplete":
		c.response = data.object("response")
	}
	return nil
}

func (c *responseCollector) answer() (object, error) {
	if !filled(c.response.at("output")) && len(c.items) > 0 {
		c.response.set("output", appendList(nil, c.items))
	}
	return c.response, nil
}

// responseWriter writes the events of a response.
type responseWriter struct {
	out    []byte
	number int
}

func (w *responseWriter) write(typ string, members ...any) {
	data := append(build("type", typ), build(members...)...)
	data = append(data, build("sequence_number", w.number)...)
	w.number++
	w.out = sse.Append(w.out, typ, data.raw())
}

// responseEvents makes the events of a response, in the order and with the members that the API gives them.
func responseEvents(response, _ object) []byte {
	begun := response.clone()
	begun.swap("status", raw(`"in_progress"`))
	begun.swap("output", emptyList)
	begun.swap("completed_at", null)
	begun.swap("usage", null)
	w := &responseWriter{}
	w.write("response.created", "response", begun)
	w.write("response.in_progress", "response", begun)
	for i, text := range response.list("output") {
		item, _ := readObject(text)
		w.item(i, item)
	}
	w.write("response.completed", "response", response)
	return w.out
}

// streamedItems are the items one text of which comes in pieces: the name of that text, and that of the events.
var streamedItems = map[string]struct{ text, event string }{
	"function_call":         {"arguments", "response.function_call_arguments"},
	"mcp_call":              {"arguments", "response.mcp_call_arguments"},
	"custom_tool_call":      {"input", "response.custom_tool_call_input"},
	"code_interpreter_call": {"code", "response.code_interpreter_call_code"},
}

// item writes the events of one item of the output.
func (w *responseWriter) item(index int, item object) {
	begin := item.clone()
	begin.swap("status", raw(`"in_progress"`))
	var (
		typ      = item.text("type")
		streamed = streamedItems[typ]
		text     = item.at(streamed.text)
	)
	switch {
	case typ == "message":
		begin.swap("content", emptyList)
	case typ == "reasoning":
		begin.swap("summary", emptyList)
		begin.swap("content", emptyList)
	case isString(text):
		begin.swap(streamed.text, emptyText)
	}
	w.write("response.output_item.added", "item", begin, "output_index", index)
	at := place{item.at("id"), index}
	switch {
	case typ == "message":
		w.parts(at, item.list("content"))
	case typ == "reasoning":
		w.summary(at, item.list("summary"))
		w.parts(at, item.list("content"))
	case isString(text):
		for _, piece := range pieces(text) {
			w.write(streamed.event+".delta", "delta", piece, "item_id", at.id, "output_index", index)
		}
		w.write(streamed.event+".done", streamed.text, text, "item_id", at.id, "output_index", index)
	}
	w.write("response.output_item.done", "item", item, "output_index", index)
}

// place says which item an event belongs to.
type place struct {
	id    raw
	index int
}

// parts writes the parts of a message's or a reasoning's content.
func (w *responseWriter) parts(at place, parts []raw) {
	for i, text := range parts {
		part, _ := readObject(text)
		in := []any{"content_index", i, "item_id", at.id, "output_index", at.index}
		begin := part.clone()
		begin.swap("annotations", emptyList)
		begin.swap("logprobs", emptyList)
		event, name := "", "text"
		switch part.text("type") {
		case "output_text":
			event = "response.output_text"
		case "refusal":
			event, name = "response.refusal", "refusal"
		case "reasoning_text":
			event = "response.reasoning_text"
		}
		if !isString(part.at(name)) {
			event = ""
		}
		if event != "" {
			begin.swap(name, emptyText)
		}
		w.write("response.content_part.added", append(in, "part", begin)...)
		if event != "" {
			w.text(event, name, part, in)
		}
		w.write("response.content_part.done", append(in, "part", part)...)
	}
}

// text writes the pieces of a part's text. The log probabilities, which are one list, come with the end of it.
func (w *responseWriter) text(event, name string, part object, in []any) {
	last := slices.Concat(in, []any{name, part.at(name)})
	if event == "response.output_text" {
		logprobs := part.at("logprobs")
		if logprobs == nil {
			logprobs = emptyList
		}
		last = append(last, "logprobs", logprobs)
	}
	for _, piece := range pieces(part.at(name)) {
		delta := slices.Concat(in, []any{"delta", piece})
		if event == "response.output_text" {
			delta = append(delta, "logprobs", emptyList)
		}
		w.write(event+".delta", delta...)
	}
	for i, note := range part.list("annotations") {
		w.write(event+".annotation.added", slices.Concat(in, []any{"annotation", note, "annotation_index", i})...)
	}
	w.write(event+".done", last...)
}

// summary writes the parts of a reasoning's summary.
func (w *responseWriter) summary(at place, parts []raw) {
	for i, text := range parts {
		part, _ := readObject(text)
		in := []any{"item_id", at.id, "output_index", at.index, "summary_index", i}
		in = in[:len(in):len(in)]
		begin := part.clone()
		begin.swap("text", emptyText)
		w.write("response.reasoning_summary_part.added", append(in, "part", begin)...)
		if isString(part.at("text")) {
			for _, piece := range pieces(part.at("text")) {
				w.write("response.reasoning_summary_text.delta", append(in, "delta", piece)...)
			}
			w.write("response.reasoning_summary_text.done", append(in, "text", part.at("text"))...)
		}
		w.write("response.reasoning_summary_part.done", append(in, "part", part)...)
	}
}

func markResponse(response object, line string) object {
	output := slices.Clone(response.list("output"))
	for i := range output {
		item, _ := readObject(output[i])
		if item.text("type") != "message" {
			continue
		}
		content := slices.Clone(item.list("content"))
		for j := range content {
			part, _ := readObject(content[j])
			if part.text("type") != "output_text" || !filled(part.at("text")) {
				continue
			}
			part.set("text", joined(appendQuoted(nil, line), part.at("text")))
			part.swap("annotations", shifted(part.at("annotations"), utf8.RuneCountInString(line)))
			content[j] = part.raw()
			item.set("content", appendList(nil, content))
			output[i] = item.raw()
			response = response.clone()
			response.swap("output", appendList(nil, output))
			return response
		}
	}
	return response
}

func textOfResponse(response object) string {
	var b strings.Builder
	for _, text := range response.list("output") {
		item, _ := readObject(text)
		for _, text := range item.list("content") {
			if part, _ := readObject(text); part.text("type") == "output_text" {
				b.WriteString(part.text("text"))
			}
		}
	}
	return b.String()
}
