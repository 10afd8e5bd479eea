package drill

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/guptarohit/asciigraph"
)

// Report is what a drill found.
type Report struct {
	Title    string    `json:"title"`
	Sections []Section `json:"sections"`
	Checks   []Check   `json:"checks"`
}

// Section is one part of a report; each of its fields may be empty.
type Section struct {
	Title string `json:"title,omitempty"`
	// Columns and Rows are a table.
	Columns []string   `json:"columns,omitempty"`
	Rows    [][]string `json:"rows,omitempty"`
	// Lines are printed as they are.
	Lines  []string `json:"lines,omitempty"`
	Charts []Chart  `json:"charts,omitempty"`
}

// Chart is a curve.
type Chart struct {
	Caption string    `json:"caption"`
	Values  []float64 `json:"values"`
}

// Check is one thing that must come out as it should.
type Check struct {
	Name string `json:"name"`
	OK   bool   `json:"ok"`
	Got  string `json:"got"`
	Want string `json:"want"`
}

// Exit is the exit status: 0 when all checks passed, else 1.
func (r *Report) Exit() int {
	for _, c := range r.Checks {
		if !c.OK {
			return 1
		}
	}
	return 0
}

// equal checks that two texts are the same.
func (r *Report) equal(name string, got, want any) {
	g, w := fmt.Sprint(got), fmt.Sprint(want)
	r.Checks = append(r.Checks, Check{Name: name, OK: g == w, Got: g, Want: w})
}

// that checks a condition that want puts into words.
func (r *Report) that(name string, ok bool, got any, want string) {
	r.Checks = append(r.Checks, Check{Name: name, OK: ok, Got: fmt.Sprint(got), Want: want})
}

func (r *Report) add(s Section) { r.Sections = append(r.Sections, s) }

// JSON writes the report for machines, with "ok" for the whole.
func (r *Report) JSON(w io.Writer) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(struct {
		*Report
		OK bool `json:"ok"`
	}{r, r.Exit() == 0})
}

// Text writes the report for people: aligned tables, charts, and a line PASS or FAIL per check.
func (r *Report) Text(w io.Writer) error {
	var b strings.Builder
	b.WriteString(r.Title + "\n")
	for _, s := range r.Sections {
		s.text(&b)
	}
	b.WriteString("\n")
	failed := 0
	for _, c := range r.Checks {
		if c.OK {
			fmt.Fprintf(&b, "PASS %s: %s\n", c.Name, c.Got)
			continue
		}
		failed++
		fmt.Fprintf(&b, "FAIL %s: got %s, want %s\n", c.Name, c.Got, c.Want)
	}
	fmt.Fprintf(&b, "\n%d of %d checks passed\n", len(r.Checks)-failed, len(r.Checks))
	_, err := io.WriteString(w, b.String())
	return err
}

func (s *Section) text(b *strings.Builder) {
	b.WriteString("\n")
	if s.Title != "" {
		b.WriteString(s.Title + "\n")
	}
	table(b, s.Columns, s.Rows)
	for _, l := range s.Lines {
		b.WriteString(l + "\n")
	}
	for _, c := range s.Charts {
		top := 0.0
		for _, v := range c.Values {
			top = max(top, v)
		}
		if top == 0 {
			fmt.Fprintf(b, "\n%s: nothing\n", c.Caption)
			continue
		}
		// One look is enough for a curve; its numbers are in the table and in the JSON.
		graph := asciigraph.Plot(c.Values, asciigraph.Height(6), asciigraph.LowerBound(0), asciigraph.Precision(0))
		fmt.Fprintf(b, "\n%s\n%s\n", c.Caption, strings.TrimRight(graph, "\n "))
	}
}

func table(b *strings.Builder, columns []string, rows [][]string) {
	if len(columns) == 0 {
		return
	}
	widths := make([]int, len(columns))
	all := append([][]string{columns}, rows...)
	for _, row := range all {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	for _, row := range all {
		var line strings.Builder
		for i, cell := range row {
			line.WriteString("  " + cell + strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell)))
		}
		b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
}
