package platformapi

import (
	"context"
	"errors"
	"time"

	"go.uber.org/zap"

	"github.com/durward-gateway/durward/internal/api/validate"
	"github.com/durward-gateway/durward/internal/credential/connection"
	"github.com/durward-gateway/durward/internal/ops/probe"
	"github.com/durward-gateway/durward/internal/proxy/http1"
	"github.com/durward-gateway/durward/modules/app/routes"
	"github.com/durward-gateway/durward/storage"
)

const (
	// testWithin is the longest time for a test; creationWithin is the one for a test at a server's creation, for which
	// the creator waits.
	testWithin     = 15 * time.Second
	creationWithin = 3 * time.Second
)

// testView holds the result of a server's test.
type testView struct {
	Reachable      bool     `json:"reachable"`
	Transport      *string  `json:"transport"`
	Revisions      []string `json:"revisions"`
	Authentication *string  `json:"authentication"`
	Issuer         *string  `json:"issuer"`
	Tools          *int     `json:"tools"`
	Error          *string  `json:"error"`
	Message        string   `json:"message"`
}

func viewTest(r *probe.Report) *testView {
	return &testView{
		Reachable: r.Reachable, Transport: routes.Optional(r.Transport), Revisions: routes.List(r.Revisions),
		Authentication: routes.Optional(r.Authentication), Issuer: routes.Optional(r.Issuer), Tools: r.Tools,
		Error: routes.Optional(r.Problem), Message: r.Message,
	}
}

// testServer connects to a server and shows the result, with the caller's credential when there is one.
func testServer(q *request) (any, error) {
	ref := q.server()
	if err := q.Read(true, func(*validate.Object) {}); err != nil {
		return nil, err
	}
	s, err := q.readServer(ref)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(q.Context(), testWithin)
	defer cancel()
	apply, err := q.ownCredential(ctx, &s)
	if err != nil {
		return nil, err
	}
	if err := q.recordNow(); err != nil { // before the credential leaves
		return nil, err
	}
	report, ok := q.Core.Tests.Run(ctx, &s, apply)
	if !ok {
		return nil, errTooManyTests
	}
	return viewTest(&report), nil
}

// ownCredential returns a function that puts the caller's credential on a request; nil when there is none.
func (q *request) ownCredential(ctx context.Context, s *storage.Server) (func(*http1.Request) error, error) {
	key := storage.ConnectionKey{OrganizationID: q.Organization(), UserID: q.Call.Caller.UserID, ServerID: s.ID}
	var credential connection.Credential
	var err error
	if connection.KindOf(&s.Entry).Obtained() {
		credential, err = q.Call.Exchange(q.HTTP).Credential(ctx, s)
	} else {
		credential, err = q.Core.Broker.Credential(ctx, key, s)
	}
	switch {
	case errors.Is(err, connection.ErrNotConnected), err == nil && credential.Version() == 0:
		return nil, nil
	case errors.Is(err, connection.ErrUnavailable): // the provider cannot be reached: the test goes on without a credential
		q.handler.logger.Warn("getting a credential to test a server with", zap.String("server", s.Slug), zap.Error(err))
		return nil, nil
	case err != nil:
		return nil, err
	}
	return credential.Apply, nil
}

// recordNow records the request before it has any effect.
func (q *request) recordNow() error {
	a := storage.AuditOf(q.Context())
	if a == nil || q.Record == nil || !a.Claim() {
		return nil
	}
	return q.Core.Audit.Event(q.Context(), q.Organization(), *q.Record)
}

// testNew tests a server that was just created. The server exists whatever the result is.
func (q *request) testNew(s storage.Server) *testView {
	ctx, cancel := context.WithTimeout(q.Context(), creationWithin)
	defer cancel()
	report, ok := q.Core.Tests.Run(ctx, &s, nil)
	if !ok {
		report = probe.Report{Problem: "not_tested", Message: "Too many servers are being tested. The server is there; test it later."}
	}
	return viewTest(&report)
}
