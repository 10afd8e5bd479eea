// Package resource keeps what clients of the stand-in leave behind: message batches and files. It also knows the models.
// Nothing runs by itself here. The time comes with every look, and what has gone on since the last one is worked out then.
// All of it is safe for concurrent use.
//
// Shapes follow the Anthropic Go SDK v2.15.0 (messagebatch.go, file.go, model.go). Error messages of batches are those
// that the API sent in 2026; where none is known, the comment at the message says so.
package resource

import (
	"bytes"
	"encoding/json"
	"time"
)

// Look is one request that looks at the state.
type Look struct {
	// At is when.
	At time.Time
	// Base is the address of the server as the client knows it, such as "http://127.0.0.1:8080", without a slash at its
	// end. Links in answers start with it.
	Base string
}

// remembered bounds what is kept only to recognize a repetition: digests of items and files. What comes later is not
// recognized.
const remembered = 1 << 20

// encode returns v as JSON in one line, with <, > and & as they are, like the APIs send them.
func encode(v any) []byte {
	var text bytes.Buffer
	out := json.NewEncoder(&text)
	out.SetEscapeHTML(false)
	_ = out.Encode(v) // structs of text, numbers and times cannot fail
	return bytes.TrimSuffix(text.Bytes(), []byte("\n"))
}

// stamp is a time in the form of the APIs: RFC 3339 in UTC, with microseconds. The zero time is null.
type stamp time.Time

// MarshalJSON implements json.Marshaler.
func (s stamp) MarshalJSON() ([]byte, error) {
	t := time.Time(s)
	if t.IsZero() {
		return []byte("null"), nil
	}
	return t.UTC().AppendFormat(nil, `"2006-01-02T15:04:05.999999Z"`), nil
}
