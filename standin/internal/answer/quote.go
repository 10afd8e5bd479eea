package answer

import (
	"strconv"
	"unicode/utf8"
)

const hex = "0123456789abcdef"

// quote appends s as a JSON string. Like the real APIs it escapes no more than JSON demands; what is not UTF-8 becomes
// U+FFFD.
func quote(dst []byte, s string) []byte {
	dst = append(dst, '"')
	return append(escape(dst, s), '"')
}

// escape appends s as it stands inside a JSON string.
func escape(dst []byte, s string) []byte {
	plain := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= ' ' && c != '"' && c != '\\' && c < utf8.RuneSelf {
			i++
			continue
		}
		if c >= utf8.RuneSelf {
			r, size := utf8.DecodeRuneInString(s[i:])
			if r == utf8.RuneError && size == 1 {
				dst = append(append(dst, s[plain:i]...), "\ufffd"...)
				plain = i + 1
			}
			i += size
			continue
		}
		dst = append(dst, s[plain:i]...)
		switch c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\n':
			dst = append(dst, '\\', 'n')
		case '\r':
			dst = append(dst, '\\', 'r')
		case '\t':
			dst = append(dst, '\\', 't')
		default:
			dst = append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		}
		i++
		plain = i
	}
	return append(dst, s[plain:]...)
}

// quoteAll appends pieces as one JSON string.
func quoteAll(dst []byte, pieces []string) []byte {
	dst = append(dst, '"')
	for _, piece := range pieces {
		dst = escape(dst, piece)
	}
	return append(dst, '"')
}

// orNull appends s as a JSON string, and null for "".
func orNull(dst []byte, s string) []byte {
	if s == "" {
		return append(dst, "null"...)
	}
	return quote(dst, s)
}

// number appends n under a name: name is the text up to and with the colon.
func number(dst []byte, name string, n int) []byte {
	return strconv.AppendInt(append(dst, name...), int64(n), 10)
}
