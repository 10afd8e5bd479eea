package failover_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"holdfast/internal/sse"
)

// caller is somebody with a base URL and no library: it sends one request and reads as strictly as the SDKs do, so an
// event that is no JSON fails the call, and so does a stream without its last event.
type caller struct {
	path, model string
	stream      bool
}

// heard is what the caller was given for one call.
type heard struct {
	status int
	header http.Header
	text   string
	model  string // that answered, by its own word
	stop   string
	input  int
	output int
	// told is what says that this is no answer: an error status, an error event, a broken transfer, an event that
	// cannot be read. Empty with whole false is a quiet end, the worst of all.
	told  string
	whole bool
	took  time.Duration
}

func (c caller) body() string {
	more := `,"max_tokens":4096`
	if c.path != messagesPath {
		more = `,"max_completion_tokens":4096`
	}
	if c.stream {
		more += `,"stream":true`
		if c.path != messagesPath {
			more += `,"stream_options":{"include_usage":true}`
		}
	}
	return fmt.Sprintf(`{"model":%q%s,"messages":[{"role":"user","content":"Tell a story of sixty words."}]}`, c.model, more)
}

func (c caller) call(ctx context.Context, client *http.Client, url string) (h heard) {
	start := time.Now()
	defer func() { h.took = time.Since(start) }()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url+c.path, strings.NewReader(c.body()))
	if err != nil {
		return heard{told: err.Error()}
	}
	req.Header.Set("Content-Type", "application/json")
	if c.path == messagesPath {
		req.Header.Set("X-Api-Key", "sk-test")
		req.Header.Set("Anthropic-Version", "2023-06-01")
	} else {
		req.Header.Set("Authorization", "Bearer sk-test")
	}
	resp, err := client.Do(req)
	if err != nil {
		return heard{told: "no reply"}
	}
	defer resp.Body.Close()
	h.status, h.header = resp.StatusCode, resp.Header
	switch {
	case resp.StatusCode != http.StatusOK:
		body, _ := io.ReadAll(resp.Body)
		h.told = fmt.Sprintf("status %d %s", resp.StatusCode, errorOf(body))
	case c.stream:
		h.listen(resp.Body)
	default:
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			h.told = "a broken transfer"
			return h
		}
		h.read(body)
		h.whole = h.told == "" && h.stop != ""
	}
	return h
}

// errorOf is the type or code of an error in either dialect.
func errorOf(body []byte) string {
	var e struct {
		Error struct{ Type, Code string }
	}
	if json.Unmarshal(body, &e) != nil {
		return "without a readable error"
	}
	return cmp.Or(e.Error.Code, e.Error.Type)
}

// said is every shape in which either API says something, laid over each other.
type said struct {
	Type       string
	Model      string
	Message    *said
	StopReason string `json:"stop_reason"`
	Delta      struct {
		Text       string
		StopReason string `json:"stop_reason"`
	}
	Content []struct{ Text string }
	Choices []struct {
		Delta, Message struct{ Content string }
		FinishReason   string `json:"finish_reason"`
	}
	Usage *struct {
		Input      int `json:"input_tokens"`
		Output     int `json:"output_tokens"`
		Prompt     int `json:"prompt_tokens"`
		Completion int `json:"completion_tokens"`
	}
	Error json.RawMessage
}

// read takes an answer, or an event of one.
func (h *heard) read(data []byte) {
	var s said
	if json.Unmarshal(data, &s) != nil {
		h.told = cmp.Or(h.told, "an event that cannot be read")
		return
	}
	if len(s.Error) > 0 {
		h.told = cmp.Or(h.told, "an error event, "+errorOf(data))
	}
	h.take(&s)
}

func (h *heard) take(s *said) {
	if s.Message != nil {
		h.take(s.Message)
	}
	h.model = cmp.Or(h.model, s.Model)
	h.stop = cmp.Or(h.stop, s.StopReason, s.Delta.StopReason)
	h.text += s.Delta.Text
	for _, block := range s.Content {
		h.text += block.Text
	}
	for _, choice := range s.Choices {
		h.text += choice.Delta.Content + choice.Message.Content
		h.stop = cmp.Or(h.stop, choice.FinishReason)
	}
	if u := s.Usage; u != nil { // counts are cumulative: the last one holds
		h.input = cmp.Or(u.Input, u.Prompt, h.input)
		h.output = cmp.Or(u.Output, u.Completion, h.output)
	}
}

// listen reads a stream to its end.
func (h *heard) listen(body io.Reader) {
	ended := false
	for r := sse.NewReader(body, 0); ; {
		e, err := r.Next()
		switch {
		case err == io.EOF:
			h.whole = ended && h.stop != "" && h.told == ""
			return
		case err != nil:
			h.told = cmp.Or(h.told, "a broken transfer")
			return
		case ended:
			h.told = cmp.Or(h.told, "more after the end")
		case e.Name == "message_stop", bytes.Equal(bytes.TrimSpace(e.Data), []byte("[DONE]")):
			ended = !e.Unterminated
		default:
			h.read(e.Data)
		}
	}
}
