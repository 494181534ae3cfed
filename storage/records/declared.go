package records

import (
	"context"

	"github.com/durward-gateway/durward/storage"
)

const (
	declaredSQL       = `SELECT kind, object_id FROM declared_objects WHERE organization_id = $1 ORDER BY kind, object_id`
	insertDeclaredSQL = `INSERT INTO declared_objects (organization_id, kind, object_id) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING`
	deleteDeclaredSQL = `DELETE FROM declared_objects WHERE organization_id = $1 AND kind = $2 AND object_id = $3`
)

func scanDeclared(r Row) (d storage.DeclaredObject, err error) {
	err = r.Scan(&d.Kind, &d.ID)
	return d, err
}

// Declared implements storage.Declarations.
func (s declaredStore) Declared(ctx context.Context, organization string) (all []storage.DeclaredObject, err error) {
	err = s.read(ctx, organization, func(ctx context.Context, q Querier) (err error) {
		all, err = Many(ctx, q, scanDeclared, declaredSQL, organization)
		return err
	})
	return all, err
}

// SetDeclared implements storage.Declarations.
func (s declaredStore) SetDeclared(ctx context.Context, organization string, add, remove []storage.DeclaredObject) error {
	return s.write(ctx, organization, func(ctx context.Context, tx Tx) error {
		for _, d := range remove {
			if _, err := tx.Exec(ctx, deleteDeclaredSQL, organization, d.Kind, d.ID); err != nil {
				return err
			}
		}
		for _, d := range add {
			if _, err := tx.Exec(ctx, insertDeclaredSQL, organization, d.Kind, d.ID); err != nil {
				return err
			}
		}
		return nil
	})
}
