package wire

import (
	"bytes"
	"net/http"
	"strconv"
	"strings"
	"unicode/utf8"
)

// messageLimit is the length of Reply.Message and nameLimit that of a type, a
// code or a request id, in runes.
const (
	messageLimit = 200
	nameLimit    = 100
)

// problem is an error body of any provider, brought to one form.
type problem struct {
	typ, code string
	// message is the provider's text as sent; it is scrubbed when it is shown.
	message   string
	requestID string
	// status is what the body says its status is; 0 when it does not.
	status int
	// original is the status behind an AWS ModelErrorException; 0 when absent.
	original int
}

// problemIn reads an error body of any of these shapes:
//
//	{"type":"error","error":{"type","message","details":{"error_code"}},"request_id"}   Anthropic
//	{"error":{"message","type","code"}}                                                 OpenAI
//	{"type":"error","code","message"}                                                   OpenAI, in a stream
//	{"response":{"error":{"code","message"}}}                                           OpenAI, response.failed
//	{"detail":{"error":{…}}}, {"error":{"error":{…}}}                                   gateways around them
//	{"choices":[{"error":{"code","message"},"finish_reason":"error"}]}                  OpenRouter
//	{"error":{"code":429,"message","status":"RESOURCE_EXHAUSTED"}}, or in an array      Google
//	{"__type":"…#ThrottlingException","message"}, {"throttlingException":{"message"}}   AWS
//	{"status":429,"error":"text","message"}, {"object":"error",…}, {"detail":"text"}    others
func problemIn(body node) problem {
	if body.isArray() {
		body = body.first()
	}
	p := problem{requestID: body.get("request_id").text()}
	var outer outline
	outer.read(body)
	switch inner := innerError(&outer); {
	case inner.isObject():
		p.readObject(inner)
	case inner.isString():
		p.readText(inner.text())
	}
	p.readTop(body)
	p.unwrap()
	p.typ, p.code = shapeName(p.typ), strings.TrimSpace(p.code)
	if p.typ == "" {
		p.typ = exceptionIn(p.message)
	}
	return p
}

// innerError finds the member that holds the error.
func innerError(body *outline) node {
	for _, inner := range []node{
		body.get("error"),
		body.get("response").get("error"),
		body.get("detail").get("error"),
		body.get("choices").first().get("error"),
	} {
		if !inner.isNull() {
			return inner
		}
	}
	var exception node
	body.of.members(func(key, value node) bool {
		if value.isObject() && namesException(key) {
			exception = value
		}
		return exception == nil
	})
	return exception
}

func (p *problem) readObject(inner node) {
	if deeper := inner.get("error"); deeper.isObject() && inner.get("message").isNull() {
		// A gateway that wraps an error body in another one.
		inner = deeper
	}
	p.typ = inner.get("type").text()
	p.code = firstText(inner.get("details", "error_code").scalar(), inner.get("code").scalar())
	p.message = inner.get("message").text()
	p.requestID = firstText(p.requestID, inner.get("request_id").text())
	p.original = statusIn(inner.get("originalStatusCode").scalar())
	p.status = firstStatus(inner.get("code").scalar(), inner.get("status_code").scalar(), inner.get("status").scalar())
	if name := inner.get("status").text(); p.typ == "" && isName(name) && name == strings.ToUpper(name) {
		p.typ = name
	}
	if nested := inner.get("error"); nested.isString() && p.message == "" {
		p.readText(nested.text())
	}
}

// readText takes an error that is a bare string: a name when it looks like
// one, otherwise words for people, which decide nothing.
func (p *problem) readText(text string) {
	if isName(text) {
		p.typ = text
	} else {
		p.message = text
	}
}

// readTop fills what is still missing from the outer object.
func (p *problem) readTop(body node) {
	if p.typ == "" {
		p.typ = body.get("__type").text()
	}
	if typ := body.get("type").text(); p.typ == "" && typ != "error" && !isStreamType(typ) && isName(typ) {
		p.typ = typ
	}
	body.members(func(key, value node) bool {
		if p.typ == "" && value.isObject() && namesException(key) {
			p.typ = key.text()
		}
		return p.typ == ""
	})
	p.code = firstText(p.code, body.get("code").scalar())
	outer := body.get("message").text()
	if p.message == "" || outer != "" && isName(p.message) {
		p.message = firstText(outer, p.message, body.get("detail").text())
	}
	if p.status == 0 {
		p.status = firstStatus(body.get("code").scalar(), body.get("status_code").scalar(), body.get("status").scalar())
	}
	if p.original == 0 {
		p.original = statusIn(body.get("originalStatusCode").scalar())
	}
}

// unwrap looks into a message that is itself an error body: gateways pass the
// upstream's answer on as text. The outer names win where they are specific.
func (p *problem) unwrap() {
	text := strings.TrimSpace(p.message)
	if !strings.HasPrefix(text, "{") {
		return
	}
	body := parse([]byte(text))
	var outer outline
	outer.read(body)
	inner := innerError(&outer)
	if !inner.isObject() {
		inner = body
	}
	var nested problem
	nested.readObject(inner)
	if p.code == "" || digits(p.code) {
		p.code = firstText(nested.code, p.code)
	}
	if !typeWord(shapeName(p.typ)).known() {
		p.typ = firstText(nested.typ, p.typ)
	}
	p.message = firstText(nested.message, p.message)
}

// textProblem reads a body that is not JSON: an HTML page, or a line of text.
func textProblem(text []byte) problem {
	text = bytes.TrimSpace(text)
	if len(text) > scrubInput*2 {
		text = text[:scrubInput*2]
	}
	if bytes.IndexByte(text, 0) >= 0 || !mostlyText(text) {
		return problem{}
	}
	message := string(text)
	return problem{message: message, typ: exceptionIn(message)}
}

// mostlyText allows for a rune that was cut at the end.
func mostlyText(text []byte) bool {
	for range utf8.UTFMax {
		if utf8.Valid(text) {
			return true
		}
		text = text[:max(0, len(text)-1)]
	}
	return false
}

// fromHeaders adds what only headers say.
func (p *problem) fromHeaders(h http.Header) {
	if p.typ == "" {
		p.typ = shapeName(h.Get("X-Amzn-Errortype"))
	}
	for _, name := range []string{"Request-Id", "X-Request-Id", "X-Amzn-Requestid", "Apim-Request-Id"} {
		if id := h.Get(name); id != "" {
			p.requestID = id
			return
		}
	}
}

// shapeName cuts an AWS shape name to its last part: it comes as
// "com.amazon.coral#Name" in bodies and as "Name:http://…" in headers.
func shapeName(name string) string {
	if i := strings.LastIndexByte(name, '#'); i >= 0 {
		name = name[i+1:]
	}
	name, _, _ = strings.Cut(name, ":")
	return strings.TrimSpace(name)
}

// exceptionIn returns the AWS name that a text such as
// "ThrottlingException: Too many tokens" begins with.
func exceptionIn(text string) string {
	name, _, found := strings.Cut(text, ":")
	if found && isException(name) {
		return name
	}
	return ""
}

// namesException is isException for the raw key of an object.
func namesException(key node) bool {
	return bytes.HasSuffix(key, []byte(`xception"`)) && isException(key.text())
}

func isException(name string) bool {
	return len(name) > len("exception") && isName(name) && strings.HasSuffix(name, "xception")
}

// isStreamType reports whether a top-level type names an event, not an error.
func isStreamType(typ string) bool {
	return strings.HasPrefix(typ, "response.") || typ == "message" || typ == "response"
}

// isName reports whether the text can be a machine's name for something.
func isName(text string) bool {
	if text == "" || len(text) > nameLimit {
		return false
	}
	for _, c := range []byte(text) {
		if !isLetter(c|0x20) && (c < '0' || c > '9') && c != '_' && c != '-' && c != '.' && c != '#' {
			return false
		}
	}
	return isLetter(text[0] | 0x20)
}

func firstText(texts ...string) string {
	for _, text := range texts {
		if text != "" {
			return text
		}
	}
	return ""
}

func firstStatus(texts ...string) int {
	for _, text := range texts {
		if status := statusIn(text); status != 0 {
			return status
		}
	}
	return 0
}

// statusIn reads an HTTP error status; 0 for any other number or text.
func statusIn(text string) int {
	status, err := strconv.Atoi(strings.TrimSpace(text))
	if err != nil || status < 400 || status > 599 {
		return 0
	}
	return status
}
