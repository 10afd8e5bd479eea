package gateway

import (
	"errors"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"time"

	"holdfast/internal/wire"
)

// refusal is why the gateway itself turns a request away.
type refusal struct {
	status int
	reason string // the word of holdfast-reason
	text   string
	wait   time.Duration
	again  bool // the client may well repeat it
	sent   int  // attempts that were sent all the same
}

// reject answers in the shape of the dialect.
func (c *call) reject(f refusal) {
	c.record.Status, c.record.Outcome, c.record.Reason, c.record.Error = f.status, Rejected, f.reason, f.text
	text := "Holdfast did not send this request: " + f.text
	if f.sent > 0 {
		c.record.Outcome = Failed
		text = "Holdfast has no answer to this request, which was sent and may have been done: " + f.text
	}
	if c.body == nil { // net/http reads the rest of the request before it replies
		_ = http.NewResponseController(c.w).SetReadDeadline(time.Now().Add(lastWordTime))
	}
	h := c.w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Holdfast-Reason", f.reason)
	h.Set("Holdfast-Trace", c.record.ID)
	h.Set("Holdfast-Attempts", strconv.Itoa(f.sent))
	if !f.again {
		h.Set("X-Should-Retry", "false")
	}
	if f.wait > 0 {
		h.Set("Retry-After", strconv.FormatInt(int64((f.wait+time.Second-1)/time.Second), 10))
	}
	typ := wire.ErrorType(c.dialect, f.status)
	body := wire.ErrorBody(c.dialect, typ, "", text, "")
	h.Set("Content-Length", strconv.Itoa(len(body)))
	c.w.WriteHeader(f.status)
	n, _ := c.w.Write(body) // a caller who is gone cannot be told
	c.record.Bytes = int64(n)
}

// plain is an error's text without the URL in it, whose query may carry a key.
func plain(err error) string {
	var u *url.Error
	if errors.As(err, &u) && u.Err != nil {
		err = u.Err
	}
	return wire.Scrub(err.Error(), maxErrorText)
}

const maxErrorText = 500

func isTimeout(err error) bool {
	var network net.Error
	return errors.Is(err, os.ErrDeadlineExceeded) || errors.As(err, &network) && network.Timeout()
}

// methodHasBody is for requests whose body is of no interest.
func methodHasBody(r *http.Request) bool { return r.Body != nil && r.Body != http.NoBody }
