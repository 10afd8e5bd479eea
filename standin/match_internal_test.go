package standin

import (
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestGlobs(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		pattern, text string
		want          bool
	}{
		{"", "", true}, {"", "a", false}, {"*", "", true}, {"**", "abc", true}, {"?", "", false}, {"?", "é", true}, {"?", "ab", false},
		{"claude-*", "claude-opus-5", true}, {"claude-*", "claude", false}, {"*opus*", "claude-opus-5", true},
		{"/v1/messages*", "/v1/messages/batches", true}, {"/v1/messages", "/v1/messages/", false},
		{"a*b*c", "aXbXbYc", true}, {"a*b*c", "aXbXbY", false}, {"*ab", "aab", true}, {"a?c", "abc", true}, {"[a]", "[a]", true}, {"[a]", "a", false}, {"a.c", "abc", false},
	} {
		if got := glob(tt.pattern, tt.text); got != tt.want {
			t.Errorf("%q fits %q: %v, want %v", tt.pattern, tt.text, got, tt.want)
		}
	}
}

// A glob agrees with the regular expression that says the same.
func TestGlobsAgreeWithRegularExpressions(t *testing.T) {
	t.Parallel()
	letters := rapid.StringOfN(rapid.SampledFrom([]rune("ab*?é.[\n")), 0, 12, -1)
	texts := rapid.StringOfN(rapid.SampledFrom([]rune("abé.[\n")), 0, 16, -1)
	rapid.Check(t, func(t *rapid.T) {
		pattern, text := letters.Draw(t, "pattern"), texts.Draw(t, "text")
		same := strings.NewReplacer(`\*`, `.*`, `\?`, `.`).Replace(regexp.QuoteMeta(pattern))
		if want := regexp.MustCompile(`(?s)^(?:` + same + `)$`).MatchString(text); glob(pattern, text) != want {
			t.Errorf("%q fits %q: %v, want %v", pattern, text, !want, want)
		}
	})
}

// What a glob may cost is bounded: a pattern is written by hand, but a text is not.
func TestAGlobOfManyStarsEnds(t *testing.T) {
	t.Parallel()
	if glob(strings.Repeat("*a", 50)+"b", strings.Repeat("a", 20_000)) {
		t.Error("it fits")
	}
}

func TestSpansAreReadAsTheyAreWritten(t *testing.T) {
	t.Parallel()
	count := rapid.IntRange(1, 1_000_000)
	rapid.Check(t, func(t *rapid.T) {
		want := Span{From: rapid.IntRange(0, 50).Draw(t, "from"), Every: rapid.IntRange(0, 5).Draw(t, "every")}
		if want.From > 0 && rapid.Bool().Draw(t, "bounded") {
			want.To = want.From + rapid.IntRange(0, 50).Draw(t, "width")
		}
		if want == (Span{}) {
			return
		}
		var got Span
		if err := got.UnmarshalText([]byte(want.String())); err != nil || got != want {
			t.Errorf("%+v is written %q and read as %+v, %v", want, want, got, err)
		}
		n := count.Draw(t, "n")
		in := n >= want.From && (want.To == 0 || n <= want.To) && (want.Every == 0 || n%want.Every == 0)
		if got.includes(uint64(n)) != in {
			t.Errorf("%s includes %d: %v", want, n, !in)
		}
	})
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`[-0-9/+ a]{0,8}`).Draw(t, "text")
		var s Span
		if err := s.UnmarshalText([]byte(text)); err == nil && (Plan{Rules: []Rule{{Match: Match{Nth: s}}}}).Validate() != nil {
			t.Errorf("%q is read as %+v, which is no span", text, s)
		}
	})
}
