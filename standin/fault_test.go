package standin_test

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"holdfast/internal/sse"
	"holdfast/standin"
)

const (
	question       = `{"model":"m","max_tokens":50,"messages":[{"role":"user","content":"hello there"}]}`
	streamQuestion = `{"model":"m","max_tokens":50,"stream":true,"messages":[{"role":"user","content":"hello there"}]}`
	anthropicPath  = "/v1/messages"
	openAIPath     = "/v1/chat/completions"
)

// answered is what a plain client sees of a reply.
type answered struct {
	status  int
	header  http.Header
	body    string
	err     error // of the call
	readErr error // of the body
}

func post(t *testing.T, c *http.Client, url, body string) answered {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), "POST", url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("x-api-key", "good")
	req.Header.Set("anthropic-version", "2023-06-01")
	res, err := c.Do(req)
	if err != nil {
		return answered{err: err}
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	return answered{res.StatusCode, res.Header, string(text), nil, err}
}

// names lists the events of a stream by name, or by their data when short.
func names(t *testing.T, body string) (list []string) {
	t.Helper()
	r := sse.NewReader(strings.NewReader(body), 0)
	for {
		e, err := r.Next()
		if err == io.EOF {
			return list
		}
		if err != nil {
			t.Fatal(err)
		}
		name := e.Name
		if name == "" {
			name = string(e.Data[:min(len(e.Data), 10)])
		}
		if e.Unterminated {
			name += " (torn)"
		}
		list = append(list, name)
	}
}

var (
	start3 = []string{"message_start", "content_block_start", "ping"}
	delta  = "content_block_delta"
	end3   = []string{"content_block_stop", "message_delta", "message_stop"}
)

func list(parts ...any) (all []string) {
	for _, p := range parts {
		switch p := p.(type) {
		case string:
			all = append(all, p)
		case []string:
			all = append(all, p...)
		}
	}
	return all
}

// The switch for each kind of cut at each place, of B179, is a table here.
func TestStreamEndsWhereAndHowTheStepSays(t *testing.T) {
	tests := []struct {
		name    string
		step    standin.Step
		want    []string
		readErr error
	}{
		{"complete", standin.Step{}, list(start3, delta, delta, delta, end3), nil},
		{"B92 cut before the first event", standin.Step{Kind: standin.Cut, At: standin.First}, nil, nil},
		{"cut after the preamble", standin.Step{Kind: standin.Cut}, start3, nil},
		{"B60 clean cut after two", standin.Step{Kind: standin.Cut, After: 2}, list(start3, delta, delta), nil},
		{"B60 no last chunk after two", standin.Step{Kind: standin.Cut, After: 2, How: standin.Chunk}, list(start3, delta, delta), io.ErrUnexpectedEOF},
		{"answer grows to the cut", standin.Step{Kind: standin.Cut, After: 4}, list(start3, delta, delta, delta, delta), nil},
		{"cut in a word", standin.Step{Kind: standin.Cut, After: 1, Torn: standin.TornFrame}, list(start3, delta, delta+" (torn)"), nil},
		{"B64 torn last frame", standin.Step{Kind: standin.Cut, At: standin.Stop, Torn: standin.TornFrame}, list(start3, delta, delta, delta, end3[:2], "message_stop (torn)"), nil},
		{"error first", standin.Step{Kind: standin.Error, At: standin.First}, list("error"), nil},
		{"B93 error after the preamble", standin.Step{Kind: standin.Error}, list(start3, "error"), nil},
		{"B66 error after one", standin.Step{Kind: standin.Error, After: 1}, list(start3, delta, "error"), nil},
		{"refusal", standin.Step{Kind: standin.Refusal}, list("message_start", end3[1:]), nil},
		{"truncation", standin.Step{Kind: standin.Truncation}, list(start3, delta, delta, end3), nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				_, c, url := serve(t, standin.Plan{Reply: "one two three", Steps: []standin.Step{tt.step}})
				got := post(t, c, url+anthropicPath, streamQuestion)
				if got.status != 200 || got.header.Get("content-type") != "text/event-stream; charset=utf-8" || !errors.Is(got.readErr, tt.readErr) {
					t.Errorf("status %d, error %v, header %v", got.status, got.readErr, got.header)
				}
				if diff := cmp.Diff(tt.want, names(t, got.body)); diff != "" {
					t.Errorf("events (-want +got):\n%s", diff)
				}
			})
		})
	}
}

func TestOpenAIStreamEndsWhereTheStepSays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		plan := standin.Plan{Reply: "one two", Steps: []standin.Step{{}, {Kind: standin.Error, After: 1, Message: "busy"}, {Kind: standin.Cut, At: standin.Stop}}}
		_, c, url := serve(t, plan)
		wantChunks := []int{5, 2, 5} // role, two words, the reason, usage
		for i, wantEnd := range []string{"[DONE]", "busy", `"finish_reason":"stop"`} {
			got := post(t, c, url+openAIPath, strings.Replace(streamQuestion, `"stream":true`, `"stream":true,"stream_options":{"include_usage":true}`, 1))
			frames := strings.Split(strings.TrimSuffix(got.body, "\n\n"), "\n\n")
			if strings.Contains(got.body, "event:") || strings.Count(got.body, `"chat.completion.chunk"`) != wantChunks[i] {
				t.Errorf("step %d: %s", i, got.body)
			}
			if last := frames[len(frames)-1]; i < 2 && !strings.Contains(last, wantEnd) || !strings.Contains(got.body, wantEnd) {
				t.Errorf("step %d ends with %s", i, last)
			}
		}
	})
}

func TestOpenAIAnswersInItsOwnWords(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, c, url := serve(t, standin.Plan{Reply: "one two three four", Steps: []standin.Step{
			{}, {Kind: standin.Truncation}, {Kind: standin.Refusal, Explanation: "not this"}, {Kind: standin.HTTP, Status: 429, Code: "slow_down"},
		}})
		for i, want := range []string{
			`"role":"assistant","content":"one two three four","refusal":null|"completion_tokens":4,"total_tokens":7|"finish_reason":"stop"`,
			`"content":"one two "|"finish_reason":"length"|"completion_tokens":50`,
			`"content":null,"refusal":"not this"|"finish_reason":"content_filter"`,
			`"code":"slow_down"`,
		} {
			got := post(t, c, url+openAIPath, question)
			for _, part := range strings.Split(want, "|") {
				if !strings.Contains(got.body, part) {
					t.Errorf("step %d: no %s in %s", i, part, got.body)
				}
			}
			if id := got.header.Get("x-request-id"); id == "" || id != got.header.Get("request-id") {
				t.Errorf("step %d: x-request-id %q", i, id)
			}
		}
	})
}

func TestJSONAnswerSuffersTheSameFaults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		plan := standin.Plan{Steps: []standin.Step{
			{}, {Kind: standin.Cut}, {Kind: standin.Cut, How: standin.Chunk}, {Kind: standin.Cut, At: standin.First}, {Kind: standin.Error, Message: "busy"},
		}}
		_, c, url := serve(t, plan)
		whole := post(t, c, url+anthropicPath, question).body
		tests := []struct {
			name, body string
			err        error
		}{
			{"clean cut", whole[:len(whole)/2], nil},
			{"B88 missing bytes", whole[:len(whole)/2], io.ErrUnexpectedEOF},
			{"B89 nothing", "", nil},
		}
		for i, tt := range tests {
			got := post(t, c, url+anthropicPath, question)
			want := strings.ReplaceAll(tt.body, "standin_000001", "standin_00000"+string(rune('2'+i)))
			if got.status != 200 || got.body != want || !errors.Is(got.readErr, tt.err) {
				t.Errorf("%s: status %d, error %v, body %q, want %q", tt.name, got.status, got.readErr, got.body, want)
			}
		}
		if got := post(t, c, url+anthropicPath, question); got.status != 200 || !strings.Contains(got.body, `"busy"`) {
			t.Errorf("B90 error in a 200: status %d, body %q", got.status, got.body)
		}
	})
}

func TestAnswerKeepsWithinMaxTokens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, c, url := serve(t, standin.Plan{Reply: "one two three four"})
		for i, want := range []struct {
			maxTokens, text, reason string
			output                  int
		}{
			{"1", `"one "`, "max_tokens", 1},
			{"2", `"one two "`, "max_tokens", 2},
			{"4", `"one two three four"`, "end_turn", 4},
		} {
			got := post(t, c, url+anthropicPath, strings.Replace(question, "50", want.maxTokens, 1))
			if !strings.Contains(got.body, `"text":`+want.text) || !strings.Contains(got.body, `"stop_reason":"`+want.reason+`"`) || s.Journal()[i].Output != want.output {
				t.Errorf("max_tokens %s: billed %d for %s", want.maxTokens, s.Journal()[i].Output, got.body)
			}
		}
	})
}

func TestResetBreaksTheConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		plan := standin.Plan{Reply: "one two three", Steps: []standin.Step{{Kind: standin.Lost}, {Kind: standin.Cut, After: 1, How: standin.RST}}}
		s, c, url := serve(t, plan)
		if got := post(t, c, url+anthropicPath, question); !errors.Is(got.err, syscall.ECONNRESET) {
			t.Errorf("before the headers: %v, want a reset", got.err)
		}
		// A reset overtakes what has not been read, so even the headers may be lost.
		if got := post(t, c, url+anthropicPath, streamQuestion); !errors.Is(errors.Join(got.err, got.readErr), syscall.ECONNRESET) {
			t.Errorf("in the stream: %v, %v; want a reset", got.err, got.readErr)
		}
		synctest.Wait()
		j := s.Journal()
		if j[0].ClosedBy != standin.Peer || j[0].Status != 0 || j[1].ClosedBy != standin.Peer || j[1].Status != 200 {
			t.Errorf("journal %+v", j)
		}
		if j[0].Input != 3 || j[0].Output != 3 || j[1].Input != 3 || j[1].Output != 1 {
			t.Errorf("billed %d, %d for the lost answer and %d, %d for the cut one", j[0].Input, j[0].Output, j[1].Input, j[1].Output)
		}
	})
}

func TestStallAndDelayAndGapTakeTheirTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		plan := standin.Plan{Reply: "one two three", Steps: []standin.Step{
			{Delay: 3 * time.Second, Gap: 250 * time.Millisecond},
			{Kind: standin.Cut, How: standin.Silence, After: 2},
		}}
		s, c, url := serve(t, plan)
		began := time.Now()
		if got := post(t, c, url+anthropicPath, streamQuestion); got.readErr != nil || time.Since(began) != 3500*time.Millisecond {
			t.Errorf("took %v, error %v; want 3.5s", time.Since(began), got.readErr)
		}
		began, c.Timeout = time.Now(), time.Minute
		got := post(t, c, url+anthropicPath, streamQuestion)
		if got.readErr == nil || time.Since(began) != time.Minute {
			t.Errorf("stall took %v, error %v; want the client's own minute", time.Since(began), got.readErr)
		}
		if diff := cmp.Diff(list(start3, delta, delta), names(t, got.body)); diff != "" {
			t.Errorf("events before the stall (-want +got):\n%s", diff)
		}
		synctest.Wait()
		if e := s.Journal()[1]; e.ClosedBy != standin.Client || s.Open() != 0 {
			t.Errorf("closed by %q, %d open", e.ClosedBy, s.Open())
		}
	})
}

func TestRepliesThatAreNoAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		plan := standin.Plan{Steps: []standin.Step{
			{Kind: standin.Empty},
			{Kind: standin.HTML},
			{Kind: standin.HTTP, Status: 413, Body: "<html>too big</html>", ContentType: "text/html", Header: standin.Header{"server": {"edge"}}},
			{Kind: standin.HTTP, Status: 429, RetryAfter: "Fri, 31 Dec 1999 23:59:59 GMT"},
			{Kind: standin.HTTP, Status: 200, Body: `{"content":[]}`},
			{Kind: standin.HTTP, Status: 204, Body: "dropped"},
		}}
		_, c, url := serve(t, plan)
		for i, want := range []struct {
			status                           int
			contentType, body, header, value string
		}{
			{200, "application/json", "", "content-length", "0"},
			{200, "text/html; charset=utf-8", "<!DOCTYPE html>", "request-id", "req_standin_000002"},
			{413, "text/html", "<html>too big</html>", "server", "edge"},
			{429, "application/json", `"rate_limit_error"`, "retry-after", "Fri, 31 Dec 1999 23:59:59 GMT"},
			{200, "application/json", `{"content":[]}`, "anthropic-organization-id", "org_standin"},
			{204, "application/json", "", "content-length", ""},
		} {
			got := post(t, c, url+anthropicPath, question)
			if got.status != want.status || got.header.Get("content-type") != want.contentType || !strings.Contains(got.body, want.body) || want.body == "" && got.body != "" || got.header.Get(want.header) != want.value {
				t.Errorf("step %d: status %d, header %v, body %q", i, got.status, got.header, got.body)
			}
		}
	})
}

func TestRequestsThatTheAPIRefusesUseNoStep(t *testing.T) {
	t.Parallel()
	ask := func(method, path, body string, header ...string) *http.Request {
		req, err := http.NewRequest(method, "http://api.test"+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		for i := 0; i < len(header); i += 2 {
			req.Header.Set(header[i], header[i+1])
		}
		return req
	}
	good := []string{"x-api-key", "good", "anthropic-version", "2023-06-01"}
	tests := []struct {
		name   string
		req    *http.Request
		status int
		class  string
	}{
		{"no key", ask("POST", anthropicPath, question), 401, "authentication_error"},
		{"bad key", ask("POST", anthropicPath, question, "x-api-key", "bad"), 401, "authentication_error"},
		{"bad bearer key", ask("POST", anthropicPath, question, "authorization", "Bearer bad"), 401, "authentication_error"},
		{"not a bearer key", ask("POST", anthropicPath, question, "authorization", "Basic good"), 401, "authentication_error"},
		{"bad key, OpenAI", ask("POST", openAIPath, question, "authorization", "Bearer bad"), 401, "invalid_api_key"},
		{"unknown path", ask("POST", "/v1/nothing", question, good...), 404, "not_found_error"},
		{"wrong method", ask("GET", anthropicPath, "", good...), 405, "error"},
		{"not JSON", ask("POST", anthropicPath, "{", good...), 400, "valid JSON"},
		{"no model", ask("POST", anthropicPath, `{"max_tokens":1,"messages":[{"role":"user","content":"x"}]}`, good...), 400, "model: Field required"},
		{"no max_tokens", ask("POST", anthropicPath, `{"model":"m","messages":[{"role":"user","content":"x"}]}`, good...), 400, "max_tokens: Field required"},
		{"max_tokens 0", ask("POST", anthropicPath, `{"model":"m","max_tokens":0,"messages":[{"role":"user","content":"x"}]}`, good...), 400, "max_tokens"},
		{"no messages", ask("POST", anthropicPath, `{"model":"m","max_tokens":1,"messages":[]}`, good...), 400, "messages: at least one"},
		{"bad role", ask("POST", anthropicPath, `{"model":"m","max_tokens":1,"messages":[{"role":"tool","content":"x"}]}`, good...), 400, "role"},
		{"too large", ask("POST", anthropicPath, strings.Repeat(" ", 32<<20+1), good...), 413, "413 Request Entity Too Large"},
	}
	synctest.Test(t, func(t *testing.T) {
		s, c, _ := serve(t, standin.Failing(-1, 529, ""))
		for i, tt := range tests {
			res, err := c.Do(tt.req.WithContext(t.Context()))
			if err != nil {
				t.Errorf("%s: %v", tt.name, err)
				continue
			}
			body, err := io.ReadAll(res.Body)
			res.Body.Close()
			if err != nil || res.StatusCode != tt.status || !strings.Contains(string(body), tt.class) {
				t.Errorf("%s: status %d, error %v, body %s", tt.name, res.StatusCode, err, body)
			}
			if e := s.Journal()[i]; e.Fault != "rejected" || e.Attempt != 0 || e.Status != tt.status {
				t.Errorf("%s: journal %+v", tt.name, e)
			}
		}
		if got := post(t, c, "http://api.test"+anthropicPath, question); got.status != 529 {
			t.Errorf("the first good request got %d", got.status)
		}
		if in, out := s.Billed(); in != 0 || out != 0 {
			t.Errorf("billed %d, %d for nothing", in, out)
		}
	})
}

func TestCloseEndsWhatWaits(t *testing.T) {
	for name, step := range map[string]standin.Step{"delay": {Delay: time.Hour}, "timeout": {Kind: standin.Timeout}, "stall": {Kind: standin.Cut, How: standin.Silence}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, c, url := serve(t, standin.Plan{Steps: []standin.Step{step}})
				done := make(chan answered)
				go func() { done <- post(t, c, url+anthropicPath, streamQuestion) }()
				synctest.Wait()
				if s.Open() != 1 {
					t.Errorf("%d open, want 1", s.Open())
				}
				s.Close()
				if got := <-done; got.err == nil && got.readErr == nil {
					t.Errorf("a whole reply: %+v", got)
				}
				synctest.Wait()
				if e := s.Journal()[0]; s.Open() != 0 || e.ClosedBy != standin.Peer {
					t.Errorf("%d open, closed by %q", s.Open(), e.ClosedBy)
				}
			})
		})
	}
}
