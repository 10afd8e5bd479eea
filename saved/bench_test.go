package saved_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"holdfast/saved"
)

// What Keep costs the call, and what it costs the machine until the answer is written.
func BenchmarkKeep(b *testing.B) {
	for _, size := range []int{1 << 10, 200 << 10} {
		b.Run(fmt.Sprintf("%dKiB", size>>10), func(b *testing.B) {
			s := open(b, filepath.Join(b.TempDir(), "answers.db"), saved.Options{})
			q := question(messages, false)
			q.Body = fmt.Appendf(nil, `{"model":"m","messages":[{"role":"user","content":%q}]}`, strings.Repeat("why ", size/4))
			a := asStream(stream(b, messages, strings.Replace(goodMessage, "Because.", strings.Repeat("because ", 200), 1)))
			a.At = time.Time{}
			var called time.Duration
			for b.Loop() {
				start := time.Now()
				if err := s.Keep(context.Background(), q, a); err != nil {
					b.Fatal(err)
				}
				called += time.Since(start)
				if err := s.Flush(context.Background()); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(called.Nanoseconds())/float64(b.N), "ns/call")
		})
	}
}

func BenchmarkLoad(b *testing.B) {
	s := open(b, filepath.Join(b.TempDir(), "answers.db"), saved.Options{MaxAge: -1})
	put(b, s, question(messages, false), asJSON(strings.Replace(goodMessage, "Because.", strings.Repeat("because ", 200), 1)))
	for _, stream := range []bool{false, true} {
		b.Run(fmt.Sprintf("stream=%v", stream), func(b *testing.B) {
			q := question(messages, stream)
			for b.Loop() {
				if _, found := s.Load(b.Context(), q); !found {
					b.Fatal("not found")
				}
			}
		})
	}
}
