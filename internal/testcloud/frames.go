package testcloud

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws/protocol/eventstream"
	"github.com/aws/aws-sdk-go-v2/aws/protocol/eventstream/eventstreamapi"
)

// framer turns server-sent events into the binary event stream of AWS: an event of the model into a chunk, an error event into
// an exception. Replies that are no event stream pass through.
type framer struct {
	http.ResponseWriter
	stream bool
	rest   []byte
}

// Unwrap lets a http.ResponseController through.
func (f *framer) Unwrap() http.ResponseWriter { return f.ResponseWriter }

// WriteHeader changes the type of an event stream.
func (f *framer) WriteHeader(status int) {
	h := f.Header()
	if strings.HasPrefix(h.Get("Content-Type"), "text/event-stream") {
		f.stream = true
		h.Set("Content-Type", "application/vnd.amazon.eventstream")
		h.Del("Content-Length")
	}
	f.ResponseWriter.WriteHeader(status)
}

// Write frames each event when the blank line behind it has come.
func (f *framer) Write(p []byte) (int, error) {
	if !f.stream && len(f.rest) == 0 && strings.HasPrefix(f.Header().Get("Content-Type"), "text/event-stream") {
		f.WriteHeader(http.StatusOK)
	}
	if !f.stream {
		return f.ResponseWriter.Write(p)
	}
	f.rest = append(f.rest, p...)
	for {
		event, rest, whole := bytes.Cut(f.rest, []byte("\n\n"))
		if !whole {
			return len(p), nil
		}
		f.rest = rest
		var frame bytes.Buffer
		if message, ok := messageOf(event); ok {
			if err := eventstream.NewEncoder().Encode(&frame, message); err != nil {
				return 0, err
			}
			if _, err := f.ResponseWriter.Write(frame.Bytes()); err != nil {
				return 0, err
			}
		}
	}
}

// messageOf is a frame of an event.
func messageOf(event []byte) (m eventstream.Message, ok bool) {
	var data []byte
	for line := range bytes.SplitSeq(event, []byte("\n")) {
		if text, is := bytes.CutPrefix(line, []byte("data: ")); is {
			data = append(data, text...)
		}
	}
	if data == nil {
		return m, false
	}
	text := func(name, value string) { m.Headers.Set(name, eventstream.StringValue(value)) }
	var failed struct {
		Type  string
		Error struct{ Type, Message string }
	}
	if json.Unmarshal(data, &failed) == nil && failed.Type == "error" {
		text(eventstreamapi.MessageTypeHeader, eventstreamapi.ExceptionMessageType)
		text(eventstreamapi.ExceptionTypeHeader, failed.Error.Type)
		m.Payload, _ = json.Marshal(map[string]string{"message": failed.Error.Message})
		return m, true
	}
	text(eventstreamapi.MessageTypeHeader, eventstreamapi.EventMessageType)
	text(eventstreamapi.EventTypeHeader, "chunk")
	text(eventstreamapi.ContentTypeHeader, "application/json")
	m.Payload, _ = json.Marshal(map[string]string{"bytes": base64.StdEncoding.EncodeToString(data)})
	return m, true
}
