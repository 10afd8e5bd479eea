package answer

import (
	"encoding/json"
	"strconv"
)

// The shape of responses. The order of keys and what is null are those of the recordings.

// phase is what of a response differs between the events that carry one.
type phase struct {
	status        string
	whole         bool   // with output and usage
	code, message string // of a failure
	streamed      bool
}

// status is that of the response, and reason why it is incomplete.
func (a *Answer) status() string {
	if a.reason() != "" {
		return "incomplete"
	}
	return "completed"
}

func (a *Answer) reason() string {
	switch a.Stop {
	case EndTurn, StopSequence, ToolUse:
		return ""
	case MaxTokens, ContextWindow:
		return "max_output_tokens"
	case Refusal:
		return "content_filter"
	}
	return string(a.Stop)
}

// response appends a response object.
func (a *Answer) response(dst []byte, p phase) []byte {
	dst = quote(append(dst, `{"id":`...), a.id("resp_"))
	dst = number(dst, `,"object":"response","created_at":`, created)
	dst = quote(append(dst, `,"status":`...), p.status)
	dst = append(dst, `,"background":false`...)
	if !p.streamed {
		dst = append(dst, `,"billing":{"payer":"developer"}`...)
	}
	if p.status == "completed" {
		dst = number(dst, `,"completed_at":`, created+1)
	} else {
		dst = append(dst, `,"completed_at":null`...)
	}
	if p.code != "" {
		dst = quote(append(dst, `,"error":{"code":`...), p.code)
		dst = append(quote(append(dst, `,"message":`...), p.message), '}')
	} else {
		dst = append(dst, `,"error":null`...)
	}
	dst = append(dst, `,"frequency_penalty":0.0,"incomplete_details":`...)
	if reason := a.reason(); p.whole && reason != "" {
		dst = append(quote(append(dst, `{"reason":`...), reason), '}')
	} else {
		dst = append(dst, `null`...)
	}
	dst = append(dst, `,"instructions":null,"max_output_tokens":`...)
	if a.told.maxTokens > 0 {
		dst = number(dst, "", a.told.maxTokens)
	} else {
		dst = append(dst, `null`...)
	}
	dst = quote(append(dst, `,"max_tool_calls":null,"model":`...), a.Model)
	dst = append(dst, `,"moderation":null,"output":[`...)
	if p.whole {
		dst = a.output(dst)
	}
	dst = append(dst, `],"parallel_tool_calls":true,"presence_penalty":0.0,"previous_response_id":null,`+
		`"prompt_cache_key":null,"prompt_cache_retention":"in_memory","reasoning":`...)
	dst = a.reasoning(dst)
	dst = append(dst, `,"safety_identifier":null,"service_tier":"`...)
	if p.whole {
		dst = append(dst, `default`...)
	} else {
		dst = append(dst, `auto`...)
	}
	dst = append(dst, `","store":true,"temperature":1.0,"text":{"format":`...)
	dst = a.format(dst)
	dst = a.choice(append(dst, `,"verbosity":"medium"},"tool_choice":`...))
	dst = a.tools(append(dst, `,"tools":[`...))
	dst = append(dst, `],"top_logprobs":0,"top_p":1.0,"truncation":"disabled","usage":`...)
	if p.whole {
		dst = a.responseUsage(dst)
	} else {
		dst = append(dst, `null`...)
	}
	return append(dst, `,"user":null,"metadata":{}}`...)
}

func (a *Answer) reasoning(dst []byte) []byte {
	switch {
	case !a.told.thinking:
		return append(dst, `{"context":null,"effort":null,"summary":null}`...)
	case a.told.omitted:
		return append(dst, `{"context":"current_turn","effort":"medium","summary":null}`...)
	}
	return append(dst, `{"context":"current_turn","effort":"medium","summary":"detailed"}`...)
}

// format appends the format of the text. The request's name for the schema is not known here.
func (a *Answer) format(dst []byte) []byte {
	if a.told.schema == nil {
		return append(dst, `{"type":"text"}`...)
	}
	if n := fields(a.told.schema); len(n) == 1 && n["type"] == "object" { // what the request's json_object is read as
		return append(dst, `{"type":"json_object"}`...)
	}
	dst = append(dst, `{"type":"json_schema","description":null,"name":"answer","schema":`...)
	return append(append(dst, encoded(a.told.schema)...), `,"strict":true}`...)
}

func (a *Answer) choice(dst []byte) []byte {
	switch a.told.choice.Mode {
	case "none":
		return append(dst, `"none"`...)
	case "any":
		return append(dst, `"required"`...)
	case "tool":
		return append(quote(append(dst, `{"type":"function","name":`...), a.told.choice.Name), '}')
	}
	return append(dst, `"auto"`...)
}

func (a *Answer) tools(dst []byte) []byte {
	for i, tool := range a.told.tools {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = quote(append(dst, `{"type":"function","description":null,"name":`...), tool.Name)
		dst = append(append(dst, `,"parameters":`...), encoded(tool.Schema)...)
		dst = append(dst, `,"strict":true}`...)
	}
	return dst
}

// encoded returns a decoded JSON value as JSON again.
func encoded(v any) []byte {
	text, err := json.Marshal(v)
	if err != nil { // a value that no decoder made
		return []byte("null")
	}
	return text
}

func (a *Answer) responseUsage(dst []byte) []byte {
	u := a.Usage
	dst = number(dst, `{"input_tokens":`, u.Input+u.CacheRead+u.CacheCreation)
	dst = number(dst, `,"input_tokens_details":{"cached_tokens":`, u.CacheRead)
	dst = number(dst, `},"output_tokens":`, u.Output)
	dst = number(dst, `,"output_tokens_details":{"reasoning_tokens":`, u.Thinking)
	dst = number(dst, `},"total_tokens":`, u.Input+u.CacheRead+u.CacheCreation+u.Output)
	return append(dst, '}')
}

// output appends the items.
func (a *Answer) output(dst []byte) []byte {
	first := true
	for i := range a.Blocks {
		if !Responses.shows(&a.Blocks[i]) {
			continue
		}
		if !first {
			dst = append(dst, ',')
		}
		first = false
		dst = a.item(dst, i, a.Blocks[i].status())
	}
	if a.Explanation != "" {
		dst = a.refusalItem(dst, "completed")
	}
	return dst
}

func (b *Block) status() string {
	if b.Cut {
		return "incomplete"
	}
	return "completed"
}

const inProgress = "in_progress"

// item appends the output item that block i becomes; in progress it is still empty.
func (a *Answer) item(dst []byte, i int, status string) []byte {
	b := &a.Blocks[i]
	pieces := b.Pieces
	if status == inProgress {
		pieces = nil
	}
	switch b.Kind {
	case Thinking:
		dst = quote(append(dst, `{"id":`...), a.itemID("rs_", i))
		dst = append(dst, `,"type":"reasoning","content":[],"summary":[`...)
		if len(pieces) > 0 {
			dst = summaryPart(dst, pieces)
		}
		return append(dst, `]}`...)
	case ToolCall:
		dst = quote(append(dst, `{"id":`...), a.itemID("fc_", i))
		dst = quote(append(dst, `,"type":"function_call","status":`...), status)
		dst = quoteAll(append(dst, `,"arguments":`...), pieces)
		dst = quote(append(dst, `,"call_id":`...), b.ID)
		return append(quote(append(dst, `,"name":`...), b.Name), '}')
	default:
		dst = quote(append(dst, `{"id":`...), a.itemID("msg_", i))
		dst = quote(append(dst, `,"type":"message","status":`...), status)
		dst = append(dst, `,"content":[`...)
		if status != inProgress {
			dst = textPart(dst, pieces)
		}
		return append(dst, `],"role":"assistant"}`...)
	}
}

func textPart(dst []byte, pieces []string) []byte {
	dst = quoteAll(append(dst, `{"type":"output_text","annotations":[],"logprobs":[],"text":`...), pieces)
	return append(dst, '}')
}

func summaryPart(dst []byte, pieces []string) []byte {
	dst = quoteAll(append(dst, `{"type":"summary_text","text":`...), pieces)
	return append(dst, '}')
}

// refusalItem appends the message in which the model declines.
func (a *Answer) refusalItem(dst []byte, status string) []byte {
	dst = quote(append(dst, `{"id":`...), a.itemID("msg_", len(a.Blocks)))
	dst = quote(append(dst, `,"type":"message","status":`...), status)
	dst = append(dst, `,"content":[`...)
	if status != inProgress {
		dst = append(quote(append(dst, `{"type":"refusal","refusal":`...), a.Explanation), '}')
	}
	return append(dst, `],"role":"assistant"}`...)
}

func (s *stream) responses() {
	a := s.answer
	for _, name := range []string{"response.created", "response.in_progress"} {
		s.openEvent(name)
		s.buf = a.response(append(s.buf, `,"response":`...), phase{status: inProgress, streamed: true})
		s.endEvent(name, Preamble)
	}
	if a.hidden() {
		s.runes = 4 * a.Usage.Thinking
	}
	index := 0
	for i := range a.Blocks {
		if s.ended {
			return
		}
		if Responses.shows(&a.Blocks[i]) {
			s.responseItem(i, index)
			index++
		}
	}
	if a.Explanation != "" {
		s.refusal(index)
	}
	name := "response." + a.status()
	s.openEvent(name)
	s.buf = a.response(append(s.buf, `,"response":`...), phase{status: a.status(), whole: true, streamed: true})
	s.endEvent(name, Final)
}

func (s *stream) openEvent(name string) {
	s.buf = append(append(append(s.buf[:0], `{"type":"`...), name...), '"')
}

func (s *stream) endEvent(name string, part Part) {
	s.buf = append(number(s.buf, `,"sequence_number":`, s.events), '}')
	s.send(name, part)
}

// responseItem sends the events of block i, which is item number index of the output.
func (s *stream) responseItem(i, index int) {
	const added, done = "response.output_item.added", "response.output_item.done"
	b := &s.answer.Blocks[i]
	s.openEvent(added)
	s.buf = s.answer.item(append(s.buf, `,"item":`...), i, inProgress)
	s.buf = number(s.buf, `,"output_index":`, index)
	s.endEvent(added, Preamble)
	switch b.Kind {
	case Thinking:
		if len(b.Pieces) > 0 {
			s.summary(b, s.answer.itemID("rs_", i), index)
		}
	case ToolCall:
		s.arguments(b, s.answer.itemID("fc_", i), index, s.after(i))
	default:
		s.outputText(b, s.answer.itemID("msg_", i), index, s.after(i))
	}
	s.openEvent(done)
	s.buf = s.answer.item(append(s.buf, `,"item":`...), i, b.status())
	s.buf = number(s.buf, `,"output_index":`, index)
	s.endEvent(done, s.after(i))
}

// where appends the members that say which item an event belongs to.
func (s *stream) where(item string, index int) {
	s.buf = quote(append(s.buf, `,"item_id":`...), item)
	s.buf = number(s.buf, `,"output_index":`, index)
}

func (s *stream) outputText(b *Block, item string, index int, after Part) {
	const added, delta, done, ended = "response.content_part.added", "response.output_text.delta", "response.output_text.done", "response.content_part.done"
	part := func(name string, pieces []string, in Part) {
		s.openEvent(name)
		s.buf = append(s.buf, `,"content_index":0`...)
		s.where(item, index)
		s.buf = textPart(append(s.buf, `,"part":`...), pieces)
		s.endEvent(name, in)
	}
	part(added, nil, Preamble)
	for _, piece := range b.Pieces {
		if s.ended {
			return
		}
		s.openEvent(delta)
		s.buf = append(s.buf, `,"content_index":0,"delta":`...)
		at := len(s.buf) + 1
		s.buf = quote(append(quote(s.buf, piece), `,"item_id":`...), item)
		s.buf = obfuscation(append(s.buf, `,"logprobs":[],`...), len(piece))
		s.endPiece(delta, piece, at, number(s.buf, `,"output_index":`, index))
	}
	s.openEvent(done)
	s.buf = quote(append(s.buf, `,"content_index":0,"item_id":`...), item)
	s.buf = number(append(s.buf, `,"logprobs":[]`...), `,"output_index":`, index)
	s.buf = number(s.buf, `,"sequence_number":`, s.events)
	s.buf = append(quoteAll(append(s.buf, `,"text":`...), b.Pieces), '}')
	s.send(done, after)
	part(ended, b.Pieces, after)
}

// endPiece ends a delta and sends it.
func (s *stream) endPiece(name, piece string, at int, buf []byte) {
	s.buf = append(number(buf, `,"sequence_number":`, s.events), '}')
	s.sendPiece(name, piece, at)
}

func (s *stream) arguments(b *Block, item string, index int, after Part) {
	const delta, done = "response.function_call_arguments.delta", "response.function_call_arguments.done"
	for _, piece := range b.Pieces {
		if s.ended {
			return
		}
		s.openEvent(delta)
		s.buf = append(s.buf, `,"delta":`...)
		at := len(s.buf) + 1
		s.buf = quote(append(quote(s.buf, piece), `,"item_id":`...), item)
		s.buf = obfuscation(append(s.buf, ','), len(piece))
		s.endPiece(delta, piece, at, number(s.buf, `,"output_index":`, index))
	}
	s.openEvent(done)
	s.buf = quoteAll(append(s.buf, `,"arguments":`...), b.Pieces)
	s.where(item, index)
	s.endEvent(done, after)
}

func (s *stream) summary(b *Block, item string, index int) {
	const added, delta, done, ended = "response.reasoning_summary_part.added", "response.reasoning_summary_text.delta", "response.reasoning_summary_text.done", "response.reasoning_summary_part.done"
	part := func(name string, pieces []string) {
		s.openEvent(name)
		s.where(item, index)
		s.buf = summaryPart(append(s.buf, `,"part":`...), pieces)
		s.buf = number(s.buf, `,"sequence_number":`, s.events)
		s.buf = append(s.buf, `,"summary_index":0}`...)
		s.send(name, Preamble)
	}
	part(added, nil)
	for _, piece := range b.Pieces {
		if s.ended {
			return
		}
		s.openEvent(delta)
		s.buf = append(s.buf, `,"delta":`...)
		at := len(s.buf) + 1
		s.buf = quote(append(quote(s.buf, piece), `,"item_id":`...), item)
		s.buf = number(obfuscation(append(s.buf, ','), len(piece)), `,"output_index":`, index)
		s.buf = append(number(s.buf, `,"sequence_number":`, s.events), `,"summary_index":0}`...)
		s.sendPiece(delta, piece, at)
	}
	s.openEvent(done)
	s.where(item, index)
	s.buf = append(number(s.buf, `,"sequence_number":`, s.events), `,"summary_index":0,"text":`...)
	s.buf = append(quoteAll(s.buf, b.Pieces), '}')
	s.send(done, Preamble)
	part(ended, b.Pieces)
}

// refusal sends the message in which the model declines. None of it is content.
func (s *stream) refusal(index int) {
	a, item := s.answer, s.answer.itemID("msg_", len(s.answer.Blocks))
	event := func(name, middle string, text string, tail string) {
		s.openEvent(name)
		s.buf = append(s.buf, middle...)
		if text != "" {
			s.buf = quote(s.buf, text)
		}
		s.buf = append(s.buf, tail...)
		s.endEvent(name, Tail)
	}
	where := `,"item_id":` + strconv.Quote(item) + `,"output_index":` + strconv.Itoa(index)
	event("response.output_item.added", `,"item":`+string(a.refusalItem(nil, inProgress))+`,"output_index":`+strconv.Itoa(index), "", "")
	event("response.content_part.added", `,"content_index":0`+where+`,"part":{"type":"refusal","refusal":""}`, "", "")
	event("response.refusal.delta", `,"content_index":0,"delta":`, a.Explanation, where)
	event("response.refusal.done", `,"content_index":0`+where+`,"refusal":`, a.Explanation, "")
	event("response.content_part.done", `,"content_index":0`+where+`,"part":{"type":"refusal","refusal":`, a.Explanation, "}")
	event("response.output_item.done", `,"item":`+string(a.refusalItem(nil, "completed"))+`,"output_index":`+strconv.Itoa(index), "", "")
}
