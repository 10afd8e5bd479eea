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

// two is a gateway with a primary and a backup.
func two(p holdfast.Policy) gateway.Settings {
	return gateway.Settings{Targets: []gateway.Target{target("a", ""), target("b", "")}, Policy: p}
}

// Who was asked how often, and whose answer the caller saw, when the primary fails in some way.
func TestWhoIsAsked(t *testing.T) {
	limited := respond(429, `{"type":"error","error":{"type":"rate_limit_error","message":"x"}}`)
	first := holdfast.Policy{FallbackFirst: true}
	for _, c := range []struct {
		name    string
		policy  holdfast.Policy
		primary http.HandlerFunc
		stream  bool
		headers []string
		a, b    int
		status  int
		within  time.Duration
	}{
		{"B99 B102 a throttle without headers", first, limited, false, nil, 1, 1, 200, 0},
		{"B99 B102 a throttle without headers, streaming", first, limited, true, nil, 1, 1, 200, 0},
		{"B107 a wait of a minute", first, respond(429, "{}", "Retry-After: 60"), false, nil, 1, 1, 200, 0},
		{"a wait above the maximum", holdfast.Policy{}, respond(429, "{}", "Retry-After: 90"), false, nil, 1, 1, 200, 0},
		{"an overload for ever", holdfast.Policy{Attempts: 2}, respond(529, "{}"), false, nil, 2, 1, 200, time.Second},
		{"a spent credential", holdfast.Policy{}, respond(402, `{"type":"error","error":{"type":"billing_error","message":"x"}}`), false, nil, 1, 1, 200, 0},
		{"a mistake of the caller", holdfast.Policy{}, respond(400, "{}"), false, nil, 1, 0, 400, 0},
		{"a bad key", holdfast.Policy{}, respond(401, "{}"), false, nil, 1, 0, 401, 0},
		{"silence", holdfast.Policy{AttemptTimeout: 20 * time.Second}, hang, false, nil, 1, 1, 200, 20 * time.Second},
		{"B101 the caller wants no other", first, limited, false, []string{"Holdfast-Fallback: off"}, 4, 0, 429, 8 * time.Second},
		{"B51 B101 cut after content", first, parts(start, block, hello, abort{}), true, nil, 1, 0, 200, 0},
		{"B101 cut after content, and the caller wants no other", first, parts(start, block, hello, abort{}), true, []string{"Holdfast-Fallback: off"}, 1, 0, 200, 0},
		{"B93 cut before content", holdfast.Policy{Attempts: -1}, parts(start, block, abort{}), true, nil, 1, 1, 200, 0},
		{"B92 a stream of nothing", holdfast.Policy{Attempts: -1}, parts(), true, nil, 1, 1, 200, 0},
	} {
		bubble(t, c.name, func(t *testing.T) {
			h := newHouse(t)
			a, b := h.scripted("a", c.primary), h.scripted("b", good)
			h.open(two(c.policy))
			body, headers := message, c.headers
			if c.stream {
				body, headers = streamed(message), append(headers, wantsStream)
			}
			began := time.Now()
			r := h.ask("/v1/messages", body, headers...)
			if took := time.Since(began); took > c.within+time.Second {
				t.Errorf("it took %v", took)
			}
			if len(a.seen()) != c.a || len(b.seen()) != c.b || r.StatusCode != c.status {
				t.Fatalf("a %d, b %d: %d %s", len(a.seen()), len(b.seen()), r.StatusCode, r.body)
			}
			source, wanted := r.Header.Get("Holdfast-Source"), "fallback"
			if c.b == 0 {
				wanted = "live"
			}
			if c.status == 200 && (source != wanted || r.Header.Get("Holdfast-Target") != map[string]string{"live": "a", "fallback": "b"}[source]) {
				t.Errorf("the answer is of %s, %s", r.Header.Get("Holdfast-Target"), source)
			}
			if strings.Contains(c.name, "B51") && (strings.Count(r.body, "message_start\"") != 1 || !strings.Contains(r.body, "event: error\n") || strings.Contains(r.body, "message_stop")) {
				t.Errorf("B51 it is %s", r.body)
			}
			if c.b == 1 && c.stream && r.body != fine {
				t.Errorf("the answer is %s", r.body)
			}
		})
	}
}

// B99: the fallback was left out where a rule had chosen the target. However it is chosen, it is the same.
func TestB99_EveryWayToThePrimary(t *testing.T) {
	chain := []gateway.Entry{{Target: "a"}, {Target: "b"}}
	for name, routes := range map[string][]gateway.Route{
		"no route":   nil,
		"any model":  {{Chain: chain}},
		"a pattern":  {{Models: []string{"claude-*"}, Chain: chain}},
		"the name":   {{Models: []string{"gpt-5", "claude-sonnet-5-5"}, Chain: chain}},
		"the second": {{Models: []string{"gpt-*"}, Chain: chain[1:]}, {Chain: chain}},
	} {
		bubble(t, name, func(t *testing.T) {
			h := newHouse(t)
			a, b := h.scripted("a", respond(429, "")), h.scripted("b", good)
			s := two(holdfast.Policy{FallbackFirst: true})
			s.Routes = routes
			h.open(s)
			if r := h.ask("/v1/messages", message); r.StatusCode != 200 || len(a.seen()) != 1 || len(b.seen()) != 1 {
				t.Errorf("a %d, b %d: %d %s", len(a.seen()), len(b.seen()), r.StatusCode, r.body)
			}
			if r := h.ask("/v1/messages", message); r.StatusCode != 200 || len(a.seen()) != 1 || len(b.seen()) != 2 {
				t.Errorf("B102 a throttle without headers gave no rest: a %d, b %d", len(a.seen()), len(b.seen()))
			}
		})
	}
}

func TestB104_SealedPartsGoToNobodyElse(t *testing.T) {
	const history = `{"model":"claude-sonnet-5-5","max_tokens":9,"messages":[{"role":"user","content":"q"},` +
		`{"role":"assistant","content":[{"type":"thinking","thinking":"t","signature":"SEALED"},{"type":"redacted_thinking","data":"SEALED"},{"type":"text","text":"a"}]},` +
		`{"role":"assistant","content":[{"type":"thinking","thinking":"t","signature":"SEALED"}]},{"role":"user","content":"r"}]}`
	for name, c := range map[string]struct {
		sealed string
		same   bool // the second entry is at the same upstream
		stays  bool
	}{
		"another upstream":      {"", false, false},
		"the same upstream":     {"", true, true},
		"asked to keep":         {"keep", false, true},
		"asked to strip":        {"strip", true, false},
		"stripped by its route": {"strip", false, false},
	} {
		bubble(t, name, func(t *testing.T) {
			h := newHouse(t)
			picky := func(w http.ResponseWriter, r *http.Request) {
				good(w, r)
			}
			a := h.scripted("a", respond(429, ""))
			b := h.scripted("b", picky)
			s := two(holdfast.Policy{FallbackFirst: true})
			s.Routes = []gateway.Route{{Chain: []gateway.Entry{{Target: "a"}, {Target: "b", Sealed: c.sealed}}}}
			if c.same {
				a = h.scripted("c", respond(429, ""), good)
				s.Targets = append(s.Targets, gateway.Target{Name: "c", URL: "http://c.test", Keys: []gateway.Key{{Secret: "one"}}}, gateway.Target{Name: "d", URL: "http://c.test", Keys: []gateway.Key{{Secret: "two"}}})
				s.Routes[0].Chain = []gateway.Entry{{Target: "c"}, {Target: "d", Sealed: c.sealed}}
			}
			h.open(s)
			r := h.ask("/v1/messages", history)
			seen := b.seen()
			if c.same {
				seen = a.seen()[1:]
			}
			if r.StatusCode != 200 || len(seen) != 1 {
				t.Fatalf("%d requests: %d %s", len(seen), r.StatusCode, r.body)
			}
			if first := a.seen()[0]; first.body != history {
				t.Errorf("the first got %s", first.body)
			}
			got := seen[0].body
			if c.stays && got != history || !c.stays && (strings.Contains(got, "SEALED") || strings.Contains(got, "thinking") || strings.Contains(got, `"content":[]`)) {
				t.Errorf("the second got %s", got)
			}
		})
	}
}

// B87: the length of the caller's body was sent with a rewritten one.
func TestB87_RewrittenBodiesHaveTheirOwnLength(t *testing.T) {
	for name, length := range map[string]int64{"with a length": 0, "in chunks": -1} {
		bubble(t, name, func(t *testing.T) {
			h := newHouse(t)
			var got []string
			h.handle("a", func(w http.ResponseWriter, r *http.Request) {
				body, err := io.ReadAll(r.Body)
				got = append(got, fmt.Sprintf("%d %v %v %d %v", r.ContentLength, r.TransferEncoding, r.Header["Content-Length"], len(body), err))
				for _, hop := range []string{"Connection", "Keep-Alive", "Te", "Trailer", "Transfer-Encoding", "Upgrade", "Proxy-Authorization", "Proxy-Connection", "Expect", "X-Hop"} {
					if v, there := r.Header[hop]; there {
						t.Errorf("%s: %v came along", hop, v)
					}
				}
				good(w, r)
			})
			s := one("a", "")
			s.Routes = []gateway.Route{{Chain: []gateway.Entry{{Target: "a", Model: "a-model-with-a-rather-long-name"}}}}
			h.open(s)
			body := strings.Replace(message, "one question", strings.Repeat("x", 1000), 1)
			req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, h.url+"/v1/messages", strings.NewReader(body))
			if length < 0 {
				req.ContentLength = -1
			}
			for name, value := range map[string]string{"Connection": "X-Hop, keep-alive", "X-Hop": "1", "Te": "trailers", "Keep-Alive": "timeout=5", "Proxy-Authorization": "Basic x", "Proxy-Connection": "close"} {
				req.Header.Set(name, value)
			}
			resp, err := h.client.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			_ = resp.Body.Close()
			n := len(body) + len("a-model-with-a-rather-long-name") - len("claude-sonnet-5-5")
			if want := fmt.Sprintf("%d [] [%d] %d <nil>", n, n, n); len(got) != 1 || got[0] != want {
				t.Errorf("it arrived as %v, want %s", got, want)
			}
		})
	}
}

// B105: what never was a failure burnt the whole budget.
func TestB105_NothingIsPaidForNothing(t *testing.T) {
	bubble(t, "an open circuit", func(t *testing.T) {
		h := newHouse(t)
		a, b := h.scripted("a", respond(500, "")), h.scripted("b", good)
		s := two(holdfast.Policy{Attempts: 5})
		h.open(s)
		h.ask("/v1/messages", message) // opens the circuit of a
		before := len(a.seen())
		began := time.Now()
		r := h.ask("/v1/messages", message)
		if r.StatusCode != 200 || len(a.seen()) != before || before != 5 || time.Since(began) != 0 || r.Header.Get("Holdfast-Attempts") != "1" || r.Header.Get("Holdfast-Source") != "fallback" {
			t.Errorf("a %d, then %d, b %d, after %v: %v", before, len(a.seen()), len(b.seen()), time.Since(began), r.Header)
		}
		last := h.seen.last(t)
		if skips := last.Trace.Skips(); len(skips) != 1 || skips[0].Reason != holdfast.ErrOpen {
			t.Errorf("skipped %v", skips)
		}
	})
}

// B114: an account was marked only after the wait, and parallel calls piled onto it.
func TestB114_ParallelCallsLearnAtOnce(t *testing.T) {
	bubble(t, "ten", func(t *testing.T) {
		h := newHouse(t)
		a, b := h.scripted("a", respond(429, "", "Retry-After: 2"), good), h.scripted("b", good)
		h.open(two(holdfast.Policy{FallbackFirst: true}))
		began := time.Now()
		h.ask("/v1/messages", message)
		var all sync.WaitGroup
		for i := range 10 {
			all.Go(func() {
				if r := h.ask("/v1/messages", strings.Replace(message, "one", fmt.Sprint(i), 1)); r.StatusCode != 200 || r.Header.Get("Holdfast-Target") != "b" {
					t.Errorf("got %d of %s", r.StatusCode, r.Header.Get("Holdfast-Target"))
				}
			})
		}
		all.Wait()
		synctest.Wait()
		if len(a.seen()) != 1 || len(b.seen()) != 11 || time.Since(began) != 0 {
			t.Errorf("a %d, b %d, after %v", len(a.seen()), len(b.seen()), time.Since(began))
		}
		time.Sleep(2 * time.Second)
		if r := h.ask("/v1/messages", message); r.Header.Get("Holdfast-Target") != "a" {
			t.Errorf("afterwards %s was asked", r.Header.Get("Holdfast-Target"))
		}
	})
}

// B53: the pair of a stream that died in a tool call and the same turn without a stream can be recognised: each is a call of
// its own, with a record of its own, and the first is told as cut.
func TestB53_ThePairOfACutAndItsRepetitionIsSeen(t *testing.T) {
	bubble(t, "pair", func(t *testing.T) {
		h := newHouse(t)
		tool := "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"tool_use\",\"id\":\"t\",\"name\":\"f\",\"input\":{}}}\n\n" +
			"event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"input_json_delta\",\"partial_json\":\"{}\"}}\n\nevent: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":0}\n\n"
		api := h.scripted("api", parts(start, tool, abort{}), good)
		h.open(one("api", ""))
		r := h.ask("/v1/messages", streamed(message))
		if first := h.seen.last(t); first.Outcome != gateway.Cut || !first.Stream || first.Input != 9 || !strings.Contains(r.body, "event: error\n") {
			t.Errorf("the first: %+v", first)
		}
		if r := h.ask("/v1/messages", message, "X-Stainless-Retry-Count: 1"); r.StatusCode != 200 || r.body != answer || r.Header.Get("Holdfast-Stacked") != "1" {
			t.Errorf("the second: %d %v %s", r.StatusCode, r.Header, r.body)
		}
		if second := h.seen.last(t); second.Outcome != gateway.Answered || second.Stream || second.Stacked != 1 || len(api.seen()) != 2 {
			t.Errorf("the second: %+v", second)
		}
	})
}

// B98: one counter for keys and attempts let a call fail while good keys stood unused.
func TestB98_DeadKeysAreNoAttempts(t *testing.T) {
	for _, dead := range []int{401} {
		bubble(t, fmt.Sprint(dead), func(t *testing.T) {
			h := newHouse(t)
			judge := h.upstream("api", standin.Plan{Rules: []standin.Rule{
				{Match: standin.Match{Header: map[string]string{"x-api-key": "sk-dead-*"}}, Steps: []standin.Step{{Kind: standin.HTTP, Status: dead, Times: -1}}},
			}})
			var keys []gateway.Key
			for i := range 4 {
				keys = append(keys, gateway.Key{Name: fmt.Sprint("dead", i), Secret: fmt.Sprint("sk-dead-", i)})
			}
			s := gateway.Settings{Targets: []gateway.Target{target("api", "anthropic", append(keys, gateway.Key{Name: "good", Secret: "sk-good"})...)}, Policy: holdfast.Policy{Attempts: 3}}
			h.open(s)
			began := time.Now()
			r := h.ask("/v1/messages", message)
			if r.StatusCode != 200 || time.Since(began) != 0 || len(judge.Journal()) != 5 || r.Header.Get("Holdfast-Target") != "api/good" {
				t.Fatalf("%d requests after %v: %d %v %s", len(judge.Journal()), time.Since(began), r.StatusCode, r.Header, r.body)
			}
			asked := map[string]int{}
			for _, x := range judge.Journal() {
				asked[x.Key]++
			}
			if len(asked) != 5 {
				t.Errorf("keys were asked %v times", asked)
			}
			if h.ask("/v1/messages", message); len(judge.Journal()) != 6 {
				t.Errorf("the second call took %d requests", len(judge.Journal())-5)
			}
		})
	}
}
