// Package strict decodes YAML, and so JSON, into structs and reports every mistake at once, each with its line: unknown
// and repeated keys with a suggestion, values of the wrong kind, and what the caller finds wrong afterwards. A library
// that stops at the first mistake makes a person run the program once per mistake.
package strict

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// Mistake is one thing that is wrong with a document.
type Mistake struct {
	// Line counts from 1. 0: not known, or the value did not come from a file.
	Line int
	// Path is the dotted key, empty for the document itself.
	Path string
	// Text says what is wrong, and where it can, what would be right.
	Text string
}

// Error returns "line N: path: text" without the parts that are missing.
func (m *Mistake) Error() string {
	var b strings.Builder
	if m.Line > 0 {
		fmt.Fprintf(&b, "line %d: ", m.Line)
	}
	if m.Path != "" {
		b.WriteString(m.Path + ": ")
	}
	b.WriteString(m.Text)
	return b.String()
}

// Document remembers where each key stood and collects mistakes. It is not safe for concurrent use.
type Document struct {
	// Expand, when not nil, is applied to the text of every value.
	Expand func(string) (string, error)
	// Seconds lets a time be a plain number of seconds.
	Seconds bool
	// Single lets one text stand where a list of texts belongs.
	Single bool

	lines    map[string]int
	mistakes []*Mistake
	misread  map[string]bool
}

// Resume returns a document that knows where the keys stood in one that was decoded before, to find more wrong with it.
func Resume(lines map[string]int) *Document { return &Document{lines: maps.Clone(lines)} }

// Lines returns where the keys stood, to resume from.
func (d *Document) Lines() map[string]int { return maps.Clone(d.lines) }

// Decode fills into, a pointer to a struct, from text. What it finds wrong is in Err; fields without a mistake are set
// all the same, so that the caller can go on and check them.
func (d *Document) Decode(text []byte, into any) {
	d.lines, d.misread = map[string]int{}, map[string]bool{}
	file, err := parse(text)
	if err != nil {
		d.syntax(err)
		return
	}
	defer func() {
		for _, m := range d.mistakes {
			d.misread[m.Path] = true
		}
	}()
	for i, doc := range file.Docs {
		if doc.Body == nil {
			continue
		}
		if i > 0 {
			d.wrongAt(doc.Body, "", "a second document begins here; only one is read")
			continue
		}
		d.top(doc.Body, into)
	}
}

// parse reads YAML. A JSON text may be indented with tabs, which YAML forbids; inside JSON strings a tab cannot stand,
// so every tab there is white space.
func parse(text []byte) (*ast.File, error) {
	text = bytes.TrimPrefix(text, []byte("\ufeff")) // some editors begin every file with it
	if trimmed := strings.TrimLeft(string(text), " \t\r\n"); strings.HasPrefix(trimmed, "{") {
		text = bytes.ReplaceAll(text, []byte("\t"), []byte(" "))
	}
	return guarded(text)
}

var errUnreadable = errors.New("this is neither YAML nor JSON")

// guarded turns a panic of the parser, which reads what people write by hand, into an error.
func guarded(text []byte) (file *ast.File, err error) {
	defer func() {
		if recover() != nil {
			file, err = nil, errUnreadable
		}
	}()
	return parser.ParseBytes(text, 0, parser.AllowDuplicateMapKey()) // pairs reports them with the others
}

func (d *Document) syntax(err error) {
	var s *yaml.SyntaxError
	if errors.As(err, &s) && s.Token != nil && s.Token.Position != nil {
		d.add(s.Token.Position.Line, "", s.Message)
		return
	}
	var y yaml.Error
	if errors.As(err, &y) && y.GetToken() != nil && y.GetToken().Position != nil {
		d.add(y.GetToken().Position.Line, "", y.GetMessage())
		return
	}
	d.add(0, "", err.Error())
}

func (d *Document) note(path string, line int) {
	if d.lines != nil { // a flag has no lines
		d.lines[path] = line
	}
}

// Line returns the line of a key, 0 when it is not in the document.
func (d *Document) Line(path string) int { return d.lines[path] }

// Misread reports whether Decode found a mistake in the value at path, or a misspelt key where it belongs: what stands
// in the field then is not what the document says, and a second mistake about it would only distract.
func (d *Document) Misread(path string) bool { return d.misread[path] }

// Unread reports whether the value at path, or one that it is part of, was misread.
func (d *Document) Unread(path string) bool {
	for at := path; at != ""; at = at[:max(strings.LastIndexByte(at, '.'), 0)] {
		if d.misread[at] {
			return true
		}
	}
	return d.misread[""]
}

// Wrong adds a mistake about the value at path.
func (d *Document) Wrong(path, format string, args ...any) {
	line, at := 0, path
	for line == 0 && at != "" { // a key that is absent is wrong where its parent is
		line = d.lines[at]
		cut := strings.LastIndexByte(at, '.')
		at = at[:max(cut, 0)]
	}
	d.add(line, path, fmt.Sprintf(format, args...))
}

func (d *Document) add(line int, path, text string) {
	d.mistakes = append(d.mistakes, &Mistake{Line: line, Path: path, Text: text})
}

// Mistakes returns all mistakes in the order of their lines; those without a line come first, as they were found.
func (d *Document) Mistakes() []*Mistake {
	slices.SortStableFunc(d.mistakes, func(a, b *Mistake) int { return a.Line - b.Line })
	return slices.Clone(d.mistakes)
}

// Err returns what Mistakes does, joined; nil when there are none.
func (d *Document) Err() error {
	d.Mistakes()
	all := make([]error, len(d.mistakes))
	for i, m := range d.mistakes {
		all[i] = m
	}
	return errors.Join(all...)
}
