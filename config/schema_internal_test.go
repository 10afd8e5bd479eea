package config

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"

	"holdfast/internal/strict"
)

// variablePattern lets every value be a text with an environment variable in it.
const variablePattern = `\$\{[^}]*\}`

// described adds what the comment of a field says about its key.
func described(schema map[string]any, comment string) map[string]any {
	if comment != "" {
		schema["description"] = comment
	}
	return schema
}

func schemaOf(t reflect.Type, comments map[string]string) map[string]any {
	either := func(own ...any) map[string]any {
		return map[string]any{"anyOf": append(own, map[string]any{"type": "string", "pattern": variablePattern})}
	}
	if w, ok := reflect.Zero(t).Interface().(interface{ words() []string }); ok {
		return either(map[string]any{"enum": w.words()})
	}
	switch t {
	case reflect.TypeFor[time.Duration]():
		return either(map[string]any{"type": "string", "pattern": `^[-+]?(0|([0-9]*\.?[0-9]+(ns|us|µs|ms|s|m|h))+)$`}, map[string]any{"const": 0})
	case reflect.TypeFor[Size]():
		return either(map[string]any{"type": "integer"}, map[string]any{"type": "string", "pattern": sizePattern})
	case reflect.TypeFor[Entry]():
		return map[string]any{"anyOf": []any{map[string]any{"const": savedWord}, object(t, comments)}}
	case reflect.TypeFor[Key]():
		return map[string]any{"anyOf": []any{map[string]any{"type": "string"}, object(t, comments)}}
	}
	switch t.Kind() {
	case reflect.Pointer:
		return schemaOf(t.Elem(), comments)
	case reflect.Map:
		return map[string]any{"type": "object", "additionalProperties": schemaOf(t.Elem(), comments)}
	case reflect.Slice:
		return map[string]any{"type": "array", "items": schemaOf(t.Elem(), comments)}
	case reflect.String:
		return map[string]any{"type": "string"}
	case reflect.Bool:
		return either(map[string]any{"type": "boolean"})
	case reflect.Int:
		return either(map[string]any{"type": "integer"})
	case reflect.Float64:
		return either(map[string]any{"type": "number"})
	case reflect.Struct:
		return object(t, comments)
	}
	panic("no schema for " + t.String())
}

// object is the schema of a struct as a mapping of its keys.
func object(t reflect.Type, comments map[string]string) map[string]any {
	properties := map[string]any{}
	for i := range t.NumField() {
		f := t.Field(i)
		if key := strict.Key(f); key != "" {
			properties[key] = described(schemaOf(f.Type, comments), comments[t.Name()+"."+f.Name])
		}
	}
	return map[string]any{"type": "object", "additionalProperties": false, "properties": properties}
}

// fieldComments returns the comments of types, by name, and of their fields, by "Type.Field". A field without one has that of
// its type, or that of the field above it.
func fieldComments(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	names, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	types := map[string]*ast.StructType{}
	for _, name := range names {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		for _, decl := range file.Decls {
			if group, ok := decl.(*ast.GenDecl); ok {
				for _, spec := range group.Specs {
					if typ, ok := spec.(*ast.TypeSpec); ok {
						all[typ.Name.Name] = strings.Join(strings.Fields(group.Doc.Text()), " ")
						if fields, ok := typ.Type.(*ast.StructType); ok {
							types[typ.Name.Name] = fields
						}
					}
				}
			}
		}
	}
	for typ, fields := range types {
		above := ""
		for _, field := range fields.Fields.List {
			if field.Doc != nil {
				above = strings.Join(strings.Fields(field.Doc.Text()), " ")
			}
			for _, name := range field.Names {
				about := above
				if field.Doc == nil {
					if of, ok := field.Type.(*ast.Ident); ok && all[of.Name] != "" && types[of.Name] != nil {
						about = strings.TrimPrefix(all[of.Name], of.Name+" is ")
					}
				}
				all[typ+"."+name.Name] = inKeys(about, fields)
			}
		}
	}
	return all
}

var link = regexp.MustCompile(`, as in \[[a-zA-Z.]+\]|\[([a-zA-Z.]+)\]`)

// inKeys says in the words of the file what a comment says in those of the code.
func inKeys(about string, fields *ast.StructType) string {
	about = link.ReplaceAllString(about, "$1")
	for _, field := range fields.Fields.List {
		for _, name := range field.Names {
			if field.Tag != nil {
				key := reflect.StructTag(strings.Trim(field.Tag.Value, "`")).Get("yaml")
				about = regexp.MustCompile(`\b`+name.Name+`\b`).ReplaceAllString(about, key)
			}
		}
	}
	return about
}

func generated(t *testing.T) []byte {
	t.Helper()
	root := schemaOf(reflect.TypeFor[File](), fieldComments(t))
	root["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	root["title"] = "Holdfast configuration"
	text, err := json.MarshalIndent(root, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return append(text, '\n')
}

// UPDATE=1 go test ./config -run Schema writes the file anew.
func TestTheSchemaIsThatOfTheStructs(t *testing.T) {
	want := generated(t)
	if os.Getenv("UPDATE") != "" {
		if err := os.WriteFile("holdfast.schema.json", want, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if string(Schema()) != string(want) {
		t.Error("holdfast.schema.json is not that of the structs; UPDATE=1 go test ./config -run Schema writes it anew")
	}
}

func TestTheSchemaDescribesEveryKey(t *testing.T) {
	t.Parallel()
	var root any
	if err := json.Unmarshal(Schema(), &root); err != nil {
		t.Fatal(err)
	}
	keys := 0
	var walk func(at string, node any)
	walk = func(at string, node any) {
		switch n := node.(type) {
		case []any:
			for _, v := range n {
				walk(at, v)
			}
		case map[string]any:
			properties, _ := n["properties"].(map[string]any)
			for key, v := range properties {
				keys++
				if about, _ := v.(map[string]any)["description"].(string); len(about) < 15 || strings.ContainsAny(about, "[]") {
					t.Errorf("%s.%s is described as %q", at, key, about)
				}
				walk(at+"."+key, v)
			}
			walk(at, n["anyOf"])
			walk(at, n["items"])
		}
	}
	walk("", root)
	if keys < 80 {
		t.Errorf("%d keys have been looked at; the schema is written in another way than this test reads", keys)
	}
}

// unfit says what a value breaks of a schema, as far as the schemas made here go; empty when it fits.
func unfit(schema map[string]any, value any, at string) string {
	if either, ok := schema["anyOf"].([]any); ok {
		var all []string
		for _, s := range either {
			wrong := unfit(s.(map[string]any), value, at)
			if wrong == "" {
				return ""
			}
			all = append(all, wrong)
		}
		return strings.Join(all, "; ")
	}
	if words, ok := schema["enum"].([]any); ok && !slices.Contains(words, value) {
		return fmt.Sprintf("%s: %v is none of %v", at, value, words)
	}
	if word, ok := schema["const"]; ok && fmt.Sprint(word) != fmt.Sprint(value) {
		return fmt.Sprintf("%s: %v is not %v", at, value, word)
	}
	text, isText := value.(string)
	if pattern, ok := schema["pattern"].(string); ok && !(isText && regexp.MustCompile(pattern).MatchString(text)) {
		return fmt.Sprintf("%s: %v does not match %s", at, value, pattern)
	}
	switch v := reflect.ValueOf(value); schema["type"] {
	case "object":
		m, ok := value.(map[string]any)
		if !ok {
			return fmt.Sprintf("%s: %v is no mapping", at, value)
		}
		for key, inside := range m {
			properties, _ := schema["properties"].(map[string]any)
			property, ok := properties[key].(map[string]any)
			if any, free := schema["additionalProperties"].(map[string]any); free && !ok {
				property, ok = any, true
			}
			if !ok {
				return at + "." + key + ": unknown key"
			}
			if wrong := unfit(property, inside, at+"."+key); wrong != "" {
				return wrong
			}
		}
	case "array":
		if v.Kind() != reflect.Slice {
			return fmt.Sprintf("%s: %v is no list", at, value)
		}
		for i := range v.Len() {
			if wrong := unfit(schema["items"].(map[string]any), v.Index(i).Interface(), fmt.Sprint(at, ".", i)); wrong != "" {
				return wrong
			}
		}
	case "string":
		if !isText {
			return fmt.Sprintf("%s: %v is no text", at, value)
		}
	case "boolean":
		if v.Kind() != reflect.Bool {
			return fmt.Sprintf("%s: %v is not true or false", at, value)
		}
	case "integer", "number":
		if !v.CanInt() && !v.CanUint() && !(schema["type"] == "number" && v.CanFloat()) {
			return fmt.Sprintf("%s: %v is no %v", at, value, schema["type"])
		}
	}
	return ""
}

// An editor that holds the example against the schema finds nothing wrong, and finds the mistakes of others.
func TestTheSchemaFitsWhatParseTakes(t *testing.T) {
	t.Parallel()
	example, err := os.ReadFile("testdata/holdfast.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var schema map[string]any
	if err := json.Unmarshal(Schema(), &schema); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		text string
		fits bool
	}{
		{string(example), true},
		{"policy: {attempts: \"${N}\", deadline: 0}\nlimits: {max_body: 1024, body_memory: 1.5GiB}\ntargets: [{url: x, keys: [a, {key: b}]}]\nroutes: [{chain: [saved], on_refusal: {model: m}}]", true},
		{"polcy: {}", false},
		{"policy: {attempts: few}", false},
		{"policy: {deadline: 10}", false},
		{"limits: {max_body: large}", false},
		{"targets: [{dialect: latin}]", false},
		{"targets: {url: x}", false},
		{"routes: [{chain: [sved]}]", false},
		{"routes: [{chain: [{targt: x}]}]", false},
		{"clients: [{lane: 3}]", false},
		{"saved: {mark: 1}", false},
	} {
		var value map[string]any
		if err := yaml.Unmarshal([]byte(c.text), &value); err != nil {
			t.Fatal(err)
		}
		if wrong := unfit(schema, value, ""); (wrong == "") != c.fits {
			t.Errorf("%.40q fits: %v, want %v; %s", c.text, wrong == "", c.fits, wrong)
		}
	}
}
