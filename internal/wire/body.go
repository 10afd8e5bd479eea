package wire

import (
	"bytes"
	"compress/gzip"
	"io"
)

// bodyLimit bounds what a compressed body may unpack to, and how much of an
// error body is read at all.
const bodyLimit = 1 << 20

// content is a body as text.
type content struct {
	text []byte
	// partial is true when more was left than the limit allows.
	partial bool
	// torn is true when the compressed form ended before its end.
	torn bool
}

// plain unpacks a gzip body and leaves any other as it is. The first bytes
// decide, not Content-Encoding: clients that unpack a body may leave the header
// in place or take it away, and no JSON begins with the gzip mark.
func plain(body []byte) content { return unpack(body, bodyLimit) }

func unpack(body []byte, limit int64) content {
	if !packed(body) {
		return content{text: body}
	}
	reader, err := gzip.NewReader(bytes.NewReader(body))
	if err != nil {
		return content{torn: true}
	}
	text, err := io.ReadAll(io.LimitReader(reader, limit+1))
	if int64(len(text)) > limit {
		return content{text: text[:limit], partial: true}
	}
	return content{text: text, torn: err != nil}
}

func packed(body []byte) bool { return bytes.HasPrefix(body, []byte{0x1f, 0x8b}) }
