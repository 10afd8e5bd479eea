package standin

import (
	"maps"
	"net/http"
	"time"
)

// stage is where a rehearsed reply is played: the http.ResponseWriter that the
// server writes to, and what stands in for its timers.
type stage struct {
	now    func() time.Time
	yield  func(time.Time) bool // hands over until a time, the zero one for ever; false: the client has left
	cancel func()               // the context of the request

	header http.Header
	sent   http.Header // as they were when the status was sent
	status int
	body   []byte
	broken bool
}

// Header implements http.ResponseWriter.
func (s *stage) Header() http.Header {
	if s.header == nil {
		s.header = http.Header{}
	}
	return s.header
}

// WriteHeader implements http.ResponseWriter. Like net/http it adds the date.
func (s *stage) WriteHeader(status int) {
	if s.status != 0 {
		return
	}
	s.status, s.sent = status, maps.Clone(s.Header())
	if _, given := s.sent["Date"]; !given {
		s.sent["Date"] = []string{s.now().UTC().Format(http.TimeFormat)}
	}
}

// Write implements http.ResponseWriter.
func (s *stage) Write(b []byte) (int, error) {
	s.WriteHeader(http.StatusOK)
	s.body = append(s.body, b...)
	return len(b), nil
}

// Flush implements http.Flusher. What is written has arrived.
func (s *stage) Flush() {}

// pause stands in for the timers of reply.pause: d passes, 0 for ever, with the pings of
// the step into a stream meanwhile.
func (s *stage) pause(a *reply, d time.Duration, out *stream) {
	var over, ping time.Time
	if d > 0 {
		over = s.now().Add(d)
	}
	if out != nil && a.step.Ping > 0 {
		ping = s.now().Add(a.step.Ping)
	}
	for {
		wake := over
		if !ping.IsZero() && (over.IsZero() || ping.Before(over)) {
			wake = ping
		}
		switch {
		case !s.yield(wake):
			a.abort(Client)
		case wake.Equal(over):
			return
		default:
			out.ping()
			ping = ping.Add(a.step.Ping)
		}
	}
}

// hangUp is a connection that nobody reads, closed when connections no longer hang.
// until counts from the origin; never is an incident without an end.
func (s *stage) hangUp(origin time.Time, until time.Duration) {
	var wake time.Time
	if until != never {
		wake = origin.Add(until)
	}
	s.yield(wake)
	s.broken = true
}

// close takes the end of the handler as net/http does: with http.ErrAbortHandler
// the connection breaks.
func (s *stage) close() {
	switch p := recover(); p {
	case nil:
		if !s.broken && s.status == 0 {
			s.WriteHeader(http.StatusOK)
		}
	case http.ErrAbortHandler:
		s.broken = true
	default:
		panic(p)
	}
}
