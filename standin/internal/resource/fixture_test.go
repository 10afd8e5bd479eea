package resource_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/anthropics/anthropic-sdk-go/v2"
	"github.com/anthropics/anthropic-sdk-go/v2/packages/pagination"

	"holdfast/internal/wire"
	"holdfast/standin/internal/answer"
	"holdfast/standin/internal/request"
	"holdfast/standin/internal/resource"
)

const (
	base    = "http://standin.test"
	message = `{"id":"msg_1","type":"message","role":"assistant","model":"claude-haiku-4-5","content":[],"container":null,"diagnostics":null,"stop_details":null,"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":3,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"cache_creation":{"ephemeral_5m_input_tokens":0,"ephemeral_1h_input_tokens":0},"output_tokens":5,"output_tokens_details":null,"server_tool_use":null,"service_tier":"batch","inference_geo":"not_available","speed":null}}`
)

var (
	start = time.Date(2026, 11, 30, 12, 0, 0, 123456000, time.UTC)
	usage = answer.Usage{Input: 3, Output: 5}
)

// now is a look so many seconds after the start.
func now(seconds int) resource.Look {
	return resource.Look{At: start.Add(time.Duration(seconds) * time.Second), Base: base}
}

func items(n int) []request.Item {
	all := make([]request.Item, n)
	for i := range all {
		all[i] = request.Item{CustomID: fmt.Sprintf("item-%d", i), Params: request.Request{Model: "claude-haiku-4-5", Prompt: "hi", MaxTokens: 5}}
	}
	return all
}

func succeed(request.Item, time.Time) resource.Result {
	return resource.Result{Message: func() []byte { return []byte(message) }, Usage: usage}
}

func refuseNot(t *testing.T, refusal *request.Refusal) {
	t.Helper()
	if refusal != nil {
		t.Fatalf("refused: %+v", *refusal)
	}
}

// refused checks status, type, code and message at once.
func refused(t *testing.T, got *request.Refusal, status int, typ, code, message string) {
	t.Helper()
	want := request.Refusal{Status: status, Type: typ, Code: code, Message: message}
	if got == nil || *got != want {
		t.Errorf("got refusal %+v\nwant %+v", got, want)
	}
}

func create(t *testing.T, batches *resource.Batches, at resource.Look, all []request.Item) string {
	t.Helper()
	body, refusal := batches.Create(at, all)
	refuseNot(t, refusal)
	return wellShaped[anthropic.MessageBatch](t, body).ID
}

func look(t *testing.T, batches *resource.Batches, at resource.Look, id string) anthropic.MessageBatch {
	t.Helper()
	body, _, refusal := batches.Get(at, id)
	refuseNot(t, refusal)
	return wellShaped[anthropic.MessageBatch](t, body)
}

func readResults(t *testing.T, batches *resource.Batches, at resource.Look, id string) []string {
	t.Helper()
	lines, refusal := batches.Results(at, id)
	refuseNot(t, refusal)
	var all []string
	for line := range lines {
		text, complete := strings.CutSuffix(string(line), "\n")
		if !complete || strings.Contains(text, "\n") {
			t.Errorf("not one line: %q", line)
		}
		all = append(all, text)
	}
	return all
}

func listBatches(t *testing.T, batches *resource.Batches, at resource.Look, page request.Page) pagination.Page[anthropic.MessageBatch] {
	t.Helper()
	body, refusal := batches.List(at, page)
	refuseNot(t, refusal)
	return wellShaped[pagination.Page[anthropic.MessageBatch]](t, body)
}

func listModels(t *testing.T, models resource.Models, page request.Page) pagination.Page[anthropic.ModelInfo] {
	t.Helper()
	body, refusal := models.List(wire.DialectAnthropic, page)
	refuseNot(t, refusal)
	return wellShaped[pagination.Page[anthropic.ModelInfo]](t, body)
}
