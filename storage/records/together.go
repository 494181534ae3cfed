package records

import "context"

// joinKey is the context key of a transaction that the store's methods join.
type joinKey struct{}

// joined holds an open transaction of one store.
type joined struct {
	work *work
	tx   Tx
}

// Together implements storage.Store.
func (s *Store) Together(ctx context.Context, organization string, f func(ctx context.Context) error) error {
	w := s.identitiesStore.work
	return w.write(ctx, organization, func(ctx context.Context, tx Tx) error {
		return f(context.WithValue(ctx, joinKey{}, &joined{w, tx}))
	})
}

// join returns the transaction that work of this store under ctx belongs to, nil when there is none.
func (s *work) join(ctx context.Context) Tx {
	if j, ok := ctx.Value(joinKey{}).(*joined); ok && j.work == s {
		return j.tx
	}
	return nil
}

// reading runs f in the transaction that ctx belongs to, else by read.
func (s *work) reading(ctx context.Context, a Access, read func(context.Context, Access, func(context.Context, Querier) error) error,
	f func(ctx context.Context, q Querier) error,
) error {
	if tx := s.join(ctx); tx != nil {
		return tx.Within(ctx, a.Scope, func() error { return f(ctx, tx) })
	}
	return read(ctx, a, f)
}
