package transport_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"holdfast"
	"holdfast/transport"
)

func TestRepliesOfTheUpstream(t *testing.T) {
	for _, c := range []struct {
		name     string
		script   []http.HandlerFunc
		policy   holdfast.Policy
		requests int
		status   int
		body     string
		wait     time.Duration // in all, at least
		below    time.Duration // and less than that
	}{
		{"a good answer comes as it is", []http.HandlerFunc{good}, holdfast.Policy{}, 1, 200, message, 0, time.Millisecond},
		{"B57 the second attempt answers", []http.HandlerFunc{respond(429, limited), good}, holdfast.Policy{}, 2, 200, message, 0, time.Second},
		{"B08 every gap is as long as the server says", []http.HandlerFunc{respond(429, limited, "retry-after: 3"), respond(429, limited, "retry-after: 3"), good}, holdfast.Policy{}, 3, 200, message, 6 * time.Second, 9 * time.Second},
		{"B10 also of a 524", []http.HandlerFunc{respond(524, "<html>", "retry-after: 20"), good}, holdfast.Policy{}, 2, 200, message, 20 * time.Second, 22 * time.Second},
		{"B01 a wait above the maximum is not begun", []http.HandlerFunc{respond(429, limited, "retry-after: 90"), good}, holdfast.Policy{}, 1, 429, limited, 0, time.Millisecond},
		{"B02 nor is one of half an hour", []http.HandlerFunc{respond(429, limited, "retry-after-ms: 1800000")}, holdfast.Policy{}, 1, 429, limited, 0, time.Millisecond},
		{"B20 nor one of days", []http.HandlerFunc{respond(429, limited, "retry-after: 1382400")}, holdfast.Policy{}, 1, 429, limited, 0, time.Millisecond},
		{"B42 nor one that ends after the deadline", []http.HandlerFunc{respond(503, overloaded, "retry-after: 10")}, holdfast.Policy{Deadline: time.Second}, 1, 503, overloaded, 0, 100 * time.Millisecond},
		{"B31 a constant failure ends after the attempts", []http.HandlerFunc{respond(503, overloaded)}, holdfast.Policy{Attempts: 3}, 3, 503, overloaded, 0, 3 * time.Second},
		{"B30 a bad key is asked once", []http.HandlerFunc{respond(401, invalid)}, holdfast.Policy{Attempts: 3}, 1, 401, invalid, 0, time.Millisecond},
		{"B30 a throttle as often as allowed", []http.HandlerFunc{respond(429, limited)}, holdfast.Policy{Attempts: 3}, 3, 429, limited, 0, 5 * time.Second},
		{"B17 a spent balance once", []http.HandlerFunc{respond(429, `{"error":{"type":"insufficient_quota","code":"credit_balance_exhausted","message":"x"}}`)}, holdfast.Policy{}, 1, 429, `{"error":{"type":"insufficient_quota","code":"credit_balance_exhausted","message":"x"}}`, 0, time.Millisecond},
		{"B23 a throttle that speaks of tokens twice", []http.HandlerFunc{respond(429, `{"message":"Too many tokens, please wait before trying again"}`, "x-amzn-errortype: ThrottlingException"), good}, holdfast.Policy{}, 2, 200, message, 0, time.Second},
		{"B96 a 400 is handed on", []http.HandlerFunc{respond(400, invalid)}, holdfast.Policy{}, 1, 400, invalid, 0, time.Millisecond},
		{"B96 a 413 in HTML too", []http.HandlerFunc{respond(413, "<html>too large</html>", "content-type: text/html")}, holdfast.Policy{}, 1, 413, "<html>too large</html>", 0, time.Millisecond},
		{"B96 a 529 too", []http.HandlerFunc{respond(529, overloaded)}, holdfast.Policy{Attempts: 2}, 2, 529, overloaded, 0, time.Second},
		{"an upstream that says false is not asked again", []http.HandlerFunc{respond(529, overloaded, "x-should-retry: false")}, holdfast.Policy{}, 1, 529, overloaded, 0, time.Millisecond},
		{"one that says true is, even after a 400", []http.HandlerFunc{respond(400, invalid, "x-should-retry: true"), good}, holdfast.Policy{}, 2, 200, message, 0, time.Second},
		{"an empty budget returns the upstream's error", []http.HandlerFunc{respond(529, overloaded)}, holdfast.Policy{Budget: holdfast.NewBudget(holdfast.BudgetSettings{Capacity: 1})}, 1, 529, overloaded, 0, time.Millisecond},
		{"a 499 of the upstream is no caller who left", []http.HandlerFunc{respond(499, invalid)}, holdfast.Policy{}, 1, 499, invalid, 0, time.Millisecond},
		{"a large error reply is whole", []http.HandlerFunc{respond(500, strings.Repeat("x", 3<<20))}, holdfast.Policy{Attempts: 2}, 2, 500, strings.Repeat("x", 3<<20), 0, time.Second},
	} {
		bubble(t, c.name, func(t *testing.T) {
			u := serve(t, c.script...)
			c.policy.Dice = half
			began := time.Now()
			resp := ask(t, u.through(transport.New(&c.policy, nil)), u.URL)
			took := time.Since(began)
			expectReply(t, resp, c.status, c.body)
			u.expect(t, c.requests)
			for _, a := range u.seen() {
				if a.body != prompt {
					t.Errorf("an attempt carried %q", a.body)
				}
			}
			if took < c.wait || took >= c.below {
				t.Errorf("took %v, want from %v to below %v", took, c.wait, c.below)
			}
			for _, gap := range u.gaps() { // none is shorter than its share
				if gap < c.wait/time.Duration(c.requests-1) {
					t.Errorf("an attempt came after %v", gap)
				}
			}
			trace, ok := transport.TraceOf(resp)
			if !ok || trace.Sent() != c.requests {
				t.Errorf("the trace tells of %d attempts, want %d", trace.Sent(), c.requests)
			}
			if err := transport.ErrorOf(resp); (err != nil) != (c.status >= 400) {
				t.Errorf("ErrorOf is %v", err)
			} else if err != nil && err.Verdict.Status != c.status {
				t.Errorf("the error's status is %d, want %d", err.Verdict.Status, c.status)
			}
		})
	}
}

func TestErrorReplyWhoseBodyStallsIsNotWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := serve(t, then(respond(529, overloaded[:20]), flush, hang))
		began := time.Now()
		resp := ask(t, u.through(transport.New(&holdfast.Policy{Attempts: 1}, nil)), u.URL)
		if took := time.Since(began); took != 10*time.Second || resp.StatusCode != 529 {
			t.Errorf("got %d after %v", resp.StatusCode, took)
		}
		if got, err := failedRead(resp); got != overloaded[:20] || !errors.Is(err, holdfast.ErrCut) {
			t.Errorf("got %q, ended with %v", got, err)
		}
	})
}

func TestHeadersOfAnAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := serve(t, respond(429, limited, "retry-after: 2"), respond(200, message, "request-id: req_9"))
		policy := holdfast.Policy{ServerWait: holdfast.Exact}
		resp := ask(t, u.through(transport.New(&policy, nil)), u.URL)
		for name, want := range map[string]string{
			"Holdfast-Source": "live", "Holdfast-Attempts": "2", "Holdfast-Wait-Ms": "2000",
			"Holdfast-Reason": "", "Holdfast-Stacked": "", "Request-Id": "req_9", "X-Should-Retry": "",
		} {
			if got := resp.Header.Get(name); got != want {
				t.Errorf("%s is %q, want %q", name, got, want)
			}
		}
	})
}

func TestHeadersOfAHoldfastUpstreamStay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := serve(t, respond(200, message, "holdfast-source: saved", "holdfast-attempts: 3", "holdfast-wait-ms: 7"))
		resp := ask(t, u.through(transport.New(nil, nil)), u.URL)
		if got := resp.Header["Holdfast-Source"]; len(got) != 1 || got[0] != "saved" {
			t.Errorf("holdfast-source is %q", got)
		}
		if got := resp.Header.Get("Holdfast-Attempts"); got != "3" {
			t.Errorf("holdfast-attempts is %q", got)
		}
	})
}

// refusal is the body of a reply that we made up.
type refusal struct {
	Type  string
	Error struct{ Type, Message string }
}

func refusalOf(t *testing.T, resp *http.Response) (r refusal) {
	t.Helper()
	if err := json.Unmarshal([]byte(text(t, resp)), &r); err != nil {
		t.Error(err)
	}
	return r
}

func TestRefusalsOfOurOwnAreReplies(t *testing.T) {
	for _, c := range []struct {
		name     string
		path     string
		policy   func(u *upstream) *holdfast.Policy
		script   http.HandlerFunc
		requests int
		status   int
		typ      string
		after    string
		reason   string
		is       error
		says     string
	}{
		{
			name: "an open circuit", path: "/v1/messages", policy: func(*upstream) *holdfast.Policy { return &holdfast.Policy{Breaker: opened()} },
			script: good, status: 503, typ: "overloaded_error", after: "20", reason: "open", is: holdfast.ErrOpen, says: "Holdfast did not send this request: the circuit is open",
		},
		{
			name: "an open circuit in the other dialect", path: "/v1/chat/completions", policy: func(*upstream) *holdfast.Policy { return &holdfast.Policy{Breaker: opened()} },
			script: good, status: 503, typ: "server_is_overloaded", after: "20", reason: "open", is: holdfast.ErrOpen, says: "Holdfast",
		},
		{
			name: "no pace", path: "/v1/messages", policy: func(*upstream) *holdfast.Policy { return &holdfast.Policy{Pace: emptied()} },
			script: good, status: 429, typ: "rate_limit_error", after: "60", reason: "pace", is: holdfast.ErrPace, says: "Holdfast did not send this request: the pace",
		},
		{
			name: "B95 a connection that is never made", path: "/v1/messages", policy: func(u *upstream) *holdfast.Policy {
				u.net.Refuse("api.test:80")
				return &holdfast.Policy{Attempts: 2}
			},
			script: good, status: 502, typ: "api_error", reason: "attempts", is: holdfast.ErrAttempts, says: "Holdfast got no answer from the upstream: all attempts used after 2 attempts",
		},
		{
			name: "an upstream that hangs", path: "/v1/messages", policy: func(*upstream) *holdfast.Policy {
				return &holdfast.Policy{Attempts: 2, AttemptTimeout: time.Second}
			},
			script: hang, requests: 2, status: 504, typ: "timeout_error", reason: "attempts", is: holdfast.ErrAttempts, says: "all attempts used",
		},
		{
			name: "a deadline of the policy", path: "/v1/messages", policy: func(*upstream) *holdfast.Policy { return &holdfast.Policy{Deadline: time.Second} },
			script: hang, requests: 1, status: 504, typ: "timeout_error", reason: "deadline", is: holdfast.ErrDeadline, says: "deadline",
		},
		{
			name: "a page instead of an answer", path: "/v1/messages", policy: func(*upstream) *holdfast.Policy { return &holdfast.Policy{Attempts: 2} },
			script: respond(200, "<html>hello</html>", "content-type: text/html"), requests: 2, status: 502, typ: "api_error", reason: "attempts", is: holdfast.ErrEmpty, says: "all attempts used",
		},
	} {
		bubble(t, c.name, func(t *testing.T) {
			u := serve(t, c.script)
			policy := c.policy(u)
			policy.Dice = half
			tr := transport.New(policy, nil)
			resp, err := u.through(tr).Post(u.URL+c.path, "application/json", strings.NewReader(prompt))
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			said := refusalOf(t, resp)
			if resp.StatusCode != c.status || said.Error.Type != c.typ || !strings.Contains(said.Error.Message, c.says) {
				t.Errorf("got %d %+v, want %d %s %q", resp.StatusCode, said, c.status, c.typ, c.says)
			}
			for name, want := range map[string]string{"Retry-After": c.after, "Holdfast-Reason": c.reason, "X-Should-Retry": "false", "Content-Type": "application/json"} {
				if got := resp.Header.Get(name); got != want {
					t.Errorf("%s is %q, want %q", name, got, want)
				}
			}
			if got := transport.ErrorOf(resp); !errors.Is(got, c.is) {
				t.Errorf("ErrorOf is %v, want %v", got, c.is)
			}
			u.expect(t, c.requests)

			tr.ReturnErrors = true
			resp, err = u.through(tr).Post(u.URL+c.path, "application/json", strings.NewReader(prompt))
			var own *holdfast.Error
			if !errors.As(err, &own) || resp != nil {
				t.Errorf("with ReturnErrors it returned %v and %v", resp, err)
			}
		})
	}
}

func opened() *holdfast.Breaker {
	b := holdfast.NewBreaker(holdfast.BreakerSettings{Failures: 1})
	ticket, _, _ := b.Allow(time.Now())
	b.Settle(time.Now(), ticket, holdfast.Failure)
	return b
}

// emptied has a minute to wait for one request, and nobody may queue.
func emptied() *holdfast.Pace {
	p := holdfast.NewPace(holdfast.Limits{RequestsPerMinute: 1, Queue: -1})
	p.Allow(time.Now(), holdfast.Tokens{})
	return p
}

func TestCallerWhoLeavesGetsHisOwnError(t *testing.T) {
	for _, c := range []struct {
		name     string
		script   http.HandlerFunc
		requests int
	}{
		{"B137 during an attempt", hang, 1},
		{"B39 B40 during a wait", respond(429, limited, "retry-after: 30"), 1},
	} {
		bubble(t, c.name, func(t *testing.T) {
			u := serve(t, c.script)
			policy, verdicts := watched(1)
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(100*time.Millisecond, cancel)
			began := time.Now()
			resp, err := u.through(transport.New(policy, nil)).Do(request(t, ctx, "POST", u.URL+"/v1/messages", strings.NewReader(prompt)))
			if resp != nil || !errors.Is(err, context.Canceled) {
				t.Errorf("got %v and %v", resp, err)
			}
			if took := time.Since(began); took != 100*time.Millisecond {
				t.Errorf("it took %v", took)
			}
			u.expect(t, c.requests)
			if state := policy.Breaker.State(); state != holdfast.Closed {
				t.Errorf("B117 the breaker is %v after %v", state, verdicts())
			}
		})
		bubble(t, c.name+" by deadline", func(t *testing.T) {
			u := serve(t, c.script)
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Second)
			defer cancel()
			policy := holdfast.Policy{Deadline: -1}
			if c.name[:3] == "B39" {
				policy.Attempts = 100
			}
			_, err := transport.New(&policy, u.client.Transport).RoundTrip(request(t, ctx, "POST", u.URL+"/v1/messages", strings.NewReader(prompt)))
			if c.name[:4] == "B137" && !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestStackedRetriesAreSeen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := serve(t, good)
		var told []int
		tr := &transport.Transport{Stacked: func(_ *http.Request, n int) { told = append(told, n) }}
		for _, count := range []string{"0", "2", "", "x"} {
			req := request(t, t.Context(), "POST", u.URL+"/v1/messages", strings.NewReader(prompt))
			req.Header.Set("X-Stainless-Retry-Count", count)
			resp, err := u.through(tr).Do(req)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			want := ""
			if count == "2" {
				want = "2"
			}
			if got := resp.Header.Get("Holdfast-Stacked"); got != want {
				t.Errorf("with the count %q holdfast-stacked is %q", count, got)
			}
		}
		if len(told) != 1 || told[0] != 2 {
			t.Errorf("the hook was told %v", told)
		}
	})
}

func TestPatienceOfTheSDKBoundsTheCall(t *testing.T) {
	for _, c := range []struct {
		value    string
		deadline time.Duration
		want     time.Duration
	}{
		{"5", 0, 5 * time.Second},
		{"2.5", time.Minute, 2500 * time.Millisecond},
		{"60", 3 * time.Second, 3 * time.Second},
		{"900", 0, 10 * time.Minute},
		{"7", -1, 7 * time.Second},
		{"-1", 3 * time.Second, 3 * time.Second},
		{"NaN", 3 * time.Second, 3 * time.Second},
		{"1e300", 3 * time.Second, 3 * time.Second},
		{"soon", 3 * time.Second, 3 * time.Second},
	} {
		bubble(t, c.value, func(t *testing.T) {
			u := serve(t, hang)
			req := request(t, t.Context(), "POST", u.URL+"/v1/messages", strings.NewReader(prompt))
			req.Header.Set("X-Stainless-Timeout", c.value)
			began := time.Now()
			resp, err := u.through(transport.New(&holdfast.Policy{Deadline: c.deadline}, nil)).Do(req)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			if took := time.Since(began); took != c.want {
				t.Errorf("took %v, want %v", took, c.want)
			}
		})
	}
}

func TestPaceLearnsFromUsage(t *testing.T) {
	for _, c := range []struct {
		name   string
		path   string
		script http.HandlerFunc
		body   string
		used   holdfast.Tokens
	}{
		{"of an answer", "/v1/messages", good, prompt, holdfast.Tokens{Input: 10, Output: 5}},
		{"B174 of a stream, where the last count is the count", "/v1/messages", stream(complete), prompt, holdfast.Tokens{Input: 10, Output: 16}},
	} {
		bubble(t, c.name, func(t *testing.T) {
			u := serve(t, c.script)
			pace := holdfast.NewPace(holdfast.Limits{InputTokensPerMinute: 1000, OutputTokensPerMinute: 1000})
			resp, err := u.through(transport.New(&holdfast.Policy{Pace: pace}, nil)).Post(u.URL+c.path, "application/json", strings.NewReader(c.body))
			if err != nil {
				t.Fatal(err)
			}
			text(t, resp)
			resp.Body.Close()
			left := holdfast.Tokens{Input: 1000 - c.used.Input, Output: 1000 - c.used.Output}
			more := left
			more.Input++
			if pace.Allow(time.Now(), more) {
				t.Error("more input was left than was not used")
			}
			more = left
			more.Output++
			if pace.Allow(time.Now(), more) {
				t.Error("more output was left than was not used")
			}
			if !pace.Allow(time.Now(), left) {
				t.Error("less was left than was not used")
			}
		})
	}
}

func TestPaceOfOpenAITakesTheMaximum(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := serve(t, hang)
		pace := holdfast.NewPace(holdfast.Limits{OutputTokensPerMinute: 1000})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			_, _ = u.through(transport.New(&holdfast.Policy{Pace: pace}, nil)).Do(request(t, ctx, "POST", u.URL+"/v1/chat/completions", strings.NewReader(`{"max_completion_tokens":600}`)))
		}()
		synctest.Wait()
		if pace.Allow(time.Now(), holdfast.Tokens{Output: 401}) || !pace.Allow(time.Now(), holdfast.Tokens{Output: 400}) {
			t.Error("the call did not take 600")
		}
		cancel()
		<-done
	})
}

// What a call in flight holds of the limit of output: at Anthropic what answers usually have, whatever max_tokens says; at
// OpenAI the maximum, also after an answer that was shorter.
func TestPaceExpectsOutput(t *testing.T) {
	const chatAnswer = `{"choices":[{"finish_reason":"stop","message":{"role":"assistant","content":"hi"}}],"usage":{"prompt_tokens":10,"completion_tokens":4}}`
	const claude, maximum = `{"max_tokens":64000,"messages":[]}`, `{"max_tokens":600}`
	for _, c := range []struct {
		name, path, body string
		answer           http.HandlerFunc
		first, second    int // held while the first and the second call are under way
		after            int // used up by the first answer
	}{
		{"an answer", "/v1/messages", claude, good, 256, 5, 5},
		{"a stream", "/v1/messages", claude, stream(complete), 256, 16, 16},
		{"chat without a maximum", "/v1/chat/completions", `{}`, respond(200, chatAnswer), 256, 4, 4},
		{"chat with one", "/v1/chat/completions", maximum, respond(200, chatAnswer), 600, 600, 600},
		{"embeddings", "/v1/embeddings", `{}`, respond(200, `{"data":[{"embedding":[1]}],"usage":{"prompt_tokens":3,"total_tokens":3}}`), 0, 0, 0},
		{"no model asked", "/v1/files", `{}`, respond(200, `{}`), 0, 0, 0},
	} {
		bubble(t, c.name, func(t *testing.T) {
			pace := holdfast.NewPace(holdfast.Limits{OutputTokensPerMinute: 100_000})
			left := func() int { return pace.Status(time.Now()).Output.Left }
			var held []int
			seen := func(w http.ResponseWriter, r *http.Request) {
				held = append(held, left())
				c.answer(w, r)
			}
			u := serve(t, seen, seen)
			for i, want := range []int{c.first, c.second} {
				before := left()
				resp, err := u.through(transport.New(&holdfast.Policy{Pace: pace}, nil)).Post(u.URL+c.path, "application/json", strings.NewReader(c.body))
				if err != nil {
					t.Fatal(err)
				}
				text(t, resp)
				resp.Body.Close()
				if got := before - held[i]; got != want {
					t.Errorf("call %d held %d, want %d", i, got, want)
				}
				if got := before - left(); got != c.after {
					t.Errorf("call %d used up %d, want %d", i, got, c.after)
				}
			}
		})
	}
}
