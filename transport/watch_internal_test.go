package transport

import (
	"bytes"
	"strings"
	"testing"

	"holdfast/internal/sse"
	"holdfast/internal/wire"
)

// FuzzWatch holds what the watch sees of a stream in pieces against what a reader sees of the whole.
func FuzzWatch(f *testing.F) {
	const delta = "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"x\"}}\n\n"
	for _, whole := range []string{
		"", "\n", "\r\n\r\n", "data: a\n\ndata: b\n\n", "data: a\r\n\r\ndata: b\r\n\r\n", "data: a\r\rdata: b\r\r", "\xEF\xBB\xBFdata: a\n\n",
		": c\n\nid: 7\n\n" + delta + "event: message_stop\ndata: {\"type\":\"m", "data: a\n\r\ndata: b\r\n\n", delta + "event: error\ndata: {\"error\":{\"type\":\"overloaded_error\"}}\n\n",
	} {
		f.Add([]byte(whole), uint8(1))
		f.Add([]byte(whole), uint8(3))
		f.Add([]byte(whole), uint8(200))
	}
	f.Fuzz(func(t *testing.T, whole []byte, size uint8) {
		var want wire.Stream
		events := int64(0)
		r := sse.NewReader(bytes.NewReader(whole), 0)
		for {
			e, err := r.Next()
			if err != nil {
				break
			}
			events++
			want.Event(e.Name, e.Data)
		}
		var got watch
		for rest := whole; len(rest) > 0; {
			n := min(int(size)+1, len(rest))
			got.feed(rest[:n])
			rest = rest[n:]
		}
		got.finish()
		if got.events != events || got.bytes != int64(len(whole)) {
			t.Errorf("saw %d events in %d bytes, want %d in %d", got.events, got.bytes, events, len(whole))
		}
		if got.stream.Started() != want.Started() || got.stream.Complete() != want.Complete() || got.stream.StopReason() != want.StopReason() {
			t.Error("the pieces say something else than the whole")
		}
	})
}

func TestLastFrameEndsBehindABlankLine(t *testing.T) {
	for in, want := range map[string]int{
		"": -1, "a": -1, "\n": -1, "a\n": -1, "a\r\n": -1, "a\n\n": 3, "a\r\r": 3, "a\r\n\r": 4, "a\r\n\r\n": 5, "a\n\nb": 3, "a\n\nb\n": 3,
		"a\r\n\r\nb\r\n": 5, "a\n\r": 3, "a\n\r\n": 4, "\n\n": 2, "a\n\nb\n\nc": 6,
	} {
		if got := lastFrame([]byte(in)); got != want {
			t.Errorf("%q: %d, want %d", in, got, want)
		}
	}
}

func TestWatchOfWhatIsNoStreamGoesBlind(t *testing.T) {
	var w watch
	piece := []byte(strings.Repeat("x", 1<<20))
	for range sse.DefaultLimit>>20 + 1 {
		w.feed(piece)
	}
	if !w.blind || w.rest != nil {
		t.Errorf("it keeps %d bytes", len(w.rest))
	}
	if !w.feed(piece) {
		t.Error("bytes are no progress any more")
	}
}
