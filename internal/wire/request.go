package wire

import (
	"bytes"
	"encoding/json"
	"slices"
)

// Request is what the body of a model call says at its top level.
type Request struct {
	// Model that is asked; "" when the body names none or cannot be read.
	Model string
	// Stream tells that the answer is wanted as an event stream.
	Stream bool
	// Packed tells that the body is compressed.
	Packed bool
	// MaxOutput is the most tokens that the answer may have, 0 where the body
	// sets no bound.
	MaxOutput int
}

// ReadRequest reads the body of a request. A compressed one is unpacked for the look, up to a limit. Of a member that
// stands there twice the last one counts, as with the JSON readers that upstreams use.
func ReadRequest(body []byte) Request {
	content := unpack(body, requestLimit)
	r := Request{Packed: packed(body)}
	parse(content.text).members(func(key, value node) bool {
		switch {
		case key.is("model"):
			r.Model = value.text()
		case key.is("stream"):
			r.Stream = len(value) > 0 && value[0] == 't'
		case key.is("max_tokens"), key.is("max_completion_tokens"), key.is("max_output_tokens"):
			most, _ := value.count()
			r.MaxOutput = max(r.MaxOutput, most)
		}
		return true
	})
	return r
}

// SetModel returns a copy of the body of a request that asks another model, and is the same byte for byte otherwise. A
// body that names no model is returned as it is.
func SetModel(body []byte, model string) []byte {
	name, err := json.Marshal(model)
	if err != nil {
		return body // a string cannot fail
	}
	var edits []edit
	parse(body).members(func(key, value node) bool {
		if key.is("model") { // each time: readers differ in which one counts
			at := offset(body, value)
			edits = append(edits, edit{at, at + len(value), name})
		}
		return true
	})
	return apply(body, edits)
}

// sealed are the types of parts that only the provider that made them can open or check.
var sealed = []string{"thinking", "redacted_thinking", "reasoning"}

// WithoutSealed returns the body of a request without the parts of its history that only the provider that made them
// can open: signed and redacted thinking, encrypted reasoning. A turn of which nothing is left goes too. The rest is the same
// byte for byte; a body without such parts is returned as it is.
func WithoutSealed(body []byte) []byte {
	var edits []edit
	for _, list := range []string{"messages", "input"} {
		turns := parse(body).member(list)
		cut(body, turns, func(turn node) bool {
			if slices.ContainsFunc(sealed, turn.member("type").is) { // an item of a response's input
				return true
			}
			content := turn.member("content")
			left := 0
			inner := cut(body, content, func(part node) bool {
				gone := slices.ContainsFunc(sealed, part.member("type").is)
				if !gone {
					left++
				}
				return gone
			})
			if len(inner) > 0 && left == 0 {
				return true
			}
			edits = append(edits, inner...)
			return false
		}, &edits)
	}
	return apply(body, edits)
}

// WithoutMembers returns the body of a request without some of its members at the top level, and the same byte for byte
// otherwise. A body without them is returned as it is.
func WithoutMembers(body []byte, names ...string) []byte {
	var edits []edit
	before := -1 // where the separator before the present member begins, if one was kept
	parse(body).members(func(key, value node) bool {
		at, end := offset(body, key), offset(body, value)+len(value)
		if !slices.ContainsFunc(names, key.is) {
			before = end
			return true
		}
		if before >= 0 {
			edits = append(edits, edit{before, end, nil}) // with the comma in front of it
			before = end
			return true
		}
		if next := skipSpace(body, end); next < len(body) && body[next] == ',' {
			end = skipSpace(body, next+1)
		}
		edits = append(edits, edit{at, end, nil})
		return true
	})
	return apply(body, edits)
}

// edit replaces the bytes from at to end.
type edit struct {
	at, end int
	with    []byte
}

// cut returns the edits that take elements out of an array, and adds them to the lists given.
func cut(body []byte, array node, gone func(node) bool, to ...*[]edit) (edits []edit) {
	before := -1 // where the separator before the present element begins, if one was kept
	array.elements(func(value node) bool {
		at := offset(body, value)
		end := at + len(value)
		if !gone(value) {
			before = end
			return true
		}
		if before >= 0 {
			edits = append(edits, edit{before, end, nil}) // with the comma in front of it
			before = end
			return true
		}
		next := skipSpace(body, end)
		if next < len(body) && body[next] == ',' {
			end = skipSpace(body, next+1)
		}
		edits = append(edits, edit{at, end, nil})
		return true
	})
	for _, list := range to {
		*list = append(*list, edits...)
	}
	return edits
}

// offset is where in the body a value begins that is a part of it.
func offset(body []byte, value node) int { return cap(body) - cap(value) }

func apply(body []byte, edits []edit) []byte {
	if len(edits) == 0 {
		return body
	}
	slices.SortFunc(edits, func(a, b edit) int { return a.at - b.at })
	out := bytes.NewBuffer(make([]byte, 0, len(body)+64))
	from := 0
	for _, e := range edits {
		out.Write(body[from:e.at])
		out.Write(e.with)
		from = e.end
	}
	out.Write(body[from:])
	return out.Bytes()
}

// Unpack returns the plain text of a body that may be compressed with gzip, up to most bytes. It reports false when the
// body cannot be unpacked whole.
func Unpack(body []byte, most int64) ([]byte, bool) {
	content := unpack(body, most)
	return content.text, !content.torn && !content.partial
}
