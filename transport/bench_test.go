package transport_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"holdfast"
	"holdfast/transport"
)

// instant answers without a network.
func instant(kind, answer string) http.RoundTripper {
	return roundTripper(func(req *http.Request) (*http.Response, error) {
		_, _ = io.Copy(io.Discard, req.Body)
		_ = req.Body.Close()
		return &http.Response{
			StatusCode: 200, Header: http.Header{"Content-Type": {kind}}, ContentLength: int64(len(answer)),
			Body: io.NopCloser(strings.NewReader(answer)), Request: req,
		}, nil
	})
}

func BenchmarkTransport(b *testing.B) {
	protected := &holdfast.Policy{
		Deadline: time.Minute, Breaker: holdfast.NewBreaker(holdfast.BreakerSettings{}),
		Pace: holdfast.NewPace(holdfast.Limits{}), Budget: holdfast.NewBudget(holdfast.BudgetSettings{}),
	}
	streamed := preamble + strings.Repeat(delta, 100) + stop + reason + end
	for _, c := range []struct {
		name string
		tr   http.RoundTripper
		size int
	}{
		{"answer/bare", instant("application/json", message), len(message)},
		{"answer/protected", transport.New(protected, instant("application/json", message)), len(message)},
		{"stream/bare", instant("text/event-stream", streamed), len(streamed)},
		{"stream/protected", transport.New(protected, instant("text/event-stream", streamed)), len(streamed)},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(c.size))
			for b.Loop() {
				req, err := http.NewRequest("POST", "http://api.test/v1/messages", strings.NewReader(prompt))
				if err != nil {
					b.Fatal(err)
				}
				resp, err := c.tr.RoundTrip(req)
				if err != nil {
					b.Fatal(err)
				}
				if n, err := io.Copy(io.Discard, resp.Body); n != int64(c.size) || err != nil {
					b.Fatal(n, err)
				}
				_ = resp.Body.Close()
			}
		})
	}
}
