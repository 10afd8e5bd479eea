package gateway_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"holdfast"
	"holdfast/gateway"
	"holdfast/standin"
)

// base is a target's own way to its upstream: it keeps what it was given, and finds the address itself.
type base struct {
	next http.RoundTripper
	host string
	seen []http.Header
	err  error
}

func (b *base) RoundTrip(req *http.Request) (*http.Response, error) {
	b.seen = append(b.seen, req.Header.Clone())
	if b.err != nil {
		return nil, b.err
	}
	req.URL.Scheme, req.URL.Host, req.Host = "http", b.host, b.host
	req.Header.Set("X-Api-Key", "sk-of-the-base")
	return b.next.RoundTrip(req)
}

// elsewhere is a target with a base of its own.
func (h *house) elsewhere(name string) (gateway.Target, *base) {
	b := &base{next: h.Network.Client().Transport, host: name + ".test"}
	return gateway.Target{Name: name, Dialect: "anthropic", Base: b, Models: map[string]string{"claude-sonnet-5-5": "cloud-sonnet"}}, b
}

func TestATargetsOwnBaseAnswersInItsPlace(t *testing.T) {
	for _, body := range []string{message, streamed(message)} {
		bubble(t, "stream "+body[:10], func(t *testing.T) {
			h := newHouse(t)
			h.upstream("a", standin.Failing(-1, 529, ""))
			cloud := h.upstream("cloud", standin.Plan{})
			target2, b := h.elsewhere("cloud")
			h.open(gateway.Settings{Targets: []gateway.Target{target("a", "anthropic", gateway.Key{Secret: "sk-of-a-0123456789"}), target2}})
			got := h.ask("/v1/messages", body, "Authorization: Bearer sk-caller-CANARY", "Api-Key: sk-caller-CANARY", "Cookie: s=sk-caller-CANARY")
			if got.StatusCode != http.StatusOK || got.Header.Get("Holdfast-Source") != "fallback" || got.Header.Get("Holdfast-Target") != "cloud" {
				t.Fatalf("%d %v %s", got.StatusCode, got.Header, got.body)
			}
			j := cloud.Journal()
			standin.Expect(t, j, standin.Requests(1))
			if j[0].Model != "cloud-sonnet" {
				t.Errorf("asked for %s", j[0].Model)
			}
			for name, values := range b.seen[0] {
				if text := strings.Join(values, " "); strings.Contains(text, "sk-") {
					t.Errorf("%s came to the base: %s", name, text)
				}
			}
		})
	}
}

// Both down: the saved answer is next, and a base that refuses by itself is a failure of its target alone.
func TestABaseThatFailsGivesWay(t *testing.T) {
	bubble(t, "to the next target", func(t *testing.T) {
		h := newHouse(t)
		h.upstream("b", standin.Plan{})
		first, b := h.elsewhere("cloud")
		b.err = &noCredentials{}
		h.open(gateway.Settings{Targets: []gateway.Target{first, target("b", "anthropic")}})
		got := h.ask("/v1/messages", message)
		if got.StatusCode != http.StatusOK || got.Header.Get("Holdfast-Target") != "b" || len(b.seen) != 1 {
			t.Errorf("%d %v, %d attempts at the cloud", got.StatusCode, got.Header, len(b.seen))
		}
	})
}

type noCredentials struct{}

func (*noCredentials) Error() string { return "no credentials" }
func (*noCredentials) Verdict() holdfast.Verdict {
	return holdfast.Verdict{Kind: holdfast.Broken, NotSent: true, ShouldRetry: "false", Rule: "test"}
}

func TestMappedModels(t *testing.T) {
	for _, c := range []struct{ name, model, body, want string }{
		{"of the caller", "", message, "cloud-sonnet"},
		{"of the entry", "claude-sonnet-5-5", strings.Replace(message, "claude-sonnet-5-5", "claude-opus-5", 1), "cloud-sonnet"},
		{"unknown ones stay", "claude-haiku-4-5", message, "claude-haiku-4-5"},
	} {
		bubble(t, c.name, func(t *testing.T) {
			h := newHouse(t)
			a := h.upstream("a", standin.Plan{})
			one := target("a", "anthropic")
			one.Models = map[string]string{"claude-sonnet-5-5": "cloud-sonnet"}
			h.open(gateway.Settings{Targets: []gateway.Target{one}, Routes: []gateway.Route{{Chain: []gateway.Entry{{Target: "a", Model: c.model}}}}})
			if got := h.ask("/v1/messages", c.body); got.StatusCode != http.StatusOK || a.Journal()[0].Model != c.want {
				t.Errorf("%d, asked for %s, want %s", got.StatusCode, a.Journal()[0].Model, c.want)
			}
		})
	}
}

// What a target is known not to take is not sent to it, whether it stands first or later; the caller sees who answered, and
// the error of a target that was asked is not hidden behind one that was not.
func TestWhatDoesNotFitGoesPast(t *testing.T) {
	long := strings.Replace(message, "one question", "one question "+strings.Repeat("x ", 200), 1)
	counting := `{"model":"claude-sonnet-5-5","messages":[{"role":"user","content":"q"}]}`
	for _, c := range []struct {
		name, path, body string
		order            string // of the targets: n is the narrow one, w the wide one
		plan             standin.Plan
		status           int
		source, by       string
		narrow           int
	}{
		{"large, narrow first", "/v1/messages", long, "nw", standin.Plan{}, 200, "fallback", "w", 0},
		{"large, narrow second", "/v1/messages", long, "wn", standin.Failing(-1, 529, ""), 529, "", "w", 0},
		{"large, narrow alone", "/v1/messages", long, "n", standin.Plan{}, 200, "live", "n", 1},
		{"small", "/v1/messages", message, "nw", standin.Plan{}, 200, "live", "n", 1},
		{"counts, narrow first", "/v1/messages/count_tokens", counting, "nw", standin.Plan{}, 200, "fallback", "w", 0},
		{"counts, narrow second", "/v1/messages/count_tokens", counting, "wn", standin.Failing(-1, 529, ""), 529, "", "w", 0},
		{"counts, narrow alone", "/v1/messages/count_tokens", counting, "n", standin.Plan{}, 200, "live", "n", 1},
	} {
		bubble(t, c.name, func(t *testing.T) {
			h := newHouse(t)
			narrow := h.upstream("n", standin.Plan{})
			h.upstream("w", c.plan)
			n, w := target("n", "anthropic"), target("w", "anthropic")
			n.Lacks = gateway.Lacks{MaxBody: int64(len(message)) + 20, CountTokens: true}
			all := map[rune]gateway.Target{'n': n, 'w': w}
			var targets []gateway.Target
			for _, which := range c.order {
				targets = append(targets, all[which])
			}
			h.open(gateway.Settings{Targets: targets})
			got := h.ask(c.path, c.body)
			if got.StatusCode != c.status || got.Header.Get("Holdfast-Source") != c.source || got.Header.Get("Holdfast-Target") != c.by {
				t.Errorf("%d %v %s", got.StatusCode, got.Header, got.body)
			}
			standin.Expect(t, narrow.Journal(), standin.Requests(c.narrow))
		})
	}
}

func TestLackedPartsAreTakenOut(t *testing.T) {
	bubble(t, "members, betas and version", func(t *testing.T) {
		h := newHouse(t)
		var body string
		var header http.Header
		h.handle("a", func(w http.ResponseWriter, r *http.Request) {
			text := make([]byte, r.ContentLength)
			_, _ = r.Body.Read(text)
			body, header = string(text), r.Header.Clone()
			http.Error(w, `{"type":"error","error":{"type":"invalid_request_error","message":"no"}}`, http.StatusBadRequest)
		})
		one := target("a", "anthropic")
		one.Lacks = gateway.Lacks{Members: []string{"fallbacks"}, Betas: []string{"server-side-fallback-"}}
		h.open(gateway.Settings{Targets: []gateway.Target{one}})
		h.ask("/v1/messages", strings.Replace(message, "{", `{"fallbacks":"default",`, 1), "Anthropic-Beta: server-side-fallback-2026-07-01, files-api-2025-04-14")
		if body != message || header.Get("Anthropic-Beta") != "files-api-2025-04-14" || header.Get("Anthropic-Version") != "2023-06-01" {
			t.Errorf("%s\n%v", body, header)
		}
		one.Betas, one.Version = []string{}, "2026-10-21"
		if err := h.gateway.Reload(gateway.Settings{Targets: []gateway.Target{one}, Base: h.Network.Client().Transport}); err != nil {
			t.Fatal(err)
		}
		h.ask("/v1/messages", message, "Anthropic-Beta: files-api-2025-04-14")
		if header["Anthropic-Beta"] != nil || header.Get("Anthropic-Version") != "2026-10-21" || body != message {
			t.Errorf("%s\n%v", body, header)
		}
	})
}

// A base is told its key, so that the key is hidden in what the upstream says.
func TestTheKeyOfABaseIsHidden(t *testing.T) {
	bubble(t, "in an error", func(t *testing.T) {
		const key = "key-of-the-base-CANARY"
		h := newHouse(t)
		h.handle("cloud", func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, `{"error":{"message":"the key `+key+` is not known"}}`, http.StatusUnauthorized)
		})
		one, _ := h.elsewhere("cloud")
		one.Keys = []gateway.Key{{Secret: key}}
		h.open(gateway.Settings{Targets: []gateway.Target{one}})
		if got := h.ask("/v1/messages", message); got.StatusCode != http.StatusUnauthorized || strings.Contains(got.body, "CANARY") {
			t.Errorf("%d %s", got.StatusCode, got.body)
		}
	})
}

func TestMistakesOfABase(t *testing.T) {
	t.Parallel()
	b := &base{err: errors.New("no network")}
	for name, s := range map[string]gateway.Settings{
		"several keys": {Targets: []gateway.Target{{Name: "a", Base: b, Keys: []gateway.Key{{Secret: "1"}, {Secret: "2"}}}}},
		"finds its paths itself": {Targets: []gateway.Target{{Name: "a", Base: b}},
			Routes: []gateway.Route{{Chain: []gateway.Entry{{Target: "a", Path: "/x"}}}}},
	} {
		if _, err := gateway.New(s); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := gateway.New(gateway.Settings{Targets: []gateway.Target{{Name: "a", Base: b}}}); err != nil {
		t.Error(err)
	}
}
