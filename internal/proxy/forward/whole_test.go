package forward

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
)

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// lastRead is a body whose only read ends a permission.
type lastRead struct {
	text string
	end  func()
}

func (b *lastRead) Read(p []byte) (int, error) {
	b.end()
	return copy(p, b.text), io.EOF
}

func (b *lastRead) Close() error { return nil }

// TestWholeAnswerIsRead checks the same for an answer that is read before it is passed on.
func TestWholeAnswerIsRead(t *testing.T) {
	for length, whole := range map[int64]bool{2: true, -1: false, 3: false} {
		ctx, cancel := context.WithCancel(t.Context())
		f := New(Over(roundTrip(func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, ContentLength: length, Body: &lastRead{text: "{}", end: cancel}}, nil
		})), Limits{})
		answer, err := f.Do(ctx, &Request{Method: http.MethodGet, URL: &url.URL{Scheme: "http", Host: "upstream.test"}})
		if err != nil {
			t.Fatal(err)
		}
		if got, err := answer.ReadAll(10); (err == nil) != whole || whole && string(got) != "{}" {
			t.Errorf("length %d: %q, %v", length, got, err)
		}
		answer.Close()
		cancel()
	}
}

// TestWholeAnswerStays checks that a complete answer of known length is passed on, even when the permission for the
// call ends at that moment. Without a length it is not known whether the end was the answer's.
func TestWholeAnswerStays(t *testing.T) {
	for _, tt := range []struct {
		name   string
		length int64
		whole  bool
	}{{"length known", 2, true}, {"length unknown", -1, false}} {
		t.Run(tt.name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			f := New(Over(roundTrip(func(*http.Request) (*http.Response, error) {
				return &http.Response{
					StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}},
					ContentLength: tt.length, Body: &lastRead{text: "{}", end: cancel},
				}, nil
			})), Limits{})
			answer, err := f.Do(ctx, &Request{Method: http.MethodGet, URL: &url.URL{Scheme: "http", Host: "upstream.test"}})
			if err != nil {
				t.Fatal(err)
			}
			defer answer.Close()
			w := httptest.NewRecorder()
			err = answer.Relay(w, 1<<10)
			var failure *Error
			switch {
			case tt.whole && err != nil:
				t.Error(err)
			case !tt.whole && (!errors.As(err, &failure) || !failure.Committed):
				t.Errorf("error %v", err)
			}
			if w.Body.String() != "{}" {
				t.Errorf("body %q", w.Body)
			}
		})
	}
}
