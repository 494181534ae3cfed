package forward_test

import (
	"errors"
	"net/http"
	"net/url"

	"github.com/durward-gateway/durward/internal/forward"
	"github.com/durward-gateway/durward/internal/ssewire"
)

// The shape of the /mcp handler: one refresh and one retry after a 401, which executed nothing.
func ExampleForwarder_Do() {
	var (
		f          *forward.Forwarder // forward.New(transports, forward.Limits{HeaderTimeout: 5 * time.Minute})
		target     *url.URL           // the server's URL
		credential func(refresh bool) (forward.Authorizer, error)
		fail       func(w http.ResponseWriter, status int)
	)
	handle := func(w http.ResponseWriter, r *http.Request, session string) {
		body, err := forward.ReadBody(r, 4<<20)
		if bad := (*forward.BodyError)(nil); errors.As(err, &bad) {
			if bad.Close && r.ProtoMajor == 1 {
				w.Header().Set("Connection", "close")
			}
			fail(w, bad.Status)
			return
		}
		var res *forward.Response
		for attempt := range 2 {
			auth, err := credential(attempt > 0)
			if err != nil {
				fail(w, http.StatusForbidden)
				return
			}
			res, err = f.Do(r.Context(), &forward.Request{
				Method: r.Method, URL: target, Header: r.Header, SessionID: session, Body: body, Credential: auth})
			if bad := (*forward.HeaderError)(nil); errors.As(err, &bad) {
				fail(w, http.StatusBadRequest)
				return
			} else if err != nil {
				fail(w, http.StatusBadGateway) // with forward.PublicText
				return
			}
			if res.Status != http.StatusUnauthorized {
				break
			}
			res.Discard()
		}
		defer res.Close()
		if res.Status == http.StatusUnauthorized || (res.Status < 300 && res.Kind == forward.Other) {
			fail(w, http.StatusBadGateway)
			return
		}
		res.CopyHeader(w.Header())
		if id := res.SessionID(); id != "" {
			w.Header().Set("Mcp-Session-Id", id) // sealed by mcpsession first
		}
		if bad := (*forward.Error)(nil); errors.As(res.Relay(w, 16<<20), &bad) {
			if bad.Committed {
				panic(http.ErrAbortHandler)
			}
			fail(w, http.StatusBadGateway)
		}
	}
	_ = handle
}

// The shape of the /sse handler's reading side.
func ExampleResponse() {
	var (
		f      *forward.Forwarder // forward.New(transports, forward.Limits{})
		events *url.URL
		auth   forward.Authorizer
	)
	handle := func(w http.ResponseWriter, r *http.Request) error {
		res, err := f.Do(r.Context(), &forward.Request{
			Method: http.MethodGet, URL: events, Header: r.Header, EventsOnly: true, Credential: auth,
			Query: url.Values{"object_type": {"issue"}}})
		if err != nil {
			return err
		}
		defer res.Close()
		out := ssewire.NewWriter(w, http.NewResponseController(w).Flush)
		for in := ssewire.NewReader(res.Body, 1<<20); ; {
			e, err := in.Next() // io.EOF, ssewire.ErrTooLarge, *forward.Error: ErrIdle, ErrUpstream, ErrClientGone
			if err != nil {
				return err
			}
			if e.HasData && !e.Incomplete {
				if err := out.Event(e.Name, e.Data); err != nil {
					return err
				}
			}
		}
	}
	_ = handle
}
