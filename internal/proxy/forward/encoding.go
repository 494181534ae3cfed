package forward

import (
	"errors"
	"fmt"
	"io"
	"runtime"
	"time"

	"github.com/durward-gateway/durward/internal/proxy/decoding"
)

// Some servers, and some proxies in front of them, compress although `identity` was asked for. An answer that filters
// have to read is decoded, and goes on without an encoding.

// Bounds on the cost of an encoded answer (W09).
const (
	// maxDry bounds the input bytes that are read while the encoding gives no output.
	maxDry = 1 << 20
	// maxRatio bounds the ratio of output to input, once there were freeOutput bytes of output. A body that is read in
	// full has its own bound.
	maxRatio   = 100
	freeOutput = 16 << 20
)

// encoding returns the encoding of an answer; "" for none.
func (r *Response) encoding() (string, *Error) {
	var fields []string
	for _, f := range r.fields {
		if f.Name == "Content-Encoding" {
			fields = append(fields, f.Value)
		}
	}
	name, err := decoding.Name(fields)
	if err != nil {
		return "", upstreamError(err.Error())
	}
	return name, nil
}

// decode makes Body the answer without its encoding.
func (r *Response) decode() *Error {
	name, bad := r.encoding()
	if bad != nil || name == "" {
		return bad
	}
	if r.ContentLength == 0 {
		return nil
	}
	r.Body, r.ContentLength = &decoder{name: name, src: encoded{Reader: r.Body}}, -1
	return nil
}

// decoder reads an encoded body. Each flush of the upstream comes out at once, so that events are not held back.
type decoder struct {
	name    string
	src     encoded
	decoded io.Reader // nil until the first read, because making it waits for the encoding's header
	out     int64
	err     error
	turn    turn
}

// encoded is the body as it comes from the upstream.
type encoded struct {
	io.Reader
	in  int64
	dry int   // bytes read since the last output
	err error // of the upstream, or of the bounds
}

var (
	errDry  = errors.New("much of the encoded content stands for nothing")
	errBomb = errors.New("the encoded content stands for too much")
)

// Read implements io.Reader.
func (e *encoded) Read(p []byte) (int, error) {
	if e.err != nil {
		return 0, e.err
	}
	n, err := e.Reader.Read(p)
	e.in += int64(n)
	if e.dry += n; e.dry > maxDry && err == nil {
		err = &Error{Class: ErrUpstream, Cause: errDry}
	}
	e.err = err
	return n, err
}

// Read implements io.Reader. Errors are *[Error], or io.EOF.
func (d *decoder) Read(p []byte) (int, error) {
	if d.err != nil {
		return 0, d.err
	}
	if d.decoded == nil {
		if d.err = d.explain(d.open()); d.err != nil {
			return 0, d.err
		}
	}
	n, err := d.decoded.Read(p)
	if n > 0 {
		d.src.dry = 0
	}
	if d.out += int64(n); d.out > freeOutput && d.out/maxRatio > d.src.in {
		err = errBomb
	}
	d.err = d.explain(err)
	if d.turn.over(n, time.Now) { //nolint:forbidigo // the scheduler is on the real clock
		runtime.Gosched()
	}
	return n, d.err
}

func (d *decoder) open() (err error) {
	d.decoded, err = decoding.NewReader(d.name, &d.src)
	return err
}

// explain tells errors of the upstream's connection from errors of its encoding.
func (d *decoder) explain(err error) error {
	failed := (*Error)(nil)
	switch {
	case err == nil:
		return nil
	case errors.As(d.src.err, &failed):
		return failed
	case err == io.EOF: //nolint:errorlint // as a reader says it
		return err
	}
	return &Error{Class: ErrUpstream, Cause: fmt.Errorf("decoding %s: %w", d.name, err)}
}
