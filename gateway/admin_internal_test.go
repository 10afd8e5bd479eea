package gateway

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"holdfast"
)

// ask gives the handler a request that came to the address 127.0.0.1.
func ask(h http.Handler, method, target string, header http.Header) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, target, nil)
	r.Host = "127.0.0.1:4101"
	if header != nil {
		r.Header = header
		if host := header.Get("Host"); host != "" {
			r.Host = host
		}
	}
	at := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 4101}
	if to := header.Get("Arrived-At"); to != "" {
		at.IP = net.ParseIP(to)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, at)))
	return w
}

// read asks for JSON and reads it.
func read[T any](t *testing.T, h http.Handler, target string, status int) (value T) {
	t.Helper()
	w := ask(h, "GET", target, nil)
	if w.Code != status || w.Header().Get("Content-Type") != "application/json" {
		t.Fatalf("%s: status %d, %s: %s", target, w.Code, w.Header().Get("Content-Type"), w.Body)
	}
	d := json.NewDecoder(w.Body)
	d.DisallowUnknownFields()
	if err := d.Decode(&value); err != nil {
		t.Fatalf("%s: %v", target, err)
	}
	return value
}

func adminOf(s Status, rs *records) http.Handler {
	if rs == nil {
		rs = newRecords(10)
	}
	return newAdmin(func(time.Time) Status { return s }, rs, nil)
}

func TestAdminPages(t *testing.T) {
	t.Parallel()
	rs := newRecords(10)
	rs.add(answered("0123"))
	metrics := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "holdfast_up 1\n") })
	h := newAdmin(func(time.Time) Status { return Status{} }, rs, metrics)
	for _, c := range []struct {
		method, target string
		status         int
		body           string
	}{
		{"GET", "/", 200, "/api/calls/{id}"},
		{"GET", "/healthz", 200, "ok"},
		{"HEAD", "/healthz", 200, ""},
		{"GET", "/readyz", 200, `"ready": true`},
		{"GET", "/metrics", 200, "holdfast_up 1"},
		{"GET", "/api/status", 200, `"in_flight": 0`},
		{"GET", "/api/calls", 200, `"id": "0123"`},
		{"GET", "/api/calls/0123", 200, `"outcome": "answered"`},
		{"GET", "/api/calls/0124", 404, `"hint": "the last 10 calls of each kind are kept; `},
		{"GET", "/api/calls?limit=0", 400, `limit is a whole number from 1 to 1000`},
		{"GET", "/api/calls?limit=x", 400, `limit is a whole number from 1 to 1000`},
		{"GET", "/api/calls?failed=maybe", 400, `failed is 1 or 0`},
		{"GET", "/api", 404, "there is no such page; there are"},
		{"POST", "/api/status", 405, "ask with GET"},
		{"DELETE", "/api/calls/0123", 405, "ask with GET"},
	} {
		w := ask(h, c.method, c.target, nil)
		if w.Code != c.status || !strings.Contains(w.Body.String(), c.body) {
			t.Errorf("%s %s: status %d, want %d and %q in %s", c.method, c.target, w.Code, c.status, c.body, w.Body)
		}
		if w.Header().Get("Cache-Control") != "no-store" || w.Header().Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s %s: headers %v", c.method, c.target, w.Header())
		}
	}
	if w := ask(adminOf(Status{}, nil), "GET", "/metrics", nil); w.Code != 404 || !strings.Contains(w.Body.String(), "no metrics are collected") {
		t.Errorf("/metrics without any: status %d, %s", w.Code, w.Body)
	}
}

func TestNoWebPageReadsTheAdminListener(t *testing.T) {
	t.Parallel()
	h := adminOf(Status{}, nil)
	for _, c := range []struct {
		name   string
		header http.Header
		target string
		status int
	}{
		{"a client", nil, "/api/status", 200},
		{"another origin", http.Header{"Origin": {"https://elsewhere.example"}}, "/api/status", 403},
		{"another port of this machine", http.Header{"Origin": {"http://127.0.0.1:3000"}}, "/api/status", 403},
		{"an origin that is none", http.Header{"Origin": {"null"}}, "/metrics", 403},
		{"its own page", http.Header{"Origin": {"http://127.0.0.1:4101"}}, "/api/status", 200},
		{"cross-site without an origin", http.Header{"Sec-Fetch-Site": {"cross-site"}}, "/api/calls", 403},
		{"same-site", http.Header{"Sec-Fetch-Site": {"same-site"}}, "/api/calls", 403},
		{"same-origin", http.Header{"Sec-Fetch-Site": {"same-origin"}}, "/api/calls", 200},
		{"typed in by the user", http.Header{"Sec-Fetch-Site": {"none"}}, "/", 200},
		{"a name led to loopback", http.Header{"Host": {"elsewhere.example:4101"}}, "/api/status", 403},
		{"a name led to loopback, health", http.Header{"Host": {"elsewhere.example:4101"}}, "/healthz", 200},
		{"a name that begins so", http.Header{"Host": {"localhost.elsewhere.example"}}, "/readyz", 403},
		{"localhost", http.Header{"Host": {"LocalHost:4101"}}, "/api/status", 200},
		{"a subdomain of it", http.Header{"Host": {"holdfast.localhost:4101"}}, "/api/status", 200},
		{"IPv6", http.Header{"Host": {"[::1]:4101"}, "Arrived-At": {"::1"}}, "/api/status", 200},
		{"IPv6 led to", http.Header{"Host": {"elsewhere.example"}, "Arrived-At": {"::1"}}, "/api/status", 403},
		{"a name inside a cluster", http.Header{"Host": {"holdfast.monitoring.svc:4101"}, "Arrived-At": {"10.1.2.3"}}, "/metrics", 404},
	} {
		if w := ask(h, "GET", c.target, c.header); w.Code != c.status {
			t.Errorf("%s: status %d, want %d", c.name, w.Code, c.status)
		}
	}
}

func TestReadiness(t *testing.T) {
	t.Parallel()
	open := func(until time.Duration) CircuitStatus {
		return CircuitStatus{State: "open", Until: time.Now().Add(until)}
	}
	target := func(circuits ...CircuitStatus) TargetStatus {
		t := TargetStatus{Name: "a", Circuits: circuits}
		t.arrange(time.Now())
		return t
	}
	shut := target(open(time.Hour))
	for _, c := range []struct {
		name              string
		status            Status
		reasons, warnings int
	}{
		{"nothing was asked yet", Status{Targets: []TargetStatus{target()}}, 0, 0},
		{"draining", Status{Draining: true}, 1, 0},
		{"one target of two", Status{Targets: []TargetStatus{shut, target()}}, 0, 1},
		{"every target", Status{Targets: []TargetStatus{shut, shut}}, 1, 2},
		{"every target, with saved answers", Status{Targets: []TargetStatus{shut}, Saved: &SavedStatus{}}, 0, 2},
		{"one model group of two", Status{Targets: []TargetStatus{target(open(time.Hour), CircuitStatus{State: "closed"})}}, 0, 0},
		// Without traffic nobody would probe, and the gateway would stay out of its load balancer for ever.
		{"the cooldown is over", Status{Targets: []TargetStatus{target(open(-time.Second))}}, 0, 0},
		{"a probe is out", Status{Targets: []TargetStatus{target(CircuitStatus{State: "half_open", Until: time.Now().Add(time.Hour)})}}, 0, 0},
		{"saved answers that do not work", Status{Saved: &SavedStatus{Error: "the disk is full"}}, 0, 1},
		{"a reload was refused", Status{Reload: Reload{Error: "line 3: no"}}, 0, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			status := 200
			if c.reasons > 0 {
				status = 503
			}
			got := read[readiness](t, adminOf(c.status, nil), "/readyz", status)
			if got.Ready != (c.reasons == 0) || len(got.Reasons) != c.reasons || len(got.Warnings) != c.warnings {
				t.Errorf("got %+v, want %d reasons and %d warnings", got, c.reasons, c.warnings)
			}
		})
	}
}

func TestCallReportTellsEveryAttempt(t *testing.T) {
	t.Parallel()
	rs := newRecords(10)
	throttled := holdfast.Verdict{Kind: holdfast.Throttled, Status: 429, Type: "rate_limit_error", RequestID: "req_1", Wait: 2 * time.Second, Rule: "status-throttle"}
	spent := holdfast.Verdict{Kind: holdfast.Spent, Status: 402, Rule: "status-spent"}
	rs.add(Record{
		ID: "0123", Method: "POST", Path: "/v1/messages", Model: "m", Route: "r", Client: "c", Target: "second", Outcome: Failed, Reason: "spent", Status: 402,
		Elapsed: 3 * time.Second, Error: "no money", Trace: tracedCall(t, throttled, spent, spent),
	})
	got := read[CallReport](t, adminOf(Status{}, rs), "/api/calls/0123", 200)
	if len(got.Attempts) != 3 || got.Status != 402 || got.Source != "none" || got.Hint == "" || got.ElapsedSeconds != 3 || got.WaitedSeconds != 2.25 {
		t.Fatalf("report is %+v", got)
	}
	first := got.Attempts[0]
	want := AttemptReport{
		Number: 1, Target: "first", TookSeconds: 0.1, Verdict: "throttled", Rule: "status-throttle", Status: 429, Type: "rate_limit_error", RequestID: "req_1",
		ServerWaitSeconds: 2, Next: "retried", WaitSeconds: 2.25,
	}
	if first != want {
		t.Errorf("first attempt is\n%+v, want\n%+v", first, want)
	}
	if a := got.Attempts[1]; a.Next != "moved on" || a.Target != "first" || a.AfterSeconds != 2.35 {
		t.Errorf("second attempt is %+v", a)
	}
	if a := got.Attempts[2]; a.Target != "second" || a.Next != "gave up" {
		t.Errorf("third attempt is %+v", a)
	}
	if !strings.HasPrefix(got.Summary, "gave up: 3 attempts in 2.55s") {
		t.Errorf("summary is %q", got.Summary)
	}
}

func TestStatusCountsCalls(t *testing.T) {
	t.Parallel()
	rs := newRecords(1)
	for range 3 {
		r := answered("x")
		r.Client = "alice"
		rs.add(r)
	}
	rs.add(Record{Outcome: Failed})
	s := Status{Clients: []ClientStatus{{Name: "alice"}, {Name: "bob"}}}
	s.addCalls(rs)
	s = read[Status](t, adminOf(s, rs), "/api/status", 200)
	if len(s.Calls) != 2 || s.Calls[0] != (CallCount{Answered, "live", 3}) || s.Calls[1] != (CallCount{Failed, "none", 1}) {
		t.Errorf("calls are %+v", s.Calls)
	}
	if s.Clients[0].Calls != 3 || s.Clients[1].Calls != 0 {
		t.Errorf("clients are %+v", s.Clients)
	}
}

func TestTargetStatusShowsTroubleFirstAndNotEverything(t *testing.T) {
	t.Parallel()
	now := time.Now()
	breaker := holdfast.NewBreaker(holdfast.BreakerSettings{Failures: 1, Cooldown: 20 * time.Second})
	ticket, _, _ := breaker.Allow(now)
	breaker.Settle(now, ticket, holdfast.Failure)
	pace := holdfast.NewPace(holdfast.Limits{RequestsPerMinute: 60})
	pace.Hold(now, now.Add(5*time.Second))
	target := TargetStatus{}
	for range 150 {
		target.Circuits = append(target.Circuits, circuitStatus("a", &holdfast.Breaker{}, now))
		target.Credentials = append(target.Credentials, credentialStatus("caller", "a", &holdfast.Pace{}, &holdfast.Budget{}, now))
	}
	target.Circuits = append(target.Circuits, circuitStatus("z", breaker, now))
	target.Credentials = append(target.Credentials, credentialStatus("2", "z", pace, nil, now))
	target.arrange(now)
	if len(target.Circuits) != 100 || len(target.Credentials) != 100 || target.Hidden != 102 || target.Open || target.CircuitStates["closed"] != 150 || target.CircuitStates["open"] != 1 {
		t.Errorf("%d circuits, %d credentials, %d hidden", len(target.Circuits), len(target.Credentials), target.Hidden)
	}
	if c := target.Circuits[0]; c.Model != "z" || c.State != "open" || c.CooldownSeconds != 20 || c.Until.Sub(now).Round(time.Second) != 20*time.Second || c.FailuresInARow != 1 {
		t.Errorf("first circuit is %+v", c)
	}
	c := target.Credentials[0]
	if c.Key != "2" || c.Resting != "held" || c.RestingSeconds != 5 || c.Requests == nil || *c.Requests != (LevelStatus{PerMinute: 60}) || c.Input != nil {
		t.Errorf("first credential is %+v", c)
	}
	if c := target.Credentials[1]; c.Budget != 100 || c.BudgetCapacity != 100 || c.Resting != "" {
		t.Errorf("second credential is %+v", c)
	}
}
