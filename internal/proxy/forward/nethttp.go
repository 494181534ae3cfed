package forward

import (
	"bytes"
	"context"
	"io"
	"net/http"

	"github.com/durward-gateway/durward/internal/proxy/http1"
)

// Over returns a [Sender] that uses a net/http round tripper.
func Over(rt http.RoundTripper) Sender { return over{rt} }

type over struct{ rt http.RoundTripper }

func (o over) Send(ctx context.Context, r *http1.Request) (*http1.Answer, error) {
	return sendOver(ctx, o.rt.RoundTrip, r)
}

// blank is the template for upstream requests: WithContext then costs one allocation instead of two.
var blank http.Request

// sendOver sends r with roundTrip. Headers and address are copies, because net/http may still read a request after its
// round trip has ended.
func sendOver(ctx context.Context, roundTrip func(*http.Request) (*http.Response, error), r *http1.Request) (*http1.Answer, error) {
	u := *r.URL
	out := blank.WithContext(ctx)
	out.Method, out.URL, out.Host, out.Header = r.Method, &u, u.Host, make(http.Header, len(r.Fields))
	out.Proto, out.ProtoMajor, out.ProtoMinor = "HTTP/1.1", 1, 1
	for _, f := range r.Fields {
		out.Header[f.Name] = append(out.Header[f.Name], f.Value)
	}
	if b := r.Body; len(b) > 0 {
		out.ContentLength = int64(len(b))
		// The type must be exactly this one: net/http then writes headers and body together. GetBody lets it move to
		// another connection when the idle connection turned out closed before anything was written.
		out.Body = io.NopCloser(bytes.NewReader(b))
		out.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(b)), nil }
	}
	res, err := roundTrip(out)
	if err != nil {
		return nil, err
	}
	answer := &http1.Answer{Status: res.StatusCode, Length: res.ContentLength, Body: res.Body, Fields: make([]http1.Field, 0, len(res.Header))}
	if res.Body == http.NoBody {
		answer.Length = 0
	}
	for name, values := range res.Header {
		if len(answer.Fields)+len(values) > maxAnswerFields {
			_ = res.Body.Close()
			return nil, errTooManyFields
		}
		for _, v := range values {
			answer.Fields = append(answer.Fields, http1.Field{Name: name, Value: v})
		}
	}
	return answer, nil
}
