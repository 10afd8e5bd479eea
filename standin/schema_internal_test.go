package standin

import (
	"bytes"
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/invopop/jsonschema"

	"holdfast/internal/strict"
)

// planTypes are the files whose comments describe the fields of a plan.
var planTypes = []string{"plan.go", "step.go", "limits.go"}

// planComments returns the comments of types and of their fields, by "Type" and "Type.Field", on one line each.
func planComments(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, name := range planTypes {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		for _, decl := range file.Decls {
			group, ok := decl.(*ast.GenDecl)
			if !ok {
				continue
			}
			for _, spec := range group.Specs {
				typ, ok := spec.(*ast.TypeSpec)
				if !ok {
					continue
				}
				all[typ.Name.Name] = oneLine(group.Doc.Text())
				fields, ok := typ.Type.(*ast.StructType)
				if !ok {
					continue
				}
				above := "" // stands for the fields below it that have none
				for _, field := range fields.Fields.List {
					if field.Doc != nil {
						above = oneLine(field.Doc.Text())
					}
					for _, name := range field.Names {
						all[typ.Name.Name+"."+name.Name] = above
					}
				}
			}
		}
	}
	return all
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// textSchema is the schema of a text, for which any single value may stand.
func textSchema() *jsonschema.Schema {
	return &jsonschema.Schema{Extras: map[string]any{"type": []string{"string", "number", "boolean"}}}
}

func periodSchema() *jsonschema.Schema {
	return &jsonschema.Schema{AnyOf: []*jsonschema.Schema{
		{Type: "number", Description: "a number of seconds"},
		{Type: "string", Pattern: `^[-+]?([0-9]*\.?[0-9]+|([0-9]*\.?[0-9]+(ns|us|µs|ms|s|m|h))+)$`, Description: "a time such as 1.5s or 2m30s"},
	}}
}

// objectSchema is the schema of a mapping with two keys, of which the last must be there, and no others.
func objectSchema(property *jsonschema.Schema, first, last string) *jsonschema.Schema {
	s := &jsonschema.Schema{Type: "object", Properties: jsonschema.NewProperties(), AdditionalProperties: jsonschema.FalseSchema, Required: []string{last}}
	s.Properties.Set(first, property)
	s.Properties.Set(last, property)
	return s
}

// writtenSchema is the schema of a type that is written in a form of its own, nil for all others.
func writtenSchema(t reflect.Type) *jsonschema.Schema {
	if v, closed := vocabularyOf(t); closed {
		s := &jsonschema.Schema{Type: "string"}
		for _, w := range v.words {
			s.Enum = append(s.Enum, w)
		}
		if t == reflect.TypeFor[Kind]() {
			s.Extras = map[string]any{"enumDescriptions": kindDescriptions(v.words)}
		}
		return s
	}
	share := &jsonschema.Schema{Type: "number", Minimum: "0", Maximum: "1"}
	switch t {
	case reflect.TypeFor[time.Duration]():
		return periodSchema()
	case reflect.TypeFor[Span]():
		return &jsonschema.Schema{AnyOf: []*jsonschema.Schema{{Type: "integer", Minimum: "1"}, {Type: "string", Pattern: `^([0-9]+(-[0-9]*)?)?(/[0-9]+)?$`}}}
	case reflect.TypeFor[Ramp]():
		return &jsonschema.Schema{AnyOf: []*jsonschema.Schema{share, objectSchema(share, "from", "to")}}
	case reflect.TypeFor[Spread]():
		return &jsonschema.Schema{AnyOf: []*jsonschema.Schema{periodSchema(), objectSchema(periodSchema(), "min", "max"), objectSchema(periodSchema(), "median", "p99")}}
	case reflect.TypeFor[Header]():
		return &jsonschema.Schema{Type: "object", AdditionalProperties: &jsonschema.Schema{AnyOf: []*jsonschema.Schema{textSchema(), {Type: "array", Items: textSchema()}}}}
	}
	switch {
	case t.Kind() == reflect.String:
		return textSchema()
	case t == reflect.TypeFor[[]string]():
		return &jsonschema.Schema{AnyOf: []*jsonschema.Schema{textSchema(), {Type: "array", Items: textSchema()}}}
	}
	return nil
}

func kindDescriptions(kinds []string) []string {
	all := make([]string, len(kinds))
	for i, kind := range kinds {
		all[i] = "only in the timeline"
		for _, f := range faults {
			if string(f.Kind) == kind {
				all[i] = f.What
			}
		}
	}
	return all
}

// fieldsByKind says which fields go with which kind.
func fieldsByKind() (all []*jsonschema.Schema) {
	kinds, _ := vocabularyOf(reflect.TypeFor[Kind]())
	for _, kind := range kinds.words {
		then := &jsonschema.Schema{PropertyNames: &jsonschema.Schema{}}
		for i := range reflect.TypeFor[Step]().NumField() {
			if field := strict.Key(reflect.TypeFor[Step]().Field(i)); stepTakes(Kind(kind), field) {
				then.PropertyNames.Enum = append(then.PropertyNames.Enum, field)
			}
		}
		if Kind(kind) == HTTP {
			then.Required = []string{"status"}
		}
		is := &jsonschema.Schema{Properties: jsonschema.NewProperties()}
		is.Properties.Set("kind", &jsonschema.Schema{Const: kind})
		if Kind(kind) != OK { // a step without a kind is ok
			is.Required = []string{"kind"}
		}
		all = append(all, &jsonschema.Schema{If: is, Then: then})
	}
	return all
}

// generateSchema makes the schema from the types.
func generateSchema(t *testing.T) []byte {
	t.Helper()
	said := planComments(t)
	r := jsonschema.Reflector{
		FieldNameTag: "yaml", RequiredFromJSONSchemaTags: true, ExpandedStruct: true, Anonymous: true, Mapper: writtenSchema,
		LookupComment: func(typ reflect.Type, field string) string {
			if field == "" {
				return said[typ.Name()]
			}
			about := said[typ.Name()+"."+field]
			if typ == reflect.TypeFor[GroupLimits]() { // they mean the same there, and are told once
				about = said["Limits."+field]
			}
			if f, ok := typ.FieldByName(field); ok { // the comment begins with the name that the field has in Go
				if rest, found := strings.CutPrefix(about, field+" "); found {
					about = strict.Key(f) + " " + rest
				}
			}
			return about
		},
	}
	s := r.Reflect(Plan{})
	s.Title = "Plan of the stand-in"
	s.Definitions["Step"].AllOf = fieldsByKind()
	share, _ := s.Definitions["Rule"].Properties.Get("share")
	share.Minimum, share.Maximum = "0", "1"
	out, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return append(out, '\n')
}

// UPDATE=1 go test ./standin -run Schema writes the file anew.
func TestTheSchemaIsThatOfTheTypes(t *testing.T) {
	want := generateSchema(t)
	if os.Getenv("UPDATE") != "" {
		if err := os.WriteFile("plan.schema.json", want, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	old, now := strings.Split(string(PlanSchema()), "\n"), strings.Split(string(want), "\n")
	for i, line := range now {
		if i >= len(old) || old[i] != line {
			t.Fatalf("plan.schema.json is not that of the types, from line %d on, which should be\n%s\nUPDATE=1 go test ./standin -run Schema writes it anew", i+1, line)
		}
	}
	if len(old) != len(now) {
		t.Errorf("plan.schema.json has %d lines, want %d", len(old), len(now))
	}
}

// The schema knows every field that ParsePlan does: a missing one would be refused by editors.
func TestTheSchemaHasEveryFieldWithItsDescription(t *testing.T) {
	t.Parallel()
	var schema struct {
		Properties  map[string]struct{ Description string }
		Definitions map[string]struct {
			Properties map[string]struct{ Description string }
		} `json:"$defs"`
	}
	if err := json.Unmarshal(generateSchema(t), &schema); err != nil {
		t.Fatal(err)
	}
	for _, typ := range []reflect.Type{
		reflect.TypeFor[Plan](), reflect.TypeFor[Rule](), reflect.TypeFor[Match](), reflect.TypeFor[Incident](), reflect.TypeFor[Limits](), reflect.TypeFor[GroupLimits](), reflect.TypeFor[Latency](), reflect.TypeFor[Batches](), reflect.TypeFor[Step](),
	} {
		properties := schema.Definitions[typ.Name()].Properties
		if typ == reflect.TypeFor[Plan]() {
			properties = schema.Properties
		}
		fields := 0
		for i := range typ.NumField() {
			key := strict.Key(typ.Field(i))
			if key == "" { // for plans made in Go
				continue
			}
			fields++
			if p, ok := properties[key]; !ok || len(p.Description) < 15 {
				t.Errorf("%s.%s is described as %q", typ.Name(), key, p.Description)
			}
		}
		if len(properties) != fields {
			t.Errorf("%s has %d properties and %d fields", typ.Name(), len(properties), fields)
		}
	}
}

func TestExamplePlansAreGood(t *testing.T) {
	t.Parallel()
	names, err := filepath.Glob("testdata/plans/*.yaml")
	if err != nil || len(names) < 8 {
		t.Fatalf("%d plans, %v", len(names), err)
	}
	for _, name := range names {
		plan, err := LoadPlan(name)
		if err != nil {
			t.Error(err)
			continue
		}
		if text, _ := os.ReadFile(name); !bytes.HasPrefix(text, []byte("# ")) {
			t.Errorf("%s does not say what it is for", name)
		}
		newScript(plan).decide(facts{})
	}
}
