package request

import (
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// terms are what decides over a Messages request besides its body.
type terms struct {
	version  string // anthropic-version
	betas    string // anthropic-beta
	settings Settings
}

// reading is one Messages request while it is read. The first refusal stands: all checks go on behind it without effect,
// so that the order of the calls is the order in which the API finds mistakes.
type reading struct {
	terms
	q       *Request
	model   model
	refusal *Refusal

	prompt strings.Builder
	size   size
	marks  int  // cache_control, so far
	budget bool // thinking is on with a budget of tokens
	turns  []turn
	// continues: the API holds the turns before these, as a thread. Which calls they made is not known here.
	continues bool
	server    []string // names of tools that the server runs
}

func (r *reading) refuse(format string, args ...any) {
	if r.refusal == nil {
		r.refusal = invalid(format, args...)
	}
}

// standing is when a field of the body is known.
type standing uint8

const (
	always   standing = iota + 1
	inBeta            // with any beta: which beta knows which field is not repeated here
	sampling          // until 2026-10-21
)

// The fields of the two bodies: anthropic-sdk-go v2.15.0, MessageNewParams, BetaMessageNewParams and their counterparts
// for count_tokens; v1.84.0 for the sampling parameters.
var (
	messageFields = map[string]standing{
		"model": always, "messages": always, "max_tokens": always, "stream": always, "inference_geo": always, "container": always,
		"speed": always, "cache_control": always, "diagnostics": always, "metadata": always, "output_config": always,
		"service_tier": always, "stop_sequences": always, "system": always, "thinking": always, "tool_choice": always, "tools": always,
		"fallback_credit_token": inBeta, "fallbacks": inBeta, "thread": inBeta, "previous_message_id": inBeta, "billing_policy": inBeta,
		"compaction": inBeta, "context_management": inBeta, "mcp_servers": inBeta, "output_format": inBeta,
		"temperature": sampling, "top_p": sampling, "top_k": sampling,
	}
	countFields = map[string]standing{
		"model": always, "messages": always, "speed": always, "cache_control": always, "output_config": always, "system": always,
		"thinking": always, "tool_choice": always, "tools": always,
		"billing_policy": inBeta, "compaction": inBeta, "context_management": inBeta, "mcp_servers": inBeta, "output_format": inBeta,
	}
)

// readMessages reads the body of a message, of a count of tokens, or of an item of a batch.
func (q *Request) readMessages(body *value, terms terms) *Refusal {
	r := reading{terms: terms, q: q}
	q.Model = body.get("model").kept()
	q.Stream = body.get("stream").is(isTrue)
	r.model = modelOf(q.Model)
	r.continues = body.get("thread").get("type").text() == "continue"

	r.checkModel(body.get("model"))
	r.readMaxTokens(body)
	r.readOptions(body)
	r.readTools(body.get("tools"))
	r.readToolChoice(body.get("tool_choice"))
	r.readSystem(body.get("system"))
	r.readTurns(body.get("messages"))
	r.checkFields(body)
	r.readFallbacks(body.get("fallbacks"))
	r.readThinking(body.get("thinking"))
	r.checkSampling(body)
	r.checkTurns()

	q.Prompt = r.prompt.String()
	q.Input = r.size.total()
	if body.get("cache_control").given() {
		q.Cacheable = q.Input
	}
	r.checkLength()
	return r.refusal
}

// checkModel refuses a name that can be none, and the names that the plan does not want to know.
func (r *reading) checkModel(name *value) {
	switch {
	case name == nil:
		r.refuse("model: Field required")
	case name.kind != isString:
		r.refuse("model: Input should be a valid string")
	case r.q.Model == "":
		r.refuse("model: String should have at least 1 character")
	case len(r.q.Model) > 256:
		r.refuse("model: String should have at most 256 characters")
	case r.refusal == nil && (!named(r.q.Model) || slices.Contains(r.settings.UnknownModels, r.q.Model)):
		r.refusal = &Refusal{Status: http.StatusNotFound, Message: "model: " + r.q.Model}
	}
}

func (r *reading) readMaxTokens(body *value) {
	limit := body.get("max_tokens")
	if r.q.Endpoint == CountTokens {
		return
	}
	if body.get("messages") == nil {
		r.refuse("messages: Field required")
	}
	if limit == nil {
		r.refuse("max_tokens: Field required")
		return
	}
	n, ok := r.integer("max_tokens", limit, 1)
	if highest := r.model.maxTokens(); ok && highest > 0 && n > highest {
		r.refuse("max_tokens: %d > %d, which is the maximum allowed number of output tokens for %s", n, highest, r.q.Model)
	}
	r.q.MaxTokens = n
}

// integer reads a whole number of at least lowest. As for the API, 10.0 is one.
func (r *reading) integer(name string, v *value, lowest int) (int, bool) {
	if v.kind != isNumber {
		r.refuse("%s: Input should be a valid integer", name)
		return 0, false
	}
	n, err := strconv.Atoi(v.raw)
	if err != nil {
		f := v.number()
		if f != math.Trunc(f) {
			r.refuse("%s: Input should be a valid integer, got a number with a fractional part", name)
			return 0, false
		}
		n = int(max(-1<<53, min(f, 1<<53)))
	}
	if n < lowest {
		r.refuse("%s: Input should be greater than or equal to %d", name, lowest)
		return 0, false
	}
	return n, true
}

// readOptions reads the smaller fields.
func (r *reading) readOptions(body *value) {
	if v := body.get("stream"); v.given() && v.kind != isTrue && v.kind != isFalse {
		r.refuse("stream: Input should be a valid boolean")
	}
	if v := body.get("service_tier"); v.given() && v.text() != "auto" && v.text() != "standard_only" {
		r.refuse("service_tier: Input should be 'auto' or 'standard_only'")
	}
	if v := body.get("metadata"); v.given() {
		if !v.is(isObject) {
			r.refuse("metadata: Input should be a valid dictionary")
		} else if id := v.get("user_id"); id.given() && id.kind != isString {
			r.refuse("metadata.user_id: Input should be a valid string")
		}
	}
	stops := body.get("stop_sequences")
	if stops.given() && stops.kind != isArray {
		r.refuse("stop_sequences: Input should be a valid list")
	}
	for i, m := range stops.items() {
		if m.kind != isString {
			r.refuse("stop_sequences.%d: Input should be a valid string", i)
			continue
		}
		text := m.kept()
		if strings.TrimSpace(text) == "" {
			r.refuse("stop_sequences: each stop sequence must contain non-whitespace")
		}
		r.q.StopSequences = append(r.q.StopSequences, text)
	}
	output := body.get("output_config")
	if output.given() && output.kind != isObject {
		r.refuse("output_config: Input should be a valid dictionary")
	}
	format := output.get("format")
	if !format.given() {
		format = body.get("output_format")
	}
	if format.get("type").text() == "json_schema" {
		if r.q.Schema = format.get("schema").decode(); r.q.Schema == nil {
			r.refuse("output_config.format.schema: Field required")
		}
	}
}

// checkFields refuses the first field that is not known.
func (r *reading) checkFields(body *value) {
	known := messageFields
	if r.q.Endpoint == CountTokens {
		known = countFields
	}
	for i := range body.members {
		key := body.members[i].key
		switch at := known[key]; {
		case at == always, at == inBeta && r.betas != "", at == sampling && r.version != version2026:
		default:
			r.refuse("%s: Extra inputs are not permitted", clip(key))
			return
		}
	}
}

// readSystem reads the system prompt.
func (r *reading) readSystem(system *value) {
	switch {
	case !system.given():
	case system.kind == isString:
		r.addText(system.text())
	case system.kind != isArray:
		r.refuse("system: Input should be a valid list")
	}
	for i, m := range system.items() {
		text := m.get("text")
		switch {
		case m.kind != isObject:
			r.refuse("system.%d: Input should be a valid dictionary", i)
			return
		case m.get("type").text() != "text":
			r.refuse("system.%d.type: Input should be 'text'", i)
			return
		case text == nil:
			r.refuse("system.%d.text: Field required", i)
			return
		case text.kind != isString:
			r.refuse("system.%d.text: Input should be a valid string", i)
			return
		case text.text() == "":
			r.refuse("system: text content blocks must be non-empty")
		}
		if key := unknownField(&m.value, "text"); key != "" {
			r.refuse("system.%d.%s: Extra inputs are not permitted", i, clip(key))
		}
		r.addText(text.text())
		r.mark(&m.value)
	}
}

// addText adds a text to the prompt. It ends with LF, so that nothing is found across two of them.
func (r *reading) addText(text string) {
	r.prompt.WriteString(text)
	r.prompt.WriteByte('\n')
	r.size.add(text)
}

// mark notes that everything up to this part may be cached.
func (r *reading) mark(part *value) {
	if !part.get("cache_control").given() {
		return
	}
	r.marks++
	r.q.Cacheable = r.size.total()
	if r.marks == 5 {
		r.refuse("A maximum of 4 blocks with cache_control may be provided. Found 5.")
	}
}

// checkSampling refuses sampling parameters that are out of range, or that the model does not take.
func (r *reading) checkSampling(body *value) {
	if r.version == version2026 || r.q.Endpoint == CountTokens {
		return // checkFields has refused them
	}
	temperature, topP, topK := body.get("temperature"), body.get("top_p"), body.get("top_k")
	for _, p := range []struct {
		name string
		v    *value
	}{{"temperature", temperature}, {"top_p", topP}} {
		switch {
		case !p.v.given():
		case p.v.kind != isNumber:
			r.refuse("%s: Input should be a valid number", p.name)
		case p.v.number() < 0 || p.v.number() > 1:
			r.refuse("%s: range: 0..1", p.name)
		case p.v.number() != 1 && r.model.since(47):
			r.refuse("`%s` is deprecated for this model.", p.name)
		}
	}
	if topK.given() {
		if _, ok := r.integer("top_k", topK, 0); ok && r.model.since(47) {
			r.refuse("`top_k` is deprecated for this model.")
		}
	}
	switch {
	case temperature.given() && topP.given() && r.model.since(45):
		r.refuse("`temperature` and `top_p` cannot both be specified for this model. Please use only one.")
	case r.q.Thinking && temperature.given() && temperature.number() != 1:
		r.refuse("`temperature` may only be set to 1 when thinking is enabled.")
	case r.q.Thinking && topK.given():
		r.refuse("`top_k` must be unset when thinking is enabled.")
	}
}

// checkLength refuses a prompt that does not fit. Since 4.5 the answer may overrun the window and just ends there.
func (r *reading) checkLength() {
	window := r.settings.Window
	if window == 0 {
		window = r.model.window()
		if strings.Contains(r.betas, "context-1m-") { // the window of Sonnet 4 and 4.5 under their beta
			window = max(window, 1_000_000)
		}
	}
	switch {
	case window <= 0 || r.q.Endpoint == CountTokens:
	case r.q.Input > window:
		r.refuse("prompt is too long: %d tokens > %d maximum", r.q.Input, window)
	case r.model.before(45) && r.q.Input+r.q.MaxTokens > window:
		r.refuse("input length and `max_tokens` exceed context limit: %d + %d > %d, decrease input length or `max_tokens` and try again", r.q.Input, r.q.MaxTokens, window)
	}
}
