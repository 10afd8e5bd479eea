package standin

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"holdfast/internal/strict"
)

// vocabulary is a set of words that a field takes.
type vocabulary struct {
	noun  string
	words []string
}

// vocabularies holds the words of every type that has a closed set of them. Kind
// is not here: its words are the table of faults.
var vocabularies = map[reflect.Type]vocabulary{
	reflect.TypeFor[Per]():     wordSet("count", PerRule, PerJob),
	reflect.TypeFor[Stage]():   wordSet("stage", First, Preamble, Content, Stop),
	reflect.TypeFor[Ending]():  wordSet("ending", Clean, Chunk, RST, Silence),
	reflect.TypeFor[Tear]():    wordSet("tear", TornFrame, TornRune),
	reflect.TypeFor[Form]():    wordSet("form", FormJSON, FormHTML, FormText, FormEmpty, FormTruncated, FormOversized),
	reflect.TypeFor[Cap]():     wordSet("cap", CapTier, CapContract, CapOrganization, CapWorkspace, CapLinked, CapBilling),
	reflect.TypeFor[LineEnd](): wordSet("line end", LF, CR, CRLF),
	reflect.TypeFor[Writes]():  wordSet("way to write", WriteEvent, WriteByte, WriteAll),
	reflect.TypeFor[Between](): wordSet("thing between events", BetweenComment, BetweenID, BetweenRetry, BetweenPing, BetweenUnknown),
	reflect.TypeFor[Tier]():    wordSet("tier", TierStart, TierBuild, TierScale),
}

func wordSet[W ~string](noun string, all ...W) vocabulary {
	v := vocabulary{noun: noun}
	for _, w := range all {
		v.words = append(v.words, string(w))
	}
	return v
}

// vocabularyOf returns the words of a type; known is false for one that takes any text.
func vocabularyOf(t reflect.Type) (v vocabulary, known bool) {
	if t == reflect.TypeFor[Kind]() {
		v.noun = "kind"
		for _, f := range faults {
			v.words = append(v.words, string(f.Kind))
		}
		for _, k := range connectionKinds {
			if !slices.Contains(v.words, string(k)) {
				v.words = append(v.words, string(k))
			}
		}
		return v, true
	}
	v, known = vocabularies[t]
	return v, known
}

// mistake says that word is not one of the vocabulary, and which one was
// probably meant. "" is the default and no mistake.
func (v vocabulary) mistake(word string) string {
	if word == "" || slices.Contains(v.words, word) {
		return ""
	}
	if near := strict.Nearest(word, v.words); near != "" {
		return fmt.Sprintf("unknown %s %q; did you mean %q?", v.noun, word, near)
	}
	return fmt.Sprintf("unknown %s %q; there are %s", v.noun, word, strings.Join(v.words, ", "))
}
