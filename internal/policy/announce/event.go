package announce

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/durward-gateway/durward/storage"
)

// grace is the time after which a call that nobody decided is announced as over. A node whose clock is behind may have let
// somebody decide at the last moment.
const grace = 5 * time.Second

// facts holds what a row tells about a held call. It is complete, because the call may be gone when it is sent.
type facts struct {
	ID             string     `json:"id"`
	Status         string     `json:"status"`
	OrganizationID string     `json:"organization_id"`
	UserID         string     `json:"user_id"`
	AgentID        string     `json:"agent_id,omitempty"`
	Client         string     `json:"client,omitempty"`
	ServerID       string     `json:"mcp_server_id"`
	Tool           string     `json:"tool"`
	Rule           string     `json:"rule"`
	Approvers      [][]string `json:"approvers"`
	CreatedAt      time.Time  `json:"created_at"`
	ExpiresAt      time.Time  `json:"expires_at"`
	DecidedAt      *time.Time `json:"decided_at,omitempty"`
	DecidedBy      string     `json:"decided_by,omitempty"`
}

func factsOf(a *storage.Approval, status storage.ApprovalStatus) facts {
	f := facts{
		ID: a.ID, Status: string(status), OrganizationID: a.OrganizationID, UserID: a.UserID, AgentID: a.AgentID, Client: a.Client,
		ServerID: a.ServerID, Tool: a.Tool, Rule: a.Rule, Approvers: a.Approvers, CreatedAt: a.CreatedAt, ExpiresAt: a.ExpiresAt, DecidedBy: a.DecidedBy,
	}
	if f.Approvers == nil {
		f.Approvers = [][]string{}
	}
	if !a.DecidedAt.IsZero() {
		f.DecidedAt = &a.DecidedAt
	}
	return f
}

// Announcements returns the announcements of a call that was just held, or just decided. Those of its end come with the
// beginning, and are taken back when somebody decides. Calls that the client itself asks about are not announced.
func (s *Sender) Announcements(a storage.Approval) []storage.Announcement {
	if a.Channel != storage.ChannelOutOfBand {
		return nil
	}
	var all []storage.Announcement
	for i := range s.receivers {
		r := &s.receivers[i]
		if a.Status != storage.ApprovalPending {
			if r.Kind != Email { // a mail about what is over helps nobody
				all = append(all, row(r, &a, storage.EventDecided, a.Status, a.DecidedAt, a.DecidedAt))
			}
			continue
		}
		all = append(all, row(r, &a, storage.EventHeld, a.Status, a.CreatedAt, a.CreatedAt))
		if r.Kind != Email {
			all = append(all, row(r, &a, storage.EventExpired, storage.ApprovalExpired, a.CreatedAt, a.ExpiresAt.Add(grace)))
		}
	}
	return all
}

func row(r *Receiver, a *storage.Approval, event string, status storage.ApprovalStatus, made, due time.Time) storage.Announcement {
	text, err := json.Marshal(factsOf(a, status))
	if err != nil {
		panic(err) // texts and times can be encoded
	}
	number := 1
	if event == storage.EventHeld {
		number = 0
	}
	return storage.Announcement{
		ID: uuid.Must(uuid.NewV7()).String(), OrganizationID: a.OrganizationID, ApprovalID: a.ID, Event: event, Receiver: r.Name, Number: number,
		Text: string(text), State: storage.AnnouncementWaiting, CreatedAt: made, NextAt: due,
	}
}

// Told holds the facts about a held call, as receivers get them. Names are those of the moment at which it is sent. They are
// texts of others, and may hold anything.
type Told struct {
	facts
	User      string          `json:"user"`
	Agent     string          `json:"agent"`      // "": the client is not registered
	Server    string          `json:"mcp_server"` // its slug
	DecidedBy string          `json:"decided_by_name,omitempty"`
	URL       string          `json:"url"`                 // of the page
	Arguments json.RawMessage `json:"arguments,omitempty"` // only where the configuration says so
}

// payload is the body of a webhook.
type payload struct {
	Type      string    `json:"type"`
	Timestamp time.Time `json:"timestamp"` // of the event
	Data      *Told     `json:"data"`
}

// readFacts reads the text of a row.
func readFacts(a *storage.Announcement) (f facts, err error) {
	if err := json.Unmarshal([]byte(a.Text), &f); err != nil {
		return f, fmt.Errorf("reading an announcement: %w", err)
	}
	return f, nil
}

// happened returns the time of an event.
func (f *facts) happened(event string) time.Time {
	switch {
	case event == storage.EventDecided && f.DecidedAt != nil:
		return *f.DecidedAt
	case event == storage.EventExpired:
		return f.ExpiresAt
	}
	return f.CreatedAt
}
