package forward

import (
	"net/http"
	"time"
)

// Client writes to a client that may have stopped reading. No write takes longer than the limit (W01, W02): without it,
// a stream whose client sleeps would outlive its token and every permission that ends. Between writes there is no
// deadline unless the client is known to speak HTTP/1. On HTTP/2 a deadline that passes ends the stream even when
// nothing is written.
type Client struct {
	w     http.ResponseWriter
	rc    http.ResponseController
	limit time.Duration
	http1 bool
	last  bool // the running deadline is the answer's last one
	begun time.Time
	until time.Time // the running deadline; zero: none
}

// Client bounds writes to w by the forwarder's limit.
func (r *Response) Client(w http.ResponseWriter) *Client {
	return &Client{w: w, rc: *http.NewResponseController(w), limit: r.writeIdle, http1: r.http1}
}

// Write implements io.Writer.
func (c *Client) Write(p []byte) (int, error) {
	c.begin()
	n, err := c.w.Write(p)
	c.end()
	return n, err
}

// WriteLast writes the end of an answer. The server's own last writes have the same deadline.
func (c *Client) WriteLast(p []byte) (int, error) {
	c.begin()
	c.last = true
	return c.w.Write(p)
}

// Send writes and flushes.
func (c *Client) Send(p []byte) error {
	c.begin()
	_, err := c.w.Write(p)
	if err == nil {
		err = c.rc.Flush()
	}
	c.end()
	return err
}

// Flush sends the written bytes.
func (c *Client) Flush() error {
	c.begin()
	err := c.rc.Flush()
	c.end()
	return err
}

// Finish bounds the server's own writes after the handler has returned. The server removes the deadline with the end of
// the answer.
func (c *Client) Finish() {
	if !c.last {
		c.begin()
	}
}

// LastWrite returns the start of the last write.
func (c *Client) LastWrite() time.Time { return c.begun }

// begin sets a write's deadline. Each change passes through every writer of the server. So on HTTP/1 a deadline that is
// nearly as late as possible also serves the next write, which then has up to an eighth less time.
//
// Writers without deadlines, such as those of tests, work without one.
func (c *Client) begin() {
	c.begun = time.Now() //nolint:forbidigo // a socket's deadline is on the real clock
	if c.http1 && c.until.Sub(c.begun) >= c.limit-c.limit/8 {
		return
	}
	c.until = c.begun.Add(c.limit)
	_ = c.rc.SetWriteDeadline(c.until)
}

func (c *Client) end() {
	if !c.http1 {
		_ = c.rc.SetWriteDeadline(time.Time{})
	}
}
