package saved_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"holdfast/internal/sse"
	"holdfast/saved"
)

const (
	messages  = "/v1/messages"
	chat      = "/v1/chat/completions"
	responses = "/v1/responses"
)

var bodies = map[string]string{
	messages:  `{"model":"m","max_tokens":100,"messages":[{"role":"user","content":"Why?"}]}`,
	chat:      `{"model":"m","messages":[{"role":"user","content":"Why?"}]}`,
	responses: `{"model":"m","input":"Why?"}`,
}

func question(path string, stream bool) *saved.Question {
	return &saved.Question{
		Method: http.MethodPost, Path: path, Stream: stream, Body: []byte(bodies[path]),
		Header: http.Header{"Anthropic-Version": {"2023-06-01"}},
	}
}

func asJSON(text string) *saved.Answer {
	return &saved.Answer{ContentType: "application/json", Body: []byte(text), At: day}
}

func asStream(text string) *saved.Answer {
	return &saved.Answer{ContentType: "text/event-stream; charset=utf-8", Body: []byte(text), At: day}
}

var day = time.Date(2026, 3, 14, 15, 9, 0, 0, time.UTC)

// Answers in all dialects, and what is wrong with them.
const (
	goodMessage  = `{"id":"msg_1","type":"message","role":"assistant","model":"claude-sonnet-5-5","content":[{"type":"text","text":"Because."}],"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":9,"output_tokens":3}}`
	goodChat     = `{"id":"chatcmpl-1","object":"chat.completion","created":1,"model":"gpt-5","choices":[{"index":0,"message":{"role":"assistant","content":"Because.","refusal":null},"finish_reason":"stop"}],"usage":{"prompt_tokens":9,"completion_tokens":3,"total_tokens":12}}`
	goodResponse = `{"id":"resp_1","object":"response","created_at":1,"status":"completed","completed_at":2,"error":null,"incomplete_details":null,"model":"gpt-5","output":[{"id":"msg_1","type":"message","status":"completed","content":[{"type":"output_text","annotations":[],"logprobs":[],"text":"Because."}],"role":"assistant"}],"usage":{"input_tokens":9,"output_tokens":3,"total_tokens":12}}`
)

var good = map[string]string{messages: goodMessage, chat: goodChat, responses: goodResponse}

// stream returns an answer as the events of its API.
func stream(t testing.TB, path, text string) string {
	t.Helper()
	a, err := saved.Give(question(path, true), asJSON(text), false)
	if err != nil {
		t.Fatal(err)
	}
	return string(a.Body)
}

func TestB177OnlyCompleteGoodAnswersAreKept(t *testing.T) {
	t.Parallel()
	type row struct {
		name, path string
		answer     *saved.Answer
		why        string // "" for a good one
	}
	change := func(path, old, changed string) string {
		if !strings.Contains(good[path], old) {
			t.Fatalf("%s holds no %s", path, old)
		}
		return strings.Replace(good[path], old, changed, 1)
	}
	message := func(old, changed string) *saved.Answer { return asJSON(change(messages, old, changed)) }
	text := `[{"type":"text","text":"Because."}]`
	rows := []row{
		{"a message", messages, asJSON(goodMessage), ""},
		{"a completion", chat, asJSON(goodChat), ""},
		{"a response", responses, asJSON(goodResponse), ""},
		{"a message that met a stop sequence", messages, message(`"end_turn"`, `"stop_sequence"`), ""},
		{"a tool call", messages, asJSON(strings.Replace(change(messages, text, `[{"type":"tool_use","id":"t","name":"n","input":{}}]`), "end_turn", "tool_use", 1)), ""},
		{"packed with gzip", messages, asJSON(packed(t, goodMessage)), ""},
		{"cut at max_tokens", messages, message(`"end_turn"`, `"max_tokens"`), `stop_reason is "max_tokens"`},
		{"out of context window", messages, message(`"end_turn"`, `"model_context_window_exceeded"`), `stop_reason is "model_context_window_exceeded"`},
		{"paused", messages, message(`"end_turn"`, `"pause_turn"`), `stop_reason is "pause_turn"`},
		{"refused", messages, message(`"end_turn"`, `"refusal"`), "anthropic-refusal"},
		{"a reason nobody knows", messages, message(`"end_turn"`, `"compaction"`), `stop_reason is "compaction"`},
		{"no reason", messages, message(`"end_turn"`, `null`), `stop_reason is ""`},
		{"no content", messages, message(text, `[]`), "200-no-content"},
		{"thinking alone", messages, message(text, `[{"type":"thinking","thinking":"Hm","signature":"s"}]`), "it says nothing"},
		{"an error with status 200", messages, asJSON(`{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`), "overloaded_error"},
		{"an HTML page", messages, asJSON(`<html>busy</html>`), "it is not JSON"},
		{"half of it", messages, asJSON(goodMessage[:len(goodMessage)/2]), "it is not JSON"},
		{"nothing", messages, asJSON(``), "it is not JSON"},
		{"torn gzip", messages, asJSON(packed(t, goodMessage)[:60]), "torn"},
		{"a completion cut at its length", chat, asJSON(change(chat, `"stop"`, `"length"`)), `finish_reason is "length"`},
		{"a filtered completion", chat, asJSON(change(chat, `"stop"`, `"content_filter"`)), "content_filter"},
		{"a completion that refuses", chat, asJSON(change(chat, `"refusal":null`, `"refusal":"I cannot"`)), "refuses"},
		{"an empty completion", chat, asJSON(change(chat, `"Because."`, `""`)), "200-empty-choice"},
		{"a second choice cut off", chat, asJSON(change(chat, `"finish_reason":"stop"}]`, `"finish_reason":"stop"},{"index":1,"message":{"role":"assistant","content":"B"},"finish_reason":"length"}]`)), `finish_reason is "length"`},
		{"an incomplete response", responses, asJSON(change(responses, `"completed"`, `"incomplete"`)), `status is "incomplete"`},
		{"a failed response", responses, asJSON(change(responses, `"completed"`, `"failed"`)), ""},
		{"a response that refuses", responses, asJSON(change(responses, `"type":"output_text","annotations":[],"logprobs":[],"text":"Because."`, `"type":"refusal","refusal":"I cannot"`)), "refuses"},
		{"a response with an item cut off", responses, asJSON(change(responses, `"type":"message","status":"completed"`, `"type":"message","status":"incomplete"`)), "an item is incomplete"},
		{"a response without output", responses, asJSON(change(responses, `"text":"Because."`, `"text":""`)), "it says nothing"},
	}
	for path := range good {
		whole := stream(t, path, good[path])
		events := strings.SplitAfter(strings.TrimSuffix(whole, "\n\n"), "\n\n")
		rows = append(rows,
			row{"a stream", path, asStream(whole), ""},
			row{"a stream with comments and CRLF", path, asStream(": hello\r\n\r\n" + strings.ReplaceAll(whole, "\n", "\r\n")), ""},
			row{"a stream with an error", path, asStream(events[0] + "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\"}}\n\n"), "the stream holds an error"},
			row{"a stream with a line that cannot be read", path, asStream(events[0] + "data: {\"a\":\n\n" + strings.Join(events[1:], "")), "the stream holds an error"},
		)
		for n := range events { // also without its last event, whatever the dialect takes for its end
			rows = append(rows, row{fmt.Sprintf("a stream cut after %d events", n), path, asStream(strings.Join(events[:n], "")), "the stream has no end"})
		}
	}
	for _, r := range rows {
		t.Run(r.path+" "+r.name, func(t *testing.T) {
			_, err := saved.Give(question(r.path, false), r.answer, false)
			if r.name == "a failed response" {
				r.why = err.Error() // whatever rule says so
			}
			if (err != nil) != (r.why != "") || err != nil && (!errors.Is(err, saved.ErrNotGood) || !strings.Contains(err.Error(), r.why)) {
				t.Errorf("got %v, want %q", err, r.why)
			}
		})
	}
}

func packed(t *testing.T, text string) string {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// recording is a recorded reply of a real API.
type recording struct{ name, path, text string }

func recordings(t testing.TB, ending string) []recording {
	t.Helper()
	var all []recording
	for dir, path := range map[string]string{"messages": messages, "chat": chat, "responses": responses} {
		files, err := filepath.Glob(filepath.Join("..", "standin", "testdata", "recorded", dir, "*"+ending))
		if err != nil || len(files) == 0 {
			t.Fatalf("no recordings of %s: %v", dir, err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(file, "refusal") {
				all = append(all, recording{dir + "/" + filepath.Base(file), path, string(text)})
			}
		}
	}
	return all
}

// Whatever form a recorded answer has, it comes out in the other one, and back again as it was.
func TestRecordedAnswersComeInBothForms(t *testing.T) {
	t.Parallel()
	for _, r := range recordings(t, ".json") {
		t.Run(r.name, func(t *testing.T) {
			events := give(t, r.path, true, asJSON(r.text))
			back := give(t, r.path, false, asStream(events))
			want, got := tree(t, r.text), tree(t, back)
			if r.path == chat { // the counts are in a stream for whoever asks for them
				delete(want.(map[string]any), "usage")
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("JSON, events, JSON (-want +got):\n%s", diff)
			}
		})
	}
	for _, r := range recordings(t, ".sse") {
		t.Run(r.name, func(t *testing.T) {
			whole := give(t, r.path, false, asStream(r.text))
			events := give(t, r.path, true, asStream(r.text))
			if diff := cmp.Diff(shapes(t, r.text, r.path == chat), shapes(t, events, r.path == chat)); diff != "" {
				t.Errorf("the events differ from those of the API (-API +ours):\n%s", diff)
			}
			if again := give(t, r.path, false, asStream(events)); r.path != chat && again != whole {
				t.Errorf("events, JSON, events, JSON is\n%s, want\n%s", again, whole)
			}
		})
	}
}

func give(t testing.TB, path string, stream bool, a *saved.Answer) string {
	t.Helper()
	given, err := saved.Give(question(path, stream), a, false)
	if err != nil {
		t.Fatal(err)
	}
	return string(given.Body)
}

func tree(t testing.TB, text string) any {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return v
}

// shapes tells the events of a stream by name and by the names of their members, in order. Runs of the same are one, and
// what may be there or not is left out: pings, padding and, in chunks, the counts.
func shapes(t testing.TB, text string, chunks bool) []string {
	t.Helper()
	var list []string
	events := sse.NewReader(strings.NewReader(text), 0)
	for {
		event, err := events.Next()
		if err != nil {
			return list
		}
		shape := event.Name
		if string(event.Data) != "[DONE]" {
			shape += " " + shapeOf(t, event.Data, chunks, "")
		}
		if event.Name != "ping" && !(chunks && strings.Contains(string(event.Data), `"choices":[]`)) && (len(list) == 0 || list[len(list)-1] != shape) {
			list = append(list, shape)
		}
	}
}

func shapeOf(t testing.TB, text []byte, chunks bool, in string) string {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(text))
	if token, err := d.Token(); err != nil || token != json.Delim('{') {
		return ""
	}
	var parts []string
	for d.More() {
		key, _ := d.Token()
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			t.Fatal(err)
		}
		name := key.(string)
		switch name {
		case "obfuscation":
			continue
		case "usage":
			if chunks {
				continue
			}
		case "delta", "content_block", "message", "choices", "item", "part", "tool_calls", "function":
			value = bytes.TrimSuffix(bytes.TrimPrefix(value, []byte("[")), []byte("]"))
			name += "{" + shapeOf(t, value, chunks, name) + "}"
		case "type":
			name += "=" + string(value)
		}
		parts = append(parts, name)
	}
	slices.Sort(parts)
	return strings.Join(parts, " ")
}
