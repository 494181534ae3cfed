package faults

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	"github.com/durward-gateway/durward/integration/rig"
)

// kind is one sort of thing that writers write.
type kind struct {
	name string
	most int    // that a writer has of them at a time
	list string // where all of them are listed by name
	// next is the state that is asked for next.
	next func(th *thing) string
	// ask asks for it, and says whether it was acknowledged.
	ask func(w *writer, th *thing, want string) (answer, bool)
	// look reads the state through a node.
	look func(w *writer, n *node, th *thing) string
}

var kinds = []*kind{servers, policies, connections, keys, approvals}

// version returns the next state of a thing that has versions: its name and number.
func version(th *thing) string { return fmt.Sprintf("%s-v%d", th.label, th.turn+1) }

func wrote(a answer) bool { return a.err == nil && a.status/100 == 2 }

// wroteAnd does the work of wrote for writes that are answered with an id, at that path of members.
func wroteAnd(a answer, th *thing, path ...string) bool {
	if !wrote(a) {
		return false
	}
	var object any
	if json.Unmarshal(a.body, &object) != nil {
		return false
	}
	for _, member := range path {
		inner, _ := object.(members)
		object = inner[member]
	}
	th.id, _ = object.(string)
	return th.id != ""
}

// find looks for a thing whose making was not acknowledged: its name is the one that was asked for.
func find(w *writer, n *node, th *thing, path string) (twice bool) {
	var list struct {
		Data []struct{ ID, Name string }
	}
	n.read(w.client, w.token, path+"?limit=100&search="+url.QueryEscape(th.label+"-v"), &list)
	for _, one := range list.Data {
		if strings.HasPrefix(one.Name, th.label+"-v") {
			twice = th.id != ""
			th.id = one.ID
		}
	}
	return twice
}

const (
	twice = "there twice"
	half  = "half: "
)

var servers = &kind{
	name: "server", most: 6, list: "/api/servers",
	next: func(th *thing) string {
		if th.is != "" && rand.IntN(5) == 0 {
			return ""
		}
		return version(th)
	},
	ask: func(w *writer, th *thing, want string) (answer, bool) {
		path, body := "/api/servers", members{"name": want, "meta": members{"name": want, "turn": th.turn + 1}}
		switch {
		case th.is == "":
			body["mcp_server_directory_id"] = w.load.base.directory
			a := w.node.send(w.client, http.MethodPost, path+"?test=false", w.token, body)
			return a, wroteAnd(a, th, "id")
		case want == "":
			th.over = true
			a := w.node.send(w.client, http.MethodDelete, path+"/"+th.id, w.token, nil)
			return a, wrote(a)
		}
		a := w.node.send(w.client, http.MethodPut, path+"/"+th.id, w.token, body)
		return a, wrote(a)
	},
	look: func(w *writer, n *node, th *thing) string {
		if th.id == "" && find(w, n, th, "/api/servers") {
			return twice
		}
		if th.id == "" {
			return ""
		}
		var is struct {
			Name string
			Meta struct {
				Name string
				Turn int
			}
		}
		if !n.lookUp(w, "/api/servers/"+th.id, &is) {
			return ""
		}
		if is.Name != is.Meta.Name || is.Name != fmt.Sprintf("%s-v%d", th.label, is.Meta.Turn) {
			return fmt.Sprintf("%s%+v", half, is)
		}
		return is.Name
	},
}

// policies have a revision that counts every write: one that ran twice shows.
var policies = &kind{
	name: "policy", most: 6, list: "/api/v2/policies",
	next: version,
	ask: func(w *writer, th *thing, want string) (answer, bool) {
		body := members{"name": want, "description": want, "rules": []any{
			members{"name": want, "authorized": true, "actions": []string{"tools/call:" + want}},
			members{"name": want + "-not", "authorized": false, "actions": []string{"tools/call:" + want + "-not"}},
		}}
		if th.is == "" {
			body["mcp_server_id"], body["status"] = w.load.base.id, "DRAFT" // only one can be active on a server
			a := w.node.send(w.client, http.MethodPost, "/api/v2/policies", w.token, body)
			return a, wroteAnd(a, th, "policy", "id")
		}
		a := w.node.send(w.client, http.MethodPatch, "/api/v2/policies/"+th.id, w.token, body)
		return a, wrote(a)
	},
	look: func(w *writer, n *node, th *thing) string {
		if th.id == "" && find(w, n, th, "/api/v2/policies") {
			return twice
		}
		if th.id == "" {
			return ""
		}
		var is struct {
			Policy struct {
				Name, Description string
				Revision          int
				Rules             []struct{ Name string }
			}
		}
		if !n.lookUp(w, "/api/v2/policies/"+th.id, &is) {
			return ""
		}
		p := is.Policy
		if p.Name != p.Description || len(p.Rules) != 2 || p.Rules[0].Name != p.Name || p.Rules[1].Name != p.Name+"-not" ||
			p.Name != fmt.Sprintf("%s-v%d", th.label, p.Revision) {
			return fmt.Sprintf("%s%+v", half, p)
		}
		return p.Name
	},
}

// connections are a writer's to the locked servers: their state is the credential.
var connections = &kind{
	name: "connection",
	next: func(th *thing) string {
		if th.is != "" && rand.IntN(4) == 0 {
			return ""
		}
		return version(th)
	},
	ask: func(w *writer, th *thing, want string) (answer, bool) {
		path := "/api/servers/" + th.id
		if want == "" {
			a := w.node.send(w.client, http.MethodDelete, path+"/connection", w.token, nil)
			return a, wrote(a)
		}
		a := w.node.send(w.client, http.MethodPost, path+"/connect", w.token, members{"bearer_token": want})
		return a, wrote(a)
	},
	look: func(w *writer, n *node, th *thing) (is string) {
		var locked server
		for _, s := range w.load.locked {
			if s.id == th.id {
				locked = s
			}
		}
		// Another node may know the last credential for a moment yet; how long, the tests of clusters say.
		eventually(w.load.site.t, "the credential of "+th.label+" to be one that the journal has", func() bool {
			is = credential(n.call(w.client, w.token, locked, "look"))
			if is == th.is {
				return true
			}
			for _, try := range th.tries {
				if is == try {
					return true
				}
			}
			return false
		})
		return is
	},
}

var credentialText = regexp.MustCompile(`"credential ([^"]*)"`)

// credential returns the credential with which a call was made; "": none.
func credential(a answer) string {
	if rig.LeadsToConnect(a.status, a.body) {
		return ""
	}
	found := credentialText.FindSubmatch(a.body)
	if found == nil {
		return fmt.Sprint("no credential: ", a)
	}
	return string(found[1])
}

var keys = &kind{
	name: "key", most: 20,
	next: func(th *thing) string {
		if th.is != "" {
			return ""
		}
		return "live"
	},
	ask: func(w *writer, th *thing, want string) (answer, bool) {
		const path = "/api/llm-gateway/user/api-keys"
		if want == "" {
			a := w.node.send(w.client, http.MethodDelete, path+"/"+th.id, w.token, nil)
			th.over = true
			return a, wrote(a)
		}
		a := w.node.send(w.client, http.MethodPost, path, w.approver, members{"name": th.label, "scopes": []string{"mcp"}})
		return a, wroteAnd(a, th, "id")
	},
	look: func(w *writer, n *node, th *thing) string {
		var list []struct {
			ID, Name string
			Revoked  *string `json:"revoked_at"`
		}
		n.read(w.client, w.token, "/api/llm-gateway/user/api-keys", &list)
		is := ""
		for _, one := range list {
			if one.Name != th.label || one.Revoked != nil {
				continue
			}
			if is != "" {
				return twice
			}
			is, th.id = "live", one.ID
		}
		return is
	},
}

// approvals are calls that are held, decided on, and run once.
var approvals = &kind{
	name: "approval", most: 4,
	next: func(th *thing) string {
		switch {
		case th.is == "":
			return "pending"
		case th.is == "approved":
			return "used"
		case rand.IntN(4) == 0:
			return "denied"
		}
		return "approved"
	},
	ask: func(w *writer, th *thing, want string) (answer, bool) {
		decide := map[string]string{"approved": "approve", "denied": "deny"}[want]
		if decide != "" {
			th.over = want == "denied"
			a := w.node.send(w.client, http.MethodPost, "/api/approvals/"+th.id+"/"+decide, w.approver, nil)
			return a, wrote(a)
		}
		a := w.asks(th)
		if want == "used" {
			th.over = true
			return a, a.passed()
		}
		found := approvalPage.FindSubmatch(a.body)
		if a.status != http.StatusOK || found == nil {
			return a, false
		}
		th.id = string(found[1])
		return a, true
	},
	look: func(w *writer, n *node, th *thing) string {
		is := approvalState(w, n, th)
		acknowledged := th.is == "used" && !th.found // otherwise it was cut off before it ran, or after
		ran := w.load.site.upstream.ran("echo" + th.arguments())
		if ran > 1 || acknowledged && ran != 1 || is != "used" && ran != 0 {
			return fmt.Sprintf("%s, and the call ran %d times", is, ran)
		}
		return is
	},
}

var approvalPage = regexp.MustCompile(`/approvals/([0-9a-f-]{36})`)

func (th *thing) arguments() string { return fmt.Sprintf(`{"label":%q}`, th.label) }

// asks makes the call that needs its user's approval.
func (w *writer) asks(th *thing) answer {
	body := `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"echo","arguments":` + th.arguments() + `,"_meta":{` +
		`"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`
	return w.node.send(w.client, http.MethodPost, "/mcp/"+w.load.asking.slug, th.caller, body, "Accept", "application/json, text/event-stream",
		"MCP-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/call", "Mcp-Name", "echo")
}

func approvalState(w *writer, n *node, th *thing) string {
	type approval struct {
		ID, Status string
		Arguments  struct{ Label string }
	}
	if th.id == "" {
		var list struct{ Data []approval }
		n.read(w.client, w.approver, "/api/approvals?limit=100", &list)
		for _, one := range list.Data {
			if one.Arguments.Label != th.label {
				continue
			}
			if th.id != "" {
				return twice
			}
			th.id = one.ID
		}
	}
	var is approval
	if th.id == "" || !n.lookUp(w, "/api/approvals/"+th.id, &is) {
		return ""
	}
	return is.Status
}

// lookUp reads an object; false: it is not there.
func (n *node) lookUp(w *writer, path string, target any) bool {
	n.site.t.Helper()
	a := n.send(w.client, http.MethodGet, path, w.token, nil)
	if a.status == http.StatusNotFound {
		return false
	}
	if a.status != http.StatusOK {
		n.site.t.Errorf("%s: %s: %v", n.name, path, a)
		return false
	}
	if err := json.Unmarshal(a.body, target); err != nil {
		n.site.t.Errorf("%s: %s: %v", n.name, path, err)
	}
	return true
}
