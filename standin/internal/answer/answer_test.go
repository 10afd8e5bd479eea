package answer_test

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"holdfast/standin/internal/answer"
	"holdfast/standin/internal/request"
)

var shapes = map[string]answer.Shape{"messages": answer.Messages, "chat": answer.ChatCompletions, "responses": answer.Responses}

func endpoint(shape answer.Shape) request.Endpoint {
	return map[answer.Shape]request.Endpoint{answer.Messages: request.Messages, answer.ChatCompletions: request.ChatCompletions, answer.Responses: request.Responses}[shape]
}

// decoded reads JSON as the request package does.
func decoded(t testing.TB, text string) any {
	t.Helper()
	var v any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatal(err)
	}
	return v
}

const weatherSchema = `{"type":"object","properties":{"location":{"type":"string"},"unit":{"enum":["celsius","kelvin"]}},"required":["location","unit"]}`

func weather(t testing.TB) []request.Tool {
	return []request.Tool{{Name: "clock", Schema: map[string]any{}}, {Name: "weather", Schema: decoded(t, weatherSchema)}}
}

// copied are the events of a stream with data of their own.
func copied(a answer.Answer, shape answer.Shape) []answer.Event {
	var events []answer.Event
	for e := range a.Events(shape) {
		e.Data = bytes.Clone(e.Data)
		events = append(events, e)
	}
	return events
}

func text(a answer.Answer) string {
	var b strings.Builder
	for _, block := range a.Blocks {
		if block.Kind == answer.Text {
			b.WriteString(strings.Join(block.Pieces, ""))
		}
	}
	return b.String()
}

func kinds(a answer.Answer) []answer.Kind {
	var all []answer.Kind
	for _, block := range a.Blocks {
		all = append(all, block.Kind)
	}
	return all
}

func TestAnswerIsWhatTheRequestAsksFor(t *testing.T) {
	schema := decoded(t, `{"type":"object","properties":{"n":{"type":"integer","minimum":7}},"required":["n"]}`)
	const hundred = "0123456789 123456789 123456789 123456789 123456789 123456789 123456789 123456789 123456789 123456789"
	for _, row := range []struct {
		name    string
		request request.Request
		options answer.Options
		kinds   []answer.Kind
		stop    answer.Stop
		text    string
		out     int
	}{
		{"text", request.Request{}, answer.Options{Text: "one two three"}, []answer.Kind{answer.Text}, answer.EndTurn, "one two three", 3},
		{"no text given", request.Request{}, answer.Options{}, []answer.Kind{answer.Text}, answer.EndTurn, answer.DefaultText, 19},
		{"repeated for its events", request.Request{}, answer.Options{Text: "one two", Events: 5}, []answer.Kind{answer.Text}, answer.EndTurn, "one two one two one two", 5},
		{"thinking first", request.Request{Thinking: true}, answer.Options{Text: "one"}, []answer.Kind{answer.Thinking, answer.Text}, answer.EndTurn, "one", 17},
		{"thinking out of sight", request.Request{Thinking: true, Omitted: true}, answer.Options{Text: "one"}, []answer.Kind{answer.Thinking, answer.Text}, answer.EndTurn, "one", 16},
		{"a limit", request.Request{MaxTokens: 10}, answer.Options{Text: hundred}, []answer.Kind{answer.Text}, answer.MaxTokens, hundred[:41], 10},
		{"a limit that fits", request.Request{MaxTokens: 25}, answer.Options{Text: hundred}, []answer.Kind{answer.Text}, answer.EndTurn, hundred, 25},
		{"a limit below a word", request.Request{MaxTokens: 1}, answer.Options{Text: hundred}, []answer.Kind{answer.Text}, answer.MaxTokens, hundred[:11], 1},
		{"a limit within the thinking", request.Request{MaxTokens: 3, Thinking: true}, answer.Options{}, []answer.Kind{answer.Thinking}, answer.MaxTokens, "", 3},
		{"stop sequence", request.Request{StopSequences: []string{"", "three", "two t"}}, answer.Options{Text: "one two three"}, []answer.Kind{answer.Text}, answer.StopSequence, "one ", 1},
		{"stop sequence at once", request.Request{StopSequences: []string{"on"}}, answer.Options{Text: "one"}, nil, answer.StopSequence, "", 1},
		{"stop sequence not there", request.Request{StopSequences: []string{"four"}}, answer.Options{Text: "one"}, []answer.Kind{answer.Text}, answer.EndTurn, "one", 1},
		{"structured", request.Request{Schema: schema}, answer.Options{}, []answer.Kind{answer.Text}, answer.EndTurn, `{"n":7}`, 1},
		{"structured with events", request.Request{Schema: schema}, answer.Options{Events: 9}, []answer.Kind{answer.Text}, answer.EndTurn, "\n\n" + `{"n":7}`, 2},
		{"tool", request.Request{Tools: weather(t)}, answer.Options{}, []answer.Kind{answer.ToolCall}, answer.ToolUse, "", 1},
		{"tool answered", request.Request{Tools: weather(t), ToolAnswered: true}, answer.Options{Text: "one"}, []answer.Kind{answer.Text}, answer.EndTurn, "one", 1},
		{"tool not wanted", request.Request{Tools: weather(t), ToolChoice: request.ToolChoice{Mode: "none"}}, answer.Options{Text: "one"}, []answer.Kind{answer.Text}, answer.EndTurn, "one", 1},
		{"turn ended by the plan", request.Request{Tools: weather(t)}, answer.Options{Text: "one", Stop: answer.EndTurn}, []answer.Kind{answer.Text}, answer.EndTurn, "one", 1},
		{"refusal", request.Request{}, answer.Options{Stop: answer.Refusal}, nil, answer.Refusal, "", 0},
		{"pause", request.Request{}, answer.Options{Text: "one", Stop: answer.PauseTurn}, []answer.Kind{answer.Text, answer.ServerToolUse}, answer.PauseTurn, "one", 11},
		{"truncation", request.Request{MaxTokens: 100}, answer.Options{Text: "one two three four", Stop: answer.MaxTokens}, []answer.Kind{answer.Text}, answer.MaxTokens, "one two ", 100},
		{"truncation with events", request.Request{}, answer.Options{Text: "one two", Stop: answer.MaxTokens, Events: 3}, []answer.Kind{answer.Text}, answer.MaxTokens, "one two one ", 3},
		{"context window", request.Request{}, answer.Options{Text: "one two", Stop: answer.ContextWindow}, []answer.Kind{answer.Text}, answer.ContextWindow, "one ", 1},
		{"a new word", request.Request{}, answer.Options{Text: "one two", Stop: "foo_bar"}, []answer.Kind{answer.Text}, "foo_bar", "one two", 1},
		{"half a tool without tools", request.Request{}, answer.Options{Text: "one two", HalfTool: true}, []answer.Kind{answer.Text}, answer.MaxTokens, "one ", 1},
	} {
		t.Run(row.name, func(t *testing.T) {
			a := answer.New(row.request, row.options)
			if diff := cmp.Diff(row.kinds, kinds(a)); diff != "" {
				t.Errorf("blocks (-want +got):\n%s", diff)
			}
			if a.Stop != row.stop || text(a) != row.text || a.Usage.Output != row.out {
				t.Errorf("stop %q, text %q, %d tokens; want %q, %q, %d", a.Stop, text(a), a.Usage.Output, row.stop, row.text, row.out)
			}
		})
	}
}

func TestToolCallNamesTheChosenToolAndFitsItsSchema(t *testing.T) {
	for _, row := range []struct {
		name    string
		request request.Request
		tool    string
		input   string
	}{
		{"first", request.Request{}, "clock", `{}`},
		{"any", request.Request{ToolChoice: request.ToolChoice{Mode: "any"}}, "clock", `{}`},
		{"chosen", request.Request{ToolChoice: request.ToolChoice{Mode: "tool", Name: "weather"}}, "weather", `{"location":"stand-in","unit":"celsius"}`},
	} {
		t.Run(row.name, func(t *testing.T) {
			row.request.Tools = weather(t)
			a := answer.New(row.request, answer.Options{Number: 7})
			call := a.Blocks[0]
			if got := strings.Join(call.Pieces, ""); call.Name != row.tool || got != row.input || call.ID != "toolu_standin_000007" {
				t.Errorf("%s %s with %s, want %s with %s", call.ID, call.Name, got, row.tool, row.input)
			}
		})
	}
}

// B171: the input of a tool is cut in its middle, and the stop reason says so.
func TestB171HalfToolIsNoJSONInAStreamAndAnObjectInABody(t *testing.T) {
	for name, shape := range shapes {
		t.Run(name, func(t *testing.T) {
			q := request.Request{Endpoint: endpoint(shape), Tools: weather(t)[1:], ToolAnswered: true}
			a := answer.New(q, answer.Options{HalfTool: true})
			input := strings.Join(a.Blocks[0].Pieces, "")
			if a.Stop != answer.MaxTokens || input != `{"location":"stand-i` {
				t.Fatalf("stop %q, input %s", a.Stop, input)
			}
			if json.Valid([]byte(input)) {
				t.Errorf("%s is whole", input)
			}
			body := a.JSON(shape)
			if !json.Valid(body) {
				t.Fatalf("%s is no JSON", body)
			}
			wanted := map[string]string{"messages": `"input":{}`, "chat": `"arguments":"{\"location\":\"stand-i"`, "responses": `"status":"incomplete","arguments":"{\"location\":\"stand-i"`}
			if !bytes.Contains(body, []byte(wanted[name])) {
				t.Errorf("%s lacks %s", body, wanted[name])
			}
		})
	}
	q := request.Request{Tools: []request.Tool{{Name: "put", Schema: decoded(t, `{"type":"object","required":["a","b","c"],"properties":{"a":{"const":[1]},"b":{"const":12},"c":{"const":"a long text to be cut"}}}`)}}}
	a := answer.New(q, answer.Options{HalfTool: true})
	if !bytes.Contains(a.JSON(answer.Messages), []byte(`"input":{"a":[1],"b":12},`)) {
		t.Errorf("what had come whole is lost: %s from %s", a.JSON(answer.Messages), strings.Join(a.Blocks[0].Pieces, ""))
	}
}

func TestStreamHoldsSoManyContentEvents(t *testing.T) {
	requests := map[string]request.Request{
		"text": {}, "thinking": {Thinking: true}, "omitted": {Thinking: true, Omitted: true}, "tool": {Tools: weather(t)},
		"thinking and tool": {Thinking: true, Tools: weather(t)}, "structured": {Schema: decoded(t, weatherSchema)},
		"limited": {MaxTokens: 1, StopSequences: []string{"This"}},
	}
	for name, q := range requests {
		for shapeName, shape := range shapes {
			t.Run(name+" "+shapeName, func(t *testing.T) {
				q.Endpoint = endpoint(shape)
				for _, o := range []answer.Options{
					{Events: 1}, {Events: 40}, {Events: 3, Stop: answer.MaxTokens}, {Events: 40, Stop: answer.MaxTokens}, {Events: 40, HalfTool: true},
					{Events: 40, Stop: answer.PauseTurn}, {Events: 40, Stop: answer.ContextWindow}, {Rune: 1}, {Rune: 15}, {Rune: 16}, {Rune: 40},
				} {
					a := answer.New(q, o)
					seen := 0
					for _, e := range copied(a, shape) {
						if e.Part != answer.Content {
							continue
						}
						seen++
						if first, _ := utf8.DecodeRune(e.Data[e.At:]); seen == o.Rune && utf8.RuneLen(first) < 2 {
							t.Errorf("%+v: event %d begins with %q in %s", o, seen, first, e.Data)
						}
					}
					if seen != a.ContentEvents(shape) || seen < max(o.Events, o.Rune) {
						t.Errorf("%+v: %d content events, ContentEvents says %d", o, seen, a.ContentEvents(shape))
					}
				}
			})
		}
	}
}

func TestPartsOfAStreamFollowEachOther(t *testing.T) {
	for name, shape := range shapes {
		t.Run(name, func(t *testing.T) {
			q := request.Request{Endpoint: endpoint(shape), Thinking: true, Tools: weather(t), IncludeUsage: true}
			a := answer.New(q, answer.Options{Rune: 20})
			events := copied(a, shape)
			behind, output := false, 0
			for i, e := range events {
				if behind && e.Part < answer.Tail {
					t.Errorf("%s comes behind the content as part %d", e.Data, e.Part)
				}
				behind = behind || e.Part >= answer.Tail
				if e.Output < output {
					t.Errorf("output falls from %d to %d in %s", output, e.Output, e.Data)
				}
				output = e.Output
				if (e.Part == answer.Final) != (i == len(events)-1) {
					t.Errorf("event %d of %d is part %d", i, len(events), e.Part)
				}
				if shape != answer.ChatCompletions && !bytes.HasPrefix(e.Data, []byte(`{"type":"`+e.Name+`"`)) && e.Name != "ping" {
					t.Errorf("event %s holds %s", e.Name, e.Data)
				}
			}
			if output != a.Usage.Output {
				t.Errorf("the stream ends at %d tokens of %d", output, a.Usage.Output)
			}
		})
	}
}

func TestStreamMayEndAnywhere(t *testing.T) {
	for name, shape := range shapes {
		t.Run(name, func(t *testing.T) {
			q := request.Request{Endpoint: endpoint(shape), Thinking: true, Tools: weather(t), IncludeUsage: true}
			for _, o := range []answer.Options{{Rune: 20}, {Stop: answer.Refusal, Explanation: "no"}} {
				a := answer.New(q, o)
				all := copied(a, shape)
				for n := range all {
					seen := 0
					for e := range a.Events(shape) {
						if !bytes.Equal(e.Data, all[seen].Data) {
							t.Errorf("event %d differs: %s", seen, e.Data)
						}
						if seen++; seen > n {
							break
						}
					}
				}
			}
		})
	}
}

func TestSameRequestGetsTheSameBytes(t *testing.T) {
	for name, shape := range shapes {
		t.Run(name, func(t *testing.T) {
			build := func() (string, []answer.Event) {
				q := request.Request{Endpoint: endpoint(shape), Model: "m", Prompt: "tell me a secret word", Thinking: true, Tools: weather(t), Schema: decoded(t, weatherSchema)}
				a := answer.New(q, answer.Options{Number: 3})
				return string(a.JSON(shape)), copied(a, shape)
			}
			body, events := build()
			for range 20 {
				again, more := build()
				if body != again || !reflect.DeepEqual(events, more) { // in a fraction of the time of a Diff
					t.Fatalf("another time (-first +second):\n%s", cmp.Diff(body, again)+cmp.Diff(events, more))
				}
			}
			if strings.Contains(body, "secret") {
				t.Errorf("the prompt comes back in %s", body)
			}
		})
	}
}

func TestInErrorHasTheFormOfItsAPI(t *testing.T) {
	for _, row := range []struct {
		shape answer.Shape
		code  string
		name  string
		data  string
	}{
		{answer.Messages, "", "error", `{"type":"error","error":{"details":null,"type":"overloaded_error","message":"busy \"now\""},"request_id":"req_1"}`},
		{answer.Messages, "c", "error", `{"type":"error","error":{"details":{"error_code":"c"},"type":"overloaded_error","message":"busy \"now\""},"request_id":"req_1"}`},
		{answer.ChatCompletions, "c", "", `{"error":{"message":"busy \"now\"","type":"overloaded_error","param":null,"code":"c"}}`},
		{answer.Responses, "", "error", `{"type":"error","sequence_number":5,"error":{"type":"overloaded_error","code":null,"message":"busy \"now\"","param":null}}`},
	} {
		e := answer.InError(row.shape, "overloaded_error", row.code, `busy "now"`, "req_1", 5)
		if e.Name != row.name || string(e.Data) != row.data || e.Part != answer.Final {
			t.Errorf("%q %s, want %q %s", e.Name, e.Data, row.name, row.data)
		}
	}
	failed := answer.New(request.Request{}, answer.Options{Number: 1}).Failed("server_is_overloaded", "busy", 4)
	for _, part := range []string{`"id":"resp_standin_000001"`, `"status":"failed"`, `"error":{"code":"server_is_overloaded","message":"busy"}`, `"sequence_number":4}`} {
		if !json.Valid(failed.Data) || failed.Name != "response.failed" || !bytes.Contains(failed.Data, []byte(part)) {
			t.Errorf("%s %s lacks %s", failed.Name, failed.Data, part)
		}
	}
}

func TestCountTokensIsOneNumber(t *testing.T) {
	for want, q := range map[string]request.Request{`{"input_tokens":12}`: {Input: 12, Prompt: "a"}, `{"input_tokens":2}`: {Prompt: "12345678"}, `{"input_tokens":1}`: {}} {
		if got := string(answer.CountTokens(q)); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

func FuzzAnswerIsAlwaysJSON(f *testing.F) {
	f.Add("one two", "three", 5, 3, uint8(0))
	f.Add("\xff\x00\"\\\u2028<é>", "\xf0", 0, 0, uint8(255))
	f.Add("", "", 1, 70, uint8(37))
	stops := []answer.Stop{"", answer.EndTurn, answer.MaxTokens, answer.StopSequence, answer.ToolUse, answer.PauseTurn, answer.Refusal, answer.ContextWindow, "new"}
	f.Fuzz(func(t *testing.T, words, sequence string, limit, events int, flags uint8) {
		events %= 100
		q := request.Request{
			Model: words, MaxTokens: limit, StopSequences: []string{sequence}, IncludeUsage: flags&1 != 0, Thinking: flags&2 != 0, Omitted: flags&4 != 0,
		}
		if flags&8 != 0 {
			q.Tools = []request.Tool{{Name: sequence, Schema: decoded(t, weatherSchema)}}
		}
		o := answer.Options{Text: words, Events: events, Explanation: sequence, HalfTool: flags&16 != 0, Stop: stops[int(flags>>4)%len(stops)]}
		if flags&32 != 0 {
			o.Rune = events
		}
		for _, shape := range shapes {
			q.Endpoint = endpoint(shape)
			a := answer.New(q, o)
			if body := a.JSON(shape); !json.Valid(body) || !utf8.Valid(body) {
				t.Errorf("no JSON: %s", body)
			}
			all := copied(a, shape)
			for i, e := range all {
				done := shape == answer.ChatCompletions && i == len(all)-1
				if done != (string(e.Data) == "[DONE]") || !done && !json.Valid(e.Data) || slices.Contains(e.Data, '\n') {
					t.Errorf("event %d: %s", i, e.Data)
				}
			}
		}
	})
}
