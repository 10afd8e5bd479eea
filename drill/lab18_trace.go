package drill

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"time"

	"holdfast"
)

// What a line of trace.jsonl tells of.
const (
	traceError    = "error"
	traceBackoff  = "backoff"
	traceOpened   = "circuit_opened"
	traceSkipped  = "short_circuit"
	traceDeadline = "deadline_exceeded"
	traceResponse = "response"
)

// traceLine is one JSON object of trace.jsonl. It has no field that could hold a prompt or an answer.
type traceLine struct {
	At         float64  `json:"at_s"`
	Job        string   `json:"job"`
	Event      string   `json:"event"`
	Attempt    int      `json:"attempt"`
	Status     int      `json:"status,omitempty"`
	Type       string   `json:"type,omitempty"`
	Rule       string   `json:"rule,omitempty"`
	RequestID  string   `json:"request_id,omitempty"`
	Wait       *float64 `json:"wait_s,omitempty"`
	StopReason string   `json:"stop_reason,omitempty"`
}

// seconds rounds to milliseconds, so that files of the same run are equal.
func seconds(d time.Duration) float64 { return math.Round(d.Seconds()*1000) / 1000 }

// observe turns the library's events into trace lines and transitions.
func (l *lab) observe(e holdfast.Event) {
	t := traceLine{At: seconds(e.At.Sub(l.start)), Job: l.job, Attempt: l.sentBefore + e.Attempt}
	v := &e.Verdict
	switch {
	case e.Kind == holdfast.EventSend:
		l.requests++
		l.opened = false
		return
	case e.Kind == holdfast.EventAttempt && (v.Kind == holdfast.OK || v.Kind == holdfast.Refused):
		t.Event, t.Status, t.StopReason, t.RequestID = traceResponse, 200, l.last.answer.StopReason, v.RequestID
	case e.Kind == holdfast.EventAttempt && v.Kind != holdfast.Cancelled:
		t.Event, t.Status, t.Type, t.Rule, t.RequestID = traceError, v.Status, v.Type, v.Rule, v.RequestID
	case e.Kind == holdfast.EventWait:
		wait := seconds(e.Wait)
		t.Event, t.Wait = traceBackoff, &wait
	case e.Kind == holdfast.EventCircuit:
		l.transitions = append(l.transitions, e.From.String()+"->"+e.To.String())
		if e.To != holdfast.Open {
			return
		}
		l.opened = true
		t.Event = traceOpened
	case e.Kind == holdfast.EventSkip && e.Reason == holdfast.ErrOpen:
		t.Event = traceSkipped
	case e.Kind == holdfast.EventEnd && e.Reason == holdfast.ErrDeadline:
		t.Event = traceDeadline
	default:
		return
	}
	l.lines = append(l.lines, t)
}

// traceJSONL is the content of trace.jsonl.
func (l *lab) traceJSONL() ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	for _, t := range l.lines {
		if err := enc.Encode(t); err != nil {
			return nil, fmt.Errorf("drill: trace: %w", err)
		}
	}
	return b.Bytes(), nil
}

// write leaves trace.jsonl and outcomes.json in the directory.
func (l *lab) write(dir string, trace []byte) error {
	var result bytes.Buffer
	enc := json.NewEncoder(&result)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	err := enc.Encode(struct {
		Outcomes    []outcome `json:"outcomes"`
		Transitions []string  `json:"breaker_transitions"`
		Tickets     []*ticket `json:"tickets"`
		Events      int       `json:"trace_events"`
	}{l.outcomes, append([]string{}, l.transitions...), append([]*ticket{}, l.keyed.tickets...), len(l.lines)})
	if err != nil {
		return fmt.Errorf("drill: outcomes: %w", err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("drill: %w", err)
	}
	for name, content := range map[string][]byte{"trace.jsonl": trace, "outcomes.json": result.Bytes()} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o644); err != nil {
			return fmt.Errorf("drill: %w", err)
		}
	}
	return nil
}
