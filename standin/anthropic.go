package standin

import "encoding/json"

// The shapes of the Messages API. Field order is that of the real replies.

type anthropicMessage struct {
	ID           string           `json:"id"`
	Type         string           `json:"type"`
	Role         string           `json:"role"`
	Model        string           `json:"model"`
	Content      []anthropicBlock `json:"content"`
	StopReason   *string          `json:"stop_reason"`
	StopSequence *string          `json:"stop_sequence"`
	StopDetails  *stopDetails     `json:"stop_details"`
	Usage        anthropicUsage   `json:"usage"`
}

type anthropicBlock struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

type stopDetails struct {
	Type        string  `json:"type"`
	Category    *string `json:"category"`
	Explanation *string `json:"explanation"`
}

type anthropicUsage struct {
	InputTokens              int    `json:"input_tokens"`
	CacheCreationInputTokens int    `json:"cache_creation_input_tokens"`
	CacheReadInputTokens     int    `json:"cache_read_input_tokens"`
	OutputTokens             int    `json:"output_tokens"`
	ServiceTier              string `json:"service_tier,omitempty"`
}

var anthropicReasons = [...]string{endOfTurn: "end_turn", outOfTokens: "max_tokens", declined: "refusal"}

func (a answer) anthropicJSON() []byte {
	m := a.anthropicStart()
	if len(a.words) > 0 {
		m.Content = append(m.Content, anthropicBlock{"text", a.text()})
	}
	reason := anthropicReasons[a.ending]
	m.StopReason, m.StopDetails, m.Usage.OutputTokens = &reason, a.stopDetails(), a.usage.Output
	return mustJSON(m)
}

// anthropicStart is the message before its first word.
func (a answer) anthropicStart() anthropicMessage {
	return anthropicMessage{
		ID: a.id("msg_"), Type: "message", Role: "assistant", Model: a.model, Content: []anthropicBlock{},
		Usage: anthropicUsage{InputTokens: a.usage.Input, OutputTokens: min(1, a.usage.Output), ServiceTier: "standard"},
	}
}

func (a answer) stopDetails() *stopDetails {
	if a.ending != declined {
		return nil
	}
	return &stopDetails{"refusal", orNull(a.step.Category), orNull(a.step.Explanation)}
}

func (a answer) anthropicEvents() []event {
	var events []event
	add := func(p part, name string, fields map[string]any) {
		fields["type"] = name
		events = append(events, event{name: name, data: mustJSON(fields), part: p})
	}
	add(preamble, "message_start", map[string]any{"message": a.anthropicStart()})
	if len(a.words) > 0 {
		add(preamble, "content_block_start", map[string]any{"index": 0, "content_block": anthropicBlock{Type: "text"}})
		add(preamble, "ping", map[string]any{})
		for _, word := range a.words {
			add(content, "content_block_delta", map[string]any{"index": 0, "delta": anthropicBlock{"text_delta", word}})
			events[len(events)-1].text = word
		}
		add(tail, "content_block_stop", map[string]any{"index": 0})
	}
	delta := map[string]any{"stop_reason": anthropicReasons[a.ending], "stop_sequence": nil}
	if details := a.stopDetails(); details != nil {
		delta["stop_details"] = details
	}
	// The usage here is the sum for the whole message, not what came since message_start.
	add(tail, "message_delta", map[string]any{"delta": delta, "usage": anthropicUsage{InputTokens: a.usage.Input, OutputTokens: a.usage.Output}})
	add(final, "message_stop", map[string]any{})
	return events
}

func orNull(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// mustJSON encodes the stand-in's own shapes, which always can be.
func mustJSON(v any) []byte {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return text
}
