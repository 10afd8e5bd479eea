package sse_test

import (
	"bytes"
	"io"
	"testing"

	"holdfast/internal/sse"
)

func deltas(n int, lineEnd string) []byte {
	frame := []byte("event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\" word\"}}\n\n")
	return bytes.Repeat(bytes.ReplaceAll(frame, []byte("\n"), []byte(lineEnd)), n)
}

func BenchmarkReader(b *testing.B) {
	for name, lineEnd := range map[string]string{"LF": "\n", "CRLF": "\r\n", "CR": "\r"} {
		b.Run(name, func(b *testing.B) {
			stream := deltas(1000, lineEnd)
			b.SetBytes(int64(len(stream)))
			b.ReportAllocs()
			for b.Loop() {
				r := sse.NewReader(bytes.NewReader(stream), 0)
				events := 0
				for {
					if _, err := r.Next(); err == io.EOF {
						break
					}
					events++
				}
				if events != 1000 {
					b.Fatalf("%d events", events)
				}
			}
		})
	}
}

func BenchmarkAppend(b *testing.B) {
	data := []byte(`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":" word"}}`)
	var dst []byte
	b.ReportAllocs()
	for b.Loop() {
		dst = sse.Append(dst[:0], "content_block_delta", data)
	}
	b.SetBytes(int64(len(dst)))
}
