package strict

import (
	"encoding"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"
)

// Ordered is a mapping whose keys are free and keep their order.
type Ordered[V any] []Entry[V]

// Entry is one key of an Ordered mapping.
type Entry[V any] struct {
	Key   string
	Value V
}

func (Ordered[V]) ordered() {}

// Secret is a type whose text no mistake shows: neither its own nor that of what stands where it, or a struct that holds
// one, belongs. Whoever put it in a wrong place still put it there.
type Secret interface{ Reveal() string }

var (
	secretType  = reflect.TypeFor[Secret]()
	orderedType = reflect.TypeFor[interface{ ordered() }]()
	textType    = reflect.TypeFor[encoding.TextUnmarshaler]()
	periodType  = reflect.TypeFor[time.Duration]()
)

// Set decodes one value into the field that a dotted path names, as a flag "key.path=value" does. A number names a place in
// a list, and the first free one adds to it. What into shares with copies of it stays as it is.
func (d *Document) Set(into any, path, value string) {
	at, ok := d.field(reflect.ValueOf(into).Elem(), path)
	if !ok {
		return
	}
	file, err := parse([]byte(value))
	if err != nil || len(file.Docs) != 1 || file.Docs[0].Body == nil {
		what := fmt.Sprintf("%q", value)
		if holdsSecret(at.Type()) {
			what = "this"
		}
		d.add(0, path, what+" is not a value")
		return
	}
	before := len(d.mistakes)
	d.value(file.Docs[0].Body, at, path)
	for _, m := range d.mistakes[before:] {
		m.Line = 0 // a flag has no lines
	}
}

// field returns what a dotted path names, and on the way there a copy of every list and of everything pointed to.
func (d *Document) field(at reflect.Value, path string) (reflect.Value, bool) {
	walked := ""
	for _, key := range strings.Split(path, ".") {
		if at.Kind() == reflect.Pointer {
			own := reflect.New(at.Type().Elem())
			if !at.IsNil() {
				own.Elem().Set(at.Elem())
			}
			at.Set(own)
			at = own.Elem()
		}
		switch at.Kind() {
		case reflect.Struct:
			field, ok := fieldOf(at, key)
			if !ok {
				text, _ := unknown(key, at.Type())
				d.add(0, path, text)
				return at, false
			}
			at = field
		case reflect.Slice:
			i, err := strconv.Atoi(key)
			if err != nil || i < 0 || i > at.Len() {
				d.add(0, path, fmt.Sprintf("%s is a list, and %q is not from 0 to %d", walked, key, at.Len()))
				return at, false
			}
			own := reflect.MakeSlice(at.Type(), max(at.Len(), i+1), max(at.Len(), i+1))
			reflect.Copy(own, at)
			at.Set(own)
			at = own.Index(i)
		default:
			d.add(0, path, fmt.Sprintf("%s is a single value and has no key %q", walked, key))
			return at, false
		}
		walked = Join(walked, key)
	}
	return at, true
}

func (d *Document) top(n ast.Node, into any) {
	if isNull(n) {
		return
	}
	d.value(n, reflect.ValueOf(into).Elem(), "")
}

func isNull(n ast.Node) bool {
	_, null := n.(*ast.NullNode)
	return null
}

// isMapping reports whether a node has keys.
func isMapping(n ast.Node) bool {
	switch n.(type) {
	case *ast.MappingNode, *ast.MappingValueNode:
		return true
	}
	return false
}

// keyed reports whether a struct has fields with keys. One that reads text as well may be written either way.
func keyed(t reflect.Type) bool {
	for i := range t.NumField() {
		if Key(t.Field(i)) != "" {
			return true
		}
	}
	return false
}

// value decodes one node. A null leaves the field as it is, which is how YAML writes a key without a value.
func (d *Document) value(n ast.Node, to reflect.Value, path string) {
	if isNull(n) {
		return
	}
	switch n.(type) {
	case *ast.AnchorNode, *ast.AliasNode, *ast.TagNode, *ast.MergeKeyNode:
		d.wrongAt(n, path, "anchors, aliases and tags are not supported; write the value out")
		return
	}
	switch {
	case to.Type().Implements(orderedType):
		d.entries(n, to, path)
	case to.Kind() == reflect.Struct && keyed(to.Type()) && (isMapping(n) || !reflect.PointerTo(to.Type()).Implements(textType)):
		d.object(n, to, path)
	case reflect.PointerTo(to.Type()).Implements(textType):
		if text, ok := d.scalar(n, path, "text"); ok {
			err := to.Addr().Interface().(encoding.TextUnmarshaler).UnmarshalText([]byte(text))
			if err != nil && (holdsSecret(to.Type()) || !d.hidden(n, text, path, "one of the words known there")) {
				d.wrongAt(n, path, err.Error()) // a secret's own error does not show it
			}
		}
	case to.Kind() == reflect.Struct:
		d.object(n, to, path)
	case to.Kind() == reflect.Map:
		d.free(n, to, path)
	case to.Kind() == reflect.Slice:
		d.list(n, to, path)
	case to.Kind() == reflect.Pointer:
		fresh := reflect.New(to.Type().Elem())
		d.value(n, fresh.Elem(), path)
		to.Set(fresh)
	default:
		d.single(n, to, path)
	}
}

// pairs returns the keys and values of a mapping.
func (d *Document) pairs(n ast.Node, t reflect.Type, path string) (pairs []*ast.MappingValueNode) {
	switch m := n.(type) {
	case *ast.MappingNode:
		pairs = m.Values
	case *ast.MappingValueNode:
		pairs = []*ast.MappingValueNode{m}
	default:
		d.wrongAt(n, path, fmt.Sprintf("must be a mapping of keys, not %s", what(n, t)))
		return nil
	}
	seen := map[string]int{}
	kept := make([]*ast.MappingValueNode, 0, len(pairs))
	for _, p := range pairs {
		key := p.Key.GetToken()
		at := Join(path, key.Value)
		if first, again := seen[key.Value]; again {
			d.add(key.Position.Line, at, fmt.Sprintf("stands here again after line %d", first))
			continue
		}
		seen[key.Value] = key.Position.Line
		d.note(at, key.Position.Line)
		kept = append(kept, p)
	}
	return kept
}

func (d *Document) object(n ast.Node, to reflect.Value, path string) {
	for _, p := range d.pairs(n, to.Type(), path) {
		key := p.Key.GetToken().Value
		field, ok := fieldOf(to, key)
		if !ok {
			text, near := unknown(key, to.Type())
			d.add(p.Key.GetToken().Position.Line, Join(path, key), text)
			if near != "" && d.misread != nil {
				d.misread[Join(path, near)] = true
			}
			continue
		}
		d.value(p.Value, field, Join(path, key))
	}
}

func (d *Document) entries(n ast.Node, to reflect.Value, path string) {
	all := reflect.MakeSlice(to.Type(), 0, 0)
	for _, p := range d.pairs(n, to.Type(), path) {
		key := p.Key.GetToken().Value
		entry := reflect.New(to.Type().Elem()).Elem()
		entry.FieldByName("Key").SetString(key)
		d.value(p.Value, entry.FieldByName("Value"), Join(path, key))
		all = reflect.Append(all, entry)
	}
	to.Set(all)
}

// free decodes a map with text for keys.
func (d *Document) free(n ast.Node, to reflect.Value, path string) {
	all := reflect.MakeMap(to.Type())
	for _, p := range d.pairs(n, to.Type(), path) {
		key := p.Key.GetToken().Value
		fresh := reflect.New(to.Type().Elem()).Elem()
		d.value(p.Value, fresh, Join(path, key))
		all.SetMapIndex(reflect.ValueOf(key).Convert(to.Type().Key()), fresh)
	}
	to.Set(all)
}

func (d *Document) list(n ast.Node, to reflect.Value, path string) {
	s, ok := n.(*ast.SequenceNode)
	if !ok && d.Single && to.Type().Elem().Kind() == reflect.String && !isMapping(n) {
		all := reflect.MakeSlice(to.Type(), 1, 1)
		d.value(n, all.Index(0), path)
		to.Set(all)
		return
	}
	if !ok {
		d.wrongAt(n, path, fmt.Sprintf("must be a list, not %s", what(n, to.Type())))
		return
	}
	all := reflect.MakeSlice(to.Type(), len(s.Values), len(s.Values))
	for i, v := range s.Values {
		at := fmt.Sprintf("%s.%d", path, i)
		d.note(at, v.GetToken().Position.Line)
		d.value(v, all.Index(i), at)
	}
	to.Set(all)
}

// scalar returns the text of a single value, expanded. Numbers and booleans must not be quoted unless they expand.
func (d *Document) scalar(n ast.Node, path, wanted string) (string, bool) {
	switch n.(type) {
	case *ast.MappingNode, *ast.MappingValueNode, *ast.SequenceNode:
		d.wrongAt(n, path, fmt.Sprintf("must be %s, not %s", wanted, what(n, nil)))
		return "", false
	}
	text := n.GetToken().Value
	if l, ok := n.(*ast.LiteralNode); ok {
		text = l.Value.Value
	}
	if d.Expand == nil {
		return text, true
	}
	expanded, err := d.Expand(text)
	if err != nil {
		d.wrongAt(n, path, err.Error())
		return "", false
	}
	return expanded, true
}

// hidden reports a mistake in a value that came from the environment, without the value: it may be a key in a wrong
// place. It reports false for a value that stands in the document.
func (d *Document) hidden(n ast.Node, text, path, wanted string) bool {
	raw := n.GetToken().Value
	if l, ok := n.(*ast.LiteralNode); ok {
		raw = l.Value.Value
	}
	if raw == text {
		return false
	}
	d.wrongAt(n, path, fmt.Sprintf("must be %s, which the value of %s is not", wanted, raw))
	return true
}

var wanted = map[reflect.Kind]string{
	reflect.Int: "a whole number", reflect.Uint64: "a whole number, not negative", reflect.Float64: "a number", reflect.Bool: "true or false", reflect.String: "text",
}

func (d *Document) single(n ast.Node, to reflect.Value, path string) {
	kind := wanted[to.Kind()]
	if to.Type() == periodType {
		kind = "a time such as 500ms or 10m"
		if d.Seconds {
			kind += ", or a number of seconds"
		}
	}
	text, ok := d.scalar(n, path, kind)
	if !ok {
		return
	}
	t := n.GetToken()
	quoted := t.Type == token.SingleQuoteType || t.Type == token.DoubleQuoteType
	if quoted && text == t.Value && to.Kind() != reflect.String && to.Type() != periodType {
		d.wrongAt(n, path, fmt.Sprintf("must be %s, not the text %q", kind, text))
		return
	}
	if d.Seconds && to.Type() == periodType {
		if p, ok := Period(text); ok {
			to.SetInt(int64(p))
			return
		}
	}
	if !put(to, text) {
		if d.hidden(n, text, path, kind) {
			return
		}
		if _, number := strconv.ParseFloat(text, 64); !d.Seconds && to.Type() == periodType && number == nil {
			d.wrongAt(n, path, fmt.Sprintf("%s has no unit; write %ss for seconds", text, text))
			return
		}
		d.wrongAt(n, path, fmt.Sprintf("must be %s, not %q", kind, text))
	}
}

// Period reads a time such as 500ms, or a plain number of seconds. It reports false for anything else, and for a time
// that is too long to count.
func Period(text string) (time.Duration, bool) {
	if p, err := time.ParseDuration(text); err == nil {
		return p, true
	}
	if _, err := strconv.ParseFloat(text, 64); err != nil { // or 1m would be taken for 1ms
		return 0, false
	}
	p, err := time.ParseDuration(text + "s")
	return p, err == nil
}

// put parses text into a field of one of the kinds in wanted. It reports false when it cannot.
func put(to reflect.Value, text string) bool {
	if to.Type() == periodType {
		p, err := time.ParseDuration(text)
		to.SetInt(int64(p))
		return err == nil
	}
	switch to.Kind() {
	case reflect.Int:
		i, err := strconv.Atoi(text)
		to.SetInt(int64(i))
		return err == nil
	case reflect.Uint64:
		u, err := strconv.ParseUint(text, 10, 64)
		to.SetUint(u)
		return err == nil
	case reflect.Float64:
		f, err := strconv.ParseFloat(text, 64)
		if err != nil || math.IsNaN(f) || math.IsInf(f, 0) {
			return false
		}
		to.SetFloat(f)
		return true
	case reflect.Bool:
		to.SetBool(text == "true")
		return text == "true" || text == "false"
	case reflect.String:
		to.SetString(text)
		return true
	}
	return false
}

func (d *Document) wrongAt(n ast.Node, path, text string) {
	line := 0
	if t := n.GetToken(); t != nil && t.Position != nil {
		line = t.Position.Line
	}
	d.add(line, path, text)
}

// what says what stands where a value of type t belongs; t is nil where the node is not a single value.
func what(n ast.Node, t reflect.Type) string {
	switch n.(type) {
	case *ast.MappingNode, *ast.MappingValueNode:
		return "a mapping"
	case *ast.SequenceNode:
		return "a list"
	}
	if holdsSecret(t) {
		return "a single value"
	}
	return fmt.Sprintf("%q", n.GetToken().Value)
}

// holdsSecret reports whether a type is a [Secret] or has one in it.
func holdsSecret(t reflect.Type) bool { return t != nil && hasSecret(t, map[reflect.Type]bool{}) }

func hasSecret(t reflect.Type, seen map[reflect.Type]bool) bool {
	if t.Implements(secretType) {
		return true
	}
	if seen[t] {
		return false
	}
	seen[t] = true
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map:
		return hasSecret(t.Elem(), seen)
	case reflect.Struct:
		for i := range t.NumField() {
			if f := t.Field(i); Key(f) != "" && hasSecret(f.Type, seen) {
				return true
			}
		}
	}
	return false
}

// Join returns the path of a key, or of a place in a list, below a path. A key that would not read well is quoted.
func Join(path, key string) string {
	if quoted := strconv.Quote(key); key == "" || len(quoted) != len(key)+2 {
		key = quoted
	}
	if path == "" {
		return key
	}
	return path + "." + key
}
