package gateway

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// admin answers on the admin listener. Nothing there changes anything, and nothing that it says holds a prompt, an answer
// or a key.
type admin struct {
	status  func(now time.Time) Status
	records *records
	metrics http.Handler
}

// page is one thing that can be asked.
type page struct {
	path, what string
	do         func(*admin, http.ResponseWriter, *http.Request)
}

func pages() []page {
	return []page{
		{"/healthz", "200 while the process lives", (*admin).healthz},
		{"/readyz", "200 when calls may be sent here, else 503, with the reasons", (*admin).readyz},
		{"/metrics", "metrics for Prometheus", (*admin).serveMetrics},
		{"/api/status", "targets with their circuits and paces, routes, clients, and counts of calls", (*admin).serveStatus},
		{"/api/calls", "the last calls, newest first; ?failed=1, ?outcome=, ?route=, ?target=, ?client=, ?source=, ?limit=50", (*admin).serveCalls},
		{"/api/calls/{id}", "one call, attempt by attempt; the id is that of the header holdfast-trace", (*admin).serveCall},
	}
}

// newAdmin returns the handler. Nil metrics: there are none.
func newAdmin(status func(now time.Time) Status, rs *records, metrics http.Handler) http.Handler {
	a := &admin{status: status, records: rs, metrics: metrics}
	mux := http.NewServeMux()
	for _, p := range pages() {
		mux.HandleFunc(p.path, func(w http.ResponseWriter, r *http.Request) { p.do(a, w, r) })
	}
	mux.HandleFunc("/", a.index)
	return guarded(mux)
}

// guarded lets no web page read along, neither by a request of its own nor under a name that it has pointed at this
// machine.
func guarded(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Cache-Control", "no-store")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		switch {
		case r.Method != http.MethodGet && r.Method != http.MethodHead:
			h.Set("Allow", "GET, HEAD")
			http.Error(w, "gateway: nothing here takes "+shown(r.Method, maxRecordName)+"; ask with GET", http.StatusMethodNotAllowed)
		case foreign(r):
			http.Error(w, "gateway: no web page of another origin may read this", http.StatusForbidden)
		case r.URL.Path != "/healthz" && !addressed(r):
			http.Error(w, "gateway: on a loopback address this is read as localhost or by IP address, under no other name", http.StatusForbidden)
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// foreign reports whether a browser says that a page of another origin asks.
func foreign(r *http.Request) bool {
	if site := r.Header.Get("Sec-Fetch-Site"); site != "" && site != "same-origin" && site != "none" {
		return true
	}
	origin := r.Header.Get("Origin")
	if origin == "" {
		return false
	}
	u, err := url.Parse(origin)
	return err != nil || u.Host != r.Host
}

// addressed reports whether the name that the request came under is believable. A page can let its own name lead to a
// loopback address, and would then be of the same origin. Other addresses have names in many networks, and are not
// reached from everybody's browser.
func addressed(r *http.Request) bool {
	local, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if !ok {
		return true
	}
	at, err := netip.ParseAddrPort(local.String())
	if err != nil || !at.Addr().Unmap().IsLoopback() {
		return true
	}
	host := r.Host
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.ToLower(strings.TrimSuffix(strings.Trim(host, "[]"), "."))
	_, err = netip.ParseAddr(host)
	return err == nil || host == "" || host == "localhost" || strings.HasSuffix(host, ".localhost")
}

func (a *admin) index(w http.ResponseWriter, r *http.Request) {
	text, status := "the admin listener of a Holdfast gateway; there are\n", http.StatusOK
	if r.URL.Path != "/" {
		text, status = "gateway: there is no such page; there are\n", http.StatusNotFound
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	for _, p := range pages() {
		text += fmt.Sprintf("  %-16s %s\n", p.path, p.what)
	}
	_, _ = io.WriteString(w, text) // fails only when nobody reads any more
}

func (a *admin) healthz(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = io.WriteString(w, "ok\n")
}

func (a *admin) readyz(w http.ResponseWriter, _ *http.Request) {
	s := a.status(time.Now())
	ready := s.ready()
	if ready.Ready {
		giveJSON(w, http.StatusOK, ready)
		return
	}
	giveJSON(w, http.StatusServiceUnavailable, ready)
}

func (a *admin) serveMetrics(w http.ResponseWriter, r *http.Request) {
	if a.metrics == nil {
		http.Error(w, "gateway: no metrics are collected", http.StatusNotFound)
		return
	}
	a.metrics.ServeHTTP(w, r)
}

func (a *admin) serveStatus(w http.ResponseWriter, _ *http.Request) {
	giveJSON(w, http.StatusOK, a.status(time.Now()))
}

// The number of calls that a list has.
const (
	defaultListed = 50
	mostListed    = 1000
)

func (a *admin) serveCalls(w http.ResponseWriter, r *http.Request) {
	f, err := filterOf(r.URL.Query())
	if err != nil {
		giveError(w, http.StatusBadRequest, err.Error(), "")
		return
	}
	calls := []CallReport{}
	for _, record := range a.records.list(f) {
		calls = append(calls, record.Report())
	}
	giveJSON(w, http.StatusOK, struct {
		Calls []CallReport `json:"calls"`
	}{calls})
}

// filterOf reads the query of a list.
func filterOf(q url.Values) (filter, error) {
	f := filter{
		outcome: Outcome(q.Get("outcome")), route: q.Get("route"), target: q.Get("target"), client: q.Get("client"), source: q.Get("source"),
		limit: defaultListed,
	}
	if text := q.Get("limit"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			return f, fmt.Errorf("gateway: limit is a whole number from 1 to %d", mostListed)
		}
		f.limit = min(n, mostListed)
	}
	if text := q.Get("failed"); text != "" {
		failed, err := strconv.ParseBool(text)
		if err != nil {
			return f, fmt.Errorf("gateway: failed is 1 or 0")
		}
		f.failed = failed
	}
	return f, nil
}

func (a *admin) serveCall(w http.ResponseWriter, r *http.Request) {
	record := a.records.find(r.PathValue("id"))
	if record == nil {
		giveError(w, http.StatusNotFound, "gateway: no call of this id is known",
			fmt.Sprintf("the last %d calls of each kind are kept; the id is in the answer's header holdfast-trace and in the log", a.records.size))
		return
	}
	giveJSON(w, http.StatusOK, record.Report())
}

// ErrorReport is what the admin listener gives under /api instead of what was asked for.
type ErrorReport struct {
	Error string `json:"error"`
	Hint  string `json:"hint,omitempty"`
}

func giveError(w http.ResponseWriter, status int, text, hint string) {
	giveJSON(w, status, ErrorReport{Error: text, Hint: hint})
}

func giveJSON(w http.ResponseWriter, status int, value any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	_ = e.Encode(value) // fails only when nobody reads any more
}
