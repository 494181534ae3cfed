package scim

import (
	"encoding/json"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/durward-gateway/durward/storage"
)

// maxPage is the greatest number of resources of a page, and how many there are without a count.
const maxPage = 200

// Query holds the parameters of a request but for its filter.
type Query struct {
	// Skip is the number of resources before the page, Limit the greatest number in it; 0 only counts.
	Skip, Limit int
	fields      map[string]bool // nil: all
	without     map[string]bool
}

// ReadQuery reads the parameters of a request. It ignores the others: Entra ID's flags are among them.
func ReadQuery(q url.Values) (Query, error) {
	read := Query{Limit: maxPage, without: list(q.Get("excludedAttributes"))}
	if q.Get("attributes") != "" {
		read.fields = list(q.Get("attributes"))
	}
	for name, take := range map[string]func(int){
		"startIndex": func(n int) { read.Skip = max(n-1, 0) }, // counted from 1, and a smaller one is 1
		"count":      func(n int) { read.Limit = max(n, 0) },  // a negative one is 0 (RFC 7644 section 3.4.2.4)
	} {
		if text := q.Get(name); text != "" {
			n, err := strconv.Atoi(text)
			if err != nil {
				return Query{}, wrong(TypeInvalidValue, "%s has to be a number", name)
			}
			take(n)
		}
	}
	read.Limit = min(read.Limit, maxPage)
	return read, nil
}

func list(text string) map[string]bool {
	names := make(map[string]bool)
	for word := range strings.SplitSeq(text, ",") {
		if name, _ := attribute(strings.TrimSpace(word)); name != "" {
			names[name] = true
		}
	}
	return names
}

// Narrowed reports whether the request asks for some attributes only.
func (q *Query) Narrowed() bool { return q.fields != nil }

// Wants reports whether an attribute is asked for. Schemas and id always are.
func (q *Query) Wants(name string) bool {
	name = strings.ToLower(name)
	if name == "schemas" || name == "id" {
		return true
	}
	return (q.fields == nil || q.fields[name]) && !q.without[name]
}

// resource is a user or group as it is answered: its members by name, in their order.
type resource struct {
	query *Query
	names []string
	json  []json.RawMessage
}

func (r *resource) add(name string, value any) {
	if !r.query.Wants(name) {
		return
	}
	text, err := json.Marshal(value)
	if err != nil {
		panic(err) // it is made of texts, numbers and flags
	}
	r.names, r.json = append(r.names, name), append(r.json, text)
}

// addText adds a text that is not "".
func (r *resource) addText(name, value string) {
	if value != "" {
		r.add(name, value)
	}
}

func (r *resource) text() json.RawMessage {
	out := []byte{'{'}
	for i, name := range r.names {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(strconv.AppendQuote(out, name), ':')
		out = append(out, r.json[i]...)
	}
	return append(out, '}')
}

type meta struct {
	Type     string `json:"resourceType"`
	Created  string `json:"created,omitempty"`
	Modified string `json:"lastModified,omitempty"`
	Location string `json:"location"`
}

type ref struct {
	Value   string `json:"value"`
	Ref     string `json:"$ref"`
	Display string `json:"display"`
	Type    string `json:"type,omitempty"`
}

func refs(of []storage.ProvisionedRef, base, kind string) []ref {
	all := make([]ref, len(of))
	for i, r := range of {
		all[i] = ref{Value: r.ID, Ref: base + r.ID, Display: r.Name, Type: kind}
	}
	return all
}

func metaOf(kind, location string, created, updated time.Time) meta {
	return meta{kind, created.UTC().Format(time.RFC3339Nano), updated.UTC().Format(time.RFC3339Nano), location}
}

// Paths of resources below the address of SCIM.
const (
	UsersPath  = "/Users"
	GroupsPath = "/Groups"
)

// UserResource returns a user as they are answered. base is the address of SCIM.
func UserResource(r *storage.ProvisionedUser, base string, q *Query) (json.RawMessage, error) {
	u, err := StoredUser(r)
	if err != nil {
		return nil, err
	}
	out := resource{query: q}
	out.add("schemas", []string{SchemaUser})
	out.add("id", r.ID)
	out.addText("externalId", u.ExternalID)
	out.add("userName", u.UserName)
	if u.Name != (Name{}) {
		out.add("name", u.Name)
	}
	out.addText("displayName", u.DisplayName)
	if len(u.Emails) > 0 {
		out.add("emails", u.Emails)
	}
	out.add("active", u.Active)
	out.add("groups", refs(r.Groups, base+GroupsPath+"/", "direct"))
	out.add("meta", metaOf("User", base+UsersPath+"/"+r.ID, r.CreatedAt, r.UpdatedAt))
	return out.text(), nil
}

// GroupResource returns a group as it is answered.
func GroupResource(g *storage.ProvisionedGroup, base string, q *Query) json.RawMessage {
	out := resource{query: q}
	out.add("schemas", []string{SchemaGroup})
	out.add("id", g.ID)
	out.addText("externalId", g.ExternalID)
	out.add("displayName", g.Name)
	out.add("members", refs(g.Members, base+UsersPath+"/", "User"))
	out.add("meta", metaOf("Group", base+GroupsPath+"/"+g.ID, g.CreatedAt, g.UpdatedAt))
	return out.text()
}

// List returns a page of resources. total is the number of all that match, skip of those before the page.
func List(resources []json.RawMessage, total, skip int) json.RawMessage {
	text, err := json.Marshal(struct {
		Schemas   []string          `json:"schemas"`
		Total     int               `json:"totalResults"`
		Start     int               `json:"startIndex"`
		Items     int               `json:"itemsPerPage"`
		Resources []json.RawMessage `json:"Resources"`
	}{[]string{schemaList}, total, skip + 1, len(resources), append([]json.RawMessage{}, resources...)})
	if err != nil {
		panic(err) // the resources are JSON
	}
	return text
}
