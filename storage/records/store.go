package records

import (
	"context"

	"github.com/durward-gateway/durward/storage"
)

// Store implements the records of a storage.Store: a part for each kind. A store embeds it, and adds the methods that
// concern its database: Ping, OnChange, Close.
type Store struct {
	identitiesStore
	directoryStore
	serversStore
	connectionsStore
	dataKeysStore
	agentsStore
	policiesStore
	approvalsStore
	holdsStore
	conversationsStore
	tasksStore
	jobsStore
	revocationsStore
	announcementsStore
	loginsStore
	clientsStore
	toolPinsStore
	auditsStore
	apiKeysStore
	rateLimitsStore
	modelsStore
	usageStore
	declaredStore
	provisioningStore
	tablesStore
}

// These are the parts of a Store. Their methods are in the files of their records.
type (
	identitiesStore    struct{ *work }
	directoryStore     struct{ *work }
	serversStore       struct{ *work }
	connectionsStore   struct{ *work }
	dataKeysStore      struct{ *work }
	agentsStore        struct{ *work }
	policiesStore      struct{ *work }
	approvalsStore     struct{ *work }
	holdsStore         struct{ *work }
	conversationsStore struct{ *work }
	tasksStore         struct{ *work }
	jobsStore          struct{ *work }
	revocationsStore   struct{ *work }
	announcementsStore struct{ *work }
	loginsStore        struct{ *work }
	clientsStore       struct{ *work }
	toolPinsStore      struct{ *work }
	auditsStore        struct{ *work }
	apiKeysStore       struct{ *work }
	rateLimitsStore    struct{ *work }
	modelsStore        struct{ *work }
	usageStore         struct{ *work }
	declaredStore      struct{ *work }
	provisioningStore  struct{ *work }
	tablesStore        struct{ *work }
)

// work carries out the reads and writes of all parts.
type work struct {
	driver  Driver
	dialect Dialect
	texts   *texts
}

// New makes the records of a store. It does not use the driver yet.
func New(driver Driver, dialect Dialect) *Store {
	w := &work{driver: driver, dialect: dialect, texts: dialect.texts()}
	return &Store{
		identitiesStore{w}, directoryStore{w}, serversStore{w}, connectionsStore{w}, dataKeysStore{w}, agentsStore{w},
		policiesStore{w}, approvalsStore{w}, holdsStore{w}, conversationsStore{w}, tasksStore{w}, jobsStore{w}, revocationsStore{w},
		announcementsStore{w},
		loginsStore{w}, clientsStore{w}, toolPinsStore{w}, auditsStore{w}, apiKeysStore{w}, rateLimitsStore{w},
		modelsStore{w}, usageStore{w}, declaredStore{w}, provisioningStore{w}, tablesStore{w},
	}
}

func (s *work) read(ctx context.Context, organization string, f func(ctx context.Context, q Querier) error) error {
	return s.reading(ctx, Access{Scope: Of(organization)}, s.driver.Read, f)
}

// readToAuthenticate reads like read, for authentication, for which every request waits.
func (s *work) readToAuthenticate(ctx context.Context, scope Scope, f func(ctx context.Context, q Querier) error) error {
	return s.reading(ctx, Access{Scope: scope, Authenticates: true}, s.driver.Read, f)
}

// readAcross reads like read, over all organizations.
func (s *work) readAcross(ctx context.Context, f func(ctx context.Context, q Querier) error) error {
	return s.reading(ctx, Access{Scope: Everyone}, s.driver.Read, f)
}

func (s *work) readSnapshot(ctx context.Context, organization string, f func(ctx context.Context, q Querier) error) error {
	return s.reading(ctx, Access{Scope: Of(organization)}, s.driver.ReadSnapshot, f)
}

// write runs f in a write transaction of an organization. Those of one organization run one after the other.
func (s *work) write(ctx context.Context, organization string, f func(ctx context.Context, tx Tx) error) error {
	return s.commit(ctx, Access{Scope: Of(organization)}, Lock{OrganizationLock, organization}, false, f)
}

// writeToAuthenticate writes like write, for authentication, for which requests wait.
func (s *work) writeToAuthenticate(ctx context.Context, scope Scope, lock LockKind, f func(ctx context.Context, tx Tx) error) error {
	return s.commit(ctx, Access{Scope: scope, Authenticates: true}, Lock{Kind: lock}, false, f)
}

// writeAcross writes like write, over all organizations.
func (s *work) writeAcross(ctx context.Context, lock LockKind, f func(ctx context.Context, tx Tx) error) error {
	return s.commit(ctx, Access{Scope: Everyone}, Lock{Kind: lock}, false, f)
}

// commit carries out every write. It records in the transaction the entries of storage.WithAudit, once, when f wrote
// anything or always is true. A write that belongs to another one (storage.Store.Together) leaves that to it.
func (s *work) commit(ctx context.Context, a Access, lock Lock, always bool, f func(ctx context.Context, tx Tx) error) error {
	if tx := s.join(ctx); tx != nil {
		return tx.Within(ctx, a.Scope, func() error { return f(ctx, tx) })
	}
	audited := storage.AuditOf(ctx)
	if audited == nil || len(audited.Entries) == 0 {
		return s.driver.Write(ctx, a, lock, f)
	}
	claimed := false
	var records []storage.AuditRecord
	err := s.driver.Write(ctx, a, lock, func(ctx context.Context, tx Tx) (err error) {
		records = nil
		if err := f(ctx, tx); err != nil || !tx.Wrote() && !always {
			return err
		}
		if claimed = claimed || audited.Claim(); !claimed {
			return nil
		}
		return tx.Within(ctx, Of(audited.OrganizationID), func() (err error) {
			records, err = s.appendAudit(ctx, tx, audited)
			return err
		})
	})
	if claimed && (err != nil || len(records) == 0) {
		audited.Release()
	}
	if err != nil {
		return err
	}
	if len(records) > 0 && audited.Committed != nil {
		audited.Committed(records)
	}
	return nil
}
