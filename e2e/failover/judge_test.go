package failover_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"holdfast/standin"
)

// A gateway that does what gateways have been seen to do must not pass: a judge that lets everything through would make
// any table look good.
func TestJudgeSeesWhatGatewaysDo(t *testing.T) {
	text := (&world{}).text
	part := func(whose string, from, to int) string {
		return strings.Join(strings.Fields(text(whose))[from:to], " ")
	}
	for _, row := range []struct {
		name   string
		plan   standin.Plan
		stream bool
		serve  func(base http.RoundTripper) http.HandlerFunc
		want   string
	}{
		{"joins the fallback's answer to a fragment", standin.Plan{}, true, tells(part("primary", 0, 40) + " " + text("fallback")), "two answers are joined, or one is there twice"},
		{"begins the answer anew behind a fragment", standin.Plan{}, true, tells(part("primary", 0, 40) + text("primary")), "two answers are joined, or one is there twice"},
		{"goes on in the fallback's words", standin.Plan{}, true, tells(part("primary", 0, 40) + " " + part("fallback", 40, 60)), "two answers are joined, or one is there twice"},
		{"takes a fragment for the whole", standin.Plan{}, true, tells(part("primary", 0, 40)), quiet},
		{"ends a stream without its end", standin.Plan{}, true, writes("text/event-stream", words(text("primary"))), quiet},
		{"hides an error in a 200", standin.Plan{}, false, writes("application/json", `{"type":"error","error":{"type":"api_error","message":"x"}}`), "a 200 that hides an error"},
		{"asks ten times", standin.Plan{}, true, asks(10), "10 requests to the primary"},
		{"does not wait as long as it is told", standin.Failing(1, http.StatusTooManyRequests, "60"), true, asks(2), "a wait was not kept"},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := subject{open: func(_ *testing.T, base http.RoundTripper, _ [2]string) (http.Handler, func() []account) {
					return row.serve(base), nil
				}}
				got := meet(t, s, dialects[0], fault{plan: row.plan}, row.stream)
				if got.state != failed || got.why != row.want {
					t.Errorf("%v: %s; want %s", got, got.why, row.want)
				}
			})
		})
	}
}

func writes(kind, body string) func(http.RoundTripper) http.HandlerFunc {
	return func(http.RoundTripper) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", kind)
			_, _ = io.WriteString(w, body)
		}
	}
}

func words(text string) string {
	return fmt.Sprintf("event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"delta\":{\"type\":\"text_delta\",\"text\":%q}}\n\n", text)
}

// tells writes the text as a stream that ends as it should.
func tells(text string) func(http.RoundTripper) http.HandlerFunc {
	return writes("text/event-stream", words(text)+
		"event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"}}\n\nevent: message_stop\ndata: {\"type\":\"message_stop\"}\n\n")
}

// asks sends the request so often, at once, and passes the last reply on.
func asks(times int) func(http.RoundTripper) http.HandlerFunc {
	return func(base http.RoundTripper) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			for i := range times {
				again := r.Clone(r.Context())
				again.URL.Scheme, again.URL.Host, again.RequestURI = "http", "api.test", ""
				again.Body = io.NopCloser(bytes.NewReader(body))
				resp, err := base.RoundTrip(again)
				if err != nil {
					w.WriteHeader(http.StatusBadGateway)
					return
				}
				if i == times-1 {
					w.Header().Set("Content-Type", resp.Header.Get("Content-Type"))
					w.WriteHeader(resp.StatusCode)
					_, _ = io.Copy(w, resp.Body)
				} else {
					_, _ = io.Copy(io.Discard, resp.Body)
				}
				_ = resp.Body.Close()
			}
		}
	}
}
