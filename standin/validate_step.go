package standin

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"holdfast/internal/strict"
)

// connectionKinds are the faults that hit connections, not requests.
var connectionKinds = []Kind{Refused, Hang}

func (s *Step) onConnections() bool { return slices.Contains(connectionKinds, s.Kind) }

func (s *Step) isZero() bool { return reflect.ValueOf(s).Elem().IsZero() }

func (m *Match) isZero() bool { return reflect.ValueOf(m).Elem().IsZero() }

// steps checks a list that is played in order.
func (c checker) steps(path string, steps []Step) {
	for i := range steps {
		here := item(path, i)
		c.step(here, &steps[i])
		if steps[i].Times < 0 && i < len(steps)-1 {
			c.wrong(here+".times", "times is negative, so the steps behind this one are never played")
		}
	}
}

// step checks one step that requests get.
func (c checker) step(path string, s *Step) {
	if s.onConnections() {
		c.wrong(path+".kind", "%s is about connections, so it can only be the step of an incident of the timeline", s.Kind)
		return
	}
	if _, known := s.Kind.takes(""); !known {
		c.word(path+".kind", s.Kind)
		return
	}
	c.fields(path, s)
	c.numbers(path, s)
	c.texts(path, s)
	c.times(path, s)
}

// stepTakes reports whether a step of a kind has a field. A connection has none
// of those that are about the reply to one request.
func stepTakes(k Kind, field string) bool {
	if takes, _ := k.takes(field); takes {
		return !slices.Contains(connectionKinds, k) || field == "kind" || !slices.Contains(everyKind, field)
	}
	return field == "kind"
}

// takers names the kinds that have a field.
func takers(field string) string {
	var kinds []string
	for _, f := range faults {
		if slices.Contains(f.Fields, field) {
			kinds = append(kinds, string(f.Kind))
		}
	}
	return strings.Join(kinds, ", ")
}

// fields checks that only fields are set that the kind takes, and words that are known.
func (c checker) fields(path string, s *Step) {
	v := reflect.ValueOf(s).Elem()
	for i := range v.NumField() {
		key := strict.Key(v.Type().Field(i))
		if v.Field(i).IsZero() {
			continue
		}
		if !stepTakes(s.Kind, key) {
			c.takesNot(path, s.Kind, key)
			continue
		}
		c.word(strict.Join(path, key), v.Field(i).Interface())
	}
}

// takesNot says that a kind has no such field, and which kinds have it.
func (c checker) takesNot(path string, k Kind, field string) {
	if c.doc.Misread(path + ".kind") {
		return
	}
	who, hint := fmt.Sprintf("a step of kind %q", k), ""
	if k == "" {
		who = "a step without a kind is an answer and"
	}
	if others := takers(field); others != "" {
		hint = "; these do: " + others
	}
	c.wrong(strict.Join(path, field), "%s takes no %s%s", who, field, hint)
}

// wordMistake says what is wrong with a word of a closed set, "" when nothing is.
func wordMistake(word any) string {
	v := reflect.ValueOf(word)
	if known, closed := vocabularyOf(v.Type()); closed {
		return known.mistake(v.String())
	}
	return ""
}

func (c checker) numbers(path string, s *Step) {
	switch {
	case s.Kind == HTTP && s.Status == 0:
		c.wrong(path+".status", "a step of kind %q needs a status", s.Kind)
	case s.Status != 0 && (s.Status < 200 || s.Status > 599):
		c.wrong(path+".status", "status %d is not between 200 and 599", s.Status)
	}
	if s.After < 0 || s.After > maxAfter {
		c.wrong(path+".after", "after %d is not between 0 and %d", s.After, maxAfter)
	} else if s.After > 0 && slices.Contains([]Stage{First, Preamble, Stop}, s.At) {
		c.wrong(path+".after", "after counts content events; at %q has none", s.At)
	}
}

func (c checker) texts(path string, s *Step) {
	for _, row := range []struct{ key, value string }{
		{"retry_after", s.RetryAfter}, {"request_id", s.RequestID}, {"content_type", s.ContentType},
	} {
		if !headerText(row.value) {
			c.wrong(strict.Join(path, row.key), "%s holds a control character", row.key)
		}
	}
	if from, ok := strings.CutPrefix(s.RetryAfter, "now"); ok {
		if _, err := time.ParseDuration(from); err != nil || !strings.ContainsAny(from[:1], "+-") {
			c.wrong(path+".retry_after", "%q is neither now+3s nor now-3s", s.RetryAfter)
		}
	}
	if s.Body != "" && s.Form != "" {
		c.wrong(path+".form", "body replaces the whole body, so form has no effect")
	}
	for _, name := range slices.Sorted(maps.Keys(s.Header)) {
		at := strict.Join(path+".header", name)
		switch {
		case !headerName(name):
			c.wrong(at, "%q is not the name of a header", name)
		case slices.Contains(transferHeaders, strings.ToLower(name)):
			c.wrong(at, "%s belongs to the transfer, not to the reply; form truncated and a cut show what a wrong length does", name)
		case slices.ContainsFunc(s.Header[name], func(v string) bool { return !headerText(v) }):
			c.wrong(at, "it holds a control character")
		}
	}
}

// transferHeaders are those that net/http writes by itself: any other value breaks the connection, for which there are
// faults that the journal knows.
var transferHeaders = []string{"content-length", "transfer-encoding", "connection", "trailer"}
