package answer

import (
	"holdfast/internal/wire"
)

// InError returns the event in which a stream that had begun well reports an error. sequence is the number of events
// before it, which the responses shape counts. requestID is shown by the Messages API alone.
func InError(shape Shape, typ, code, message, requestID string, sequence int) Event {
	switch shape {
	case ChatCompletions:
		return Event{Data: wire.ErrorBody(wire.DialectOpenAI, typ, code, message, ""), Part: Final}
	case Responses:
		// The SDKs document the members of the error beside the type; what the API sends has them inside.
		data := number(nil, `{"type":"error","sequence_number":`, sequence)
		data = quote(append(data, `,"error":{"type":`...), typ)
		data = orNull(append(data, `,"code":`...), code)
		data = quote(append(data, `,"message":`...), message)
		return Event{Name: "error", Data: append(data, `,"param":null}}`...), Part: Final}
	default:
		return Event{Name: "error", Data: wire.ErrorBody(wire.DialectAnthropic, typ, code, message, requestID), Part: Final}
	}
}

// Failed returns the event response.failed of the responses shape, which the API sends behind the error event or in its
// place. code is the error's code, or its type when it has none.
func (a Answer) Failed(code, message string, sequence int) Event {
	data := a.response([]byte(`{"type":"response.failed","response":`), phase{status: "failed", streamed: true, code: code, message: message})
	return Event{Name: "response.failed", Data: append(number(data, `,"sequence_number":`, sequence), '}'), Part: Final}
}
