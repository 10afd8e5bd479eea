package transport_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"holdfast"
	"holdfast/transport"
)

func TestDeadlineOfTheCallerBoundsTheCall(t *testing.T) {
	for _, c := range []struct {
		own, sdk string
		want     time.Duration
	}{
		{"5s", "", 5 * time.Second},
		{"1500ms", "", 1500 * time.Millisecond},
		{"7", "", 7 * time.Second},
		{" 2.5 ", "", 2500 * time.Millisecond},
		{"5s", "3", 3 * time.Second},
		{"5s", "8", 5 * time.Second},
		{"20m", "", 20 * time.Second},
		{"0", "", 20 * time.Second},
		{"-1s", "", 20 * time.Second},
		{"soon", "", 20 * time.Second},
		{"NaN", "6", 6 * time.Second},
		{"+Inf", "", 20 * time.Second},
		{"", "", 20 * time.Second},
	} {
		bubble(t, c.own+" "+c.sdk, func(t *testing.T) {
			u := serve(t, hang)
			req := request(t, t.Context(), "POST", u.URL+"/v1/messages", strings.NewReader(prompt))
			req.Header.Set("Holdfast-Deadline", c.own)
			req.Header.Set("X-Stainless-Timeout", c.sdk)
			began := time.Now()
			resp, err := u.through(transport.New(&holdfast.Policy{Deadline: 20 * time.Second}, nil)).Do(req)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			if took := time.Since(began); took != c.want || resp.StatusCode != 504 || resp.Header.Get("Holdfast-Reason") != "deadline" {
				t.Errorf("took %v, want %v; got %d %s", took, c.want, resp.StatusCode, resp.Header.Get("Holdfast-Reason"))
			}
		})
	}
}

func FuzzDeadline(f *testing.F) {
	for _, s := range []string{"30s", "1500ms", "7", "-1", "1e309", "0x1p-2", "9223372036854775807ns", "2562048h", "\xff", "1h1h"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		base := roundTripper(func(r *http.Request) (*http.Response, error) {
			if d, ok := r.Context().Deadline(); ok && time.Until(d) > 10*time.Minute {
				t.Errorf("%q makes the call longer", s)
			}
			return &http.Response{StatusCode: 200, Header: http.Header{}, Body: http.NoBody}, nil
		})
		req, err := http.NewRequest("GET", "http://api.test/v1/models", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header["Holdfast-Deadline"] = []string{s}
		resp, err := transport.New(nil, base).RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
	})
}

// Whoever gives a healthy target no time must not have it benched for everybody.
func TestB109_DeadlineOfTheCallerIsHeldAgainstNobody(t *testing.T) {
	for name, script := range map[string]http.HandlerFunc{
		"before headers": then(rest(300*time.Millisecond), good),
		"in an answer":   then(respond(200, message[:20]), flush, rest(300*time.Millisecond), piece(message[20:])),
		"before content": then(stream(start), rest(300*time.Millisecond), piece(delta+stop+reason+end)),
		"behind content": then(stream(start, delta), rest(300*time.Millisecond), piece(stop+reason+end)),
	} {
		for _, header := range []string{"Holdfast-Deadline", "X-Stainless-Timeout"} {
			bubble(t, name+" by "+header, func(t *testing.T) {
				u := serve(t, script)
				for _, count := range []holdfast.Count{holdfast.CountAttempts, holdfast.CountCalls} {
					policy := &holdfast.Policy{Breaker: holdfast.NewBreaker(holdfast.BreakerSettings{Failures: 1, Count: count})}
					client := u.through(transport.New(policy, nil))
					for range 6 {
						req := request(t, t.Context(), "POST", u.URL+"/v1/messages", strings.NewReader(prompt))
						req.Header.Set(header, "0.05")
						resp, err := client.Do(req)
						if err != nil {
							t.Fatal(err)
						}
						_, _ = failedRead(resp)
						resp.Body.Close()
					}
					if state := policy.Breaker.State(); state != holdfast.Closed {
						t.Errorf("the breaker is %v", state)
					}
					resp := ask(t, client, u.URL)
					text(t, resp)
					if resp.StatusCode != 200 {
						t.Errorf("got %d", resp.StatusCode)
					}
				}
			})
		}
	}
	bubble(t, "but a time of ours is", func(t *testing.T) {
		u := serve(t, hang)
		policy := &holdfast.Policy{AttemptTimeout: time.Second, Breaker: holdfast.NewBreaker(holdfast.BreakerSettings{Failures: 1})}
		req := request(t, t.Context(), "POST", u.URL+"/v1/messages", strings.NewReader(prompt))
		req.Header.Set("Holdfast-Deadline", "30s")
		resp, err := u.through(transport.New(policy, nil)).Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if state := policy.Breaker.State(); state != holdfast.Open {
			t.Errorf("the breaker is %v", state)
		}
	})
}

func TestB101_CallerKeepsHisCallOnTheFirstTarget(t *testing.T) {
	refusal := stream(start, refused, end)
	for _, c := range []struct {
		name   string
		value  string
		script http.HandlerFunc
		asked  string
	}{
		{"a failure", "off", respond(529, overloaded), "aa"},
		{"a failure, spelled otherwise", " OFF ", respond(529, overloaded), "aa"},
		{"a failure behind content", "off", stream(begun), "aa"},
		{"a refusal", "off", refusal, "a"},
		{"no wish", "", respond(529, overloaded), "aabb"},
		{"another wish", "on", respond(529, overloaded), "aabb"},
	} {
		bubble(t, c.name, func(t *testing.T) {
			u := serve(t, c.script)
			asked := ""
			base := u.client.Transport
			tr := u.through(&transport.Transport{
				Policy: &holdfast.Policy{Attempts: 2, Dice: half, RefusalFallback: true, Targets: []holdfast.Target{{Name: "a", Model: "x"}, {Name: "b", Model: "y"}}},
				Whole:  true,
			}).Transport.(*transport.Transport)
			tr.Base = roundTripper(func(r *http.Request) (*http.Response, error) {
				target, _ := holdfast.TargetOf(r.Context())
				asked += target.Name
				return base.RoundTrip(r)
			})
			req := request(t, t.Context(), "POST", u.URL+"/v1/messages", strings.NewReader(streamPrompt))
			req.Header.Set("Holdfast-Fallback", c.value)
			resp, err := tr.RoundTrip(req)
			if err != nil {
				t.Fatal(err)
			}
			_, _ = failedRead(resp)
			_ = resp.Body.Close()
			if asked != c.asked {
				t.Errorf("asked %s, want %s", asked, c.asked)
			}
			if got := resp.Header.Get("Holdfast-Target"); got != c.asked[len(c.asked)-1:] {
				t.Errorf("holdfast-target is %q", got)
			}
		})
	}
	bubble(t, "with its pool", func(t *testing.T) {
		u := serve(t, respond(401, invalid), respond(529, overloaded))
		policy := &holdfast.Policy{Attempts: 2, Dice: half, RefusalFallback: true, Targets: []holdfast.Target{
			{Name: "r", OnRefusal: true}, {Name: "a1", Pool: "a", Credential: "1"}, {Name: "a2", Pool: "a", Credential: "2"}, {Name: "b"},
		}}
		req := request(t, t.Context(), "POST", u.URL+"/v1/messages", strings.NewReader(prompt))
		req.Header.Set("Holdfast-Fallback", "off")
		resp, err := u.through(transport.New(policy, nil)).Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		trace, _ := transport.TraceOf(resp)
		asked := ""
		for _, a := range trace.Attempts() {
			asked += a.Target + " "
		}
		if asked != "a1 a2 a2 " {
			t.Errorf("asked %s", asked)
		}
	})
	bubble(t, "a refusal of the only model of a pool is an answer", func(t *testing.T) {
		u := serve(t, refusal)
		policy := &holdfast.Policy{RefusalFallback: true, Targets: []holdfast.Target{{Name: "a1", Pool: "a", Credential: "1"}, {Name: "a2", Pool: "a", Credential: "2"}}}
		resp := askStream(t, u.through(transport.New(policy, nil)), u.URL)
		text(t, resp)
		if e := transport.ErrorOf(resp); e != nil || resp.StatusCode != 200 || resp.Header.Get("X-Should-Retry") != "" {
			t.Errorf("got %d, %v", resp.StatusCode, e)
		}
		u.expect(t, 1)
	})
	bubble(t, "which has no name without targets", func(t *testing.T) {
		resp := ask(t, serve(t, good).through(transport.New(nil, nil)), "http://api.test:80")
		if got, is := resp.Header["Holdfast-Target"]; is {
			t.Errorf("holdfast-target is %q", got)
		}
	})
}

// counter is a body in memory that counts how often it is asked for its bytes.
type counter struct {
	*transport.Body
	asked, read, closed int
}

func (c *counter) Bytes() []byte              { c.asked++; return c.Body.Bytes() }
func (c *counter) Read(p []byte) (int, error) { c.read++; return c.Body.Read(p) }
func (c *counter) Close() error               { c.closed++; return c.Body.Close() }

func TestBodyInMemoryIsSentFromThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		long := `{"max_tokens":9,"messages":"` + strings.Repeat("x", 1<<20) + `"}`
		u := serve(t, respond(529, overloaded), good)
		b := &counter{Body: transport.NewBody([]byte(long))}
		req := request(t, t.Context(), "POST", u.URL+"/v1/messages", b)
		resp, err := u.through(&transport.Transport{Policy: &holdfast.Policy{Dice: half}, MaxReplay: -1}).Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		u.expect(t, 2)
		for i, a := range u.seen() {
			if a.body != long || a.header.Get("Content-Length") != "1048606" && a.header.Get("Content-Length") != "" {
				t.Errorf("attempt %d carried %d bytes", i+1, len(a.body))
			}
		}
		if b.asked != 1 || b.read != 0 || b.closed != 1 {
			t.Errorf("it was asked for its bytes %d times, read %d times and closed %d times", b.asked, b.read, b.closed)
		}
		if got, err := io.ReadAll(b.Body); string(got) != long || err != nil {
			t.Errorf("read, it gives %d bytes, %v", len(got), err)
		}
	})
}

func TestReplyToHeadHasNoBody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := serve(t, good)
		resp, err := u.through(transport.New(&holdfast.Policy{Breaker: opened()}, nil)).Head(u.URL + "/v1/models")
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if got := text(t, resp); got != "" || resp.StatusCode != 503 || resp.ContentLength <= 0 {
			t.Errorf("got %d %q of %d bytes", resp.StatusCode, got, resp.ContentLength)
		}
	})
}
