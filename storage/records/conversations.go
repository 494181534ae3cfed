package records

import (
	"context"
	"time"

	"github.com/durward-gateway/durward/storage"
)

const (
	conversationColumns   = `id, organization_id, user_id, server_id, declared, upstream, created_at, expires_at`
	conversationWhere     = ` WHERE organization_id = $1 AND user_id = $2 AND id = $3`
	conversationSQL       = `SELECT ` + conversationColumns + ` FROM conversations` + conversationWhere + ` AND expires_at > $4`
	insertConversationSQL = `INSERT INTO conversations (` + conversationColumns + `) VALUES ($1, $2, $3, $4, $5, '', $6, $7)`
	// The second opener of a session at the upstream uses that of the first one.
	openConversationSQL   = `UPDATE conversations SET upstream = $5, expires_at = $6` + conversationWhere + ` AND expires_at > $4 AND upstream = ''`
	deleteConversationSQL = `DELETE FROM conversations` + conversationWhere
	oldConversationsSQL   = `DELETE FROM conversations WHERE organization_id = $1 AND id IN (SELECT id FROM conversations
		WHERE organization_id = $1 AND user_id = $2 AND server_id = $3 ORDER BY created_at DESC, id DESC LIMIT 9223372036854775807 OFFSET $4)`
)

func (t *texts) conversations(d Dialect) {
	t.forgetConversations = `DELETE FROM conversations WHERE expires_at <= $1` + d.OnlyOwn
}

func scanConversation(r Row) (c storage.Conversation, err error) {
	err = r.Scan(&c.ID, &c.OrganizationID, &c.UserID, &c.ServerID, rawColumn{&c.Declared}, &c.Upstream, timeColumn{&c.CreatedAt}, timeColumn{&c.ExpiresAt})
	return c, err
}

// CreateConversation implements storage.Conversations. A server or user that does not exist violates a foreign key,
// which is ErrNotFound.
func (s conversationsStore) CreateConversation(ctx context.Context, c storage.Conversation) error {
	return s.write(ctx, c.OrganizationID, func(ctx context.Context, tx Tx) error {
		if _, err := tx.Exec(ctx, s.texts.forgetConversations, c.CreatedAt.UnixMicro(), c.OrganizationID); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, oldConversationsSQL, c.OrganizationID, c.UserID, c.ServerID, storage.MaxConversations-1); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, insertConversationSQL, c.ID, c.OrganizationID, c.UserID, c.ServerID, string(c.Declared),
			c.CreatedAt.UnixMicro(), c.ExpiresAt.UnixMicro())
		return err
	})
}

// Conversation implements storage.Conversations.
func (s conversationsStore) Conversation(ctx context.Context, organization, userID, id string, now time.Time) (c storage.Conversation, err error) {
	err = s.read(ctx, organization, func(ctx context.Context, q Querier) (err error) {
		c, err = One(ctx, q, scanConversation, conversationSQL, organization, userID, id, now.UnixMicro())
		return err
	})
	return c, err
}

// OpenConversation implements storage.Conversations.
func (s conversationsStore) OpenConversation(ctx context.Context, organization, userID, id, upstream string, now, expires time.Time) (c storage.Conversation, err error) {
	err = s.write(ctx, organization, func(ctx context.Context, tx Tx) (err error) {
		if _, err := tx.Exec(ctx, openConversationSQL, organization, userID, id, now.UnixMicro(), upstream, expires.UnixMicro()); err != nil {
			return err
		}
		c, err = One(ctx, tx, scanConversation, conversationSQL, organization, userID, id, now.UnixMicro())
		return err
	})
	if err != nil {
		return storage.Conversation{}, err
	}
	return c, nil
}

// DeleteConversation implements storage.Conversations.
func (s conversationsStore) DeleteConversation(ctx context.Context, organization, userID, id string) error {
	return s.write(ctx, organization, func(ctx context.Context, tx Tx) error {
		_, err := tx.Exec(ctx, deleteConversationSQL, organization, userID, id)
		return err
	})
}
