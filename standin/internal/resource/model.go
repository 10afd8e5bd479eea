package resource

import (
	"fmt"
	"slices"
	"time"

	"holdfast/internal/wire"
	"holdfast/standin/internal/request"
)

// Models are the models of both dialects. The zero value is ready to use.
type Models struct{}

// List returns a page of the models, the latest first; in the OpenAI dialect all of them, as there are no pages there.
func (Models) List(dialect wire.Dialect, page request.Page) ([]byte, *request.Refusal) {
	if dialect == wire.DialectOpenAI {
		return encode(struct {
			Object string      `json:"object"`
			Data   []openModel `json:"data"`
		}{"list", openModels}), nil
	}
	part, more, refusal := cut(claudeModels, page, func(one claudeModel) string { return one.id })
	if refusal != nil {
		return nil, refusal
	}
	data := make([]modelObject, 0, len(part))
	for _, one := range part {
		data = append(data, one.object())
	}
	return encode(newList(data, more, func(one modelObject) string { return one.ID })), nil
}

// Get returns a model by its id or an alias of it.
func (Models) Get(dialect wire.Dialect, id string) ([]byte, *request.Refusal) {
	if dialect == wire.DialectOpenAI {
		at := slices.IndexFunc(openModels, func(one openModel) bool { return one.ID == id })
		if at < 0 {
			return nil, &request.Refusal{
				Status: 404, Type: "invalid_request_error", Code: "model_not_found", Param: "model",
				Message: fmt.Sprintf("The model '%s' does not exist", id),
			}
		}
		return encode(openModels[at]), nil
	}
	at := slices.IndexFunc(claudeModels, func(one claudeModel) bool { return one.id == id || one.alias == id && id != "" })
	if at < 0 {
		return nil, notFound("model: " + id)
	}
	return encode(claudeModels[at].object()), nil
}

// modelObject is a model in the shape of the Models API.
type modelObject struct {
	Type           string       `json:"type"`
	ID             string       `json:"id"`
	DisplayName    string       `json:"display_name"`
	CreatedAt      stamp        `json:"created_at"`
	Lifecycle      string       `json:"lifecycle"`
	DeprecatedAt   stamp        `json:"deprecated_at"`
	RetiresAt      stamp        `json:"retires_at"`
	Line           string       `json:"line"`
	MaxInputTokens int          `json:"max_input_tokens"`
	MaxTokens      int          `json:"max_tokens"`
	Capabilities   capabilities `json:"capabilities"`
}

type capabilities struct {
	Batch             support `json:"batch"`
	Citations         support `json:"citations"`
	CodeExecution     support `json:"code_execution"`
	ContextManagement struct {
		support
		ClearThinking support `json:"clear_thinking_20251015"`
		ClearToolUses support `json:"clear_tool_uses_20250919"`
		Compact       support `json:"compact_20260112"`
	} `json:"context_management"`
	Effort struct {
		support
		Low    support `json:"low"`
		Medium support `json:"medium"`
		High   support `json:"high"`
		XHigh  support `json:"xhigh"`
		Max    support `json:"max"`
	} `json:"effort"`
	ImageInput  support `json:"image_input"`
	PDFInput    support `json:"pdf_input"`
	ServerTools struct {
		support
		CodeExecution support `json:"code_execution"`
		WebSearch     support `json:"web_search"`
	} `json:"server_tools"`
	StructuredOutputs support `json:"structured_outputs"`
	Thinking          struct {
		support
		Types struct {
			Adaptive     support `json:"adaptive"`
			BetweenTools support `json:"between_tools"`
			Disabled     support `json:"disabled"`
			Enabled      support `json:"enabled"`
		} `json:"types"`
	} `json:"thinking"`
}

type support struct {
	Supported bool `json:"supported"`
}

// object shows the model.
func (m claudeModel) object() modelObject {
	object := modelObject{
		Type: "model", ID: m.id, DisplayName: m.name, CreatedAt: stamp(day(m.released)), Lifecycle: "active", Line: m.line,
		MaxInputTokens: m.window, MaxTokens: m.output,
	}
	if m.retires != "" {
		object.Lifecycle = "deprecated"
		object.DeprecatedAt, object.RetiresAt = stamp(day(m.deprecated)), stamp(day(m.retires))
	}
	yes := support{true}
	can := &object.Capabilities
	can.Batch, can.Citations, can.CodeExecution, can.ImageInput, can.PDFInput, can.StructuredOutputs = yes, yes, yes, yes, yes, yes
	can.ServerTools.support, can.ServerTools.CodeExecution, can.ServerTools.WebSearch = yes, yes, yes
	can.ContextManagement.support, can.ContextManagement.ClearThinking, can.ContextManagement.ClearToolUses = yes, yes, yes
	can.ContextManagement.Compact.Supported = m.window > smallWindow

	has := func(words []string, word string) support { return support{slices.Contains(words, word)} }
	can.Effort.support = support{len(m.efforts) > 0}
	can.Effort.Low, can.Effort.Medium, can.Effort.High = has(m.efforts, "low"), has(m.efforts, "medium"), has(m.efforts, "high")
	can.Effort.XHigh, can.Effort.Max = has(m.efforts, "xhigh"), has(m.efforts, "max")
	can.Thinking.support = yes
	can.Thinking.Types.Adaptive, can.Thinking.Types.Enabled = has(m.thinking, "adaptive"), has(m.thinking, "enabled")
	can.Thinking.Types.Disabled = has(m.thinking, "disabled")
	can.Thinking.Types.BetweenTools = has(m.thinking, "between_tools")
	return object
}

// day reads a date of the table. "" is the zero time.
func day(date string) time.Time {
	t, _ := time.Parse(time.DateOnly, date)
	return t
}

// openModel is a model in the shape of the OpenAI API.
type openModel struct {
	ID           string  `json:"id"`
	Object       string  `json:"object"`
	Created      int64   `json:"created"`
	OwnedBy      string  `json:"owned_by"`
	ShutdownDate *string `json:"shutdown_date"`
}
