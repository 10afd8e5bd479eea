package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"holdfast/saved"
)

// savedCall is a line of a file of answers to import.
type savedCall struct {
	Path     string            `json:"path"`
	Headers  map[string]string `json:"headers"`
	Request  json.RawMessage   `json:"request"`
	Response json.RawMessage   `json:"response"`
	SavedAt  time.Time         `json:"saved_at"`
}

// versions are those that the Messages API has had. A question has the key of one of them.
var versions = []string{"2023-06-01", "2026-10-21"}

const versionHeader = "anthropic-version"

// readSavedCall reads a line and makes sure that its answer can be kept.
func readSavedCall(line []byte) (c savedCall, err error) {
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields()
	if err := d.Decode(&c); err != nil {
		return c, fmt.Errorf("it cannot be read: %w", err)
	}
	if len(c.Request) == 0 || len(c.Response) == 0 {
		return c, errors.New("it needs a request and a response")
	}
	if c.Path == "" {
		if c.Path = pathOf(c.Response); c.Path == "" {
			return c, errors.New("the path cannot be told from the response: it needs one")
		}
	}
	for _, question := range c.questions() {
		if _, err := saved.Give(question, c.answer(), false); err != nil {
			return c, errors.New(strings.TrimPrefix(err.Error(), "saved: "))
		}
	}
	return c, nil
}

// pathOf tells the API from an answer, whole or as events; "" when it is of none.
func pathOf(response json.RawMessage) string {
	var whole struct{ Type, Object string }
	text := ""
	if json.Unmarshal(response, &text) != nil {
		_ = json.Unmarshal(response, &whole) // what cannot be read has no type either
	}
	switch {
	case whole.Type == "message", strings.Contains(text, "message_start"):
		return "/v1/messages"
	case whole.Object == "chat.completion", strings.Contains(text, "chat.completion.chunk"):
		return "/v1/chat/completions"
	case whole.Object == "response", strings.Contains(text, "response.created"):
		return "/v1/responses"
	}
	return ""
}

// questions are the call's question, once for each version that it may be asked with.
func (c savedCall) questions() []*saved.Question {
	header := http.Header{}
	for name, value := range c.Headers {
		header.Set(name, value)
	}
	asked := versions
	if !strings.HasSuffix(c.Path, "/v1/messages") || header.Get(versionHeader) != "" {
		asked = []string{header.Get(versionHeader)}
	}
	var all []*saved.Question
	for _, version := range asked {
		h := header.Clone()
		h.Set(versionHeader, version)
		all = append(all, &saved.Question{Method: http.MethodPost, Path: c.Path, Header: h, Body: c.Request})
	}
	return all
}

func (c savedCall) answer() *saved.Answer {
	a := &saved.Answer{ContentType: "application/json", Body: c.Response, At: c.SavedAt}
	var events string
	if json.Unmarshal(c.Response, &events) == nil {
		a.ContentType, a.Body = "text/event-stream", []byte(events)
	}
	return a
}
