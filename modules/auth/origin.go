package auth

import (
	"net/http"
	"slices"
	"strings"

	"github.com/durward-gateway/durward/internal/gateway"
	"github.com/durward-gateway/durward/modules/app"
)

const (
	corsExpose  = "Mcp-Session-Id, WWW-Authenticate, MCP-Protocol-Version, Retry-After, RateLimit, RateLimit-Policy, X-Request-Id, Request-Id, X-Durward-Model, X-Durward-Route-Reason"
	corsMethods = "GET, POST, PUT, PATCH, DELETE"
	corsHeaders = "Authorization, Content-Type, Accept, Mcp-Session-Id, MCP-Protocol-Version, Mcp-Method, Mcp-Name, Last-Event-ID, X-Mcp-Session-Id, X-Api-Key, " +
		"OpenAI-Beta, Anthropic-Version, Anthropic-Beta, Anthropic-Dangerous-Direct-Browser-Access, Traceparent, Tracestate, Baggage"
)

// checkOrigin refuses requests of foreign web pages and answers preflights. Requests without an Origin header do not come
// from a page of another origin. It reports whether the request is answered.
func checkOrigin(w http.ResponseWriter, r *http.Request, core *app.Core) bool {
	origins := r.Header.Values("Origin")
	if len(origins) == 0 {
		return false
	}
	if len(origins) > 1 || !core.Names.OriginAllowed(origins[0]) {
		gateway.RefuseOrigin(w)
		return true
	}
	h := w.Header()
	h.Add("Vary", "Origin")
	h.Set("Access-Control-Allow-Origin", origins[0])
	h.Set("Access-Control-Expose-Headers", corsExpose)
	return preflight(w, r, corsHeaders)
}

// preflight answers a CORS preflight request (Fetch standard, section 4.8).
func preflight(w http.ResponseWriter, r *http.Request, headers string) bool {
	if r.Method != http.MethodOptions || r.Header.Get("Access-Control-Request-Method") == "" {
		return false
	}
	h := w.Header()
	h.Set("Access-Control-Allow-Methods", corsMethods)
	h.Set("Access-Control-Allow-Headers", allowedHeaders(r, headers))
	h.Set("Access-Control-Max-Age", "600")
	w.WriteHeader(http.StatusNoContent)
	return true
}

// askedPrefixes lists prefixes of headers that are allowed when a page asks for them: names of tool parameters; the
// self-descriptions of the official clients of models; and trace context of Datadog and of Zipkin (B3). The allow-list
// of each forwarder decides which of them go further.
var askedPrefixes = []string{"mcp-param-", "x-stainless-", "x-datadog-", "x-b3-"}

// askedNames lists headers that are allowed when a page asks for them: the account in requests of OpenAI's client, the
// self-description of the AI SDK, and trace context in the forms of Sentry, B3, Jaeger, New Relic, Elastic, Application
// Insights and X-Ray. A page whose requests are instrumented cannot send a single one without them.
var askedNames = []string{
	"openai-organization", "openai-project", "user-agent",
	"sentry-trace", "b3", "uber-trace-id", "newrelic", "elastic-apm-traceparent", "request-id", "request-context", "x-amzn-trace-id",
}

// allowedHeaders returns the headers that a page may send, with those of askedPrefixes and askedNames that it asks for.
func allowedHeaders(r *http.Request, standard string) string {
	allowed := standard
	for asked := range strings.SplitSeq(r.Header.Get("Access-Control-Request-Headers"), ",") {
		asked = strings.TrimSpace(asked)
		named := slices.ContainsFunc(askedNames, func(name string) bool { return strings.EqualFold(asked, name) })
		begun := slices.ContainsFunc(askedPrefixes, func(prefix string) bool {
			return len(asked) > len(prefix) && strings.EqualFold(asked[:len(prefix)], prefix)
		})
		if named || begun && isToken(asked) {
			allowed += ", " + asked
		}
	}
	return allowed
}

// isToken reports whether a text is a header name. The rule is narrower than a token of RFC 9110 section 5.6.2, and
// wide enough for names of parameters.
func isToken(text string) bool {
	return !strings.ContainsFunc(text, func(c rune) bool {
		return c != '-' && c != '_' && (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z')
	})
}
