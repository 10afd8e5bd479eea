package standin

// The shapes of chat completions.

// created is the time of every answer: the real clock would make two runs of
// one plan differ.
const created = 1_780_000_000

type openAIUsage struct {
	PromptTokens     int `json:"prompt_tokens"`
	CompletionTokens int `json:"completion_tokens"`
	TotalTokens      int `json:"total_tokens"`
}

var openAIReasons = [...]string{endOfTurn: "stop", outOfTokens: "length", declined: "content_filter"}

func (a answer) openAIUsage() openAIUsage {
	return openAIUsage{a.usage.Input, a.usage.Output, a.usage.Input + a.usage.Output}
}

// openAIObject is a completion or a chunk of one with a single choice.
func (a answer) openAIObject(object, part string, value any, reason *string) map[string]any {
	return map[string]any{
		"id": a.id("chatcmpl-"), "object": object, "created": created, "model": a.model,
		"choices": []any{map[string]any{"index": 0, part: value, "logprobs": nil, "finish_reason": reason}},
	}
}

func (a answer) openAIJSON() []byte {
	message := map[string]any{"role": "assistant", "content": orNull(a.text()), "refusal": orNull(a.step.Explanation)}
	completion := a.openAIObject("chat.completion", "message", message, &openAIReasons[a.ending])
	completion["usage"] = a.openAIUsage()
	return mustJSON(completion)
}

func (a answer) openAIEvents() []event {
	var events []event
	add := func(p part, text string, delta map[string]any, reason *string) {
		data := mustJSON(a.openAIObject("chat.completion.chunk", "delta", delta, reason))
		events = append(events, event{data: data, part: p, text: text})
	}
	add(preamble, "", map[string]any{"role": "assistant", "content": ""}, nil)
	for _, word := range a.words {
		add(content, word, map[string]any{"content": word}, nil)
	}
	add(tail, "", map[string]any{}, &openAIReasons[a.ending])
	if a.details {
		chunk := a.openAIObject("chat.completion.chunk", "delta", nil, nil)
		chunk["choices"], chunk["usage"] = []any{}, a.openAIUsage()
		events = append(events, event{data: mustJSON(chunk), part: tail})
	}
	return append(events, event{data: []byte("[DONE]"), part: final})
}
