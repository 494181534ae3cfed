package records

import (
	"context"

	"github.com/durward-gateway/durward/storage"
)

// Driver is what a database does for the records. Its errors are in storage's words (see Told), but for those that f
// returns through Tx.Edit, which come out as they are.
type Driver interface {
	// Read lets f read. Each of its queries sees a state of its own. f may run again.
	Read(ctx context.Context, a Access, f func(ctx context.Context, q Querier) error) error
	// ReadSnapshot lets f read; all its queries see one state. f may run again.
	ReadSnapshot(ctx context.Context, a Access, f func(ctx context.Context, q Querier) error) error
	// Write runs f in a transaction. It commits when f returns nil, and has returned only when that is durable and everybody
	// has been told of the changes. f may run again after a try of which nothing was committed, unless an edit has run.
	Write(ctx context.Context, a Access, lock Lock, f func(ctx context.Context, tx Tx) error) error
	// LockConnection waits until nobody else, on any node, has the connection locked, or ctx ends. release must be called
	// exactly once. No transaction is open meanwhile.
	LockConnection(ctx context.Context, key storage.ConnectionKey) (release func(), err error)
}

// Row is one row of a result.
type Row interface{ Scan(dest ...any) error }

// Querier reads: from the database, in a snapshot, or in a write transaction. Text that the database cannot keep is looked
// for and not found. An argument may be a []string: a list.
type Querier interface {
	// Query runs a statement and hands its rows on while each wants more.
	Query(ctx context.Context, query string, args []any, each func(Row) (more bool, err error)) error
}

// Tx is a write transaction. Text that the database cannot keep is storage.ErrText, but for statements that only delete.
type Tx interface {
	Querier
	// Exec runs a statement that returns nothing and says how many rows it wrote.
	Exec(ctx context.Context, query string, args ...any) (rows int64, err error)
	// ExecEach runs a statement with each of the arguments in turn, for less than as many Execs cost.
	ExecEach(ctx context.Context, query string, args [][]any) error
	// Part runs f so that nothing of it stays when it returns an error, and the transaction goes on all the same. Its error
	// says whether f's is storage.Unstorable.
	Part(ctx context.Context, f func() error) error
	// Change records that the organization's facts change ("": every organization's) and returns its new epoch, which no
	// other write of that organization has. Who registered with OnChange is told after the commit.
	Change(ctx context.Context, organization string) (epoch int64, err error)
	// Edit runs a caller's edit, which must not run twice. Its error is what Driver.Write returns.
	Edit(edit func() error) error
	// Within runs f in another scope.
	Within(ctx context.Context, other Scope, f func() error) error
	// Wrote reports whether a row was inserted, changed or deleted so far.
	Wrote() bool
}

// Scope is whose rows a piece of work is about.
type Scope string

// Everyone is the scope of what looks across organizations.
const Everyone Scope = "*"

// Of returns the scope of an organization.
func Of(organization string) Scope { return Scope("=" + organization) }

// Access is what a driver is told before a piece of work begins.
type Access struct {
	Scope Scope
	// Authenticates: it tells callers who they are. Every request waits for it, and other work must not hold it up.
	Authenticates bool
}

// Lock is what writes hold that run one after the other, on whatever node: what they have found stays true until they
// commit. The zero value is none.
type Lock struct {
	Kind         LockKind
	Organization string // of an OrganizationLock
}

// LockKind says what a Lock is about.
type LockKind int

// Kinds of locks.
const (
	NoLock           LockKind = iota
	OrganizationLock          // all writes of one organization
	IdentityLock              // who is who, across organizations
	DirectoryLock             // entries of the directory that everybody sees
)
