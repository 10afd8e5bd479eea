package tape

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// longest is the longest time that a tape can hold. It keeps every time exact
// in a JSON number.
const longest = 7 * 24 * time.Hour

// head is the first line.
type head struct {
	Tape    int       `json:"tape"` // version of the format
	Host    string    `json:"upstream"`
	Created time.Time `json:"created"`
}

// line is an exchange in the file.
type line struct {
	Number  int       `json:"n"`
	Arrived time.Time `json:"at"`
	Request asked     `json:"request"`
	Reply   replied   `json:"reply"`
	End     End       `json:"end"`
	By      Closer    `json:"closed_by,omitempty"`
	Ended   millis    `json:"t"`
}

type asked struct {
	Method string              `json:"method"`
	Path   string              `json:"path"` // with query
	Header map[string][]string `json:"header,omitempty"`
	Model  string              `json:"model,omitempty"`
	Stream bool                `json:"stream,omitempty"`
	Digest string              `json:"sha256"`
	Size   int64               `json:"size"`
	Body   json.RawMessage     `json:"body,omitempty"`
}

type replied struct {
	Status int                 `json:"status"`
	Began  millis              `json:"t"`
	Header map[string][]string `json:"header,omitempty"`
	Frames []frame             `json:"frames,omitempty"`
}

// frame has its bytes as text, or in base64 when they are not UTF-8.
type frame struct {
	At     millis  `json:"t"`
	Text   *string `json:"text,omitempty"`
	Base64 []byte  `json:"base64,omitempty"`
}

// millis is a time in milliseconds, with a fraction where it has one.
type millis time.Duration

// MarshalJSON implements [json.Marshaler].
func (m millis) MarshalJSON() ([]byte, error) {
	d := min(max(time.Duration(m), 0), longest)
	return strconv.AppendFloat(nil, float64(d)/float64(time.Millisecond), 'f', -1, 64), nil
}

// UnmarshalJSON implements [json.Unmarshaler].
func (m *millis) UnmarshalJSON(text []byte) error {
	ms, err := strconv.ParseFloat(string(text), 64)
	if err != nil || !(ms >= 0 && ms <= float64(longest)/float64(time.Millisecond)) {
		return fmt.Errorf("a time is a number of milliseconds from 0 to %d", longest.Milliseconds())
	}
	*m = millis(ms*float64(time.Millisecond) + 0.5)
	return nil
}

// appendLine adds v as one line.
func appendLine(dst []byte, v any) ([]byte, error) {
	b := bytes.NewBuffer(dst)
	e := json.NewEncoder(b)
	e.SetEscapeHTML(false) // the tape is for people too
	if err := e.Encode(v); err != nil {
		return dst, fmt.Errorf("tape: %w", err)
	}
	return b.Bytes(), nil
}

// lineOf returns the line of an exchange.
func lineOf(x *Exchange) line {
	path := (&url.URL{Path: x.Path}).EscapedPath()
	if x.Query != "" {
		path += "?" + x.Query
	}
	l := line{
		Number: x.Number, Arrived: x.Arrived, End: x.End, By: x.By, Ended: millis(x.Ended),
		Request: asked{Method: x.Method, Path: path, Header: lower(x.Asked), Model: x.Model, Stream: x.Stream, Digest: x.Digest, Size: x.Size, Body: x.Body},
		Reply:   replied{Status: x.Status, Began: millis(x.Began), Header: lower(x.Header)},
	}
	for _, f := range x.Frames {
		of := frame{At: millis(f.At), Base64: f.Data}
		if utf8.Valid(f.Data) {
			text := string(f.Data)
			of.Text, of.Base64 = &text, nil
		}
		l.Reply.Frames = append(l.Reply.Frames, of)
	}
	return l
}

func lower(h http.Header) map[string][]string {
	if len(h) == 0 {
		return nil
	}
	lowered := make(map[string][]string, len(h))
	for name, values := range h {
		name = strings.ToLower(name)
		lowered[name] = append(lowered[name], values...)
	}
	return lowered
}

func canonical(h map[string][]string) http.Header {
	header := make(http.Header, len(h))
	for name, values := range h {
		for _, value := range values {
			header.Add(name, value)
		}
	}
	return header
}

// parseLine reads the line of an exchange.
func parseLine(text []byte) (*Exchange, error) {
	var l line
	if err := strict(text, &l); err != nil {
		return nil, err
	}
	if err := l.validate(); err != nil {
		return nil, err
	}
	target, err := url.ParseRequestURI(l.Request.Path)
	if err != nil || target.Path == "" || target.Path[0] != '/' {
		return nil, errors.New("request.path is no path")
	}
	x := &Exchange{
		Number: l.Number, Arrived: l.Arrived, End: l.End, By: l.By, Ended: time.Duration(l.Ended),
		Method: l.Request.Method, Path: target.Path, Query: target.RawQuery, Asked: canonical(l.Request.Header),
		Model: l.Request.Model, Stream: l.Request.Stream, Digest: l.Request.Digest, Size: l.Request.Size, Body: l.Request.Body,
		Status: l.Reply.Status, Began: time.Duration(l.Reply.Began), Header: canonical(l.Reply.Header),
	}
	for _, f := range l.Reply.Frames {
		data := f.Base64
		if f.Text != nil {
			data = []byte(*f.Text)
		}
		x.Frames = append(x.Frames, Frame{At: time.Duration(f.At), Data: data})
	}
	return x, nil
}

// strict reads one JSON value without unknown members and with nothing behind it.
func strict(text []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return err
	}
	if rest := bytes.TrimSpace(text[d.InputOffset():]); len(rest) > 0 {
		return errors.New("something stands behind the value")
	}
	return nil
}

var hexDigest = regexp.MustCompile(`^[0-9a-f]{64}$`)

// validate says what no recording can have written.
func (l line) validate() error {
	switch {
	case l.Request.Method == "":
		return errors.New("request.method is missing")
	case !hexDigest.MatchString(l.Request.Digest):
		return errors.New("request.sha256 is not 64 hex digits")
	case l.Request.Size < 0:
		return errors.New("request.size is negative")
	case l.Reply.Status != 0 && (l.Reply.Status < 200 || l.Reply.Status > 599):
		return fmt.Errorf("reply.status %d is not between 200 and 599", l.Reply.Status)
	case l.Reply.Status == 0 && (l.End == Complete || len(l.Reply.Frames) > 0):
		return errors.New("reply.status is missing")
	case l.End != Complete && l.End != Cut && l.End != Reset:
		return fmt.Errorf("end %q is not one of complete, cut and reset", l.End)
	case l.By != "" && l.By != Upstream && l.By != Client:
		return fmt.Errorf("closed_by %q is neither upstream nor client", l.By)
	}
	before := l.Reply.Began
	for i, f := range l.Reply.Frames {
		switch {
		case f.At < before:
			return fmt.Errorf("reply.frames[%d] comes before what stands in front of it", i)
		case (f.Text == nil) == (f.Base64 == nil):
			return fmt.Errorf("reply.frames[%d] takes text or base64", i)
		}
		before = f.At
	}
	if l.Ended < before {
		return errors.New("the exchange ends before its last frame")
	}
	return nil
}

// Write writes a tape.
func Write(out io.Writer, t *Tape) error {
	text, err := appendLine(nil, head{Tape: Version, Host: t.Host, Created: t.Created})
	for _, x := range t.Exchanges {
		if err == nil {
			text, err = appendLine(text, lineOf(x))
		}
	}
	if err != nil {
		return err
	}
	_, err = out.Write(text)
	return err
}
