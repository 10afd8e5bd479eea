package turn_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/anthropics/anthropic-sdk-go/v2"
	"github.com/anthropics/anthropic-sdk-go/v2/option"

	"holdfast/internal/testnet"
	"holdfast/standin"
	"holdfast/turn"
)

const (
	sonnet = "claude-sonnet-5-5"
	opus   = "claude-opus-5-5"
)

// upstream is an API on a network in memory that keeps what it was asked and what it said.
type upstream struct {
	*anthropic.Client
	server *standin.Server // nil when the upstream is a script

	mu      sync.Mutex
	asked   [][]byte
	headers []http.Header
	said    []*bytes.Buffer
}

// follow is an upstream that plays the steps, one after the other, and then answers.
func follow(t *testing.T, plan standin.Plan, opts ...option.RequestOption) *upstream {
	t.Helper()
	if plan.Reply == "" {
		plan.Reply = reply
	}
	server := standin.New(plan)
	u := serve(t, server, opts...)
	u.server = server
	return u
}

const reply = "Seven parcels left the harbour on Monday and all of them arrived on Tuesday, dry and whole."

// serve is an upstream with any handler.
func serve(t *testing.T, h http.Handler, opts ...option.RequestOption) *upstream {
	t.Helper()
	u := &upstream{}
	n := testnet.New()
	s := n.Serve(t, "api.test:80", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(body))
		said := &bytes.Buffer{}
		u.mu.Lock()
		u.asked, u.headers, u.said = append(u.asked, body), append(u.headers, r.Header.Clone()), append(u.said, said)
		u.mu.Unlock()
		h.ServeHTTP(&overheard{ResponseWriter: w, into: said}, r)
	}))
	client := anthropic.NewClient(append([]option.RequestOption{
		option.WithAPIKey("k"), option.WithBaseURL(s.URL), option.WithHTTPClient(n.Client()), option.WithMaxRetries(0),
	}, opts...)...)
	u.Client = &client
	return u
}

type overheard struct {
	http.ResponseWriter
	into *bytes.Buffer
}

func (o *overheard) Write(p []byte) (int, error) { o.into.Write(p); return o.ResponseWriter.Write(p) }
func (o *overheard) Unwrap() http.ResponseWriter { return o.ResponseWriter }
func (o *overheard) Flush()                      { _ = http.NewResponseController(o.ResponseWriter).Flush() }

// scripted answers with these messages, one after the other and then the last for ever, as JSON or as a stream.
func scripted(messages ...string) http.HandlerFunc {
	n := 0
	return func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		message := messages[min(n, len(messages)-1)]
		n++
		w.Header().Set("request-id", "req_script")
		if bytes.Contains(body, []byte(`"stream":true`)) {
			w.Header().Set("content-type", "text/event-stream")
			_, _ = io.WriteString(w, events(message))
			return
		}
		w.Header().Set("content-type", "application/json")
		_, _ = io.WriteString(w, message)
	}
}

// events is a message as a stream: the deltas are halves, and the model is the one that was asked first.
func events(message string) string {
	var line bytes.Buffer
	must(json.Compact(&line, []byte(message)))
	var m map[string]json.RawMessage
	must(json.Unmarshal(line.Bytes(), &m))
	var content []map[string]json.RawMessage
	must(json.Unmarshal(m["content"], &content))
	var b strings.Builder
	send := func(kind string, fields ...string) {
		b.WriteString("event: " + kind + "\ndata: {\"type\":\"" + kind + "\"" + strings.Join(fields, "") + "}\n\n")
	}
	model := m["model"]
	for _, block := range content {
		if string(block["type"]) == `"fallback"` {
			var from struct{ Model json.RawMessage }
			must(json.Unmarshal(block["from"], &from))
			model = from.Model
			break
		}
	}
	send("message_start", `,"message":{"id":"msg_1","type":"message","role":"assistant","model":`, string(model), `,"content":[],"stop_reason":null,"usage":{"input_tokens":9,"output_tokens":1}}`)
	for i, block := range content {
		index := `,"index":` + string(must1(json.Marshal(i)))
		deltas := map[string]string{"text": "text_delta", "thinking": "thinking_delta", "input": "input_json_delta"}
		start, pieces := map[string]json.RawMessage{}, [][2]string{}
		for key, value := range block {
			start[key] = value
			delta, moves := deltas[key]
			if !moves || key == "text" && string(block["type"]) != `"text"` {
				continue
			}
			text, field := string(value), key
			if key == "input" {
				start[key], field = json.RawMessage(`{}`), "partial_json"
			} else {
				must(json.Unmarshal(value, &text))
				start[key] = json.RawMessage(`""`)
			}
			for _, piece := range []string{text[:len(text)/2], text[len(text)/2:]} {
				pieces = append(pieces, [2]string{delta, `,"` + field + `":` + string(must1(json.Marshal(piece)))})
			}
		}
		send("content_block_start", index, `,"content_block":`, string(must1(json.Marshal(start))))
		for _, p := range pieces {
			send("content_block_delta", index, `,"delta":{"type":"`+p[0]+`"`, p[1], `}`)
		}
		send("content_block_stop", index)
	}
	details := m["stop_details"]
	if details == nil {
		details = json.RawMessage("null")
	}
	container := m["container"]
	if container == nil {
		container = json.RawMessage("null")
	}
	send("message_delta", `,"delta":{"stop_reason":`, string(m["stop_reason"]), `,"stop_sequence":null,"stop_details":`, string(details), `,"container":`, string(container), `},"usage":`, string(m["usage"]))
	send("message_stop")
	return b.String()
}

func must(err error) {
	if err != nil {
		panic(err) //nolint:forbidigo // a mistake in the test itself
	}
}

func must1[T any](v T, err error) T {
	must(err)
	return v
}

// body is the request with the number n, from 1.
func (u *upstream) body(t *testing.T, n int) (b struct {
	Model     string            `json:"model"`
	MaxTokens int               `json:"max_tokens"`
	Messages  []json.RawMessage `json:"messages"`
	Fallbacks json.RawMessage   `json:"fallbacks"`
	Container json.RawMessage   `json:"container"`
},
) {
	t.Helper()
	u.mu.Lock()
	defer u.mu.Unlock()
	if n > len(u.asked) {
		t.Fatalf("there is no request %d, but %d", n, len(u.asked))
	}
	if err := json.Unmarshal(u.asked[n-1], &b); err != nil {
		t.Fatal(err)
	}
	return b
}

func (u *upstream) expect(t *testing.T, requests int) {
	t.Helper()
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.asked) != requests {
		t.Errorf("%d requests arrived, want %d", len(u.asked), requests)
	}
}

// bothWays runs a test in a bubble, without a stream and with one.
func bothWays(t *testing.T, f func(t *testing.T, p turn.Policy)) {
	t.Helper()
	t.Run("whole", func(t *testing.T) { synctest.Test(t, func(t *testing.T) { f(t, turn.Policy{}) }) })
	t.Run("stream", func(t *testing.T) { synctest.Test(t, func(t *testing.T) { f(t, turn.Policy{Stream: true}) }) })
}

func question(text string, maxTokens int64) anthropic.MessageNewParams {
	return anthropic.MessageNewParams{
		Model: sonnet, MaxTokens: maxTokens, Messages: []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock(text))},
	}
}

// withTool is a question that the stand-in answers with a call of the tool.
func withTool(maxTokens int64) anthropic.MessageNewParams {
	p := question("write the file", maxTokens)
	p.Tools = []anthropic.ToolUnionParam{{OfTool: &anthropic.ToolParam{
		Name: "write", InputSchema: anthropic.ToolInputSchemaParam{
			Properties: map[string]any{"path": map[string]any{"type": "string"}, "content": map[string]any{"type": "string"}},
			Required:   []string{"path", "content"},
		},
	}}}
	return p
}

// scriptedEvents answers with these streams as scripted does with messages.
func scriptedEvents(streams ...string) http.HandlerFunc {
	n := 0
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("content-type", "text/event-stream")
		_, _ = io.WriteString(w, streams[min(n, len(streams)-1)])
		n++
	}
}

// lingering answers with a stream and does not close it.
func lingering(stream string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("content-type", "text/event-stream")
		_, _ = io.WriteString(w, stream)
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}
}

// replaced is a message with another stop reason.
func replaced(message, reason string) string {
	var m map[string]json.RawMessage
	must(json.Unmarshal([]byte(message), &m))
	m["stop_reason"] = json.RawMessage(`"` + reason + `"`)
	return string(must1(json.Marshal(m)))
}

// pausedAs is a paused message of a model.
func pausedAs(model string) string { return strings.ReplaceAll(paused, sonnet, model) }
