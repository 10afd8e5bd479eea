package saved_test

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"holdfast/saved"
)

// The events of the shortest message, byte for byte: what is not known before the end is not told before it.
func TestTheEventsOfAMessage(t *testing.T) {
	t.Parallel()
	whole := strings.Replace(goodMessage, `"output_tokens":3`, `"cache_creation":{"ephemeral_5m_input_tokens":1},"output_tokens":3,"service_tier":"standard"`, 1)
	const want = `event: message_start
data: {"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"claude-sonnet-5-5","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":9,"cache_creation":{"ephemeral_5m_input_tokens":1},"output_tokens":0,"service_tier":"standard"}}}

event: content_block_start
data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Because."}}

event: content_block_stop
data: {"type":"content_block_stop","index":0}

event: message_delta
data: {"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"input_tokens":9,"output_tokens":3}}

event: message_stop
data: {"type":"message_stop"}

`
	if got := stream(t, messages, whole); got != want {
		t.Errorf("got\n%s", got)
	}
}

func TestAResponseBeginsWithNothing(t *testing.T) {
	t.Parallel()
	first, _, _ := strings.Cut(strings.TrimPrefix(stream(t, responses, goodResponse), "event: response.created\ndata: "), "\n")
	const want = `{"type":"response.created","response":{"id":"resp_1","object":"response","created_at":1,"status":"in_progress","completed_at":null,"error":null,"incomplete_details":null,"model":"gpt-5","output":[],"usage":null},"sequence_number":0}`
	if first != want {
		t.Errorf("got\n%s", first)
	}
}

// No piece of a text ends inside a character, however that is written.
func TestPiecesAreWholeCharacters(t *testing.T) {
	t.Parallel()
	for name, letter := range map[string]string{"a pair of escapes": `\ud83d\ude00`, "an escape": `\u00e9`, "a short escape": `\"`, "bytes": "😀", "odd": `x\ud83d\ude00`} {
		t.Run(name, func(t *testing.T) {
			whole := strings.Replace(goodMessage, "Because.", strings.Repeat(letter, 300), 1)
			given, err := saved.Give(question(messages, true), asJSON(whole), false)
			if err != nil {
				t.Fatal(err)
			}
			deltas := 0
			for line := range strings.Lines(string(given.Body)) {
				text, isData := strings.CutPrefix(line, "data: ")
				var event struct{ Delta struct{ Text string } }
				if !isData {
					continue
				}
				if err := json.Unmarshal([]byte(text), &event); err != nil {
					t.Fatal(err)
				}
				if event.Delta.Text != "" {
					deltas++
				}
				if strings.ContainsRune(event.Delta.Text, utf8.RuneError) {
					t.Errorf("a piece ends inside a character: %s", text)
				}
			}
			if want := len(letter) * 300 / 600; deltas < max(want, 1) {
				t.Errorf("%d pieces of %d bytes", deltas, len(letter)*300)
			}
		})
	}
}
