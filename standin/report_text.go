package standin

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// String is the report as a table for people.
func (r Report) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s, %s, %d answered, in %v\n", requests(r.Requests), counted(r.Calls, "call"), r.Answered, r.Span.Round(time.Millisecond))
	if r.Open > 0 {
		fmt.Fprintf(&b, "%s still open: the report is not final\n", requests(r.Open))
	}
	b.WriteByte('\n')
	width := 0
	for _, line := range r.Lines {
		width = max(width, len(line.Name))
	}
	indent := strings.Repeat(" ", len("WARN  ")+width+len("  "))
	warnings := 0
	for _, line := range r.Lines {
		fmt.Fprintf(&b, "%-4s  %-*s  %s", line.Verdict, width, line.Name, line.Found)
		if line.Verdict == Untested && line.Hint != "" {
			fmt.Fprintf(&b, " (%s)", line.Hint)
		}
		b.WriteByte('\n')
		if len(line.Exchanges) > 0 {
			fmt.Fprintf(&b, "%s%s\n", indent, exchanges(line.Exchanges))
		}
		if line.Verdict == Warn {
			warnings++
			fmt.Fprintf(&b, "%shint: %s\n", indent, line.Hint)
		}
	}
	switch r.Verdict() {
	case Warn:
		fmt.Fprintf(&b, "\n%s\n", counted(warnings, "warning"))
	case Pass:
		b.WriteString("\nno warnings\n")
	default:
		b.WriteString("\nnothing to judge\n")
	}
	return b.String()
}

// WriteTo writes what String returns.
func (r Report) WriteTo(w io.Writer) (int64, error) {
	n, err := io.WriteString(w, r.String())
	return int64(n), err
}
