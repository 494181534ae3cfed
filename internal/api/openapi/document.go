// Package openapi writes the API's description in OpenAPI 3.1, from the operations that the route tables declare.
package openapi

import (
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/durward-gateway/durward/internal/api/schema"
	"github.com/durward-gateway/durward/internal/api/validate"
)

// Operation describes one operation of the API.
type Operation struct {
	// ID names the operation, such as listServers.
	ID, Method, Path, Summary string
	// Tag is the group of operations to which it belongs.
	Tag Tag
	// Role is the role that a caller needs. Public reports that none is needed, and no token.
	Role   string
	Public bool
	// Query lists the parameters behind the path. Parameters of the path are in braces there.
	Query []validate.Parameter
	// Body describes the request's body, nil when it has none. BodyOptional reports that it may be left out.
	Body         *schema.Schema
	BodyOptional bool
	// Status is the status of the answer, Media its type. Answer is the Go type whose JSON it is; it is nil for no body,
	// and for one in another format.
	Status int
	Media  string
	Answer reflect.Type
	// Other is another type in which the same answer can be had, by Accept; "" for none.
	Other string
	// ShapeStatus is the status with which a request of the wrong shape is refused.
	ShapeStatus int
}

// Document is an OpenAPI document.
type Document struct {
	OpenAPI    string                           `json:"openapi"`
	Info       Info                             `json:"info"`
	Servers    []Server                         `json:"servers"`
	Tags       []Tag                            `json:"tags"`
	Paths      map[string]map[string]*operation `json:"paths"`
	Components components                       `json:"components"`
	Security   []map[string][]string            `json:"security"`
}

// Info is the head of a document.
type Info struct {
	Title       string  `json:"title"`
	Version     string  `json:"version"`
	Description string  `json:"description,omitempty"`
	License     License `json:"license"`
}

// License is the license of the API.
type License struct {
	Name       string `json:"name"`
	Identifier string `json:"identifier"` // SPDX
}

// Server is an address at which the API is served.
type Server struct {
	URL string `json:"url"`
}

// Tag is a group of operations.
type Tag struct {
	Name        string `json:"name"`
	Description string `json:"description"`
}

type operation struct {
	ID          string                `json:"operationId"`
	Summary     string                `json:"summary"`
	Description string                `json:"description,omitempty"`
	Tags        []string              `json:"tags"`
	Security    []map[string][]string `json:"security,omitzero"`
	Parameters  []parameter           `json:"parameters,omitempty"`
	Body        *requestBody          `json:"requestBody,omitempty"`
	Responses   map[string]*response  `json:"responses"`
}

type parameter struct {
	Name     string         `json:"name"`
	In       string         `json:"in"`
	Required bool           `json:"required,omitempty"`
	Schema   *schema.Schema `json:"schema"`
	// Lists are joined by commas, or repeated.
	Style   string `json:"style,omitempty"`
	Explode *bool  `json:"explode,omitempty"`
}

type requestBody struct {
	Required bool             `json:"required,omitempty"`
	Content  map[string]media `json:"content"`
}

type media struct {
	Schema *schema.Schema `json:"schema"`
}

type response struct {
	Ref         string           `json:"$ref,omitempty"`
	Description string           `json:"description,omitempty"`
	Content     map[string]media `json:"content,omitempty"`
}

type components struct {
	Schemas         map[string]*schema.Schema `json:"schemas"`
	Responses       map[string]*response      `json:"responses"`
	SecuritySchemes map[string]securityScheme `json:"securitySchemes"`
}

type securityScheme struct {
	Type        string `json:"type"`
	Scheme      string `json:"scheme"`
	Description string `json:"description"`
}

const (
	jsonMedia    = "application/json"
	tokenScheme  = "token"
	serviceError = "ServiceError"
	shapeError   = "ShapeError"
)

// Head holds what a document says of the API as a whole.
type Head struct {
	// URL is the address of the gateway, without a slash at its end. Version is that of the program.
	URL, Version string
	// Refusal is the type that encodes every refusal but one of a request's shape.
	Refusal reflect.Type
}

// New makes the document of operations.
func New(head Head, operations []Operation) (*Document, error) {
	types := schema.NewComponents()
	d := &Document{
		OpenAPI: "3.1.0",
		Info: Info{
			Title: "durward", Version: head.Version, License: License{Name: "Apache License 2.0", Identifier: "Apache-2.0"},
			Description: "The API of the gateway: servers, connections, agents, policies, approvals, limits, models, usage and the audit log.",
		},
		Servers: []Server{{URL: head.URL}}, Paths: make(map[string]map[string]*operation),
		Security: []map[string][]string{{tokenScheme: {}}},
		Components: components{
			Responses: map[string]*response{
				serviceError: {Description: "The request is refused, or failed.", Content: map[string]media{jsonMedia: {types.Of(head.Refusal)}}},
				shapeError:   {Description: "The request has the wrong shape. All problems are listed.", Content: map[string]media{jsonMedia: {types.Of(reflect.TypeFor[validate.Problems]())}}},
			},
			SecuritySchemes: map[string]securityScheme{tokenScheme: {Type: "http", Scheme: "bearer", Description: "An access token of the gateway, or of the identity provider."}},
		},
	}
	ids := make(map[string]bool)
	for _, o := range operations {
		if ids[o.ID] {
			return nil, fmt.Errorf("describing the API: two operations are named %s", o.ID)
		}
		ids[o.ID] = true
		d.add(o, types)
	}
	slices.SortFunc(d.Tags, func(a, b Tag) int { return strings.Compare(a.Name, b.Name) })
	d.Components.Schemas = types.Schemas
	return d, nil
}

func (d *Document) add(o Operation, types *schema.Components) {
	if !slices.Contains(d.Tags, o.Tag) {
		d.Tags = append(d.Tags, o.Tag)
	}
	out := &operation{ID: o.ID, Summary: o.Summary, Tags: []string{o.Tag.Name}, Parameters: o.parameters(), Responses: o.responses(types)}
	switch {
	case o.Public:
		out.Security = []map[string][]string{} // none
	default:
		out.Description = "Role: " + o.Role + "."
	}
	if o.Body != nil {
		out.Body = &requestBody{Required: !o.BodyOptional, Content: map[string]media{jsonMedia: {o.Body}}}
	}
	if d.Paths[o.Path] == nil {
		d.Paths[o.Path] = make(map[string]*operation)
	}
	d.Paths[o.Path][strings.ToLower(o.Method)] = out
}

func (o *Operation) parameters() []parameter {
	var all []parameter
	for segment := range strings.SplitSeq(o.Path, "/") {
		if name, found := strings.CutPrefix(segment, "{"); found {
			all = append(all, parameter{
				Name: strings.TrimSuffix(name, "}"), In: "path", Required: true,
				Schema: &schema.Schema{Type: schema.Types{schema.String}, MinLength: 1},
			})
		}
	}
	joined := false
	// Some readers ask in the order of a map.
	byName := slices.SortedFunc(slices.Values(o.Query), func(a, b validate.Parameter) int { return strings.Compare(a.Name, b.Name) })
	for _, q := range byName {
		p := parameter{Name: q.Name, In: "query", Required: q.Required, Schema: q.Schema}
		if q.Schema.Items != nil {
			p.Style, p.Explode = "form", &joined
		}
		all = append(all, p)
	}
	return all
}

// responses returns the answers of an operation. Every refusal but one of shape has the same body.
func (o *Operation) responses(types *schema.Components) map[string]*response {
	good := &response{Description: http.StatusText(o.Status)}
	switch {
	case o.Answer != nil && o.Method != http.MethodHead:
		good.Content = map[string]media{o.Media: {types.Of(o.Answer)}}
	case o.Media != "" && o.Answer == nil:
		good.Content = map[string]media{o.Media: {&schema.Schema{Type: schema.Types{schema.String}}}}
	}
	if o.Other != "" {
		good.Content[o.Other] = media{&schema.Schema{Type: schema.Types{schema.String}}}
	}
	refused := &response{Ref: "#/components/responses/" + serviceError}
	all := map[string]*response{strconv.Itoa(o.Status): good, "default": refused, "4XX": refused}
	if o.ShapeStatus == http.StatusUnprocessableEntity {
		all["422"] = &response{Ref: "#/components/responses/" + shapeError}
	}
	return all
}

// JSON returns the document's text.
func (d *Document) JSON() ([]byte, error) { return json.MarshalIndent(d, "", "  ") }
