package transport_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"holdfast"
	"holdfast/transport"
)

func TestStreamThatBeganIsNotHeldForEver(t *testing.T) {
	const hold = 10 * time.Second
	for _, c := range []struct {
		name     string
		script   http.HandlerFunc
		second   string
		handed   time.Duration // when the response was there
		got      string
		requests int
		fails    bool
		rule     string
	}{
		{"content in time", then(stream(start), rest(9*time.Second), piece(block+delta+stop+reason+end)), "", 9 * time.Second, start + block + delta + stop + reason + end, 1, false, ""},
		{"no content in time", then(stream(start), rest(50*time.Second), piece(block+delta+stop+reason+end)), "", hold, start + block + delta + stop + reason + end, 1, false, ""},
		{"pings are no content", then(stream(start), rest(6*time.Second), piece(ping), flush, rest(6*time.Second), piece(ping+delta+stop+reason+end)), "", hold, start + ping + ping + delta + stop + reason + end, 1, false, ""},
		{"counted from the first event", then(rest(30*time.Second), stream(start), rest(30*time.Second), piece(delta+stop+reason+end)), "", 40 * time.Second, start + delta + stop + reason + end, 1, false, ""},
		{"not before the first event", then(stream(": hi\n\n"), rest(30*time.Second), piece(start+delta+stop+reason+end)), "", 30 * time.Second, ": hi\n\n" + start + delta + stop + reason + end, 1, false, ""},
		{"a failure before is repeated", then(stream(start), rest(9*time.Second), piece(failing)), complete, 9*time.Second + 250*time.Millisecond, complete, 2, false, ""},
		{"an error event behind is not", then(stream(start), rest(20*time.Second), piece(failing)), complete, hold, start + failing, 1, false, "anthropic-type-overloaded_error"},
		{"a cut behind is not", then(stream(start), rest(20*time.Second), abort), complete, hold, start, 1, true, "cut-before-content"},
		{"a stall behind ends by the idle timer", then(stream(start), hang), complete, hold, start, 1, true, "idle-timeout"},
	} {
		for _, events := range []bool{false, true} {
			bubble(t, c.name, func(t *testing.T) {
				u := serve(t, c.script, stream(c.second))
				policy, verdicts := watched(9)
				began := time.Now()
				resp := askStream(t, u.through(&transport.Transport{Policy: policy, Hold: hold, Idle: 50 * time.Second, Events: events}), u.URL)
				if took := time.Since(began); took != c.handed {
					t.Errorf("handed over after %v, want %v", took, c.handed)
				}
				got, err := failedRead(resp)
				if got != c.got || errors.Is(err, holdfast.ErrCut) != c.fails {
					t.Errorf("got %q, ended with %v\nwant %q", got, err, c.got)
				}
				u.expect(t, c.requests)
				if v := verdicts(); len(v) != c.requests || v[len(v)-1].Rule != c.rule {
					t.Errorf("the verdicts are %+v", v)
				}
			})
		}
	}
}

func TestReaderOfAHeldStreamGetsWhatIsThereAtOnce(t *testing.T) {
	bubble(t, "and the rest when it comes", func(t *testing.T) {
		u := serve(t, then(stream(start), rest(25*time.Second), piece(ping), flush, rest(5*time.Second), piece(delta+stop+reason+end)))
		began := time.Now()
		resp := askStream(t, u.through(&transport.Transport{Hold: 10 * time.Second}), u.URL)
		buffer := make([]byte, 4<<10)
		for _, want := range []struct {
			text string
			at   time.Duration
		}{{start, 10 * time.Second}, {ping, 25 * time.Second}, {delta + stop + reason + end, 30 * time.Second}} {
			n, err := resp.Body.Read(buffer)
			if string(buffer[:n]) != want.text || err != nil || time.Since(began) != want.at {
				t.Errorf("got %q, %v after %v, want %q after %v", buffer[:n], err, time.Since(began), want.text, want.at)
			}
		}
	})
	bubble(t, "packed", func(t *testing.T) {
		packed := gzipped(start, delta+stop+reason+end)
		u := serve(t, then(encoded("gzip", packed[0]), rest(25*time.Second), piece(packed[1])))
		began := time.Now()
		resp := askPacked(t, u, &transport.Transport{Hold: 10 * time.Second})
		if took := time.Since(began); took != 10*time.Second {
			t.Errorf("handed over after %v", took)
		}
		expectReply(t, resp, 200, strings.Join(packed, ""))
	})
}

func TestHeldStreamThatIsLeft(t *testing.T) {
	for name, leave := range map[string]func(resp *http.Response, cancel func()){
		"closed before it is read": func(resp *http.Response, _ func()) { resp.Body.Close() },
		"closed while a read waits": func(resp *http.Response, _ func()) {
			time.AfterFunc(time.Second, func() { resp.Body.Close() })
			_, _ = failedRead(resp)
		},
		"by context while a read waits": func(resp *http.Response, cancel func()) {
			time.AfterFunc(time.Second, cancel)
			if _, err := failedRead(resp); !errors.Is(err, context.Canceled) {
				t.Errorf("the read ended with %v", err)
			}
			resp.Body.Close()
		},
	} {
		bubble(t, name, func(t *testing.T) {
			gone := make(chan struct{})
			u := serve(t, func(w http.ResponseWriter, r *http.Request) {
				defer close(gone)
				then(stream(start), hang)(w, r)
			})
			policy, verdicts := watched(1)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			client := u.through(&transport.Transport{Policy: policy, Hold: time.Second})
			resp, err := client.Do(request(t, ctx, "POST", u.URL+"/v1/messages", strings.NewReader(streamPrompt)))
			if err != nil {
				t.Fatal(err)
			}
			leave(resp, cancel)
			<-gone
			if v := verdicts(); len(v) != 1 || v[0].Kind != holdfast.Cancelled {
				t.Errorf("the verdicts are %+v", v)
			}
		})
	}
}

// script is a body that plays one func per Read.
type script struct {
	plays  []func(p []byte) (int, error)
	closed chan struct{}
}

func (s *script) Read(p []byte) (int, error) {
	if len(s.plays) == 0 {
		return 0, io.EOF
	}
	play := s.plays[0]
	s.plays = s.plays[1:]
	return play(p)
}

func (s *script) Close() error {
	close(s.closed)
	return nil
}

func TestPanicOfAReadUnderWayReachesTheReader(t *testing.T) {
	bubble(t, "", func(t *testing.T) {
		base := roundTripper(func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: &script{
				plays: []func([]byte) (int, error){
					func(p []byte) (int, error) { return copy(p, start), nil },
					func([]byte) (int, error) { <-time.After(time.Minute); panic("the base") }, //nolint:forbidigo // what is tested
				},
				closed: make(chan struct{}),
			}}, nil
		})
		resp := askStream(t, &http.Client{Transport: &transport.Transport{Base: base, Hold: time.Second}}, "http://api.test")
		defer func() {
			if got := recover(); got != "the base" {
				t.Errorf("recovered %v", got)
			}
		}()
		text(t, resp)
		t.Error("it did not panic")
	})
}

func TestHoldThatIsOffHoldsUntilContent(t *testing.T) {
	for _, hold := range []time.Duration{0, -1} {
		bubble(t, hold.String(), func(t *testing.T) {
			u := serve(t, then(stream(start), rest(110*time.Second), piece(failing)), stream(complete))
			expectReply(t, askStream(t, u.through(&transport.Transport{Policy: &holdfast.Policy{Dice: half}, Hold: hold}), u.URL), 200, complete)
			u.expect(t, 2)
		})
	}
}
