package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// client is one connection that asks for one thing again and again.
type client struct {
	conn net.Conn
	r    *bufio.Reader
}

func dial(addr string) (*client, error) {
	conn, err := net.DialTimeout("tcp", addr, 5*time.Second)
	if err != nil {
		return nil, err
	}
	return &client{conn, bufio.NewReaderSize(conn, 16<<10)}, nil
}

func (c *client) close() { _ = c.conn.Close() }

var errReply = errors.New("a reply that is no answer")

// ask sends a request and reads its reply to the end. It returns the length of its body.
func (c *client) ask(request []byte, seen func([]byte)) (int64, error) {
	if _, err := c.conn.Write(request); err != nil {
		return 0, err
	}
	h, err := readHead(c.r)
	if err != nil {
		return 0, err
	}
	n, err := readBody(c.r, h, seen)
	if err == nil && (h.status != 200 || n == 0) {
		err = fmt.Errorf("%w: status %d, %d bytes", errReply, h.status, n)
	}
	return n, err
}

// done is what a number of connections got done.
type done struct {
	requests int64
	bytes    int64
	took     time.Duration
}

func (d done) perSecond() float64 { return float64(d.requests) / d.took.Seconds() }

func (d done) megabytes() float64 { return float64(d.bytes) / 1e6 / d.took.Seconds() }

// drive keeps connections busy for a time, and fails at the first failure of any.
func drive(addr string, request []byte, connections int, d time.Duration) (done, error) {
	var total done
	var requests, sum atomic.Int64
	var failure atomic.Pointer[error]
	var wg sync.WaitGroup
	start := time.Now()
	end := start.Add(d)
	for range connections {
		wg.Go(func() {
			c, err := dial(addr)
			if err == nil {
				defer c.close()
			}
			for err == nil && time.Now().Before(end) {
				var n int64
				n, err = c.ask(request, nil)
				requests.Add(1)
				sum.Add(n)
			}
			if err != nil {
				failure.Store(&err)
			}
		})
	}
	wg.Wait()
	if err := failure.Load(); err != nil {
		return total, *err
	}
	return done{requests.Load(), sum.Load(), time.Since(start)}, nil
}

// times are sorted.
type times []time.Duration

func (t times) at(share float64) time.Duration {
	if len(t) == 0 {
		return 0
	}
	return t[min(int(share*float64(len(t))), len(t)-1)]
}

// pace sends at a fixed rate whatever the replies do, and returns how long each took.
func pace(addr string, request []byte, perSecond int, d time.Duration) (times, error) {
	var mu sync.Mutex
	var all times
	var failure error
	var idle []*client
	var wg sync.WaitGroup
	one := func() error {
		mu.Lock()
		var c *client
		if n := len(idle); n > 0 {
			c, idle = idle[n-1], idle[:n-1]
		}
		mu.Unlock()
		if c == nil {
			var err error
			if c, err = dial(addr); err != nil {
				return err
			}
		}
		start := time.Now()
		if _, err := c.ask(request, nil); err != nil {
			c.close()
			return err
		}
		took := time.Since(start)
		mu.Lock()
		all, idle = append(all, took), append(idle, c)
		mu.Unlock()
		return nil
	}
	tick := time.NewTicker(time.Second / time.Duration(perSecond))
	defer tick.Stop()
	for range int(d.Seconds() * float64(perSecond)) {
		<-tick.C
		wg.Go(func() {
			if err := one(); err != nil {
				mu.Lock()
				failure = err
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	for _, c := range idle {
		c.close()
	}
	slices.Sort(all)
	return all, failure
}

var content = []byte("text_delta")

// firstTokens asks for streams, one after the other, and returns how long the first content of each took.
func firstTokens(addr string, request []byte, n int) (times, error) {
	c, err := dial(addr)
	if err != nil {
		return nil, err
	}
	defer c.close()
	var all times
	for range n {
		start := time.Now()
		var first time.Duration
		_, err := c.ask(request, func(p []byte) {
			if first == 0 && bytes.Contains(p, content) {
				first = time.Since(start)
			}
		})
		if err != nil {
			return nil, err
		}
		all = append(all, first)
	}
	slices.Sort(all)
	return all, nil
}

// hold opens streams and keeps reading them until they end. ready is called when the first word of each has come.
func hold(addr string, request []byte, n int, ready func()) error {
	var wg, first sync.WaitGroup
	var failure atomic.Pointer[error]
	first.Add(n)
	for range n {
		wg.Go(func() {
			came := sync.OnceFunc(first.Done)
			defer came()
			c, err := dial(addr)
			if err == nil {
				defer c.close()
				_, err = c.ask(request, func(p []byte) {
					if bytes.Contains(p, content) {
						came()
					}
				})
			}
			if err != nil {
				failure.Store(&err)
			}
		})
	}
	first.Wait()
	ready()
	wg.Wait()
	if err := failure.Load(); err != nil {
		return *err
	}
	return nil
}
