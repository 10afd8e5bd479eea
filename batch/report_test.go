package batch_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anthropics/anthropic-sdk-go/v2"
	"github.com/anthropics/anthropic-sdk-go/v2/option"

	"holdfast/batch"
	"holdfast/standin"
)

// A report of results that were cut is not complete, whatever came before the cut.
func TestReportOfCutResultsIsNotComplete(t *testing.T) {
	t.Parallel()
	const good = `{"custom_id":"b","result":{"type":"succeeded","message":{"id":"m","stop_reason":"end_turn"}}}` + "\n"
	for _, tt := range []struct {
		name, data string
		want       string
		complete   bool
		requests   int
	}{
		{name: "broken after two", data: lineA + good + "<html>", want: "2 succeeded, 0 to run again, 0 failed, 0 flagged, 0 missing, 0 strange, 1 unread"},
		{name: "web page", data: "<html>", want: "0 succeeded, 0 to run again, 0 failed, 0 flagged, 0 missing, 0 strange"},
		{name: "web page, with Requests", data: "<html>", requests: 3, want: "0 succeeded, 0 to run again, 0 failed, 0 flagged, 0 missing, 0 strange, 3 unread"},
		{name: "whole", data: lineA + good + `{"custom_id":"c","result":{"type":"succeeded","message":{"id":"m","stop_reason":"end_turn"}}}`, complete: true,
			want: "3 succeeded, 0 to run again, 0 failed, 0 flagged, 0 missing, 0 strange"},
		{name: "whole, and another batch without an item", data: lineA + good + `{"custom_id":"c","result":{"type":"succeeded","message":{"id":"m","stop_reason":"end_turn"}}}`, requests: 5,
			want: "3 succeeded, 0 to run again, 0 failed, 0 flagged, 0 missing, 0 strange, 2 unread"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				client := batch.Client{API: &file{data: []byte(tt.data), cut: len(tt.data)}}
				ended := &anthropic.MessageBatch{ID: "id", ProcessingStatus: "ended", RequestCounts: anthropic.MessageBatchRequestCounts{Succeeded: 3}}
				report := batch.Report{Requests: tt.requests}
				left := 3
				for one, err := range client.Results(t.Context(), ended, []batch.Request{{CustomID: "a"}, {CustomID: "b"}, {CustomID: "c"}}) {
					if err != nil {
						break
					}
					report.Add(one)
					if left--; left > 0 && report.Complete() {
						t.Errorf("complete with %d to come", left)
					}
				}
				if report.String() != tt.want || report.Complete() != tt.complete {
					t.Errorf("%v, complete %v; want %s, %v", &report, report.Complete(), tt.want, tt.complete)
				}
			})
		})
	}
}

// A batch that is not named is a mistake at once, and so is a client that can make no request. An outage is none.
func TestNoBatchIsNamed(t *testing.T) {
	t.Parallel()
	in(t, standin.Plan{}, func(w *world) {
		began := time.Now()
		var stopped *batch.WaitError
		if _, err := w.client.Wait(w.Context(), ""); !errors.As(err, &stopped) || !errors.Is(err, batch.ErrUnnamed) || stopped.Hint() == "" {
			w.Errorf("error %v", err)
		}
		for _, ended := range []*anthropic.MessageBatch{nil, {}} {
			if items, err := w.collect(ended, requests("a", 2)); len(items) != 0 || !errors.Is(err, batch.ErrUnnamed) {
				w.Errorf("%v, error %v", items, err)
			}
		}
		if n := len(w.server.Journal()); n != 0 || time.Since(began) != 0 {
			w.Errorf("%d requests in %v", n, time.Since(began))
		}
	})
}

// unready is an API whose client can make no request from look number fails on.
type unready struct {
	batch.API

	fails int
	looks *int
}

func (u unready) Get(ctx context.Context, id string, query anthropic.MessageBatchGetParams, opts ...option.RequestOption) (*anthropic.MessageBatch, error) {
	if *u.looks++; *u.looks >= u.fails && *u.looks < u.fails+9 {
		return nil, errors.New("missing required parameter")
	}
	return u.API.Get(ctx, id, query, opts...)
}

// A request that could not be made ends a wait that has seen nothing, at once; later it is waited out.
func TestWaitEndsWhereNoRequestCanBeMade(t *testing.T) {
	t.Parallel()
	for fails, ends := range map[int]bool{1: true, 2: false} {
		in(t, slow(standin.Plan{}), func(w *world) {
			made, looks := w.create(requests("a", 2)), 0
			w.client.API = unready{API: w.client.API, fails: fails, looks: &looks}
			began := time.Now()
			ended, err := w.client.Wait(w.Context(), made.ID)
			var stopped *batch.WaitError
			switch {
			case !ends:
				if err != nil || ended.ID != made.ID || looks < 11 {
					w.Errorf("%v, error %v after %d looks", ended, err, looks)
				}
			case !errors.As(err, &stopped) || stopped.Hint() == "" || looks != 1 || time.Since(began) != 0:
				w.Errorf("error %v after %d looks and %v", err, looks, time.Since(began))
			}
		})
	}
}
