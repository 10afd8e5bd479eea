package holdfast

import "fmt"

// Lane is whose calls come first where calls queue for a [Pace].
type Lane uint8

const (
	// Interactive is for calls that somebody waits for.
	Interactive Lane = iota
	// Bulk is for work that can wait. It comes after Interactive, but is never starved.
	Bulk
)

// String returns interactive or bulk.
func (l Lane) String() string {
	switch l {
	case Interactive:
		return "interactive"
	case Bulk:
		return "bulk"
	}
	return fmt.Sprintf("Lane(%d)", uint8(l))
}
