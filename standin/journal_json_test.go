package standin_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"holdfast/standin"
)

func TestJournalIsReadBackAsItWas(t *testing.T) {
	s := standin.New(standin.Plan{Jobs: map[string][]standin.Step{"J-1": {
		{Kind: standin.HTTP, Status: 429, RetryAfter: "1.5", Code: "ramp_limit_exceeded", Header: standin.Header{"x-should-retry": {"true"}}},
		{Kind: standin.Cut, How: standin.Clean},
	}}})
	for range 3 {
		serveOnce(s, about("J-1"))
	}
	before := s.Journal()
	after, err := standin.ReadJournal(ask(s, "GET", "journal", "").Body)
	if diff := cmp.Diff(before, after); diff != "" || err != nil || len(after) != 3 {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	first := after[0]
	if first.Wait != 1500*time.Millisecond || first.Code != "ramp_limit_exceeded" || first.ShouldRetry != standin.DoRetry || !after[2].BilledTwice {
		t.Errorf("%+v", first)
	}
	if diff := cmp.Diff(before.Report(), after.Report()); diff != "" {
		t.Errorf("reports (-want +got):\n%s", diff)
	}
}

func TestReadJournalSaysWhatCannotBe(t *testing.T) {
	at := `"arrived":"2026-11-30T06:00:00Z"`
	for text, want := range map[string]string{
		``:                                  "this is no journal",
		`[]`:                                "this is no journal",
		`{}`:                                "no list of exchanges",
		`{"exchanges":{}}`:                  "this is no journal",
		`{"exchanges":[]} {"exchanges":[]}`: "behind the journal",
		`{"exchanges":[{"number":0,` + at + `}]}`:                                   "exchanges.0: number 0 does not follow 0",
		`{"exchanges":[{"number":2,` + at + `},{"number":2,` + at + `}]}`:           "exchanges.1: number 2 does not follow 2",
		`{"exchanges":[{"number":1}]}`:                                              "exchange 1 arrived before",
		`{"exchanges":[{"number":1,` + at + `,"departed":"2025-01-01T00:00:00Z"}]}`: "ended before it began",
		`{"exchanges":[{"number":1,` + at + `,"input":-1}]}`:                        "a count or a status",
		`{"exchanges":[{"number":1,` + at + `,"sdk_retry":-2}]}`:                    "a count or a status",
		`{"exchanges":[{"number":1,` + at + `,"status":"ok"}]}`:                     "this is no journal",
	} {
		if j, err := standin.ReadJournal(strings.NewReader(text)); err == nil || j != nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "standin: ") {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
	for _, text := range []string{`{"exchanges":[]}`, `{"open":3,"new":true,"exchanges":[{"number":7,"new":{},` + at + `}]}` + "\n"} {
		if _, err := standin.ReadJournal(strings.NewReader(text)); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// FuzzReadJournal: nothing panics, whatever is accepted can be judged, and what
// is written again reads the same.
func FuzzReadJournal(f *testing.F) {
	f.Add(`{"exchanges":[]}`)
	f.Add(`{"exchanges":[{"number":1,"arrived":"2026-11-30T06:00:00Z","method":"POST","wait_ns":9223372036854775807,"status":429},{"number":2,"arrived":"2026-11-30T06:00:01Z","method":"POST"}]}`)
	f.Add(`{"exchanges":[{"number":1,"arrived":"2026-11-30T06:00:00Z","departed":"9999-11-30T06:00:00Z","effect":"x"}]}`)
	f.Add(`{"exchanges":[{"number":1,"arrived":"0001-01-01T00:00:01Z","input":9223372036854775807,"output":1}]}`)
	f.Fuzz(func(t *testing.T, text string) {
		j, err := standin.ReadJournal(strings.NewReader(text))
		if err != nil {
			return
		}
		_ = j.Report().String()
		_ = j.Ledger()
		_ = j.Check(standin.PaidOnce(), standin.WaitsHonoured(0), standin.AtMost(1), standin.SameBody())
		again, err := json.Marshal(map[string]any{"exchanges": j})
		if err != nil {
			t.Fatal(err)
		}
		k, err := standin.ReadJournal(bytes.NewReader(again))
		if err != nil {
			t.Fatalf("written again: %v", err)
		}
		if diff := cmp.Diff(j, k); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}
