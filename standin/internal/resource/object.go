package resource

import (
	"fmt"

	"holdfast/standin/internal/request"
)

// batchObject is a batch in the shape of the API.
type batchObject struct {
	ID                string        `json:"id"`
	Type              string        `json:"type"`
	Status            phase         `json:"processing_status"`
	Counts            requestCounts `json:"request_counts"`
	EndedAt           stamp         `json:"ended_at"`
	CreatedAt         stamp         `json:"created_at"`
	ExpiresAt         stamp         `json:"expires_at"`
	ArchivedAt        stamp         `json:"archived_at"`
	CancelInitiatedAt stamp         `json:"cancel_initiated_at"`
	ResultsURL        *string       `json:"results_url"`
}

// requestCounts are the items of a batch by what became of them.
type requestCounts struct {
	Processing int `json:"processing"`
	Succeeded  int `json:"succeeded"`
	Errored    int `json:"errored"`
	Canceled   int `json:"canceled"`
	Expired    int `json:"expired"`
}

// object shows the batch as it stands. The caller holds its mutex.
func (one *batch) object(look Look, settings *BatchSettings) batchObject {
	object := batchObject{
		ID: one.id, Type: "message_batch", Status: inProgress, Counts: one.tally,
		CreatedAt: stamp(one.created), ExpiresAt: stamp(one.expires),
		CancelInitiatedAt: stamp(one.canceled), EndedAt: stamp(one.end),
	}
	if settings.CountsAtEnd && one.end.IsZero() {
		object.Counts = requestCounts{}
	}
	object.Counts.Processing = one.size - object.Counts.Succeeded - object.Counts.Errored -
		object.Counts.Canceled - object.Counts.Expired
	switch {
	case !one.end.IsZero():
		object.Status = ended
		url := look.Base + "/v1/messages/batches/" + one.id + "/results"
		object.ResultsURL = &url
		if archived := one.created.Add(archivedAfter); !look.At.Before(archived) {
			object.ArchivedAt = stamp(archived)
		}
	case !one.canceled.IsZero():
		object.Status = canceling
	}
	return object
}

func noBatch(id string) *request.Refusal {
	return notFound(fmt.Sprintf("Message Batch %s not found.", id))
}

func noResults(id string) *request.Refusal {
	return notFound(fmt.Sprintf("Message Batch %s has no available results.", id))
}

func notDeletable() *request.Refusal {
	return invalid("In progress batches cannot be deleted. Consider canceling the batch instead.")
}

// alreadyEnded refuses to cancel. What the API says is not known.
func alreadyEnded(id string) *request.Refusal {
	return invalid(fmt.Sprintf("Message Batch %s has already ended and cannot be canceled.", id))
}

// queueFull refuses a batch. What the API says is not known; that it is a 429 is.
func queueFull(limit int) *request.Refusal {
	return &request.Refusal{Status: 429, Type: "rate_limit_error", Message: fmt.Sprintf(
		"This request would exceed your organization's rate limit of %d batch requests in the processing queue.", limit)}
}

func notFound(message string) *request.Refusal {
	return &request.Refusal{Status: 404, Type: "not_found_error", Message: message}
}

func invalid(message string) *request.Refusal {
	return &request.Refusal{Status: 400, Type: "invalid_request_error", Message: message}
}
