package wire

import (
	"fmt"
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
