package saved

import (
	"crypto/sha256"
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf8"
)

// digest is the SHA-256 of a value. That of an array or object is made of those of its parts, so that a question is read
// once and nothing of it is copied, however deep it is nested.
type digest = [sha256.Size]byte

// omit tells which members of an object say nothing about the answer. path holds the names of the objects around it, rest
// what is written from the value on.
type omit func(path []string, name string, rest []byte) bool

// canon takes digests of valid JSON in which neither the order of members nor space counts. Numbers count as they are
// written: 1 and 1.0 are two things, and no digit is lost.
type canon struct {
	text []byte
	i    int
	path []string
	omit omit
}

func digestOf(text []byte, omit omit) digest {
	c := canon{text: text, omit: omit}
	return c.value()
}

// value takes the value at i.
func (c *canon) value() digest {
	c.i = skipSpace(c.text, c.i)
	if c.i >= len(c.text) {
		return digest{}
	}
	switch c.text[c.i] {
	case '{':
		return c.object()
	case '[':
		return c.array()
	}
	start := c.i
	c.i = skipValue(c.text, c.i)
	return sha256.Sum256(append([]byte{'v'}, plainest(c.text[start:c.i])...))
}

func (c *canon) array() digest {
	sum := sha256.New()
	sum.Write([]byte{'a'})
	for c.i = skipSpace(c.text, c.i+1); c.i < len(c.text) && c.text[c.i] != ']'; c.i = skipComma(c.text, c.i) {
		part := c.value()
		sum.Write(part[:])
	}
	c.i++
	return digest(sum.Sum(nil))
}

func (c *canon) object() digest {
	type pair struct {
		name string
		of   digest
	}
	var pairs []pair
	for c.i = skipSpace(c.text, c.i+1); c.i < len(c.text) && c.text[c.i] == '"'; c.i = skipComma(c.text, c.i) {
		end := skipString(c.text, c.i)
		name := stringOf(plainest(c.text[c.i:end]))
		c.i = skipSpace(c.text, skipSpace(c.text, end)+1)
		if c.omit != nil && c.omit(c.path, name, c.text[c.i:]) {
			c.i = skipValue(c.text, c.i)
			continue
		}
		c.path = append(c.path, name)
		pairs = append(pairs, pair{name, c.value()})
		c.path = c.path[:len(c.path)-1]
	}
	c.i++
	slices.SortStableFunc(pairs, func(a, b pair) int { return strings.Compare(a.name, b.name) })
	sum := sha256.New()
	sum.Write([]byte{'o'})
	for _, p := range pairs {
		name := sha256.Sum256([]byte(p.name))
		sum.Write(name[:])
		sum.Write(p.of[:])
	}
	return digest(sum.Sum(nil))
}

// plainest returns a string literal as it would be written with the fewest escapes, and any other literal as it is. What
// does not survive that, such as half of a surrogate pair, stays as it is too: two questions must not become one.
func plainest(literal []byte) []byte {
	if !isString(literal) || !strings.ContainsRune(string(literal), '\\') {
		return literal
	}
	var text string
	if json.Unmarshal(literal, &text) != nil || strings.ContainsRune(text, utf8.RuneError) {
		return literal
	}
	return appendQuoted(nil, text)
}
