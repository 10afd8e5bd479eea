package standin

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

func (s *Server) inspectPlan(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, document(reflect.ValueOf(s.Plan().withoutSecrets())))
}

// changePlan takes a new plan.
func (s *Server) changePlan(w http.ResponseWriter, r *http.Request) {
	text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxPlan))
	if err != nil {
		status, tooLarge := http.StatusBadRequest, new(http.MaxBytesError)
		if errors.As(err, &tooLarge) {
			status = http.StatusRequestEntityTooLarge
		}
		http.Error(w, "standin: the plan could not be read: "+err.Error(), status)
		return
	}
	plan, err := ParsePlan(text)
	if err == nil {
		err = s.SetPlan(plan)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// secretHeaders are those whose globs may hold a key.
var secretHeaders = []string{"authorization", "x-api-key", "api-key", "cookie", "proxy-authorization"}

// withoutSecrets returns the plan without keys and without texts of answers.
func (p Plan) withoutSecrets() Plan {
	p.BadKeys = nil
	p.Reply = ""
	p.Steps = withoutBodies(p.Steps)
	if p.Jobs != nil {
		jobs := make(map[string][]Step, len(p.Jobs))
		for job, steps := range p.Jobs {
			jobs[job] = withoutBodies(steps)
		}
		p.Jobs = jobs
	}
	p.Rules = slices.Clone(p.Rules)
	for i, rule := range p.Rules {
		p.Rules[i].Match = rule.Match.withoutKeys()
		p.Rules[i].Steps = withoutBodies(rule.Steps)
		p.Rules[i].Then = rule.Then.withoutBody()
	}
	p.Timeline = slices.Clone(p.Timeline)
	for i, incident := range p.Timeline {
		p.Timeline[i].Match = incident.Match.withoutKeys()
		p.Timeline[i].Step = incident.Step.withoutBody()
	}
	return p
}

func (m Match) withoutKeys() Match {
	m.Header = maps.Clone(m.Header)
	maps.DeleteFunc(m.Header, func(name, _ string) bool { return slices.Contains(secretHeaders, strings.ToLower(name)) })
	return m
}

func withoutBodies(steps []Step) []Step {
	steps = slices.Clone(steps)
	for i, step := range steps {
		steps[i] = step.withoutBody()
	}
	return steps
}

func (s Step) withoutBody() Step {
	if s.Body != "" {
		s.Body = fmt.Sprintf("(%d bytes)", len(s.Body))
	}
	return s
}

// document returns the value as ParsePlan reads it, without what is zero.
func document(v reflect.Value) any {
	switch value := v.Interface().(type) {
	case time.Duration:
		return value.String()
	case Span:
		return value.String()
	}
	switch v.Kind() {
	case reflect.Pointer:
		return document(v.Elem()) // one to a zero value counts: the caller leaves out nil
	case reflect.Slice:
		list := make([]any, v.Len())
		for i := range list {
			list[i] = document(v.Index(i))
		}
		return list
	case reflect.Map:
		object := make(map[string]any, v.Len())
		for entry := v.MapRange(); entry.Next(); { // encoding/json puts the keys in order
			object[entry.Key().String()] = document(entry.Value())
		}
		return object
	case reflect.Struct:
		return membersOf(v)
	}
	return v.Interface()
}

// members are a JSON object in the order of the struct.
type members []member

type member struct {
	name  string
	value any
}

func membersOf(v reflect.Value) members {
	var all members
	for i := range v.NumField() {
		tag := v.Type().Field(i).Tag.Get("yaml")
		if v.Field(i).IsZero() || tag == "-" { // for plans made in Go
			continue
		}
		value := document(v.Field(i))
		if object, ok := value.(members); ok && len(object) == 0 && v.Field(i).Kind() == reflect.Struct {
			continue
		}
		name, _, _ := strings.Cut(tag, ",")
		if name == "" {
			name = strings.ToLower(v.Type().Field(i).Name)
		}
		all = append(all, member{name, value})
	}
	return all
}

// MarshalJSON keeps the order.
func (f members) MarshalJSON() ([]byte, error) {
	text := []byte{'{'}
	for i, m := range f {
		if i > 0 {
			text = append(text, ',')
		}
		text = append(strconv.AppendQuote(text, m.name), ':')
		value, err := json.Marshal(m.value)
		if err != nil {
			return nil, err
		}
		text = append(text, value...)
	}
	return append(text, '}'), nil
}
