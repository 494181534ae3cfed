package replay

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"

	"github.com/durward-gateway/durward/internal/policy/engine"
	"github.com/durward-gateway/durward/internal/strictjson"
	"github.com/durward-gateway/durward/storage"
)

// Redacted replaces a value that the audit log does not keep.
const Redacted = "REDACTED"

// decided reports whether an entry is a decision of policies on one call, or on a call without policies because the
// configuration says `durward_policy off`.
func decided(e *storage.AuditEntry) bool {
	switch {
	case e.Kind != storage.AuditCall || e.Event != "decision" || e.Call != "":
		return false
	case e.PolicyID == "" && e.Rule != "":
		return false // a rule of the gateway itself: no policy could have allowed it
	}
	// A call that was refused before any policy was asked has no roles and names no policy.
	return e.Roles != nil || e.PolicyID != "" || e.Detail["roles_bytes"] != nil || e.Detail["roles_unknown"] != nil
}

// kindOf returns the kind of call of a method; 0 for a method that is not judged by itself, such as lists.
func kindOf(method string) engine.Kind {
	switch method {
	case "tools/call":
		return engine.ToolsCall
	case "prompts/get":
		return engine.PromptsGet
	case "resources/read", "resources/subscribe", "resources/unsubscribe", "subscriptions/listen":
		return engine.ResourcesRead
	case "sse/stream":
		return engine.SSEStream
	}
	return 0
}

// callOf returns the call of an entry, and which facts about it are missing.
func callOf(e *storage.AuditEntry, kind engine.Kind) (engine.Call, engine.Lacking) {
	lacking := engine.Lacking{Claims: true, Roles: e.Roles == nil}
	c := engine.Call{Principal: engine.NewPrincipal(e.UserID, e.Roles, e.Groups, e.AgentID, nil), Kind: kind, Name: e.Tool}
	switch {
	case e.ArgumentsDigest == "" || e.ArgumentsDigest == digestOf("{}") || e.ArgumentsDigest == digestOf("null"):
	case len(e.Arguments) == 0:
		lacking.Arguments = true
	default:
		c.Arguments = e.Arguments
		if e.ArgumentsDigest != digestOf(e.Arguments) {
			lacking.Members, lacking.Arguments = redacted(e.Arguments)
		}
	}
	return c, lacking
}

func digestOf[T string | ~[]byte](text T) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// redacted lists the arguments whose recorded values may differ from the real ones; all when this cannot be determined.
func redacted(text []byte) (members []string, all bool) {
	if !bytes.Contains(text, []byte(Redacted)) {
		return nil, false
	}
	v, err := strictjson.Parse(text, strictjson.Limits{MaxBytes: len(text)})
	if err != nil || v.Kind() != strictjson.Object {
		return nil, true
	}
	for _, m := range v.Members() {
		if holdsRedacted(m.Value) {
			members = append(members, m.Name)
		}
	}
	return members, false
}

func holdsRedacted(v strictjson.Value) bool {
	switch v.Kind() {
	case strictjson.String:
		return v.Str() == Redacted
	case strictjson.Array:
		for _, e := range v.Elems() {
			if holdsRedacted(e) {
				return true
			}
		}
	case strictjson.Object:
		for _, m := range v.Members() {
			if holdsRedacted(m.Value) {
				return true
			}
		}
	}
	return false
}
