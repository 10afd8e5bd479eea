package request

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// kind is what a JSON value is.
type kind uint8

const (
	absent kind = iota // the zero value: there is no value
	isNull
	isFalse
	isTrue
	isNumber
	isString
	isArray
	isObject
)

// value is a parsed JSON value. It is parsed by hand, for three reasons: a refusal names the place in the text in the
// words of the API; half a surrogate pair is a mistake there, and encoding/json accepts it; and a small message is read
// in a fifth of the time.
type value struct {
	kind    kind
	escaped bool   // of a string: it holds a backslash
	raw     string // the text, quotes included
	members []member
}

// member is a member of an object, or an element of an array, which has no key.
type member struct {
	key string
	value
}

// syntaxError is a mistake in a JSON text.
type syntaxError struct {
	what string
	text string
	at   int // bytes in front of it
}

// Error words it as the API does: line and column from 1, characters from 0.
func (e *syntaxError) Error() string {
	before := e.text[:min(e.at, len(e.text))]
	column := utf8.RuneCountInString(before[strings.LastIndexByte(before, '\n')+1:]) + 1
	return fmt.Sprintf("%s: line %d column %d (char %d)", e.what, strings.Count(before, "\n")+1, column, utf8.RuneCountInString(before))
}

// maxDepth is how deep values may be nested. The limit of encoding/json.
const maxDepth = 10000

// parser reads one JSON text.
type parser struct {
	text    string
	at      int
	depth   int
	members []member // of the containers that are still open
}

// parseJSON reads a text that is one JSON value.
func parseJSON(text string) (value, *syntaxError) {
	p := parser{text: text, members: make([]member, 0, 8)}
	if text == "" {
		return value{}, p.fail("input data is empty")
	}
	if !utf8.ValidString(text) {
		for p.at < len(text) {
			r, size := utf8.DecodeRuneInString(text[p.at:])
			if r == utf8.RuneError && size == 1 {
				return value{}, p.fail("invalid UTF-8 encoding in string")
			}
			p.at += size
		}
	}
	v, err := p.value()
	if err != nil {
		return value{}, err
	}
	p.space()
	if p.at < len(text) {
		return value{}, p.fail("unexpected content after document")
	}
	return v, nil
}

func (p *parser) fail(what string) *syntaxError {
	if p.at >= len(p.text) && p.text != "" {
		what = "unexpected end of data"
	}
	return &syntaxError{what: what, text: p.text, at: p.at}
}

func (p *parser) space() {
	text, at := p.text, p.at
	for at < len(text) && (text[at] == ' ' || text[at] == '\n' || text[at] == '\r' || text[at] == '\t') {
		at++
	}
	p.at = at
}

// peek returns the next byte, or 0 at the end.
func (p *parser) peek() byte {
	if p.at < len(p.text) {
		return p.text[p.at]
	}
	return 0
}

func (p *parser) value() (value, *syntaxError) {
	p.space()
	switch c := p.peek(); {
	case c == '"':
		return p.str()
	case c == '{':
		return p.container(isObject, '}')
	case c == '[':
		return p.container(isArray, ']')
	case c == 't':
		return p.literal("true", isTrue)
	case c == 'f':
		return p.literal("false", isFalse)
	case c == 'n':
		return p.literal("null", isNull)
	case c == '-' || c >= '0' && c <= '9':
		return p.number()
	}
	return value{}, p.fail("unexpected character")
}

func (p *parser) literal(word string, k kind) (value, *syntaxError) {
	if !strings.HasPrefix(p.text[p.at:], word) {
		return value{}, p.fail("unexpected character")
	}
	p.at += len(word)
	return value{kind: k, raw: word}, nil
}

// container reads an object or an array. Its members are collected behind those of the containers around it and copied
// once their number is known.
func (p *parser) container(k kind, end byte) (value, *syntaxError) {
	start, first := p.at, len(p.members)
	if p.depth++; p.depth > maxDepth {
		return value{}, p.fail("recursion limit reached")
	}
	p.at++
	for p.space(); p.peek() != end; {
		key, err := "", (*syntaxError)(nil)
		if k == isObject {
			if key, err = p.key(); err != nil {
				return value{}, err
			}
		}
		v, err := p.value()
		if err != nil {
			return value{}, err
		}
		p.members = append(p.members, member{key: key, value: v})
		p.space()
		if p.peek() == end {
			break
		}
		if p.peek() != ',' {
			return value{}, p.fail("unexpected character")
		}
		p.at++
		if p.space(); p.peek() == end {
			return value{}, p.fail("trailing comma is not allowed")
		}
	}
	p.at++
	p.depth--
	v := value{kind: k, raw: p.text[start:p.at], members: append([]member(nil), p.members[first:]...)}
	p.members = p.members[:first]
	return v, nil
}

func (p *parser) key() (string, *syntaxError) {
	if p.peek() != '"' {
		return "", p.fail("unexpected character")
	}
	name, err := p.str()
	if err != nil {
		return "", err
	}
	p.space()
	if p.peek() != ':' {
		return "", p.fail("unexpected character")
	}
	p.at++
	return name.text(), nil
}

func (p *parser) number() (value, *syntaxError) {
	start := p.at
	if p.peek() == '-' {
		p.at++
	}
	zero := p.peek() == '0'
	switch n := p.digits(); {
	case n == 0:
		return value{}, p.fail("no digit after minus sign")
	case zero && n > 1:
		p.at = start
		return value{}, p.fail("number with leading zero is not allowed")
	}
	if p.peek() == '.' {
		p.at++
		if p.digits() == 0 {
			return value{}, p.fail("no digit after decimal point")
		}
	}
	if c := p.peek(); c == 'e' || c == 'E' {
		p.at++
		if c := p.peek(); c == '+' || c == '-' {
			p.at++
		}
		if p.digits() == 0 {
			return value{}, p.fail("no digit after exponent sign")
		}
	}
	return value{kind: isNumber, raw: p.text[start:p.at]}, nil
}

func (p *parser) digits() int {
	start := p.at
	for c := p.peek(); c >= '0' && c <= '9'; c = p.peek() {
		p.at++
	}
	return p.at - start
}

func (p *parser) str() (value, *syntaxError) {
	start := p.at
	v := value{kind: isString}
	for p.at++; ; {
		switch c := p.peek(); {
		case c == '"':
			p.at++
			v.raw = p.text[start:p.at]
			return v, nil
		case c == '\\':
			v.escaped = true
			if err := p.escape(); err != nil {
				return value{}, err
			}
		case c < ' ': // the end of the text as well
			return value{}, p.fail("unexpected control character in string")
		default:
			p.plain()
		}
	}
}

// plain passes over characters of a string that mean themselves. Most of a body is such text.
func (p *parser) plain() {
	text, at := p.text, p.at
	for at < len(text) && text[at] >= ' ' && text[at] != '"' && text[at] != '\\' {
		at++
	}
	p.at = at
}

// escape reads one escaped character, or a surrogate pair.
func (p *parser) escape() *syntaxError {
	if p.at+1 >= len(p.text) {
		p.at = len(p.text)
		return p.fail("")
	}
	switch p.text[p.at+1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		p.at += 2
		return nil
	case 'u':
	default:
		return p.fail("invalid escaped character in string")
	}
	r, ok := p.unit()
	switch {
	case !ok:
		return p.fail("invalid escaped sequence in string")
	case r >= 0xdc00 && r < 0xe000:
		return p.fail("invalid high surrogate in string")
	case r < 0xd800 || r >= 0xe000:
		p.at += 6
		return nil
	}
	p.at += 6
	low, ok := p.unit()
	switch {
	case !ok:
		return p.fail("no low surrogate in string")
	case low < 0xdc00 || low >= 0xe000:
		return p.fail("invalid low surrogate in string")
	}
	p.at += 6
	return nil
}

// unit returns the UTF-16 unit that is written out at the place.
func (p *parser) unit() (rune, bool) {
	rest := p.text[p.at:]
	if len(rest) < 6 || rest[0] != '\\' || rest[1] != 'u' {
		return 0, false
	}
	r, err := strconv.ParseUint(rest[2:6], 16, 16)
	return rune(r), err == nil
}

// text returns the content of a string, and "" of anything else.
func (v *value) text() string {
	if v == nil || v.kind != isString {
		return ""
	}
	inner := v.raw[1 : len(v.raw)-1]
	if !v.escaped {
		return inner
	}
	var b strings.Builder
	b.Grow(len(inner))
	for {
		plain, rest, found := strings.Cut(inner, `\`)
		b.WriteString(plain)
		if !found {
			return b.String()
		}
		if rest[0] != 'u' {
			b.WriteByte(unescaped[rest[0]])
			inner = rest[1:]
			continue
		}
		r, n := hex(rest[1:5]), 5
		if utf16.IsSurrogate(r) {
			r, n = utf16.DecodeRune(r, hex(rest[7:11])), 11
		}
		b.WriteRune(r)
		inner = rest[n:]
	}
}

// kept is text for what outlives the reading: a part of the body would hold all of it.
func (v *value) kept() string { return strings.Clone(v.text()) }

var unescaped = [256]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

func hex(digits string) rune {
	n, _ := strconv.ParseUint(digits, 16, 16) // checked by parser.escape
	return rune(n)
}

// get returns the member of an object, or nil. Of two with one name it is the last, as everywhere.
func (v *value) get(name string) *value {
	if v == nil || v.kind != isObject {
		return nil
	}
	for i := len(v.members) - 1; i >= 0; i-- {
		if v.members[i].key == name {
			return &v.members[i].value
		}
	}
	return nil
}

// is says whether the value is there and of a kind.
func (v *value) is(k kind) bool { return v != nil && v.kind == k }

// given says whether the value is there and not null.
func (v *value) given() bool { return v != nil && v.kind > isNull }

// items returns the elements of an array.
func (v *value) items() []member {
	if !v.is(isArray) {
		return nil
	}
	return v.members
}

// number returns a number; it is Inf when it is too large.
func (v *value) number() float64 {
	n, _ := strconv.ParseFloat(v.raw, 64) // out of range gives Inf, which is compared well
	return n
}

// decode returns the value as encoding/json would.
func (v *value) decode() any {
	if v == nil {
		return nil
	}
	switch v.kind {
	case isString:
		return v.kept()
	case isNumber:
		return v.number()
	case isTrue, isFalse:
		return v.kind == isTrue
	case isArray:
		all := make([]any, len(v.members))
		for i := range v.members {
			all[i] = v.members[i].decode()
		}
		return all
	case isObject:
		all := make(map[string]any, len(v.members))
		for i := range v.members {
			all[strings.Clone(v.members[i].key)] = v.members[i].decode()
		}
		return all
	}
	return nil
}
