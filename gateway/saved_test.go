package gateway_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"holdfast/gateway"
	"holdfast/saved"
	"holdfast/standin"
)

func TestSavedAnswersStandIn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, err := saved.Open("", saved.Options{Mark: true})
		if err != nil {
			t.Fatal(err)
		}
		h := newHouse(t)
		judge := h.upstream("api", standin.Plan{})
		s := one("api", "anthropic")
		s.Saved = store
		s.Routes = []gateway.Route{{Chain: []gateway.Entry{{Target: "api"}, {Saved: true}}}}
		h.open(s)
		live := h.ask("/v1/messages", streamed(message))
		if live.StatusCode != 200 || live.Header.Get("Holdfast-Source") != "live" {
			t.Fatalf("got %d %v", live.StatusCode, live.Header)
		}
		synctest.Wait()
		if err := store.Flush(context.Background()); err != nil {
			t.Fatal(err)
		}
		for name, c := range map[string]struct {
			fault   standin.Step
			status  int
			source  string
			outcome gateway.Outcome
		}{
			"overload":  {standin.Step{Kind: standin.HTTP, Status: 529, Times: -1}, 200, "saved", gateway.Answered},
			"reset":     {standin.Step{Kind: standin.Reset, Times: -1}, 200, "saved", gateway.Answered},
			"cut":       {standin.Step{Kind: standin.Cut, At: standin.Preamble, Times: -1}, 200, "saved", gateway.Answered},
			"a bug":     {standin.Step{Kind: standin.HTTP, Status: 400, Times: -1}, 400, "", gateway.Failed},
			"a bad key": {standin.Step{Kind: standin.HTTP, Status: 401, Times: -1}, 401, "", gateway.Failed},
		} {
			for _, body := range []string{message, streamed(message)} {
				if err := judge.SetPlan(standin.Plan{Steps: []standin.Step{c.fault}}); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Hour) // no circuit is open from the fault before
				r := h.ask("/v1/messages", body)
				if r.StatusCode != c.status || r.Header.Get("Holdfast-Source") != c.source {
					t.Errorf("%s: got %d from %q: %s", name, r.StatusCode, r.Header.Get("Holdfast-Source"), r.body)
				}
				if rec := h.seen.last(t); rec.Outcome != c.outcome || (c.source == "saved") == rec.SavedAt.IsZero() {
					t.Errorf("%s: the record is %+v", name, rec)
				}
				if c.source != "saved" {
					continue
				}
				if r.Header.Get("Holdfast-Saved") == "" || !strings.Contains(r.body, "[saved answer of 2000-01-01") {
					t.Errorf("%s: it is not labelled: %v %s", name, r.Header, r.body)
				}
				if stream := strings.HasPrefix(r.body, "event: message_start"); stream != (body != message) {
					t.Errorf("%s: asked as %.20s it came as %.40s", name, body, r.body)
				}
			}
		}
		// A refusal, and an answer that is too short, take no good one's place.
		for _, fault := range []standin.Step{{Kind: standin.Refusal}, {Kind: standin.Truncation}} {
			if err := judge.SetPlan(standin.Plan{Steps: []standin.Step{fault}}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Hour)
			if r := h.ask("/v1/messages", message); r.Header.Get("Holdfast-Source") != "live" {
				t.Errorf("got %d %s", r.StatusCode, r.body)
			}
		}
		synctest.Wait()
		if err := store.Flush(context.Background()); err != nil {
			t.Fatal(err)
		}
		if n := store.Stats(); n.Answers != 1 || n.Keeps != 1 {
			t.Errorf("B177 the store has %+v", n)
		}
		if err := store.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

func TestAnswerForADemo(t *testing.T) {
	file := filepath.Join(t.TempDir(), "answer.json")
	if err := os.WriteFile(file, []byte(answer), 0o600); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t)
		h.upstream("api", standin.Plan{Steps: []standin.Step{{Kind: standin.HTTP, Status: 529, Times: -1}}})
		s := one("api", "anthropic")
		s.Routes = []gateway.Route{{Chain: []gateway.Entry{{Target: "api"}}, Answer: file}}
		h.open(s)
		for _, body := range []string{message, streamed(message)} {
			r := h.ask("/v1/messages", body)
			if r.StatusCode != 200 || r.Header.Get("Holdfast-Source") != "saved" || !strings.Contains(r.body, "hi") || strings.Contains(r.body, "event:") != (body != message) {
				t.Errorf("got %d %s", r.StatusCode, r.body)
			}
		}
	})
}
