package gateway_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"holdfast"
	"holdfast/gateway"
)

func said(text string) string { return strings.Replace(hello, "hello", text, 1) }

const chatPiece = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"thirty characters of an answer.\"}}]}\n\n"

// B175: the provider bills what it has produced, whoever breaks the answer off. The record has the input and at least the
// output that went out, and says that nobody has counted it to its end.
func TestB175_WhatBrokeOffIsCounted(t *testing.T) {
	long := said(strings.Repeat("x", 300))
	fourth := func(body string) int { return (len(body) + 3) / 4 }
	for name, c := range map[string]struct {
		path, body    string
		upstream      http.HandlerFunc
		leaves        bool
		outcome       gateway.Outcome
		input, output int
		partial       bool
	}{
		"left after six deltas":              {"", "", parts(start, block, hello, hello, hello, hello, hello, hello, time.Hour), true, gateway.Left, 9, 10, true},
		"left after a long delta":            {"", "", parts(start, block, long, time.Hour), true, gateway.Left, 9, 100, true},
		"left after many short ones":         {"", "", parts(start, block, strings.Repeat(said("a"), 50), time.Hour), true, gateway.Left, 9, 50, true},
		"left before the content":            {"", "", parts(start, time.Hour), true, gateway.Left, 9, 1, true},
		"left before anything came":          {"", streamed(message), hang, true, gateway.Left, fourth(streamed(message)), 0, true},
		"left before anything, not streamed": {"", message, hang, true, gateway.Left, fourth(message), 0, true},
		"left while it waits":                {"", message, respond(429, "{}", "Retry-After: 10"), true, gateway.Left, 0, 0, false},
		"left while tokens are counted":      {"/v1/messages/count_tokens", message, hang, true, gateway.Left, 0, 0, false},
		"reset":                              {"", "", parts(start, block, long, abort{}), false, gateway.Cut, 9, 100, true},
		"cut":                                {"", "", parts(start, block, long), false, gateway.Cut, 9, 100, true},
		"an error event":                     {"", "", parts(start, block, long, "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"x\"}}\n\n"), false, gateway.Cut, 9, 100, true},
		"silence":                            {"", "", parts(start, block, long, time.Hour), false, gateway.Cut, 9, 100, true},
		"whole":                              {"", "", parts(fine), false, gateway.Answered, 9, 16, false},
		"chat, left":                         {"/v1/chat/completions", streamed(chat), parts(chatPiece, chatPiece, time.Hour), true, gateway.Left, fourth(streamed(chat)), 21, true},
		"chat, whole without a count":        {"/v1/chat/completions", streamed(chat), parts(fineChunks), false, gateway.Answered, 0, 0, false},
	} {
		bubble(t, name, func(t *testing.T) {
			if c.path == "" {
				c.path = "/v1/messages"
			}
			if c.body == "" {
				c.body = streamed(message)
			}
			h := newHouse(t)
			h.handle("api", c.upstream)
			var log lines
			s := one("api", "")
			s.Log, s.Stream.Hold, s.Policy = log.log(), 100*time.Millisecond, holdfast.Policy{Attempts: 2}
			h.open(s)
			ctx, cancel := t.Context(), context.CancelFunc(func() {})
			if c.leaves {
				ctx, cancel = context.WithTimeout(ctx, time.Second)
			}
			defer cancel()
			h.do(ctx, http.MethodPost, c.path, c.body)
			r := h.seen.last(t)
			if r.Outcome != c.outcome || r.Input != c.input || r.Output != c.output || r.Partial != c.partial {
				t.Errorf("%s: input %d, output %d, partial %v; want %s: %d, %d, %v", r.Outcome, r.Input, r.Output, r.Partial, c.outcome, c.input, c.output, c.partial)
			}
			status, call := page[gateway.CallReport](t, h.gateway, "/api/calls/"+r.ID)
			if status != 200 || call.InputTokens != c.input || call.OutputTokens != c.output || call.Partial != c.partial {
				t.Errorf("the page says %d: %d, %d, %v", status, call.InputTokens, call.OutputTokens, call.Partial)
			}
			message := map[gateway.Outcome]string{gateway.Left: "caller left", gateway.Cut: "call cut", gateway.Answered: "call answered"}[c.outcome]
			if l := log.of(t, message); len(l) != 1 || (l[0]["partial"] == true) != c.partial {
				t.Errorf("logged %v", l)
			}
		})
	}
}
