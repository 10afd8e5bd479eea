package resource

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"

	"holdfast/standin/internal/request"
)

// FileSettings say what the file store takes. The zero value behaves like the API.
type FileSettings struct {
	// Bytes bounds the files that are kept, 1 KiB counted for each besides its content; a further upload gets a 400 with
	// the code storage_quota_exceeded. 0: 256 MiB. Negative: no bound.
	Bytes int64
	// Downloadable lets clients fetch what they have uploaded. The API refuses that with a 400 and the code
	// file_not_downloadable: only files made by its own tools can be fetched there.
	Downloadable bool
}

const (
	defaultBytes = 256 << 20
	fileCost     = 1 << 10 // of a file without content, so that empty files cannot fill the memory
)

// Files are the uploaded files of all clients. Each upload is a new file, also of the same bytes: that is how a client
// that uploads twice is found out.
type Files struct {
	settings FileSettings

	mu      sync.Mutex
	number  int // of the last file
	all     []*file
	bytes   int64 // by the rule of FileSettings.Bytes
	counts  FileCounts
	digests map[[sha256.Size]byte]bool
}

// FileCounts are sums since NewFiles or the last Reset.
type FileCounts struct {
	// Uploaded counts files, and Duplicates those of them with the bytes of an earlier upload, deleted ones included.
	Uploaded, Duplicates int
	// Deleted counts files that were deleted.
	Deleted int
	// Bytes is what was uploaded, and BytesAgain the part of it that are duplicates.
	Bytes, BytesAgain int64
}

// file is one file in the shape of the API.
type file struct {
	ID           string `json:"id"`
	Type         string `json:"type"`
	Filename     string `json:"filename"`
	MimeType     string `json:"mime_type"`
	SizeBytes    int64  `json:"size_bytes"`
	CreatedAt    stamp  `json:"created_at"`
	Downloadable bool   `json:"downloadable"`
	ExpiresAt    stamp  `json:"expires_at"`

	content []byte
}

// NewFiles returns no files.
func NewFiles(settings FileSettings) *Files {
	settings.Bytes = cmp.Or(settings.Bytes, defaultBytes)
	f := &Files{settings: settings}
	f.Reset()
	return f
}

// Reset forgets everything. The next file is number 1 again.
func (f *Files) Reset() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.number, f.bytes = 0, 0
	f.all = nil
	f.counts = FileCounts{}
	f.digests = map[[sha256.Size]byte]bool{}
}

// Counts returns the sums.
func (f *Files) Counts() FileCounts {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.counts
}

// Upload keeps a file and returns what is known of it. The content belongs to it from then on. A nil file is an empty one.
func (f *Files) Upload(look Look, upload *request.File) ([]byte, *request.Refusal) {
	if upload == nil {
		upload = &request.File{}
	}
	digest := sha256.Sum256(upload.Content)
	size := int64(len(upload.Content))
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.settings.Bytes > 0 && f.bytes+size+fileCost > f.settings.Bytes {
		return nil, storageFull()
	}
	f.number++
	kept := &file{
		ID: fmt.Sprintf("file_standin_%06d", f.number), Type: "file",
		Filename: filename(upload.Name, upload.Type), MimeType: cmp.Or(upload.Type, "application/octet-stream"),
		SizeBytes: size, CreatedAt: stamp(look.At), Downloadable: f.settings.Downloadable,
	}
	if f.settings.Downloadable {
		kept.content = upload.Content
	}
	f.all = append(f.all, kept)
	f.bytes += size + fileCost
	f.counts.Uploaded++
	f.counts.Bytes += size
	if f.digests[digest] {
		f.counts.Duplicates++
		f.counts.BytesAgain += size
	} else if len(f.digests) < remembered {
		f.digests[digest] = true
	}
	return encode(kept), nil
}

// extensions are those of files without a name. The list of the system is another on each.
var extensions = map[string]string{
	"application/json": ".json", "application/pdf": ".pdf", "image/gif": ".gif", "image/jpeg": ".jpg", "image/png": ".png",
	"image/webp": ".webp", "text/csv": ".csv", "text/markdown": ".md", "text/plain": ".txt",
}

// filename is the name that the API keeps of a file: its last element, or one by its media type.
func filename(name, mediaType string) string {
	if name = path.Base(name); name != "." && name != "/" {
		return name
	}
	mediaType, _, _ = strings.Cut(mediaType, ";")
	return "unnamed" + extensions[mediaType]
}

// Get returns what is known of a file.
func (f *Files) Get(id string) ([]byte, *request.Refusal) {
	f.mu.Lock()
	defer f.mu.Unlock()
	at := f.find(id)
	if at < 0 {
		return nil, noFile(id)
	}
	return encode(f.all[at]), nil
}

// Content returns the content of a file and its media type. The bytes must not be changed.
func (f *Files) Content(id string) ([]byte, string, *request.Refusal) {
	f.mu.Lock()
	defer f.mu.Unlock()
	at := f.find(id)
	switch {
	case at < 0:
		return nil, "", noFile(id)
	case !f.all[at].Downloadable:
		return nil, "", notDownloadable(id)
	}
	return f.all[at].content, f.all[at].MimeType, nil
}

// cursorPrefix is what the cursors of a list of files start with.
const cursorPrefix = "page_"

// List returns a page of the files, the latest first, with a cursor to the next. page.AfterID is the cursor, or the id of
// a file.
func (f *Files) List(page request.Page) ([]byte, *request.Refusal) {
	page.AfterID = strings.TrimPrefix(page.AfterID, cursorPrefix)
	part, more, refusal := f.page(page)
	if refusal != nil {
		return nil, refusal
	}
	answer := struct {
		Data     []*file `json:"data"`
		NextPage *string `json:"next_page"`
	}{Data: part}
	if more && page.BeforeID == "" {
		next := cursorPrefix + part[len(part)-1].ID
		answer.NextPage = &next
	}
	return encode(answer), nil
}

// ListBeta returns a page in the older shape, with has_more, first_id and last_id, which requests with the header
// anthropic-beta: files-api-2025-04-14 still get.
func (f *Files) ListBeta(page request.Page) ([]byte, *request.Refusal) {
	part, more, refusal := f.page(page)
	if refusal != nil {
		return nil, refusal
	}
	return encode(newList(part, more, fileID)), nil
}

// page returns files that do not change any more.
func (f *Files) page(page request.Page) ([]*file, bool, *request.Refusal) {
	f.mu.Lock()
	all := slices.Clone(f.all)
	f.mu.Unlock()
	slices.Reverse(all)
	return cut(all, page, fileID)
}

// Delete forgets a file.
func (f *Files) Delete(id string) ([]byte, *request.Refusal) {
	f.mu.Lock()
	defer f.mu.Unlock()
	at := f.find(id)
	if at < 0 {
		return nil, noFile(id)
	}
	f.bytes -= f.all[at].SizeBytes + fileCost
	f.counts.Deleted++
	f.all = slices.Delete(f.all, at, at+1)
	return encode(struct {
		ID   string `json:"id"`
		Type string `json:"type"`
	}{id, "file_deleted"}), nil
}

func (f *Files) find(id string) int {
	return slices.IndexFunc(f.all, func(one *file) bool { return one.ID == id })
}

func fileID(one *file) string { return one.ID }

func noFile(id string) *request.Refusal { return notFound("File not found: " + id) }

// notDownloadable refuses a download. The code is that of the API, its words are not known.
func notDownloadable(id string) *request.Refusal {
	refusal := invalid(fmt.Sprintf("File %s is not downloadable.", id))
	refusal.Code = "file_not_downloadable"
	return refusal
}

// storageFull refuses an upload. The code is that of the API, its words are not known.
func storageFull() *request.Refusal {
	refusal := invalid("Your organization has exceeded its file storage quota.")
	refusal.Code = "storage_quota_exceeded"
	return refusal
}
