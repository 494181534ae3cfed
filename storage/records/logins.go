package records

import (
	"context"
	"errors"
	"time"

	"github.com/durward-gateway/durward/storage"
)

const (
	loginColumns = `id, organization_id, user_id, client_id, client_name, resource, issuer, audience, subject, created_at, used_at, expires_at, ends_at,
		redirect_uri, challenge, redeemed_at, generation, rotated_at, facts, facts_at, sealed_refresh,
		sealed_id_token, id_token_until`
	loginWhere     = ` WHERE organization_id = $1 AND id = $2`
	anyLoginSQL    = `SELECT ` + loginColumns + ` FROM logins` + loginWhere + ` AND expires_at > $3`
	loginSQL       = anyLoginSQL + ` AND redeemed_at > $4`
	insertLoginSQL = `INSERT INTO logins (` + loginColumns + `, renewing_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24)`
	redeemLoginSQL = `UPDATE logins SET redeemed_at = $3, used_at = $3, rotated_at = $3, expires_at = $4` + loginWhere
	rotateLoginSQL = `UPDATE logins SET generation = $3, rotated_at = $4, used_at = $4, expires_at = $5` + loginWhere
	lostRefreshSQL = `UPDATE logins SET rotated_at = expires_at` + loginWhere + ` AND generation = $3`
	renewingSQL    = `UPDATE logins SET renewing_at = $3` + loginWhere + ` AND renewing_at <= $4`
	// beginRenewalSQL leaves a login alone that somebody has renewed meanwhile.
	beginRenewalSQL = renewingSQL + ` AND id_token_until <= $5`
	renewedLoginSQL = `UPDATE logins SET facts = $3, facts_at = $4, sealed_refresh = $5, renewing_at = $6, sealed_id_token = $7, id_token_until = $8` + loginWhere
	deleteLoginSQL  = `DELETE FROM logins` + loginWhere
	agreeLoginSQL   = `UPDATE logins SET client_id = $4, client_name = $5, resource = $6, redirect_uri = $7, challenge = $8, used_at = $9, expires_at = $10, ends_at = $11` + loginWhere + ` AND user_id = $3 AND client_id = '' AND expires_at > $9`
	oldLoginsSQL    = `DELETE FROM logins WHERE organization_id = $1 AND id IN (SELECT id FROM logins
		WHERE organization_id = $1 AND user_id = $2 AND (client_id = '') = $4 AND (challenge = '') = $5
		ORDER BY created_at DESC, id DESC LIMIT 9223372036854775807 OFFSET $3)`
	assertedLoginSQL = `SELECT ` + loginColumns + ` FROM logins WHERE organization_id = $1 AND user_id = $2 AND client_id = $3 AND challenge = ''
		AND resource = $4 AND issuer = $5 AND audience = $6 AND expires_at > $7 ORDER BY created_at, id LIMIT 1`
	assertAgainSQL          = `UPDATE logins SET client_name = $3, subject = $4, used_at = $5, expires_at = $6, ends_at = $7, facts = $8, facts_at = $9` + loginWhere
	deleteLoginsOfUserSQL   = `DELETE FROM logins WHERE organization_id = $1 AND user_id = $2`
	deleteLoginsOfClientSQL = deleteLoginsOfUserSQL + ` AND client_id = $3`

	loginsWhere    = ` FROM logins WHERE organization_id = $1 AND ($2 = '' OR user_id = $2) AND expires_at > $3 AND redeemed_at > $4`
	countLoginsSQL = `SELECT count(*)` + loginsWhere
	listLoginsSQL  = `SELECT ` + loginColumns + loginsWhere + ` ORDER BY used_at DESC, id DESC LIMIT $5 OFFSET $6`

	consentColumns = `organization_id, user_id, client_id, resource, redirect_origin, client_name, created_at`
	consentsWhere  = ` FROM consents WHERE organization_id = $1 AND user_id = $2`
	consentSQL     = `SELECT ` + consentColumns + consentsWhere + ` AND client_id = $3 AND resource = $4 AND redirect_origin = $5`
	consentsSQL    = `SELECT ` + consentColumns + consentsWhere + ` ORDER BY created_at DESC, client_id, resource, redirect_origin`
	putConsentSQL  = `INSERT INTO consents (` + consentColumns + `) VALUES ($1, $2, $3, $4, $5, $6, $7)
		ON CONFLICT (organization_id, user_id, client_id, resource, redirect_origin) DO UPDATE SET client_name = excluded.client_name, created_at = excluded.created_at`
	oldConsentsSQL = `DELETE FROM consents WHERE organization_id = $1 AND user_id = $2 AND created_at < (SELECT created_at` + consentsWhere + `
		ORDER BY created_at DESC LIMIT 1 OFFSET $3)`
	endConsentsSQL = `DELETE` + consentsWhere + ` AND client_id = $3`

	deleteConsentsOfUserSQL = `DELETE` + consentsWhere
)

func (t *texts) logins(d Dialect) {
	t.forgetLogins = `DELETE FROM logins WHERE expires_at <= $1` + d.OnlyOwn
}

func scanLogin(r Row) (l storage.Login, err error) {
	err = r.Scan(&l.ID, &l.OrganizationID, &l.UserID, &l.ClientID, &l.ClientName, &l.Resource, &l.Issuer, &l.Audience, &l.Subject, timeColumn{&l.CreatedAt},
		timeColumn{&l.UsedAt}, timeColumn{&l.ExpiresAt}, timeColumn{&l.EndsAt}, &l.RedirectURI, &l.Challenge, timeColumn{&l.RedeemedAt},
		&l.Generation, timeColumn{&l.RotatedAt}, jsonColumn{&l.Facts}, timeColumn{&l.FactsAt}, &l.SealedRefresh, &l.SealedIDToken,
		timeColumn{&l.IDTokenExpiresAt})
	return l, err
}

// CreateLogin implements storage.Logins. A user that does not exist violates a foreign key, which is ErrNotFound.
func (s loginsStore) CreateLogin(ctx context.Context, l storage.Login) error {
	facts, err := factsText(l.Facts)
	if err != nil {
		return err
	}
	return s.write(ctx, l.OrganizationID, func(ctx context.Context, tx Tx) error {
		if _, err := tx.Exec(ctx, s.texts.forgetLogins, l.CreatedAt.UnixMicro(), l.OrganizationID); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, oldLoginsSQL, l.OrganizationID, l.UserID, storage.MaxWaitingLogins-1, true, true); err != nil {
			return err
		}
		return insertLogin(ctx, tx, &l, facts)
	})
}

func insertLogin(ctx context.Context, tx Tx, l *storage.Login, facts string) error {
	_, err := tx.Exec(ctx, insertLoginSQL, l.ID, l.OrganizationID, l.UserID, l.ClientID, l.ClientName, l.Resource, l.Issuer, l.Audience, l.Subject,
		l.CreatedAt.UnixMicro(), l.UsedAt.UnixMicro(), l.ExpiresAt.UnixMicro(), l.EndsAt.UnixMicro(), l.RedirectURI, l.Challenge,
		l.RedeemedAt.UnixMicro(), l.Generation, l.RotatedAt.UnixMicro(), facts, l.FactsAt.UnixMicro(), l.SealedRefresh,
		l.SealedIDToken, l.IDTokenExpiresAt.UnixMicro(), never())
	return err
}

// AgreeLogin implements storage.Logins.
func (s loginsStore) AgreeLogin(ctx context.Context, l storage.Login) error {
	return s.write(ctx, l.OrganizationID, func(ctx context.Context, tx Tx) error {
		ended, err := tx.Exec(ctx, oldLoginsSQL, l.OrganizationID, l.UserID, storage.MaxLogins-1, false, false)
		if err != nil {
			return err
		}
		err = execOne(ctx, tx, agreeLoginSQL, l.OrganizationID, l.ID, l.UserID, l.ClientID, l.ClientName, l.Resource, l.RedirectURI, l.Challenge,
			l.UsedAt.UnixMicro(), l.ExpiresAt.UnixMicro(), l.EndsAt.UnixMicro())
		if err != nil || ended == 0 {
			return err
		}
		_, err = tx.Change(ctx, l.OrganizationID)
		return err
	})
}

// AssertLogin implements storage.Logins. The user is read in the transaction: a revocation either comes before, and refuses
// the login, or comes after, and ends it.
func (s loginsStore) AssertLogin(ctx context.Context, l storage.Login, issued time.Time) (storage.Login, error) {
	facts, err := factsText(l.Facts)
	if err != nil {
		return storage.Login{}, err
	}
	for _, at := range []*time.Time{&l.CreatedAt, &l.UsedAt, &l.ExpiresAt, &l.EndsAt, &l.FactsAt} {
		*at = micros(*at)
	}
	l.RedirectURI, l.Challenge, l.RedeemedAt, l.RotatedAt, l.Generation, l.SealedRefresh = "", "", l.CreatedAt, l.CreatedAt, 0, nil
	var stored storage.Login
	err = s.write(ctx, l.OrganizationID, func(ctx context.Context, tx Tx) error {
		stored = l
		u, err := One(ctx, tx, scanUser, userSQL, l.OrganizationID, l.UserID)
		switch {
		case err != nil:
			return err
		case !u.RevokedAt.IsZero() && !micros(issued).After(u.RevokedAt):
			return storage.ErrNotFound
		}
		if _, err := tx.Exec(ctx, s.texts.forgetLogins, l.UsedAt.UnixMicro(), l.OrganizationID); err != nil {
			return err
		}
		former, err := One(ctx, tx, scanLogin, assertedLoginSQL, l.OrganizationID, l.UserID, l.ClientID, l.Resource, l.Issuer, l.Audience, l.UsedAt.UnixMicro())
		switch {
		case errors.Is(err, storage.ErrNotFound):
			return assertFirst(ctx, tx, &l, facts)
		case err != nil:
			return err
		}
		stored.ID, stored.CreatedAt, stored.RedeemedAt, stored.RotatedAt = former.ID, former.CreatedAt, former.RedeemedAt, former.RotatedAt
		err = execOne(ctx, tx, assertAgainSQL, l.OrganizationID, former.ID, l.ClientName, l.Subject, l.UsedAt.UnixMicro(), l.ExpiresAt.UnixMicro(), l.EndsAt.UnixMicro(),
			facts, l.FactsAt.UnixMicro())
		if err != nil || facts == jsonText(former.Facts) {
			return err
		}
		_, err = tx.Change(ctx, l.OrganizationID)
		return err
	})
	if err != nil {
		return storage.Login{}, err
	}
	return stored, nil
}

// assertFirst stores a login that goes on in no other's place.
func assertFirst(ctx context.Context, tx Tx, l *storage.Login, facts string) error {
	ended, err := tx.Exec(ctx, oldLoginsSQL, l.OrganizationID, l.UserID, storage.MaxAssertedLogins-1, false, true)
	if err != nil {
		return err
	}
	if err := insertLogin(ctx, tx, l, facts); err != nil || ended == 0 {
		return err
	}
	_, err = tx.Change(ctx, l.OrganizationID)
	return err
}

// factsText returns the stored form of facts.
func factsText(f storage.LoginFacts) (string, error) {
	all := []string{f.Claims}
	for _, names := range [...][]string{f.Roles, f.Groups, f.Teams, f.Projects} {
		all = append(all, names...)
	}
	return jsonTexts(f, all...)
}

// RedeemLogin implements storage.Logins.
func (s loginsStore) RedeemLogin(ctx context.Context, organization, id string, now, expires time.Time) (l storage.Login, err error) {
	return s.exchange(ctx, organization, id, now, func(ctx context.Context, tx Tx, l *storage.Login) error {
		switch {
		case l.ClientID == "": // its user has not agreed
			return storage.ErrNotFound
		case !l.RedeemedAt.IsZero():
			return storage.ErrReplayed
		}
		l.RedeemedAt, l.UsedAt, l.RotatedAt, l.ExpiresAt = micros(now), micros(now), micros(now), earlier(expires, l.EndsAt)
		return execOne(ctx, tx, redeemLoginSQL, organization, id, now.UnixMicro(), l.ExpiresAt.UnixMicro())
	})
}

// RefreshLogin implements storage.Logins.
func (s loginsStore) RefreshLogin(ctx context.Context, organization, id string, generation int, now time.Time, idle, grace time.Duration) (l storage.Login, renews bool, err error) {
	l, err = s.exchange(ctx, organization, id, now, func(ctx context.Context, tx Tx, l *storage.Login) error {
		switch {
		case l.RedeemedAt.IsZero():
			return storage.ErrNotFound
		case generation == l.Generation:
			l.Generation++
			l.RotatedAt, l.UsedAt, l.ExpiresAt = micros(now), micros(now), earlier(now.Add(idle), l.EndsAt)
			if err := execOne(ctx, tx, rotateLoginSQL, organization, id, l.Generation, now.UnixMicro(), l.ExpiresAt.UnixMicro()); err != nil {
				return err
			}
		case generation < 0 || generation != l.Generation-1 || now.Sub(l.RotatedAt) > grace:
			return storage.ErrReplayed
		case l.RotatedAt.After(now): // see LostRefresh: the client gets the token once more, and from now on the grace counts
			l.RotatedAt, l.UsedAt, l.ExpiresAt = micros(now), micros(now), earlier(now.Add(idle), l.EndsAt)
			if err := execOne(ctx, tx, rotateLoginSQL, organization, id, l.Generation, now.UnixMicro(), l.ExpiresAt.UnixMicro()); err != nil {
				return err
			}
		}
		if l.SealedRefresh == nil {
			return nil
		}
		n, err := tx.Exec(ctx, renewingSQL, organization, id, now.UnixMicro(), now.Add(-storage.RenewalLimit).UnixMicro())
		renews = n > 0
		return err
	})
	return l, renews && err == nil, err
}

// earlier returns the earlier time, with the store's precision.
func earlier(a, b time.Time) time.Time {
	if a.After(b) {
		a = b
	}
	return micros(a)
}

// exchange runs f with a login that has not ended. When f returns ErrReplayed the login is deleted, and that is committed.
func (s *work) exchange(ctx context.Context, organization, id string, now time.Time, f func(ctx context.Context, tx Tx, l *storage.Login) error) (l storage.Login, err error) {
	replayed := false
	err = s.write(ctx, organization, func(ctx context.Context, tx Tx) (err error) {
		replayed = false
		if l, err = One(ctx, tx, scanLogin, anyLoginSQL, organization, id, now.UnixMicro()); err != nil {
			return err
		}
		err = f(ctx, tx, &l)
		if replayed = err == storage.ErrReplayed; !replayed { //nolint:errorlint // it is f's own
			return err
		}
		return endLogin(ctx, tx, organization, id)
	})
	switch {
	case err != nil:
		return storage.Login{}, err
	case replayed:
		return l, storage.ErrReplayed
	}
	return l, nil
}

func endLogin(ctx context.Context, tx Tx, organization, id string) error {
	if err := execOne(ctx, tx, deleteLoginSQL, organization, id); err != nil {
		return err
	}
	_, err := tx.Change(ctx, organization)
	return err
}

// LostRefresh implements storage.Logins.
func (s loginsStore) LostRefresh(ctx context.Context, organization, id string, generation int) error {
	return s.write(ctx, organization, func(ctx context.Context, tx Tx) error {
		_, err := tx.Exec(ctx, lostRefreshSQL, organization, id, generation)
		return err
	})
}

// BeginRenewal implements storage.Logins. The login is read after the claim: its refresh token is then the newest.
func (s loginsStore) BeginRenewal(ctx context.Context, organization, id string, now, until time.Time) (l storage.Login, renews bool, err error) {
	err = s.write(ctx, organization, func(ctx context.Context, tx Tx) (err error) {
		n, err := tx.Exec(ctx, beginRenewalSQL, organization, id, now.UnixMicro(), now.Add(-storage.RenewalLimit).UnixMicro(), until.UnixMicro())
		if err != nil {
			return err
		}
		renews = n > 0
		l, err = One(ctx, tx, scanLogin, loginSQL, organization, id, now.UnixMicro(), never())
		return err
	})
	if err != nil {
		return storage.Login{}, false, err
	}
	return l, renews, nil
}

// RenewLogin implements storage.Logins.
func (s loginsStore) RenewLogin(ctx context.Context, l storage.Login) error {
	organization, id := l.OrganizationID, l.ID
	text, err := factsText(l.Facts)
	if err != nil {
		return err
	}
	return s.write(ctx, organization, func(ctx context.Context, tx Tx) error {
		former, err := One(ctx, tx, scanLogin, loginSQL, organization, id, never(), never())
		if err != nil {
			return err
		}
		if err := execOne(ctx, tx, renewedLoginSQL, organization, id, text, l.FactsAt.UnixMicro(), l.SealedRefresh, never(), l.SealedIDToken,
			l.IDTokenExpiresAt.UnixMicro()); err != nil {
			return err
		}
		if text == jsonText(former.Facts) {
			return nil
		}
		_, err = tx.Change(ctx, organization)
		return err
	})
}

// Login implements storage.Logins.
func (s loginsStore) Login(ctx context.Context, organization, id string, now time.Time) (l storage.Login, err error) {
	err = s.readToAuthenticate(ctx, Of(organization), func(ctx context.Context, q Querier) (err error) {
		l, err = One(ctx, q, scanLogin, loginSQL, organization, id, now.UnixMicro(), never())
		return err
	})
	return l, err
}

// Logins implements storage.Logins.
func (s loginsStore) Logins(ctx context.Context, f storage.LoginFilter) (page storage.Page[storage.Login], err error) {
	where := []any{f.OrganizationID, f.UserID, f.Now.UnixMicro(), never()}
	limit, offset := window(f.Page)
	err = s.readSnapshot(ctx, f.OrganizationID, func(ctx context.Context, q Querier) (err error) {
		if page.Total, err = One(ctx, q, ScanInt, countLoginsSQL, where...); err != nil {
			return err
		}
		page.Items, err = Many(ctx, q, scanLogin, listLoginsSQL, append(where, limit, offset)...)
		return err
	})
	return page, err
}

// EndLogin implements storage.Logins.
func (s loginsStore) EndLogin(ctx context.Context, organization, id string, forget bool) (l storage.Login, err error) {
	err = s.write(ctx, organization, func(ctx context.Context, tx Tx) (err error) {
		if l, err = One(ctx, tx, scanLogin, anyLoginSQL, organization, id, never()); err != nil {
			return err
		}
		if forget {
			if _, err := tx.Exec(ctx, endConsentsSQL, organization, l.UserID, l.ClientID); err != nil {
				return err
			}
		}
		return endLogin(ctx, tx, organization, id)
	})
	return l, err
}

func scanConsent(r Row) (c storage.Consent, err error) {
	err = r.Scan(&c.OrganizationID, &c.UserID, &c.ClientID, &c.Resource, &c.RedirectOrigin, &c.ClientName, timeColumn{&c.CreatedAt})
	return c, err
}

// PutConsent implements storage.Logins.
func (s loginsStore) PutConsent(ctx context.Context, c storage.Consent) error {
	return s.write(ctx, c.OrganizationID, func(ctx context.Context, tx Tx) error {
		if _, err := tx.Exec(ctx, putConsentSQL, c.OrganizationID, c.UserID, c.ClientID, c.Resource, c.RedirectOrigin, c.ClientName, c.CreatedAt.UnixMicro()); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, oldConsentsSQL, c.OrganizationID, c.UserID, storage.MaxConsents-1)
		return err
	})
}

// Consent implements storage.Logins.
func (s loginsStore) Consent(ctx context.Context, of storage.Consent) (c storage.Consent, err error) {
	err = s.read(ctx, of.OrganizationID, func(ctx context.Context, q Querier) (err error) {
		c, err = One(ctx, q, scanConsent, consentSQL, of.OrganizationID, of.UserID, of.ClientID, of.Resource, of.RedirectOrigin)
		return err
	})
	return c, err
}

// Consents implements storage.Logins.
func (s loginsStore) Consents(ctx context.Context, organization, userID string) (all []storage.Consent, err error) {
	err = s.read(ctx, organization, func(ctx context.Context, q Querier) (err error) {
		all, err = Many(ctx, q, scanConsent, consentsSQL, organization, userID)
		return err
	})
	return all, err
}

// EndConsents implements storage.Logins.
func (s loginsStore) EndConsents(ctx context.Context, organization, userID, clientID string) error {
	return s.write(ctx, organization, func(ctx context.Context, tx Tx) error {
		if _, err := tx.Exec(ctx, endConsentsSQL, organization, userID, clientID); err != nil {
			return err
		}
		ended, err := tx.Exec(ctx, deleteLoginsOfClientSQL, organization, userID, clientID)
		if err != nil || ended == 0 {
			return err
		}
		_, err = tx.Change(ctx, organization)
		return err
	})
}
