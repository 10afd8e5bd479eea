package request

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"holdfast/internal/wire"
)

// Settings say what a plan wants to be refused besides what is wrong in itself. The zero value adds nothing.
type Settings struct {
	// BadKeys get a 401. Any other key is good; a missing one is a 401 as well.
	BadKeys []string
	// UnknownModels get a 404. Any other name is a model: a stand-in that knew the names of today would refuse those of
	// tomorrow.
	UnknownModels []string
	// Window is the context window of every model in tokens. 0: that of the real model, and none where it is not known;
	// negative: none.
	Window int
}

// The versions of the Messages API: platform.claude.com/docs/en/api/versioning.
const (
	version2023 = "2023-06-01"
	version2026 = "2026-10-21" // refuses sampling parameters, documents of the assistant and citations of the user
)

var versions = []string{"2023-01-01", version2023, version2026}

// Read returns what a request asks for. The body is the whole body, still under its content-encoding; of a body that is
// too long one byte more than MaxBody is enough. A refusal comes with all that is known of the request up to there:
// endpoint, dialect, path and key in every case that has them.
//
// The order is that of the API: length, path, key, version, then the body.
func Read(r *http.Request, body []byte, settings Settings) (Request, *Refusal) {
	endpoint, id, base, refusal := Route(r.Method, r.URL.Path)
	q := Request{
		Endpoint: endpoint, ID: id, Dialect: dialectOf(endpoint, r), Path: strings.TrimPrefix(r.URL.Path, base),
		Key: keyOf(r.Header), CustomID: r.Header.Get("X-Custom-Id"),
	}
	if refusal != nil {
		return q, refusal
	}
	if int64(len(body)) > MaxBody(endpoint) {
		return q, tooLarge(&q)
	}
	if refusal := q.checkKey(r.Header, settings.BadKeys); refusal != nil {
		return q, refusal
	}
	if q.Dialect == wire.DialectAnthropic {
		if refusal := checkVersion(r.Header.Get("Anthropic-Version")); refusal != nil {
			return q, refusal
		}
	}
	switch endpoint {
	case BatchList, ModelList, FileList:
		q.Page, refusal = readPage(r.URL)
		return q, refusal
	case FileUpload:
		q.File, refusal = readFile(r.Header.Get("Content-Type"), body)
		return q, refusal
	case Messages, CountTokens, BatchCreate, ChatCompletions, Responses:
		return q, q.readBody(r.Header, body, settings)
	default:
		return q, nil
	}
}

// dialectOf tells the dialect of an endpoint. Both vendors list their models under one path: a request that neither says
// a version of Anthropic nor has its key header is one for OpenAI.
func dialectOf(e Endpoint, r *http.Request) wire.Dialect {
	switch e {
	case ChatCompletions, Responses:
		return wire.DialectOpenAI
	case ModelList, ModelGet:
		if r.Header.Get("Anthropic-Version") == "" && r.Header.Get("X-Api-Key") == "" {
			return wire.DialectOpenAI
		}
	case "":
		if d := wire.DialectOf(r.URL.Path); d == wire.DialectOpenAI {
			return d
		}
	}
	return wire.DialectAnthropic
}

// keyOf returns the API key from either header; x-api-key counts when both are there, as for the API.
func keyOf(h http.Header) string {
	if key := h.Get("X-Api-Key"); key != "" {
		return key
	}
	scheme, key, _ := strings.Cut(h.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "bearer") {
		return ""
	}
	return strings.TrimSpace(key)
}

// checkKey refuses a missing or bad key. The real OpenAI API repeats parts of the key; a stand-in shows no key.
func (q *Request) checkKey(h http.Header, bad []string) *Refusal {
	missing, wrong := q.Key == "", slices.Contains(bad, q.Key)
	switch {
	case !missing && !wrong:
		return nil
	case q.Dialect == wire.DialectOpenAI && missing:
		return openAI(http.StatusUnauthorized, "", "", "You didn't provide an API key. You need to provide your API key in an Authorization header using Bearer auth (i.e. Authorization: Bearer YOUR_KEY), or as the password field (with blank username) if you're accessing the API from your browser and are prompted for a username and password. You can obtain an API key from https://platform.openai.com/account/api-keys.")
	case q.Dialect == wire.DialectOpenAI:
		return openAI(http.StatusUnauthorized, "", "invalid_api_key", "Incorrect API key provided: ********. You can find your API key at https://platform.openai.com/account/api-keys.")
	case missing:
		return &Refusal{Status: http.StatusUnauthorized, Message: "x-api-key header is required"}
	case h.Get("X-Api-Key") == "":
		return &Refusal{Status: http.StatusUnauthorized, Message: "Invalid bearer token"}
	}
	return &Refusal{Status: http.StatusUnauthorized, Message: "invalid x-api-key"}
}

func checkVersion(version string) *Refusal {
	switch {
	case version == "":
		return invalid("anthropic-version: header is required")
	case !slices.Contains(versions, version):
		return invalid("anthropic-version: %q is not a valid version", clip(version))
	}
	return nil
}

// readBody reads a JSON body.
func (q *Request) readBody(h http.Header, body []byte, settings Settings) *Refusal {
	if refusal := q.checkType(h.Get("Content-Type")); refusal != nil {
		return refusal
	}
	body, refusal := decoded(q, h.Get("Content-Encoding"), body)
	if refusal != nil {
		return refusal
	}
	root, err := parseJSON(string(body))
	if q.Dialect == wire.DialectOpenAI {
		if err != nil || root.kind != isObject {
			return openAI(http.StatusBadRequest, "", "", "We could not parse the JSON body of your request. (HINT: This likely means you aren't using your HTTP library correctly. The OpenAI API expects a JSON payload, but what was sent was not valid JSON. If you have trouble figuring out how to fix this, please contact us through our help center at help.openai.com.)")
		}
		if q.Endpoint == Responses {
			return q.readResponses(&root, settings)
		}
		return q.readChat(&root, settings)
	}
	if err != nil {
		return invalid("The request body is not valid JSON: %v", err)
	}
	if root.kind != isObject {
		return invalid("Input should be a valid dictionary")
	}
	terms := terms{version: h.Get("Anthropic-Version"), betas: strings.Join(h.Values("Anthropic-Beta"), ","), settings: settings}
	if q.Endpoint == BatchCreate {
		return q.readBatch(&root, terms)
	}
	return q.readMessages(&root, terms)
}

// checkType refuses a body that calls itself something else than JSON. One without a type is taken for JSON.
func (q *Request) checkType(contentType string) *Refusal {
	if contentType == "" || contentType == "application/json" {
		return nil
	}
	media, _, _ := mime.ParseMediaType(contentType)
	switch {
	case media == "application/json" || strings.HasSuffix(media, "+json"):
		return nil
	case q.Dialect == wire.DialectOpenAI:
		return openAI(http.StatusBadRequest, "", "unsupported_content_type", fmt.Sprintf("Unsupported content type: '%s'. This API method only accepts 'application/json' requests, but you specified the header 'Content-Type: %[1]s'. Please try again with a supported content type.", clip(contentType)))
	}
	return invalid("content-type: must be application/json")
}

// decoded takes the content-encoding off. The API knows two errors for it by code, and one for a body that grows too
// large: anthropic-sdk-go, message.go, the list of error codes.
func decoded(q *Request, encoding string, body []byte) ([]byte, *Refusal) {
	switch strings.ToLower(strings.TrimSpace(encoding)) {
	case "", "identity":
		return body, nil
	case "gzip", "x-gzip":
	default:
		return nil, &Refusal{Status: http.StatusBadRequest, Code: "request_body_encoding_unsupported", Message: "content-encoding: not supported"}
	}
	limit := MaxBody(q.Endpoint)
	unpacked, err := gzip.NewReader(bytes.NewReader(body))
	if err == nil {
		body, err = io.ReadAll(io.LimitReader(unpacked, limit+1))
	}
	switch {
	case err != nil:
		return nil, &Refusal{Status: http.StatusBadRequest, Code: "request_body_encoding_invalid", Message: "The request body does not match its content-encoding"}
	case int64(len(body)) > limit:
		return nil, &Refusal{Status: http.StatusRequestEntityTooLarge, Code: "request_body_too_large_after_decoding", Message: "The decoded request body exceeds the maximum size"}
	}
	return body, nil
}

// tooLarge refuses the length of a body. For Messages the edge of the network answers, before the API sees the request.
func tooLarge(q *Request) *Refusal {
	const text = "Request exceeds the maximum size"
	if q.Dialect == wire.DialectOpenAI {
		return openAI(http.StatusRequestEntityTooLarge, "", "request_too_large", text)
	}
	return &Refusal{Status: http.StatusRequestEntityTooLarge, Message: text, HTML: q.Endpoint == Messages || q.Endpoint == CountTokens}
}

// readPage reads which part of a list is wanted.
func readPage(u *url.URL) (Page, *Refusal) {
	query := u.Query()
	page := Page{AfterID: cmp.Or(query.Get("after_id"), query.Get("page")), BeforeID: query.Get("before_id")} // files are paged by page
	text := query.Get("limit")
	if text == "" {
		return page, nil
	}
	limit, err := strconv.Atoi(text)
	switch {
	case errors.Is(err, strconv.ErrRange):
		limit = 1001
		if text[0] == '-' {
			limit = 0
		}
	case err != nil:
		return page, invalid("limit: Input should be a valid integer, unable to parse string as an integer")
	}
	switch {
	case limit < 1:
		return page, invalid("limit: Input should be greater than or equal to 1")
	case limit > 1000:
		return page, invalid("limit: Input should be less than or equal to 1000")
	}
	page.Limit = limit
	return page, nil
}

// invalid is a 400 of the Messages API.
func invalid(format string, args ...any) *Refusal {
	return &Refusal{Status: http.StatusBadRequest, Message: fmt.Sprintf(format, args...)}
}

// openAI is an error in the OpenAI dialect, where a client's mistake has one type whatever its status.
func openAI(status int, param, code, message string) *Refusal {
	return &Refusal{Status: status, Type: "invalid_request_error", Code: code, Param: param, Message: message}
}

// clip keeps a value from the request short enough for a message, as the APIs do: its two ends.
func clip(s string) string {
	if len(s) <= 32 {
		return strings.ToValidUTF8(s, "")
	}
	return strings.ToValidUTF8(s[:3]+"..."+s[len(s)-3:], "")
}
