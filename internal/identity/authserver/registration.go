package authserver

import (
	"encoding/json"
	"mime"
	"net/http"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/durward-gateway/durward/internal/strictjson"
	"github.com/durward-gateway/durward/storage"
)

// metadata is the part of a client's metadata that matters here (RFC 7591 section 2). Unknown members are ignored, as the
// RFC demands.
type metadata struct {
	redirectURIs, grantTypes, responseTypes []string
	name, authMethod, scope                 string
}

// readMetadata reads the metadata from a JSON object.
func readMetadata(object strictjson.Value) (m metadata, err error) {
	for name, to := range map[string]*[]string{"redirect_uris": &m.redirectURIs, "grant_types": &m.grantTypes, "response_types": &m.responseTypes} {
		if *to, err = texts(object, name); err != nil {
			return m, err
		}
	}
	for name, to := range map[string]*string{"client_name": &m.name, "token_endpoint_auth_method": &m.authMethod, "scope": &m.scope} {
		v, ok := object.Get(name)
		if ok && v.Kind() != strictjson.String && v.Kind() != strictjson.Null {
			return m, Invalid("invalid_client_metadata", name+" must be a string")
		}
		*to = v.Str()
	}
	return m, nil
}

// texts reads a member that is a list of strings, or absent.
func texts(object strictjson.Value, name string) ([]string, error) {
	v, ok := object.Get(name)
	if !ok || v.Kind() == strictjson.Null {
		return nil, nil
	}
	if v.Kind() != strictjson.Array {
		return nil, Invalid("invalid_client_metadata", name+" must be a list of strings")
	}
	var list []string
	for _, element := range v.Elems() {
		if element.Kind() != strictjson.String {
			return nil, Invalid("invalid_client_metadata", name+" must be a list of strings")
		}
		list = append(list, element.Str())
	}
	return list, nil
}

// client checks the metadata and fills in defaults. Grant types that only a client of the configuration may have are
// left out, which RFC 7591 section 2 allows; a client that cannot use codes is refused.
func (m *metadata) client() (*Client, error) {
	if len(m.redirectURIs) == 0 || len(m.redirectURIs) > maxRedirects {
		return nil, Invalid("invalid_redirect_uri", "between 1 and 10 redirect_uris are needed")
	}
	if len(strings.Join(m.redirectURIs, "")) > maxRedirectTexts {
		return nil, Invalid("invalid_redirect_uri", "the redirect_uris are too long")
	}
	for _, uri := range m.redirectURIs {
		if _, ok := ParseRedirect(uri); !ok {
			return nil, Invalid("invalid_redirect_uri", "redirect_uris must be https, http to a loopback address, or of a private-use scheme such as com.example.app, without a fragment")
		}
	}
	if utf8.RuneCountInString(m.name) > maxName || strings.ContainsFunc(m.name, func(c rune) bool { return !unicode.IsPrint(c) }) {
		return nil, Invalid("invalid_client_metadata", "client_name must be at most 100 printable characters")
	}
	if len(m.responseTypes) > 0 && !slices.Contains(m.responseTypes, "code") {
		return nil, Invalid("invalid_client_metadata", "response_types must contain code")
	}
	grants := []string{GrantCode}
	if len(m.grantTypes) > 0 {
		if !slices.Contains(m.grantTypes, GrantCode) {
			return nil, Invalid("invalid_client_metadata", "grant_types must contain authorization_code")
		}
		if slices.Contains(m.grantTypes, GrantRefresh) {
			grants = append(grants, GrantRefresh)
		}
	}
	return &Client{Name: m.name, AuthMethod: m.authMethod, RedirectURIs: m.redirectURIs, GrantTypes: grants}, nil
}

// Registration is a client that asks to be registered (RFC 7591 section 3.1).
type Registration struct {
	// Client has neither an id nor a secret yet.
	Client Client
	// Scope names the scopes that the client will ask for.
	Scope string
}

// ReadRegistration reads the request of a client that registers itself.
func ReadRegistration(w http.ResponseWriter, r *http.Request) (*Registration, error) {
	if t, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || t != "application/json" {
		return nil, Invalid("invalid_client_metadata", "the body must be application/json")
	}
	body, err := ReadBody(w, r)
	if err != nil {
		return nil, err
	}
	object, err := strictjson.Parse(body, strictjson.Limits{})
	if err != nil || object.Kind() != strictjson.Object {
		return nil, Invalid("invalid_client_metadata", "the body is not a JSON object of client metadata")
	}
	m, err := readMetadata(object)
	if err != nil {
		return nil, err
	}
	if m.authMethod == "" {
		m.authMethod = AuthBasic // RFC 7591 section 2
	}
	if !slices.Contains(AuthMethods(), m.authMethod) {
		return nil, Invalid("invalid_client_metadata", "unknown token_endpoint_auth_method")
	}
	c, err := m.client()
	if err != nil {
		return nil, err
	}
	// JSON has six bytes for some characters of an address, such as &.
	if stored, err := json.Marshal(c.RedirectURIs); err != nil || len(stored)+len(c.Name) > storage.MaxClientTexts {
		return nil, Invalid("invalid_client_metadata", "the redirect_uris and client_name are too long together")
	}
	return &Registration{*c, m.scope}, nil
}

// Answer returns the answer to the registration of a client that was stored, with its secret; "" for a public client.
func (r *Registration) Answer(secret string) map[string]any {
	c := &r.Client
	answer := map[string]any{
		"client_id": c.ID, "client_id_issued_at": c.Issued.Unix(), "redirect_uris": c.RedirectURIs, "grant_types": c.GrantTypes,
		"response_types": []string{"code"}, "token_endpoint_auth_method": c.AuthMethod,
	}
	if c.Name != "" {
		answer["client_name"] = c.Name
	}
	if r.Scope != "" {
		answer["scope"] = r.Scope
	}
	if secret != "" {
		answer["client_secret"], answer["client_secret_expires_at"] = secret, 0
	}
	return answer
}
