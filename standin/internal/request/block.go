package request

import (
	"slices"
	"strings"
)

// readTurns reads the messages and what is in them.
func (r *reading) readTurns(messages *value) {
	switch {
	case messages == nil:
		r.refuse("messages: Field required")
		return
	case messages.kind != isArray:
		r.refuse("messages: Input should be a valid list")
		return
	case len(messages.members) == 0:
		r.refuse("messages: at least one message is required")
		return
	}
	for i := range messages.members {
		if r.readMessage(i, &messages.members[i].value); r.refusal != nil {
			return
		}
	}
}

func (r *reading) readMessage(i int, m *value) {
	role, content := m.get("role"), m.get("content")
	switch {
	case m.kind != isObject:
		r.refuse("messages.%d: Input should be a valid dictionary", i)
	case role == nil:
		r.refuse("messages.%d.role: Field required", i)
	case role.kind != isString:
		r.refuse("messages.%d.role: Input should be a valid string", i)
	case content == nil:
		r.refuse("messages.%d.content: Field required", i)
	}
	if r.refusal != nil {
		return
	}
	for j := range m.members {
		switch key := m.members[j].key; {
		case key == "role" || key == "content":
		case r.betas != "" && role.text() == "system": // clear_at and what else a beta brings
		default:
			r.refuse("messages.%d.%s: Extra inputs are not permitted", i, clip(key))
		}
	}
	t := r.turn(i, role.text())
	switch content.kind {
	case isString:
		text := content.text()
		if text == "" {
			t.empty = i + 1
			return
		}
		t.open("text")
		t.text(text)
		r.addText(text)
	case isArray:
		if len(content.members) == 0 {
			t.empty = i + 1
		}
		for k := range content.members {
			r.readBlock(place{i, k}, &content.members[k].value, t)
		}
	default:
		r.refuse("messages.%d.content: Input should be a valid list", i)
	}
}

// place is where a block is.
type place struct{ message, block int }

// blockFields are the fields of content blocks; the kinds that are known without them are not looked into.
// anthropic-sdk-go v2.15.0, the Param structs of message.go.
var blockFields = map[string][]string{
	"text":              {"text", "citations", "cache_control", "type"},
	"image":             {"source", "cache_control", "transformations", "type"},
	"document":          {"source", "context", "title", "cache_control", "citations", "type"},
	"tool_use":          {"id", "input", "name", "toolset_name", "cache_control", "caller", "type"},
	"tool_result":       {"tool_use_id", "toolset_name", "is_error", "cache_control", "content", "type"},
	"thinking":          {"signature", "thinking", "type"},
	"redacted_thinking": {"data", "type"},

	"search_result": nil, "server_tool_use": nil, "web_search_tool_result": nil, "web_fetch_tool_result": nil,
	"advisor_tool_result": nil, "code_execution_tool_result": nil, "bash_code_execution_tool_result": nil,
	"text_editor_code_execution_tool_result": nil, "tool_search_tool_result": nil, "mcp_tool_use": nil, "mcp_tool_result": nil,
	"container_upload": nil, "compaction": nil, "tool_addition": nil, "tool_removal": nil, "mcp_tool_listing": nil, "fallback": nil,
	"browser_state": nil,
}

// requiredFields must be there, and most of them are texts.
var requiredFields = map[string][]string{
	"text": {"text"}, "image": {"source"}, "document": {"source"}, "tool_use": {"id", "input", "name"},
	"tool_result": {"tool_use_id"}, "thinking": {"signature", "thinking"}, "redacted_thinking": {"data"},
}

// expectedTags are the kinds of block that a refusal names.
func expectedTags(except string) string {
	var tags []string
	for tag, fields := range blockFields {
		if fields != nil && tag != except || tag == "search_result" || tag == "server_tool_use" || tag == "web_search_tool_result" {
			tags = append(tags, "'"+tag+"'")
		}
	}
	slices.Sort(tags)
	return strings.Join(tags, ", ")
}

// readBlock reads one content block.
func (r *reading) readBlock(at place, block *value, t *turn) {
	tag := block.get("type")
	kind := tag.text()
	_, known := blockFields[kind]
	assistant := t.role == "assistant"
	switch {
	case block.kind != isObject:
		r.refuse("messages.%d.content.%d: Input should be a valid dictionary", at.message, at.block)
	case tag == nil:
		r.refuse("messages.%d.content.%d.type: Field required", at.message, at.block)
	case !known:
		r.refuse("messages.%d.content.%d: Input tag '%s' found using 'type' does not match any of the expected tags: %s", at.message, at.block, clip(kind), expectedTags(""))
	case kind == "document" && assistant && r.version == version2026:
		r.refuse("messages.%d.content.%d: Input tag 'document' found using 'type' does not match any of the expected tags: %s", at.message, at.block, expectedTags(kind))
	case kind == "tool_use" && !assistant:
		r.refuse("messages.%d: `tool_use` blocks can only be in `assistant` messages", at.message)
	case kind == "tool_result" && t.role != "user":
		r.refuse("messages.%d: `tool_result` blocks can only be in `user` messages", at.message)
	}
	if r.refusal != nil {
		return
	}
	r.checkBlock(at, kind, block)
	t.open(kind)
	switch kind {
	case "text":
		text := block.get("text").text()
		if c := block.get("citations"); !assistant && r.version == version2026 && len(c.items()) > 0 {
			r.refuse("messages.%d.content.%d.text.citations: Extra inputs are not permitted", at.message, at.block)
		}
		t.text(text)
		r.addText(text)
	case "thinking":
		r.size.add(block.get("thinking").text())
	case "tool_use":
		t.uses = append(t.uses, call{at, block.get("id").text()})
		r.size.add(block.get("name").text())
		r.size.add(block.get("input").raw)
	case "tool_result":
		t.results = append(t.results, result{call{at, block.get("tool_use_id").text()}, t.leading()})
		r.readInner(block.get("content"))
	case "server_tool_use":
		t.server = true
		r.size.add(block.raw)
	default:
		r.readInner(block)
	}
	r.mark(block)
}

// checkBlock refuses fields that are missing, of a wrong kind or not known.
func (r *reading) checkBlock(at place, kind string, block *value) {
	for _, name := range requiredFields[kind] {
		v, want, words := block.get(name), isString, "string"
		if name == "input" || name == "source" {
			want, words = isObject, "dictionary"
		}
		switch {
		case v == nil:
			r.refuse("messages.%d.content.%d.%s.%s: Field required", at.message, at.block, kind, name)
		case v.kind != want:
			r.refuse("messages.%d.content.%d.%s.%s: Input should be a valid %s", at.message, at.block, kind, name, words)
		}
	}
	if key := unknownField(block, kind); key != "" {
		r.refuse("messages.%d.content.%d.%s.%s: Extra inputs are not permitted", at.message, at.block, kind, clip(key))
	}
	if kind == "tool_result" {
		if c := block.get("content"); c.given() && c.kind != isString && c.kind != isArray {
			r.refuse("messages.%d.content.%d.tool_result.content: Input should be a valid list", at.message, at.block)
		}
	}
}

// unknownField returns the first field that a kind of block does not have, or "".
func unknownField(block *value, kind string) string {
	known := blockFields[kind]
	if known == nil {
		return ""
	}
	for i := range block.members {
		if !slices.Contains(known, block.members[i].key) {
			return block.members[i].key
		}
	}
	return ""
}

// readInner adds what is inside of a block: the text and content of tool results and documents, and a flat number of
// tokens for what is a picture.
func (r *reading) readInner(v *value) {
	if v == nil {
		return
	}
	switch v.kind {
	case isString:
		r.addText(v.text())
	case isArray:
		for i := range v.members {
			r.readInner(&v.members[i].value)
		}
	case isObject:
		switch v.get("type").text() {
		case "image":
			r.size.tokens += imageTokens
			return
		case "document":
			r.readDocument(v)
			return
		}
		for _, name := range [...]string{"title", "text", "content"} {
			r.readInner(v.get(name))
		}
	}
}

func (r *reading) readDocument(document *value) {
	for _, name := range [...]string{"title", "context"} {
		if text := document.get(name); text.is(isString) {
			r.addText(text.text())
		}
	}
	switch source := document.get("source"); source.get("type").text() {
	case "text":
		r.readInner(source.get("data"))
	case "content":
		r.readInner(source.get("content"))
	default:
		r.size.tokens += documentTokens
	}
}
