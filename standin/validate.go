package standin

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// maxAfter bounds Step.After, and with it the size of a repeated answer.
const maxAfter = 1_000_000

// Validate reports every mistake of the plan at once, each with its place, or
// returns nil. It changes nothing.
func (p Plan) Validate() error {
	mistakes := validateSteps("steps", p.Steps)
	for _, job := range slices.Sorted(maps.Keys(p.Jobs)) {
		place := fmt.Sprintf("jobs[%q]", job)
		if job == "" {
			mistakes = append(mistakes, fmt.Errorf("standin: %s: a job needs a text to know its requests by", place))
		}
		mistakes = append(mistakes, validateSteps(place, p.Jobs[job])...)
	}
	if slices.Contains(p.BadKeys, "") {
		mistakes = append(mistakes, errors.New("standin: bad_keys: a missing key is bad already; remove the empty one"))
	}
	return errors.Join(mistakes...)
}

func validateSteps(place string, steps []Step) (mistakes []error) {
	for i, s := range steps {
		here := fmt.Sprintf("%s[%d]", place, i)
		for _, text := range s.mistakes() {
			mistakes = append(mistakes, fmt.Errorf("standin: %s: %s", here, text))
		}
		if s.Times < 0 && i < len(steps)-1 {
			mistakes = append(mistakes, fmt.Errorf("standin: %s: times is negative, so the steps behind it are never played", here))
		}
	}
	return mistakes
}

// mistakes returns what is wrong with the step alone.
func (s Step) mistakes() (found []string) {
	add := func(format string, args ...any) { found = append(found, fmt.Sprintf(format, args...)) }
	if _, known := s.Kind.takes(""); !known {
		add("unknown kind %q; there are %s", s.Kind, kinds())
		return found
	}
	for _, f := range s.fields() {
		if takes, _ := s.Kind.takes(f.name); !takes && f.set {
			add("a step of kind %q takes no %s", s.withDefaults().Kind, f.name)
		}
	}
	if s.Kind == HTTP && s.Status == 0 {
		add("a step of kind %q needs a status", s.Kind)
	}
	if s.Status != 0 && (s.Status < 200 || s.Status > 599) {
		add("status %d is not between 200 and 599", s.Status)
	}
	if s.Delay < 0 || s.Gap < 0 {
		add("delay and gap cannot be negative")
	}
	if s.After < 0 || s.After > maxAfter {
		add("after %d is not between 0 and %d", s.After, maxAfter)
	}
	if !slices.Contains([]Stage{"", First, Preamble, Content, Stop}, s.At) {
		add("unknown stage %q; there are first, preamble, content, stop", s.At)
	} else if s.After > 0 && s.At != "" && s.At != Content {
		add("after counts content events; at %q has none", s.At)
	}
	if !slices.Contains([]Ending{"", Clean, Chunk, RST, Silence}, s.How) {
		add("unknown ending %q; there are clean, chunk, rst, stall", s.How)
	}
	for name, value := range map[string]string{"retry_after": s.RetryAfter, "request_id": s.RequestID, "content_type": s.ContentType} {
		if !headerText(value) {
			add("%s holds a control character", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.Header)) {
		if !headerName(name) || slices.ContainsFunc(s.Header[name], func(v string) bool { return !headerText(v) }) {
			add("header %q is not a header", name)
		}
	}
	slices.Sort(found)
	return found
}

func kinds() string {
	names := make([]string, len(faults))
	for i, f := range faults {
		names[i] = string(f.Kind)
	}
	return strings.Join(names, ", ")
}

func headerText(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f })
}

func headerName(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		return r <= ' ' || r >= 0x7f || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, r)
	})
}
