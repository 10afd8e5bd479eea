package tape

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"net/http"
	"sync"
	"syscall"
	"time"
)

const (
	// askedLimit is how much of a request's body is read for its model: the
	// largest request that the Messages API takes.
	askedLimit = 32 << 20
	// bodyLimit is the largest body that is kept.
	bodyLimit = 1 << 20
	// replyLimit is the largest reply that is kept.
	replyLimit = 64 << 20
)

// errTooLarge is a reply that is not kept.
var errTooLarge = fmt.Errorf("the reply is larger than %d MiB", replyLimit>>20)

// capture is an exchange on its way. The body of the request may be read by one
// goroutine while another reads the reply, and even after the handler has
// returned.
type capture struct {
	number  int
	start   time.Time
	gone    context.Context // ends when the client leaves
	secrets []string

	mu       sync.Mutex
	sent     bool // the request had a connection to the upstream
	digest   hash.Hash
	size     int64
	body     []byte // up to askedLimit and one byte
	status   int
	header   http.Header
	began    time.Duration
	frames   []Frame
	received int64
	over     bool // ended, or not to be recorded
	upgraded bool
	end      End
	by       Closer
	ended    time.Duration
}

type captureKey struct{}

func captureOf(ctx context.Context) *capture { return ctx.Value(captureKey{}).(*capture) }

func newDigest() hash.Hash { return sha256.New() }

func (c *capture) since() time.Duration { return time.Since(c.start) }

func (c *capture) reached() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sent = true
}

func (c *capture) hasReached() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.sent
}

// asked takes a piece of the request's body.
func (c *capture) asked(p []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(p) == 0 || c.over {
		return
	}
	c.digest.Write(p)
	c.size += int64(len(p))
	if room := askedLimit + 1 - len(c.body); room > 0 {
		c.body = append(c.body, p[:min(room, len(p))]...)
	}
}

// headers takes the headers of the reply.
func (c *capture) headers(res *http.Response) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.status, c.header, c.began = res.StatusCode, res.Header.Clone(), c.since()
}

// frame takes a read of the reply's body.
func (c *capture) frame(p []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.received += int64(len(p)); c.received > replyLimit {
		c.frames = nil
	} else if len(p) > 0 {
		c.frames = append(c.frames, Frame{At: c.since(), Data: bytes.Clone(p)})
	}
}

// stop takes the end of the reply; err is the one of the transport. The first
// call counts.
func (c *capture) stop(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over {
		return
	}
	c.over, c.ended = true, c.since()
	switch {
	case errors.Is(err, io.EOF):
		c.end = Complete
	case c.gone.Err() != nil || errors.Is(err, context.Canceled) || err == nil:
		c.end, c.by = Cut, Client
	case errors.Is(err, syscall.ECONNRESET):
		c.end, c.by = Reset, Upstream
	default:
		c.end, c.by = Cut, Upstream
	}
}

// exchange returns what goes on the tape; nil when there is nothing, because the
// upstream was not reached or the connection became another protocol's.
func (c *capture) exchange(r *http.Request, noPrompts bool) (*Exchange, error) {
	c.stop(nil)
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case !c.sent && c.status == 0, c.upgraded:
		return nil, nil
	case c.received > replyLimit:
		return nil, errTooLarge
	}
	overwrite(c.frames, c.secrets)
	x := &Exchange{
		Number: c.number, Arrived: c.start.UTC(),
		Method: r.Method, Path: keepPath(r.URL.Path, c.secrets), Query: keepQuery(r.URL.RawQuery, c.secrets),
		Asked: keep(r.Header, askedHeaders, c.secrets), Digest: hex.EncodeToString(c.digest.Sum(nil)), Size: c.size,
		Status: c.status, Header: keep(c.header, repliedHeaders, c.secrets), Began: c.began, Frames: c.frames,
		End: c.end, By: c.by, Ended: c.ended,
	}
	c.question(x, r.Header.Get("content-encoding"), noPrompts)
	c.body, c.frames = nil, nil
	return x, nil
}

// question fills in what the body of the request says.
func (c *capture) question(x *Exchange, coding string, noPrompts bool) {
	body, err := decoded(c.body, coding, askedLimit)
	if err != nil || len(body) > askedLimit {
		return
	}
	if !json.Valid(body) {
		return
	}
	var asks struct {
		Model  string `json:"model"`
		Stream bool   `json:"stream"`
	}
	_ = json.Unmarshal(body, &asks) // what has another type says nothing
	if !looksSecret(asks.Model, c.secrets) {
		x.Model = asks.Model
	}
	x.Stream = asks.Stream
	if noPrompts || len(body) > bodyLimit {
		return
	}
	var compact bytes.Buffer
	_ = json.Compact(&compact, body) // it is valid
	x.Body = compact.Bytes()
	if mask(x.Body, c.secrets) && !json.Valid(x.Body) { // it began inside an escape
		x.Body = nil
	}
}

// listening is a transport that tells the capture of a request what comes back.
type listening struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (l listening) RoundTrip(r *http.Request) (*http.Response, error) {
	c := captureOf(r.Context())
	res, err := l.next.RoundTrip(r)
	switch {
	case err != nil:
		why := err
		if errors.Is(err, io.EOF) { // not the end of a reply: there was none
			why = io.ErrUnexpectedEOF
		}
		c.stop(why)
	case res.StatusCode == http.StatusSwitchingProtocols: // its body must stay what it is
		c.upgraded = true
	default:
		c.headers(res)
		res.Body = &repliedBody{res.Body, c}
	}
	return res, err
}

// askedBody is the body of a request. It stays at its end once it is there: the
// transport looks once more whether anything follows, perhaps after the reply
// has begun, when net/http has closed the body below. It would take the error
// of that for a failed request, and cut the reply.
type askedBody struct {
	io.ReadCloser
	to   *capture
	done bool
}

// Read implements io.Reader.
func (b *askedBody) Read(p []byte) (int, error) {
	if b.done {
		return 0, io.EOF
	}
	n, err := b.ReadCloser.Read(p)
	b.to.asked(p[:n])
	b.done = err == io.EOF
	return n, err
}

// repliedBody is the body of a reply.
type repliedBody struct {
	io.ReadCloser
	to *capture
}

// Read implements io.Reader.
func (b *repliedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.to.frame(p[:n])
	if err != nil {
		b.to.stop(err)
	}
	return n, err
}

// Close implements io.Closer. Before the end it means that the client has left.
func (b *repliedBody) Close() error {
	b.to.stop(nil)
	return b.ReadCloser.Close()
}
