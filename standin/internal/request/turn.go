package request

import "strings"

// turn is one or more messages in a row of one role: the API joins them before it looks at who answers whom.
type turn struct {
	role    string
	first   int    // index of its first message
	last    int    // index of its last message
	opening string // kind of its first block
	blocks  int
	uses    []call
	results []result
	server  bool // a tool of the server is called
	empty   int  // index of a message without content, counted from 1; 0: there is none
	blank   string
	ending  string // text of its last block
}

// call is a tool_use, or names one.
type call struct {
	place
	id string
}

// result is a tool_result. Only those in front of all else answer a call.
type result struct {
	call
	leading bool
}

// turn returns the turn that a message belongs to.
func (r *reading) turn(i int, role string) *turn {
	if n := len(r.turns); n > 0 && r.turns[n-1].role == role {
		r.turns[n-1].last = i
		return &r.turns[n-1]
	}
	r.turns = append(r.turns, turn{role: role, first: i, last: i})
	return &r.turns[len(r.turns)-1]
}

// open notes the start of a block.
func (t *turn) open(kind string) {
	if t.blocks == 0 {
		t.opening = kind
	}
	t.blocks++
	t.ending = ""
}

// leading says whether the block that was just opened has only results in front of it.
func (t *turn) leading() bool { return t.blocks == len(t.results)+1 }

// text notes the text of a block.
func (t *turn) text(text string) {
	t.ending = text
	switch {
	case text == "":
		t.blank = "messages: text content blocks must be non-empty"
	case t.blank == "" && strings.TrimSpace(text) == "":
		t.blank = "messages: text content blocks must contain non-whitespace text"
	}
}

// checkTurns refuses what is wrong between the messages: roles, empty texts, calls without results and the other way
// round, and an answer that is begun where the model does not go on with it.
func (r *reading) checkTurns() {
	if r.refusal != nil || len(r.turns) == 0 {
		return
	}
	r.checkRoles()
	turns := make([]*turn, 0, len(r.turns)) // those of the conversation
	for i := range r.turns {
		if r.turns[i].role != "system" {
			turns = append(turns, &r.turns[i])
		}
	}
	if r.refusal != nil {
		return
	}
	for i := range r.turns {
		r.checkText(&r.turns[i], i == len(r.turns)-1)
	}
	ids := map[string]bool{}
	for i, t := range turns {
		var next, previous *turn
		if i > 0 {
			previous = turns[i-1]
		}
		if i+1 < len(turns) {
			next = turns[i+1]
		}
		r.checkCalls(t, next, ids)
		r.checkResults(t, previous)
	}
	last := turns[len(turns)-1]
	if r.q.ToolAnswered = len(last.results) > 0; r.q.ToolAnswered && len(turns) > 1 {
		r.checkOpening(turns[len(turns)-2])
	}
	r.checkPrefill(last)
}

func (r *reading) checkRoles() {
	spoken := false
	for i := range r.turns {
		switch t := &r.turns[i]; t.role {
		case "user":
			spoken = true
		case "assistant":
			if !spoken {
				r.refuse(`messages: first message must use the "user" role`)
			}
		case "system":
			if t.first == 0 {
				r.refuse("messages.0: use the top-level 'system' parameter for the initial system prompt")
			}
			if r.model.before(48) {
				r.refuse("role 'system' is not supported on this model")
			}
		default:
			r.refuse("messages: Unexpected role \"%s\". Allowed roles are \"user\" or \"assistant\".", clip(t.role))
		}
	}
	if !spoken {
		r.refuse("messages: at least one message is required")
	}
}

// checkText refuses messages without text. The one that ends an answer's beginning may have no content.
func (r *reading) checkText(t *turn, last bool) {
	switch {
	case t.empty > 0 && t.role == "user":
		r.refuse("messages.%d: user messages must have non-empty content", t.empty-1)
	case t.empty > 0 && (!last || t.empty-1 < t.last):
		r.refuse("messages.%d: all messages must have non-empty content except for the optional final assistant message", t.empty-1)
	case t.blank != "":
		r.refuse("%s", t.blank)
	}
}

// checkCalls refuses calls that the next turn does not answer.
func (r *reading) checkCalls(t, next *turn, ids map[string]bool) {
	var open []string
	message := 0
	for _, use := range t.uses {
		if ids[use.id] {
			r.refuse("messages: `tool_use` ids must be unique")
		}
		ids[use.id] = true
		if !next.answers(use.id) {
			if len(open) == 0 {
				message = use.message
			}
			open = append(open, clipID(use.id))
		}
	}
	if len(open) > 0 {
		r.refuse("messages.%d: `tool_use` ids were found without `tool_result` blocks immediately after: %s. Each `tool_use` block must have a corresponding `tool_result` block in the next message.", message, strings.Join(open, ", "))
	}
}

// answers says whether the turn starts with the results of a call among others.
func (t *turn) answers(id string) bool {
	if t == nil {
		return false
	}
	for _, res := range t.results {
		if res.id == id && res.leading {
			return true
		}
	}
	return false
}

// checkResults refuses results of calls that are not in the turn before, and a second result of a call.
func (r *reading) checkResults(t, previous *turn) {
	for i, res := range t.results {
		if !previous.calls(res.id) && (previous != nil || !r.continues) {
			r.refuse("messages.%d.content.%d: unexpected `tool_use_id` found in `tool_result` blocks: %s. Each `tool_result` block must have a corresponding `tool_use` block in the previous message.", res.message, res.block, clipID(res.id))
		}
		for _, earlier := range t.results[:i] {
			if earlier.id == res.id {
				r.refuse("messages.%d.content.%d: each tool_use must have a single result. Found multiple `tool_result` blocks with id: %s", res.message, res.block, clipID(res.id))
			}
		}
	}
}

func (t *turn) calls(id string) bool {
	if t == nil {
		return false
	}
	for _, use := range t.uses {
		if use.id == id {
			return true
		}
	}
	return false
}

// checkOpening wants the turn that called a tool to begin with its thinking, when thinking is on with a budget.
func (r *reading) checkOpening(t *turn) {
	if r.budget && t.role == "assistant" && t.opening != "thinking" && t.opening != "redacted_thinking" {
		r.refuse("messages.%d.content.0.type: Expected `thinking` or `redacted_thinking`, but found `%s`. When `thinking` is enabled, a final `assistant` message must start with a thinking block (preceeding the lastmost set of `tool_use` and `tool_result` blocks). We recommend you include thinking blocks from previous turns. To avoid this requirement, disable `thinking`.", t.first, t.opening) //nolint:misspell // as the API spells it
	}
}

// checkPrefill refuses the beginning of an answer. What a tool of the server has interrupted may go on.
func (r *reading) checkPrefill(last *turn) {
	switch {
	case last.role != "assistant" || last.server:
	case r.model.since(46):
		r.refuse("This model does not support assistant message prefill. The conversation must end with a user message.")
	case strings.TrimRight(last.ending, " \t\r\n") != last.ending:
		r.refuse("messages: final assistant content cannot end with trailing whitespace")
	}
}

// clipID keeps an id whole, as the API does, as long as it looks like one.
func clipID(id string) string {
	if len(id) <= 128 {
		return strings.ToValidUTF8(id, "")
	}
	return clip(id)
}
