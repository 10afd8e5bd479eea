package drill

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"time"

	"holdfast"
	"holdfast/internal/sse"
	"holdfast/internal/wire"
	"holdfast/standin"
)

// verdictOf judges what a client saw of an attempt, as production does: replies by their bytes, the rest by the errors that
// net/http has for it.
func verdictOf(v *standin.Visit, now time.Time) holdfast.Verdict {
	switch {
	case v.Outcome() == standin.Unreachable:
		return holdfast.Judge(&net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED})
	case v.Status() >= http.StatusBadRequest: // the status has said enough, whatever became of the body
		return holdfast.FromReply(v.Status(), v.Header(), v.Body(), now)
	case v.Outcome() != standin.Whole:
		return holdfast.Judge(io.ErrUnexpectedEOF)
	case v.Status() == http.StatusOK && strings.HasPrefix(v.Header().Get("content-type"), "text/event-stream"):
		return streamVerdict(v.Body(), v.Header(), now)
	}
	return holdfast.FromReply(v.Status(), v.Header(), v.Body(), now)
}

// streamVerdict judges a stream that came to the end of its body.
func streamVerdict(body []byte, header http.Header, now time.Time) holdfast.Verdict {
	var seen wire.Stream
	r := sse.NewReader(bytes.NewReader(body), len(body)+1)
	for {
		e, err := r.Next()
		if err != nil {
			break
		}
		if seen.Event(e.Name, e.Data) == wire.ProgressError {
			return holdfast.FromEvent(e.Name, e.Data, header, now)
		}
	}
	switch {
	case !seen.Complete():
		return holdfast.Judge(holdfast.ErrCut)
	case wire.Refusal(seen.StopReason()):
		return holdfast.Judge(holdfast.ErrRefused)
	case seen.Empty():
		return holdfast.Judge(holdfast.ErrEmpty)
	}
	return holdfast.Verdict{}
}
