package standin_test

import (
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"holdfast/standin"
)

// bench is a stand-in on an in-memory network that plays steps one after another.
type bench struct {
	*testing.T
	server *standin.Server
	client *http.Client
	url    string
}

func (b bench) ask() answered { b.Helper(); return post(b.T, b.client, b.url+anthropicPath, question) }
func (b bench) stream() answered {
	b.Helper()
	return post(b.T, b.client, b.url+anthropicPath, streamQuestion)
}

// billed returns what was billed for the newest exchange.
func (b bench) billed() [2]int {
	synctest.Wait()
	j := b.server.Journal()
	return [2]int{j[len(j)-1].Input, j[len(j)-1].Output}
}

// each plays steps on a bench of its own.
func each(steps ...standin.Step) func(t *testing.T, check func(b bench)) {
	return func(t *testing.T, check func(b bench)) {
		synctest.Test(t, func(t *testing.T) {
			s, c, url := serve(t, standin.Plan{Reply: "one two three", Steps: steps})
			check(bench{t, s, c, url})
		})
	}
}

var (
	free = [2]int{0, 0}
	paid = [2]int{3, 3} // tokens of the question and of "one two three"
)

// everyFault is the test of each fault: what a plain client sees, and what is billed.
var everyFault = map[standin.Kind]func(t *testing.T){
	standin.OK: func(t *testing.T) {
		each(standin.Step{}, standin.Step{FirstToken: time.Second, Gap: time.Minute, Ping: 700 * time.Millisecond})(t, func(b bench) {
			if got := b.ask(); got.status != 200 || !strings.Contains(got.body, `"one two three"`) || b.billed() != paid {
				b.Errorf("%+v, billed %v", got, b.billed())
			}
			began := time.Now()
			got := b.stream()
			if pings := strings.Count(got.body, "event: ping"); pings != 1+1+85+85 || time.Since(began) != time.Second+2*time.Minute {
				b.Errorf("%d pings in %v", pings, time.Since(began))
			}
		})
	},
	standin.HTTP: func(t *testing.T) {
		forms := map[standin.Form]string{
			standin.FormHTML: "<h1>503 Service Unavailable</h1>", standin.FormText: "503 Service Unavailable\n",
			standin.FormJSON: `"type":"overloaded_error"`, standin.FormEmpty: "", standin.FormOversized: strings.Repeat("overload ", 1000),
		}
		for form, want := range forms {
			each(standin.Step{Kind: standin.HTTP, Status: 503, Form: form})(t, func(b bench) {
				got := b.ask()
				if got.status != 503 || got.readErr != nil || !strings.Contains(got.body, want) || want == "" && got.body != "" || b.billed() != free {
					b.Errorf("form %s: status %d, error %v, body of %d bytes", form, got.status, got.readErr, len(got.body))
				}
				if form == standin.FormOversized && len(got.body) < 4_000_000 {
					b.Errorf("oversized: %d bytes", len(got.body))
				}
			})
		}
		each(
			standin.Step{Kind: standin.HTTP, Status: 500, Form: standin.FormTruncated},
			standin.Step{Kind: standin.HTTP, Status: 429, RetryAfter: "now+3s", Header: standin.Header{"retry-after-ms": {"1", "x"}}},
			standin.Step{Kind: standin.HTTP, Status: 529, Gzip: true},
		)(t, func(b bench) {
			if got := b.ask(); got.status != 500 || !errors.Is(got.readErr, io.ErrUnexpectedEOF) || !strings.HasPrefix(got.body, `{"type":"error"`) {
				b.Errorf("truncated: %+v", got)
			}
			got := b.ask()
			if want := time.Now().Add(3 * time.Second).UTC().Format(http.TimeFormat); got.header.Get("retry-after") != want || len(got.header.Values("retry-after-ms")) != 2 {
				b.Errorf("header %v, want the date %s and two lines", got.header, want)
			}
			if got := b.ask(); got.status != 529 || !strings.Contains(got.body, "overloaded_error") { // net/http asks for gzip and undoes it
				b.Errorf("gzip: %+v", got)
			}
		})
	},
	standin.SpendCap: func(t *testing.T) {
		for cap, want := range map[standin.Cap]string{
			"":                      "429 enforced_spend_limit_reached|429 organization_usage_limit_exceeded",
			standin.CapTier:         "429 enforced_spend_limit_reached|429 organization_usage_limit_exceeded",
			standin.CapContract:     "429 contract_spend_limit_reached|429 organization_spend_limit_exceeded",
			standin.CapOrganization: "400 You have reached your specified API usage limits|429 insufficient_quota",
			standin.CapWorkspace:    "400 You have reached your specified workspace API usage limits|429 project_spend_limit_exceeded",
			standin.CapLinked:       "402 linked_organization_spend_limit_reached|429 insufficient_quota",
			standin.CapBilling:      "402 billing_error|429 credit_balance_exhausted",
		} {
			each(standin.Step{Kind: standin.SpendCap, Cap: cap, Times: 2})(t, func(b bench) {
				for i, path := range []string{anthropicPath, openAIPath} {
					got := post(b.T, b.client, b.url+path, question)
					status, words, _ := strings.Cut(strings.Split(want, "|")[i], " ")
					if fmt.Sprint(got.status) != status || !strings.Contains(got.body, words) || got.header.Get("retry-after") != "" || b.billed() != free {
						b.Errorf("%q at %s: %d %s", cap, path, got.status, got.body)
					}
				}
			})
		}
	},
	standin.RampLimit: func(t *testing.T) {
		each(standin.Step{Kind: standin.RampLimit, Times: 2}, standin.Step{Kind: standin.RampLimit, RetryAfter: "9"})(t, func(b bench) {
			if got := b.ask(); got.status != 429 || !strings.Contains(got.body, "ramp_limit_exceeded") || got.header.Get("retry-after") != "5" {
				b.Errorf("%+v", got)
			}
			if got := post(b.T, b.client, b.url+openAIPath, question); got.status != 429 || !strings.Contains(got.body, "slow_down") {
				b.Errorf("%+v", got)
			}
			if got := b.ask(); got.header.Get("retry-after") != "9" || b.billed() != free {
				b.Errorf("%+v", got)
			}
		})
	},
	standin.Empty: func(t *testing.T) {
		each(standin.Step{Kind: standin.Empty})(t, func(b bench) {
			if got := b.stream(); got.status != 200 || got.body != "" || got.header.Get("content-length") != "0" || b.billed() != free {
				b.Errorf("%+v", got)
			}
		})
	},
	standin.HTML: func(t *testing.T) {
		each(standin.Step{Kind: standin.HTML})(t, func(b bench) {
			if got := b.ask(); got.status != 200 || !strings.HasPrefix(got.body, "<!DOCTYPE html>") || b.billed() != free {
				b.Errorf("%+v", got)
			}
		})
	},
	standin.Timeout: func(t *testing.T) {
		each(standin.Step{Kind: standin.Timeout})(t, func(b bench) {
			b.client.Timeout = time.Minute
			began := time.Now()
			if got := b.ask(); got.err == nil || time.Since(began) != time.Minute || b.billed() != paid {
				b.Errorf("%+v after %v, billed %v", got, time.Since(began), b.billed())
			}
			if e := b.server.Journal()[0]; e.ClosedBy != standin.Client || e.Sent != 0 {
				b.Errorf("%+v", e)
			}
		})
	},
	standin.Reset: func(t *testing.T) {
		each(standin.Step{Kind: standin.Reset})(t, func(b bench) {
			if got := b.ask(); !errors.Is(got.err, syscall.ECONNRESET) || b.billed() != free {
				b.Errorf("%+v, billed %v", got, b.billed())
			}
		})
	},
	standin.Lost: func(t *testing.T) {
		each(standin.Step{Kind: standin.Lost}, standin.Step{Kind: standin.Lost, How: standin.Silence})(t, func(b bench) {
			if got := b.ask(); !errors.Is(got.err, syscall.ECONNRESET) || b.billed() != paid {
				b.Errorf("%+v, billed %v", got, b.billed())
			}
			b.client.Timeout = time.Hour
			began := time.Now()
			if got := b.stream(); got.err == nil || time.Since(began) != time.Hour || b.billed() != paid {
				b.Errorf("%+v after %v, billed %v", got, time.Since(began), b.billed())
			}
		})
	},
	standin.SlowHeaders: func(t *testing.T) {
		each(standin.Step{Kind: standin.SlowHeaders}, standin.Step{Kind: standin.SlowHeaders, Gap: time.Minute})(t, func(b bench) {
			for _, gap := range []time.Duration{time.Second, time.Minute} {
				began := time.Now()
				got := b.ask()
				if took := time.Since(began); got.status != 200 || !strings.Contains(got.body, `"one two three"`) || took < 5*gap || took > 20*gap || b.billed() != paid {
					b.Errorf("%+v after %v, billed %v", got, took, b.billed())
				}
			}
		})
	},
	standin.Error: func(t *testing.T) {
		each(standin.Step{Kind: standin.Error, After: 1}, standin.Step{Kind: standin.Error, Status: 429, At: standin.First})(t, func(b bench) {
			got := b.stream()
			if diff := cmp.Diff(list(start3, delta, "error"), names(b.T, got.body)); diff != "" || !strings.Contains(got.body, "overloaded_error") || b.billed() != [2]int{3, 1} {
				b.Errorf("billed %v (-want +got):\n%s", b.billed(), diff)
			}
			if got := b.ask(); got.status != 200 || !strings.Contains(got.body, "rate_limit_error") || b.billed() != free {
				b.Errorf("%+v, billed %v", got, b.billed())
			}
		})
	},
	standin.Cut: func(t *testing.T) {
		each(
			standin.Step{Kind: standin.Cut, At: standin.Stop},
			standin.Step{Kind: standin.Cut, After: 2, How: standin.Chunk, Torn: standin.TornRune},
		)(t, func(b bench) {
			if got := b.stream(); got.readErr != nil || strings.Contains(got.body, "message_stop") || !strings.Contains(got.body, `"end_turn"`) || b.billed() != paid {
				b.Errorf("%+v, billed %v", got, b.billed())
			}
			got := b.stream()
			if last := got.body[len(got.body)-1]; !errors.Is(got.readErr, io.ErrUnexpectedEOF) || last < 0xc0 || strings.Count(got.body, "content_block_delta\"") != 3 {
				b.Errorf("the last byte is %x of %q", last, got.body)
			}
		})
	},
	standin.Stall: func(t *testing.T) {
		each(
			standin.Step{Kind: standin.Stall, After: 2, For: time.Minute, Ping: 25 * time.Second},
			standin.Step{Kind: standin.Stall, For: time.Minute},
			standin.Step{Kind: standin.Stall, After: 1},
		)(t, func(b bench) {
			began := time.Now()
			got := b.stream()
			want := list(start3, delta, delta, "ping", "ping", delta, end3)
			if diff := cmp.Diff(want, names(b.T, got.body)); diff != "" || time.Since(began) != time.Minute || b.billed() != paid {
				b.Errorf("after %v (-want +got):\n%s", time.Since(began), diff)
			}
			if got := b.ask(); got.status != 200 || time.Since(began) != 2*time.Minute {
				b.Errorf("%+v after %v", got, time.Since(began))
			}
			b.client.Timeout = time.Hour
			if got := b.stream(); got.readErr == nil || time.Since(began) != time.Hour+2*time.Minute || b.billed() != [2]int{3, 1} {
				b.Errorf("%+v after %v, billed %v", got, time.Since(began), b.billed())
			}
		})
	},
	standin.Duplicate: func(t *testing.T) {
		each(standin.Step{Kind: standin.Duplicate, After: 1}, standin.Step{Kind: standin.Duplicate, At: standin.Stop})(t, func(b bench) {
			got := b.stream()
			if diff := cmp.Diff(list(start3, delta, delta, delta, delta, end3), names(b.T, got.body)); diff != "" || strings.Count(got.body, `"two "`) != 2 {
				b.Errorf("(-want +got):\n%s", diff)
			}
			if got := b.stream(); strings.Count(got.body, "event: message_stop") != 2 {
				b.Errorf("%s", got.body)
			}
		})
	},
	standin.Malformed: func(t *testing.T) {
		each(standin.Step{Kind: standin.Malformed, After: 1, Times: 2})(t, func(b bench) {
			got := b.stream()
			if diff := cmp.Diff(list(start3, delta, delta, delta, delta, end3), names(b.T, got.body)); diff != "" || strings.Count(got.body, `"two "`) != 1 {
				b.Errorf("(-want +got):\n%s", diff)
			}
			if got := b.ask(); got.status != 200 || strings.HasSuffix(got.body, "}") && strings.Count(got.body, "{") == strings.Count(got.body, "}") || b.billed() != paid {
				b.Errorf("%+v", got)
			}
		})
	},
	standin.Nameless: func(t *testing.T) {
		each(standin.Step{Kind: standin.Nameless, At: standin.First}, standin.Step{Kind: standin.Nameless, At: standin.Stop})(t, func(b bench) {
			if got := b.stream(); strings.Contains(got.body, "event:") || !strings.Contains(got.body, `data: {"type":"message_stop"`) {
				b.Errorf("%s", got.body)
			}
			if got := b.stream(); strings.Contains(got.body, "event: message_stop") || !strings.Contains(got.body, "event: message_delta") {
				b.Errorf("%s", got.body)
			}
		})
	},
	standin.Refusal: func(t *testing.T) {
		each(standin.Step{Kind: standin.Refusal, Category: "cyber", Explanation: "no"})(t, func(b bench) {
			got := b.ask()
			for _, want := range []string{`"stop_reason":"refusal"`, `"category":"cyber"`, `"explanation":"no"`, `"content":[]`} {
				if !strings.Contains(got.body, want) || b.billed() != free {
					b.Errorf("no %s in %s, billed %v", want, got.body, b.billed())
				}
			}
		})
	},
	standin.Truncation:    stopsWith(standin.Step{Kind: standin.Truncation}, "max_tokens", "length", [2]int{3, 50}),
	standin.ContextWindow: stopsWith(standin.Step{Kind: standin.ContextWindow}, "model_context_window_exceeded", "length", [2]int{3, 2}),
	standin.StopReason:    stopsWith(standin.Step{Kind: standin.StopReason}, "reason_of_tomorrow", "reason_of_tomorrow", paid),
	standin.Pause: func(t *testing.T) {
		each(standin.Step{Kind: standin.Pause, Times: 2})(t, func(b bench) {
			for _, got := range []answered{b.ask(), b.stream()} {
				if !strings.Contains(got.body, `"stop_reason":"pause_turn"`) || !strings.Contains(got.body, `"server_tool_use"`) {
					b.Errorf("%s", got.body)
				}
			}
		})
	},
	standin.HalfTool: func(t *testing.T) {
		each(standin.Step{Kind: standin.HalfTool})(t, func(b bench) {
			tools := `"tools":[{"name":"weigh","input_schema":{"type":"object","properties":{"what":{"type":"string"}},"required":["what"]}}],"stream"`
			got := post(b.T, b.client, b.url+anthropicPath, strings.Replace(streamQuestion, `"stream"`, tools, 1))
			if !strings.Contains(got.body, `"tool_use"`) || !strings.Contains(got.body, "input_json_delta") || !strings.Contains(got.body, `"stop_reason":"max_tokens"`) {
				b.Errorf("%s", got.body)
			}
		})
	},
	standin.Refused: func(t *testing.T) { overSockets(t, standin.Refused) },
	standin.Hang:    func(t *testing.T) { overSockets(t, standin.Hang) },
}

// stopsWith tests a fault that is a stop reason, in both dialects.
func stopsWith(step standin.Step, anthropic, openAI string, billed [2]int) func(t *testing.T) {
	step.Times = 3
	return func(t *testing.T) {
		each(step)(t, func(b bench) {
			if got := b.ask(); got.status != 200 || !strings.Contains(got.body, `"stop_reason":"`+anthropic+`"`) || b.billed() != billed {
				b.Errorf("%+v, billed %v", got, b.billed())
			}
			if got := b.stream(); !strings.Contains(got.body, `"stop_reason":"`+anthropic+`"`) || !strings.Contains(got.body, "message_stop") {
				b.Errorf("%+v", got)
			}
			if got := post(b.T, b.client, b.url+openAIPath, question); !strings.Contains(got.body, `"finish_reason":"`+openAI+`"`) {
				b.Errorf("%+v", got)
			}
		})
	}
}

// overSockets tests a fault of connections: it is on, then it is over.
func overSockets(t *testing.T, kind standin.Kind) {
	s := standin.New(standin.Plan{Timeline: []standin.Incident{{Step: standin.Step{Kind: kind}}}})
	url, stop, err := s.Start("")
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := stop(); err != nil {
			t.Error(err)
		}
	}()
	c := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 200 * time.Millisecond}
	got := post(t, c, url+anthropicPath, question)
	if refused := errors.Is(got.err, syscall.ECONNREFUSED); got.err == nil || refused != (kind == standin.Refused) {
		t.Errorf("the first request: status %d, %v", got.status, got.err)
	}
	if j := s.Journal(); len(j) != 0 {
		t.Errorf("%d exchanges in the outage", len(j))
	}
	if err := s.SetPlan(standin.Plan{}); err != nil {
		t.Fatal(err)
	}
	for c.Timeout = 10 * time.Second; ; {
		if got := post(t, c, url+anthropicPath, question); got.err == nil {
			break
		} else if !errors.Is(got.err, syscall.ECONNREFUSED) && !dropped(got.err) {
			t.Fatal(got.err)
		}
	}
	if j := s.Journal(); len(j) != 1 {
		t.Errorf("%d exchanges in the end", len(j))
	}
}

// dropped reports whether the connection was closed before a reply came. One that is closed before the request has been
// written has an error of its own, which net/http does not export.
func dropped(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) || strings.Contains(err.Error(), "server closed idle connection")
}

func TestEveryFault(t *testing.T) {
	for _, f := range standin.Faults() {
		test := everyFault[f.Kind]
		if test == nil {
			t.Errorf("%s has no test", f.Kind)
			continue
		}
		t.Run(string(f.Kind), test)
		if len(f.What) == 0 || len(f.What) > 72 || len(f.Doc) < 100 && f.Kind != standin.HTML {
			t.Errorf("%s: what %q, a paragraph of %d bytes", f.Kind, f.What, len(f.Doc))
		}
	}
}

// TestFraming plays every framing of a stream; each says the same.
func TestFraming(t *testing.T) {
	t.Parallel()
	whole := list(start3, delta, delta, delta, end3)
	for _, lines := range []standin.LineEnd{"", standin.LF, standin.CR, standin.CRLF} {
		for _, writes := range []standin.Writes{"", standin.WriteEvent, standin.WriteByte, standin.WriteAll} {
			for _, between := range []standin.Between{"", standin.BetweenComment, standin.BetweenID, standin.BetweenRetry, standin.BetweenPing, standin.BetweenUnknown} {
				for _, zip := range []bool{false, true} {
					step := standin.Step{Lines: lines, Writes: writes, Between: between, Gzip: zip}
					t.Run(fmt.Sprintf("%s %s %s %v", lines, writes, between, zip), func(t *testing.T) {
						each(step)(t, func(b bench) {
							got := b.stream()
							extra := map[standin.Between]string{standin.BetweenPing: "ping", standin.BetweenUnknown: "event_of_tomorrow"}[between]
							var want []string
							for i, name := range whole {
								if i > 0 && extra != "" {
									want = append(want, extra)
								}
								want = append(want, name)
							}
							if diff := cmp.Diff(want, names(b.T, got.body)); diff != "" || got.readErr != nil {
								b.Errorf("%v (-want +got):\n%s", got.readErr, diff)
							}
							text := map[standin.Between]string{standin.BetweenComment: ": ", standin.BetweenID: "id: 3", standin.BetweenRetry: "retry: 3000"}[between]
							if ends := strings.Count(got.body, "\r"); !strings.Contains(got.body, text) || (ends > 0) != (lines == standin.CR || lines == standin.CRLF) {
								b.Errorf("%q", got.body)
							}
						})
					})
				}
			}
		}
	}
}

// TestGzipIsSentToWhoAsksForIt looks at the bytes that net/http would undo.
func TestGzipIsSentToWhoAsksForIt(t *testing.T) {
	each(standin.Step{Gzip: true, Times: -1})(t, func(b bench) {
		for _, accept := range []string{"gzip", "identity"} {
			req, err := http.NewRequestWithContext(b.Context(), "POST", b.url+anthropicPath, strings.NewReader(streamQuestion))
			if err != nil {
				b.Fatal(err)
			}
			req.Header.Set("x-api-key", "good")
			req.Header.Set("anthropic-version", "2023-06-01")
			req.Header.Set("accept-encoding", accept)
			res, err := b.client.Do(req)
			if err != nil {
				b.Fatal(err)
			}
			body, err := io.ReadAll(res.Body)
			res.Body.Close()
			if zipped := res.Header.Get("content-encoding") == "gzip"; zipped != (accept == "gzip") || err != nil {
				b.Errorf("%s: %v, %v", accept, res.Header, err)
			}
			if accept == "gzip" {
				z, err := gzip.NewReader(strings.NewReader(string(body)))
				if err != nil {
					b.Fatal(err)
				}
				body, err = io.ReadAll(z)
				if err != nil {
					b.Fatal(err)
				}
			}
			if !strings.Contains(string(body), "message_stop") {
				b.Errorf("%s: %q", accept, body)
			}
		}
	})
}
