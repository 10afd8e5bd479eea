package request

import (
	"slices"
	"strings"
)

// toolFields are the fields of a tool of one's own: anthropic-sdk-go v2.15.0, ToolParam.
var toolFields = []string{
	"input_schema", "name", "eager_input_streaming", "defer_loading", "description", "strict", "type", "allowed_callers", "cache_control", "input_examples",
}

// serverTools are the starts of the types of tools that the server runs: an answer does not call them.
var serverTools = []string{"web_search_", "web_fetch_", "code_execution_", "tool_search_", "advisor_", "mcp_toolset", "computer_toolset_", "browser_toolset_"}

// readTools reads the tools of a Messages request.
func (r *reading) readTools(tools *value) {
	if tools.given() && tools.kind != isArray {
		r.refuse("tools: Input should be a valid list")
	}
	seen := map[string]bool{}
	for i := range tools.items() {
		t := &tools.members[i].value
		typ := t.get("type").text()
		switch {
		case t.kind != isObject:
			r.refuse("tools.%d: Input should be a valid dictionary", i)
		case typ == "" || typ == "custom":
			r.readCustom(i, t)
		case slices.ContainsFunc(serverTools, func(start string) bool { return strings.HasPrefix(typ, start) }):
			r.server = append(r.server, t.get("name").text())
		case !strings.Contains(typ, "_20"): // bash_20250124, text_editor_20250728 and others are run by the client
			r.refuse("tools.%d: Input tag '%s' found using 'type' does not match any of the expected tags: 'bash_20250124', 'custom', 'text_editor_20250728', 'web_search_20250305'", i, clip(typ))
		default:
			r.q.Tools = append(r.q.Tools, Tool{Name: t.get("name").kept()})
		}
		if r.refusal != nil {
			return
		}
		if name := t.get("name").text(); name != "" {
			if seen[name] {
				r.refuse("tools: Tool names must be unique.")
			}
			seen[name] = true
		}
		r.size.add(t.raw)
		r.mark(t)
	}
}

func (r *reading) readCustom(i int, t *value) {
	name, schema := t.get("name"), t.get("input_schema")
	switch {
	case name == nil:
		r.refuse("tools.%d.custom.name: Field required", i)
	case name.kind != isString:
		r.refuse("tools.%d.custom.name: Input should be a valid string", i)
	case !identifier(name.text(), 128):
		r.refuse("tools.%d.custom.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'", i)
	case schema == nil:
		r.refuse("tools.%d.custom.input_schema: Field required", i)
	case schema.kind != isObject:
		r.refuse("tools.%d.custom.input_schema: Input should be a valid dictionary", i)
	case schema.get("type") == nil:
		r.refuse("tools.%d.custom.input_schema.type: Field required", i)
	case schema.get("type").text() != "object":
		r.refuse("tools.%d.custom.input_schema.type: Input should be 'object'", i)
	}
	for j := range t.members {
		if key := t.members[j].key; !slices.Contains(toolFields, key) {
			r.refuse("tools.%d.custom.%s: Extra inputs are not permitted", i, clip(key))
		}
	}
	if r.refusal == nil {
		r.q.Tools = append(r.q.Tools, Tool{Name: name.kept(), Schema: schema.decode()})
	}
}

// identifier says whether a text is 1 to longest letters, digits, _ and -.
func identifier(s string, longest int) bool {
	for i := range len(s) {
		c := s[i]
		if c != '_' && c != '-' && (c < '0' || c > '9') && (c|0x20 < 'a' || c|0x20 > 'z') {
			return false
		}
	}
	return s != "" && len(s) <= longest
}

func (r *reading) readToolChoice(choice *value) {
	if !choice.given() {
		return
	}
	if choice.kind != isObject {
		r.refuse("tool_choice: Input should be a valid dictionary")
		return
	}
	c := ToolChoice{Mode: choice.get("type").kept()}
	named := func(t Tool) bool { return t.Name == c.Name }
	switch c.Mode {
	case "auto", "none":
	case "any":
		if len(r.q.Tools)+len(r.server) == 0 {
			r.refuse("tool_choice.any may only be specified while providing tools")
		}
	case "tool":
		name := choice.get("name")
		if !name.is(isString) {
			r.refuse("tool_choice.tool.name: Field required")
		}
		c.Name = name.kept()
		if !slices.ContainsFunc(r.q.Tools, named) && !slices.Contains(r.server, c.Name) {
			r.refuse("Tool '%s' not found in provided tools", clipID(c.Name))
		}
	case "":
		r.refuse("tool_choice.type: Field required")
	default:
		r.refuse("tool_choice: Input tag '%s' found using 'type' does not match any of the expected tags: 'any', 'auto', 'none', 'tool'", clip(c.Mode))
	}
	r.q.ToolChoice = c
}

// readThinking reads whether and how the answer thinks, and refuses the ways that the model does not know.
func (r *reading) readThinking(thinking *value) {
	if !thinking.given() {
		return
	}
	if thinking.kind != isObject {
		r.refuse("thinking: Input should be a valid dictionary")
		return
	}
	mode := thinking.get("type").text()
	switch mode {
	case "enabled":
		r.readBudget(thinking.get("budget_tokens"))
		if r.model.since(47) {
			r.refuse(`"thinking.type.enabled" is not supported for this model. Use "thinking.type.adaptive" and "output_config.effort" to control thinking behavior.`)
		}
		r.q.Thinking, r.budget = true, true
	case "adaptive":
		if r.model.before(46) {
			r.refuse("adaptive thinking is not supported on this model")
		}
		r.q.Thinking = true
	case "disabled":
		if r.model.alwaysThinks() {
			r.refuse(`"thinking.type.disabled" is not supported for this model.`)
		}
	case "between_tools":
	case "":
		r.refuse("thinking.type: Field required")
	default:
		r.refuse("thinking: Input tag '%s' found using 'type' does not match any of the expected tags: 'adaptive', 'between_tools', 'disabled', 'enabled'", clip(mode))
	}
	switch display := thinking.get("display"); {
	case !display.given(), display.text() == "summarized":
	case display.text() == "omitted":
		r.q.Omitted = true
	default:
		r.refuse("thinking.%s.display: Input should be 'summarized' or 'omitted'", mode)
	}
	if r.q.Thinking && (r.q.ToolChoice.Mode == "any" || r.q.ToolChoice.Mode == "tool") {
		r.refuse("Thinking may not be enabled when tool_choice forces tool use.")
	}
}

func (r *reading) readBudget(budget *value) {
	const field = "thinking.enabled.budget_tokens"
	if budget == nil {
		r.refuse(field + ": Field required")
		return
	}
	n, ok := r.integer(field, budget, 1024)
	if ok && r.q.Endpoint != CountTokens && n >= r.q.MaxTokens {
		r.refuse("`max_tokens` must be greater than `thinking.budget_tokens`.")
	}
}
