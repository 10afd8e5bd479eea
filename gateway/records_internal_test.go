package gateway

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"holdfast"
)

// tracedCall is the trace of a call to two targets whose attempts end with these verdicts, 100 ms each.
func tracedCall(t *testing.T, verdicts ...holdfast.Verdict) holdfast.Trace {
	t.Helper()
	policy := holdfast.Policy{Dice: func() float64 { return 0.5 }, Targets: []holdfast.Target{{Name: "first"}, {Name: "second"}}}
	now := time.Now()
	call := holdfast.NewCall(&policy)
	step := call.Begin(now, time.Time{}, holdfast.Tokens{})
	for _, v := range verdicts {
		if step.Action != holdfast.Send {
			t.Fatalf("the call is to %v before the verdict %v", step.Action, v.Kind)
		}
		now = now.Add(100 * time.Millisecond)
		if step = call.Settle(now, v, holdfast.Tokens{}); step.Action == holdfast.Wait {
			now = now.Add(step.Wait)
			step = call.Resume(now)
		}
	}
	if step.Action != holdfast.Stop {
		call.Leave(now.Add(50 * time.Millisecond))
	}
	return call.Trace()
}

func answered(id string) Record {
	return Record{ID: id, Outcome: Answered, Source: holdfast.Live, Status: 200}
}

func TestSuccessesDoNotPushOutFailures(t *testing.T) {
	t.Parallel()
	rs := newRecords(3)
	rs.add(Record{ID: "failed", Outcome: Failed})
	rs.add(Record{ID: "cut", Outcome: Cut})
	rs.add(Record{ID: "fallback", Outcome: Answered, Source: holdfast.Fallback})
	rs.add(Record{ID: "left", Outcome: Left})
	for i := range 100 {
		rs.add(answered(fmt.Sprint("good", i)))
		rs.add(Record{ID: fmt.Sprint("rejected", i), Outcome: Rejected})
	}
	for _, id := range []string{"failed", "cut", "fallback", "left", "good97", "good99", "rejected97"} {
		if rs.find(id) == nil {
			t.Errorf("%s is gone", id)
		}
	}
	for _, id := range []string{"good0", "good96", "rejected96", ""} {
		if rs.find(id) != nil {
			t.Errorf("%q is still there", id)
		}
	}
	if n := len(rs.byID); n != 2+2+3+3 {
		t.Errorf("%d are kept, want 10", n)
	}
}

func TestListIsNewestFirstAcrossShelves(t *testing.T) {
	t.Parallel()
	rs := newRecords(3)
	for i := range 8 {
		r := answered(fmt.Sprint(i))
		switch i % 3 {
		case 1:
			r.Outcome, r.Route = Failed, "a"
		case 2:
			r.Outcome, r.Client = Cut, "alice"
		}
		r.Target = fmt.Sprint("t", i%2)
		rs.add(r)
	}
	ids := func(f filter) string {
		var all []string
		if f.limit == 0 {
			f.limit = 100
		}
		for _, r := range rs.list(f) {
			all = append(all, r.ID)
		}
		return strings.Join(all, " ")
	}
	for _, c := range []struct {
		name, want string
		filter     filter
	}{
		{"all that are left", "7 6 5 4 3 0", filter{}},
		{"limit", "7 6", filter{limit: 2}},
		{"failed", "7 5 4", filter{failed: true}},
		{"outcome", "5", filter{outcome: Cut}},
		{"route", "7 4", filter{route: "a"}},
		{"client", "5", filter{client: "alice"}},
		{"target", "6 4 0", filter{target: "t0"}},
		{"source", "", filter{source: "saved"}},
		{"two conditions", "4", filter{failed: true, target: "t0"}},
	} {
		if got := ids(c.filter); got != c.want {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}

// A caller may give a trace ID twice: the later call is found, and goes by its own age.
func TestSameIDTwice(t *testing.T) {
	t.Parallel()
	rs := newRecords(2)
	rs.add(answered("x"))
	second := answered("x")
	second.Outcome = Failed
	rs.add(second)
	rs.add(answered("a"))
	rs.add(answered("b")) // the first x goes
	if r := rs.find("x"); r == nil || r.Outcome != Failed {
		t.Errorf("found %+v, want the second", r)
	}
}

func TestRecordsTakeTroubleFromTheTrace(t *testing.T) {
	t.Parallel()
	retried := answered("retried")
	retried.Trace = tracedCall(t, holdfast.Verdict{Kind: holdfast.Throttled}, holdfast.Verdict{})
	plain := answered("plain")
	plain.Trace = tracedCall(t, holdfast.Verdict{})
	for _, c := range []struct {
		record Record
		want   shelf
	}{
		{retried, troubled}, {plain, smooth}, {Record{Outcome: Refused}, smooth}, {Record{Outcome: Answered, Source: holdfast.Saved}, troubled},
		{Record{Outcome: Failed}, lost}, {Record{Outcome: Cut, Source: holdfast.Fallback}, lost}, {Record{Outcome: Rejected}, rejected}, {Record{Outcome: Left}, troubled},
	} {
		if got := shelfOf(&c.record); got != c.want {
			t.Errorf("%s %v stands on shelf %d, want %d", c.record.Outcome, c.record.Source, got, c.want)
		}
	}
}

func TestTextsAreBoundedAndWithoutKeys(t *testing.T) {
	t.Parallel()
	rs := newRecords(10)
	const canary = "sk-ant-CANARY0123456789"
	long := strings.Repeat("é", 5000)
	for _, id := range []string{"new", "remembered"} {
		got := rs.add(Record{ID: id, Model: canary, Path: "/v1/models/" + canary + "/x", Error: "refused: " + canary, Method: "X" + canary, StopReason: canary})
		for name, text := range map[string]string{"model": got.Model, "path": got.Path, "error": got.Error, "method": got.Method, "stop reason": got.StopReason} {
			if strings.Contains(text, "CANARY") || text == "" {
				t.Errorf("%s: %s is %q", id, name, text)
			}
		}
	}
	got := rs.add(Record{ID: "long", Model: long, Path: long, Error: long, StopReason: long, Method: long})
	for _, c := range []struct {
		name, text string
		most       int
	}{{"model", got.Model, 100}, {"path", got.Path, 200}, {"error", got.Error, 500}, {"stop reason", got.StopReason, 100}, {"method", got.Method, 100}} {
		if len(c.text) > c.most || len(c.text) < c.most/2 || strings.ContainsRune(c.text, '\uFFFD') {
			t.Errorf("%s has %d bytes: %q, want at most %d whole letters", c.name, len(c.text), c.text, c.most)
		}
	}
	usual := rs.add(Record{ID: "usual", Model: "claude-sonnet-5-5", Path: "/v1/messages/count_tokens"})
	if usual.Model != "claude-sonnet-5-5" || usual.Path != "/v1/messages/count_tokens" {
		t.Errorf("usual texts are changed: %q %q", usual.Model, usual.Path)
	}
}

func TestInventedPathsDoNotFillTheMemory(t *testing.T) {
	t.Parallel()
	rs := newRecords(10)
	for i := range 3 * maxTexts {
		rs.add(Record{ID: fmt.Sprint(i), Path: fmt.Sprint("/v1/", i), Outcome: Rejected})
	}
	if n := len(rs.texts.known); n == 0 || n > maxTexts {
		t.Errorf("%d texts are remembered, want 1 to %d", n, maxTexts)
	}
	if n := len(rs.byID); n != 10 {
		t.Errorf("%d records are kept, want 10", n)
	}
}

func TestRecordsAreSafeForConcurrentUse(t *testing.T) {
	t.Parallel()
	rs := newRecords(50)
	var all sync.WaitGroup
	for worker := range 8 {
		all.Go(func() {
			for i := range 200 {
				id := fmt.Sprint(worker, "-", i)
				r := answered(id)
				r.Path, r.Client = id, "c"
				rs.add(r)
				rs.find(id)
				rs.list(filter{limit: 20})
				rs.tally()
			}
		})
	}
	all.Wait()
	ended, clients := rs.tally()
	if got := ended[ending{Answered, holdfast.Live}]; got != 1600 || clients["c"] != 1600 {
		t.Errorf("counted %d calls, %d of the client, want 1600", got, clients["c"])
	}
	if len(rs.byID) != 50 || len(rs.list(filter{limit: 1000})) != 50 {
		t.Errorf("%d IDs and %d listed, want 50", len(rs.byID), len(rs.list(filter{limit: 1000})))
	}
}

func BenchmarkRecordsAdd(b *testing.B) {
	rs := newRecords(0)
	r := answered("")
	r.Path, r.Model = "/v1/messages", "claude-sonnet-5-5"
	ids := make([]string, 4096)
	for i := range ids {
		ids[i] = fmt.Sprint("id", i)
	}
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		r.ID = ids[i%len(ids)]
		i++
		rs.add(r)
	}
}
