// Package directory reads and checks the templates of servers that operators and administrators write, and holds the
// catalogue of public MCP servers that ships with the gateway. It connects to no server and stores nothing: the check
// of an address is handed in, and templates are kept in the store.
package directory

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/durward-gateway/durward/internal/api/slug"
	"github.com/durward-gateway/durward/storage"
)

// Record is a directory entry as it is written in configuration, in the catalogue and in the API. Omitted members
// take the defaults of Entry.
type Record struct {
	// The name for people. Required.
	Name string `json:"name"`
	// The purpose of the server. Default: none.
	Description string `json:"description,omitempty"`
	// The address of a picture. Default: none.
	Icon string `json:"icon,omitempty"`
	// The name in addresses. Default: one that is made from the name.
	Slug string `json:"slug,omitempty"`
	// The server's address. Required.
	URL string `json:"url"`
	// The protocol at the address: `mcp` or `sse`. Default: `mcp`.
	Protocol storage.Protocol `json:"protocol,omitempty"`
	// How users connect their accounts. Default: `oauth2`.
	Provider storage.Provider `json:"provider,omitempty"`
	// The place of the credential in a request, for a provider whose credential users type in. Default: the usual
	// place of the provider's kind.
	AuthParams storage.AuthParams `json:"auth_params,omitzero"`
	// The OAuth scopes to ask for. Default: none.
	Scopes []string `json:"scopes,omitempty"`
	// The addresses of the authorization server. Default: they are discovered.
	OAuth storage.OAuthEndpoints `json:"oauth,omitzero"`
	// The resource parameter of OAuth requests (RFC 8707): `auto`, `off`, or a URI. Default: `auto`, the name that
	// the server gives itself.
	Resource string `json:"resource,omitempty"`
	// The method by which the OAuth client authenticates at the token endpoint: `auto`, `client_secret_basic`,
	// `client_secret_post`, `none`, or, where users connect no account, `private_key_jwt`. Default: `auto`, as discovered, and
	// the other way once after a refusal.
	AuthMethod string `json:"token_endpoint_auth_method,omitempty"`
	// Parameters of the authorization request in addition to OAuth's own. Default: none.
	AuthorizationParams map[string]string `json:"authorization_params,omitempty"`
	// Whether a refresh asks again for the scopes that its user was asked for. Default: false.
	RefreshScope bool `json:"refresh_scope,omitempty"`
	// IndependentTokens says that the provider can revoke a grant without ending a newer one of the same user and
	// client. A user who connects again then has the former grant revoked. Default: off.
	IndependentTokens bool `json:"independent_tokens,omitempty"`
	// The certificate authorities to trust for the server and its provider in addition to the system's: PEM, or, in
	// configuration, a reference to it. Default: none.
	TrustedCA string `json:"trusted_ca,omitempty"`
	// The audience of tokens that the gateway gets without a step of the users, as their giver calls it. Default: none.
	Audience string `json:"audience,omitempty"`
	// The type of token that a token exchange asks for: `access_token`, `jwt`, or `id-jag` for an identity assertion, which the
	// server's own authorization server takes. Default: `access_token`.
	RequestedTokenType string `json:"requested_token_type,omitempty"`
	// The type of the proof of a user that a token exchange takes: `access_token`, `id_token`, or `jwt` for either. Default:
	// `auto`, each under its own name; with `id-jag`, `id_token`.
	SubjectTokenType string `json:"subject_token_type,omitempty"`
	// The file with the platform's statement about the gateway, a JWT, for the provider `workload_identity`. It is read each
	// time that a token is needed. Default: none.
	AssertionFile string `json:"assertion_file,omitempty"`
	// Whether an OAuth client without a secret suffices, so that no administrator need supply one. Default: false.
	Public bool `json:"public,omitempty"`
	// Whether calls need a connected account. Default: true, except for the provider `none`.
	RequiresAuth *bool `json:"requires_auth,omitempty"`
	// The categories under which the directory lists it. Default: none.
	Categories []string `json:"categories,omitempty"`
	// The address of the server's event stream. Default: none; with the protocol `sse`, the server's address.
	EventsURL string `json:"events_url,omitempty"`
	// A JSON object that the gateway keeps and does not read. Default: none.
	Meta json.RawMessage `json:"meta,omitempty"`
}

// Entry turns a record into a directory entry of a source, with its defaults. The caller sets the id, organization
// and times.
func (r Record) Entry(source storage.Source) storage.DirectoryEntry {
	e := storage.DirectoryEntry{
		Name: r.Name, Description: r.Description, Icon: r.Icon, Slug: r.Slug, URL: r.URL, Protocol: r.Protocol, Source: source,
		Provider: r.Provider, AuthParams: r.AuthParams, Scopes: r.Scopes, OAuth: r.OAuth, Public: r.Public, Categories: r.Categories,
		EventsURL: r.EventsURL, Meta: r.Meta,
	}
	if e.Slug == "" {
		e.Slug = slug.FromName(r.Name)
	}
	if e.Protocol == "" {
		e.Protocol = storage.ProtocolMCP
	}
	if e.Provider == "" {
		e.Provider = storage.ProviderOAuth2
	}
	e.RequiresAuth = e.Provider != storage.ProviderNone
	if r.RequiresAuth != nil {
		e.RequiresAuth = *r.RequiresAuth
	}
	e.Options = storage.EntryOptions{AuthorizationParams: r.AuthorizationParams, RefreshScope: r.RefreshScope, IndependentTokens: r.IndependentTokens, TrustedCA: r.TrustedCA}
	if r.AuthMethod != Auto {
		e.Options.AuthMethod = r.AuthMethod
	}
	e.Options.Audience, e.Options.AssertionFile = r.Audience, r.AssertionFile
	if r.RequestedTokenType != TokenAccess {
		e.Options.RequestedTokenType = r.RequestedTokenType
	}
	if r.SubjectTokenType != Auto {
		e.Options.SubjectTokenType = r.SubjectTokenType
	}
	switch r.Resource {
	case "", Auto:
	case Off:
		e.Options.ResourceOff = true
	default:
		e.OAuth.Resource = r.Resource
	}
	if e.EventsURL == "" && e.Protocol == storage.ProtocolSSE {
		e.EventsURL = e.URL
	}
	e.AuthParams = PlaceCredential(e.Provider, e.AuthParams)
	return e
}

// Set sets a member from a word of the Caddyfile and its arguments.
func (r *Record) Set(word string, arguments []string) error {
	if list := r.list(word); list != nil {
		*list = append(*list, arguments...)
		return nil
	}
	switch word {
	case "auth_params":
		return r.setAuthParams(arguments)
	case "authorization_params":
		return r.setAuthorizationParams(arguments)
	}
	if len(arguments) != 1 {
		return fmt.Errorf("%s takes one argument", word)
	}
	argument := arguments[0]
	if text := r.text(word); text != nil {
		*text = argument
		return nil
	}
	switch word {
	case "protocol":
		r.Protocol = storage.Protocol(argument)
	case "provider":
		r.Provider = storage.Provider(argument)
	case "public", "refresh_scope", "independent_tokens", "requires_auth":
		on, err := onOff(word, argument)
		if err != nil {
			return err
		}
		switch word {
		case "public":
			r.Public = on
		case "refresh_scope":
			r.RefreshScope = on
		case "independent_tokens":
			r.IndependentTokens = on
		default:
			r.RequiresAuth = &on
		}
	default:
		return fmt.Errorf("unrecognized word %q in directory; known are %s", word, strings.Join(words, ", "))
	}
	return nil
}

var words = []string{
	"url", "description", "icon", "slug", "protocol", "provider", "auth_params", "scopes", "issuer", "authorization_endpoint",
	"token_endpoint", "registration_endpoint", "revocation_endpoint", "resource",
	"token_endpoint_auth_method", "authorization_params", "refresh_scope", "independent_tokens", "trusted_ca", "audience", "requested_token_type", "subject_token_type", "assertion_file", "public", "requires_auth", "categories", "events_url",
}

func (r *Record) list(word string) *[]string {
	return map[string]*[]string{"scopes": &r.Scopes, "categories": &r.Categories}[word]
}

func (r *Record) text(word string) *string {
	return map[string]*string{
		"url": &r.URL, "description": &r.Description, "icon": &r.Icon, "slug": &r.Slug, "events_url": &r.EventsURL,
		"issuer": &r.OAuth.Issuer, "authorization_endpoint": &r.OAuth.AuthorizationEndpoint, "token_endpoint": &r.OAuth.TokenEndpoint,
		"registration_endpoint": &r.OAuth.RegistrationEndpoint, "revocation_endpoint": &r.OAuth.RevocationEndpoint, "resource": &r.Resource,
		"token_endpoint_auth_method": &r.AuthMethod, "trusted_ca": &r.TrustedCA,
		"audience": &r.Audience, "requested_token_type": &r.RequestedTokenType, "subject_token_type": &r.SubjectTokenType,
		"assertion_file": &r.AssertionFile,
	}[word]
}

// setAuthParams reads `auth_params header|query NAME [PREFIX]`.
func (r *Record) setAuthParams(arguments []string) error {
	if len(arguments) < 2 || len(arguments) > 3 || !slices.Contains([]string{InHeader, InQuery}, arguments[0]) {
		return fmt.Errorf("auth_params takes `header NAME [PREFIX]` or `query NAME`")
	}
	r.AuthParams = storage.AuthParams{In: arguments[0], Name: arguments[1]}
	if len(arguments) == 3 {
		r.AuthParams.Prefix = arguments[2]
	}
	return nil
}

// setAuthorizationParams reads `authorization_params NAME=VALUE...`.
func (r *Record) setAuthorizationParams(arguments []string) error {
	r.AuthorizationParams = make(map[string]string, len(arguments))
	for _, argument := range arguments {
		name, value, ok := strings.Cut(argument, "=")
		if !ok || name == "" {
			return fmt.Errorf("authorization_params takes NAME=VALUE, not %q", argument)
		}
		if _, twice := r.AuthorizationParams[name]; twice {
			return fmt.Errorf("authorization_params: %s may be given once", name)
		}
		r.AuthorizationParams[name] = value
	}
	return nil
}

func onOff(word, argument string) (bool, error) {
	switch argument {
	case "on":
		return true, nil
	case "off":
		return false, nil
	}
	return false, fmt.Errorf("%s is on or off, not %q", word, argument)
}
