package wire

import "strings"

// kind is what an event is by its name.
type kind uint8

const (
	unknownKind kind = iota
	messageStart
	blockStart
	blockDelta
	blockStop
	messageDelta
	messageStop
	ping
	failure
	responseEnd
	responseDelta
	responseDone
	responsePart
	responseItem
	responseImage
)

// kinds knows the events by name. The many response.*.delta and .done events
// are told by their ends.
var kinds = map[string]kind{
	"message_start":       messageStart,
	"content_block_start": blockStart,
	"content_block_delta": blockDelta,
	"content_block_stop":  blockStop,
	"message_delta":       messageDelta,
	"message_stop":        messageStop,
	"ping":                ping,
	"keepalive":           ping,
	"error":               failure,

	"response.failed":                              failure,
	"response.completed":                           responseEnd,
	"response.incomplete":                          responseEnd,
	"response.content_part.added":                  responsePart,
	"response.content_part.done":                   responsePart,
	"response.output_item.added":                   responseItem,
	"response.output_item.done":                    responseItem,
	"response.output_text.delta":                   responseDelta,
	"response.image_generation_call.partial_image": responseImage,
}

// kindOf tells an event by the type in its data, and by its name when that
// says nothing: streams without event lines and streams without types exist.
func kindOf(name string, typ node) kind {
	if name == "error" {
		return failure
	}
	if typ.filled() && len(typ) > 2 {
		if kind := lookupKind(typ[1 : len(typ)-1]); kind != unknownKind {
			return kind
		}
	}
	if kind, known := kinds[name]; known {
		return kind
	}
	return responseKind(name)
}

func lookupKind(typ []byte) kind {
	if kind, known := kinds[string(typ)]; known {
		return kind
	}
	if len(typ) > 0 && typ[0] == 'r' {
		return responseKind(string(typ))
	}
	return unknownKind
}

func responseKind(typ string) kind {
	switch {
	case !strings.HasPrefix(typ, "response."):
		return unknownKind
	case strings.HasSuffix(typ, ".delta"):
		return responseDelta
	case strings.HasSuffix(typ, ".done"):
		return responseDone
	default:
		return unknownKind
	}
}
