package wire

import "time"

// Model is one entry of a list of models.
type Model struct {
	ID      string    // the alias
	Owner   string    // owned_by of OpenAI's list
	Created time.Time // zero when not known: both APIs then show the epoch
}

// openaiModel is a model in the form of OpenAI's API.
type openaiModel struct {
	ID      string `json:"id"`
	Object  string `json:"object"`
	Created int64  `json:"created"`
	OwnedBy string `json:"owned_by"`
}

func (m Model) openai() openaiModel {
	return openaiModel{m.ID, "model", max(m.Created.Unix(), 0), m.Owner}
}

// anthropicModel is a model in the form of Anthropic's API.
type anthropicModel struct {
	Type        string `json:"type"`
	ID          string `json:"id"`
	DisplayName string `json:"display_name"`
	CreatedAt   string `json:"created_at"`
}

func (m Model) anthropic() anthropicModel {
	return anthropicModel{"model", m.ID, m.ID, time.Unix(max(m.Created.Unix(), 0), 0).UTC().Format(time.RFC3339)}
}

// ModelEntry returns OpenAI's answer to GET /models/{id}.
func ModelEntry(m Model) []byte { return encode(m.openai()) }

// ModelList returns OpenAI's answer to GET /models. The list is complete: it has no pages.
func ModelList(models []Model) []byte {
	data := make([]openaiModel, len(models))
	for i, m := range models {
		data[i] = m.openai()
	}
	return encode(struct {
		Object string        `json:"object"`
		Data   []openaiModel `json:"data"`
	}{"list", data})
}

// AnthropicModelEntry returns Anthropic's answer to GET /v1/models/{id}.
func AnthropicModelEntry(m Model) []byte { return encode(m.anthropic()) }

// AnthropicModelList returns Anthropic's answer to GET /v1/models, for clients that send anthropic-version. It is
// complete too.
func AnthropicModelList(models []Model) []byte {
	list := struct {
		Data    []anthropicModel `json:"data"`
		HasMore bool             `json:"has_more"`
		FirstID *string          `json:"first_id"`
		LastID  *string          `json:"last_id"`
	}{Data: make([]anthropicModel, len(models))}
	for i, m := range models {
		list.Data[i] = m.anthropic()
	}
	if len(models) > 0 {
		list.FirstID, list.LastID = &list.Data[0].ID, &list.Data[len(models)-1].ID
	}
	return encode(list)
}
