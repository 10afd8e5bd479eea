package turn

// Outcome is how a turn ended. The zero value is a turn that has not ended: it failed, or its caller left.
type Outcome uint8

const (
	// Unfinished: no answer ended the turn.
	Unfinished Outcome = iota
	// Completed: the model said all it wanted to, or came to a stop sequence.
	Completed
	// ToolUse: the model waits for the results of tools. Its calls are complete.
	ToolUse
	// Truncated: the answer is cut off, by max_tokens beyond what the policy allows or by the context window. It is never
	// the same as Completed.
	Truncated
	// HumanReview: the model refused, and so did the fallback model, if there was one to ask.
	HumanReview
	// Paused: the turn was paused more often than the policy allows. It is not over.
	Paused
	// Unknown: a stop reason that this package does not know. The answer is kept; what it is worth is the caller's to say.
	Unknown
)

// Done reports whether the answer is whole: Completed or ToolUse, nothing else. It is never true of an answer that is cut
// off or unknown.
func (o Outcome) Done() bool { return o == Completed || o == ToolUse }

// String returns the outcome's name: "completed", "human_review" and so on, never "".
func (o Outcome) String() string {
	if int(o) < len(outcomes) {
		return outcomes[o]
	}
	return "outcome of another version"
}

var outcomes = [...]string{
	Unfinished: "unfinished", Completed: "completed", ToolUse: "tool_use", Truncated: "truncated",
	HumanReview: "human_review", Paused: "paused", Unknown: "unknown_reason",
}

// Action is what is to be done next for a turn.
type Action uint8

const (
	// End: nothing more is sent.
	End Action = iota
	// Raise: send the same request again with a larger max_tokens; its answer is discarded.
	Raise
	// Continue: keep the answer and ask for the rest in a new user message.
	Continue
	// Resume: send the paused answer back unchanged, and nothing with it; of one that changed hands without what the model
	// that declined had thought or called in vain, which no API takes back.
	Resume
	// Fallback: begin the turn again with another model; all that the other one said is discarded.
	Fallback
)

// String returns the action's name: "end", "raise" and so on, never "".
func (a Action) String() string {
	if int(a) < len(actions) {
		return actions[a]
	}
	return "action of another version"
}

var actions = [...]string{End: "end", Raise: "raise", Continue: "continue", Resume: "resume", Fallback: "fallback"}
