package answer

import (
	"regexp"
	"regexp/syntax"
	"strings"
)

// match returns a short string that fits a pattern, and false when there is none to be found: patterns of JSON Schema
// are those of ECMAScript, which knows more than Go.
func match(pattern string) (string, bool) {
	tree, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return "", false
	}
	checker, err := regexp.Compile(pattern)
	if err != nil {
		return "", false
	}
	var b strings.Builder
	write(&b, tree)
	text := b.String()
	return text, len(text) <= maxBytes && checker.MatchString(text)
}

// write appends the shortest text of a part of a pattern, more or less.
func write(b *strings.Builder, tree *syntax.Regexp) {
	if b.Len() > maxBytes {
		return
	}
	switch tree.Op {
	case syntax.OpLiteral:
		b.WriteString(string(tree.Rune))
	case syntax.OpCharClass:
		b.WriteRune(ofClass(tree.Rune))
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		b.WriteByte('a')
	case syntax.OpCapture, syntax.OpPlus:
		write(b, tree.Sub[0])
	case syntax.OpRepeat:
		for range tree.Min {
			write(b, tree.Sub[0])
		}
	case syntax.OpConcat:
		for _, sub := range tree.Sub {
			write(b, sub)
		}
	case syntax.OpAlternate:
		write(b, tree.Sub[0])
	}
}

// ofClass chooses a character of a class, given as pairs of first and last: a letter or digit when there is one.
func ofClass(pairs []rune) rune {
	for _, wanted := range "a1A -_" {
		for i := 0; i+1 < len(pairs); i += 2 {
			if pairs[i] <= wanted && wanted <= pairs[i+1] {
				return wanted
			}
		}
	}
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] > ' ' {
			return max(pairs[i], '!')
		}
	}
	if len(pairs) > 0 {
		return pairs[0]
	}
	return 'a'
}
