package provider

import (
	"fmt"
	"log/slog"
)

// String names the provider and the place, and never shows a key or where credentials come from.
func (s Settings) String() string {
	text := s.Provider
	for _, f := range []struct{ name, value string }{
		{"region", s.Region}, {"project", s.Project}, {"resource", s.Resource}, {"workspace", s.Workspace},
	} {
		if f.value != "" {
			text += " " + f.name + "=" + f.value
		}
	}
	if s.Key != "" {
		text += " key=[hidden]"
	}
	return text
}

// Format prints what String returns, for every verb. It never shows a key.
func (s Settings) Format(to fmt.State, _ rune) { _, _ = to.Write([]byte(s.String())) }

// LogValue returns what String returns. It never shows a key.
func (s Settings) LogValue() slog.Value { return slog.StringValue(s.String()) }
