package standin

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"holdfast/internal/strict"
)

// PlanError is every mistake of a plan, in the order of their lines.
type PlanError struct {
	// File is the name of the plan's file. "" when it did not come from one.
	File string
	// Mistakes are at least one.
	Mistakes []PlanMistake
}

// PlanMistake is one thing that is wrong with a plan.
type PlanMistake struct {
	// Line counts from 1. 0: not known, or the plan was made in Go.
	Line int
	// Path is the dotted place in the plan, such as rules.0.steps.1.status. "" for
	// the document itself.
	Path string
	// Text says what is wrong, and where it can, what would be right.
	Text string
}

// Error returns a line for each mistake: "plan.yaml:12: steps.0: text" with a
// file, "standin: plan line 12: steps.0: text" without one.
func (e *PlanError) Error() string {
	lines := make([]string, len(e.Mistakes))
	for i, m := range e.Mistakes {
		lines[i] = e.place(m.Line) + ": "
		if m.Path != "" {
			lines[i] += m.Path + ": "
		}
		lines[i] += m.Text
	}
	return strings.Join(lines, "\n")
}

func (e *PlanError) place(line int) string {
	switch {
	case e.File != "" && line > 0:
		return fmt.Sprintf("%s:%d", e.File, line)
	case e.File != "":
		return e.File
	case line > 0:
		return fmt.Sprintf("standin: plan line %d", line)
	}
	return "standin"
}

// planError returns what a document holds against a plan, nil when that is nothing.
func planError(d *strict.Document) error {
	found := d.Mistakes()
	if len(found) == 0 {
		return nil
	}
	e := &PlanError{Mistakes: make([]PlanMistake, len(found))}
	for i, m := range found {
		e.Mistakes[i] = PlanMistake(*m)
	}
	return e
}

// ParsePlan reads a plan from YAML or JSON. Fields have the names of Plan and
// its parts in snake case; times are text such as "1.5s" or a number of seconds;
// where text belongs, a number is taken as it is written. Unknown and repeated
// fields, values of the wrong kind and all that Validate finds are reported at
// once, as a *PlanError with their lines.
func ParsePlan(text []byte) (Plan, error) {
	var plan Plan
	d := strict.Document{Seconds: true, Single: true}
	if strings.TrimSpace(string(text)) == "" {
		return Plan{}, &PlanError{Mistakes: []PlanMistake{{Line: 1, Text: "the plan is empty; {} answers everything"}}}
	}
	d.Decode(text, &plan)
	check(&plan, &d)
	if err := planError(&d); err != nil {
		return Plan{}, err
	}
	return plan, nil
}

// LoadPlan reads a plan from a YAML or JSON file. The mistakes of a *PlanError
// begin with the file's name and their line; a file that cannot be read is an
// error of package os.
func LoadPlan(path string) (Plan, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return Plan{}, fmt.Errorf("standin: cannot read the plan: %w", err)
	}
	plan, err := ParsePlan(text)
	if wrong := new(PlanError); errors.As(err, &wrong) {
		wrong.File = path
	}
	return plan, err
}
