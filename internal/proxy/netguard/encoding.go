package netguard

import (
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/durward-gateway/durward/internal/proxy/decoding"
)

// decode removes the encoding of an answer's body. Providers, and proxies in front of them, compress although
// identity was asked for, and an unread answer costs a refresh token that has been rotated. The cap holds for the
// bytes before and after decoding: a small body on the wire could become any size in memory (attack S09).
func (f *fetcher) decode(resp *http.Response) {
	name, err := decoding.Name(resp.Header.Values("Content-Encoding"))
	if name == "" && err == nil {
		return
	}
	resp.Header.Del("Content-Encoding")
	resp.Header.Del("Content-Length")
	resp.ContentLength, resp.Uncompressed = -1, true
	d := &decoder{ReadCloser: resp.Body, name: name}
	if err != nil {
		d.err = fmt.Errorf("%w: %w", ErrEncoded, err) // the status may be enough for the caller
	}
	resp.Body = f.capped(d)
}

func (f *fetcher) capped(body io.ReadCloser) io.ReadCloser {
	return &cappedBody{ReadCloser: body, left: f.maxBody}
}

// decoder reads an encoded body. It begins with the first read, because a stream may not have begun before.
type decoder struct {
	io.ReadCloser
	name    string
	decoded io.Reader
	came    bool  // a byte of the body has come
	failed  error // the body's error, or its end
	err     error
}

// encoded reads the body before decoding, and notes how it ended.
type encoded struct{ *decoder }

func (e encoded) Read(p []byte) (int, error) {
	n, err := e.ReadCloser.Read(p)
	e.came = e.came || n > 0
	e.failed = err
	return n, err
}

// Read implements io.Reader.
func (d *decoder) Read(p []byte) (n int, err error) {
	if d.err != nil {
		return 0, d.err
	}
	if d.decoded == nil {
		d.decoded, err = decoding.NewReader(d.name, encoded{d})
	}
	if err == nil {
		n, err = d.decoded.Read(p)
	}
	d.err = d.explain(err)
	return n, d.err
}

// explain returns errors of the connection unchanged: only faults of the encoding become ErrEncoded.
func (d *decoder) explain(err error) error {
	switch {
	case err == nil, err == io.EOF: //nolint:errorlint // as a reader says it
		return err
	case d.failed != nil && !errors.Is(d.failed, io.EOF):
		return d.failed
	case !d.came:
		return io.EOF // an empty body, whatever its header says
	}
	return fmt.Errorf("%w: %w", ErrEncoded, err)
}
