package gateway

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"
	"time"

	"holdfast"
)

// logged are the lines of one call, as JSON.
func logged(t *testing.T, level slog.Level, r *Record) []map[string]any {
	t.Helper()
	var out bytes.Buffer
	logCall(slog.New(slog.NewJSONHandler(&out, &slog.HandlerOptions{Level: level})), r)
	var lines []map[string]any
	for line := range strings.Lines(out.String()) {
		var fields map[string]any
		if err := json.Unmarshal([]byte(line), &fields); err != nil {
			t.Fatalf("%v in %s", err, line)
		}
		delete(fields, "time")
		lines = append(lines, fields)
	}
	return lines
}

func TestLineOfACall(t *testing.T) {
	t.Parallel()
	r := &Record{
		ID: "0123", Route: "opus", Client: "alice", Method: "POST", Path: "/v1/messages", Model: "claude-opus-5", Target: "anthropic", Stream: true,
		Status: 200, Outcome: Answered, Source: holdfast.Live, FirstContent: 1500 * time.Millisecond, Elapsed: 3 * time.Second,
		Input: 9, Output: 16, CacheRead: 1, StopReason: "end_turn", Bytes: 1234, Stacked: 2,
		Trace: tracedCall(t, holdfast.Verdict{Kind: holdfast.Throttled, Wait: 2 * time.Second}, holdfast.Verdict{}),
	}
	lines := logged(t, slog.LevelInfo, r)
	if len(lines) != 1 {
		t.Fatalf("%d lines, want 1: %v", len(lines), lines)
	}
	want := map[string]any{
		"level": "INFO", "msg": "call answered", "trace": "0123", "route": "opus", "client": "alice", "method": "POST", "path": "/v1/messages",
		"model": "claude-opus-5", "target": "anthropic", "status": 200.0, "outcome": "answered", "source": "live", "attempts": 2.0,
		"elapsed_seconds": 3.0, "first_content_seconds": 1.5, "waited_seconds": 2.25, "stream": true, "bytes": 1234.0,
		"input_tokens": 9.0, "output_tokens": 16.0, "cache_read_tokens": 1.0, "stop_reason": "end_turn", "stacked_retries": 2.0,
	}
	for name, value := range want {
		if lines[0][name] != value {
			t.Errorf("%s is %v, want %v", name, lines[0][name], value)
		}
	}
	for name := range lines[0] {
		if _, ok := want[name]; !ok {
			t.Errorf("%s=%v says nothing", name, lines[0][name])
		}
	}
}

func TestLineIsAsLoudAsTheOutcome(t *testing.T) {
	t.Parallel()
	for outcome, want := range map[Outcome]string{
		Answered: "INFO call answered", Refused: "INFO call refused by the model", Left: "INFO caller left",
		Failed: "WARN call failed", Rejected: "WARN call rejected", Cut: "WARN call cut", "": "WARN call failed",
	} {
		lines := logged(t, slog.LevelInfo, &Record{Outcome: outcome, Reason: "open", Error: "why"})
		if len(lines) != 1 || lines[0]["level"].(string)+" "+lines[0]["msg"].(string) != want || lines[0]["reason"] != "open" || lines[0]["error"] != "why" {
			t.Errorf("%s: %v, want %s", outcome, lines, want)
		}
		if lines := logged(t, slog.LevelError, &Record{Outcome: outcome}); len(lines) != 0 {
			t.Errorf("%s: %v at a level that nobody wants", outcome, lines)
		}
	}
	logCall(nil, &Record{})
}

// Each attempt that was sent has a line, also those whose answer never came.
func TestB34_LoggedAttemptsAreThoseSent(t *testing.T) {
	t.Parallel()
	silent := holdfast.Verdict{Kind: holdfast.Broken, Rule: "attempt-timeout"}
	r := &Record{ID: "0123", Outcome: Failed, Trace: tracedCall(t, silent, silent, silent, silent, silent)}
	lines := logged(t, slog.LevelDebug, r)
	attempts := 0
	for _, l := range lines {
		if l["msg"] != "attempt" {
			continue
		}
		attempts++
		if l["trace"] != "0123" || l["attempt"] != float64(attempts) || l["target"] == "" {
			t.Errorf("line %v, want attempt %d", l, attempts)
		}
		if attempts < 6 && l["rule"] != "attempt-timeout" {
			t.Errorf("line %v names no rule", l)
		}
	}
	if attempts != r.Trace.Sent() || attempts != 6 || lines[len(lines)-1]["attempts"] != 6.0 {
		t.Errorf("%d lines of attempts for %d sent, and the call's line says %v", attempts, r.Trace.Sent(), lines[len(lines)-1]["attempts"])
	}
}

func TestB139_CallerWhoLeftIsNoSuccess(t *testing.T) {
	t.Parallel()
	lines := logged(t, slog.LevelInfo, &Record{Outcome: Left, Status: 499, Bytes: 777, Elapsed: 5 * time.Minute, Trace: tracedCall(t)})
	if l := lines[0]; l["status"] != 499.0 || l["bytes"] != 777.0 || l["elapsed_seconds"] != 300.0 || l["outcome"] != "left" {
		t.Errorf("line is %v", l)
	}
}

func BenchmarkLogCall(b *testing.B) {
	log := slog.New(slog.NewTextHandler(discard{}, nil))
	r := &Record{
		ID: "0123", Route: "opus", Method: "POST", Path: "/v1/messages", Model: "claude-opus-5", Target: "anthropic", Status: 200, Outcome: Answered,
		Source: holdfast.Live, Elapsed: time.Second, Bytes: 1000,
	}
	b.ReportAllocs()
	for b.Loop() {
		logCall(log, r)
	}
}

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }
