package gateway_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"holdfast"
	"holdfast/gateway"
	"holdfast/standin"
)

const answer = `{"type":"message","role":"assistant","content":[{"type":"text","text":"hi"}],"stop_reason":"end_turn","usage":{"input_tokens":3,"output_tokens":2}}`

// accounts is an upstream that counts the requests of each key, and answers as told.
type accounts struct {
	mu    sync.Mutex
	asked map[string]int
	says  func(w http.ResponseWriter, key string) bool // false: a good answer
}

func (a *accounts) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	key := r.Header.Get("X-Api-Key")
	a.mu.Lock()
	if a.asked == nil {
		a.asked = map[string]int{}
	}
	a.asked[key]++
	a.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	if a.says == nil || !a.says(w, key) {
		fmt.Fprint(w, answer)
	}
}

func fail(w http.ResponseWriter, status int, typ, code string) bool {
	w.WriteHeader(status)
	fmt.Fprintf(w, `{"type":"error","error":{"type":%q,"message":"x","details":{"error_code":%q}}}`, typ, code)
	return true
}

func TestB114_ThrottledAccountIsLeftAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t)
		up := &accounts{says: func(w http.ResponseWriter, key string) bool {
			if key != "sk-1" {
				return false
			}
			w.Header().Set("Retry-After", "2")
			return fail(w, 429, "rate_limit_error", "")
		}}
		h.handle("api", up.ServeHTTP)
		h.open(gateway.Settings{Targets: []gateway.Target{target("api", "anthropic", gateway.Key{Secret: "sk-1"}, gateway.Key{Secret: "sk-2"})}})
		began := time.Now()
		if r := h.ask("/v1/messages", message); r.StatusCode != 200 {
			t.Fatalf("got %d %s", r.StatusCode, r.body)
		}
		var calls sync.WaitGroup
		for range 10 {
			calls.Go(func() {
				if r := h.ask("/v1/messages", message); r.StatusCode != 200 || r.Header.Get("Holdfast-Target") != "api/2" {
					t.Errorf("got %d from %s", r.StatusCode, r.Header.Get("Holdfast-Target"))
				}
			})
		}
		calls.Wait()
		if up.asked["sk-1"] != 1 || up.asked["sk-2"] != 11 || time.Since(began) > 100*time.Millisecond {
			t.Errorf("asked %v in %v", up.asked, time.Since(began))
		}
	})
}

func TestSpentKeyRestsAndTheOtherIsUsed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t)
		up := &accounts{says: func(w http.ResponseWriter, key string) bool {
			return key == "sk-1" && fail(w, 429, "rate_limit_error", "enforced_spend_limit_reached")
		}}
		h.handle("api", up.ServeHTTP)
		h.open(gateway.Settings{Targets: []gateway.Target{target("api", "anthropic", gateway.Key{Secret: "sk-1"}, gateway.Key{Secret: "sk-2"})}})
		for range 3 {
			if r := h.ask("/v1/messages", message); r.StatusCode != 200 {
				t.Errorf("got %d %s", r.StatusCode, r.body)
			}
		}
		if up.asked["sk-1"] != 1 || up.asked["sk-2"] != 3 {
			t.Errorf("asked %v", up.asked)
		}
	})
}

func TestEveryKeyBadEndsWithTheUpstreamsError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t)
		up := &accounts{says: func(w http.ResponseWriter, _ string) bool { return fail(w, 401, "authentication_error", "") }}
		h.handle("api", up.ServeHTTP)
		h.open(gateway.Settings{Targets: []gateway.Target{target("api", "anthropic", gateway.Key{Secret: "sk-1"}, gateway.Key{Secret: "sk-2"})}})
		for range 2 {
			if r := h.ask("/v1/messages", message); r.StatusCode != 401 || !strings.Contains(r.body, "authentication_error") {
				t.Errorf("got %d %s", r.StatusCode, r.body)
			}
		}
		if up.asked["sk-1"] < 1 || up.asked["sk-2"] < 1 {
			t.Errorf("asked %v", up.asked)
		}
	})
}

func TestRefusalGoesToItsModelOnce(t *testing.T) {
	for _, body := range []string{message, streamed(message)} {
		bubble(t, body[:16], func(t *testing.T) {
			h := newHouse(t)
			judge := h.upstream("api", standin.Plan{Rules: []standin.Rule{
				{Match: standin.Match{Model: "claude-sonnet-5-5"}, Then: standin.Step{Kind: standin.Refusal}},
				{Match: standin.Match{Model: "claude-haiku-4-5"}, Then: standin.Step{Kind: standin.OK}},
			}})
			second := h.upstream("second", standin.Plan{})
			h.open(gateway.Settings{
				Targets: []gateway.Target{target("api", "anthropic"), target("second", "anthropic")},
				Routes: []gateway.Route{{
					Chain:     []gateway.Entry{{Target: "api"}, {Target: "second"}},
					OnRefusal: &gateway.Entry{Target: "api", Model: "claude-haiku-4-5"},
				}},
			})
			r := h.ask("/v1/messages", body)
			j := judge.Journal()
			if r.StatusCode != 200 || strings.Contains(r.body, "refusal") || len(j) != 2 || len(second.Journal()) != 0 {
				t.Errorf("got %d %s after %d and %d attempts", r.StatusCode, r.body, len(j), len(second.Journal()))
			}
			if got := r.Header.Get("Holdfast-Source") + " " + r.Header.Get("Holdfast-Target"); got != "fallback on-refusal:api:claude-haiku-4-5" {
				t.Errorf("it came from %s", got)
			}
			// An overload is nothing for the model of refusals.
			judge.Reset()
			if err := judge.SetPlan(standin.Plan{Steps: []standin.Step{{Kind: standin.HTTP, Status: 529, Times: -1}}}); err != nil {
				t.Fatal(err)
			}
			if r := h.ask("/v1/messages", body); r.Header.Get("Holdfast-Target") != "second" {
				t.Errorf("an overload was answered by %s", r.Header.Get("Holdfast-Target"))
			}
			for _, x := range judge.Journal() {
				if x.Model != "claude-sonnet-5-5" {
					t.Errorf("%s was asked", x.Model)
				}
			}
		})
	}
}

func TestB107_FallbackFirstDoesNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t)
		judge := h.upstream("api", standin.Plan{Steps: []standin.Step{{Kind: standin.HTTP, Status: 429, RetryAfter: "30", Times: -1}}})
		h.upstream("second", standin.Plan{})
		h.open(gateway.Settings{
			Targets: []gateway.Target{target("api", "anthropic"), target("second", "anthropic")},
			Policy:  holdfast.Policy{FallbackFirst: true},
		})
		began := time.Now()
		if r := h.ask("/v1/messages", message); r.Header.Get("Holdfast-Target") != "second" || time.Since(began) > time.Second || len(judge.Journal()) != 1 {
			t.Errorf("%s answered after %v and %d attempts", r.Header.Get("Holdfast-Target"), time.Since(began), len(judge.Journal()))
		}
	})
}
