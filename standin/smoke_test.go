package standin_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"

	"go.uber.org/goleak"

	"holdfast/standin"
)

// TestRealSockets are the few things that only TCP can show, the ends of B179 among them.
func TestRealSockets(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	s := standin.New(standin.Plan{Reply: "one two three", Steps: []standin.Step{
		{}, {Kind: standin.Reset}, {Kind: standin.Cut, After: 1, How: standin.Chunk}, {Kind: standin.Cut, After: 1, How: standin.RST}, {Kind: standin.Cut, After: 1, How: standin.Silence},
	}})
	url, stop, err := s.Start("")
	if err != nil {
		t.Fatal(err)
	}
	c := &http.Client{Transport: &http.Transport{}}
	defer c.CloseIdleConnections()
	if got := post(t, c, url+anthropicPath, streamQuestion); got.readErr != nil || !strings.HasSuffix(got.body, "{\"type\":\"message_stop\"}\n\n") {
		t.Errorf("answer: %+v", got)
	}
	if got := post(t, c, url+anthropicPath, question); !errors.Is(got.err, syscall.ECONNRESET) {
		t.Errorf("reset: %v", got.err)
	}
	if got := post(t, c, url+anthropicPath, streamQuestion); !errors.Is(got.readErr, io.ErrUnexpectedEOF) {
		t.Errorf("no last chunk: %v", got.readErr)
	}
	if got := post(t, c, url+anthropicPath, streamQuestion); !errors.Is(errors.Join(got.err, got.readErr), syscall.ECONNRESET) {
		t.Errorf("reset in the stream: %v, %v", got.err, got.readErr)
	}
	req, _ := http.NewRequestWithContext(t.Context(), "POST", url+anthropicPath, strings.NewReader(streamQuestion))
	req.Header.Set("x-api-key", "good")
	req.Header.Set("anthropic-version", "2023-06-01")
	res, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if line, err := bufio.NewReader(res.Body).ReadString('\n'); err != nil || line != "event: message_start\n" {
		t.Errorf("stall begins with %q, %v", line, err)
	}
	if err := stop(); err != nil || s.Open() != 0 {
		t.Errorf("stop: %v, %d still open", err, s.Open())
	}
	if _, _, err := standin.New(standin.Plan{}).Start("not an address"); err == nil {
		t.Error("Start took a wrong address")
	}
}

func TestResetUnderTLSIsAReset(t *testing.T) {
	server := httptest.NewTLSServer(standin.New(standin.Plan{Steps: []standin.Step{{Kind: standin.Reset}}}))
	defer server.Close()
	if got := post(t, server.Client(), server.URL+anthropicPath, question); !errors.Is(got.err, syscall.ECONNRESET) {
		t.Errorf("error %v, want a reset", got.err)
	}
}

func ExampleServer() {
	s := standin.New(standin.Failing(1, 429, "1"))
	url, stop, err := s.Start("")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer stop()
	for range 2 {
		req, _ := http.NewRequest("POST", url+"/v1/messages",
			strings.NewReader(`{"model":"claude-sonnet-5-5","max_tokens":50,"messages":[{"role":"user","content":"hello"}]}`))
		req.Header.Set("x-api-key", "any")
		req.Header.Set("anthropic-version", "2023-06-01")
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			fmt.Println(err)
			return
		}
		res.Body.Close()
		fmt.Println(res.StatusCode, res.Header.Get("retry-after"), res.Header.Get("request-id"))
	}
	fmt.Println(len(s.Journal()), "requests arrived")
	// Output:
	// 429 1 req_standin_000001
	// 200  req_standin_000002
	// 2 requests arrived
}

// Who has seen the end of a reply must find the exchange ended and its place free, or a client that sends one request
// after the other would seem to send two at once. Real sockets show it: there the two sides run at the same time.
func TestTheEndOfAReplyIsSeenAfterTheExchangeHasEnded(t *testing.T) {
	for name, tt := range map[string]struct {
		step standin.Step
		body string
		end  string // of a stream
	}{
		"message":       {standin.Step{}, question, ""},
		"error":         {standin.Step{Kind: standin.HTTP, Status: 529}, question, ""},
		"oversized":     {standin.Step{Kind: standin.HTTP, Status: 503, Form: standin.FormOversized}, question, ""},
		"stream":        {standin.Step{}, streamQuestion, "data: {\"type\":\"message_stop\"}\n\n"},
		"stream in one": {standin.Step{Writes: standin.WriteAll}, streamQuestion, "data: {\"type\":\"message_stop\"}\n\n"},
		"stream, gzip":  {standin.Step{Gzip: true}, streamQuestion, "data: {\"type\":\"message_stop\"}\n\n"},
	} {
		t.Run(name, func(t *testing.T) {
			tt.step.Times = -1
			s, url := standin.Serve(t, standin.Plan{Steps: []standin.Step{tt.step}, Limits: &standin.Limits{Concurrent: 1}})
			c := &http.Client{Transport: &http.Transport{}}
			defer c.CloseIdleConnections()
			rounds := 25
			if tt.step.Form == standin.FormOversized {
				rounds = 3
			}
			for range rounds {
				seeTheEnd(t, c, url+anthropicPath, tt.body, tt.end)
				if n := s.Open(); n != 0 {
					t.Fatalf("%d requests are open after the end of a reply", n)
				}
			}
			for _, e := range s.Journal() {
				if e.Open() || e.Fault == standin.Throttled || e.ClosedBy != "" {
					t.Fatalf("exchange %d: %+v", e.Number, e)
				}
			}
		})
	}
}

// seeTheEnd sends a request and returns as soon as the last byte that matters has come.
func seeTheEnd(t *testing.T, c *http.Client, url, body, end string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("x-api-key", "good")
	req.Header.Set("anthropic-version", "2023-06-01")
	res, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if end == "" {
		_, err = io.CopyN(io.Discard, res.Body, res.ContentLength)
	}
	var seen []byte
	for buf := make([]byte, 4096); end != "" && err == nil && !strings.HasSuffix(string(seen), end); {
		var n int
		n, err = res.Body.Read(buf)
		seen = append(seen, buf[:n]...)
	}
	if err != nil && err != io.EOF {
		t.Fatal(err)
	}
}
