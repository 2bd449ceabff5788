package play

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
	return c.live.Write(chunk)
}

// mute stops the copying to live.
func (c *capture) mute() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.live = io.Discard
}

// lines are the lines kept, as they are compared, and whether that is all that was printed.
func (c *capture) lines() (lines []string, complete bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return outputLines(string(c.text)), !c.dropped
}
