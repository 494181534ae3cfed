package records

import (
	"context"
	"errors"
	"slices"

	"github.com/durward-gateway/durward/storage"
)

const (
	aliasSmartSQL  = `SELECT smart FROM model_aliases WHERE organization_id = $1 AND model_alias = $2`
	dropAliasSQL   = `DELETE FROM model_aliases WHERE organization_id = $1 AND owner_id = $2`
	insertAliasSQL = `INSERT INTO model_aliases (organization_id, model_alias, owner_id, smart) VALUES ($1, $2, $3, $4)`
	renameAliasSQL = `UPDATE model_aliases SET model_alias = $2 WHERE organization_id = $1 AND owner_id = $3 AND smart = $4`

	providerExistsSQL  = `SELECT 1 FROM llm_providers WHERE organization_id = $1 AND id = $2`
	referredSQL        = `SELECT 1 FROM model_references WHERE organization_id = $1 AND kind = $2 AND target = $3 LIMIT 1`
	dropReferencesSQL  = `DELETE FROM model_references WHERE organization_id = $1 AND owner_id = $2`
	insertReferenceSQL = `INSERT INTO model_references (organization_id, kind, target, owner_id) VALUES ($1, $2, $3, $4)
		ON CONFLICT (organization_id, kind, target, owner_id) DO NOTHING`
)

// referenceKind is the kind of object to which a mapping or smart model refers.
type referenceKind string

const (
	providerReference referenceKind = "provider"
	aliasReference    referenceKind = "alias"
)

type reference struct {
	kind   referenceKind
	target string
}

func mappingReferences(m storage.ModelMapping) []reference {
	var all []reference
	for _, t := range m.Targets {
		all = append(all, reference{providerReference, t.ProviderID})
	}
	for _, alias := range m.Fallbacks {
		all = append(all, reference{aliasReference, alias})
	}
	return all
}

func smartReferences(m storage.SmartModel) []reference {
	var all []reference
	if m.DeterminerAlias != "" {
		all = append(all, reference{aliasReference, m.DeterminerAlias})
	}
	for _, slot := range m.Slots {
		all = append(all, reference{aliasReference, slot.Alias})
	}
	return all
}

// refer stores these references as those of a mapping or smart model.
func refer(ctx context.Context, tx Tx, organization, owner string, references []reference) error {
	if _, err := tx.Exec(ctx, dropReferencesSQL, organization, owner); err != nil {
		return err
	}
	for _, r := range references {
		if _, err := tx.Exec(ctx, insertReferenceSQL, organization, r.kind, r.target, owner); err != nil {
			return err
		}
	}
	return nil
}

// checkUnused returns a ConflictError while something refers to the target.
func checkUnused(ctx context.Context, q Querier, organization string, kind referenceKind, target string) error {
	used, err := exists(ctx, q, referredSQL, organization, kind, target)
	if err == nil && used {
		err = &storage.ConflictError{Field: "in_use"}
	}
	return err
}

// takeAlias gives a mapping or smart model its alias by query, which inserts or renames. The table's primary key
// refuses an alias that is taken. A smart model must not get the former alias of the configuration while something
// still refers to that: nothing may refer to a smart model.
func takeAlias(ctx context.Context, tx Tx, query string, configured storage.ConfiguredModels, organization, alias, owner string, smart bool) error {
	taken := &storage.ConflictError{Field: "model_alias"}
	if _, ok := configured.Aliases[alias]; ok {
		return taken
	}
	if smart {
		referred, err := exists(ctx, tx, referredSQL, organization, aliasReference, alias)
		if err != nil {
			return err
		}
		if referred {
			return taken
		}
	}
	return execOne(ctx, tx, query, organization, alias, owner, boolean(smart))
}

// forgetModel deletes the alias and the references of a deleted mapping or smart model, and reports the change.
func forgetModel(ctx context.Context, tx Tx, organization, owner string) error {
	if _, err := tx.Exec(ctx, dropAliasSQL, organization, owner); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, dropReferencesSQL, organization, owner); err != nil {
		return err
	}
	_, err := tx.Change(ctx, organization)
	return err
}

// checkMapping returns a TargetError when m refers to an object that does not exist or is smart, and its former state
// did not.
func checkMapping(ctx context.Context, q Querier, configured storage.ConfiguredModels, former, m storage.ModelMapping) error {
	known := mappingReferences(former)
	for i, t := range m.Targets {
		if _, ok := configured.Providers[t.ProviderID]; ok || slices.Contains(known, reference{providerReference, t.ProviderID}) {
			continue
		}
		found, err := exists(ctx, q, providerExistsSQL, m.OrganizationID, t.ProviderID)
		if err != nil {
			return err
		}
		if !found {
			return &storage.TargetError{Field: "targets", Index: i}
		}
	}
	for i, alias := range m.Fallbacks {
		refused := storage.TargetError{Field: "fallbacks", Index: i}
		if alias == m.Alias {
			refused.Smart = true
			return &refused
		}
		if alias == former.Alias { // renamed
			return &refused
		}
		if err := checkAlias(ctx, q, configured, known, m.OrganizationID, alias, refused); err != nil {
			return err
		}
	}
	return nil
}

// checkSmart returns a TargetError when m refers to an object that does not exist or is smart, and its former state
// did not.
func checkSmart(ctx context.Context, q Querier, configured storage.ConfiguredModels, former, m storage.SmartModel) error {
	known := smartReferences(former)
	if m.DeterminerAlias != "" {
		if err := checkAlias(ctx, q, configured, known, m.OrganizationID, m.DeterminerAlias, storage.TargetError{Field: "determiner_model_alias"}); err != nil {
			return err
		}
	}
	for i, slot := range m.Slots {
		if err := checkAlias(ctx, q, configured, known, m.OrganizationID, slot.Alias, storage.TargetError{Field: "slots", Index: i}); err != nil {
			return err
		}
	}
	return nil
}

// checkAlias returns the refusal when the alias is neither known nor that of a mapping.
func checkAlias(ctx context.Context, q Querier, configured storage.ConfiguredModels, known []reference, organization, alias string,
	refused storage.TargetError,
) error {
	if slices.Contains(known, reference{aliasReference, alias}) {
		return nil
	}
	smart, err := One(ctx, q, scanFlag, aliasSmartSQL, organization, alias)
	if errors.Is(err, storage.ErrNotFound) {
		if _, ok := configured.Aliases[alias]; ok {
			return nil
		}
		return &refused
	}
	if err != nil || !smart {
		return err
	}
	refused.Smart = true
	return &refused
}

func scanFlag(r Row) (flag bool, err error) {
	err = r.Scan(flagColumn{&flag})
	return flag, err
}
