package standin

import "slices"

// Fault is a row of the table of faults.
type Fault struct {
	Kind Kind
	// What it does, in one line.
	What string
	// Fields are the fields of a Step that the kind takes, by their names in
	// JSON, besides those of every kind: kind, times, delay, header, request_id.
	Fields []string
}

var everyKind = []string{"kind", "times", "delay", "header", "request_id"}

// faults is the one list of kinds. A new fault is a row here, a case in
// reply.play, a paragraph in doc.go and a test.
var faults = []Fault{
	{OK, "a complete answer", []string{"gap"}},
	{HTTP, "a status with the provider's error body, or any body", []string{"status", "retry_after", "type", "code", "message", "body", "content_type"}},
	{Refusal, "a 200 with stop_reason refusal", []string{"category", "explanation"}},
	{Truncation, "a 200 with stop_reason max_tokens", []string{"gap"}},
	{Timeout, "no byte until the client leaves", nil},
	{Reset, "a broken connection before the headers", nil},
	{Cut, "a stream that ends before its end", []string{"at", "after", "how", "torn", "gap"}},
	{Error, "an error event inside a 200", []string{"at", "after", "status", "type", "code", "message", "gap"}},
	{Empty, "a 200 without a body", nil},
	{HTML, "a 200 with a web page", nil},
}

// Faults returns the table of faults, in the order of the package comment.
func Faults() []Fault {
	table := slices.Clone(faults)
	for i := range table {
		table[i].Fields = slices.Clone(table[i].Fields)
	}
	return table
}

// takes reports whether the kind has the field; known whether there is such a kind.
func (k Kind) takes(field string) (takes, known bool) {
	if k == "" {
		k = OK
	}
	i := slices.IndexFunc(faults, func(f Fault) bool { return f.Kind == k })
	if i < 0 {
		return false, false
	}
	return slices.Contains(everyKind, field) || slices.Contains(faults[i].Fields, field), true
}
