package gateway_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"holdfast/gateway"
	"holdfast/standin"
)

// dialect is an API as the matrices ask it, and how its streams are read.
type dialect struct {
	name, path, body string
	text             string // what stands before each piece of text
	stop             string // the event that tells why the model stopped
	end, failed      string // its terminal event, its error event
}

var dialects = []dialect{
	{"anthropic", "/v1/messages", message, `"text_delta","text":"`, `"stop_reason":"end_turn"`, "message_stop", `"type":"error"`},
	{"openai", "/v1/chat/completions", chat, `"delta":{"content":"`, `"finish_reason":"stop"`, "[DONE]", `{"error":`},
}

var deliveries = map[string]gateway.Delivery{"live": gateway.Live, "whole": gateway.Whole}

// words are what a stream says, and whether it is complete or broken off. A stream is one of both.
func (d dialect) words(stream string) (text string, complete, broken bool) {
	stream = strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(stream)
	for _, part := range strings.Split(stream, d.text)[1:] {
		piece, _, _ := strings.Cut(part, `"`)
		text += piece
	}
	events := strings.Split(strings.TrimSuffix(stream, "\n\n"), "\n\n")
	last := events[len(events)-1]
	return text, strings.Contains(stream, d.stop) && strings.Contains(last, d.end), strings.Contains(last, d.failed)
}

const answerText = "one two three four five six seven eight"

// across plays steps and then good answers to a streaming call in each dialect and delivery.
func across(t *testing.T, name string, steps []standin.Step, check func(*testing.T, crossing)) {
	t.Helper()
	for _, d := range dialects {
		for word, delivery := range deliveries {
			bubble(t, name+"/"+d.name+"/"+word, func(t *testing.T) {
				h := newHouse(t)
				judge := h.upstream("api", standin.Plan{Steps: steps, Reply: answerText})
				s := one("api", "")
				s.Stream.Delivery = delivery
				if steps[0].Gzip {
					s.Base = packing{h.Client().Transport}
				}
				h.open(s)
				c := crossing{dialect: d, house: h, judge: judge, whole: delivery == gateway.Whole, packed: steps[0].Gzip}
				began := time.Now()
				c.reply = h.ask(d.path, streamed(d.body))
				c.took, c.requests = time.Since(began), len(judge.Journal())
				c.text, c.complete, c.broken = d.words(c.reply.body)
				c.record = h.seen.last(t)
				check(t, c)
				c.healthy(t)
			})
		}
	}
}

// packing asks for packed streams, which the gateway never does: some upstreams send them all the same.
type packing struct{ http.RoundTripper }

func (p packing) RoundTrip(req *http.Request) (*http.Response, error) {
	req.Header.Set("Accept-Encoding", "gzip")
	resp, err := p.RoundTripper.RoundTrip(req)
	if err == nil && resp.Header.Get("Content-Encoding") != "gzip" {
		return nil, errors.New("the stream came unpacked")
	}
	return resp, err
}

// crossing is one call of a matrix and what came of it.
type crossing struct {
	dialect
	*house
	judge            *standin.Server
	whole, packed    bool
	reply            reply
	took             time.Duration
	requests         int
	text             string
	complete, broken bool
	record           gateway.Record
}

// healthy makes one more call with the same key over the same gateway: the fault must have left nothing behind.
func (c *crossing) healthy(t *testing.T) {
	t.Helper()
	if open := c.judge.Open(); open != 0 {
		t.Errorf("%d requests are still open at the upstream", open)
	}
	for _, x := range c.judge.Journal() {
		if x.Digest != c.judge.Journal()[0].Digest {
			t.Errorf("B57 attempt %d carried another body", x.Number)
		}
	}
	if err := c.judge.SetPlan(standin.Plan{Reply: answerText, Steps: []standin.Step{{Gzip: c.packed, Times: -1}}}); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	r := c.ask(c.path, streamed(c.body))
	if text, complete, _ := c.words(r.body); r.StatusCode != 200 || !complete || text != answerText || time.Since(began) > time.Second {
		t.Errorf("a healthy call afterwards: %d after %v, %s", r.StatusCode, time.Since(began), r.body)
	}
	if n := c.gateway.InFlight(); n != 0 {
		t.Errorf("%d calls are in flight", n)
	}
}

// Each status four ways: as HTTP status, as the first event, after the preamble, after content. The first three end in
// the same decision, the fourth is never replayed silently.
func TestMatrixOfStatuses(t *testing.T) {
	for _, status := range []int{400, 401, 402, 403, 404, 409, 413, 429, 500, 503, 504, 529} {
		again := status == 409 || status == 429 || status >= 500
		for way, step := range map[string]standin.Step{
			"http":     {Kind: standin.HTTP, Status: status},
			"first":    {Kind: standin.Error, Status: status, At: standin.First},
			"preamble": {Kind: standin.Error, Status: status, At: standin.Preamble},
			"content":  {Kind: standin.Error, Status: status, After: 3},
		} {
			for _, times := range []int{1, 4} {
				step.Times = times
				across(t, fmt.Sprintf("%d %s %d times", status, way, times), []standin.Step{step}, func(t *testing.T, c crossing) {
					switch {
					case status == 409 && way != "http" && c.name == "openai": // it has no word for it
						return
					case way == "content" && !c.whole:
						if c.requests != 1 || c.reply.StatusCode != 200 || c.complete || !c.broken || c.text == "" || !strings.HasPrefix(answerText, c.text) || c.record.Outcome != gateway.Cut {
							t.Errorf("B26 B50 B66 %d requests: %d %s", c.requests, c.reply.StatusCode, c.reply.body)
						}
					case again && times == 1:
						if c.requests != 2 || !c.complete || c.text != answerText || c.record.Outcome != gateway.Answered {
							t.Errorf("%d requests: %d %s", c.requests, c.reply.StatusCode, c.reply.body)
						}
					default:
						c.expectError(t, status, way, again)
					}
					if status == 402 {
						time.Sleep(10 * time.Minute) // a credential that is spent rests
					}
				})
			}
		}
	}
}

func (c *crossing) expectError(t *testing.T, status int, way string, again bool) {
	t.Helper()
	requests := 1
	if again {
		requests = 4
	}
	r, right := c.reply, c.reply.StatusCode == status
	switch {
	case way == "http":
	case c.name == "openai": // whose types say less than its statuses
		right = r.StatusCode/100 == status/100
	case status == 503: // whose type is that of 529
		right = r.StatusCode == 529
	}
	if c.requests != requests || !right || c.complete || c.text != "" {
		t.Errorf("B92 B93 B96 %d requests: %d %s", c.requests, r.StatusCode, r.body)
	}
	if r.Header.Get("X-Should-Retry") != "false" || !strings.Contains(r.body, `"error"`) || c.record.Outcome != gateway.Failed {
		t.Errorf("the final error is %v %s, the record %v", r.Header, r.body, c.record.Outcome)
	}
}

// Each cut four ways at seven places. Before content it is asked for again; after content it shows, in live delivery;
// behind the stop reason nothing is missing.
func TestMatrixOfCuts(t *testing.T) {
	type cut struct {
		place string
		step  standin.Step
		late  bool // behind content
		done  bool // behind the stop reason
	}
	for _, how := range []standin.Ending{standin.Clean, standin.Chunk, standin.RST, standin.Silence} {
		cuts := []cut{
			{place: "after headers", step: standin.Step{At: standin.First}},
			{place: "in the first frame", step: standin.Step{At: standin.First, Torn: standin.TornFrame}},
			{place: "after message_start", step: standin.Step{At: standin.Preamble}},
			{place: "mid text", step: standin.Step{After: 3}, late: true},
			{place: "mid text in a frame", step: standin.Step{After: 3, Torn: standin.TornFrame}, late: true},
			{place: "mid text in a character", step: standin.Step{After: 3, Torn: standin.TornRune}, late: true},
			{place: "after stop_reason", step: standin.Step{At: standin.Stop}, late: true, done: true},
			{place: "mid final frame", step: standin.Step{At: standin.Stop, Torn: standin.TornFrame}, late: true, done: true},
		}
		for i := range cuts {
			cuts[i].step.Kind, cuts[i].step.How = standin.Cut, how
		}
		before := standin.Step{Kind: standin.Reset}
		if how == standin.Silence {
			before = standin.Step{Kind: standin.Timeout}
		}
		for _, cut := range append(cuts, cut{place: "before headers", step: before}) {
			across(t, string(how)+" "+cut.place, []standin.Step{cut.step}, func(t *testing.T, c crossing) {
				again := c.requests == 2 && c.complete && c.text == answerText
				all := c.requests == 1 && c.complete && c.text == answerText
				part := c.requests == 1 && !c.complete && c.broken && c.text != answerText && strings.HasPrefix(answerText, c.text)
				var right bool
				switch {
				case how == standin.RST && cut.done: // a reset overtakes what was sent before it
					right = all || again || part && !c.whole
				case how == standin.RST && cut.late:
					right = again || part && !c.whole
				case cut.done:
					right = all
				case cut.late && !c.whole, how == standin.Silence && cut.place == "after message_start" && !c.whole: // it was handed over after the hold time
					right = part
				default:
					right = again
				}
				if !right {
					t.Errorf("B60 B64 B146 %d requests, complete %v, broken %v: %d %s", c.requests, c.complete, c.broken, c.reply.StatusCode, c.reply.body)
				}
				if want := map[bool]gateway.Outcome{true: gateway.Answered, false: gateway.Cut}[c.complete]; c.record.Outcome != want {
					t.Errorf("the record says %s", c.record.Outcome)
				}
				if c.took > 3*time.Minute {
					t.Errorf("took %v", c.took)
				}
			})
		}
	}
}

// Each framing: what ends a line, how it is cut into writes, what stands between events, packed or not.
func TestMatrixOfFramings(t *testing.T) {
	bodies := map[string]string{} // of the streams that came unpacked
	for _, lines := range []standin.LineEnd{standin.LF, standin.CRLF, standin.CR} {
		for _, writes := range []standin.Writes{standin.WriteEvent, standin.WriteByte, standin.WriteAll} {
			for _, between := range []standin.Between{"", standin.BetweenComment, standin.BetweenID, standin.BetweenRetry, standin.BetweenPing, standin.BetweenUnknown} {
				for _, packed := range []bool{false, true} {
					step := standin.Step{Lines: lines, Writes: writes, Between: between, Gzip: packed}
					across(t, fmt.Sprintf("%s %s %s %v", lines, writes, between, packed), []standin.Step{step}, func(t *testing.T, c crossing) {
						x := c.judge.Journal()[0]
						if c.requests != 1 || !c.complete || c.broken || c.text != answerText || c.record.Outcome != gateway.Answered {
							t.Errorf("B68 B71 B72 B74 B75 %d requests: %d %q", c.requests, c.reply.StatusCode, c.reply.body)
						}
						if !packed && int64(len(c.reply.body)) != x.Sent {
							t.Errorf("%d bytes of %d", len(c.reply.body), x.Sent)
						}
						asSent := fmt.Sprint(lines, writes, between, c.name, c.whole)
						if !packed {
							bodies[asSent] = c.reply.body
						} else if bodies[asSent] != c.reply.body {
							t.Errorf("B81 unpacked it has %d bytes, and sent as it is %d", len(c.reply.body), len(bodies[asSent]))
						}
						if c.reply.Header.Get("Content-Encoding") != "" {
							t.Errorf("content-encoding %q", c.reply.Header.Get("Content-Encoding"))
						}
					})
				}
			}
		}
	}
}

// Each delay header on each status that may carry it.
func TestMatrixOfDelays(t *testing.T) {
	const own = 500 * time.Millisecond // the first own wait: chance is switched off
	for _, status := range []int{429, 503, 529, 524} {
		for _, c := range []struct {
			name, after string
			header      standin.Header
			wait        time.Duration // of the server; 0: the own one
			final       bool
		}{
			{name: "absent"},
			{name: "0", after: "0"},
			{name: "negative", after: "-5"},
			{name: "float", after: "3.5", wait: 3500 * time.Millisecond},
			{name: "padded", after: " 5 ", wait: 5 * time.Second},
			{name: "date", after: "now+3s", wait: 3 * time.Second},
			{name: "past date", after: "now-3s"},
			{name: "malformed", after: "soonish"},
			{name: "exponent", after: "1e3"},
			{name: "not a number", after: "NaN"},
			{name: "at the cap", after: "60", wait: 60 * time.Second},
			{name: "above the cap", after: "61", final: true},
			{name: "above 2^31 ms", after: "2147484", final: true},
			{name: "above all", after: "99999999999999999999", final: true},
			{name: "ms", header: standin.Header{"retry-after-ms": {"1500"}}, wait: 1500 * time.Millisecond},
			{name: "ms before seconds", after: "30", header: standin.Header{"retry-after-ms": {"1500"}}, wait: 1500 * time.Millisecond},
			{name: "ms above 2^31", header: standin.Header{"retry-after-ms": {"2147483648"}}, final: true},
			{name: "ms malformed", after: "2", header: standin.Header{"retry-after-ms": {"soon"}}, wait: 2 * time.Second},
		} {
			step := standin.Step{Kind: standin.HTTP, Status: status, RetryAfter: c.after, Header: c.header}
			across(t, fmt.Sprintf("%d %s", status, c.name), []standin.Step{step}, func(t *testing.T, x crossing) {
				if c.final {
					if x.requests != 1 || x.reply.StatusCode != status || x.took != 0 || x.reply.Header.Get("Retry-After") != c.after {
						t.Errorf("B01 B02 B07 %d requests in %v: %d %v", x.requests, x.took, x.reply.StatusCode, x.reply.Header)
					}
					time.Sleep(time.Minute) // B115 a throttled credential rests, but no longer than that
					return
				}
				if gaps := x.judge.Journal().Gaps(); len(gaps) != 1 || gaps[0] != c.wait+own || !x.complete {
					t.Errorf("B04 B05 B10 gaps %v, want %v", gaps, c.wait+own)
				}
				if x.record.Trace.Waited != c.wait+own {
					t.Errorf("it tells of a wait of %v", x.record.Trace.Waited)
				}
			})
		}
	}
}

// Tools are worse to cut than text: half of the arguments must never look like all of them.
func TestMatrixOfCutsInTools(t *testing.T) {
	const tools = `"tools":[{"name":"get_weather","input_schema":{"type":"object","properties":{"city":{"type":"string"},"days":{"type":"integer"}},"required":["city","days"]}}],`
	body := strings.Replace(streamed(message), "{", "{"+tools, 1)
	for _, how := range []standin.Ending{standin.Clean, standin.Chunk, standin.RST, standin.Silence} {
		for _, torn := range []standin.Tear{"", standin.TornFrame} {
			for word, delivery := range deliveries {
				bubble(t, fmt.Sprintf("B61 B67 %s %s %s", how, torn, word), func(t *testing.T) {
					h := newHouse(t)
					judge := h.upstream("api", standin.Plan{Steps: []standin.Step{{Kind: standin.Cut, After: 2, How: how, Torn: torn}}})
					s := one("api", "")
					s.Stream.Delivery = delivery
					h.open(s)
					r := h.ask("/v1/messages", body)
					n := len(judge.Journal())
					stopped := strings.Contains(r.body, `"stop_reason":"tool_use"`) && strings.HasSuffix(r.body, "data: {\"type\":\"message_stop\"}\n\n")
					broken := strings.LastIndex(r.body, "event: error\n") > strings.LastIndex(r.body, "input_json_delta")
					live := n == 1 && broken && !strings.Contains(r.body, "message_stop") && delivery == gateway.Live
					again := n == 2 && stopped && !broken && (delivery == gateway.Whole || how == standin.RST)
					if !live && !again {
						t.Errorf("%d requests: %d %s", n, r.StatusCode, r.body)
					}
					if live && how != standin.RST && !strings.Contains(r.body, "input_json_delta") {
						t.Errorf("it was cut elsewhere: %s", r.body)
					}
					synctest.Wait()
					if judge.Open() != 0 {
						t.Error("a request is still open")
					}
				})
			}
		}
	}
}
