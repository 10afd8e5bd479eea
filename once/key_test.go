package once_test

import (
	"context"
	"errors"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/http/httpguts"

	"holdfast/once"
)

// The keys of all that was ever done depend on these: a change would do it all again.
func TestKeysStayWhatTheyAre(t *testing.T) {
	t.Parallel()
	for want, got := range map[string]string{
		"hf1-jra6j2pf2q7tz3zdjz373pbpmzblybrovak27p6wqnk33us2eczq": once.Key("ticket", "acme", "4711"),
		"hf1-gqvdmve576ovhsurzevk52oszit5duaozxvkzpbc2qd46omtfg6q": once.Key("Straße", "日本", ""),
		"hk1-i2fp222nykozah7daap5hfpxjecmzcx657v36ctngwkd5gbqeo2q": once.Keyed([]byte("secret"), "ticket", "acme", "4711"),
	} {
		if got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestKeyKeepsPartsApart(t *testing.T) {
	t.Parallel()
	seen := map[string][]string{}
	for _, parts := range [][]string{
		{}, {""}, {"", ""}, {"abc"}, {"ab", "c"}, {"a", "bc"}, {"a", "b", "c"}, {"abc", ""}, {"", "abc"}, {"a\x00b"}, {"a", "\x00b"},
		{"\x00\x00\x00\x00\x00\x00\x00\x01a"}, {"é"}, {"e\u0301"}, {strings.Repeat("x", 1<<20)},
	} {
		for _, key := range []string{once.Key(parts...), once.Keyed([]byte("s"), parts...), once.Keyed([]byte("t"), parts...)} {
			if other, taken := seen[key]; taken {
				t.Errorf("%q and %q have the same key", parts, other)
			}
			seen[key] = parts
		}
	}
}

func TestDoRefusesKeysThatNoHeaderHolds(t *testing.T) {
	t.Parallel()
	ledger := once.New(once.NewMemory(), once.Options{})
	ran := 0
	for name, key := range map[string]string{
		"empty": "", "no parts": once.Key(), "long": strings.Repeat("k", 256), "space": "secret order", "line": "secret\r\nX-Evil: 1", "quote": `secret"`, "backslash": `secret\`, "not ASCII": "secretü", "zero": "secret\x00",
	} {
		_, err := once.Do(t.Context(), ledger, key, once.Effect[int]{Run: func(context.Context, string) (int, error) { ran++; return 1, nil }})
		var wrong *once.KeyError
		if !errors.As(err, &wrong) || wrong.Hint() == "" {
			t.Errorf("%s: got %v", name, err)
		} else if strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: the error shows the key: %v", name, err)
		}
	}
	if _, err := once.Do(t.Context(), ledger, strings.Repeat("k", 255), once.Effect[int]{Run: func(context.Context, string) (int, error) { ran++; return 1, nil }}); err != nil || ran != 1 {
		t.Errorf("a key of 255 bytes: %v, ran %d", err, ran)
	}
}

var form = regexp.MustCompile(`^h[fk]1-[a-z2-7]{52}$`)

// However parts are made, their key has its form, is a header value as it stands, and is another one when the parts are cut in
// another place.
func FuzzKey(f *testing.F) {
	f.Add("ticket", "acme", 1)
	f.Add("", "\x00", 0)
	f.Add("a@example.com", "ünï", 3)
	f.Fuzz(func(t *testing.T, a, b string, cut int) {
		key := once.Key(a, b)
		if !form.MatchString(key) || len(key) > 64 || !httpguts.ValidHeaderFieldValue(key) {
			t.Fatalf("key %q", key)
		}
		if key != once.Key(slices.Clone([]string{a, b})...) {
			t.Fatal("the same parts have two keys")
		}
		joined := a + b
		if cut = max(0, min(cut, len(joined))); cut != len(a) && once.Key(joined[:cut], joined[cut:]) == key {
			t.Fatalf("%q cut at %d and at %d has one key", joined, cut, len(a))
		}
		if once.Key(joined) == key || once.Key(a, b, "") == key || once.Key(b, a) == key && a != b {
			t.Fatal("other parts have the same key")
		}
	})
}

func TestKeyOfIsWhatWithKeyPutThere(t *testing.T) {
	t.Parallel()
	if got := once.KeyOf(t.Context()); got != "" {
		t.Errorf("got %q of a context without a key", got)
	}
	ctx := once.WithKey(once.WithKey(t.Context(), "a"), "b")
	if got := once.KeyOf(ctx); got != "b" {
		t.Errorf("got %q", got)
	}
}
