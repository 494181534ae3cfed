package records

import (
	"bytes"
	"context"
	"slices"

	"github.com/durward-gateway/durward/storage"
)

const (
	llmProviderColumns = `id, organization_id, created_at, name, name_key, kind, base_url, timeouts, no_stream_options, updated_at, sealed_secret`
	llmProviderSelect  = `SELECT id, organization_id, created_at, name, kind, base_url, timeouts, no_stream_options, updated_at, sealed_secret FROM llm_providers`
	llmProviderSQL     = llmProviderSelect + ` WHERE organization_id = $1 AND id = $2`
	llmProvidersSQL    = llmProviderSelect + ` WHERE organization_id = $1 ORDER BY name_key, id`
	insertProviderSQL  = `INSERT INTO llm_providers (` + llmProviderColumns + `) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)`
	updateProviderSQL  = `UPDATE llm_providers SET name = $4, name_key = $5, kind = $6, base_url = $7, timeouts = $8, no_stream_options = $9, updated_at = $10, sealed_secret = $11
		WHERE organization_id = $2 AND id = $1 AND created_at = $3`
	deleteProviderSQL = `DELETE FROM llm_providers WHERE organization_id = $1 AND id = $2`
)

func scanLLMProvider(r Row) (p storage.LLMProvider, err error) {
	err = r.Scan(&p.ID, &p.OrganizationID, timeColumn{&p.CreatedAt}, &p.Name, &p.Kind, &p.BaseURL, jsonColumn{&p.Timeouts}, flagColumn{&p.NoStreamOptions}, timeColumn{&p.UpdatedAt},
		&p.SealedSecret)
	return p, err
}

// llmProviderArgs returns comparable values in the order of llmProviderColumns, without the secret.
func llmProviderArgs(p storage.LLMProvider) []any {
	return []any{p.ID, p.OrganizationID, p.CreatedAt.UnixMicro(), p.Name, nameKey(p.Name), p.Kind, p.BaseURL, jsonText(p.Timeouts),
		boolean(p.NoStreamOptions), p.UpdatedAt.UnixMicro()}
}

// checkProviderName returns a ConflictError when the configuration has the name.
func checkProviderName(configured storage.ConfiguredModels, name string) error {
	for _, taken := range configured.Providers {
		if nameKey(taken) == nameKey(name) {
			return &storage.ConflictError{Field: "name"}
		}
	}
	return nil
}

// CreateLLMProvider implements storage.Models.
func (s modelsStore) CreateLLMProvider(ctx context.Context, configured storage.ConfiguredModels, p storage.LLMProvider) error {
	if _, taken := configured.Providers[p.ID]; taken {
		return &storage.ConflictError{Field: "id"}
	}
	if err := checkProviderName(configured, p.Name); err != nil {
		return err
	}
	return s.write(ctx, p.OrganizationID, func(ctx context.Context, tx Tx) error {
		if _, err := tx.Exec(ctx, insertProviderSQL, append(llmProviderArgs(p), p.SealedSecret)...); err != nil {
			return err
		}
		_, err := tx.Change(ctx, p.OrganizationID)
		return err
	})
}

// LLMProvider implements storage.Models.
func (s modelsStore) LLMProvider(ctx context.Context, organization, id string) (p storage.LLMProvider, err error) {
	err = s.read(ctx, organization, func(ctx context.Context, q Querier) (err error) {
		p, err = One(ctx, q, scanLLMProvider, llmProviderSQL, organization, id)
		return err
	})
	return p, err
}

// UpdateLLMProvider implements storage.Models.
func (s modelsStore) UpdateLLMProvider(ctx context.Context, configured storage.ConfiguredModels, organization, id string,
	edit func(*storage.LLMProvider) error,
) (p storage.LLMProvider, err error) {
	err = s.write(ctx, organization, func(ctx context.Context, tx Tx) error {
		former, err := One(ctx, tx, scanLLMProvider, llmProviderSQL, organization, id)
		if err != nil {
			return err
		}
		p = former
		p.SealedSecret = slices.Clone(p.SealedSecret)
		if err := tx.Edit(func() error { return edit(&p) }); err != nil {
			return err
		}
		p.ID, p.OrganizationID, p.CreatedAt, p.UpdatedAt = former.ID, former.OrganizationID, former.CreatedAt, micros(p.UpdatedAt)
		if slices.Equal(llmProviderArgs(former), llmProviderArgs(p)) && bytes.Equal(former.SealedSecret, p.SealedSecret) {
			return nil
		}
		if p.Name != former.Name {
			if err := checkProviderName(configured, p.Name); err != nil {
				return err
			}
		}
		if err := execOne(ctx, tx, updateProviderSQL, append(llmProviderArgs(p), p.SealedSecret)...); err != nil {
			return err
		}
		_, err = tx.Change(ctx, organization)
		return err
	})
	if err != nil {
		return storage.LLMProvider{}, err
	}
	return p, nil
}

// DeleteLLMProvider implements storage.Models.
func (s modelsStore) DeleteLLMProvider(ctx context.Context, organization, id string) error {
	return s.write(ctx, organization, func(ctx context.Context, tx Tx) error {
		if err := execOne(ctx, tx, deleteProviderSQL, organization, id); err != nil {
			return err
		}
		if err := checkUnused(ctx, tx, organization, providerReference, id); err != nil {
			return err
		}
		_, err := tx.Change(ctx, organization)
		return err
	})
}
