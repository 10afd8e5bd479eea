package transport_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"holdfast"
	"holdfast/transport"
)

const streamPrompt = `{"model":"m","max_tokens":100,"stream":true,"messages":[{"role":"user","content":"hi"}]}`

func askStream(t *testing.T, c *http.Client, url string) *http.Response {
	t.Helper()
	resp, err := c.Post(url+"/v1/messages", "application/json", strings.NewReader(streamPrompt))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = resp.Body.Close() })
	return resp
}

// A stream that fails before content is asked for again, and the caller sees only the second.
func TestStreamBeforeContent(t *testing.T) {
	limitedEvent := "event: error\ndata: " + limited + "\n\n"
	for _, c := range []struct {
		name   string
		first  http.HandlerFunc
		final  int // the status when it repeats for ever
		says   string
		reason string
	}{
		{"B92 closed at once", stream(), 502, "all attempts used", "attempts"},
		{"B92 only comments", stream(": hi\n\n", ": hi\n\n"), 502, "all attempts used", "attempts"},
		{"B92 an error first", stream(failing), 529, "Overloaded", ""},
		{"B92 an error of the other dialect first", stream("data: {\"error\":{\"code\":429,\"message\":\"slow\"}}\n\n"), 429, "slow", ""},
		{"B93 an error behind the preamble", stream(preamble, failing), 529, "Overloaded", ""},
		{"B93 the same in one write", stream(preamble + failing), 529, "Overloaded", ""},
		{"B26 a rate limit inside", stream(start, limitedEvent), 429, "slow", ""},
		{"B146 reset behind message_start", then(stream(start), reset), 502, "all attempts used", "attempts"},
		{"B146 reset before headers", reset, 502, "all attempts used", "attempts"},
		{"cut behind the headers", then(stream(), abort), 502, "all attempts used", "attempts"},
		{"malformed only", stream("data: {broken\n\n", "data: also\n\n"), 502, "all attempts used", "attempts"},
		{"stalled behind the preamble", then(stream(preamble), hang), 504, "all attempts used", "attempts"},
		{"stalled before headers", hang, 504, "all attempts used", "attempts"},
		{"B45 pings for ever", then(stream(start), pings), 504, "all attempts used", "attempts"},
		{"a complete stream without content", stream(start, reason, end), 200, "message_stop", ""},
	} {
		bubble(t, c.name, func(t *testing.T) {
			u := serve(t, c.first, stream(complete))
			policy, verdicts := watched(3)
			resp := askStream(t, u.through(transport.New(policy, nil)), u.URL)
			if got := text(t, resp); got != complete {
				t.Errorf("got %q", got)
			}
			u.expect(t, 2)
			if v := verdicts(); len(v) != 2 || v[1].Kind != holdfast.OK {
				t.Errorf("the verdicts are %+v", v)
			}
		})
		bubble(t, c.name+" for ever", func(t *testing.T) {
			u := serve(t, c.first)
			policy, verdicts := watched(3)
			policy.Attempts = 2
			resp := askStream(t, u.through(transport.New(policy, nil)), u.URL)
			got := text(t, resp)
			if resp.StatusCode != c.final || !strings.Contains(got, c.says) || resp.Header.Get("X-Should-Retry") != "false" {
				t.Errorf("got %d %q, want %d with %q", resp.StatusCode, got, c.final, c.says)
			}
			if kind := resp.Header.Get("Content-Type"); c.final >= 400 && kind != "application/json" {
				t.Errorf("it is %s", kind)
			}
			if got := resp.Header.Get("Holdfast-Reason"); got != c.reason {
				t.Errorf("holdfast-reason is %q, want %q", got, c.reason)
			}
			u.expect(t, 2)
			if v := verdicts(); len(v) != 2 || v[0].Status == 200 {
				t.Errorf("the verdicts are %+v", v)
			}
		})
	}
}

func pings(w http.ResponseWriter, r *http.Request) {
	for r.Context().Err() == nil {
		_, _ = io.WriteString(w, ping)
		_ = http.NewResponseController(w).Flush()
		rest(5*time.Second)(w, r)
	}
}

func TestFirstContentTimer(t *testing.T) {
	for _, c := range []struct {
		name   string
		first  http.HandlerFunc
		limit  time.Duration
		silent bool
		want   time.Duration
	}{
		{"from the request on", then(rest(5*time.Second), stream(start), hang), 12 * time.Second, false, 12 * time.Second},
		{"without a byte", hang, 12 * time.Second, true, 12 * time.Second},
		{"by default", hang, 0, true, 2 * time.Minute},
	} {
		bubble(t, c.name, func(t *testing.T) {
			u := serve(t, c.first)
			policy, verdicts := watched(1)
			policy.Attempts = 1
			began := time.Now()
			resp := askStream(t, u.through(&transport.Transport{Policy: policy, FirstContent: c.limit}), u.URL)
			if took := time.Since(began); took != c.want {
				t.Errorf("it took %v, want %v", took, c.want)
			}
			var timeout *transport.TimeoutError
			if err := transport.ErrorOf(resp); !errors.As(err, &timeout) || timeout.Timer != transport.FirstContent || timeout.Limit != c.want {
				t.Errorf("the error is %v", err)
			}
			if v := verdicts(); len(v) != 1 || v[0].Rule != "first-content-timeout" || v[0].Silent != c.silent {
				t.Errorf("the verdicts are %+v", v)
			}
		})
	}
	bubble(t, "not for answers that are no streams", func(t *testing.T) {
		u := serve(t, then(rest(5*time.Minute), good))
		resp := ask(t, u.through(transport.New(nil, nil)), u.URL)
		expectReply(t, resp, 200, message)
		u.expect(t, 1)
	})
	bubble(t, "not when it is off", func(t *testing.T) {
		u := serve(t, then(rest(5*time.Minute), stream(complete)))
		resp := askStream(t, u.through(&transport.Transport{FirstContent: -1}), u.URL)
		expectReply(t, resp, 200, complete)
		u.expect(t, 1)
	})
}

// What fails after content is seen by the reader, is never asked for again, and is heard of by the breaker.
func TestStreamAfterContent(t *testing.T) {
	const begun = preamble + delta + delta
	const tool = preamble + "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":1,\"content_block\":{\"type\":\"tool_use\",\"id\":\"t\",\"name\":\"write\",\"input\":{}}}\n\n" +
		"event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":1,\"delta\":{\"type\":\"input_json_delta\",\"partial_json\":\"{\\\"a\\\":\\\"\"}}\n\n"
	for _, c := range []struct {
		name   string
		script http.HandlerFunc
		got    string
		err    error // nil: a clean end
		rule   string
		kind   holdfast.Kind
	}{
		{"whole", stream(complete), complete, nil, "", holdfast.OK},
		{"B60 B63 closed cleanly", stream(begun), begun, io.ErrUnexpectedEOF, "cut-after-content", holdfast.Broken},
		{"B60 B147 closed without the last chunk", then(stream(begun), abort), begun, io.ErrUnexpectedEOF, "cut-after-content", holdfast.Broken},
		{"B50 B146 reset", then(stream(begun), reset), begun, syscall.ECONNRESET, "cut-after-content", holdfast.Broken},
		{"B61 B67 in a tool call", stream(tool), tool, io.ErrUnexpectedEOF, "cut-after-content", holdfast.Broken},
		{"B67 in a tool call by reset", then(stream(tool), reset), tool, io.ErrUnexpectedEOF, "cut-after-content", holdfast.Broken},
		{"B64 in the last frame", stream(complete[:len(complete)-14]), complete[:len(complete)-14], nil, "", holdfast.OK},
		{"B64 in the last frame by reset", then(stream(complete[:len(complete)-14]), reset), complete[:len(complete)-14], nil, "", holdfast.OK},
		{"B78 without the last blank line", stream(complete[:len(complete)-2]), complete[:len(complete)-2], nil, "", holdfast.OK},
		{"reset behind the terminal event", then(stream(complete), reset), complete, nil, "", holdfast.OK},
		{"B66 an error event", stream(begun, failing), begun + failing, nil, "", holdfast.Overloaded},
		{"B66 an error event, then reset", then(stream(begun, failing), reset), begun + failing, nil, "", holdfast.Overloaded},
		{"B80 a malformed event", stream(preamble, delta, "data: {broken\n\n", delta, stop, reason, end), preamble + delta + "data: {broken\n\n" + delta + stop + reason + end, nil, "", holdfast.OK},
		{"B74 B75 comments and ids", stream("retry: 1000\n\n", ": keepalive\n\n", "id: 7\n\n", complete), "retry: 1000\n\n: keepalive\n\nid: 7\n\n" + complete, nil, "", holdfast.OK},
		{"an open connection behind the terminal event", then(stream(complete), hang), complete, nil, "", holdfast.OK},
	} {
		bubble(t, c.name, func(t *testing.T) {
			u := serve(t, c.script)
			policy, verdicts := watched(1)
			resp := askStream(t, u.through(transport.New(policy, nil)), u.URL)
			if len(verdicts()) != 0 {
				t.Error("it was settled at its headers")
			}
			got, err := failedRead(resp)
			if got != c.got {
				t.Errorf("got %q\nwant %q", got, c.got)
			}
			if c.err == nil {
				if err.Error() != "it ended without an error" {
					t.Errorf("it ended with %v", err)
				}
			} else {
				var lost *transport.CutError
				if !errors.Is(err, c.err) || !errors.Is(err, holdfast.ErrCut) || !errors.Is(err, io.ErrUnexpectedEOF) || !errors.As(err, &lost) {
					t.Fatalf("it ended with %v", err)
				}
				if lost.Phase != transport.AfterContent || lost.Bytes != int64(len(c.got)) || lost.Events != int64(strings.Count(c.got, "data:")) {
					t.Errorf("the error tells of %v, %d events and %d bytes", lost.Phase, lost.Events, lost.Bytes)
				}
				if _, again := resp.Body.Read(make([]byte, 10)); again == nil || again.Error() != err.Error() {
					t.Errorf("read again, it ends with %v", again)
				}
			}
			u.expect(t, 1)
			if v := verdicts(); len(v) != 1 || v[0].Kind != c.kind || v[0].Rule != c.rule && c.rule != "" {
				t.Errorf("the verdicts are %+v", v)
			}
			want := holdfast.Closed
			if c.kind == holdfast.Broken || c.kind == holdfast.Overloaded {
				want = holdfast.Open
			}
			if got := policy.Breaker.State(); got != want {
				t.Errorf("the breaker is %v, want %v", got, want)
			}
		})
	}
}

func TestB26_ErrorEventsHaveTheStatusOfTheirType(t *testing.T) {
	for typ, want := range map[string]int{
		"overloaded_error": 529, "rate_limit_error": 429, "api_error": 500, "authentication_error": 401, "invalid_request_error": 400,
	} {
		bubble(t, typ, func(t *testing.T) {
			u := serve(t, stream(preamble, delta, strings.Replace(failing, "overloaded_error", typ, 1)))
			policy, verdicts := watched(1)
			text(t, askStream(t, u.through(transport.New(policy, nil)), u.URL))
			if v := verdicts(); len(v) != 1 || v[0].Status != want || v[0].Type != typ {
				t.Errorf("the verdicts are %+v", v)
			}
		})
		bubble(t, typ+" before content", func(t *testing.T) {
			u := serve(t, stream(preamble, strings.Replace(failing, "overloaded_error", typ, 1)))
			resp := askStream(t, u.through(transport.New(&holdfast.Policy{Attempts: 1}, nil)), u.URL)
			said := refusalOf(t, resp)
			if resp.StatusCode != want || said.Error.Type != typ || said.Error.Message != "Overloaded" || resp.Header.Get("X-Should-Retry") != "false" {
				t.Errorf("got %d %+v", resp.StatusCode, said)
			}
		})
	}
}

func TestB24_OverflowInsideAStreamIsNotRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := serve(t, stream("data: {\"error\":{\"code\":\"context_length_exceeded\",\"type\":\"invalid_request_error\",\"message\":\"too long\"}}\n\n"))
		began := time.Now()
		resp := askStream(t, u.through(transport.New(nil, nil)), u.URL)
		e := transport.ErrorOf(resp)
		if resp.StatusCode != 400 || e == nil || e.Verdict.Kind != holdfast.Overflow || e.Verdict.Code != "context_length_exceeded" || time.Since(began) != 0 {
			t.Errorf("got %d after %v: %v", resp.StatusCode, time.Since(began), e)
		}
		u.expect(t, 1)
	})
}

func TestIdleTimer(t *testing.T) {
	for _, c := range []struct {
		name   string
		script http.HandlerFunc
		limit  time.Duration
		want   time.Duration
	}{
		{"stalled", then(stream(preamble, delta), hang), 15 * time.Second, 15 * time.Second},
		{"B45 pings do not count", then(stream(preamble, delta), pings), 15 * time.Second, 15 * time.Second},
		{"by default", then(stream(preamble, delta), hang), 0, 90 * time.Second},
		{"content counts", then(stream(preamble, delta), rest(14*time.Second), piece(delta), flush, rest(14*time.Second), piece(delta), flush, hang), 15 * time.Second, 43 * time.Second},
	} {
		bubble(t, c.name, func(t *testing.T) {
			u := serve(t, c.script)
			policy, verdicts := watched(1)
			began := time.Now()
			resp := askStream(t, u.through(&transport.Transport{Policy: policy, Idle: c.limit}), u.URL)
			_, err := failedRead(resp)
			var timeout *transport.TimeoutError
			if !errors.As(err, &timeout) || timeout.Timer != transport.Idle || timeout.Phase != transport.AfterContent || !errors.Is(err, holdfast.ErrCut) {
				t.Errorf("it ended with %v", err)
			}
			if took := time.Since(began); took != c.want {
				t.Errorf("it took %v, want %v", took, c.want)
			}
			if v := verdicts(); len(v) != 1 || v[0].Rule != "idle-timeout" || v[0].Kind != holdfast.Broken {
				t.Errorf("the verdicts are %+v", v)
			}
			u.expect(t, 1)
		})
	}
	bubble(t, "a slow reader is no slow upstream", func(t *testing.T) {
		u := serve(t, then(stream(preamble, delta), rest(4*time.Minute), piece(delta+stop+reason+end)))
		resp := askStream(t, u.through(transport.New(nil, nil)), u.URL)
		buffer := make([]byte, len(preamble+delta))
		if _, err := io.ReadFull(resp.Body, buffer); err != nil {
			t.Fatal(err)
		}
		<-time.After(5 * time.Minute)
		if got := string(buffer) + text(t, resp); got != preamble+delta+delta+stop+reason+end {
			t.Errorf("got %q", got)
		}
	})
	bubble(t, "off", func(t *testing.T) {
		u := serve(t, then(stream(preamble, delta), rest(8*time.Minute), piece(delta+stop+reason+end)))
		resp := askStream(t, u.through(&transport.Transport{Idle: -1}), u.URL)
		expectReply(t, resp, 200, preamble+delta+delta+stop+reason+end)
	})
}

func TestPolicysTimersReachTheReaderOfAStream(t *testing.T) {
	for name, policy := range map[string]*holdfast.Policy{
		"attempt": {AttemptTimeout: 10 * time.Second}, "deadline": {Deadline: 10 * time.Second},
	} {
		bubble(t, name, func(t *testing.T) {
			u := serve(t, then(stream(preamble, delta), hang))
			resp := askStream(t, u.through(transport.New(policy, nil)), u.URL)
			began := time.Now()
			_, err := failedRead(resp)
			var lost *transport.CutError
			if !errors.As(err, &lost) || !strings.Contains(err.Error(), "time ran out") || errors.Is(err, context.Canceled) {
				t.Errorf("it ended with %v", err)
			}
			if took := time.Since(began); took != 10*time.Second {
				t.Errorf("it took %v", took)
			}
		})
	}
}

func TestReaderWhoLeavesAStream(t *testing.T) {
	for _, c := range []struct {
		name   string
		script http.HandlerFunc
		read   int
		kind   holdfast.Kind
	}{
		{"early", then(stream(preamble, delta), hang), len(preamble), holdfast.Cancelled},
		{"at once", then(stream(preamble, delta), hang), 0, holdfast.Cancelled},
		{"behind the terminal event", then(stream(complete), hang), len(complete), holdfast.OK},
		{"behind an error event", then(stream(preamble, delta, failing), hang), len(preamble + delta + failing), holdfast.Overloaded},
	} {
		bubble(t, c.name, func(t *testing.T) {
			gone := make(chan struct{})
			u := serve(t, func(w http.ResponseWriter, r *http.Request) {
				defer close(gone)
				c.script(w, r)
			})
			policy, verdicts := watched(1)
			resp := askStream(t, u.through(transport.New(policy, nil)), u.URL)
			if _, err := io.ReadFull(resp.Body, make([]byte, c.read)); err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			resp.Body.Close()
			<-gone
			if v := verdicts(); len(v) != 1 || v[0].Kind != c.kind {
				t.Errorf("the verdicts are %+v", v)
			}
			if _, err := resp.Body.Read(make([]byte, 1)); !errors.Is(err, http.ErrBodyReadAfterClose) {
				t.Errorf("read after it was closed, it ends with %v", err)
			}
		})
	}
	bubble(t, "while a read waits", func(t *testing.T) {
		u := serve(t, then(stream(preamble, delta), hang))
		policy, verdicts := watched(1)
		resp := askStream(t, u.through(transport.New(policy, nil)), u.URL)
		time.AfterFunc(time.Second, func() { resp.Body.Close() })
		if _, err := failedRead(resp); !errors.Is(err, http.ErrBodyReadAfterClose) {
			t.Errorf("the read ended with %v", err)
		}
		if v := verdicts(); len(v) != 1 || v[0].Kind != holdfast.Cancelled {
			t.Errorf("the verdicts are %+v", v)
		}
	})
	bubble(t, "by his context", func(t *testing.T) {
		u := serve(t, then(stream(preamble, delta), hang))
		policy, verdicts := watched(1)
		ctx, cancel := context.WithCancel(t.Context())
		resp, err := u.through(transport.New(policy, nil)).Do(request(t, ctx, "POST", u.URL+"/v1/messages", strings.NewReader(streamPrompt)))
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		time.AfterFunc(time.Second, cancel)
		if _, err := failedRead(resp); !errors.Is(err, context.Canceled) {
			t.Errorf("the read ended with %v", err)
		}
		if v := verdicts(); len(v) != 1 || v[0].Kind != holdfast.Cancelled || policy.Breaker.State() != holdfast.Closed {
			t.Errorf("the verdicts are %+v", v)
		}
	})
}

// Every framing and every split gives the same bytes, and each event as soon as it is there.
func TestB68_B71_B72_FramingsPassUntouched(t *testing.T) {
	crlf := strings.ReplaceAll(complete, "\n", "\r\n")
	for name, whole := range map[string]string{
		"LF": complete, "CRLF": crlf, "CR": strings.ReplaceAll(complete, "\n", "\r"), "mark": "\xEF\xBB\xBF" + complete,
	} {
		for _, size := range []int{1, 2, 3, 7, 100, len(whole)} {
			bubble(t, fmt.Sprintf("%s by %d", name, size), func(t *testing.T) {
				var pieces []string
				for rest := whole; rest != ""; {
					n := min(size, len(rest))
					pieces, rest = append(pieces, rest[:n]), rest[n:]
				}
				for _, events := range []bool{false, true} {
					u := serve(t, stream(pieces...))
					policy, verdicts := watched(1)
					tr := transport.New(policy, nil)
					tr.Events = events
					expectReply(t, askStream(t, u.through(tr), u.URL), 200, whole)
					u.expect(t, 1)
					if v := verdicts(); len(v) != 1 || v[0].Kind != holdfast.OK {
						t.Errorf("whole events %v: the verdicts are %+v", events, v)
					}
				}
			})
		}
	}
}

func TestB85_EventsComeWhenTheyAreSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const events = 60
		u := serve(t, func(w http.ResponseWriter, r *http.Request) {
			stream(start, block)(w, r)
			for range events {
				rest(250*time.Millisecond)(w, r)
				piece(": still here\n\n"+delta)(w, r)
				flush(w, r)
			}
			rest(time.Second)(w, r)
			piece(stop+reason+end)(w, r)
		})
		began := time.Now()
		resp := askStream(t, u.through(transport.New(nil, nil)), u.URL)
		buffer := make([]byte, 64<<10)
		for i := range events {
			n, err := resp.Body.Read(buffer)
			if err != nil {
				t.Fatal(err)
			}
			if at, want := time.Since(began), time.Duration(i+1)*250*time.Millisecond; at != want {
				t.Errorf("event %d came at %v, want %v", i, at, want)
			}
			if got := string(buffer[:n]); !strings.HasSuffix(got, ": still here\n\n"+delta) {
				t.Errorf("event %d is %q", i, got)
			}
		}
		text(t, resp)
	})
}

func TestB77_HugeEventsPass(t *testing.T) {
	for _, size := range []int{70 << 10, 300 << 10, 4 << 20, 20 << 20} {
		bubble(t, fmt.Sprint(size), func(t *testing.T) {
			if testing.Short() && size > 4<<20 {
				t.Skip("it takes seconds with the race detector")
			}
			whole := preamble + strings.Replace(delta, "hé", strings.Repeat("x", size), 1) + stop + reason + end
			u := serve(t, stream(whole))
			policy, verdicts := watched(1)
			resp := askStream(t, u.through(transport.New(policy, nil)), u.URL)
			if got := text(t, resp); got != whole {
				t.Errorf("got %d bytes, want %d", len(got), len(whole))
			}
			if v := verdicts(); len(v) != 1 || v[0].Kind != holdfast.OK {
				t.Errorf("the verdicts are %+v", v)
			}
		})
	}
}

// gzipped are the pieces in one member, flushed after each.
func gzipped(pieces ...string) (packed []string) {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	for i, p := range pieces {
		_, _ = w.Write([]byte(p))
		_ = w.Flush()
		if i == len(pieces)-1 {
			_ = w.Close()
		}
		packed = append(packed, b.String())
		b.Reset()
	}
	return packed
}

func encoded(encoding string, pieces ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Encoding", encoding)
		stream(pieces...)(w, r)
	}
}

// askPacked asks for a stream as a caller who unpacks for himself.
func askPacked(t *testing.T, u *upstream, tr *transport.Transport) *http.Response {
	t.Helper()
	req := request(t, t.Context(), "POST", u.URL+"/v1/messages", strings.NewReader(streamPrompt))
	req.Header.Set("Accept-Encoding", "gzip, br")
	resp, err := u.through(tr).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = resp.Body.Close() })
	return resp
}

func TestB81_B84_CompressedStreams(t *testing.T) {
	good := gzipped(preamble, delta, delta, stop, reason, end)
	cut := gzipped(preamble, delta, delta)
	for _, c := range []struct {
		name     string
		first    http.HandlerFunc
		second   []string
		requests int
		got      []string
		fails    bool
	}{
		{"whole", encoded("gzip", good...), nil, 1, good, false},
		{"an error before content", encoded("gzip", gzipped(preamble, failing)...), good, 2, good, false},
		{"cut after content", encoded("gzip", cut...), nil, 1, cut, true},
		{"cut in its bytes", encoded("gzip", good[:3]...), nil, 1, good[:3], true},
		{"not what it says", encoded("gzip", complete), nil, 1, []string{complete}, false},
		{"a kind that is not known", encoded("br", "whatever", "it is"), nil, 1, []string{"whatever", "it is"}, false},
	} {
		bubble(t, c.name, func(t *testing.T) {
			u := serve(t, c.first, encoded("gzip", c.second...))
			req := request(t, t.Context(), "POST", u.URL+"/v1/messages", strings.NewReader(streamPrompt))
			req.Header.Set("Accept-Encoding", "gzip, br")
			resp, err := u.through(transport.New(&holdfast.Policy{Dice: half}, nil)).Do(req)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			got, err := failedRead(resp)
			if want := strings.Join(c.got, ""); got != want {
				t.Errorf("got %q\nwant %q", got, want)
			}
			if errors.Is(err, holdfast.ErrCut) != c.fails {
				t.Errorf("it ended with %v", err)
			}
			u.expect(t, c.requests)
		})
		bubble(t, c.name+", unpacked by net/http", func(t *testing.T) {
			if c.name == "not what it says" || strings.HasPrefix(c.name, "a kind") {
				t.Skip("net/http knows no more than we do")
			}
			u := serve(t, c.first, encoded("gzip", c.second...))
			resp := askStream(t, u.through(transport.New(&holdfast.Policy{Dice: half}, nil)), u.URL)
			got, err := failedRead(resp)
			if errors.Is(err, holdfast.ErrCut) != c.fails || !strings.HasPrefix(complete, got) || !c.fails && got != complete {
				t.Errorf("got %q, ended with %v", got, err)
			}
			u.expect(t, c.requests)
		})
	}
	bubble(t, "each event as soon as it is there", func(t *testing.T) {
		u := serve(t, func(w http.ResponseWriter, r *http.Request) {
			encoded("gzip", good[:2]...)(w, r)
			for _, p := range good[2:] {
				rest(time.Second)(w, r)
				piece(p)(w, r)
				flush(w, r)
			}
		})
		req := request(t, t.Context(), "POST", u.URL+"/v1/messages", strings.NewReader(streamPrompt))
		req.Header.Set("Accept-Encoding", "gzip")
		resp, err := u.through(transport.New(nil, nil)).Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		began := time.Now()
		unpacked, err := gzip.NewReader(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		for i, want := range []string{preamble, delta, delta, stop, reason, end} {
			buffer := make([]byte, len(want))
			if _, err := io.ReadFull(unpacked, buffer); err != nil || string(buffer) != want {
				t.Fatalf("event %d is %q, %v", i, buffer, err)
			}
			if at, due := time.Since(began), time.Duration(max(i-1, 0))*time.Second; at != due {
				t.Errorf("event %d came at %v, want %v", i, at, due)
			}
		}
	})
}

func TestHeldBackBytesAreBounded(t *testing.T) {
	long := strings.Repeat(ping, 200)
	for _, c := range []struct {
		most int
		kept bool // a failure behind the pings is repeated
	}{{0, true}, {len(long) + 2*len(start), true}, {len(long) / 2, false}, {-1, false}} {
		bubble(t, fmt.Sprint(c.most), func(t *testing.T) {
			u := serve(t, then(stream(start, long), rest(time.Second), piece(failing)), stream(complete))
			resp := askStream(t, u.through(&transport.Transport{MaxHeld: c.most}), u.URL)
			got := text(t, resp)
			if want := start + long + failing; c.kept && got != complete || !c.kept && got != want {
				t.Errorf("with %d got %d bytes", c.most, len(got))
			}
		})
	}
}

func TestStreamsOfUnknownPathsAreHandedOverUnseen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := serve(t, stream(start, failing, start))
		policy, verdicts := watched(1)
		resp, err := u.through(transport.New(policy, nil)).Get(u.URL + "/v1/sessions/1/events")
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		expectReply(t, resp, 200, start+failing+start)
		if v := verdicts(); len(v) != 1 || v[0].Kind != holdfast.OK {
			t.Errorf("the verdicts are %+v", v)
		}
	})
}

func TestStreamsOfTheOtherDialect(t *testing.T) {
	const chunk = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"x\"}}]}\n\n"
	const role = "data: {\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\n\n"
	const finish = "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n"
	const done = "data: [DONE]\n\n"
	for _, c := range []struct {
		name     string
		first    string
		requests int
		got      string
		fails    bool
	}{
		{"whole", role + chunk + finish + done, 1, role + chunk + finish + done, false},
		{"without the last mark", role + chunk + finish, 1, role + chunk + finish, false},
		{"cut", role + chunk, 1, role + chunk, true},
		{"B93 cut behind the role", role, 2, role + chunk + finish + done, false},
	} {
		bubble(t, c.name, func(t *testing.T) {
			u := serve(t, stream(c.first), stream(role, chunk, finish, done))
			resp, err := u.through(transport.New(nil, nil)).Post(u.URL+"/v1/chat/completions", "application/json", strings.NewReader(streamPrompt))
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			got, err := failedRead(resp)
			if got != c.got || errors.Is(err, holdfast.ErrCut) != c.fails {
				t.Errorf("got %q, ended with %v", got, err)
			}
			u.expect(t, c.requests)
		})
	}
}
