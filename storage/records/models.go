package records

import (
	"context"
	"fmt"
	"slices"

	"github.com/durward-gateway/durward/storage"
)

const (
	mappingColumns   = `id, organization_id, created_at, alias, description, targets, fallbacks, max_output_tokens, updated_at`
	mappingSelect    = `SELECT ` + mappingColumns + ` FROM model_mappings`
	mappingSQL       = mappingSelect + ` WHERE organization_id = $1 AND id = $2`
	mappingsSQL      = mappingSelect + ` WHERE organization_id = $1 ORDER BY alias`
	insertMappingSQL = `INSERT INTO model_mappings (` + mappingColumns + `) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`
	updateMappingSQL = `UPDATE model_mappings SET alias = $4, description = $5, targets = $6, fallbacks = $7, max_output_tokens = $8, updated_at = $9
		WHERE organization_id = $2 AND id = $1 AND created_at = $3`
	deleteMappingSQL = `DELETE FROM model_mappings WHERE organization_id = $1 AND id = $2`

	smartColumns = `id, organization_id, created_at, alias, description, enabled, determiner_alias, slots, breakpoints,
		determiner_input_max_chars, default_slot, sticky, updated_at`
	smartSelect    = `SELECT ` + smartColumns + ` FROM smart_models`
	smartSQL       = smartSelect + ` WHERE organization_id = $1 AND id = $2`
	smartModelsSQL = smartSelect + ` WHERE organization_id = $1 ORDER BY alias`
	insertSmartSQL = `INSERT INTO smart_models (` + smartColumns + `) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)`
	updateSmartSQL = `UPDATE smart_models SET alias = $4, description = $5, enabled = $6, determiner_alias = $7, slots = $8, breakpoints = $9,
		determiner_input_max_chars = $10, default_slot = $11, sticky = $12, updated_at = $13
		WHERE organization_id = $2 AND id = $1 AND created_at = $3`
	deleteSmartSQL = `DELETE FROM smart_models WHERE organization_id = $1 AND id = $2`
)

func scanMapping(r Row) (m storage.ModelMapping, err error) {
	err = r.Scan(&m.ID, &m.OrganizationID, timeColumn{&m.CreatedAt}, &m.Alias, &m.Description, jsonColumn{&m.Targets}, jsonColumn{&m.Fallbacks},
		&m.MaxOutputTokens, timeColumn{&m.UpdatedAt})
	return m, err
}

// mappingArgs returns comparable values in the order of mappingColumns.
func mappingArgs(m storage.ModelMapping) ([]any, error) {
	models := make([]string, 0, 2*len(m.Targets))
	for _, t := range m.Targets {
		models = append(models, t.ProviderID, t.Model)
	}
	targets, err := jsonTexts(m.Targets, models...)
	if err != nil {
		return nil, fmt.Errorf("storing targets: %w", err)
	}
	fallbacks, err := jsonTexts(m.Fallbacks, m.Fallbacks...)
	if err != nil {
		return nil, fmt.Errorf("storing fallbacks: %w", err)
	}
	return []any{m.ID, m.OrganizationID, m.CreatedAt.UnixMicro(), m.Alias, m.Description, targets, fallbacks, m.MaxOutputTokens, m.UpdatedAt.UnixMicro()}, nil
}

func scanSmart(r Row) (m storage.SmartModel, err error) {
	err = r.Scan(&m.ID, &m.OrganizationID, timeColumn{&m.CreatedAt}, &m.Alias, &m.Description, flagColumn{&m.Enabled}, &m.DeterminerAlias, jsonColumn{&m.Slots},
		jsonColumn{&m.Breakpoints}, &m.DeterminerInputMaxChars, &m.DefaultSlot, flagColumn{&m.Sticky}, timeColumn{&m.UpdatedAt})
	return m, err
}

// smartArgs returns comparable values in the order of smartColumns.
func smartArgs(m storage.SmartModel) ([]any, error) {
	texts := make([]string, 0, 2*len(m.Slots))
	for _, slot := range m.Slots {
		texts = append(texts, slot.Alias, slot.Label)
	}
	slots, err := jsonTexts(m.Slots, texts...)
	if err != nil {
		return nil, fmt.Errorf("storing slots: %w", err)
	}
	return []any{m.ID, m.OrganizationID, m.CreatedAt.UnixMicro(), m.Alias, m.Description, boolean(m.Enabled), m.DeterminerAlias, slots,
		jsonText(m.Breakpoints), m.DeterminerInputMaxChars, m.DefaultSlot, boolean(m.Sticky), m.UpdatedAt.UnixMicro()}, nil
}

// ModelSet implements storage.Models.
func (s modelsStore) ModelSet(ctx context.Context, organization string) (set storage.ModelSet, err error) {
	err = s.readSnapshot(ctx, organization, func(ctx context.Context, q Querier) (err error) {
		if set.Providers, err = Many(ctx, q, scanLLMProvider, llmProvidersSQL, organization); err != nil {
			return err
		}
		if set.Mappings, err = Many(ctx, q, scanMapping, mappingsSQL, organization); err != nil {
			return err
		}
		set.Smart, err = Many(ctx, q, scanSmart, smartModelsSQL, organization)
		return err
	})
	if err != nil {
		return storage.ModelSet{}, err
	}
	return set, nil
}

// CreateModelMapping implements storage.Models.
func (s modelsStore) CreateModelMapping(ctx context.Context, configured storage.ConfiguredModels, m storage.ModelMapping) error {
	args, err := mappingArgs(m)
	if err != nil {
		return err
	}
	return s.write(ctx, m.OrganizationID, func(ctx context.Context, tx Tx) error {
		if err := checkMapping(ctx, tx, configured, storage.ModelMapping{}, m); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, insertMappingSQL, args...); err != nil {
			return err
		}
		if err := takeAlias(ctx, tx, insertAliasSQL, configured, m.OrganizationID, m.Alias, m.ID, false); err != nil {
			return err
		}
		if err := refer(ctx, tx, m.OrganizationID, m.ID, mappingReferences(m)); err != nil {
			return err
		}
		_, err := tx.Change(ctx, m.OrganizationID)
		return err
	})
}

// ModelMapping implements storage.Models.
func (s modelsStore) ModelMapping(ctx context.Context, organization, id string) (m storage.ModelMapping, err error) {
	err = s.read(ctx, organization, func(ctx context.Context, q Querier) (err error) {
		m, err = One(ctx, q, scanMapping, mappingSQL, organization, id)
		return err
	})
	return m, err
}

// UpdateModelMapping implements storage.Models.
func (s modelsStore) UpdateModelMapping(ctx context.Context, configured storage.ConfiguredModels, organization, id string,
	edit func(*storage.ModelMapping) error,
) (m storage.ModelMapping, err error) {
	err = s.write(ctx, organization, func(ctx context.Context, tx Tx) error {
		former, err := One(ctx, tx, scanMapping, mappingSQL, organization, id)
		if err != nil {
			return err
		}
		before, err := mappingArgs(former)
		if err != nil {
			return err
		}
		m = former
		m.Targets, m.Fallbacks = slices.Clone(m.Targets), slices.Clone(m.Fallbacks)
		if err := tx.Edit(func() error { return edit(&m) }); err != nil {
			return err
		}
		m.ID, m.OrganizationID, m.CreatedAt, m.UpdatedAt = former.ID, former.OrganizationID, former.CreatedAt, micros(m.UpdatedAt)
		args, err := mappingArgs(m)
		if err != nil || slices.Equal(args, before) {
			return err
		}
		if err := checkMapping(ctx, tx, configured, former, m); err != nil {
			return err
		}
		if m.Alias != former.Alias {
			if err := checkUnused(ctx, tx, organization, aliasReference, former.Alias); err != nil {
				return err
			}
			if err := takeAlias(ctx, tx, renameAliasSQL, configured, organization, m.Alias, id, false); err != nil {
				return err
			}
		}
		if err := execOne(ctx, tx, updateMappingSQL, args...); err != nil {
			return err
		}
		if err := refer(ctx, tx, organization, id, mappingReferences(m)); err != nil {
			return err
		}
		_, err = tx.Change(ctx, organization)
		return err
	})
	if err != nil {
		return storage.ModelMapping{}, err
	}
	return m, nil
}

// DeleteModelMapping implements storage.Models.
func (s modelsStore) DeleteModelMapping(ctx context.Context, organization, id string) error {
	return s.write(ctx, organization, func(ctx context.Context, tx Tx) error {
		m, err := One(ctx, tx, scanMapping, mappingSQL, organization, id)
		if err != nil {
			return err
		}
		if err := checkUnused(ctx, tx, organization, aliasReference, m.Alias); err != nil {
			return err
		}
		if err := execOne(ctx, tx, deleteMappingSQL, organization, id); err != nil {
			return err
		}
		return forgetModel(ctx, tx, organization, id)
	})
}

// CreateSmartModel implements storage.Models.
func (s modelsStore) CreateSmartModel(ctx context.Context, configured storage.ConfiguredModels, m storage.SmartModel) error {
	args, err := smartArgs(m)
	if err != nil {
		return err
	}
	return s.write(ctx, m.OrganizationID, func(ctx context.Context, tx Tx) error {
		if err := checkSmart(ctx, tx, configured, storage.SmartModel{}, m); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, insertSmartSQL, args...); err != nil {
			return err
		}
		if err := takeAlias(ctx, tx, insertAliasSQL, configured, m.OrganizationID, m.Alias, m.ID, true); err != nil {
			return err
		}
		if err := refer(ctx, tx, m.OrganizationID, m.ID, smartReferences(m)); err != nil {
			return err
		}
		_, err := tx.Change(ctx, m.OrganizationID)
		return err
	})
}

// SmartModel implements storage.Models.
func (s modelsStore) SmartModel(ctx context.Context, organization, id string) (m storage.SmartModel, err error) {
	err = s.read(ctx, organization, func(ctx context.Context, q Querier) (err error) {
		m, err = One(ctx, q, scanSmart, smartSQL, organization, id)
		return err
	})
	return m, err
}

// UpdateSmartModel implements storage.Models.
func (s modelsStore) UpdateSmartModel(ctx context.Context, configured storage.ConfiguredModels, organization, id string,
	edit func(*storage.SmartModel) error,
) (m storage.SmartModel, err error) {
	err = s.write(ctx, organization, func(ctx context.Context, tx Tx) error {
		former, err := One(ctx, tx, scanSmart, smartSQL, organization, id)
		if err != nil {
			return err
		}
		before, err := smartArgs(former)
		if err != nil {
			return err
		}
		m = former
		m.Slots, m.Breakpoints = slices.Clone(m.Slots), slices.Clone(m.Breakpoints)
		if err := tx.Edit(func() error { return edit(&m) }); err != nil {
			return err
		}
		m.ID, m.OrganizationID, m.CreatedAt, m.UpdatedAt = former.ID, former.OrganizationID, former.CreatedAt, micros(m.UpdatedAt)
		args, err := smartArgs(m)
		if err != nil || slices.Equal(args, before) {
			return err
		}
		if err := checkSmart(ctx, tx, configured, former, m); err != nil {
			return err
		}
		if m.Alias != former.Alias {
			if err := takeAlias(ctx, tx, renameAliasSQL, configured, organization, m.Alias, id, true); err != nil {
				return err
			}
		}
		if err := execOne(ctx, tx, updateSmartSQL, args...); err != nil {
			return err
		}
		if err := refer(ctx, tx, organization, id, smartReferences(m)); err != nil {
			return err
		}
		_, err = tx.Change(ctx, organization)
		return err
	})
	if err != nil {
		return storage.SmartModel{}, err
	}
	return m, nil
}

// DeleteSmartModel implements storage.Models. Nothing refers to a smart model.
func (s modelsStore) DeleteSmartModel(ctx context.Context, organization, id string) error {
	return s.write(ctx, organization, func(ctx context.Context, tx Tx) error {
		if err := execOne(ctx, tx, deleteSmartSQL, organization, id); err != nil {
			return err
		}
		return forgetModel(ctx, tx, organization, id)
	})
}
