package request

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseJSONNamesThePlace(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                              "input data is empty: line 1 column 1 (char 0)",
		" ":                             "unexpected end of data: line 1 column 2 (char 1)",
		"{\n \"a\" 1}":                  "unexpected character: line 2 column 6 (char 7)",
		`{"a":1,}`:                      "trailing comma is not allowed: line 1 column 8 (char 7)",
		`[1,]`:                          "trailing comma is not allowed: line 1 column 4 (char 3)",
		`{a:1}`:                         "unexpected character: line 1 column 2 (char 1)",
		`[1 2]`:                         "unexpected character: line 1 column 4 (char 3)",
		`1 1`:                           "unexpected content after document: line 1 column 3 (char 2)",
		`["é" x]`:                       "unexpected character: line 1 column 6 (char 5)",
		`tru`:                           "unexpected character: line 1 column 1 (char 0)",
		`01`:                            "number with leading zero is not allowed: line 1 column 1 (char 0)",
		`[-a]`:                          "no digit after minus sign: line 1 column 3 (char 2)",
		`[1.]`:                          "no digit after decimal point: line 1 column 4 (char 3)",
		`[1e+]`:                         "no digit after exponent sign: line 1 column 5 (char 4)",
		`["\x"]`:                        "invalid escaped character in string: line 1 column 3 (char 2)",
		`["\u12g4"]`:                    "invalid escaped sequence in string: line 1 column 3 (char 2)",
		`["\ud800"]`:                    "no low surrogate in string: line 1 column 9 (char 8)",
		`["\ud800\u0041"]`:              "invalid low surrogate in string: line 1 column 9 (char 8)",
		`["\udc00"]`:                    "invalid high surrogate in string: line 1 column 3 (char 2)",
		"[\"a\nb\"]":                    "unexpected control character in string: line 1 column 4 (char 3)",
		"[\"\xff\"]":                    "invalid UTF-8 encoding in string: line 1 column 3 (char 2)",
		`["\`:                           "unexpected end of data: line 1 column 4 (char 3)",
		`"a`:                            "unexpected end of data: line 1 column 3 (char 2)",
		strings.Repeat("[", maxDepth+1): "recursion limit reached",
	} {
		_, err := parseJSON(text)
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%.20q: %v, want %q", text, err, want)
		}
	}
}

func TestValueGetTakesTheLast(t *testing.T) {
	t.Parallel()
	v, err := parseJSON(`{"a":1,"a":{"b":"c\nd"},"x":null}`)
	if err != nil {
		t.Fatal(err)
	}
	if got := v.get("a").get("b").text(); got != "c\nd" {
		t.Errorf("%q", got)
	}
	if v.get("x").given() || v.get("y").given() || v.get("x") == nil || v.get("a").get("b").get("c") != nil {
		t.Error("null, a missing member or a member of a text is given")
	}
}

// encoding/json is the measure, but for half a surrogate pair and for text that is not UTF-8, which it repairs.
func FuzzParseJSON(f *testing.F) {
	for _, seed := range []string{
		``, `{}`, `[]`, `{"a":[1,-0.5e+3,"x\u00e9\ud83d\ude00\n",true,false,null,{"b":{}}],"a":2}`, ` [ 1 , 2 ] `, `"\u0000"`, `1e999`, `{"a":1,}`, `"\ud800"`, "\"\xff\"", `-`, `{"a"`, `[[[[`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		v, err := parseJSON(text)
		if err != nil {
			if strings.Contains(err.what, "surrogate") || strings.Contains(err.what, "UTF-8") {
				return
			}
			if json.Valid([]byte(text)) {
				t.Fatalf("refused: %v", err)
			}
			if err.at < 0 || err.at > len(text) {
				t.Fatalf("place %d of %d", err.at, len(text))
			}
			return
		}
		if !json.Valid([]byte(text)) {
			t.Fatal("accepted")
		}
		var want any
		if json.Unmarshal([]byte(text), &want) != nil {
			return // a number out of range
		}
		if diff := cmp.Diff(want, v.decode()); diff != "" {
			t.Fatal(diff)
		}
	})
}

func TestModelLimits(t *testing.T) {
	t.Parallel()
	for name, want := range map[string][2]int{
		"claude-opus-5-5": {1_000_000, 128_000}, "claude-sonnet-4-6": {1_000_000, 128_000}, "claude-haiku-5-5": {200_000, 128_000},
		"claude-opus-4-5": {200_000, 64_000}, "claude-opus-4-1": {200_000, 32_000}, "claude-sonnet-4-20250514": {200_000, 64_000},
		"claude-3-5-haiku-latest": {200_000, 8192}, "claude-3-haiku-20240307": {200_000, 4096}, "claude-test": {0, 0}, "qwen3": {0, 0},
	} {
		if m := modelOf(name); m.window() != want[0] || m.maxTokens() != want[1] {
			t.Errorf("%s: %d, %d, want %v", name, m.window(), m.maxTokens(), want)
		}
	}
}

func TestModelOf(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]model{
		"gpt-5":                            {},
		"qwen3:8b":                         {},
		"claude-opus-5-5":                  {true, "opus", 55},
		"claude-opus-5":                    {true, "opus", 50},
		"claude-opus-4-20250514":           {true, "opus", 40},
		"claude-haiku-4-5-20251001":        {true, "haiku", 45},
		"claude-3-7-sonnet-latest":         {true, "sonnet", 37},
		"claude-3-opus-20240229":           {true, "opus", 30},
		"claude-mythos-preview":            {true, "mythos", 46},
		"claude-test":                      {true, "test", 0},
		"anthropic.claude-opus-4-8":        {true, "opus", 48},
		"claude-sonnet-4-5@20250929":       {true, "sonnet", 45},
		"anthropic/claude-sonnet-4-6[1m]":  {true, "sonnet", 46},
		"claude-opus-99999999999999999999": {true, "opus", 0},
	} {
		if got := modelOf(name); got != want {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
	}
}
