package answer_test

// The answers next to what the real APIs have sent: the same keys in the same order, the same kinds of value, null where
// they have null, and the same order of events.

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"holdfast/internal/sse"
	"holdfast/standin/internal/answer"
	"holdfast/standin/internal/request"
)

const recorded = "../../testdata/recorded/"

// exception is a difference between a recording and the answers that is there on purpose.
type exception struct {
	files string // glob
	line  string // part of a line of an outline
	why   string
}

// missing are the lines of recordings that answers do not have.
var missing = []exception{
	{"messages/2026-refusal.sse", ".stop_details.fallback_", "the request asked for a fallback in beta"},
	{"messages/2026-*.sse", ".usage.iterations", "the request asked for a fallback in beta"},
	{"messages/2026-tool.sse", ".message.usage.cache_creation null", "null in this one recording"},
	{"chat/*-gpt-5-*", ".system_fingerprint null", "not of every model"},
	{"responses/*-thinking.*", ".encrypted_content string", "the request asked to include it"},
	{"responses/*", ".tools[function].description string", "a description is not kept of a request"},
	{"responses/2026-03-*", ".prompt_cache_retention null", "newer recordings have a word for the default"},
}

// extra are the lines of answers that recordings do not have.
var extra = []exception{
	{"messages/2026-tool.sse", ".message.usage.cache_creation {", "null in this one recording"},
	{"messages/2026-tool.sse", ".message.usage.cache_creation.", "null in this one recording"},
	{"messages/2026-tool.sse", ".content_block.caller", "newer than the recording"},
	{"messages/2026-tool.sse", ".usage.output_tokens_details", "newer than the recording"},
	{"messages/20??-*-*", ".stop_details null", "newer than the recording"},
	{"messages/20??-*-*", ".usage.output_tokens_details", "newer than the recording"},
	{"messages/2025-*", ".caller", "newer than the recording"},
	{"messages/2025-*", ".usage.inference_geo", "newer than the recording"},
	{"chat/*-gpt-5-*", ".system_fingerprint string", "not of every model"},
	{"chat/*-gpt-5-*", ".choices[].logprobs null", "models that reason do not have it"},
	{"responses/*", ".tools[function].description null", "a description is not kept of a request"},
	{"responses/2026-03-*", ".response.moderation null", "newer than the recording"},
	{"responses/2026-03-*", ".response.reasoning.context null", "newer than the recording"},
	{"responses/2026-03-*", ".prompt_cache_retention string", "newer recordings have a word for the default"},
}

// opaque are the members whose inside is the caller's own.
var opaque = []string{".input", ".parameters", ".schema"}

// outline appends one line for each value in a JSON text, in its order: where it is, and of which kind.
func outline(t *testing.T, text []byte, prefix string) []string {
	t.Helper()
	decoder := json.NewDecoder(bytes.NewReader(text))
	var lines []string
	add := func(line string) {
		if !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	var walk func(path string)
	next := func() json.Token {
		token, err := decoder.Token()
		if err != nil {
			t.Fatalf("%v in %s", err, text)
		}
		return token
	}
	walk = func(path string) {
		for _, end := range opaque {
			if strings.HasSuffix(path, end) {
				var inside json.RawMessage
				if err := decoder.Decode(&inside); err != nil {
					t.Fatal(err)
				}
				add(fmt.Sprintf("%s %c", path, inside[0]))
				return
			}
		}
		switch token := next().(type) {
		case json.Delim:
			add(prefix + path + " " + token.String())
			for decoder.More() {
				if token == '[' {
					var element json.RawMessage
					if err := decoder.Decode(&element); err != nil {
						t.Fatal(err)
					}
					var named struct{ Type string }
					_ = json.Unmarshal(element, &named)
					for _, line := range outline(t, element, prefix+path+"["+named.Type+"]") {
						add(line)
					}
					continue
				}
				walk(path + "." + next().(string))
			}
			next()
		case nil:
			add(prefix + path + " null")
		case string:
			add(prefix + path + " string")
		case float64:
			add(prefix + path + " number")
		case bool:
			add(prefix + path + " bool")
		}
	}
	walk("")
	return lines
}

// kindOf names an event for the comparison: by its type, and by that of its block.
func kindOf(data []byte) string {
	var e struct {
		Type    string
		Block   struct{ Type string } `json:"content_block"`
		Delta   json.RawMessage
		Item    struct{ Type string }
		Part    struct{ Type string }
		Choices []struct {
			Delta  map[string]json.RawMessage
			Reason string `json:"finish_reason"`
		}
	}
	_ = json.Unmarshal(data, &e)
	var delta struct{ Type string }
	_ = json.Unmarshal(e.Delta, &delta)
	kind := e.Type
	if kind == "" {
		kind = "chunk"
	}
	for _, choice := range e.Choices {
		for _, member := range []string{"role", "content", "tool_calls"} {
			if _, found := choice.Delta[member]; found {
				kind += " " + member
			}
		}
		if bytes.Contains(choice.Delta["tool_calls"], []byte(`"id"`)) {
			kind += " start"
		}
		if choice.Reason != "" {
			kind += " finish"
		}
	}
	if kind == "chunk" {
		kind += " usage"
	}
	for _, part := range []string{e.Block.Type, delta.Type, e.Item.Type, e.Part.Type} {
		if part != "" {
			kind += " " + part
		}
	}
	return kind
}

// score is the order of a stream's events, with repeats once and pings left out, and the outlines of
// all events of each kind.
func score(t *testing.T, events [][]byte) (order, lines []string) {
	t.Helper()
	for _, data := range events {
		if string(data) == "[DONE]" {
			order = append(order, "[DONE]")
			continue
		}
		kind := kindOf(data)
		if kind == "ping" { // may come anywhere
			continue
		}
		if len(order) == 0 || order[len(order)-1] != kind {
			order = append(order, kind)
		}
		for _, line := range outline(t, data, "") {
			if line = kind + " " + line; !slices.Contains(lines, line) {
				lines = append(lines, line)
			}
		}
	}
	return order, lines
}

// without drops the lines that are excepted, and counts what each exception was good for.
func without(file string, lines []string, exceptions []exception, used map[exception]int) []string {
	return slices.DeleteFunc(slices.Clone(lines), func(line string) bool {
		for _, e := range exceptions {
			fits, _ := filepath.Match(e.files, file)
			if fits && strings.Contains(line, e.line) {
				used[e]++
				return true
			}
		}
		return false
	})
}

func recordedEvents(t *testing.T, text []byte) [][]byte {
	t.Helper()
	reader := sse.NewReader(bytes.NewReader(text), 0)
	var events [][]byte
	for {
		e, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return events
		}
		if err != nil {
			t.Fatal(err)
		}
		events = append(events, bytes.Clone(e.Data))
	}
}

// asked is what has to be asked to get an answer of the form of a recording.
func asked(t *testing.T, file string) (answer.Shape, request.Request, answer.Options) {
	t.Helper()
	folder, _, _ := strings.Cut(file, "/")
	q := request.Request{Endpoint: endpoint(shapes[folder]), Model: "m", IncludeUsage: true, MaxTokens: 4000}
	var o answer.Options
	if strings.Contains(file, "tool") || strings.Contains(file, "thinking") {
		q.Tools = []request.Tool{{Name: "weather", Schema: decoded(t, weatherSchema)}}
	}
	if strings.HasPrefix(file, "messages/20") && strings.Contains(file, "-tool") && !strings.Contains(file, "2026-tool") {
		o.Rune = 1 // the model says something before it calls
		q.MaxTokens = 0
	}
	if strings.Contains(file, "thinking") {
		q.Thinking = true
	}
	if folder == "responses" && strings.Contains(file, "gpt-5") {
		q.Thinking, q.Omitted = true, !strings.Contains(file, "thinking")
	}
	if folder == "responses" && strings.Contains(file, "thinking") {
		q.MaxTokens = 0
	}
	if strings.Contains(file, "gpt-4o-json") {
		q.Schema = decoded(t, weatherSchema)
	}
	if strings.Contains(file, "refusal") {
		o.Stop = answer.Refusal
	}
	return shapes[folder], q, o
}

func TestAnswersHaveTheFormOfTheRecordings(t *testing.T) {
	files, err := filepath.Glob(recorded + "*/*.*")
	if err != nil || len(files) < 30 {
		t.Fatalf("%d recordings, error %v", len(files), err)
	}
	used := map[exception]int{}
	for _, path := range files {
		file := strings.TrimPrefix(filepath.ToSlash(path), recorded)
		t.Run(file, func(t *testing.T) {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			shape, q, o := asked(t, file)
			a := answer.New(q, o)
			var theirs, ours []string
			if strings.HasSuffix(file, ".json") {
				theirs, ours = outline(t, text, ""), outline(t, a.JSON(shape), "")
			} else {
				var theirOrder, ourOrder []string
				theirOrder, theirs = score(t, recordedEvents(t, text))
				var events [][]byte
				for _, e := range copied(a, shape) {
					events = append(events, e.Data)
				}
				ourOrder, ours = score(t, events)
				if strings.Contains(file, "refusal") { // recorded behind half an answer
					ours = append(slices.DeleteFunc(theirs, func(line string) bool { return !strings.HasPrefix(line, "content_block") }), ours...)
					_, theirs = score(t, recordedEvents(t, text))
					slices.Sort(ours)
					slices.Sort(theirs)
				} else if diff := cmp.Diff(theirOrder, ourOrder); diff != "" {
					t.Errorf("order of events (-recorded +answer):\n%s", diff)
				}
			}
			if diff := cmp.Diff(without(file, theirs, missing, used), without(file, ours, extra, used)); diff != "" {
				t.Errorf("form (-recorded +answer):\n%s", diff)
			}
		})
	}
	for _, e := range slices.Concat(missing, extra) {
		if used[e] == 0 {
			t.Errorf("no recording needs the exception for %s in %s: %s", e.line, e.files, e.why)
		}
	}
}

// The comparison itself, seen to fail: a form that is always alike would let every answer through.
func TestOutlineTellsFormsApart(t *testing.T) {
	base := `{"a":1,"b":{"c":null},"d":[{"type":"x","e":"s"}],"input":{"x":1}}`
	for _, row := range []struct {
		name, text string
		same       bool
	}{
		{"values do not count", `{"a":2,"b":{"c":null},"d":[{"type":"x","e":"t"},{"type":"x","e":""}],"input":{"y":[]}}`, true},
		{"a key too many", `{"a":1,"z":1,"b":{"c":null},"d":[{"type":"x","e":"s"}],"input":{"x":1}}`, false},
		{"a key too few", `{"b":{"c":null},"d":[{"type":"x","e":"s"}],"input":{"x":1}}`, false},
		{"another order", `{"b":{"c":null},"a":1,"d":[{"type":"x","e":"s"}],"input":{"x":1}}`, false},
		{"not null", `{"a":1,"b":{"c":"n"},"d":[{"type":"x","e":"s"}],"input":{"x":1}}`, false},
		{"another kind", `{"a":"1","b":{"c":null},"d":[{"type":"x","e":"s"}],"input":{"x":1}}`, false},
		{"another element", `{"a":1,"b":{"c":null},"d":[{"type":"y","e":"s"}],"input":{"x":1}}`, false},
	} {
		if same := cmp.Equal(outline(t, []byte(base), ""), outline(t, []byte(row.text), "")); same != row.same {
			t.Errorf("%s: same is %v", row.name, same)
		}
	}
}
