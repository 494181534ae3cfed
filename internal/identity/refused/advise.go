package refused

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/durward-gateway/durward/internal/api/visible"
	"github.com/durward-gateway/durward/internal/identity/caller"
	"github.com/durward-gateway/durward/internal/identity/token"
	"github.com/durward-gateway/durward/internal/strictjson"
	"github.com/durward-gateway/durward/storage"
)

// Identity holds the configuration of one issuer.
type Identity struct {
	Options token.Options
	Mapping caller.Mapping
}

// Refusal describes a token that was refused, to be entered into a book.
type Refusal struct {
	Token   *token.Unverified // nil when it is no JWT
	Err     error
	Path    string
	Status  int
	Issuers []string  // configured
	Of      *Identity // of the token's issuer; nil when that is not configured
}

// Describe makes an entry without its time, its origin and whether it is verified.
func Describe(r Refusal) Entry {
	path, _ := visible.Beginning(r.Path, maxText)
	e := Entry{Status: r.Status, Path: path}
	if r.Token == nil {
		e.Claims = json.RawMessage("{}")
		e.Advice = Advice{
			Reason: token.Reason(r.Err),
			Advice: "This is no JWT, or a copy with something missing or added. Tokens of some providers are opaque, such as Google's; others make JWTs only when the client asks for the gateway's address (`resource` or `audience`), or when that address is registered as an API.",
		}
		return e
	}
	e.Header, e.Advice = r.Token.HeaderFields(), advise(r)
	e.Claims, e.Cut = claims(r.Token.Payload())
	return e
}

// text returns a claim in a form that may stand in a line of a configuration; "" when there is none: a copied line
// must not become two, or another option.
func text(payload strictjson.Value, name string) string {
	v, _ := payload.Get(name)
	return word(v.Str())
}

func word(s string) string {
	if s == "" || len(s) > maxText || strings.ContainsFunc(s, func(c rune) bool { return c <= ' ' || c > '~' || strings.ContainsRune("{}\"`\\#", c) }) {
		return ""
	}
	return s
}

func line(format string, word string) string {
	if word == "" {
		return ""
	}
	return fmt.Sprintf(format, word)
}

// advise goes by the reason of the refusal, whose words are of package token and package caller.
func advise(r Refusal) Advice {
	payload, reason := r.Token.Payload(), token.Reason(r.Err)
	a := Advice{Reason: reason}
	if r.Of == nil {
		return unknownIssuer(a, text(payload, "iss"), r.Issuers)
	}
	of := func(option string, values ...string) string {
		a.Issuer, a.Option = r.Of.Options.Issuer, option
		return "identity oidc " + a.Issuer + ": " + strings.Join(append([]string{option}, values...), " ")
	}
	has := func(part string) bool { return strings.Contains(reason, part) }
	switch {
	case errors.Is(r.Err, caller.ErrOtherOrganization):
		a.RefusedBy = of("organization", r.Of.Mapping.Organization)
		a.AcceptedBy = line("organization %s", organizationOf(payload, r.Of.Mapping))
		a.Advice = "The token names another organization. Write it when it is the right one; point `claim org` or `claim org_slug` elsewhere when that claim means something else; else the user logs in to another organization."
	case errors.Is(r.Err, storage.ErrForeignOrganization):
		a.RefusedBy = of("shared_organizations")
		a.AcceptedBy = line("shared_organizations %s", organizationOf(payload, r.Of.Mapping))
		a.Advice = "The organization belongs to the issuer that named it first. Let this issuer name it too when both mean the same one."
	case errors.Is(r.Err, caller.ErrForbidden):
		a.RefusedBy, a.AcceptedBy = of("claim org"), "organization acme"
		a.Advice = "No claim names one organization. Write its name when all users of this issuer are of one; else `claim org` with the claim that names it."
	case has("aud "):
		a.RefusedBy, a.AcceptedBy = of("audience", r.Of.Options.Audiences...), line("audience %s", audience(payload))
		a.Advice = "The token is for somebody else, or the identity provider knows the gateway by another name. Add that name when it stands for the gateway and for nothing else; or have the provider put the gateway's address into `aud`."
		if anotherServer(audience(payload), r.Of.Options.Audiences) {
			a.AcceptedBy = "" // it would make tokens for one server good for all
			a.Advice = "The token is for another server of this gateway, as its client asked for. The client gets one for this server when it logs in here."
		}
		if has("exactly one") {
			a.RefusedBy, a.AcceptedBy, a.Advice = of("aud_single"), "", "The token is for others besides us. Leave `aud_single` out when that is right."
		}
	case has("typ is not at+jwt"):
		a.RefusedBy, a.Advice = of("require_typ"), "The issuer does not mark its access tokens. Leave `require_typ` out; ID tokens are still refused by other signs where they have them."
	case has("typ"), has("token_use"), has("which access tokens do not"):
		a.Advice = "This is no access token: the client has sent its ID token or refresh token. The client has to send the access token."
	case has("the algorithm is not accepted"):
		a.RefusedBy, a.AcceptedBy = of("algorithms"), algorithms(r)
		a.Advice = "The issuer signs with another algorithm than is accepted."
	case has("lives too long"):
		a.RefusedBy, a.AcceptedBy = of("max_lifetime"), lifetime(payload)
		a.Advice = "Let the identity provider make tokens that live shorter, or allow as much."
	case has("too old"), reason == "iat is missing":
		a.RefusedBy, a.Advice = of("max_token_age"), "The client has to get a new token, which it does with its refresh token. Write a longer time when tokens are meant to live longer."
	case has("expired"):
		a.Advice = "The client has to get a new token. When this happens with new ones, compare the clocks."
	case has("not valid yet"), has("issued in the future"):
		a.RefusedBy, a.Advice = of("leeway"), "The clock of the identity provider is ahead of ours: have both keep their time by NTP."
	case has("key"), has("signature"):
		a.Advice = "The signature is not by a key that the issuer publishes. Either the token is forged, or it was made by another issuer of the same name."
	case has("subject"), has("sub is"):
		a.RefusedBy, a.Advice = of("claim user"), "The token does not name its user where it is looked for. `claim user PATH` says where that is."
	default:
		a.Advice = "No option changes this. The reason says what the issuer has to do otherwise."
	}
	return a
}

func unknownIssuer(a Advice, iss string, configured []string) Advice {
	a.RefusedBy = "identity oidc"
	a.AcceptedBy = line("identity oidc %s", iss)
	a.Advice = "No identity is configured for the token's `iss`. Write it only when it is your identity provider: anybody can make up a token."
	for _, issuer := range configured {
		if strings.TrimSuffix(issuer, "/") == strings.TrimSuffix(iss, "/") {
			a.RefusedBy, a.Issuer = "identity oidc "+issuer, issuer
			a.Advice = "The issuer is configured with another slash at its end: it has to be the token's `iss` exactly."
		}
	}
	if iss == "" {
		a.AcceptedBy, a.Advice = "", "The token names no issuer: no identity provider of OpenID Connect makes such tokens."
	}
	return a
}

// organizationOf returns the first claim in force that could be written as an organization.
func organizationOf(payload strictjson.Value, m caller.Mapping) string {
	for _, name := range m.OrganizationNames(&token.Claims{Object: payload}) {
		if fixed, ok := caller.FixedOrganization(name); ok {
			return fixed
		}
	}
	return ""
}

func audience(payload strictjson.Value) string {
	aud, _ := payload.Get("aud")
	if aud.Kind() == strictjson.String {
		return word(aud.Str())
	}
	if aud.Kind() == strictjson.Array && aud.Len() > 0 {
		return word(aud.Elems()[0].Str())
	}
	return ""
}

// anotherServer reports whether an audience is the address of a server of the gateway (RFC 8707).
func anotherServer(aud string, own []string) bool {
	return slices.ContainsFunc(own, func(gateway string) bool { return strings.HasPrefix(aud, strings.TrimSuffix(gateway, "/")+"/mcp/") })
}

func algorithms(r Refusal) string {
	alg := r.Token.HeaderFields()["alg"]
	if !token.Supported(alg) {
		return ""
	}
	accepted := r.Of.Options.Algorithms
	if len(accepted) == 0 {
		accepted = token.DefaultAlgorithms()
	}
	if slices.Contains(accepted, alg) {
		return ""
	}
	return "algorithms " + strings.Join(append(slices.Clone(accepted), alg), " ")
}

// lifetime returns the option that allows as long as the token lives, in whole hours.
func lifetime(payload strictjson.Value) string {
	lives, ok := token.Lifetime(payload)
	if !ok {
		return ""
	}
	return fmt.Sprintf("max_lifetime %dh", int(lives.Hours())+1)
}
