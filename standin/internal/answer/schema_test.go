package answer_test

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"holdfast/standin/internal/answer"
)

func TestSynthesizeFitsTheSchema(t *testing.T) {
	for _, row := range []struct{ name, schema, want string }{
		{"open", `{}`, `"stand-in"`},
		{"true", `true`, `"stand-in"`},
		{"required alone", `{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"null"}},"required":["b"]}`, `{"b":null}`},
		{"order of required", `{"required":["z","a","z"],"properties":{"a":{"type":"boolean"},"z":{"const":{"k":[1]}}}}`, `{"z":{"k":[1]},"a":true}`},
		{"required without a property", `{"required":["a"],"additionalProperties":{"type":"integer"}}`, `{"a":1}`},
		{"least properties", `{"type":"object","minProperties":2,"properties":{"c":{"const":3},"b":{"const":2},"a":{"const":1}},"required":["c"]}`, `{"c":3,"a":1}`},
		{"enum", `{"enum":["x<y",2]}`, `"x\u003cy"`},
		{"nested", `{"type":"object","required":["o"],"properties":{"o":{"type":"object","required":["l"],"properties":{"l":{"type":"array","items":{"enum":[5]}}}}}}`, `{"o":{"l":[5]}}`},
		{"array bounds", `{"type":"array","minItems":2,"items":{"type":"boolean"}}`, `[true,true]`},
		{"no items allowed", `{"type":"array","maxItems":0}`, `[]`},
		{"unique", `{"type":"array","minItems":3,"uniqueItems":true,"items":{"type":"integer","minimum":4}}`, `[4,5,6]`},
		{"unique texts", `{"type":"array","minItems":2,"uniqueItems":true,"items":{"type":"string"}}`, `["stand-in","stand-in1"]`},
		{"unique words", `{"type":"array","minItems":2,"uniqueItems":true,"items":{"enum":["a","b","c"]}}`, `["a","b"]`},
		{"tuple", `{"prefixItems":[{"type":"integer"},{"type":"null"}],"minItems":3,"items":{"const":"x"}}`, `[1,null,"x"]`},
		{"old tuple", `{"items":[{"type":"integer"},{"type":"null"}]}`, `[1,null]`},
		{"integer", `{"type":"integer"}`, `1`},
		{"minimum", `{"type":"integer","minimum":17.2}`, `18`},
		{"maximum", `{"type":"integer","maximum":-3}`, `-3`},
		{"exclusive", `{"type":"integer","exclusiveMinimum":1,"exclusiveMaximum":3}`, `2`},
		{"exclusive by flag", `{"type":"integer","minimum":1,"exclusiveMinimum":true}`, `2`},
		{"multiple", `{"type":"integer","multipleOf":7,"minimum":8}`, `14`},
		{"multiple alone", `{"type":"integer","multipleOf":7}`, `7`},
		{"narrow", `{"type":"number","minimum":0.25,"maximum":0.75}`, `0.5`},
		{"narrow and exclusive", `{"type":"number","exclusiveMinimum":0,"exclusiveMaximum":1}`, `0.5`},
		{"fraction", `{"type":"number","multipleOf":0.5,"minimum":2.2,"maximum":2.9}`, `2.5`},
		{"huge", `{"type":"number","minimum":1e300}`, `1e+300`},
		{"null or text", `{"type":["null","string"]}`, `"stand-in"`},
		{"null alone", `{"type":["null"]}`, `null`},
		{"any of", `{"anyOf":[{"type":"null"},{"type":"integer"}]}`, `1`},
		{"one of, with its own", `{"type":"object","required":["a"],"properties":{"a":{"const":1}},"oneOf":[{"required":["b"],"properties":{"b":{"const":2}}}]}`, `{"a":1,"b":2}`},
		{"all of", `{"allOf":[{"type":"integer"},{"minimum":5}]}`, `5`},
		{"reference", `{"$ref":"#/$defs/a~1b","$defs":{"a/b":{"type":"integer"}}}`, `1`},
		{"reference in a list", `{"anyOf":[{"$ref":"#/x/1"}],"x":[0,{"const":"second"}]}`, `"second"`},
		{"reference to nothing", `{"$ref":"#/nothing","type":"integer"}`, `1`},
		{"reference elsewhere", `{"$ref":"https://example.com/schema","type":"null"}`, `null`},
		{"length", `{"type":"string","minLength":10}`, `"stand-inaa"`},
		{"short", `{"type":"string","maxLength":3}`, `"sta"`},
		{"date", `{"type":"string","format":"date"}`, `"2026-01-02"`},
		{"unknown format", `{"type":"string","format":"colour"}`, `"stand-in"`},
		{"pattern", `{"type":"string","pattern":"^[A-Z]{3}-\\d+(x|y)?$"}`, `"AAA-1"`},
		{"pattern beyond Go", `{"type":"string","pattern":"(?=a)"}`, `"stand-in"`},
	} {
		t.Run(row.name, func(t *testing.T) {
			if got := string(answer.Synthesize(decoded(t, row.schema), false)); got != row.want {
				t.Errorf("%s, want %s", got, row.want)
			}
		})
	}
}

func TestInputOfAToolIsAlwaysAnObject(t *testing.T) {
	for schema, want := range map[string]string{
		`{}`: `{}`, `true`: `{}`, `null`: `{}`, `[]`: `{}`, `"text"`: `{}`, `{"type":"string"}`: `{}`,
		`{"$ref":"#/d","d":{"required":["a"]}}`: `{"a":"stand-in"}`,
		`{"anyOf":[{"required":["b"]}]}`:        `{"b":"stand-in"}`,
	} {
		if got := string(answer.Synthesize(decoded(t, schema), true)); got != want {
			t.Errorf("%s gives %s, want %s", schema, got, want)
		}
	}
}

func TestSynthesizeEndsOnRecursion(t *testing.T) {
	for _, row := range []struct {
		name, schema string
		most         int // bytes
	}{
		{"itself", `{"$ref":"#"}`, 10},
		{"two that point at each other", `{"$ref":"#/a","a":{"$ref":"#/b"},"b":{"$ref":"#/a"}}`, 10},
		{"all of itself", `{"allOf":[{"$ref":"#"}]}`, 20},
		{"any of itself", `{"anyOf":[{"$ref":"#"},{"$ref":"#"}]}`, 20},
		{"a list without an end", `{"type":"object","required":["next"],"properties":{"next":{"$ref":"#"}}}`, 500},
		{"a list that may end", `{"type":"object","required":["next"],"properties":{"next":{"anyOf":[{"$ref":"#"},{"type":"null"}]}}}`, 200},
		{"a tree", `{"type":"object","required":["children"],"properties":{"children":{"type":"array","items":{"$ref":"#"}}}}`, 300},
		{"a tree that doubles", `{"type":"object","required":["a","b"],"properties":{"a":{"$ref":"#"},"b":{"$ref":"#"}}}`, 40_000},
		{"many items", `{"type":"array","minItems":1e18,"items":{"type":"array","minItems":1e9}}`, 25_000},
		{"a long text", `{"type":"string","minLength":1e300}`, 5000},
		{"a long pattern", `{"type":"string","pattern":"((a{100}){100}){100}"}`, 5000},
	} {
		t.Run(row.name, func(t *testing.T) {
			got := answer.Synthesize(decoded(t, row.schema), false)
			if !json.Valid(got) || len(got) > row.most {
				t.Errorf("%d bytes, valid %v: %.300s", len(got), json.Valid(got), got)
			}
		})
	}
	end := string(answer.Synthesize(decoded(t, `{"type":"object","required":["next"],"properties":{"next":{"anyOf":[{"$ref":"#"},{"type":"null"}]}}}`), true))
	if !strings.Contains(end, `{"next":null}`) {
		t.Errorf("a list that may end does not: %s", end)
	}
}

// Numbers and lengths within bounds that leave room are always met.
func TestSynthesizeKeepsWithinBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		low := rapid.IntRange(-1000, 1000).Draw(t, "low")
		width := rapid.IntRange(0, 50).Draw(t, "width")
		whole := rapid.Bool().Draw(t, "whole")
		schema := map[string]any{"type": map[bool]string{true: "integer", false: "number"}[whole], "minimum": float64(low), "maximum": float64(low + width)}
		var got float64
		if err := json.Unmarshal(answer.Synthesize(schema, false), &got); err != nil || got < float64(low) || got > float64(low+width) {
			t.Errorf("%v is not between %d and %d: %v", got, low, low+width, err)
		}
		least := rapid.IntRange(0, 40).Draw(t, "least")
		text := map[string]any{"type": "string", "minLength": least, "maxLength": least + width}
		var word string
		if err := json.Unmarshal(answer.Synthesize(text, false), &word); err != nil || utf8.RuneCountInString(word) < least || utf8.RuneCountInString(word) > least+width {
			t.Errorf("%q is not of %d to %d characters: %v", word, least, least+width, err)
		}
	})
}

func FuzzSynthesize(f *testing.F) {
	f.Add(weatherSchema)
	f.Add(`{"$ref":"#"}`)
	f.Add(`{"allOf":[{"$ref":"#"},{"anyOf":[{"$ref":"#/allOf/1"}]}],"required":[1,null,"a"],"properties":{"a":{"$ref":"#"}}}`)
	f.Add(`{"type":["array",3],"minItems":-1,"maxItems":-4,"prefixItems":[true,{"type":"number","multipleOf":-1}]}`)
	f.Add(`{"type":"string","pattern":"[^\\x00-\\x{10FFFF}]","minLength":-3,"maxLength":-1}`)
	f.Add(`{"type":"integer","minimum":1e308,"exclusiveMaximum":-1e308,"multipleOf":1e-300}`)
	f.Fuzz(func(t *testing.T, text string) {
		var schema any
		if json.Unmarshal([]byte(text), &schema) != nil {
			return
		}
		for _, object := range []bool{true, false} {
			got := answer.Synthesize(schema, object)
			if !json.Valid(got) {
				t.Errorf("no JSON from %s: %s", text, got)
			}
			if again := answer.Synthesize(schema, object); string(again) != string(got) {
				t.Errorf("another time: %s and %s", got, again)
			}
			if object && got[0] != '{' {
				t.Errorf("no object from %s: %s", text, got)
			}
		}
	})
}
