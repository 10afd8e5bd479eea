package standin_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"holdfast/standin"
)

func about(job string) string {
	return fmt.Sprintf(`{"model":"m","max_tokens":50,"messages":[{"role":"user","content":[{"type":"text","text":"look at %s now"}]}]}`, job)
}

func TestJobsKeepTheirOwnPlaces(t *testing.T) {
	plan := standin.Plan{
		Steps: []standin.Step{{Kind: standin.HTTP, Status: 400}},
		Jobs: map[string][]standin.Step{
			"SHP-1":  {{Kind: standin.HTTP, Status: 500, Times: 2}, {}, {Kind: standin.HTTP, Status: 503}},
			"SHP-12": {{Kind: standin.HTTP, Status: 529, Times: -1}},
			"SHP-2":  nil,
		},
	}
	asked := []struct {
		text    string
		job     string
		attempt int
		status  int
	}{
		{"SHP-1", "SHP-1", 1, 500}, {"SHP-12", "SHP-12", 1, 529}, {"SHP-1", "SHP-1", 2, 500}, {"SHP-2", "SHP-2", 1, 200},
		{"nothing", "", 1, 400}, {"SHP-1", "SHP-1", 3, 200}, {"SHP-12", "SHP-12", 2, 529}, {"SHP-1", "SHP-1", 4, 503},
		{"SHP-1", "SHP-1", 5, 200}, {"nothing", "", 2, 200}, {"SHP-1 and SHP-2", "SHP-1", 6, 200},
	}
	synctest.Test(t, func(t *testing.T) {
		s, c, url := serve(t, plan)
		for round := range 2 { // the second one after Reset: everything begins anew
			for i, a := range asked {
				got := post(t, c, url+anthropicPath, about(a.text))
				e := s.Journal()[i]
				if got.status != a.status || e.Status != a.status || e.Job != a.job || e.Attempt != a.attempt {
					t.Errorf("round %d, request %d: status %d, job %q, attempt %d; want %+v", round, i, e.Status, e.Job, e.Attempt, a)
				}
				if want := fmt.Sprintf("req_standin_%06d", i+1); got.header.Get("request-id") != want || e.RequestID != want {
					t.Errorf("round %d, request %d: request ids %q and %q", round, i, got.header.Get("request-id"), e.RequestID)
				}
			}
			s.Reset()
			if in, out := s.Billed(); len(s.Journal()) != 0 || in != 0 || out != 0 {
				t.Errorf("after Reset: %d exchanges, billed %d, %d", len(s.Journal()), in, out)
			}
		}
	})
}

func TestJobIsFoundInEveryPlaceOfThePrompt(t *testing.T) {
	bodies := map[string]string{
		"system":      `{"system":"about JOB-7","messages":[{"role":"user","content":"x"}]`,
		"block":       `{"messages":[{"role":"user","content":[{"type":"text","text":"about JOB-7"}]}]`,
		"tool result": `{"messages":[{"role":"user","content":"x"},{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"f","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":[{"type":"text","text":"JOB-7"}]}]}]`,
		"escaped":     `{"messages":[{"role":"user","content":"JOB\u002d7"}]`,
	}
	for name, body := range bodies {
		s := standin.New(standin.Plan{Jobs: map[string][]standin.Step{"JOB-7": nil}})
		r := httptest.NewRequest("POST", anthropicPath, strings.NewReader(body+`,"model":"m","max_tokens":5}`))
		r.Header.Set("authorization", "Bearer good")
		r.Header.Set("anthropic-version", "2023-06-01")
		s.ServeHTTP(httptest.NewRecorder(), r)
		if j := s.Journal(); len(j.Job("JOB-7")) != 1 {
			t.Errorf("%s: %+v", name, j)
		}
	}
}

func TestJournalSaysWhatArrivedAndWhen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, c, url := serve(t, standin.Plan{Steps: []standin.Step{{Delay: time.Second}}, Jobs: map[string][]standin.Step{"A-1": nil}})
		began := time.Now()
		for _, job := range []string{"none", "A-1", "none", "A-1"} {
			post(t, c, url+anthropicPath+"?beta=true", about(job))
			time.Sleep(2 * time.Second)
		}
		j := s.Journal()
		if diff := cmp.Diff([]time.Duration{3 * time.Second, 2 * time.Second, 2 * time.Second}, j.Gaps()); diff != "" {
			t.Errorf("gaps (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]time.Duration{4 * time.Second}, j.Job("A-1").Gaps()); diff != "" {
			t.Errorf("gaps of the job (-want +got):\n%s", diff)
		}
		sum := sha256.Sum256([]byte(about("none")))
		want := standin.Exchange{
			Number: 1, Arrived: began, Departed: began.Add(time.Second), Method: "POST", Path: anthropicPath, Model: "m", Attempt: 1, SDKRetry: -1,
			Digest: hex.EncodeToString(sum[:]), Status: 200, Endpoint: "messages", Key: "770e607624d6", HeadersAt: began.Add(time.Second), FirstByteAt: began.Add(time.Second), Fault: standin.OK, RequestID: "req_standin_000001", Sent: j[0].Sent, Input: 4, Output: 19,
		}
		if diff := cmp.Diff(want, j[0]); diff != "" || j[0].Sent < 300 {
			t.Errorf("exchange (-want +got):\n%s", diff)
		}
		if in, out := s.Billed(); in != 4*4 || out != 4*19 {
			t.Errorf("billed %d in, %d out", in, out)
		}
	})
}

func TestClientThatLeavesAStreamIsBilledForWhatItGot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, c, url := serve(t, standin.Plan{Reply: strings.Repeat("12345678 ", 20), Steps: []standin.Step{{Gap: time.Second}}})
		c.Timeout = 4500 * time.Millisecond
		if got := post(t, c, url+anthropicPath, streamQuestion); got.readErr == nil {
			t.Errorf("the whole stream came: %s", got.body)
		}
		synctest.Wait()
		e := s.Journal()[0]
		if e.ClosedBy != standin.Client || e.Output != 5*9/4 || e.Departed.Sub(e.Arrived) != 4500*time.Millisecond {
			t.Errorf("closed by %q, output %d, after %v", e.ClosedBy, e.Output, e.Departed.Sub(e.Arrived))
		}
	})
}

func TestJournalIsReadableOverHTTP(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, c, url := serve(t, standin.Failing(1, 429, "1"))
		post(t, c, url+anthropicPath, question)
		post(t, c, url+anthropicPath, question)
		res, err := c.Get(url + "/_standin/journal")
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		text, _ := io.ReadAll(res.Body)
		var got struct {
			Open, Input, Output int
			Exchanges           standin.Journal
		}
		if err := json.Unmarshal(text, &got); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(s.Journal(), got.Exchanges); diff != "" || got.Open != 0 || got.Input != 3 || got.Output != 19 {
			t.Errorf("%s\n(-want +got):\n%s", text, diff)
		}
		if strings.Contains(string(text), "hello there") || strings.Contains(string(text), "good") {
			t.Errorf("prompt or key in the journal: %s", text)
		}
		for _, ask := range []struct {
			method, path string
			status       int
		}{{"POST", "reset", 204}, {"GET", "reset", 405}, {"POST", "ledger", 405}, {"GET", "nothing", 404}} {
			req, _ := http.NewRequestWithContext(t.Context(), ask.method, url+"/_standin/"+ask.path, nil)
			res, err := c.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			res.Body.Close()
			if res.StatusCode != ask.status || len(s.Journal()) != 0 {
				t.Errorf("%s %s: status %d, %d exchanges", ask.method, ask.path, res.StatusCode, len(s.Journal()))
			}
		}
	})
}

func TestParallelJobsGetTheSameFaultsInEveryRun(t *testing.T) {
	t.Parallel()
	const jobs = 200
	plan := standin.Plan{Jobs: make(map[string][]standin.Step)}
	for i := range jobs {
		plan.Jobs[fmt.Sprintf("job-%03d", i)] = []standin.Step{
			{Kind: standin.HTTP, Status: 500 + i%5, Delay: time.Duration(i%7) * time.Millisecond}, {Kind: standin.Cut, After: i % 4, How: standin.Chunk},
		}
	}
	synctest.Test(t, func(t *testing.T) {
		s, c, url := serve(t, plan)
		var wg sync.WaitGroup
		for i := range jobs {
			wg.Go(func() {
				for attempt := range 3 {
					got := post(t, c, url+anthropicPath, strings.Replace(about(fmt.Sprintf("job-%03d", i)), `{"model"`, `{"stream":true,"model"`, 1))
					wantStatus, wantErr := []int{500 + i%5, 200, 200}[attempt], []error{nil, io.ErrUnexpectedEOF, nil}[attempt]
					if got.status != wantStatus || got.readErr != wantErr {
						t.Errorf("job %d, attempt %d: status %d, error %v", i, attempt, got.status, got.readErr)
					}
				}
			})
		}
		wg.Wait()
		synctest.Wait()
		if n := len(s.Journal()); n != 3*jobs || s.Open() != 0 {
			t.Errorf("%d exchanges, %d open", n, s.Open())
		}
	})
}
