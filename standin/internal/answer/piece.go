package answer

import (
	"strings"
	"unicode/utf8"
)

// Words cuts a text behind every space, and repeats it until there are at least n words.
func Words(text string, n int) []string {
	once := strings.SplitAfter(text, " ")
	if len(once) >= n {
		return once
	}
	all := make([]string, 0, n+len(once))
	for {
		all = append(all, once...)
		if len(all) >= n {
			return all
		}
		all[len(all)-1] += " "
	}
}

// chunkSize is about the size of the pieces in which the real API streams the input of a tool.
const chunkSize = 8

// chunks cuts JSON into small pieces, at least n. When the text is too short for it, line ends stand in front, which
// JSON allows.
func chunks(text string, n int) []string {
	size := chunkSize
	if n > 0 {
		size = max(1, min(size, len(text)/n))
	}
	all := make([]string, 0, max(n, len(text)/size+1))
	for range n - utf8.RuneCountInString(text)/size {
		all = append(all, "\n")
	}
	for len(text) > 0 {
		rest := behind(text, min(size, utf8.RuneCountInString(text)))
		all = append(all, text[:len(text)-len(rest)])
		text = rest
	}
	return all
}

// Tokens estimates the tokens of a text.
func Tokens(text string) int { return tokensOf(utf8.RuneCountInString(text)) }

// tokensOf takes four characters for a token, and at least one token.
func tokensOf(runes int) int { return max(1, runes/4) }
