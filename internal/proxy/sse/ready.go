package sse

import (
	"bytes"
	"io"
)

// Ready reports whether [Reader.Next] will return a block without reading more. For line ends other than LF it may
// return false although Next would.
func (r *Reader) Ready() bool {
	return bytes.Contains(r.buf[r.start+r.used:r.end], []byte("\n\n"))
}

// ended reports whether [Reader.Next] will return io.EOF, as far as that is known without reading more.
func (r *Reader) ended() bool {
	return r.start+r.used == r.end && r.err == io.EOF //nolint:errorlint // an error that wraps io.EOF is not a stream's end
}
