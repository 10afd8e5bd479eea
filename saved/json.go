package saved

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
)

// raw is one JSON value as it is written, without space around it; nil when there is none. Values stay as they came, so
// that no number loses a digit and no member that nobody here knows is lost.
type raw = json.RawMessage

// member is one member of an object.
type member struct {
	name  string
	value raw
}

// object is a JSON object in the order that it was written in.
type object []member

// maxMembers bounds the objects that are read member by member, so that none of them is a way to keep a processor busy. No
// answer comes near it: what a tool is called with is not read.
const maxMembers = 512

// readObject reads text, which must be valid JSON, and reports whether it is an object of at most maxMembers members. Of
// members with one name the last one counts. The values are parts of text.
func readObject(text []byte) (object, bool) {
	i := skipSpace(text, 0)
	if i >= len(text) || text[i] != '{' {
		return nil, false
	}
	var o object
	for i = skipSpace(text, i+1); i < len(text) && text[i] == '"' && len(o) <= maxMembers; {
		end := skipString(text, i)
		name := stringOf(text[i:end])
		i = skipSpace(text, skipSpace(text, end)+1) // behind the colon
		end = skipValue(text, i)
		o = append(o, member{name, text[i:end:end]})
		i = skipComma(text, end)
	}
	return o, len(o) <= maxMembers
}

// readArray reads text, which must be valid JSON, and reports whether it is an array.
func readArray(text []byte) ([]raw, bool) {
	i := skipSpace(text, 0)
	if i >= len(text) || text[i] != '[' {
		return nil, false
	}
	list := []raw{}
	for i = skipSpace(text, i+1); i < len(text) && text[i] != ']'; {
		end := skipValue(text, i)
		list = append(list, text[i:end:end])
		i = skipComma(text, end)
	}
	return list, true
}

// at returns the value of a member, nil when there is none.
func (o object) at(name string) raw {
	for _, m := range slices.Backward(o) {
		if m.name == name {
			return m.value
		}
	}
	return nil
}

// text returns the string that a member holds, "" when it holds none.
func (o object) text(name string) string { return stringOf(o.at(name)) }

// object returns the object that a member holds, nil when it holds none.
func (o object) object(name string) object {
	inner, _ := readObject(o.at(name))
	return inner
}

// list returns the array that a member holds, nil when it holds none.
func (o object) list(name string) []raw {
	list, _ := readArray(o.at(name))
	return list
}

// set gives a member its value, in its place if there is one already.
func (o *object) set(name string, value raw) {
	for i, m := range slices.Backward(*o) {
		if m.name == name {
			(*o)[i].value = value
			return
		}
	}
	*o = append(*o, member{name, value})
}

// swap gives a member its value if it is there.
func (o object) swap(name string, value raw) {
	for i := range o {
		if o[i].name == name {
			o[i].value = value
		}
	}
}

// without returns a copy that lacks some members.
func (o object) without(names ...string) object {
	kept := make(object, 0, len(o))
next:
	for _, m := range o {
		for _, name := range names {
			if m.name == name {
				continue next
			}
		}
		kept = append(kept, m)
	}
	return kept
}

// clone returns a copy whose members can be set without an effect on o.
func (o object) clone() object { return append(object(nil), o...) }

func (o object) append(to []byte) []byte {
	to = append(to, '{')
	for i, m := range o {
		if i > 0 {
			to = append(to, ',')
		}
		to = append(appendQuoted(to, m.name), ':')
		to = append(to, m.value...)
	}
	return append(to, '}')
}

func (o object) raw() raw { return o.append(nil) }

// build makes an object of names and values in turn. A value is a raw, an object, an int, or a string to be quoted.
func build(pairs ...any) object {
	o := make(object, 0, len(pairs)/2)
	for i := 0; i+1 < len(pairs); i += 2 {
		name, _ := pairs[i].(string)
		o = append(o, member{name, encode(pairs[i+1])})
	}
	return o
}

func encode(value any) raw {
	switch v := value.(type) {
	case raw:
		return v
	case object:
		return v.raw()
	case int:
		return strconv.AppendInt(nil, int64(v), 10)
	case string:
		return appendQuoted(nil, v)
	}
	return null
}

// Values that need no making.
var (
	null        = raw("null")
	emptyText   = raw(`""`)
	emptyList   = raw("[]")
	emptyObject = raw("{}")
)

// isNull reports whether a value is missing or null.
func isNull(value raw) bool { return len(value) == 0 || value[0] == 'n' }

func isString(value raw) bool { return len(value) > 1 && value[0] == '"' }

// filled reports whether a value is a string, object or array with something in it.
func filled(value raw) bool {
	if len(value) < 2 {
		return false
	}
	switch value[0] {
	case '"':
		return value[1] != '"'
	case '{', '[':
		next := value[skipSpace(value, 1)]
		return next != '}' && next != ']'
	}
	return false
}

// stringOf returns what a JSON string says, "" for any other value.
func stringOf(value []byte) string {
	if !isString(value) {
		return ""
	}
	if inner := value[1 : len(value)-1]; bytes.IndexByte(inner, '\\') < 0 {
		return string(inner)
	}
	var text string
	if json.Unmarshal(value, &text) != nil {
		return ""
	}
	return text
}

// numberOf returns the whole number that a value is, and false when it is none or is too large to be an index.
func numberOf(value raw) (int, bool) {
	n, err := strconv.ParseInt(string(value), 10, 32)
	return int(n), err == nil && n >= 0
}

// joined returns a JSON string that says what a and then b say. It may use the room behind a. Joining what is written,
// instead of what it says, keeps every escape, and mends a character whose halves came apart.
func joined(a, b raw) raw {
	if len(a) <= 2 {
		return bytes.Clone(b)
	}
	return append(a[:len(a)-1], b[1:]...)
}

// pieceSize is about how many bytes of text an event carries that is made here.
const pieceSize = 256

// pieces cuts a JSON string into strings of about pieceSize bytes, never inside a character, and at a space where there is
// one. An empty string has no pieces.
func pieces(text raw) []raw {
	var cut []raw
	inner := text[1 : len(text)-1]
	for len(inner) > 0 {
		end := cutAt(inner)
		piece := append(append(make(raw, 0, end+2), '"'), inner[:end]...)
		cut = append(cut, append(piece, '"'))
		inner = inner[end:]
	}
	return cut
}

// cutAt returns where a piece of inner ends.
func cutAt(inner raw) int {
	end := 0
	for end < len(inner) && end < 2*pieceSize {
		spaced := inner[end] == ' '
		end += unit(inner[end:])
		if spaced && end >= pieceSize {
			break
		}
	}
	return end
}

// unit returns how many bytes the first character of a JSON string's inside takes. Two escapes that are the halves of one
// character stay together.
func unit(inner raw) int {
	size := 1
	switch c := inner[0]; {
	case c == '\\' && len(inner) > 1 && inner[1] == 'u':
		size = 6
		if len(inner) > 7 && (inner[2]|0x20) == 'd' && inner[3] >= '8' && inner[6] == '\\' && inner[7] == 'u' {
			size = 12
		}
	case c == '\\':
		size = 2
	case c >= 0x80:
		for size < len(inner) && inner[size]&0xc0 == 0x80 {
			size++
		}
	}
	return min(size, len(inner))
}

// appendQuoted appends text as a JSON string with no escape that is not needed.
func appendQuoted(to []byte, text string) []byte {
	to = append(to, '"')
	for i := range len(text) {
		switch c := text[i]; {
		case c == '"', c == '\\':
			to = append(to, '\\', c)
		case c == '\n':
			to = append(to, '\\', 'n')
		case c < 0x20:
			to = append(to, '\\', 'u', '0', '0', "0123456789abcdef"[c>>4], "0123456789abcdef"[c&15])
		default:
			to = append(to, c)
		}
	}
	return append(to, '"')
}

func appendList(to []byte, list []raw) []byte {
	to = append(to, '[')
	for i, value := range list {
		if i > 0 {
			to = append(to, ',')
		}
		to = append(to, value...)
	}
	return append(to, ']')
}

func skipSpace(text []byte, i int) int {
	for i < len(text) && (text[i] == ' ' || text[i] == '\n' || text[i] == '\t' || text[i] == '\r') {
		i++
	}
	return i
}

func skipComma(text []byte, i int) int {
	i = skipSpace(text, i)
	if i < len(text) && text[i] == ',' {
		i = skipSpace(text, i+1)
	}
	return i
}

// skipValue returns the index behind the value that begins at i. It counts brackets instead of calling itself, so that deep
// nesting costs nothing.
func skipValue(text []byte, i int) int {
	depth := 0
	for i < len(text) {
		switch text[i] {
		case '"':
			i = skipString(text, i)
		case '{', '[':
			depth++
			i++
		case '}', ']':
			depth--
			i++
		case ' ', '\n', '\t', '\r', ',', ':':
			i++
		default:
			for i < len(text) && !endsLiteral(text[i]) {
				i++
			}
		}
		if depth <= 0 {
			break
		}
	}
	return min(i, len(text))
}

func endsLiteral(c byte) bool {
	switch c {
	case ',', ':', '}', ']', '{', '[', '"', ' ', '\n', '\t', '\r':
		return true
	}
	return false
}

func skipString(text []byte, i int) int {
	for i++; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(text)
}
