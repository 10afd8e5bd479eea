package config

import (
	"encoding/json"
	"fmt"
	"reflect"
	"time"

	"holdfast/internal/strict"
)

// Schema returns the JSON Schema (draft 2020-12) of the file, made from the structs that read it, for editors that
// complete and check while one types.
func Schema() ([]byte, error) {
	root := schemaOf(reflect.TypeFor[File]())
	root["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	root["title"] = "Holdfast configuration"
	text, err := json.MarshalIndent(root, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("config: schema: %w", err)
	}
	return append(text, '\n'), nil
}

// variablePattern lets every value be a text with an environment variable in it.
const variablePattern = `\$\{[^}]*\}`

func schemaOf(t reflect.Type) map[string]any {
	either := func(own map[string]any) map[string]any {
		return map[string]any{"anyOf": []any{own, map[string]any{"type": "string", "pattern": variablePattern}}}
	}
	if w, ok := reflect.Zero(t).Interface().(interface{ words() []string }); ok {
		return either(map[string]any{"enum": w.words()})
	}
	if t == reflect.TypeFor[time.Duration]() {
		return either(map[string]any{"type": "string", "pattern": `^[-+]?(0|([0-9]*\.?[0-9]+(ns|us|µs|ms|s|m|h))+)$`})
	}
	switch t {
	case reflect.TypeFor[Size]():
		return either(map[string]any{"anyOf": []any{map[string]any{"type": "integer"}, map[string]any{"type": "string", "pattern": sizePattern}}})
	case reflect.TypeFor[Entry]():
		return map[string]any{"anyOf": []any{map[string]any{"const": savedWord}, object(t)}}
	case reflect.TypeFor[Key]():
		return map[string]any{"anyOf": []any{map[string]any{"type": "string"}, object(t)}}
	}
	switch t.Kind() {
	case reflect.Pointer:
		return schemaOf(t.Elem())
	case reflect.Slice:
		return map[string]any{"type": "array", "items": schemaOf(t.Elem())}
	case reflect.String:
		return map[string]any{"type": "string"}
	case reflect.Bool:
		return either(map[string]any{"type": "boolean"})
	case reflect.Int:
		return either(map[string]any{"type": "integer"})
	case reflect.Float64:
		return either(map[string]any{"type": "number"})
	case reflect.Struct:
		return object(t)
	}
	return map[string]any{}
}

// object is the schema of a struct as a mapping of its keys.
func object(t reflect.Type) map[string]any {
	properties := map[string]any{}
	for i := range t.NumField() {
		if key := strict.Key(t.Field(i)); key != "" {
			properties[key] = schemaOf(t.Field(i).Type)
		}
	}
	return map[string]any{"type": "object", "additionalProperties": false, "properties": properties}
}
