package declare

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/durward-gateway/durward/internal/credential/directory"
	"github.com/durward-gateway/durward/internal/strictjson"
	"github.com/durward-gateway/durward/storage"
)

// written form of the objects, in the order of their members. It says everything of an object: what is left out has its
// default. Plans compare these forms, and exports consist of them.
type (
	wholeForm struct {
		Organization string             `json:"organization"`
		Directory    []directory.Record `json:"directory,omitempty"`
		Servers      []serverForm       `json:"servers,omitempty"`
		Agents       []agentForm        `json:"agents,omitempty"`
		Policies     []policyForm       `json:"policies,omitempty"`
		Providers    []providerForm     `json:"providers,omitempty"`
		Mappings     []mappingForm      `json:"model_mappings,omitempty"`
		Smart        []smartForm        `json:"smart_models,omitempty"`
		Limits       []limitForm        `json:"rate_limits,omitempty"`
		Budgets      []budgetForm       `json:"budgets,omitempty"`
	}
	serverForm struct {
		Name      string          `json:"name"`
		Slug      string          `json:"slug"`
		Directory string          `json:"directory"` // the slug of its directory entry
		ClientID  string          `json:"client_id,omitempty"`
		Secret    string          `json:"client_secret,omitempty"` // a reference
		Meta      json.RawMessage `json:"meta,omitempty"`
	}
	agentForm struct {
		Name        string                  `json:"name"`
		Issuer      string                  `json:"issuer"`
		ExternalID  string                  `json:"external_id"`
		Description string                  `json:"description,omitempty"`
		Public      bool                    `json:"public,omitempty"`
		DCR         bool                    `json:"dcr,omitempty"`
		PostLogin   bool                    `json:"post_login_success,omitempty"`
		Callbacks   []string                `json:"callbacks,omitempty"`
		Confirms    bool                    `json:"write_confirmations_required,omitempty"`
		LLMGateway  bool                    `json:"llm_gateway_enabled,omitempty"`
		Channel     storage.ApprovalChannel `json:"approval_channel,omitempty"`
	}
	policyForm struct {
		Name        string               `json:"name"`
		Server      string               `json:"server"`
		Agents      []string             `json:"agents,omitempty"`
		Status      storage.PolicyStatus `json:"status"`
		Shadow      bool                 `json:"shadow,omitempty"`
		Description string               `json:"description,omitempty"`
		Contact     string               `json:"support_contact,omitempty"`
		Tags        []string             `json:"tags,omitempty"`
		Rules       []storage.Rule       `json:"rules,omitempty"`
	}
)

func formOfServer(s storage.Server) serverForm {
	f := serverForm{Name: s.Name, Slug: s.Slug, Directory: s.Entry.Slug, ClientID: s.ClientID}
	if s.SealedClientSecret != nil {
		f.Secret = secretReference(s.Slug)
	}
	if text := strings.TrimSpace(string(s.Meta)); text != "" && text != "{}" && text != "null" {
		f.Meta = s.Meta
	}
	return f
}

// secretReference returns the reference by which an export names a server's secret, which it does not show.
func secretReference(slug string) string {
	return "{env." + strings.ToUpper(strings.ReplaceAll(slug, "-", "_")) + "_CLIENT_SECRET}"
}

func formOfAgent(a storage.Agent) agentForm {
	of := a.Application
	return agentForm{
		Name: of.Name, Issuer: of.Issuer, ExternalID: of.ExternalID, Description: of.Description, Public: of.Public, DCR: of.DCR,
		PostLogin: of.PostLoginSuccess, Callbacks: of.Callbacks, Confirms: a.WriteConfirmationsRequired, LLMGateway: a.LLMGatewayEnabled, Channel: a.ApprovalChannel,
	}
}

func (n *names) formOfPolicy(p storage.Policy) policyForm {
	f := policyForm{
		Name: p.Name, Server: n.serverOf[p.ServerID], Status: p.Status, Shadow: p.Shadow, Description: p.Description, Contact: p.SupportContact,
		Tags: p.Tags, Rules: p.Rules,
	}
	for _, id := range p.ApplicationIDs {
		f.Agents = append(f.Agents, n.agentOf[id])
	}
	return f
}

// plainJSON writes a form as JSON, with the characters that HTML knows as they are.
func plainJSON(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return b.Bytes(), err
}

// FieldChange is one member of an object before and after a change; nil where it is not written.
type FieldChange struct {
	Field  string          `json:"field"`
	Before json.RawMessage `json:"before,omitempty"`
	After  json.RawMessage `json:"after,omitempty"`
}

// differences compares two forms of the same kind, member by member.
func differences(before, after any) (changes []FieldChange, err error) {
	was, err := membersOf(before)
	if err != nil {
		return nil, err
	}
	is, err := membersOf(after)
	if err != nil {
		return nil, err
	}
	for _, m := range is {
		if former := valueOf(was, m.Name); !bytes.Equal(former, m.Value.Raw()) {
			changes = append(changes, FieldChange{m.Name, former, slices.Clone(m.Value.Raw())})
		}
	}
	for _, m := range was {
		if valueOf(is, m.Name) == nil {
			changes = append(changes, FieldChange{Field: m.Name, Before: slices.Clone(m.Value.Raw())})
		}
	}
	return changes, nil
}

func membersOf(form any) ([]strictjson.Member, error) {
	text, err := plainJSON(form)
	if err != nil {
		return nil, err
	}
	v, err := strictjson.Parse(text, strictjson.Limits{MaxBytes: 4 * MaxText})
	return v.Members(), err
}

func valueOf(members []strictjson.Member, name string) json.RawMessage {
	for _, m := range members {
		if m.Name == name {
			return slices.Clone(m.Value.Raw())
		}
	}
	return nil
}

// writeYAML writes a form as YAML, with the members in their order.
func writeYAML(form any) ([]byte, error) {
	text, err := plainJSON(form)
	if err != nil {
		return nil, err
	}
	v, err := strictjson.Parse(text, strictjson.Limits{MaxBytes: 16 * MaxText})
	if err != nil {
		return nil, fmt.Errorf("writing the objects: %w", err)
	}
	var b bytes.Buffer
	e := yaml.NewEncoder(&b)
	e.SetIndent(2)
	if err := e.Encode(nodeOf(v)); err != nil {
		return nil, fmt.Errorf("writing the objects: %w", err)
	}
	return b.Bytes(), e.Close()
}

func nodeOf(v strictjson.Value) *yaml.Node {
	switch v.Kind() {
	case strictjson.Object:
		n := &yaml.Node{Kind: yaml.MappingNode}
		for _, m := range v.Members() {
			n.Content = append(n.Content, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: m.Name}, nodeOf(m.Value))
		}
		return n
	case strictjson.Array:
		n := &yaml.Node{Kind: yaml.SequenceNode}
		for _, e := range v.Elems() {
			n.Content = append(n.Content, nodeOf(e))
		}
		return n
	case strictjson.String:
		n := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: v.Str()}
		if strings.ContainsAny(n.Value, "\n\r\u0085\u2028\u2029") {
			n.Style = yaml.DoubleQuotedStyle // a block would not keep every line end
		}
		return n
	case strictjson.Number:
		tag := "!!int"
		if strings.ContainsAny(v.Num(), ".eE") {
			tag = "!!float"
		}
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: tag, Value: v.Num()}
	case strictjson.Bool:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!bool", Value: fmt.Sprint(v.Bool())}
	}
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null", Value: "null"}
}
