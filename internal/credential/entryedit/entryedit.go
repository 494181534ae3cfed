// Package entryedit reads what administrators write about entries of the server directory. It asks no store.
package entryedit

import (
	"errors"
	"fmt"
	"net/url"

	"github.com/durward-gateway/durward/internal/api/validate"
	"github.com/durward-gateway/durward/internal/credential/directory"
	"github.com/durward-gateway/durward/internal/credential/serveredit"
	"github.com/durward-gateway/durward/storage"
)

// Rules are a gateway's own rules for entries.
type Rules struct {
	MaxMeta  int                      // bytes of an entry's meta
	CheckURL func(u *url.URL) error   // the reason why calls may not go to an address
	Provider func(issuer string) bool // whether it is one of the gateway's identity providers
}

// RecordOf returns an entry in the form in which an administrator would have written it.
func RecordOf(e storage.DirectoryEntry) directory.Record {
	return directory.Record{
		Name: e.Name, Description: e.Description, Icon: e.Icon, Slug: e.Slug, URL: e.URL, Protocol: e.Protocol, Provider: e.Provider,
		AuthParams: e.AuthParams, Scopes: e.Scopes, OAuth: e.OAuth, Public: e.Public, RequiresAuth: &e.RequiresAuth,
		Categories: e.Categories, EventsURL: e.EventsURL, Meta: e.Meta,
		AuthMethod: e.Options.AuthMethod, AuthorizationParams: e.Options.AuthorizationParams, RefreshScope: e.Options.RefreshScope, IndependentTokens: e.Options.IndependentTokens, TrustedCA: e.Options.TrustedCA,
		Resource: ResourceOff(e), Audience: e.Options.Audience, RequestedTokenType: e.Options.RequestedTokenType, SubjectTokenType: e.Options.SubjectTokenType,
	}
}

// ResourceOff returns an entry's resource unless it is a URI: a URI is kept with the endpoints.
func ResourceOff(e storage.DirectoryEntry) string {
	if e.Options.ResourceOff {
		return directory.Off
	}
	return ""
}

// New reads a body that describes a whole entry.
func (r Rules) New(record *directory.Record) func(*validate.Object) {
	return func(o *validate.Object) {
		r.fields(o, validate.Required, record)
		r.check(o, *record)
	}
}

// Changed reads a body that changes an entry into record, which holds the members of former: those that are
// not in the body keep their value, and lose it when it followed from another one that changed. Without a former entry
// only the members themselves are judged.
func (r Rules) Changed(record *directory.Record, former storage.DirectoryEntry) func(*validate.Object) {
	return func(o *validate.Object) {
		r.fields(o, 0, record)
		if former.ID != "" {
			CheckKept(o, *record, former)
			resetDerived(o, record, former)
			r.check(o, *record)
		}
	}
}

func (r Rules) fields(o *validate.Object, required validate.Flags, record *directory.Record) {
	set(&record.Name, o.Text("name", validate.Text{Flags: required}))
	set(&record.URL, o.Text("url", validate.Text{Flags: required}))
	for _, member := range []struct {
		name string
		to   *string
	}{{"description", &record.Description}, {"icon", &record.Icon}, {"events_url", &record.EventsURL}} {
		set(member.to, o.Text(member.name, validate.Text{}))
	}
	set(&record.Slug, serveredit.Slug(o, 0))
	set((*string)(&record.Protocol), o.Text("protocol", validate.Text{Enum: []string{string(storage.ProtocolMCP), string(storage.ProtocolSSE)}}))
	set((*string)(&record.Provider), o.Text("provider", validate.Text{Enum: storage.Providers()}))
	authParams(o, record)
	endpoints(o, record)
	r.options(o, record)
	set(&record.Scopes, o.Texts("scopes", validate.List{}, validate.Text{}))
	set(&record.Categories, o.Texts("categories", validate.List{}, validate.Text{}))
	set(&record.Public, o.Bool("public", 0))
	if requires := o.Bool("requires_auth", 0); requires.Set() {
		record.RequiresAuth = &requires.Value
	}
	set(&record.Meta, o.Document("meta", 0, r.MaxMeta))
}

func (r Rules) options(o *validate.Object, record *directory.Record) {
	within := record.OAuth.Resource
	set(&record.Resource, o.Text("resource", validate.Text{}))
	switch record.Resource {
	case "", directory.Off:
	case directory.Auto:
		if !o.Has("oauth") {
			record.OAuth.Resource = "" // the former URI
		}
	default:
		if o.Has("oauth") && within != "" && within != record.Resource {
			o.Report(validate.ValueError, "Value error, oauth.resource is another one", "resource")
		}
	}
	set(&record.AuthMethod, o.Text("token_endpoint_auth_method", validate.Text{}))
	if params := o.Object("authorization_params", 0); params.Set() && params.Value != nil {
		record.AuthorizationParams = make(map[string]string)
		for _, m := range o.Value("authorization_params", 0).Value.Members() {
			record.AuthorizationParams[m.Name] = params.Value.Text(m.Name, validate.Text{}).Value
		}
	}
	set(&record.RefreshScope, o.Bool("refresh_scope", 0))
	set(&record.IndependentTokens, o.Bool("independent_tokens", 0))
	set(&record.Audience, o.Text("audience", validate.Text{}))
	set(&record.RequestedTokenType, o.Text("requested_token_type", validate.Text{}))
	set(&record.SubjectTokenType, o.Text("subject_token_type", validate.Text{}))
	if o.Has("assertion_file") { // no member of the API's, but one of the configuration's: whoever writes it should learn that
		o.Report(validate.ValueError, "Value error, only the gateway's configuration may name a file", "assertion_file")
	}
	set(&record.TrustedCA, o.Text("trusted_ca", validate.Text{Max: directory.MaxTrustedCA}))
}

// CheckKept refuses a change after which the client secrets of an entry's servers would go to another party than the one that
// they were given for.
func CheckKept(o *validate.Object, record directory.Record, former storage.DirectoryEntry) {
	const another = "Value error, the OAuth clients of its servers would go to somebody else; create another entry"
	now := record.Entry(storage.SourceCustom)
	switch {
	case now.Provider != former.Provider && (now.Provider.Obtained() || former.Provider.Obtained()):
		o.Report(validate.ValueError, another, "provider")
	case now.Asserts() != former.Asserts():
		o.Report(validate.ValueError, another, "requested_token_type")
	}
}

func set[T any](to *T, field validate.Field[T]) {
	if field.Set() {
		*to = field.Value
	}
}

func authParams(o *validate.Object, record *directory.Record) {
	field := o.Object("auth_params", 0)
	if !field.Set() || field.Value == nil {
		return
	}
	p := field.Value
	record.AuthParams = storage.AuthParams{
		In: p.Text("in", validate.Text{}).Value, Name: p.Text("name", validate.Text{}).Value, Prefix: p.Text("prefix", validate.Text{}).Value,
	}
}

func endpoints(o *validate.Object, record *directory.Record) {
	field := o.Object("oauth", 0)
	if !field.Set() || field.Value == nil {
		return
	}
	text := func(name string) string { return field.Value.Text(name, validate.Text{}).Value }
	record.OAuth = storage.OAuthEndpoints{
		Issuer: text("issuer"), AuthorizationEndpoint: text("authorization_endpoint"), TokenEndpoint: text("token_endpoint"),
		RegistrationEndpoint: text("registration_endpoint"), RevocationEndpoint: text("revocation_endpoint"), Resource: text("resource"),
	}
}

// resetDerived resets members that the request does not name to their default, when they were derived from a member
// that it changes.
func resetDerived(o *validate.Object, record *directory.Record, former storage.DirectoryEntry) {
	if record.Provider != former.Provider {
		if !o.Has("auth_params") {
			record.AuthParams = storage.AuthParams{}
		}
		if !o.Has("requires_auth") {
			record.RequiresAuth = nil
		}
	}
	if !o.Has("events_url") && former.Protocol == storage.ProtocolSSE && former.EventsURL == former.URL {
		record.EventsURL = ""
	}
}

// check adds the problems of the entry as a whole, except for members that have problems of their own.
func (r Rules) check(o *validate.Object, record directory.Record) {
	wrong := make(map[string]bool)
	var known validate.Problems
	if errors.As(o.Err(), &known) {
		for _, problem := range known {
			wrong[member(problem.Loc[1:])] = true
		}
	}
	if record.Slug == "" {
		// The automatic slug gets a suffix when it is reserved or taken.
		wrong["slug"] = true
	}
	if exchanges(&record) && record.OAuth.Issuer != "" && !r.Provider(record.OAuth.Issuer) && !wrong[member([]any{"oauth", "issuer"})] {
		o.Report(validate.ValueError, "Value error, not one of the gateway's identity providers, exactly as in their tokens: users' tokens go to nobody else", "oauth", "issuer")
	}
	for _, problem := range directory.Check(record.Entry(storage.SourceCustom), r.CheckURL) {
		if !wrong[member(problem.Loc)] && !wrong[member(problem.Loc[:1])] {
			o.Report(problem.Type, problem.Msg, problem.Loc...)
		}
	}
}

// exchanges reports whether the issuer of a record is the identity provider that exchanges users' proofs.
func exchanges(record *directory.Record) bool {
	return record.Provider == storage.ProviderTokenExchange && record.RequestedTokenType != storage.TokenIdentityAssertion
}

// member returns the place of a problem as a key. All elements of a list count as one: elements of a wrong type are
// left out of the record, so that the indexes of the others change.
func member(loc []any) string {
	if len(loc) > 1 {
		if _, index := loc[1].(int); index {
			loc = loc[:1]
		}
	}
	return fmt.Sprint(loc...)
}
