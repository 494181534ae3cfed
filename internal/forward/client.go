package forward

import (
	"net/http"
	"time"
)

// Client writes to a client that may have stopped reading. No write takes longer than the limit (W01, W02): without it a
// stream whose client sleeps would outlive its token and every right that ends. Between writes there is no deadline, for
// on HTTP/2 one that passes ends the stream even when nothing is written.
type Client struct {
	w     http.ResponseWriter
	rc    *http.ResponseController
	limit time.Duration
	last  bool // the deadline that runs is the answer's last one
}

// Client bounds writes to w by the forwarder's limit.
func (r *Response) Client(w http.ResponseWriter) *Client {
	return &Client{w: w, rc: http.NewResponseController(w), limit: r.writeIdle}
}

// Write implements io.Writer.
func (c *Client) Write(p []byte) (int, error) {
	c.begin()
	n, err := c.w.Write(p)
	c.end()
	return n, err
}

// WriteLast writes the end of an answer. What the server still writes by itself has the same deadline.
func (c *Client) WriteLast(p []byte) (int, error) {
	c.begin()
	c.last = true
	return c.w.Write(p)
}

// Flush sends what was written.
func (c *Client) Flush() error {
	c.begin()
	err := c.rc.Flush()
	c.end()
	return err
}

// Finish bounds what the server still writes by itself once the handler has returned. The server ends the deadline with
// the answer.
func (c *Client) Finish() {
	if !c.last {
		c.begin()
	}
}

// Writers without deadlines, such as those of tests, do without.
func (c *Client) begin() {
	_ = c.rc.SetWriteDeadline(time.Now().Add(c.limit)) //nolint:forbidigo // a socket's deadline is on the real clock
}

func (c *Client) end() { _ = c.rc.SetWriteDeadline(time.Time{}) }
