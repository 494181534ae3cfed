package storage

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"time"
	"unicode/utf8"
)

// policyText is the form in which revisions keep a policy.
type policyText struct {
	ID             string       `json:"id"`
	OrganizationID string       `json:"organization_id"`
	Name           string       `json:"name"`
	Description    string       `json:"description"`
	SupportContact string       `json:"support_contact"`
	Tags           []string     `json:"tags"`
	Status         PolicyStatus `json:"status"`
	ServerID       string       `json:"mcp_server_id"`
	ApplicationIDs []string     `json:"application_ids"`
	Rules          []ruleText   `json:"rules"`
	Shadow         bool         `json:"shadow"`
	Revision       int          `json:"revision"`
	CreatedAt      time.Time    `json:"created_at"`
	UpdatedAt      time.Time    `json:"updated_at"`
	CreatedBy      string       `json:"created_by"`
	UpdatedBy      string       `json:"updated_by"`
}

// ruleText keeps the condition's text byte for byte: as embedded JSON it would lose its blanks.
type ruleText struct {
	Rule
	Condition string `json:"condition,omitempty"`
}

// EncodeRules writes rules as the JSON text that drivers store. DecodeRules reads the same rules back. An error means
// text that is not UTF-8, which JSON cannot hold.
func EncodeRules(rules []Rule) (string, error) {
	if err := checkText(Policy{Rules: rules}); err != nil {
		return "", err
	}
	return plainJSON(textOfRules(rules))
}

// DecodeRules reads a result of EncodeRules.
func DecodeRules(text string) ([]Rule, error) {
	var rules []ruleText
	if err := json.Unmarshal([]byte(text), &rules); err != nil {
		return nil, fmt.Errorf("decoding rules: %w", err)
	}
	return rulesOfText(rules), nil
}

// EncodePolicy writes a policy as the JSON text that drivers store with a revision. DecodePolicy reads the same
// policy back, with its times in UTC. Errors are those of EncodeRules.
func EncodePolicy(p Policy) (string, error) {
	if err := checkText(p); err != nil {
		return "", err
	}
	return plainJSON(policyText{ID: p.ID, OrganizationID: p.OrganizationID, Name: p.Name, Description: p.Description,
		SupportContact: p.SupportContact, Tags: p.Tags, Status: p.Status, ServerID: p.ServerID, ApplicationIDs: p.ApplicationIDs,
		Rules: textOfRules(p.Rules), Shadow: p.Shadow, Revision: p.Revision, CreatedAt: p.CreatedAt.UTC(),
		UpdatedAt: p.UpdatedAt.UTC(), CreatedBy: p.CreatedBy, UpdatedBy: p.UpdatedBy})
}

// DecodePolicy reads a result of EncodePolicy.
func DecodePolicy(text string) (Policy, error) {
	var p policyText
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		return Policy{}, fmt.Errorf("decoding a policy: %w", err)
	}
	return Policy{ID: p.ID, OrganizationID: p.OrganizationID, Name: p.Name, Description: p.Description,
		SupportContact: p.SupportContact, Tags: p.Tags, Status: p.Status, ServerID: p.ServerID, ApplicationIDs: p.ApplicationIDs,
		Rules: rulesOfText(p.Rules), Shadow: p.Shadow, Revision: p.Revision, CreatedAt: p.CreatedAt, UpdatedAt: p.UpdatedAt,
		CreatedBy: p.CreatedBy, UpdatedBy: p.UpdatedBy}, nil
}

func textOfRules(rules []Rule) []ruleText {
	text := make([]ruleText, len(rules))
	for i, r := range rules {
		text[i] = ruleText{r, string(r.Condition)}
		text[i].Rule.Condition = nil
	}
	return text
}

func rulesOfText(text []ruleText) []Rule {
	rules := make([]Rule, len(text))
	for i, t := range text {
		rules[i] = t.Rule
		if t.Condition != "" {
			rules[i].Condition = json.RawMessage(t.Condition)
		}
	}
	return rules
}

// plainJSON writes JSON without the escapes that are meant for HTML: the text is shown to people.
func plainJSON(v any) (string, error) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		return "", fmt.Errorf("encoding: %w", err)
	}
	return string(bytes.TrimSuffix(b.Bytes(), []byte("\n"))), nil
}

var errNotText = errors.New("a policy's text is not UTF-8")

// checkText refuses text that encoding/json would silently replace: the enforced text would differ from the checked
// one.
func checkText(p Policy) error {
	texts := []string{p.ID, p.OrganizationID, p.Name, p.Description, p.SupportContact, string(p.Status), p.ServerID, p.CreatedBy, p.UpdatedBy}
	texts = append(append(texts, p.Tags...), p.ApplicationIDs...)
	for _, r := range p.Rules {
		texts = append(texts, r.Name, r.Description, string(r.Condition), string(r.Approval.Channel))
		texts = append(append(append(texts, r.Actions...), r.RolesGroups...), r.Approval.By...)
	}
	for _, text := range texts {
		if !utf8.ValidString(text) {
			return errNotText
		}
	}
	return nil
}
