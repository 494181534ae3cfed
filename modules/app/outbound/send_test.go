package outbound

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/durward-gateway/durward/internal/credential/connection"
	"github.com/durward-gateway/durward/internal/proxy/forward"
)

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// rejections answers rejected credentials with one error after another; nil is a fresh credential.
type rejections struct {
	errs  []error
	asked int
}

func (r *rejections) Rejected(context.Context, connection.Credential) (connection.Credential, error) {
	r.asked++
	return connection.Credential{}, r.errs[r.asked-1]
}

// TestSendWith: A15, rule 9: one more call after a 401 that a refresh followed, and never another.
func TestSendWith(t *testing.T) {
	ended, away := &connection.NotConnectedError{Reason: "ended"}, &connection.UnavailableError{}
	broken := errors.New("connection reset")
	for _, tc := range []struct {
		name     string
		statuses []int // of the upstream's answers; 0 is a failure
		refresh  []error
		sent     int
		rejected int
		status   int
		err      error
	}{
		{"an answer", []int{200}, nil, 1, 0, 200, nil},
		{"403 is an answer", []int{403}, nil, 1, 0, 403, nil},
		{"W11 a failure is not tried again", []int{0}, nil, 1, 0, 0, broken},
		{"401, refreshed", []int{401, 200}, []error{nil}, 2, 1, 200, nil},
		{"401, no refresh", []int{401}, []error{ended}, 1, 1, 0, connection.ErrNotConnected},
		{"401, provider away", []int{401}, []error{away}, 1, 1, 0, connection.ErrUnavailable},
		{"401 and then a failure", []int{401, 0}, []error{nil}, 2, 1, 0, broken},
		{"A15 401 twice", []int{401, 401}, []error{nil, ended}, 2, 2, 0, connection.ErrNotConnected},
		{"A15 401 twice, and yet another token", []int{401, 401}, []error{nil, nil}, 2, 2, 0, connection.ErrNotConnected},
		{"A15 401 twice, provider away", []int{401, 401}, []error{nil, away}, 2, 2, 0, connection.ErrNotConnected},
	} {
		t.Run(tc.name, func(t *testing.T) {
			sent, open := 0, 0
			upstream := forward.New(forward.Over(roundTrip(func(*http.Request) (*http.Response, error) {
				open++
				body := &countedBody{Reader: strings.NewReader("{}"), open: &open}
				return &http.Response{StatusCode: tc.statuses[sent-1], Header: http.Header{"Content-Type": {"application/json"}}, ContentLength: 2, Body: body}, nil
			})), forward.Limits{})
			source := &rejections{errs: tc.refresh}
			response, err := SendWith(t.Context(), source.Rejected, connection.Credential{}, func(connection.Credential) (*forward.Response, error) {
				sent++
				if tc.statuses[sent-1] == 0 {
					return nil, broken
				}
				return upstream.Do(t.Context(), &forward.Request{Method: http.MethodPost, URL: &url.URL{Scheme: "https", Host: "upstream.example"}, Body: []byte("{}")})
			})
			status := 0
			if response != nil {
				status = response.Status
				response.Close()
			}
			if !errors.Is(err, tc.err) {
				t.Errorf("got %v instead of %v", err, tc.err)
			}
			if diff := cmp.Diff([]int{tc.sent, tc.rejected, tc.status, 0}, []int{sent, source.asked, status, open}); diff != "" {
				t.Errorf("sent, rejected, status, answers left open (-want +got)\n%s", diff)
			}
		})
	}
}

// countedBody counts down when it is closed.
type countedBody struct {
	io.Reader
	open   *int
	closed bool
}

func (b *countedBody) Close() error {
	if !b.closed {
		b.closed = true
		*b.open--
	}
	return nil
}
