package sse_test

import (
	"fmt"
	"strings"
	"testing"

	"holdfast/internal/sse"
)

func TestAppendWritesOneFrame(t *testing.T) {
	tests := []struct{ name, event, data, want string }{
		{"named", "ping", `{"type":"ping"}`, "event: ping\ndata: {\"type\":\"ping\"}\n\n"},
		{"nameless", "", "[DONE]", "data: [DONE]\n\n"},
		{"empty data", "e", "", "event: e\ndata: \n\n"},
		{"leading space", "", " a", "data:  a\n\n"},
		{"lines", "", "a\nb\r\nc\rd\n", "data: a\ndata: b\ndata: c\ndata: d\ndata: \n\n"},
		{"name cannot forge a field", "a\ndata: x\r", "b", "event: adata: x\ndata: b\n\n"},
	}
	for _, tt := range tests {
		if got := string(sse.Append([]byte("before"), tt.event, []byte(tt.data))); got != "before"+tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}

func ExampleAppend() {
	fmt.Printf("%s", sse.Append(nil, "message_stop", []byte(`{"type":"message_stop"}`)))
	// Output:
	// event: message_stop
	// data: {"type":"message_stop"}
}

func ExampleReader() {
	r := sse.NewReader(strings.NewReader(": hello\n\nevent: ping\ndata: {}\n\n"), 0)
	e, err := r.Next()
	fmt.Printf("%s %s %q %v\n", e.Name, e.Data, e.Raw, err)
	_, err = r.Next()
	fmt.Println(err)
	// Output:
	// ping {} ": hello\n\nevent: ping\ndata: {}\n\n" <nil>
	// EOF
}
