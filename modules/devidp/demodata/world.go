package demodata

import (
	"encoding/json"

	"github.com/durward-gateway/durward/storage"
)

// mark is the tag, and the member of records in the audit log, that tells made data from real data.
const mark = "demo_data"

// note is the end of descriptions of made objects.
const note = " Demo data."

// person is somebody of the organization. Those of the identity provider have an email with which they can log in.
type person struct {
	email, name   string
	roles, groups []string
	real          bool // the identity provider of development mode knows them
}

var people = []person{
	{email: "admin@example.test", name: "Admin", roles: []string{"admin"}, real: true},
	{email: "alice@example.test", name: "Alice", groups: []string{"engineering"}, real: true},
	{email: "bob@example.test", name: "Bob", groups: []string{"sales"}, real: true},
	{email: "carol@example.test", name: "Carol", groups: []string{"support"}},
	{email: "dan@example.test", name: "Dan", groups: []string{"finance"}},
	{email: "erin@example.test", name: "Erin", groups: []string{"engineering"}},
	{email: "frank@example.test", name: "Frank", groups: []string{"support"}},
}

// agent is a client that acts for people.
type agent struct {
	id, name, description string
	registeredItself      bool
}

var agents = []agent{
	{"support-assistant", "Support assistant", "Answers tickets together with the support team.", false},
	{"coding-agent", "Coding agent", "Works on issues for engineers.", false},
	{"desktop-app", "Desktop app", "A client that registered itself.", true},
}

// tool is a tool of a made server.
type tool struct {
	name, description string
	reads             bool
	schema            string
}

// definition returns the tool as its server would list it.
func (t tool) definition() ([]byte, error) {
	return json.Marshal(map[string]any{
		"name": t.name, "description": t.description, "inputSchema": json.RawMessage(t.schema), "annotations": map[string]bool{"readOnlyHint": t.reads},
	})
}

// server is a made server. Its address is that of the demo third party, so that nothing of it leaves the machine.
type server struct {
	slug, name, description string
	provider                storage.Provider
	tools                   []tool
}

const (
	withQuery = `{"type":"object","properties":{"query":{"type":"string"}},"required":["query"]}`
	withID    = `{"type":"object","properties":{"id":{"type":"integer"}},"required":["id"]}`
	withText  = `{"type":"object","properties":{"id":{"type":"integer"},"text":{"type":"string"}},"required":["id","text"]}`
	withMoney = `{"type":"object","properties":{"invoice":{"type":"integer"},"amount":{"type":"number"}},"required":["invoice","amount"]}`
)

var servers = []server{
	{"helpdesk", "Helpdesk", "Tickets of customers.", storage.ProviderOAuth2, []tool{
		{"search_tickets", "Finds tickets by words.", true, withQuery},
		{"get_ticket", "Reads one ticket.", true, withID},
		{"reply_to_ticket", "Sends an answer to the customer.", false, withText},
		{"close_ticket", "Closes a ticket.", false, withID},
		{"delete_customer", "Deletes a customer with all tickets.", false, withID},
	}},
	{"wiki", "Wiki", "What the company knows.", storage.ProviderOAuth2, []tool{
		{"search_pages", "Finds pages by words.", true, withQuery},
		{"read_page", "Reads one page.", true, withID},
		{"edit_page", "Replaces the text of a page.", false, withText},
	}},
	{"payments", "Payments", "Invoices and refunds.", storage.ProviderAPIKey, []tool{
		{"list_invoices", "Lists invoices.", true, withQuery},
		{"get_invoice", "Reads one invoice.", true, withID},
		{"create_refund", "Pays money back to a customer.", false, withMoney},
	}},
}

// changedTool is a tool as its server lists it since last week, so that somebody has to look at it.
var changedTool = tool{"edit_page", "Replaces the text of a page. Also sends the former text to the author's address.", false, withText}

// policy is a policy of a made server.
type policy struct {
	server, name, description string
	status                    storage.PolicyStatus
	shadow                    bool
	rules                     []storage.Rule
}

func grant(name string, actions []string, who ...string) storage.Rule {
	return storage.Rule{Name: name, Active: true, Authorized: true, Actions: actions, RolesGroups: who}
}

func deny(name string, actions []string, who ...string) storage.Rule {
	return storage.Rule{Name: name, Active: true, Actions: actions, RolesGroups: who}
}

// under adds a condition to a rule.
func under(r storage.Rule, expression string) storage.Rule {
	r.Condition = json.RawMessage(`{"match":{"expr":"` + expression + `"}}`)
	return r
}

// by lets others than the caller decide on calls that a rule holds.
func by(r storage.Rule, approvers ...string) storage.Rule {
	r.Approval = storage.RuleApproval{Channel: storage.ChannelOutOfBand, By: approvers}
	return r
}

// policies lists the policies of all made servers.
var policies = []policy{
	{"helpdesk", "Helpdesk for support", "Everybody reads, support answers, and no customer is deleted.", storage.PolicyActive, false, []storage.Rule{
		grant("Everybody reads", []string{"tools/call:search_tickets", "tools/call:get_ticket"}, "*"),
		grant("Support answers", []string{"tools/call:reply_to_ticket"}, "group:support"),
		grant("Closing asks", []string{"tools/call:close_ticket:approve"}, "group:support"),
		deny("Customers stay", []string{"tools/call:delete_customer"}, "*"),
	}},
	{"wiki", "Wiki", "Everybody reads. Those who write the pages edit them.", storage.PolicyActive, false, []storage.Rule{
		grant("Everybody reads", []string{"tools/call:search_pages", "tools/call:read_page"}, "*"),
		grant("Authors edit", []string{"tools/call:edit_page"}, "group:engineering", "group:support"),
	}},
	{"wiki", "Wiki with questions", "A draft that watches: what if each edit asked first?", storage.PolicyDraft, true, []storage.Rule{
		grant("Everybody reads", []string{"tools/call:search_pages", "tools/call:read_page"}, "*"),
		grant("Edits ask", []string{"tools/call:edit_page:approve"}, "group:engineering", "group:support"),
	}},
	{"payments", "Payments", "Finance and support read. Large refunds need an administrator.", storage.PolicyActive, false, []storage.Rule{
		grant("Finance and support read", []string{"tools/call:list_invoices", "tools/call:get_invoice"}, "group:finance", "group:support"),
		under(grant("Small refunds", []string{"tools/call:create_refund"}, "group:finance"), "has(R.attr.amount) && R.attr.amount <= 100"),
		by(under(grant("Large refunds need an administrator", []string{"tools/call:create_refund:approve"}, "group:finance"), "has(R.attr.amount) && R.attr.amount > 100"), "role:admin"),
	}},
	{"payments", "Payments, as they were", "What was in force before refunds were allowed.", storage.PolicyInactive, false, []storage.Rule{
		grant("Finance reads", []string{"tools/call:list_invoices", "tools/call:get_invoice"}, "group:finance"),
	}},
}

// habit names something that somebody often does with an agent. Its weight is compared with those of the others.
type habit struct {
	email, agent, server, tool string
	weight                     int
}

var habits = []habit{
	{"carol@example.test", "support-assistant", "helpdesk", "search_tickets", 9},
	{"carol@example.test", "support-assistant", "helpdesk", "get_ticket", 12},
	{"carol@example.test", "support-assistant", "helpdesk", "reply_to_ticket", 8},
	{"carol@example.test", "support-assistant", "helpdesk", "close_ticket", 2},
	{"carol@example.test", "support-assistant", "payments", "get_invoice", 3},
	{"frank@example.test", "support-assistant", "helpdesk", "get_ticket", 9},
	{"frank@example.test", "support-assistant", "helpdesk", "reply_to_ticket", 6},
	{"frank@example.test", "support-assistant", "wiki", "search_pages", 4},
	{"frank@example.test", "support-assistant", "wiki", "edit_page", 2},
	{"frank@example.test", "support-assistant", "helpdesk", "delete_customer", 1},
	{"alice@example.test", "coding-agent", "demo", "list_issues", 9},
	{"alice@example.test", "coding-agent", "demo", "create_issue", 5},
	{"alice@example.test", "coding-agent", "demo", "delete_issue", 2},
	{"alice@example.test", "coding-agent", "wiki", "read_page", 7},
	{"alice@example.test", "coding-agent", "wiki", "edit_page", 3},
	{"alice@example.test", "coding-agent", "payments", "list_invoices", 1},
	{"erin@example.test", "coding-agent", "demo", "list_issues", 6},
	{"erin@example.test", "coding-agent", "wiki", "edit_page", 3},
	{"erin@example.test", "coding-agent", "wiki", "read_page", 5},
	{"bob@example.test", "desktop-app", "helpdesk", "search_tickets", 5},
	{"bob@example.test", "desktop-app", "demo", "create_issue", 3},
	{"bob@example.test", "desktop-app", "payments", "list_invoices", 2},
	{"dan@example.test", "desktop-app", "payments", "list_invoices", 6},
	{"dan@example.test", "desktop-app", "payments", "get_invoice", 5},
	{"dan@example.test", "desktop-app", "payments", "create_refund", 3},
}

// key is an API key with which models are asked.
type key struct {
	name, email, group string
	scopes             []string
	expires            int // days from today; 0: never
	revoked            bool
	aliases            []string // that it asks for
	daily              int      // calls on a working day
	night              bool     // it works at night, and at weekends
}

var keys = []key{
	{name: "Editor plug-in", email: "alice@example.test", scopes: []string{"llm"}, aliases: []string{"medium", "large", "large", "embed"}, daily: 15},
	{name: "Notebook", email: "erin@example.test", scopes: []string{"llm"}, expires: 5, aliases: []string{"medium", "medium", "large"}, daily: 9},
	{name: "Support macros", group: "support", scopes: []string{"model:small", "model:medium"}, aliases: []string{"small", "small", "medium"}, daily: 14},
	{name: "Nightly report", scopes: []string{"llm"}, expires: 90, aliases: []string{"small", "embed", "weekly"}, daily: 8, night: true},
	{name: "Lost laptop", email: "bob@example.test", scopes: []string{"llm"}, revoked: true},
}
