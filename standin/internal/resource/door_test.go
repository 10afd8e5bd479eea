package resource_test

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/anthropics/anthropic-sdk-go/v2"
	"github.com/anthropics/anthropic-sdk-go/v2/option"

	"holdfast/internal/wire"
	"holdfast/standin/internal/request"
	"holdfast/standin/internal/resource"
)

// door lets the real SDK in, without a network. Each request comes a second after the one before.
type door struct {
	t       *testing.T
	batches *resource.Batches
	files   *resource.Files
	models  resource.Models
	seconds int
}

func (d *door) RoundTrip(r *http.Request) (*http.Response, error) {
	d.seconds++
	query := r.URL.Query()
	page := request.Page{AfterID: query.Get("after_id") + query.Get("page"), BeforeID: query.Get("before_id")}
	page.Limit, _ = strconv.Atoi(query.Get("limit"))
	w := httptest.NewRecorder()
	w.Header().Set("content-type", "application/json")
	body, refusal := d.answer(w, r, now(d.seconds), page)
	if refusal != nil {
		w.WriteHeader(refusal.Status)
		body = []byte(`{"type":"error","error":{"type":"` + refusal.Type + `","message":` + strconv.Quote(refusal.Message) + `}}`)
	}
	_, _ = w.Write(body)
	reply := w.Result()
	reply.Request = r
	return reply, nil
}

func (d *door) answer(w http.ResponseWriter, r *http.Request, at resource.Look, page request.Page) ([]byte, *request.Refusal) {
	parts := strings.Split(strings.TrimPrefix(r.URL.Path, "/v1/"), "/")
	id := parts[len(parts)-1]
	switch r.Method + " " + strings.TrimPrefix(r.URL.Path, "/v1/") {
	case "POST messages/batches":
		return d.batches.Create(at, items(30))
	case "GET messages/batches":
		return d.batches.List(at, page)
	case "POST files":
		parts, err := r.MultipartReader()
		if err != nil {
			d.t.Fatal(err)
		}
		part, err := parts.NextPart() // not FormFile: the SDK sends a reader with an empty filename, which that does not take
		if err != nil {
			d.t.Fatal(err)
		}
		content, _ := io.ReadAll(part)
		return d.files.Upload(at, &request.File{Name: part.FileName(), Type: part.Header.Get("content-type"), Content: content})
	case "GET files":
		return d.files.List(page)
	case "GET models":
		return d.models.List(wire.DialectAnthropic, page)
	}
	switch {
	case id == "cancel":
		return d.batches.Cancel(at, parts[2])
	case id == "results":
		lines, refusal := d.batches.Results(at, parts[2])
		if refusal == nil {
			w.Header().Set("content-type", "application/x-jsonl")
			for line := range lines {
				_, _ = w.Write(line)
			}
		}
		return nil, refusal
	case parts[0] == "messages" && r.Method == http.MethodDelete:
		return d.batches.Delete(at, id)
	case parts[0] == "messages":
		body, _, refusal := d.batches.Get(at, id)
		return body, refusal
	case id == "content":
		content, _, refusal := d.files.Content(parts[1])
		return content, refusal
	case parts[0] == "files" && r.Method == http.MethodDelete:
		return d.files.Delete(id)
	case parts[0] == "files":
		return d.files.Get(id)
	}
	return d.models.Get(wire.DialectAnthropic, id)
}

func newDoor(t *testing.T) (*door, anthropic.Client) {
	d := &door{
		t:       t,
		batches: resource.NewBatches(resource.BatchSettings{Outcome: succeed}),
		files:   resource.NewFiles(resource.FileSettings{Downloadable: true}),
	}
	return d, anthropic.NewClient(option.WithHTTPClient(&http.Client{Transport: d}), option.WithBaseURL(base),
		option.WithAPIKey("k"), option.WithMaxRetries(0))
}

func TestSDKRunsABatch(t *testing.T) {
	_, client := newDoor(t)
	ctx, batches := t.Context(), client.Messages.Batches
	batch, err := batches.New(ctx, anthropic.MessageBatchNewParams{})
	if err != nil {
		t.Fatal(err)
	}
	polls := 0
	for ; batch.ProcessingStatus != "ended"; polls++ {
		if batch, err = batches.Get(ctx, batch.ID, anthropic.MessageBatchGetParams{}); err != nil {
			t.Fatal(err)
		}
	}
	if polls != 2 {
		t.Errorf("%d polls, want 2", polls)
	}
	stream := batches.ResultsStreaming(ctx, batch.ID, anthropic.MessageBatchResultsParams{})
	var got []string
	for stream.Next() {
		one := stream.Current()
		if one.Result.AsSucceeded().Message.Usage.OutputTokens != 5 {
			t.Errorf("%s", one.RawJSON())
		}
		got = append(got, one.CustomID)
	}
	slices.Sort(got)
	if stream.Err() != nil || len(slices.Compact(got)) != 30 {
		t.Errorf("%d results, %v", len(got), stream.Err())
	}
	if _, err := batches.Delete(ctx, batch.ID, anthropic.MessageBatchDeleteParams{}); err != nil {
		t.Error(err)
	}
	_, err = batches.Get(ctx, batch.ID, anthropic.MessageBatchGetParams{})
	if failed, ok := err.(*anthropic.Error); !ok || failed.StatusCode != 404 || failed.Type() != "not_found_error" {
		t.Errorf("got %v", err)
	}
}

func TestSDKCancelsABatchAndPagesThroughAll(t *testing.T) {
	_, client := newDoor(t)
	ctx, batches := t.Context(), client.Messages.Batches
	for range 7 {
		batch, err := batches.New(ctx, anthropic.MessageBatchNewParams{})
		if err != nil {
			t.Fatal(err)
		}
		if batch, err = batches.Cancel(ctx, batch.ID, anthropic.MessageBatchCancelParams{}); err != nil || batch.ProcessingStatus != "canceling" {
			t.Fatalf("%v, %v", batch, err)
		}
	}
	pages := batches.ListAutoPaging(ctx, anthropic.MessageBatchListParams{Limit: anthropic.Int(3)})
	n := 0
	for ; pages.Next(); n++ {
		if one := pages.Current(); one.ProcessingStatus != "ended" || one.RequestCounts.Canceled != 30 {
			t.Errorf("%s", one.RawJSON())
		}
	}
	if n != 7 || pages.Err() != nil {
		t.Errorf("%d batches, %v", n, pages.Err())
	}
}

func TestSDKKeepsFilesAndReadsModels(t *testing.T) {
	d, client := newDoor(t)
	ctx := t.Context()
	for range 5 {
		if _, err := client.Files.Upload(ctx, anthropic.FileUploadParams{File: bytes.NewReader([]byte("hello"))}); err != nil {
			t.Fatal(err)
		}
	}
	files := client.Files.ListAutoPaging(ctx, anthropic.FileListParams{Limit: anthropic.Int(2)})
	n := 0
	for ; files.Next(); n++ {
		if name := files.Current().Filename; name != "unnamed" {
			t.Errorf("a reader without a name is kept as %q", name)
		}
		reply, err := client.Files.Download(ctx, files.Current().ID, anthropic.FileDownloadParams{})
		if err != nil {
			t.Fatal(err)
		}
		if text, _ := io.ReadAll(reply.Body); string(text) != "hello" {
			t.Errorf("got %q", text)
		}
	}
	if n != 5 || files.Err() != nil || d.files.Counts().Duplicates != 4 {
		t.Errorf("%d files, %v, %+v", n, files.Err(), d.files.Counts())
	}
	models := client.Models.ListAutoPaging(ctx, anthropic.ModelListParams{Limit: anthropic.Int(4)})
	n = 0
	for ; models.Next(); n++ {
		if _, err := client.Models.Get(ctx, models.Current().ID, anthropic.ModelGetParams{}); err != nil {
			t.Error(err)
		}
	}
	if n != 18 || models.Err() != nil {
		t.Errorf("%d models, %v", n, models.Err())
	}
}
