package batch_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/anthropics/anthropic-sdk-go/v2"
	"github.com/anthropics/anthropic-sdk-go/v2/option"
	"github.com/anthropics/anthropic-sdk-go/v2/packages/jsonl"
	"github.com/anthropics/anthropic-sdk-go/v2/packages/pagination"

	"holdfast/batch"
)

// file is an API whose results are these bytes, in the first reading a part of them.
type file struct {
	batch.API

	data     []byte
	cut      int
	readings int
}

func (f *file) ResultsStreaming(context.Context, string, anthropic.MessageBatchResultsParams, ...option.RequestOption) *jsonl.Stream[anthropic.MessageBatchIndividualResponse] {
	data := f.data
	if f.readings++; f.readings == 1 {
		data = data[:min(f.cut, len(data))]
	}
	return jsonl.NewStream[anthropic.MessageBatchIndividualResponse](&http.Response{Body: io.NopCloser(bytes.NewReader(data))}, nil)
}

func (f *file) Get(_ context.Context, id string, _ anthropic.MessageBatchGetParams, _ ...option.RequestOption) (*anthropic.MessageBatch, error) {
	return &anthropic.MessageBatch{ID: id, ProcessingStatus: "ended", RequestCounts: anthropic.MessageBatchRequestCounts{Succeeded: 2}}, nil
}

// List has no batches.
func (f *file) List(context.Context, anthropic.MessageBatchListParams, ...option.RequestOption) (*pagination.Page[anthropic.MessageBatch], error) {
	var page pagination.Page[anthropic.MessageBatch]
	return &page, page.UnmarshalJSON([]byte(`{"data":[],"has_more":false}`))
}

const (
	lineA = `{"custom_id":"a","result":{"type":"succeeded","message":{"id":"m","stop_reason":"end_turn"}}}` + "\n"
	lineB = `{"custom_id":"b","result":{"type":"errored","error":{"type":"error","error":{"type":"overloaded_error","message":"x"}}}}` + "\n"
	lineC = `{"custom_id":"c","result":{"type":"something_new"}}` + "\n"
)

// Whatever the file holds: reading it ends, each id comes as often as it stands there at most, every request is told of or
// there is an error, and no error holds a text of the file.
func FuzzResults(f *testing.F) {
	f.Add([]byte(lineA+lineB+lineC), 20, int64(3))
	f.Add([]byte(lineA+lineA), len(lineA), int64(2))
	f.Add([]byte(lineA+"\n\n"+lineB), 5, int64(2))
	f.Add([]byte(`{"type":"error","error":{"type":"overloaded_error","message":"x"}}`), 0, int64(3))
	f.Add([]byte(lineA+`{"custom_id":"b"}`+"\n"+lineC), 0, int64(3))
	f.Add([]byte("<html>"), 3, int64(1))
	f.Add([]byte(`{"custom_id":"a","result":{"type":"\u0000`+secret+`"}}`), 0, int64(1))
	f.Add([]byte(`{"custom_id":1,"result":[]}`), 0, int64(1))
	f.Add([]byte(`null`), 0, int64(-1))
	f.Fuzz(func(t *testing.T, data []byte, cut int, n int64) {
		synctest.Test(t, func(t *testing.T) {
			api := &file{data: data, cut: max(cut, 0)}
			client := batch.Client{API: api}
			wanted := []batch.Request{{CustomID: "a"}, {CustomID: "b"}, {CustomID: "c"}}
			ended := &anthropic.MessageBatch{ID: "id", ProcessingStatus: "ended", RequestCounts: anthropic.MessageBatchRequestCounts{Succeeded: n}}
			counts, told, failed := map[string]int{}, map[string]bool{}, error(nil)
			for one, err := range client.Results(t.Context(), ended, wanted) {
				if failed != nil {
					t.Fatal("more after an error")
				}
				if failed = err; err != nil {
					continue
				}
				told[one.CustomID] = true
				if one.Outcome != batch.Missing {
					counts[one.CustomID]++
				}
				if strings.Contains(one.Reason, secret) && len(one.Reason) > 64 {
					t.Errorf("reason %q", one.Reason)
				}
			}
			lines := bytes.Count(data, []byte("\n")) + 1
			for id, n := range counts {
				if n > lines {
					t.Errorf("%q came %d times from %d lines", id, n, lines)
				}
			}
			var mismatch *batch.MismatchError
			if failed == nil && !(told["a"] && told["b"] && told["c"]) {
				t.Errorf("told of %v alone", told)
			}
			if failed != nil && !errors.As(failed, &mismatch) && strings.Contains(failed.Error(), secret) {
				t.Errorf("error %v", failed)
			}
			if api.readings > lines+10 {
				t.Errorf("%d readings of %d lines", api.readings, lines)
			}
		})
	})
}
