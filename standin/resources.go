package standin

import (
	"bytes"
	"net/http"
	"strconv"
	"strings"
	"time"

	"holdfast/internal/wire"
	"holdfast/standin/internal/answer"
	"holdfast/standin/internal/request"
	"holdfast/standin/internal/resource"
)

// itemPath is the path that items of batches have for Match.
const itemPath = "/v1/messages/batches/items"

// resources are what clients leave behind.
type resources struct {
	batches *resource.Batches
	files   *resource.Files
	models  resource.Models
}

func newResources(s *state) *resources {
	b := s.plan.Batches
	return &resources{
		files: resource.NewFiles(resource.FileSettings{}),
		batches: resource.NewBatches(resource.BatchSettings{
			Seed: s.plan.Seed, Outcome: s.outcome, Takes: b.Takes, CancelTakes: b.CancelTakes,
			HiddenFor: b.Hidden, HiddenLooks: b.HiddenLooks, LateResults: b.LateResults, Lifetime: b.Lifetime,
		}),
	}
}

// resource does the work of an endpoint behind which no model answers.
func (a *reply) resource() result {
	all, look := a.state.resources, resource.Look{At: a.server.now(), Base: a.base()}
	r := result{status: http.StatusOK, contentType: "application/json"}
	var refusal *request.Refusal
	switch a.q.Endpoint {
	case request.BatchCreate:
		r.body, refusal = all.batches.Create(look, a.q.Items)
		a.created(r.body)
	case request.BatchGet:
		var ended bool
		if r.body, ended, refusal = all.batches.Get(look, a.q.ID); refusal == nil && !ended {
			a.w.Header().Set("retry-after", strconv.Itoa(resource.PollAfter))
		}
	case request.BatchList:
		r.body, refusal = all.batches.List(look, a.q.Page)
	case request.BatchCancel:
		r.body, refusal = all.batches.Cancel(look, a.q.ID)
	case request.BatchDelete:
		r.body, refusal = all.batches.Delete(look, a.q.ID)
	case request.BatchResults:
		r.contentType = "application/x-jsonl"
		r.lines, refusal = all.batches.Results(look, a.q.ID)
	case request.ModelList:
		r.body, refusal = all.models.List(a.q.Dialect, a.q.Page)
	case request.ModelGet:
		r.body, refusal = all.models.Get(a.q.Dialect, a.q.ID)
	default:
		r, refusal = a.file(look, r)
	}
	if refusal != nil {
		return a.refusal(refusal)
	}
	return r
}

// file does the work of an endpoint of files.
func (a *reply) file(look resource.Look, r result) (result, *request.Refusal) {
	files := a.state.resources.files
	var refusal *request.Refusal
	switch a.q.Endpoint {
	case request.FileUpload:
		r.body, refusal = files.Upload(look, a.q.File)
		a.created(r.body)
	case request.FileGet:
		r.body, refusal = files.Get(a.q.ID)
	case request.FileContent:
		r.body, r.contentType, refusal = files.Content(a.q.ID)
	case request.FileDelete:
		r.body, refusal = files.Delete(a.q.ID)
	case request.FileList:
		list := files.List
		if strings.Contains(a.r.Header.Get("anthropic-beta"), "files-api-2025-04-14") {
			list = files.ListBeta
		}
		r.body, refusal = list(a.q.Page)
	default:
		refusal = &request.Refusal{Status: http.StatusNotFound, Message: "Not found"}
	}
	return r, refusal
}

// refusal is the result of a request that finds the state in its way.
func (a *reply) refusal(r *request.Refusal) result {
	return result{status: r.Status, contentType: "application/json", body: a.errorOf(stepOf(r))}
}

// base is the address of the server as the client knows it.
func (a *reply) base() string {
	scheme := "http://"
	if a.r.TLS != nil {
		scheme = "https://"
	}
	return scheme + a.r.Host + strings.TrimSuffix(a.r.URL.Path, a.q.Path)
}

// created tells the journal what the request has left behind: "id" is the first field of it.
func (a *reply) created(object []byte) {
	if _, rest, found := bytes.Cut(object, []byte(`"id":"`)); found {
		id, _, _ := bytes.Cut(rest, []byte(`"`))
		a.entry.effect(string(id))
	}
}

// outcome decides an item of a batch.
func (s *state) outcome(item request.Item, at time.Time) resource.Result {
	d := s.script.decide(facts{
		now: at.Sub(s.origin), item: true, path: itemPath, model: item.Params.Model, header: http.Header{}, prompt: item.Params.Prompt,
		customID: item.CustomID, digest: item.CustomID,
	})
	switch d.step.Kind {
	case HTTP, Error:
		return errored(d.step)
	case SpendCap:
		return errored(spendCaps[d.step.Cap])
	case RampLimit:
		return errored(Step{Status: http.StatusTooManyRequests, Code: "ramp_limit_exceeded"})
	case Empty, HTML:
		return errored(Step{Status: http.StatusInternalServerError})
	case Timeout, Reset, Lost:
		return resource.Result{Kind: resource.Expired}
	}
	number := int(uint32(fnv(0, item.CustomID))) // its ids are its own, whenever it is done
	full := newAnswer(number, item.Params, s.plan.Reply, d.step, ofKind(d.step.Kind))
	usage := full.Usage
	if full.Stop == answer.Refusal {
		usage = answer.Usage{}
	}
	full.Batch = true
	return resource.Result{Usage: usage, Message: func() []byte { return full.JSON(answer.Messages) }}
}

func errored(s Step) resource.Result {
	typ, code, message := s.errorWords(wire.DialectAnthropic)
	return resource.Result{Kind: resource.Errored, Error: &request.Refusal{Status: s.Status, Type: typ, Code: code, Message: message}}
}

// items is the bill of the batches.
func (r *resources) items(now time.Time) Items {
	c := r.batches.Counts(now)
	return Items{
		Succeeded: c.Succeeded, Errored: c.Errored, Canceled: c.Canceled, Expired: c.Expired, Waiting: c.Waiting,
		Input: c.Usage.Input, Output: c.Usage.Output,
		PaidTwice: Twice{Attempts: c.BilledAgain, Input: c.UsageAgain.Input, Output: c.UsageAgain.Output},
	}
}
