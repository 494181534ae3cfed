package netguard

import (
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/durward-gateway/durward/internal/decoding"
)

// decode lets the body of an answer be what it is without its encoding. Providers, and what stands before them, compress although
// identity was asked for, and an answer that is not read costs a refresh token that has been rotated. The cap holds for what comes
// in and for what comes out: a body could be small on the wire and anything in memory (attack S09).
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
		d.err = fmt.Errorf("%w: %w", ErrEncoded, err) // the status may say enough
	}
	resp.Body = f.capped(d)
}

func (f *fetcher) capped(body io.ReadCloser) io.ReadCloser {
	return &cappedBody{ReadCloser: body, left: f.maxBody}
}

// decoder reads an encoded body. It begins with the first read: until then a stream need not have begun.
type decoder struct {
	io.ReadCloser
	name    string
	decoded io.Reader
	came    bool  // something
	failed  error // that of the body, or its end
	err     error
}

// encoded reads the body as it comes, and notes how that ended.
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

// explain leaves what the connection failed with as it is: only the encoding's own faults are ErrEncoded.
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
