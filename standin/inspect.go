package standin

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// inspectPrefix is where the stand-in can be asked about itself. Requests there
// are not recorded.
const inspectPrefix = "/_standin/"

// maxPlan is the size of a plan that can be sent, in bytes.
const maxPlan = 8 << 20

// inspection is one thing that can be asked or told.
type inspection struct {
	method, name string
	what         string
	do           func(*Server, http.ResponseWriter, *http.Request)
}

var inspections = []inspection{
	{"GET", "journal", "every request and what became of it; ?job=NAME, ?since=NUMBER (those after it), ?limit=COUNT (the first of them)", (*Server).inspectJournal},
	{"GET", "ledger", "tokens billed and work paid twice, by job", (*Server).inspectLedger},
	{"GET", "report", "a verdict on the client; a table with accept: text/plain", (*Server).inspectReport},
	{"GET", "plan", "the plan in force; keys and the reply in it are left out", (*Server).inspectPlan},
	{"PUT", "plan", "a new plan in YAML or JSON; everything begins anew", (*Server).changePlan},
	{"POST", "plan", "the same", (*Server).changePlan},
	{"POST", "reset", "forgets the journal and begins all steps anew", (*Server).inspectReset},
}

// inspect answers what is asked under inspectPrefix. No reply there holds a key,
// a prompt or an answer.
func (s *Server) inspect(w http.ResponseWriter, r *http.Request) {
	name := strings.TrimPrefix(strings.TrimPrefix(r.URL.Path, strings.TrimSuffix(inspectPrefix, "/")), "/")
	var allowed []string
	for _, i := range inspections {
		if i.name != name {
			continue
		}
		if i.method == r.Method {
			if r.Method != http.MethodGet && r.Header.Get("origin") != "" {
				http.Error(w, "standin: no web page may change anything here", http.StatusForbidden)
				return
			}
			i.do(s, w, r)
			return
		}
		allowed = append(allowed, i.method)
	}
	switch {
	case allowed != nil:
		w.Header().Set("allow", strings.Join(allowed, ", "))
		http.Error(w, "standin: "+inspectPrefix+name+" takes "+strings.Join(allowed, " or "), http.StatusMethodNotAllowed)
	case name == "" && r.Method == http.MethodGet:
		w.Header().Set("content-type", "text/plain; charset=utf-8")
		_, _ = io.WriteString(w, index())
	default:
		http.Error(w, "standin: there is no such page; there are\n"+index(), http.StatusNotFound)
	}
}

// index lists the inspections, a line each.
func index() string {
	var b strings.Builder
	for _, i := range inspections {
		fmt.Fprintf(&b, "%-4s %-8s %s\n", i.method, i.name, i.what)
	}
	return b.String()
}

func (s *Server) inspectJournal(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	since, sinceErr := countOf(query.Get("since"), 0)
	limit, limitErr := countOf(query.Get("limit"), journalSize)
	if err := errors.Join(sinceErr, limitErr); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	input, output := s.Billed()
	j := s.Journal()
	at, _ := slices.BinarySearchFunc(j, since+1, func(e Exchange, n int) int { return e.Number - n })
	j = j[at:]
	if query.Has("job") {
		j = j.of(query.Get("job"))
	}
	w.Header().Set("content-type", "application/json")
	journalDocument{s.Open(), input, output, j[:min(limit, len(j))]}.writeTo(w)
}

// countOf reads a number of the query. "" is the value otherwise.
func countOf(text string, otherwise int) (int, error) {
	if text == "" {
		return otherwise, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		return 0, errors.New("standin: since and limit are whole numbers from 0")
	}
	return n, nil
}

func (s *Server) inspectLedger(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, s.Ledger())
}

func (s *Server) inspectReport(w http.ResponseWriter, r *http.Request) {
	report := s.Report()
	if strings.Contains(r.Header.Get("accept"), "text/plain") {
		w.Header().Set("content-type", "text/plain; charset=utf-8")
		_, _ = report.WriteTo(w) // fails only when nobody reads any more
		return
	}
	writeJSON(w, report)
}

func (s *Server) inspectReset(w http.ResponseWriter, _ *http.Request) {
	s.Reset()
	w.WriteHeader(http.StatusNoContent)
}

func writeJSON(w http.ResponseWriter, value any) {
	w.Header().Set("content-type", "application/json")
	_ = json.NewEncoder(w).Encode(value) // fails only when nobody reads any more
}
