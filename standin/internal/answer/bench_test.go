package answer_test

import (
	"strings"
	"testing"

	"holdfast/standin/internal/answer"
	"holdfast/standin/internal/request"
)

const twentyWords = "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen twenty"

func BenchmarkJSON(b *testing.B) {
	for name, shape := range shapes {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			q := request.Request{Endpoint: endpoint(shape), Model: "claude-sonnet-5-5", MaxTokens: 100, Prompt: "hello"}
			for b.Loop() {
				answer.New(q, answer.Options{Number: 1, Text: twentyWords}).JSON(shape)
			}
		})
	}
}

func BenchmarkStream(b *testing.B) {
	for name, shape := range shapes {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			q := request.Request{Endpoint: endpoint(shape), Model: "claude-sonnet-5-5", MaxTokens: 100, Prompt: "hello"}
			for b.Loop() {
				for range answer.New(q, answer.Options{Number: 1, Text: twentyWords}).Events(shape) {
				}
			}
		})
	}
}

func BenchmarkTool(b *testing.B) {
	b.ReportAllocs()
	q := request.Request{Tools: weather(b)[1:], MaxTokens: 100}
	for b.Loop() {
		answer.New(q, answer.Options{}).JSON(answer.Messages)
	}
}

// A long answer costs by its length alone, and no allocation an event.
func TestStreamAllocatesByTheAnswerNotByTheEvent(t *testing.T) {
	for name, shape := range shapes {
		of := func(n int) float64 {
			a := answer.New(request.Request{Endpoint: endpoint(shape)}, answer.Options{Text: strings.Repeat("word ", n)})
			return testing.AllocsPerRun(20, func() {
				for range a.Events(shape) {
				}
			})
		}
		if few, many := of(10), of(5000); many > few+20 { // the buffer grows a few times
			t.Errorf("%s: %v allocations for 10 events, %v for 5000", name, few, many)
		}
	}
}
