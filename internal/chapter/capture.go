package chapter

import (
	"io"
	"strings"
	"sync"
)

// capture keeps what a process prints, passes it on, and tells when a text has appeared in it.
type capture struct {
	mu      sync.Mutex
	text    []byte
	limit   int  // number of bytes kept: the last ones
	dropped bool // whether more than limit was printed
	live    io.Writer
	awaited string
	ready   chan struct{} // closed when awaited has appeared
}

// newCapture keeps the last limit bytes and copies everything to live.
func newCapture(limit int, live io.Writer) *capture {
	return &capture{limit: limit, live: live, ready: make(chan struct{})}
}

func (c *capture) Write(chunk []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.text = append(c.text, chunk...)
	if c.awaited != "" && strings.Contains(stripANSI(string(c.text)), c.awaited) {
		c.awaited = ""
		close(c.ready)
	}
	if excess := len(c.text) - c.limit; excess > 0 {
		c.text = c.text[excess:]
		c.dropped = true
	}
	if c.live == nil {
		return len(chunk), nil
	}
	// A screen that can't be written to must not stop the process from being read.
	_, _ = c.live.Write(chunk)
	return len(chunk), nil
}

// mute stops the copying to live.
func (c *capture) mute() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.live = nil
}

func (c *capture) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return string(c.text)
}

func (c *capture) overflowed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.dropped
}
