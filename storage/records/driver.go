package records

import (
	"context"

	"github.com/durward-gateway/durward/storage"
)

// Driver provides a database for the records. Its errors are storage's (see Told), except for those that f returns
// through Tx.Edit, which are returned unchanged.
type Driver interface {
	// Read lets f read. Each of its queries sees its own state of the database. f may run again.
	Read(ctx context.Context, a Access, f func(ctx context.Context, q Querier) error) error
	// ReadSnapshot lets f read; all its queries see one state. f may run again.
	ReadSnapshot(ctx context.Context, a Access, f func(ctx context.Context, q Querier) error) error
	// Write runs f in a transaction. It commits when f returns nil, and returns only when the commit is durable and
	// all listeners have been told of the changes. f may run again after a try of which nothing was committed, unless
	// an edit has run.
	Write(ctx context.Context, a Access, lock Lock, f func(ctx context.Context, tx Tx) error) error
	// LockConnection waits until it has the connection's lock, which only one holder on all nodes can have, or until
	// ctx ends. release must be called exactly once. No transaction is open meanwhile.
	LockConnection(ctx context.Context, key storage.ConnectionKey) (release func(), err error)
}

// Row is one row of a result.
type Row interface{ Scan(dest ...any) error }

// Querier reads: from the database, in a snapshot, or in a write transaction. A search for text that the database
// cannot store finds nothing. An argument may be a []string: a list.
type Querier interface {
	// Query runs a statement and passes its rows to each, as long as that wants more.
	Query(ctx context.Context, query string, args []any, each func(Row) (more bool, err error)) error
}

// Tx is a write transaction. Text that the database cannot store is storage.ErrText, except in statements that only
// delete.
type Tx interface {
	Querier
	// Exec runs a statement that returns no rows, and returns the number of rows that it wrote.
	Exec(ctx context.Context, query string, args ...any) (rows int64, err error)
	// ExecEach runs a statement with each of the arguments in turn, at a lower cost than as many Execs.
	ExecEach(ctx context.Context, query string, args [][]any) error
	// Part runs f so that nothing of it stays when it returns an error, and the transaction continues nevertheless.
	// Its error says whether f's is storage.Unstorable.
	Part(ctx context.Context, f func() error) error
	// Change records that the organization's facts change ("": every organization's) and returns its new epoch, which
	// no other write of that organization has. Functions registered with OnChange are called after the commit.
	Change(ctx context.Context, organization string) (epoch int64, err error)
	// Edit runs a caller's edit, which must not run twice. Driver.Write returns its error.
	Edit(edit func() error) error
	// Within runs f in another scope.
	Within(ctx context.Context, other Scope, f func() error) error
	// Wrote reports whether a row was inserted, changed or deleted so far.
	Wrote() bool
}

// Scope names the organization whose rows a piece of work reads or writes.
type Scope string

// Everyone is the scope of work across organizations.
const Everyone Scope = "*"

// Of returns the scope of an organization.
func Of(organization string) Scope { return Scope("=" + organization) }

// Access tells a driver about a piece of work before it begins.
type Access struct {
	Scope Scope
	// Authenticates says that the work authenticates callers. Every request waits for it, and other work must not
	// block it.
	Authenticates bool
}

// Lock names a lock that makes writes run one after the other, on whatever node: the state that a write has read
// stays true until it commits. The zero value means no lock.
type Lock struct {
	Kind         LockKind
	Organization string // of an OrganizationLock
}

// LockKind names the kind of a Lock.
type LockKind int

// Kinds of locks.
const (
	NoLock           LockKind = iota
	OrganizationLock          // all writes of one organization
	IdentityLock              // the identities of users, across organizations
	DirectoryLock             // entries of the directory that every organization sees
)
