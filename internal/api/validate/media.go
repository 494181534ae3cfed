package validate

import (
	"errors"
	"fmt"
	"mime"
	"net/http"
	"strings"
)

// ErrMedia says that a body has an unsupported form: 415 UnsupportedMediaType.
var ErrMedia = errors.New("unsupported media type")

// CheckMedia checks the headers of a request that has a body: one Content-Type of application/json, in UTF-8, without
// a content coding (attacks B08, B09, M24: the checked text must be the one that is stored or forwarded, and a form
// of a foreign page must not count as JSON). Its error wraps ErrMedia and may be shown.
func CheckMedia(h http.Header) error {
	types := h["Content-Type"]
	if len(types) != 1 {
		return fmt.Errorf("%w: one Content-Type of application/json is needed", ErrMedia)
	}
	if types[0] != "application/json" { // as nearly every client writes it
		media, parameters, err := mime.ParseMediaType(types[0])
		if err != nil || media != "application/json" {
			return fmt.Errorf("%w: Content-Type must be application/json", ErrMedia)
		}
		if charset, ok := parameters["charset"]; ok && !strings.EqualFold(charset, "utf-8") {
			return fmt.Errorf("%w: charset must be utf-8", ErrMedia)
		}
	}
	for _, coding := range h["Content-Encoding"] {
		if !strings.EqualFold(strings.TrimSpace(coding), "identity") {
			return fmt.Errorf("%w: content codings are not accepted", ErrMedia)
		}
	}
	return nil
}
