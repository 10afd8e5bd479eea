package request

import (
	"fmt"
	"slices"
	"strings"
)

// chatFields are the fields of the body: openai-go v3.99.0, ChatCompletionNewParams, and stream, which its client adds.
var chatFields = names("messages", "model", "stream", "frequency_penalty", "logprobs", "max_completion_tokens", "max_tokens", "n",
	"presence_penalty", "prompt_cache_key", "safety_identifier", "seed", "store", "temperature", "top_logprobs", "top_p",
	"parallel_tool_calls", "user", "audio", "logit_bias", "metadata", "modalities", "moderation", "prompt_cache_retention",
	"reasoning_effort", "service_tier", "stop", "stream_options", "verbosity", "function_call", "functions", "prediction",
	"prompt_cache_options", "response_format", "tool_choice", "tools", "web_search_options")

var chatRoles = []string{"system", "assistant", "user", "function", "tool", "developer"}

// readChat reads the body of a chat completion.
func (q *Request) readChat(body *value, settings Settings) *Refusal {
	a := asking{q: q}
	q.Model = body.get("model").kept()
	messages := body.get("messages")
	switch {
	case q.Model == "":
		a.refuse("", "", "you must provide a model parameter")
	case messages == nil:
		a.missing("messages")
	}
	a.checkModel(settings)
	if messages.given() {
		a.listed("messages", messages)
	}
	for i := range messages.items() {
		a.chatMessage(i, &messages.members[i].value)
	}
	a.checkFields(body, chatFields)
	a.chatLimits(body)
	for i := range a.listed("tools", body.get("tools")) {
		a.chatTool(i, &body.get("tools").members[i].value)
	}
	if choice := body.get("tool_choice"); choice.given() && len(body.get("tools").items()) == 0 {
		a.refuse("tool_choice", "", "Invalid value for 'tool_choice': 'tool_choice' is only allowed when 'tools' are specified.")
	}
	a.chooseTool(body.get("tool_choice"), body.get("tool_choice").get("function").get("name"))
	a.checkCalls(messages.items())
	a.chatFormat(body.get("response_format"))
	return a.finish(settings)
}

func (a *asking) chatMessage(i int, m *value) {
	param := func(name string) string { return fmt.Sprintf("messages[%d].%s", i, name) }
	if m.kind != isObject {
		a.typed(fmt.Sprintf("messages[%d]", i), m, isObject)
		return
	}
	role, content := m.get("role"), m.get("content")
	if !role.is(isString) || a.refusal != nil || !slices.Contains(chatRoles, role.text()) {
		a.checkRole(param("role"), role, chatRoles, "'system', 'assistant', 'user', 'function', 'tool', and 'developer'")
		return
	}
	calls := m.get("tool_calls")
	a.q.ToolAnswered = role.text() == "tool" || role.text() == "function"
	switch {
	case content.given() && (content.kind == isString || content.kind == isArray):
	case content.given():
		a.typed(param("content"), content, isString)
	case role.text() == "assistant" && (calls.given() || m.get("function_call").given() || m.get("refusal").given() || m.get("audio").given()):
	case content == nil:
		a.missing(param("content"))
	default:
		a.refuse(fmt.Sprintf("messages.[%d].content", i), "", "Invalid value for 'content': expected a string, got null.")
	}
	if role.text() == "tool" && !m.get("tool_call_id").is(isString) {
		a.missing(param("tool_call_id"))
	}
	a.addContent(content)
	for j := range a.calls(i, calls) {
		call := calls.members[j].get("function")
		a.size.add(call.get("name").text())
		a.size.add(call.get("arguments").text())
	}
}

// calls reads the list of calls of a message.
func (a *asking) calls(i int, calls *value) []member {
	if calls == nil {
		return nil // the name of the parameter is made for a mistake alone
	}
	return a.listed(fmt.Sprintf("messages[%d].tool_calls", i), calls)
}

// chatLimits reads the numbers and switches of a chat completion.
func (a *asking) chatLimits(body *value) {
	old, limit := body.get("max_tokens"), body.get("max_completion_tokens")
	switch {
	case old.given() && limit.given():
		a.refuse("max_tokens", "invalid_parameter_combination", "Setting 'max_tokens' and 'max_completion_tokens' at the same time is not supported.")
	case old.given() && reasons(a.q.Model):
		a.refuse("max_tokens", "unsupported_parameter", "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.")
	}
	a.q.MaxTokens = max(a.whole("max_tokens", old, 1), a.whole("max_completion_tokens", limit, 1))
	a.decimal("temperature", body.get("temperature"), 0, 2)
	a.decimal("top_p", body.get("top_p"), 0, 1)
	a.decimal("frequency_penalty", body.get("frequency_penalty"), -2, 2)
	a.decimal("presence_penalty", body.get("presence_penalty"), -2, 2)
	a.q.Stream = a.flag("stream", body.get("stream"))
	options := body.get("stream_options")
	if options.given() && !a.q.Stream {
		a.refuse("stream_options", "", "The 'stream_options' parameter is only allowed when 'stream' is enabled.")
	}
	a.q.IncludeUsage = a.flag("stream_options.include_usage", options.get("include_usage"))
	switch stop := body.get("stop"); {
	case !stop.given():
	case stop.kind == isString:
		a.q.StopSequences = []string{stop.kept()}
	case a.typed("stop", stop, isArray, isString):
		if len(stop.members) > 4 {
			a.refuse("stop", "array_above_max_length", "Invalid 'stop': array too long. Expected an array with maximum length 4, but got an array with length %d instead.", len(stop.members))
		}
		for i := range stop.members {
			if a.typed(fmt.Sprintf("stop[%d]", i), &stop.members[i].value, isString) {
				a.q.StopSequences = append(a.q.StopSequences, stop.members[i].kept())
			}
		}
	}
}

func (a *asking) chatTool(i int, tool *value) {
	param := fmt.Sprintf("tools[%d]", i)
	a.size.add(tool.raw)
	function := tool.get("function")
	switch {
	case !a.typed(param, tool, isObject):
	case tool.get("type") == nil:
		a.missing(param + ".type")
	case tool.get("type").text() == "custom":
		a.addTool(param+".custom", tool.get("custom").get("name"), nil)
	case function == nil:
		a.missing(param + ".function")
	case a.typed(param+".function", function, isObject):
		a.addTool(param+".function", function.get("name"), function.get("parameters"))
	}
}

// checkCalls refuses results of tools that nobody called, and calls without results.
func (a *asking) checkCalls(messages []member) {
	open := map[string]bool{} // calls that wait
	callable := false         // the messages up to here end in calls and results
	var order []string
	settle := func(i int) {
		var waiting []string
		for _, id := range order {
			if open[id] {
				waiting = append(waiting, clipID(id))
			}
		}
		if len(waiting) > 0 {
			a.refuse(fmt.Sprintf("messages.[%d].role", i), "", "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The following tool_call_ids did not have response messages: %s", strings.Join(waiting, ", "))
		}
		clear(open)
		order, callable = order[:0], false
	}
	for i := range messages {
		if a.refusal != nil {
			return
		}
		m := &messages[i].value
		if m.get("role").text() == "tool" {
			id := m.get("tool_call_id").text()
			if _, called := open[id]; !callable || !called {
				a.refuse(fmt.Sprintf("messages.[%d].role", i), "", "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'.") //nolint:misspell // as the API spells it
			}
			open[id] = false
			continue
		}
		settle(i)
		for _, call := range m.get("tool_calls").items() {
			id := call.get("id").text()
			open[id], callable = true, true
			order = append(order, id)
		}
	}
	settle(len(messages))
}

// chatFormat reads the form of the answer.
func (a *asking) chatFormat(format *value) {
	switch kind := format.get("type").text(); {
	case !format.given() || kind == "text":
	case !a.typed("response_format", format, isObject):
	case kind == "json_object":
		a.q.Schema = map[string]any{"type": "object"}
		if !strings.Contains(strings.ToLower(a.prompt.String()), "json") {
			a.refuse("messages", "", "'messages' must contain the word 'json' in some form, to use 'response_format' of type 'json_object'.")
		}
	case kind == "json_schema":
		if a.q.Schema = format.get("json_schema").get("schema").decode(); a.q.Schema == nil {
			a.missing("response_format.json_schema.schema")
		}
	default:
		a.refuse("response_format.type", "invalid_value", "Invalid value: '%s'. Supported values are: 'json_object', 'json_schema', and 'text'.", clip(kind))
	}
}
