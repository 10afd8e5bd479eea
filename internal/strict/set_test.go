package strict_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"holdfast/internal/strict"
)

type hush string

func (h hush) Reveal() string { return string(h) }

type part struct {
	Name string  `yaml:"name"`
	Sub  *part   `yaml:"sub"`
	Key  hush    `yaml:"key"`
	List []int   `yaml:"list"`
	Rate float64 `yaml:"rate"`
}

type whole struct {
	Parts []part `yaml:"parts"`
	One   *plain `yaml:"one"`
	N     int    `yaml:"n"`
}

type plain struct {
	A int `yaml:"a"`
	B int `yaml:"b"`
}

func TestSetReachesIntoListsAndPointers(t *testing.T) {
	t.Parallel()
	before := whole{Parts: []part{{Name: "x", List: []int{1, 2}}}, One: &plain{A: 1, B: 2}}
	into := before
	var d strict.Document
	for _, s := range [][2]string{{"parts.0.name", "y"}, {"parts.0.list.1", "7"}, {"parts.1.name", "z"}, {"one.b", "3"}, {"parts.0.list.2", "8"}} {
		d.Set(&into, s[0], s[1])
	}
	if err := d.Err(); err != nil {
		t.Fatal(err)
	}
	want := whole{Parts: []part{{Name: "y", List: []int{1, 7, 8}}, {Name: "z"}}, One: &plain{A: 1, B: 3}}
	if diff := cmp.Diff(want, into); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if diff := cmp.Diff(whole{Parts: []part{{Name: "x", List: []int{1, 2}}}, One: &plain{A: 1, B: 2}}, before); diff != "" {
		t.Errorf("a copy of it changed too (-want +got)\n%s", diff)
	}
}

func TestSetSaysWhereAListEnds(t *testing.T) {
	t.Parallel()
	into := whole{Parts: []part{{}}}
	var d strict.Document
	for _, path := range []string{"parts.2.name", "parts.-1", "parts.x", "parts.0.name.y"} {
		d.Set(&into, path, "v")
	}
	want := strings.Join([]string{
		`parts.2.name: parts is a list, and "2" is not from 0 to 1`,
		`parts.-1: parts is a list, and "-1" is not from 0 to 1`,
		`parts.x: parts is a list, and "x" is not from 0 to 1`,
		`parts.0.name.y: parts.0.name is a single value and has no key "y"`,
	}, "\n")
	if diff := cmp.Diff(want, d.Err().Error()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// What stands where a secret belongs is never shown, in whatever form it stands there.
func TestMistakesDoNotShowSecrets(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"parts: CANARY", "parts: [CANARY]", "parts: [{key: [CANARY]}]", "parts: [{key: {a: CANARY}}]", "parts: [{sub: CANARY}]", "CANARY", "parts: {a: CANARY}",
	} {
		var d strict.Document
		d.Decode([]byte(text), &whole{})
		if err := d.Err(); err == nil || strings.Contains(err.Error(), "CANARY") {
			t.Errorf("%s: %v", text, err)
		}
	}
	for _, s := range [][2]string{{"parts.0.key", "{CANARY"}, {"parts.0.key", "[CANARY]"}, {"parts.0", "CANARY"}, {"parts", "CANARY"}} {
		var d strict.Document
		d.Set(&whole{}, s[0], s[1])
		if err := d.Err(); err == nil || strings.Contains(err.Error(), "CANARY") {
			t.Errorf("%v: %v", s, err)
		}
	}
	var d strict.Document
	d.Decode([]byte("n: shown"), &whole{})
	if err := d.Err(); err == nil || !strings.Contains(err.Error(), `"shown"`) {
		t.Errorf("a value that is no secret is not shown: %v", err)
	}
}

func TestResumeKnowsTheLines(t *testing.T) {
	t.Parallel()
	var d strict.Document
	d.Decode([]byte("n: 1\none:\n  a: 2\n"), &whole{})
	again := strict.Resume(d.Lines())
	again.Wrong("one.b", "is missing")
	again.Wrong("n", "is odd")
	if got, want := again.Err().Error(), "line 1: n: is odd\nline 2: one.b: is missing"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestUnreadIsWhatStandsInsideAMisreadValue(t *testing.T) {
	t.Parallel()
	var d strict.Document
	d.Decode([]byte("parts: 3\none: {a: x}\n"), &whole{})
	for path, want := range map[string]bool{"parts": true, "parts.0.name": true, "one.a": true, "one.b": false, "one": false, "n": false} {
		if d.Unread(path) != want {
			t.Errorf("%s unread: %v, want %v", path, !want, want)
		}
	}
}
