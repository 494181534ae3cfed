package declare

import (
	"encoding/json"
	"slices"

	"github.com/durward-gateway/durward/internal/api/schema"
	"github.com/durward-gateway/durward/internal/api/validate"
	"github.com/durward-gateway/durward/internal/credential/directory"
	"github.com/durward-gateway/durward/internal/credential/entryedit"
	"github.com/durward-gateway/durward/internal/llm/accounts"
	"github.com/durward-gateway/durward/internal/llm/llmedit"
)

// dialect is the JSON Schema that editors know as the one of the file.
const dialect = "https://json-schema.org/draft/2020-12/schema"

// Schema returns the JSON Schema of a file. It is made by the readers of files.
func Schema(maxMeta int, models *accounts.Base) ([]byte, error) {
	whole := validate.Describe(func(o *validate.Object) {
		o.Text(organizationMember, validate.Text{Min: 1})
		list := func(name string) *validate.Object {
			return o.Objects(name, validate.List{Max: maxObjects}).Value[0]
		}
		var entry directory.Record
		readEntry(list(directoryMember), entryedit.Rules{MaxMeta: maxMeta}, &entry)
		readServer(list(serversMember), maxMeta)
		readAgent(list(agentsMember))
		readPolicy(list(policiesMember))
		readProvider(list(providersMember), models)
		readMapping(list(mappingsMember))
		readSmart(list(smartMember))
		llmedit.ReadLimit(list(limitsMember), true)
		llmedit.ReadBudget(list(budgetsMember), true)
	})
	for list, members := range secretMembers {
		of := whole.Properties[list].Items
		for _, name := range members {
			of.Properties[name] = &schema.Schema{
				Type: schema.Types{schema.String}, Pattern: `^\{(env|file)\..+\}$`, Description: "A reference to the secret: {env.NAME} or {file./path}.",
			}
		}
	}
	policy := whole.Properties[policiesMember].Items
	named := &schema.Schema{Type: schema.Types{schema.String}, MinLength: 1}
	byName(policy, "mcp_server_id", named)
	byName(policy, "application_ids", &schema.Schema{Type: schema.Types{schema.Array}, Items: named})
	byName(whole.Properties[mappingsMember].Items.Properties["targets"].Items, "provider_id", named)
	byName(whole.Properties[limitsMember].Items, "scope_id", named)
	byName(whole.Properties[budgetsMember].Items, "scope_id", named)
	delete(policy.Properties, "policies") // the reader knows it to refuse it
	text, err := json.Marshal(whole)
	if err != nil {
		return nil, err
	}
	var tree map[string]any
	if err := json.Unmarshal(text, &tree); err != nil {
		return nil, err
	}
	closed(tree)
	tree["$schema"], tree["title"] = dialect, "durward: an organization's objects"
	return json.MarshalIndent(tree, "", "  ")
}

// byName puts a member of files in the place of one of the API's.
func byName(of *schema.Schema, id string, as *schema.Schema) {
	delete(of.Properties, id)
	if i := slices.Index(of.Required, id); i >= 0 {
		of.Required[i] = written[id]
	}
	of.Properties[written[id]] = as
}

// closed says of every object whose members are known that it has no others.
func closed(of any) {
	switch of := of.(type) {
	case map[string]any:
		if _, known := of["properties"].(map[string]any); known && of["additionalProperties"] == nil {
			of["additionalProperties"] = false
		}
		for _, inner := range of {
			closed(inner)
		}
	case []any:
		for _, inner := range of {
			closed(inner)
		}
	}
}
