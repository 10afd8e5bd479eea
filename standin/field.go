package standin

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// field is one field of a step: its name in JSON and, for a plan, where it goes.
type field struct {
	name string
	set  bool
	into any
}

// fields lists the fields of the step; into points at them.
func (s *Step) fields() []field {
	return []field{
		{"kind", s.Kind != "", &s.Kind},
		{"times", s.Times != 0, &s.Times},
		{"delay", s.Delay != 0, (*duration)(&s.Delay)},
		{"status", s.Status != 0, &s.Status},
		{"retry_after", s.RetryAfter != "", (*scalar)(&s.RetryAfter)},
		{"header", s.Header != nil, &s.Header},
		{"request_id", s.RequestID != "", &s.RequestID},
		{"type", s.Type != "", &s.Type},
		{"code", s.Code != "", (*scalar)(&s.Code)},
		{"message", s.Message != "", &s.Message},
		{"body", s.Body != "", &s.Body},
		{"content_type", s.ContentType != "", &s.ContentType},
		{"category", s.Category != "", &s.Category},
		{"explanation", s.Explanation != "", &s.Explanation},
		{"at", s.At != "", &s.At},
		{"after", s.After != 0, &s.After},
		{"how", s.How != "", &s.How},
		{"torn", s.Torn != "", &s.Torn},
		{"gap", s.Gap != 0, (*duration)(&s.Gap)},
	}
}

// duration is a time.Duration in JSON: "1.5s", or a number of seconds.
type duration time.Duration

func (d *duration) UnmarshalJSON(text []byte) error {
	if string(text) == "null" {
		return nil
	}
	written := strings.Trim(string(text), `"`)
	if text[0] != '"' {
		written += "s"
	}
	parsed, err := time.ParseDuration(written)
	if err != nil {
		return fmt.Errorf("%s is not a time such as \"1.5s\" or a number of seconds", text)
	}
	*d = duration(parsed)
	return nil
}

// scalar is text that may be written as a number in JSON, and is kept as written.
type scalar string

func (s *scalar) UnmarshalJSON(text []byte) error {
	written := string(text)
	if written == "null" {
		return nil
	}
	if text[0] == '"' {
		return json.Unmarshal(text, (*string)(s))
	}
	if _, err := strconv.ParseFloat(written, 64); err != nil {
		return fmt.Errorf("%s is neither text nor a number", text)
	}
	*s = scalar(written)
	return nil
}
