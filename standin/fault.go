package standin

import (
	"slices"

	"holdfast/standin/internal/answer"
)

// Fault is a row of the table of faults.
type Fault struct {
	Kind Kind
	// What it does, in one line.
	What string
	// Doc is a paragraph on it: what a client sees, what is billed, which fields matter.
	Doc string
	// Fields are the fields of a Step that the kind takes, by their names in a
	// document, besides those of every kind.
	Fields []string
}

// fault is a Fault with what plays it. Each has a file of its own, fault_*.go.
// A new fault is such a file, a row in faults, and a test.
type fault struct {
	Fault

	// shape changes the answer that is made. nil: as the request has it.
	shape func(s Step, o *answer.Options)
	// instead plays in place of the answer. nil: the answer is given.
	instead func(a *reply)
	// whole spoils a reply that is not a stream, whose body is whole, and reports
	// whether it has given the reply. nil: the body is sent as it is.
	whole func(a *reply, r result) bool
	// meet happens in a stream at the place that the step names, before the
	// event next, and reports whether the stream goes on.
	meet func(a *reply, out *stream, next answer.Event) bool
}

var (
	// everyKind are the fields of every kind.
	everyKind = []string{"kind", "times", "delay", "header", "request_id"}
	// framed are the fields of every kind that can reach a client as a stream.
	framed = []string{"first_token", "gap", "ping", "lines", "writes", "between", "gzip"}
	// errorFields say what an error tells.
	errorFields = []string{"type", "code", "message"}
	// placed are the fields of what happens at a place in a stream.
	placed = []string{"at", "after"}
)

// faults is the one list of kinds, in the order of what goes wrong first.
var faults = []*fault{
	okFault,
	httpFault, spendCapFault, rampLimitFault, emptyFault, htmlFault,
	timeoutFault, resetFault, lostFault, slowHeadersFault,
	errorFault, cutFault, stallFault, duplicateFault, malformedFault, namelessFault,
	refusalFault, truncationFault, pauseFault, contextWindowFault, stopReasonFault, halfToolFault,
	refusedFault, hangFault,
}

// Faults returns the table of faults: first what goes wrong before an answer,
// then what breaks one, then what ends one oddly, then what befalls connections.
func Faults() []Fault {
	table := make([]Fault, len(faults))
	for i, f := range faults {
		table[i] = f.Fault
		table[i].Fields = slices.Clone(f.Fields)
	}
	return table
}

// ofKind returns the fault of a kind, nil for none.
func ofKind(k Kind) *fault {
	if k == "" {
		k = OK
	}
	i := slices.IndexFunc(faults, func(f *fault) bool { return f.Kind == k })
	if i < 0 {
		return nil
	}
	return faults[i]
}

// takes reports whether the kind has the field; known whether there is such a kind.
func (k Kind) takes(field string) (takes, known bool) {
	f := ofKind(k)
	if f == nil {
		return false, false
	}
	return slices.Contains(everyKind, field) || slices.Contains(f.Fields, field), true
}
