package transport_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"holdfast"
	"holdfast/internal/testnet"
	"holdfast/transport"
)

func TestB57_EveryAttemptCarriesTheSameBody(t *testing.T) {
	for _, c := range []struct {
		name    string
		most    int
		size    int
		getBody bool
		length  bool
		want    int // requests
	}{
		{"in memory", 0, 1000, true, true, 3},
		{"a reader", 0, 1000, false, false, 3},
		{"a reader with a length", 0, 1000, false, true, 3},
		{"a reader of exactly the limit", 1000, 1000, false, false, 3},
		{"a reader above the limit", 999, 1000, false, false, 1},
		{"a reader with a length above the limit", 999, 1000, false, true, 1},
		{"no keeping", -1, 1000, false, false, 1},
		{"no keeping of what can be had again", -1, 1000, true, true, 3},
		{"no limit on what can be had again", 10, 1000, true, true, 3},
	} {
		for _, path := range []string{"/v1/messages", "/v1/files"} {
			bubble(t, c.name+path, func(t *testing.T) {
				u := serve(t, respond(429, limited), respond(429, limited), good)
				policy, verdicts := watched(1)
				content := `{"pad":"` + strings.Repeat("x", c.size-10) + `"}`
				b := newBody(content)
				req := request(t, t.Context(), "POST", u.URL+path, b)
				if c.length {
					req.ContentLength = int64(c.size)
				}
				if c.getBody {
					req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(content)), nil }
				}
				req.Header.Set("Idempotency-Key", "k1")
				req.Header.Set("Content-Type", "application/json")
				before := req.Clone(context.Background())
				resp, err := u.through(&transport.Transport{Policy: policy, MaxReplay: c.most}).Do(req)
				if err != nil {
					t.Fatal(err)
				}
				text(t, resp)
				resp.Body.Close()
				u.expect(t, c.want)
				for _, a := range u.seen() {
					if a.body != content || a.header.Get("Idempotency-Key") != "k1" {
						t.Errorf("an attempt carried %d bytes and the key %q", len(a.body), a.header.Get("Idempotency-Key"))
					}
				}
				if n := b.closed.Load(); n != 1 {
					t.Errorf("the body was closed %d times", n)
				}
				if diff := cmp.Diff(before.Header, req.Header); diff != "" || req.Body != io.ReadCloser(b) || req.ContentLength != before.ContentLength {
					t.Errorf("the request was changed: %s", diff)
				}
				if v := verdicts(); c.want == 1 && (len(v) != 1 || v[0].Kind != holdfast.Unsafe || v[0].Was != holdfast.Throttled || v[0].Rule != "body-not-kept") {
					t.Errorf("the verdict is %+v", v)
				}
				if want := 200; c.want == 1 {
					if want = 429; resp.StatusCode != want {
						t.Errorf("got %d", resp.StatusCode)
					}
				} else if resp.StatusCode != want {
					t.Errorf("got %d", resp.StatusCode)
				}
			})
		}
	}
}

func TestOnlyCopyOfABodyIsKeptWhileNothingIsSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := serve(t, good)
		u.net.Refuse("api.test:80")
		time.AfterFunc(time.Second, func() { u.net.Restore("api.test:80") })
		b := newBody(prompt)
		policy := &holdfast.Policy{Attempts: 10, Dice: half}
		resp, err := u.through(&transport.Transport{Policy: policy, MaxReplay: -1}).Do(request(t, t.Context(), "POST", u.URL+"/v1/files", b))
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		text(t, resp)
		if got := u.seen(); len(got) != 1 || got[0].body != prompt || b.closed.Load() != 1 {
			t.Errorf("the upstream saw %v, and the body was closed %d times", got, b.closed.Load())
		}
	})
}

func TestBodyIsClosedWhenNothingIsSent(t *testing.T) {
	for _, most := range []int{0, -1} {
		b := newBody(prompt)
		tr := &transport.Transport{Policy: &holdfast.Policy{Breaker: opened()}, MaxReplay: most}
		resp, err := tr.RoundTrip(request(t, t.Context(), "POST", "http://api.test/v1/messages", b))
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if b.closed.Load() != 1 {
			t.Errorf("closed %d times", b.closed.Load())
		}
		if most < 0 && b.reads.Load() != 0 {
			t.Error("it was read")
		}
	}
}

type brokenBody struct{ closed int }

var errBody = errors.New("disk on fire")

func (b *brokenBody) Read([]byte) (int, error) { return 0, errBody }
func (b *brokenBody) Close() error             { b.closed++; return nil }

func TestBodyThatCannotBeReadIsTheCallersError(t *testing.T) {
	b := &brokenBody{}
	resp, err := transport.New(nil, nil).RoundTrip(request(t, t.Context(), "POST", "http://api.test/v1/messages", b))
	if resp != nil || !errors.Is(err, errBody) || b.closed != 1 {
		t.Errorf("got %v and %v, closed %d times", resp, err, b.closed)
	}
}

func TestBodyThatHangsEndsWithTheCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, _ := io.Pipe()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := transport.New(nil, nil).RoundTrip(request(t, ctx, "POST", "http://api.test/v1/messages", r))
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
	})
}

func TestB132_ConcurrentCallsDoNotMix(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		times := map[string]int{}
		n := testnet.New()
		server := n.Serve(t, "api.test:80", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			mu.Lock()
			times[string(body)]++
			second := times[string(body)] == 2
			mu.Unlock()
			if !second {
				respond(429, limited)(w, r)
				return
			}
			respond(200, strings.Replace(message, "hello", r.Header.Get("X-Call"), 1))(w, r)
		}))
		client := &http.Client{Transport: transport.New(nil, n.Client().Transport)}
		done := make(chan string)
		const calls = 50
		for i := range calls {
			go func() {
				call := fmt.Sprintf("call-%d", i)
				req, _ := http.NewRequest("POST", server.URL+"/v1/messages", strings.NewReader(`{"call":"`+call+`"}`))
				req.Header.Set("X-Call", call)
				resp, err := client.Do(req)
				if err != nil {
					done <- err.Error()
					return
				}
				defer resp.Body.Close()
				answer, _ := io.ReadAll(resp.Body)
				if want := strings.Replace(message, "hello", call, 1); string(answer) != want || resp.Header.Get("Holdfast-Attempts") != "2" {
					done <- fmt.Sprintf("%s got %s in %s attempts", call, answer, resp.Header.Get("Holdfast-Attempts"))
					return
				}
				done <- ""
			}()
		}
		for range calls {
			if failure := <-done; failure != "" {
				t.Error(failure)
			}
		}
		if len(times) != calls {
			t.Errorf("%d different bodies arrived", len(times))
		}
	})
}
