package wire

// What a stream that broke off has cost. The Messages API counts the output at
// its end and OpenAI counts nothing before, so of a stream without an end only
// its content tells.

// runesPerToken is few, so that the estimate errs on the side of the bill.
const runesPerToken = 3

// Produced estimates how many tokens of output the content seen so far makes, on
// the high side: a token for every three characters, and at least one for each
// piece of content.
func (s *Stream) Produced() int {
	return max(s.pieces, (s.runes+runesPerToken-1)/runesPerToken)
}

// Counted reports whether Tokens has the provider's final count of the output.
func (s *Stream) Counted() bool { return s.counted && s.Complete() }

// hasOutput reports whether a usage counts the output.
func hasOutput(usage node) bool {
	for _, name := range [...]string{"output_tokens", "completion_tokens"} {
		if _, ok := usage.get(name).count(); ok {
			return true
		}
	}
	return false
}

// produce counts the texts of one piece of content: those of the named members.
func (s *Stream) produce(of node, names ...string) {
	s.pieces++
	for _, name := range names {
		s.runes += of.get(name).runes()
	}
}

// runes counts the characters of a string as they are read, or of all strings
// inside of an array or an object save those that are no output.
func (n node) runes() int {
	total := 0
	switch {
	case n.isString():
		return runesOf(n[1:])
	case n.isArray():
		n.elements(func(value node) bool {
			total += value.runes()
			return true
		})
	case n.isObject():
		n.members(func(key, value node) bool {
			if !key.is("type") && !key.is("id") {
				total += value.runes()
			}
			return true
		})
	}
	return total
}

// runesOf counts the characters of a JSON string from behind its opening quote
// to its closing one.
func runesOf(text []byte) int {
	total := 0
	for i := 0; i < len(text) && text[i] != '"'; i++ {
		switch c := text[i]; {
		case c == '\\' && i+1 < len(text):
			if i++; text[i] == 'u' {
				i += 4
			}
		case c&0xC0 == 0x80: // inside of a character
			continue
		}
		total++
	}
	return total
}
