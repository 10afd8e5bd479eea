package wire

import (
	"encoding/json"
	"strings"
	"testing"
)

// agree is everything there is to say about valid: it is json.Valid.
func agree(t *testing.T, data []byte) {
	t.Helper()
	if got, want := valid(data), json.Valid(data); got != want {
		t.Errorf("valid(%.200q) = %v, json.Valid says %v", data, got, want)
	}
}

var jsonTexts = []string{
	``, ` `, `{}`, `[]`, ` { } `, `{"a":1}`, `{"a":1,}`, `{"a":1,"b":[1,2,{"c":null}]}`, `{"a" : true , "b" : [ ] }`, `[1,]`, `[,1]`, `[1 2]`, `{"a"}`, `{"a":}`,
	`{1:2}`, `{"a":1 "b":2}`, `{"a":1}{`, `{"a":1} x`, `[}`, `{]`, `"`, `"a`, `"a"`, `"a" "b"`, `"\`, `"\"`, `"\""`, `"\\"`, `"\u00e9"`, `"\u00g9"`, `"\u00"`, `"\x"`, `"\/\b\f\n\r\t"`,
	"\"tab\tin it\"", "\"line\nin it\"", "\"nul\x00\"", "\"del\x7f\"", "\"bad\xff\xfe\"", `"1234567"`, `"12345678"`, `"1234567\"8"`, `"é 世界 🙂 and more of it"`,
	`0`, `-0`, `01`, `1`, `-`, `-1`, `1.`, `1.5`, `.5`, `1e`, `1e5`, `1E+5`, `1e-`, `1.5e-07`, `0e0`, `0x1`, `1_0`, `+1`, `--1`, `NaN`, `Infinity`,
	`true`, `tru`, `truex`, `false`, `fals`, `null`, `nul`, `nullnull`, `True`, "\ufeff{}", "\v{}", "{}\n", "{} \r\n\t", `[[[[1]]]]`, `[[[[1]]]`, `[[[[1]]]]]`,
	`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hello \"you\"\n"}}`, `{broken`, `{"type":"m`,
}

func TestValidIsThatOfTheStandardLibrary(t *testing.T) {
	for _, text := range jsonTexts {
		agree(t, []byte(text))
		for i := range text { // and torn anywhere
			agree(t, []byte(text[:i]))
		}
	}
	for _, depth := range []int{63, 64, 65, mostNested - 1, mostNested, mostNested + 1} {
		agree(t, []byte(strings.Repeat("[", depth)+strings.Repeat("]", depth)))
		agree(t, []byte(strings.Repeat("[", depth)+"1"+strings.Repeat("]", depth)))
		agree(t, []byte(strings.Repeat(`{"a":`, depth)+"{}"+strings.Repeat("}", depth)))
	}
}

// Every byte at every place of the eight that are looked at at once.
func TestValidSeesEveryByte(t *testing.T) {
	for c := range 256 {
		for at := range 20 {
			text := []byte(`"` + strings.Repeat("x", 20) + `"`)
			text[1+at] = byte(c)
			agree(t, text)
		}
	}
}

func FuzzValid(f *testing.F) {
	for _, text := range jsonTexts {
		f.Add([]byte(text))
	}
	f.Fuzz(agree)
}

func BenchmarkValid(b *testing.B) {
	prompt := []byte(`{"model":"m","messages":[{"role":"user","content":"` + strings.Repeat(`some words of a \"prompt\",\n`, 8000) + `"}]}`)
	event := []byte(`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":" word"}}`)
	for name, data := range map[string][]byte{"prompt": prompt, "event": event} {
		for with, f := range map[string]func([]byte) bool{"ours": valid, "encoding/json": json.Valid} {
			b.Run(name+"/"+with, func(b *testing.B) {
				b.SetBytes(int64(len(data)))
				for b.Loop() {
					if !f(data) {
						b.Fatal("not valid")
					}
				}
			})
		}
	}
}

// What is known at a glance is what a look at the event says.
func TestPlainDeltaIsContent(t *testing.T) {
	for text, plain := range map[string]bool{
		`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hello"}}`:                 true,
		`{"type":"content_block_delta","index":12,"delta":{"type":"text_delta","text":"\n"}        }`:           true,
		`{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\"a\":"}}`: true,
		`{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"hm"}}`:            true,
		`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":""}}`:                      false,
		`{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":""}}`:        false,
		`{"type":"content_block_delta", "index":0,"delta":{"type":"text_delta","text":"Hello"}}`:                false,
		`{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"x"}}`:           false,
		`{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":1}}`:               false,
		`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":`:                          false,
		`{"type":"content_block_delta","index":`:                                                                false,
	} {
		if (plainDelta([]byte(text)) != nil) != plain {
			t.Errorf("%s: not %v", text, plain)
		}
		var s Stream
		s.Event("content_block_delta", []byte(`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"x"}}`))
		got := s.Event("", []byte(text))
		var fresh Stream // has nothing to take for known
		if want := fresh.Event("", []byte(text)); plain && (got != want || got != ProgressContent) {
			t.Errorf("%s: %v, and at the beginning of a stream %v", text, got, want)
		}
		if plain && (s.runes-1 != fresh.runes || s.pieces-1 != fresh.pieces) {
			t.Errorf("%s: %d characters, and at the beginning of a stream %d", text, s.runes-1, fresh.runes)
		}
	}
}

// A valid object is closed, and one that is torn anywhere is not.
func TestValidObjectsAreClosed(t *testing.T) {
	for _, text := range append(jsonTexts, `{"model":"m","messages":[{"role":"user","content":"a \"b\" {c"}],"stream":true, "temperature":1e0 , "x":{}, "y":"\\"}`) {
		object := node(strings.TrimSpace(text))
		if !valid(object) || !object.isObject() {
			continue
		}
		if !object.closed() {
			t.Errorf("%s is valid and not closed", text)
		}
		for i := range object {
			if node(object[:i]).closed() {
				t.Errorf("%s is torn and closed", object[:i])
			}
		}
		if node(text+"x").closed() || node(text+"{}").closed() {
			t.Errorf("%s is closed with something behind it", text)
		}
	}
	for _, text := range []string{`{"a":tru}`, `{"a":"b}`, `{"a":[1}`, `{"a":{"b":1]}`, `{"a"1}`, `{"a":1;"b":2}`, `{,}`, `{"a":1,}`, `[]`, `"{}"`, ``} {
		if node(text).closed() {
			t.Errorf("%s is closed", text)
		}
	}
}
