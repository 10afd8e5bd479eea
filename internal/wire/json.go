package wire

import (
	"bytes"
	"encoding/json"
	"math"
	"strings"
)

// node is one JSON value as raw bytes. It reads single members without
// decoding the rest and without allocating, which matters once per stream
// event, and it still finds what is there in a text that was cut short, which
// matters for torn error bodies. A missing value is an empty node; every
// method accepts one.
type node []byte

// parse returns the first JSON value in data, or an empty node when data does
// not begin with one. It does not check that the value is well formed.
func parse(data []byte) node {
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	start := skipSpace(data, 0)
	return node(data[start:skipValue(data, start)])
}

// get descends through object members by name.
func (n node) get(path ...string) node {
	for _, name := range path {
		n = n.member(name)
	}
	return n
}

func (n node) member(name string) node {
	var found node
	n.members(func(key, value node) bool {
		if key.is(name) {
			found = value
		}
		return found == nil
	})
	return found
}

// members calls yield for each member of an object until it returns false.
func (n node) members(yield func(key, value node) bool) {
	if !n.isObject() {
		return
	}
	for i := skipSpace(n, 1); i < len(n) && n[i] == '"'; {
		end := skipValue(n, i)
		key := n[i:end]
		i = skipSpace(n, end)
		if i >= len(n) || n[i] != ':' {
			return
		}
		i = skipSpace(n, i+1)
		end = skipValue(n, i)
		if end == i || !yield(key, n[i:end]) {
			return
		}
		i = skipComma(n, end)
	}
}

// closed reports whether the value is a JSON object and nothing behind it, as far
// as that can be told without a look into its members: each is there to its end.
// A prompt of a megabyte is passed over so in the time that valid takes for a
// tenth of it; and what is wrong inside a member is refused by the upstream.
func (n node) closed() bool {
	if !n.isObject() {
		return false
	}
	i := skipSpace(n, 1)
	if i < len(n) && n[i] == '}' {
		return i == len(n)-1
	}
	for {
		if i = endKey(n, i); i < 0 {
			return false
		}
		i = skipSpace(n, i)
		end := skipValue(n, i)
		if end == i || !(node(n[i:end])).ends() {
			return false
		}
		i = skipSpace(n, end)
		switch {
		case i == len(n)-1 && n[i] == '}':
			return true
		case i >= len(n) || n[i] != ',':
			return false
		}
		i = skipSpace(n, i+1)
	}
}

// ends reports whether a value of skipValue is there to its end.
func (n node) ends() bool {
	last := n[len(n)-1]
	switch n[0] {
	case '"':
		return len(n) > 1 && last == '"'
	case '{', '[':
		return last == closing(n[0])
	}
	return endScalar(n, 0) == len(n)
}

// elements calls yield for each element of an array until it returns false.
func (n node) elements(yield func(value node) bool) {
	if !n.isArray() {
		return
	}
	for i := skipSpace(n, 1); i < len(n); {
		end := skipValue(n, i)
		if end == i || !yield(n[i:end]) {
			return
		}
		i = skipComma(n, end)
	}
}

// first returns the first element of an array.
func (n node) first() node {
	var found node
	n.elements(func(value node) bool {
		found = value
		return false
	})
	return found
}

func (n node) isObject() bool { return len(n) > 0 && n[0] == '{' }
func (n node) isArray() bool  { return len(n) > 0 && n[0] == '[' }
func (n node) isString() bool { return len(n) > 0 && n[0] == '"' }

// isNull reports whether the value is missing or null.
func (n node) isNull() bool { return len(n) == 0 || n[0] == 'n' }

// filled reports whether the value is a non-empty string, object or array.
// Numbers and booleans are never filled: they count things, they are not text.
func (n node) filled() bool {
	switch {
	case n.isString():
		return len(n) > 1 && n[1] != '"'
	case n.isObject(), n.isArray():
		next := skipSpace(n, 1)
		return next < len(n) && n[next] != '}' && n[next] != ']'
	default:
		return false
	}
}

// is reports whether the value is the given string, which has no backslash.
func (n node) is(text string) bool {
	if len(n) == len(text)+2 && n[0] == '"' && n[len(n)-1] == '"' && string(n[1:len(n)-1]) == text {
		return true
	}
	return n.isString() && bytes.IndexByte(n, '\\') >= 0 && n.text() == text
}

// text returns a string's value; "" for anything else and for a torn string.
func (n node) text() string {
	if !n.isString() {
		return ""
	}
	if len(n) >= 2 && n[len(n)-1] == '"' && bytes.IndexByte(n, '\\') < 0 {
		return strings.ToValidUTF8(string(n[1:len(n)-1]), "\uFFFD")
	}
	var text string
	if json.Unmarshal(n, &text) != nil {
		return ""
	}
	return text
}

// scalar returns a string's value or a number as it is written; "" otherwise.
func (n node) scalar() string {
	if n.isNumber() {
		return string(n)
	}
	return n.text()
}

func (n node) isNumber() bool {
	return len(n) > 0 && (n[0] == '-' || n[0] >= '0' && n[0] <= '9')
}

// count returns a whole number that is not negative, from a number or from a
// string that holds one, and false for everything else.
func (n node) count() (int, bool) {
	if n.isString() {
		n = bytes.TrimSpace(bytes.Trim(n, `"`))
	}
	total := 0
	for _, c := range n {
		if c < '0' || c > '9' || total > (math.MaxInt-9)/10 {
			return 0, false
		}
		total = total*10 + int(c-'0')
	}
	return total, len(n) > 0
}

func skipSpace(data []byte, i int) int {
	for i < len(data) && (data[i] == ' ' || data[i] == '\n' || data[i] == '\t' || data[i] == '\r') {
		i++
	}
	return i
}

func skipComma(data []byte, i int) int {
	i = skipSpace(data, i)
	if i < len(data) && data[i] == ',' {
		return skipSpace(data, i+1)
	}
	return len(data)
}

// skipValue returns the index behind the value that starts at i. A value that
// is cut short ends with the data. It counts brackets instead of recursing, so
// that deep nesting costs no stack.
func skipValue(data []byte, i int) int {
	if i >= len(data) {
		return i
	}
	switch data[i] {
	case '"':
		return skipString(data, i)
	case '{', '[':
	default:
		for i < len(data) && !endsLiteral(data[i]) {
			i++
		}
		return i
	}
	for depth := 0; i < len(data); {
		switch data[i] {
		case '"':
			i = skipString(data, i)
			continue
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		}
		i++
		if depth == 0 {
			return i
		}
	}
	return i
}

func endsLiteral(c byte) bool {
	switch c {
	case ',', ':', '}', ']', '{', '[', '"', ' ', '\n', '\t', '\r':
		return true
	}
	return false
}

// A quote ends a string unless the backslashes in front of it are odd in number.
func skipString(data []byte, i int) int {
	from := i + 1
	for i = from; ; i++ {
		next := bytes.IndexByte(data[min(i, len(data)):], '"')
		if next < 0 {
			return len(data)
		}
		i += next
		first := i
		for first > from && data[first-1] == '\\' {
			first--
		}
		if (i-first)%2 == 0 {
			return i + 1
		}
	}
}
