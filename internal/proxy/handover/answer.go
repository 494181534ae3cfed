package handover

import "bytes"

// answer tracks how far the answer to a request has come, as its client sees it. A client that has all of it may send
// the next request, long before a server that gets little CPU time has ended the request.
type answer struct {
	begun   bool
	chunked bool    // in HTTP/1.1's chunks: its end is visible in the written bytes
	last    [4]byte // its last written bytes
}

const (
	endOfHead = "\r\n\r\n"
	// chunkedHead is the end of the head that net/http writes for an answer of unknown length.
	chunkedHead = "\r\nTransfer-Encoding: chunked" + endOfHead
	// informational is the beginning of an interim answer: RFC 9110 section 15.2.
	informational = "HTTP/1.1 1"
)

// writes notes that p is going to be written.
func (a *answer) writes(p []byte) {
	if !a.begun && bytes.HasPrefix(p, []byte(informational)) {
		return
	}
	if !a.begun {
		a.begun = true
		head := p[:min(len(p), serverBuffer)]
		i := bytes.Index(head, []byte(chunkedHead))
		a.chunked = i >= 0 && !bytes.Contains(head[:i], []byte(endOfHead))
	}
	if n := len(p); n >= len(a.last) {
		a.last = [4]byte(p[n-len(a.last):])
	} else {
		copy(a.last[:], a.last[n:])
		copy(a.last[len(a.last)-n:], p)
	}
}

// goesOn reports whether the client certainly waits for more of the answer. The last chunk ends in an empty line (RFC
// 9112 section 7.1); other chunks may too.
func (a *answer) goesOn() bool { return a.chunked && string(a.last[:]) != endOfHead }
