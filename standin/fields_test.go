package standin_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http/httptest"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"holdfast/internal/testnet"
	"holdfast/standin"
)

// value is one a field can have, together with the others that it needs to mean anything.
type value struct{ without, with standin.Step }

// values are, for each field of a Step by its name in a document, a step without and one with
// it. The kind is put in.
var values = map[string][]value{
	"times":             {{standin.Step{}, standin.Step{Times: 2}}},
	"delay":             {{standin.Step{}, standin.Step{Delay: time.Minute}}},
	"header":            {{standin.Step{}, standin.Step{Header: standin.Header{"x-field": {"a", "b"}}}}},
	"request_id":        {{standin.Step{}, standin.Step{RequestID: "req_field"}}},
	"status":            {{standin.Step{Status: 500}, standin.Step{Status: 429}}},
	"retry_after":       {{standin.Step{}, standin.Step{RetryAfter: "17"}}},
	"type":              {{standin.Step{}, standin.Step{Type: "type_of_tomorrow"}}},
	"code":              {{standin.Step{}, standin.Step{Code: "code_of_tomorrow"}}},
	"message":           {{standin.Step{}, standin.Step{Message: "a message"}}},
	"form":              {{standin.Step{}, standin.Step{Form: standin.FormHTML}}, {standin.Step{}, standin.Step{Form: standin.FormTruncated, Gzip: true}}},
	"body":              {{standin.Step{}, standin.Step{Body: "a body"}}},
	"content_type":      {{standin.Step{}, standin.Step{ContentType: "text/odd"}}, {standin.Step{Form: standin.FormText}, standin.Step{Form: standin.FormText, ContentType: "text/odd"}}},
	"cap":               {{standin.Step{}, standin.Step{Cap: standin.CapBilling}}},
	"category":          {{standin.Step{}, standin.Step{Category: "cyber"}}},
	"explanation":       {{standin.Step{}, standin.Step{Explanation: "because"}}},
	"recommended_model": {{standin.Step{}, standin.Step{RecommendedModel: "claude-haiku-5-5"}}},
	"declines":          {{standin.Step{}, standin.Step{Declines: 2}}},
	"reason":            {{standin.Step{}, standin.Step{Reason: "reason_of_a_test"}}},
	"at":                {{standin.Step{At: standin.Preamble}, standin.Step{At: standin.Stop}}},
	"after":             {{standin.Step{}, standin.Step{After: 2}}},
	"how":               {{standin.Step{}, standin.Step{How: standin.Silence}}},
	"torn":              {{standin.Step{}, standin.Step{Torn: standin.TornFrame}}},
	"for":               {{standin.Step{For: time.Minute}, standin.Step{For: time.Hour}}},
	"ping":              {{standin.Step{FirstToken: time.Minute}, standin.Step{FirstToken: time.Minute, Ping: 25 * time.Second}}},
	"first_token":       {{standin.Step{}, standin.Step{FirstToken: time.Minute}}},
	"gap":               {{standin.Step{}, standin.Step{Gap: time.Minute}}},
	"lines":             {{standin.Step{}, standin.Step{Lines: standin.CRLF}}},
	"writes":            {{standin.Step{}, standin.Step{Writes: standin.WriteByte}}},
	"between":           {{standin.Step{}, standin.Step{Between: standin.BetweenComment}}},
	"gzip":              {{standin.Step{}, standin.Step{Gzip: true}}},
}

// unseen are fields that a kind takes and nobody can see there, with the reason.
var unseen = map[string]string{
	"refusal declines": "it takes a request that brings fallbacks",
	"timeout header":   "no header is ever sent", "timeout request_id": "for the journal: no header is ever sent",
	"timeout delay": "a delay before a silence without end is silence",
	"reset header":  "no header is ever sent", "reset request_id": "for the journal: no header is ever sent",
	"lost header": "no header is ever sent", "lost request_id": "for the journal: no header is ever sent",
}

// ofStreams are fields about the bytes of a stream, which an answer in one piece does not have.
var ofStreams = []string{"ping", "lines", "writes", "between", "torn", "at", "after"}

// wire is what a client sees of a connection, with the bytes that came at each time.
type wire struct {
	times []time.Duration
	bytes []string
	err   string
	took  time.Duration
}

var dateLine = regexp.MustCompile(`Date: .*\r\n`)

func (w *wire) add(at time.Duration, b []byte) {
	if last := len(w.times) - 1; last >= 0 && w.times[last] == at {
		w.bytes[last] += string(b)
		return
	}
	w.times, w.bytes = append(w.times, at), append(w.bytes, dateLine.ReplaceAllString(string(b), ""))
}

// seen returns all that a client sees of so many replies to a question, each asked on a connection of its own that the
// client leaves after a day. The date is that of the fake clock, and says nothing.
func seen(t *testing.T, plan standin.Plan, o operation, times int) (all []wire) {
	t.Helper()
	n := testnet.New()
	s := standin.New(plan)
	n.Serve(t, "api.test:80", s)
	defer s.Close()
	for range times {
		conn, err := n.Dial(t.Context(), "tcp", "api.test:80")
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		if err := conn.SetDeadline(began.Add(24 * time.Hour)); err != nil {
			t.Fatal(err)
		}
		_, err = fmt.Fprintf(conn, "%s %s HTTP/1.1\r\nhost: api.test\r\nconnection: close\r\nx-api-key: good\r\nanthropic-version: 2023-06-01\r\naccept-encoding: gzip\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%s",
			o.method, o.path, len(o.body), o.body)
		if err != nil {
			t.Fatal(err)
		}
		var got wire
		var netErr net.Error
		for buffer := make([]byte, 1<<16); ; {
			n, err := conn.Read(buffer)
			if n > 0 {
				got.add(time.Since(began), buffer[:n])
			}
			if err == nil {
				continue
			}
			if errors.As(err, &netErr) && netErr.Timeout() {
				err = errors.New("the client left")
			}
			if err != io.EOF {
				got.err = err.Error()
			}
			break
		}
		got.took = time.Since(began)
		_ = conn.Close()
		all = append(all, got)
		synctest.Wait()
	}
	return all
}

// TestEveryFieldThatAFaultTakesChangesWhatAClientSees plays every field of every kind once
// without and once with it, to a client that looks at every byte and the time at which it comes.
func TestEveryFieldThatAFaultTakesChangesWhatAClientSees(t *testing.T) {
	t.Parallel()
	recording := recordFrom(t, standin.Plan{Reply: "four five six"}, operations[0], operations[1])
	for _, bench := range []struct {
		name   string
		o      operation
		tape   *standin.Tape
		unseen func(kind standin.Kind, field string) bool
	}{
		{"stream", operations[1], nil, func(standin.Kind, string) bool { return false }},
		{"whole", operations[0], nil, func(_ standin.Kind, field string) bool { return slices.Contains(ofStreams, field) }},
		{"stream on tape", operations[1], recording, func(standin.Kind, string) bool { return false }},
		{"whole on tape", operations[0], recording, func(k standin.Kind, field string) bool {
			// The recording has come in one piece.
			return slices.Contains(ofStreams, field) || field == "gap" && k != standin.SlowHeaders && !shapes(k)
		}},
	} {
		for _, f := range standin.Faults() {
			if f.Kind == standin.Refused || f.Kind == standin.Hang {
				continue // no request, no step
			}
			for _, field := range slices.Concat([]string{"times", "delay", "header", "request_id"}, f.Fields) {
				if values[field] == nil {
					t.Errorf("there is no value for the field %s of %s", field, f.Kind)
				}
				hidden := unseen[string(f.Kind)+" "+field] != "" || bench.unseen(f.Kind, field)
				t.Run(fmt.Sprintf("%s %s %s", bench.name, f.Kind, field), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						for _, v := range values[field] {
							look := func(s standin.Step) []wire {
								plan := standin.Plan{Reply: "one two three", Tape: bench.tape, Steps: []standin.Step{stepOf(s, f, field), {Kind: standin.HTTP, Status: 418}}}
								return seen(t, plan, bench.o, max(1, v.with.Times))
							}
							without, with := look(v.without), look(v.with)
							if same := reflect.DeepEqual(without, with); same != hidden {
								t.Errorf("it is seen: %v\n%v\n%v", !same, without, with)
							}
						}
					})
				})
			}
		}
	}
}

// shapes reports whether the answer is made for the kind, also where there is a recording.
func shapes(k standin.Kind) bool {
	return slices.Contains([]standin.Kind{standin.Refusal, standin.Truncation, standin.Pause, standin.ContextWindow, standin.StopReason, standin.HalfTool}, k)
}

// stepOf is the step for a kind, with nothing that it does not take.
func stepOf(s standin.Step, f standin.Fault, field string) standin.Step {
	s.Kind = f.Kind
	if s.Kind == standin.HTTP && s.Status == 0 {
		s.Status = 503
	}
	if slices.Contains([]string{"first_token", "gap", "ping"}, field) && (s.Kind == standin.Error || s.Kind == standin.Cut) {
		s.After = 2 // before the first content these have no time
	}
	if s.Kind == standin.Stall && s.For == 0 {
		s.For = time.Second
	}
	v := reflect.ValueOf(&s).Elem()
	for i := range v.NumField() {
		name := v.Type().Field(i).Tag.Get("yaml")
		if name != field && name != "kind" && name != "times" && !slices.Contains(f.Fields, name) {
			v.Field(i).SetZero()
		}
	}
	return s
}

// recordFrom returns a tape with the operations on it, as a stand-in with the plan has answered them. It plays at once.
func recordFrom(t *testing.T, plan standin.Plan, all ...operation) *standin.Tape {
	t.Helper()
	upstream := httptest.NewServer(standin.New(plan))
	defer upstream.Close()
	target, err := url.Parse(upstream.URL)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	recorder, err := standin.Record(target, &out, standin.RecordOptions{})
	if err != nil {
		t.Fatal(err)
	}
	front := httptest.NewServer(recorder)
	defer front.Close()
	from := caller{t: t, client: front.Client(), url: front.URL, batch: "msgbatch_standin_000001"}
	for _, o := range all {
		if got := from.ask(o); got.err != nil || got.readErr != nil {
			t.Fatalf("%s: %+v", o.name, got)
		}
	}
	front.Close()
	if err := recorder.Close(); err != nil {
		t.Fatal(err)
	}
	recording, err := standin.ReadTape(&out)
	if err != nil {
		t.Fatal(err)
	}
	recording.Speed = 0
	return recording
}
