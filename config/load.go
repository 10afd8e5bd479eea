package config

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"

	"holdfast/internal/strict"
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
	f, err := Parse(text)
	var wrong *Error
	if errors.As(err, &wrong) {
		wrong.Path = path
	}
	return f, err
}

// Parse reads a text. Every mistake in it is in the [*Error].
func Parse(text []byte) (*File, error) {
	f := new(File)
	d := strict.Document{Expand: expand}
	d.Decode(text, f)
	f.check(&d)
	if err := problem(d.Err()); err != nil {
		return nil, err
	}
	return f, nil
}

// Set overrides one key, written as in the file with dots: Set("policy.backoff.base", "1s"). On an error f is as it was.
func (f *File) Set(path, value string) error {
	changed := *f
	d := strict.Document{Expand: expand}
	d.Set(&changed, path, value)
	if d.Err() == nil {
		changed.check(&d)
	}
	if err := problem(d.Err()); err != nil {
		return err
	}
	*f = changed
	return nil
}

// SetAll applies overrides of the form "key.path=value", in order, and reports all that are wrong.
func (f *File) SetAll(overrides []string) error {
	var wrong []error
	for _, o := range overrides {
		path, value, ok := strings.Cut(o, "=")
		if !ok {
			wrong = append(wrong, fmt.Errorf("%q is not of the form key.path=value", o))
			continue
		}
		var e *Error
		if err := f.Set(strings.TrimSpace(path), value); errors.As(err, &e) {
			wrong = append(wrong, e.Mistakes...)
		}
	}
	if len(wrong) > 0 {
		return &Error{Path: "--set", Mistakes: wrong}
	}
	return nil
}

func problem(err error) error {
	if err == nil {
		return nil
	}
	if many, ok := err.(interface{ Unwrap() []error }); ok {
		return &Error{Mistakes: many.Unwrap()}
	}
	return &Error{Mistakes: []error{err}}
}

// check asks the policy itself, so that the rules exist once, and translates its field names into keys.
func (f *File) check(d *strict.Document) {
	p := f.Policy()
	many, ok := p.Validate().(interface{ Unwrap() []error })
	if !ok {
		return
	}
	for _, err := range many.Unwrap() {
		field, text, _ := strings.Cut(strings.TrimPrefix(err.Error(), "holdfast: policy "), " ")
		d.Wrong(keyOf(field), "%s", text)
	}
}

var capital = regexp.MustCompile(`[A-Z]`)

// keyOf turns a policy's field into its key: Backoff.ThrottleBase into policy.backoff.throttle_base.
func keyOf(field string) string {
	key := strings.ToLower(strings.TrimPrefix(strings.ReplaceAll(capital.ReplaceAllString(field, "_$0"), "._", "."), "_"))
	switch {
	case strings.HasPrefix(key, "breaker."):
		return key
	case key == "server_wait":
		return "policy.backoff.server_wait"
	case strings.HasPrefix(key, "budget."):
		return "policy.retry_" + key
	}
	return "policy." + key
}

var variable = regexp.MustCompile(`\$\{([^}]*)\}`)

// expand replaces ${NAME} by the environment variable. One that is not set is a mistake: a key that silently became
// empty would be looked for at the provider.
func expand(text string) (string, error) {
	var missing []string
	out := variable.ReplaceAllStringFunc(text, func(v string) string {
		name := v[2 : len(v)-1]
		value, ok := os.LookupEnv(name)
		if !ok {
			missing = append(missing, "${"+name+"}")
		}
		return value
	})
	if len(missing) > 0 {
		return "", fmt.Errorf("environment variable %s is not set", strings.Join(missing, ", "))
	}
	return out, nil
}
