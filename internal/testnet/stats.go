package testnet

import "sync"

// Stats counts connections and bytes. A connection is counted by its dialling
// end: it is open until that end is closed, whatever the other end does, so a
// client that leaks connections shows.
type Stats struct {
	Opened   int   // connections made so far
	Open     int   // connections whose dialling end is not closed
	Peak     int   // the most that were open at one time
	ToServer int64 // bytes written by dialling ends, read or not
	ToClient int64 // bytes written by listening ends, read or not
}

type counter struct {
	mu    sync.Mutex
	stats Stats
}

func (c *counter) read() Stats {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.stats
}

func (c *counter) opened() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stats.Opened++
	c.stats.Open++
	c.stats.Peak = max(c.stats.Peak, c.stats.Open)
}

func (c *counter) closed() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stats.Open--
}

func (c *counter) sent(bytes int, toServer bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if toServer {
		c.stats.ToServer += int64(bytes)
	} else {
		c.stats.ToClient += int64(bytes)
	}
}
