package standin_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"holdfast/standin"
)

// page sends a request to a page of the stand-in over the network.
func page(t *testing.T, c *http.Client, method, url, body string) answered {
	t.Helper()
	return caller{t: t, client: c, url: url}.ask(operation{"", method, "", body})
}

func TestANewPlanOverTheNetworkBeginsAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, c, url := serve(t, standin.Failing(-1, 529, ""))
		for range 3 {
			post(t, c, url+anthropicPath, question)
		}
		plan := "reply: new\nsteps:\n- {kind: http, status: 500, times: 2}\njobs:\n  J-1:\n  - {kind: http, status: 418}\n"
		if got := page(t, c, "PUT", url+"/_standin/plan", plan); got.status != 204 {
			t.Fatalf("%+v", got)
		}
		want := []int{500, 500, 200}
		for _, status := range want {
			if got := post(t, c, url+anthropicPath, question); got.status != status {
				t.Errorf("%+v", got)
			}
		}
		if got := page(t, c, "PUT", url+"/_standin/plan", "steps:\n- {kind: http, status: 5}\n- {kind: htp}\n"); got.status != 400 || !strings.Contains(got.body, "2: ") || !strings.Contains(got.body, "3: ") {
			t.Errorf("a bad plan: %+v", got)
		}
		if got := post(t, c, url+anthropicPath, strings.Replace(question, "hello", "J-1", 1)); got.status != 418 || len(s.Journal()) != 4 {
			t.Errorf("a bad plan changed something: %+v", got)
		}
		if got := page(t, c, "GET", url+"/_standin/journal?job=J-1&since=3", ""); got.status != 200 || strings.Count(got.body, `"number"`) != 1 || !strings.Contains(got.body, `"number":4`) {
			t.Errorf("journal: %+v", got)
		}
		if got := page(t, c, "POST", url+"/_standin/reset", ""); got.status != 204 || len(s.Journal()) != 0 {
			t.Errorf("reset: %+v", got)
		}
		if got := post(t, c, url+anthropicPath, question); got.status != 500 {
			t.Errorf("after the reset: %+v", got)
		}
	})
}

// TestPlansChangeWhileRequestsAreOpen ends each request as its own plan had it.
func TestPlansChangeWhileRequestsAreOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := standin.Plan{Reply: "one two three", Limits: &standin.Limits{Tier: standin.TierStart, Concurrent: 200}, Steps: []standin.Step{{Gap: time.Minute, Times: -1}}}
		s, c, url := serve(t, slow)
		var running sync.WaitGroup
		for range 100 {
			running.Go(func() {
				if got := post(t, c, url+anthropicPath, streamQuestion); got.status != 200 || !strings.HasSuffix(got.body, "{\"type\":\"message_stop\"}\n\n") {
					t.Errorf("%+v", got)
				}
			})
		}
		synctest.Wait()
		for i := range 100 {
			running.Go(func() {
				plan := slow
				plan.Seed = uint64(i)
				if err := s.SetPlan(plan); err != nil {
					t.Error(err)
				}
				s.Reset()
				s.Journal().Report()
				s.Ledger()
				s.LimitsUsed()
				post(t, c, url+anthropicPath, streamQuestion)
			})
		}
		running.Wait()
		synctest.Wait()
		input, output := 0, 0
		for _, e := range s.Journal() {
			input, output = input+e.Input, output+e.Output
		}
		if gotInput, gotOutput := s.Billed(); s.Open() != 0 || gotInput != input || gotOutput != output {
			t.Errorf("%d open; billed %d and %d, in the journal %d and %d", s.Open(), gotInput, gotOutput, input, output)
		}
	})
}

// TestNoPageTellsASecret: a key, a prompt and an answer, each with a word of its own.
func TestNoPageTellsASecret(t *testing.T) {
	t.Parallel()
	const key, prompt, reply = "sk-ant-api03-canary", "the prompt canary", "the reply canary"
	type told struct {
		standin.Kind
		standin.Form
		standin.Cap
	}
	met := map[told]bool{}
	for _, step := range everyStep() {
		form := told{step.Kind, step.Form, step.Cap}
		if met[form] {
			continue // where it happens does not matter here
		}
		met[form] = true
		synctest.Test(t, func(t *testing.T) {
			plan := playing(step)
			plan.Reply, plan.BadKeys = reply, []string{key + "-bad"}
			plan.Limits = &standin.Limits{RequestsPerMinute: 3}
			s, c, url := serve(t, plan)
			c.Timeout = time.Second
			all := caller{t: t, client: c, url: url, batch: "msgbatch_standin_000001", file: "file_standin_000001"}
			for i, o := range operations {
				if step.Form == standin.FormOversized && i > 0 {
					break // 4 MiB of nothing each
				}
				o.body = strings.ReplaceAll(o.body, "hello there", prompt)
				o.body = strings.ReplaceAll(o.body, "the content of a file", prompt)
				for i, credential := range []string{key, key + "-bad", key} {
					body := o
					if i == 2 { // refused for what it says
						body.body = strings.Replace(o.body, `"model"`, `"modl"`, 1)
					}
					got := all.ask(body, played, "yes", "x-api-key", credential, "authorization", "Bearer "+credential)
					if strings.Contains(got.body, key) || strings.Contains(got.body, prompt) || got.status >= 400 && strings.Contains(got.body, reply) {
						t.Errorf("%s, %s: %+v", stepName(step), o.name, got)
					}
					if got.err != nil && strings.Contains(got.err.Error(), key) {
						t.Error(got.err)
					}
				}
			}
			synctest.Wait()
			text := fmt.Sprintf("%+v %+v %+v %+v %v", s.Journal(), s.Ledger(), s.Report(), s.LimitsUsed(),
				s.Journal().Check(standin.Requests(0), standin.PaidOnce(), standin.SameBody(), standin.WaitsHonoured(0), standin.AtMost(0), standin.Attempts("x", 3)))
			for _, name := range []string{"", "journal", "ledger", "report", "plan", "nothing"} {
				got := page(t, c, "GET", url+"/_standin/"+name, "")
				text += got.body + fmt.Sprint(got.header)
			}
			for _, secret := range []string{key, prompt, reply} {
				if at := strings.Index(text, secret); at >= 0 {
					t.Errorf("%s: %q", stepName(step), text[max(0, at-100):at+len(secret)])
				}
			}
		})
	}
}
