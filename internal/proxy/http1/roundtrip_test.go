package http1

import (
	"io"
	"net/http"
)

// RoundTrip is Send in net/http's terms, which the tests compare it with.
func (c *Client) RoundTrip(r *http.Request) (*http.Response, error) {
	out := &Request{Method: r.Method, URL: r.URL}
	if r.Host != "" && r.URL != nil && r.Host != r.URL.Host {
		u := *r.URL
		u.Host, out.URL = r.Host, &u
	}
	for name, values := range r.Header {
		for _, v := range values {
			out.Fields = append(out.Fields, Field{name, v})
		}
	}
	if r.Body != nil && r.Body != http.NoBody {
		var err error
		if out.Body, err = io.ReadAll(r.Body); err != nil {
			return nil, err
		}
		_ = r.Body.Close()
	}
	answer, err := c.Send(r.Context(), out)
	if err != nil {
		return nil, err
	}
	x := answer.Body.(*exchange)
	res := &http.Response{StatusCode: answer.Status, ContentLength: answer.Length, Header: http.Header{}, Body: x}
	for _, f := range answer.Fields {
		res.Header[f.Name] = append(res.Header[f.Name], f.Value)
	}
	switch x.framing {
	case noBody:
		res.Body = http.NoBody
	case byChunks:
		res.TransferEncoding = chunkedOnly
	}
	return res, nil
}

var chunkedOnly = []string{"chunked"}
