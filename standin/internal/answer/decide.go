package answer

import (
	"strings"
	"unicode/utf8"

	"holdfast/standin/internal/request"
)

const (
	thought   = "The request is clear, so the answer can be given without more ado."
	signature = "EqQBCkYIBxgCKkBzdGFuZC1pbiBzaWduYXR1cmUsIG5vdCB2ZXJpZmlhYmxl"
	query     = `{"query":"what the stand-in would look for"}`
	wide      = "→" // three bytes
)

// New decides the answer to a request. A request without anything of the plan in the way gets a call of a tool when it
// brings tools and no result of one, JSON when it asks for it, and text else.
func New(q request.Request, o Options) Answer {
	a := Answer{
		Number: o.Number, Model: q.Model, Stop: EndTurn, WantUsage: q.IncludeUsage,
		Usage: Usage{Input: input(q)},
		told: told{
			maxTokens: q.MaxTokens, tools: q.Tools, choice: q.ToolChoice, schema: q.Schema,
			thinking: q.Thinking, omitted: q.Omitted,
		},
	}
	if o.Stop == Refusal {
		if a.decline(q, o); a.Stop == Refusal {
			return a
		}
		o.Stop = ""
	}
	if q.Thinking {
		a.think(q, o)
	}
	a.speak(q, o)
	a.widen(o.Rune)
	a.stop(q, o)
	a.count(q)
	return a
}

// decline lets the model refuse, and then as many of those that the request names as the plan wants to.
func (a *Answer) decline(q request.Request, o Options) {
	declines := max(o.Declines, 1)
	if o.Declines < 0 || o.Recommended != "" {
		declines = len(q.Fallbacks) + 1
	}
	asked := q.Fallbacks
	if o.Recommended != "" {
		asked = nil
	}
	if len(q.Fallbacks) > 0 {
		a.Hops = append(a.Hops, q.Model)
	}
	for i, model := range asked[:min(declines, len(asked))] {
		a.Blocks = append(a.Blocks, Block{Kind: Fallback, ID: a.Hops[i], Name: model, Category: o.Category})
		a.Hops = append(a.Hops, model)
		a.Model = model
	}
	if declines > len(q.Fallbacks) {
		a.Stop, a.Category, a.Explanation, a.Recommended = Refusal, o.Category, o.Explanation, o.Recommended
	}
}

// input is the tokens of the request, as read or else estimated.
func input(q request.Request) int {
	if q.Input > 0 {
		return q.Input
	}
	return Tokens(q.Prompt)
}

// think adds the thinking, which chat completions keep to themselves.
func (a *Answer) think(q request.Request, o Options) {
	a.Usage.Thinking = Tokens(thought)
	if q.Endpoint == request.ChatCompletions {
		return
	}
	block := Block{Kind: Thinking, Signature: signature}
	if !q.Omitted {
		block.Pieces = Words(thought, 0)
	}
	a.Blocks = append(a.Blocks, block)
}

// speak adds what the request asked for. It takes care that there are enough content events.
func (a *Answer) speak(q request.Request, o Options) {
	need := max(o.Events, o.Rune) - a.ContentEvents(Messages)
	if halved(o) {
		need *= 2
	}
	text := o.Text
	if text == "" {
		text = DefaultText
	}
	tool, calls := toolFor(q, o)
	switch {
	case calls:
		if o.Rune > 0 { // JSON has no place for it everywhere
			a.Blocks = append(a.Blocks, Block{Kind: Text, Pieces: Words(text, need)})
			need = 0
		}
		a.Blocks = append(a.Blocks, Block{
			Kind: ToolCall, Name: tool.Name, ID: a.id(toolPrefix(q)), Pieces: chunks(string(Synthesize(tool.Schema, true)), need),
		})
		a.Stop = ToolUse
	case q.Schema != nil && o.Rune == 0 && o.Stop != PauseTurn:
		a.Blocks = append(a.Blocks, Block{Kind: Text, Pieces: chunks(string(Synthesize(q.Schema, false)), need)})
	default:
		a.Blocks = append(a.Blocks, Block{Kind: Text, Pieces: Words(text, need)})
	}
}

func toolPrefix(q request.Request) string {
	if q.Endpoint == request.ChatCompletions || q.Endpoint == request.Responses {
		return "call_"
	}
	return "toolu_"
}

// toolFor returns the tool that the answer calls.
func toolFor(q request.Request, o Options) (request.Tool, bool) {
	wanted := o.HalfTool || o.Stop == ToolUse
	switch {
	case len(q.Tools) == 0, q.ToolChoice.Mode == "none" && !wanted:
		return request.Tool{}, false
	case o.Stop == EndTurn, o.Stop == StopSequence, o.Stop == PauseTurn:
		return request.Tool{}, false
	case q.ToolAnswered && !wanted:
		return request.Tool{}, false
	}
	for _, tool := range q.Tools {
		if tool.Name == q.ToolChoice.Name {
			return tool, true
		}
	}
	return q.Tools[0], true
}

// halved reports whether the plan wants an answer that ends in its middle.
func halved(o Options) bool {
	return o.HalfTool || o.Stop == MaxTokens || o.Stop == ContextWindow
}

// widen puts a character of more than one byte at the start of the content event with the number n.
func (a *Answer) widen(n int) {
	for i := range a.Blocks {
		pieces := a.Blocks[i].Pieces
		if 0 < n && n <= len(pieces) {
			pieces[n-1] = wide + pieces[n-1]
			return
		}
		n -= len(pieces)
	}
}

// stop ends the answer: as the plan wants it, else as the request does.
func (a *Answer) stop(q request.Request, o Options) {
	last := &a.Blocks[len(a.Blocks)-1]
	switch {
	case halved(o):
		a.Stop = MaxTokens
		if o.Stop != "" {
			a.Stop = o.Stop
		}
		last.halve()
	case o.Stop == PauseTurn:
		a.Stop = PauseTurn
		a.Blocks = append(a.Blocks, Block{Kind: ServerToolUse, Name: "web_search", ID: a.id("srvtoolu_"), Pieces: chunks(query, 0)})
	case o.Stop != "":
		a.Stop = o.Stop
		if o.Stop == StopSequence && len(q.StopSequences) > 0 {
			a.Sequence = q.StopSequences[0]
		}
	case o.Events == 0 && o.Rune == 0:
		a.obey(q)
	}
}

// halve cuts the block in its middle: a text behind a word, JSON behind a character.
func (b *Block) halve() {
	b.Cut = true
	if b.Kind == Text {
		b.Pieces = b.Pieces[:(len(b.Pieces)+1)/2]
		return
	}
	b.keep(utf8.RuneCountInString(b.joined()) / 2)
}

// keep cuts the block behind so many characters, but not before the first.
func (b *Block) keep(characters int) {
	characters = max(characters, 1)
	for i, piece := range b.Pieces {
		n := utf8.RuneCountInString(piece)
		if n >= characters {
			b.Pieces = b.Pieces[:i+1]
			b.Pieces[i] = piece[:len(piece)-len(behind(piece, characters))]
			return
		}
		characters -= n
	}
}

// behind returns what of s follows so many characters.
func behind(s string, characters int) string {
	for range characters {
		_, size := utf8.DecodeRuneInString(s)
		s = s[size:]
	}
	return s
}

func (b *Block) joined() string { return strings.Join(b.Pieces, "") }

// obey ends the answer where the request's stop sequences and limit do.
func (a *Answer) obey(q request.Request) {
	for i := range a.Blocks {
		if b := &a.Blocks[i]; b.Kind == Text && b.endAt(q.StopSequences, &a.Sequence) {
			a.Stop = StopSequence
			if len(b.Pieces) == 0 { // nothing was said
				i--
			}
			a.Blocks = a.Blocks[:i+1]
			break
		}
	}
	if q.MaxTokens > 0 {
		a.limit(q.MaxTokens)
	}
}

// endAt cuts the text in front of the first stop sequence in it, and says which one that was.
func (b *Block) endAt(sequences []string, found *string) bool {
	if len(sequences) == 0 {
		return false
	}
	text := b.joined()
	at := len(text)
	for _, sequence := range sequences {
		if i := strings.Index(text, sequence); i >= 0 && sequence != "" && i < at {
			at, *found = i, sequence
		}
	}
	if at == len(text) {
		return false
	}
	for i, piece := range b.Pieces {
		if at <= len(piece) {
			b.Pieces = b.Pieces[:i]
			if at > 0 {
				b.Pieces = append(b.Pieces, piece[:at])
			}
			return true
		}
		at -= len(piece)
	}
	return true
}

// limit cuts the answer behind the last piece, at least the first, that is within the limit.
func (a *Answer) limit(tokens int) {
	runes := 0
	if a.hidden() {
		runes = 4 * a.Usage.Thinking
	}
	kept := false
	for i := range a.Blocks {
		b := &a.Blocks[i]
		for j, piece := range b.Pieces {
			runes += utf8.RuneCountInString(piece)
			if !kept || tokensOf(runes) <= tokens {
				kept = true
				continue
			}
			b.Pieces, b.Cut, b.Signature = b.Pieces[:j], true, ""
			a.Blocks = a.Blocks[:i+1]
			if j == 0 {
				a.Blocks = a.Blocks[:i]
			}
			a.Stop, a.Sequence = MaxTokens, ""
			return
		}
	}
}

// hidden reports whether the answer has been thought about out of sight.
func (a *Answer) hidden() bool {
	for i := range a.Blocks {
		if a.Blocks[i].Kind == Thinking && len(a.Blocks[i].Pieces) > 0 {
			return false
		}
	}
	return a.Usage.Thinking > 0
}

// count sets the tokens of output. An answer that was cut off has used all that it was allowed.
func (a *Answer) count(q request.Request) {
	if a.Stop == MaxTokens && q.MaxTokens > 0 {
		a.Usage.Output = q.MaxTokens
		a.Usage.Thinking = min(a.Usage.Thinking, q.MaxTokens)
		return
	}
	runes := 0
	for i := range a.Blocks {
		for _, piece := range a.Blocks[i].Pieces {
			runes += utf8.RuneCountInString(piece)
		}
	}
	if a.hidden() {
		runes += 4 * a.Usage.Thinking
	}
	a.Usage.Output = tokensOf(runes)
}
