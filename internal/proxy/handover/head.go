package handover

import "bytes"

// head follows the head of a request line by line.
type head struct {
	started bool // the request line has begun: net/http takes empty lines before it (RFC 9112 section 2.2)
	within  bool // bytes of the present line were seen
	filled  bool // and they are more than its end
	ended   bool // the empty line was seen
}

// refuseFolds makes lines that continue the one before malformed, so that net/http answers 400 to their request.
// net/http joins such lines before any handler sees them (obs-fold, RFC 9112 section 5.2). A proxy in front may then
// read another Transfer-Encoding or Authorization than the joined one. The head of a request that was sent before the
// previous one was answered may already be in the server's buffer, and is not seen here.
func (h *head) refuseFolds(p []byte) {
	for len(p) > 0 && !h.ended {
		if h.started && !h.within && (p[0] == ' ' || p[0] == '\t') {
			p[0] = 0 // not allowed in the name of a header
		}
		end := bytes.IndexByte(p, '\n')
		if end < 0 {
			h.within, h.filled = true, h.filled || !bytes.Equal(p, []byte{'\r'})
			h.started = h.started || h.filled
			return
		}
		empty := !h.filled && (end == 0 || end == 1 && p[0] == '\r')
		h.ended, h.started = empty && h.started, h.started || !empty
		h.within, h.filled, p = false, false, p[end+1:]
	}
}
