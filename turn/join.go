package turn

import "strings"

const (
	// opening is how much of the beginning of an answer has to come again to show that it was begun anew; of a shorter
	// answer all of it, but for one that is shorter than leastOpening, which says nothing.
	opening      = 48
	leastOpening = 12
	// leastOverlap is how much of the end of a text has to come again to be no accident, and mostOverlap how much is
	// looked for.
	leastOverlap = 20
	mostOverlap  = 2000
)

// beginsAnew reports whether what was to continue text begins like it instead.
func beginsAnew(text, more string) bool {
	text, more = strings.TrimSpace(text), strings.TrimSpace(more)
	n := min(len(text), opening)
	return n >= leastOpening && strings.HasPrefix(more, text[:n])
}

// join puts two parts of one text together, with what the second repeats of the first's end once.
func join(text, more string) string {
	for n := min(len(text), len(more), mostOverlap); n >= leastOverlap; n-- {
		if strings.HasSuffix(text, more[:n]) {
			return text + more[n:]
		}
	}
	return text + more
}
