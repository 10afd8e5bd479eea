package standin_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"holdfast/standin"
)

var rehearsalStart = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func rehearse(t *testing.T, plan standin.Plan) *standin.Rehearsal {
	t.Helper()
	r, err := standin.Rehearse(plan, rehearsalStart)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return r
}

func requestOf(t *testing.T, body string, header ...string) *http.Request {
	t.Helper()
	req, err := http.NewRequest("POST", "http://api.test"+anthropicPath, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("x-api-key", "good")
	req.Header.Set("anthropic-version", "2023-06-01")
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	return req
}

// since is a time of the rehearsal.
func since(d time.Duration) time.Time { return rehearsalStart.Add(d) }

// finish plays a visit to its end, and returns when that was.
func finish(v *standin.Visit) (end time.Time) {
	for {
		at, ok := v.Next()
		if !ok {
			return end
		}
		end = at
		v.Continue()
	}
}

func TestRehearsedLatencyPassesInNoTime(t *testing.T) {
	r := rehearse(t, standin.Plan{Reply: "one two three", Latency: standin.Latency{
		FirstToken: standin.Spread{Min: time.Hour, Max: time.Hour}, PerToken: standin.Spread{Min: time.Minute, Max: time.Minute},
	}})
	v := r.Arrive(since(time.Second), requestOf(t, question))
	if v.Outcome() != "" || v.Status() != 0 {
		t.Errorf("outcome %q, status %d before its time", v.Outcome(), v.Status())
	}
	if end := finish(v); !end.Equal(since(time.Second + time.Hour + 2*time.Minute)) {
		t.Errorf("ended at %v", end)
	}
	if v.Outcome() != standin.Whole || v.Status() != 200 || !strings.Contains(string(v.Body()), `"one two three"`) {
		t.Errorf("outcome %q, status %d, body %s", v.Outcome(), v.Status(), v.Body())
	}
	e := r.Journal()[0]
	if !e.Delivered() || e.Departed.Sub(e.Arrived) != time.Hour+2*time.Minute || e.Input != 3 || e.Output != 3 {
		t.Errorf("journal %+v", e)
	}
}

func TestRehearsedClientLeaves(t *testing.T) {
	r := rehearse(t, standin.Plan{Steps: []standin.Step{{Kind: standin.Timeout}, {Kind: standin.Stall, Ping: time.Second}}})
	v := r.Arrive(since(0), requestOf(t, question))
	if at, ok := v.Next(); ok {
		t.Errorf("it goes on at %v", at)
	}
	v.Continue() // nothing
	v.Leave(since(time.Minute))
	v.Leave(since(time.Hour)) // nothing
	w := r.Arrive(since(time.Minute), requestOf(t, streamQuestion))
	for range 5 {
		w.Continue()
	}
	w.Leave(since(time.Minute + 5500*time.Millisecond))
	if got := strings.Count(string(w.Body()), "event: ping"); v.Outcome() != standin.Left || w.Outcome() != standin.Left || got != 5+1 {
		t.Errorf("outcomes %q, %q; %d pings, want one of the preamble and five", v.Outcome(), w.Outcome(), got)
	}
	j := r.Journal()
	for i, took := range []time.Duration{time.Minute, 5500 * time.Millisecond} {
		if e := j[i]; e.ClosedBy != standin.Client || e.Departed.Sub(e.Arrived) != took {
			t.Errorf("journal %+v, want a client that left after %v", e, took)
		}
	}
	if j[0].Output == 0 {
		t.Error("a timeout is billed")
	}
}

func TestRehearsedConnectionsAreRefusedAndHang(t *testing.T) {
	r := rehearse(t, standin.Plan{Timeline: []standin.Incident{
		{To: time.Minute, Step: standin.Step{Kind: standin.Refused}},
		{From: time.Minute, To: 3 * time.Minute, Step: standin.Step{Kind: standin.Hang}},
		{From: time.Hour, Step: standin.Step{Kind: standin.Hang}},
	}})
	if v := r.Arrive(since(59*time.Second), requestOf(t, question)); v.Outcome() != standin.Unreachable {
		t.Errorf("outcome %q", v.Outcome())
	}
	v := r.Arrive(since(time.Minute), requestOf(t, question))
	w := r.Arrive(since(2*time.Minute), requestOf(t, question))
	w.Leave(since(150 * time.Second))
	if end := finish(v); v.Outcome() != standin.Broken || !end.Equal(since(3*time.Minute)) || v.Status() != 0 {
		t.Errorf("outcome %q, status %d at %v", v.Outcome(), v.Status(), end)
	}
	if w.Outcome() != standin.Left || w.Status() != 0 {
		t.Errorf("outcome %q, status %d", w.Outcome(), w.Status())
	}
	if v := r.Arrive(since(3*time.Minute), requestOf(t, question)); v.Status() != 200 {
		t.Errorf("status %d behind the incidents", v.Status())
	}
	if _, ok := r.Arrive(since(time.Hour), requestOf(t, question)).Next(); ok {
		t.Error("it hangs for ever, and yet goes on")
	}
	if got := len(r.Journal()); got != 1 {
		t.Errorf("%d exchanges, want the one that got through", got)
	}
}

func TestRehearsalRefusesAPlanWithMistakes(t *testing.T) {
	_, err := standin.Rehearse(standin.Plan{Steps: []standin.Step{{Kind: "typo"}}}, rehearsalStart)
	if err == nil || !strings.Contains(err.Error(), "steps.0.kind") {
		t.Errorf("error %v", err)
	}
}
