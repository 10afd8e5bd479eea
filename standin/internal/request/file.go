package request

import (
	"bytes"
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"path"
	"strconv"
	"strings"
)

// maxPart is how long a part of an upload may be that is not the file.
const maxPart = 1 << 10

// readFile reads an upload: a part of the form named "file", and expires_in_seconds, which is checked and not kept.
func readFile(contentType string, body []byte) (*File, *Refusal) {
	media, params, err := mime.ParseMediaType(contentType)
	if err != nil || media != "multipart/form-data" || params["boundary"] == "" {
		return nil, invalid("content-type: must be multipart/form-data with a boundary")
	}
	form := multipart.NewReader(bytes.NewReader(body), params["boundary"])
	var file *File
	for {
		part, err := form.NextRawPart()
		switch {
		case errors.Is(err, io.EOF) && file == nil:
			return nil, invalid("file: Field required")
		case errors.Is(err, io.EOF):
			return file, nil
		case err != nil:
			return nil, invalid("The multipart body could not be read")
		}
		var refusal *Refusal
		switch part.FormName() {
		case "file":
			file, refusal = readContent(part)
		case "expires_in_seconds":
			refusal = checkExpiry(part)
		}
		if refusal != nil {
			return nil, refusal
		}
	}
}

func readContent(part *multipart.Part) (*File, *Refusal) {
	content, err := io.ReadAll(part)
	if err != nil {
		return nil, invalid("The multipart body could not be read")
	}
	media, _, _ := mime.ParseMediaType(part.Header.Get("Content-Type"))
	if media == "" {
		media = "application/octet-stream"
	}
	return &File{Name: fileName(part.Header.Get("Content-Disposition"), media), Type: media, Content: content}, nil
}

// fileName keeps the last element of a path. A file without a name is called unnamed, with the extension of its type.
// Rule of anthropic-sdk-go v2.15.0, file.go, FileUploadParams.
func fileName(disposition, media string) string {
	_, params, _ := mime.ParseMediaType(disposition)
	name := path.Base(strings.ReplaceAll(params["filename"], `\`, "/"))
	if name != "." && name != "/" {
		return name
	}
	extension := map[string]string{"application/pdf": ".pdf", "text/plain": ".txt", "image/png": ".png", "image/jpeg": ".jpg", "application/json": ".json", "text/csv": ".csv"}
	return "unnamed" + extension[media]
}

// checkExpiry refuses a time that is not between an hour and ninety days.
func checkExpiry(part io.Reader) *Refusal {
	text, err := io.ReadAll(io.LimitReader(part, maxPart))
	if err != nil {
		return invalid("The multipart body could not be read")
	}
	seconds, err := strconv.Atoi(string(text))
	switch {
	case err != nil:
		return invalid("expires_in_seconds: Input should be a valid integer, unable to parse string as an integer")
	case seconds < 3600:
		return invalid("expires_in_seconds: Input should be greater than or equal to 3600")
	case seconds > 7776000:
		return invalid("expires_in_seconds: Input should be less than or equal to 7776000")
	}
	return nil
}
