package gateway_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"holdfast"
	"holdfast/gateway"
	"holdfast/internal/testnet"
	"holdfast/standin"
)

const (
	start   = "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"m\",\"type\":\"message\",\"role\":\"assistant\",\"content\":[],\"usage\":{\"input_tokens\":9,\"output_tokens\":1}}}\n\n"
	block   = "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n"
	hello   = "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"hello\"}}\n\n"
	stopped = "event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":0}\n\nevent: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":16}}\n\n"
	over    = "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"
	ping    = "event: ping\ndata: {\"type\": \"ping\"}\n\n"
)

// parts is an upstream that streams what it is told; a duration is a silence, and abort a broken connection.
func parts(all ...any) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		for _, part := range all {
			switch p := part.(type) {
			case string:
				if _, err := io.WriteString(w, p); err != nil {
					return
				}
				_ = http.NewResponseController(w).Flush()
			case time.Duration:
				select {
				case <-time.After(p):
				case <-r.Context().Done():
					return
				}
			case abort:
				time.Sleep(time.Millisecond) // a reset overtakes what is on its way
				testnet.ConnOf(r).Reset()
				return
			}
		}
	}
}

type abort struct{}

// arrivals reads a stream and notes when each line came.
func arrivals(t *testing.T, h *house, ctx context.Context) (text string, gaps []time.Duration, err error) {
	t.Helper()
	req, _ := http.NewRequestWithContext(ctx, http.MethodPost, h.url+"/v1/messages", strings.NewReader(streamed(message)))
	resp, err := h.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("status %d", resp.StatusCode)
	}
	last := time.Now()
	r := bufio.NewReader(resp.Body)
	for {
		line, err := r.ReadString('\n')
		text += line
		if gap := time.Since(last); gap > 0 {
			gaps = append(gaps, gap)
		}
		last = time.Now()
		if err == io.EOF {
			return text, gaps, nil
		}
		if err != nil {
			return text, gaps, err
		}
	}
}

func TestStreams(t *testing.T) {
	const idle = 90 * time.Second
	for _, c := range []struct {
		name     string
		upstream []any
		want     string // the whole of it, or its beginning before an error event
		error    string // in the error event
		longest  time.Duration
		outcome  gateway.Outcome
	}{
		{"whole", []any{start, block, hello, stopped, over}, start + block + hello + stopped + over, "", 0, gateway.Answered},
		{"B48 a silence before the first content", []any{start, 44 * time.Second, block + hello[:30], hello[30:] + stopped + over},
			start + ping + block + hello + stopped + over, "", 15 * time.Second, gateway.Answered},
		{"a silence in the midst", []any{start, block, hello, 50 * time.Second, stopped, over}, start + block + hello + ping + ping + ping + stopped + over, "", 15 * time.Second, gateway.Answered},
		{"no ping inside an event", []any{start, block, hello, stopped[:20], 40 * time.Second, stopped[20:], over}, start + block + hello + ping + ping + stopped + over, "", 15 * time.Second, gateway.Answered},
		{"B46 an upstream that died", []any{start, block, hello, time.Hour}, start + block + hello, "no content for 1m30s", 15 * time.Second, gateway.Cut},
		{"B45 one that only pings", []any{start, block, hello, ping, 60 * time.Second, ping, time.Hour}, start + block + hello, "no content for 1m30s", 15 * time.Second, gateway.Cut},
		{"B60 cut cleanly", []any{start, block, hello}, start + block + hello, "cut after content", 0, gateway.Cut},
		{"B61 cut in an event", []any{start, block, hello, hello[:90], abort{}}, start + block + hello, "cut after content", 0, gateway.Cut},
		{"B64 the last event torn", []any{start, block, hello, stopped, over[:40]}, start + block + hello + stopped + over, "", 0, gateway.Answered},
		{"the last event missing", []any{start, block, hello, stopped, abort{}}, start + block + hello + stopped + over, "", 0, gateway.Answered},
		{"B66 an error event", []any{start, block, hello, "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"busy\"}}\n\n"},
			start + block + hello + "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"busy\"}}\n\n", "", 0, gateway.Cut},
	} {
		bubble(t, c.name, func(t *testing.T) {
			h := newHouse(t)
			h.handle("api", parts(c.upstream...))
			h.open(one("api", ""))
			text, gaps, err := arrivals(t, h, t.Context())
			if err != nil {
				t.Fatal(err)
			}
			body := text
			if c.error != "" {
				at := strings.LastIndex(text, "event: error\n")
				if at < 0 || !strings.Contains(text[at:], c.error) {
					t.Fatalf("it ends with %q", text[max(0, len(text)-300):])
				}
				body = strings.TrimRight(strings.ReplaceAll(text[:at], ping, ""), " ")
				if pings := strings.Count(text, ping); pings > int(idle/(15*time.Second))+2 {
					t.Errorf("%d pings for an upstream that was dead for %v", pings, idle)
				}
			}
			if body != c.want {
				t.Errorf("got\n%s\nwant\n%s", body, c.want)
			}
			for _, gap := range gaps {
				if gap > max(c.longest, time.Millisecond) {
					t.Errorf("a silence of %v", gap)
				}
			}
			if rec := h.seen.last(t); rec.Outcome != c.outcome || !rec.Stream {
				t.Errorf("the record is %+v", rec)
			} else if c.outcome == gateway.Answered && (rec.Input != 9 || rec.Output != 16 || rec.StopReason != "end_turn") {
				t.Errorf("B174 usage %d %d %q", rec.Input, rec.Output, rec.StopReason)
			}
		})
	}
}

func TestWholeDeliveryRescuesCuts(t *testing.T) {
	for name, first := range map[string][]any{
		"cut":         {start, block, hello, abort{}},
		"error event": {start, block, hello, "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"busy\"}}\n\n"},
		"silence":     {start, block, hello, time.Hour},
	} {
		bubble(t, name, func(t *testing.T) {
			h := newHouse(t)
			n := 0
			h.handle("api", func(w http.ResponseWriter, r *http.Request) {
				if n++; n == 1 {
					parts(first...)(w, r)
					return
				}
				parts(start, block, hello, stopped, over)(w, r)
			})
			s := one("api", "")
			s.Stream.Delivery = gateway.Whole
			h.open(s)
			r := h.ask("/v1/messages", streamed(message))
			if r.StatusCode != 200 || r.body != start+block+hello+stopped+over || n != 2 {
				t.Errorf("got %d after %d attempts: %s", r.StatusCode, n, r.body)
			}
		})
	}
}

func TestCallersWhoLeave(t *testing.T) {
	for name, c := range map[string]struct {
		upstream []any
		body     string
	}{
		"B133 before an answer":       {[]any{20 * time.Second}, message},
		"B134 before the content":     {[]any{start, 20 * time.Second}, streamed(message)},
		"B175 in the midst":           {[]any{start, block, hello, hello, 20 * time.Second}, streamed(message)},
		"B133 B39 B40 while it waits": nil2,
	} {
		bubble(t, name, func(t *testing.T) {
			h := newHouse(t)
			var gone time.Duration
			began, n := time.Now(), 0
			h.handle("api", func(w http.ResponseWriter, r *http.Request) {
				n++
				if c.upstream == nil {
					w.Header().Set("Retry-After", "10")
					w.WriteHeader(429)
					return
				}
				parts(c.upstream...)(w, r)
				gone = time.Since(began)
			})
			h.open(one("api", ""))
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			r := h.do(ctx, http.MethodPost, "/v1/messages", c.body)
			if r.err == nil {
				t.Error("the caller did not leave")
			}
			time.Sleep(time.Second)
			rec := h.seen.last(t)
			if rec.Outcome != gateway.Left || rec.Status != 499 || n != 1 {
				t.Errorf("B139 after %d attempts the record is %+v", n, rec)
			}
			if c.upstream != nil && gone != time.Second {
				t.Errorf("the upstream saw him leave after %v", gone)
			}
			if strings.HasPrefix(name, "B175") && (rec.Input != 9 || rec.Output != 4 || !rec.Partial || rec.Bytes == 0) {
				t.Errorf("the record is %+v", rec)
			}
		})
	}
}

var nil2 = struct {
	upstream []any
	body     string
}{nil, message}

func TestB140_DrainLetsStreamsEnd(t *testing.T) {
	for _, c := range []struct {
		grace   time.Duration
		ends    time.Duration
		outcome gateway.Outcome
	}{
		{90 * time.Second, 60 * time.Second, gateway.Answered},
		{10 * time.Second, 15 * time.Second, gateway.Cut},
	} {
		bubble(t, fmt.Sprint(c.grace), func(t *testing.T) {
			h := newHouse(t)
			h.handle("api", parts(start, block, hello, 30*time.Second, hello, 30*time.Second, stopped, over))
			seen := h.seen
			g, err := gateway.New(gateway.Settings{Targets: []gateway.Target{target("api", "")}, Base: h.Network.Client().Transport, Observer: seen, Policy: holdfast.Policy{Dice: func() float64 { return 1 }}})
			if err != nil {
				t.Fatal(err)
			}
			ctx, stop := context.WithCancel(t.Context())
			served := make(chan error, 1)
			go func() { served <- g.Serve(ctx, h.Listen("gateway.test:80"), nil, c.grace) }()
			h.url, h.gateway = "http://gateway.test", g
			synctest.Wait()
			began := time.Now()
			time.AfterFunc(5*time.Second, stop)
			text, _, err := arrivals(t, h, t.Context())
			if took := time.Since(began); took != c.ends || err != nil {
				t.Errorf("the stream ended after %v with %v", took, err)
			}
			if whole := strings.HasSuffix(text, over); whole != (c.outcome == gateway.Answered) || !whole && !strings.Contains(text, "event: error\n") {
				t.Errorf("it ended with %q", text[max(0, len(text)-200):])
			}
			if err := <-served; err != nil {
				t.Errorf("Serve returned %v", err)
			}
			if rec := seen.last(t); rec.Outcome != c.outcome {
				t.Errorf("the record is %+v", rec)
			}
			if r := h.ask("/v1/messages", message); r.err == nil {
				t.Errorf("a new call was taken: %d", r.StatusCode)
			}
		})
	}
}

func TestReloadDropsNoCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t)
		h.handle("api", parts(start, block, hello, 10*time.Second, stopped, over))
		h.upstream("other", standin.Plan{})
		h.open(one("api", ""))
		done := make(chan reply, 1)
		go func() { done <- h.ask("/v1/messages", streamed(message)) }()
		time.Sleep(time.Second)
		bad := gateway.Settings{Targets: []gateway.Target{{Name: "x", URL: "nowhere"}}, Routes: []gateway.Route{{Chain: []gateway.Entry{{Target: "y"}}}}}
		if err := h.gateway.Reload(bad); err == nil || !strings.Contains(err.Error(), "http://") || !strings.Contains(err.Error(), `"y"`) {
			t.Errorf("bad settings: %v", err)
		}
		if err := h.gateway.Reload(gateway.Settings{Targets: []gateway.Target{target("other", "")}, Base: h.Network.Client().Transport}); err != nil {
			t.Fatal(err)
		}
		if r := h.ask("/v1/messages", message); r.Header.Get("Holdfast-Target") != "other" {
			t.Errorf("after the reload %q answered: %d %s", r.Header.Get("Holdfast-Target"), r.StatusCode, r.body)
		}
		if r := <-done; r.body != start+block+hello+stopped+over {
			t.Errorf("the call under way got %q, %v", r.body, r.err)
		}
	})
}

func TestCallerChoosesDelivery(t *testing.T) {
	for asked, want := range map[string]int{"": 1, "live": 1, "whole": 2, "other": 1} {
		bubble(t, asked, func(t *testing.T) {
			h := newHouse(t)
			judge := h.upstream("api", standin.Plan{Steps: []standin.Step{{Kind: standin.Cut, After: 2}}})
			h.open(one("api", ""))
			r := h.ask("/v1/messages", streamed(message), "Holdfast-Delivery: "+asked)
			if n := len(judge.Journal()); n != want {
				t.Errorf("the upstream was asked %d times, want %d: %s", n, want, r.body)
			}
		})
	}
}

// The events of a session are no answer of a model: they come for as long as somebody listens.
func TestEventsOfASessionOutliveTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t)
		h.handle("api", parts("data: 1\n\n", 3*time.Hour, "data: 2\n\n"))
		h.open(one("api", ""))
		r := h.do(t.Context(), http.MethodGet, "/v1/sessions/s1/events", "", "Accept: text/event-stream")
		if got := strings.ReplaceAll(strings.ReplaceAll(r.body, ping, ""), ": ping\n\n", ""); got != "data: 1\n\ndata: 2\n\n" || r.err != nil {
			t.Errorf("got %q, %v", got, r.err)
		}
		if rec := h.seen.last(t); rec.Outcome != gateway.Answered {
			t.Errorf("the record is %+v", rec)
		}
	})
}
