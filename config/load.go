package config

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"strings"

	"holdfast/internal/strict"
	"holdfast/internal/wire"
)

// Error is a configuration that cannot be used. Its text has one line per mistake.
type Error struct {
	// Path of the file, empty when the text came from elsewhere.
	Path string
	// Mistakes in the order of their lines.
	Mistakes []error
}

// Error lists every mistake on a line of its own, after the file's name.
func (e *Error) Error() string {
	name := e.Path
	if name == "" {
		name = "config"
	}
	lines := make([]string, len(e.Mistakes))
	for i, m := range e.Mistakes {
		lines[i] = name + ": " + m.Error()
	}
	return strings.Join(lines, "\n")
}

// Unwrap returns the mistakes.
func (e *Error) Unwrap() []error { return e.Mistakes }

// Hint says what the caller can do about it.
func (e *Error) Hint() string {
	return "correct the lines named; every key is optional, and a key left out has its default"
}

// Load reads a file. A mistake in it is an [*Error].
func Load(path string) (*File, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("config: %w", err)
	}
	return read(text, path)
}

// Parse reads a text. Every mistake in it is in the [*Error].
func Parse(text []byte) (*File, error) { return read(text, "") }

func read(text []byte, path string) (*File, error) {
	f := new(File)
	d := &strict.Document{Expand: expand}
	d.Decode(text, f)
	f.check(d)
	if err := problem(d, path); err != nil {
		return nil, err
	}
	f.source = source{path: path, lines: d.Lines()}
	return f, nil
}

// Set overrides one key, written as in the file with dots: Set("policy.backoff.base", "1s"). A number is a place in a list:
// Set("targets.0.url", "http://127.0.0.1:4010"), and the first free place adds to it. On an error f is as it was.
func (f *File) Set(path, value string) error { return f.set([][2]string{{path, value}}, "") }

// SetAll applies overrides of the form "key.path=value", in order, and reports all that are wrong. On an error f is as it
// was. Keys that depend on each other may come in any order.
func (f *File) SetAll(overrides []string) error {
	var pairs [][2]string
	var wrong []error
	for _, o := range overrides {
		path, value, ok := strings.Cut(o, "=")
		if !ok {
			wrong = append(wrong, fmt.Errorf("%q is not of the form key.path=value", wire.Scrub(o, longestMistake)))
			continue
		}
		pairs = append(pairs, [2]string{strings.TrimSpace(path), value})
	}
	const flag = "--set"
	var e *Error
	if err := f.set(pairs, flag); errors.As(err, &e) && len(wrong) > 0 {
		wrong = append(wrong, e.Mistakes...)
	} else if err != nil {
		return err
	}
	if len(wrong) > 0 {
		return &Error{Path: flag, Mistakes: wrong}
	}
	return nil
}

// set applies all pairs of path and value, or none of them.
func (f *File) set(pairs [][2]string, name string) error {
	changed := *f
	changed.source.lines = maps.Clone(f.source.lines)
	d := &strict.Document{Expand: expand}
	for _, p := range pairs {
		d.Set(&changed, p[0], p[1])
		maps.DeleteFunc(changed.source.lines, func(key string, _ int) bool { return key == p[0] || strings.HasPrefix(key, p[0]+".") })
	}
	if d.Err() == nil {
		changed.check(d)
	}
	if err := problem(d, name); err != nil {
		return err
	}
	*f = changed
	return nil
}

const longestMistake = 500

// problem returns the mistakes of a document as one error, nil if there are none. They quote what somebody wrote, and he may
// have put a key into any place: whatever looks like one is taken out.
func problem(d *strict.Document, path string) error {
	found := d.Mistakes()
	if len(found) == 0 {
		return nil
	}
	e := &Error{Path: path}
	for _, m := range found {
		e.Mistakes = append(e.Mistakes, &strict.Mistake{Line: m.Line, Path: wire.Scrub(m.Path, longestMistake), Text: wire.Scrub(m.Text, longestMistake)})
	}
	return e
}
