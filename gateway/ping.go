package gateway

import (
	"sync"
	"time"

	"holdfast/internal/wire"
)

// pinger puts pings into the silences of a stream, between events alone. The transport's idle timer ends a stream without
// content, and with it the pings: nobody is told for longer that a dead upstream lives.
type pinger struct {
	out   *writer
	every time.Duration
	ping  []byte

	mu      sync.Mutex
	timer   *time.Timer
	since   time.Time // of the silence
	between bool      // the last thing sent was the end of an event
	stopped bool
}

// What a ping is in each dialect: an event that the API itself sends, and a comment.
var (
	anthropicPing = []byte("event: ping\ndata: {\"type\": \"ping\"}\n\n")
	commentPing   = []byte(": ping\n\n")
)

func (c *call) startPings(out *writer) *pinger {
	p := &pinger{out: out, every: orDefault(c.s.settings.Stream.Ping, defaultPing), ping: commentPing}
	if c.dialect == wire.DialectAnthropic && asksModel(c) { // events of other kinds have pings of their own, or none
		p.ping = anthropicPing
	}
	return p
}

// pause keeps pings back while something else is sent.
func (p *pinger) pause() {
	p.mu.Lock()
	p.between = false
	p.mu.Unlock()
}

// resume waits for the next silence. The timer runs on: when it fires too early, it is set to what is left. Setting it anew at
// every event would cost more than the event.
func (p *pinger) resume(between bool) {
	if p.every <= 0 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.between, p.since = between, time.Now()
	if p.timer == nil {
		p.timer = time.AfterFunc(p.every, p.fire)
	}
}

func (p *pinger) fire() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stopped {
		return
	}
	if left := p.every - time.Since(p.since); left > 0 {
		p.timer.Reset(left)
		return
	}
	p.timer.Reset(p.every)
	if p.between {
		p.since = time.Now()
		_ = p.out.write(p.ping, true) // the relay finds out itself that the caller is gone
	}
}

// stop ends the pings. None is sent any more when it has returned.
func (p *pinger) stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stopped = true
	if p.timer != nil {
		p.timer.Stop()
	}
}
