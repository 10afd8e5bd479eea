package config

import (
	"fmt"

	"holdfast/internal/strict"
)

// Route says which targets answer which requests.
type Route struct {
	// Name in logs and metrics. Default: its models, or the number of its place.
	Name string `yaml:"name"`
	// Models are patterns, such as claude-opus-*, of which one must match. Default: every request.
	Models []string `yaml:"models"`
	// Chain is asked in order. It may end in the word saved.
	Chain []Entry `yaml:"chain"`
	// OnRefusal is asked, once, when the model refuses. Its target is that of the chain's first entry unless it names one.
	// Default: a refusal is an answer.
	OnRefusal *Entry `yaml:"on_refusal"`
	// Delivery is live or whole. Default: that of the section stream.
	Delivery Delivery `yaml:"delivery"`
	// Answer is a file with a complete answer, as JSON, that stands in when there is no saved one: for demos. A relative
	// path begins at the configuration's own folder.
	Answer string `yaml:"answer"`
}

// Entry is one place of a chain: a mapping, or the word saved.
type Entry struct {
	// Target is its name.
	Target string `yaml:"target"`
	// Model replaces the request's. Default: the request's own.
	Model string `yaml:"model"`
	// Key is the name of the one key of the target to use. Default: all.
	Key string `yaml:"key"`
	// Path replaces the base path of the target's URL.
	Path string `yaml:"path"`
	// Betas replace the request's anthropic-beta header; an empty list removes it.
	Betas []string `yaml:"betas"`
	// Version replaces the request's anthropic-version header.
	Version string `yaml:"version"`
	// Sealed is keep or strip: what becomes of parts of the history that only the provider that made them can open.
	// Default: strip where the target is another than that of the chain's first entry.
	Sealed Sealed `yaml:"sealed"`

	// Saved is the word saved: the last good answer, when nothing live works.
	Saved bool
}

const savedWord = "saved"

// UnmarshalText reads the word saved.
func (e *Entry) UnmarshalText(text []byte) error {
	switch {
	case string(text) == savedWord:
		e.Saved = true
		return nil
	case strict.Nearest(string(text), []string{savedWord}) != "":
		return fmt.Errorf("did you mean %q?", savedWord)
	}
	return fmt.Errorf("must be {target: %s} or the word %s", text, savedWord)
}
