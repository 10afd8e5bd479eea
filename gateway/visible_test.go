package gateway_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"holdfast"
	"holdfast/gateway"
	"holdfast/standin"
)

// lines are what the gateway logged, as JSON.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) log() *slog.Logger {
	return slog.New(slog.NewJSONHandler(l, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// of are the lines with this message.
func (l *lines) of(t *testing.T, message string) (found []map[string]any) {
	t.Helper()
	synctest.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	for line := range strings.Lines(l.text.String()) {
		var fields map[string]any
		if err := json.Unmarshal([]byte(line), &fields); err != nil {
			t.Fatal(err)
		}
		if fields["msg"] == message {
			found = append(found, fields)
		}
	}
	return found
}

// page asks the admin listener for JSON.
func page[T any](t *testing.T, g *gateway.Gateway, path string) (status int, value T) {
	t.Helper()
	synctest.Wait()
	w := httptest.NewRecorder()
	g.Admin(nil).ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
	if err := json.Unmarshal(w.Body.Bytes(), &value); err != nil {
		t.Fatalf("%s: %v in %s", path, err, w.Body)
	}
	return w.Code, value
}

func TestB34_LogHasEveryAttemptThatWasSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, log := newHouse(t), &lines{}
		api := h.upstream("api", standin.Plan{Steps: []standin.Step{{Kind: standin.Timeout, Times: -1}}})
		s := one("api", "")
		s.Log, s.Policy = log.log(), holdfast.Policy{Attempts: 4, AttemptTimeout: time.Second}
		h.open(s)
		began := time.Now()
		r := h.ask("/v1/messages", message)
		took := time.Since(began)
		const waits = 500*time.Millisecond + time.Second + 2*time.Second // each draw is the whole bound
		if sent := len(api.Journal()); sent != 4 || took != 4*time.Second+waits {
			t.Errorf("%d requests in %v, want 4 in %v", sent, took, 4*time.Second+waits)
		}
		attempts, calls := log.of(t, "attempt"), log.of(t, "call failed")
		if len(attempts) != 4 || len(calls) != 1 || calls[0]["attempts"] != 4.0 || calls[0]["waited_seconds"] != waits.Seconds() || calls[0]["trace"] != r.Header.Get("Holdfast-Trace") {
			t.Fatalf("%d lines of attempts, and of the call %v", len(attempts), calls)
		}
		for i, a := range attempts {
			if a["attempt"] != float64(i+1) || a["took_seconds"] != 1.0 || a["target"] != "api" {
				t.Errorf("line %d is %v", i+1, a)
			}
		}
	})
}

func TestB139_CallerWhoGaveUpIsLoggedAsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, log := newHouse(t), &lines{}
		h.handle("api", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{}}\n\n"+
				"event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"a word\"}}\n\n")
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		})
		s := one("api", "")
		s.Log, s.Idle, s.Stream.Ping = log.log(), time.Hour, -1
		h.open(s)
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Second)
		defer cancel()
		r := h.do(ctx, http.MethodPost, "/v1/messages", streamed(message))
		if r.err == nil || r.StatusCode != http.StatusOK || !strings.Contains(r.body, "a word") {
			t.Fatalf("got %d %q %v", r.StatusCode, r.body, r.err)
		}
		gone := log.of(t, "caller left")
		if len(gone) != 1 || gone[0]["status"] != 499.0 || gone[0]["elapsed_seconds"] != 300.0 || gone[0]["bytes"] != float64(len(r.body)) || gone[0]["outcome"] != "left" {
			t.Errorf("lines are %v, want one with status 499, 300 s and %d bytes", gone, len(r.body))
		}
	})
}

// A slow log holds back neither the answer nor the right to send another.
func TestB126_SlowLogHoldsNothingBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t)
		h.upstream("api", standin.Plan{})
		s := one("api", "anthropic")
		s.Log = slog.New(slowly{slog.NewTextHandler(io.Discard, nil)})
		s.Pace = holdfast.Limits{RequestsPerMinute: 2, Queue: -1}
		h.open(s)
		for i := range 2 {
			began := time.Now()
			r := h.ask("/v1/messages", message, "Connection: close") // on one connection, the next request is read when the log is written
			if took := time.Since(began); r.StatusCode != http.StatusOK || r.err != nil || took != 0 {
				t.Errorf("call %d got %d %v after %v", i+1, r.StatusCode, r.err, took)
			}
		}
	})
}

// slowly is a log whose lines take two seconds each. It has no lock: to wait for one does not let a bubble's clock go on.
type slowly struct{ slog.Handler }

func (slowly) Handle(context.Context, slog.Record) error {
	time.Sleep(2 * time.Second)
	return nil
}

func TestAdminShowsWhatHappened(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t)
		h.upstream("first", standin.Plan{Steps: []standin.Step{{Kind: standin.HTTP, Status: 529, Times: -1}}})
		h.upstream("second", standin.Plan{})
		h.open(gateway.Settings{
			Targets: []gateway.Target{target("first", "anthropic", gateway.Key{Name: "main", Secret: "sk-1"}), target("second", "anthropic")},
			Routes:  []gateway.Route{{Name: "all", Chain: []gateway.Entry{{Target: "first"}, {Target: "second", Model: "claude-haiku-4-5"}}}},
			Breaker: holdfast.BreakerSettings{Failures: 2, Cooldown: 20 * time.Second},
			Policy:  holdfast.Policy{Attempts: 2},
		})
		r := h.ask("/v1/messages", message)
		code, report := page[gateway.CallReport](t, h.gateway, "/api/calls/"+r.Header.Get("Holdfast-Trace"))
		if code != http.StatusOK || report.Outcome != gateway.Answered || report.Source != "fallback" || report.Route != "all" || report.Status != 200 || report.Bytes != int64(len(r.body)) {
			t.Errorf("report is %+v", report)
		}
		var course []string
		for _, a := range report.Attempts {
			course = append(course, fmt.Sprintf("%s %d %s", a.Target, a.Status, a.Next))
		}
		if got, want := strings.Join(course, ", "), "first 529 retried, first 529 moved on, second:claude-haiku-4-5 0 answered"; got != want {
			t.Errorf("attempts are %q, want %q", got, want)
		}
		_, status := page[gateway.Status](t, h.gateway, "/api/status")
		first := status.Targets[0]
		if !first.Open || len(first.Circuits) != 1 || first.Circuits[0].State != "open" || time.Until(first.Circuits[0].Until) <= 0 || first.Host != "first.test" || first.Keys[0] != "main" {
			t.Errorf("first target is %+v", first)
		}
		if len(status.Calls) != 1 || status.Calls[0] != (gateway.CallCount{Outcome: gateway.Answered, Source: "fallback", Calls: 1}) || status.InFlight != 0 {
			t.Errorf("calls are %+v, %d in flight", status.Calls, status.InFlight)
		}
		if got := strings.Join(status.Routes[0].Chain, ", "); got != "first, second claude-haiku-4-5" {
			t.Errorf("chain is %q", got)
		}
		code, ready := page[map[string]any](t, h.gateway, "/readyz")
		if code != http.StatusOK || ready["ready"] != true || len(ready["warnings"].([]any)) != 1 {
			t.Errorf("readiness is %d %v", code, ready)
		}
	})
}

// While every circuit is open the gateway is not ready; once a probe may go it is, or no load balancer would ever send one.
func TestReadinessComesBackWithTheCooldown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t)
		h.upstream("api", standin.Plan{Steps: []standin.Step{{Kind: standin.HTTP, Status: 529, Times: 2}}})
		s := one("api", "anthropic")
		s.Breaker, s.Policy = holdfast.BreakerSettings{Failures: 2, Cooldown: 20 * time.Second}, holdfast.Policy{Attempts: 2}
		h.open(s)
		ready := func() int {
			code, _ := page[any](t, h.gateway, "/readyz")
			return code
		}
		before := ready()
		h.ask("/v1/messages", message)
		shut := ready()
		time.Sleep(20 * time.Second)
		cool := ready()
		if r := h.ask("/v1/messages", message); r.StatusCode != http.StatusOK {
			t.Errorf("the probe got %d", r.StatusCode)
		}
		if got := fmt.Sprint(before, shut, cool, ready()); got != "200 503 200 200" {
			t.Errorf("readiness was %s, want 200 503 200 200", got)
		}
	})
}
