package request_test

import (
	"strings"
	"testing"
)

const batchPath = "/v1/messages/batches"

func item(id, params string) string { return `{"custom_id":"` + id + `","params":` + params + `}` }

func batch(items ...string) string { return `{"requests":[` + strings.Join(items, ",") + `]}` }

func TestBatchRead(t *testing.T) {
	t.Parallel()
	q, refusal := ask(batchPath, current, batch(item("a", message("")), item("b_-9", `{"model":"m"}`), item("c", message(`"stream":true`)), item("d", message(`"temperature":1`))))
	if refusal != nil || len(q.Items) != 4 {
		t.Fatalf("%d items, %+v", len(q.Items), refusal)
	}
	for i, want := range []string{"", "messages: Field required", "stream: streaming is not supported in a batch", "temperature: Extra inputs are not permitted"} {
		got := ""
		if q.Items[i].Refusal != nil {
			got = q.Items[i].Refusal.Message
		}
		if got != want {
			t.Errorf("item %d: %q, want %q", i, got, want)
		}
	}
	if p := q.Items[0].Params; p.Prompt != "Hello\n" || p.CustomID != "a" || p.Key != "good" || p.Path != messagesPath || p.MaxTokens != 2048 {
		t.Errorf("%+v", p)
	}
}

func TestBatchRefuses(t *testing.T) {
	t.Parallel()
	most := strings.Repeat("0,", 99_999) + "0" // the items are looked at when their number is right
	checkRefusals(t, batchPath, []refusalRow{
		{"no requests", "", `{}`, "requests: Field required"},
		{"requests is a text", "", `{"requests":"a"}`, "requests: Input should be a valid list"},
		{"no items", "", batch(), "requests: List should have at least 1 item after validation, not 0"},
		{"too many items", "", batch(most, "0"), "requests: List should have at most 100000 items after validation, not 100001"},
		{"as many items as may be", "", batch(most), "requests.0: Input should be a valid dictionary"},
		{"item is a text", "", batch(`"a"`), "requests.0: Input should be a valid dictionary"},
		{"no id", "", batch(`{"params":{}}`), "requests.0.custom_id: Field required"},
		{"id is a number", "", batch(`{"custom_id":1,"params":{}}`), "requests.0.custom_id: Input should be a valid string"},
		{"id with a colon", "", batch(item("a", message("")), item("a:1", message(""))), "requests.1.custom_id: String should match pattern '^[a-zA-Z0-9_-]{1,64}$'"},
		{"empty id", "", batch(item("", message(""))), "requests.0.custom_id: String should match pattern '^[a-zA-Z0-9_-]{1,64}$'"},
		{"long id", "", batch(item(strings.Repeat("a", 65), message(""))), "requests.0.custom_id: String should match pattern '^[a-zA-Z0-9_-]{1,64}$'"},
		{"one id twice", "", batch(item("a", message("")), item("a", message(""))), "requests.1.custom_id: custom_id must be unique within a batch"},
		{"no params", "", batch(`{"custom_id":"a"}`), "requests.0.params: Field required"},
		{"more than params", "", batch(`{"custom_id":"a","params":{},"method":"POST"}`), "requests.0.method: Extra inputs are not permitted"},
		{"more than requests", "", `{"requests":[` + item("a", message("")) + `],"metadata":{}}`, "metadata: Extra inputs are not permitted"},
	})
}
