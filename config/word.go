package config

import (
	"fmt"
	"strings"

	"holdfast"
	"holdfast/internal/strict"
)

// Jitter is [holdfast.Jitter] as a word.
type Jitter holdfast.Jitter

// ServerWait is [holdfast.ServerWait] as a word.
type ServerWait holdfast.ServerWait

// Count is [holdfast.Count] as a word.
type Count holdfast.Count

var (
	jitters     = []string{holdfast.FullJitter.String(), holdfast.NoJitter.String()}
	serverWaits = []string{holdfast.PlusJitter.String(), holdfast.PlusBase.String(), holdfast.AtLeast.String(), holdfast.Exact.String()}
	counts      = []string{"attempts", "calls"} // in the order of holdfast.CountAttempts and CountCalls
)

// UnmarshalText reads full or none.
func (j *Jitter) UnmarshalText(text []byte) error { return word(j, text, jitters) }

// UnmarshalText reads plus-jitter, plus-base, at-least or exact.
func (s *ServerWait) UnmarshalText(text []byte) error { return word(s, text, serverWaits) }

// UnmarshalText reads attempts or calls.
func (c *Count) UnmarshalText(text []byte) error { return word(c, text, counts) }

func word[W ~uint8](to *W, text []byte, known []string) error {
	for i, w := range known {
		if w == string(text) {
			*to = W(i)
			return nil
		}
	}
	list := strings.Join(known[:len(known)-1], ", ") + " or " + known[len(known)-1]
	if near := strict.Nearest(string(text), known); near != "" {
		return fmt.Errorf("must be %s; did you mean %q?", list, near)
	}
	return fmt.Errorf("must be %s, not %q", list, text)
}

func (Jitter) words() []string     { return jitters }
func (ServerWait) words() []string { return serverWaits }
func (Count) words() []string      { return counts }
