package wire

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// An outline says what the node says, whatever the object holds and however many members it has.
func TestOutlineIsTheNode(t *testing.T) {
	many := "{"
	for i := range 2 * outlined {
		many += fmt.Sprintf(`"k%d":%d,`, i, i)
	}
	var o outline
	for _, text := range append(jsonTexts, many+`"last":1}`, `{"a":1,"a":2}`, `{"\u0061":1}`, `{"a":{"a":3}}`, `{"a":"\"","b":[{"c":"}"}],"c":`) {
		whole := parse([]byte(text))
		o.read(whole)
		for _, name := range strings.Fields("a b c type index delta last k0 k31 k32 k63 nothing") {
			if got, want := string(o.get(name)), string(whole.get(name)); got != want {
				t.Errorf("%.80q: %s is %q, want %q", text, name, got, want)
			}
		}
	}
}

// A string ends at its first quote that no backslash hides, wherever it begins and however many there are.
func TestStringsEndAtTheirQuote(t *testing.T) {
	plainly := func(data []byte, i int) int { // one byte after the other
		for i++; i < len(data); i++ {
			switch data[i] {
			case '\\':
				i++
			case '"':
				return i + 1
			}
		}
		return len(data)
	}
	for _, text := range append(jsonTexts, `"\`, `"\\`, `"\\\`, `"a\\"b"`, `"a\\\"b"c"`, `"\\\\\\""`, `"\"\"\"\\"x`, `"`, `""`, `"""`) {
		for i := range text {
			if text[i] != '"' {
				continue
			}
			if got, want := skipString([]byte(text), i), min(plainly([]byte(text), i), len(text)); got != want {
				t.Errorf("%q from %d: %d, want %d", text, i, got, want)
			}
		}
	}
}

func TestNamesOfLimitsAreCanonical(t *testing.T) {
	for _, list := range [][]limitNames{requestLimits, inputLimits, outputLimits, tokenLimits} {
		for _, names := range list {
			for _, name := range []string{names.limit, names.remaining, names.reset} {
				if http.CanonicalHeaderKey(name) != name {
					t.Errorf("%s is not canonical", name)
				}
			}
		}
	}
}
