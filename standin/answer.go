package standin

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

const defaultReply = "This is the stand-in speaking: the call went through and here is its answer."

// ending is why an answer stops, before a dialect has a word for it.
type ending uint8

const (
	endOfTurn ending = iota
	outOfTokens
	declined
)

// answer is what a request gets when nothing is in the way, in no dialect yet.
type answer struct {
	number  int
	model   string
	words   []string // one content event each; joined they are the text
	ending  ending
	step    Step // for the details of a refusal
	usage   tokens
	details bool // OpenAI: the stream ends with a chunk of usage
}

// newAnswer builds the answer to the request with the given number.
func newAnswer(number int, q request, step Step, reply string) answer {
	a := answer{number: number, model: q.model, step: step, details: q.usage, usage: tokens{Input: count(q.prompt)}}
	if step.Kind == Refusal {
		a.ending = declined
		return a
	}
	a.words = words(reply, step.After+1)
	switch {
	case step.Kind == Truncation:
		a.words = a.words[:(len(a.words)+1)/2]
		a.ending = outOfTokens
	case step.After == 0 && q.maxTokens > 0:
		if kept := fit(a.words, q.maxTokens); kept < len(a.words) {
			a.words, a.ending = a.words[:kept], outOfTokens
		}
	}
	a.usage.Output = count(a.text())
	if a.ending == outOfTokens && q.maxTokens > 0 {
		a.usage.Output = q.maxTokens // an answer that was cut off has used all that it was allowed
	}
	return a
}

func (a answer) text() string { return strings.Join(a.words, "") }

// id returns the id of the answer with the prefix of its dialect.
func (a answer) id(prefix string) string { return fmt.Sprintf("%sstandin_%06d", prefix, a.number) }

// words cuts the reply behind every space, and repeats it until there are at
// least n words.
func words(reply string, n int) []string {
	once := strings.SplitAfter(reply, " ")
	all := once
	for len(all) < n {
		all = append(append(all[:len(all)-1:len(all)-1], all[len(all)-1]+" "), once...)
	}
	return all
}

// fit returns how many words, at least one, make no more than limit tokens.
func fit(words []string, limit int) int {
	runes := 0
	for i, w := range words {
		runes += utf8.RuneCountInString(w)
		if i > 0 && tokensOf(runes) > limit {
			return i
		}
	}
	return len(words)
}

// count estimates the tokens of a text.
func count(text string) int { return tokensOf(utf8.RuneCountInString(text)) }

// tokensOf takes four characters for a token, and at least one token.
func tokensOf(runes int) int { return max(1, runes/4) }

// event is one event of a stream that has yet to be sent.
type event struct {
	name string
	data []byte
	part part
	text string // of a content event
}

// part is the part of a stream that an event belongs to.
type part uint8

const (
	preamble part = iota
	content
	tail  // behind the content, the stop reason included
	final // the event that ends the stream
)

// position returns the index of the first event that is not sent before a
// fault at the step's stage.
func position(events []event, step Step) int {
	seen := 0
	for i, e := range events {
		switch {
		case step.At == First,
			step.At == Preamble && e.part > preamble,
			step.At == Content && (seen == step.After || e.part > content) && e.part > preamble,
			step.At == Stop && e.part == final:
			return i
		}
		if e.part == content {
			seen++
		}
	}
	return len(events)
}
