package validate

import "github.com/durward-gateway/durward/internal/api/schema"

// JSONSchema implements schema.Described: problems are encoded as {"detail": [...]}.
func (Problems) JSONSchema() *schema.Schema {
	text := &schema.Schema{Type: schema.Types{schema.String}}
	problem := &schema.Schema{
		Type: schema.Types{schema.Object}, Required: []string{"loc", "msg", "type"},
		Properties: map[string]*schema.Schema{
			"loc": {Type: schema.Types{schema.Array}, Items: &schema.Schema{}, Description: "body, query or path, then names and indexes"},
			"msg": text, "type": text, "input": {}, "ctx": {Type: schema.Types{schema.Object}},
		},
	}
	return &schema.Schema{
		Type: schema.Types{schema.Object}, Required: []string{"detail"},
		Properties: map[string]*schema.Schema{"detail": {Type: schema.Types{schema.Array}, Items: problem}},
	}
}
