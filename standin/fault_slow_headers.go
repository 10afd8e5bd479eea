package standin

import (
	"bytes"
	"maps"
	"time"
)

var slowHeadersFault = &fault{
	Fault: Fault{
		Kind: SlowHeaders,
		What: "headers that come one line at a time",
		Doc: `A complete answer, not streamed, whose header lines come one by one with gap between them (1s unless set), so that a client
with a timer for the first byte only is held up for long. Over HTTP/2, where headers come as one, they come late. The answer is billed.`,
		Fields: []string{"gap"},
	},
	instead: func(a *reply) {
		gap := a.step.Gap
		if gap == 0 {
			gap = time.Second
		}
		result := a.work().gathered()
		a.bill(result.usage)
		if result.status == 0 { // on a tape, of a connection that broke
			a.replay()
			return
		}
		a.trickle(result, gap)
	},
}

// trickle writes the head of the reply by hand, a line at a time, and then the body.
func (a *reply) trickle(result result, gap time.Duration) {
	maps.Copy(a.w.Header(), result.header)
	a.headers(result.contentType, len(result.body))
	head := a.head(result.status)
	conn, _, err := a.rc.Hijack()
	if err != nil { // no connection of its own
		a.wait(gap * time.Duration(bytes.Count(head, []byte("\r\n"))))
		a.send(result.status, result.contentType, result.body)
		return
	}
	defer func() { _ = conn.Close() }() // told by connection: close
	a.entry.headers(result.status, a.w.Header())
	for line := range bytes.Lines(head) {
		if _, err := conn.Write(line); err != nil {
			a.abort(Client)
		}
		a.wait(gap)
	}
	n, err := conn.Write(result.body)
	a.entry.sent(n)
	if err != nil {
		a.abort(Client)
	}
}
