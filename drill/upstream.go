package drill

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"holdfast"
)

// answer is a reply as a provider sends it.
type answer struct {
	status    int
	header    map[string]string
	requestID string
	delay     time.Duration
}

// with returns the answer with one more header.
func (a answer) with(name, value string) answer {
	header := map[string]string{name: value}
	for n, v := range a.header {
		header[n] = v
	}
	a.header = header
	return a
}

func (a answer) after(seconds string) answer { return a.with("retry-after", seconds) }

func (a answer) id(id string) answer { a.requestID = id; return a }

// errorTypes are the words of the Messages API for a status.
var errorTypes = map[int]string{
	400: "invalid_request_error", 401: "authentication_error", 402: "billing_error", 403: "permission_error", 404: "not_found_error", 413: "request_too_large",
	429: "rate_limit_error", 500: "api_error", 504: "timeout_error", 529: "overloaded_error",
}

func errorType(status int) string {
	if t, ok := errorTypes[status]; ok {
		return t
	}
	if status < 500 {
		return "invalid_request_error"
	}
	return "api_error"
}

// body is the JSON that comes with the status.
func (a answer) body() []byte {
	if a.status == http.StatusOK {
		return []byte(`{"id":"msg_1","type":"message","role":"assistant","content":[{"type":"text","text":"Yes."}],` +
			`"stop_reason":"end_turn","usage":{"input_tokens":10,"output_tokens":3}}`)
	}
	text, err := json.Marshal(map[string]any{
		"type":       "error",
		"error":      map[string]any{"type": errorType(a.status), "message": http.StatusText(a.status)},
		"request_id": a.requestID,
	})
	if err != nil { // strings alone cannot fail to encode
		return nil
	}
	return text
}

// verdict judges the answer from its wire form, as production does.
func (a answer) verdict(now time.Time) holdfast.Verdict {
	header := http.Header{"Content-Type": {"application/json"}, "Date": {now.UTC().Format(http.TimeFormat)}}
	for n, v := range a.header {
		header.Set(n, v)
	}
	if a.requestID != "" {
		header.Set("request-id", a.requestID)
	}
	return holdfast.FromReply(a.status, header, a.body(), now)
}

// server gives scripted answers, then the last one for ever, and remembers when it was asked.
type server struct {
	w      *world
	script []answer
	asked  []time.Duration
}

func (w *world) server(script ...answer) *server { return &server{w: w, script: script} }

func (s *server) serve(reply func(holdfast.Verdict)) func() {
	a := s.script[min(len(s.asked), len(s.script)-1)]
	s.asked = append(s.asked, s.w.now)
	s.w.after(a.delay, func() { reply(a.verdict(s.w.time())) })
	return nil
}

// gaps are the times between attempts as the server saw them.
func (s *server) gaps() (gaps []time.Duration) {
	for i := 1; i < len(s.asked); i++ {
		gaps = append(gaps, s.asked[i]-s.asked[i-1])
	}
	return gaps
}

var (
	yes        = answer{status: 200}
	throttled  = answer{status: 429}
	overloaded = answer{status: 529}
)

func status(code int) answer { return answer{status: code} }

// retryLine is the log line of a retry: which of how many, what came, what the server asked for, and the wait.
func retryLine(e holdfast.Event, attempts int) string {
	asked := "no retry-after"
	if e.Verdict.Wait > 0 {
		asked = "retry-after " + plain(e.Verdict.Wait)
	}
	return fmt.Sprintf("retry %d of %d: %s, status %d, %s: waiting %.3f s",
		e.Attempt, attempts-1, e.Verdict.Type, e.Verdict.Status, asked, e.Wait.Seconds())
}

// plain is a number of seconds without needless digits.
func plain(d time.Duration) string { return strconv.FormatFloat(d.Seconds(), 'f', -1, 64) }
