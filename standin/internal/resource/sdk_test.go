package resource_test

import (
	"encoding/json"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/anthropics/anthropic-sdk-go/v2"
	"github.com/anthropics/anthropic-sdk-go/v2/packages/respjson"
	"github.com/openai/openai-go/v3"

	"holdfast/internal/wire"
	"holdfast/standin/internal/answer"
	"holdfast/standin/internal/request"
	"holdfast/standin/internal/resource"
)

// wellShaped reads the document into the SDK's type and checks it in both directions: no member that the SDK does not
// know, none missing that it requires, at any depth.
func wellShaped[T any](t *testing.T, document []byte) T {
	t.Helper()
	var read T
	if err := json.Unmarshal(document, &read); err != nil {
		t.Fatalf("%s: %v", document, err)
	}
	checkShape(t, reflect.ValueOf(read), reflect.TypeFor[T]().Name())
	return read
}

func checkShape(t *testing.T, v reflect.Value, at string) {
	t.Helper()
	switch v.Kind() {
	case reflect.Slice:
		for i := range v.Len() {
			checkShape(t, v.Index(i), at+"[]")
		}
		return
	case reflect.Struct:
	default:
		return
	}
	meta := v.FieldByName("JSON")
	if !meta.IsValid() {
		return
	}
	if extra := meta.FieldByName("ExtraFields"); extra.IsValid() && extra.Len() > 0 {
		t.Errorf("%s: the SDK does not know %v", at, extra.MapKeys())
	}
	for i := range v.NumField() {
		field := v.Type().Field(i)
		state, ok := meta.FieldByName(field.Name), false
		if field.Name == "JSON" || !state.IsValid() {
			continue
		}
		var raw respjson.Field
		if raw, ok = state.Interface().(respjson.Field); !ok {
			continue
		}
		required := field.Tag.Get("api") == "required" || field.Tag.Get("default") != ""
		if required && raw.Raw() == "" {
			t.Errorf("%s: %s is missing", at, field.Tag.Get("json"))
		}
		if raw.Valid() {
			checkShape(t, v.Field(i), at+"."+field.Name)
		}
	}
}

func TestBatchHasTheShapeOfTheSDKInEveryState(t *testing.T) {
	t.Parallel()
	batches := resource.NewBatches(resource.BatchSettings{Outcome: succeed})
	body, refusal := batches.Create(now(0), items(4))
	refuseNot(t, refusal)
	created := wellShaped[anthropic.MessageBatch](t, body)
	if created.ID != "msgbatch_standin_000001" || created.Type != "message_batch" || created.ProcessingStatus != "in_progress" {
		t.Errorf("created %s", body)
	}
	if created.RequestCounts.Processing != 4 || !created.ExpiresAt.Equal(start.Add(24*time.Hour)) || !created.CreatedAt.Equal(start) {
		t.Errorf("created %s", body)
	}
	for name, raw := range map[string]string{
		"archived_at": created.JSON.ArchivedAt.Raw(), "cancel_initiated_at": created.JSON.CancelInitiatedAt.Raw(),
		"ended_at": created.JSON.EndedAt.Raw(), "results_url": created.JSON.ResultsURL.Raw(),
	} {
		if raw != "null" {
			t.Errorf("%s of a new batch is %q", name, raw)
		}
	}

	body, over, refusal := batches.Get(now(1), created.ID)
	refuseNot(t, refusal)
	half := wellShaped[anthropic.MessageBatch](t, body)
	if over || half.RequestCounts.Processing != 2 || half.RequestCounts.Succeeded != 2 {
		t.Errorf("half way %s", body)
	}
	body, over, refusal = batches.Get(now(2), created.ID)
	refuseNot(t, refusal)
	done := wellShaped[anthropic.MessageBatch](t, body)
	if !over || done.ProcessingStatus != "ended" || done.RequestCounts.Succeeded != 4 || !done.EndedAt.Equal(start.Add(2*time.Second)) {
		t.Errorf("ended %s", body)
	}
	if want := base + "/v1/messages/batches/msgbatch_standin_000001/results"; done.ResultsURL != want {
		t.Errorf("results_url %q, want %q", done.ResultsURL, want)
	}

	body, refusal = batches.Delete(now(3), created.ID)
	refuseNot(t, refusal)
	if gone := wellShaped[anthropic.DeletedMessageBatch](t, body); gone.ID != created.ID || gone.Type != "message_batch_deleted" {
		t.Errorf("deleted %s", body)
	}
}

func TestResultsHaveTheShapeOfTheSDK(t *testing.T) {
	t.Parallel()
	batches := resource.NewBatches(resource.BatchSettings{Outcome: func(item request.Item, _ time.Time) resource.Result {
		switch item.CustomID {
		case "item-1":
			return resource.Result{Kind: resource.Errored}
		case "item-2":
			return resource.Result{Kind: resource.Canceled}
		case "item-3":
			return resource.Result{Kind: resource.Expired, Usage: answer.Usage{Input: 9}}
		case "item-7":
			return resource.Result{}
		}
		return succeed(item, start)
	}})
	all := items(8)
	all[4].Refusal = &request.Refusal{Status: 400, Message: "messages: Field required"}
	all[5].Refusal = &request.Refusal{Status: 404, Message: "model: claude-none", Code: "some_code"}
	all[6].Params.Stream = true
	id := create(t, batches, now(0), all)
	look(t, batches, now(1), id)
	want := map[string]string{
		"item-0": `{"type":"succeeded","message":` + message + `}`,
		"item-1": `{"type":"errored","error":{"type":"error","error":{"details":{"error_visibility":"user_facing"},"type":"api_error","message":"Internal server error"},"request_id":null}}`,
		"item-2": `{"type":"canceled"}`,
		"item-3": `{"type":"expired"}`,
		"item-4": `{"type":"errored","error":{"type":"error","error":{"details":{"error_visibility":"user_facing"},"type":"invalid_request_error","message":"messages: Field required"},"request_id":null}}`,
		"item-5": `{"type":"errored","error":{"type":"error","error":{"details":{"error_code":"some_code","error_visibility":"user_facing"},"type":"not_found_error","message":"model: claude-none"},"request_id":null}}`,
		"item-6": `{"type":"errored","error":{"type":"error","error":{"details":{"error_visibility":"user_facing"},"type":"invalid_request_error","message":"\"stream=True\" is not supported in the Message Batches API"},"request_id":null}}`,
	}
	for _, line := range readResults(t, batches, now(2), id) {
		one := wellShaped[anthropic.MessageBatchIndividualResponse](t, []byte(line))
		if one.CustomID == "item-7" && one.Result.Message.Usage.ServiceTier == "batch" {
			continue
		}
		if got := one.Result.RawJSON(); got != want[one.CustomID] {
			t.Errorf("%s\n got %s\nwant %s", one.CustomID, got, want[one.CustomID])
		}
		delete(want, one.CustomID)
		switch result := one.Result.AsAny().(type) {
		case anthropic.MessageBatchErroredResult:
			checkShape(t, reflect.ValueOf(result), "errored")
			if result.Error.Error.Message == "" || result.Error.Error.Type == "" {
				t.Errorf("the SDK sees no error in %s", line)
			}
		case anthropic.MessageBatchSucceededResult:
			checkShape(t, reflect.ValueOf(result), "succeeded")
		case anthropic.MessageBatchCanceledResult:
			checkShape(t, reflect.ValueOf(result), "canceled")
		case anthropic.MessageBatchExpiredResult:
			checkShape(t, reflect.ValueOf(result), "expired")
		default:
			t.Errorf("the SDK knows no result like %s", line)
		}
	}
	if len(want) > 0 {
		t.Errorf("no result for %v", want)
	}
	counts := batches.Counts(now(3).At)
	if counts.Succeeded != 2 || counts.Errored != 4 || counts.Canceled != 1 || counts.Expired != 1 || counts.Usage != usage {
		t.Errorf("counts %+v", counts)
	}
}

func TestFileHasTheShapeOfTheSDK(t *testing.T) {
	t.Parallel()
	files := resource.NewFiles(resource.FileSettings{})
	body, refusal := files.Upload(now(0), &request.File{Name: "in/some.txt", Type: "text/plain", Content: []byte("hello")})
	refuseNot(t, refusal)
	kept := wellShaped[anthropic.FileMetadata](t, body)
	if kept.ID != "file_standin_000001" || kept.Filename != "some.txt" || kept.MimeType != "text/plain" || kept.SizeBytes != 5 {
		t.Errorf("uploaded %s", body)
	}
	if kept.Downloadable || !kept.CreatedAt.Equal(start) || kept.JSON.ExpiresAt.Raw() != "null" || kept.Type != "file" {
		t.Errorf("uploaded %s", body)
	}
	again, refusal := files.Get(kept.ID)
	refuseNot(t, refusal)
	if string(again) != string(body) {
		t.Errorf("got %s\nwant %s", again, body)
	}
	body, refusal = files.Delete(kept.ID)
	refuseNot(t, refusal)
	if gone := wellShaped[anthropic.DeletedFile](t, body); gone.ID != kept.ID || gone.Type != "file_deleted" {
		t.Errorf("deleted %s", body)
	}
}

func TestEveryModelHasTheShapeOfTheSDK(t *testing.T) {
	t.Parallel()
	var models resource.Models
	page := listModels(t, models, request.Page{Limit: 1000})
	if len(page.Data) < 18 || page.HasMore {
		t.Fatalf("%d models, more %v", len(page.Data), page.HasMore)
	}
	for i, one := range page.Data {
		body, refusal := models.Get(wire.DialectAnthropic, one.ID)
		refuseNot(t, refusal)
		info := wellShaped[anthropic.ModelInfo](t, body)
		if info.DisplayName == "" || info.MaxInputTokens < info.MaxTokens || info.CreatedAt.Year() < 2025 {
			t.Errorf("%s", body)
		}
		if !strings.Contains(info.ID, string(info.Line)) {
			t.Errorf("%s is of the line %s", info.ID, info.Line)
		}
		if deprecated := info.Lifecycle == "deprecated"; deprecated != (info.JSON.RetiresAt.Raw() != "null") {
			t.Errorf("%s is %s and retires at %s", info.ID, info.Lifecycle, info.JSON.RetiresAt.Raw())
		}
		if i > 0 && one.CreatedAt.After(page.Data[i-1].CreatedAt) {
			t.Errorf("%s stands behind an older model", one.ID)
		}
	}
}

// Every model constant of the SDK is known here, but for the one whose end of life is over.
func TestModelsOfTheSDKAreKnown(t *testing.T) {
	t.Parallel()
	var models resource.Models
	for _, id := range []anthropic.Model{
		anthropic.ModelClaudeFable5_2, anthropic.ModelClaudeMythos5_2, anthropic.ModelClaudeHaiku5_5, anthropic.ModelClaudeSonnet5_5,
		anthropic.ModelClaudeFable5_1, anthropic.ModelClaudeOpus5_5, anthropic.ModelClaudeMythos5_1, anthropic.ModelClaudeSonnet5,
		anthropic.ModelClaudeFable5, anthropic.ModelClaudeMythos5, anthropic.ModelClaudeOpus5, anthropic.ModelClaudeOpus4_8,
		anthropic.ModelClaudeOpus4_7, anthropic.ModelClaudeOpus4_6, anthropic.ModelClaudeSonnet4_6, anthropic.ModelClaudeHaiku4_5,
		anthropic.ModelClaudeHaiku4_5_20251001, "claude-opus-4-5", "claude-opus-4-5-20251101", "claude-sonnet-4-5", "claude-sonnet-4-5-20250929",
	} {
		if _, refusal := models.Get(wire.DialectAnthropic, id); refusal != nil {
			t.Errorf("%s: %+v", id, refusal)
		}
	}
	body, refusal := models.Get(wire.DialectAnthropic, "claude-haiku-4-5")
	refuseNot(t, refusal)
	if info := wellShaped[anthropic.ModelInfo](t, body); info.ID != "claude-haiku-4-5-20251001" {
		t.Errorf("the alias stands for %s", info.ID)
	}
}

func TestModelsOfTheOpenAIDialect(t *testing.T) {
	t.Parallel()
	var models resource.Models
	body, refusal := models.List(wire.DialectOpenAI, request.Page{})
	refuseNot(t, refusal)
	var page struct {
		Object string
		Data   []json.RawMessage
	}
	if err := json.Unmarshal(body, &page); err != nil || page.Object != "list" || len(page.Data) < 10 {
		t.Fatalf("%s: %v", body, err)
	}
	for _, one := range page.Data {
		info := wellShaped[openai.Model](t, one)
		alone, refusal := models.Get(wire.DialectOpenAI, info.ID)
		refuseNot(t, refusal)
		if string(alone) != string(one) || info.OwnedBy == "" || info.Created < 1_700_000_000 {
			t.Errorf("got %s\nwant %s", alone, one)
		}
	}
	_, refusal = models.Get(wire.DialectOpenAI, "gpt-none")
	want := request.Refusal{
		Status: http.StatusNotFound, Type: "invalid_request_error", Code: "model_not_found", Param: "model",
		Message: "The model 'gpt-none' does not exist",
	}
	if refusal == nil || *refusal != want {
		t.Errorf("got %+v, want %+v", refusal, want)
	}
}
