package play

import (
	"io"
	"strings"
	"sync"
)

// capture keeps what a process prints, passes it on, and signals when a given string has appeared in it.
type capture struct {
	mu      sync.Mutex
	text    []byte
	limit   int  // how many bytes, from the end, are kept
	dropped bool // whether more than limit was printed
	live    io.Writer
	awaited string
	ready   chan struct{} // closed when awaited has appeared
}

// newCapture returns a capture that keeps the last limit bytes and copies everything to live.
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
	return c.live.Write(chunk)
}

// mute stops the copying to live.
func (c *capture) mute() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.live = io.Discard
}

// lines returns the kept lines, prepared for comparison, and whether they are complete.
func (c *capture) lines() (lines []string, complete bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return outputLines(string(c.text)), !c.dropped
}
