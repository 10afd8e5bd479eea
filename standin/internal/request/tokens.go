package request

import "unicode/utf8"

// The estimate of the tokens of input. Answers count theirs by the same four characters, but rounded down.
const (
	charactersPerToken = 4
	imageTokens        = 1600 // an image of the largest size that is not scaled down
	documentTokens     = 2000 // a page of a PDF with its picture
)

// Tokens estimates the tokens of a text: 4 characters each, rounded up, and at least 1.
func Tokens(text string) int {
	return max(1, tokensOf(utf8.RuneCountInString(text)))
}

func tokensOf(characters int) int { return (characters + charactersPerToken - 1) / charactersPerToken }

// size counts the input of one request.
type size struct {
	characters int
	tokens     int // of what is no text
}

func (s *size) add(text string) { s.characters += utf8.RuneCountInString(text) }

func (s *size) total() int {
	return max(1, s.tokens+tokensOf(s.characters))
}
