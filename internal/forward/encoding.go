package forward

import (
	"errors"
	"fmt"
	"io"
	"runtime"
	"time"

	"github.com/durward-gateway/durward/internal/decoding"
)

// Some servers and what stands in front of them compress although `identity` was asked for. What filters have to read is
// decoded, and goes on without an encoding.

// The bounds of what an encoded answer may cost (W09).
const (
	// maxDry is how much is read of an encoding that gives nothing out.
	maxDry = 1 << 20
	// maxRatio is how much more may come out than went in, once freeOutput came out: what is read whole has its own bound.
	maxRatio   = 100
	freeOutput = 16 << 20
)

// encoding is that of an answer; "" for none.
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

// decode lets Body be what an answer is without its encoding.
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

// decoder reads an encoded body. Each flush of the upstream's comes out at once, so that events are not held back.
type decoder struct {
	name    string
	src     encoded
	decoded io.Reader // nil until the first read: an encoding's header is waited for
	out     int64
	err     error
	turn    turn
}

// encoded is the body as it comes.
type encoded struct {
	io.Reader
	in  int64
	dry int   // read since something came out
	err error // that of the upstream, or of the bounds
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

// explain tells what the upstream's connection failed with from what its encoding did.
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
