package request

import "fmt"

// responseFields are the fields of the body: openai-go v3.99.0, ResponseNewParams, and stream, which its client adds.
var responseFields = names("background", "instructions", "max_output_tokens", "max_tool_calls", "parallel_tool_calls",
	"previous_response_id", "prompt_cache_key", "safety_identifier", "store", "stream", "temperature", "top_logprobs", "top_p",
	"user", "context_management", "conversation", "include", "metadata", "moderation", "prompt", "prompt_cache_retention",
	"service_tier", "stream_options", "truncation", "access_programs", "image", "input", "model", "prompt_cache_options",
	"reasoning", "text", "tool_choice", "tools")

var inputRoles = []string{"assistant", "system", "developer", "user"}

// readResponses reads the body of a response.
func (q *Request) readResponses(body *value, settings Settings) *Refusal {
	a := asking{q: q}
	q.Model = body.get("model").kept()
	stored := body.get("previous_response_id").given() || body.get("conversation").given()
	if q.Model == "" && !body.get("prompt").given() {
		a.missing("model")
	}
	a.checkModel(settings)
	a.checkFields(body, responseFields)
	q.Stream = a.flag("stream", body.get("stream"))
	if text := body.get("instructions"); text.given() && a.typed("instructions", text, isString) {
		a.addText(text.text())
	}
	a.readInput(body.get("input"), stored || body.get("prompt").given(), stored)
	q.MaxTokens = a.whole("max_output_tokens", body.get("max_output_tokens"), 16)
	a.decimal("temperature", body.get("temperature"), 0, 2)
	a.decimal("top_p", body.get("top_p"), 0, 1)
	if tools := body.get("tools"); tools.given() && a.typed("tools", tools, isArray) {
		for i := range tools.members {
			a.responseTool(i, &tools.members[i].value)
		}
	}
	choice := body.get("tool_choice")
	a.chooseTool(choice, choice.get("name"))
	q.Thinking = body.get("reasoning").get("summary").given()
	format := body.get("text").get("format")
	switch format.get("type").text() {
	case "json_schema":
		if q.Schema = format.get("schema").decode(); q.Schema == nil {
			a.missing("text.format.schema")
		}
	case "json_object":
		q.Schema = map[string]any{"type": "object"}
	}
	return a.finish(settings)
}

// readInput reads the input: a text, or items of a conversation.
func (a *asking) readInput(input *value, optional, stored bool) {
	empty := !input.given() || input.is(isString) && input.text() == "" || input.is(isArray) && len(input.members) == 0
	switch {
	case empty && !optional:
		a.refuse("", "missing_required_parameter", `One of "input" or "previous_response_id" or 'prompt' or 'conversation' must be provided.`)
	case !input.given() || !a.typed("input", input, isString, isArray):
	case input.kind == isString:
		a.addText(input.text())
	}
	called, answered := map[string]bool{}, map[string]bool{}
	var order []string
	for i := range input.items() {
		item := &input.members[i].value
		if !a.typed(fmt.Sprintf("input[%d]", i), item, isObject) {
			return
		}
		id := item.get("call_id").text()
		a.q.ToolAnswered = false
		switch item.get("type").text() {
		case "", "message":
			a.checkRole(fmt.Sprintf("input[%d].role", i), item.get("role"), inputRoles, "'assistant', 'system', 'developer', and 'user'")
			if item.get("content") == nil {
				a.missing(fmt.Sprintf("input[%d].content", i))
			}
			a.addContent(item.get("content"))
		case "function_call", "custom_tool_call":
			called[id] = true
			if !item.get("async").is(isTrue) {
				order = append(order, id)
			}
			a.size.add(item.raw)
		case "function_call_output", "custom_tool_call_output":
			a.q.ToolAnswered = true
			answered[id] = true
			switch {
			case id == "" && len(order) > 0: // it need not say which call it is for
				answered[order[len(order)-1]] = true
			case !called[id] && !stored:
				a.refuse("input", "", "No tool call found for function call output with call_id %s.", clipID(id))
			}
			a.addContent(item.get("output"))
		default:
			a.size.add(item.raw)
		}
	}
	for _, id := range order {
		if !answered[id] {
			a.refuse("input", "", "No tool output found for function call %s.", clipID(id))
		}
	}
}

func (a *asking) responseTool(i int, tool *value) {
	param := fmt.Sprintf("tools[%d]", i)
	a.size.add(tool.raw)
	if !a.typed(param, tool, isObject) {
		return
	}
	switch tool.get("type").text() {
	case "":
		a.missing(param + ".type")
	case "function", "custom":
		a.addTool(param, tool.get("name"), tool.get("parameters"))
	}
}
