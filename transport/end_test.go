package transport_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"holdfast"
	"holdfast/transport"
)

// told collects what Ended is told.
type told struct {
	mu   sync.Mutex
	ends []transport.End
}

func (e *told) hear(end transport.End) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.ends = append(e.ends, end)
}

func (e *told) once(t *testing.T) (end transport.End) {
	t.Helper()
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.ends) != 1 {
		t.Errorf("the end was told %d times", len(e.ends))
		return end
	}
	return e.ends[0]
}

func readAll(resp *http.Response) { _, _ = io.Copy(io.Discard, resp.Body) }

func TestEndOfACallIsToldOnce(t *testing.T) {
	const cached = "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":9,\"cache_read_input_tokens\":1,\"output_tokens\":1}}}\n\n"
	const counted = "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"max_tokens\"},\"usage\":{\"input_tokens\":9,\"cache_read_input_tokens\":1,\"output_tokens\":16}}\n\n"
	const refusal = `{"type":"message","role":"assistant","content":[],"stop_reason":"refusal","usage":{"input_tokens":3,"output_tokens":0}}`
	const chatAnswer = `{"object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"x"},"finish_reason":"length"}],"usage":{"prompt_tokens":12,"completion_tokens":4,"prompt_tokens_details":{"cached_tokens":2}}}`
	two := []holdfast.Target{{Name: "a", Model: "x"}, {Name: "b", Model: "y"}}
	for _, c := range []struct {
		name   string
		path   string
		policy holdfast.Policy
		script []http.HandlerFunc
		read   func(resp *http.Response)
		err    error // nil: none
		kind   holdfast.Kind
		next   holdfast.Next
		sent   int
		used   transport.Usage
		reason string
		bytes  int64
	}{
		{"an answer", "/v1/messages", holdfast.Policy{}, []http.HandlerFunc{good}, readAll, nil, holdfast.OK, holdfast.Answered, 1, transport.Usage{Input: 10, Output: 5}, "end_turn", int64(len(message))},
		{"an answer that nobody reads", "/v1/messages", holdfast.Policy{}, []http.HandlerFunc{good}, nil, nil, holdfast.OK, holdfast.Answered, 1, transport.Usage{Input: 10, Output: 5}, "end_turn", int64(len(message))},
		{"a chat answer", "/v1/chat/completions", holdfast.Policy{}, []http.HandlerFunc{respond(200, chatAnswer)}, readAll, nil, holdfast.OK, holdfast.Answered, 1, transport.Usage{Input: 10, Output: 4, CacheRead: 2}, "length", int64(len(chatAnswer))},
		{"the second attempt's", "/v1/messages", holdfast.Policy{Dice: half}, []http.HandlerFunc{respond(529, overloaded), good}, readAll, nil, holdfast.OK, holdfast.Answered, 2, transport.Usage{Input: 10, Output: 5}, "end_turn", int64(len(message))},
		{"a refusal", "/v1/messages", holdfast.Policy{}, []http.HandlerFunc{respond(200, refusal)}, readAll, nil, holdfast.Refused, holdfast.Stopped, 1, transport.Usage{Input: 3}, "refusal", int64(len(refusal))},
		{"a refusal after another", "/v1/messages", holdfast.Policy{RefusalFallback: true, Targets: two}, []http.HandlerFunc{respond(200, refusal)}, readAll, nil, holdfast.Refused, holdfast.Stopped, 2, transport.Usage{Input: 3}, "refusal", int64(len(refusal))},
		{"a refusal in a stream", "/v1/messages", holdfast.Policy{}, []http.HandlerFunc{stream(begun, stop+refused+end)}, readAll, nil, holdfast.Refused, holdfast.Stopped, 1, transport.Usage{Input: 10, Output: 3}, "refusal", int64(len(begun + stop + refused + end))},
		{"B174 a stream, whose counts replace each other", "/v1/messages", holdfast.Policy{}, []http.HandlerFunc{stream(cached, delta, counted, end)}, readAll, nil, holdfast.OK, holdfast.Answered, 1, transport.Usage{Input: 9, Output: 16, CacheRead: 1}, "max_tokens", int64(len(cached + delta + counted + end))},
		{"B174 one that ends with the output alone", "/v1/messages", holdfast.Policy{}, []http.HandlerFunc{stream(cached, delta, reason, end)}, readAll, nil, holdfast.OK, holdfast.Answered, 1, transport.Usage{Input: 9, Output: 16, CacheRead: 1}, "end_turn", int64(len(cached + delta + reason + end))},
		{"a stream that is cut", "/v1/messages", holdfast.Policy{}, []http.HandlerFunc{stream(begun)}, readAll, holdfast.ErrCut, holdfast.Broken, holdfast.Stopped, 1, transport.Usage{Input: 10, Output: 1}, "", int64(len(begun))},
		{"a stream that breaks off with an error", "/v1/messages", holdfast.Policy{}, []http.HandlerFunc{stream(begun, failing)}, readAll, nil, holdfast.Overloaded, holdfast.Stopped, 1, transport.Usage{Input: 10, Output: 1}, "", int64(len(begun + failing))},
		{"B175 a stream that its reader leaves", "/v1/messages", holdfast.Policy{}, []http.HandlerFunc{then(stream(begun), hang)}, func(resp *http.Response) {
			_, _ = io.ReadFull(resp.Body, make([]byte, len(begun)))
			_ = resp.Body.Close()
		}, holdfast.ErrCancelled, holdfast.Cancelled, holdfast.Left, 1, transport.Usage{Input: 10, Output: 1}, "", int64(len(begun))},
		{"an error that no retry helps", "/v1/messages", holdfast.Policy{}, []http.HandlerFunc{respond(400, invalid)}, readAll, io.EOF, holdfast.Terminal, holdfast.Stopped, 1, transport.Usage{}, "", int64(len(invalid))},
		{"attempts that all fail", "/v1/messages", holdfast.Policy{Attempts: 2, Dice: half}, []http.HandlerFunc{respond(529, overloaded)}, readAll, holdfast.ErrAttempts, holdfast.Overloaded, holdfast.GaveUp, 2, transport.Usage{}, "", int64(len(overloaded))},
		{"nothing sent", "/v1/messages", holdfast.Policy{Breaker: opened()}, []http.HandlerFunc{good}, readAll, holdfast.ErrOpen, holdfast.OK, 0, 0, transport.Usage{}, "", 0},
		{"an answer that is not looked at", "/v1/files", holdfast.Policy{}, []http.HandlerFunc{respond(200, "whatever")}, readAll, nil, holdfast.OK, holdfast.Answered, 1, transport.Usage{}, "", 8},
		{"an answer without a body", "/v1/files", holdfast.Policy{}, []http.HandlerFunc{respond(204, "")}, nil, nil, holdfast.OK, holdfast.Answered, 1, transport.Usage{}, "", 0},
		{"an answer that is not looked at and cut", "/v1/files", holdfast.Policy{}, []http.HandlerFunc{then(respond(200, "what", "content-length: 9"), flush, abort)}, readAll, holdfast.ErrCut, holdfast.Broken, holdfast.Stopped, 1, transport.Usage{}, "", 4},
	} {
		bubble(t, c.name, func(t *testing.T) {
			u := serve(t, c.script...)
			var ends told
			policy := c.policy
			client := u.through(&transport.Transport{Policy: &policy, Ended: ends.hear})
			resp, err := client.Post(u.URL+c.path, "application/json", strings.NewReader(streamPrompt))
			if err != nil {
				t.Fatal(err)
			}
			if c.read != nil {
				c.read(resp)
			}
			_ = resp.Body.Close()
			got := ends.once(t)
			switch {
			case c.kind == holdfast.Overloaded && c.err == nil: // the error event itself
				if got.Err == nil {
					t.Error("there is no error")
				}
			case c.err == io.EOF: // what there is to say is in the verdict
				var own *holdfast.Error
				if !errors.As(got.Err, &own) || own.Reason != nil {
					t.Errorf("the error is %v", got.Err)
				}
			case c.err == nil && got.Err != nil, !errors.Is(got.Err, c.err):
				t.Errorf("the error is %v, want %v", got.Err, c.err)
			}
			if got.Verdict.Kind != c.kind {
				t.Errorf("the verdict is %+v, want %v", got.Verdict, c.kind)
			}
			if got.Tokens != c.used || got.StopReason != c.reason || got.Bytes != c.bytes {
				t.Errorf("told of %+v, %q and %d bytes\nwant %+v, %q and %d", got.Tokens, got.StopReason, got.Bytes, c.used, c.reason, c.bytes)
			}
			broken := errors.Is(c.err, holdfast.ErrCut) || errors.Is(c.err, holdfast.ErrCancelled) || c.kind == holdfast.Overloaded && c.err == nil
			if partial := broken || c.path == "/v1/files"; got.Partial != partial || (got.Produced > 0) != (partial && c.bytes > 0) {
				t.Errorf("partial %v, with %d tokens of output", got.Partial, got.Produced)
			}
			attempts := got.Trace.Attempts()
			if len(attempts) != c.sent || c.sent > 0 && (attempts[c.sent-1].Next != c.next || attempts[c.sent-1].Verdict.Kind != c.kind) {
				t.Errorf("the trace is %s", got.Trace.Summary())
			}
		})
	}
}

func TestEndOfACallWithoutAResponseIsToldOnce(t *testing.T) {
	bubble(t, "the caller left", func(t *testing.T) {
		u := serve(t, hang)
		var ends told
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := u.through(&transport.Transport{Ended: ends.hear}).Do(request(t, ctx, "POST", u.URL+"/v1/messages", strings.NewReader(prompt)))
		if got := ends.once(t); err == nil || !errors.Is(got.Err, context.DeadlineExceeded) || got.Verdict.Kind != holdfast.Cancelled || got.Trace.Sent() != 1 {
			t.Errorf("told of %+v, returned %v", got, err)
		}
	})
	bubble(t, "its body cannot be read", func(t *testing.T) {
		u := serve(t, good)
		var ends told
		_, err := u.through(&transport.Transport{Ended: ends.hear}).Post(u.URL+"/v1/messages", "application/json", &brokenBody{})
		if got := ends.once(t); err == nil || !errors.Is(got.Err, errBody) {
			t.Errorf("told of %+v, returned %v", got, err)
		}
	})
	bubble(t, "the base panics", func(t *testing.T) {
		var ends told
		base := roundTripper(func(*http.Request) (*http.Response, error) { panic("the base") }) //nolint:forbidigo // what is tested
		func() {
			defer func() { _ = recover() }()
			ask(t, &http.Client{Transport: &transport.Transport{Base: base, Ended: ends.hear}}, "http://api.test")
			t.Error("it did not panic")
		}()
		if got := ends.once(t); got.Err == nil {
			t.Errorf("told of %+v", got)
		}
	})
	bubble(t, "errors are returned", func(t *testing.T) {
		u := serve(t, reset)
		var ends told
		_, err := u.through(&transport.Transport{Policy: &holdfast.Policy{Attempts: 1}, ReturnErrors: true, Ended: ends.hear}).Post(u.URL+"/v1/messages", "application/json", strings.NewReader(prompt))
		if got := ends.once(t); err == nil || !errors.Is(got.Err, holdfast.ErrAttempts) || got.Verdict.Kind != holdfast.Broken {
			t.Errorf("told of %+v, returned %v", got, err)
		}
	})
}

func TestEndOfAStreamThatIsLeftByContextIsToldOnce(t *testing.T) {
	bubble(t, "", func(t *testing.T) {
		u := serve(t, then(stream(begun), hang))
		var ends told
		ctx, cancel := context.WithCancel(t.Context())
		resp, err := u.through(&transport.Transport{Ended: ends.hear}).Do(request(t, ctx, "POST", u.URL+"/v1/messages", strings.NewReader(streamPrompt)))
		if err != nil {
			t.Fatal(err)
		}
		time.AfterFunc(time.Second, cancel)
		readAll(resp)
		_ = resp.Body.Close()
		if got := ends.once(t); !errors.Is(got.Err, context.Canceled) || got.Verdict.Kind != holdfast.Cancelled || got.Bytes != int64(len(begun)) {
			t.Errorf("told of %+v", got)
		}
	})
}

func TestSavedAnswerStandsIn(t *testing.T) {
	const kept = `{"kept":true}`
	header := http.Header{"Content-Type": {"application/json"}, "X-Own": {"1"}}
	saved := func() *http.Response {
		return &http.Response{StatusCode: 200, Header: header, Body: io.NopCloser(strings.NewReader(kept)), ContentLength: int64(len(kept))}
	}
	for _, c := range []struct {
		name   string
		script http.HandlerFunc
		policy holdfast.Policy
		load   bool
		served bool
		reason error
	}{
		{"all attempts failed", respond(529, overloaded), holdfast.Policy{Attempts: 2, Dice: half}, true, true, holdfast.ErrAttempts},
		{"nothing was sent", good, holdfast.Policy{Breaker: opened()}, true, true, holdfast.ErrOpen},
		{"there is none", respond(529, overloaded), holdfast.Policy{Attempts: 1}, false, false, holdfast.ErrAttempts},
		{"it would hide a mistake", respond(400, invalid), holdfast.Policy{}, true, false, nil},
	} {
		bubble(t, c.name, func(t *testing.T) {
			u := serve(t, c.script)
			var ends told
			var cause error
			tr := &transport.Transport{Policy: &c.policy, Ended: ends.hear, Load: func(err error) *http.Response {
				if cause = err; !c.load {
					return nil
				}
				return saved()
			}}
			resp := ask(t, u.through(tr), u.URL)
			got := text(t, resp)
			if (got == kept) != c.served {
				t.Errorf("got %d %s", resp.StatusCode, got)
			}
			if e := transport.ErrorOf(resp); e == nil || e.Reason != c.reason {
				t.Errorf("ErrorOf is %v, want %v", e, c.reason)
			}
			end := ends.once(t)
			if !c.served {
				return
			}
			trace, _ := transport.TraceOf(resp)
			if resp.Header.Get("Holdfast-Source") != "saved" || trace.Source != holdfast.Saved || resp.Header.Get("X-Should-Retry") != "" {
				t.Errorf("the source is %v, the headers %v", trace.Source, resp.Header)
			}
			if !errors.Is(cause, c.reason) || end.Err != nil || end.Verdict.Kind != holdfast.OK || end.Trace.Source != holdfast.Saved || end.Bytes != int64(len(kept)) {
				t.Errorf("the cause is %v, the end %+v", cause, end)
			}
			if len(header) != 2 {
				t.Errorf("the hook's own header was changed: %v", header)
			}
		})
	}
}
