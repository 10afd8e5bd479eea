package standin_test

import (
	"net/http/httptest"
	"strings"
	"testing"

	"holdfast/standin"
)

// BenchmarkServer is what the stand-in itself costs, so that a measurement
// made against it can tell how much is its own.
func BenchmarkServer(b *testing.B) {
	for name, body := range map[string]string{"JSON": question, "stream": streamQuestion} {
		b.Run(name, func(b *testing.B) {
			s := standin.New(standin.Plan{})
			b.ReportAllocs()
			for b.Loop() {
				r := httptest.NewRequest("POST", anthropicPath, strings.NewReader(body))
				r.Header.Set("x-api-key", "good")
				r.Header.Set("anthropic-version", "2023-06-01")
				w := httptest.NewRecorder()
				s.ServeHTTP(w, r)
				if w.Code != 200 {
					b.Fatalf("status %d", w.Code)
				}
			}
		})
	}
}
