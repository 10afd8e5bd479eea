package wire_test

import (
	"testing"

	"holdfast/internal/wire"
)

func TestStopReasonOfAnAnswer(t *testing.T) {
	for body, want := range map[string]string{
		`{"type":"message","content":[],"stop_reason":"end_turn"}`:                                        "end_turn",
		`{"type":"message","stop_reason":null}`:                                                           "",
		`{"choices":[{"index":0,"finish_reason":"length"},{"index":1,"finish_reason":"stop"}]}`:           "length",
		`{"object":"response","status":"completed"}`:                                                      "completed",
		`{"object":"response","status":"incomplete","incomplete_details":{"reason":"max_output_tokens"}}`: "max_output_tokens",
		`{"object":"response","status":"incomplete","incomplete_details":null}`:                           "incomplete",
		`{"object":"list","data":[]}`:                                                                     "",
		``:                                                                                                "",
		`{"stop_reason":`:                                                                                 "",
	} {
		if _, got := wire.Summary([]byte(body)); got != want {
			t.Errorf("%s: got %q, want %q", body, got, want)
		}
	}
}
