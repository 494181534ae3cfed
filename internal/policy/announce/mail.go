package announce

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/durward-gateway/durward/internal/policy/approval"
	"github.com/durward-gateway/durward/internal/policy/engine"
	"github.com/durward-gateway/durward/storage"
)

// Mail is a mail of plain text.
type Mail struct {
	ID      string // repetitions of a mail have the same one
	To      string
	Subject string
	Text    string
}

// Mailer sends mails.
type Mailer interface {
	Send(ctx context.Context, m Mail) error
}

const (
	// MaxRecipients is the largest number of people who get a mail about one call.
	MaxRecipients = 50
	// maxPeople is the largest number of people of an organization who are looked at for it.
	maxPeople  = 200_000
	peoplePage = 500
)

// mails returns a mail for each person who may decide on a call, and whose address is known.
func (s *Sender) mails(ctx context.Context, r *Receiver, a *storage.Announcement, f *facts) ([]storage.Announcement, error) {
	if s.now().After(f.ExpiresAt) {
		return nil, fmt.Errorf("%w: the time of the call is over", errNever)
	}
	addresses, err := s.addresses(ctx, f)
	if err != nil {
		return nil, err
	}
	if len(addresses) == 0 {
		return nil, fmt.Errorf("%w: nobody who decides has a known address", errNever)
	}
	all := make([]storage.Announcement, len(addresses))
	for i, to := range addresses {
		mail := *a
		mail.ID, mail.Recipient, mail.Attempts, mail.LastError, mail.NextAt = uuid.Must(uuid.NewV7()).String(), to, 0, "", s.now().UTC()
		all[i] = mail
	}
	return all, nil
}

// addresses returns the addresses of the people who may decide on a call: its user, or those whom the policy names in place
// of its user. Whether they may is looked up again when they decide.
func (s *Sender) addresses(ctx context.Context, f *facts) (addresses []string, err error) {
	if len(f.Approvers) == 0 {
		user, err := s.store.User(ctx, f.OrganizationID, f.UserID)
		if err != nil || user.Email == "" {
			return nil, err
		}
		return []string{user.Email}, nil
	}
	after := ""
	for range maxPeople / peoplePage {
		page, err := s.store.Addressees(ctx, f.OrganizationID, after, peoplePage)
		if err != nil || len(page) == 0 {
			return addresses, err
		}
		for i := range page {
			p := &page[i]
			after = p.User.ID
			if after == f.UserID || slices.Contains(addresses, p.User.Email) || !decides(p, f) {
				continue
			}
			if addresses = append(addresses, p.User.Email); len(addresses) == MaxRecipients {
				return addresses, nil
			}
		}
	}
	s.log.Warn("not everybody of a large organization is looked at for a mail", "organization", f.OrganizationID, "approval", f.ID)
	return addresses, nil
}

// decides reports whether a person is among those who decide on a call, by the newest facts about them.
func decides(p *storage.Addressee, f *facts) bool {
	return engine.IsApprover(f.Approvers, p.User.ID, newest(p.User.Facts.Roles, p.Session.Roles, p), newest(p.User.Facts.Groups, p.Session.Groups, p))
}

// newest returns the names of a person's newest token, or of their last login with a browser if that is newer.
func newest(token storage.Fact, session []string, p *storage.Addressee) []string {
	if p.Session.At.After(token.At) {
		return session
	}
	return token.Names
}

// mailTo returns the mail about a held call. Every line of it is the gateway's own but for the values, in which no line can
// end: hidden characters are spelled out.
func mailTo(to string, a *storage.Announcement, t *Told) Mail {
	var text strings.Builder
	fmt.Fprintf(&text, "%s. Nothing of it has happened yet.\n\n", titleOf(a.Event, t))
	for _, l := range linesOf(t) {
		fmt.Fprintf(&text, "%-10s %s\n", l.name+":", l.value)
	}
	fmt.Fprintf(&text, "\nSee its arguments and decide within %.0f minutes of %s:\n\n%s\n\n", approval.DecideFor.Minutes(),
		t.CreatedAt.Format("2006-01-02 15:04 MST"), t.URL)
	text.WriteString("The page asks you to log in. Nobody can decide by an answer to this mail.\n")
	return Mail{ID: a.ID, To: to, Subject: "A tool call waits for approval: " + shown(t.Tool), Text: text.String()}
}
