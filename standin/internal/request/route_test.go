package request_test

import (
	"testing"

	"holdfast/standin/internal/request"
)

func TestRoute(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		method, path string
		want         request.Endpoint
		id, base     string
	}{
		{"POST", "/v1/messages", request.Messages, "", ""},
		{"POST", "/anthropic/v1/messages", request.Messages, "", "/anthropic"},
		{"POST", "/a/v1beta/v1/messages", request.Messages, "", "/a/v1beta"},
		{"POST", "/v1/messages/count_tokens", request.CountTokens, "", ""},
		{"POST", "/v1/messages/batches", request.BatchCreate, "", ""},
		{"GET", "/v1/messages/batches", request.BatchList, "", ""},
		{"GET", "/v1/messages/batches/msgbatch_1", request.BatchGet, "msgbatch_1", ""},
		{"DELETE", "/v1/messages/batches/msgbatch_1", request.BatchDelete, "msgbatch_1", ""},
		{"GET", "/x/v1/messages/batches/msgbatch_1/results", request.BatchResults, "msgbatch_1", "/x"},
		{"POST", "/v1/messages/batches/msgbatch_1/cancel", request.BatchCancel, "msgbatch_1", ""},
		{"GET", "/v1/models", request.ModelList, "", ""},
		{"GET", "/v1/models/claude-opus-5-5", request.ModelGet, "claude-opus-5-5", ""},
		{"POST", "/v1/files", request.FileUpload, "", ""},
		{"GET", "/v1/files", request.FileList, "", ""},
		{"GET", "/v1/files/file_1", request.FileGet, "file_1", ""},
		{"DELETE", "/v1/files/file_1", request.FileDelete, "file_1", ""},
		{"GET", "/v1/files/file_1/content", request.FileContent, "file_1", ""},
		{"POST", "/v1/chat/completions", request.ChatCompletions, "", ""},
		{"POST", "/openai/v1/responses", request.Responses, "", "/openai"},
	} {
		endpoint, id, base, refusal := request.Route(row.method, row.path)
		if refusal != nil || endpoint != row.want || id != row.id || base != row.base {
			t.Errorf("%s %s: %q %q %q %+v, want %q %q %q", row.method, row.path, endpoint, id, base, refusal, row.want, row.id, row.base)
		}
	}
}

func TestRouteRefuses(t *testing.T) {
	t.Parallel()
	const notFound, notAllowed = "Not Found", "Method Not Allowed"
	for _, row := range []struct {
		method, path string
		status       int
		message      string
	}{
		{"POST", "/", 404, notFound},
		{"POST", "/messages", 404, notFound},
		{"POST", "/v1/messages/", 404, notFound},
		{"POST", "/v1/message", 404, notFound},
		{"POST", "/v1/v1/messages", 404, notFound},
		{"POST", "/v1/proxy/v1/messages", 404, notFound},
		{"GET", "/v1/files//content", 404, notFound},
		{"GET", "/v1/models/", 404, notFound},
		{"GET", "/v1/models/a/b", 404, notFound},
		{"GET", "/v1/messages", 405, notAllowed},
		{"HEAD", "/v1/messages", 405, notAllowed},
		{"HEAD", "/v1/models", 405, notAllowed},
		{"PUT", "/v1/files/file_1", 405, notAllowed},
		{"POST", "/v1/messages/batches/msgbatch_1", 405, notAllowed},
		{"POST", "/v1/embeddings", 404, "Invalid URL (POST /v1/embeddings)"},
		{"GET", "/x/v1/chat/completions", 405, "Not allowed to GET on /v1/chat/completions. (HINT: Perhaps you meant to use a different HTTP method?)"},
	} {
		endpoint, _, _, refusal := request.Route(row.method, row.path)
		if refusal == nil || endpoint != "" || refusal.Status != row.status || refusal.Message != row.message {
			t.Errorf("%s %s: %q %+v, want %d %q", row.method, row.path, endpoint, refusal, row.status, row.message)
		}
	}
}

func TestMaxBody(t *testing.T) {
	t.Parallel()
	for endpoint, want := range map[request.Endpoint]int64{
		request.Messages: 33554432, request.CountTokens: 33554432, request.BatchCreate: 268435456, request.FileUpload: 524288000, request.Responses: 33554432,
	} {
		if got := request.MaxBody(endpoint); got != want {
			t.Errorf("%s: %d bytes, want %d", endpoint, got, want)
		}
	}
}
