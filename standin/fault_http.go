package standin

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
)

var httpFault = &fault{
	Fault: Fault{
		Kind: HTTP,
		What: "a status with the provider's error body, or any body",
		Doc: `A reply with the status and the error body of the provider: type (the status decides it when empty), code, message, and
a retry_after sent as it is written, be it "3", "0.5", "-5", "NaN" or "soonish"; "now+3s" becomes an HTTP date. Two values under header make
two retry-after lines. form gives the error as a page, as text, empty, cut short or oversized; body and content_type replace it
whole. Nothing is billed.`,
		Fields: slices.Concat([]string{"status", "retry_after", "form", "body", "content_type", "gzip"}, errorFields),
	},
	instead: (*reply).failAsTold,
}

// oversize is the length of the message of an oversized error in bytes.
const oversize = 4 << 20

const (
	webPage   = "<!DOCTYPE html>\n<html><head><title>Welcome</title></head><body><h1>It works!</h1></body></html>\n"
	errorPage = "<html>\r\n<head><title>%</title></head>\r\n<body>\r\n<center><h1>%</h1></center>\r\n<hr><center>edge</center>\r\n</body>\r\n</html>\r\n"
)

// failAsTold gives the error, or the body, that the step describes.
func (a *reply) failAsTold() {
	h := a.w.Header()
	if a.step.RetryAfter != "" {
		h.Set("retry-after", retryAfter(a.step.RetryAfter, a.server.now()))
	}
	contentType, body := a.errorForm()
	if a.step.ContentType != "" {
		contentType = a.step.ContentType
	}
	if a.step.Form == FormTruncated {
		body = a.coded(body)
		a.start(a.step.Status, contentType, len(body))
		a.write(body[:len(body)/2])
		a.abort(Peer)
	}
	a.send(a.step.Status, contentType, body)
}

// errorForm is the body of the error and its media type.
func (a *reply) errorForm() (contentType string, body []byte) {
	if a.step.Body != "" || a.step.ContentType != "" && a.step.Form == "" {
		return "application/json", []byte(a.step.Body)
	}
	title := strings.TrimSpace(statusText(a.step.Status))
	switch a.step.Form {
	case FormHTML:
		return "text/html; charset=utf-8", []byte(strings.ReplaceAll(errorPage, "%", title))
	case FormText:
		return "text/plain; charset=utf-8", []byte(title + "\n")
	case FormEmpty:
		return "application/json", nil
	case FormOversized:
		a.step.Message = strings.Repeat("overload ", oversize/len("overload "))
	}
	return "application/json", a.errorBody()
}

// statusText is "503 Service Unavailable", as proxies head their pages.
func statusText(status int) string {
	text := http.StatusText(status)
	if status == 529 {
		text = "Overloaded"
	}
	return strings.TrimSpace(strconv.Itoa(status) + " " + text)
}
