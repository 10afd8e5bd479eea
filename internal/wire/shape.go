package wire

import (
	"bytes"
	"encoding/json"
	"net/http"
)

// ErrorBody returns the JSON error body of a dialect; the Anthropic one when
// the dialect is not known. code goes where the dialect keeps it:
// error.details.error_code or error.code, null when it is "". requestID is left
// out when it is "", and in the OpenAI dialect always: there it travels in a
// header alone.
func ErrorBody(d Dialect, typ, code, message, requestID string) []byte {
	var body any
	if d == DialectOpenAI {
		body = openAIError(typ, code, message)
	} else {
		body = anthropicError(typ, code, message, requestID)
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(body); err != nil {
		// Strings alone cannot fail to encode.
		return []byte(`{}`)
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n"))
}

func openAIError(typ, code, message string) any {
	type inner struct {
		Message string  `json:"message"`
		Type    string  `json:"type"`
		Param   *string `json:"param"`
		Code    *string `json:"code"`
	}
	e := inner{Message: message, Type: typ}
	if code != "" {
		e.Code = &code
	}
	return struct {
		Error inner `json:"error"`
	}{e}
}

func anthropicError(typ, code, message, requestID string) any {
	type details struct {
		Code string `json:"error_code"`
	}
	type inner struct {
		Details *details `json:"details"`
		Type    string   `json:"type"`
		Message string   `json:"message"`
	}
	e := inner{Type: typ, Message: message}
	if code != "" {
		e.Details = &details{code}
	}
	return struct {
		Type      string `json:"type"`
		Error     inner  `json:"error"`
		RequestID string `json:"request_id,omitempty"`
	}{"error", e, requestID}
}

// ErrorType returns the error.type that a status carries in a dialect. A 4xx
// without a type of its own is an invalid request, any other a server error.
func ErrorType(d Dialect, status int) string {
	if d == DialectOpenAI {
		return openAIType(status)
	}
	switch status {
	case http.StatusUnauthorized:
		return "authentication_error"
	case http.StatusPaymentRequired:
		return "billing_error"
	case http.StatusForbidden:
		return "permission_error"
	case http.StatusNotFound:
		return "not_found_error"
	case http.StatusConflict:
		return "conflict_error"
	case http.StatusRequestEntityTooLarge:
		return "request_too_large"
	case http.StatusTooManyRequests:
		return "rate_limit_error"
	case http.StatusGatewayTimeout:
		return "timeout_error"
	case http.StatusServiceUnavailable, 529:
		return "overloaded_error"
	}
	if status >= 400 && status < 500 {
		return "invalid_request_error"
	}
	return "api_error"
}

func openAIType(status int) string {
	switch status {
	case http.StatusPaymentRequired:
		return "insufficient_quota"
	case http.StatusTooManyRequests:
		return "rate_limit_exceeded"
	case http.StatusServiceUnavailable, 529:
		return "server_is_overloaded"
	}
	if status >= 400 && status < 500 {
		return "invalid_request_error"
	}
	return "server_error"
}

// StatusOf returns the HTTP status that an error.type, or a code in its place,
// has in a dialect: what an error inside a 200 would have been. It is 0 for a
// type that is not known.
func StatusOf(d Dialect, typ string) int {
	status := typeWord(typ).status
	if d == DialectOpenAI && status == 529 {
		return http.StatusServiceUnavailable
	}
	return status
}
