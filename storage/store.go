package storage

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Errors that callers distinguish. Drivers wrap them.
var (
	// ErrNotFound says that there is no such record in this organization.
	ErrNotFound = errors.New("not found")
	// ErrConflict says that a uniqueness rule refuses the write; ConflictError names the field.
	ErrConflict = errors.New("conflict")
	// ErrForeignOrganization says that the organization belongs to another issuer.
	ErrForeignOrganization = errors.New("organization belongs to another issuer")
	// ErrUnavailable says that the store cannot be reached, is read-only, full, or out of time. The write may not
	// have happened.
	ErrUnavailable = errors.New("store unavailable")
	// ErrReadOnly says that the store is ErrUnavailable for all writes for now; reads are valid.
	ErrReadOnly = errors.New("store is read-only")
	// ErrText says that the record has text that the store cannot keep. Any store may refuse text that is not UTF-8
	// or has a NUL (PostgreSQL keeps neither). A search for such text is never refused, and finds nothing.
	ErrText = errors.New("text that cannot be stored")
	// ErrValue says that the record has another value that the store cannot keep, such as a number out of its range.
	ErrValue = errors.New("value that cannot be stored")
)

// Unstorable reports whether an error is about the contents of a record: the store works, and refuses that record at
// every try.
func Unstorable(err error) bool { return errors.Is(err, ErrText) || errors.Is(err, ErrValue) }

// UnavailableError is ErrUnavailable with a reason.
type UnavailableError struct {
	// Reason may be shown to anybody: it names no host, database or user.
	Reason string
	// Err is the cause, for the log. It may be nil.
	Err error
}

func (e *UnavailableError) Error() string {
	text := ErrUnavailable.Error() + ": " + e.Reason
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

// Is makes errors.Is(err, ErrUnavailable) hold.
func (e *UnavailableError) Is(target error) bool { return target == ErrUnavailable }

// Unwrap returns the cause.
func (e *UnavailableError) Unwrap() error { return e.Err }

// ConflictError names the field of a record that is taken.
type ConflictError struct{ Field string }

func (e *ConflictError) Error() string { return fmt.Sprintf("%s is taken", e.Field) }

// Is makes errors.Is(err, ErrConflict) hold.
func (e *ConflictError) Is(target error) bool { return target == ErrConflict }

// PageRequest asks for one page of a list. Number counts from 1; a Limit of 0 means everything.
type PageRequest struct{ Number, Limit int }

// Page holds one page of a list, and the total number.
type Page[T any] struct {
	Items []T
	Total int
}

// Store keeps everything that must outlive the process. Methods are safe for concurrent use. A write that returned
// nil is durable: it survives kill -9 and power loss. Methods return an error that is ErrUnavailable when the store
// cannot answer in time.
type Store interface {
	Identities
	Directory
	Servers
	Connections
	DataKeys
	Agents
	Policies
	Approvals
	Holds
	Conversations
	Tasks
	Jobs
	Revocations
	Announcements
	Logins
	Clients
	ToolPins
	Audits
	Gateway
	Declarations
	Provisioning

	// Together runs f in one write transaction of an organization: what this store reads and writes with the context that
	// f gets belongs to it, and all of it is committed, or nothing when f returns an error. An error of a method under it
	// must be returned: nothing can be done after it. f must not use methods that wait for a connection's edits. It may run
	// again after a try of which nothing was committed. The entries of WithAudit of ctx are recorded at the end; f may add
	// some to them.
	Together(ctx context.Context, organization string, f func(ctx context.Context) error) error
	// Ping checks whether the store can serve reads and writes: its error is ErrReadOnly when it can serve reads.
	Ping(ctx context.Context) error
	// OnChange registers f, which is called after each commit that changed the organization's facts (its servers,
	// directory entries, connections, agents, policies, tool pins, revoked users, API keys, rate limits, models,
	// budgets, provisioned users and groups, logins and agents' credentials that end), before the writing method returns; organization "" means every organization. A store that nodes share
	// calls f for the other nodes' commits too, soon after them. Functions are called in the order of their
	// registration. f must not block or write to the store. The returned function ends the registration. Connection
	// attempts, users, organizations' names, usage and data keys are no such facts, and a write that changes nothing
	// is not reported.
	OnChange(f func(organization string)) (cancel func())
	// Close ends all work. No other method may be called afterwards.
	Close() error
}

// RemoteStore is a Store whose database may be unavailable when it is made. Until Connect has succeeded every other
// method that reads or writes returns ErrUnavailable; OnChange, OnClock and Close work.
type RemoteStore interface {
	Store
	// Connect brings the schema up to date, and begins to listen for other nodes' changes. It returns ErrUnavailable
	// while the database cannot be reached or refuses the login: it can be called again. Any other error means that
	// this database is unusable. After it has succeeded it does nothing.
	Connect(ctx context.Context) error
	// OnClock registers f, which is called each time the database's clock was read, at the latest before Connect
	// returns and every few seconds from then on. ahead is by how much this machine's clock is ahead of it
	// (ClockReading.Ahead). f must not block.
	OnClock(f func(ahead time.Duration)) (cancel func())
}

// Identities maps the claims of tokens to organizations and users.
type Identities interface {
	// ResolveOrganization finds the organization of a claim, and makes it at first sight. When the claim has both id
	// and slug, the id wins and the slug is remembered, replacing a former one; a slug that another organization of
	// the issuer has stays there. Slugs are names within an issuer: an issuer that only shares an organization gives
	// it no slug. It returns ErrForeignOrganization when the organization belongs to another issuer.
	ResolveOrganization(ctx context.Context, claim OrganizationClaim, now time.Time) (Organization, error)
	// ResolveUser finds the user of a claim, makes them at first sight, and keeps name and email up to date; an empty
	// name or email says nothing about them. SeenAt may lag by a minute. An id that any other (issuer, subject) has,
	// in any organization, is never given to a second one: ConflictError on user when DerivedID is taken too. It
	// returns ErrNotFound when the organization is unknown.
	ResolveUser(ctx context.Context, claim UserClaim, now time.Time) (User, error)
	// Organizations reads all organizations, by id: for command lines, which belong to none.
	Organizations(ctx context.Context) ([]Organization, error)
	// EmptyOrganizations reads the organizations in which nobody made anything, by id: tokens named them, and they
	// contain only the users and agents of such tokens. It is for command lines and for a gateway of one
	// organization.
	EmptyOrganizations(ctx context.Context) ([]Organization, error)
	// DeleteOrganization removes an empty organization with its users and agents; its audit log stays. A token that
	// names it makes it again. It returns ErrNotFound when there is none, ConflictError on organization when it is
	// not empty.
	DeleteOrganization(ctx context.Context, id string) (Organization, error)
	// Organization reads one organization.
	Organization(ctx context.Context, id string) (Organization, error)
	// User reads one user of an organization.
	User(ctx context.Context, organization, id string) (User, error)
	// Users lists users of an organization, ordered by id.
	Users(ctx context.Context, f UserFilter) ([]User, error)
	// RevokeUser sets the user's RevokedAt: tokens issued until then are refused. It never moves back. The user's
	// approvals that are pending, or approved and not used, are deleted, the user's logins end, and the API keys that stand
	// for the user are revoked, in the same transaction. It returns ErrNotFound when there is no such user.
	RevokeUser(ctx context.Context, organization, id string, at time.Time) (User, error)
	// Offboarding counts what of a user OffboardUser would end. It returns ErrNotFound when there is no such user.
	Offboarding(ctx context.Context, organization, id string, now time.Time) (Offboarding, error)
	// OffboardUser does in one transaction what RevokeUser and LogOutUser do, and deletes the user's connections, attempts,
	// tasks and conversations. WithEnding decides on revocations. Like DeleteServer it does not wait for edits of
	// connections. It may be repeated, and counts what was left then. It returns ErrNotFound when there is no such user.
	OffboardUser(ctx context.Context, r OffboardRequest) (Offboarding, error)
	// LogOutUser sets the user's LoggedOutAt to the beginning of a session, which ends it and those begun before it.
	// It never moves back. Tokens stay valid. It returns ErrNotFound when there is no such user.
	LogOutUser(ctx context.Context, organization, id string, begun time.Time) error
	// PutSessionFacts stores the facts of a user's newest login with a browser; those of an older one change nothing. It
	// returns ErrNotFound when there is no such user.
	PutSessionFacts(ctx context.Context, organization, userID string, f SessionFacts) error
	// SessionFacts reads the facts of a user's last login with a browser. It returns ErrNotFound when there was none.
	SessionFacts(ctx context.Context, organization, userID string) (SessionFacts, error)
}

// Directory keeps the templates of servers.
type Directory interface {
	// SyncDirectory makes the entries of a read-only source (catalogue or config) equal to entries, all or nothing. A
	// removed entry stays while a server refers to it. Source and times are set here. It returns a ConflictError on
	// slug when two of the entries have the same one, and on id when an id belongs to another source.
	SyncDirectory(ctx context.Context, source Source, entries []DirectoryEntry, now time.Time) error
	// DirectoryEntries lists the entries that an organization sees, ordered by name, id.
	DirectoryEntries(ctx context.Context, f DirectoryFilter) (Page[DirectoryEntry], error)
	// DirectoryEntry reads one entry that the organization sees.
	DirectoryEntry(ctx context.Context, organization, id string) (DirectoryEntry, error)
	// CreateDirectoryEntry stores a custom entry. It returns a ConflictError on slug, which is unique among the
	// entries that the organization sees.
	CreateDirectoryEntry(ctx context.Context, e DirectoryEntry) error
	// UpdateDirectoryEntry lets edit change a custom entry of the organization in one transaction. An error of edit
	// is returned unchanged and nothing is written. It returns ErrNotFound for entries of read-only sources. Id,
	// organization, source and creation time cannot be changed. edit must not call the store.
	UpdateDirectoryEntry(ctx context.Context, organization, id string, edit func(*DirectoryEntry) error) (DirectoryEntry, error)
	// DeleteDirectoryEntry deletes a custom entry. It returns a ConflictError on server while a server refers to it.
	DeleteDirectoryEntry(ctx context.Context, organization, id string) error
}

// Servers keeps server instances and their OAuth clients.
type Servers interface {
	// CreateServer stores a server. It returns ErrNotFound when its directory entry is not visible to the
	// organization, and a ConflictError on name (compared without case and blanks) or slug.
	CreateServer(ctx context.Context, s Server) error
	// Servers lists servers as a user sees them, ordered by name, id. The connection status is: pending while the
	// server's lifecycle is not active; connected when the entry needs no authentication or a credential is stored;
	// pending while there is an attempt; error when the last attempt or refresh failed; else available.
	Servers(ctx context.Context, f ServerFilter) (Page[ServerView], error)
	// Server reads one server.
	Server(ctx context.Context, organization, id string) (Server, error)
	// ServerBySlug reads one server.
	ServerBySlug(ctx context.Context, organization, slug string) (Server, error)
	// UpdateServer lets edit change a server in one transaction. An error of edit is returned unchanged and nothing
	// is written. It returns a ConflictError as CreateServer does. Id, organization, creator and creation time cannot
	// be changed. edit must not call the store.
	UpdateServer(ctx context.Context, organization, id string, edit func(*Server) error) (Server, error)
	// UpdateServerAndClient updates like UpdateServer. Its edit also reports whether to delete the server's OAuth
	// client in the same transaction: the edit may have made it the wrong client.
	UpdateServerAndClient(ctx context.Context, organization, id string, edit func(*Server) (forgetClient bool, err error)) (Server, error)
	// NoteServer notes that a server was seen at a time, unless that is zero or it was seen later, and its present
	// problem. No decision depends on either: no change is reported. A missing server is no error.
	NoteServer(ctx context.Context, organization, id string, seen time.Time, problem string) error
	// NoteModern notes whether a server speaks 2026-07-28. Like NoteServer it reports no change, and a missing server
	// is no error.
	NoteModern(ctx context.Context, organization, id string, modern bool) error
	// DeleteServer deletes a server with its connections, attempts, OAuth client, approvals and tool pins, and its
	// custom directory entry when no other server refers to that. In the same transaction its policies become
	// ARCHIVED, each with a revision by the user by. It returns the deleted records. WithEnding decides on
	// revocations. It does not wait for edits of connections: those end with ErrNotFound and have to revoke the
	// tokens that they obtained.
	DeleteServer(ctx context.Context, organization, id, by string, now time.Time) (DeletedServer, error)

	// OAuthClient reads the client of a server.
	OAuthClient(ctx context.Context, organization, serverID string) (OAuthClient, error)
	// PutOAuthClient stores the client of a server in place of the one whose client id is former; "" means that there
	// is none. It returns a ConflictError on client_id when the stored client is another one: of several nodes that
	// register a client, all use that of the first. It returns ErrNotFound when former is "" and the server is gone.
	PutOAuthClient(ctx context.Context, c OAuthClient, former string) error
}

// DeletedServer is the last state of a deleted server.
type DeletedServer struct {
	Server      Server
	Connections []Connection
	Client      *OAuthClient // nil when there was none
}

// Connections keeps users' credentials for servers.
type Connections interface {
	// Connection reads a connection.
	Connection(ctx context.Context, key ConnectionKey) (Connection, error)
	// ServerConnections lists the connections to a server, ordered by the id of their users, without credentials.
	ServerConnections(ctx context.Context, f ConnectionFilter) ([]UserConnection, error)
	// CreateConnection stores a connection where there is none. It returns a ConflictError on connection when there
	// is one, ErrNotFound when the server or the user is gone. Version is set here, as by every write.
	CreateConnection(ctx context.Context, c Connection) error
	// PutConnection stores a connection, replacing the former one of the same key. It returns ErrNotFound when the
	// server or the user is gone.
	PutConnection(ctx context.Context, c Connection) (Connection, error)
	// UpdateConnection lets edit change a connection while no other caller, on any node, can: others wait until it is
	// done and then see its result. edit may take seconds (it talks to the provider); other connections do not wait.
	// The result of an edit without an error is stored, durably, before UpdateConnection returns. An error of edit is
	// returned unchanged and nothing is written. It returns ErrNotFound when there is no such connection, also when
	// it was deleted meanwhile. The result is stored even when ctx ends during edit, whose duration the caller must
	// bound; while the store is unavailable, storing a new credential is tried again until ctx ends, if it has a
	// deadline. edit may use the store, but must not write the connection it is editing.
	UpdateConnection(ctx context.Context, key ConnectionKey, edit func(ctx context.Context, c *Connection) error) (Connection, error)
	// DeleteConnection deletes a connection and its attempts and returns its last state. Where there is no connection
	// the attempts are deleted too, and the answer is ErrNotFound. Like the other writes of one connection it waits
	// for a running edit.
	DeleteConnection(ctx context.Context, key ConnectionKey) (Connection, error)

	// CreateAttempt stores an attempt. It deletes all attempts that have expired by its CreatedAt, and the oldest of
	// its key beyond MaxAttempts. It returns ErrNotFound when the server or the user is gone, ConflictError on state.
	CreateAttempt(ctx context.Context, a Attempt) error
	// TakeAttempt reads and deletes an attempt in one atomic step. It returns ErrNotFound when it is unknown, used or
	// expired.
	TakeAttempt(ctx context.Context, stateHash []byte, now time.Time) (Attempt, error)
}

// DeclaredObject names an object that an applied file declares. Kind is the one of the object's events in the audit log.
type DeclaredObject struct{ Kind, ID string }

// Declarations keeps which objects are managed by files. OnChange does not report it.
type Declarations interface {
	// Declared lists the objects of an organization that files declare, ordered by kind, id. Some may be gone.
	Declared(ctx context.Context, organization string) ([]DeclaredObject, error)
	// SetDeclared adds objects to those that files declare, and removes others. What is so already is no error. It returns
	// ErrNotFound when the organization is unknown.
	SetDeclared(ctx context.Context, organization string, add, remove []DeclaredObject) error
}

// DataKeys keeps the wrapped data keys.
type DataKeys interface {
	// DataKeys lists all data keys, ascending by version.
	DataKeys(ctx context.Context) ([]DataKey, error)
	// AddDataKey stores a data key. It returns a ConflictError on version when that is taken.
	AddDataKey(ctx context.Context, k DataKey) error
}

// Agents keeps the applications that policies can name.
type Agents interface {
	// CreateAgent stores an agent and its application, which is new. It returns a ConflictError on external_id when a
	// live agent of the organization has it, of the same issuer.
	CreateAgent(ctx context.Context, a Agent) error
	// AdoptApplication stores an agent for an existing application; a.Application needs its id only. It returns
	// ErrNotFound when the organization has no such application, ConflictError on external_id when there is a live agent
	// of its issuer and external id.
	AdoptApplication(ctx context.Context, a Agent) (Agent, error)
	// RegisterAgent returns the live agent of a's issuer and external id, and makes a when there is none and the
	// organization has fewer than limit agents. It returns ErrNotFound when it has as many.
	RegisterAgent(ctx context.Context, a Agent, limit int) (Agent, error)
	// Agent reads one agent.
	Agent(ctx context.Context, organization, id string) (Agent, error)
	// AgentByClient reads the live agent of an issuer and external id.
	AgentByClient(ctx context.Context, organization, issuer, externalID string) (Agent, error)
	// Agents lists agents, ordered by the application's name, id.
	Agents(ctx context.Context, f AgentFilter) (Page[Agent], error)
	// AgentCounts counts an organization's agents.
	AgentCounts(ctx context.Context, organization string) (AgentCounts, error)
	// UpdateAgent lets edit change the name and description of an agent's application, its WriteConfirmationsRequired and
	// its ApprovalChannel in one transaction. An error of edit is returned unchanged and nothing is written. Nothing else
	// of it can be changed; UpdatedAt becomes now where something was. edit must not call the store.
	UpdateAgent(ctx context.Context, organization, id string, now time.Time, edit func(*Agent) error) (Agent, error)
	// DeleteAgent deletes an agent and, in the same transaction, removes its id from the policies that name it: those
	// that named only it become ARCHIVED with their ApplicationIDs kept, so that none ever comes to mean all agents.
	// Each changed policy gets a revision by the user by. The agent's approvals and credentials are deleted; the
	// application stays.
	DeleteAgent(ctx context.Context, organization, id, by string, now time.Time) error
	// CreateAgentCredential stores a credential of an agent. It returns ErrNotFound when there is no such agent, and a
	// ConflictError on credentials when the agent has MaxAgentCredentials. No fact of the organization changes: nobody has
	// logged in with it.
	CreateAgentCredential(ctx context.Context, c AgentCredential) error
	// AgentCredentials lists the credentials of an agent, the newest first. It returns ErrNotFound when there is no such
	// agent.
	AgentCredentials(ctx context.Context, organization, agentID string) ([]AgentCredential, error)
	// AgentCredential reads a credential and its agent.
	AgentCredential(ctx context.Context, organization, id string) (AgentCredentialHolder, error)
	// CredentialsOfClient reads the credentials of the agent with that id, of whatever organization, the newest first. It
	// returns ErrNotFound when there are none.
	CredentialsOfClient(ctx context.Context, agentID string) (Agent, []AgentCredential, error)
	// DeleteAgentCredential deletes a credential. It returns ErrNotFound when the agent has no such one.
	DeleteAgentCredential(ctx context.Context, organization, agentID, id string) error
}

// Policies keeps access policies and their revisions.
type Policies interface {
	// CreatePolicy stores a policy as revision 1. It returns a ConflictError on name, an *OverlapError when it is
	// active and overlaps, a *ReferenceError when it names an object that does not exist. All three hold under
	// concurrency.
	CreatePolicy(ctx context.Context, p Policy) (PolicyView, error)
	// UpdatePolicy lets edit change a policy in one transaction, and records a revision when something changed. An
	// error of edit is returned unchanged and nothing is written. Errors are those of CreatePolicy; references are
	// checked only where edit changed them or made the policy active. Id, organization, server, creator, creation
	// time and revision cannot be changed, and a status that CanBecome refuses is refused. edit must not call the
	// store.
	UpdatePolicy(ctx context.Context, organization, id, by string, now time.Time, edit func(*Policy) error) (PolicyView, error)
	// UpdatePolicies updates several policies like UpdatePolicy, all or nothing, in the order of ids; edit is called
	// for each.
	UpdatePolicies(ctx context.Context, organization string, ids []string, by string, now time.Time, edit func(*Policy) error) error
	// Policy reads one policy.
	Policy(ctx context.Context, organization, id string) (PolicyView, error)
	// PolicyByName reads the policy of that name that is not archived.
	PolicyByName(ctx context.Context, organization, name string) (PolicyView, error)
	// Policies lists policies, the last updated first, then by id.
	Policies(ctx context.Context, f PolicyFilter) (Page[PolicyView], error)
	// PolicySummary counts an organization's policies by status.
	PolicySummary(ctx context.Context, organization string) (map[PolicyStatus]int, error)
	// ServerPolicies reads the policies for decisions about a server: its active policies and its drafts in shadow.
	ServerPolicies(ctx context.Context, organization, serverID string) ([]Policy, error)
	// OverlappingPolicies lists the active policies of a server that govern one of the agents, or all agents when
	// applicationIDs is empty, without the policy exclude.
	OverlappingPolicies(ctx context.Context, organization, serverID string, applicationIDs []string, exclude string) ([]Policy, error)
	// PolicyRevisions lists a policy's revisions, the newest first. It returns ErrNotFound when there is no such
	// policy.
	PolicyRevisions(ctx context.Context, organization, id string, page PageRequest) (Page[PolicyRevision], error)
}

// Approvals keeps held calls.
type Approvals interface {
	// CreateApproval stores a pending approval. When the same user has one with the same binding that is pending or
	// approved and not expired by a.CreatedAt, that one is returned and nothing is stored: a repeated call does not
	// ask again. It returns ErrTooManyPending and ErrTooManyAsked when the user has reached that limit for the same
	// client, ErrNotFound when the server, the user or the agent is gone. Approvals whose ExpiresAt has been over for
	// a day are deleted, and so are the arguments of the user's own that are over. WithAnnouncing decides on the
	// announcements of a new one.
	CreateApproval(ctx context.Context, a Approval, limits AskLimits) (Approval, error)
	// Approval reads one approval; now decides whether it has expired.
	Approval(ctx context.Context, organization, id string, now time.Time) (Approval, error)
	// ApprovalStatus reads only the status of one approval, and its channel, for callers that look at it again and
	// again.
	ApprovalStatus(ctx context.Context, organization, id string, now time.Time) (ApprovalStatus, ApprovalChannel, error)
	// Approvals lists approvals, newest first.
	Approvals(ctx context.Context, f ApprovalFilter) (Page[Approval], error)
	// ForeignApprovals lists the approvals of an organization that are pending at a time and have approvers, newest
	// first.
	ForeignApprovals(ctx context.Context, organization string, now time.Time) ([]ForeignApproval, error)
	// DecideApproval stores a human's decision. It returns ErrNotFound when the approval is unknown or d.UserID may not
	// decide on it: an approval with approvers is never decided by its user, another one by its user alone. The caller
	// checks whether the decider is among the approvers. It returns a ConflictError on status when the approval is not
	// pending or has expired: exactly one of concurrent decisions succeeds. A waiting announcement of its expiry is
	// deleted, and WithAnnouncing decides on further ones.
	DecideApproval(ctx context.Context, organization, id string, d ApprovalDecision) (Approval, error)
	// DivertApproval lets a pending approval be decided out of band only, and returns it; one that is not pending
	// stays as it is. It returns ErrNotFound when the approval is unknown or not the user's.
	DivertApproval(ctx context.Context, organization, userID, id string, now time.Time) (Approval, error)
	// TakeApproval marks the approved, unexpired approval with this binding as used, in one atomic step: exactly one
	// of concurrent takers gets it. id "" means any with the binding. An approval with approvers that its own user
	// decided, on a node that knows no approvers, is none. It returns ErrNotFound when there is none.
	TakeApproval(ctx context.Context, organization, userID, id string, binding []byte, now time.Time) (Approval, error)
}

// Announcements keeps the announcements of held calls, and the log of their deliveries. They are no facts of the
// organization: OnChange does not report them.
type Announcements interface {
	// DueAnnouncements reads the announcements of all organizations to a receiver that are due, in an order in which each
	// organization has at most share of them. One is not due while another of its call with a lower number waits for the
	// same receiver and recipient.
	DueAnnouncements(ctx context.Context, receiver string, now time.Time, limit, share int) ([]Announcement, error)
	// ClaimAnnouncement keeps other nodes from sending an announcement before a time, which becomes its NextAt. It returns
	// ErrNotFound when another node was faster, or the announcement does not wait any more.
	ClaimAnnouncement(ctx context.Context, a Announcement, until time.Time) error
	// TriedAnnouncement stores the result of an attempt: NextAt, State, EndedAt, Attempts and LastError. more are stored with
	// it. It returns ErrNotFound when the announcement is not claimed until then any more.
	TriedAnnouncement(ctx context.Context, claimed time.Time, a Announcement, more []Announcement) error
	// Announcements lists announcements of an organization, newest first. It forgets those that are older than
	// AnnouncementKept when others are made.
	Announcements(ctx context.Context, f AnnouncementFilter) ([]Announcement, error)
	// Addressees lists people with an e-mail address, ordered by id, behind the one with the id after.
	Addressees(ctx context.Context, organization, after string, limit int) ([]Addressee, error)
}

// Holds keeps the held calls for which clients wait, so that a call can be cancelled at another node than the one
// that holds it. They are no facts of the organization: OnChange does not report them.
type Holds interface {
	// AddHold stores a hold, and deletes those that have expired by now. It returns ErrNotFound when the server does
	// not exist.
	AddHold(ctx context.Context, h Hold, now time.Time) error
	// HoldStands reports whether a hold is stored: that of a cancelled call is not.
	HoldStands(ctx context.Context, organization, id string) (bool, error)
	// DeleteHold deletes a hold. A missing one is no error.
	DeleteHold(ctx context.Context, organization, id string) error
	// TakeBackCalls deletes all holds of those calls of a user. Where there are none, nothing is written.
	TakeBackCalls(ctx context.Context, organization, userID string, calls []string) error
}

// Conversations keeps the MCP sessions that the gateway began. They are no facts of the organization: OnChange does
// not report them.
type Conversations interface {
	// CreateConversation stores a conversation that is not open. The oldest of its user with its server make room
	// (MaxConversations). It returns ErrNotFound when the user or server does not exist.
	CreateConversation(ctx context.Context, c Conversation) error
	// Conversation reads one conversation. It returns ErrNotFound when it is unknown, another user's, or expired.
	Conversation(ctx context.Context, organization, userID, id string, now time.Time) (Conversation, error)
	// OpenConversation sets the upstream's session and the end of the conversation, unless it is open by now, and
	// returns it: of several concurrent calls all get the session of the first. It returns ErrNotFound as
	// Conversation does.
	OpenConversation(ctx context.Context, organization, userID, id, upstream string, now, expires time.Time) (Conversation, error)
	// DeleteConversation deletes a conversation. A missing one is no error.
	DeleteConversation(ctx context.Context, organization, userID, id string) error
}

// Logins keeps the logins of users with OAuth clients, and what users have consented to. A login that ends, and facts of one
// that change, are facts of the organization (OnChange); one that begins or gets new tokens is none.
type Logins interface {
	// CreateLogin stores a login that waits for its user to agree to a client: it has no ClientID yet. Those of the
	// organization that have ended by its CreatedAt are deleted, and the user's oldest ones that wait too make room
	// (MaxWaitingLogins). It returns ErrNotFound when there is no such user.
	CreateLogin(ctx context.Context, l Login) error
	// AgreeLogin gives the waiting login of that id, organization and user what its user has agreed to: ClientID,
	// ClientName, Resource, RedirectURI, Challenge, UsedAt, ExpiresAt and EndsAt. The user's oldest logins make room
	// (MaxLogins), but for those that came of assertions. It returns ErrNotFound when no such login waits at UsedAt.
	AgreeLogin(ctx context.Context, l Login) error
	// RedeemLogin exchanges a login's code: it sets RedeemedAt, UsedAt and RotatedAt to now, and ExpiresAt, to EndsAt at
	// most. It returns ErrNotFound when there is no such login, or its code has expired. A code that was redeemed before ends the login:
	// ErrReplayed.
	RedeemLogin(ctx context.Context, organization, id string, now, expires time.Time) (Login, error)
	// AssertLogin stores a login that came of an assertion and needs no code: RedeemedAt is its CreatedAt. A login that
	// came of an assertion before, of the same user, client, resource, issuer and audience, goes on in its place when it has
	// not ended at UsedAt: it takes ClientName, Subject, UsedAt, ExpiresAt, EndsAt, Facts and FactsAt. Those of the
	// organization that have ended are deleted, and the user's oldest ones of assertions make room (MaxAssertedLogins). It
	// returns the login as it is stored, and ErrNotFound when there is no such user, or when they were revoked at issued or
	// later.
	AssertLogin(ctx context.Context, l Login, issued time.Time) (Login, error)
	// RefreshLogin exchanges a login's refresh token of a generation: the next one begins, UsedAt and RotatedAt become now,
	// and ExpiresAt moves to now plus idle, to EndsAt at most. The token before it is good for grace, without a new
	// generation: a client may have sent it twice at one moment. An older one ends the login: ErrReplayed. renews reports
	// that the caller must ask the identity provider for new facts, and store them with RenewLogin; that is nobody else's
	// work for RenewalLimit. It returns ErrNotFound when the login has ended, or has no redeemed code.
	RefreshLogin(ctx context.Context, organization, id string, generation int, now time.Time, idle, grace time.Duration) (l Login, renews bool, err error)
	// LostRefresh notes that the refresh token of a generation did not reach its client: the one before it stays good until
	// the next refresh. Nothing happens when the login has ended, or has another generation by now.
	LostRefresh(ctx context.Context, organization, id string, generation int) error
	// BeginRenewal reports whether the caller must ask the identity provider anew about a login whose ID token ends by
	// until, and store the answer with RenewLogin; that is nobody else's work for RenewalLimit. It returns the login as it
	// is then, and ErrNotFound when it has ended or has no redeemed code.
	BeginRenewal(ctx context.Context, organization, id string, now, until time.Time) (l Login, renews bool, err error)
	// RenewLogin stores the identity provider's answer in the login with the organization and id of l: Facts, FactsAt,
	// SealedRefresh, SealedIDToken and IDTokenExpiresAt. It returns ErrNotFound when the login has ended.
	RenewLogin(ctx context.Context, l Login) error
	// Login reads a login that has a redeemed code. It returns ErrNotFound when it has ended.
	Login(ctx context.Context, organization, id string, now time.Time) (Login, error)
	// Logins lists those logins that have a redeemed code, the last used first.
	Logins(ctx context.Context, f LoginFilter) (Page[Login], error)
	// EndLogin deletes a login and returns it. With forget it also deletes the consents of its user to its client. It returns
	// ErrNotFound when there is none.
	EndLogin(ctx context.Context, organization, id string, forget bool) (Login, error)
	// PutConsent stores a consent, or its new time and client name. The user's oldest ones make room (MaxConsents). It
	// returns ErrNotFound when there is no such user.
	PutConsent(ctx context.Context, c Consent) error
	// Consent reads the consent with the given organization, user, client, resource and redirect origin. It returns
	// ErrNotFound when there is none.
	Consent(ctx context.Context, of Consent) (Consent, error)
	// Consents lists what a user has consented to, the newest first.
	Consents(ctx context.Context, organization, userID string) ([]Consent, error)
	// EndConsents deletes all consents of a user to a client, and ends the logins with it. A missing one is no error.
	EndConsents(ctx context.Context, organization, userID, clientID string) error
}

// Clients keeps the OAuth clients that registered themselves, and the keys that sign tokens for all clients. Neither belongs
// to an organization, and OnChange reports neither.
type Clients interface {
	// RegisterClient stores a client. Those with which nobody logged in are deleted when they are older than
	// UnusedClientLifetime, and the oldest make room (MaxUnusedClients); the others are deleted after IdleClientLifetime
	// without a login.
	RegisterClient(ctx context.Context, c RegisteredClient) error
	// RegisteredClient reads a client. It returns ErrNotFound when there is none.
	RegisteredClient(ctx context.Context, id string) (RegisteredClient, error)
	// ClientLoggedIn notes a login with a client. One that is not registered is no error.
	ClientLoggedIn(ctx context.Context, id string, at time.Time) error
	// SigningKeys lists all keys, the newest first.
	SigningKeys(ctx context.Context) ([]SigningKey, error)
	// AddSigningKey stores a key, and deletes those that have expired by its CreatedAt. newest is the id of the newest key
	// that the caller knows, "" for none: with another one it returns ErrConflict, so that of several nodes only one makes
	// the next key.
	AddSigningKey(ctx context.Context, k SigningKey, newest string) error
	// UseAssertion remembers that an assertion was presented, by its issuer and its claim jti, until it has expired
	// (RFC 7523 section 3). It returns ErrReplayed when it was presented before. It forgets those that have expired by now.
	UseAssertion(ctx context.Context, issuer, id string, now, expires time.Time) error
}

// Tasks keeps the owners of MCP tasks. They are no facts of the organization: OnChange does not report them.
type Tasks interface {
	// AddTask stores a task. The oldest of its owner make room (MaxTasks), and it replaces the task that its server
	// had created before under the same id, whoever owned that. It returns ErrConflict when that is newer,
	// ErrNotFound when the server does not exist.
	AddTask(ctx context.Context, t Task) error
	// Tasks lists an owner's tasks that have not expired, the oldest first.
	Tasks(ctx context.Context, of TaskOwner, now time.Time) ([]Task, error)
	// ForgetTasks deletes the expired tasks of all organizations.
	ForgetTasks(ctx context.Context, now time.Time) error
}

// Revocations keeps requests to providers to revoke tokens, until they are done. They are no facts of an
// organization: OnChange does not report them.
type Revocations interface {
	AddRevocation(ctx context.Context, v Revocation) error
	// DueRevocations lists the revocations of all organizations that may be tried, at most share of each organization,
	// the longest due first. The longest due one of each organization comes before the further ones of others.
	DueRevocations(ctx context.Context, now time.Time, limit, share int) ([]Revocation, error)
	// PostponeRevocation sets the earliest time of the next attempt, and counts those that have failed since v was
	// read. It returns ErrNotFound when it is gone, or another node has postponed it since: of several nodes that
	// find it due, one has it alone until next.
	PostponeRevocation(ctx context.Context, v Revocation, next time.Time, failed int) error
	// DeleteRevocation deletes a revocation. A missing one is no error.
	DeleteRevocation(ctx context.Context, organization, id string) error
}

// ToolPins keeps the definitions of tools as first seen or accepted.
type ToolPins interface {
	// ToolPins lists the pins of a server, ordered by name.
	ToolPins(ctx context.Context, organization, serverID string) ([]ToolPin, error)
	// ObserveTools pins the tools that are new and notes those that differ from their pins. It returns those whose
	// SeenHash changed with this call. It returns ErrNotFound when the server is gone.
	ObserveTools(ctx context.Context, organization, serverID string, tools []ObservedTool, now time.Time) (changed []ToolPin, err error)
	// Tools lists tools of all servers, ordered by server id, name.
	Tools(ctx context.Context, f ToolFilter) ([]ServerTool, error)
	// AcceptTools pins the last seen definitions of tools, of all or of none, and returns the pins in the same order. Its
	// ToolError is ErrNotFound when a tool is unknown, ConflictError on hash when the last seen definition has another
	// hash.
	AcceptTools(ctx context.Context, organization string, tools []ToolAcceptance, by string, now time.Time) ([]ToolPin, error)
}

// Jobs keeps pieces of work that take longer than a request.
type Jobs interface {
	// AddJob stores a queued job. It returns ErrTooManyJobs when the organization has so many queued ones already, and
	// ErrNotFound when the user is gone.
	AddJob(ctx context.Context, j Job, waiting int) error
	// Job reads one job.
	Job(ctx context.Context, organization, id string) (Job, error)
	// Jobs lists jobs, newest first.
	Jobs(ctx context.Context, f JobFilter) ([]Job, error)
	// DueJobs lists jobs of all organizations that wait for somebody to begin them: queued ones, and running ones whose
	// lease has ended. Each organization has at most share of them, and the oldest of each come first.
	DueJobs(ctx context.Context, now time.Time, limit, share int) ([]Job, error)
	// ClaimJob begins an attempt at a job that is due, with a lease until a time: of several nodes one gets it. It returns
	// ErrNotFound when the job is not due any more, and ErrTooManyJobs while so many jobs of the organization run.
	ClaimJob(ctx context.Context, organization, id, node string, running int, now, until time.Time) (Job, error)
	// BeatJob stores how far the present attempt is, and extends its lease. It returns ErrNotFound when the attempt is not
	// the present one any more, or the job is over.
	BeatJob(ctx context.Context, j Job) error
	// EndJob stores the end of the present attempt: its state, progress, result and problem, and EndedAt. A job that goes
	// back to the queue is as it was before. It returns ErrNotFound as BeatJob does.
	EndJob(ctx context.Context, j Job) error
	// CancelJob ends a job that is not over. It returns ConflictError on state when it is.
	CancelJob(ctx context.Context, organization, id string, now time.Time) (Job, error)
	// ForgetJobs deletes the jobs of all organizations that were over by a time.
	ForgetJobs(ctx context.Context, over time.Time) error
}

// Audits keeps the audit log. Records of writes come through WithAudit; those of calls are shipped from nodes' journals.
type Audits interface {
	// RecordAudit records the entries of WithAudit in ctx, in a transaction of its own: for events that write nothing
	// else.
	RecordAudit(ctx context.Context) error
	// AddAuditChunks stores chunks that nodes ship. A chunk that is there already is left as it is. It returns a
	// ConflictError on first when there is another one with the same chain and First. After a return without an error
	// the caller may reuse the chunks' data.
	AddAuditChunks(ctx context.Context, chunks []AuditChunk) error
	// AuditChunks lists chunks that overlap the time of the filter, those with the latest To first. A chunk whose From is
	// after its To is listed unless its To is before the filter's From.
	AuditChunks(ctx context.Context, f AuditFilter) ([]AuditChunk, error)
	// AuditRecords lists the records that the store itself wrote, newest first. The time of a record is its entry's.
	AuditRecords(ctx context.Context, f AuditFilter) ([]AuditRecord, error)
	// AuditChains returns the ends of a node's chains in the store; node "" means all nodes. The chain of the store's
	// own records comes with its hash; those of shipped chunks come with the last sequence, and without a hash. With node
	// "", chains of records whose end nobody has written come with sequence 0.
	AuditChains(ctx context.Context, node string) ([]AuditChain, error)
	// AddAuditCheckpoint stores a checkpoint. It returns a ConflictError on number when that is taken.
	AddAuditCheckpoint(ctx context.Context, c AuditCheckpoint) error
	// AuditCheckpoint returns a node's checkpoint by its number.
	AuditCheckpoint(ctx context.Context, node string, number int64) (AuditCheckpoint, error)
	// AuditCheckpoints lists a node's checkpoints by number; node "" means all nodes.
	AuditCheckpoints(ctx context.Context, node string) ([]AuditCheckpoint, error)
}

// Provisioning keeps the users and groups that an organization's identity provider writes ahead of any token.
type Provisioning interface {
	// CreateProvisionedUser stores a user. It returns a ConflictError on user_name when another one has it, and on count when
	// the organization has most already. A deleted user of that name is forgotten.
	CreateProvisionedUser(ctx context.Context, u ProvisionedUser, most int) error
	// UpdateProvisionedUser lets edit change a user in one transaction, and returns them before and after. An error of edit is
	// returned unchanged and nothing is written. Users of the gateway who matched the former name stay matched. Id, organization
	// and creation time cannot be changed. edit must not call the store. It returns a ConflictError as CreateProvisionedUser does.
	UpdateProvisionedUser(ctx context.Context, organization, id string, match ProvisionedMatch, edit func(*ProvisionedUser) error) (before, after ProvisionedUser, err error)
	// DeleteProvisionedUser deletes a user and their memberships. That somebody of that name was deleted is remembered: whom it
	// matches may not come in.
	DeleteProvisionedUser(ctx context.Context, organization, id string, now time.Time) error
	// ProvisionedUser reads one user with their groups.
	ProvisionedUser(ctx context.Context, organization, id string) (ProvisionedUser, error)
	// ProvisionedUsers lists users, in the order of their creation.
	ProvisionedUsers(ctx context.Context, f ProvisionedFilter) (Page[ProvisionedUser], error)
	// LinkProvisioned returns the ids of the gateway's users who are a provisioned user, also a deleted one. They stay matched
	// when their tokens have another address later.
	LinkProvisioned(ctx context.Context, organization, id string, match ProvisionedMatch) ([]string, error)
	// ProvisionedStanding finds what is provisioned about a user of the gateway. It returns ErrNotFound when there is no such
	// user.
	ProvisionedStanding(ctx context.Context, organization, userID string, match ProvisionedMatch) (ProvisionedStanding, error)

	// CreateProvisionedGroup stores a group with members. It returns a ConflictError on name when another one has it, on count
	// when there are too many groups or members then, and on members when one does not exist.
	CreateProvisionedGroup(ctx context.Context, g ProvisionedGroup, members []string, most ProvisionedMost) error
	// UpdateProvisionedGroup changes a group in one transaction. An error of the edit is returned unchanged and nothing is
	// written. Members to add that are there already, and to remove that are not, change nothing. Other errors are those of
	// CreateProvisionedGroup.
	UpdateProvisionedGroup(ctx context.Context, organization, id string, now time.Time, c ProvisionedChange) (ProvisionedGroup, error)
	// DeleteProvisionedGroup deletes a group.
	DeleteProvisionedGroup(ctx context.Context, organization, id string) error
	// ProvisionedGroup reads one group, with its members when they are asked for.
	ProvisionedGroup(ctx context.Context, organization, id string, withMembers bool) (ProvisionedGroup, error)
	// ProvisionedGroups lists groups in the order of their creation. A page with members ends early when there are too many of
	// them.
	ProvisionedGroups(ctx context.Context, f ProvisionedFilter) (Page[ProvisionedGroup], error)
}
