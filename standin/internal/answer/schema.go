package answer

import (
	"encoding/json"
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

const (
	maxDepth = 24   // of a value; deeper ones end as soon as the schema lets them
	maxNodes = 2000 // of a whole value, so that a schema that doubles at each level stays small
	maxRefs  = 32   // followed in a row
	maxBytes = 4096 // of one string that a schema wants long
)

// Synthesize returns a value for a JSON Schema, as JSON: the required properties, the first of an enum, numbers and
// lengths within their bounds. The same schema gets the same value. Where a schema is wrong, recursive without an end or
// beyond what is understood here, the value is short rather than right. object asks for an object where the schema
// leaves it open.
func Synthesize(schema any, object bool) []byte {
	s := synthesis{root: schema}
	if object {
		return s.object(nil, fields(s.resolve(schema)), 0)
	}
	return s.value(nil, schema, 0, 0)
}

// synthesis is one value being made.
type synthesis struct {
	root  any
	nodes int
}

// node is the keywords of a schema.
type node map[string]any

func fields(schema any) node {
	n, _ := schema.(map[string]any)
	return n
}

// value appends a value. variant tells the elements of an array that must be unique apart.
func (s *synthesis) value(dst []byte, schema any, depth, variant int) []byte {
	s.nodes++
	n := fields(s.resolve(schema))
	n = s.merge(n, depth)
	if value, found := n["const"]; found {
		return append(dst, encoded(value)...)
	}
	if list, _ := n["enum"].([]any); len(list) > 0 {
		return append(dst, encoded(list[variant%len(list)])...)
	}
	if s.nodes > maxNodes {
		return append(dst, "null"...)
	}
	switch n.kind() {
	case "object":
		return s.object(dst, n, depth)
	case "array":
		return s.array(dst, n, depth)
	case "integer":
		return n.number(dst, true, variant)
	case "number":
		return n.number(dst, false, variant)
	case "boolean":
		return strconv.AppendBool(dst, variant%2 == 0)
	case "null":
		return append(dst, "null"...)
	}
	return quote(dst, n.text(variant))
}

// resolve follows $ref, inside the document alone.
func (s *synthesis) resolve(schema any) any {
	for range maxRefs {
		n := fields(schema)
		ref, isRef := n["$ref"].(string)
		if !isRef {
			return schema
		}
		target, found := s.find(ref)
		if !found {
			return without(n, "$ref")
		}
		schema = target
	}
	return nil
}

func without(n node, name string) map[string]any {
	rest := make(map[string]any, len(n))
	for key, value := range n {
		if key != name {
			rest[key] = value
		}
	}
	return rest
}

// find returns what a JSON pointer in a fragment points to.
func (s *synthesis) find(ref string) (any, bool) {
	pointer, inside := strings.CutPrefix(ref, "#")
	if !inside {
		return nil, false
	}
	at := s.root
	for key := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		if key == "" {
			continue
		}
		if plain, err := url.PathUnescape(key); err == nil {
			key = plain
		}
		key = strings.ReplaceAll(strings.ReplaceAll(key, "~1", "/"), "~0", "~")
		switch holder := at.(type) {
		case map[string]any:
			next, found := holder[key]
			if !found {
				return nil, false
			}
			at = next
		case []any:
			i, err := strconv.Atoi(key)
			if err != nil || i < 0 || i >= len(holder) {
				return nil, false
			}
			at = holder[i]
		default:
			return nil, false
		}
	}
	return at, true
}

// merge takes the parts of allOf and one of anyOf and oneOf into the schema.
func (s *synthesis) merge(n node, depth int) node {
	for range maxRefs {
		parts, _ := n["allOf"].([]any)
		branches, _ := n["anyOf"].([]any)
		if branches == nil {
			branches, _ = n["oneOf"].([]any)
		}
		if len(parts) == 0 && len(branches) == 0 {
			return n
		}
		whole := without(without(without(n, "allOf"), "anyOf"), "oneOf")
		for _, part := range parts {
			whole = join(whole, fields(s.resolve(part)))
		}
		if len(branches) > 0 {
			whole = join(whole, fields(s.resolve(s.branch(branches, depth))))
		}
		n = whole
	}
	return n
}

// branch chooses the first of some alternatives that is a value; deep inside, the first that goes no deeper.
func (s *synthesis) branch(branches []any, depth int) any {
	for _, branch := range branches {
		n := fields(s.resolve(branch))
		kind := n.kind()
		nested := kind == "object" || kind == "array"
		if depth < maxDepth/2 && kind != "null" || depth >= maxDepth/2 && !nested {
			return branch
		}
	}
	return branches[0]
}

// join lays b over a: the properties and required names of both hold, of all else b.
func join(a, b map[string]any) map[string]any {
	whole := without(a, "")
	for key, value := range b {
		switch key {
		case "properties":
			whole[key] = join(fields(a[key]), fields(value))
		case "required", "allOf":
			first, _ := a[key].([]any)
			second, _ := value.([]any)
			whole[key] = slices.Concat(first, second)
		default:
			whole[key] = value
		}
	}
	return whole
}

// kind is the type that the value will have; a schema that does not say is known by its keywords.
func (n node) kind() string {
	switch named := n["type"].(type) {
	case string:
		return named
	case []any:
		for _, one := range named {
			if name, _ := one.(string); name != "" && name != "null" {
				return name
			}
		}
		if len(named) > 0 {
			return "null"
		}
	}
	for _, known := range []struct{ keyword, kind string }{
		{"properties", "object"}, {"required", "object"}, {"additionalProperties", "object"},
		{"items", "array"}, {"prefixItems", "array"}, {"minItems", "array"},
		{"minimum", "number"}, {"maximum", "number"}, {"multipleOf", "number"},
		{"exclusiveMinimum", "number"}, {"exclusiveMaximum", "number"},
	} {
		if _, found := n[known.keyword]; found {
			return known.kind
		}
	}
	return "string"
}

func (s *synthesis) object(dst []byte, n node, depth int) []byte {
	if depth == 0 {
		n = s.merge(n, depth)
	}
	properties := fields(n["properties"])
	var names []string
	list, _ := n["required"].([]any)
	for _, one := range list {
		if name, isName := one.(string); isName && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	names = append(names, n.more(names, properties)...)
	dst = append(dst, '{')
	for i, name := range names {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(quote(dst, name), ':')
		if depth >= maxDepth || s.nodes > maxNodes {
			dst = append(dst, "null"...)
			continue
		}
		property, found := properties[name]
		if !found {
			property = n["additionalProperties"]
		}
		dst = s.value(dst, property, depth+1, 0)
	}
	return append(dst, '}')
}

// more are the optional properties, in the order of the alphabet, that minProperties makes needed.
func (n node) more(names []string, properties node) []string {
	least, _ := asFloat(n["minProperties"])
	var optional []string
	for name := range properties {
		if !slices.Contains(names, name) {
			optional = append(optional, name)
		}
	}
	slices.Sort(optional)
	return optional[:max(0, min(len(optional), int(min(least, maxNodes))-len(names)))]
}

func (s *synthesis) array(dst []byte, n node, depth int) []byte {
	least, _ := asFloat(n["minItems"])
	count := int(max(0, min(least, maxNodes)))
	prefix, _ := n["prefixItems"].([]any)
	items := n["items"]
	if list, isList := items.([]any); isList { // what prefixItems was called before
		prefix, items = list, n["additionalItems"]
	}
	most, limited := asFloat(n["maxItems"])
	if depth < maxDepth/2 {
		count = max(count, len(prefix), 1)
	}
	if limited {
		count = min(count, int(max(most, 0)))
	}
	unique, _ := n["uniqueItems"].(bool)
	dst = append(dst, '[')
	for i := range count {
		if depth >= maxDepth || s.nodes > maxNodes {
			break
		}
		if i > 0 {
			dst = append(dst, ',')
		}
		item, variant := items, 0
		if i < len(prefix) {
			item = prefix[i]
		}
		if unique {
			variant = i
		}
		dst = s.value(dst, item, depth+1, variant)
	}
	return append(dst, ']')
}

// number appends a number within the bounds: 1 when it can be, else the bound next to it.
func (n node) number(dst []byte, whole bool, variant int) []byte {
	low, high := n.bounds(whole)
	step, stepped := asFloat(n["multipleOf"])
	if !stepped || step <= 0 {
		step = 1
	}
	v := 1.0
	if v < low {
		v = math.Ceil(low/step) * step
	}
	if v > high {
		v = math.Floor(high/step) * step
	}
	if stepped {
		v = math.Round(v/step) * step
		if v < low || v == 0 && low <= step && step <= high {
			v += step
		}
	}
	if v += float64(variant) * step; v > high {
		v -= 2 * float64(variant) * step
	}
	if !whole && (v < low || v > high) { // no whole step between the bounds
		v = low + (high-low)/2
	}
	if math.IsInf(v, 0) || math.IsNaN(v) {
		v = 0
	}
	format := byte('f')
	if math.Abs(v) >= 1e21 {
		format = 'e'
	}
	return strconv.AppendFloat(dst, v, format, -1, 64)
}

// bounds are the least and greatest number allowed. Exclusive bounds are moved inwards.
func (n node) bounds(whole bool) (low, high float64) {
	low, high = math.Inf(-1), math.Inf(1)
	inwards := 1.0
	if v, found := asFloat(n["minimum"]); found {
		low = v
	}
	if v, found := asFloat(n["maximum"]); found {
		high = v
	}
	above, isAbove := asFloat(n["exclusiveMinimum"])
	if flag, _ := n["exclusiveMinimum"].(bool); flag {
		above, isAbove = low, true
	}
	below, isBelow := asFloat(n["exclusiveMaximum"])
	if flag, _ := n["exclusiveMaximum"].(bool); flag {
		below, isBelow = high, true
	}
	if !whole && isAbove && isBelow && below-above < 2 {
		inwards = (below - above) / 4
	} else if !whole {
		inwards = 0.5
	}
	if isAbove {
		low = max(low, above+inwards)
	}
	if isBelow {
		high = min(high, below-inwards)
	}
	if whole {
		low, high = math.Ceil(low), math.Floor(high)
	}
	return low, high
}

// asFloat reads a number of a decoded document.
func asFloat(v any) (float64, bool) {
	switch v := v.(type) {
	case float64:
		return v, true
	case int:
		return float64(v), true
	case int64:
		return float64(v), true
	case uint64:
		return float64(v), true
	case json.Number:
		f, err := v.Float64()
		return f, err == nil
	}
	return 0, false
}

// formats are values for the formats that a schema may ask of a string.
var formats = map[string]string{
	"date-time": "2026-01-02T03:04:05Z", "date": "2026-01-02", "time": "03:04:05Z", "duration": "PT1S",
	"email": "stand-in@example.com", "idn-email": "stand-in@example.com",
	"hostname": "example.com", "idn-hostname": "example.com", "ipv4": "192.0.2.1", "ipv6": "2001:db8::1",
	"uri": "https://example.com/", "uri-reference": "/", "iri": "https://example.com/", "iri-reference": "/",
	"uuid": "00000000-0000-4000-8000-000000000001", "json-pointer": "/a", "regex": "a",
}

// text is a string of a length within the bounds.
func (n node) text(variant int) string {
	text := "stand-in"
	if format, _ := n["format"].(string); formats[format] != "" {
		text = formats[format]
	}
	if pattern, _ := n["pattern"].(string); pattern != "" {
		if matching, found := match(pattern); found {
			text = matching
		}
	}
	if variant > 0 {
		text += strconv.Itoa(variant)
	}
	if least, found := asFloat(n["minLength"]); found {
		if missing := int(min(least, maxBytes)) - utf8.RuneCountInString(text); missing > 0 {
			text += strings.Repeat("a", missing)
		}
	}
	if most, found := asFloat(n["maxLength"]); found && float64(utf8.RuneCountInString(text)) > most {
		text = text[:len(text)-len(behind(text, int(max(most, 0))))]
	}
	return text
}
