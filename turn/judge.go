package turn

import "github.com/anthropics/anthropic-sdk-go/v2"

// OutcomeOf says what a single message would end a turn as, if nothing more may be asked: a stop reason that is not known, or
// none, is Unknown; a refusal is HumanReview; and a message with half a tool call is Truncated, whatever it says of itself. It
// is for messages that come in another way than from [Run], such as the results of a batch. It never returns Unfinished, sends
// nothing and changes nothing.
func OutcomeOf(m *anthropic.Message) Outcome {
	facts := read(m).facts
	return NewCourse(&Policy{FollowUps: -1, Pauses: -1}, facts.Model, 0).Settle(facts).Outcome
}
