package config

import (
	"path"
	"testing"
)

// Every pattern and every name of up to three of these letters: what covers says is held against what matches.
func TestCoversIsTrueOfEveryName(t *testing.T) {
	t.Parallel()
	names, patterns := words("ab/", 3), words("ab*?", 3)
	claimed := 0
	for _, wide := range patterns {
		for _, narrow := range patterns {
			escape := ""
			for _, name := range names {
				in, _ := path.Match(narrow, name)
				if out, _ := path.Match(wide, name); in && !out {
					escape = name
				}
			}
			got := covers(wide, narrow)
			if got && escape != "" {
				t.Fatalf("%q is said to cover %q, but not %q", wide, narrow, escape)
			}
			if got {
				claimed++
			}
		}
	}
	if claimed < 500 {
		t.Errorf("only %d pairs are said to cover each other", claimed)
	}
}

// words are all texts of up to so many of the letters.
func words(letters string, most int) []string {
	all, last := []string{""}, []string{""}
	for range most {
		var next []string
		for _, w := range last {
			for _, l := range letters {
				next = append(next, w+string(l))
			}
		}
		all, last = append(all, next...), next
	}
	return all
}

func TestCovers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		wide, narrow string
		want         bool
	}{
		{"claude-*", "claude-opus-*", true},
		{"claude-opus-*", "claude-*", false},
		{"*", "claude-opus-5", true},
		{"*", "anthropic/claude", false}, // path.Match: a star takes no slash
		{"*/*", "anthropic/claude-*", true},
		{"*-opus-*", "claude-opus-?", true},
		{"claude-?", "claude-5", true},
		{"claude-?", "claude-é", true}, // a name is held against the pattern itself
		{"[ab]*", "a1", true},
		{"[ab]*", "[ab]*", true},
		{"[ab]*", "a*", false}, // true, but in doubt it is not said
		{"*a", "*aa", true},
		{"*", "?", true},
		{"?", "*", false},
	} {
		if got := covers(c.wide, c.narrow); got != c.want {
			t.Errorf("covers(%q, %q) = %v, want %v", c.wide, c.narrow, got, c.want)
		}
	}
}
