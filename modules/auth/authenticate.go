package auth

import (
	"cmp"
	"errors"
	"math"
	"net/http"
	"strconv"
	"strings"

	"go.uber.org/zap"

	"github.com/durward-gateway/durward/internal/api/slug"
	"github.com/durward-gateway/durward/internal/api/validate"
	"github.com/durward-gateway/durward/internal/audit/record"
	"github.com/durward-gateway/durward/internal/gateway"
	"github.com/durward-gateway/durward/internal/gateway/body"
	"github.com/durward-gateway/durward/internal/gateway/tracing"
	"github.com/durward-gateway/durward/internal/identity/authn"
	"github.com/durward-gateway/durward/internal/identity/caller"
	"github.com/durward-gateway/durward/internal/identity/token"
	"github.com/durward-gateway/durward/modules/app"
	"github.com/durward-gateway/durward/modules/app/paths"
	"github.com/durward-gateway/durward/storage"
)

// authenticate sets the caller, or answers the refusal and reports that it did. Every error path refuses: an error that
// is not known to be the client's fault is a 503, never an anonymous caller (CVE-2026-59822).
func (h *Handler) authenticate(w http.ResponseWriter, r *http.Request, call *app.Call) (refused bool) {
	at := surfaceOf(r.URL.Path)
	presented := presented(r.Header, at)
	step := proof{call, call.Trace.Authenticate(), presented.kind()}
	if presented.raw == "" || presented.key && at == elsewhere {
		step.ended("missing")
		h.challenge(w, r, call.Core, presented.sent)
		return true
	}
	bearer, err := prove(r, call.Core, presented)
	if err == nil {
		call.SetBearer(bearer)
		return h.enter(w, r, step, at)
	}
	var many *authn.TooManyFailures
	switch {
	case errors.As(err, &many): // neither recorded nor logged: its sender can repeat it without limit
		step.ended("limited")
		w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(many.Wait.Seconds()))))
		h.refuse(w, r, gateway.TooManyFailures())
	case errors.Is(err, authn.ErrShutOut): // no other token would help: a client that got a 401 would ask for one again and again
		step.ended("forbidden")
		h.logger.Info("refusing a user", zap.String("reason", token.Reason(err)))
		call.Core.AuditRefusal(err, r.URL.Path)
		h.refuse(w, r, gateway.ShutOut())
	case errors.Is(err, token.ErrInvalid):
		step.ended("invalid")
		h.logger.Debug("refusing a credential", zap.String("reason", token.Reason(err)))
		call.Core.AuditRefusal(err, r.URL.Path)
		if !presented.key {
			call.Core.Refused.Remember(r.Context(), presented.raw, r.RemoteAddr, r.URL.Path, http.StatusUnauthorized, err)
		}
		h.challenge(w, r, call.Core, true)
	case errors.Is(err, caller.ErrForbidden), errors.Is(err, storage.ErrForeignOrganization):
		step.ended("forbidden")
		h.logger.Info("refusing a caller", zap.Error(err))
		reason, refusal := "names no organization that it may act for", gateway.NoOrganization()
		if errors.Is(err, caller.ErrOtherOrganization) {
			reason, refusal = "names another organization than the configured one", gateway.OtherOrganization()
		}
		call.Core.Audit.RefusedBearer(record.Bearer{}, reason, r.URL.Path)
		if !presented.key {
			call.Core.Refused.Remember(r.Context(), presented.raw, r.RemoteAddr, r.URL.Path, http.StatusForbidden, err)
		}
		h.refuse(w, r, refusal)
	default:
		step.ended("unavailable")
		call.Core.LogFailure(h.logger, "authenticating", err)
		h.refuse(w, r, gateway.CredentialUnread())
	}
	return true
}

// prove finds the bearer of a credential. A wrong token counts against its sender.
func prove(r *http.Request, core *app.Core, presented credential) (authn.Bearer, error) {
	if presented.key {
		return core.Authenticator.Key(r.Context(), presented.raw, r.RemoteAddr)
	}
	bearer, err := core.Authenticator.Token(r.Context(), presented.raw, resource(r, core))
	if errors.Is(err, token.ErrInvalid) {
		err = cmp.Or(core.Authenticator.WrongToken(presented.raw, r.RemoteAddr, err), err)
	}
	return bearer, err
}

// enter lets a proven caller in, unless they hold a key for another surface (attack K07).
func (h *Handler) enter(w http.ResponseWriter, r *http.Request, step proof, at surface) (refused bool) {
	call := step.call
	key := call.Caller.Key
	covered := key == nil || at == proxies && key.Scopes.MCP && call.Caller.UserID != "" || at == models && key.Scopes.LLM()
	reason, refusal := "the scopes of the API key do not cover this address", gateway.ScopesElsewhere()
	if at == provisioning {
		covered = key != nil && key.Scopes.SCIM && call.Caller.UserID == ""
		reason, refusal = "only API keys with the scope scim provision users", gateway.OnlyProvisions()
	}
	if covered {
		step.ended("ok")
		return false
	}
	step.ended("forbidden")
	call.Core.Audit.RefusedBearer(app.RecordedBearer(call.Caller), reason, r.URL.Path)
	h.refuse(w, r, refusal)
	return true
}

// proof is the proof of a request's bearer while it is made.
type proof struct {
	call *app.Call
	step tracing.Step
	kind string // of the credential
}

func (p proof) ended(result string) {
	p.call.Core.Metrics.CountAuthentication(result)
	p.step.Authenticated(p.kind, result)
}

// resource returns the audience that is valid on this path only, besides the gateway's own: the URL of the MCP server, or on
// the API that of the console's tokens.
func resource(r *http.Request, core *app.Core) string {
	if prefix, name, ok := paths.ProxiedName(r.URL.Path); ok && prefix == paths.MCPPrefix {
		return core.PublicURL + paths.MCPPrefix + name
	}
	if core.Authorization != nil && strings.HasPrefix(r.URL.Path, paths.API+"/") && surfaceOf(r.URL.Path) == elsewhere {
		return core.Authorization.ConsoleAudience()
	}
	return ""
}

// resolveServer sets the server of a proxied path, or answers the refusal and reports that it did. A client that may
// not use servers does not learn which servers exist.
func (h *Handler) resolveServer(w http.ResponseWriter, r *http.Request, call *app.Call) (refused bool) {
	_, name, ok := paths.ProxiedName(r.URL.Path)
	if !ok {
		return false
	}
	if !call.Core.AgentRules.Allow(call.Agent) {
		gateway.RefuseUnregistered(w)
		return true
	}
	if !slug.Valid(name) {
		body.WriteShapeError(w, validate.InPath("mcp_server_name", validate.StringPatternMismatch, "String should match pattern '"+slug.Pattern+"'", name))
		return true
	}
	err := call.ResolveServer(r.Context(), name)
	switch {
	case err == nil:
		return false
	case errors.Is(err, storage.ErrNotFound):
		gateway.RefuseNoServer(w)
	default:
		call.Core.LogFailure(h.logger, "looking up a server", err)
		gateway.RefuseServerUnread(w)
	}
	return true
}
