package config

import (
	"errors"
	"fmt"
	"log/slog"
)

// Target is an API behind the gateway.
type Target struct {
	// Name in chains, traces and metrics. Default: the provider, or the host of the URL.
	Name string `yaml:"name"`
	// URL of the API, as an SDK's base URL has it. It holds no key and no query. With a provider it may be left out, and
	// replaces the provider's own address.
	URL string `yaml:"url"`
	// Provider serves Claude elsewhere, and is asked by its own client: bedrock, bedrock-mantle, aws, vertex, google-cloud or
	// foundry. The callers' keys never go there. Default: the API at URL is asked as it is.
	Provider Provider `yaml:"provider"`
	// Region of a provider of AWS or Google. Default: AWS_REGION at AWS, global at google-cloud.
	Region string `yaml:"region"`
	// Project of vertex and google-cloud. Default at google-cloud: GOOGLE_CLOUD_PROJECT.
	Project string `yaml:"project"`
	// Resource of foundry, which is the first word of its address. Default: ANTHROPIC_FOUNDRY_RESOURCE.
	Resource string `yaml:"resource"`
	// Workspace of aws and google-cloud. Default: ANTHROPIC_AWS_WORKSPACE_ID and ANTHROPIC_GOOGLE_CLOUD_WORKSPACE_ID.
	Workspace string `yaml:"workspace"`
	// Profile of AWS's shared files whose credentials sign. Default: AWS's own chain of credentials.
	Profile string `yaml:"profile"`
	// Credentials is a file with Google credentials. A relative path begins at the configuration's own folder. Default:
	// Google's application default credentials.
	Credentials string `yaml:"credentials"`
	// Models turns the model that callers ask for into this API's name of it. A model that is not listed is passed on as
	// it is.
	Models map[string]string `yaml:"models"`
	// Dialect is anthropic or openai. Default: any; requests are passed on as they are.
	Dialect Dialect `yaml:"dialect"`
	// Key is sent in place of the caller's. Default: the caller's own passes through.
	Key Secret `yaml:"key"`
	// Keys are a pool of several: one that is throttled, spent or rejected is left for the next at once.
	Keys []Key `yaml:"keys"`
	// Auth says how a key is sent: x-api-key, bearer or api-key. Default: as an API that is known wants it, else x-api-key
	// for the dialect anthropic and bearer for any other. Of the providers foundry alone has a choice: bearer sends an
	// Entra ID token.
	Auth Auth `yaml:"auth"`
	// Breaker and Pace of this target alone. Keys left out are those of the sections.
	Breaker *Breaker `yaml:"breaker"`
	Pace    *Pace    `yaml:"pace"`
}

// Key is one of several keys of a target. The key alone may stand for it.
type Key struct {
	// Name in traces and metrics. Default: the number of its place, from 1.
	Name string `yaml:"name"`
	// Key is the key itself.
	Key Secret `yaml:"key"`
}

// UnmarshalText reads the key alone.
func (k *Key) UnmarshalText(text []byte) error { return k.Key.UnmarshalText(text) }

// Pool returns Key and Keys together, with names.
func (t Target) Pool() []Key {
	if t.Key != "" {
		return []Key{{Name: "1", Key: t.Key}}
	}
	named := make([]Key, len(t.Keys))
	for i, k := range t.Keys {
		if named[i] = k; k.Name == "" {
			named[i].Name = fmt.Sprint(i + 1)
		}
	}
	return named
}

// Label returns Name, or its default.
func (t Target) Label() string {
	u, wrong := baseURL(t.URL)
	switch {
	case t.Name != "":
	case t.Provider != "":
		return string(t.Provider)
	case wrong == "":
		return u.Host
	}
	return t.Name
}

// Secret is a key. Whatever prints it prints a placeholder; a string conversion is the key itself.
type Secret string

const hidden = "[hidden]"

var errEmptyKey = errors.New("is empty; without it the caller's own key passes through")

// UnmarshalText takes any text that a header can carry. Its errors do not show the text.
func (s *Secret) UnmarshalText(text []byte) error {
	if len(text) == 0 {
		return errEmptyKey
	}
	for i, c := range text {
		if c <= ' ' || c > '~' {
			return fmt.Errorf("holds a character that no key has, at place %d of %d: a space, a control character or one beyond ASCII", i+1, len(text))
		}
	}
	*s = Secret(text)
	return nil
}

// Reveal returns the key itself.
func (s Secret) Reveal() string { return string(s) }

// Format prints a placeholder, for every verb.
func (s Secret) Format(to fmt.State, _ rune) {
	if s != "" {
		_, _ = to.Write([]byte(hidden))
	}
}

// MarshalText returns the placeholder.
func (s Secret) MarshalText() ([]byte, error) { return []byte(fmt.Sprint(s)), nil }

// LogValue returns the placeholder.
func (s Secret) LogValue() slog.Value { return slog.StringValue(fmt.Sprint(s)) }
