package gateway

import (
	"bytes"
	"io"
	"net/http"
	"strconv"
	"strings"

	"holdfast"
	"holdfast/internal/wire"
)

// Upstreams repeat keys in the text of their errors. What looks like a key is taken out of everything that is kept or logged,
// but a key may look like anything: those that a call is made with are known, and are looked for as they are.

const (
	hidden     = "[key]"
	leastKnown = 8 // a shorter text is no key, and may well be a word
)

// know remembers the keys that calls of this lineup are made with.
func (l *lineup) know(caller http.Header) {
	add := func(key string) {
		if len(key) >= leastKnown {
			l.keys = append(l.keys, key)
		}
	}
	for _, st := range l.stops {
		add(st.secret)
	}
	l.own = len(l.keys)
	if key := callerKey(caller); key != "" {
		add(key)
	} else {
		add(caller.Get("Authorization"))
	}
	l.policy.Judge = func(err error) holdfast.Verdict {
		v := holdfast.Judge(err)
		v.Type, v.Code = l.hide(v.Type), l.hide(v.Code)
		return worded(v)
	}
}

// hide takes the keys out of a text.
func (l *lineup) hide(text string) string {
	for _, key := range l.keys {
		text = strings.ReplaceAll(text, key, hidden)
	}
	return text
}

// hideOwn makes the gateway's own keys unreadable in the body of an error: whoever calls may be nobody who should have them.
// Its length stays. The transport has read such a body already, so that reading it takes no time.
func (l *lineup) hideOwn(resp *http.Response) {
	if l.own == 0 || resp.StatusCode < http.StatusBadRequest || resp.Body == nil {
		return
	}
	body, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	switch text, packed := wire.Unpack(body, mostUnpacked); {
	case packed && resp.Header.Get("Content-Encoding") != "" && l.mask(text):
		resp.Header.Del("Content-Encoding")
		resp.Header.Set("Content-Length", strconv.Itoa(len(text)))
		body, resp.ContentLength = text, int64(len(text))
	default:
		l.mask(body)
	}
	resp.Body = &errorBody{bytes.NewReader(body), err}
}

// mask overwrites the gateway's own keys, and reports whether there was one.
func (l *lineup) mask(body []byte) (found bool) {
	for _, key := range l.keys[:l.own] {
		for from := body; ; {
			at := bytes.Index(from, []byte(key))
			if at < 0 {
				break
			}
			found = true
			copy(from[at:], strings.Repeat("*", len(key)))
			from = from[at+len(key):]
		}
	}
	return found
}

// errorBody is one that may have been cut.
type errorBody struct {
	text *bytes.Reader
	end  error
}

// Read ends as the upstream's body did.
func (b *errorBody) Read(p []byte) (int, error) {
	n, err := b.text.Read(p)
	if err == io.EOF && b.end != nil {
		err = b.end
	}
	return n, err
}

// Close does nothing.
func (b *errorBody) Close() error { return nil }

// worded is a verdict as it may be kept and logged: upstreams quote the prompt in their messages.
func worded(v holdfast.Verdict) holdfast.Verdict {
	v.Message, v.Type, v.Code = "", word(v.Type), word(v.Code)
	return v
}

// mostWord is how long a word of an upstream may be.
const mostWord = 100

// word is what an upstream says as a word of its API, and nothing if it is a text: that may quote anything.
func word(text string) string {
	if len(text) > mostWord {
		return ""
	}
	for i := range len(text) {
		switch c := text[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '_', c == '-', c == '.', c == ':', c == '/', c == '[', c == ']':
		default:
			return ""
		}
	}
	return text
}
