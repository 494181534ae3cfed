package platformapi

import (
	"cmp"
	"encoding/json"

	"github.com/durward-gateway/durward/internal/api/validate"
	"github.com/durward-gateway/durward/internal/credential/directory"
	"github.com/durward-gateway/durward/internal/credential/entryedit"
	"github.com/durward-gateway/durward/internal/credential/serveredit"
	"github.com/durward-gateway/durward/internal/ops/declare"
	"github.com/durward-gateway/durward/modules/app/paths"
	"github.com/durward-gateway/durward/modules/app/routes"
	"github.com/durward-gateway/durward/storage"
)

// document returns a stored JSON object; one that was never set is empty.
func document(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 {
		return json.RawMessage("{}")
	}
	return raw
}

// serverView is the API's view of a server. It has no member for a client secret.
type serverView struct {
	ID               string                   `json:"id"`
	Name             string                   `json:"name"`
	Slug             string                   `json:"slug"`
	ConnectionStatus storage.ConnectionStatus `json:"connection_status"`
	Provider         *string                  `json:"provider"`
	URL              *string                  `json:"url"`
	Status           storage.ServerStatus     `json:"status"`
	DirectoryID      string                   `json:"mcp_server_directory_id"`
	Scopes           []string                 `json:"scopes"`
	ClientID         *string                  `json:"client_id"` // obfuscated
	ProxyURL         string                   `json:"proxy_url"`
	OrganizationID   string                   `json:"organization_id"`
	Meta             json.RawMessage          `json:"meta"`
	CreatedAt        routes.Instant           `json:"created_at"`
	UpdatedAt        routes.Instant           `json:"updated_at"`
	LastSeenAt       *routes.Instant          `json:"last_seen_at"`
	LastError        *string                  `json:"last_error"`
	ManagedByFile    bool                     `json:"managed_by_file,omitempty"` // an applied file declares it
}

func (q *request) serverView(s storage.ServerView) serverView {
	var problem *string
	if q.May(routes.Operator) { // it contains facts about the network
		problem = routes.Optional(s.LastError)
	}
	return serverView{
		ManagedByFile: q.ManagedByFile(declare.KindServer, s.ID),
		ID:            s.ID, Name: s.Name, Slug: s.Slug, ConnectionStatus: s.ConnectionStatus, Provider: routes.Optional(s.Entry.Name), URL: routes.Optional(s.Entry.URL),
		Status: s.Status, DirectoryID: s.DirectoryID, Scopes: routes.List(s.Entry.Scopes), ClientID: routes.Optional(serveredit.Obfuscated(s.ClientID)),
		ProxyURL: q.Core.PublicURL + paths.MCPPrefix + s.Slug, OrganizationID: s.OrganizationID, Meta: document(s.Meta),
		CreatedAt: routes.Instant(s.CreatedAt), UpdatedAt: routes.Instant(s.UpdatedAt),
		LastSeenAt: routes.OptionalInstant(s.LastSeenAt), LastError: problem,
	}
}

// authParamsView and endpointsView always have all members, so that a record can be read, changed and sent back.
type authParamsView struct {
	In     string `json:"in"`
	Name   string `json:"name"`
	Prefix string `json:"prefix"`
}

type endpointsView struct {
	Issuer                string `json:"issuer"`
	AuthorizationEndpoint string `json:"authorization_endpoint"`
	TokenEndpoint         string `json:"token_endpoint"`
	RegistrationEndpoint  string `json:"registration_endpoint"`
	RevocationEndpoint    string `json:"revocation_endpoint"`
	Resource              string `json:"resource"`
}

// entryView is the API's view of a directory entry.
type entryView struct {
	ID             string           `json:"id"`
	Name           string           `json:"name"`
	Description    string           `json:"description"`
	Icon           string           `json:"icon"`
	Slug           string           `json:"slug"`
	OrganizationID *string          `json:"organization_id"` // null: every organization sees it
	URL            string           `json:"url"`
	Protocol       storage.Protocol `json:"protocol"`
	Source         storage.Source   `json:"source"`
	Provider       storage.Provider `json:"provider"`
	AuthParams     authParamsView   `json:"auth_params"`
	Scopes         []string         `json:"scopes"`
	OAuth          endpointsView    `json:"oauth"`
	// resource is auto, off, or the URI that oauth has too.
	Resource            string            `json:"resource"`
	AuthMethod          string            `json:"token_endpoint_auth_method"`
	AuthorizationParams map[string]string `json:"authorization_params"`
	RefreshScope        bool              `json:"refresh_scope"`
	IndependentTokens   bool              `json:"independent_tokens"`
	TrustedCA           string            `json:"trusted_ca"`
	Audience            string            `json:"audience"`
	RequestedTokenType  string            `json:"requested_token_type"`
	SubjectTokenType    string            `json:"subject_token_type"`
	Public              bool              `json:"public"`
	RequiresAuth        bool              `json:"requires_auth"`
	Categories          []string          `json:"categories"`
	EventsURL           string            `json:"events_url"`
	Meta                json.RawMessage   `json:"meta"`
	CreatedAt           routes.Instant    `json:"created_at"`
	UpdatedAt           routes.Instant    `json:"updated_at"`
	ManagedByFile       bool              `json:"managed_by_file,omitempty"` // an applied file declares it
}

func (q *request) viewEntry(e storage.DirectoryEntry) entryView {
	return entryView{
		ManagedByFile: q.ManagedByFile(declare.KindEntry, e.ID),
		ID:            e.ID, Name: e.Name, Description: e.Description, Icon: e.Icon, Slug: e.Slug, OrganizationID: routes.Optional(e.OrganizationID),
		URL: e.URL, Protocol: e.Protocol, Source: e.Source, Provider: e.Provider, AuthParams: authParamsView(e.AuthParams),
		Scopes: routes.List(e.Scopes), OAuth: endpointsView(e.OAuth), Public: e.Public, RequiresAuth: e.RequiresAuth,
		Categories: routes.List(e.Categories), EventsURL: e.EventsURL, Meta: document(e.Meta),
		Resource: cmp.Or(entryedit.ResourceOff(e), e.OAuth.Resource, directory.Auto), AuthMethod: cmp.Or(e.Options.AuthMethod, directory.Auto),
		AuthorizationParams: params(e.Options.AuthorizationParams), RefreshScope: e.Options.RefreshScope, IndependentTokens: e.Options.IndependentTokens, TrustedCA: e.Options.TrustedCA,
		Audience: e.Options.Audience, RequestedTokenType: cmp.Or(e.Options.RequestedTokenType, directory.TokenAccess), SubjectTokenType: cmp.Or(e.Options.SubjectTokenType, directory.Auto),
		CreatedAt: routes.Instant(e.CreatedAt), UpdatedAt: routes.Instant(e.UpdatedAt),
	}
}

func params(p map[string]string) map[string]string {
	if p == nil {
		return map[string]string{}
	}
	return p
}

// pagination says where in a list a page is. The neighbours are null at the ends: clients follow next_page until it is.
type pagination struct {
	Page         int  `json:"page"`
	Limit        int  `json:"limit"`
	Total        int  `json:"total"`
	Pages        int  `json:"pages"`
	PreviousPage *int `json:"previous_page"`
	NextPage     *int `json:"next_page"`
}

type pageView[T any] struct {
	Data       []T        `json:"data"`
	Pagination pagination `json:"pagination"`
}

// viewPage shows a page. Behind the last page, the previous one is the last that there is.
func viewPage[T, V any](asked storage.PageRequest, page storage.Page[T], view func(T) V) pageView[V] {
	pages := (page.Total + asked.Limit - 1) / asked.Limit
	p := pagination{Page: asked.Number, Limit: asked.Limit, Total: page.Total, Pages: pages}
	if previous := min(asked.Number-1, pages); previous > 0 {
		p.PreviousPage = &previous
	}
	if next := asked.Number + 1; next <= pages {
		p.NextPage = &next
	}
	data := make([]V, 0, len(page.Items))
	for _, item := range page.Items {
		data = append(data, view(item))
	}
	return pageView[V]{Data: data, Pagination: p}
}

// keyedView is a page of a list that grows without bound. It has no total: to count would read the whole list.
type keyedView[T any] struct {
	Data       []T     `json:"data"`
	NextCursor *string `json:"next_cursor"` // null at the end
}

// keyed reads the place and the size of a page by key.
func (q *request) keyed() (after string, limit int) {
	after = q.Query.UUID("cursor", 0).Value
	return after, int(q.Query.Int("limit", validate.Integer{Min: 1, Max: 100}).Or(50))
}

// viewKeyed shows a page by key. One item more than limit was read: it only says that there is another page.
func viewKeyed[T, V any](items []T, limit int, key func(T) string, view func(T) V) keyedView[V] {
	out := keyedView[V]{Data: []V{}}
	if len(items) > limit {
		items = items[:limit]
		last := key(items[limit-1])
		out.NextCursor = &last
	}
	for _, item := range items {
		out.Data = append(out.Data, view(item))
	}
	return out
}
