package resource_test

import (
	"bytes"
	"fmt"
	"sync"
	"testing"

	"github.com/anthropics/anthropic-sdk-go/v2"
	"github.com/anthropics/anthropic-sdk-go/v2/packages/pagination"

	"holdfast/standin/internal/request"
	"holdfast/standin/internal/resource"
)

func upload(t *testing.T, files *resource.Files, name string, content []byte) string {
	t.Helper()
	body, refusal := files.Upload(now(0), &request.File{Name: name, Type: "text/plain", Content: content})
	refuseNot(t, refusal)
	return wellShaped[anthropic.FileMetadata](t, body).ID
}

func TestUploadTwiceIsTwoFiles(t *testing.T) {
	t.Parallel()
	files := resource.NewFiles(resource.FileSettings{})
	first := upload(t, files, "a.txt", []byte("hello"))
	if _, refusal := files.Delete(first); refusal != nil {
		t.Fatalf("%+v", *refusal)
	}
	second := upload(t, files, "other.txt", []byte("hello"))
	third := upload(t, files, "a.txt", []byte("hell!"))
	if first == second || second == third {
		t.Errorf("ids %s, %s, %s", first, second, third)
	}
	want := resource.FileCounts{Uploaded: 3, Duplicates: 1, Deleted: 1, Bytes: 15, BytesAgain: 5}
	if got := files.Counts(); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	files.Reset()
	if got := files.Counts(); got != (resource.FileCounts{}) {
		t.Errorf("after the reset %+v", got)
	}
	if id := upload(t, files, "a.txt", []byte("hello")); id != first || files.Counts().Duplicates != 0 {
		t.Errorf("after the reset the first file is %s, %+v", id, files.Counts())
	}
}

func TestErrorsOfFiles(t *testing.T) {
	t.Parallel()
	files := resource.NewFiles(resource.FileSettings{})
	const missing = "File not found: file_standin_000001"
	_, refusal := files.Get("file_standin_000001")
	refused(t, refusal, 404, "not_found_error", "", missing)
	_, _, refusal = files.Content("file_standin_000001")
	refused(t, refusal, 404, "not_found_error", "", missing)
	_, refusal = files.Delete("file_standin_000001")
	refused(t, refusal, 404, "not_found_error", "", missing)

	id := upload(t, files, "a.txt", []byte("hello"))
	_, _, refusal = files.Content(id)
	refused(t, refusal, 400, "invalid_request_error", "file_not_downloadable", "File file_standin_000001 is not downloadable.")
	_, refusal = files.Delete(id)
	refuseNot(t, refusal)
	_, refusal = files.Delete(id)
	refused(t, refusal, 404, "not_found_error", "", missing)
}

func TestContentIsThatOfTheUpload(t *testing.T) {
	t.Parallel()
	files := resource.NewFiles(resource.FileSettings{Downloadable: true})
	body, refusal := files.Upload(now(0), &request.File{Name: "a", Type: "image/png", Content: []byte{0, 1, 0xff}})
	refuseNot(t, refusal)
	kept := wellShaped[anthropic.FileMetadata](t, body)
	content, mediaType, refusal := files.Content(kept.ID)
	refuseNot(t, refusal)
	if !kept.Downloadable || mediaType != "image/png" || !bytes.Equal(content, []byte{0, 1, 0xff}) {
		t.Errorf("%v of type %s, %s", content, mediaType, body)
	}
}

func TestNameOfAFileIsItsLastElement(t *testing.T) {
	t.Parallel()
	files := resource.NewFiles(resource.FileSettings{})
	for name, want := range map[string]string{
		"a.txt": "a.txt", "/tmp/x/a.txt": "a.txt", "../a.txt": "a.txt", "": "unnamed", "/": "unnamed", "ä <b>.txt": "ä <b>.txt",
	} {
		body, refusal := files.Upload(now(0), &request.File{Name: name})
		refuseNot(t, refusal)
		one := wellShaped[anthropic.FileMetadata](t, body)
		if one.Filename != want || one.MimeType != "application/octet-stream" {
			t.Errorf("%q is kept as %q of type %q, want %q", name, one.Filename, one.MimeType, want)
		}
	}
	body, refusal := files.Upload(now(0), &request.File{Type: "text/plain; charset=utf-8"})
	refuseNot(t, refusal)
	if one := wellShaped[anthropic.FileMetadata](t, body); one.Filename != "unnamed.txt" {
		t.Errorf("a text without a name is kept as %q", one.Filename)
	}
	if _, refusal := files.Upload(now(0), nil); refusal != nil {
		t.Errorf("no file at all: %+v", *refusal)
	}
}

func TestStorageIsBounded(t *testing.T) {
	t.Parallel()
	const kib = 1 << 10
	files := resource.NewFiles(resource.FileSettings{Bytes: 10 * kib})
	id := upload(t, files, "big", make([]byte, 6*kib)) // and 1 KiB for the file itself
	_, refusal := files.Upload(now(0), &request.File{Content: make([]byte, 2*kib+1)})
	refused(t, refusal, 400, "invalid_request_error", "storage_quota_exceeded", "Your organization has exceeded its file storage quota.")
	if got := files.Counts(); got.Uploaded != 1 || got.Bytes != 6*kib {
		t.Errorf("a refused upload counts: %+v", got)
	}
	upload(t, files, "small", make([]byte, 2*kib))
	if _, refusal := files.Upload(now(0), &request.File{}); refusal == nil {
		t.Error("an empty file takes no room")
	}
	_, refusal = files.Delete(id)
	refuseNot(t, refusal)
	upload(t, files, "again", make([]byte, 6*kib))

	endless := resource.NewFiles(resource.FileSettings{Bytes: -1})
	upload(t, endless, "big", make([]byte, 300<<20))
}

func TestListOfFilesIsPaged(t *testing.T) {
	t.Parallel()
	files := resource.NewFiles(resource.FileSettings{})
	var want []string
	for i := range 45 {
		want = append([]string{upload(t, files, fmt.Sprint(i), nil)}, want...)
	}
	var got, older []string
	for page, more := (request.Page{}), true; more; {
		body, refusal := files.List(page)
		refuseNot(t, refusal)
		part := wellShaped[pagination.PageCursor[anthropic.FileMetadata]](t, body)
		for _, one := range part.Data {
			got = append(got, one.ID)
		}
		if page.AfterID, more = part.NextPage, part.NextPage != ""; more && part.NextPage[:5] != "page_" {
			t.Errorf("cursor %q", part.NextPage)
		}
	}
	for page, more := (request.Page{Limit: 10}), true; more; {
		body, refusal := files.ListBeta(page)
		refuseNot(t, refusal)
		part := wellShaped[pagination.Page[anthropic.FileMetadata]](t, body)
		for _, one := range part.Data {
			older = append(older, one.ID)
		}
		page.AfterID, more = part.LastID, part.HasMore
	}
	if fmt.Sprint(got) != fmt.Sprint(want) || fmt.Sprint(older) != fmt.Sprint(want) {
		t.Errorf("got  %v\nbeta %v\nwant %v", got, older, want)
	}
	if _, refusal := files.List(request.Page{AfterID: "page_none"}); refusal == nil || refusal.Status != 400 {
		t.Errorf("a bad cursor: %+v", refusal)
	}
}

func TestFilesServeManyAtOnce(t *testing.T) {
	t.Parallel()
	const workers, each = 8, 20
	files := resource.NewFiles(resource.FileSettings{Downloadable: true})
	var all sync.WaitGroup
	for w := range workers {
		all.Go(func() {
			for i := range each {
				content := fmt.Appendf(nil, "%d", i)
				id := upload(t, files, "a", content)
				got, _, refusal := files.Content(id)
				refuseNot(t, refusal)
				if !bytes.Equal(got, content) {
					t.Errorf("worker %d got %s, want %s", w, got, content)
				}
				if _, refusal := files.List(request.Page{}); refusal != nil {
					t.Errorf("%+v", *refusal)
				}
				if i%2 == 0 {
					if _, refusal := files.Delete(id); refusal != nil {
						t.Errorf("%+v", *refusal)
					}
				}
			}
		})
	}
	all.Wait()
	if got := files.Counts(); got.Uploaded != workers*each || got.Duplicates != (workers-1)*each || got.Deleted != workers*each/2 {
		t.Errorf("%+v", got)
	}
}
