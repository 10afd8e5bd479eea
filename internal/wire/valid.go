package wire

import (
	"encoding/binary"
	"math/bits"
)

// mostNested is the depth at which encoding/json gives up.
const mostNested = 10000

// valid reports exactly what json.Valid does, at several times its speed: what
// passes here are whole prompts, and every event of every stream.
func valid(data []byte) bool {
	var room [64]byte
	open := room[:0] // the brackets around i
	for i := 0; ; {
		if i = skipSpace(data, i); i >= len(data) {
			return false
		}
		opened := false
		switch c := data[i]; c {
		case '"':
			i = endString(data, i+1)
		case '{', '[':
			if len(open) == mostNested {
				return false
			}
			if i = skipSpace(data, i+1); i < len(data) && data[i] == closing(c) {
				i++
				break
			}
			open, opened = append(open, c), true
			if c == '{' {
				i = endKey(data, i)
			}
		default:
			i = endScalar(data, i)
		}
		if i < 0 {
			return false
		}
		if opened {
			continue
		}
		if i, open = endValue(data, i, open); i < 0 || len(open) == 0 {
			return i == len(data)
		}
	}
}

func closing(bracket byte) byte { return bracket + 2 } // so it is in ASCII

// endValue goes on behind a value: out of what closes there, up to the next value. It returns -1 where that cannot be.
func endValue(data []byte, i int, open []byte) (int, []byte) {
	for {
		i = skipSpace(data, i)
		if len(open) == 0 {
			return i, open
		}
		if i >= len(data) {
			return -1, open
		}
		in := open[len(open)-1]
		switch data[i] {
		case closing(in):
			open = open[:len(open)-1]
			i++
		case ',':
			i++
			if in == '{' {
				i = endKey(data, skipSpace(data, i))
			}
			return i, open
		default:
			return -1, open
		}
	}
}

// endKey passes a key and its colon. -1: there is none.
func endKey(data []byte, i int) int {
	if i >= len(data) || data[i] != '"' {
		return -1
	}
	if i = endString(data, i+1); i < 0 {
		return -1
	}
	if i = skipSpace(data, i); i >= len(data) || data[i] != ':' {
		return -1
	}
	return i + 1
}

// endString passes the rest of a string and its quote. -1: it is no string.
func endString(data []byte, i int) int {
	for {
		i = plainRun(data, i)
		switch {
		case i >= len(data):
			return -1
		case data[i] == '"':
			return i + 1
		case data[i] != '\\' || i+1 >= len(data):
			return -1
		}
		switch data[i+1] {
		case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
			i += 2
		case 'u':
			if len(data) < i+6 || !isHex(data[i+2]) || !isHex(data[i+3]) || !isHex(data[i+4]) || !isHex(data[i+5]) {
				return -1
			}
			i += 6
		default:
			return -1
		}
	}
}

func isHex(c byte) bool { return c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'f' }

// plainRun returns the index of the first byte at or behind i that is a quote,
// a backslash or a control character, and len(data) if there is none. It looks
// at eight bytes at a time: of x, a byte b is the first to be below n when it is
// the first whose high bit is set in (x - n*ones) &^ x & highs.
func plainRun(data []byte, i int) int {
	const (
		ones  = 0x0101010101010101
		highs = 0x8080808080808080
	)
	for ; i+8 <= len(data); i += 8 {
		x := binary.LittleEndian.Uint64(data[i:])
		quotes, slashes := x^('"'*ones), x^('\\'*ones)
		if found := ((x-0x20*ones)&^x | (quotes-ones)&^quotes | (slashes-ones)&^slashes) & highs; found != 0 {
			return i + bits.TrailingZeros64(found)/8
		}
	}
	for ; i < len(data); i++ {
		if c := data[i]; c == '"' || c == '\\' || c < 0x20 {
			return i
		}
	}
	return i
}

// endScalar passes a number or a word. -1: it is neither.
func endScalar(data []byte, i int) int {
	for _, word := range [...]string{"true", "false", "null"} {
		if data[i] == word[0] {
			if len(data)-i < len(word) || string(data[i:i+len(word)]) != word {
				return -1
			}
			return i + len(word)
		}
	}
	if data[i] == '-' {
		i++
	}
	switch {
	case i >= len(data):
		return -1
	case data[i] == '0':
		i++
	default:
		if i = endDigits(data, i); i < 0 {
			return -1
		}
	}
	if i < len(data) && data[i] == '.' {
		if i = endDigits(data, i+1); i < 0 {
			return -1
		}
	}
	if i < len(data) && data[i]|0x20 == 'e' {
		i++
		if i < len(data) && (data[i] == '+' || data[i] == '-') {
			i++
		}
		return endDigits(data, i)
	}
	return i
}

// endDigits passes at least one. -1: there is none.
func endDigits(data []byte, i int) int {
	from := i
	for i < len(data) && data[i] >= '0' && data[i] <= '9' {
		i++
	}
	if i == from {
		return -1
	}
	return i
}
