package tape_test

import (
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"holdfast/standin"
	"holdfast/standin/internal/tape"
)

// parts lists the events of a playback with their parts.
func parts(p tape.Playback) (list []string) {
	for _, e := range p.Events {
		name := e.Name
		if name == "" {
			name = string(e.Text[:min(len(e.Text), 6)])
		}
		if e.Torn {
			name += " (torn)"
		}
		list = append(list, fmt.Sprintf("%d %s", e.Part, name))
	}
	return list
}

const responsesStream = "event: response.created\ndata: {\"type\":\"response.created\",\"response\":{}}\n\n" +
	"event: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\",\"delta\":\"a\"}\n\n" +
	"event: response.output_text.done\ndata: {\"type\":\"response.output_text.done\",\"text\":\"a\"}\n\n" +
	"event: response.completed\ndata: {\"type\":\"response.completed\",\"response\":{\"status\":\"completed\",\"usage\":{\"input_tokens\":3,\"output_tokens\":1}}}\n\n"

const thinkingStream = ": hello\n\n" +
	"event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":5,\"output_tokens\":1}}}\n\n" +
	"event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"thinking\",\"thinking\":\"\"}}\n\n" +
	"event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"thinking_delta\",\"thinking\":\"hm\"}}\n\n" +
	"event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":0}\n\n" +
	"event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":1,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n" +
	"event: ping\ndata: {\"type\":\"ping\"}\n\n" +
	"event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":1,\"delta\":{\"type\":\"text_delta\",\"text\":\"yes\"}}\n\n" +
	"event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":1}\n\n" +
	"event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":9}}\n\n" +
	"event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"

func TestEventsHaveTheirParts(t *testing.T) {
	untilStop, _, _ := strings.Cut(thinkingStream, "event: content_block_stop")
	chat := func(delta, reason string) string {
		return fmt.Sprintf("data: {\"choices\":[{\"index\":0,\"delta\":%s,\"finish_reason\":%s}]}\n\n", delta, reason)
	}
	tests := []struct {
		name, stream  string
		want          []string
		input, output int
	}{
		{"thinking and text", thinkingStream, []string{
			"0 message_start", "0 content_block_start", "1 content_block_delta", "0 content_block_stop", "0 content_block_start", "0 ping",
			"1 content_block_delta", "2 content_block_stop", "2 message_delta", "3 message_stop",
		}, 5, 9},
		{"CRLF", strings.ReplaceAll(thinkingStream[:300], "\n", "\r\n"), []string{"0 message_start", "0 content_block_start", "0 content_block_delta (torn)"}, 5, 1},
		{"error", untilStop + "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"x\"}}\n\n",
			[]string{"0 message_start", "0 content_block_start", "1 content_block_delta", "3 error"}, 5, 1},
		{"chat", chat(`{"role":"assistant","content":""}`, "null") + chat(`{"content":"a"}`, "null") + chat("{}", `"stop"`) +
			"data: {\"choices\":[],\"usage\":{\"prompt_tokens\":4,\"completion_tokens\":2}}\n\ndata: [DONE]\n\n",
			[]string{`0 {"choi`, `1 {"choi`, `2 {"choi`, `2 {"choi`, "3 [DONE]"}, 4, 2},
		{"responses", responsesStream, []string{"0 response.created", "1 response.output_text.delta", "2 response.output_text.done", "3 response.completed"}, 3, 1},
		{"comment at the end", "data: {}\n\n: bye", []string{"0 {}", "0  (torn)"}, 0, 0},
		{"nothing", "", nil, 0, 0},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := record(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
					w.Header().Set("content-type", "text/event-stream; charset=utf-8")
					_, _ = io.WriteString(w, test.stream)
				}), tape.Options{})
				s.post(s.url, "/v1/messages", streamQuestion)
				p, ok := s.tape().Exchanges[0].PlayEvents(1)
				if diff := cmp.Diff(test.want, parts(p)); diff != "" || !ok {
					t.Errorf("ok %v, parts:\n%s", ok, diff)
				}
				if p.Tokens.Input != test.input || p.Tokens.Output != test.output {
					t.Errorf("tokens %+v", p.Tokens)
				}
				var all strings.Builder
				for _, e := range p.Events {
					all.Write(e.Data)
				}
				if all.String() != test.stream {
					t.Errorf("joined %q", all.String())
				}
			})
		})
	}
}

// An event is played when its last byte came, in plain text and out of gzip.
func TestEventsKeepTheirTimes(t *testing.T) {
	pieces := strings.SplitAfter(thinkingStream, "\n\n")
	for _, coding := range []string{"", "gzip"} {
		for _, cut := range []bool{false, true} {
			t.Run(fmt.Sprintf("coding %q cut %v", coding, cut), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := record(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
						w.Header().Set("content-type", "text/event-stream")
						var out io.Writer = w
						flush := http.NewResponseController(w).Flush
						if coding == "gzip" {
							w.Header().Set("content-encoding", "gzip")
							z := gzip.NewWriter(w)
							out, flush = z, func() error { _ = z.Flush(); return http.NewResponseController(w).Flush() }
							defer func() {
								if !cut {
									_ = z.Close()
								}
							}()
						}
						for _, piece := range pieces[:len(pieces)-1] {
							half := len(piece) / 2
							_, _ = io.WriteString(out, piece[:half])
							_ = flush()
							time.Sleep(time.Second)
							_, _ = io.WriteString(out, piece[half:])
							_ = flush()
							time.Sleep(time.Second)
						}
						if cut {
							panic(http.ErrAbortHandler)
						}
					}), tape.Options{})
					recorded, _ := s.post(s.url, "/v1/messages", streamQuestion, "accept-encoding", coding)
					played := s.tape()
					x := played.Exchanges[0]
					p, ok := x.PlayEvents(1)
					if !ok || len(p.Events) != len(pieces)-2 { // the comment belongs to the event behind it
						t.Fatalf("ok %v, %d events", ok, len(p.Events))
					}
					at, text := time.Duration(0), ""
					for i, e := range p.Events {
						at += e.Wait
						if want := time.Duration(2*i+3) * time.Second; at != want {
							t.Errorf("event %d comes at %v, want %v", i, at, want)
						}
						text += string(e.Data)
					}
					if text != thinkingStream || p.Header.Get("content-encoding") != "" || at+p.After != x.Ended {
						t.Errorf("text %q, header %v, end after %v of %v", text, p.Header, at+p.After, x.Ended)
					}
					if string(x.Reply()) != recorded.Body {
						t.Error("the recording is not what the client got")
					}
					byEvent, _ := s.post(s.play(played, 1, true), "/v1/messages", streamQuestion)
					if byEvent.Body != thinkingStream || byEvent.Err != recorded.Err || byEvent.Ended != recorded.Ended {
						t.Errorf("played by event: %+v", byEvent)
					}
				})
			})
		}
	}
}

func TestEventsOnlyWhereThereAreSome(t *testing.T) {
	for _, header := range []http.Header{
		{"Content-Type": {"application/json"}},
		{"Content-Type": {"text/event-stream"}, "Content-Encoding": {"br"}},
		{"Content-Type": {"text/event-stream"}, "Content-Encoding": {"gzip"}}, // and it is none
	} {
		x := &tape.Exchange{Status: 200, Header: header, Frames: []tape.Frame{{Data: []byte("data: 1\n\nand more that is no gzip")}}, End: tape.Complete}
		if p, ok := x.PlayEvents(1); ok {
			t.Errorf("%v: events %v", header, parts(p))
		}
		if p := x.Play(1); len(p.Pieces) != 1 || p.Tokens.Input != 0 {
			t.Errorf("%v: %+v", header, p)
		}
	}
}

func TestTokensOfAJSONReply(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := record(t, standin.New(standin.Plan{}), tape.Options{})
		s.post(s.url, "/v1/messages", question)
		if p := s.tape().Exchanges[0].Play(1); p.Tokens.Input == 0 || p.Tokens.Output == 0 {
			t.Errorf("tokens %+v", p.Tokens)
		}
	})
}

// What was a minute ahead when it was recorded is a minute ahead when it is played.
func TestTimesInHeadersMoveWithTheReplay(t *testing.T) {
	arrived := time.Date(2026, 11, 30, 12, 0, 0, 250e6, time.UTC)
	x := &tape.Exchange{Status: 429, Arrived: arrived, End: tape.Complete, Header: http.Header{
		"Date":                                   {"Mon, 30 Nov 2026 12:00:00 GMT"},
		"Retry-After":                            {"Mon, 30 Nov 2026 12:01:00 GMT", "7"},
		"Anthropic-Ratelimit-Requests-Reset":     {"2026-11-30T12:00:30Z"},
		"Anthropic-Ratelimit-Requests-Remaining": {"3"},
		"X-Ratelimit-Reset-Requests":             {"1m3s"},
		"Request-Id":                             {"2026-11-30T12:00:30Z"},
	}}
	want := http.Header{
		"Date":                                   {"Tue, 01 Dec 2026 12:00:05 GMT"},
		"Retry-After":                            {"Tue, 01 Dec 2026 12:01:05 GMT", "7"},
		"Anthropic-Ratelimit-Requests-Reset":     {"2026-12-01T12:00:35Z"},
		"Anthropic-Ratelimit-Requests-Remaining": {"3"},
		"X-Ratelimit-Reset-Requests":             {"1m3s"},
		"Request-Id":                             {"2026-11-30T12:00:30Z"},
	}
	if diff := cmp.Diff(want, x.Play(1).HeaderAt(arrived.Add(24*time.Hour+5*time.Second))); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(x.Header, x.Play(1).HeaderAt(arrived)); diff != "" {
		t.Errorf("at the same time: %s", diff)
	}
}
