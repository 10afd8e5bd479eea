package saved_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"holdfast/saved"
)

var paths = []string{messages, chat, responses}

// Whatever an upstream sends, it is refused, or else is the same answer in both forms.
func FuzzGive(f *testing.F) {
	for _, ending := range []string{".json", ".sse"} {
		for _, r := range recordings(f, ending) {
			f.Add(slices.Index(paths, r.path), ending == ".sse", r.text)
		}
	}
	for i, path := range paths {
		f.Add(i, false, good[path])
		f.Add(i, true, stream(f, path, good[path]))
	}
	f.Add(0, false, richMessage)
	f.Add(1, false, richChat)
	f.Add(2, false, richResponse)
	f.Fuzz(func(t *testing.T, api int, streamed bool, text string) {
		path := paths[uint(api)%3]
		answer := asJSON(text)
		if streamed {
			answer = asStream(text)
		}
		whole, err := saved.Give(question(path, false), answer, false)
		if err != nil {
			return
		}
		if !json.Valid(whole.Body) {
			t.Fatalf("%q became %q", text, whole.Body)
		}
		events, err := saved.Give(question(path, true), whole, true)
		if err != nil {
			t.Fatalf("%q was good, and then: %v", whole.Body, err)
		}
		if _, err := saved.Give(question(path, false), events, false); err != nil && !twice(whole.Body) {
			t.Fatalf("%q was good, and its stream %q: %v", whole.Body, events.Body, err)
		}
	})
}

// twice reports whether an object says something twice, which JSON leaves open.
func twice(body []byte) bool {
	text := string(body)
	return repeats(text)
}

// texts are strings with what needs escapes, in pieces of every length.
var texts = rapid.Custom(func(t *rapid.T) string {
	parts := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "word ", "é", "😀", "\"", "\\", "\n", "\t", "\x01", "</p>", "\u2028", strings.Repeat("long ", 90), strings.Repeat("x", 700)}), 1, 12).Draw(t, "parts")
	return strings.Join(parts, "")
})

func quoted(text string) string {
	b, _ := json.Marshal(text)
	return string(b)
}

// Any message survives the way through events and back, to the byte.
func TestMessagesSurviveTheirEvents(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var blocks []string
		for i := range rapid.IntRange(0, 4).Draw(t, "blocks") {
			switch rapid.SampledFrom([]string{"text", "cited", "thinking", "tool_use", "unknown"}).Draw(t, "type") {
			case "text":
				blocks = append(blocks, fmt.Sprintf(`{"type":"text","text":%s}`, quoted(texts.Draw(t, "text"))))
			case "cited":
				blocks = append(blocks, fmt.Sprintf(`{"type":"text","text":%s,"citations":[{"type":"x","cited_text":%s},{"type":"y"}]}`, quoted(texts.Draw(t, "text")), quoted(texts.Draw(t, "cited"))))
			case "thinking":
				blocks = append(blocks, fmt.Sprintf(`{"type":"thinking","thinking":%s,"signature":"c2ln"}`, quoted(texts.Draw(t, "text"))))
			case "tool_use":
				blocks = append(blocks, fmt.Sprintf(`{"type":"tool_use","id":"t%d","name":"n","input":{"a":%s,"b":[1.0,1e9,{}]}}`, i, quoted(texts.Draw(t, "input"))))
			case "unknown":
				blocks = append(blocks, fmt.Sprintf(`{"type":"novelty","what":{"ever":%s}}`, quoted(texts.Draw(t, "what"))))
			}
		}
		blocks = append(blocks, `{"type":"text","text":"The end."}`)
		survives(t, messages, strings.Replace(goodMessage, `{"type":"text","text":"Because."}`, strings.Join(blocks, ","), 1), "")
	})
}

func TestCompletionsSurviveTheirChunks(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var choices []string
		for i := range rapid.IntRange(1, 3).Draw(t, "choices") {
			message := fmt.Sprintf(`"role":"assistant","content":%s,"refusal":null`, quoted(texts.Draw(t, "text")))
			if rapid.Bool().Draw(t, "reasons") {
				message += fmt.Sprintf(`,"reasoning_content":%s`, quoted(texts.Draw(t, "reasoning")))
			}
			if n := rapid.IntRange(0, 3).Draw(t, "calls"); n > 0 {
				calls := make([]string, n)
				for k := range calls {
					calls[k] = fmt.Sprintf(`{"id":"c%d","type":"function","function":{"name":"n","arguments":%s}}`, k, quoted(texts.Draw(t, "arguments")))
				}
				message += `,"tool_calls":[` + strings.Join(calls, ",") + "]"
			}
			choices = append(choices, fmt.Sprintf(`{"index":%d,"message":{%s},"logprobs":null,"finish_reason":"stop"}`, i, message))
		}
		const asks = `{"model":"m","stream_options":{"include_usage":true}}`
		survives(t, chat, strings.Replace(goodChat, `{"index":0,"message":{"role":"assistant","content":"Because.","refusal":null},"finish_reason":"stop"}`, strings.Join(choices, ","), 1), asks)
	})
}

func survives(t *rapid.T, path, text, body string) {
	q := question(path, true)
	if body != "" {
		q.Body = []byte(body)
	}
	events, err := saved.Give(q, asJSON(text), false)
	if err != nil {
		t.Fatal(err)
	}
	q.Stream = false
	back, err := saved.Give(q, events, false)
	if err != nil {
		t.Fatalf("%v in %s", err, events.Body)
	}
	straight, err := saved.Give(q, asJSON(text), false)
	if err != nil {
		t.Fatal(err)
	}
	if string(back.Body) != string(straight.Body) {
		t.Fatalf("came back as\n%s\nwant\n%s", back.Body, straight.Body)
	}
	for line := range strings.Lines(string(events.Body)) {
		if len(line) > 8*1024 {
			t.Fatalf("an event of %d bytes", len(line))
		}
	}
}
