package request

import (
	"fmt"
	"math"
	"net/http"
	"slices"
	"strings"
)

// asking is one request in the OpenAI dialect while it is read. As with reading, the first refusal stands.
type asking struct {
	q       *Request
	refusal *Refusal
	prompt  strings.Builder
	size    size
}

func (a *asking) refuse(param, code, format string, args ...any) {
	if a.refusal == nil {
		a.refusal = openAI(http.StatusBadRequest, param, code, fmt.Sprintf(format, args...))
	}
}

func (a *asking) missing(param string) {
	a.refuse(param, "missing_required_parameter", "Missing required parameter: '%s'.", param)
}

// finish ends the reading: the prompt is complete, and is too long or not.
func (a *asking) finish(settings Settings) *Refusal {
	a.q.Prompt = a.prompt.String()
	a.q.Input = a.size.total()
	window := settings.Window
	if window == 0 {
		window = openAIWindow(a.q.Model)
	}
	if window > 0 && a.q.Input > window {
		param := "messages"
		if a.q.Endpoint == Responses {
			param = "input"
		}
		a.refuse(param, "context_length_exceeded", "This model's maximum context length is %d tokens. However, your messages resulted in %d tokens. Please reduce the length of the messages.", window, a.q.Input)
	}
	return a.refusal
}

// checkModel refuses the names that the plan does not want to know.
func (a *asking) checkModel(settings Settings) {
	if a.refusal == nil && (!named(a.q.Model) || slices.Contains(settings.UnknownModels, a.q.Model)) {
		a.refusal = openAI(http.StatusNotFound, "", "model_not_found", "The model `"+clipID(a.q.Model)+"` does not exist or you do not have access to it.")
	}
}

// checkFields refuses the first field that is not known.
func (a *asking) checkFields(body *value, known map[string]bool) {
	for i := range body.members {
		key := body.members[i].key
		switch {
		case known[key]:
		case a.q.Endpoint == Responses:
			a.refuse(clip(key), "unknown_parameter", "Unknown parameter: '%s'.", clip(key))
		default:
			a.refuse("", "", "Unrecognized request argument supplied: %s", clip(key))
		}
	}
}

// typed refuses a value of the wrong kind.
func (a *asking) typed(param string, v *value, want ...kind) bool {
	if slices.Contains(want, v.kind) {
		return true
	}
	a.refuse(param, "invalid_type", "Invalid type for '%s': expected %s, but got %s instead.", param, kindWords[want[0]], kindWords[v.kind])
	return false
}

var kindWords = [...]string{
	absent: "nothing", isNull: "null", isFalse: "a boolean", isTrue: "a boolean", isNumber: "a number", isString: "a string", isArray: "an array", isObject: "an object",
}

// whole reads a whole number of at least lowest; 0 when it is not given.
func (a *asking) whole(param string, v *value, lowest int) int {
	if !v.given() {
		return 0
	}
	if v.kind != isNumber {
		a.refuse(param, "invalid_type", "Invalid type for '%s': expected an integer, but got %s instead.", param, kindWords[v.kind])
		return 0
	}
	n := v.number()
	switch {
	case n != math.Trunc(n):
		a.refuse(param, "invalid_type", "Invalid type for '%s': expected an integer, but got a decimal number instead.", param)
		return 0
	case n < float64(lowest):
		a.refuse(param, "integer_below_min_value", "Invalid '%s': integer below minimum value. Expected a value >= %d, but got %s instead.", param, lowest, clip(v.raw))
		return 0
	}
	return int(min(n, 1<<53))
}

// decimal checks a number that is between two others.
func (a *asking) decimal(param string, v *value, lowest, highest float64) {
	switch {
	case !v.given():
	case v.kind != isNumber:
		a.refuse(param, "invalid_type", "Invalid type for '%s': expected a decimal, but got %s instead.", param, kindWords[v.kind])
	case v.number() < lowest:
		a.refuse(param, "decimal_below_min_value", "Invalid '%s': decimal below minimum value. Expected a value >= %v, but got %s instead.", param, lowest, clip(v.raw))
	case v.number() > highest:
		a.refuse(param, "decimal_above_max_value", "Invalid '%s': decimal above maximum value. Expected a value <= %v, but got %s instead.", param, highest, clip(v.raw))
	}
}

// flag reads a boolean.
func (a *asking) flag(param string, v *value) bool {
	return v.given() && a.typed(param, v, isTrue, isFalse) && v.kind == isTrue
}

// addText adds a text to the prompt, ended by LF.
func (a *asking) addText(text string) {
	a.prompt.WriteString(text)
	a.prompt.WriteByte('\n')
	a.size.add(text)
}

// addContent adds a text, or parts of one. A picture counts as a flat number of tokens.
func (a *asking) addContent(v *value) {
	if v.is(isString) {
		a.addText(v.text())
	}
	for _, part := range v.items() {
		switch text := part.get("text"); {
		case text.is(isString):
			a.addText(text.text())
		case strings.Contains(part.get("type").text(), "image"):
			a.size.tokens += imageTokens
		case strings.Contains(part.get("type").text(), "file"):
			a.size.tokens += documentTokens
		}
	}
}

// checkRole refuses a role that is none. Long values are shown by their ends, as the API does.
func (a *asking) checkRole(param string, role *value, known []string, words string) bool {
	switch {
	case role == nil:
		a.missing(param)
	case !a.typed(param, role, isString):
	case !slices.Contains(known, role.text()):
		a.refuse(param, "invalid_value", "Invalid value: '%s'. Supported values are: %s.", clip(role.text()), words)
	default:
		return true
	}
	return false
}

// addTool adds a tool that the answer may call.
func (a *asking) addTool(param string, name, schema *value) {
	switch {
	case name == nil:
		a.missing(param + ".name")
	case !a.typed(param+".name", name, isString):
	case !identifier(name.text(), math.MaxInt):
		a.refuse(param+".name", "invalid_value", "Invalid '%s.name': string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'.", param)
	default:
		a.q.Tools = append(a.q.Tools, Tool{Name: name.kept(), Schema: schema.decode()})
	}
}

// chooseTool reads a tool choice: a word, or an object that names a tool.
func (a *asking) chooseTool(choice *value, name *value) {
	if !choice.given() {
		return
	}
	switch word := choice.kept(); {
	case choice.kind == isString && (word == "none" || word == "auto"):
		a.q.ToolChoice.Mode = word
	case choice.kind == isString && word == "required":
		a.q.ToolChoice.Mode = "any"
	case choice.kind == isString:
		a.refuse("tool_choice", "invalid_value", "Invalid value: '%s'. Supported values are: 'none', 'auto', and 'required'.", clip(word))
	case a.typed("tool_choice", choice, isObject) && name != nil:
		a.q.ToolChoice = ToolChoice{Mode: "tool", Name: name.kept()}
		if !slices.ContainsFunc(a.q.Tools, func(t Tool) bool { return t.Name == name.text() }) {
			a.refuse("tool_choice", "", "Tool choice '%s' not found in 'tools' parameter.", clipID(name.text()))
		}
	}
}

// listed reads a list that must not be empty when it is there.
func (a *asking) listed(param string, v *value) []member {
	switch {
	case !v.given():
	case !a.typed(param, v, isArray):
	case len(v.members) == 0:
		a.refuse(param, "empty_array", "Invalid '%s': empty array. Expected an array with minimum length 1, but got an empty array instead.", param)
	}
	return v.items()
}

// names makes a set.
func names(all ...string) map[string]bool {
	set := make(map[string]bool, len(all))
	for _, name := range all {
		set[name] = true
	}
	return set
}
