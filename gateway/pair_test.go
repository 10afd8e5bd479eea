package gateway_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"holdfast"
	"holdfast/gateway"
	"holdfast/once"
)

const (
	toolBlock = "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":1,\"content_block\":{\"type\":\"tool_use\",\"id\":\"toolu_1\",\"name\":\"book\",\"input\":{}}}\n\n" +
		"event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":1,\"delta\":{\"type\":\"input_json_delta\",\"partial_json\":\"{\\\"order\\\":7}\"}}\n\n" +
		"event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":1}\n\n"
	toolAnswer = `{"id":"n","type":"message","role":"assistant","content":[{"type":"tool_use","id":"toolu_2","name":"book","input":{"order":7}}],"stop_reason":"tool_use","usage":{"input_tokens":9,"output_tokens":12}}`
)

// B50: a stream that breaks behind three deltas and a whole tool call is not begun again: each is seen once, then an error.
// A request beside it that fails changes nothing of it.
func TestB50_AStreamIsNotBegunAgain(t *testing.T) {
	bubble(t, "beside a 500", func(t *testing.T) {
		h := newHouse(t)
		a := h.scripted("a", parts(start, block, said("one"), said("two"), time.Second, said("three"), toolBlock, time.Second, abort{}))
		b := h.scripted("b", respond(500, `{"type":"error","error":{"type":"api_error","message":"x"}}`))
		s := gateway.Settings{Targets: []gateway.Target{target("a", ""), target("b", "")}, Policy: holdfast.Policy{Attempts: 2}, Routes: []gateway.Route{
			{Models: []string{"claude-*"}, Chain: []gateway.Entry{{Target: "a"}}}, {Chain: []gateway.Entry{{Target: "b"}}},
		}}
		h.open(s)
		beside := make(chan reply, 1)
		time.AfterFunc(500*time.Millisecond, func() { beside <- h.ask("/v1/messages", strings.Replace(message, "claude-", "other-", 1)) })
		r := h.ask("/v1/messages", streamed(message))
		delivered, failure, broke := strings.Cut(r.body, "event: error\n")
		if want := start + block + said("one") + said("two") + said("three") + toolBlock; delivered != want || !broke || strings.Contains(failure, "event: ") {
			t.Errorf("got %s", r.body)
		}
		if rec := h.seen.last(t); rec.Outcome != gateway.Cut || rec.Trace.Sent() != 1 || len(a.seen()) != 1 {
			t.Errorf("%d requests: %+v", len(a.seen()), rec)
		}
		if r := <-beside; r.StatusCode != 500 || len(b.seen()) != 2 {
			t.Errorf("beside it: %d after %d requests", r.StatusCode, len(b.seen()))
		}
	})
}

// B53: a stream delivers a whole tool call and dies, and the client asks the same turn again without a stream. The tool runs
// once, since its effect is known by what it does and not by the id of the call, and the gateway's records show the pair.
func TestB53_TheToolOfAPairRunsOnce(t *testing.T) {
	bubble(t, "pair", func(t *testing.T) {
		h := newHouse(t)
		api := h.scripted("api", parts(start, toolBlock, abort{}), respond(200, toolAnswer))
		h.open(one("api", ""))
		ledger, asked, ran := once.New(once.NewMemory(), once.Options{}), 0, 0
		act := func(name, input string) {
			asked++
			_, err := once.Do(t.Context(), ledger, once.Key(name, input), once.Effect[int]{Run: func(context.Context, string) (int, error) {
				ran++
				return ran, nil
			}})
			if err != nil {
				t.Error(err)
			}
		}
		if r := h.ask("/v1/messages", streamed(message)); !strings.Contains(r.body, toolBlock) || !strings.Contains(r.body, "event: error\n") {
			t.Fatalf("the first: %s", r.body)
		}
		act("book", `{"order":7}`) // its block is whole
		first := h.seen.last(t)
		r := h.ask("/v1/messages", message, "X-Stainless-Retry-Count: 1")
		var m struct {
			Content []struct {
				Name  string
				Input json.RawMessage
			}
		}
		if err := json.Unmarshal([]byte(r.body), &m); err != nil || len(m.Content) != 1 {
			t.Fatalf("the second: %v in %s", err, r.body)
		}
		act(m.Content[0].Name, string(m.Content[0].Input))
		second := h.seen.last(t)
		if asked != 2 || ran != 1 || len(api.seen()) != 2 {
			t.Errorf("asked to act %d times, acted %d times, %d requests", asked, ran, len(api.seen()))
		}
		if first.Outcome != gateway.Cut || !first.Stream || !first.Partial || first.Output < 4 {
			t.Errorf("the first: %+v", first)
		}
		if second.Outcome != gateway.Answered || second.Stream || second.Partial || second.Stacked != 1 || second.Output != 12 || second.Model != first.Model {
			t.Errorf("the second: %+v", second)
		}
	})
}
