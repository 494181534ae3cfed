package mcp

import (
	"crypto/sha256"
	"sync"

	"github.com/google/uuid"

	"github.com/durward-gateway/durward/internal/mcp/jsonrpc"
)

// A client of 2025-11-25 that opens pages gets the address of the page in an error (-32042). It then waits for its
// user's confirmation, or for notifications/elicitation/complete, which repeats the id of the error.

// urlElicitationVersion is the only revision with -32042: the one before had no pages to open, the next one forbids it.
const urlElicitationVersion = "2025-11-25"

// opensPages reports whether the client of a conversation gets pages in that way.
func (x *exchange) opensPages() bool {
	return x.Session.ElicitURL && x.Version() == urlElicitationVersion
}

// asking holds the waiting streams of this process, by the session ids of their clients, each with the elicitations
// that were asked meanwhile.
var asking sync.Map

// elicitations lists the elicitations whose end a stream announces.
type elicitations struct {
	mu  sync.Mutex
	ids []string
}

// maxAsked is the greatest number of them for one stream. Clients do not have that many calls waiting.
const maxAsked = 100

// elicitation returns an id for the opening of the page. When a stream waits on this node, each call has its own id:
// clients keep their waiting calls by id, and would lose one of two calls with one id. Otherwise all calls have the
// conversation's id, which a stream at another node knows.
func (x *exchange) elicitation() string {
	if x.scope { // no stream waits
		return uuid.NewString()
	}
	found, waits := asking.Load(x.r.Header.Get(jsonrpc.HeaderSessionID))
	if !waits {
		return x.conversationElicitation()
	}
	a := found.(*elicitations) //nolint:forcetypeassert // nothing else is in it
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.ids) == maxAsked {
		return x.conversationElicitation()
	}
	id := uuid.NewString()
	a.ids = append(a.ids, id)
	return id
}

// conversationElicitation returns an id that follows from the session alone, so that every node knows it.
func (x *exchange) conversationElicitation() string {
	return uuid.NewHash(sha256.New(), uuid.NameSpaceURL, []byte(x.r.Header.Get(jsonrpc.HeaderSessionID)), 8).String()
}

// noteAsked notes the conversation's elicitations until done is called.
func (x *exchange) noteAsked() (a *elicitations, done func()) {
	session, a := x.r.Header.Get(jsonrpc.HeaderSessionID), new(elicitations)
	if _, other := asking.LoadOrStore(session, a); other { // of two streams only the first
		return a, func() {}
	}
	return a, func() { asking.CompareAndDelete(session, a) }
}

// complete tells the client that its user has visited the page: the client must repeat its calls. Clients ignore
// unknown ids (2025-11-25, client/elicitation, "Completion Notifications").
func (x *exchange) complete(client *ownStream, a *elicitations) error {
	if !x.opensPages() {
		return nil
	}
	a.mu.Lock()
	ids := append([]string{x.conversationElicitation()}, a.ids...)
	a.mu.Unlock()
	for _, id := range ids {
		if err := client.message(jsonrpc.NotificationOf("notifications/elicitation/complete", map[string]string{"elicitationId": id})); err != nil {
			return err
		}
	}
	return nil
}
