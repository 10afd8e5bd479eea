package standin_test

import (
	"fmt"
	"io"
	"math"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"holdfast/standin"
)

// sight is what a client sees of one reply.
type sight struct {
	Status int
	Header http.Header
	Body   string
	Whole  bool
	Took   time.Duration
}

// patience is how long the clients of both wait for a reply.
const patience = 30*time.Second + 7*time.Millisecond

// asked is the i-th request: ten jobs in turn, every other time as a stream.
func asked(t *testing.T, i int) *http.Request {
	t.Helper()
	model := []string{"claude-opus-4-1", "claude-sonnet-5-5", "claude-haiku-4-5"}[i%3]
	text := []string{"CUT-EARLY", "ERROR-EARLY", "CUT-LATE", "ENDLESS", "NO-STOP"}[i%5]
	return requestOf(t, fmt.Sprintf(`{"model":%q,"max_tokens":50,"stream":%v,"messages":[{"role":"user","content":"%s please"}]}`, model, i%2 == 1, text),
		"x-custom-id", fmt.Sprintf("row-%d", i%10))
}

// playLive sends the requests to a real server, on the clock of the bubble.
func playLive(t *testing.T, plan standin.Plan, n int, gap time.Duration) ([]sight, standin.Report, standin.Journal) {
	t.Helper()
	s, c, url := serve(t, plan)
	c.Timeout = patience
	seen := make([]sight, n)
	var all sync.WaitGroup
	for i := range n {
		req := asked(t, i)
		req.URL.Host = strings.TrimPrefix(url, "http://")
		all.Go(func() {
			began := time.Now()
			defer func() { seen[i].Took = time.Since(began) }()
			res, err := c.Do(req)
			if err != nil {
				return
			}
			defer res.Body.Close()
			body, err := io.ReadAll(res.Body)
			seen[i] = sight{Status: res.StatusCode, Header: res.Header, Body: string(body), Whole: err == nil}
		})
		time.Sleep(gap)
	}
	all.Wait()
	synctest.Wait()
	return seen, s.Report(), s.Journal()
}

// playRehearsed sends the same requests at the same times to a rehearsal.
func playRehearsed(t *testing.T, plan standin.Plan, start time.Time, n int, gap time.Duration) ([]sight, standin.Report, standin.Journal) {
	t.Helper()
	r, err := standin.Rehearse(plan, start)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	visits := make([]*standin.Visit, n)
	began, seen := make([]time.Time, n), make([]sight, n)
	for arrived := 0; ; {
		// The earliest of what can happen: an arrival, a reply that goes on, a client that has waited long enough.
		next, at, leaves := -1, time.Unix(math.MaxInt32, 0), false
		for i, v := range visits[:arrived] {
			if v.Outcome() != "" {
				continue
			}
			if when, ok := v.Next(); ok && when.Before(at) {
				next, at, leaves = i, when, false
			}
			if when := began[i].Add(patience); when.Before(at) {
				next, at, leaves = i, when, true
			}
		}
		if when := start.Add(time.Duration(arrived) * gap); arrived < n && !when.After(at) {
			began[arrived], next, at = when, arrived, when
			visits[arrived] = r.Arrive(when, asked(t, arrived))
			arrived++
		} else if next < 0 {
			break
		} else if v := visits[next]; leaves {
			v.Leave(at)
		} else {
			v.Continue()
		}
		if v := visits[next]; v.Outcome() != "" {
			seen[next] = sight{v.Status(), v.Header(), string(v.Body()), v.Outcome() == standin.Whole, at.Sub(began[next])}
		}
	}
	return seen, r.Report(), r.Journal()
}

// What a rehearsal gives is what a server gives: the same step for each attempt of each job, the same statuses, headers,
// bodies and times, the same bill, the same judgement.
func TestRehearsalIsWhatTheServerDoes(t *testing.T) {
	t.Parallel()
	plans := map[string]standin.Plan{"every fault": {Reply: "one two three", Steps: allFaults()}}
	files, err := filepath.Glob("testdata/plans/*.yaml")
	if err != nil || len(files) < 8 {
		t.Fatalf("%d example plans, error %v", len(files), err)
	}
	for _, file := range files {
		plan, err := standin.LoadPlan(file)
		if err != nil {
			t.Fatal(err)
		}
		plan.Timeline = slices.DeleteFunc(plan.Timeline, func(n standin.Incident) bool { return n.Step.Kind == standin.Refused }) // here is no port to close
		plans[filepath.Base(file)] = plan
	}
	plans["tight limits"] = standin.Plan{
		Seed: 5, Reply: strings.Repeat("word ", 40),
		Limits:  &standin.Limits{RequestsPerMinute: 40, OutputTokensPerMinute: 600, Concurrent: 5, Growth: 1.5},
		Latency: standin.Latency{FirstToken: standin.Spread{Median: 900 * time.Millisecond, P99: 9 * time.Second}, PerToken: standin.Spread{Min: 3 * time.Millisecond, Max: 31 * time.Millisecond}},
		Timeline: []standin.Incident{
			{From: 20 * time.Second, To: 40 * time.Second, Limits: &standin.Limits{RequestsPerMinute: 4}},
			{From: 40 * time.Second, Share: standin.Ramp{From: 0.5, To: 0.5}, Step: standin.Step{Kind: standin.Timeout}},
		},
	}
	for name, plan := range plans {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const n = 100
				gap, end := 911*time.Millisecond, time.Duration(0)
				for _, incident := range plan.Timeline {
					end = max(end, incident.To)
				}
				gap = max(gap, (end/n).Truncate(time.Second)+gap)
				start := time.Now()
				want, wantReport, wantJournal := playLive(t, plan, n, gap)
				got, gotReport, gotJournal := playRehearsed(t, plan, start, n, gap)
				for i := range n {
					lone(&want[i], &wantJournal[i])
					lone(&got[i], &gotJournal[i])
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("seen (-live +rehearsed):\n%s", diff)
				}
				if diff := cmp.Diff(wantJournal, gotJournal); diff != "" {
					t.Errorf("journal (-live +rehearsed):\n%s", diff)
				}
				wantReport.Limits, gotReport.Limits = nil, nil // they count up to now, which is not the same for both
				if diff := cmp.Diff(wantReport.Lines[:len(wantReport.Lines)-1], gotReport.Lines[:len(gotReport.Lines)-1]); diff != "" {
					t.Errorf("report (-live +rehearsed):\n%s", diff)
				}
			})
		})
	}
}

// lone leaves out what net/http adds by itself. The lines of slow headers are one in a rehearsal, sent when the last would
// have been.
func lone(s *sight, e *standin.Exchange) {
	for _, name := range []string{"Content-Length", "Connection"} {
		s.Header.Del(name)
	}
	if e.Fault == standin.SlowHeaders {
		s.Header.Del("Date")
		e.HeadersAt = time.Time{}
	}
}

// allFaults has each fault of a request four times, so that a JSON answer and a stream meet it.
func allFaults() (steps []standin.Step) {
	for _, f := range standin.Faults() {
		switch f.Kind {
		case standin.Refused, standin.Hang: // of connections
			continue
		}
		step := standin.Step{Kind: f.Kind, Times: 4}
		if f.Kind == standin.HTTP {
			step.Status, step.RetryAfter = 429, "now+3s"
		}
		steps = append(steps, step)
	}
	return steps
}
