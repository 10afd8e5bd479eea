package turn

import "github.com/anthropics/anthropic-sdk-go/v2"

// Event is what [Policy] OnEvent is told of a stream.
type Event struct {
	// Step counts the requests of the turn from 1.
	Step int
	// Discarded: nothing that was told of this step is a part of the answer, and whoever shows it should take it back. It
	// comes before the first event of a later step, and before [Run] returns.
	Discarded bool
	// Text is what this event adds to the text, often nothing.
	Text string
	// Raw is the SDK's own event, nil with Discarded. It is overwritten by the next one.
	Raw *anthropic.MessageStreamEventUnion
}
