package announce

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/durward-gateway/durward/internal/seal"
	"github.com/durward-gateway/durward/storage"
)

// maxAnswer is the greatest length of an answer that is read. Nothing in it matters.
const maxAnswer = 64 << 10

// errGone says that a receiver wants no announcements any more.
var errGone = errors.New("the receiver answers 410: it is gone")

// body returns the request's body for a receiver.
func body(r *Receiver, a *storage.Announcement, t *Told) ([]byte, error) {
	switch r.Kind {
	case Slack:
		return json.Marshal(slackMessage(a.Event, t))
	case Teams:
		return json.Marshal(teamsMessage(a.Event, t))
	default:
		return json.Marshal(payload{Type: a.Event, Timestamp: t.happened(a.Event), Data: t})
	}
}

// post sends an announcement by HTTP.
func (s *Sender) post(ctx context.Context, r *Receiver, a *storage.Announcement, t *Told) error {
	text, err := body(r, a, t)
	if err != nil {
		return fmt.Errorf("encoding an announcement: %w", err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, r.URL.Reveal(), bytes.NewReader(text))
	if err != nil {
		return errors.New("the address cannot be used") // the error would show it
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("User-Agent", "durward")
	if r.Kind == Webhook {
		sign(request.Header, r.Keys, a.ID, s.now(), text)
	}
	response, err := s.client.Do(request)
	if err != nil {
		return unreached{withoutURL(err)}
	}
	defer response.Body.Close()
	_, _ = io.Copy(io.Discard, response.Body) // what a receiver says is not read
	switch {
	case response.StatusCode == http.StatusGone:
		return errGone
	case response.StatusCode < 200 || response.StatusCode > 299:
		return fmt.Errorf("the receiver answers %d", response.StatusCode)
	}
	return nil
}

// withoutURL removes the address from an error of net/http: that of a chat is a secret.
func withoutURL(err error) error {
	if of, ok := errors.AsType[*url.Error](err); ok {
		return of.Err
	}
	return err
}

// sign sets the headers of Standard Webhooks: the announcement's id, the time of this attempt, and a signature for each key.
func sign(header http.Header, keys []seal.Secret, id string, at time.Time, text []byte) {
	stamp := strconv.FormatInt(at.Unix(), 10)
	signatures := make([]string, len(keys))
	for i, key := range keys {
		mac := hmac.New(sha256.New, []byte(key.Reveal()))
		mac.Write([]byte(id + "." + stamp + "."))
		mac.Write(text)
		signatures[i] = "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
	}
	header["webhook-id"] = []string{id} // in the spelling of the standard
	header["webhook-timestamp"] = []string{stamp}
	header["webhook-signature"] = []string{strings.Join(signatures, " ")}
}
