package sse_test

import (
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"holdfast/internal/sse"
)

// FuzzReader cuts a stream into pieces of the given sizes: neither the events
// nor the bytes relayed may depend on the cuts.
func FuzzReader(f *testing.F) {
	for _, s := range []string{
		"event: a\ndata: 1\n\n", "data: 1\r\n\r\ndata: 2\r\n\r\n", "data: 1\r\rdata\r\r", "\xEF\xBB\xBFid: 3\n: c\n\ndata: x",
		"retry: 1\n\ndata: a\ndata: b\n\r\n\n", "\r\n\n\r", "data: \u6f22\n\n",
	} {
		f.Add(s, []byte{1, 2, 3}, uint8(0))
		f.Add(s, []byte{7}, uint8(9))
	}
	f.Fuzz(func(t *testing.T, stream string, sizes []byte, limit uint8) {
		want, raw, wantErr := readAll(strings.NewReader(stream), int(limit))
		if wantErr == nil && raw != stream {
			t.Fatalf("relayed %q of %q", raw, stream)
		}
		var cut []string
		for rest, i := stream, 0; rest != ""; i++ {
			n := len(rest)
			if len(sizes) > 0 {
				n = min(n, 1+int(sizes[i%len(sizes)]))
			}
			cut, rest = append(cut, rest[:n]), rest[n:]
		}
		for _, src := range []*pieces{{cut}, {strings.Split(stream, "")}} {
			events, raw, err := readAll(iotest.DataErrReader(src), int(limit))
			if diff := cmp.Diff(want, events); diff != "" || (err == nil) != (wantErr == nil) {
				t.Fatalf("cut: error %v, want %v; events (-whole +cut):\n%s", err, wantErr, diff)
			}
			if err == nil && raw != stream {
				t.Fatalf("cut: relayed %q of %q", raw, stream)
			}
		}
	})
}

// FuzzAppend reads back what was written.
func FuzzAppend(f *testing.F) {
	f.Add("ping", "{}")
	f.Add("", "a\r\nb\rc\n")
	f.Add("x\ny", "")
	f.Fuzz(func(t *testing.T, name, data string) {
		lines := strings.NewReplacer("\r\n", "\n", "\r", "\n")
		want := []got{{Name: strings.NewReplacer("\r", "", "\n", "").Replace(name), Data: lines.Replace(data)}}
		events, _, err := readAll(strings.NewReader(string(sse.Append(nil, name, []byte(data)))), 0)
		if diff := cmp.Diff(want, events); diff != "" || err != nil {
			t.Fatalf("error %v; events (-want +got):\n%s", err, diff)
		}
	})
}
