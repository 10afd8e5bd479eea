package transport

import (
	"net/http/httptrace"
	"strings"
	"sync"
	"sync/atomic"
)

// Phase is how far an attempt had come when it was lost.
type Phase uint8

const (
	// BeforeConnection: there was no connection, so nothing was sent.
	BeforeConnection Phase = iota
	// BeforeRequest: there was a connection, but nothing was sent.
	BeforeRequest
	// BeforeAnswer: the request was sent, at least in part, and its outcome is unknown.
	BeforeAnswer
	// BeforeContent: the answer had begun, but not its content.
	BeforeContent
	// AfterContent: a part of the answer had come.
	AfterContent
)

// String returns the words used in errors and, with dashes, in rules.
func (p Phase) String() string {
	switch p {
	case BeforeConnection:
		return "before connection"
	case BeforeRequest:
		return "before request"
	case BeforeAnswer:
		return "before answer"
	case BeforeContent:
		return "before content"
	case AfterContent:
		return "after content"
	}
	return "unknown"
}

func (p Phase) dashed() string { return strings.ReplaceAll(p.String(), " ", "-") }

// progress follows an attempt through net/http. Its hooks are called by goroutines that may outlive the attempt.
type progress struct {
	traced    atomic.Bool // the base is net/http, or tells as it does
	connected atomic.Bool
	reused    atomic.Bool // the connection is one that was kept
	wrote     atomic.Bool // sticky over net/http's own replays
	answered  atomic.Bool

	dialled sync.Once // only the first of several dials starts the timer
	onDial  func()    // may be nil
}

func (p *progress) hooks() *httptrace.ClientTrace {
	return &httptrace.ClientTrace{
		GetConn: func(string) { p.traced.Store(true); p.connected.Store(false) },
		ConnectStart: func(string, string) {
			if p.onDial != nil {
				p.dialled.Do(p.onDial)
			}
		},
		GotConn: func(info httptrace.GotConnInfo) {
			p.connected.Store(true)
			p.reused.Store(info.Reused)
		},
		WroteHeaders:         func() { p.wrote.Store(true) },
		GotFirstResponseByte: func() { p.answered.Store(true) },
	}
}

// phase is where an attempt without an answer stood. A base that does not tell leaves the outcome unknown.
func (p *progress) phase() Phase {
	switch {
	case !p.traced.Load() || p.wrote.Load():
		return BeforeAnswer
	case p.connected.Load():
		return BeforeRequest
	}
	return BeforeConnection
}

// stale reports that a kept connection died without a byte of an answer: most likely the other side had closed it before
// the request came, which says nothing about its health.
func (p *progress) stale() bool {
	return p.traced.Load() && p.reused.Load() && !p.answered.Load()
}

// turnedAway knows the HTTP/2 losses of which the protocol says that the request was not processed (RFC 9113, 8.7). net/http
// reports them as unexported types, so their text is all there is.
func turnedAway(err error) bool {
	text := err.Error()
	for _, known := range []string{
		"http2: Transport received Server's graceful shutdown GOAWAY",
		"http2: Transport: cannot retry err",
		"REFUSED_STREAM",
	} {
		if strings.Contains(text, known) {
			return true
		}
	}
	return false
}
