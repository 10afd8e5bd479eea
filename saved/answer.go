package saved

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
	"time"

	"holdfast/internal/sse"
	"holdfast/internal/wire"
)

// Answer is an answer that was good once.
type Answer struct {
	// ContentType and Body as an HTTP reply has them: JSON, or an event stream. The body may be packed with gzip when it is
	// handed to a [Store], and must not be changed after that; what comes out of one is not packed.
	ContentType string
	Body        []byte
	// Model that answered. Default: what the answer itself says.
	Model string
	// At is when the answer was made. Default: now, and never later than that.
	At time.Time
}

// ErrNotGood is the error of an answer that is not to be kept: it is cut off, refused, paused, failed, empty, or not an
// answer at all. Test with errors.Is; the text says which.
var ErrNotGood = errors.New("saved: not a complete good answer")

func notGood(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrNotGood}, args...)...)
}

// The content types of what is given back.
const (
	typeJSON   = "application/json"
	typeStream = "text/event-stream; charset=utf-8"
)

// kind is one of the APIs that answers come from.
type kind struct {
	// path is how the paths of its requests end.
	path string
	// omits says what of a body does not determine the answer.
	omits omit
	// collect begins to put an answer together from its events.
	collect func() collector
	// judge says why an answer is not good, nil when it is.
	judge func(answer object) error
	// mark puts a line in front of the answer's text, if it has some.
	mark func(answer object, line string) object
	// text returns what an answer says.
	text func(answer object) string
	// events makes an event stream of an answer.
	events func(answer object, body object) []byte
}

// collector puts an answer together from its events.
type collector interface {
	// event takes the next one. data is valid JSON and not used by anybody else.
	event(data object) error
	// answer is called once, after the last event.
	answer() (object, error)
}

var kinds = [...]kind{
	{"/v1/messages", omittedMessage, collectMessage, judgeMessage, markMessage, textOfMessage, messageEvents},
	{"/chat/completions", omitted, collectChat, judgeChat, markChat, textOfChat, chatEvents},
	{"/responses", omitted, collectResponse, judgeResponse, markResponse, textOfResponse, responseEvents},
}

// kindOf tells the API by the path of a request; nil when it is none of them.
func kindOf(path string) *kind {
	path, _ = pathAndQuery(path)
	for i := range kinds {
		if strings.HasSuffix(path, kinds[i].path) {
			return &kinds[i]
		}
	}
	return nil
}

// maxUnpacked bounds what a packed answer may unpack to.
const maxUnpacked = 64 << 20

// read checks an answer to a question and returns it as the one object that a store keeps, whatever form it came in.
func (k *kind) read(a *Answer) (object, error) {
	body, err := unpacked(a.Body)
	if err != nil {
		return nil, err
	}
	contentType, _, _ := mime.ParseMediaType(a.ContentType)
	var answer object
	if contentType == "text/event-stream" {
		answer, err = k.readStream(body)
	} else {
		answer, err = readWhole(body)
	}
	if err != nil {
		return nil, err
	}
	// The rules for what a 200 may hold are those of every other call.
	reply := wire.Read(http.StatusOK, http.Header{"Content-Type": {typeJSON}}, answer.raw(), time.Time{})
	if reply.Fault != wire.FaultNone {
		return nil, notGood("%s", reply.Rule)
	}
	return answer, k.judge(answer)
}

func unpacked(body []byte) ([]byte, error) {
	if !bytes.HasPrefix(body, []byte{0x1f, 0x8b}) {
		return body, nil
	}
	reader, err := gzip.NewReader(bytes.NewReader(body))
	if err != nil {
		return nil, notGood("cannot unpack it: %w", err)
	}
	text, err := io.ReadAll(io.LimitReader(reader, maxUnpacked+1))
	if err != nil || len(text) > maxUnpacked {
		return nil, notGood("it is torn or too large to unpack")
	}
	return text, nil
}

func readWhole(body []byte) (object, error) {
	text, err := compact(body)
	if err != nil {
		return nil, err
	}
	answer, isObject := readObject(text)
	if !isObject {
		return nil, notGood("it is not an object")
	}
	return answer, nil
}

// compact returns a copy of JSON without space, so that an event made of it is one line.
func compact(text []byte) (raw, error) {
	var b bytes.Buffer
	if err := json.Compact(&b, text); err != nil {
		return nil, notGood("it is not JSON")
	}
	return b.Bytes(), nil
}

// readStream puts an answer together from an event stream, of which nothing may be missing.
func (k *kind) readStream(body []byte) (object, error) {
	var (
		stream  wire.Stream
		collect = k.collect()
		events  = sse.NewReader(bytes.NewReader(body), len(body)+1)
	)
	for {
		event, err := events.Next()
		if err != nil {
			return nil, notGood("the stream has no end")
		}
		progress := stream.Event(event.Name, event.Data)
		if progress == wire.ProgressError || stream.Malformed() > 0 {
			return nil, notGood("the stream holds an error")
		}
		if text, err := compact(event.Data); err == nil { // [DONE] is no JSON
			if data, isObject := readObject(text); isObject {
				err = collect.event(data)
			}
			if err != nil {
				return nil, err
			}
		}
		if progress == wire.ProgressEnd {
			return collect.answer()
		}
	}
}

// Give returns an answer to the question in the form that the question asks for: as JSON or as an event stream, made of the
// answer if it has the other form. With mark the text begins with a line that says when the answer was made, as
// "[saved answer of 2026-11-30 14:05 UTC]"; an answer without text has no mark, and none has one to a question that asks for
// JSON, which a mark would spoil. The error is [ErrQuestion] or [ErrNotGood].
func Give(q *Question, a *Answer, mark bool) (*Answer, error) {
	_, asked, err := q.read()
	if err != nil {
		return nil, err
	}
	answer, err := asked.kind.read(a)
	if err != nil {
		return nil, err
	}
	return asked.give(a, answer, mark), nil
}

// give returns the answer in the form asked for.
func (q asked) give(a *Answer, answer object, mark bool) *Answer {
	if mark && !q.wantsJSON() {
		answer = q.kind.mark(answer, label(a.At))
	}
	given := &Answer{ContentType: typeJSON, Model: a.Model, At: a.At}
	if q.stream {
		given.ContentType, given.Body = typeStream, q.kind.events(answer, q.body)
	} else {
		given.Body = answer.raw()
	}
	return given
}

// label is the line that marks a saved answer.
func label(at time.Time) string {
	return "[saved answer of " + at.UTC().Format("2006-01-02 15:04 UTC") + "]\n\n"
}

// wantsJSON reports whether the text of the answer is to be JSON.
func (q asked) wantsJSON() bool {
	for _, format := range []object{q.body.object("response_format"), q.body.object("text").object("format")} {
		if strings.HasPrefix(format.text("type"), "json") {
			return true
		}
	}
	return filled(q.body.at("output_format")) || filled(q.body.object("output_config").at("format"))
}

// echoes are the members of an answer in which the API repeats the question. They are not kept, and are given back as the
// question has them; value is that of a question without.
var echoes = []struct {
	name  string
	value raw
}{
	{"instructions", null},
	{"input", null},
	{"messages", null},
	{"prompt", null},
	{"prompt_token_ids", null},
	{"prompt_logprobs", null},
	{"tools", emptyList},
	{"metadata", emptyObject},
	{"user", null},
	{"safety_identifier", null},
	{"prompt_cache_key", null},
}

// silence takes the question out of an answer.
func silence(answer object) object {
	answer = answer.clone()
	for _, echo := range echoes {
		answer.swap(echo.name, null)
	}
	return answer
}

// echo puts it back.
func (q asked) echo(answer object) object {
	for _, echo := range echoes {
		value := q.body.at(echo.name)
		if isNull(value) {
			value = echo.value
		}
		answer.swap(echo.name, value)
	}
	return answer
}

// modelOf returns the model that made an answer.
func (a *Answer) modelOf(answer object) string {
	if a.Model != "" {
		return a.Model
	}
	return answer.text("model")
}
