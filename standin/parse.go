package standin

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
)

// ParsePlan reads a plan from JSON. Fields have the names of Plan and Step in
// snake case; times are text such as "1.5s" or a number of seconds; retry_after
// and code may be numbers. Unknown and repeated fields, and values of the wrong
// kind, are errors that name the line; all of them are reported at once. What
// Validate finds is reported when there are none.
func ParsePlan(text []byte) (Plan, error) {
	p := &parser{text: text, dec: json.NewDecoder(bytes.NewReader(text))}
	var plan Plan
	err := p.object("plan", map[string]func() error{
		"steps":    func() error { return p.steps(&plan.Steps) },
		"jobs":     func() error { return p.jobs(&plan) },
		"reply":    func() error { return p.value(&plan.Reply) },
		"bad_keys": func() error { return p.value(&plan.BadKeys) },
	})
	if err == nil {
		if _, tail := p.dec.Token(); !errors.Is(tail, io.EOF) {
			err = p.at("something follows the plan")
		}
	}
	if err != nil {
		p.mistakes = append(p.mistakes, err)
	}
	if len(p.mistakes) == 0 {
		err = plan.Validate()
	} else {
		err = errors.Join(p.mistakes...)
	}
	if err != nil {
		return Plan{}, err
	}
	return plan, nil
}

// parser walks a JSON text by token, because encoding/json does not say where
// an unknown field stands. Mistakes that leave the walk possible are collected;
// an error returned ends it.
type parser struct {
	text     []byte
	dec      *json.Decoder
	mistakes []error
}

// at makes an error that names the line that the walk has reached.
func (p *parser) at(format string, args ...any) error {
	return p.atOffset(p.dec.InputOffset(), format, args...)
}

func (p *parser) atOffset(offset int64, format string, args ...any) error {
	line := 1 + bytes.Count(p.text[:min(offset, int64(len(p.text)))], []byte{'\n'})
	return fmt.Errorf("standin: plan line %d: %w", line, fmt.Errorf(format, args...))
}

// open takes the opening delimiter of what. Null is skipped and opens nothing.
func (p *parser) open(what string, delim json.Delim) (bool, error) {
	token, err := p.dec.Token()
	if err != nil {
		return false, p.syntax(err)
	}
	if token == nil {
		return false, nil
	}
	if token != delim {
		return false, p.at("%s must begin with %v", what, delim)
	}
	return true, nil
}

// object reads an object whose fields are known.
func (p *parser) object(what string, fields map[string]func() error) error {
	return p.members(what, func(key string) error {
		read, ok := fields[key]
		if !ok {
			p.mistakes = append(p.mistakes, p.at("unknown field %q in a %s%s", key, what, suggestion(key, fields)))
			return p.value(new(json.RawMessage))
		}
		return read()
	})
}

// members reads an object and calls each for every key, with the walk before its value.
func (p *parser) members(what string, each func(key string) error) error {
	opened, err := p.open(what, '{')
	if !opened {
		return err
	}
	seen := make(map[string]bool)
	for p.dec.More() {
		token, err := p.dec.Token()
		if err != nil {
			return p.syntax(err)
		}
		key, _ := token.(string)
		if seen[key] {
			p.mistakes = append(p.mistakes, p.at("field %q stands twice in a %s", key, what))
		}
		seen[key] = true
		if err := each(key); err != nil {
			return err
		}
	}
	_, err = p.dec.Token()
	return p.syntax(err)
}

func (p *parser) jobs(plan *Plan) error {
	plan.Jobs = make(map[string][]Step)
	return p.members("list of jobs", func(job string) error {
		var steps []Step
		err := p.steps(&steps)
		plan.Jobs[job] = steps
		return err
	})
}

func (p *parser) steps(into *[]Step) error {
	opened, err := p.open("a list of steps", '[')
	if !opened {
		return err
	}
	for p.dec.More() {
		var s Step
		fields := make(map[string]func() error)
		for _, f := range s.fields() {
			fields[f.name] = func() error { return p.value(f.into) }
		}
		if err := p.object("step", fields); err != nil {
			return err
		}
		*into = append(*into, s)
	}
	_, err = p.dec.Token()
	return p.syntax(err)
}

// value decodes one value. One of the wrong kind is a mistake, not the end.
func (p *parser) value(into any) error {
	before := p.dec.InputOffset()
	var raw json.RawMessage
	if err := p.dec.Decode(&raw); err != nil {
		return p.syntax(err)
	}
	if err := json.Unmarshal(raw, into); err != nil {
		if wrong := new(json.UnmarshalTypeError); errors.As(err, &wrong) {
			err = fmt.Errorf("%s where a value of type %v belongs", wrong.Value, wrong.Type)
		}
		p.mistakes = append(p.mistakes, p.atOffset(before, "%w", err))
	}
	return nil
}

// syntax adds the line to an error of the JSON itself; nil stays nil.
func (p *parser) syntax(err error) error {
	if err == nil {
		return nil
	}
	offset := p.dec.InputOffset()
	if broken := new(json.SyntaxError); errors.As(err, &broken) {
		offset = broken.Offset
	}
	if errors.Is(err, io.EOF) {
		err, offset = io.ErrUnexpectedEOF, int64(len(p.text))
	}
	return p.atOffset(offset, "%w", err)
}

// suggestion names the known field that was probably meant, or lists all.
func suggestion(key string, fields map[string]func() error) string {
	names := make([]string, 0, len(fields))
	for name := range fields {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		if letters(name) == letters(key) || distance(name, key) <= 2 && len(key) > 3 {
			return fmt.Sprintf("; did you mean %q?", name)
		}
	}
	return fmt.Sprintf("; there are %q", names)
}

// letters drops case and punctuation, so that retryAfter and retry-after are seen through.
func letters(s string) string {
	return string(bytes.ToLower(slices.DeleteFunc([]byte(s), func(c byte) bool { return c == '_' || c == '-' })))
}

// distance is the number of letters to insert, delete or replace to get from a to b.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost = 1 + min(diagonal, row[j], row[j+1])
			}
			diagonal, row[j+1] = row[j+1], cost
		}
	}
	return row[len(b)]
}
