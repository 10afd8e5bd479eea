package config

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"holdfast"
	"holdfast/gateway"
	"holdfast/internal/endpoint"
	"holdfast/internal/strict"
)

// Jitter is [holdfast.Jitter] as a word.
type Jitter holdfast.Jitter

// ServerWait is [holdfast.ServerWait] as a word.
type ServerWait holdfast.ServerWait

// Count is [holdfast.Count] as a word.
type Count holdfast.Count

// Lane is [holdfast.Lane] as a word.
type Lane holdfast.Lane

// Delivery is [gateway.Delivery] as a word. The zero value is none of them.
type Delivery gateway.Delivery

// Dialect is the shape of an API's requests and answers: anthropic or openai.
type Dialect string

// Provider is one that serves Claude elsewhere, as in package provider.
type Provider string

// Auth is how a key is sent: x-api-key, bearer or api-key.
type Auth string

// Sealed is what becomes of sealed parts of a history: keep or strip.
type Sealed string

// LogFormat is text or json.
type LogFormat string

// LogLevel is debug, info, warn or error.
type LogLevel string

const (
	anthropic Dialect = "anthropic"
	openai    Dialect = "openai"

	xAPIKey Auth = "x-api-key"
	bearer  Auth = "bearer"

	formatJSON LogFormat = "json"
)

var (
	lanes      = []string{holdfast.Interactive.String(), holdfast.Bulk.String()}
	deliveries = []string{"live", "whole"} // in the order of gateway.Live and gateway.Whole
	elsewheres = endpoint.Clouds()
	dialects   = []string{string(anthropic), string(openai)}
	auths      = []string{string(xAPIKey), string(bearer), "api-key"}
	seals      = []string{"keep", "strip"}
	formats    = []string{"text", string(formatJSON)}
	levels     = []string{"debug", "info", "warn", "error"}

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

// UnmarshalText reads interactive or bulk.
func (l *Lane) UnmarshalText(text []byte) error { return word(l, text, lanes) }

// UnmarshalText reads live or whole.
func (d *Delivery) UnmarshalText(text []byte) error {
	i, err := index(text, deliveries)
	*d = Delivery(gateway.Live) + Delivery(i)
	return err
}

// String returns live or whole, empty for neither.
func (d Delivery) String() string {
	if i := int(d) - int(gateway.Live); i >= 0 && i < len(deliveries) {
		return deliveries[i]
	}
	return ""
}

// UnmarshalText reads anthropic or openai.
func (d *Dialect) UnmarshalText(text []byte) error { return name(d, text, dialects) }

// UnmarshalText reads the name of a provider.
func (p *Provider) UnmarshalText(text []byte) error { return name(p, text, elsewheres) }

// UnmarshalText reads x-api-key, bearer or api-key. Its error does not show another text: it may be the key.
func (a *Auth) UnmarshalText(text []byte) error {
	if _, err := index(text, auths); err != nil && strict.Nearest(string(text), auths) == "" {
		return fmt.Errorf("must be %s: it says how the key is sent", oneOf(auths))
	}
	return name(a, text, auths)
}

// UnmarshalText reads keep or strip.
func (s *Sealed) UnmarshalText(text []byte) error { return name(s, text, seals) }

// UnmarshalText reads text or json.
func (f *LogFormat) UnmarshalText(text []byte) error { return name(f, text, formats) }

// UnmarshalText reads debug, info, warn or error.
func (l *LogLevel) UnmarshalText(text []byte) error { return name(l, text, levels) }

func (l LogLevel) level() (level slog.Level) {
	_ = level.UnmarshalText([]byte(l)) // the words are slog's; anything else is info
	return level
}

func word[W ~uint8](to *W, text []byte, known []string) error {
	i, err := index(text, known)
	if err == nil {
		*to = W(i)
	}
	return err
}

func name[W ~string](to *W, text []byte, known []string) error {
	_, err := index(text, known)
	if err == nil {
		*to = W(text)
	}
	return err
}

// index returns the place of a word among those known.
func index(text []byte, known []string) (int, error) {
	if i := slices.Index(known, string(text)); i >= 0 {
		return i, nil
	}
	if near := strict.Nearest(string(text), known); near != "" {
		return 0, fmt.Errorf("must be %s; did you mean %q?", oneOf(known), near)
	}
	return 0, fmt.Errorf("must be %s, not %q", oneOf(known), text)
}

func oneOf(known []string) string {
	return strings.Join(known[:len(known)-1], ", ") + " or " + known[len(known)-1]
}

func (Jitter) words() []string     { return jitters }
func (ServerWait) words() []string { return serverWaits }
func (Count) words() []string      { return counts }
func (Lane) words() []string       { return lanes }
func (Delivery) words() []string   { return deliveries }
func (Dialect) words() []string    { return dialects }
func (Provider) words() []string   { return elsewheres }
func (Auth) words() []string       { return auths }
func (Sealed) words() []string     { return seals }
func (LogFormat) words() []string  { return formats }
func (LogLevel) words() []string   { return levels }
