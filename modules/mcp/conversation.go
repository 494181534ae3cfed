package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"go.uber.org/zap"

	"github.com/durward-gateway/durward/internal/credential/connection"
	"github.com/durward-gateway/durward/internal/gateway"
	"github.com/durward-gateway/durward/internal/gateway/inbound"
	"github.com/durward-gateway/durward/internal/mcp/jsonrpc"
	mcpsession "github.com/durward-gateway/durward/internal/mcp/session"
	"github.com/durward-gateway/durward/internal/proxy/forward"
	"github.com/durward-gateway/durward/internal/proxy/sse"
	"github.com/durward-gateway/durward/internal/strictjson"
	"github.com/durward-gateway/durward/modules/app/outbound"
	"github.com/durward-gateway/durward/storage"
)

// maxInitialize is the limit for an answer to initialize, in bytes.
const maxInitialize = 1 << 20

// openingID is the id of the gateway's own initialize.
const openingID = `"durward-initialize"`

// join finds the upstream's session of a conversation that the gateway began, and opens it the first time. It reports
// false when it has answered the request.
func (x *exchange) join(ctx context.Context, credential connection.Credential) bool {
	if !x.Session.Guided {
		return true
	}
	session, err := x.call.Core.Conversations.Session(ctx, x.call.Binding(), x.Session.Upstream, func(ctx context.Context, declared []byte) (mcpsession.Session, error) {
		return x.open(ctx, credential, declared)
	})
	switch {
	case err == nil:
		x.joined = &session
		return true
	case errors.Is(err, errModernOnly):
		x.leaveSession(ctx)
	case errors.Is(err, storage.ErrNotFound):
		x.outcome = "refused"
		gateway.RefuseSessionGone(x.w, "initialize")
	case errors.Is(err, storage.ErrUnavailable):
		x.unwritten(err)
	default:
		x.failed(ctx, err)
	}
	return false
}

// open opens a session at the upstream with the client's declaration.
func (x *exchange) open(ctx context.Context, credential connection.Credential, declared []byte) (mcpsession.Session, error) {
	begin := func(declared []byte) (*forward.Response, error) {
		body := fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"method":"initialize","params":%s}`, openingID, declared)
		return outbound.SendWith(ctx, x.call.Credentials.Rejected, credential, func(c connection.Credential) (*forward.Response, error) {
			credential = c
			return x.tell(ctx, c, body, mcpsession.Session{})
		})
	}
	response, err := begin(declared)
	if err == nil && response.Status == http.StatusBadRequest {
		if older, newer := before(declared, widelySpoken); newer {
			response.Close()
			response, err = begin(older)
		}
	}
	if err != nil {
		return mcpsession.Session{}, err
	}
	version, err := negotiated(response)
	session := mcpsession.Session{Upstream: strings.Clone(response.SessionID())}
	response.Close()
	if errors.Is(err, errModernOnly) {
		return mcpsession.Session{}, err
	}
	if err != nil {
		x.handler.Logger.Warn("opening a session at the upstream", zap.String("server", x.call.Server.Slug), zap.Int("status", response.Status), zap.Error(err))
		return mcpsession.Session{}, &forward.Error{Class: forward.ErrUpstream, Cause: err}
	}
	if session.Upstream == "" {
		session = mcpsession.Begin()
	}
	session.ProtocolVersion = version
	told, err := x.tell(ctx, credential, []byte(`{"jsonrpc":"2.0","method":"notifications/initialized"}`), session)
	if err != nil {
		return mcpsession.Session{}, err
	}
	told.Discard() // servers that do not know the notification are ready all the same
	return session, nil
}

// errModernOnly reports that the server speaks 2026-07-28, and no revision that has sessions.
var errModernOnly = errors.New("the server speaks 2026-07-28 only")

// leaveSession ends a conversation that cannot go on at the server, in the way that makes its client begin anew: the
// client then asks the server for its revisions.
func (x *exchange) leaveSession(ctx context.Context) {
	x.call.Core.Sightings.SpeaksModern(x.call.Server, x.call.Known.Sight())
	if err := x.call.Core.Conversations.End(ctx, x.call.Binding(), x.Session.Upstream); err != nil && !errors.Is(err, storage.ErrNotFound) {
		x.unwritten(err)
		return
	}
	x.outcome = "refused"
	gateway.RefuseSessionless(x.w)
}

// widelySpoken is the revision that is tried with a server that refuses a newer one. A server should answer with a
// revision that it knows (basic/lifecycle, "Version Negotiation"), but some, Slack's among them, answer 400.
const widelySpoken = "2025-06-18"

// before turns a client's declaration into that of a client of an older revision. It reports false when the client's
// revision is not newer.
func before(declared []byte, version string) (older []byte, newer bool) {
	var params map[string]json.RawMessage
	if json.Unmarshal(declared, &params) != nil {
		return nil, false
	}
	if said := string(params["protocolVersion"]); len(said) != len(version)+2 || said[1:len(said)-1] <= version {
		return nil, false
	}
	params["protocolVersion"] = json.RawMessage(`"` + version + `"`)
	older, err := json.Marshal(params)
	return older, err == nil
}

// tell sends a message of the gateway's own.
func (x *exchange) tell(ctx context.Context, credential connection.Credential, body []byte, session mcpsession.Session) (*forward.Response, error) {
	target, err := x.call.ServerURL()
	if err != nil {
		return nil, err
	}
	forwarder, err := x.handler.ForwarderOf(&x.call.Server.Entry)
	if err != nil {
		return nil, err
	}
	header := http.Header{"Accept": accepts[http.MethodPost], "Content-Type": {"application/json"}}
	if session.ProtocolVersion != "" {
		header.Set(jsonrpc.HeaderProtocolVersion, session.ProtocolVersion)
	}
	return forwarder.Do(ctx, &forward.Request{
		Method: http.MethodPost, URL: target, Header: header, SessionID: session.Forwarded(), Body: body, Credential: credential,
	})
}

// negotiated reads the revision of an answer to initialize. The error is errModernOnly for a server that has no sessions.
func negotiated(response *forward.Response) (version string, err error) {
	var text []byte
	switch {
	case response.Status != http.StatusOK:
		if text, err = response.ReadAll(maxErrorBody); err == nil && modernOnly(text) {
			return "", errModernOnly
		}
		return "", fmt.Errorf("initialize was answered with status %d", response.Status)
	case response.Kind == forward.JSON:
		text, err = response.ReadAll(maxInitialize)
	case response.Kind == forward.Events:
		text, err = answerOn(response.Body)
	default:
		return "", errors.New("initialize was answered with what is not MCP")
	}
	if err != nil {
		return "", err
	}
	v, err := strictjson.Parse(text, strictjson.Limits{MaxBytes: maxInitialize})
	if err != nil {
		return "", err
	}
	if modernOnly(text) {
		return "", errModernOnly
	}
	result, _ := v.Get("result")
	agreed, _ := result.Get("protocolVersion")
	if len(agreed.Str()) != len(inbound.LastBatchVersion) {
		return "", errors.New("initialize was answered without a revision")
	}
	return agreed.Str(), nil
}

// modernOnly reports whether an answer says that the server speaks 2026-07-28 and not the revision of the request
// (basic/versioning).
func modernOnly(answer []byte) bool {
	var said struct {
		Error struct {
			Code int
			Data struct{ Supported []string }
		}
	}
	return json.Unmarshal(answer, &said) == nil && said.Error.Code == jsonrpc.CodeUnsupportedProtocolVersion &&
		slices.Contains(said.Error.Data.Supported, modernVersion)
}

// answerOn reads the answer to initialize from an event stream.
func answerOn(stream io.Reader) ([]byte, error) {
	events := sse.NewReader(io.LimitReader(stream, maxInitialize), maxInitialize)
	for {
		event, err := events.Next()
		if err != nil {
			return nil, err
		}
		if bytes.Contains(event.Data, []byte(openingID)) {
			return event.Data, nil
		}
	}
}

// session returns the session of the request in the upstream's form.
func (x *exchange) session() *mcpsession.Session {
	if x.joined != nil {
		return x.joined
	}
	return &x.Session
}
