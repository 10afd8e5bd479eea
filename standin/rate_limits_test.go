package standin_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anthropics/anthropic-sdk-go/v2/option"
	"github.com/google/go-cmp/cmp"
	"github.com/openai/openai-go/v3"
	openaioption "github.com/openai/openai-go/v3/option"

	"holdfast/standin"
)

// TestSDKsComeThroughExactlyAfterTheWaitThatTheyAreTold empties a bucket of six requests a
// minute, which gives one back every ten seconds.
func TestSDKsComeThroughExactlyAfterTheWaitThatTheyAreTold(t *testing.T) {
	for _, dialect := range []string{"anthropic", "openai"} {
		t.Run(dialect, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, c, url := serve(t, standin.Plan{Limits: &standin.Limits{RequestsPerMinute: 6}})
				claude := sdkClient(c, url)
				gpt := openai.NewClient(openaioption.WithBaseURL(url+"/v1"), openaioption.WithHTTPClient(c), openaioption.WithAPIKey("good"))
				call := func(ctx context.Context, prompt string) (err error) {
					if dialect == "anthropic" {
						_, err = claude.Messages.New(ctx, params(prompt))
						return err
					}
					_, err = gpt.Chat.Completions.New(ctx, openai.ChatCompletionNewParams{
						Model: "gpt-5", Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage(prompt)},
					})
					return err
				}
				began := time.Now()
				for i := range 8 {
					if err := call(t.Context(), fmt.Sprint("question ", i)); err != nil {
						t.Fatal(err)
					}
				}
				if took := time.Since(began); took != 20*time.Second {
					t.Errorf("eight calls took %v, want two waits of ten seconds", took)
				}
				standin.Expect(t, s.Journal(), standin.Requests(10), standin.WaitsHonoured(0), standin.PaidOnce(), standin.NothingOpen(),
					standin.LimitUsed(s.LimitsUsed(), 0.99))
				for i, e := range s.Journal() {
					throttled := i == 6 || i == 8
					if (e.Fault == standin.Throttled) != throttled || throttled && (e.Status != 429 || e.Wait != 10*time.Second) {
						t.Errorf("exchange %+v", e)
					}
				}
				if err := s.Journal().Check(standin.LimitUsed(s.LimitsUsed(), 1.01)); err == nil {
					t.Error("more than all of the limit was used")
				}
				if use := s.LimitsUsed(); len(use) != 1 || use[0].Admitted != 8 || use[0].Denied != 2 {
					t.Errorf("%+v", use)
				}
			})
		})
	}
}

// limitHeaders are the names of the rate-limit headers of a reply.
func limitHeaders(h http.Header) (names []string) {
	for name := range h {
		if strings.Contains(strings.ToLower(name), "ratelimit") {
			names = append(names, strings.ToLower(name))
		}
	}
	slices.Sort(names)
	return names
}

// setOf is the set of headers of some buckets.
func setOf(format string, buckets ...string) (names []string) {
	for _, bucket := range buckets {
		for _, what := range []string{"limit", "remaining", "reset"} {
			names = append(names, strings.NewReplacer("BUCKET", bucket, "WHAT", what).Replace(format))
		}
	}
	slices.Sort(names)
	return names
}

func TestEveryReplyHasTheHeadersOfItsBuckets(t *testing.T) {
	four := setOf("anthropic-ratelimit-BUCKET-WHAT", "requests", "tokens", "input-tokens", "output-tokens")
	two := setOf("x-ratelimit-WHAT-BUCKET", "requests", "tokens")
	want := map[string][]string{
		"messages": four, "messages stream": four, "chat_completions": two, "chat_completions stream": two, "responses": two, "responses stream": two,
		"count_tokens": setOf("anthropic-ratelimit-BUCKET-WHAT", "requests"),
	}
	for _, step := range []standin.Step{
		{}, {Gzip: true}, {Kind: standin.HTTP, Status: 529}, {Kind: standin.HTTP, Status: 500, Form: standin.FormHTML}, {Kind: standin.SpendCap}, {Kind: standin.RampLimit},
		{Kind: standin.Empty}, {Kind: standin.SlowHeaders}, {Kind: standin.Error}, {Kind: standin.Refusal}, {Kind: standin.Cut, After: 1}, {Kind: standin.Malformed},
	} {
		synctest.Test(t, func(t *testing.T) {
			plan := playing(step)
			plan.Limits = &standin.Limits{Tier: standin.TierStart}
			_, c, url := serve(t, plan)
			all := newCaller(t, c, url)
			for _, o := range operations {
				got := all.ask(o, played, "yes")
				if diff := cmp.Diff(want[o.name], limitHeaders(got.header)); diff != "" {
					t.Errorf("%s, %s (-want +got):\n%s", stepName(step), o.name, diff)
				}
			}
		})
	}
	synctest.Test(t, func(t *testing.T) { // the denial itself
		_, c, url := serve(t, standin.Plan{Limits: &standin.Limits{RequestsPerMinute: 1, InputTokensPerMinute: 9000, OutputTokensPerMinute: 9000, CountTokensPerMinute: 1}})
		all := caller{t: t, client: c, url: url}
		for _, o := range operations {
			if want[o.name] == nil {
				continue
			}
			first, second := all.ask(o), all.ask(o)
			if got := limitHeaders(second.header); second.status != 429 || !slices.Equal(got, want[o.name]) || first.status == 200 && second.header.Get("retry-after") != "60" {
				t.Errorf("%s: %+v", o.name, second)
			}
		}
		for _, o := range []operation{operations[3], operations[4], operations[9], operations[11], operations[12]} { // these have no bucket
			for range 3 {
				if got := all.ask(o); got.status != 200 {
					t.Errorf("%s: %+v", o.name, got)
				}
			}
		}
	})
}

// TestOutputIsChargedAsItIsSaid: a long answer leaves a debt that is paid with time.
func TestOutputIsChargedAsItIsSaid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, c, url := serve(t, standin.Plan{Reply: strings.Repeat("word ", 120), Limits: &standin.Limits{OutputTokensPerMinute: 60}})
		ask := func() answered {
			return post(t, c, url+anthropicPath, strings.Replace(streamQuestion, `"max_tokens":50`, `"max_tokens":5000`, 1))
		}
		first := ask()
		if got := first.header.Get("anthropic-ratelimit-output-tokens-remaining"); got != "60" {
			t.Errorf("before the answer %s remain", got)
		}
		_, output := s.Billed()
		got := ask()
		debt := time.Duration(output-60+1) * time.Second // one token every second, and one has to be there
		if got.status != 429 || got.header.Get("retry-after") != fmt.Sprint(int(debt.Seconds())) {
			t.Fatalf("after %d tokens: %+v", output, got)
		}
		time.Sleep(debt - time.Millisecond)
		if got := ask(); got.status != 429 {
			t.Errorf("a millisecond early: %+v", got)
		}
		time.Sleep(time.Millisecond)
		if got := ask(); got.status != 200 {
			t.Errorf("in time: %+v", got)
		}
	})
}

func TestConcurrencyIsCountedWhileRepliesAreOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, c, url := serve(t, standin.Plan{Limits: &standin.Limits{Concurrent: 3}, Steps: []standin.Step{{Gap: time.Second, Times: -1}}})
		var running sync.WaitGroup
		var mu sync.Mutex
		statuses := map[int]int{}
		for range 5 {
			running.Go(func() {
				got := post(t, c, url+anthropicPath, streamQuestion)
				mu.Lock()
				defer mu.Unlock()
				statuses[got.status]++
				if got.status == 429 && got.header.Get("retry-after") != "" {
					t.Error("nobody knows how long the others last")
				}
			})
		}
		running.Wait()
		synctest.Wait()
		if diff := cmp.Diff(map[int]int{200: 3, 429: 2}, statuses); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if got := post(t, c, url+anthropicPath, streamQuestion); got.status != 200 {
			t.Errorf("afterwards: %+v", got)
		}
		standin.Expect(t, s.Journal(), standin.AtMost(5), standin.NothingOpen())
	})
}

// TestFaultsGiveTheirPlaceBack: however a reply ends, its place among the concurrent ones is free again.
func TestFaultsGiveTheirPlaceBack(t *testing.T) {
	t.Parallel()
	for _, step := range everyStep() {
		synctest.Test(t, func(t *testing.T) {
			plan := playing(step)
			plan.Limits = &standin.Limits{Concurrent: 1}
			_, c, url := serve(t, plan)
			c.Timeout = time.Second
			all := caller{t: t, client: c, url: url}
			all.ask(operations[1], played, "yes")
			synctest.Wait()
			if got := all.ask(operations[0]); got.status != 200 {
				t.Errorf("%s: then %+v", stepName(step), got)
			}
		})
	}
}

func TestTheTimelineChangesLimitsInTheMiddle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, c, url := serve(t, standin.Plan{Limits: &standin.Limits{Tier: standin.TierScale}, Timeline: []standin.Incident{
			{From: time.Minute, To: 2 * time.Minute, Limits: &standin.Limits{RequestsPerMinute: 2}},
		}})
		limit := func() string {
			return post(t, c, url+anthropicPath, question).header.Get("anthropic-ratelimit-requests-limit")
		}
		began := time.Now()
		if got := limit(); got != "10000" {
			t.Errorf("before: %s", got)
		}
		time.Sleep(time.Until(began.Add(time.Minute)))
		var statuses []int
		for range 3 {
			statuses = append(statuses, post(t, c, url+anthropicPath, question).status)
		}
		if got := limit(); got != "2" || !slices.Equal(statuses, []int{200, 200, 429}) {
			t.Errorf("during: %s, %v", got, statuses)
		}
		time.Sleep(time.Until(began.Add(2 * time.Minute)))
		if got := limit(); got != "10000" {
			t.Errorf("after: %s", got)
		}
	})
}

func TestGrowthIsThrottledInTheWordsOfTheAPI(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, c, url := serve(t, standin.Plan{Limits: &standin.Limits{RequestsPerMinute: 1000, Growth: 1.5}})
		client := sdkClient(c, url, option.WithMaxRetries(0))
		for i := range 100 { // a tenth of the limit is free
			if _, err := client.Messages.New(t.Context(), params(fmt.Sprint(i))); err != nil {
				t.Fatalf("%d: %v", i, err)
			}
		}
		_, err := client.Messages.New(t.Context(), params("one more"))
		if e := sdkError(t, err); string(e.ErrorCode()) != "ramp_limit_exceeded" || e.StatusCode != 429 || s.Journal()[100].Fault != standin.Throttled {
			t.Errorf("%v", e)
		}
	})
}
