package request_test

import (
	"bytes"
	"io"
	"mime/multipart"
	"net/textproto"
	"testing"

	"github.com/google/go-cmp/cmp"

	"holdfast/standin/internal/request"
)

// form makes an upload of parts: disposition, media type and content.
func form(t *testing.T, parts ...[3]string) (body, contentType string) {
	t.Helper()
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	for _, part := range parts {
		h := textproto.MIMEHeader{"Content-Disposition": {"form-data; " + part[0]}}
		if part[1] != "" {
			h.Set("content-type", part[1])
		}
		to, err := w.CreatePart(h)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(to, part[2]); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String(), w.FormDataContentType()
}

func TestFileRead(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		disposition, media string
		want               request.File
	}{
		{`name="file"; filename="a.txt"`, "text/plain; charset=utf-8", request.File{Name: "a.txt", Type: "text/plain"}},
		{`name="file"; filename="/tmp/x/a.pdf"`, "application/pdf", request.File{Name: "a.pdf", Type: "application/pdf"}},
		{`name="file"; filename=""`, "application/pdf", request.File{Name: "unnamed.pdf", Type: "application/pdf"}},
		{`name="file"`, "", request.File{Name: "unnamed", Type: "application/octet-stream"}},
	} {
		body, contentType := form(t, [3]string{`name="expires_in_seconds"`, "", "3600"}, [3]string{row.disposition, row.media, "content\r\n\x00"})
		q, refusal := ask("/v1/files", current, body, "content-type", contentType)
		row.want.Content = []byte("content\r\n\x00")
		if diff := cmp.Diff(&row.want, q.File); diff != "" || refusal != nil {
			t.Errorf("%s: %+v %s", row.disposition, refusal, diff)
		}
	}
}

func TestFileRefuses(t *testing.T) {
	t.Parallel()
	file := [3]string{`name="file"; filename="a"`, "text/plain", "x"}
	for want, parts := range map[string][][3]string{
		"file: Field required": {{`name="purpose"`, "", "batch"}},
		"expires_in_seconds: Input should be greater than or equal to 3600":                         {file, {`name="expires_in_seconds"`, "", "3599"}},
		"expires_in_seconds: Input should be less than or equal to 7776000":                         {file, {`name="expires_in_seconds"`, "", "7776001"}},
		"expires_in_seconds: Input should be a valid integer, unable to parse string as an integer": {file, {`name="expires_in_seconds"`, "", "soon"}},
	} {
		body, contentType := form(t, parts...)
		if q, refusal := ask("/v1/files", current, body, "content-type", contentType); refusal == nil || refusal.Message != want || refusal.Status != 400 || q.File != nil {
			t.Errorf("%+v, want %q", refusal, want)
		}
	}
	body, contentType := form(t, file)
	for name, sent := range map[string][2]string{
		"JSON": {body, "application/json"}, "no boundary": {body, "multipart/form-data"}, "cut": {body[:len(body)-8], contentType},
	} {
		if _, refusal := ask("/v1/files", current, sent[0], "content-type", sent[1]); refusal == nil || refusal.Status != 400 {
			t.Errorf("%s: %+v", name, refusal)
		}
	}
}
