package transport_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"holdfast"
	"holdfast/transport"
)

// refusing is an error of a base that knows why it sent nothing.
type refusing struct{ verdict holdfast.Verdict }

func (refusing) Error() string               { return "no credentials" }
func (refusing) Hint() string                { return "run login" }
func (r refusing) Verdict() holdfast.Verdict { return r.verdict }

type baseFunc func(*http.Request) (*http.Response, error)

func (f baseFunc) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// What a base says of a request that it refused itself is kept: its verdict, also of a call that must not be repeated, its
// words and its hint.
func TestABaseThatKnowsMoreIsHeard(t *testing.T) {
	for _, c := range []struct {
		name, path string
		verdict    holdfast.Verdict
		attempts   int
		status     int
	}{
		{"not again", "/v1/messages", holdfast.Verdict{Kind: holdfast.Broken, NotSent: true, ShouldRetry: "false", Rule: "r"}, 1, http.StatusBadGateway},
		{"again", "/v1/messages", holdfast.Verdict{Kind: holdfast.Broken, NotSent: true, Rule: "r"}, 2, http.StatusBadGateway},
		{"again, for nothing was sent", "/v1/messages/batches", holdfast.Verdict{Kind: holdfast.Broken, NotSent: true, Rule: "r"}, 2, http.StatusBadGateway},
		{"too large", "/v1/messages", holdfast.Verdict{Kind: holdfast.Overflow, NotSent: true, Status: 413, Rule: "r", Message: "no credentials"}, 1, http.StatusRequestEntityTooLarge},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				attempts := 0
				through := transport.New(&holdfast.Policy{Attempts: 2}, baseFunc(func(*http.Request) (*http.Response, error) {
					attempts++
					return nil, fmt.Errorf("wrapped: %w", refusing{c.verdict})
				}))
				req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://api.test"+c.path, strings.NewReader(`{"model":"m"}`))
				if err != nil {
					t.Fatal(err)
				}
				resp, err := through.RoundTrip(req)
				if err != nil {
					t.Fatal(err)
				}
				defer resp.Body.Close()
				text, _ := io.ReadAll(resp.Body)
				if attempts != c.attempts || resp.StatusCode != c.status || resp.Header.Get("X-Should-Retry") != "false" {
					t.Errorf("%d attempts, %d %v", attempts, resp.StatusCode, resp.Header)
				}
				for _, want := range []string{"no credentials", "Hint: "} {
					if !strings.Contains(string(text), want) {
						t.Errorf("it does not say %q: %s", want, text)
					}
				}
				trace, _ := transport.TraceOf(resp)
				if a := trace.Attempts(); a[0].Verdict.Rule != "r" || !errors.As(transport.ErrorOf(resp), new(refusing)) {
					t.Errorf("rule %q, %v", a[0].Verdict.Rule, transport.ErrorOf(resp))
				}
			})
		})
	}
}
